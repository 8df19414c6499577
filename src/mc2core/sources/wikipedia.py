"""Wikipedia: articles of XML dumps (pages-articles, every export schema), first writers of stub histories.

Dumps: https://dumps.wikimedia.org, ``enwiki-*-pages-articles*.xml*.bz2`` (also multistream) for the text, and
``enwiki-*-stub-meta-history*.xml.gz`` for who wrote an article first. Export schemas 0.1 to 0.11 differ in the order of
elements, in the namespace of the document, and in what older ones lack: ``ns`` (before 0.6: the title's prefix tells),
``redirect`` (before 0.4: the text tells), ``model``.

Articles are pages of namespace 0 that are neither redirects nor disambiguation pages. Contexts: ``category`` (named by
the article's own text), ``writer`` (of its first revision), ``topic`` (nearest top-level categories,
:mod:`mc2core.sources.categorygraph`).
"""

from __future__ import annotations

import bz2
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core import rng, storage
from mc2core.sources import shards, wikitext, xmlstream
from mc2core.sources.xmlstream import DamagedInput

ROOT = "mediawiki"
_MOST_PART_BYTES = 64 * 2**20
_REDIRECT = re.compile(r"\s*#redirect", re.IGNORECASE)
# names of templates that make a page one of disambiguation; "disambiguation needed" marks a link in an article
_DISAMBIGUATION = re.compile(
    r"(?:[\w-]+[ _])*disamb(?:ig(?:uation)?)?(?:[ _](?:page|cleanup))?|disambig-\w+|letter-numbercombdisambig|dab"
    r"|(?:hn|geo|math|number|road|roadindex|sch|hosp|mil-unit-)dis",
    re.IGNORECASE,
)
_DISAMBIGUATION_MARKS = ("isamb", "ISAMB", "{{dab", "{{Dab", "{{DAB", "dis}}", "dis|")
_LONGEST_TEMPLATE_NAME = 60
_PREFIXES = {
    "media": -2, "special": -1, "talk": 1, "user": 2, "user talk": 3, "wikipedia": 4, "wikipedia talk": 5, "file": 6,
    "image": 6, "file talk": 7, "image talk": 7, "mediawiki": 8, "mediawiki talk": 9, "template": 10,
    "template talk": 11, "help": 12, "help talk": 13, "category": 14, "category talk": 15, "portal": 100,
    "portal talk": 101,
}  # fmt: skip


class _Site:
    """What a dump says of its wiki: namespaces by number."""

    def __init__(self, element: Any = None) -> None:
        self.numbers = dict(_PREFIXES)
        names: dict[int, list[str]] = {}
        for namespace in [] if element is None else element.iterfind(".//{*}namespace"):
            key = namespace.get("key", "")
            if namespace.text and re.fullmatch("-?[0-9]{1,6}", key):
                names.setdefault(int(key), []).append(namespace.text)
                self.numbers[namespace.text.lower()] = int(key)
        self.namespaces = wikitext.Namespaces([*names.get(6, ()), *names.get(-2, ())], names.get(14, ()))

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
    """Turn a dump, or a byte range of a multistream dump, into a shard; returns the content of ``shard.json``.

    ``counts`` there says how many pages were read and why each of the others was dropped. ``category_pages.npz`` beside
    it has id and title of the category pages, which :mod:`mc2core.sources.categorygraph` needs.

    Parameters
    ----------
    allow_truncated : accept a dump that is cut off or damaged: what comes before is kept and ``warnings`` says so.
    start, stop : as given by :func:`multistream_ranges`; 0 and None for a whole file.

    Raises
    ------
    ValueError
        One sentence naming the file; the shard that was there stays as it was.
    """
    path = Path(path)
    counts: Counter[str] = Counter()
    warnings: list[str] = []
    categories: dict[int, str] = {}
    site = _Site(_site_element(path)) if start > 0 else _Site()
    with storage.replacing_folder(folder) as new:
        writer = shards.ShardWriter(new, path.name, start, names=["category"])
        try:
            for element in xmlstream.records(path, ROOT, ["page", "siteinfo"], start=start, stop=stop):
                if element.tag.endswith("siteinfo"):
                    site = _Site(element)
                    continue
                counts["pages"] += 1
                _add_page(path, element, site, writer, counts, categories)
        except DamagedInput as error:
            if not (error.truncated and allow_truncated and counts["pages"]):
                raise
            warnings.append(str(error))
        if counts["pages"] == 0:
            raise DamagedInput(f"{path} has no pages")
        ids = np.array(sorted(categories), dtype=np.int64)
        storage.write_arrays(
            new / "category_pages.npz", {"id": ids, "title": shards.pack_lines(categories[int(one)] for one in ids)}
        )
        return writer.finish(counts=dict(sorted(counts.items())), warnings=warnings)


