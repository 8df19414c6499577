"""List the files of PubMed's baseline, which change each year, from the local data folder or the official page."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import requests

from mc2core.base import storage
from mc2papers.datasets.download.fetch import COLUMNS, FetchError, left_https

BASELINE = "https://ftp.ncbi.nlm.nih.gov/pubmed/baseline/"
LICENCE = "free of charge from NLM; abstracts may be under copyright"
_FILE = re.compile(r"pubmed([0-9]{2})n[0-9]{4}\.xml\.gz")
_LINK = re.compile(r'href="(pubmed[0-9]{2}n[0-9]{4}\.xml\.gz)"')
_SECONDS = 30.0
_MAX_BYTES = 16 * 2**20


def list_baseline(
    target: str | os.PathLike[str], data_folder: str | os.PathLike[str] | None = None, page: str = BASELINE
) -> list[str]:
    """Write a catalogue of one year's baseline (:func:`mc2papers.datasets.download.fetch.read_catalogue`).

    The files are those in ``data_folder``/pubmed or, if there are none, those to which the page links. If there are
    several years, the latest year is used. Checksums are not needed, because gzip files contain checksums. Returns the
    names of the files.

    Raises
    ------
    FetchError
        If the local data folder has no such file, and the page cannot be read or has no link to one.
    """
    folder = None if data_folder is None else Path(data_folder) / "pubmed"
    found = [] if folder is None else [path.name for path in folder.glob("pubmed*.xml.gz")]
    names = [name for name in found if _FILE.fullmatch(name)] or _linked(page, folder)
    latest = max(name[6:8] for name in names)
    names = sorted({name for name in names if name[6:8] == latest})
    with storage.replacing(target) as stream:
        rows = csv.writer(stream, delimiter="\t", lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows(("pubmed", name, f"pubmed/{name}", "", page + name, LICENCE) for name in names)
    return names


def _linked(page: str, folder: Path | None) -> list[str]:
    where = "no local data folder is given" if folder is None else f"{folder} has none"
    try:
        with requests.get(page, timeout=_SECONDS, stream=True, headers={"User-Agent": "mc2core"}) as response:
            response.raise_for_status()
            if unsafe := left_https(response):
                raise FetchError(f"cannot list the baseline of PubMed: {page} redirects to {unsafe}, without https")
            text = response.raw.read(_MAX_BYTES, decode_content=True).decode("utf-8", "replace")
    except FetchError:
        raise
    except (requests.RequestException, OSError) as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        reason = f"answered {status}" if status else f"cannot be reached ({type(error).__name__})"
        raise FetchError(f"cannot list the baseline of PubMed: {where}; {page} {reason}") from error
    names = _LINK.findall(text)
    if not names:
        raise FetchError(f"cannot list the baseline of PubMed: {where}; {page} links to no file pubmedYYnNNNN.xml.gz")
    return names
