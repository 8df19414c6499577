"""
How many clusters? Cuts of a fit
==================================

A fit finds its number of clusters by itself, and keeps a clustering at every smaller
size, too. Here documents have two cuts in truth: three themes, of three subjects
each.
"""

import matplotlib.pyplot as plt
import numpy as np

import mc2core
from mc2core import plots
from mc2core.clustering import adjusted_rand_index
from mc2core.inference import Gibbs
from mc2core.models import MC2

rng = np.random.default_rng(3)
J, V = 360, 120
subject = rng.integers(0, 9, J)
theme = subject // 3
of_theme = rng.dirichlet(np.full(V, 0.08), 3)
of_subject = rng.dirichlet(np.full(V, 0.08), 9)
counts = np.array(
    [
        rng.multinomial(80, 0.5 * of_theme[one // 3] + 0.5 * of_subject[one])
        for one in subject
    ]
)
corpus = mc2core.Corpus(counts, [f"word{number}" for number in range(V)])

fit = mc2core.fit(
    corpus,
    MC2(document_level=False),
    Gibbs(kernel="interleaved"),
    iterations=40,
    seed=0,
)
print(fit)

# %%
# The table of cuts has a row for each size: what the step to it loses (nats a
# document) and how far the two chains agree. ``recommended`` is the finest size on
# which the chains agree as well as on any; ``fit.clusters()`` gives its clusters. If a
# second size stands out, ``level`` marks the broad and the fine clustering, which
# ``fit.clusters("broad")`` and ``fit.clusters("fine")`` give.

hierarchy = fit.posterior.find_hierarchy(corpus)
table = hierarchy.table()
print(table.round(3).to_string(index=False))
print("recommended:", hierarchy.recommended)

# %%
# How the clusters join, from the finest on the left to one on the right.

figure, axis = plt.subplots(figsize=(8, 4.5))
plots.hierarchy(fit, ax=axis)
figure.tight_layout()

# %%
# Each cut beside the truth: coarse cuts are the themes, fine ones the subjects.

sizes = range(2, hierarchy.n_clusters + 1)
figure, axis = plt.subplots(figsize=(6, 3))
for name, truth in (("themes", theme), ("subjects", subject)):
    axis.plot(
        sizes,
        [adjusted_rand_index(hierarchy.cut(size), truth) for size in sizes],
        marker="o",
        label=name,
    )
axis.set(xlabel="clusters", ylabel="agreement (ARI)", ylim=(0, 1.05))
axis.legend()
figure.tight_layout()

# %%
# Where a number is wanted from the start, the model takes it: ``MC2(n_clusters=3)``.
# All kernels of Gibbs sample that model as exactly as the other. Chains of few sweeps
# may end apart, which the agreement of chains shows: try ``chains=4``.

told = mc2core.fit(
    corpus,
    MC2(document_level=False, n_clusters=3),
    Gibbs(kernel="interleaved"),
    iterations=40,
    seed=1,
)
print(
    "agreement with the themes:",
    round(adjusted_rand_index(told.posterior.cluster, theme), 3),
)
