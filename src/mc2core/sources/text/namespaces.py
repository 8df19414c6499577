"""Names of files' and categories' namespaces in links, as compiled scanners read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

#: kinds of links
FILE, CATEGORY = 1, 2


def pack_names(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Names as one run of bytes and (n + 1,) int64 offsets into it."""
    encoded = [name.encode() for name in names]
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), np.cumsum([0, *map(len, encoded)])


class Namespaces:
    """Names that make a link a file or a category: those of English and, in addition, of the wiki at hand.

    Parameters
    ----------
    file, category : names of the namespaces -2 and 6, and of 14, in the wiki's own language.
    """

    def __init__(self, file: Iterable[str] = (), category: Iterable[str] = ()) -> None:
        files, categories = {"file", "image", "media", *file}, {"category", *category}
        names = sorted(
            (name.lower(), kind) for kind, group in ((FILE, files), (CATEGORY, categories)) for name in group
        )
        self.bytes, self.ends = pack_names([name for name, _ in names])
        self.kinds = np.array([kind for _, kind in names], dtype=np.int64)


ENGLISH = Namespaces()
