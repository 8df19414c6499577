"""ICML14 figure 2: letters as topics, words as document clusters, and the context of each cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats
from scipy.optimize import linear_sum_assignment

from mc2core.corpus import Corpus
from mc2core.families import NormalGamma
from mc2core.posterior import Posterior
from mc2papers.datasets.origins import MC2
from mc2papers.datasets.simulated.letters import N_COLUMNS, N_ROWS, WORDS, bitmaps
from mc2papers.datasets.simulated.truth import Truth
from mc2papers.icml2014.recovery import FOUND_WITHIN, match_topics
from mc2papers.report import palette, style
from mc2papers.report.claims import OURS, PAPERS_OWN, Claim, difference, judge, share_of, unmet
from mc2papers.report.extent import said_range

CONTEXT = "number"
_MAX_EXTRA = 4  # number of drawn topics that match no letter; the label of the row has the number of all topics
_MAX_CLUSTERS = 6
#: darkest values of the colour scales: probability of a pixel in a topic, proportion of a topic in a cluster
_DARKEST_PIXEL, _DARKEST_SHARE = 0.12, 0.4
#: a cluster is large if it has at least this fraction of the documents; other clusters have only a few documents
LARGE = 0.03
#: thresholds for the paper's "identifies the 4 clusters" (fraction of documents in the cluster of their word) and
#: "almost identical" (overlap of the densities of contexts); both are our choices
IDENTIFIED, ALMOST = 0.95, 0.9
#: letters that LDA and HDP cannot distinguish, according to the paper: their images share most pixels
PAIRS = (("M", "N"), ("I", "T"))
RIVALS = "LDA", "HDP"


def draw(corpus: Corpus, truth: Truth, models: Mapping[str, Posterior], seeds: int) -> tuple[Figure, pd.DataFrame]:
    """Draw the figure, and return it with a table of the drawn numbers (columns as in :func:`_long`).

    Parameters
    ----------
    corpus : the fitted letters data, with the numeric context ``number`` and words as labels.
    models : ``{method: model}``. Each method has one row of letters below the true letters. Clusters and contexts are
        drawn only for variants of MC2, the printed variant first.
    seeds : number of fits per method; the figure shows the first.
    """
    for model in models.values():
        model.check_corpus(corpus)
    names = list(bitmaps())
    height = 0.35 + 1.75 * (1 + len(models))  # two rows of images per method
    ours = sorted((title for title in models if title.startswith(MC2)), key=len)  # the printed variant first
    figure = style.new_figure(7.4, height + 2.5 * len(ours))
    parts: Any = figure.subfigures(2, 1, height_ratios=[height, 2.5 * len(ours)])
    images, below = parts
    orders = {title: _order(truth, model) for title, model in models.items()}
    n_columns = len(names) + min(_MAX_EXTRA, max(len(order) - len(names) for order, _ in orders.values()))
    axes = images.subplots(2 * (1 + len(models)), -(-n_columns // 2)).reshape(1 + len(models), -1)
    n_columns = axes.shape[1]
    drawn = [_draw_row(axes[0], "truth", truth.word_given_topic, names)]
    pixels = images.colorbar(axes[0][0].images[0], ax=axes, fraction=0.02, aspect=30, shrink=0.7, extend="max")
    pixels.set_label("probability of a pixel in its topic", fontsize=8)
    for ax, name in zip(axes[0], names, strict=False):
        ax.xaxis.label.set_fontweight("bold" if any(name in pair for pair in PAIRS) else "normal")
    for row, (title, model) in zip(axes[1:], models.items(), strict=True):
        order, distances = orders[title]
        labels = [f"{one:.2f}" for one in distances] + ["+"] * (len(order) - len(distances))
        hidden = len(order) - n_columns
        topics = np.where(order[:, None] >= 0, model.word_given_topic[order], np.nan)
        drawn.append(_draw_row(row, f"{title}, M = {model.representative.n_topics}", topics, labels))
        if hidden > 0:
            row[-1].set_title(f"{hidden} more", fontsize=7, loc="right", pad=2).set_in_layout(False)
    which = f"first of {seeds} fits" if seeds > 1 else "one fit"
    images.suptitle(
        f"Topics with their L1 distance from the matched letter (found: below {FOUND_WITHIN}; +: extra; {which})\n"
        f"bold: pairs of letters that share most pixels, {' and '.join('/'.join(pair) for pair in PAIRS)}",
        fontsize=8,
    )

    panels = below.subplots(len(ours), 3, width_ratios=[1, 1, 1.25], squeeze=False)
    truth_rows = [word.capitalize() for word in WORDS]
    drawn.append(_draw_shares(panels[0][0], "Clusters: truth", truth.topic_given_cluster, truth_rows, names))
    for ax in panels[1:, 0]:
        ax.set_axis_off()
    for (_, middle, right), title in zip(panels, ours, strict=True):
        model, (order, _) = models[title], orders[title]
        words = match_clusters(corpus, model)
        clusters = np.array(list(words), dtype=np.int64)[:_MAX_CLUSTERS]
        shares = np.where(order >= 0, model.topic_given_cluster[clusters][:, order], 0.0)
        # the last column is the proportion of all other topics together
        shares = np.column_stack([shares[:, : len(names)], 1.0 - shares[:, : len(names)].sum(axis=1)])
        called = [words[k] or f"extra {place + 1 - len(WORDS)}" for place, k in enumerate(clusters)]
        rows = [f"{name} {model.cluster_weights[k]:.0%}" for name, k in zip(called, clusters, strict=True)]
        k, large = sizes(model)
        heading = f"Clusters: {title}, {len(clusters)} of K = {k} drawn ({large} of at least {LARGE:.0%})"
        drawn.append(_draw_shares(middle, heading, shares, rows, [*names, "+"]))
        named = dict(zip(called, clusters, strict=True))
        drawn.append(_draw_densities(right, corpus, truth, model, named, title))
    shared = below.colorbar(panels[0][0].images[0], ax=panels[:, :2], fraction=0.03, pad=0.06, aspect=30, extend="max")
    shared.set_label("share of a topic", fontsize=8)
    style.mark_source(below, f"letters drawn as in the paper, {corpus.n_documents} documents")
    return figure, pd.concat(drawn, ignore_index=True)


def match_clusters(corpus: Corpus, model: Posterior) -> dict[int, str]:
    """Match clusters of the representative sample to the words from which the documents were drawn.

    Words and clusters are matched one to one such that as many documents as possible are in the cluster of their word.
    The result has the matched clusters with their words, in the order of the words. The other clusters follow with "",
    the heaviest first.
    """
    sample = model.representative
    together = np.zeros((len(WORDS), sample.n_clusters))
    np.add.at(together, (np.asarray(corpus.labels), sample.cluster), 1)
    own, found = linear_sum_assignment(-together)
    named = {int(k): WORDS[word].capitalize() for word, k in zip(own, found, strict=True) if together[word, k]}
    return named | {int(k): "" for k in np.argsort(-model.cluster_weights, kind="stable") if k not in named}


def _order(truth: Truth, model: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Return found topics in the order of their matched true topics (-1 for no match), and the distances.

    The other found topics follow, the heaviest first.
    """
    match, distance = match_topics(truth.word_given_topic, model.word_given_topic)
    share = model.cluster_weights @ model.topic_given_cluster
    rest = [topic for topic in np.argsort(-share, kind="stable") if topic not in match]
    return np.concatenate([match, np.array(rest, dtype=np.int64)]), distance


