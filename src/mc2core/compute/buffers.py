"""Reusable memory for large arrays, because allocating a new array takes as long as the arithmetic that fills it."""

from __future__ import annotations

import math

import numpy as np

# factor by which a buffer is larger than requested, because the next batch may have more words
_MARGIN = 1.25


class Buffers:
    """Named buffers for uninitialised arrays. An array is valid until its name is requested again."""

    def __init__(self) -> None:
        self._kept: dict[str, np.ndarray] = {}

    def empty(self, name: str, *shape: int) -> np.ndarray:
        """Return an uninitialised float64 array of ``shape`` in the buffer ``name``."""
        size = math.prod(shape)
        if name not in self._kept or self._kept[name].size < size:
            self._kept.pop(name, None)
            self._kept[name] = np.empty(int(_MARGIN * size))
        return self._kept[name][:size].reshape(shape)
