"""The datasets of the papers by name, with their readers and simulators.

The folder of a dataset contains ``train`` and ``test`` (saved :class:`mc2core.Corpus`), ``source.json`` and
``datasheet.md``, and ``truth.npz`` for simulated data. There is no ``test`` if no documents are held out. Numeric
contexts are standardised on the train part.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.base import storage
from mc2core.base.checks import nearest
from mc2core.corpus import Corpus, datasheet, subsets
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.building.settings import parse_contexts
from mc2core.corpus.checks import NUMBERS
from mc2core.corpus.files import CORPUS_FILES
from mc2core.corpus.readers import reading as importing
from mc2papers.datasets.collections import labelled_images, labelled_texts, multiview, nips, nuswide, usage
from mc2papers.datasets.dumps import corpora
from mc2papers.datasets.dumps.corpora import Files, Reading
from mc2papers.datasets.origins import ORIGINS, model_of
from mc2papers.datasets.simulated import encyclopaedia, letters, shapes
from mc2papers.datasets.simulated.truth import Truth

Simulator = Callable[..., tuple[Corpus, Truth | None]]
Reader = Callable[..., Reading]

#: possible sources of a corpus: simulated, all files of the dataset, a part of these files, files of the user
SOURCES = ("simulated", "real", "real excerpt", "own")
#: paths of files in the folder of a dataset, for :func:`prepare` and Snakemake
DATASET_FILES = rf"(train|test)(/({CORPUS_FILES}))?|truth\.npz|source\.json|datasheet\.md|\.snakemake_timestamp"


@dataclass(frozen=True)
class Dataset:
    """Simulator and reader of a dataset. The title of the dataset is in ORIGINS.

    simulate : ``simulate(seed=..., **settings) -> (corpus, truth)``, where truth is None if the labels are the whole
        truth. None if there is no simulator.
    read : ``read(files, seed, **settings) -> Reading``; None if there is no real source.
    roles : required roles of input files. Only the workflow makes files of the role "shards".
    drawn : contexts of a simulated corpus: ``{name: "number" or "bag"}``.
    given : function from the settings of the reader to the contexts of the corpus that it reads.
    """

    simulate: Simulator | None = None
    read: Reader | None = None
    roles: tuple[str, ...] = ("files",)
    drawn: Mapping[str, str] = field(default_factory=dict)
    given: Callable[[Mapping[str, Any]], dict[str, str]] = lambda settings: {}


def _shaped(name: str) -> Simulator:
    def simulate(seed: int, scale: float = 1.0, drawn_from: str = "mc2") -> tuple[Corpus, Truth]:
        return shapes.simulate(shapes.SHAPES[name], seed, scale, drawn_from)

    return simulate


def _articles(shape: encyclopaedia.Encyclopaedia) -> Simulator:
    def simulate(seed: int, scale: float = 1.0) -> tuple[Corpus, None]:
        return encyclopaedia.simulate(encyclopaedia.scaled(shape, scale), seed), None

    return simulate


def _read_nips(files: Files, seed: int) -> Reading:
    return Reading(nips.read(files["files"][0]))


def _read_nuswide(
    files: Files,
    seed: int,
    animals: Sequence[str] = nuswide.ANIMALS,
    sizes: tuple[int, int] | None = nuswide.PAPER_SIZES,
) -> Reading:
    return Reading(nuswide.read(_folder_of(files), animals, sizes))


def _read_usage(files: Files, seed: int) -> Reading:
    return Reading(*usage.read(_folder_of(files)))


def _labelled(name: str, read: Callable[..., Reading], n_files: int = 1) -> Reader:
    """Return a reader of one fixed half of a labelled corpus; ``read`` takes the paths in the order of their names."""

    def read_half(files: Files, seed: int, half: str = "report") -> Reading:
        if len(files["files"]) != n_files:
            raise ValueError(f"dataset {name!r} is read from {n_files} files, not from {len(files['files'])}")
        reading = read(*sorted(files["files"]))
        return replace(
            reading,
            corpus=subsets.half(reading.corpus, half),
            notes=[
                *reading.notes,
                f"The half {half!r} of {reading.corpus.n_documents:,} documents, chosen by the SHA-256 of their ids. "
                "Numbers of left-out rows are for the whole corpus.",
            ],
        )

    return read_half


def _views(context: str, words: int, names: int) -> Dataset:
    """Return a dataset of :mod:`mc2papers.datasets.collections.multiview`."""

    def read(files: Files, seed: int) -> Reading:
        return Reading(multiview.read(files["files"][0], context, words, names))

    return Dataset(read=read, given=lambda settings: {context: "bag"})


def _table(is_complete: bool = False, **layout: Any) -> Dataset:
    """Return a dataset in one file, which is read with these settings of ``mc2 import``.

    is_complete : whether documents without words or without names in a context are left out
    """

    def read(files: Files, seed: int) -> Reading:
        reading = _read_own(files, seed, **layout)
        return _only_complete(reading) if is_complete else reading

    return Dataset(read=read, given=lambda settings: _own_contexts(layout))


def _only_complete(reading: Reading) -> Reading:
    """Leave out the documents without words, and the documents without names in a context."""
    corpus = reading.corpus
    bags = [corpus.content, *(values for values in corpus.contexts.values() if sp.issparse(values))]
    is_whole = np.all([np.diff(one.indptr) > 0 for one in bags], axis=0)
    lost = Dropped("documents", int((~is_whole).sum()), "without words, or without names in a context")
    return replace(reading, corpus=corpus.subset(np.flatnonzero(is_whole)), dropped=[*reading.dropped, lost])


def _read_own(files: Files, seed: int, **layout: Any) -> Reading:
    corpus, dropped = importing.read_own(files["files"][0], layout)
    return Reading(corpus, dropped, importing.notes_of(corpus))


def _folder_of(files: Files) -> Path:
    """Return the source folder: the first path if it is a folder, otherwise the folder that contains it."""
    path = files["files"][0]
    return path if path.is_dir() else path.parent


def _chosen_contexts(settings: Mapping[str, Any]) -> dict[str, str]:
    return {name: "number" if name == "year" else "bag" for name in settings["contexts"]}


def _own_contexts(settings: Mapping[str, Any]) -> dict[str, str]:
    columns = parse_contexts(settings["contexts"] or ())
    return {name: "number" if column.kind in NUMBERS else "bag" for name, column in columns.items()}


def _drawn(name: str) -> dict[str, str]:
    contexts = shapes.SHAPES[name].contexts
    return {one: "number" if isinstance(made, shapes.WholeNumber) else "bag" for one, made in contexts.items()}


_SHARDS = ("shards",)
DATASETS: dict[str, Dataset] = {
    "letters": Dataset(letters.simulate, drawn={"number": "number"}),
    "nips": Dataset(
        _shaped("nips"),
        _read_nips,
        drawn=_drawn("nips"),
        given=lambda settings: {"author": "bag", "title": "bag", "year": "number"},
    ),
    "pnas": Dataset(_shaped("pnas"), corpora.read_pubmed, _SHARDS, drawn=_drawn("pnas"), given=_chosen_contexts),
    "nuswide": Dataset(
        _shaped("nuswide"), _read_nuswide, drawn=_drawn("nuswide"), given=lambda settings: {"tag": "bag"}
    ),
    "wikipedia": Dataset(
        _shaped("wikipedia"), corpora.read_wikipedia, _SHARDS, drawn=_drawn("wikipedia"), given=_chosen_contexts
    ),
    "pubmed": Dataset(_shaped("pubmed"), corpora.read_pubmed, _SHARDS, drawn=_drawn("pubmed"), given=_chosen_contexts),
    "aua": Dataset(_shaped("aua"), _read_usage, drawn=_drawn("aua"), given=lambda settings: {"product": "bag"}),
    "w100": Dataset(_articles(encyclopaedia.W100), corpora.read_categories, _SHARDS),
    "w1000": Dataset(_articles(encyclopaedia.W1000), corpora.read_categories, _SHARDS),
    "labelme": Dataset(read=_labelled("labelme", lambda path: Reading(labelled_images.read_labelme(path)))),
    "uiucsports": Dataset(
        read=_labelled("uiucsports", lambda tags, info: Reading(*labelled_images.read_sports(tags, info)), n_files=2)
    ),
    "ohsumed": Dataset(read=_labelled("ohsumed", lambda path: Reading(*labelled_texts.read_ohsumed(path)))),
    "stateunion": Dataset(
        read=_labelled("stateunion", lambda path: Reading(*labelled_texts.read_addresses(path))),
        given=lambda settings: {"year": "number"},
    ),
    "movies": _views("actor", 0, 1),
    "cora": _views("citation", 1, 0),
    "citeseer": _views("citation", 1, 0),
    "acm": _views("coauthored", 0, 1),
    "poliblog": _table(counts="words", contexts=["blog:bag", "date:date"], labels="label", id="id"),
    "sotu": _table(text="text", contexts=["year:number", "president:bag"], id="id", min_df=5),
    "synergy": _table(
        text="abstract", contexts=["mesh:bag", "year:number"], labels="review", min_df=5, is_complete=True
    ),
    "twitch": _table(counts="words", contexts=["friend=friends:bag"], labels="label", id="id"),
    "acl": _table(text="title", contexts=["year:number"], id="id", min_df=5),
    "wikiimages": _table(counts="sift", contexts=["topic=main_topic:bag"], labels="label", id="id"),
    "clinc": _table(text="text", contexts=[], labels="label", id="id"),
    "mine": Dataset(read=_read_own, given=_own_contexts),
}


def prepare(
    name: str,
    folder: str | os.PathLike[str],
    *,
    source: str,
    seed: int = 0,
    test_size: float = 0.1,
    settings: Mapping[str, Any] | None = None,
    files: Mapping[str, Sequence[str | os.PathLike[str]]] | None = None,
    paper: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Read or simulate a dataset, split it, standardise its numbers, and write its folder; return ``source.json``.

    If a dataset has an official split (a column "part" in ``documents``) and ``test_size`` is not 0, this split is
    used.

    Parameters
    ----------
    source : one of SOURCES. "simulated" is drawn with ``seed`` and ``settings``; other sources are read from ``files``.
    seed : seed of the simulation and of the split.
    test_size : fraction of the documents that are held out; with 0, there is no test part.
    settings : settings of the simulator and the reader; only the settings of the chosen one are used.
    files : input files by role.
    paper : table of the paper's counts for the datasheet (:func:`mc2core.corpus.datasheet.read_paper_counts`).

    Raises
    ------
    ValueError
        If the dataset, source or setting is unknown, if the folder contains other files than a dataset, if there is no
        reader or simulator for the source, or if the reader finds an error.
    """
    dataset = _dataset(name)
    storage.refuse_foreign(folder, DATASET_FILES, "source.json")
    if source not in SOURCES:
        raise ValueError(f"source of dataset {name!r} is {source!r}; it must be one of {', '.join(SOURCES)}")
    paths = {role: [Path(file) for file in listed] for role, listed in (files or {}).items()}
    chosen = _settings_of(name, dataset, source, settings or {})
    truth: Truth | None = None
    if source == "simulated" and dataset.simulate is not None:
        whole, truth = dataset.simulate(seed=seed, **chosen)
        reading = Reading(whole)
    elif source != "simulated" and dataset.read is not None:
        for role in dataset.roles:
            if not paths.get(role):
                how = "the rules of the workflow make them" if role == "shards" else "give the file to read"
                raise ValueError(f"dataset {name!r} with the source {source!r} needs {role}: {how}")
        reading = dataset.read(paths, seed, **chosen)
        whole = reading.corpus
    else:
        other = "read from files" if source == "simulated" else "simulated"
        raise ValueError(f"dataset {name!r} cannot have the source {source!r}; it can only be {other}")
    train, test = (whole, None) if test_size == 0 else _split(whole, test_size, seed)
    for context in [one for one, values in whole.contexts.items() if not sp.issparse(values)]:
        train = train.standardised(context)
        test = None if test is None else test.standardised(context, like=train)
    names = _source_names(paths, reading)
    about = {
        "dataset": name,
        "title": ORIGINS[name].title,
        "source": source,
        "drawn_from": model_of(name, chosen) if source == "simulated" else None,
        "settings": chosen,
        "seed": seed,
        "documents": whole.n_documents,
        "train_documents": train.n_documents,
        "test_documents": 0 if test is None else test.n_documents,
        "words": whole.n_words,
        "tokens": whole.n_tokens,
        "contexts": sorted(whole.contexts),
        "files": names,
    }
    with storage.replacing_folder(folder, DATASET_FILES, "source.json") as new:
        train.save(new / "train")
        if test is not None:
            test.save(new / "test")
        if truth is not None:
            truth.save(new / "truth.npz")
        datasheet.write(
            new / "datasheet.md",
            ORIGINS[name].title,
            _say_source(about, reading),
            whole,
            reading.dropped,
            reading.warnings,
            paper=datasheet.read_paper_counts(paper, name) if paper else None,
            notes=reading.notes,
            files=reading.files,
        )
        storage.write_json(new / "source.json", about)
    return about


