"""Held-out likelihood of the words of documents: five estimators that apply to the results of every engine.

    perplexity = exp(- sum_j ln p(w_j) / sum_j N_j)                       (ICML14, A.4; UAI16, 5.3)

With several samples of the posterior, p(w_j) is averaged over samples inside the logarithm. Results of estimators that
measure different quantities must not be compared.

The result for a document depends on its own words and contexts, the posterior and the seed. The result does not depend
on the number of threads, or on other documents, except for rounding in matrix products of another size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from mc2core.base import stopping
from mc2core.base.checks import choice, whole
from mc2core.base.progress import showing, work
from mc2core.compute import streams
from mc2core.compute.threads import MAX_THREADS
from mc2core.corpus import Corpus
from mc2core.posterior import document_level
from mc2core.posterior import perplexity_kernels as kernels
from mc2core.posterior.mixture import Block, SampleMixture, blocks, in_chunks

if TYPE_CHECKING:
    from mc2core.posterior.posterior import Posterior

IMPORTANCE_DRAWS = 500
"""Number of draws of a document's topics for ``importance``; with R samples, it is divided by sqrt(R)."""
IMPORTANCE_PASSES = 20
"""Number of updates of the proposal's pseudo-counts for ``importance``."""
LEFT_TO_RIGHT_PARTICLES = 60
"""Number of particles of ``left_to_right``; with R samples, it is divided by sqrt(R)."""
LEFT_TO_RIGHT_MOVES = 1
"""Number of earlier topics that a particle redraws before each token."""
ICML14_SMOOTH = 0.1
"""Pseudo-count that ``icml14`` adds to each word of a topic, for any prior of the fit (ICML14, A.4)."""

# number of documents per task of a thread
_CHUNK = 16
# number of documents processed together if random numbers are drawn
_DRAWN_BLOCK = 256


Done = Callable[[float], None]


# -- the estimators: ln p(w_j) of a block under one sample, (B,) ------------------------------------------------------
def _marginal(block: Block, mixture: SampleMixture, stacked: Any, seed: int, threads: int, done: Done) -> np.ndarray:
    done(len(block.rows))
    return logsumexp(mixture.log_likelihood(block) + mixture.log_weights, axis=1)


def _context(block: Block, mixture: SampleMixture, stacked: Any, seed: int, threads: int, done: Done) -> np.ndarray:
    done(len(block.rows))
    natural = mixture.sample.natural
    if mixture.has_new_cluster:
        natural = np.vstack([natural, stacked.prior])
    log_weights = stacked.take(block.rows).log_predictive(natural) + mixture.log_weights
    log_weights -= logsumexp(log_weights, axis=1, keepdims=True)
    return logsumexp(mixture.log_likelihood(block) + log_weights, axis=1)


def _check_proportions(mixtures: list[SampleMixture]) -> None:
    for mixture in mixtures:
        if not (np.isfinite(mixture.alpha).all() and mixture.alpha.sum() > 0):
            raise ValueError(
                f"table_concentration is {mixture.sample.table_concentration}; "
                "an admixture (HDP, LDA) needs a finite one above 0"
            )


def _importance(block: Block, mixtures: list[SampleMixture], stacked: Any, *rest: Any) -> np.ndarray:
    _check_proportions(mixtures)
    settings = IMPORTANCE_DRAWS, IMPORTANCE_PASSES
    return document_level.log_likelihood(kernels.importance, settings, "importance", block, mixtures, *rest)


def _left_to_right(block: Block, mixtures: list[SampleMixture], stacked: Any, *rest: Any) -> np.ndarray:
    _check_proportions(mixtures)
    settings = LEFT_TO_RIGHT_PARTICLES, LEFT_TO_RIGHT_MOVES
    return document_level.log_likelihood(kernels.left_to_right, settings, "left_to_right", block, mixtures, *rest)


