"""Parse articles from XML dumps of Wikipedia (pages-articles, every export schema), and first writers from histories.

Dumps: https://dumps.wikimedia.org, ``enwiki-*-pages-articles*.xml*.bz2`` (also multistream) for the text, and
``enwiki-*-stub-meta-history*.xml.gz`` for the first writer of an article. Export schemas 0.1 to 0.11 differ in the
order of elements, in the namespace of the document, and in missing elements of older schemas: ``ns`` (before 0.6; the
prefix of the title is used), ``redirect`` (before 0.4; the text is used) and ``model``.

Articles are pages of namespace 0 that are neither redirects nor disambiguation pages. Contexts are ``category`` (the
categories in the text of the article), ``writer`` (of its first revision) and ``topic`` (the nearest top-level
categories, :mod:`mc2papers.datasets.dumps.categorygraph`).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mc2core.base import storage, xmlstream
from mc2core.base.xmlstream import DamagedInput
from mc2core.compute import streams
from mc2papers.datasets.dumps import shards, wikitext
from mc2papers.datasets.dumps.wikitext import Namespaces

ROOT = "mediawiki"
_PAGE_FIELDS = {
    "page": "page",
    "page/title": "title",
    "page/ns": "ns",
    "page/id": "id",
    "page/redirect": "redirect",
    "page/revision": "revision",
    "page/revision/id": "revision id",
    "page/revision/timestamp": "timestamp",
    "siteinfo": "siteinfo",
    "siteinfo/namespaces/namespace": "namespace",
    "siteinfo/namespaces/namespace@key": "key",
}
_TEXTS = xmlstream.Fields(_PAGE_FIELDS | {"page/revision/model": "model", "page/revision/text": "text"})
_WRITERS = xmlstream.Fields(
    _PAGE_FIELDS | {"page/revision/contributor/username": "username", "page/revision/contributor/ip": "ip"}
)
_REDIRECT = re.compile(rb"\s*#redirect", re.IGNORECASE)
_WHOLE = re.compile(rb"\s*-?[0-9]{1,18}\s*")
# names of templates that mark disambiguation pages; "disambiguation needed" marks only a link in an article
_DISAMBIGUATION = re.compile(
    r"(?:[\w-]+[ _])*disamb(?:ig(?:uation)?)?(?:[ _](?:page|cleanup))?|disambig-\w+|letter-numbercombdisambig|dab"
    r"|(?:hn|geo|math|number|road|roadindex|sch|hosp|mil-unit-)dis",
    re.IGNORECASE,
)
_PREFIXES = {
    "media": -2, "special": -1, "talk": 1, "user": 2, "user talk": 3, "wikipedia": 4, "wikipedia talk": 5, "file": 6,
    "image": 6, "file talk": 7, "image talk": 7, "mediawiki": 8, "mediawiki talk": 9, "template": 10,
    "template talk": 11, "help": 12, "help talk": 13, "category": 14, "category talk": 15, "portal": 100,
    "portal talk": 101,
}  # fmt: skip


class _Site:
    """Namespaces of a wiki by number, read from its dump."""

    def __init__(self, fields: Iterable[tuple[str, bytes]] = ()) -> None:
        self.numbers = dict(_PREFIXES)
        names: dict[int, list[str]] = {}
        key = b""
        for name, value in fields:
            if name == "key":
                key = value
            elif name == "namespace" and value and re.fullmatch(rb"-?[0-9]{1,6}", key):
                names.setdefault(int(key), []).append(value.decode())
                self.numbers[value.decode().lower()] = int(key)
        self.namespaces = Namespaces([*names.get(6, ()), *names.get(-2, ())], names.get(14, ()))

    def namespace(self, title: str) -> int:
        prefix, colon, _ = title.partition(":")
        return self.numbers.get(prefix.strip().lower(), 0) if colon else 0


def parse_pages(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    allow_truncated: bool = False,
    start: int = 0,
    stop: int | None = None,
) -> dict[str, Any]:
    """Convert a dump, or a byte range of a multistream dump, to a shard; return the content of ``shard.json``.

    Its ``counts`` has the number of pages that were read, and the number that was dropped for each reason.
    ``category_pages.npz`` has the ids and titles of category pages for :mod:`mc2papers.datasets.dumps.categorygraph`.

    Parameters
    ----------
    allow_truncated : whether to accept a truncated or damaged dump. The part before the damage is used, and
        ``warnings`` has a warning.
    start, stop : a range of :func:`multistream_ranges`; 0 and None for the whole file.

    Raises
    ------
    ValueError
        If the file is invalid; the message names it. An existing shard does not change.
    """
    path = Path(path)
    counts: Counter[str] = Counter()
    categories: dict[int, str] = {}
    site = _site_of(path) if start > 0 else _Site()
    with storage.replacing_folder(folder) as new:
        writer = shards.ShardWriter(new, path.name, start, names=["category"])
        with shards.reporting_end(allow_truncated, counts, "pages") as warnings:
            for record, fields in xmlstream.records(path, ROOT, _TEXTS, ("page", "siteinfo"), start=start, stop=stop):
                if record == "siteinfo":
                    site = _Site(fields)
                    continue
                counts["pages"] += 1
                _add_page(path, fields, site, writer, counts, categories)
        if counts["pages"] == 0:
            raise DamagedInput(f"{path} has no pages")
        ids = np.array(sorted(categories), dtype=np.int64)
        titles = shards.pack_lines(categories[one] for one in ids.tolist())
        storage.write_arrays(new / "category_pages.npz", {"id": ids, "title": titles})
        return writer.finish(counts=dict(sorted(counts.items())), warnings=warnings)


def _add_page(
    path: Path,
    fields: Iterable[tuple[str, bytes]],
    site: _Site,
    writer: shards.ShardWriter,
    counts: Counter[str],
    categories: dict[int, str],
) -> None:
    page: dict[str, bytes] = {}
    revision: dict[str, bytes] = {}
    latest: dict[str, bytes] | None = None
    for name, value in fields:
        if name == "revision":
            if latest is None or revision.get("timestamp", b"") > latest.get("timestamp", b""):
                latest = revision
            revision = {}
        else:
            (page if name in ("title", "ns", "id", "redirect") else revision).setdefault(name, value)
    title = page.get("title", b"").decode().strip()
    key = _number(path, title, "id", page.get("id"))
    namespace = _number(path, title, "ns", page["ns"]) if "ns" in page else site.namespace(title)
    if namespace == 14:
        categories[key] = wikitext.category_name(title.partition(":")[2])
    if namespace != 0:
        counts["not an article"] += 1
        return
    if latest is None:
        counts["without text"] += 1
        return
    content = latest.get("text", b"")
    version = _number(path, title, "revision id", latest.get("revision id"))
    reason = None
    if "redirect" in page or _REDIRECT.match(content):
        reason = "redirect"
    elif not content.strip():
        reason = "without text"
    elif latest.get("model", b"wikitext") != b"wikitext":
        reason = "not wiki text"
    elif title.endswith("(disambiguation)") or _is_disambiguation(content):
        reason = "disambiguation"
    if reason is not None:
        counts[reason] += 1
        writer.drop(key, version, reason)
        return
    counts["articles"] += 1
    text, names = wikitext.plain_text(content, site.namespaces)
    writer.add(shards.Document(key, version, title, text, {"category": names}))


def _is_disambiguation(content: bytes) -> bool:
    """Return whether a page has a disambiguation template or the magic word for disambiguation."""
    return b"__DISAMBIG__" in content or any(
        _DISAMBIGUATION.fullmatch(name.decode("utf-8", "replace").strip())
        for name in wikitext.template_names(content, b"dab", b"dis")
    )


def _number(path: Path, title: str, what: str, found: bytes | None) -> int:
    if found is None or not _WHOLE.fullmatch(found):
        shown = None if found is None else found.decode()[:40]
        raise DamagedInput(f"{path}: page {title[:80]!r} has the {what} {shown!r}; a whole number is needed")
    return int(found)


# -- multistream dumps ---------------------------------------------------------------------------------------
def multistream_ranges(
    index: str | os.PathLike[str], dump: str | os.PathLike[str], parts: int
) -> list[tuple[int, int]]:
    """Divide a multistream dump into ``parts`` byte ranges of whole streams, by its index (``offset:id:title``).

    The ranges have similar lengths. If the dump has fewer streams than ``parts``, there is one range per stream. The
    first range includes the head of the document. Raises ValueError if the index belongs to another dump or has another
    form.
    """
    index, dump = Path(index), Path(dump)
    if not dump.is_file():
        raise DamagedInput(f"{dump} is missing")
    size = dump.stat().st_size
    offsets = {0}
    rest, number = b"", 0
    for block in xmlstream.blocks(index, text=True):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            number += 1
            offset = line.partition(b":")[0]
            if not re.fullmatch(rb"[0-9]{1,15}:[0-9]{1,15}:.*", line) or int(offset) >= size:
                raise DamagedInput(
                    f"{index}, line {number} is {line[:60]!r}, not 'offset:id:title' with an offset inside {dump.name}"
                )
            offsets.add(int(offset))
    starts = sorted(offsets)
    with dump.open("rb") as stream:
        for start in starts:
            stream.seek(start)
            if stream.read(3) != b"BZh":
                raise DamagedInput(f"{dump} has no stream at byte {start}, where {index.name} lists one")
    # the stream at byte 0 is only the head, which belongs to the first range
    starts = [0, *starts[2:]]
    parts = min(parts, len(starts))
    first = [0]
    for part in range(1, parts):
        place = int(np.searchsorted(starts, size * part // parts))
        # every part has at least one stream, so enough streams must remain for the following parts
        first.append(min(max(place, first[-1] + 1), len(starts) - (parts - part)))
    cuts = [starts[one] for one in first]
    return list(zip(cuts, [*cuts[1:], size], strict=True))


def _site_of(path: Path) -> _Site:
    """Read the head of a dump, before its first page."""
    record, fields = next(xmlstream.records(path, ROOT, _TEXTS, ("page", "siteinfo")), ("", []))
    return _Site(fields if record == "siteinfo" else ())


# -- first writers -------------------------------------------------------------------------------------------
def parse_first_writers(
    path: str | os.PathLike[str], target: str | os.PathLike[str], *, allow_truncated: bool = False
) -> dict[str, Any]:
    """Find the writer of the first revision of each page in a (stub or full) history dump, and write ``target`` (.npz).

    The revision with the earliest timestamp counts, independent of the order. Anonymous and hidden writers are treated
    as missing. The arrays are ``id`` (page ids in ascending order), ``writer`` and ``warnings`` (packed lines, empty if
    missing). Returns the counts.
    """
    path = Path(path)
    counts: Counter[str] = Counter()
    first: dict[int, tuple[bytes, str]] = {}
    page: dict[str, bytes] = {}
    earliest: tuple[bytes, str, str] | None = None
    with shards.reporting_end(allow_truncated, counts, "pages") as warnings:
        for record, fields in xmlstream.records(path, ROOT, _WRITERS, ("page", "revision", "siteinfo")):
            found = dict(reversed(fields))  # if a field occurs twice, the first value counts
            page |= {name: found[name] for name in ("title", "id", "ns") if name in found}
            if record == "revision":
                counts["revisions"] += 1
                earliest = _earlier(earliest, found)
            if record != "page":
                continue
            counts["pages"] += 1
            title = page.get("title", b"").decode()
            key = _number(path, title, "id", page.get("id"))
            namespace = _number(path, title, "ns", page["ns"]) if "ns" in page else _Site().namespace(title)
            if earliest is None or namespace != 0:
                counts["not an article"] += 1
            else:
                timestamp, kind, name = earliest
                counts[f"first writer {kind}"] += 1
                if key not in first or timestamp < first[key][0]:
                    first[key] = timestamp, name
            page, earliest = {}, None
    ids = np.array(sorted(first), dtype=np.int64)
    writers = shards.pack_lines(first[one][1] for one in ids.tolist())
    storage.write_arrays(target, {"id": ids, "writer": writers, "warnings": shards.pack_lines(warnings)})
    return {"source": path.name, "counts": dict(sorted(counts.items())), "warnings": warnings}


def _earlier(known: tuple[bytes, str, str] | None, revision: Mapping[str, bytes]) -> tuple[bytes, str, str]:
    """Return the earlier of two revisions as (timestamp, named | anonymous | hidden, name)."""
    timestamp = revision.get("timestamp", b"9999")
    if known is not None and known[0] <= timestamp:
        return known
    name = " ".join(revision.get("username", b"").decode().split())
    if name:
        return timestamp, "named", name
    return timestamp, "anonymous" if revision.get("ip") else "hidden", ""


def add_writers(gathered: shards.Gathered, files: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Add the context ``writer`` from files of :func:`parse_first_writers`, in place; return the files' warnings."""
    writer: dict[int, str] = {}
    warnings: list[str] = []
    wanted = set(gathered.key.tolist())
    for file in files:
        arrays = storage.read_arrays(file)
        warnings += shards.unpack_lines(arrays["warnings"])
        named = zip(arrays["id"].tolist(), shards.unpack_lines(arrays["writer"]), strict=True)
        writer.update((key, name) for key, name in named if name and key in wanted)
    gathered.members["writer"] = shards.membership(
        [writer[key]] if key in writer else [] for key in gathered.key.tolist()
    )
    return warnings