def contexts_of(name: str, corpus: Mapping[str, Any]) -> dict[str, str]:
    """Return the contexts that a dataset will have, ``{name: "number" or "bag"}``, without reading or drawing it.

    corpus : ``source`` and settings of the reader, as in a configuration. Raises ValueError for an unknown dataset.
    """
    dataset = _dataset(name)
    return dict(dataset.drawn) if corpus["source"] == "simulated" else dataset.given(corpus)


def known_settings(name: str) -> set[str]:
    """Return the names of all settings of the simulator and the reader. Raises ValueError for an unknown dataset."""
    dataset = _dataset(name)
    return _keywords(dataset.simulate) | _keywords(dataset.read)


def _settings_of(name: str, dataset: Dataset, source: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the source uses. Raises ValueError if neither simulator nor reader has a setting."""
    known = known_settings(name)
    for setting in settings:
        if setting not in known:
            raise ValueError(f"dataset {name!r} has no setting {setting!r}{nearest(setting, sorted(known))}")
    wanted = _keywords(dataset.simulate if source == "simulated" else dataset.read)
    return {setting: value for setting, value in settings.items() if setting in wanted}


def _keywords(make: Callable[..., Any] | None) -> set[str]:
    if make is None:
        return set()
    if make is _read_own:
        return set(importing.LAYOUT)
    return set(inspect.signature(make).parameters) - {"files", "seed"}


def _source_names(paths: Mapping[str, Sequence[Path]], reading: Reading) -> list[str]:
    """Return the names of the files from which the data come; for shards, the files from which the shards were made."""
    return [*reading.files, *(file.name for role, listed in paths.items() if role != "shards" for file in listed)]


def _say_source(about: Mapping[str, Any], reading: Reading) -> str:
    """Return the line of the datasheet on the source of the data."""
    if about["source"] == "simulated":
        return describe(about) or "drawn as the paper says"
    many = len(reading.files)
    listed = [*([f"{many:,} files, listed below"] if many else []), *about["files"][many:]]
    return f"{about['source']}, {', '.join(listed)}"


def _split(whole: Corpus, test_size: float, seed: int) -> tuple[Corpus, Corpus]:
    if "part" in whole.documents:
        is_test = (whole.documents["part"] == "test").to_numpy()
        return whole.subset(~is_test), whole.subset(is_test)
    return whole.split(test_size, seed)


def describe(about: Mapping[str, Any]) -> str:
    """Return the description of the data for a caption, or "" if none is needed.

    An example is "NIPS-shaped, simulated (MC2), 870 documents (87 of them held out)"."""
    n_documents = f"{about['documents']:,} documents"
    if about.get("test_documents"):
        n_documents += f" ({about['test_documents']:,} of them held out)"
    if about["source"] == "real excerpt":
        return f"{about['title']}, an excerpt of the real data, {n_documents}"
    if about["source"] != "simulated" or ORIGINS[about["dataset"]].by_paper:
        return ""
    return f"{about['title']}-shaped, simulated ({about['drawn_from']}), {n_documents}"


def _dataset(name: str) -> Dataset:
    if name not in DATASETS:
        raise ValueError(f"dataset {name!r} is not known; known: {', '.join(DATASETS)}")
    return DATASETS[name]
