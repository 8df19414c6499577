"""How new documents came to a fit that went on with them (``mc2 update``), and whether it still fits them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

#: nats a word by which documents are less likely than those of earlier updates, from which on the model no longer fits:
#: 1.28 times the perplexity. Years of NIPS are 0.02 to 0.04 apart
MIN_DRIFT = 0.25
#: the same at the first update, beside documents of the fit, which it had learnt from: NIPS' next year is 0.41 lower
FIRST_DRIFT = 0.75
#: share of documents in clusters that were small or empty, from which on the model no longer fits
MAX_IN_SMALL = 0.2
#: share of tokens without a column, from which on the model no longer fits
MAX_LEFT_OUT = 0.2


def drift(fitted: Mapping[str, Any], updates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How the documents of the last update came to the model, before it learnt from them, and whether it still fits.

    ``fitted`` and ``updates`` are those of a :class:`mc2core.inference.Stream`.

    ``log_likelihood`` : nats a word, the bound on that of words and contexts. ``before`` : that of the documents of
    the updates before, likewise before they were learnt from; of those of the fit, which it had learnt from, where this
    is the first (None: it had not ended an epoch). ``in_small`` and ``left_out`` : shares of documents in clusters
    that were small or empty, and of tokens without a column. ``warnings`` : sentences, one where the log likelihood is
    lower than before by MIN_DRIFT, or FIRST_DRIFT, one for each share above its bound.
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
        whose = "those of earlier updates" if earlier else "the fit's own, which it had learnt from"
        warnings.append(
            f"the new documents are less likely than {whose}, by {before - likelihood:.3f} nats a word: "
            f"{likelihood:.3f}, before they were learnt from, in place of {before:.3f}"
        )
    if in_small > MAX_IN_SMALL:
        warnings.append(f"{in_small:.0%} of the new documents are in clusters that held less than 1 % before, or none")
    if left_out > MAX_LEFT_OUT:
        warnings.append(f"{left_out:.0%} of the words of the new documents have no column")
    return {
        "log_likelihood": likelihood, "before": before, "in_small": in_small, "left_out": left_out,
        "warnings": warnings,
    }  # fmt: skip
