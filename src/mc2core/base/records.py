"""Reading of rows of tables (JSON Lines, CSV, Parquet, Excel) and of folders of text files.

Each row has its place for messages. Files may be malformed: the length of lines and fields is limited, text must be
UTF-8, and a row must have as many fields as the header.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from pathlib import Path
from typing import IO, Any, cast

from mc2core.base import extras
from mc2core.base.checks import counted, did_you_mean, shown
from mc2core.base.faults import BadRow, Fault

MAX_LINE_BYTES = 32 * 2**20
#: compressed files that unpack to more than this and so many times their size are rejected
SMALL_BYTES, GZIP_RATIO, PARQUET_RATIO = 2**28, 200, 1000
FOLDER = "folder"
_SEPARATORS = (".csv", ".tsv")
_BINARY = (".parquet", ".xlsx", "")
_FOLDER_COLUMNS = ("text", "file", "folder")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_TO_UTF8 = (
    "text in another encoding must be converted, from Windows-1252 or Latin-1 by iconv -f cp1252 -t utf-8 OLD > NEW"
)
_BATCH_ROWS = 8_192
_START = 1000  # bytes that show UTF-16 and UTF-32
# the mark of UTF-32 begins with the mark of UTF-16
_MARKS = dict.fromkeys((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-32") | dict.fromkeys(
    (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16"
)

#: Excel files that unpack to more than this, or so many times their size, are rejected
MAX_EXCEL_BYTES, _EXCEL_RATIO = 2**31, 200
# of a sheet, as the format has it
_MAX_ROWS, _MAX_COLUMNS = 2**20, 2**14
# errors by which openpyxl, the XML parser and zipfile report damage; a damaged flag may look like encryption or another
# compression
_DAMAGED_EXCEL = (
    *(OSError, LookupError, TypeError, AttributeError, ValueError, SyntaxError, RuntimeError, ArithmeticError),
    *(EOFError, AssertionError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)
_OLE = b"\xd0\xcf\x11\xe0"  # first bytes of encrypted Excel files, and of Excel files before 2007

Row = tuple[int, list[Any]]


def read_rows(path: str | os.PathLike[str], columns: Sequence[str]) -> Iterator[Row]:
    """Yield (line, values of ``columns``) for each row of a file with a suffix in ENDINGS, or of a folder.

    ``line`` is the last line of the row or, for Parquet, the number of the row from 1. Values are texts in CSV, JSON
    values in JSON Lines (None for absent keys), and Python values in Parquet and Excel files. Blank lines are skipped.
    If the header of a CSV file has semicolons or tabs but no commas, these are the separators. Text files may be
    compressed by gzip (.csv.gz).

    The rows of a folder are all .txt files in it and its subfolders that are not hidden, in the order of their paths.
    The columns are ``text``, ``file`` (path in the folder) and ``folder`` (name of the folder of the file).
    :func:`left_out_files` counts other files.

    Raises
    ------
    ValueError
        If a line is not UTF-8, too long or not JSON, if quotes are not closed, if a row has another number of fields
        than the header, if a column does not exist, or if the suffix is unknown. The message has the file and line.
    MissingPackage
        If the package that reads Parquet or Excel files is needed and not installed.
    """
    for place, values in rows_or_faults(path, columns):
        if isinstance(values, Fault):
            raise ValueError(f"{path}, {BadRow(place, None, values.message)}")
        yield place, values


def rows_or_faults(path: str | os.PathLike[str], columns: Sequence[str]) -> Iterator[tuple[Any, list[Any] | Fault]]:
    """Yield rows like :func:`read_rows`, with a Fault in place of the values of an unreadable row."""
    path = Path(path)
    yield from READERS[form_of(path)](path, columns)


def has_decimal_commas(path: str | os.PathLike[str]) -> bool:
    """Return whether numbers may have a decimal comma, as in CSV files with semicolons as separators."""
    path = Path(path)
    return form_of(path) == ".csv" and delimiter_of(path) == ";"


def columns_of(path: str | os.PathLike[str]) -> list[str]:
    """Return the columns of a file that :func:`read_rows` can read.

    For JSON Lines, these are the keys of all records, for which the whole file is read. Raises ValueError for the same
    reasons as :func:`read_rows`.
    """
    path = Path(path)
    kind = form_of(path)
    if kind == FOLDER:
        return list(_FOLDER_COLUMNS)
    if kind == ".parquet":
        with _whole_parquet(path):
            import pyarrow.parquet as pq

            return list(pq.read_schema(path).names)
    if kind == ".xlsx":
        return _header(_excel_rows(path))
    if kind in _SEPARATORS:
        return _header(csv_rows(path, delimiter_of(path)))
    records = (record for _, record in json_lines(path) if not isinstance(record, Fault))
    return list(dict.fromkeys(key for record in records for key in record))


def form_of(path: Path) -> str:
    """Return the suffix of a file in ENDINGS, or FOLDER. Raises ValueError for other suffixes and missing files."""
    if path.is_dir():
        return FOLDER
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    kind = name.suffix.lower()
    if kind not in READERS or (name != path and kind in _BINARY):
        raise ValueError(
            f"{path} has the ending {kind!r}; supported endings are {', '.join(ENDINGS)}. In Python, "
            "mc2core.Corpus(counts, vocabulary) takes a matrix of counts"
        )
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    return kind


@contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Convert errors of gzip in the block to a ValueError on the damaged file."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is damaged or cut off: {error or type(error).__name__}") from None


def open_text(path: Path, is_packed: bool) -> IO[bytes]:
    """Open a file for reading bytes, decompressed if ``is_packed`` by gzip."""
    return cast(IO[bytes], gzip.open(path)) if is_packed else path.open("rb")


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line of a UTF-8 file; a byte order mark is removed.

    The text includes the end of the line. Raises ValueError if a line is not UTF-8 or too long.
    """
    for number, line in _lines(path):
        if fault := _fault_of(line):
            raise ValueError(f"{path}, line {number} {fault.message}; {fault.remedy}")
        yield number, line


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield lines like :func:`lines_of`, but bytes that are not UTF-8 become halves of surrogate pairs."""
    is_packed = path.suffix.lower() == ".gz"
    with reporting_damage(path), open_text(path, is_packed) as stream:
        number, size = 0, 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if number == 1 and (fault := _fault_of_start(line[:_START])):
                raise ValueError(f"{path} {fault.message}; {fault.remedy}")
            if number == 1 and b"\r" in line.rstrip(b"\r") and b"\n" not in line:
                raise ValueError(
                    rf"{path} has line ends of old Macs (CR); LF is needed; tr '\r' '\n' < OLD > NEW converts them"
                )
            size += len(line)
            if is_packed and size > SMALL_BYTES:
                refuse_bomb(path, size, GZIP_RATIO)
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(
                    f"{path}, line {number} has more than {MAX_LINE_BYTES} bytes, the most that is allowed"
                )
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8", errors="surrogateescape")


def _fault_of_start(start: bytes) -> Fault | None:
    """Return a Fault if a text is UTF-16 or UTF-32, recognised by its byte order mark or by many zero bytes."""
    name = next((name for mark, name in _MARKS.items() if start.startswith(mark)), "")
    if not name and 4 * start.count(0) < max(len(start), 4):
        return None
    if not name:
        is_wide = [not any(start[first::4]) and not any(start[first + 1 :: 4]) for first in (2, 0)]
        is_little = is_wide[0] if any(is_wide) else start.find(0) % 2
        name = f"utf-{32 if any(is_wide) else 16}{'le' if is_little else 'be'}"
    return Fault(f"is {name[:6].upper()} text; UTF-8 is needed", f"iconv -f {name} -t utf-8 OLD > NEW converts it")


def _fault_of(text: str) -> Fault | None:
    """Return the Fault of a text that was decoded with ``surrogateescape``, or None."""
    if text.isascii() or not (bad := _NOT_UTF8.search(text)):
        return None
    position = len(text[: bad.start()].encode()) + 1
    return Fault(f"is not UTF-8 text: byte 0x{ord(bad[0]) - 0xDC00:02x} at place {position}", _TO_UTF8)


def _read_json_lines(path: Path, columns: Sequence[str]) -> Iterator[tuple[Any, list[Any] | Fault]]:
    present: set[str] = set()
    has_record = False
    for number, record in json_lines(path):
        if isinstance(record, Fault):
            yield number, record
            continue
        has_record = True
        present.update(column for column in columns if column in record)
        yield number, [record.get(column) for column in columns]
    for column in columns:
        if column not in present and has_record:
            keys = columns_of(path)
            listed = ", ".join(keys)[:200]
            raise ValueError(f"{path}: no record has the key {column!r}{did_you_mean(column, keys)} (keys: {listed!r})")


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    """Yield the number, from 1, and the object (or Fault) of each line of JSON Lines that is not blank."""
    for number, line in _lines(path):
        if not line.isspace():
            yield number, _record(line)


def record_of(line: bytes, is_first: bool) -> dict[str, Any] | Fault:
    """Return the object in a line of JSON Lines, or its Fault. The first line may have a byte order mark."""
    return _record(line.decode("utf-8-sig" if is_first else "utf-8", errors="surrogateescape"))


def _record(line: str) -> dict[str, Any] | Fault:
    if fault := _fault_of(line):
        return fault
    try:
        record = json.loads(line, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else error
        return Fault(f"is not one JSON object: {reason}")
    return record if isinstance(record, dict) else Fault(f"holds {shown(record)}, not one JSON object")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"it has the key {shown(key)} twice")
        values[key] = value
    return values


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number; use null for a missing value")


def _read_csv(path: Path, columns: Sequence[str]) -> Iterator[tuple[Any, list[Any] | Fault]]:
    rows = _csv_rows(path, delimiter_of(path))
    header = next(rows, (0, []))[1]
    if isinstance(header, Fault):
        raise ValueError(f"{path}, line 1 {header.message}")
    places = find_columns(path, [name.strip() for name in header], columns)
    for line, row in rows:
        yield line, row if isinstance(row, Fault) else [row[index] for index in places]


def delimiter_of(path: Path) -> str:
    """Return the delimiter of a file: a tab for .tsv; for .csv the tab, semicolon or comma of the header."""
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    if name.suffix.lower() == ".tsv":
        return "\t"
    header = next((line for _, line in _lines(path) if line.strip()), "")
    for delimiter in "\t;":
        try:
            fields = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:  # the reader of rows reports the error
            return ","
        if len(fields) > 1 and "," not in "".join(fields):
            return delimiter
    return ","


def _header(rows: Iterator[Row]) -> list[str]:
    _, names = next(rows, (0, []))
    return [name.strip() for name in names]


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield the last line and the fields of each row of a CSV file, including the header; blank lines are skipped.

    Raises ValueError if the file is not UTF-8, if quotes are not closed, or if a row has another number of fields than
    the header.
    """
    for line, row in _csv_rows(path, delimiter):
        if isinstance(row, Fault):
            raise ValueError(f"{path}, line {line} {row.message}")
        yield line, row


