"""Lines of a pipe as they come: many together where many wait, those there are where no more do."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from typing import IO

from mc2core.base.faults import Fault
from mc2core.base.records import MAX_LINE_BYTES

_CHUNK = 1 << 16

Line = tuple[int, bytes | Fault]
"""Number from 1, and the line without its end; a Fault for one that is too long."""


def batches_of_lines(stream: IO[bytes], most: int) -> Iterator[list[Line]]:
    """Lines of ``stream``, which has a descriptor, at most ``most`` at a time; no batch waits for lines to come.

    Memory holds a batch and a line of at most MAX_LINE_BYTES, whatever comes.
    """
    descriptor, batch = stream.fileno(), list[Line]()
    for line in _lines(descriptor):
        if line is not None:
            batch.append(line)
        if batch and (line is None or len(batch) == most):
            yield batch
            batch = []
    if batch:
        yield batch


def _lines(descriptor: int) -> Iterator[Line | None]:
    """Lines, and None before a wait for more."""
    number, begun, length = 0, list[bytes](), 0
    too_long = Fault(f"has more than {MAX_LINE_BYTES} bytes, the most that is allowed")
    while True:
        if not select.select([descriptor], [], [], 0.0)[0]:
            yield None
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            break
        *ended, rest = chunk.split(b"\n")
        for end in ended:
            number += 1
            yield number, b"".join([*begun, end]) if length + len(end) <= MAX_LINE_BYTES else too_long
            begun, length = [], 0
        length += len(rest)
        begun = [*begun, rest] if length <= MAX_LINE_BYTES else []
    if length:
        yield number + 1, b"".join(begun) if length <= MAX_LINE_BYTES else too_long