def _long(panel: str, item: Any, position: Any, value: Any) -> pd.DataFrame:
    return pd.DataFrame({"panel": panel, "item": item, "position": position, "value": value})


def _draw_row(axes: Sequence[Axes], title: str, topics: np.ndarray, labels: Sequence[str]) -> pd.DataFrame:
    for ax in axes:
        ax.set_axis_off()
    for ax, topic, label in zip(axes, topics, labels, strict=False):
        image = topic.reshape(N_ROWS, N_COLUMNS)
        ax.imshow(image, cmap="Greys", vmin=0.0, vmax=_DARKEST_PIXEL, interpolation="nearest")
        ax.set_axis_on()
        ax.set(xticks=[], yticks=[])
        ax.set_xlabel(label, fontsize=8, labelpad=2)
        for spine in ax.spines.values():
            spine.set(visible=True, linewidth=0.4, color=palette.SOFT)
    axes[0].set_ylabel(title.replace(", ", "\n"), fontsize=8, rotation=0, ha="right", va="center", labelpad=4)
    pixels = N_ROWS * N_COLUMNS
    items = [f"{i + 1} {label}" for i, label in enumerate(labels)]
    return _long(f"topics: {title}", np.repeat(items, pixels), np.tile(np.arange(pixels), len(topics)), topics.ravel())


def _draw_shares(ax: Axes, title: str, shares: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=_DARKEST_SHARE, aspect="auto", interpolation="nearest")
    ax.set_xticks(np.arange(len(columns)), columns, fontsize=7)
    ax.set_yticks(np.arange(len(rows)), rows, fontsize=7)
    ax.set_title(re.sub(r", (\d+ of K)", r"\n\1", title), fontsize=8, loc="right")
    ax.set_xlabel("topic (letter)")
    ax.tick_params(length=0)
    return _long(title, np.repeat(rows, len(columns)), np.tile(np.arange(len(columns)), len(rows)), shares.ravel())


