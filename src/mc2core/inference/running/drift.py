"""Checks after ``mc2 update`` whether a fit still suits its new documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

#: If documents are less likely than documents of earlier updates by this many nats per word, the model no longer fits.
#: This is 1.28 times the perplexity. Successive years of NIPS differ by 0.02 to 0.04.
MIN_DRIFT = 0.25
#: the same at the first update. Here, the comparison is with documents that the model learnt from: the next year of
#: NIPS is 0.41 lower.
FIRST_DRIFT = 0.75
#: if this share of the documents is in clusters that were small or empty, the model no longer fits
MAX_IN_SMALL = 0.2
#: if this share of the tokens has no column, the model no longer fits
MAX_LEFT_OUT = 0.2


def drift(fitted: Mapping[str, Any], updates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how well the model fitted the documents of the last update before it learnt from them.

    ``fitted`` and ``updates`` are attributes of a :class:`mc2core.inference.Stream`.

    The result has these entries. ``log_likelihood``: lower bound on the log likelihood of words and contexts, in nats
    per word. ``before``: the same for the documents of earlier updates or, for the first update, for the fitted
    documents, from which the model had learnt (None if the fit completed no epoch). ``in_small`` and ``left_out``:
    shares of documents in clusters that were small or empty, and of tokens without a column. ``warnings``: a sentence
    if the log likelihood is lower than before by MIN_DRIFT, or FIRST_DRIFT for the first update, and one for each share
    above its bound.
    """
    *earlier, now = updates
    known = earlier or [fitted]
    tokens = sum(one["tokens"] for one in known)
    evidences = [one["log_evidence"] for one in known]
    before = None if None in evidences or not tokens else math.fsum(evidences) / tokens
    likelihood = now["log_evidence"] / max(now["tokens"], 1)
    in_small = now["in_small"] / max(now["documents"], 1)
    left_out = now["left_out_tokens"] / max(now["left_out_tokens"] + now["tokens"], 1)
    warnings = []
    if before is not None and likelihood < before - (MIN_DRIFT if earlier else FIRST_DRIFT):
        whose = "the documents of earlier updates" if earlier else "the fitted documents"
        warnings.append(
            f"the new documents are less likely than {whose} ({likelihood:.3f} against {before:.3f} nats per word, "
            "before training on them)"
        )
    if in_small > MAX_IN_SMALL:
        warnings.append(
            f"{in_small:.0%} of the new documents are in clusters that were empty or had less than 1 % of the documents"
        )
    if left_out > MAX_LEFT_OUT:
        warnings.append(f"{left_out:.0%} of the words of the new documents are unknown")
    return {
        "log_likelihood": likelihood, "before": before, "in_small": in_small, "left_out": left_out,
        "warnings": warnings,
    }  # fmt: skip
