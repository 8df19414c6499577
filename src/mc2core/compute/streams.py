"""Random streams that are identified by their purpose instead of the thread or process, and draws from them.

A stream is identified by (seed, purpose, iteration, document). Therefore, iteration 400 can be repeated from a stored
state without iterations 1 to 399, and any number of threads draws the same numbers.

There are two kinds of generators:

* :func:`generator` returns a NumPy generator (Philox) for work in Python;
* :func:`key` returns a 64-bit key for compiled kernels. A kernel calls :func:`seek` at the start of every document (or
  topic, or cluster) and then draws from a two-word counter state. This generator is SplitMix64, with a separate start
  and odd increment for each document (Steele, Lea and Flood 2014).

The functions below draw Gamma and Dirichlet variates and weighted choices with NumPy generators. In kernels, they draw
normal and Gamma variates and weighted choices.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numba
import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.special import exp, log

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_MIX_3 = np.uint64(0xFF51AFD7ED558CCD)
_MIX_4 = np.uint64(0xC4CEB9FE1A85EC53)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_S12, _S27, _S30, _S31, _S33 = (np.uint64(shift) for shift in (12, 27, 30, 31, 33))
_TO_UNIT = 1.0 / 4503599627370496.0  # 2**-52
_MIN_SHAPE = 1e-300  # smallest shape of a Gamma variate; smaller shapes have no weight next to others
_SAFE_SHAPE = 0.5  # a Gamma variate of at least this shape is below 1e-280 only with probability 1e-140
_SMALL_SHAPE = 0.5  # below this shape, Gamma variates are drawn by a separate rejection sampler
_CERTAIN = -40.0  # exp(exp(-40)) is 1 in float64


def _words(seed: int, purpose: str, iteration: int, document: int) -> bytes:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed is {seed!r}: a seed is a whole number of at least 0")
    return f"{seed}/{purpose}/{iteration}/{document}".encode()


def generator(seed: int, purpose: str, iteration: int = 0, document: int = 0) -> np.random.Generator:
    """Return a NumPy generator for the stream (seed, purpose, iteration, document)."""
    digest = hashlib.blake2b(_words(seed, purpose, iteration, document), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(digest, dtype=np.uint64)))


def key(seed: int, purpose: str, iteration: int = 0) -> np.uint64:
    """Return the 64-bit key of the streams (seed, purpose, iteration, .) for :func:`seek`."""
    digest = hashlib.blake2b(_words(seed, purpose, iteration, 0), digest_size=8).digest()
    return np.frombuffer(digest, dtype=np.uint64)[0]


@numba.njit(inline="always")
def mix(word):
    """Apply the finaliser of SplitMix64 (Stafford's variant 13), a bijection of uint64."""
    word = (word ^ (word >> _S30)) * _MIX_1
    word = (word ^ (word >> _S27)) * _MIX_2
    return word ^ (word >> _S31)


@numba.njit(inline="always")
def finish_murmur(word):
    """Apply the finaliser of MurmurHash3, a bijection of uint64."""
    word = (word ^ (word >> _S33)) * _MIX_3
    word = (word ^ (word >> _S33)) * _MIX_4
    return word ^ (word >> _S33)


@kernel
def seek(state, key, item):
    """Set ``state``, (2,) uint64, to the start of the stream of ``item`` under ``key``, in place."""
    start = mix(key + _GOLDEN * (np.uint64(item) + _ONE))
    state[0] = start
    state[1] = finish_murmur(start + key) | _ONE  # increment of the stream, which must be odd


@numba.njit(inline="always")
def to_unit(word):
    """Convert the high 52 bits of a word to a number in (0, 1), float64."""
    return (np.float64(word >> _S12) + 0.5) * _TO_UNIT


@numba.njit(inline="always")
def uniform(state):
    """Draw the next float64 of the stream, uniform on the open interval (0, 1)."""
    state[0] += state[1]
    return to_unit(mix(state[0]))


# -- variates ----------------------------------------------------------------------------------------------------------
def log_gammas(shape: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Draw logarithms of Gamma(shape, 1) variates, float64. They are finite even if the variates underflow.

    The identity Gamma(a) = Gamma(a + 1) U**(1/a) in distribution is used. Shapes below 1e-300, including 0, are
    replaced by 1e-300.
    """
    shape = np.maximum(shape, _MIN_SHAPE)
    return np.log(generator.standard_gamma(shape + 1.0)) + np.log1p(-generator.random(shape.shape)) / shape


def dirichlet(shape: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Draw each row from the Dirichlet distribution of its shapes, (..., n) float64; rows sum to 1 for all shapes.

    The sum of a row's Gamma variates is a Gamma variate whose shape is the sum of their shapes. If this sum is large
    enough in every row, Gamma variates are drawn directly; otherwise, their logarithms are drawn. The choice depends
    only on the shapes, not on the draws, so the method is exact.
    """
    if shape.sum(axis=-1).min(initial=np.inf) >= _SAFE_SHAPE:
        gammas = generator.standard_gamma(shape)
    else:
        logs = log_gammas(shape, generator)
        gammas = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return gammas / gammas.sum(axis=-1, keepdims=True)


def choose(weights: np.ndarray, generator: np.random.Generator, what: str, size: int | None = None) -> Any:
    """Draw indices with probabilities proportional to ``weights``.

    Raises ValueError, with ``what`` as the name of the weights, unless the sum of the weights is finite and positive.
    """
    total = weights.sum()
    if not 0.0 < total < np.inf:
        raise ValueError(f"the weights of {what} sum to {total}; a draw needs a finite sum above 0")
    return generator.choice(len(weights), size=size, p=weights / total)


@numba.njit(inline="always")
def index_at(weights, first, last, u):
    """Return the index, from ``first`` to ``last``, at which the cumulative weight exceeds ``u`` >= 0, and a remainder.

    The remainder is u minus the weights before the index. If u is uniform on [0, sum of the weights), the index is
    drawn with probability proportional to weights[first:last + 1]. If u exceeds the sum by rounding, the index is
    ``last``.
    """
    i = first
    while i < last and u >= weights[i]:
        u -= weights[i]
        i += 1
    return i, u


@numba.njit(inline="always")
def index_of(weights, n, u, otherwise):
    """Return the first index among n ``weights`` at which the cumulative weight exceeds ``u`` >= 0.

    If u is uniform on [0, sum of the weights), the index is drawn with probability proportional to the weights. If u
    exceeds the sum by rounding, the index of the last positive weight is returned. If no weight is positive,
    ``otherwise`` is returned.
    """
    chosen = otherwise
    for i in range(n):
        if weights[i] > 0.0:
            chosen = i
            if u < weights[i]:
                break
            u -= weights[i]
    return chosen


#: gap to the best score in nats from which scores are ignored; even thousands of such weights are rounding errors
MAX_NATS_BELOW_BEST = 45.0


@kernel
def argmax(scores):
    """Return the index of the largest of (n,) float64 ``scores``, or any index if a score is NaN.

    Eight maxima are updated in parallel, which is faster than np.argmax.
    """
    end = scores.size // 8 * 8
    a = b = c = d = e = f = g = h = scores[0]
    for k in range(0, end, 8):
        a, b, c, d = max(a, scores[k]), max(b, scores[k + 1]), max(c, scores[k + 2]), max(d, scores[k + 3])
        e, f, g, h = max(e, scores[k + 4]), max(f, scores[k + 5]), max(g, scores[k + 6]), max(h, scores[k + 7])
    for k in range(end, scores.size):
        a = max(a, scores[k])
    top = max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))
    k = 0
    if top == top:  # the search would not end for NaN
        while scores[k] != top:
            k += 1
    return k


