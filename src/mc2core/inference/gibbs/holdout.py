"""Log predictive probability of held-out documents under states of a chain, used to compare several starts.

For short documents, the joint density is misleading. It is highest if the topics alone explain the assignment of
tokens, so a state with one cluster has the highest value (docs/notes/gibbs_document_level.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.posterior import Sample

if TYPE_CHECKING:
    from mc2core.posterior.mixture import Block

# documents per held-out document, and smallest useful number of held-out documents
_FOR_ONE, _MIN_DOCUMENTS = 10, 10
#: largest number of tokens used of one document, and of all held-out documents together
MAX_OF_ONE, MAX_OF_ALL = 1_000, 30_000
# largest product of documents, clusters and topics in one block
_CELLS = 1 << 21
_MIN_PROBABILITY = 1e-300


def draw_holdout(corpus: Corpus, seed: int) -> np.ndarray:
    """Return the documents to hold out, in ascending order.

    They are a random tenth of the documents with tokens, with at most 30,000 tokens in total. If fewer than a hundred
    documents have tokens, no document is held out.
    """
    lengths = corpus.document_lengths
    filled = np.flatnonzero(lengths)
    n_kept = len(filled) // _FOR_ONE
    if n_kept < _MIN_DOCUMENTS:
        return np.zeros(0, np.int64)
    drawn = filled[streams.generator(seed, "kept back").permutation(len(filled))[:n_kept]]
    tokens = np.cumsum(np.minimum(lengths[drawn], MAX_OF_ONE))
    return np.sort(drawn[: np.searchsorted(tokens, MAX_OF_ALL, side="right")])


def log_weights(sample: Sample, corpus: Corpus, contexts: StackedContexts | None, seed: int) -> np.ndarray:
    """Return ln p(z_j = k) p(x_j | k) p(w_j | k), (J, K) float64 in nats.

    p(w_j | k) is the product of the probabilities of the tokens in a random order, each given the tokens before it. The
    topics of earlier tokens are replaced by their expectations. If words repeat, the numbers of draws are replaced by
    expectations, too. The probabilities therefore sum to 1 over all documents of the same length. For long documents,
    only the first :data:`MAX_OF_ONE` tokens are used.
    """
    from mc2core.posterior.document_level import priors_of
    from mc2core.posterior.mixture import Block, SampleMixture, blocks

    mixture = SampleMixture(sample)
    prior, weights = priors_of(mixture)
    out = np.tile(weights, (corpus.n_documents, 1))
    for rows in blocks(corpus, 1, max(1, _CELLS // prior.size)):
        block = Block(corpus, rows)
        out[rows] += _log_words(
            _in_order(block, seed), *mixture.likely(block.emitted), prior, sample.burst_concentration
        )
    return out if contexts is None else out + contexts.log_predictive(sample.natural)


def _in_order(block: Block, seed: int) -> list[np.ndarray]:
    """Return the tokens of each document in random order, as indices of the words of the block."""
    indptr, indices, counts = block.arrays
    tokens = []
    for j, row in enumerate(block.rows):
        cells = slice(indptr[j], indptr[j + 1])
        rng = streams.generator(seed, "order of tokens", document=int(row))
        tokens.append(rng.permutation(np.repeat(indices[cells], counts[cells]))[:MAX_OF_ONE])
    return tokens


def _occurrences(tokens: np.ndarray) -> np.ndarray:
    """Return, for each token, the number of earlier occurrences of its word."""
    order = np.argsort(tokens, kind="stable")
    is_first = np.append(True, np.diff(tokens[order]) != 0)[: len(tokens)]
    place, before = np.arange(len(tokens)), np.empty(len(tokens), np.int64)
    before[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return before


def _log_words(
    tokens: list[np.ndarray], psi: np.ndarray, log_scale: np.ndarray, prior: np.ndarray, b: float = np.inf
) -> np.ndarray:
    """Return the log likelihoods of the documents in each cluster, (B, K), in nats.

    ``psi`` (U, M + 1) times the exponential of ``log_scale`` (U,) is the probability of each word in each topic.
    ``prior`` (K, M + 1) is omega tau, and ``b`` is the burst concentration.
    """
    lengths = np.array([len(one) for one in tokens])
    longest = np.argsort(-lengths, kind="stable")
    omega, out = prior.sum(axis=1), np.zeros((len(tokens), len(prior)))
    counts = np.tile(prior, (len(tokens), 1, 1))  # longest documents first, with the expected counts of their tokens
    drawn, seen = np.tile(omega, (len(tokens), 1)), [_occurrences(one) for one in tokens]
    for i in range(int(lengths.max(initial=0))):
        going = longest[: np.count_nonzero(lengths > i)]
        now, these = counts[: len(going)], [tokens[j][i] for j in going]
        likely = now * psi[these][:, None, :]
        total = np.maximum(likely.sum(axis=2), _MIN_PROBABILITY)
        p, before = total / drawn[: len(going)], np.array([seen[j][i] for j in going])[:, None]
        share = np.ones_like(p)
        if b < np.inf:
            share, p = b * p / (before + b * p), (before + b * p) / (i + b)
        drawn[: len(going)] += share
        out[going] += np.log(p) + log_scale[these, None]
        now += likely * (share / total)[:, :, None]
    return out