def _average_over_samples(estimate: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return a function that computes ln of the mean over samples of exp(estimate(...)) for each document."""

    def average(block: Block, mixtures: list[SampleMixture], *rest: Any) -> np.ndarray:
        total = np.full(len(block.rows), -np.inf)
        for mixture in mixtures:
            total = np.logaddexp(total, estimate(block, mixture, *rest))
        return total - np.log(len(mixtures))

    return average


def _icml14_sample(sample: Any) -> Any:
    """Return the sample as ICML14, A.4 uses it: topics are smoothed with a constant, and new clusters and topics have
    no mass."""
    none_new = np.zeros_like(sample.new_topic_weight)
    return replace(sample, topic_word_prior=ICML14_SMOOTH, new_topic_weight=none_new, new_cluster_weight=0.0)


def _icml14(
    block: Block, mixtures: list[SampleMixture], stacked: Any, seed: int, threads: int, done: Done
) -> np.ndarray:
    indptr, indices, counts = block.arrays
    mean = np.zeros(len(indices))
    for mixture in mixtures:
        cluster = np.argmax(mixture.log_likelihood(block) + mixture.log_weights, axis=1)
        psi, tau = mixture.words(block.emitted), mixture.tau
        tau = tau.toarray() if sp.issparse(tau) else tau

        def run(first: int, last: int, psi: Any = psi, tau: Any = tau, cluster: Any = cluster) -> None:
            kernels.likeliest_topic(indptr, indices, psi, tau, cluster, first, last, mean)

        in_chunks(run, len(block.rows), threads, _CHUNK, done)
    with np.errstate(divide="ignore"):
        log_p = counts * np.log(mean / len(mixtures))
    return np.bincount(np.repeat(np.arange(len(block.rows)), np.diff(indptr)), log_p, len(block.rows))


@dataclass(frozen=True)
class Estimator:
    """An estimator of ln p(w_j).

    Attributes
    ----------
    name : str
        Name in configuration files and tables.
    description : str
        Description for captions.
    run : callable
        Function (block, mixtures of all samples, stacked contexts or None, seed, threads, done) -> (B,) nats. For each
        sample, ``done`` is called with the number of completed documents.
    of_sample : callable
        Function that prepares a sample for ``run``.
    uses_context : bool
        Whether the estimator uses the contexts of the test documents.
    takes_document_level : bool
        Whether the estimator supports models with a document level (a finite document_concentration).
    """

    name: str
    description: str
    run: Callable[..., np.ndarray]
    of_sample: Callable[[Any], Any] = lambda sample: sample
    uses_context: bool = False
    takes_document_level: bool = False


ESTIMATORS: dict[str, Estimator] = {
    one.name: one
    for one in (
        Estimator(
            "marginal",
            "exact likelihood of the words given each sample, clusters and topics summed out, averaged over samples",
            _average_over_samples(_marginal),
        ),
        Estimator(
            "context",
            "as marginal, with clusters weighted by the context of the document",
            _average_over_samples(_context),
            uses_context=True,
        ),
        Estimator(
            "icml14",
            "ICML14, appendix A.4: the likeliest topic of each token in the likeliest cluster of its document, "
            "averaged over samples; other topics are ignored, so the probabilities do not sum to 1",
            _icml14,
            of_sample=_icml14_sample,
        ),
        Estimator(
            "importance",
            f"importance sampling with iterated pseudo-counts, {IMPORTANCE_DRAWS} draws per document; "
            "each document has its own topic proportions; too low if several sets of topics explain a document",
            _importance,
            takes_document_level=True,
        ),
        Estimator(
            "left_to_right",
            f"left-to-right sampling, {LEFT_TO_RIGHT_PARTICLES} particles per document; "
            "each document has its own topic proportions",
            _left_to_right,
            takes_document_level=True,
        ),
    )
}


def estimator_of(name: str) -> Estimator:
    """Return the estimator ``name``. Raises ValueError, with the most similar name, if it does not exist."""
    return ESTIMATORS[choice("estimator", name, ESTIMATORS)]


def suited(posterior: Posterior) -> str:
    """Return the name of the recommended estimator of p(w_j) under the model.

    The result is ``left_to_right`` with a document level and for admixtures (HDP, LDA). Otherwise the result is
    ``marginal``, which is then exact.
    """
    has_theta = any(sample.has_document_level or sample.is_admixture for sample in posterior.samples)
    return "left_to_right" if has_theta else "marginal"


def log_likelihood(
    corpus: Corpus,
    posterior: Posterior,
    estimator: str | None = None,
    seed: int = 0,
    threads: int = 1,
    progress: bool | None = None,
) -> np.ndarray:
    """Return ln p(w_j) of every document.

    The estimators are:

    ``marginal``
        For MC2, p(w_j) is sum_k pi_k prod_i sum_m tau_km psi_m,w_ji, which is exact for each sample. The proportions of
        a new cluster are one draw from their prior.
    ``context``
        As ``marginal``, with pi_k multiplied by p(x_j | cluster k) and normalised. p(x_j | cluster k) is the posterior
        predictive of the document's contexts (for a new cluster, the prior predictive). This estimates ln p(w_j | x_j).
        Without contexts, it equals ``marginal``.
    ``icml14``
        The formula of ICML14, A.4 as published: sum_i ln of the mean over samples of tau[z_j, l_ji] psi[l_ji, w_ji].
        psi is smoothed by :data:`ICML14_SMOOTH`, and z_j and l_ji are the likeliest cluster and topics given the words.
        (The paper does not specify how z_j and l_ji are estimated.) Other topics of a token are left out, so the result
        is not a probability. The perplexity is higher than with ``marginal``, and must not be compared with the
        perplexity of another estimator.
    ``importance``, ``left_to_right``
        Monte Carlo estimators of Wallach et al. 2009, unbiased for p(w_j). In the HDP and LDA, the proportions of a
        document are theta_j ~ DP(v, epsilon) over the topics in use and one uniform topic for all others. With a
        document level, theta_j ~ DP(omega, tau_k). The estimate is then a sum over plausible clusters k of pi_k times
        the integral over theta_j (:mod:`mc2core.posterior.document_level`). A new cluster has one draw of tau per
        sample. In the HDP with three levels, every new document is in a new cluster, so its perplexity is too high.

        The two estimators differ in variance. Proposals of ``importance`` concentrate on one assignment of a document's
        tokens to topics. If omega or v is small, other assignments are also likely, but they are rarely drawn and then
        have large weights. With finitely many draws, most estimates are therefore below p(w_j). ``left_to_right``
        tracks several assignments, and is the default if ``marginal`` is not exact (:func:`suited`).

    Parameters
    ----------
    corpus : Corpus
        Documents with the vocabulary of the posterior.
    posterior : mc2core.Posterior
    estimator : str or None
        Name of an estimator in ``ESTIMATORS``. By default, :func:`suited` selects the estimator.
    seed : int, at least 0
        Seed of the random streams, which are keyed by the index of the sample and the words of the document.
    threads : int
        Number of threads, on which the result does not depend.
    progress : bool, optional
        Whether to show progress (:func:`mc2core.base.progress.showing`).

    Returns
    -------
    (J,) float64
        Log likelihoods in nats: 0 for an empty document, -inf for a document with probability 0.

    Raises
    ------
    ValueError
        If the estimator is unknown or does not suit the posterior, if the seed is negative, if words or contexts of the
        corpus do not match the posterior, if a likelihood is NaN, or (Monte Carlo) if the table concentration is not
        usable.
    """
    chosen = estimator_of(suited(posterior) if estimator is None else estimator)
    whole("threads", threads, most=MAX_THREADS)
    streams.key(seed, "perplexity")  # an invalid seed is rejected even if no random numbers are drawn
    posterior.check_corpus(corpus)
    if posterior.contents is not None and chosen.name == "icml14":
        raise ValueError("estimator is 'icml14', which needs words; the topics of this fit emit observations")
    for sample in posterior.samples:
        if sample.document_concentration < np.inf and not chosen.takes_document_level:
            raise ValueError(
                f"estimator is {chosen.name!r}, which needs documents that share the topic proportions of "
                f"their cluster; here each has its own (document_concentration {sample.document_concentration:g}): "
                "use left_to_right"
            )
        if sample.has_repeats and chosen.name != "left_to_right":
            raise ValueError(f"estimator is {chosen.name!r}; with burstiness it must be left_to_right")
    stacked = posterior.stacked(corpus) if chosen.uses_context else None
    out = np.empty(corpus.n_documents)
    with showing(progress), stopping.defer(), work(chosen.name, len(out), "documents") as bar:
        mixtures = [SampleMixture(chosen.of_sample(one), seed, number) for number, one in enumerate(posterior.samples)]

        def done(n_documents: float) -> None:
            bar.advance(n_documents / len(mixtures))

        n_rows = max(mixture.tau.shape[0] for mixture in mixtures)
        of_documents = blocks(corpus, n_rows, _DRAWN_BLOCK) if chosen.takes_document_level else blocks(corpus, n_rows)
        for rows in of_documents:
            out[rows] = chosen.run(Block(corpus, rows), mixtures, stacked, seed, threads, done)
    out[corpus.document_lengths == 0] = 0.0  # weights may sum to 1 only up to rounding
    if not (out < np.inf).all():
        wrong = int(np.flatnonzero(~(out < np.inf))[0])
        raise ValueError(
            f"document {wrong}: its log likelihood under the posterior is {out[wrong]}; "
            "the posterior's weights, topic_words and table_concentration must be finite"
        )
    return out


def perplexity(
    corpus: Corpus,
    posterior: Posterior,
    estimator: str | None = None,
    seed: int = 0,
    threads: int = 1,
    progress: bool | None = None,
) -> float:
    """Return the perplexity of the words, exp(-sum_j ln p(w_j) / sum_j N_j). A uniform model has perplexity V.

    The arguments and errors are those of :func:`log_likelihood`. Raises ValueError also if the corpus has no tokens.
    """
    if corpus.observations is not None:
        raise ValueError("perplexity needs words; use log_density for observations")
    n_tokens = corpus.n_tokens
    if n_tokens == 0:
        raise ValueError("perplexity needs words: no document of the corpus has a token")
    return float(np.exp(-log_likelihood(corpus, posterior, estimator, seed, threads, progress).sum() / n_tokens))


def log_density(
    corpus: Corpus,
    posterior: Posterior,
    estimator: str | None = None,
    seed: int = 0,
    threads: int = 1,
    progress: bool | None = None,
) -> float:
    """Return the mean log density per observation, sum_j ln p(x_j) / sum_j N_j, in nats, in the original unit.

    The arguments and errors are those of :func:`log_likelihood`. Raises ValueError also if the corpus has words or no
    observations.
    """
    if corpus.observations is None:
        raise ValueError("log_density needs observations; use perplexity for words")
    if corpus.n_tokens == 0:
        raise ValueError("the log density needs observations: no document of the corpus has any")
    return float(log_likelihood(corpus, posterior, estimator, seed, threads, progress).sum() / corpus.n_tokens)