def _add_page(
    path: Path,
    page: Any,
    site: _Site,
    writer: shards.ShardWriter,
    counts: Counter[str],
    categories: dict[int, str],
) -> None:
    title = (page.findtext("{*}title") or "").strip()
    key = _number(path, title, "id", page.findtext("{*}id"))
    ns = page.findtext("{*}ns")
    namespace = site.namespace(title) if ns is None else _number(path, title, "ns", ns)
    if namespace == 14:
        categories[key] = wikitext.category_name(title.partition(":")[2])
    if namespace != 0:
        counts["not an article"] += 1
        return
    revision = max(page.iterfind("{*}revision"), key=lambda one: one.findtext("{*}timestamp") or "", default=None)
    body = None if revision is None else revision.find("{*}text")
    content = "" if body is None else "".join(body.itertext()) if len(body) else body.text or ""
    if revision is None:
        counts["without text"] += 1
        return
    version = _number(path, title, "revision id", revision.findtext("{*}id"))
    reason = None
    if page.find("{*}redirect") is not None or _REDIRECT.match(content):
        reason = "redirect"
    elif not content.strip():
        reason = "without text"
    elif (revision.findtext("{*}model") or "wikitext") != "wikitext":
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


def _is_disambiguation(content: str) -> bool:
    """Whether one of the templates is there, or the switch; plain searches, since nearly no text has either."""
    if "__DISAMBIG__" in content:
        return True
    for mark in _DISAMBIGUATION_MARKS:
        found = content.find(mark)
        while found >= 0:
            start = content.rfind("{{", max(0, found - _LONGEST_TEMPLATE_NAME), found + 2)
            if start >= 0:
                name = re.split(r"[|}]", content[start + 2 : found + _LONGEST_TEMPLATE_NAME], maxsplit=1)[0]
                if _DISAMBIGUATION.fullmatch(name.strip()):
                    return True
            found = content.find(mark, found + len(mark))
    return False


def _number(path: Path, title: str, what: str, found: str | None) -> int:
    if found is None or not re.fullmatch(r"\s*-?[0-9]{1,18}\s*", found):
        raise DamagedInput(f"{path}: page {title[:80]!r} has the {what} {found!r}; a whole number is needed")
    return int(found)


# -- multistream dumps ---------------------------------------------------------------------------------------
def multistream_ranges(
    index: str | os.PathLike[str], dump: str | os.PathLike[str], parts: int
) -> list[tuple[int, int]]:
    """Cut a multistream dump into about ``parts`` byte ranges of whole streams, by its index (``offset:id:title``).

    The first range holds the head of the document. ValueError: an index of another dump or of another form.
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
                raise DamagedInput(f"{dump} has no stream at byte {start}, where {index.name} sees one")
    # byte 0 is the head alone: it stays with the first pages
    starts = [0, *starts[2:]]
    cuts = sorted({starts[np.searchsorted(starts, size * part // parts)] for part in range(parts)
                   if size * part // parts <= starts[-1]})  # fmt: skip
    return list(zip(cuts, [*cuts[1:], size], strict=True))


def _site_element(path: Path) -> Any:
    """``siteinfo`` from the first stream of a multistream dump, which is all but the root's end tag."""
    decompressor = bz2.BZ2Decompressor()
    with path.open("rb") as stream:
        try:
            head = decompressor.decompress(stream.read(_MOST_PART_BYTES), 2**20)
        except OSError as error:
            raise DamagedInput(f"{path} is damaged in its first stream: {error}") from error
    found = re.search(rb"<siteinfo>.*?</siteinfo>", head, re.DOTALL)
    return None if found is None else xmlstream.parse_fragment(path, found[0])


