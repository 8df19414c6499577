"""Reading of citations in the XML of PubMed (baseline, update files, E-utilities and exports)."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mc2core.base import xmlstream
from mc2core.base.xmlstream import DamagedInput

ROOT = "PubmedArticleSet"
_CITATION = "PubmedArticle/MedlineCitation/"
_ARTICLE = _CITATION + "Article/"
_REFERENCE = "PubmedArticle/PubmedData/ReferenceList/Reference"
_NAMES = {
    "PubmedArticle": "PubmedArticle",
    "PubmedBookArticle": "PubmedBookArticle",
    "DeleteCitation": "DeleteCitation",
    "DeleteCitation/PMID": "deleted",
    _CITATION + "PMID": "PMID",
    _CITATION + "PMID@Version": "version",
    _CITATION + "DateRevised/Year": "revised",
    _CITATION + "DateRevised/Month": "revised",
    _CITATION + "DateRevised/Day": "revised",
    _ARTICLE + "Journal/ISSN": "issn",
    _CITATION + "MedlineJournalInfo/ISSNLinking": "issn",
    _ARTICLE + "Journal/JournalIssue/PubDate/Year": "year",
    _ARTICLE + "Journal/JournalIssue/PubDate/MedlineDate": "MedlineDate",
    _ARTICLE + "ArticleDate/Year": "electronic year",
    _ARTICLE + "ArticleTitle": "title",
    _ARTICLE + "Abstract/AbstractText": "abstract",
    _CITATION + "MeshHeadingList/MeshHeading": "heading",
    _CITATION + "MeshHeadingList/MeshHeading/DescriptorName": "descriptor",
    _CITATION + "MeshHeadingList/MeshHeading/DescriptorName@MajorTopicYN": "major",
    _CITATION + "MeshHeadingList/MeshHeading/QualifierName@MajorTopicYN": "major",
}
#: fields of text, dates and MeSH
FIELDS = xmlstream.Fields(_NAMES)
#: the fields of FIELDS, and journal, authors, keywords, DOI and references
BIBLIOGRAPHIC = xmlstream.Fields(
    _NAMES
    | {
        _ARTICLE + "Journal/Title": "journal",
        _ARTICLE + "AuthorList/Author": "author",
        _ARTICLE + "AuthorList/Author/LastName": "last",
        _ARTICLE + "AuthorList/Author/ForeName": "fore",
        _ARTICLE + "AuthorList/Author/CollectiveName": "collective",
        _CITATION + "KeywordList/Keyword": "keyword",
        "PubmedArticle/PubmedData/ArticleIdList/ArticleId@IdType": "type of id",
        "PubmedArticle/PubmedData/ArticleIdList/ArticleId": "id",
        _REFERENCE: "reference",
        _REFERENCE + "/Citation": "cited",
        _REFERENCE + "/ArticleIdList/ArticleId@IdType": "type of cited id",
        _REFERENCE + "/ArticleIdList/ArticleId": "cited id",
    }
)
_RECORDS = ("PubmedArticle", "PubmedBookArticle", "DeleteCitation")
_YEAR = re.compile(rb"(?<![0-9])(1[5-9][0-9]{2}|20[0-9]{2})(?![0-9])")
_DATE = re.compile(rb"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_NUMBER = re.compile(rb"[0-9]{1,9}")


class Citation(NamedTuple):
    """A citation.

    ``version`` increases with the version of the record and with the date of its revision. ``mesh_major`` has the
    descriptors that are a major topic, by their own mark or by the mark of a qualifier. ``found`` has the texts of all
    fields by name.
    """

    pmid: int
    version: int
    title: bytes
    abstract: bytes
    year: int | None
    mesh: list[str]
    mesh_major: list[str]
    has_mesh: bool
    found: Mapping[str, Sequence[bytes]]


def citations(
    path: str | os.PathLike[str], fields: xmlstream.Fields = FIELDS
) -> Iterator[tuple[str, Citation | list[int]]]:
    """Yield the name and the citation of each record of a file.

    For DeleteCitation, the second value is the list of withdrawn PMIDs, and for books an empty list. Raises
    DamagedInput, with the file, if the file is damaged.
    """
    path, number = Path(path), 0
    for record, values in xmlstream.records(path, ROOT, fields, _RECORDS):
        if record == "PubmedArticle":
            number += 1
            yield record, _citation(path, values, number)
        else:
            yield record, [_integer(path, "PMID", pmid) for name, pmid in values if name == "deleted"]


def _citation(path: Path, values: Sequence[tuple[str, bytes]], number: int) -> Citation:
    fields: dict[str, list[bytes]] = {}
    mesh: list[bytes] = []
    major: list[bytes] = []
    descriptor, is_major, has_mesh = b"", False, False
    for name, value in values:
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
        elif name == "author":
            groups = [b"{%b}" % group for group in fields.pop("collective", ())]
            fields.setdefault(name, []).append(b", ".join([*fields.pop("last", groups), *fields.pop("fore", ())]))
        elif name == "reference":
            ids = dict(zip(fields.pop("type of cited id", ()), fields.pop("cited id", ()), strict=False))
            identifiers = [label + ids[kind] for kind, label in ((b"pubmed", b"PMID:"), (b"doi", b"")) if kind in ids]
            fields.setdefault(name, []).append([*identifiers, *fields.pop("cited", ()), b""][0])
        else:
            fields.setdefault(name, []).append(value)
    if "PMID" not in fields:
        raise DamagedInput(f"{path}: citation {number} has no PMID")
    key = _integer(path, "PMID", fields["PMID"][0])
    return Citation(
        key,
        _integer(path, f"PMID {key}: version", fields.get("version", [b"1"])[0]) * 10**8 + _revision(fields),
        fields.get("title", [b""])[0],
        b" ".join(fields.get("abstract", ())).strip(),
        publication_year(fields),
        list(map(_plain, mesh)),
        list(map(_plain, major)),
        has_mesh,
        fields,
    )


def publication_year(fields: Mapping[str, Sequence[bytes]]) -> int | None:
    """Return the year of publication, or None if it is not known.

    The year is taken from PubDate, else from the first year in MedlineDate ("1998 Dec-1999 Jan"), else from
    ArticleDate.
    """
    for name in ("year", "MedlineDate", "electronic year"):
        if name in fields and (match := _YEAR.search(fields[name][0])):
            return int(match[1])
    return None


@functools.lru_cache(maxsize=100_000)
def _plain(name: bytes) -> str:
    """Return the name of a heading on one line. Results are cached, because names recur."""
    return " ".join(name.decode().split())


def _revision(fields: Mapping[str, Sequence[bytes]]) -> int:
    """Return the date of the last revision as yyyymmdd; 0 if it is missing or invalid."""
    match = _DATE.fullmatch(b"-".join(part.strip() for part in fields.get("revised", ())))
    if match is None:
        return 0
    year, month, day = map(int, match.groups())
    return year * 10_000 + month * 100 + day % 100


def _integer(path: Path, field: str, text: bytes) -> int:
    if not _NUMBER.fullmatch(text.strip()):
        raise DamagedInput(
            f"{path}: {field} {text.decode('utf-8', 'replace')[:40]!r} is not a whole number of up to nine digits"
        )
    return int(text)
