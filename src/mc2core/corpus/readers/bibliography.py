"""Reading of bibliographies: exports of reference managers and of literature databases.

The formats are RIS, BibTeX, PubMed (XML and MEDLINE), Web of Science (tagged and tab-delimited), JSON Lines of works as
in OpenAlex, and CSV with a title, authors and an abstract, as exported by Scopus and Zotero.
"""

from __future__ import annotations

import hashlib
import html
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mc2core.base.checks import counted, shown
from mc2core.base.faults import Fault
from mc2core.base.records import csv_rows, delimiter_of, find_columns, json_lines, lines_of, reporting_damage
from mc2core.corpus.readers import pubmed
from mc2core.corpus.readers.authors import author_of

#: (place in the file, values of a work by field)
_Record = tuple[Any, dict[str, Any]]

#: the formats, for messages
FORMATS = (
    "these are read: RIS (.ris), BibTeX (.bib), PubMed (.xml, .nbib), Web of Science (.txt), OpenAlex (.jsonl) and CSV "
    "with a title, authors and an abstract (.csv)"
)
#: column of the words: title and abstract
TEXT = "text"
#: context that is made from each column, in the order of a datasheet
CONTEXTS = {
    "year": "year:number",
    "authors": "author=authors:bag",
    "journal": "journal:bag",
    "keywords": "keyword=keywords:bag",
    "mesh": "mesh:bag",
    "references": "reference=references:bag",
}
_COLUMNS = ("id", TEXT, "title", "abstract", "doi", "pmid", *CONTEXTS)
_LISTS = ("authors", "keywords", "mesh", "references")
#: smallest number of documents with a value of a context; rarer values are left out, because they connect no documents
LEAST_DOCUMENTS = 2

# tags or headers of each field; the first tag with a value is used
_RIS = {
    "title": ("TI", "T1", "CT", "BT"), "abstract": ("AB", "N2"), "year": ("PY", "Y1", "DA"), "authors": ("AU", "A1"),
    "journal": ("JF", "JO", "T2", "JA", "J2"), "keywords": ("KW",), "doi": ("DO",), "key": ("ID", "AN"),
}  # fmt: skip
_MEDLINE = {
    "title": ("TI", "BTI"), "abstract": ("AB",), "year": ("DP", "DEP"), "authors": ("FAU", "AU"),
    "journal": ("JT", "TA"), "keywords": ("OT",), "mesh": ("MH",), "doi": ("LID", "AID"), "pmid": ("PMID",),
}  # fmt: skip
_WEB_OF_SCIENCE = {
    "title": ("TI",), "abstract": ("AB",), "year": ("PY", "EA"), "authors": ("AF", "AU"), "journal": ("SO",),
    "keywords": ("DE", "ID"), "references": ("CR",), "doi": ("DI",), "pmid": ("PM",), "key": ("UT",),
}  # fmt: skip
_BIBTEX = {
    "title": ("title",), "abstract": ("abstract",), "year": ("year", "date"), "authors": ("author",),
    "journal": ("journal", "journaltitle", "booktitle"), "keywords": ("author_keywords", "keywords"),
    "references": ("references", "cited-references"), "doi": ("doi",), "pmid": ("pmid",),
}  # fmt: skip
_TABLE = {
    "title": ("Title", "title", "Article Title"), "abstract": ("Abstract", "abstract", "Abstract Note"),
    "year": ("Year", "year", "Publication Year"), "authors": ("Authors", "authors", "Author"),
    "journal": ("Source title", "Publication Title", "Journal", "journal", "Source Title", "venue"),
    "keywords": ("Author Keywords", "Index Keywords", "Keywords", "Manual Tags", "keywords"), "mesh": ("mesh", "MeSH"),
    "references": ("References", "Cited References"), "doi": ("DOI", "doi"), "pmid": ("PubMed ID", "Pubmed Id", "pmid"),
    "key": ("EID", "Key", "id"),
}  # fmt: skip

_YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)")
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_AFTER_INITIAL = re.compile(r"(?<=\.),\s*")


