"""PubMed: citations of the baseline, of update files and of E-utilities (the same XML), and PNAS as a part of it.

Baseline and updates: https://ftp.ncbi.nlm.nih.gov/pubmed/baseline/pubmedYYnNNNN.xml.gz, new each year. A document is
title and abstract of a citation; contexts are ``mesh`` (descriptors; ``mesh_major``: those marked as a major topic) and
``year``. Of versions of one PMID the latest wins (by version, then by date of revision, then by file), even if the
latest is not selected; citations listed in ``DeleteCitation`` go.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mc2core import storage
from mc2core.sources import shards, xmlstream
from mc2core.sources.xmlstream import DamagedInput

ROOT = "PubmedArticleSet"
#: Proceedings of the National Academy of Sciences, in print and online
PNAS = ("0027-8424", "1091-6490")
#: NLM's check tags: given by routine to nearly every citation they fit, so they tell little of its subject.
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
_RECORDS = ("PubmedArticle", "PubmedBookArticle", "DeleteCitation")
_UNREAD = ("PubmedData", "AuthorList")  # half of all tags
_YEAR = re.compile(r"(?<![0-9])(1[5-9][0-9]{2}|20[0-9]{2})(?![0-9])")
_DATE = re.compile("([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_NUMBER = re.compile("[0-9]{1,9}")


@dataclass(frozen=True)
class Selection:
    """Which citations become documents.

    first_year, last_year : of publication, both included; None: no bound, and citations without a year count.
    issn : journals; empty: all.
    abstract, mesh : whether a citation without one is dropped.
    """

    first_year: int | None = None
    last_year: int | None = None
    issn: tuple[str, ...] = ()
    abstract: bool = True
    mesh: bool = False


def parse_citations(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    selection: Selection,
    *,
    allow_truncated: bool = False,
) -> dict[str, Any]:
    """Turn one file of citations into a shard; returns the content of ``shard.json``.

    ``counts`` there says how many citations were read and why each of the others was dropped.

    Parameters
    ----------
    allow_truncated : accept a file that is cut off or damaged: what comes before is kept and ``warnings`` says so.

    Raises
    ------
    ValueError
        One sentence naming the file; the shard that was there stays as it was.
    """
    path = Path(path)
    counts: Counter[str] = Counter()
    warnings: list[str] = []
    deleted: list[int] = []
    with storage.replacing_folder(folder) as new:
        writer = shards.ShardWriter(new, path.name, 0, names=["mesh", "mesh_major"], numbers=["year"])
        try:
            for element in xmlstream.records(path, ROOT, _RECORDS, skip=_UNREAD):
                if element.tag == "PubmedArticle":
                    _add_citation(path, element, selection, writer, counts)
                elif element.tag == "DeleteCitation":
                    deleted.extend(_whole(path, "PMID", pmid.text) for pmid in element.iterfind("PMID"))
                else:
                    counts["book"] += 1
        except DamagedInput as error:
            if not (error.truncated and allow_truncated and counts["citations"]):
                raise
            warnings.append(str(error))
        counts["deletions"] = len(deleted)
        return writer.finish(counts=dict(sorted(counts.items())), warnings=warnings, deleted=sorted(set(deleted)))


def deleted_keys(folders: Iterable[str | os.PathLike[str]]) -> set[int]:
    """The PMIDs that the files of these shards withdraw."""
    return {key for folder in folders for key in shards.read_about(folder)["deleted"]}


def _add_citation(
    path: Path, article: Any, selection: Selection, writer: shards.ShardWriter, counts: Counter[str]
) -> None:
    citation = article.find("MedlineCitation")
    pmid = None if citation is None else citation.find("PMID")
    if citation is None or pmid is None:
        raise DamagedInput(f"{path}: citation {counts['citations'] + 1} has no PMID")
    counts["citations"] += 1
    key = _whole(path, "PMID", pmid.text)
    version = _whole(path, f"PMID {key}: version", pmid.get("Version", "1")) * 10**8 + _revised(citation)
    parts = citation.find("Article")
    title, abstract, year = "", "", None
    if parts is not None:
        title = _text(parts.find("ArticleTitle"))
        abstract = " ".join(_text(part) for part in parts.iterfind("Abstract/AbstractText")).strip()
        year = publication_year(parts)
    headings = citation.find("MeshHeadingList")
    has_mesh = headings is not None and len(headings) > 0
    reason = _unwanted(selection, citation, parts, title, abstract, year, has_mesh)
    if reason is not None:
        counts[reason] += 1
        writer.drop(key, version, reason)
        return
    counts["documents"] += 1
    text = f"{title}\n{abstract}".encode("utf-8", "replace")
    mesh: list[str] = []
    major: list[str] = []
    for heading in headings if has_mesh else ():
        name = " ".join((heading.findtext("DescriptorName") or "").split())
        if name:
            mesh.append(name)
            # a heading is major by its descriptor or by one of its qualifiers
            if any(part.get("MajorTopicYN") == "Y" for part in heading):
                major.append(name)
    names = {"mesh": mesh, "mesh_major": major}
    numbers = {} if year is None else {"year": float(year)}
    writer.add(shards.Document(key, version, title, text, names, numbers))


def _unwanted(
    selection: Selection, citation: Any, parts: Any, title: str, abstract: str, year: int | None, has_mesh: bool
) -> str | None:
    """Why a citation is dropped; None if it is kept."""
    if selection.issn and not _journals(citation, parts) & set(selection.issn):
        return "other journal"
    if selection.first_year is not None or selection.last_year is not None:
        if year is None:
            return "without year"
        if year < (selection.first_year or year) or year > (selection.last_year or year):
            return "other year"
    if selection.abstract and not abstract:
        return "without abstract"
    if not abstract and not title:
        return "without text"
    if selection.mesh and not has_mesh:
        return "without MeSH"
    return None


def publication_year(article: Any) -> int | None:
    """Year of the issue: of PubDate, else the first in its MedlineDate ("1998 Dec-1999 Jan"), else of ArticleDate."""
    for place in ("Journal/JournalIssue/PubDate/Year", "Journal/JournalIssue/PubDate/MedlineDate", "ArticleDate/Year"):
        found = _YEAR.search(article.findtext(place) or "")
        if found:
            return int(found[1])
    return None


def _text(element: Any) -> str:
    """All text of an element, mark-up such as <i> and <sup> left out."""
    if element is None:
        return ""
    return "".join(element.itertext()) if len(element) else element.text or ""


def _journals(citation: Any, parts: Any) -> set[str]:
    """Every ISSN of the journal, in print, online and linking."""
    places = [] if parts is None else [one.text for one in parts.iterfind("Journal/ISSN")]
    return {issn.strip() for issn in [*places, citation.findtext("MedlineJournalInfo/ISSNLinking")] if issn}


def _revised(citation: Any) -> int:
    """Date of the last revision as yyyymmdd; 0 where it is missing or no date."""
    date = citation.find("DateRevised")
    digits = "" if date is None else "-".join((part.text or "").strip() for part in date)
    match = _DATE.fullmatch(digits)
    if match is None:
        return 0
    year, month, day = map(int, match.groups())
    return year * 10_000 + month * 100 + day % 100


def _whole(path: Path, what: str, found: str | None) -> int:
    if found is None or not _NUMBER.fullmatch(found.strip()):
        raise DamagedInput(f"{path}: {what} {found!r} is not a whole number of up to nine digits")
    return int(found)


def drop_names(gathered: shards.Gathered, context: str, names: Collection[str]) -> None:
    """Take the given names (such as CHECK_TAGS) out of a context, in place."""
    matrix, known = gathered.members[context]
    kept = np.array([column for column, name in enumerate(known) if name not in names], dtype=np.int64)
    gathered.members[context] = matrix[:, kept], [known[column] for column in kept]
