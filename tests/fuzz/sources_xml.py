"""Fuzz the readers of Wikipedia and PubMed: damaged real or written files must be read or refused, never crash.

    python tests/fuzz/sources_xml.py --seconds 60 --seed 1 [--mirror ../shared/mirror]

Each parser gets ``seconds``. A case mutates valid input (bytes flipped, cut out, doubled, joined from two places, words
of the format put in) and must end in a result or a ValueError of one line, within ten seconds. Prints cases, how many
were refused, and the slowest case; ends with 1 and keeps the input of the first failure. With NUMBA_BOUNDSCHECK=1 and a
NUMBA_CACHE_DIR of its own, compiled code is checked for reads and writes out of bounds too.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import itertools
import re
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mc2core.sources import categorygraph, pubmed, shards, vocabulary, wikipedia, wikitext, wordcount

LONGEST_SECONDS = 10.0
TOKENS = [
    b"<page>", b"</page>", b"<text>", b"</text>", b"<revision>", b"&amp;", b"&lol;", b"<![CDATA[", b"]]>",
    b"<!--", b"-->", b"\xff\xfe", b"\x00", b"{{", b"}}", b"[[", b"]]", b"{|", b"|}", b"<ref>", b"</ref>",
    b"<nowiki>", b"[[Category:", b"__TOC__", b"<PMID>", b"</PMID>", b"<Year>", b"<MedlineDate>",
    b"<DeleteCitation>", b"99999999999999999999", b"'", b"\\", b"(", b"),(",
    b"INSERT INTO `categorylinks` VALUES ", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"http://", b"''",
    "\u00e9\ufb01\u0130".encode(),
]  # fmt: skip


def mutate(data: bytes, draw: np.random.Generator) -> bytes:
    """A few random edits."""
    changed = bytearray(data)
    for _ in range(draw.integers(1, 6)):
        at = int(draw.integers(0, len(changed) + 1))
        length = int(draw.integers(1, 200))
        match draw.integers(0, 6):
            case 0:
                changed[at : at + 1] = bytes([draw.integers(0, 256)])
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = changed[at : at + length] * int(draw.integers(1, 4))
            case 3:
                other = int(draw.integers(0, len(changed) + 1))
                changed[at:at] = changed[other : other + length]
            case 4:
                changed[at:at] = TOKENS[draw.integers(0, len(TOKENS))] * int(draw.integers(1, 30))
            case 5:
                del changed[at + 1000 :]
    return bytes(changed)


def read_dump(path: Path, folder: Path) -> None:
    wikipedia.parse_pages(path, folder, allow_truncated=True)
    chosen = shards.choose([folder])
    words = vocabulary.count_vocabulary(chosen, 100, folder.with_name("runs"))
    if words:
        shards.gather(chosen, words).corpus(["category"])


def read_history(path: Path, folder: Path) -> None:
    wikipedia.parse_first_writers(path, folder.with_suffix(".npz"), allow_truncated=True)


def read_citations(path: Path, folder: Path) -> None:
    pubmed.parse_citations(path, folder, pubmed.Selection(abstract=False), allow_truncated=True)
    chosen = shards.choose([folder], pubmed.deleted_keys([folder]))
    words = vocabulary.count_vocabulary(chosen, 100, folder.with_name("runs"))
    if words:
        shards.gather(chosen, words).corpus(["mesh", "year"])


def read_markup(path: Path, folder: Path) -> None:
    text, _ = wikitext.plain_text(path.read_bytes())
    wordcount.count_block([text])
    wordcount.count_block([path.read_bytes()])


def read_sql(path: Path, folder: Path) -> None:
    for _ in categorygraph.sql_rows(path, "categorylinks", ("cl_from", "cl_type")):
        pass


def samples(mirror: Path | None) -> dict[str, tuple[Callable[[Path, Path], None], list[bytes], list]]:
    """For each parser: the reader, valid inputs, and how its files are compressed."""
    page = (
        "<page><title>T</title><ns>0</ns><id>1</id><revision><id>2</id><timestamp>2020</timestamp><contributor>"
        "<username>A</username></contributor>"
        "<text>'''a''' {{b|[[c]]}} <ref>d</ref> [[Category:E]]</text></revision></page>"
    )
    cite = (
        '<PubmedArticle><MedlineCitation><PMID Version="1">1</PMID><Article><Journal><JournalIssue><PubDate>'
        "<Year>2001</Year></PubDate></JournalIssue></Journal><ArticleTitle>a <i>b</i></ArticleTitle></Article>"
        "</MedlineCitation></PubmedArticle>"
    )
    table = "CREATE TABLE `categorylinks` (\n  `cl_from` int,\n  `cl_type` int\n) ENGINE=InnoDB;\n"
    rows = "INSERT INTO `categorylinks` VALUES (1,'a\\'b'),(2,'c');\n-- Dump completed\n"
    dumps = [f"<mediawiki>{page * 3}</mediawiki>".encode()]
    citations = [f"<PubmedArticleSet>{cite * 3}</PubmedArticleSet>".encode()]
    histories, links = list(dumps), [(table + rows).encode()]
    if mirror is not None:
        with bz2.open(mirror / "wikipedia/enwiki-minidump-2021_wiki.xml.bz2") as stream:
            content = stream.read()
        pages = re.findall(rb"<page>.*?</page>", content, re.DOTALL)
        head = content[: content.index(b"<page>")]
        dumps += [head + one[:40_000] + b"</mediawiki>" for one in pages]
        dumps += [head + one + b"</mediawiki>" for one in pages if len(one) < 40_000]
        for source in sorted((mirror / "pubmed").glob("*.xml.gz"))[:12]:
            content = gzip.decompress(source.read_bytes())
            articles = re.findall(rb"<PubmedArticle>.*?</PubmedArticle>", content, re.DOTALL)[:8]
            citations.append(b"<PubmedArticleSet>" + b"".join(articles) + b"</PubmedArticleSet>")
        stub = gzip.decompress((mirror / "wikipedia/aawiki-20260101-stub-meta-history.derived.xml.gz").read_bytes())
        histories.append(stub[: stub.index(b"</page>", 20_000) + 7] + b"</mediawiki>")
        links.append(gzip.decompress((mirror / "wikipedia/aawiki-20260101-categorylinks.sql.gz").read_bytes()))
    plain = [bytes, lambda data: bz2.compress(data, 1), lambda data: gzip.compress(data, 1)]
    return {
        "dump": (read_dump, dumps, plain),
        "history": (read_history, histories, plain),
        "citations": (read_citations, citations, plain),
        "mark-up": (read_markup, dumps, [bytes]),
        "sql": (read_sql, links, plain[::2]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each parser")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mirror", type=Path)
    options = parser.parse_args()
    for name, (reader, inputs, compressors) in samples(options.mirror).items():
        draw = np.random.default_rng([options.seed, len(name)])
        refused, slowest = 0, 0.0
        with tempfile.TemporaryDirectory() as scratch:
            path, folder = Path(scratch) / "input.xml", Path(scratch) / "shard"
            path.write_bytes(inputs[0])
            reader(path, folder)  # compiled code is made or loaded before a clock runs
            end = time.monotonic() + options.seconds
            for case in itertools.count():
                if time.monotonic() > end:
                    break
                data = inputs[draw.integers(0, len(inputs))]
                compress = compressors[draw.integers(0, len(compressors))]
                # damage before or after compression
                damaged = compress(mutate(data, draw)) if draw.random() < 0.8 else mutate(compress(data), draw)
                path.write_bytes(damaged)
                began = time.process_time()
                try:
                    reader(path, folder)
                except ValueError as error:
                    refused += 1
                    failed = "" if len(str(error).splitlines()) == 1 else f"a message of several lines: {error}"
                except Exception:
                    failed = traceback.format_exc()
                else:
                    failed = ""
                spent = time.process_time() - began
                slowest = max(slowest, spent)
                if spent > LONGEST_SECONDS:
                    failed = failed or f"it took {spent:.1f} s"
                if failed:
                    kept = Path(f"fuzz-{name}-{options.seed}-{case}.bin")
                    kept.write_bytes(damaged)
                    print(f"{name}: case {case} failed, its input is {kept}: {failed}")
                    return 1
        print(f"{name}: {case} cases, {refused} refused, slowest {slowest:.2f} s", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