@dataclass(frozen=True)
class Works:
    """The works of a bibliography, without duplicates.

    rows : place in the file and values by column (``columns``) of each work.
    counts : counts for a datasheet, such as the number of duplicates.
    """

    rows: list[_Record]
    counts: dict[str, int]

    @property
    def columns(self) -> list[str]:
        """Columns that have a value in at least one work."""
        return [name for name in _COLUMNS if name == TEXT or any(row.get(name) for _, row in self.rows)]

    def settings(self) -> dict[str, Any]:
        """Return the settings of an import of all columns; other contexts than the year need a value in two works."""
        largest = {name: max(self._works_of(name).values(), default=0) for name in CONTEXTS}
        least = {name: 1 if name == "year" else LEAST_DOCUMENTS for name in CONTEXTS}
        used = [name for name in CONTEXTS if largest[name] >= least[name]]
        rare = [CONTEXTS[name].partition("=")[0] for name in used if name in _LISTS and name != "mesh"]
        return {
            "text": TEXT,
            "id": "id",
            "keep": ["title"],
            "contexts": [CONTEXTS[name] for name in used],
            **({"rare": [f"{name}={LEAST_DOCUMENTS}" for name in rare]} if rare else {}),
        }

    def _works_of(self, name: str) -> Counter[Any]:
        """Return the number of works with each value of a column."""
        cells = (row.get(name) for _, row in self.rows)
        return Counter(one for cell in cells if cell for one in (set(cell) if isinstance(cell, list) else {cell}))

    def cells(self, path: Path, columns: Sequence[str]) -> Iterator[tuple[Any, list[Any]]]:
        """Yield the place and the values of ``columns`` of each work. Raises ValueError if a column does not exist."""
        find_columns(path, self.columns, columns)
        for place, row in self.rows:
            yield place, [row.get(name) for name in columns]


def messages(counts: Mapping[str, int]) -> list[str]:
    """Return sentences on a bibliography from the ``counts`` of :class:`Works`."""
    n = Counter(counts)
    notes = [f"{counted(n['records'], 'records')}; the text of a document is its title and abstract"]
    if n["same_id"] or n["same_title"]:
        notes.append(
            f"duplicates left out: {n['same_id']:,} with the DOI or PMID of an earlier record, {n['same_title']:,} "
            "with the same title, year and first author; their values fill gaps of the earlier record"
        )
    if n["books"]:
        notes.append(f"books left out: {n['books']:,} (PubMed gives them other fields)")
    if n["without_abstract"]:
        notes.append(f"{counted(n['without_abstract'], 'documents')} without an abstract: only the title is the text")
    if n["forms"]:
        notes.append(
            f"authors as 'Surname, I.': {counted(n['forms'], 'forms')} of names became {n['authors']:,} "
            f"({n['forms'] - n['authors']:,} merged)"
        )
    return notes


def format_of(path: Path) -> str | None:
    """Return the format of a bibliography by the suffix of its name or by its first line; None for other files."""
    if path.is_dir():
        return None
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    ending = name.suffix.lower()
    if ending in (".ris", ".bib", ".nbib", ".xml"):
        return ending
    if ending not in (".txt", ".csv", ".tsv", ".jsonl", ".ndjson") or not path.is_file():
        return None
    if ending == ".txt":
        first = next((line for _, line in lines_of(path) if line.strip()), "")
        marks = {"FN ": ".wos", "PT ": ".wos", "PT\t": ".wos.tsv", "PMID- ": ".nbib", "TY  - ": ".ris"}
        return next((form for mark, form in marks.items() if first.startswith(mark)), None)
    if ending in (".csv", ".tsv"):
        header = next(csv_rows(path, delimiter_of(path)), (0, []))[1]
        matches = [any(one in header for one in _TABLE[field]) for field in ("title", "authors", "abstract")]
        return ".csv" if all(matches) else None
    first_record = next((record for _, record in json_lines(path)), None)
    if not isinstance(first_record, dict):
        return None
    is_openalex = {"authorships", "abstract_inverted_index"} & set(first_record)
    return ".jsonl" if is_openalex or {"title", "abstract", "authors"} <= set(first_record) else None


