"""Fuzz the readers of Wikipedia and PubMed: damaged real or written files must be read or refused, never crash.

    python tests/fuzz/sources_xml.py --seconds 60 --seed 1 [--data-folder ../shared/mirror]

With NUMBA_BOUNDSCHECK=1 and a NUMBA_CACHE_DIR of its own, compiled code is checked for reads and writes out of bounds
too. What a case is: ``harness.py``.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import re
import sys
import tempfile
from pathlib import Path

from harness import Parser, main

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers import eutilities_answers, wikipedia_files

from mc2core.corpus.building.letters import words_of
from mc2papers.datasets.download import eutilities
from mc2papers.datasets.dumps import categorygraph, pubmed, shards, vocabulary, wikipedia, wikitext

TOKENS = [
    b"<page>", b"</page>", b"<text>", b"</text>", b"<revision>", b"&amp;", b"&lol;", b"<![CDATA[", b"]]>",
    b"<!--", b"-->", b"\xff\xfe", b"\x00", b"{{", b"}}", b"[[", b"]]", b"{|", b"|}", b"<ref>", b"</ref>",
    b"<nowiki>", b"[[Category:", b"__TOC__", b"<PMID>", b"</PMID>", b"<Year>", b"<MedlineDate>",
    b"<DeleteCitation>", b"99999999999999999999", b"'", b"\\", b"(", b"),(",
    b"INSERT INTO `categorylinks` VALUES ", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"http://", b"''",
    "\u00e9\ufb01\u0130".encode(),
]  # fmt: skip


NAME = "input.xml"


def read_dump(folder: Path, target: Path) -> None:
    wikipedia.parse_pages(folder / NAME, target, allow_truncated=True)
    chosen = shards.choose([target])
    words = vocabulary.count_vocabulary(chosen, 100, target.with_name("runs"))
    if words:
        shards.gather(chosen, words).corpus(["category"])


def read_history(folder: Path, target: Path) -> None:
    wikipedia.parse_first_writers(folder / NAME, target.with_suffix(".npz"), allow_truncated=True)


def read_citations(folder: Path, target: Path) -> None:
    pubmed.parse_citations(folder / NAME, target, pubmed.Selection(abstract=False), allow_truncated=True)
    chosen = shards.choose([target], pubmed.deleted_keys([target]))
    words = vocabulary.count_vocabulary(chosen, 100, target.with_name("runs"))
    if words:
        shards.gather(chosen, words).corpus(["mesh", "year"])


def read_markup(folder: Path, target: Path) -> None:
    content = (folder / NAME).read_bytes()
    text, _ = wikitext.plain_text(content)
    words_of(text.decode("utf-8", "replace"))


def read_sql(folder: Path, target: Path) -> None:
    for _ in categorygraph.sql_rows(folder / NAME, "categorylinks", ("cl_from", "cl_type")):
        pass


def read_links(folder: Path, target: Path) -> None:
    links = folder / "links.sql"
    targets = categorygraph.read_targets(folder / "targets.sql") if (folder / "targets.sql").is_file() else None
    found = categorygraph.read_links(links, {101: "Science", 103: "Physics", 105: "Optics"}, targets)
    categorygraph.nearest_tops(found, "Main topics")


def read_streams(folder: Path, target: Path) -> None:
    """A multistream dump by its index, in parts."""
    dump = folder / "multistream.xml.bz2"
    for start, stop in wikipedia.multistream_ranges(folder / "index.txt.bz2", dump, 3):
        wikipedia.parse_pages(dump, target, start=start, stop=stop)


def read_answers(folder: Path, target: Path) -> None:
    """What E-utilities answer to a search and to a batch of citations, as a year is fetched."""
    with contextlib.suppress(eutilities.DamagedInput):  # asked for anew
        eutilities._found_keys(folder / "search.xml")
    eutilities._check_citations(folder / "batch.xml")
    packed = target.with_suffix(".xml.gz")
    root = b"PubmedArticleSet"
    inside = eutilities._inside_root((folder / "batch.xml").read_bytes())
    packed.write_bytes(gzip.compress(b"<%s>%s</%s>" % (root, inside, root), 1))
    pubmed.parse_citations(packed, target, pubmed.Selection(abstract=False))


def parsers(data_folder: Path | None) -> dict[str, Parser]:
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
    columns = "  `cl_from` int,\n  `cl_sortkey` int,\n  `cl_type` int,\n  `{}` int\n".format
    end = ") ENGINE=InnoDB;\nINSERT INTO `{}` VALUES {};\n-- Dump completed\n".format
    by_name = (
        "(101,'S','subcat','Main_topics'),(103,'P','subcat','Science'),(105,'O','subcat','Physics'),(7,'x','page','A')"
    )
    by_number = "(101,'S','subcat',1),(103,'P','subcat',2),(105,'O\\'s','subcat',4),(7,'x','page',2)"
    numbers = "(1,14,'Main_topics'),(2,14,'Science'),(4,14,'Physics'),(77,0,'An_article')"
    linked = [
        {"links.sql": f"CREATE TABLE `categorylinks` (\n{columns('cl_to')}{end('categorylinks', by_name)}".encode()},
        {
            "links.sql": (
                f"CREATE TABLE `categorylinks` (\n{columns('cl_target_id')}{end('categorylinks', by_number)}".encode()
            ),
            "targets.sql": (
                "CREATE TABLE `linktarget` (\n  `lt_id` int,\n  `lt_namespace` int,\n  `lt_title` int\n"
                f"{end('linktarget', numbers)}".encode()
            ),
        },
    ]
    with tempfile.TemporaryDirectory() as folder:
        streams = {path.name: path.read_bytes() for path in wikipedia_files.multistream(Path(folder))}
    index = bz2.decompress(streams["index.txt.bz2"])
    answers = {
        "search.xml": eutilities_answers.search(eutilities_answers.KEYS),
        "batch.xml": f"<PubmedArticleSet>{cite * 3}</PubmedArticleSet>".encode(),
    }
    if data_folder is not None:
        with bz2.open(data_folder / "wikipedia/enwiki-minidump-2021_wiki.xml.bz2") as stream:
            content = stream.read()
        pages = re.findall(rb"<page>.*?</page>", content, re.DOTALL)
        head = content[: content.index(b"<page>")]
        dumps += [head + one[:40_000] + b"</mediawiki>" for one in pages]
        dumps += [head + one + b"</mediawiki>" for one in pages if len(one) < 40_000]
        for source in sorted((data_folder / "pubmed").glob("*.xml.gz"))[:12]:
            content = gzip.decompress(source.read_bytes())
            articles = re.findall(rb"<PubmedArticle>.*?</PubmedArticle>", content, re.DOTALL)[:8]
            citations.append(b"<PubmedArticleSet>" + b"".join(articles) + b"</PubmedArticleSet>")
        stub = gzip.decompress(
            (data_folder / "wikipedia/aawiki-20260101-stub-meta-history.derived.xml.gz").read_bytes()
        )
        histories.append(stub[: stub.index(b"</page>", 20_000) + 7] + b"</mediawiki>")
        links.append(gzip.decompress((data_folder / "wikipedia/aawiki-20260101-categorylinks.sql.gz").read_bytes()))
    packed = [bytes, lambda data: bz2.compress(data, 1), lambda data: gzip.compress(data, 1)]

    def parser(read, contents, pack):
        return Parser(read, [{NAME: content} for content in contents], TOKENS, pack)

    return {
        "dump": parser(read_dump, dumps, packed),
        "history": parser(read_history, histories, packed),
        "citations": parser(read_citations, citations, packed),
        "mark-up": parser(read_markup, dumps, [bytes]),
        "sql": parser(read_sql, links, packed[::2]),
        "links": Parser(
            read_links, linked, [*TOKENS, b"`cl_target_id`", b"'subcat'", b"NULL", b"-1", b"1.5"], packed[::2]
        ),
        "streams": Parser(read_streams, [streams, streams | {"index.txt.bz2": index}], [b"0:1:A\n", b":", b"9" * 16]),
        "answers": Parser(read_answers, [answers], [*TOKENS, b"<Id>", b"</Id>", b"<Count>9</Count>", b"-1"]),
    }


if __name__ == "__main__":
    raise SystemExit(main(__doc__ or "", parsers))
