"""Simulate corpora with the sizes of the papers' datasets, from MC2 or from a distribution of no compared model.

The distribution is the setting ``drawn_from``, also called the law. The law "mc2" is the generative model of ICML14,
eq. 1-2, with truncated sticks: pi ~ GEM, z_j ~ pi, epsilon ~ GEM, tau_k ~ DP(v, epsilon), psi_m ~ Dirichlet,
x_j ~ F(phi_{z_j}). In one respect, the law differs from the priors of the engines to be similar to text: the Dirichlet
distribution of a topic is centred on Zipf's law and not on the uniform distribution. Many topics therefore share
frequent words, and rare words belong to few topics. Count contexts (authors, title words, tags) are drawn in the same
way.

Data drawn from MC2 favour MC2 over other models. Under the law "correlated", none of the compared models is true. Each
document has its own topic proportions, which are correlated and logistic-normal around the proportions of its class
(Blei and Lafferty 2007, correlated topic model). Words are bursty: a word that was used is likely to be used again
(Dirichlet compound multinomial, Madsen et al. 2005, drawn by Polya's urn). Contexts depend on the classes under both
laws.

To add a dataset, define a :class:`Shape`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import ndtr, ndtri, softmax

from mc2core.base.checks import choice
from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2papers.datasets.origins import LAWS
from mc2papers.datasets.simulated.names import author_names, pseudo_words
from mc2papers.datasets.simulated.truth import Truth

_BLOCK_TOKENS = 1 << 20
# Zipf's law in Mandelbrot's form, fitted by eye to the real NIPS counts without stop words. There, the most frequent
# word has 0.9 % of all tokens, and the unigram distribution has a perplexity of 2,907 (with 13,649 words).
_ZIPF_EXPONENT, _ZIPF_SHIFT = 1.15, 0.004
# Settings of the law "correlated". The urn is chosen by the real NIPS counts: 0.41 distinct words per token of a
# document (simulated 0.40; law "mc2" 0.66), and two equal tokens with probability 0.0057 (0.0029; 0.0011).
_FACTORS, _FACTOR_SD, _OWN_SD, _MIN_SHARE, _URN = 10, 0.3, 1.0, 0.01, 600.0


@dataclass(frozen=True)
class Bag:
    """A count context of ``n_values`` names; a document draws 1 + Poisson(mean_count - 1) names.

    mass : Dirichlet mass of a cluster's distribution around Zipf's law; with a small mass, clusters have different
        names.
    exponent : exponent of Zipf's law; with a small exponent, names have similar frequencies.
    names : function that makes n distinct names.
    distinct : whether a name counts only once per document, as for authors and tags.
    """

    n_values: int
    mean_count: float
    mass: float
    exponent: float
    names: Callable[[int], list[str]]
    distinct: bool = False

    def of(self, n_values: int) -> Bag:
        """Return the same bag with ``n_values`` names; the difference between clusters does not change."""
        return replace(self, n_values=n_values, mass=self.mass * n_values / self.n_values)


@dataclass(frozen=True)
class WholeNumber:
    """A numeric context such as a year: normal around the mean of the cluster, rounded, and between low and high.

    The means of clusters are uniform between low and high, and their standard deviations uniform in the interval
    ``sd``.
    """

    low: int
    high: int
    sd: tuple[float, float]


@dataclass(frozen=True)
class Shape:
    """Size and parameters of a simulated corpus (see the docstring of this module).

    mean_tokens, length_shape : a document has 1 + Poisson(g) tokens, where g is Gamma-distributed with this shape.
    topic_mass : Dirichlet mass of a topic around Zipf's law; with a small mass, topics are sparse and different.
    group_concentration, topic_concentration, table_concentration : alpha, eta and v of ICML14.
    is_vocabulary_given : whether the words are a given list; a scaled corpus then has the same vocabulary and equally
        long documents.
    classes : names of the classes and their fractions of the documents. If there are classes, each cluster belongs to a
        class, and classes are the labels. Otherwise, clusters are the labels.
    """

    n_documents: int
    n_words: int
    mean_tokens: float
    length_shape: float
    n_clusters: int
    n_topics: int
    topic_mass: float
    group_concentration: float
    topic_concentration: float
    table_concentration: float
    contexts: Mapping[str, Bag | WholeNumber] = field(default_factory=dict)
    is_vocabulary_given: bool = False
    classes: tuple[tuple[str, float], ...] = ()

    def scaled(self, scale: float) -> Shape:
        """Return the shape with documents, words, tokens per document and names of bags multiplied by ``scale``.

        If the vocabulary is given, its size and the number of tokens per document do not change. Bags with fewer than a
        thousand names do not change. The numbers of clusters and topics do not change either, unless there would be
        fewer than ten documents per cluster or ten words per topic. The ratio of a Dirichlet mass to the number of
        words or names does not change, so topics are equally sparse.
        """
        if not 0 < scale < np.inf:
            raise ValueError(f"scale is {scale}; it must be a number above 0")

        def times(size: float, least: int) -> int:
            return max(least, round(size * scale))

        n_documents = times(self.n_documents, 20)
        n_words = self.n_words if self.is_vocabulary_given else times(self.n_words, 50)
        least_names = 1000 if self.is_vocabulary_given else 10
        return replace(
            self,
            n_documents=n_documents,
            n_words=n_words,
            mean_tokens=self.mean_tokens if self.is_vocabulary_given else max(10.0, self.mean_tokens * scale),
            n_clusters=min(self.n_clusters, n_documents // 10),
            n_topics=min(self.n_topics, n_words // 10),
            topic_mass=self.topic_mass * n_words / self.n_words,
            contexts={
                name: context.of(times(context.n_values, min(least_names, context.n_values)))
                if isinstance(context, Bag)
                else context
                for name, context in self.contexts.items()
            },
        )


def simulate(shape: Shape, seed: int, scale: float = 1.0, drawn_from: str = "mc2") -> tuple[Corpus, Truth]:
    """Draw a corpus of ``shape.scaled(scale)`` from the law ``drawn_from`` (a key of LAWS).

    The labels are the true clusters or, if there are classes, the classes of the true clusters. The same shape, seed,
    scale and law give the same corpus. With "correlated", ``topic_given_cluster`` of the truth is the mean of the
    documents' proportions. In addition to the corpus, the memory is 60 bytes for each of about a million tokens that
    are drawn together. Raises ValueError for a negative seed, a scale that is not above 0, or another law.
    """
    choice("drawn_from", drawn_from, LAWS)
    shape = shape.scaled(scale) if scale != 1.0 else shape
    rng = streams.generator(seed, "simulated globals")
    cluster_weights = _sticks(shape.group_concentration, shape.n_clusters, rng)
    topic_weights = _sticks(shape.topic_concentration, shape.n_topics, rng)
    topic_given_cluster = _dirichlet_rows(shape.table_concentration * topic_weights, shape.n_clusters, rng)
    word_given_topic = _dirichlet_rows(shape.topic_mass * _zipf(shape.n_words), shape.n_topics, rng)
    cluster = rng.choice(shape.n_clusters, size=shape.n_documents, p=cluster_weights)
    mean = rng.gamma(shape.length_shape, (shape.mean_tokens - 1) / shape.length_shape, shape.n_documents)
    lengths = 1 + rng.poisson(mean)
    if drawn_from == "mc2":
        content = draw_counts(cluster, lengths, topic_given_cluster, word_given_topic, seed, "simulated words")
    else:
        content, topic_given_cluster = _draw_correlated(cluster, lengths, topic_given_cluster, word_given_topic, seed)

    contexts: dict[str, np.ndarray | sp.csr_matrix] = {}
    true_contexts: dict[str, np.ndarray] = {}
    for name, context in shape.contexts.items():
        make = _draw_bag if isinstance(context, Bag) else _draw_whole_numbers
        contexts[name], true_contexts[name] = make(context, cluster, shape.n_clusters, seed, name)  # type: ignore[arg-type]
    corpus = Corpus(
        content,
        pseudo_words(shape.n_words),
        contexts=contexts,
        labels=_classes(cluster_weights, [share for _, share in shape.classes])[cluster] if shape.classes else cluster,
        label_names=[name for name, _ in shape.classes] or None,
        documents=pd.DataFrame({"title": [f"simulated document {j + 1}" for j in range(shape.n_documents)]}),
        context_names={
            name: context.names(context.n_values)
            for name, context in shape.contexts.items()
            if isinstance(context, Bag)
        },
    )
    return corpus, Truth(cluster, cluster_weights, topic_given_cluster, word_given_topic, true_contexts)


def _classes(cluster_weights: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Return the (K,) int64 class of each cluster; in the order of weights, each goes to the class that lacks most."""
    lacks, classes = np.asarray(shares, np.float64).copy(), np.zeros(len(cluster_weights), np.int64)
    for k in np.argsort(-cluster_weights, kind="stable"):
        classes[k] = np.argmax(lacks)
        lacks[classes[k]] -= cluster_weights[k]
    return classes


