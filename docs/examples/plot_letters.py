"""
Letters: clusters, topics and a number
======================================

The data of the ICML 2014 paper. A document is fifty dark pixels of one of four words.
Its topics are letters, pictures of 7 by 5 pixels, and it carries a number that lies
around 2, 4, 6 or 8, by its word.
"""

import matplotlib.pyplot as plt
import numpy as np

import mc2core
from mc2core import plots
from mc2core.clustering import nmi
from mc2core.inference import Gibbs
from mc2core.models import MC2
from mc2papers.datasets.simulated import letters

corpus, truth = letters.simulate(seed=0)
print(corpus)

# %%
# What a document looks like: three of each word, dark where it has more of a pixel.

figure, axes = plt.subplots(3, 4, figsize=(6, 5))
for column, word in enumerate(letters.WORDS):
    for row, document in enumerate(np.flatnonzero(corpus.labels == column)[:3]):
        axes[row, column].imshow(
            corpus.content[document].toarray().reshape(7, 5), cmap="Greys"
        )
        axes[row, column].set(xticks=[], yticks=[])
    axes[0, column].set_title(word.capitalize(), fontsize=9)

# %%
# MC2 as printed, where all documents of a word share their letters, with the number as
# a context. Nothing says how many words or letters there are. (The number has mean 0
# and standard deviation 1 while it is fitted, and its own unit in all that is shown.)

model = MC2(document_level=False, contexts=["number"])
fit = mc2core.fit(
    corpus,
    model,
    Gibbs(kernel="interleaved"),
    iterations=100,
    seed=1,
)
posterior = fit.posterior
print(fit)
print(
    "agreement with the words (NMI):", round(nmi(posterior.cluster, corpus.labels), 3)
)

# %%
# The chain: how many clusters there are after each sweep.

figure, axis = plt.subplots(figsize=(6, 3))
plots.trace(fit, "clusters", ax=axis)
figure.tight_layout()

# %%
# The topics of the sample that is shown, those with most tokens first. Letters share
# strokes, so that several sets of topics give the same documents, and strokes will do
# as well as letters.

topics = posterior.word_given_topic
order = np.argsort(-posterior.cluster_weights @ posterior.topic_given_cluster)[:12]
figure, axes = plt.subplots(2, 6, figsize=(7, 3.4))
for axis, topic in zip(axes.flat, order, strict=False):
    axis.imshow(topics[topic].reshape(7, 5), cmap="Greys")
    axis.set(xticks=[], yticks=[])
for axis in axes.flat[len(order) :]:
    axis.axis("off")
figure.tight_layout()

# %%
# Each cluster has a number of its own, and with it a new document of a single pixel
# finds its word: the number says what the pixel cannot.

words = {}
for cluster in np.unique(posterior.cluster):
    inside = posterior.cluster == cluster
    words[cluster] = letters.WORDS[np.bincount(corpus.labels[inside]).argmax()]
    number = posterior.context_mean("number")[cluster]
    print(f"{words[cluster]:13} {inside.sum():3} documents, number {number:.2f}")

pixel = np.zeros((1, 35))
pixel[0, 0] = 1
new = mc2core.Corpus(pixel, posterior.vocabulary, {"number": np.array([6.1])})
print(
    "one pixel and the number 6.1: in the cluster of",
    words[posterior.predict(new)[0]],
)
