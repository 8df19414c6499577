"""Rows of the first sheet of an Excel file (.xlsx), through openpyxl."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mc2core.base import extras

#: files that inflate beyond this are bombs
MOST_BYTES = 2**31
_MAX_RATIO = 200


def header(path: Path) -> list[str]:
    """Names of the columns: the cells of the first row. ValueError for what is no whole Excel file."""
    with _sheet(path) as rows:
        names = ["" if cell is None else str(cell).strip() for cell in next(rows, ())]
        while names and not names[-1]:
            del names[-1]
        return names


def rows(path: Path) -> Iterator[tuple[int, list[Any]]]:
    """(line, cells) of each row below the header that is not blank: text, numbers, dates, None. ValueError as there."""
    with _sheet(path) as found:
        for line, row in enumerate(found, 1):
            if line > 1 and any(cell is not None for cell in row):
                yield line, list(row)


@contextmanager
def _sheet(path: Path) -> Iterator[Iterator[tuple[Any, ...]]]:
    extras.require("openpyxl", extra="excel", purpose=path)
    import openpyxl

    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
        if size > min(MOST_BYTES, _MAX_RATIO * max(path.stat().st_size, 2**14)):
            raise ValueError(f"it claims {size} bytes, too many for its {path.stat().st_size}")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            yield book.worksheets[0].iter_rows(values_only=True)
        finally:
            book.close()
    except (
        OSError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        ValueError,
        SyntaxError,
        zipfile.BadZipFile,
    ) as error:
        # openpyxl and the parser of XML report damage by any of these
        raise ValueError(f"{path} is not a whole Excel file: {' '.join(str(error).split())}") from None