def draw_counts(
    cluster: np.ndarray,
    lengths: np.ndarray,
    topic_given_cluster: np.ndarray,
    word_given_topic: np.ndarray,
    seed: int,
    purpose: str,
) -> sp.csr_matrix:
    """Draw l_ji ~ tau_{z_j} and w_ji ~ psi_{l_ji}, and count the words of each document (ICML14, eq. 2).

    Parameters
    ----------
    cluster, lengths : (J,) ints
    topic_given_cluster, word_given_topic : (K, M) and (M, V) float64, rows sum to 1
    seed, purpose : keys of the random streams; each block of documents with about a million tokens has one stream

    Returns
    -------
    (J, V) int32 CSR, row j summing to lengths[j]
    """
    topic_cdf, word_cdf = _cdf(topic_given_cluster), _cdf(word_given_topic)
    blocks = []
    for rows, token_row, rng in _blocks(lengths, seed, purpose):
        topic = _draw_by_group(cluster[rows][token_row], topic_cdf, rng)
        blocks.append(_counts(token_row, _draw_by_group(topic, word_cdf, rng), len(rows), word_given_topic.shape[1]))
    return sp.vstack(blocks, format="csr")


def _draw_correlated(
    cluster: np.ndarray, lengths: np.ndarray, topic_given_cluster: np.ndarray, word_given_topic: np.ndarray, seed: int
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Draw counts from the law "correlated"; return them and the (K, M) mean proportions of the documents per cluster.

    Document j has theta_j = softmax(log tau_{z_j} + L f_j + e_j) with normal f_j and e_j. Its i-th token (from 0)
    repeats one of the i earlier tokens with probability i / (_URN + i). Otherwise, its topic is drawn from theta_j.
    """
    n_clusters, n_topics = topic_given_cluster.shape
    loadings = _FACTOR_SD * streams.generator(seed, "simulated factors").standard_normal((n_topics, _FACTORS))
    centre = np.log(topic_given_cluster + _MIN_SHARE / n_topics)
    word_cdf, blocks, sums = _cdf(word_given_topic), [], np.zeros((n_clusters, n_topics))
    for rows, token_row, rng in _blocks(lengths, seed, "simulated correlated words"):
        factors = rng.standard_normal((len(rows), _FACTORS)) @ loadings.T
        theta = softmax(centre[cluster[rows]] + factors + _OWN_SD * rng.standard_normal((len(rows), n_topics)), axis=1)
        np.add.at(sums, cluster[rows], theta)
        word = _draw_by_group(_draw_by_group(token_row, _cdf(theta), rng), word_cdf, rng)
        place = np.arange(len(word)) - np.repeat(np.cumsum(lengths[rows]) - lengths[rows], lengths[rows])
        is_repeated = rng.random(len(word)) * (_URN + place) < place
        of = np.arange(len(word)) - is_repeated * (place - (rng.random(len(word)) * place).astype(np.int64))
        while (further := of[of]).tobytes() != of.tobytes():  # the repeated token may itself be a repetition
            of = further
        blocks.append(_counts(token_row, word[of], len(rows), word_given_topic.shape[1]))
    drawn = np.bincount(cluster, minlength=n_clusters)[:, None]
    return sp.vstack(blocks, format="csr"), np.where(drawn > 0, sums / np.maximum(drawn, 1), topic_given_cluster)


def _blocks(
    lengths: np.ndarray, seed: int, purpose: str
) -> Iterator[tuple[np.ndarray, np.ndarray, np.random.Generator]]:
    """Yield blocks of documents with about a million tokens: indices of documents, row of each token, random stream."""
    block_of_document = (np.cumsum(lengths) - lengths) // _BLOCK_TOKENS
    for block in np.unique(block_of_document):
        rows = np.flatnonzero(block_of_document == block)
        token_row = np.repeat(np.arange(len(rows)), lengths[rows])
        yield rows, token_row, streams.generator(seed, purpose, iteration=int(block))


def _counts(token_row: np.ndarray, word: np.ndarray, n_rows: int, n_words: int) -> sp.csr_matrix:
    """Return (n_rows, n_words) int32 CSR counts of the words of each row; ``token_row`` is in ascending order."""
    cells, counts = np.unique(token_row * np.int64(n_words) + word, return_counts=True)
    indptr = np.searchsorted(cells, np.arange(n_rows + 1) * np.int64(n_words))
    columns = (cells % n_words).astype(np.int32)
    return sp.csr_matrix((counts.astype(np.int32), columns, indptr), shape=(n_rows, n_words))


def _draw_by_group(group: np.ndarray, cdf: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a column from row group[i] of ``cdf`` for each i; groups are processed one by one, which uses the cache."""
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=len(cdf)))
    uniform = rng.random(len(group))
    column = np.empty(len(group), dtype=np.int32)
    start = 0
    for row, end in enumerate(ends):
        if end > start:
            members = order[start:end]
            column[members] = np.searchsorted(cdf[row], uniform[start:end], side="right")
        start = end
    return column


