"""FastEx's proposal: scores of all clusters from Hamming distances, weights, and a draw (NIPS12 eq. 14 and 15)."""

from __future__ import annotations

import numpy as np

from mc2core.compute import streams, variates
from mc2core.compute.kernels import kernel
from mc2core.inference.fastex.hashed.simd import BLOCK, NO_CLUSTER, score_block, weigh_block

#: a cluster's proposal weight is at least exp(-MAX_LOG_WEIGHT_RATIO) of the largest: no state is ever out of reach
MAX_LOG_WEIGHT_RATIO = 20.0
_F = np.float32


def padded(n_clusters: int) -> int:
    """Columns of arrays over ``n_clusters`` clusters: whole blocks."""
    return -(-n_clusters // BLOCK) * BLOCK


@kernel
def proposal_scores(columns, signature, norm, mass, bits, slack, flatness, scores, blocks):
    """Fill (K',) float32 ``scores`` with flatness * s(x, k): NIPS12 eq. 14, and with slack > 0 its upper bound, eq. 15.

    ``columns``: what proposals read of clusters; ``signature``, ``norm``, ``mass``: the document's. The largest score
    of each block goes to ``blocks``. The paper misprints - ln n_y; a larger cluster is more likely.
    """
    signatures, norms, constants, slopes = columns.signature, columns.norm, columns.constant, columns.slope
    factors = _F(1.0 / bits), _F(slack), _F(norm), _F(mass), _F(flatness)
    for b in range(blocks.size):
        blocks[b] = score_block(signatures, signature, norms, constants, slopes, b * BLOCK, factors, scores)


@kernel
def replace(scores, blocks, k, score):
    """Give column k another score; ``blocks`` keeps the largest of each block."""
    scores[k] = score
    first = k // BLOCK * BLOCK
    largest = scores[first]
    for i in range(first + 1, first + BLOCK):
        largest = max(largest, scores[i])
    blocks[k // BLOCK] = largest


@kernel
def weigh(scores, blocks):
    """Turn scores into weights exp(max(score - largest, -MAX_LOG_WEIGHT_RATIO)); ``blocks`` holds the largest of each.

    In place; blocks' sums go to ``blocks``.
    """
    top = _F(NO_CLUSTER)
    for b in range(blocks.size):
        top = max(top, blocks[b])
    for b in range(blocks.size):
        blocks[b] = weigh_block(scores, b * BLOCK, top, _F(-MAX_LOG_WEIGHT_RATIO))


@kernel
def draw(stream, n_clusters, weights, blocks):
    """Index below ``n_clusters`` drawn in proportion to (K',) float32 ``weights`` with block sums ``blocks``.

    Proportions are those of the weights to float32's rounding of the sums, which a block's last cluster takes up.
    -1 where the sum of all is no positive number.
    """
    total = 0.0
    for b in range(blocks.size):
        total += blocks[b]
    if not 0.0 < total < np.inf:
        return -1
    b, u = variates.index_at(blocks, 0, blocks.size - 1, streams.uniform(stream) * total)
    k, _ = variates.index_at(weights, b * BLOCK, min((b + 1) * BLOCK, n_clusters) - 1, u)
    return k
