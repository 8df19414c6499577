"""
Baskets of products, and when they were bought
==============================================

A basket of products with counts is similar to a text, which is a bag of words with
counts. In this example, topics are groups of products that are bought together, and
clusters are occasions to go shopping. The hour of day is a context. The example
simulates 600 baskets and predicts the hours of one third of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import mc2core
from mc2core.clustering import adjusted_rand_index
from mc2core.models import MC2

GROUPS = {
    "breakfast": ["bread", "butter", "jam", "coffee", "milk", "eggs"],
    "dinner": ["pasta", "tomatoes", "cheese", "wine", "onions", "oil"],
    "party": ["crisps", "beer", "cola", "nuts", "ice", "candles"],
    "house": ["soap", "paper", "bulbs", "sponges", "bags", "batteries"],
}
PRODUCTS = [product for group in GROUPS.values() for product in group]
OCCASIONS = {  # proportions of the groups, mean hour, standard deviation of the hour
    "on the way to work": ([0.9, 0.05, 0.0, 0.05], 8, 1.0),
    "after work": ([0.15, 0.7, 0.05, 0.1], 18, 1.0),
    "before a party": ([0.0, 0.2, 0.8, 0.0], 20, 1.0),
    "once a week": ([0.3, 0.3, 0.1, 0.3], 11, 2.0),
}
rng = np.random.default_rng(0)
occasion = rng.integers(0, 4, 600)
mixes, hours, spread = map(np.array, zip(*OCCASIONS.values(), strict=True))
within = np.kron(np.eye(4), np.full(6, 1 / 6))
sizes = np.where(occasion == 3, 25, 8)
counts = np.array(
    [
        rng.multinomial(n, mixes[k] @ within)
        for n, k in zip(sizes, occasion, strict=True)
    ]
)
hour = np.clip(rng.normal(hours[occasion], spread[occasion]), 7, 22)

# %%
# The fit uses two thirds of the hours. The other hours are held out.

hidden = rng.random(600) < 1 / 3
corpus = mc2core.Corpus(
    counts,
    PRODUCTS,
    {"hour": np.where(hidden, np.nan, hour)},
    labels=occasion,
    label_names=list(OCCASIONS),
)
fit = mc2core.fit(corpus, MC2(contexts=["hour"]), iterations=60, seed=0)
print(fit.topics()[["name", "share", "words"]].round(2).to_string())
columns = ["name", "documents", "context_hour_mean", "context_hour_sd", "label"]
print(fit.clusters()[columns].round(1).to_string())
print(f"ARI: {adjusted_rand_index(fit.posterior.cluster, occasion):.2f}")

# %%
# The plot compares the held-out hours with their predictions and 90 % intervals. For
# comparison, the text also shows the error if every prediction is the mean hour.

predicted = fit.posterior.predict_context(corpus, "hour")
low, high = predicted.interval(0.9).T
error = np.abs(predicted.mean - hour)[hidden].mean()
plain = np.abs(hour[~hidden].mean() - hour)[hidden].mean()
inside = ((low <= hour) & (hour <= high))[hidden].mean()
print(
    f"mean error {error:.1f} hours (of the mean hour: {plain:.1f}); "
    f"hours within the 90 % interval: {inside:.0%}"
)

order = np.flatnonzero(hidden)[np.argsort(predicted.mean[hidden])]
figure, axis = plt.subplots(figsize=(7, 3.4))
place = np.arange(len(order))
interval = {"color": "#9ecae1", "label": "90 % interval"}
axis.fill_between(place, low[order], high[order], **interval)
axis.plot(place, predicted.mean[order], color="#08519c", label="predicted")
axis.plot(place, hour[order], ".", color="#d95f02", markersize=4, label="held out")
axis.set(xlabel="baskets without an hour, by predicted hour", ylabel="hour of day")
axis.set_title("Predicted and held-out hours of baskets")
axis.legend(fontsize="small", loc="lower right")
figure.tight_layout()