def _csv_rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str] | Fault]]:
    """Yield rows like :func:`csv_rows`, with a Fault in place of the fields of an unreadable row."""
    # the limit is one for the whole process, and its default (128 KiB) is less than a long document
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    rows = csv.reader((line for _, line in _lines(path)), delimiter=delimiter, strict=True)
    n_fields = 0
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield rows.line_num, Fault(f"is not CSV: {error}")
            continue
        if row is None:
            return
        fault = next((fault for field in row if (fault := _fault_of(field))), None)
        n_fields = n_fields or len(row)
        if fault:
            yield rows.line_num, fault
        elif row and len(row) != n_fields:
            yield rows.line_num, Fault(f"has {counted(len(row), 'fields')}, but the header has {n_fields}")
        elif row:
            yield rows.line_num, row


def _read_folder(path: Path, columns: Sequence[str]) -> Iterator[tuple[Any, list[Any] | Fault]]:
    find_columns(path, _FOLDER_COLUMNS, columns)
    if (path / "corpus.json").is_file():
        raise ValueError(f"{path} is a saved corpus already, not a folder of text files")
    texts, *other_files = _files_in(path)
    if not texts:
        raise ValueError(
            f"{path} has no document: of its {sum(map(len, other_files))} files none is named .txt and not hidden"
        )
    for name in texts:
        file = path / name
        place = f"file {str(name)!r}"
        if file.stat().st_size > MAX_LINE_BYTES:
            yield place, Fault(f"has more than {MAX_LINE_BYTES} bytes, the most that is allowed")
            continue
        content = file.read_bytes()
        text = content.decode("utf-8-sig", errors="surrogateescape")
        values = {"text": text, "file": name.as_posix(), "folder": name.parent.name}
        yield place, _fault_of_start(content[:_START]) or _fault_of(text) or [values[column] for column in columns]