# -- first writers -------------------------------------------------------------------------------------------
def parse_first_writers(
    path: str | os.PathLike[str], target: str | os.PathLike[str], *, allow_truncated: bool = False
) -> dict[str, Any]:
    """Find who wrote the first revision of each page of a (stub or full) history dump; writes ``target`` (.npz).

    The earliest timestamp decides, whatever the order. Anonymous and hidden first writers are missing: an address is no
    writer. Arrays: ``id`` (page ids, rising), ``writer`` (packed lines, empty where missing). Returns the counts.
    """
    path = Path(path)
    counts: Counter[str] = Counter()
    warnings: list[str] = []
    first: dict[int, tuple[str, str]] = {}
    earliest: tuple[str, str, str] | None = None
    try:
        for element in xmlstream.records(path, ROOT, ["page", "revision"]):
            if element.tag.endswith("revision"):
                counts["revisions"] += 1
                earliest = _earlier(earliest, element)
                continue
            counts["pages"] += 1
            title = element.findtext("{*}title") or ""
            key = _number(path, title, "id", element.findtext("{*}id"))
            found, earliest = earliest, None
            ns = element.findtext("{*}ns")
            if found is None or (_Site().namespace(title) if ns is None else _number(path, title, "ns", ns)) != 0:
                counts["not an article"] += 1
                continue
            timestamp, kind, name = found
            counts[f"first writer {kind}"] += 1
            if key not in first or timestamp < first[key][0]:
                first[key] = timestamp, name
    except DamagedInput as error:
        if not (error.truncated and allow_truncated and counts["pages"]):
            raise
        warnings.append(str(error))
    ids = np.array(sorted(first), dtype=np.int64)
    arrays = {"id": ids, "writer": shards.pack_lines(first[int(one)][1] for one in ids)}
    storage.write_arrays(target, arrays)
    return {"source": path.name, "counts": dict(sorted(counts.items())), "warnings": warnings}


def _earlier(known: tuple[str, str, str] | None, revision: Any) -> tuple[str, str, str]:
    """The earlier of two revisions as (timestamp, named | anonymous | hidden, name)."""
    timestamp = revision.findtext("{*}timestamp") or "9999"
    if known is not None and known[0] <= timestamp:
        return known
    contributor = revision.find("{*}contributor")
    name = None if contributor is None else contributor.findtext("{*}username")
    if name and name.strip():
        return timestamp, "named", " ".join(name.split())
    address = None if contributor is None else contributor.findtext("{*}ip")
    return timestamp, "anonymous" if address else "hidden", ""


def add_writers(gathered: shards.Gathered, files: Iterable[str | os.PathLike[str]]) -> None:
    """Add the context ``writer`` from the files of :func:`parse_first_writers`, in place."""
    writer: dict[int, str] = {}
    wanted = set(gathered.key.tolist())
    for file in files:
        arrays = storage.read_arrays(file)
        for key, name in zip(arrays["id"].tolist(), shards.unpack_lines(arrays["writer"]), strict=True):
            if name and key in wanted:
                writer[key] = name
    gathered.members["writer"] = shards.membership(
        [[writer[key]] if key in writer else [] for key in gathered.key.tolist()]
    )


# -- corpora -------------------------------------------------------------------------------------------------
def sample_categories(chosen: shards.Chosen, n: int, seed: int, least: int = 1) -> list[str]:
    """Draw ``n`` categories at random among those of at least ``least`` articles: W100, W1000 (NIPS12, section 6).

    ValueError where there are not that many.
    """
    sizes: Counter[str] = Counter()
    for rows, block in chosen.blocks():
        names = shards.unpack_lines(block["category.names"])
        mask = np.zeros(len(block["key"]), dtype=bool)
        mask[rows] = True
        kept = np.repeat(mask, np.diff(block["category.indptr"]))
        for name, size in zip(names, np.bincount(block["category.indices"][kept], minlength=len(names)), strict=True):
            if size:
                sizes[name] += int(size)
    names = sorted(name for name, size in sizes.items() if size >= least)
    if len(names) < n:
        raise ValueError(f"{n} categories are asked for, but only {len(names)} have {least} articles or more")
    drawn = rng.generator(seed, "sampled categories").choice(len(names), size=n, replace=False)
    return [names[i] for i in sorted(drawn)]


def in_categories(chosen: shards.Chosen, categories: Sequence[str]) -> shards.Chosen:
    """Restrict ``chosen`` to the articles of these categories."""
    wanted = frozenset(categories)
    masks = []
    for rows, block in chosen.blocks():
        names = shards.unpack_lines(block["category.names"])
        hit = np.array([name in wanted for name in names] or [False])
        members = sp.csr_matrix(
            (hit[block["category.indices"]].astype(np.int32), block["category.indices"], block["category.indptr"]),
            shape=(len(block["key"]), max(len(names), 1)),
        )
        mask = np.zeros(len(block["key"]), dtype=bool)
        mask[rows] = True
        masks.append(mask & (np.asarray(members.sum(axis=1)).ravel() > 0))
    return replace(chosen, masks=masks)
