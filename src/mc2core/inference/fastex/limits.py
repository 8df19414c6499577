"""Checks that raise ValueError for priors and counts that are too large, or if memory is insufficient for FastEx."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from mc2core.base import memory
from mc2core.base.checks import MAX_LABELS
from mc2core.compute.signatures import n_signature_words
from mc2core.compute.simd import WORD_BITS
from mc2core.corpus import Corpus
from mc2core.inference.fastex.components import GAUSS_WISHART, GAUSSIAN, MULTINOMIAL, ChainSettings

#: largest sum of the parameters of a Dirichlet prior; for larger sums, errors of log-gamma would exceed 4e-6 nats
MAX_PRIOR_SUM = 1e9


def refuse_prior_sum(name: str, value: float, number: int, of: str) -> None:
    """Raise ValueError if ``value`` times ``number`` is too large; ``of`` is the name of the items, for the message."""
    if value * number > MAX_PRIOR_SUM:
        raise ValueError(
            f"{name} is {value:g} for each of {number} {of}; it must be at most {MAX_PRIOR_SUM / number:g}, because "
            "the log-gamma function of a larger sum is too inaccurate"
        )


def _busiest_word(corpus: Corpus) -> tuple[str, np.ndarray]:
    """Return the beginning of a message about the most frequent word, and the number of tokens per word, (V,) int64."""
    content = corpus.content
    totals = np.bincount(content.indices, weights=content.data, minlength=corpus.n_words).astype(np.int64)
    return f"word {np.argmax(totals)} occurs {totals.max()} times in all, too often for", totals


def refuse_squares(corpus: Corpus, settings: ChainSettings) -> None:
    """Raise ValueError if the sums of squared counts of Gaussian components could exceed 64 bits."""
    squaring = {GAUSSIAN: "gaussian", GAUSS_WISHART: "gauss_wishart"}.get(settings.component)
    word, totals = _busiest_word(corpus)
    if squaring and np.sum(totals.astype(np.float64) ** 2) >= 2.0**62:
        raise ValueError(f"{word} component={squaring!r}, which sums squares of counts in 64 bits")


def refuse_large_counts(corpus: Corpus, proposal: str) -> None:
    """Raise ValueError if a word has too many tokens for the 32-bit counts of exact scoring."""
    word, totals = _busiest_word(corpus)
    if totals.max() > MAX_LABELS:
        raise ValueError(f"{word} proposal={proposal!r}, which counts to {MAX_LABELS}; use proposal='hash'")


def hashed_bytes(n_clusters: int, bits: int) -> int:
    """Return the number of bytes of the cluster statistics of hashed proposals, without the word counts."""
    return n_clusters * (n_signature_words(bits) * (4 * WORD_BITS + 8) + 6 * 8 + 3 * 4)


def refuse_beyond_memory(proposal: str, n_bytes: int, n_words: int, settings: ChainSettings) -> None:
    """Raise ValueError if less than ``n_bytes`` of memory are available."""
    remedy = "use fewer clusters"
    if settings.component == GAUSS_WISHART:
        remedy = "use fewer clusters or words, since each cluster keeps two matrices of words by words"
    elif hashed_bytes(settings.n_clusters, settings.bits) < 0.5 * n_bytes:
        remedy = "use proposal='hash'"
    memory.need(n_bytes, f"proposal={proposal!r} with {settings.n_clusters} clusters and {n_words} words", remedy)


def refuse_scores(settings: ChainSettings, what: str) -> NoReturn:
    """Raise ValueError because the scores of ``what`` (a document or a cluster) are not finite.

    The message names the most extreme prior.
    """
    priors = {"topic_word_prior": settings.topic_word_prior, "weight_prior": settings.weight_prior}
    if settings.component != MULTINOMIAL:
        priors["rate_prior"] = settings.rate_prior
    name = max(priors, key=lambda one: abs(math.log10(priors[one])))
    raise ValueError(
        f"{what} has scores that are not finite, so that no cluster can be drawn; of the priors, {name} = "
        f"{priors[name]:g} is the most extreme"
    )
