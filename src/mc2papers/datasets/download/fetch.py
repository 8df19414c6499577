"""Fetch a source file: from the local data folder if it has the file, else from its official addresses in turn.

A target is either complete or absent: it is downloaded as ``<name>.part``, verified, synced and renamed. The part is
kept between runs, so that an interrupted download can continue. A download continues only if the file on the server is
certainly the same. For this, the address and the server's validator (ETag or date) are stored next to the part and sent
with the request. Without a validator, a download continues only if the checksum of the file is known.
"""

from __future__ import annotations

import contextlib
import email.utils
import os
import re
import shutil
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import requests
import urllib3

from mc2core.base import storage
from mc2core.base.progress import work
from mc2core.base.records import csv_rows

_CHUNK = 1 << 18
_WORTH_RETRYING = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_LONGEST_PAUSE_SECONDS = 60.0
#: columns of a catalogue of source files
COLUMNS = ("dataset", "file", "path", "sha256", "addresses", "licence")


class FetchError(OSError):
    """A source file is available neither in the local data folder nor from its addresses; the message is one
    sentence."""


class _Refused(Exception):
    """The address does not provide the file; the next address is tried."""


class _Interrupted(Exception):
    """The transfer was interrupted; the same address is tried again for the rest.

    pause_seconds : number of seconds that the server asked to wait, or 0.
    """

    def __init__(self, reason: str, pause_seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.pause_seconds = pause_seconds


@dataclass(frozen=True)
class SourceFile:
    """One file of a dataset, a row of ``config/datasets.tsv``.

    path : path inside the local data folder.
    addresses : official addresses (http or https), the preferred one first.
    sha256 : 64 hexadecimal digits; None if the file changes from release to release.
    """

    dataset: str
    name: str
    path: str
    addresses: tuple[str, ...]
    sha256: str | None = None
    licence: str = ""


@dataclass(frozen=True)
class Patience:
    """Limits after which a download is given up.

    connect_seconds : maximum time to wait for a connection.
    stall_seconds : maximum time without data. At least 1 KiB must arrive in each window of this length, so that a very
        slow server also counts as stalled.
    tries : maximum number of consecutive failures without a new byte, per address.
    pause_seconds : pause after the first failure. It doubles after each further failure, up to one minute.
    """

    connect_seconds: float = 15.0
    stall_seconds: float = 60.0
    tries: int = 5
    pause_seconds: float = 1.0


def read_catalogue(path: str | os.PathLike[str]) -> list[SourceFile]:
    """Read ``datasets.tsv``. Raises ValueError with the line and the field if a value is wrong."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    files: list[SourceFile] = []
    rows = csv_rows(path, "\t")
    _, header = next(rows, (0, []))
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise ValueError(f"{path} has no column {missing[0]!r}; its columns are {', '.join(COLUMNS)}")
    for line, fields in rows:
        where, row = f"{path}, line {line}", dict(zip(header, fields, strict=True))
        sha256, addresses = row["sha256"].lower(), tuple(row["addresses"].split())
        if sha256 and not re.fullmatch("[0-9a-f]{64}", sha256):
            raise ValueError(f"{where}: sha256 {sha256!r} is not 64 hexadecimal digits")
        for address in addresses:
            if not re.match("https?://[^/]", address):
                raise ValueError(f"{where}: address {address!r} must begin with http:// or https://")
        for field in ("file", "path"):
            if not row[field] or row[field].startswith("/") or ".." in row[field].split("/"):
                raise ValueError(f"{where}: {field} {row[field]!r} must be a path inside its folder")
        files.append(SourceFile(row["dataset"], row["file"], row["path"], addresses, sha256 or None, row["licence"]))
    return files


def fetch(
    source: SourceFile,
    target: str | os.PathLike[str],
    data_folder: str | os.PathLike[str] | None = None,
    *,
    patience: Patience | None = None,
) -> Path:
    """Make one source file available at ``target``, and return this path.

    A file in the local data folder is hard-linked if the file system allows it, and copied otherwise. An existing
    target is kept if its checksum is correct or unknown.

    Raises
    ------
    FetchError
        (An OSError.) If all addresses failed; the message has the reason for each address.
    """
    target, patience = Path(target), patience or Patience()
    if target.is_file() and source.sha256 in (None, storage.digest_file(target)):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    failures: list[str] = []
    if data_folder is not None:
        copy = Path(data_folder) / source.path
        failure = _unusable(copy, source.sha256) if copy.is_file() else "is missing"
        if failure is None:
            _take_copy(copy, target)
            return target
        failures.append(f"{copy} {failure}")
    else:
        failures.append("no local data folder is given")
    for address in source.addresses:
        try:
            _download(address, target, source.sha256, patience)
            return target
        except _Refused as error:
            failures.append(f"{address} {error}")
    if not source.addresses:
        failures.append("it has no official address")
    raise FetchError(f"cannot get {source.name} of dataset {source.dataset}: {'; '.join(failures)}")


def _take_copy(copy: Path, target: Path) -> None:
    part = _part(target)
    part.unlink(missing_ok=True)
    try:
        os.link(copy.resolve(), part)
    except OSError:  # another file system, or one without links
        shutil.copyfile(copy, part)
    _finish(part, target)


def _download(address: str, target: Path, sha256: str | None, patience: Patience) -> None:
    """Download to ``target``, or raise _Refused with the reason."""
    part = _part(target)
    failures, furthest, pause, restarted = 0, 0, patience.pause_seconds, False
    while True:
        resumed = part.exists()
        asked_pause = 0.0
        try:
            _transfer(address, part, sha256, patience)
        except _Interrupted as error:
            reason, asked_pause = str(error), error.pause_seconds
        else:
            failure = _unusable(part, sha256)
            if failure is None:
                _finish(part, target)
                return
            _discard(part)
            # the part may mix two versions of the file, so the download starts again once
            if not resumed or restarted:
                raise _Refused(failure)
            restarted, furthest, reason = True, 0, failure
        size = part.stat().st_size if part.exists() else 0
        if size > furthest:
            failures, furthest, pause = 0, size, patience.pause_seconds
        failures += 1
        if failures >= patience.tries:
            raise _Refused(f"failed {failures} times in a row ({reason})")
        time.sleep(min(max(pause, asked_pause), _LONGEST_PAUSE_SECONDS))
        pause *= 2


def _transfer(address: str, part: Path, sha256: str | None, patience: Patience) -> None:
    """Make one request: append to ``part`` if the server supports it, else write it from the start."""
    start, headers = _resume_point(address, part, sha256)
    try:
        with requests.get(
            address, headers=headers, stream=True, timeout=(patience.connect_seconds, patience.stall_seconds)
        ) as response:
            if sha256 is None and (unsafe := left_https(response)):
                raise _Refused(f"redirects to {unsafe}, which is not https, and has no checksum")
            status = response.status_code
            if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
                if response.headers.get("Content-Range") == f"bytes */{start}":
                    return  # the part was already complete
                _discard(part)
                raise _Interrupted("its partial file no longer matches")
            if status in _WORTH_RETRYING:
                raise _Interrupted(
                    f"it answered {status} {response.reason}", _asked_pause(response.headers.get("Retry-After"))
                )
            if status not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                raise _Refused(f"answered {status} {response.reason}")
            if status == HTTPStatus.OK:
                start = 0
            elif not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
                _discard(part)
                raise _Interrupted("it sent another range than requested")
            if start == 0:
                _discard(part)
                storage.write_json(_note(part), {"address": address, "validator": _validator(response)})
            _receive(response, part, start, patience.stall_seconds)
    except (requests.RequestException, urllib3.exceptions.HTTPError, TimeoutError) as error:
        if isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.TooManyRedirects):
            raise _Refused(f"is not usable ({_short(error)})") from error
        if start == 0 and isinstance(_innermost(error), urllib3.exceptions.NameResolutionError):
            # usually there is no network, so waiting does not help; a download that has begun is worth a retry
            raise _Refused(f"cannot be reached ({_short(error)})") from error
        raise _Interrupted(_short(error)) from error


def left_https(response: requests.Response) -> str | None:
    """Return the first address without https to which an https address was redirected; None if there is none."""
    first, *others = [one.url for one in [*response.history, response]]
    return next((url for url in others if first.startswith("https:") and not url.startswith("https:")), None)


def _receive(response: requests.Response, part: Path, start: int, stall_seconds: float) -> None:
    length = response.headers.get("Content-Length", "")
    total = start + int(length) if length.isdecimal() else None
    response.raw.enforce_content_length = False  # checked below, where the message has the size of the whole file
    window_end, window_bytes = time.monotonic() + stall_seconds, 0
    with part.open("ab") as stream, work(part.name.removesuffix(".part").lstrip("."), total, "B", start) as progress:
        # raw bytes: if a server sends x.gz with "Content-Encoding: gzip", the file must not be unpacked
        while block := response.raw.read1(_CHUNK, decode_content=False):
            stream.write(block)
            progress.advance(len(block))
            window_bytes += len(block)
            if time.monotonic() > window_end:
                if window_bytes < 1024:
                    raise _Interrupted(f"only {window_bytes} bytes came in {stall_seconds:g} s")
                window_end, window_bytes = time.monotonic() + stall_seconds, 0
        size = stream.tell()
    if total is not None and size != total:
        raise _Interrupted(f"it ended after {size} of {total} bytes")


def _resume_point(address: str, part: Path, sha256: str | None) -> tuple[int, dict[str, str]]:
    """Return the number of bytes to keep, and the headers that request the rest."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "mc2core"}
    size = part.stat().st_size if part.exists() else 0
    if size:
        note: Any = {}
        with contextlib.suppress(ValueError, OSError):  # without the note, the download starts from byte 0
            note = storage.read_json(_note(part))
        validator = note.get("validator") if note.get("address") == address else None
        if validator:
            return size, headers | {"Range": f"bytes={size}-", "If-Range": validator}
        if sha256:
            return size, headers | {"Range": f"bytes={size}-"}
    return 0, headers


def _validator(response: requests.Response) -> str | None:
    etag = response.headers.get("ETag", "")
    # a weak ETag does not guarantee identical bytes
    return etag if etag.startswith('"') else response.headers.get("Last-Modified")


def _asked_pause(value: str | None) -> float:
    """Return the seconds that a Retry-After header requests, as a number of seconds or as a date."""
    if value is None:
        return 0.0
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


def _unusable(path: Path, sha256: str | None) -> str | None:
    """Return the reason why the file at ``path`` is not the expected one; None if it is."""
    size = path.stat().st_size
    if size == 0:
        return "is empty"
    with path.open("rb") as stream:
        beginning = stream.read(512).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if beginning.startswith((b"<!doctype html", b"<html")):
        return "gave an HTML page instead of data"
    if sha256 is not None and (found := storage.digest_file(path)) != sha256:
        return f"gave {size} bytes with the sha256 {found}, not {sha256}"
    return None


def _finish(part: Path, target: Path) -> None:
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    os.replace(part, target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    _discard(part)


def _part(target: Path) -> Path:
    return target.with_name(f".{target.name}.part")


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


def _innermost(error: BaseException) -> BaseException:
    """Return the innermost of nested network errors."""
    while isinstance(inner := getattr(error, "reason", None) or next(iter(error.args), None), BaseException):
        error = inner
    return error


def _short(error: BaseException) -> str:
    """Return the innermost reason of nested network errors as text on one line."""
    error = _innermost(error)
    inner = getattr(error, "reason", None) or next(iter(error.args), None)
    text = " ".join(str(inner or error).split()) or type(error).__name__
    return re.sub(r"^\S*Connection\(.*?\): ", "", text)[:200]
