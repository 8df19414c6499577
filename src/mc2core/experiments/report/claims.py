"""Claims of the papers and what our numbers say of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from mc2core.base import storage

#: what can be said of a claim, and of several
VERDICTS = {"holds": "hold", "does not hold": "do not hold", "not computed": "not computed"}


class Claim(NamedTuple):
    """What a paper says of a dataset, and what our numbers say of that.

    ``holds`` is None where what it speaks of was not computed; ``numbers`` are those that decide.
    """

    dataset: str
    text: str
    holds: bool | None
    numbers: str

    @property
    def verdict(self) -> str:
        """``holds`` in words."""
        return "not computed" if self.holds is None else "holds" if self.holds else "does not hold"


def no_further_than_seeds(difference: float, sd: float, over: str, digits: int) -> str:
    """What the numbers add where a difference decides that is smaller than one sd; "" where it is not."""
    return f" (no further apart than one sd between {over}, {sd:.{digits}f})" if abs(difference) < sd else ""


def claims_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """Columns dataset, claim, verdict, numbers."""
    rows = [(one.dataset, one.text, one.verdict, one.numbers) for one in claims]
    return pd.DataFrame(rows, columns=["dataset", "claim", "verdict", "numbers"])


def write_claims(path: str | os.PathLike[str], target: str, claims: Sequence[Claim]) -> None:
    """Write the claims of a target as CSV; its name comes first."""
    table = claims_table(claims)
    table.insert(0, "target", target)
    with storage.replacing(path) as stream:
        table.to_csv(stream, index=False)