def read(path: Path) -> Works:
    """Read a bibliography in a format of :func:`format_of`.

    Records with the same DOI or PMID are one work. Records with the same title are one work unless they differ in DOI,
    PMID, year or first author. The first record of a work is kept, and later records fill its gaps.

    Raises
    ------
    ValueError
        If the file is damaged, truncated or empty. The message gives the file name and, if known, the line number.
    MissingPackage
        If the file is BibTeX and bibtexparser is not installed.
    """
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    form = format_of(path)
    assert form is not None
    counts: Counter[str] = Counter()
    forms: set[str] = set()
    works: list[_Record] = []
    by_id: dict[tuple[str, str], dict[str, Any]] = {}
    by_title: dict[str, list[dict[str, Any]]] = {}
    with reporting_damage(path):
        for place, record in _READERS[form](path):
            counts["records"] += 1
            if not record:
                counts["books"] += 1
                continue
            work, names = _work(record)
            forms.update(names)
            ids = [(kind, work[kind]) for kind in ("doi", "pmid") if work[kind]]
            title = re.sub(r"[\W_]+", " ", work["title"]).strip().casefold()
            duplicate = next((by_id[one] for one in ids if one in by_id), None)
            by = "same_id"
            if duplicate is None and title:
                duplicate = next((one for one in by_title.get(title, ()) if not _differ(one, work)), None)
                by = "same_title"
            if duplicate is None:
                duplicate = work
                works.append((place, work))
                by_title.setdefault(title, []).append(work)
            else:
                counts[by] += 1
                duplicate.update({name: value for name, value in work.items() if value and not duplicate[name]})
            by_id.update(dict.fromkeys(ids, duplicate))
    if not works:
        raise ValueError(f"{path} has no record")
    _name(works)
    counts["without_abstract"] = sum(not work["abstract"] for _, work in works)
    counts["forms"] = len(forms)
    counts["authors"] = len({author_of(form) for form in forms})
    return Works(works, dict(counts))