def _cdf(rows: np.ndarray) -> np.ndarray:
    """Return the cumulative sums of rows, with exactly 1 from the last positive entry on.

    With rounding errors, a uniform number could otherwise be larger than all sums.
    """
    cdf = np.cumsum(rows, axis=1)
    return np.where(cdf >= cdf[:, -1:], 1.0, cdf / cdf[:, -1:])


def _draw_bag(
    context: Bag, cluster: np.ndarray, n_clusters: int, seed: int, name: str
) -> tuple[sp.csr_matrix, np.ndarray]:
    rng = streams.generator(seed, f"simulated context {name}")
    weights = _dirichlet_rows(context.mass * _zipf(context.n_values, context.exponent), n_clusters, rng)
    lengths = 1 + rng.poisson(context.mean_count - 1, len(cluster))
    counts = draw_counts(cluster, lengths, np.eye(n_clusters), weights, seed, f"simulated values of {name}")
    if context.distinct:
        counts.data[:] = 1
    return counts, weights


def _draw_whole_numbers(
    context: WholeNumber, cluster: np.ndarray, n_clusters: int, seed: int, name: str
) -> tuple[np.ndarray, np.ndarray]:
    rng = streams.generator(seed, f"simulated context {name}")
    mean = rng.uniform(context.low, context.high, n_clusters)
    sd = rng.uniform(*context.sd, n_clusters)
    # normal distribution truncated at both ends, drawn by inversion
    below, above = ((edge - mean) / sd for edge in (context.low - 0.5, context.high + 0.5))
    low, high = ndtr(below)[cluster], ndtr(above)[cluster]
    value = mean[cluster] + sd[cluster] * ndtri(low + (high - low) * rng.random(len(cluster)))
    return np.clip(np.rint(value), context.low, context.high), np.column_stack([mean, sd])


