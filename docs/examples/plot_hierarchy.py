"""
How many clusters? Cuts of a fit
==================================

A fit infers its number of clusters, and stores a clustering of every smaller size. In
this example, the documents are the docstrings of six modules of SciPy.
"""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np

import mc2core
from mc2core import plots
from mc2core.clustering import adjusted_rand_index

MODULES = ["signal", "optimize", "ndimage", "linalg", "interpolate", "stats"]
texts, labels = [], []
for name in MODULES:
    module = importlib.import_module(f"scipy.{name}")
    for member in sorted(module.__all__):
        one = getattr(module, member)
        text = inspect.getdoc(one) or ""
        if inspect.isroutine(one) or inspect.isclass(one):
            texts.append(text.split("Examples\n")[0])
            labels.append(name)
corpus = mc2core.Corpus.from_texts(texts, labels=labels, min_df=3, max_df=0.3)
print(corpus)

# %%
# The label of a cluster is the commonest module of its documents. The fit does not use
# the labels.

fit = mc2core.fit(corpus, iterations=40, seed=0)
columns = ["cluster", "name", "documents", "certainty", "label"]
print(fit.clusters()[columns].round(2).to_string(index=False))

# %%
# The table of cuts has a row per size: the loss of the step to this size (nats per
# document), and the agreement of the two chains. ``recommended`` is the finest size on
# which the chains agree as well as on any; ``fit.clusters()`` gives its clusters. If a
# second size stands out, ``level`` marks the broad and the fine clustering, which
# ``fit.clusters("broad")`` and ``fit.clusters("fine")`` give.

hierarchy = fit.posterior.find_hierarchy(corpus)
print(hierarchy.table().head(15).round(2).to_string(index=False))
print("recommended:", hierarchy.recommended)

# %%
# The tree shows in which order clusters merge, from left to right.

figure, axis = plt.subplots(figsize=(8, 4.5))
plots.hierarchy(fit, ax=axis)
axis.set_title("Merges of clusters, from many (left) to one (right)")
figure.tight_layout()

# %%
# The plot compares the cuts with the modules. A cut with few clusters unites modules,
# and a cut with many clusters divides them.

sizes = range(2, min(hierarchy.n_clusters, 30) + 1)
agreement = [
    adjusted_rand_index(hierarchy.cut(size), np.array(labels)) for size in sizes
]
figure, axis = plt.subplots(figsize=(6, 3))
axis.plot(sizes, agreement, marker="o")
axis.axvline(hierarchy.recommended, color="grey", linestyle="--", label="recommended")
axis.set(xlabel="clusters", ylabel="agreement (ARI)", ylim=(0, 1))
axis.set_title("Agreement of cuts with the modules of SciPy")
axis.legend()
figure.tight_layout()

# %%
# To fix the number of clusters, use ``MC2(n_clusters=6)``. Short chains may end in
# different clusterings. Use more chains, such as ``chains=4``, to check this.
