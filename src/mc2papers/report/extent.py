"""Describe the data and computation behind a verdict: documents, lengths of chains and repeats.

The descriptions come from the settings of a run and from its corpora, and include the printed numbers. They show
whether a claim failed on the paper's data with the paper's number of iterations, or on a small sample with a short
chain.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Collection, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from mc2papers.engines import ENGINES

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration

#: below this share of the paper's documents or sweeps, a verdict is limited by them
_SHARE = 0.5
#: documents below which data that no paper has are few
_FEW = 500
#: marks rows of tables that no paper has
_OURS = "(ours)"


@functools.cache
def paper_sizes() -> dict[tuple[str, str], dict[str, int]]:
    """Return the printed numbers of documents and sweeps by (paper, dataset)."""
    text = resources.files("mc2papers.report").joinpath("assets/paper_sizes.csv").read_text(encoding="utf-8")
    return {
        (row["paper"], row["dataset"]): {name: int(row[name]) for name in ("documents", "sweeps") if row[name]}
        for row in csv.DictReader(text.splitlines())
    }


def extent_of_runs(configuration: Configuration, name: str, methods: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """Return the computation behind the claims of a target by dataset, as far as it follows from the settings of runs.

    Runs of our variants do not count, unless there are no other runs.

    methods : names of the methods whose runs count; if empty, all methods count

    Returns
    -------
    Dicts with ``length`` and ``repeats`` (both as text), ``limits`` and ``paper_documents``, which JSON can store.
    """
    extents = {}
    runs = {run: one for run, one in configuration.runs.items() if name in one["targets"]}
    runs = {run: one for run, one in runs.items() if one["method"] in methods} or runs
    for dataset in dict.fromkeys(one["dataset"] for one in runs.values()):
        chosen = {run: one for run, one in runs.items() if one["dataset"] == dataset}
        chosen = {run: one for run, one in chosen.items() if _OURS not in one["method"]} or chosen
        of = name.partition("_")[0]
        paper = paper_sizes().get(("icml2014" if of == "labelled" else of, dataset), {})
        lengths: dict[str, set[int]] = {}
        for fit in (one["fit"] for one in chosen.values()):
            lengths.setdefault(fit["engine"], set()).add(fit.get("iterations"))
        epochs = lengths.pop("svi", set())
        # if chains of Gibbs are compared, chains of other models are listed next to them
        sweeps = lengths.get("gibbs") or set().union(*(lengths[one] for one in lengths.keys() & {*ENGINES}))
        length, limits = said_sweeps(sweeps, paper.get("sweeps"))
        passes = _count(said_range(epochs), "epoch")
        seeds = max(len(configuration.seeds_of(run)) for run in chosen)
        extents[dataset] = {
            "length": f"{length} (SVI: {passes})" if length and passes else length or passes,
            "repeats": _count(f"{seeds}", "seed"),
            "limits": limits,
            "paper_documents": paper.get("documents"),
        }
    return extents


def extent_of_one_epoch(configuration: Configuration, name: str) -> dict[str, dict[str, Any]]:
    """Return the result of :func:`extent_of_runs` for a target that uses only the first epoch of its fits."""
    return {dataset: one | {"length": "1 epoch"} for dataset, one in extent_of_runs(configuration, name).items()}


def said_sweeps(sweeps: set[int], paper: int | None) -> tuple[str, list[str]]:
    """Return a phrase such as "60 of 600 sweeps", and a list with the limit if the chains are short."""
    if not sweeps:
        return "", []
    is_short = paper is not None and max(sweeps) < _SHARE * paper
    of = f" of {paper:,}" if paper is not None and max(sweeps) != paper else ""
    return _count(f"{said_range(sweeps)}{of}", "sweep"), ["short chains"] if is_short else []


def said(extent: Mapping[str, Any], documents: int | None) -> tuple[str, str]:
    """Return short phrases on the data and computation behind a verdict, and on its limits; "" for nothing.

    Parameters
    ----------
    extent : result of :func:`extent_of_runs`; if it has ``documents`` as text, this text is used
    documents : number of documents of the corpus, including held-out documents
    """
    if not extent:
        return "", ""
    limits, text = list(extent.get("limits", ())), extent.get("documents")
    paper = extent.get("paper_documents")
    if text is None and documents is not None:
        text = f"{documents:,}" if paper is None else f"all {documents:,}"
        if paper is not None and documents != paper:
            text = f"{documents:,} of {_format_large(paper)}"
        if documents < (_FEW if paper is None else _SHARE * paper):
            limits.insert(0, "few documents")
    parts = (f"{text} documents" if text else "", extent.get("length"), extent.get("repeats"))
    return ", ".join(one for one in parts if one), ", ".join(limits)


def _format_large(number: int) -> str:
    """Return a number as text, such as "1.1 million"."""
    return f"{number / 1e6:g} million" if number >= 10**6 else f"{number:,}"


def said_range(numbers: Collection[int]) -> str:
    """Return a range as text, such as "4" or "11 to 19"; "" for no numbers."""
    ends = sorted({min(numbers), max(numbers)}) if numbers else []
    return " to ".join(f"{one:,}" for one in ends)


def _count(number: str, unit: str) -> str:
    return number and f"{number} {unit}{'' if number == '1' else 's'}"
