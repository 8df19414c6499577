"""
Reproduce figure 2 and see why it fails
=======================================

In figure 2 of the ICML 2014 paper, 100 sweeps of MC2 find four clusters and thirteen
letters in simulated pictures. This example repeats the experiment. After 100 sweeps,
the fit has found neither the clusters nor the letters. A longer chain finds the
clusters, but no letters. The last section shows why.

Each document belongs to one of four words, such as MACHINE. It consists of fifty dark
pixels. The true topics of the document are the letters of its word; a letter is a
picture of 7 by 5 pixels. The context is a number near 2, 4, 6 or 8, depending on the
word.
"""

import matplotlib.pyplot as plt
import numpy as np

import mc2core
from mc2core import plots
from mc2core.clustering import nmi
from mc2core.inference import Gibbs
from mc2core.models import MC2
from mc2papers.datasets.simulated import letters
from mc2papers.icml2014.letters import draw
from mc2papers.icml2014.recovery import FOUND_WITHIN, match_topics

corpus, truth = letters.simulate(seed=0)
print(corpus)

# %%
# The experiment
# --------------
# The fit uses the model of the papers with the number as context, and one chain of 100
# collapsed sweeps. The paper does not state how the chain starts. Here, it starts with
# 20 topics and 20 clusters.


def fit_letters(sweeps, start_topics=20, start_clusters=20):
    """Fit MC2 as published in the paper."""
    engine = Gibbs(
        kernel="collapsed",
        start_topics=start_topics,
        start_clusters=start_clusters,
    )
    model = MC2(document_level=False, contexts=["number"])
    return mc2core.fit(corpus, model, engine, iterations=sweeps, chains=1, seed=0)


def show(fit):
    """Print the true and the found numbers of clusters, topics and letters."""
    sample = fit.posterior.representative
    _, distance = match_topics(truth.word_given_topic, sample.word_given_topic)
    agreement = nmi(sample.cluster, corpus.labels)
    print(
        f"clusters {sample.n_clusters} (truth: 4), NMI with the words {agreement:.2f}"
    )
    print(f"topics {sample.n_topics} (truth: 13), of which are letters", end=" ")
    print((distance < FOUND_WITHIN).sum())


fit = fit_letters(sweeps=100)
show(fit)

# %%
# The function ``draw`` of the workflow draws the figure. The command ``mc2papers run
# icml2014_figure2`` also includes LDA, the HDP and more seeds.

standardised = corpus.standardised("number")
figure, _ = draw(standardised, truth, {"MC2": fit.posterior}, seeds=1)

# %%
# A longer chain
# --------------
# The next fit runs the same chain for 1,000 sweeps. The plot shows the number of
# clusters after each sweep. The dotted line marks 100 sweeps.

longer = fit_letters(sweeps=1000)
show(longer)

figure, axis = plt.subplots(figsize=(6, 3))
plots.trace(longer, "clusters", ax=axis)
axis.axvline(100, color="grey", linestyle=":")
figure.tight_layout()

# %%
# Why the letters are not found
# -----------------------------
# All documents of a cluster share one mixture of topics. The data therefore contain
# only four distributions over pixels, one per word. The longer chain estimates these
# distributions correctly: for each word, the pixels of its largest cluster are closer
# to the pixels of this word than to the pixels of any other word. This is possible
# although no topic is a letter.

sample = longer.posterior.representative
pixels_of_words = truth.topic_given_cluster @ truth.word_given_topic
pixels_found = sample.topic_given_cluster @ sample.word_given_topic
print("L1 distance of the pixels (0: equal, 2: disjoint)")
for number, word in enumerate(letters.WORDS):
    inside = sample.cluster[corpus.labels == number]
    cluster = np.bincount(inside).argmax()
    off = np.abs(pixels_found[cluster] - pixels_of_words).sum(axis=1)
    others = np.delete(off, number).min()
    print(f"{word:13} own word {off[number]:.2f}, nearest other word {others:.2f}")

# %%
# Other topics have exactly the same likelihood. The letters M and H occur only in
# MACHINE, and equally often. The code replaces them by two other topics: one has the
# upper pixels of both letters, the other has the lower pixels. The probability of every
# document remains the same.

names = list(letters.bitmaps())
m, h = names.index("M"), names.index("H")
other = truth.word_given_topic.copy()
pool = other[m] + other[h]
other[m] = np.clip(1.0 - (np.cumsum(pool) - pool), 0.0, pool)
other[h] = pool - other[m]
change = np.abs(truth.topic_given_cluster @ other - pixels_of_words).max()
print("largest change of a pixel's probability:", change.round(12))

figure, axes = plt.subplots(1, 4, figsize=(6, 2.2))
pictures = [*truth.word_given_topic[[m, h]], *other[[m, h]]]
titles = ["M", "H", "upper", "lower"]
for axis, picture, title in zip(axes, pictures, titles, strict=True):
    axis.imshow(picture.reshape(7, 5), cmap="Greys")
    axis.set(xticks=[], yticks=[], title=title)
figure.tight_layout()

# %%
# One topic per word has the same likelihood, too. A chain that starts with four topics
# and four clusters finds no letters either.

show(fit_letters(sweeps=1000, start_topics=4, start_clusters=4))
