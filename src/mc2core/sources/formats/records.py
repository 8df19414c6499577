"""Rows of JSON Lines, CSV and Parquet files, one after another, each with its place for messages.

Files come from anybody: lines and fields have a limit, text must be UTF-8, a row must have the fields of the header.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mc2core.base.checks import did_you_mean

MAX_LINE_BYTES = 32 * 2**20
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_BATCH_ROWS = 65_536

Row = tuple[int, list[Any]]


def read_rows(path: str | os.PathLike[str], columns: Sequence[str]) -> Iterator[Row]:
    """Yield (line, values of ``columns``) of a file named .jsonl, .ndjson, .csv, .tsv or .parquet.

    ``line`` is the line on which the row ends (of Parquet: its number from 1). Values are text in CSV, whatever JSON
    holds in JSON Lines, with None for a key that is absent, and Python values in Parquet. Blank lines are skipped.

    Raises
    ------
    ValueError
        One sentence with file and line: not UTF-8, too long, not JSON, unfinished quotes, other fields than the
        header's, a column that the header lacks (the nearest is named), or an ending that is not known.
    """
    path = Path(path)
    yield from READERS[_kind(path)](path, columns)


def columns_of(path: str | os.PathLike[str]) -> list[str]:
    """Columns of a file that :func:`read_rows` reads; of JSON Lines the keys of all records, which reads it through.

    ValueError as there.
    """
    path = Path(path)
    kind = _kind(path)
    if kind in _SEPARATORS:
        return _header(csv_rows(path, _SEPARATORS[kind]))
    if kind == ".parquet":
        import pyarrow.parquet as pq

        with _whole_parquet(path):
            return list(pq.read_schema(path).names)
    return list(dict.fromkeys(key for _, record in _json_lines(path) for key in record))


def _kind(path: Path) -> str:
    kind = path.suffix.lower()
    if kind not in READERS:
        raise ValueError(f"{path} has the ending {kind!r}; endings that can be read are {', '.join(READERS)}")
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    return kind


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line with its end) of a UTF-8 file; a byte order mark is dropped."""
    with path.open("rb") as stream:
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(
                    f"{path}, line {number} has more than {MAX_LINE_BYTES} bytes, the most that is allowed"
                )
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = f"byte 0x{line[error.start]:02x} at place {error.start + 1}"
                raise ValueError(f"{path}, line {number} is not UTF-8 text: {byte}") from None


def _read_json_lines(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    seen: set[str] = set()
    has_record = False
    for number, record in _json_lines(path):
        has_record = True
        seen.update(column for column in columns if column in record)
        yield number, [record.get(column) for column in columns]
    for column in columns:
        if column not in seen and has_record:
            raise ValueError(f"{path}: no record has the key {column!r}")


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines_of(path):
        if line.isspace():
            continue
        try:
            record = json.loads(line, object_pairs_hook=_object, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deep" if isinstance(error, RecursionError) else error
            raise ValueError(f"{path}, line {number} is not one JSON object: {reason}") from None
        if not isinstance(record, dict):
            raise ValueError(f"{path}, line {number} holds {shown(record)}, not one JSON object")
        yield number, record


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"it has the key {shown(key)} twice")
        found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number; use null where a value is missing")


def _read_csv(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    rows = csv_rows(path, _SEPARATORS[path.suffix.lower()])
    places = _find_columns(path, _header(rows), columns)
    for line, row in rows:
        yield line, [row[place] for place in places]


def _header(rows: Iterator[Row]) -> list[str]:
    _, names = next(rows, (0, []))
    return [name.strip() for name in names]


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """(line on which it ends, fields) of each row of a CSV file, the header first; blank lines are skipped.

    ValueError: not UTF-8, unfinished quotes, or a row of another length than the header.
    """
    # the limit is one for the whole process, and its default (128 KiB) is less than a long document
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    rows = csv.reader((line for _, line in lines_of(path)), delimiter=delimiter, strict=True)
    n_fields = 0
    try:
        for row in rows:
            if not row:
                continue
            n_fields = n_fields or len(row)
            if len(row) != n_fields:
                raise ValueError(f"{path}, line {rows.line_num} has {len(row)} fields, but the header has {n_fields}")
            yield rows.line_num, row
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num} is not CSV: {error}") from None


def _read_parquet(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    import pyarrow.parquet as pq

    with _whole_parquet(path), pq.ParquetFile(path) as file:
        _find_columns(path, file.schema_arrow.names, columns)
        number = 0
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns)):
            for values in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
                number += 1
                yield number, list(values)


@contextmanager
def _whole_parquet(path: Path) -> Iterator[None]:
    """Say of what pyarrow cannot read that the file is damaged."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a whole Parquet file: {' '.join(str(error).split())}") from None


def _find_columns(path: Path, header: Sequence[str], columns: Sequence[str]) -> list[int]:
    if not header:
        raise ValueError(f"{path} is empty; its first line must name the columns")
    for i, name in enumerate(header):
        if name in header[:i]:
            raise ValueError(f"{path} has the column {name!r} twice")
    for column in columns:
        if column not in header:
            hint = did_you_mean(column, header)
            raise ValueError(f"{path} has no column {column!r}{hint} (columns: {', '.join(header)[:200]!r})")
    return [header.index(column) for column in columns]


def shown(value: Any) -> str:
    """A value as a message shows it, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


READERS = {
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
}