def left_out_files(path: str | os.PathLike[str]) -> list[tuple[str, int, str]]:
    """Return the numbers of files of a folder that :func:`read_rows` leaves out, as ("files", number, reason)."""
    _, hidden, other_files = _files_in(Path(path))
    reasons = (hidden, "hidden: a name that begins with a dot"), (other_files, "not named .txt")
    return [("files", len(files), why) for files, why in reasons if files]


def _files_in(folder: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """Return the relative paths of texts in a folder, of hidden files, and of other files."""
    files = sorted(one.relative_to(folder) for one in folder.rglob("*") if one.is_file())
    is_hidden = [any(part.startswith(".") for part in one.parts) for one in files]
    visible = [one for one, hidden in zip(files, is_hidden, strict=True) if not hidden]
    texts = [one for one in visible if one.suffix.lower() == ".txt"]
    other_files = [one for one in visible if one.suffix.lower() != ".txt"]
    return texts, list(compress(files, is_hidden)), other_files


def _read_parquet(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    with _whole_parquet(path):
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            find_columns(path, file.schema_arrow.names, columns)
            leaves = [file.schema.column(index) for index in range(len(file.schema))]
        texts = [one.path for one in leaves if one.physical_type == "BYTE_ARRAY" and one.logical_type.type != "DECIMAL"]
        # as dictionaries, repeated text needs memory only once
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            prefixes = tuple(f"{column}." for column in columns)
            used = [index for index, one in enumerate(leaves) if f"{one.path}.".startswith(prefixes)]
            parts = [group.column(index) for group in groups for index in used]
            number, size = 0, sum(part.total_uncompressed_size + 8 * part.num_values for part in parts)
            refuse_bomb(path, size, PARQUET_RATIO)
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns)):
                size += sum(map(_count_bytes, batch.columns))
                refuse_bomb(path, size, PARQUET_RATIO)
                for values in zip(*(_to_list(batch.column(name)) for name in columns), strict=True):
                    number += 1
                    yield number, list(values)


