"""Rows of the first sheet of an Excel file (.xlsx), through openpyxl."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mc2core.base import extras

#: files that inflate beyond this are bombs
MAX_BYTES = 2**31
_MAX_RATIO = 200
# of a sheet, as the format has it
_MAX_ROWS, _MAX_COLUMNS = 2**20, 2**14
# what openpyxl and the parser of XML report damage by
_DAMAGE = (OSError, LookupError, TypeError, AttributeError, ValueError, SyntaxError, zipfile.BadZipFile)


def rows(path: Path) -> Iterator[tuple[int, list[Any]]]:
    """(line, cells) of each row that is not blank, the header first: text, numbers, dates, None.

    The dimension that the sheet states is not used: it may be too small or too large. ValueError for what is no whole
    Excel file.
    """
    with _sheet(path) as sheet:
        header = next(sheet.iter_rows(max_row=1, max_col=_MAX_COLUMNS, values_only=True), ())
        names = ["" if cell is None else str(cell).strip() for cell in header]
        while names and not names[-1]:
            del names[-1]
        yield 1, names
        if names:
            found = sheet.iter_rows(min_row=2, max_row=_MAX_ROWS, max_col=len(names), values_only=True)
            yield from ((line, list(row)) for line, row in enumerate(found, 2) if any(cell is not None for cell in row))


@contextmanager
def _sheet(path: Path) -> Iterator[Any]:
    extras.require("openpyxl", extra="excel", purpose=path)
    import openpyxl

    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
        if size > min(MAX_BYTES, _MAX_RATIO * max(path.stat().st_size, 2**14)):
            raise ValueError(f"it claims {size} bytes, too many for its {path.stat().st_size}")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            yield book.worksheets[0]
        finally:
            book.close()
    except _DAMAGE as error:
        raise ValueError(f"{path} is not a whole Excel file: {' '.join(str(error).split())}") from None
