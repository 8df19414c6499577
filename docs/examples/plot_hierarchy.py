"""
How many clusters? Cuts of a fit
==================================

A fit infers its number of clusters, and stores a clustering of every smaller size. In
this example, the documents have two true clusterings: three themes, and three subjects
per theme.
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
# The table of cuts has a row per size: the loss of the step to this size (nats per
# document), and the agreement of the two chains. ``recommended`` is the finest size on
# which the chains agree as well as on any; ``fit.clusters()`` gives its clusters. If a
# second size stands out, ``level`` marks the broad and the fine clustering, which
# ``fit.clusters("broad")`` and ``fit.clusters("fine")`` give.

hierarchy = fit.posterior.find_hierarchy(corpus)
table = hierarchy.table()
print(table.round(3).to_string(index=False))
print("recommended:", hierarchy.recommended)

# %%
# The tree shows in which order clusters merge, from left to right.

figure, axis = plt.subplots(figsize=(8, 4.5))
plots.hierarchy(fit, ax=axis)
figure.tight_layout()

# %%
# Coarse cuts agree with the themes, and fine cuts with the subjects.

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
# To fix the number of clusters, use ``MC2(n_clusters=3)``. Short chains may end in
# different clusterings. Use more chains, such as ``chains=4``, to check this.

fixed = mc2core.fit(
    corpus,
    MC2(document_level=False, n_clusters=3),
    Gibbs(kernel="interleaved"),
    iterations=40,
    seed=1,
)
print(
    "agreement with the themes:",
    round(adjusted_rand_index(fixed.posterior.cluster, theme), 3),
)
