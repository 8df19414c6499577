"""The trace of a run as a file, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mc2core.base import storage


@contextmanager
def _trace_file(path: Any, rows: list[dict[str, float]]) -> Iterator[Callable[[dict[str, float]], None]]:
    """Write the rows there are, then yield a function that appends one more."""
    if path is None:
        yield lambda row: None
        return

    def line(row: dict[str, float]) -> str:
        return "\t".join(f"{value:.10g}" for value in row.values()) + "\n"

    with storage.replacing(path) as stream:
        for i, row in enumerate(rows):
            stream.write(("\t".join(row) + "\n" if i == 0 else "") + line(row))
    with Path(path).open("a", encoding="utf-8") as stream:

        def append(row: dict[str, float]) -> None:
            with storage.naming(path):
                if stream.tell() == 0:
                    stream.write("\t".join(row) + "\n")
                stream.write(line(row))
                stream.flush()

        yield append
