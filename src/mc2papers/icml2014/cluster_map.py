"""ICML14 figure 6: the documents of the largest clusters as points of a plane (t-SNE)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mc2core.corpus import Corpus
from mc2core.posterior import Posterior
from mc2papers.baselines.base import features, one_thread, random_state
from mc2papers.datasets.origins import MC2
from mc2papers.report import palette, style
from mc2papers.report.claims import REPRODUCED, Claim, judge, mean_of, unmet

#: minimum number of documents of a drawn cluster; fewer documents do not form a group of points
MIN_DOCUMENTS = 5
#: number of neighbours of a document on the map, and fraction of them in its cluster that counts as separated
NEIGHBOURS = 10
SEPARATED = 0.9
_PERPLEXITY = 30.0


def largest_clusters(model: Posterior) -> np.ndarray:
    """Return the (n,) clusters with at least MIN_DOCUMENTS documents in the consensus, the largest first."""
    sizes = np.bincount(model.cluster)
    return np.argsort(-sizes, kind="stable")[: int((sizes >= MIN_DOCUMENTS).sum())]


def describe(corpus: Corpus, models: Sequence[Posterior], n_clusters: int = 7) -> pd.DataFrame:
    """Return the documents of the largest clusters of each fit, one row per document.

    Fits with fewer than ``n_clusters`` clusters of at least MIN_DOCUMENTS documents are omitted. The columns are
    document, seed (of the fit), cluster (1 is the largest), class, x, y and drawn.

    The positions x and y do not depend on the model. They are computed by t-SNE (van der Maaten and Hinton, 2008) from
    tf-idf vectors of words and of all context counts (:func:`mc2papers.baselines.base.features`). The perplexity of
    t-SNE is 30, or a third of the number of documents if this is less. ``drawn`` marks the fit with the most clusters
    of at least MIN_DOCUMENTS documents, or the first of several such fits.

    Raises
    ------
    ValueError
        If the corpus is not the fitted one, if a document has no label, or if no fit has enough clusters.
    """
    for model in models:
        model.check_fitted(corpus)
    if not isinstance(corpus.labels, np.ndarray):
        raise ValueError("the classes cannot be shown: each document of the corpus needs one label")
    usable = [largest_clusters(model) for model in models]
    best = int(np.argmax([len(one) for one in usable]))
    if len(usable[best]) < n_clusters:
        raise ValueError(
            f"figure6.n_clusters is {n_clusters}, but no fit has more than {len(usable[best])} clusters of at least "
            f"{MIN_DOCUMENTS} documents"
        )
    names = corpus.label_names or [f"class {number + 1}" for number in range(int(corpus.labels.max()) + 1)]
    parts = []
    for model, found in zip(models, usable, strict=True):
        if len(found) < n_clusters:
            continue
        rank = {cluster: place + 1 for place, cluster in enumerate(found[:n_clusters])}
        rows = np.flatnonzero(np.isin(model.cluster, found[:n_clusters]))
        x, y = _plane(features(corpus.subset(rows), "tfidf", "t-SNE").toarray()).T
        part = {
            "document": rows,
            "seed": model.provenance.get("seed"),
            "cluster": [rank[cluster] for cluster in model.cluster[rows]],
            "class": pd.Categorical([names[label] for label in corpus.labels[rows]], names),
            "x": x,
            "y": y,
            "drawn": model is models[best],
        }
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def _plane(table: np.ndarray) -> np.ndarray:
    """Project (J, D) rows to the plane, (J, 2) float32, with the same result on any number of cores."""
    from sklearn.manifold import TSNE

    with one_thread():
        perplexity = min(_PERPLEXITY, (len(table) - 1) / 3.0)
        return TSNE(perplexity=perplexity, init="pca", random_state=random_state(0, "t-SNE")).fit_transform(table)


def neighbours_alike(table: pd.DataFrame, by: str = "cluster") -> pd.Series:
    """Return, for each document, the fraction of its nearest neighbours on the map that are in its cluster (or class).

    The number of neighbours is NEIGHBOURS, or less if the smallest cluster is smaller. A fraction of 1 is therefore
    possible for each document.
    """
    from scipy.spatial import cKDTree

    n = max(1, min(NEIGHBOURS, int(table["cluster"].value_counts().min()) - 1))
    values = table[by].to_numpy()
    _, nearest = cKDTree(table[["x", "y"]]).query(table[["x", "y"]], n + 1)
    itself = nearest == np.arange(len(table))[:, None]
    itself[~itself.any(axis=1), -1] = True  # if many documents are at one point, the last neighbour is dropped instead
    others = nearest[~itself].reshape(len(table), n)
    return pd.Series((values[others] == values[:, None]).mean(axis=1), index=table.index)


def judge_separation(table: pd.DataFrame, dataset: str) -> Claim:
    """Judge whether clusters are separated on the maps of all fits.

    Clusters are separated if, on average, the fraction SEPARATED of a document's neighbours is in its cluster. If the
    classes are not separated either, the maps do not show true groups, and there is no verdict against the clusters.
    """
    means, of_class = (
        {seed: neighbours_alike(one, by).mean() for seed, one in table.groupby("seed")} for by in ("cluster", "class")
    )
    of_classes = float(np.mean(list(of_class.values())))
    drawn = table[table["drawn"]]
    by_cluster = neighbours_alike(drawn).groupby(drawn["cluster"]).mean()
    chance = float((drawn["cluster"].value_counts(normalize=True) ** 2).sum())
    text = (
        f"the {len(by_cluster)} largest clusters are separated on the map (on average, at least {SEPARATED:.0%} of an "
        "image's nearest neighbours are in its cluster, our threshold)"
    )
    numbers = (
        f"{means[drawn['seed'].iloc[0]]:.0%} of nearest neighbours on the map are in the same cluster (required: "
        f"{SEPARATED:.0%}); from {by_cluster.min():.0%} to {by_cluster.max():.0%} by cluster, {chance:.0%} by chance; "
        f"{of_classes:.0%} are of the same class"
    )
    name = "share of neighbours in the same cluster"
    share = mean_of(name, list(means.values()), above=SEPARATED, digits=2, over="fits")
    claim = judge(dataset, text, [share], numbers, favours=MC2)
    if claim.verdict != REPRODUCED and of_classes < SEPARATED:
        why = f"the map does not even separate the true classes ({of_classes:.0%} of neighbours in the same class)"
        return unmet(dataset, text, f"{why}; {claim.reason}", claim.numbers)
    return claim


def draw(table: pd.DataFrame, source: str, n_documents: int) -> Figure:
    """Draw the map of the chosen fit twice, coloured by cluster and by class.

    The legend has all classes of the corpus with their numbers of drawn images. ``n_documents`` is the number of images
    that were fitted.
    """
    table = table[table["drawn"]]
    figure = style.new_figure(7.4, 4.9)
    left, right = figure.subplots(1, 2)
    sizes = table["cluster"].value_counts()
    clusters = {number: f"{number} ({sizes[number]})" for number in sorted(sizes.index)}
    _scatter(left, table, "cluster", clusters, palette.CLUSTERS)
    left.set(title=f"Clusters, largest first ({len(table):,} of {n_documents:,} training images)")
    counts = table["class"].value_counts(sort=False)
    classes = {name: f"{name} ({counts[name]})" for name in sorted(counts.index, key=_natural)}
    _scatter(right, table, "class", classes, palette.CLASSES)
    right.set(title="The same images by class")
    style.mark_source(figure, source)
    return figure


def _natural(name: str) -> tuple[str, int, str]:
    """Return a sort key with which "class 2" comes before "class 10"."""
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0), name


def _scatter(ax: Axes, table: pd.DataFrame, by: str, labels: Mapping[Any, str], colours: Sequence[str]) -> None:
    for place, (value, label) in enumerate(labels.items()):
        here = table[table[by] == value]
        # neighbours in the legend also have different shapes, for readers who cannot distinguish the colours
        marker, colour = palette.MARKERS[place % len(palette.MARKERS)], colours[place % len(colours)]
        ax.scatter(here["x"], here["y"], s=20, marker=marker, color=colour, edgecolor="white", lw=0.3, label=label)
    ax.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4, fontsize=7, markerscale=1.6, handletextpad=0.1,
        columnspacing=0.8,
    )  # fmt: skip
