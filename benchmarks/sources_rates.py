"""Rates and memory of the Wikipedia and PubMed readers, on real excerpts repeated to any length.

    python benchmarks/sources_rates.py wikipedia --mirror ../shared/mirror --megabytes 200 --jobs 1
    python benchmarks/sources_rates.py pubmed --mirror ../shared/mirror --citations 30000 --jobs 2

Each job parses the whole repeated file, as jobs of a workflow parse theirs. Compilation is excluded: kernels are
compiled on a few records before, and each job loads them on these before its clock starts. Printed as one JSON line:
rate by wall clock (from the start of the first job to the end of the last) and by processor time, the share of the
latter that only decompresses, limits (decompressing and expat alone), and the largest resident set of a job.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import re
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from xml.parsers import expat

from mc2core.sources.dumps import pubmed, wikipedia
from mc2core.sources.formats import xmlstream


def repeat_wikipedia(mirror: Path, target: Path, megabytes: float) -> float:
    """Write the pages of the excerpts again and again, with new ids; returns MB of XML."""
    pages: list[bytes] = []
    for source in sorted((mirror / "wikipedia").glob("enwiki-*.bz2")):
        with bz2.open(source) as stream:
            pages += re.findall(rb"<page>.*?</page>\n?", stream.read(), re.DOTALL)
    key, written = 0, 0
    with bz2.open(target, "wb") as out:
        out.write(b"<mediawiki>")
        while written < megabytes * 1e6:
            page = pages[key % len(pages)]
            key += 1
            written += out.write(re.sub(rb"<id>[0-9]+</id>", b"<id>%d</id>" % key, page, count=1))
        out.write(b"</mediawiki>")
    return written / 1e6


def repeat_pubmed(mirror: Path, target: Path, citations: int) -> float:
    """Write the citations again and again, with new PMIDs; returns their number."""
    articles: list[bytes] = []
    for source in sorted((mirror / "pubmed").glob("*.xml.gz")):
        with gzip.open(source) as stream:
            articles += re.findall(rb"<PubmedArticle>.*?</PubmedArticle>\s*", stream.read(), re.DOTALL)
    with gzip.open(target, "wb") as out:
        out.write(b"<PubmedArticleSet>")
        for key in range(citations):
            article = articles[key % len(articles)]
            out.write(re.sub(rb">[0-9]+</PMID>", b">%d</PMID>" % (key + 1), article, count=1))
        out.write(b"</PubmedArticleSet>")
    return float(citations)


def parse(what: str, path: Path, folder: Path) -> None:
    if what == "wikipedia":
        wikipedia.parse_pages(path, folder)
    else:
        pubmed.parse_citations(path, folder, pubmed.Selection(first_year=2000))


def run(what: str, small: Path, path: Path, folder: Path) -> tuple[float, float, float, float]:
    """Parse one file: (start and end by the clock, processor seconds, MB of the largest resident set)."""
    parse(what, small, folder)
    start, cpu = time.time(), time.process_time()
    parse(what, path, folder)
    cpu = time.process_time() - cpu
    return start, time.time(), cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["wikipedia", "pubmed"])
    parser.add_argument("--mirror", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=100.0, help="XML of each job (wikipedia)")
    parser.add_argument("--citations", type=int, default=20_000, help="citations of each job (pubmed)")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, small = folder / "repeated.xml", folder / "small.xml"
        if options.what == "wikipedia":
            size, unit = repeat_wikipedia(options.mirror, source, options.megabytes), "MB"
            repeat_wikipedia(options.mirror, small, 1)
        else:
            size, unit = repeat_pubmed(options.mirror, source, options.citations), "citations"
            repeat_pubmed(options.mirror, small, 100)
        parse(options.what, small, folder / "compiled")
        begin = time.process_time()
        inflated = sum(len(block) for block in xmlstream.blocks(source))
        inflating = time.process_time() - begin
        begin = time.process_time()
        with (bz2 if options.what == "wikipedia" else gzip).open(source) as stream:
            while stream.read(1 << 18):
                pass
        by_library = time.process_time() - begin
        parser, by_expat = expat.ParserCreate(), 0.0
        for block in xmlstream.blocks(source):
            begin = time.process_time()
            parser.Parse(block)
            by_expat += time.process_time() - begin
        # a fresh process each
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
            jobs = [
                pool.submit(run, options.what, small, source, folder / f"shard{job}") for job in range(options.jobs)
            ]
            starts, ends, seconds, peaks = zip(*(job.result() for job in jobs), strict=True)
        wall, cpu = max(ends) - min(starts), max(seconds)
        print(
            json.dumps(
                {
                    "what": options.what,
                    "jobs": options.jobs,
                    f"{unit} a job": round(size, 1),
                    "MB of XML a job": round(inflated / 1e6, 1),
                    f"{unit} a second, wall, all jobs": round(size * options.jobs / wall, 1),
                    f"{unit} a processor second": round(size / cpu, 1),
                    "share of processor time that decompresses": round(inflating / cpu, 2),
                    "MB a second, inflating alone": round(inflated / 1e6 / inflating, 1),
                    "MB a second, inflating by the standard library": round(inflated / 1e6 / by_library, 1),
                    "MB a second, expat without handlers": round(inflated / 1e6 / by_expat, 1),
                    "largest resident set, MB": round(max(peaks)),
                }
            )
        )


if __name__ == "__main__":
    main()