# -- corpora -------------------------------------------------------------------------------------------------
def sample_categories(chosen: shards.Chosen, n: int, seed: int, least: int = 1) -> list[str]:
    """Draw ``n`` random categories that have at least ``least`` articles, for W100 and W1000 (NIPS12, section 4.1).

    Raises ValueError if there are too few such categories.
    """
    sizes: Counter[str] = Counter()
    for mask, block in chosen.blocks():
        names = shards.unpack_lines(block["category.names"])
        kept = np.repeat(mask, np.diff(block["category.indptr"]))
        counts = np.bincount(block["category.indices"][kept], minlength=len(names)).tolist()
        sizes.update({name: size for name, size in zip(names, counts, strict=True) if size})
    names = sorted(name for name, size in sizes.items() if size >= least)
    if len(names) < n:
        raise ValueError(f"{n} categories are asked for, but only {len(names)} have {least} articles or more")
    drawn = streams.generator(seed, "sampled categories").choice(len(names), size=n, replace=False)
    return [names[i] for i in sorted(drawn)]


def in_categories(chosen: shards.Chosen, categories: Sequence[str]) -> shards.Chosen:
    """Restrict ``chosen`` to the articles of these categories."""
    wanted = frozenset(categories)
    masks = []
    for mask, block in chosen.blocks():
        is_wanted = np.array([name in wanted for name in shards.unpack_lines(block["category.names"])], bool)
        before = np.concatenate([[0], np.cumsum(is_wanted[block["category.indices"]])])
        masks.append(mask & (np.diff(before[block["category.indptr"]]) > 0))
    return replace(chosen, masks=masks)
