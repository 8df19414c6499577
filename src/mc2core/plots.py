"""Pictures of a fit, by matplotlib.

Each function draws into ``ax``, or into a figure of its own, and returns the axes.

Examples
--------
>>> import mc2core
>>> corpus = mc2core.Corpus.from_texts(["apple tree leaf", "leaf tree apple", "iron nail", "nail iron forge"])
>>> fit = mc2core.fit(corpus, iterations=4)
>>> ax = mc2core.plots.words(fit, topic=1, n=5)
>>> ax.figure.savefig("words.png")
"""

from mc2core.explore.plots import (
    agreement,
    clusters_by_context,
    clusters_over_time,
    comparison,
    hierarchy,
    map_of_documents,
    save,
    topics_over_time,
    trace,
    words,
)

__all__ = [
    "agreement", "clusters_by_context", "clusters_over_time", "comparison", "hierarchy", "map_of_documents", "save",
    "topics_over_time", "trace", "words",
]  # fmt: skip