def _count_bytes(array: Any) -> int:
    """Return the number of bytes of all texts of an array, including repeated texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        if not pa.types.is_string(array.type.value_type):
            return 0
        return pc.sum(pc.binary_length(array.dictionary).take(array.indices)).as_py() or 0
    if pa.types.is_struct(array.type):
        return sum(map(_count_bytes, array.flatten()))
    if pa.types.is_map(array.type):
        return _count_bytes(array.keys) + _count_bytes(array.items)
    return _count_bytes(array.flatten()) if pa.types.is_nested(array.type) else 0


def _to_list(array: Any) -> list[Any]:
    import pyarrow as pa

    if not pa.types.is_dictionary(array.type):
        return array.to_pylist()
    values = [*array.dictionary.to_pylist(), None]
    return [values[-1 if index is None else index] for index in array.indices.to_pylist()]


def refuse_bomb(path: Path, size: int, ratio: int) -> None:
    """Raise ValueError if the decompressed ``size`` exceeds SMALL_BYTES and ``ratio`` times the size of the file."""
    if size > max(SMALL_BYTES, ratio * path.stat().st_size):
        raise ValueError(
            f"{path} inflates to {size} bytes or more, over {ratio} times its size; if that is right, give it as text, "
            "unpacked (.csv, .jsonl)"
        )


@contextmanager
def _whole_parquet(path: Path) -> Iterator[None]:
    """Require pyarrow, and convert its errors in the block to a ValueError on the damaged file."""
    extras.require("pyarrow", extra="parquet", purpose=path)
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a complete Parquet file: {' '.join(str(error).split())}") from None


def _read_excel(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    rows = _excel_rows(path)
    places = find_columns(path, _header(rows), columns)
    for line, row in rows:
        yield line, [row[index] for index in places]


def _excel_rows(path: Path) -> Iterator[Row]:
    """Yield the row number and the cells of each non-blank row of the first visible sheet, including the header.

    The stored dimension of the sheet is not used, because it may be wrong. Raises ValueError if the file is not a
    complete Excel file.
    """
    extras.require("openpyxl", extra="excel", purpose=path)
    import openpyxl

    with path.open("rb") as stream:
        if stream.read(len(_OLE)) == _OLE:
            raise ValueError(
                f"{path} is encrypted, or of Excel before 2007; save it as an Excel workbook (.xlsx) without a password"
            )
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
        if size > min(MAX_EXCEL_BYTES, _EXCEL_RATIO * max(path.stat().st_size, 2**14)):
            raise ValueError(f"it declares {size} bytes, too many for a file of {path.stat().st_size}")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            sheet = next((one for one in book.worksheets if one.sheet_state == "visible"), book.worksheets[0])
            header = next(sheet.iter_rows(max_row=1, max_col=_MAX_COLUMNS, values_only=True), ())
            names = ["" if cell is None else str(cell).strip() for cell in header]
            while names and not names[-1]:
                del names[-1]
            yield 1, names
            if names:
                rows = sheet.iter_rows(min_row=2, max_row=_MAX_ROWS, max_col=len(names), values_only=True)
                yield from ((n, list(row)) for n, row in enumerate(rows, 2) if any(cell is not None for cell in row))
        finally:
            book.close()
    except _DAMAGED_EXCEL as error:
        raise ValueError(f"{path} is not a complete Excel file: {' '.join(str(error).split())}") from None


def find_columns(path: Path, header: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Return the positions of ``columns`` in a header.

    Raises ValueError if the header is empty, or if a column is missing or occurs twice.
    """
    if not header:
        raise ValueError(f"{path} is empty; its first line must name the columns")
    for column in columns:
        if header.count(column) > 1:
            raise ValueError(f"{path} has the column {column!r} twice")
        if column not in header:
            hint = did_you_mean(column, header)
            raise ValueError(f"{path} has no column {column!r}{hint} (columns: {', '.join(header)[:200]!r})")
    return [header.index(column) for column in columns]


READERS = {
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
    FOLDER: _read_folder,
}
ENDINGS = [ending for ending in READERS if ending != FOLDER]
