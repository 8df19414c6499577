"""PubMed: citations of the baseline, of update files and of E-utilities (the same XML), and PNAS as a part of it.

Baseline and updates: https://ftp.ncbi.nlm.nih.gov/pubmed/baseline/pubmedYYnNNNN.xml.gz, new each year. A document is
title and abstract of a citation; contexts are ``mesh`` (descriptors; ``mesh_major``: those marked as a major topic) and
``year``. Of versions of one PMID the latest wins (by version, then by date of revision, then by file), even if the
latest is not selected; citations listed in ``DeleteCitation`` go.
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mc2core.base import storage
from mc2papers.datasets.dumps import shards
from mc2papers.datasets.formats import xmlstream
from mc2papers.datasets.formats.xmlstream import DamagedInput

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
_FIELDS = xmlstream.Fields(
    {
        "PubmedArticle": "PubmedArticle",
        "PubmedBookArticle": "PubmedBookArticle",
        "DeleteCitation": "DeleteCitation",
        "DeleteCitation/PMID": "deleted",
        "PubmedArticle/MedlineCitation/PMID": "PMID",
        "PubmedArticle/MedlineCitation/PMID@Version": "version",
        "PubmedArticle/MedlineCitation/DateRevised/Year": "revised",
        "PubmedArticle/MedlineCitation/DateRevised/Month": "revised",
        "PubmedArticle/MedlineCitation/DateRevised/Day": "revised",
        "PubmedArticle/MedlineCitation/Article/Journal/ISSN": "issn",
        "PubmedArticle/MedlineCitation/MedlineJournalInfo/ISSNLinking": "issn",
        "PubmedArticle/MedlineCitation/Article/Journal/JournalIssue/PubDate/Year": "year",
        "PubmedArticle/MedlineCitation/Article/Journal/JournalIssue/PubDate/MedlineDate": "MedlineDate",
        "PubmedArticle/MedlineCitation/Article/ArticleDate/Year": "electronic year",
        "PubmedArticle/MedlineCitation/Article/ArticleTitle": "title",
        "PubmedArticle/MedlineCitation/Article/Abstract/AbstractText": "abstract",
        "PubmedArticle/MedlineCitation/MeshHeadingList/MeshHeading": "heading",
        "PubmedArticle/MedlineCitation/MeshHeadingList/MeshHeading/DescriptorName": "descriptor",
        "PubmedArticle/MedlineCitation/MeshHeadingList/MeshHeading/DescriptorName@MajorTopicYN": "major",
        "PubmedArticle/MedlineCitation/MeshHeadingList/MeshHeading/QualifierName@MajorTopicYN": "major",
    }
)
_RECORDS = ("PubmedArticle", "PubmedBookArticle", "DeleteCitation")
_YEAR = re.compile(rb"(?<![0-9])(1[5-9][0-9]{2}|20[0-9]{2})(?![0-9])")
_DATE = re.compile(rb"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_NUMBER = re.compile(rb"[0-9]{1,9}")


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
            for record, fields in xmlstream.records(path, ROOT, _FIELDS, _RECORDS):
                if record == "PubmedArticle":
                    _add_citation(path, fields, selection, writer, counts)
                elif record == "DeleteCitation":
                    deleted.extend(_whole(path, "PMID", pmid) for _, pmid in fields)
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
    path: Path,
    fields: Sequence[tuple[str, bytes]],
    selection: Selection,
    writer: shards.ShardWriter,
    counts: Counter[str],
) -> None:
    found: dict[str, list[bytes]] = {}
    mesh: list[bytes] = []
    major: list[bytes] = []
    descriptor, is_major, has_mesh = b"", False, False
    for name, value in fields:
        if name == "major":
            is_major |= value == b"Y"
        elif name == "descriptor":
            descriptor = descriptor or value
        elif name == "heading":
            if descriptor:
                mesh.append(descriptor)
                # a heading is major by its descriptor or by one of its qualifiers
                if is_major:
                    major.append(descriptor)
            descriptor, is_major, has_mesh = b"", False, True
        else:
            found.setdefault(name, []).append(value)
    if "PMID" not in found:
        raise DamagedInput(f"{path}: citation {counts['citations'] + 1} has no PMID")
    counts["citations"] += 1
    key = _whole(path, "PMID", found["PMID"][0])
    version = _whole(path, f"PMID {key}: version", found.get("version", [b"1"])[0]) * 10**8 + _revised(found)
    title = found.get("title", [b""])[0]
    abstract = b" ".join(found.get("abstract", ())).strip()
    year = publication_year(found)
    reason = _unwanted(selection, found.get("issn", ()), title, abstract, year, has_mesh)
    if reason is not None:
        counts[reason] += 1
        writer.drop(key, version, reason)
        return
    counts["documents"] += 1
    names = {"mesh": list(map(_plain, mesh)), "mesh_major": list(map(_plain, major))}
    numbers = {} if year is None else {"year": float(year)}
    writer.add(shards.Document(key, version, title.decode(), title + b"\n" + abstract, names, numbers))


def _unwanted(
    selection: Selection,
    issn: Collection[bytes],
    title: bytes,
    abstract: bytes,
    year: int | None,
    has_mesh: bool,
) -> str | None:
    """Why a citation is dropped; None if it is kept."""
    if selection.issn and not {one.strip().decode() for one in issn} & set(selection.issn):
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


def publication_year(fields: Mapping[str, Sequence[bytes]]) -> int | None:
    """Year of the issue: of PubDate, else the first in its MedlineDate ("1998 Dec-1999 Jan"), else of ArticleDate."""
    for name in ("year", "MedlineDate", "electronic year"):
        if name in fields and (match := _YEAR.search(fields[name][0])):
            return int(match[1])
    return None


@functools.lru_cache(maxsize=100_000)
def _plain(name: bytes) -> str:
    """The name of a heading on one line; the same few thousand come again and again."""
    return " ".join(name.decode().split())


def _revised(fields: Mapping[str, Sequence[bytes]]) -> int:
    """Date of the last revision as yyyymmdd; 0 where it is missing or no date."""
    match = _DATE.fullmatch(b"-".join(part.strip() for part in fields.get("revised", ())))
    if match is None:
        return 0
    year, month, day = map(int, match.groups())
    return year * 10_000 + month * 100 + day % 100


def _whole(path: Path, what: str, found: bytes) -> int:
    if not _NUMBER.fullmatch(found.strip()):
        raise DamagedInput(
            f"{path}: {what} {found.decode('utf-8', 'replace')[:40]!r} is not a whole number of up to nine digits"
        )
    return int(found)


def drop_names(gathered: shards.Gathered, context: str, names: Collection[str]) -> None:
    """Take the given names (such as CHECK_TAGS) out of a context, in place."""
    matrix, known = gathered.members[context]
    kept = np.array([column for column, name in enumerate(known) if name not in names], dtype=np.int64)
    gathered.members[context] = matrix[:, kept], [known[column] for column in kept]
