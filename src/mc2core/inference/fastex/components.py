"""Components of the mixtures of FastEx, and the scores of clusters (NIPS12 sections 2 and 3).

* multinomial: the words of a document given their number, with the prior Dirichlet(a)
* poisson: x_d ~ Poisson(rate_d) for each word d, with the prior Gamma(a, rate_prior)
* gaussian: x ~ N(mean, I / precision) in V dimensions, with the Normal-Gamma prior mean ~ N(0, I / (a precision)) and
  precision ~ Gamma(1, rate_prior)
* gauss_wishart: x ~ N(mean, precision^-1) with a precision matrix, mean ~ N(0, (a precision)^-1) and precision ~
  Wishart(V + 1, (2 rate_prior I)^-1). The prior of the variance of one word equals the Gaussian prior, and all
  correlations of two words are equally likely. The kernels of this component are in :mod:`.gauss_wishart`.

For the first three components, the statistics of a cluster k are its number of documents n_k, the counts n_kd and its
mass (number of tokens; Gaussian: sum of squared lengths |x|^2). The Gaussian component also needs |n_k.|^2. Two scores
are computed from these statistics:

* The exact collapsed log likelihood (:func:`log_evidence`), which includes the sum of :func:`word_term` over the words
  of the document.
* A proposal score that is linear in x: constant + mass_j * slope + factor * <x, theta_k>. It follows from the Taylor
  form of eq. 11: the predictive density is approximated by the density at theta* = E[theta | X], with an error of order
  1 / n (Lemma 1). For the two count models, theta_kd = ln(1 + n_kd / a), relative to a word that does not occur in the
  cluster. This is exact for a word that occurs once in the document. E[theta | X] itself would have digamma instead of
  ln, which is inaccurate for counts near 0. For the Gaussian, theta_kd = n_kd, and the factor is E[precision] / (a +
  n_k).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from scipy.special import gammainc, gammaln

from mc2core.compute import special
from mc2core.compute.kernels import inner_kernel
from mc2core.corpus import Corpus

MULTINOMIAL, POISSON, GAUSSIAN, GAUSS_WISHART = 0, 1, 2, 3
#: log-gammas of counts are summed as integers, in units of 1 / JOINT_UNIT
JOINT_UNIT = 2.0**20
#: <p, theta> is stored as an integer, in units of 1 / OVERLAP_UNIT
OVERLAP_UNIT = 2.0**40
#: number of entries of Projection.background per doubling of a cluster's mass, and in total
BACKGROUND_STEPS = 4
BACKGROUND_SIZE = 64 * BACKGROUND_STEPS
_F = np.float32
_PRECISION_SHAPE = 1.0
_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class ProposalSettings:
    """Settings of neighbour proposals; see :class:`mc2core.inference.fastex.engine.FastEx`."""

    n_neighbours: int
    list_budget: int
    n_proposals: int
    uniform_share: float
    exact_sweeps: tuple[int, ...]


@dataclass(frozen=True)
class ChainSettings:
    """Settings of the model and the engine that a chain needs; fields with defaults are used only by FastEx."""

    n_clusters: int
    topic_word_prior: float
    weight_prior: float
    rate_prior: float
    component: int
    bits: int = 0
    is_balanced: bool = False
    failure_probability: float | None = None
    inverse_temperature: float = 1.0
    n_proposals: int = 1
    documents_per_round: int = 1
    proposals: ProposalSettings = ProposalSettings(0, 0, 0, 1.0, ())


class DocumentCells(NamedTuple):
    """Word counts of the documents in CSR order."""

    indptr: np.ndarray  # (J + 1,) int64
    words: np.ndarray  # (cells,) int32
    counts: np.ndarray  # (cells,) int32
    mass: np.ndarray  # (J,) int64: number of tokens; Gaussian: squared length


class ClusterSizes(NamedTuple):
    """Sizes of the K clusters; each array is (K,) int64."""

    n_k: np.ndarray  # number of documents
    mass: np.ndarray  # total mass of the documents
    squares: np.ndarray  # sum over words of n_kd**2


@numba.njit(inline="always")
def log_gamma_of(table, topic_word_prior, n):
    """Return ln G(n + a), from ``table`` if it contains n."""
    return table[n] if n < table.size else math.lgamma(n + topic_word_prior)


@numba.njit(inline="always")
def word_term(component, table, topic_word_prior, n, x):
    """Return the term of a word in the argument ``words`` of :func:`log_evidence`.

    The word has count x in the document and count n in the cluster.
    """
    if component == GAUSSIAN:
        return np.float64(n) * x
    return log_gamma_of(table, topic_word_prior, n + x) - log_gamma_of(table, topic_word_prior, n)


@numba.njit(inline="always")
def theta_of(component, table, topic_word_prior, n):
    """Return theta_kd for a count n, float32, from ``table`` if it contains n."""
    if n < table.size:
        return table[n]
    return _F(n) if component == GAUSSIAN else _F(math.log1p(n / topic_word_prior))


@numba.njit(inline="always")
def precision_rate(rate_prior, topic_word_prior, n_documents, mass, squares):
    """Return the rate of the Gamma posterior of the precision of a Gaussian cluster.

    The rate is rate_prior + (sum |x|^2 - |sum x|^2 / (a + n)) / 2.
    """
    return rate_prior + 0.5 * (mass - squares / (topic_word_prior + n_documents))


@numba.njit(inline="always")
def precision_shape(n_words, n_documents):
    """Return the shape of the Gamma posterior of the precision of a Gaussian cluster."""
    return _PRECISION_SHAPE + 0.5 * n_words * n_documents


@inner_kernel
def log_gaussian(n_words, topic_word_prior, rate_prior, n_documents, mass, squares):
    """Return the log marginal likelihood of a Gaussian cluster, without terms that are equal for all partitions."""
    shape = precision_shape(n_words, n_documents)
    rate = precision_rate(rate_prior, topic_word_prior, n_documents, mass, squares)
    return special.log_gamma(shape) - shape * math.log(rate) - 0.5 * n_words * math.log(topic_word_prior + n_documents)


@inner_kernel
def log_evidence(constants, n_documents, mass, squares, words, document_mass):
    """Return ln p(y = k) p(x | y = k) of a document outside the cluster, without terms that are equal for all clusters.

    Multinomial: NIPS12 eq. 18. Poisson: the negative binomial of every word. Gaussian: Student's t.
    ``words`` is the sum of :func:`word_term` over the document's words.
    """
    weight = math.log(n_documents + constants.weight_prior)
    if constants.component == GAUSSIAN:
        priors = constants.topic_word_prior, constants.rate_prior
        more = squares + 2.0 * words + document_mass
        after = log_gaussian(constants.n_words, *priors, n_documents + 1, mass + document_mass, more)
        return weight + after - log_gaussian(constants.n_words, *priors, n_documents, mass, np.float64(squares))
    total = mass + constants.n_words * constants.topic_word_prior
    if constants.component == MULTINOMIAL:
        return weight + words + special.log_gamma(total) - special.log_gamma(total + document_mass)
    rate = n_documents + constants.rate_prior
    return weight + words - total * math.log1p(1.0 / rate) - document_mass * math.log(rate + 1.0)


@inner_kernel
def linear_terms(constants, background, n_documents, mass, squares, overlap):
    """Return (constant, slope, factor) of the proposal score of a cluster (see the module docstring).

    ``overlap`` is <p, theta_k> over the hashed words, in units of 1 / OVERLAP_UNIT. ``background`` is a table of the
    expected <p, theta_k> over all other words, by the log mass of the cluster.
    """
    step = math.log2(1.0 + mass) * BACKGROUND_STEPS
    i = int(step)
    left_out = background[i] + (step - i) * (background[i + 1] - background[i])
    inner = overlap / OVERLAP_UNIT + left_out
    weight = math.log(n_documents + constants.weight_prior)
    if constants.component == GAUSSIAN:
        strength = constants.topic_word_prior + n_documents
        rate = precision_rate(constants.rate_prior, constants.topic_word_prior, n_documents, mass, squares)
        precision = precision_shape(constants.n_words, n_documents) / rate
        factor = precision / strength
        constant = weight + 0.5 * constants.n_words * math.log(precision) - 0.5 * factor * squares / strength
        return _F(constant), _F(factor * inner - 0.5 * precision), _F(factor)
    total = mass + constants.n_words * constants.topic_word_prior
    if constants.component == MULTINOMIAL:
        # ln G(m) - ln G(m + n_x) is about -n_x ln(m + n_x / 2), so half the length of an average document is added
        return _F(weight), _F(inner - math.log(total + constants.half_length)), _F(1.0)
    rate = n_documents + constants.rate_prior
    return _F(weight - total * math.log1p(1.0 / rate)), _F(inner - math.log(rate + 1.0)), _F(1.0)


def log_joint_of_weights(settings: ChainSettings, n_k: np.ndarray) -> float:
    """Return ln p(y) with the cluster weights integrated out; clusters have ``n_k`` (K,) documents."""
    total = settings.n_clusters * settings.weight_prior
    log_p = gammaln(total) - gammaln(total + n_k.sum())
    return float(log_p + np.sum(gammaln(n_k + settings.weight_prior) - gammaln(settings.weight_prior)))


def log_joint_of_sizes(
    settings: ChainSettings, n_words: int, n_documents: int, n_k: np.ndarray, mass: np.ndarray, squares: np.ndarray
) -> float:
    """Return the part of ln p(x, y) that depends only on the sizes of clusters.

    This part excludes the sum of ln G(n_kd + a) - ln G(a) over all counts, and ln x! of the count models.
    """
    log_p = log_joint_of_weights(settings, n_k)
    if settings.component == GAUSSIAN:
        priors = settings.topic_word_prior, settings.rate_prior
        log_p += sum(log_gaussian(n_words, *priors, *one) for one in zip(n_k, mass, squares, strict=True))
        log_p -= settings.n_clusters * log_gaussian(n_words, *priors, 0, 0.0, 0.0)
        return float(log_p - 0.5 * n_documents * n_words * _LOG_2PI)
    prior = n_words * settings.topic_word_prior
    if settings.component == MULTINOMIAL:
        log_p += np.sum(gammaln(prior) - gammaln(prior + mass))
    else:
        log_p += np.sum(prior * np.log(settings.rate_prior) - (prior + mass) * np.log(settings.rate_prior + n_k))
    return float(log_p)


def document_mass(component: int, counts: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Return the mass of each document, (J,) int64: its number of tokens, or its squared length (Gaussian)."""
    counts = counts.astype(np.int64)
    sums = np.concatenate([[0], np.cumsum(counts**2 if component == GAUSSIAN else counts)])
    return sums[indptr[1:]] - sums[indptr[:-1]]


