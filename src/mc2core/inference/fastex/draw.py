"""A cluster drawn from the logarithms of its weights, in FastEx's kernels that score every cluster."""

from __future__ import annotations

from mc2core.compute import special, streams, variates
from mc2core.compute.kernels import kernel

#: clusters that score so many nats below the best are not drawn: even thousands of them weigh less than rounding does
MAX_NATS_BELOW_BEST = 45.0


@kernel
def argmax(scores):
    """Index of the largest of (n,) float64 ``scores``, any where one is NaN; in eight chains, unlike np.argmax."""
    end = scores.size // 8 * 8
    a = b = c = d = e = f = g = h = scores[0]
    for k in range(0, end, 8):
        a, b, c, d = max(a, scores[k]), max(b, scores[k + 1]), max(c, scores[k + 2]), max(d, scores[k + 3])
        e, f, g, h = max(e, scores[k + 4]), max(f, scores[k + 5]), max(g, scores[k + 6]), max(h, scores[k + 7])
    for k in range(end, scores.size):
        a = max(a, scores[k])
    top = max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))
    k = 0
    if top == top:  # else there is no end to the search
        while scores[k] != top:
            k += 1
    return k


@kernel
def select_likely(scores, least, likely):
    """Move scores of at least ``least`` to the front, and their indices to ``likely``, (K,) int64; returns how many.

    NaN counts as likely, so that the draw meets it.
    """
    n = 0
    for k in range(scores.size):
        score = scores[k]
        scores[n], likely[n] = score, k
        n += not score < least
    return n


@kernel
def draw_from_logs(stream, scores):
    """Index drawn in proportion to exp(scores), -1 where one is NaN or the largest is infinite.

    (n,) float64 ``scores`` become weights, the largest of them 1.
    """
    top = scores[argmax(scores)]
    are_numbers = True
    for i in range(scores.size):
        below = scores[i] - top
        are_numbers &= below <= 0.0
        scores[i] = special.exp(below)
    if not are_numbers:
        return -1
    total = 0.0
    for i in range(scores.size):
        total += scores[i]
    i, _ = variates.index_at(scores, 0, scores.size - 1, streams.uniform(stream) * total)
    return i
