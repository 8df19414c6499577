"""Plots of a fit with matplotlib.

Each function draws one plot into ``ax``, or into a new figure if ``ax`` is not given, and returns the axes.
:func:`save` writes the figure, and the numbers that the figure shows as CSV. pyplot is not needed. The parameter
``found`` is a fit (:class:`mc2core.Fit`). Clusters and topics have the same numbers as in the tables of the fit. The
functions raise MissingPackage if matplotlib is not installed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from mc2core.base import extras, storage
from mc2core.explore.fit import Fit
from mc2core.posterior import consensus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mc2core.explore.compare import Comparison

COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#901010", "#1050d0", "#105050", "#10d070", "#70d0f0",
    "#b0d0b0", "#1090f0", "#105070", "#107030", "#d05050", "#3050b0", "#90d0d0", "#9090d0", "#d09050", "#d0d050",
)  # fmt: skip
"""Colours of the largest clusters and topics, in order of size, as in the HTML report. Smaller clusters and topics have
the colour ``REST``. People with any common colour blindness can distinguish the colours."""
REST = "#9aa0a8"
_NONE = "#dddddd"  # colour of cells without documents
_MAX_LINES = 6
_MAX_ROWS, _MAX_COLUMNS = 20, 30
_MAX_NAMES = 12  # largest number of names, and of groups with their own colour, on a map
_MAX_LEAVES = 12
_NEAR = 0.05  # share of the width of a map: neighbours within this distance are counted
_LETTER, _LINE = 0.011, 0.03  # shares of the width of a map: about the size of a letter and of a line
_LONGEST = 40  # largest number of characters of a name
_NUMBERS: WeakKeyDictionary[Any, pd.DataFrame] = WeakKeyDictionary()  # the numbers that axes show


def save(ax: Axes, path: str | os.PathLike[str]) -> None:
    """Save the figure of a plot, and the numbers that the plot shows as a CSV file with the same name.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes that a function of this module returned.
    path : path
        File of the figure. The suffix determines the format, such as .pdf, .svg or .png.

    Raises
    ------
    ValueError
        If no function of this module drew into the axes, or if the CSV exists, but not the picture.

    Examples
    --------
    >>> import mc2core
    >>> corpus = mc2core.Corpus.from_texts(["apple tree leaf", "leaf tree apple", "iron nail", "nail iron forge"])
    >>> fit = mc2core.fit(corpus, iterations=4)
    >>> mc2core.plots.save(mc2core.plots.words(fit, topic=1), "words.pdf")  # and words.csv
    """
    from matplotlib import rc_context

    if ax not in _NUMBERS:
        raise ValueError("no function of mc2core.plots drew into these axes")
    numbers, table = _NUMBERS[ax].to_csv(index=False, float_format="%.6g"), Path(path).with_suffix(".csv")
    if table.exists() and not Path(path).exists():
        raise ValueError(f"{table} exists, and the numbers of the picture would replace it; name another file")
    with rc_context({"pdf.fonttype": 42}):  # text that journals can embed
        ax.figure.savefig(path, bbox_inches="tight")  # type: ignore[union-attr]
    with storage.replacing(table) as stream:
        stream.write(numbers)


def topics_over_time(
    found: Fit, context: str | None = None, topics: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the share of each topic over a context of numbers or dates, with 90 % intervals.

    Parameters
    ----------
    found : Fit
    context : str, optional
        Name of the context of numbers or dates. The name may be left out if there is only one such context.
    topics : sequence of int, optional
        Numbers of the topics to draw. By default, the six most frequent topics are drawn.
    ax : matplotlib Axes, optional

    Raises
    ------
    ValueError
        If the context or a topic does not exist, or if the values of the context are names.
    """
    numbers = found.topics()["topic"]
    chosen = list(numbers.head(_MAX_LINES)) if topics is None else list(topics)
    emitted = "observations" if found.posterior.is_of_observations else "words"
    return _over_time(found, "topic", context, chosen, "recommended", emitted, ax, len(numbers))


