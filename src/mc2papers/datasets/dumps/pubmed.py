"""Parse citations of PubMed: the baseline, update files, and answers of E-utilities, which have the same XML.

The files https://ftp.ncbi.nlm.nih.gov/pubmed/baseline/pubmedYYnNNNN.xml.gz are new each year. A document is the title
and the abstract of a citation. Contexts are ``mesh`` (descriptors), ``mesh_major`` (only descriptors of major topics)
and ``year``. If a PMID has several versions, only the latest counts (by version, then by date of revision, then by
file), even if this version is not selected. Citations in ``DeleteCitation`` are removed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mc2core.base import storage
from mc2core.corpus.readers.pubmed import Citation, citations
from mc2papers.datasets.dumps import shards

#: Proceedings of the National Academy of Sciences, in print and online
PNAS = ("0027-8424", "1091-6490")
#: NLM's check tags. Indexers add them routinely to citations, so they contain little information on the subject.
CHECK_TAGS = frozenset(
    {
        "Humans", "Animals", "Male", "Female", "Pregnancy", "Infant, Newborn", "Infant", "Child, Preschool", "Child",
        "Adolescent", "Young Adult", "Adult", "Middle Aged", "Aged", "Aged, 80 and over", "Cats", "Cattle",
        "Chick Embryo", "Cricetinae", "Dogs", "Guinea Pigs", "Mice", "Rabbits", "Rats", "Comparative Study",
        "In Vitro Techniques", "History, Ancient", "History, Medieval", "History, 15th Century",
        "History, 16th Century", "History, 17th Century", "History, 18th Century", "History, 19th Century",
        "History, 20th Century", "History, 21st Century",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Selection:
    """Rules that select the citations that become documents.

    first_year, last_year : bounds of the year of publication, both included. None means no bound; without bounds,
        citations without a year are kept.
    issn : ISSN of journals; empty for all journals.
    abstract, mesh : whether citations without an abstract, or without MeSH descriptors, are dropped.
    """

    first_year: int | None = None
    last_year: int | None = None
    issn: tuple[str, ...] = ()
    abstract: bool = True
    mesh: bool = False


def parse_citations(
    path: str | os.PathLike[str], folder: str | os.PathLike[str], selection: Selection, *, allow_truncated: bool = False
) -> dict[str, Any]:
    """Convert one file of citations to a shard, and return the content of ``shard.json``.

    Its ``counts`` has the number of citations that were read, and the number that was dropped for each reason.

    Parameters
    ----------
    allow_truncated : whether to accept a truncated or damaged file. The part before the damage is used, and
        ``warnings`` has a warning.

    Raises
    ------
    ValueError
        If the file is invalid; the message names it. An existing shard does not change.
    """
    path = Path(path)
    counts: Counter[str] = Counter()
    deleted: list[int] = []
    with storage.replacing_folder(folder) as new:
        writer = shards.ShardWriter(new, path.name, 0, names=["mesh", "mesh_major"], numbers=["year"])
        with shards.reporting_end(allow_truncated, counts, "citations") as warnings:
            for record, found in citations(path):
                if isinstance(found, Citation):
                    _add_citation(found, selection, writer, counts)
                elif record == "DeleteCitation":
                    deleted.extend(found)
                else:
                    counts["book"] += 1
        counts["deletions"] = len(deleted)
        return writer.finish(counts=dict(sorted(counts.items())), warnings=warnings, deleted=sorted(set(deleted)))


def deleted_keys(folders: Iterable[str | os.PathLike[str]]) -> set[int]:
    """Return the PMIDs that the files of these shards delete."""
    return {key for folder in folders for key in shards.read_about(folder)["deleted"]}


def _add_citation(one: Citation, selection: Selection, writer: shards.ShardWriter, counts: Counter[str]) -> None:
    counts["citations"] += 1
    reason = _unwanted(selection, one)
    if reason is not None:
        counts[reason] += 1
        writer.drop(one.pmid, one.version, reason)
        return
    counts["documents"] += 1
    names = {"mesh": one.mesh, "mesh_major": one.mesh_major}
    numbers = {} if one.year is None else {"year": float(one.year)}
    text = one.title + b"\n" + one.abstract
    writer.add(shards.Document(one.pmid, one.version, one.title.decode(), text, names, numbers))


def _unwanted(selection: Selection, one: Citation) -> str | None:
    """Return the reason why a citation is dropped; None if it is kept."""
    issn = {number.strip().decode() for number in one.found.get("issn", ())}
    if selection.issn and not issn & set(selection.issn):
        return "other journal"
    if selection.first_year is not None or selection.last_year is not None:
        if one.year is None:
            return "without year"
        if one.year < (selection.first_year or one.year) or one.year > (selection.last_year or one.year):
            return "other year"
    if selection.abstract and not one.abstract:
        return "without abstract"
    if not one.abstract and not one.title:
        return "without text"
    if selection.mesh and not one.has_mesh:
        return "without MeSH"
    return None


def drop_names(gathered: shards.Gathered, context: str, names: Collection[str]) -> None:
    """Remove the given names (such as CHECK_TAGS) from a context, in place."""
    matrix, known = gathered.members[context]
    kept = np.array([column for column, name in enumerate(known) if name not in names], dtype=np.int64)
    gathered.members[context] = matrix[:, kept], [known[column] for column in kept]