@kernel
def select_likely(scores, least, likely):
    """Move scores of at least ``least`` to the front and write their indices to ``likely``, (K,) int64.

    Returns the number of these scores. NaN counts as likely, so that the draw detects it.
    """
    n = 0
    for k in range(scores.size):
        score = scores[k]
        scores[n], likely[n] = score, k
        n += not score < least
    return n


@kernel
def draw_from_logs(stream, scores):
    """Draw an index with probability proportional to exp(scores); -1 if a score is NaN or the largest is infinite.

    ``scores``, (n,) float64, are overwritten by the weights, of which the largest is 1.
    """
    top = scores[argmax(scores)]
    are_numbers = True
    for i in range(scores.size):
        below = scores[i] - top
        are_numbers &= below <= 0.0
        scores[i] = exp(below)
    if not are_numbers:
        return -1
    total = 0.0
    for i in range(scores.size):
        total += scores[i]
    i, _ = index_at(scores, 0, scores.size - 1, uniform(stream) * total)
    return i


def _ziggurat(layers: int, r: float, area: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the right edges x_0 > x_1 = r > ... > x_layers = 0 of layers of equal area, and their heights.

    The layers cover the area under exp(-x**2 / 2).
    """
    edges = np.zeros(layers + 1)
    edges[0], edges[1] = area * math.exp(0.5 * r * r), r
    for i in range(2, layers):
        edges[i] = math.sqrt(-2.0 * math.log(area / edges[i - 1] + math.exp(-0.5 * edges[i - 1] ** 2)))
    return edges, np.exp(-0.5 * edges**2)


# constants for 256 layers: Marsaglia and Tsang (2000), "The ziggurat method"
_TAIL = 3.6541528853610088
_EDGE, _HEIGHT = _ziggurat(256, _TAIL, 0.00492867323399)
_LAYER = np.uint64(255)
_LOW = np.uint64(4095)


@kernel
def normal(state):
    """Draw a standard normal float64 by Marsaglia and Tsang's ziggurat."""
    while True:
        state[0] += state[1]
        word = mix(state[0])
        layer = np.int64(word & _LAYER)
        # the low 8 bits select the layer, and the independent high 52 bits determine position and sign
        x = (2.0 * to_unit(word) - 1.0) * _EDGE[layer]
        if abs(x) < _EDGE[layer + 1]:
            return x
        if layer == 0:
            while True:
                beyond = -math.log(uniform(state)) / _TAIL
                if -2.0 * math.log(uniform(state)) > beyond * beyond:
                    return _TAIL + beyond if x > 0.0 else -_TAIL - beyond
        height = _HEIGHT[layer] + uniform(state) * (_HEIGHT[layer + 1] - _HEIGHT[layer])
        if height < math.exp(-0.5 * x * x):
            return x


@kernel
def gamma_variate(state, shape):
    """Draw a Gamma(shape, 1) variate for shape >= 1 (Marsaglia and Tsang 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(state)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = uniform(state)
        if u < 1.0 - 0.0331 * (x * x) * (x * x) or math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            return d * v


@kernel
def log_gamma_variate(state, shape):
    """Draw the logarithm of a Gamma(shape, 1) variate, shape > 0. It is finite even if the variate underflows.

    For shapes below 1, the variate is Gamma(shape + 1) * U**(1/shape).
    """
    if shape < 1.0:
        return math.log(uniform(state)) / shape + math.log(gamma_variate(state, shape + 1.0))
    return math.log(gamma_variate(state, shape))


# -- many Gamma variates of one shape ------------------------------------------------------------------------------
@numba.njit(inline="always")
def _small_shape_envelope(shape):
    """Return (slope, right) of the envelope of z = -shape * ln(variate) for shape < 0.5 (Liu, Martin and Syring 2017).

    The density of z is proportional to exp(-z - exp(-z / shape)). The envelope is exp(-z) for z > 0 and
    exp(slope z) / e for z < 0; ``right`` is the share of its mass at z > 0.
    """
    return 1.0 / shape - 1.0, 1.0 / (1.0 + shape / (math.e * (1.0 - shape)))


@kernel
def fill_log_gamma(state, shape, logs):
    """Fill float64 ``logs`` with logarithms of Gamma(shape, 1) variates, shape > 0; all of them are finite."""
    if shape >= _SMALL_SHAPE:
        for k in range(logs.size):
            logs[k] = log_gamma_variate(state, shape)
        return
    slope, right = _small_shape_envelope(shape)
    for k in range(logs.size):
        logs[k] = uniform(state)
    for k in range(logs.size):
        logs[k] = log(logs[k] / right) / shape
    for k in range(logs.size):
        if logs[k] < _CERTAIN:
            continue  # accepted with probability 1
        while True:
            if logs[k] <= 0.0:  # z >= 0
                if uniform(state) < math.exp(-math.exp(logs[k])):
                    break
            else:
                z = math.log(uniform(state)) / slope
                logs[k] = -z / shape
                if math.log(uniform(state)) < 1.0 - z - math.exp(logs[k]) - slope * z:
                    break
            logs[k] = math.log(uniform(state) / right) / shape


@kernel(fastmath={"contract"})
def fill_gamma(state, shape, work, out):
    """Fill float32 ``out`` with Gamma(shape, 1) variates, shape > 0; values too small for float32 become 0.

    The rejection sampler of :func:`fill_log_gamma` is applied to the variates instead of their logarithms. Nearly all
    variates are accepted by unused bits of their first uniform number. ``work`` is a float64 array of the length of
    ``out``.
    """
    if shape >= _SMALL_SHAPE:
        for i in range(out.size):
            out[i] = math.exp(log_gamma_variate(state, shape))
        return
    slope, right = _small_shape_envelope(shape)
    start, step = state[0], state[1]
    n = out.size
    for i in range(n):
        word = mix(start + np.uint64(i + 1) * step)
        u = to_unit(word)
        x = exp(log(u / right) / shape)  # exp(-z / shape) for z > 0
        # the 12 unused bits are the leading bits of the number for the rejection; the sign marks that all are 1
        work[i] = x if (word & _LOW) != _LOW else -x
    state[0] = start + np.uint64(n) * step
    for i in range(n):
        x = work[i]
        # a draw with z > 0 (x <= 1) is accepted with probability exp(-x) >= 1 - x; the leading bits mostly decide it
        if x < 0.0 or x > 1.0 / 4096.0:
            u = (4095.0 + uniform(state)) / 4096.0 if x < 0.0 else uniform(state) * (4095.0 / 4096.0)
            x = abs(x)
            while True:
                if x <= 1.0:
                    if u < 1.0 - x or u < math.exp(-x):
                        break
                else:
                    z = math.log(uniform(state)) / slope
                    x = math.exp(-z / shape)
                    # ratio of the target exp(-z - x) to the envelope exp(slope z) / e
                    if math.log(uniform(state)) < -z - x - slope * z + 1.0:
                        break
                x = math.exp(math.log(uniform(state) / right) / shape)
                u = uniform(state)
        out[i] = x