def _sticks(concentration: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n weights from GEM(concentration); the last weight is the remaining mass."""
    broken = rng.beta(1.0, concentration, n)
    broken[-1] = 1.0
    return broken * np.concatenate([[1.0], np.cumprod(1.0 - broken[:-1])])


def _dirichlet_rows(parameter: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n vectors from Dirichlet(parameter); if all entries of a vector underflow, one entry becomes 1."""
    weights = rng.standard_gamma(np.broadcast_to(parameter, (n, len(parameter))))
    empty = weights.sum(axis=1) == 0.0
    weights[empty, np.argmax(parameter)] = 1.0
    return weights / weights.sum(axis=1, keepdims=True)


def _zipf(n: int, exponent: float = _ZIPF_EXPONENT) -> np.ndarray:
    weights = (np.arange(n) + 1.0 + _ZIPF_SHIFT * n) ** -exponent
    return weights / weights.sum()


# -- names -----------------------------------------------------------------------------------------------------


NIPS = Shape(
    n_documents=1740,
    n_words=13_649,
    mean_tokens=1322.6,
    length_shape=20.0,
    n_clusters=30,
    n_topics=100,
    topic_mass=1000.0,
    group_concentration=10.0,
    topic_concentration=30.0,
    table_concentration=12.0,
    contexts={
        "author": Bag(2037, mean_count=2.3, mass=150.0, exponent=0.3, names=author_names, distinct=True),
        "title": Bag(2600, mean_count=6.2, mass=200.0, exponent=1.0, names=pseudo_words),
        "year": WholeNumber(1987, 1999, sd=(1.5, 5.0)),
    },
)
PNAS = Shape(
    n_documents=79_800,
    n_words=36_782,
    mean_tokens=90.0,
    length_shape=4.0,
    n_clusters=60,
    n_topics=150,
    topic_mass=800.0,
    group_concentration=15.0,
    topic_concentration=40.0,
    table_concentration=10.0,
    contexts={"year": WholeNumber(1915, 2005, sd=(2.0, 20.0))},
)
# images of 13 animals with visual words and tags. We chose the lengths, because the paper does not print them. Clusters
# share more topics than in the other corpora, because visual words contain less information on classes than text.
NUSWIDE = Shape(
    n_documents=3411,
    n_words=500,
    mean_tokens=250.0,
    length_shape=4.0,
    n_clusters=13,
    n_topics=60,
    topic_mass=100.0,
    group_concentration=4.0,
    topic_concentration=20.0,
    table_concentration=25.0,
    contexts={"tag": Bag(1000, mean_count=6.0, mass=60.0, exponent=0.7, names=pseudo_words, distinct=True)},
    is_vocabulary_given=True,
)
# The 1.1 million articles of UAI16, with 7,702 words: its 10,000 words without short words. An article has one first
# writer, and most writers write few articles.
WIKIPEDIA = Shape(
    n_documents=1_100_000,
    n_words=7702,
    mean_tokens=150.0,
    length_shape=1.5,
    n_clusters=100,
    n_topics=150,
    topic_mass=800.0,
    group_concentration=25.0,
    topic_concentration=40.0,
    table_concentration=10.0,
    contexts={
        "writer": Bag(200_000, mean_count=1.0, mass=20_000.0, exponent=0.9, names=author_names, distinct=True),
        "category": Bag(100_000, mean_count=4.0, mass=5000.0, exponent=0.7, names=pseudo_words, distinct=True),
        "topic": Bag(25, mean_count=1.8, mass=10.0, exponent=0.5, names=pseudo_words, distinct=True),
    },
    is_vocabulary_given=True,
)
# The 1.4 million abstracts of UAI16 since 2000, with the 10,000 most frequent words.
PUBMED = Shape(
    n_documents=1_400_000,
    n_words=10_000,
    mean_tokens=100.0,
    length_shape=6.0,
    n_clusters=100,
    n_topics=150,
    topic_mass=800.0,
    group_concentration=25.0,
    topic_concentration=40.0,
    table_concentration=10.0,
    contexts={
        "mesh": Bag(27_000, mean_count=11.0, mass=600.0, exponent=0.8, names=pseudo_words, distinct=True),
        "year": WholeNumber(2000, 2015, sd=(2.0, 8.0)),
    },
    is_vocabulary_given=True,
)
# Functions that users of an application call, and their other products. Both have a large Dirichlet mass, because they
# contain little information on the class (NMI near 0.03 in table 4 of UAI16). UAI16 has about 10,000 functions, two
# classes of users and more than a million users. The Rand indices and F-scores that it prints imply that 85 % of the
# users are in one class (test_table_4_is_of_two_classes_of_85_and_15_per_cent). The other numbers are our choice.
AUA = Shape(
    n_documents=1_200_000,
    n_words=10_000,
    mean_tokens=120.0,
    length_shape=0.8,
    n_clusters=30,
    n_topics=60,
    topic_mass=1875.0,
    group_concentration=10.0,
    topic_concentration=20.0,
    table_concentration=8.0,
    contexts={"product": Bag(40, mean_count=3.0, mass=60.0, exponent=0.6, names=pseudo_words, distinct=True)},
    is_vocabulary_given=True,
    classes=(("free", 0.85), ("paid", 0.15)),
)
SHAPES = {"nips": NIPS, "pnas": PNAS, "nuswide": NUSWIDE, "wikipedia": WIKIPEDIA, "pubmed": PUBMED, "aua": AUA}
