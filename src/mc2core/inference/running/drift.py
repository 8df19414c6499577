"""Checks whether the model of a fit is still adequate for new documents, after ``mc2 update``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

#: decrease of the log likelihood, in nats per word relative to earlier updates, from which a warning is given. It
#: corresponds to 1.28 times the perplexity. Successive years of NIPS differ by 0.02 to 0.04.
MIN_DRIFT = 0.25
#: the same limit for the first update, relative to the fitted documents. It is larger, because the model has been
#: fitted to these documents: the next year of NIPS is 0.41 lower.
FIRST_DRIFT = 0.75
#: fraction of the documents in clusters that were small or empty, above which a warning is given
MAX_IN_SMALL = 0.2
#: fraction of the tokens whose words are unknown, above which a warning is given
MAX_LEFT_OUT = 0.2


def drift(fitted: Mapping[str, Any], updates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how well the model fitted the documents of the last update before it was updated with them.

    Parameters
    ----------
    fitted, updates : attributes of a :class:`mc2core.inference.Stream`.

    Returns
    -------
    dict
        ``log_likelihood``: float, lower bound on the log likelihood of words and contexts, in nats per word.
        ``before``: float, the same bound for the documents of earlier updates or, at the first update, for the fitted
        documents; None if the fit completed no epoch. ``in_small``: float, fraction of the documents in clusters that
        were small or empty. ``left_out``: float, fraction of the tokens whose words are unknown. ``warnings``: list of
        sentences, one for each limit of this module that is exceeded.
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