def _work(record: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a record by column, and the names of its authors as in the file."""
    text = {name: _plain(record.get(name)) for name in ("title", "abstract", "journal")}
    names = [plain for one in _split(record.get("authors")) if (plain := _plain(one).strip(" ,;"))]
    lists = {
        "authors": [author_of(one) for one in names],
        "keywords": [_plain(one).casefold() for cell in _split(record.get("keywords")) for one in cell.split(";")],
        "mesh": [_plain(one) for one in _split(record.get("mesh"))],
        "references": [_read_reference(_plain(one)) for one in _split(record.get("references"))],
    }
    year, doi = (pattern.search(_plain(record.get(name))) for name, pattern in (("year", _YEAR), ("doi", _DOI)))
    pmid = re.search(r"\d+", _plain(record.get("pmid")))
    return {
        **text,
        **{name: list(dict.fromkeys(filter(None, values))) for name, values in lists.items()},
        "year": int(year[0]) if year else None,
        "doi": doi[0].rstrip(".,;]").lower() if doi else "",
        "pmid": pmid[0] if pmid else "",
        "key": _plain(record.get("key")),
    }, names


def _plain(value: Any) -> str:
    """Return a value on one line, without HTML tags and entities; several values are joined by spaces."""
    joined = " ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)
    if "<" in joined or "&" in joined:
        joined = html.unescape(re.sub(r"</?[A-Za-z][^<>]*>", " ", joined))
    return " ".join(joined.split())


def _split(value: Any) -> list[str]:
    """Return the names in a cell, which is a list or a text with semicolons between names."""
    if isinstance(value, list | tuple):
        return [str(one) for one in value if one]
    return [one.strip() for one in str(value or "").split(";")]


def _read_reference(reference: str) -> str:
    """Return the DOI of a reference if it has one, otherwise the whole reference."""
    doi = _DOI.search(reference)
    return doi[0].rstrip(".,;]").lower() if doi else reference


def _differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two records with the same title have different DOIs, PMIDs, years or first authors."""
    pairs = [(one[name], other[name]) for name in ("doi", "pmid", "year")]
    pairs.append((one["authors"][:1], other["authors"][:1]))
    return any(a and b and a != b for a, b in pairs)


def _name(works: Sequence[_Record]) -> None:
    """Set the text and the id of each work. The id is its DOI, else PMID, else key in the file, else a digest."""
    used: Counter[str] = Counter()
    for _, work in works:
        work[TEXT] = f"{work['title']}\n{work['abstract']}".strip()
        digest = hashlib.sha256(f"{work['title']}|{work['year']}|{work['authors'][:1]}".encode()).hexdigest()[:12]
        name = work["doi"] or (f"PMID:{work['pmid']}" if work["pmid"] else work["key"]) or f"record {digest}"
        used[name] += 1
        work["id"] = name if used[name] == 1 else f"{name} ({used[name]})"


def _pick_fields(record: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the fields of a record. The value of a field is taken from the first of its ``names`` with a value."""
    return {field: next((record[one] for one in tags if record.get(one)), None) for field, tags in names.items()}


@dataclass(frozen=True)
class _Tagged:
    """A format with a tag before each value.

    The tag ``start`` begins a record, ``end`` ends a record, and ``last`` ends the file. MEDLINE has no ``end``: the
    next record ends a record.
    """

    name: str
    tag: re.Pattern[str]
    start: str
    end: str
    fields: Mapping[str, Sequence[str]]
    head: tuple[str, ...] = ()
    last: str = ""

    def read(self, path: Path) -> Iterator[_Record]:
        record: dict[str, list[str]] | None = None
        number, began, tag, has_last = 0, 0, "", False
        for number, line in lines_of(path):
            match = self.tag.match(line)
            if not line.strip():
                continue
            if match is None and record is not None:
                if self.end:  # in EndNote and Web of Science, each line is one value of a list
                    record[tag].append(line.strip())
                else:
                    record[tag][-1] += " " + line.strip()
                continue
            tag = match[1].strip() if match else ""
            if tag == self.start:
                if record is not None and self.end:
                    raise ValueError(f"{path}, line {began}: the record that begins here has no end ({self.end})")
                if record is not None:
                    yield began, self._values(record)
                record, began = {}, number
            elif tag == self.end and record is not None and self.end:
                yield began, self._values(record)
                record = None
                continue
            elif record is None:
                if tag and tag == self.last:
                    has_last = True
                elif tag not in self.head:
                    raise ValueError(
                        f"{path}, line {number}: found {shown(line.strip())}; a record of {self.name} begins with "
                        f"{self.start}"
                    )
                continue
            assert match is not None
            record.setdefault(tag, []).append(match[2].strip())
        if record is not None and self.end:
            raise ValueError(f"{path} is cut off: the record that begins in line {began} has no end ({self.end})")
        if record is not None and "SO" not in record:  # the last of its fields
            raise ValueError(f"{path} is cut off in the record that begins in line {began}: it has no field SO")
        if record is not None:
            yield began, self._values(record)
        elif self.last and number and not has_last:
            raise ValueError(f"{path} is cut off after line {number}: its last line ({self.last}) is missing")

    def _values(self, record: Mapping[str, list[str]]) -> dict[str, Any]:
        values = _pick_fields(record, self.fields)
        if self.name == "Web of Science":  # its keywords are one value, over several lines
            values["keywords"] = " ".join(values["keywords"] or ())
        if self.name == "MEDLINE":
            values["doi"] = next((one for name in ("LID", "AID") for one in record.get(name, ()) if "[doi]" in one), "")
            values["mesh"] = [one.partition("/")[0].replace("*", "") for one in values["mesh"] or ()]
            groups = [f"{{{one}}}" for one in record.get("CN", ())]
            values["authors"] = [*(values["authors"] or ()), *groups]
        return values


def _wos_table(path: Path) -> Iterator[_Record]:
    lines = ((number, line.rstrip("\r\n").split("\t")) for number, line in lines_of(path) if line.strip())
    _, header = next(lines)
    for number, fields in lines:
        if len(fields) < len(header) - 1:  # the header may end with a tab
            raise ValueError(
                f"{path}, line {number} has {counted(len(fields), 'fields')}, but the header has {len(header)}"
            )
        yield number, _pick_fields(dict(zip(header, fields, strict=False)), _WEB_OF_SCIENCE)


def _table(path: Path) -> Iterator[_Record]:
    rows = csv_rows(path, delimiter_of(path))
    header = [name.strip() for name in next(rows)[1]]
    for line, row in rows:
        record = _pick_fields(dict(zip(header, row, strict=True)), _TABLE)
        if record["authors"] and ";" not in record["authors"]:  # older files of Scopus: "Blei D.M., Ng A.Y."
            record["authors"] = _AFTER_INITIAL.split(record["authors"])
        yield line, record


def _json(path: Path) -> Iterator[_Record]:
    """Yield records in the format of OpenAlex, or flat records with the column names of tables."""
    for number, record in json_lines(path):
        if isinstance(record, Fault):
            raise ValueError(f"{path}, line {number} {record.message}")
        cells = _pick_fields(record, _TABLE)
        inverted = record.get("abstract_inverted_index") or {}
        places = sorted((place, word) for word, all_of in inverted.items() for place in all_of)
        source = (record.get("primary_location") or record.get("host_venue") or {}) or {}
        source = source.get("source") or source
        ids = record.get("ids") or {}
        authors = [one.get("author") or one for one in record.get("authorships") or ()]
        cells |= {
            "title": cells["title"] or record.get("display_name"),
            "abstract": cells["abstract"] or " ".join(word for _, word in places),
            "year": cells["year"] or record.get("publication_year"),
            "authors": cells["authors"] or authors,
            "journal": cells["journal"] or source.get("display_name"),
            "references": cells["references"] or record.get("referenced_works"),
            "pmid": cells["pmid"] or str(ids.get("pmid") or "").rpartition("/")[2],
        }
        for name in _LISTS:
            cells[name] = [_label(one) for one in cells[name] or ()] if isinstance(cells[name], list) else cells[name]
        yield number, cells | {"key": _label(cells["key"] or "")}


def _label(value: Any) -> str:
    """Return the name of an entity of OpenAlex, or its identifier if it is given as an address."""
    if isinstance(value, dict):
        names = ("display_name", "descriptor_name", "name", "keyword")
        return str(next((value[name] for name in names if value.get(name)), ""))
    return str(value).removeprefix("https://openalex.org/")


def _pubmed_xml(path: Path) -> Iterator[_Record]:
    for number, (kind, citation) in enumerate(pubmed.citations(path, pubmed.BIBLIOGRAPHIC), 1):
        if not isinstance(citation, pubmed.Citation):
            if kind == "PubmedBookArticle":
                yield f"record {number}", {}
            continue
        of = {name: [value.decode() for value in values] for name, values in citation.found.items()}
        ids = dict(zip(of.get("type of id", ()), of.get("id", ()), strict=False))
        yield (
            f"record {number}",
            {
                "title": citation.title.decode(),
                "abstract": citation.abstract.decode(),
                "year": citation.year,
                "authors": of.get("author"),
                "journal": of.get("journal"),
                "keywords": of.get("keyword"),
                "mesh": citation.mesh,
                "references": of.get("reference"),
                "doi": ids.get("doi"),
                "pmid": citation.pmid,
            },
        )


def _bibtex(path: Path) -> Iterator[_Record]:
    from bibtexparser.entrypoint import parse_string
    from bibtexparser.model import DuplicateBlockKeyBlock, Entry
    from pylatexenc.latex2text import LatexNodes2Text

    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)  # errors are raised below
    decode = LatexNodes2Text(math_mode="verbatim").latex_to_text
    library = parse_string("".join(line for _, line in lines_of(path)))
    entries: list[Any] = list(library.entries)
    for block in library.failed_blocks:
        if isinstance(block, DuplicateBlockKeyBlock):
            entries.append(block.ignore_error_block)
            continue
        why = " ".join(str(getattr(block.error, "abort_reason", block.error)).split()).rstrip(".")
        raise ValueError(f"{path}, line {(block.start_line or 0) + 1}: this entry is damaged or cut off: {why}")
    for entry in sorted((one for one in entries if isinstance(one, Entry)), key=lambda one: one.start_line or 0):
        values = _pick_fields({field.key.lower(): str(field.value) for field in entry.fields}, _BIBTEX)
        names = [one.strip() for one in re.split(r"\s+and\s+", values["authors"] or "")]
        plain: dict[str, Any] = {name: decode(value) for name, value in values.items() if value}
        if ";" not in plain.get("keywords", ";"):
            plain["keywords"] = plain["keywords"].replace(",", ";")
        plain["authors"] = [f"{{{decode(one)}}}" if re.fullmatch("{.*}", one) else decode(one) for one in names]
        yield (entry.start_line or 0) + 1, plain | {"key": entry.key}


_READERS: dict[str, Callable[[Path], Iterator[_Record]]] = {
    ".ris": _Tagged("RIS", re.compile(r"([A-Z][A-Z0-9])  ?- ?(.*)"), "TY", "ER", _RIS).read,
    ".nbib": _Tagged("MEDLINE", re.compile(r"([A-Z]{2,4}) *- (.*)"), "PMID", "", _MEDLINE).read,
    ".wos": _Tagged(
        "Web of Science", re.compile(r"([A-Z][A-Z0-9])(?: (.*)|$)"), "PT", "ER", _WEB_OF_SCIENCE, ("FN", "VR"), "EF"
    ).read,
    ".wos.tsv": _wos_table,
    ".csv": _table,
    ".jsonl": _json,
    ".xml": _pubmed_xml,
    ".bib": _bibtex,
}