def document_columns(corpus: Corpus, component: int) -> dict[str, np.ndarray]:
    """Return the arrays of a :class:`DocumentCells`, by name."""
    content = corpus.content
    return {
        "indptr": content.indptr.astype(np.int64),
        "words": np.ascontiguousarray(content.indices, dtype=np.int32),
        "counts": np.ascontiguousarray(content.data, dtype=np.int32),
        "mass": document_mass(component, content.data, content.indptr),
    }


def expected_background(component: int, topic_word_prior: float, totals: np.ndarray, all_mass: int) -> np.ndarray:
    """Return the expected <p, theta> over the words with these ``totals``, by mass of a cluster, (BACKGROUND_SIZE,).

    Counts are assumed to be Poisson, with the word frequencies of the corpus, p = totals / all_mass. Words whose totals
    differ by less than a tenth are grouped.
    """
    mass = 2.0 ** (np.arange(BACKGROUND_SIZE) / BACKGROUND_STEPS) - 1.0
    group, index = np.unique(np.rint(8.0 * np.log2(totals)), return_inverse=True)
    frequency = np.bincount(index, weights=totals) / all_mass
    # masses above 2 * all_mass cannot occur, so one row suffices for all of them
    possible, row = np.unique(np.minimum(mass, 2.0 * all_mass), return_inverse=True)
    mean = possible[:, None] * (2.0 ** (group / 8.0) / all_mass)
    return (_expected_theta(component, topic_word_prior, mean) @ frequency)[row]


def _expected_theta(component: int, topic_word_prior: float, mean: np.ndarray) -> np.ndarray:
    """Return E[theta(n)] for Poisson counts n with these means, approximated to second order from mean 8 on."""
    if component == GAUSSIAN:
        return mean
    is_few = mean < 8.0
    few = np.zeros(np.count_nonzero(is_few))
    for i in range(32):  # sum over i of P(n > i) (theta(i + 1) - theta(i))
        few += gammainc(i + 1, mean[is_few]) * (np.log1p((i + 1) / topic_word_prior) - np.log1p(i / topic_word_prior))
    many = np.maximum(mean, 8.0)
    theta = np.log1p(many / topic_word_prior) - 0.5 / many
    theta[is_few] = few
    return theta
