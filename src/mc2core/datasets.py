"""The datasets of the papers by name: where each comes from, and the folder a workflow keeps it in.

A dataset folder holds ``train`` and ``test`` (each a saved :class:`mc2core.Corpus`; no ``test`` where nothing is held
out), ``truth.npz`` for simulated data, ``source.json`` and ``datasheet.md``. Numeric contexts are standardised on the
train part.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from mc2core import storage
from mc2core.corpus import Corpus
from mc2core.sources import datasheet, letters, nips, nuswide, simulated, usage
from mc2core.sources.datasheet import Dropped
from mc2core.sources.simulated import Truth

Simulator = Callable[..., tuple[Corpus, Truth]]


@dataclass(frozen=True)
class Dataset:
    """How to get a dataset.

    title : as figures and tables name it.
    simulate : ``simulate(seed=..., **settings) -> (corpus, truth)``.
    read : reads the corpus from its source file (or any file of the folder that is the source), and tells what it left
        out; None where there is no real source.
    invented : the paper itself draws this data, so that "simulated" is no restriction.
    """

    title: str
    simulate: Simulator
    read: Callable[[Path], tuple[Corpus, list[Dropped]]] | None = None
    invented: bool = False


def _shaped(name: str) -> Simulator:
    def simulate(seed: int, scale: float = 1.0) -> tuple[Corpus, Truth]:
        return simulated.simulate(simulated.SHAPES[name], seed, scale)

    return simulate


def _folder_of(path: Path) -> Path:
    return path if path.is_dir() else path.parent


DATASETS: dict[str, Dataset] = {
    "letters": Dataset("letters", letters.simulate, invented=True),
    "nips": Dataset("NIPS", _shaped("nips"), lambda path: (nips.read(path), [])),
    "pnas": Dataset("PNAS", _shaped("pnas")),
    "nuswide": Dataset("NUS-WIDE", _shaped("nuswide"), lambda path: (nuswide.read(_folder_of(path)), [])),
    "wikipedia": Dataset("Wikipedia", _shaped("wikipedia")),
    "pubmed": Dataset("PubMed", _shaped("pubmed")),
    "aua": Dataset("AUA", _shaped("aua"), lambda path: usage.read(_folder_of(path))),
}


def prepare(
    name: str,
    folder: str | os.PathLike[str],
    *,
    source: str,
    seed: int = 0,
    test_fraction: float = 0.1,
    settings: Mapping[str, Any] | None = None,
    files: Sequence[str | os.PathLike[str]] = (),
    paper: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Read or draw a dataset, split it, standardise its numbers, and write its folder; returns ``source.json``.

    A dataset with an official split (a column "part" in ``documents``) keeps it, unless nothing is held out.

    Parameters
    ----------
    source : "real" (read ``files``) or "simulated" (draw with ``seed`` and ``settings``).
    seed : also of the split.
    test_fraction : share of the documents held out; 0 keeps all for training.
    paper : table of the paper's counts for the datasheet (:func:`mc2core.sources.datasheet.read_paper_counts`).

    Raises
    ------
    ValueError
        Unknown dataset, no reader for its real source, or whatever the reader finds wrong.
    """
    dataset = _dataset(name)
    truth, dropped = None, list[Dropped]()
    if source == "real":
        if dataset.read is None or not files:
            raise ValueError(f"dataset {name!r} has no real source that can be read; its source must be 'simulated'")
        whole, dropped = dataset.read(Path(files[0]))
    elif source == "simulated":
        known = [one for one in inspect.signature(dataset.simulate).parameters if one != "seed"]
        for setting in settings or {}:
            if setting not in known:
                raise ValueError(f"simulated dataset {name!r} has no setting {setting!r}; it has: {', '.join(known)}")
        whole, truth = dataset.simulate(seed=seed, **(settings or {}))
    else:
        raise ValueError(f"source of dataset {name!r} is {source!r}; it must be 'real' or 'simulated'")
    train, test = (whole, None) if test_fraction == 0 else _split(whole, test_fraction, seed)
    for context in [one for one, values in whole.contexts.items() if not sp.issparse(values)]:
        train = train.standardised(context)
        test = None if test is None else test.standardised(context, like=train)
    about = {
        "dataset": name,
        "title": dataset.title,
        "source": source,
        "invented": dataset.invented,
        "settings": dict(settings or {}) if source == "simulated" else {},
        "seed": seed,
        "documents": whole.n_documents,
        "train_documents": train.n_documents,
        "test_documents": 0 if test is None else test.n_documents,
        "words": whole.n_words,
        "tokens": whole.n_tokens,
        "contexts": sorted(whole.contexts),
        "files": [Path(file).name for file in files],
    }
    with storage.replacing_folder(folder) as new:
        train.save(new / "train")
        if test is not None:
            test.save(new / "test")
        if truth is not None:
            truth.save(new / "truth.npz")
        datasheet.write(
            new / "datasheet.md",
            dataset.title,
            describe(about) or ("drawn as the paper says" if truth else ", ".join(Path(file).name for file in files)),
            whole,
            dropped,
            paper=datasheet.read_paper_counts(paper, name) if paper else None,
        )
        storage.write_json(new / "source.json", about)
    return about


def _split(whole: Corpus, test_fraction: float, seed: int) -> tuple[Corpus, Corpus]:
    if "part" in whole.documents:
        is_test = (whole.documents["part"] == "test").to_numpy()
        return whole.subset(~is_test), whole.subset(is_test)
    return whole.split(test_fraction, seed)


def describe(about: Mapping[str, Any]) -> str:
    """What a picture or table must say of its data: "simulated, NIPS-shaped, 870 documents" ("" if nothing)."""
    if about["invented"] or about["source"] == "real":
        return ""
    return f"simulated data, {about['title']}-shaped, {about['documents']:,} documents"


def _dataset(name: str) -> Dataset:
    if name not in DATASETS:
        raise ValueError(f"dataset {name!r} is not known; known: {', '.join(DATASETS)}")
    return DATASETS[name]
