"""What FastEx refuses: settings that its arithmetic cannot serve, and needs beyond this machine's memory."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from mc2core.base import memory
from mc2core.base.checks import MOST_LABELS
from mc2core.compute.signatures import WORD_BITS, n_signature_words
from mc2core.inference.fastex.components import GAUSS_WISHART, GAUSSIAN, MULTINOMIAL, Settings

#: most that the parameters of a Dirichlet prior sum to: the log-gamma of the sum is good to 4e-6 nats
MAX_PRIOR_SUM = 1e9


def refuse_prior_sum(name: str, value: float, number: int, of: str) -> None:
    """ValueError where a prior of ``value`` for each of ``number`` things, named ``of``, is too large in all."""
    if value * number > MAX_PRIOR_SUM:
        raise ValueError(
            f"{name} is {value:g} for each of {number} {of}; it must be at most {MAX_PRIOR_SUM / number:g}, since the "
            "log-gamma of a larger sum lacks the digits in which counts differ"
        )


def refuse_counts(word_totals: np.ndarray, proposal: str, settings: Settings) -> None:
    """ValueError where a word's tokens in all, (V,) int64 ``word_totals``, are too many for the kernels' integers."""
    d = int(np.argmax(word_totals))
    found = f"word {d} occurs {int(word_totals[d])} times in all, too often for"
    squaring = {GAUSSIAN: "gaussian", GAUSS_WISHART: "gauss_wishart"}.get(settings.component)
    if squaring and np.sum(word_totals.astype(np.float64) ** 2) >= 2.0**62:
        raise ValueError(f"{found} component={squaring!r}, which sums squares of counts in 64 bits")
    if proposal == "exact" and settings.component != GAUSS_WISHART and word_totals[d] > MOST_LABELS:
        raise ValueError(f"{found} proposal={proposal!r}, which counts to {MOST_LABELS}; use proposal='hash'")


def hashed_bytes(n_clusters: int, bits: int) -> int:
    """Bytes that hashed proposals keep of clusters: sums of coordinates, signatures and sizes; not their counts."""
    return n_clusters * (n_signature_words(bits) * (4 * WORD_BITS + 8) + 6 * 8 + 3 * 4)


def refuse_beyond_memory(proposal: str, n_bytes: int, n_words: int, settings: Settings) -> None:
    """ValueError where ``n_bytes`` are not available."""
    remedy = "use fewer clusters"
    if settings.component == GAUSS_WISHART:
        remedy = "use fewer clusters or words, since each cluster keeps two matrices of words by words"
    elif hashed_bytes(settings.n_clusters, settings.bits) < 0.5 * n_bytes:
        remedy = "use proposal='hash'"
    memory.need(n_bytes, f"proposal={proposal!r} with {settings.n_clusters} clusters and {n_words} words", remedy)


def refuse_scores(settings: Settings, what: str) -> NoReturn:
    """ValueError: ``what`` (a document, or a cluster) has scores that are no numbers; names the most extreme prior."""
    priors = {"word_prior": settings.word_prior, "weight_prior": settings.weight_prior}
    if settings.component != MULTINOMIAL:
        priors["rate_prior"] = settings.rate_prior
    name = max(priors, key=lambda one: abs(math.log10(priors[one])))
    raise ValueError(
        f"{what} has scores that are not finite, so that no cluster can be drawn; of the priors, {name} = "
        f"{priors[name]:g} is the most extreme"
    )
