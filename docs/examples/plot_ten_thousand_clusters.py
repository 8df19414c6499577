"""
Ten thousand clusters with FastEx
=================================

A mixture gives each document one cluster, and each cluster one distribution over words.
With ten thousand clusters, an exact sweep compares each document with all of them.
FastEx proposes a few candidates instead, and accepts or rejects them so that the
posterior stays the same.

The corpus is a simulated encyclopaedia: 60,000 short articles of 10,000 categories.
Half of the words of an article are common words, the others are typical of its
category.
"""

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
# ``proposal="neighbours"`` takes candidates from the clusters of the most similar
# documents. The graph of neighbours is built once, at the start. ``exact_sweeps=[]``
# leaves out the exact sweep that the engine makes by default.

engine = FastEx(proposal="neighbours", exact_sweeps=[])
mixture = Mixture(n_clusters=N_CLUSTERS)
fit = mc2core.fit(corpus, mixture, engine, iterations=5, chains=1, seed=0)
columns = ["iteration", "seconds", "log_joint"]
fit.trace[columns].round(1)

# %%
# For comparison, two exact sweeps, which score all 10,000 clusters for every document.
# The last sweep by neighbours takes a small part of the time of an exact one.

engine = FastEx(proposal="exact")
exact = mc2core.fit(corpus, mixture, engine, iterations=2, chains=1, seed=0)
for name, one in (("neighbours", fit), ("exact", exact)):
    print(f"{name:11} {one.trace['seconds'].diff().iloc[-1]:5.2f} s for the last sweep")

# %%
# The distance from the true categories is the variation of information in bits, where 0
# is perfect. The last two lines are trivial clusterings, for comparison.

found = fit.posterior.cluster
for name, labels in {
    "neighbours, 5 sweeps": found,
    "exact, 2 sweeps": exact.posterior.cluster,
    "one cluster": np.zeros_like(found),
    "a cluster per document": np.arange(len(found)),
}.items():
    print(f"{name:23} {variation_of_information(corpus.labels, labels):5.2f} bits")
