"""
Ten thousand clusters with FastEx
=================================

In a mixture model, each document belongs to one cluster, and each cluster has one
distribution over words. An exact sweep compares each document with all ten thousand
clusters. FastEx compares each document only with a few candidate clusters. It accepts
or rejects them such that the posterior distribution does not change.

The corpus is a simulated encyclopaedia of 60,000 short articles in 10,000 categories.
Half of the words of an article are common words. The other words are typical of its
category.
"""

import matplotlib.pyplot as plt
import numpy as np

import mc2core
from mc2core.clustering import variation_of_information
from mc2core.inference import FastEx
from mc2core.models import Mixture
from mc2papers.datasets.simulated.encyclopaedia import Encyclopaedia, simulate

N_CLUSTERS = 10_000
shape = Encyclopaedia(
    n_categories=N_CLUSTERS,
    n_documents=60_000,
    n_words=50_000,
    distinct_words=40.0,
    typical_words=200,
    typical_share=0.5,
)
corpus = simulate(shape, seed=3)
print(corpus)

# %%
# With ``proposal="neighbours"``, the candidates are the clusters of the most similar
# documents. The graph of similar documents is built once, at the start. By default,
# sweep 5 is exact; ``exact_sweeps=[]`` disables exact sweeps.

engine = FastEx(proposal="neighbours", exact_sweeps=[])
mixture = Mixture(n_clusters=N_CLUSTERS)
fit = mc2core.fit(corpus, mixture, engine, iterations=5, chains=1, seed=0)
columns = ["iteration", "seconds", "log_joint"]
fit.trace[columns].round(1)

# %%
# For comparison, the next fit has two exact sweeps, which score all 10,000 clusters for
# every document. A sweep with proposals from neighbours takes a small fraction of the
# time of an exact sweep.

engine = FastEx(proposal="exact")
exact = mc2core.fit(corpus, mixture, engine, iterations=2, chains=1, seed=0)

# %%
# The left plot shows the distance of each clustering from the true categories
# (variation of information in bits; 0 is perfect). The last two bars are trivial
# clusterings, for comparison. The right plot shows the time of the last sweep.

found = fit.posterior.cluster
distance = {
    name: variation_of_information(corpus.labels, labels)
    for name, labels in {
        "neighbours, 5 sweeps": found,
        "exact, 2 sweeps": exact.posterior.cluster,
        "one cluster": np.zeros_like(found),
        "one cluster per document": np.arange(len(found)),
    }.items()
}
seconds = {
    "neighbours": fit.trace["seconds"].diff().iloc[-1],
    "exact": exact.trace["seconds"].diff().iloc[-1],
}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.4))
left.barh(list(distance), list(distance.values()), color="#9ecae1")
left.set(xlabel="bits (0 is perfect)", title="Distance from the true categories")
right.barh(list(seconds), list(seconds.values()), color="#9ecae1")
right.set(xlabel="seconds", title="Time of the last sweep")
for axis, values in ((left, distance), (right, seconds)):
    axis.bar_label(
        axis.containers[0], [f"{one:.2f}" for one in values.values()], padding=3
    )
    axis.margins(x=0.25)
    axis.invert_yaxis()
figure.tight_layout()