def clusters_over_time(
    found: Fit,
    context: str | None = None,
    clusters: Sequence[int] | None = None,
    cut: int | str = "recommended",
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of each cluster over a context of numbers or dates, with 90 % intervals.

    Parameters
    ----------
    found : Fit
    context : str, optional
        Name of the context of numbers or dates. The name may be left out if there is only one such context.
    clusters : sequence of int, optional
        Numbers of the clusters to draw. By default, the six largest clusters are drawn.
    cut : int or str, optional
        Number of clusters, "recommended" (the default), "broad", "fine", or "all" for the clusters of the fit.
    ax : matplotlib Axes, optional

    Raises
    ------
    ValueError
        If the context, a cluster or the cut does not exist, or if the values of the context are names.
    """
    largest = found.clusters(cut).sort_values("documents", ascending=False, kind="stable")
    chosen = list(largest["cluster"].head(_MAX_LINES)) if clusters is None else list(clusters)
    return _over_time(found, "cluster", context, chosen, cut, "documents", ax, len(largest))


def _over_time(
    fit: Fit, kind: str, context: str | None, chosen: list[int], cut: int | str, parts: str, ax: Axes | None, n: int
) -> Axes:
    name = _context(fit, context, is_number=True)
    table = fit.contexts(name, cut)
    table = table[table["of"] == kind]
    starts = table.loc[table["documents"] > 0, "start"]
    table = table[table["start"].between(starts.min(), starts.max())]
    is_binned = not (_middle(table) == table["start"]).all()  # a bin's middle may lie before the first date
    ax = _axes(ax, (8.6, 4.0))
    for rank, number in enumerate(chosen):
        line = table[table["number"] == number]
        if line.empty:
            raise ValueError(f"there is no {kind} {number}; known: {', '.join(map(str, table['number'].unique()))}")
        middle, colour = _middle(line), _colour(rank)
        ax.plot(middle, line["share"], color=colour, marker="o", markersize=3, label=_label(line["name"].iloc[0]))
        ax.fill_between(middle, line["low"], line["high"], color=colour, alpha=0.15, linewidth=0)
    shown = f"{kind}s" if len(chosen) == n else f"{len(chosen)} of {n} {kind}s"
    _NUMBERS[ax] = table[table["number"].isin(chosen)]
    xlabel = f"{name} (middle of each bin)" if is_binned else name
    ax.set(xlabel=xlabel, ylabel=f"share of the {parts}", title=f"{shown} over {name}, 90 % intervals")
    ax.set_ylim(bottom=0)
    _per_cent(ax.yaxis)
    _legend_beside(ax)
    return ax


def clusters_by_context(
    found: Fit, context: str | None = None, cut: int | str = "recommended", ax: Axes | None = None
) -> Axes:
    """Draw a heat map of the share of each cluster for each value (or bin of values) of a context.

    The 20 largest clusters and the 30 most frequent values are drawn.

    Parameters
    ----------
    found : Fit
    context : str, optional
        Name of a context, kept column or label. The name may be left out if there is only one such variable.
    cut : int or str, optional
        Number of clusters, "recommended" (the default), "broad", "fine", or "all" for the clusters of the fit.
    ax : matplotlib Axes, optional

    Raises
    ------
    ValueError
        If the context or the cut does not exist.
    """
    name = _context(found, context)
    table = found.contexts(name, cut)
    table = table[table["of"] == "cluster"]
    rows = found.clusters(cut).sort_values("documents", ascending=False, kind="stable").head(_MAX_ROWS)
    if "value" in table:
        sizes = table.drop_duplicates("value").sort_values("documents", ascending=False, kind="stable")
        columns = list(sizes["value"].head(_MAX_COLUMNS))
        shares = table.pivot(index="number", columns="value", values="share")
    else:
        columns = sorted(table["start"].unique())
        shares = table.pivot(index="number", columns="start", values="share")
    drawn = shares.reindex(index=rows["cluster"], columns=columns).to_numpy(float)
    names = [_shorten(one) for one in rows["name"]]
    periods = dict(zip(table["start"], table["period"], strict=True)) if "period" in table else {}
    labels = [_shorten(one, 20) if isinstance(one, str) else str(periods.get(one, f"{one:g}")) for one in columns]
    width = 1.5 + 0.08 * max(map(len, names)) + 0.32 * max(len(columns), 6)
    ax = _axes(ax, (width, 0.9 + 0.06 * max(map(len, labels)) + 0.3 * max(len(rows), 6)))
    image = ax.imshow(drawn, cmap="Blues", vmin=0.0, aspect="auto", interpolation="nearest")
    ax.set_facecolor(_NONE)
    column = table["value" if "value" in table else "start"]
    _NUMBERS[ax] = table[table["number"].isin(rows["cluster"]) & column.isin(columns)]
    ax.set_yticks(range(len(rows)), names)
    ax.set_xticks(range(len(columns)), labels, rotation=45, ha="right", rotation_mode="anchor")
    is_value = "value" in table or bool((table["end"] - table["start"] == 1).all())
    called = _shorten(name)
    ax.set(xlabel=called if is_value else f"{called} (start of a step)", title=f"clusters by {called}")
    bar = ax.figure.colorbar(image, ax=ax, label="share of the documents")
    _per_cent(bar.ax.yaxis)
    return ax


def hierarchy(found: Fit, size: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw how clusters merge in the hierarchy, from many clusters on the left to one cluster on the right.

    A line leads from each cluster to the cluster of the next smaller cut that receives most of its documents.

    Parameters
    ----------
    found : Fit
    size : int, optional
        Number of clusters on the left; the fit must describe a cut with this number. By default, the largest cut with
        at most twelve clusters is drawn.
    ax : matplotlib Axes, optional

    Raises
    ------
    ValueError
        If the cut does not exist, or if the fit has no hierarchy.
    """
    description = found.description
    if not description.cuts:
        raise ValueError("the fit has no hierarchy; it needs the fitted documents and two or more clusters")
    sizes = sorted(description.first)
    begin = max((cut for cut in sizes if cut <= _MAX_LEAVES), default=sizes[0]) if size is None else size
    found._size(begin)
    shown = [cut for cut in sizes if cut <= begin]
    first, parent = description.first, description.parent
    children: dict[int, list[int]] = {}
    for cut in shown[1:]:
        for node in range(first[cut], first[cut] + cut):
            children.setdefault(int(parent[node]), []).append(node)
    height: dict[int, float] = {}
    for root in range(first[shown[0]], first[shown[0]] + shown[0]):
        _place(root, children, height)
    names = found._names["cluster"]
    ax = _axes(ax, (7.0, 1.2 + 0.3 * begin))
    tables, recommended = found._of_clusters, description.recommended
    rows = [tables["clusters"].assign(cut=recommended, number=tables["clusters"]["cluster"]), tables["cut_clusters"]]
    table = pd.concat(rows)[["cluster", "cut", "number", "name", "documents", "joins"]]
    _NUMBERS[ax] = table[table["cut"] <= begin].sort_values("cut", ascending=False, kind="stable")
    for cut in shown:
        for node in range(first[cut], first[cut] + cut):
            if node not in height:  # a cluster that has no document
                continue
            if node in children:
                for child in children[node]:
                    ax.plot(
                        [_size_of(child, first), cut, cut],
                        [height[child], height[child], height[node]],
                        color=_colour(0), linewidth=1.2,
                    )  # fmt: skip
            else:
                ax.annotate(
                    _shorten(names.get(node + 1, "")), (cut, height[node]), (-4, 0), textcoords="offset points",
                    ha="right", va="center", fontsize="small",
                )  # fmt: skip
    ax.set_xscale("log")
    ax.invert_xaxis()
    ticks: list[int] = []
    for cut in reversed(shown):
        if not ticks or math.log(ticks[-1] / cut) > math.log(begin) / 20:  # other ticks would overlap
            ticks.append(cut)
    ax.set_xticks(ticks, [str(cut) for cut in ticks])
    ax.minorticks_off()
    ax.set_yticks([])
    ax.margins(y=0.06)
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.set(xlabel="number of clusters", title="how clusters merge")
    return ax


def map_of_documents(
    found: Fit, colour: str | None = None, cut: int | str = "recommended", seed: int = 0, ax: Axes | None = None
) -> Axes:
    """Draw a map of the documents by t-SNE: documents with similar words and clusters lie near each other.

    The map is the same as in the HTML report (:func:`mc2core.explore.documents.layout`). The package scikit-learn is
    needed.

    Parameters
    ----------
    found : Fit
    colour : str, optional
        Context, kept column or label by which points are coloured. By default, points are coloured by cluster.
    cut : int or str, optional
        Number of clusters, "recommended" (the default), "broad", "fine", or "all" for the clusters of the fit.
    seed : int, optional
        Seed of the map.
    ax : matplotlib Axes, optional

    Raises
    ------
    ValueError
        If the context or the cut does not exist.
    """
    from mc2core.explore.documents import layout
    from mc2core.explore.variables import variables_of

    extras.require("sklearn", extra="plots", purpose="a map of documents")
    xy = layout(found.description, seed)
    ax = _axes(ax, (7.0, 6.0))
    if colour is None:
        _draw_clusters(ax, found, xy, cut)
    else:
        name = _context(found, colour)
        variable = next(one for one in variables_of(found.description) if one.name == name)
        if variable.is_number:
            points = ax.scatter(xy[:, 0], xy[:, 1], c=variable.values, s=8, cmap="viridis", plotnonfinite=False)
            ax.figure.colorbar(points, ax=ax, label=_shorten(name))
        else:
            _draw_groups(ax, xy, variable.values.tocsc(), variable.names)
    _NUMBERS[ax] = found.documents(cut).assign(x=xy[:, 0], y=xy[:, 1])
    ax.set(xticks=[], yticks=[], title=f"documents by {_shorten(colour or 'cluster')}", aspect="equal")
    ax.set_xlabel("nearby documents are similar; axes and large distances have no meaning (t-SNE)")
    return ax


def words(
    found: Fit, topic: int | None = None, cluster: int | None = None, n: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw the most distinctive words of a topic or a cluster.

    Bars show the probability of each word in the topic or cluster. Marks show the word's probability in the corpus.

    Parameters
    ----------
    found : Fit
    topic, cluster : int, optional
        Number of the topic or of the cluster. Exactly one of the two must be given.
    n : int, optional
        Number of words.
    ax : matplotlib Axes, optional

    Raises
    ------
    ValueError
        If the topic or cluster does not exist, or if topics emit observations.
    """
    found.posterior.representative.need_words()
    if topic is not None and cluster is None:
        kind, number, table = "topic", topic, found._of_topics["topic_words"]
    elif cluster is not None and topic is None:
        kind, number, table = "cluster", cluster, found._of_clusters["cluster_words"]
    else:
        raise ValueError("one of topic and cluster is needed")
    rows = table[table[kind] == number].sort_values("by_relevance").head(n)
    if rows.empty:
        raise ValueError(f"there is no {kind} {number}")
    ax = _axes(ax, (5.6, 1.2 + 0.26 * len(rows)))
    places = range(len(rows))
    _NUMBERS[ax] = rows
    ax.barh(places, rows["probability"], color=_colour(0), height=0.7, label=f"in the {kind}")
    ax.plot(rows["probability"] / rows["lift"], places, "|", color="black", markersize=11, label="in all documents")
    ax.set_yticks(places, [_shorten(word) for word in rows["word"]])
    ax.invert_yaxis()
    ax.set(xlabel="probability of the word", title=f"{kind} {number}: {_shorten(found._names[kind][number])}")
    _per_cent(ax.xaxis)
    _legend_beside(ax)
    return ax


def trace(fit: Fit, what: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw a column of the trace over the iterations, with one line per chain.

    Parameters
    ----------
    fit : Fit
    what : str, optional
        Column of the trace. By default, the first of the columns clusters, topics, elbo and log_joint that exists.
    ax : matplotlib Axes, optional

    Raises
    ------
    ValueError
        If the column does not exist, or if the posterior was loaded and so has no trace.
    """
    if fit.trace is None:
        raise ValueError("a loaded posterior has no trace; read trace.tsv next to it")
    columns = [str(name) for name in fit.trace.columns if name not in ("chain", "iteration", "seconds")]
    name = what or next((one for one in ("clusters", "topics", "elbo", "log_joint") if one in columns), None)
    if name not in columns:
        raise ValueError(f"the trace has no column {name!r}; it has {', '.join(columns)}")
    ax = _axes(ax, (6.4, 3.6))
    from matplotlib.ticker import MaxNLocator

    chains = fit.trace["chain"].unique()
    _NUMBERS[ax] = fit.trace[["chain", "iteration", name]]
    for rank, chain in enumerate(chains):
        line = fit.trace[fit.trace["chain"] == chain]
        ax.plot(line["iteration"], line[name], color=_colour(rank), linewidth=1.2, label=f"chain {chain}")
    ax.set(xlabel="iteration", ylabel=name.replace("_", " "), title=f"{name.replace('_', ' ')} of each iteration")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(integer=bool((fit.trace[name] % 1 == 0).all()), min_n_ticks=1))
    if len(chains) > 1:
        ax.legend(fontsize="small", frameon=False)
    return ax


def agreement(found: Fit, ax: Axes | None = None) -> Axes:
    """Draw the agreement of each pair of chains.

    The agreement of two chains is the adjusted Rand index of their clusterings. The index is 1 for equal clusterings
    and 0 on average for independent clusterings.

    Parameters
    ----------
    found : Fit
    ax : matplotlib Axes, optional

    Raises
    ------
    ValueError
        If there is only one chain, or if the model is HDP, which has no clusters of documents.
    """
    chains = found.posterior.chains
    if not chains:
        raise ValueError("the fit has one chain; fit(..., chains=4) runs several")
    if chains[0].representative.documents_are_clusters:
        raise ValueError("this posterior has no clusters to compare: each document is its own cluster")
    clusters = [one.cluster for one in chains]
    index = np.array([[consensus.agreement_between([one, other])["ari"] for other in clusters] for one in clusters])
    ax = _axes(ax, (4.4, 3.8))
    image = ax.imshow(index, cmap="Blues", vmin=0.0, vmax=1.0)
    for (row, column), value in np.ndenumerate(index):
        ax.text(column, row, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.6 else "black")
    labels = [f"chain {one + 1}" for one in range(len(chains))]
    _NUMBERS[ax] = pd.DataFrame(index, columns=labels).assign(of=labels)
    ax.set_xticks(range(len(chains)), labels)
    ax.set_yticks(range(len(chains)), labels)
    ax.set_title("agreement of chains")
    ax.figure.colorbar(image, ax=ax, label="adjusted Rand index")
    return ax


def comparison(found: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the recommended clusters of two fits side by side, with a band for the documents that two clusters share.

    The height of a cluster is the number of its documents that are in both fits. The width of a band is the number of
    shared documents. Clusters of the first fit are on the left, ordered by size. Clusters of the second fit are ordered
    so that bands cross little. A band has the colour of its cluster on the left.

    Parameters
    ----------
    found : Comparison
        Result of :func:`mc2core.compare`.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import mc2core
    >>> corpus = mc2core.Corpus.from_texts(["apple tree leaf", "leaf tree apple", "iron nail", "nail iron forge"])
    >>> one, other = (mc2core.fit(corpus, iterations=4, seed=seed) for seed in (0, 1))
    >>> ax = mc2core.plots.comparison(mc2core.compare(one, other))
    """
    table = found.table[found.table.sum(axis=1) > 0].loc[:, lambda part: part.sum() > 0]
    position = np.arange(len(table)) @ table.to_numpy() / table.sum().to_numpy()
    table = table.iloc[:, np.argsort(position, kind="stable")]
    counts, total = table.to_numpy(), int(table.to_numpy().sum())
    ax = _axes(ax, (8.6, 1.0 + 0.36 * max(counts.shape)))
    gap = 0.8 * total / max(counts.shape)  # as high as a name
    tops = []
    for side, label, x, align in ((0, "a", -0.03, "right"), (1, "b", 1.03, "left")):
        sizes = counts.sum(axis=1 - side)
        height = total + gap * (max(counts.shape) - 1)
        between = (height - total) / max(len(sizes) - 1, 1)
        tops.append(np.concatenate([[0], np.cumsum(sizes + between)[:-1]]) + (len(sizes) == 1) * (height - total) / 2)
        names = dict(zip(found.clusters[label], found.clusters[f"name_{label}"], strict=True))
        for number, size, top in zip(table.axes[side], sizes, tops[side], strict=True):
            colour = _colour(list(table.index).index(number)) if side == 0 else REST
            ax.fill_between([side - 0.015, side + 0.015], top, top + size, color=colour, linewidth=0)
            text = f"{number}: {_shorten(names[number])} ({size:,})"
            ax.text(x, top + size / 2, text, ha=align, va="center", fontsize="small")
    bend = np.linspace(0.0, 1.0, 40)
    smooth = bend**2 * (3 - 2 * bend)
    left, right = tops[0].copy(), tops[1].copy()
    for row, column in np.argwhere(counts):
        n = counts[row, column]
        band = left[row] + (right[column] - left[row]) * smooth
        ax.fill_between(0.015 + 0.97 * bend, band, band + n, color=_colour(row), alpha=0.45, linewidth=0)
        left[row] += n
        right[column] += n
    ax.invert_yaxis()
    ax.set_axis_off()
    a, b, n_shared = found.n_documents
    ax.set_title(
        f"clusters of fit A (left) and B (right): {n_shared:,} documents in both (A has {a:,}, B {b:,})", loc="center"
    )
    shared = table.reset_index().melt("a", var_name="b", value_name="shared")
    _NUMBERS[ax] = shared[shared["shared"] > 0].sort_values(["a", "b"])
    return ax


# -- helpers -------------------------------------------------------------------------------------------------------
def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return ``ax`` or, if ``ax`` is None, the axes of a new figure of ``size`` inches that pyplot does not manage."""
    extras.require("matplotlib", extra="plots", purpose="mc2core.plots")
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained").subplots()


def _context(fit: Fit, name: str | None, is_number: bool = False) -> str:
    """Return the name of the requested context. Raises ValueError if the context does not exist or is ambiguous."""
    tables = fit._shares
    kinds = [tables["trends"]] if is_number else [tables["shares"], tables["trends"]]
    names = list(dict.fromkeys(str(one) for table in kinds for one in table["context"]))
    required = "a context of numbers or dates" if is_number else "a context"
    if name is None and len(names) == 1:
        return names[0]
    if name not in names:
        prefix = f"context is {name!r}; it must be" if name is not None or not names else f"{required} is needed:"
        raise ValueError(f"{prefix} one of {', '.join(names)}" if names else f"the documents have no {required[2:]}")
    return name


def _middle(line: pd.DataFrame) -> Any:
    """Return the position of each bin: its value if the bin is one whole number, otherwise its middle."""
    is_whole = (line["end"] - line["start"] == 1) & (line["start"] % 1 == 0)
    return line["start"].where(is_whole, (line["start"] + line["end"]) / 2)


def _colour(rank: int) -> str:
    return COLOURS[rank] if rank < len(COLOURS) else REST


def _shorten(name: str, longest: int = _LONGEST) -> str:
    """Return a shortened name for matplotlib. Dollar signs are escaped, because they enclose formulas."""
    shown = name if len(name) <= longest else name[: longest - 1].rstrip() + "…"
    return shown.replace("$", r"\$")


def _label(name: str) -> str:
    """Return a name for a legend. Legends omit labels that begin with an underscore, so a space is added."""
    return f" {_shorten(name)}" if name.startswith("_") else _shorten(name)


def _legend_beside(ax: Axes, *handles_and_labels: Any) -> None:
    ax.legend(
        *handles_and_labels, fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1, 1), markerscale=1.6
    )


def _per_cent(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{round(100 * share, 6):g} %"))


def _place(node: int, children: dict[int, list[int]], height: dict[int, float]) -> None:
    """Set the heights of a node and its descendants: leaves have consecutive heights, other nodes the middle of their
    children."""
    for child in children.get(node, []):
        _place(child, children, height)
    below = [height[child] for child in children.get(node, [])]
    leaves = [one for leaf, one in height.items() if leaf not in children]
    height[node] = (min(below) + max(below)) / 2 if below else (max(leaves) + 1.0 if leaves else 0.0)


def _size_of(node: int, first: dict[int, int]) -> int:
    return next(size for size, start in first.items() if start <= node < start + size)


def _draw_clusters(ax: Axes, fit: Fit, positions: np.ndarray, cut: int | str) -> None:
    from matplotlib.patheffects import withStroke
    from scipy.spatial import cKDTree

    boxes: list[tuple[float, float, float]] = []
    documents = fit.documents(cut)
    sizes = documents["cluster"].value_counts()
    for rank, (cluster, _) in enumerate(sizes.items()):
        members = positions[(documents["cluster"] == cluster).to_numpy()]
        name = _shorten(documents["cluster_name"][documents["cluster"] == cluster].iloc[0])
        points = ax.scatter(members[:, 0], members[:, 1], s=8, color=_colour(rank), linewidths=0)
        members = members[~np.isnan(members[:, 0])]
        if rank < len(COLOURS):
            points.set_label(_label(name))
        if rank >= _MAX_NAMES or not len(members):
            continue
        # the densest point of the cluster: the mean of a cluster in two parts lies in neither part
        tree = cKDTree(members)
        centre = members[np.argmax(tree.query_ball_point(members, _NEAR, return_length=True))]
        width = _LETTER * len(name)
        centre = np.clip(centre, [width / 2, _LINE / 2], [1 - width / 2, 1 - _LINE / 2])
        is_free = all(abs(centre[0] - x) > (width + other) / 2 or abs(centre[1] - y) > _LINE for x, y, other in boxes)
        if is_free:  # names of larger clusters are placed first, and names do not overlap
            boxes.append((centre[0], centre[1], width))
            points.set_label(None)
            ax.text(
                centre[0], centre[1], name, ha="center", va="center", fontsize="small",
                path_effects=[withStroke(linewidth=2.5, foreground="white")],
            )  # fmt: skip
    if ax.get_legend_handles_labels()[0]:  # names that do not fit on the map
        _legend_beside(ax)


def _draw_groups(ax: Axes, positions: np.ndarray, table: Any, names: Sequence[str]) -> None:
    """Draw the documents in the colours of their groups. A document in several groups has the colour of the largest."""
    ax.scatter(positions[:, 0], positions[:, 1], s=6, color=REST, linewidths=0, label="others")
    counts = np.diff(table.indptr)
    for rank, column in reversed([*enumerate(np.argsort(-counts, kind="stable")[:_MAX_NAMES])]):
        members = positions[table.indices[table.indptr[column] : table.indptr[column + 1]]]
        ax.scatter(members[:, 0], members[:, 1], s=8, color=_colour(rank), linewidths=0, label=_label(names[column]))
    handles, labels = ax.get_legend_handles_labels()
    _legend_beside(ax, handles[:0:-1], labels[:0:-1])
