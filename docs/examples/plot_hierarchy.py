"""
How many clusters? Cuts of a fit
==================================

A fit infers the number of clusters, and also provides a clustering with every smaller
number (a cut). In this example, the documents are the docstrings of six modules of
SciPy.
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
# The label of a cluster is the most frequent module of its documents. The fit does not
# use the labels.

fit = mc2core.fit(corpus, iterations=40, seed=0)
columns = ["cluster", "name", "documents", "certainty", "label"]
print(fit.clusters()[columns].round(2).to_string(index=False))

# %%
# The table has one row per number of clusters. It shows the loss of the merge that
# leads to this number (in nats per document), and the agreement of the two chains.
# ``recommended`` is the largest number on which the chains agree about as well as on
# any other number. ``fit.clusters()`` returns these clusters. If the chains also agree
# on a much smaller or larger number, ``level`` marks a broad and a fine clustering.
# ``fit.clusters("broad")`` and ``fit.clusters("fine")`` return them.

hierarchy = fit.posterior.find_hierarchy(corpus)
print(hierarchy.table().head(15).round(2).to_string(index=False))
print("recommended:", hierarchy.recommended)

# %%
# The tree shows the order in which clusters are merged, from left to right.

figure, axis = plt.subplots(figsize=(8, 4.5))
plots.hierarchy(fit, ax=axis)
axis.set_title("Merges of clusters, from many (left) to one (right)")
figure.tight_layout()

# %%
# The plot shows the agreement of each cut with the modules. With few clusters, a
# cluster contains several modules. With many clusters, a module is divided among
# clusters.

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
# different clusterings. To check this, use more chains, such as ``chains=4``.
