"""Claims of the papers and what our numbers say of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import pandas as pd

from mc2core.base import storage

CLAIM_COLUMNS = ["target", "dataset", "claim", "verdict", "numbers"]


def claim(target: str, dataset: str, text: str, holds: bool | None, numbers: str) -> dict[str, str]:
    """One row of a table of claims; ``holds`` is None where what it speaks of was not computed."""
    verdict = "not computed" if holds is None else "holds" if holds else "does not hold"
    return dict(zip(CLAIM_COLUMNS, (target, dataset, text, verdict, numbers), strict=True))


def write_claims(path: str | os.PathLike[str], claims: Sequence[Mapping[str, str]]) -> None:
    """Write rows of :func:`claim` as CSV."""
    with storage.replacing(path) as stream:
        pd.DataFrame(claims, columns=CLAIM_COLUMNS).to_csv(stream, index=False)
