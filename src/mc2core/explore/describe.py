"""Write the tables and the HTML report of a fit to one folder."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mc2core.base import extras, storage
from mc2core.base.progress import showing, work
from mc2core.corpus import Corpus
from mc2core.explore import html_report
from mc2core.explore.description import Description
from mc2core.explore.names import with_names
from mc2core.explore.summary import summary
from mc2core.explore.tables import Tables, tables_of, write_tables
from mc2core.explore.texts import phrases_of, texts_of
from mc2core.explore.words import Names, read_names
from mc2core.posterior import Posterior

MAX_DOCUMENTS = 100_000
"""Largest number of documents in the tables and the HTML report; larger corpora are sampled."""
DESCRIBED_FILES = (
    r"(summary|clusters|cluster_\w+|topics|topic_\w+|names|shares|trends|documents|document_clusters|document_topics|hierarchy|cut_clusters|arrivals)\.csv|index\.html"
    r"|summary\.md|texts_\d+\.js|(clusters|topics)\.(tex|html)"
    r"|\.snakemake_timestamp"
)
"""Pattern of the names of files that this module and Snakemake write. A folder with other files is not replaced."""
_MARKER = "summary.md"  # every report has this file


DEFAULT_TITLE = "Clusters and topics"


@dataclass(repr=False)
class Report:
    """An HTML report and its tables. Notebooks display the report; :meth:`save` writes both to a folder.

    Attributes
    ----------
    files : dict of str
        Contents of ``index.html``, ``summary.md`` and the scripts with texts, by file name.
    tables : dict of DataFrame
        Tables by name (:func:`mc2core.explore.tables.tables_of`).
    """

    files: dict[str, str]
    tables: Tables

    def save(self, folder: str | os.PathLike[str], forms: Sequence[str] = ()) -> None:
        """Write the report and its tables (as CSV) into a folder, and replace an existing report in this folder.

        If ``forms`` contains "latex" or "html", the tables of clusters and topics are also written in these formats for
        papers (:func:`mc2core.explore.tables.for_paper`). Raises ValueError if the folder contains other files.
        """
        with work("writing tables and HTML report"), storage.replacing_folder(folder, DESCRIBED_FILES, _MARKER) as new:
            write_tables(new, self.tables, forms)
            for name, text in self.files.items():
                with storage.replacing(new / name) as stream:
                    stream.write(text)

    def __repr__(self) -> str:
        return f"Report({', '.join(self.files)}, {len(self.tables)} tables)"

    def _repr_html_(self) -> str:
        """Return the report in an iframe, so that its styles and names do not interfere with a notebook."""
        page = html.escape(self.files["index.html"], quote=True)
        return f'<iframe title="HTML report" srcdoc="{page}" style="width:100%;height:900px;border:0"></iframe>'


def report(
    posterior: Posterior,
    corpus: Corpus,
    title: str = DEFAULT_TITLE,
    seed: int = 0,
    threads: int = 1,
    names: Names | str | os.PathLike[str] | None = None,
    texts: str | os.PathLike[str] | Sequence[str] | None = None,
    phrases: bool = False,
    in_one_file: bool = False,
) -> Report:
    """Make the HTML report of a fit and its tables.

    For a model without clusters of documents (HDP), all documents form one cluster.

    Parameters
    ----------
    posterior : Posterior
    corpus : Corpus
        The fitted documents, or other documents with the same vocabulary. If there are more than ``MAX_DOCUMENTS``
        documents, a random sample is described.
    title : str, optional
        Heading of the report.
    seed : int, optional
        Seed of the sample of documents and of the map.
    threads : int, optional
        Number of threads, as in :meth:`mc2core.Posterior.predict_proba`.
    names : mapping or path, optional
        Names that replace the default names of clusters and topics, by the numbers in the tables, for example
        {"cluster": {1: "Trade"}, "topic": {3: "Oil"}}, or a file (:func:`mc2core.explore.names.with_names`).
    texts : path, str or sequence of str, optional
        Texts that the report shows: a list of J texts, the name of a kept column, or the imported file.
    phrases : bool, optional
        Whether names may contain frequent phrases of two words (:func:`mc2core.explore.texts.phrases_of`).
    in_one_file : bool, optional
        Whether to store long texts in the HTML file itself rather than in separate scripts.

    Raises
    ------
    ValueError
        If the corpus does not match the posterior, if a named cluster or topic or the texts do not exist, or if
        ``phrases`` is set without texts.
    MissingPackage
        If scikit-learn, which computes the map, is not installed.
    """
    extras.require("sklearn", extra="explore", purpose="the HTML report")
    if phrases and texts is None:
        raise ValueError("phrases are found in the texts, which are not given: give texts, too (--texts)")
    known_texts = None if texts is None else texts_of(corpus, texts)
    changes = read_names(names) if isinstance(names, str | os.PathLike) else names or {}
    description = Description.from_posterior(posterior, corpus, threads, most=MAX_DOCUMENTS, seed=seed)
    description = description.named(changes) if isinstance(changes, Mapping) else with_names(description, changes)
    if known_texts is not None and description.drawn is not None:
        known_texts = [known_texts[number] for number in description.drawn]
    if phrases and known_texts is not None:
        description = replace(description, phrases=phrases_of(known_texts, corpus.vocabulary))
    tables = tables_of(description, seed)
    with work("HTML report"):
        markdown = summary(description, tables, title)
        files = html_report.build(description, tables, title, markdown, known_texts, in_one_file)
    return Report({**files, "summary.md": markdown}, tables)


def describe(
    posterior: Posterior,
    corpus: Corpus,
    folder: str | os.PathLike[str],
    *settings: Any,
    progress: bool | None = None,
    forms: Sequence[str] = (),
    **more: Any,
) -> None:
    """Write the tables as CSV, the HTML report as ``index.html`` and a short summary as ``summary.md``.

    ``forms`` is as in :meth:`Report.save`, and ``progress`` as in :meth:`mc2core.Posterior.predict_proba`. The other
    arguments and errors are those of :func:`report`. An existing report in the folder is replaced. Raises ValueError if
    the folder contains other files.
    """
    storage.refuse_foreign(folder, DESCRIBED_FILES, _MARKER)
    with showing(progress):
        report(posterior, corpus, *settings, **more).save(folder, forms)