def _draw_densities(
    ax: Axes, corpus: Corpus, truth: Truth, model: Posterior, named: Mapping[str, int], method: str
) -> pd.DataFrame:
    clusters = np.array(list(named.values()))
    mean, sd = corpus.units[CONTEXT]
    values = np.asarray(corpus.contexts[CONTEXT]) * sd + mean
    grid = np.linspace(values.min() - 0.5, values.max() + 0.5, 200)
    ax.hist(values, bins=40, density=True, color=palette.GRID, label="data")
    parameters = truth.contexts[CONTEXT]
    true = np.array([w * stats.norm.pdf(grid, *one) for w, one in zip(truth.cluster_weights, parameters, strict=True)])
    ax.plot(grid, true.T, color="black", linewidth=0.8, linestyle=":", label=["truth"] + [None] * (len(true) - 1))
    natural = model.context_parameters(CONTEXT)[clusters]
    of_cluster = NormalGamma.predictive(natural[:, None]).pdf((grid - mean) / sd) / sd
    found = model.cluster_weights[clusters, None] * of_cluster
    for name, density, colour in zip(named, found, palette.CLUSTERS, strict=False):
        ax.plot(grid, density, color=colour, label=name)
    ax.set(title=f"Contexts: {method}", xlabel="number", ylabel="density")
    ax.set_ylim(top=1.5 * ax.get_ylim()[1])  # space for the legend above the data
    ax.legend(fontsize=6, handlelength=1.2, ncols=2, loc="upper center", columnspacing=1.0)
    items = [f"truth {word}" for word in WORDS] + [f"cluster {name}" for name in named]
    densities = np.vstack([true, found]).ravel()
    return _long(f"contexts: {method}", np.repeat(items, len(grid)), np.tile(grid, len(items)), densities)


def sizes(model: Posterior) -> tuple[int, int]:
    """Return the number of clusters of the representative sample, and the number of large clusters (LARGE)."""
    counts = np.bincount(model.representative.cluster, minlength=model.representative.n_clusters)
    return len(counts), int((counts >= LARGE * counts.sum()).sum())


def what_became_of(pair: Sequence[str], truth: np.ndarray, found: np.ndarray) -> str:
    """Return "apart", "mixed up" or "not found" for two letters.

    Topics are matched one to one to all letters. The letters are apart if each of them has a topic within FOUND_WITHIN
    that is nearer to the letter than to the average of both letters. Otherwise, they are mixed up if a topic within
    FOUND_WITHIN of the average is nearer to the average than to either letter.

    Parameters
    ----------
    truth : (13, V), found : (M, V) float64, rows sum to 1
    """
    two = [list(bitmaps()).index(letter) for letter in pair]
    targets = np.vstack([truth[two], truth[two].mean(axis=0)])
    distance = np.abs(targets[:, None, :] - found[None, :, :]).sum(axis=2)
    match, away = match_topics(truth, found)
    own, average = distance[[0, 1], match[two]], distance[2, match[two]]
    if (own < average).all() and (away[two] < FOUND_WITHIN).all():
        return "apart"
    is_average = (distance[2] < FOUND_WITHIN) & (distance[2] < distance[:2].min(axis=0))
    return "mixed up" if is_average.any() else "not found"


def judge_rivals(truth: Truth, models: Mapping[str, Sequence[Posterior]]) -> list[Claim]:
    """Judge the paper's claims that LDA and HDP recover the letters, in particular those in PAIRS, less well than MC2.

    The measure is the mean distance of the letters from their matched topics. A verdict is possible even if no method
    recovers a letter.

    models : fits of each method, in the order of seeds
    """
    names, n_letters = list(bitmaps()), len(truth.word_given_topic)
    texts = (
        f"LDA and HDP recover the {n_letters} letters less well than MC2",
        "LDA and HDP recover the letters M, N, I and T less well than MC2",
    )
    if absent := [method for method in (MC2, *RIVALS) if not models.get(method)]:
        return [unmet("letters", text, f"no fit of {' and '.join(absent)}") for text in texts]
    away = {
        method: pd.DataFrame([match_topics(truth.word_given_topic, one.word_given_topic)[1] for one in fits])
        for method, fits in models.items()
    }
    found = ", ".join(f"{method} {(one < FOUND_WITHIN).sum(axis=1).max()}" for method, one in away.items())
    apart = []
    for pair in PAIRS:
        counts = []
        for method, fits in models.items():
            ends = [what_became_of(pair, truth.word_given_topic, one.word_given_topic) for one in fits]
            counts.append(f"{method} in {ends.count('apart')} of {len(fits)}")
        apart.append(f"{'/'.join(pair)} told apart by {', '.join(counts)} fits")
    details = f"letters found at most: {found}", "; ".join(apart)
    judged, chosen = [], ([*range(n_letters)], [names.index(letter) for pair in PAIRS for letter in pair])
    for text, letters, detail in zip(texts, chosen, details, strict=True):
        mean = {method: one[letters].mean(axis=1) for method, one in away.items()}
        named = {one: f"mean distance of topics from letters, {one} minus {MC2}," for one in RIVALS}
        leads = [difference(mean[one], mean[MC2], above=0, digits=2, name=name) for one, name in named.items()]
        numbers = ", ".join(f"{method} {one.mean():.2f}" for method, one in mean.items())
        judged.append(judge("letters", text, leads, f"mean distance {numbers}; {detail}", favours=MC2))
    return judged


