"""Arrays that are used again: the pages of a new large one cost as much time as the arithmetic that fills it."""

from __future__ import annotations

import math

import numpy as np

# buffers are larger than requested by this factor, because the next batch may have more words
_MARGIN = 1.25


class Buffers:
    """Named memory for arrays that are not initialised. An array is valid until its name is requested again."""

    def __init__(self) -> None:
        self._kept: dict[str, np.ndarray] = {}

    def empty(self, name: str, *shape: int) -> np.ndarray:
        """Return an uninitialised float64 array of ``shape`` in the memory ``name``."""
        size = math.prod(shape)
        if name not in self._kept or self._kept[name].size < size:
            self._kept.pop(name, None)
            self._kept[name] = np.empty(int(_MARGIN * size))
        return self._kept[name][:size].reshape(shape)
