"""Fetch the citations of PNAS from NCBI's E-utilities year by year, without downloading the whole baseline of PubMed.

https://www.ncbi.nlm.nih.gov/books/NBK25499: ``esearch`` finds the PMIDs of a year, and ``efetch`` returns their
citations in batches, in the XML of the baseline. NCBI allows three requests per second from one internet address, so
years must not be fetched at the same time.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mc2core.base import storage, xmlstream
from mc2core.base.xmlstream import DamagedInput
from mc2core.corpus.readers.pubmed import ROOT
from mc2papers.datasets.download.fetch import FetchError, Patience, SourceFile, fetch
from mc2papers.datasets.dumps.pubmed import PNAS

SERVER = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
PAUSE_SECONDS = 0.34
#: number of PMIDs per request; longer lists do not fit into an address
BATCH = 200
#: maximum number of PMIDs that a search in PubMed lists
MAX_FOUND = 10_000
Answer = TypeVar("Answer")
_SEARCH = xmlstream.Fields({"Count": "count", "IdList": "list", "IdList/Id": "id"})
_CITATIONS = xmlstream.Fields({"PubmedArticle": "PubmedArticle", "PubmedBookArticle": "PubmedBookArticle"})


def fetch_year(
    target: str | os.PathLike[str],
    year: int,
    *,
    server: str = SERVER,
    pause_seconds: float = PAUSE_SECONDS,
    patience: Patience | None = None,
) -> int:
    """Fetch the citations of PNAS in one year, write them to ``target`` (.xml.gz), and return their number.

    Each answer is stored next to the target until all answers have arrived, so that a second call continues where the
    first call stopped. The same answers give an identical file.

    Parameters
    ----------
    pause_seconds : minimum time between two requests.

    Raises
    ------
    FetchError
        (An OSError.) If the server cannot be reached or returns an unexpected answer.
    ValueError
        If the journal has more citations in this year than a search can list.
    """
    target, patience = Path(target), patience or Patience()
    parts = target.with_name(f".{target.name}.parts")
    parts.mkdir(parents=True, exist_ok=True)
    journals = " OR ".join(f"{one}[ISSN]" for one in PNAS)
    query = {"db": "pubmed", "tool": "mc2core", "retmax": MAX_FOUND, "term": f"({journals}) AND {year}[dp]"}
    ask = _Requests(server, pause_seconds, patience)
    keys = ask("esearch", query, parts / "search.xml", _found_keys)
    batches = [keys[at : at + BATCH] for at in range(0, len(keys), BATCH)]
    for number, batch in enumerate(batches):
        query = {"db": "pubmed", "tool": "mc2core", "retmode": "xml", "id": ",".join(batch)}
        ask("efetch", query, parts / f"batch-{number:05d}.xml", _check_citations)
    with storage.replacing(target, "wb") as stream, gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
        packed.write(f"<{ROOT}>".encode())
        for number in range(len(batches)):
            packed.write(_inside_root((parts / f"batch-{number:05d}.xml").read_bytes()))
        packed.write(f"</{ROOT}>\n".encode())
    shutil.rmtree(parts)
    return len(keys)


class _Requests:
    """Sends requests one at a time, with a pause between them. A request whose answer is already on disk is skipped."""

    def __init__(self, server: str, pause_seconds: float, patience: Patience) -> None:
        self._server, self._pause, self._patience = server, pause_seconds, patience
        self._next = 0.0

    def __call__(self, tool: str, query: dict[str, object], target: Path, read: Callable[[Path], Answer]) -> Answer:
        """Fetch an answer, store it in ``target``, and return the result of ``read``.

        If ``read`` raises an error, the request is repeated.
        """
        address = f"{self._server}/{tool}.fcgi?{urllib.parse.urlencode(query)}"
        for left in reversed(range(self._patience.tries)):
            if not target.exists():
                time.sleep(max(0.0, self._next - time.monotonic()))
                self._next = time.monotonic() + self._pause
                source = SourceFile("pubmed", target.name, target.name, (address,))
                fetch(source, target, patience=self._patience)
            try:
                return read(target)
            except DamagedInput as error:
                target.unlink()
                if not left:
                    raise FetchError(f"{self._server}/{tool}.fcgi gave a wrong answer: {error}") from error
        raise AssertionError("tries is at least 1")


def _found_keys(path: Path) -> list[str]:
    """Return the PMIDs of a search in ascending order."""
    for _, fields in xmlstream.records(path, "eSearchResult", _SEARCH, ["list"]):
        keys = sorted((value.decode() for name, value in fields if name == "id"), key=int)
        count = int(next((value for name, value in fields if name == "count"), b"-1"))
        if count > MAX_FOUND:
            raise ValueError(f"{path}: {count} citations were found, but a search lists only {MAX_FOUND}")
        if count != len(keys):
            raise DamagedInput(f"{path} is incomplete: it lists {len(keys)} of {count} citations")
        return keys
    raise DamagedInput(f"{path} has no list of citations")


def _check_citations(path: Path) -> None:
    """Read a file to its end, which raises an error if the file is not complete."""
    for _ in xmlstream.records(path, ROOT, _CITATIONS, ["PubmedArticle", "PubmedBookArticle"]):
        pass


def _inside_root(content: bytes) -> bytes:
    """Return the content between the tags of the root element."""
    root = ROOT.encode()
    match = re.search(rb"<%s(?:\s[^>]*)?>(.*)</%s\s*>" % (root, root), content, re.DOTALL)
    return match[1] if match else b""