def letters_found(truth: Truth, model: Posterior) -> int:
    """Return the number of letters that have their own topic within FOUND_WITHIN."""
    return int((match_topics(truth.word_given_topic, model.word_given_topic)[1] < FOUND_WITHIN).sum())


def judge_recovery(
    corpus: Corpus, truth: Truth, models: Sequence[Posterior], sweeps: int, method: str = MC2
) -> list[Claim]:
    """Judge the paper's claims on the clusters and the letters that MC2 finds, by the majority of fits.

    method : name of the method; claims on methods other than the paper's begin with this name.
    """
    whose, prefix = (PAPERS_OWN, "") if method == MC2 else (OURS, f"{method}: ")
    n_clusters, n_letters = len(truth.cluster_weights), len(truth.word_given_topic)
    clusters, large = zip(*(sizes(model) for model in models), strict=True)
    found = [letters_found(truth, model) for model in models]
    shares = [share_in_own(corpus, model) for model in models]
    overlaps = [context_overlap(corpus, truth, model) for model in models]
    topics = ", ".join(str(model.representative.n_topics) for model in models)
    # claim, short name of the outcome, whether each fit has this outcome, our numbers
    recovered: list[tuple[str, str, list[bool], str]] = [
        (
            f"{sweeps} sweeps find exactly {n_clusters} clusters",
            f"K = {n_clusters} in",
            [one == n_clusters for one in clusters],
            f"K {said_range(clusters)}; number of clusters with at least {LARGE:.0%} of the documents: "
            f"{said_range(large)}",
        ),
        (
            f"each of the {n_clusters} clusters corresponds to one word of the letters data (at least "
            f"{IDENTIFIED:.0%} of the documents are in the cluster of their word, our threshold)",
            "all words identified in",
            [one >= IDENTIFIED for one in shares],
            f"{min(shares):.0%} to {max(shares):.0%} of the documents are in the cluster of their word",
        ),
        (
            f"the context distribution of each cluster is close to the true one (their densities overlap by at least "
            f"{ALMOST:.0%}, our threshold)",
            "all densities overlap enough in",
            [one >= ALMOST for one in overlaps],
            f"least overlap of a word's cluster {min(overlaps):.0%} to {max(overlaps):.0%}",
        ),
        (
            f"{sweeps} sweeps find all {n_letters} letters",
            f"all {n_letters} letters found in",
            [one == n_letters for one in found],
            f"letters found {said_range(found)}; M {topics}",
        ),
    ]
    return [
        judge("letters", f"{prefix}{text}", [share_of(name, happened)], numbers, favours=MC2, whose=whose)
        for text, name, happened, numbers in recovered
    ]


def share_in_own(corpus: Corpus, model: Posterior) -> float:
    """Return the fraction of documents that are in the cluster of their word."""
    named = {word: k for k, word in match_clusters(corpus, model).items() if word}
    own = np.array([named.get(word.capitalize(), -1) for word in WORDS])
    return float((own[np.asarray(corpus.labels)] == model.representative.cluster).mean())


def context_overlap(corpus: Corpus, truth: Truth, model: Posterior) -> float:
    """Return the overlap of the estimated and the true density of the context, for the word with the smallest overlap.

    The result is 0 if a word has no cluster, and 1 if all densities are equal to the truth.
    """
    named = {word: k for k, word in match_clusters(corpus, model).items() if word}
    if len(named) < len(WORDS):
        return 0.0
    mean, sd = corpus.units[CONTEXT]
    own = [named[word.capitalize()] for word in WORDS]
    parameters = truth.contexts[CONTEXT]
    least, most = (end(at + sign * 8 * spread for at, spread in parameters) for end, sign in ((min, -1), (max, 1)))
    grid = np.linspace(least, most, 4001)
    true = np.array([stats.norm.pdf(grid, *one) for one in parameters])
    natural = model.context_parameters(CONTEXT)[own]
    density = NormalGamma.predictive(natural[:, None]).pdf((grid - mean) / sd) / sd
    return float(np.minimum(true, density).sum(axis=1).min() * (grid[1] - grid[0]))
