"""NIPS 2012 figure 1: distance from the truth over time."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mc2core.experiments.nips2012.convergence import JUDGED, SOONER, compare, judge, judge_bits, longest
from mc2core.experiments.report.claims import claim


def figure_claims(curves: pd.DataFrame) -> list[dict[str, str]]:
    """What NIPS12 says of its figure 1, held against the curves of one dataset."""
    fits, dataset = compare(curves), curves["dataset"].iloc[0]
    verdicts: Sequence[tuple[str, bool | None, str]] = [
        *(verdict for method in JUDGED for verdict in judge(longest(fits), dataset, method, SOONER)),
        judge_bits(fits),
    ]
    return [claim("nips2012_figure1", dataset, *verdict) for verdict in verdicts]
