"""Describe a fit: the tables and the HTML report, in one folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mc2core.base import extras, storage
from mc2core.base.progress import showing, work
from mc2core.corpus import Corpus
from mc2core.explore import html_report
from mc2core.explore.description import Description
from mc2core.explore.summary import summary
from mc2core.explore.tables import tables_of, write_tables
from mc2core.explore.texts import texts_of
from mc2core.explore.words import Names
from mc2core.posterior import Posterior

MAX_DOCUMENTS = 100_000
"""Documents of the tables and the HTML report; of a larger corpus so many are drawn."""
DESCRIBED_FILES = (
    r"(summary|clusters|cluster_\w+|topics|topic_\w+|names|shares|trends|documents|document_clusters|document_topics|hierarchy|cut_clusters|arrivals)\.csv|index\.html"
    r"|summary\.md|texts_\d+\.js"
    r"|\.snakemake_timestamp"
)
"""Names of what is written, here and by Snakemake, as a regular expression; a folder with others is not replaced."""


def describe(
    posterior: Posterior,
    corpus: Corpus,
    folder: str | os.PathLike[str],
    title: str = "What the fit found",
    seed: int = 0,
    threads: int = 1,
    names: Names | None = None,
    texts: str | os.PathLike[str] | Sequence[str] | None = None,
    progress: bool | None = None,
) -> None:
    """Write the tables of :func:`mc2core.explore.tables.tables_of` as CSV, ``index.html``, which shows them, and
    ``summary.md``, which tells the most of it in short.

    ``corpus`` may be the one that was fitted or other documents in its words; of more than ``MAX_DOCUMENTS`` so many
    are described, drawn evenly. ``seed`` is that of the draw and of the map, ``threads``
    and ``progress`` those of :meth:`mc2core.Posterior.predict_proba`. ``names`` take the place of the words by which
    clusters and topics are named: {"cluster": {1: "Trade"}, "topic": {3: "Oil"}}, numbers as in the tables. ``texts``,
    J of them, the name of a kept column or the file that was imported (:func:`mc2core.explore.texts.texts_of`), are put
    in the HTML report, much text in scripts beside it. The folder is replaced as a whole.

    ValueError: the posterior has no clusters of documents, the corpus does not fit it, a name is given to what is not
    there, there are no such texts, or the folder holds something else. MissingPackage: scikit-learn, which lays out the
    map, is not installed.
    """
    storage.refuse_foreign(folder, DESCRIBED_FILES)
    extras.require("sklearn", extra="explore", purpose="the HTML report")
    with showing(progress):
        known_texts = None if texts is None else texts_of(corpus, texts)
        description = Description.of(posterior, corpus, threads, names, MAX_DOCUMENTS, seed)
        if known_texts is not None and description.drawn is not None:
            known_texts = [known_texts[number] for number in description.drawn]
        tables = tables_of(description, seed)
        with work("HTML report"):
            said = summary(description, tables, title)
            files = html_report.build(description, tables, title, said, known_texts)
        with work("writing tables and HTML report"), storage.replacing_folder(Path(folder), DESCRIBED_FILES) as new:
            write_tables(new, tables)
            for name, text in {**files, "summary.md": said}.items():
                with storage.replacing(new / name) as stream:
                    stream.write(text)
