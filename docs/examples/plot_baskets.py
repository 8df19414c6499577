"""
Baskets of products, and when they were bought
==============================================

A basket is a bag of products with counts, as a text is one of words. Topics are then
products that are bought together, clusters occasions to go shopping, and the hour of
day is a context. The example draws 600 baskets and asks which hour a basket tells of.
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
OCCASIONS = {  # shares of the groups, and the hour
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
# Two of three hours are known, as if the others had been bought from a machine that
# keeps no time. The fit sees the known ones.

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
# The hour that a basket tells of, with its central 90 %, and the hour that was hidden.

told = fit.posterior.predict_context(corpus, "hour")
low, high = told.interval(0.9).T
error = np.abs(told.mean - hour)[hidden].mean()
plain = np.abs(hour[~hidden].mean() - hour)[hidden].mean()
inside = ((low <= hour) & (hour <= high))[hidden].mean()
print(
    f"mean error {error:.1f} hours, of the mean hour {plain:.1f}; in 90 %: {inside:.0%}"
)

order = np.flatnonzero(hidden)[np.argsort(told.mean[hidden])]
figure, axis = plt.subplots(figsize=(7, 3.4))
place = np.arange(len(order))
axis.fill_between(place, low[order], high[order], color="#9ecae1", label="central 90 %")
axis.plot(place, told.mean[order], color="#08519c", label="expected")
axis.plot(place, hour[order], ".", color="#d95f02", markersize=4, label="hidden")
axis.set(xlabel="baskets without an hour, by the hour expected", ylabel="hour of day")
axis.legend(fontsize="small", loc="lower right")
figure.tight_layout()
