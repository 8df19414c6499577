"""Logarithm, exponential, log-gamma and digamma functions that compile to vector code.

LLVM cannot vectorise calls to the C library, and numba's wheel has no vector functions for mathematics. The functions
here have no branches, so a loop over an array processes several values per cycle. They are used in loops inside
compiled kernels. Tests compare them with exact values (tests/mc2core/compute/test_special.py).
"""

from __future__ import annotations

import math

import numba
import numpy as np

from mc2core.compute.kernels import inner_kernel, kernel

_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_SQRT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)
_52 = np.int64(52)
_BIAS = np.int64(1023)
_HALF_LOG_2PI = 0.91893853320467274178
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it to a float64 rounds to an integer, which is in the low bits


@kernel(fastmath={"contract"}, forceinline=True)
def log(x):
    """Return the natural logarithm of a normal, positive float64; the relative error (absolute near 1) is below 3e-16.

    The argument is written as x = 2**e * (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). log(1 + f) is computed by the odd
    series in f / (2 + f), with the minimax coefficients of FreeBSD's e_log.c. Zero, subnormal, infinite and NaN
    arguments are not handled, so callers must not pass them.
    """
    bits = np.float64(x).view(np.int64)
    exponent = (bits - _SQRT_HALF_BITS) >> _52
    f = np.int64(bits - (exponent << _52)).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332))
    odd = z * (
        0.6666666666666735130 + w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591))
    )
    half = 0.5 * f * f
    k = np.float64(exponent)
    return k * _LN2_HIGH - ((half - (s * (half + even + odd) + k * _LN2_LOW)) - f)


@kernel(fastmath={"contract"}, forceinline=True)
def exp(x):
    """Return the exponential of a float64 with a relative error below 3e-16; 0 below -708 and infinity above 709."""
    clipped = min(max(x, -708.0), 709.0)
    shifted = clipped * 1.4426950408889634 + _ROUND
    k = shifted - _ROUND
    r = (clipped - k * _LN2_HIGH) - k * _LN2_LOW
    # Taylor series on |r| <= ln(2) / 2: the first omitted term is below 5e-18
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    scale = np.int64((np.int64(k) + _BIAS) << _52).view(np.float64)
    value = p * scale
    if x < -708.0:
        value = 0.0
    if x > 709.0:
        value = math.inf
    return value


@kernel(fastmath={"contract"}, forceinline=True)
def stirling(x):
    """Return log-gamma of x >= 8 by Stirling's series to x**-11; the absolute error is below 1e-14 + 2e-16 |result|."""
    r = 1.0 / x
    z = r * r
    series = r * (
        1.0 / 12.0
        + z * (-1.0 / 360.0 + z * (1.0 / 1260.0 + z * (-1.0 / 1680.0 + z * (1.0 / 1188.0 - z * (691.0 / 360360.0)))))
    )
    return (x - 0.5) * log(x) - x + _HALF_LOG_2PI + series


@kernel(fastmath={"contract"}, forceinline=True)
def log_gamma(x):
    """Return log-gamma of x >= 1e-300.

    The absolute error is below 1e-13 for x up to 100, and the relative error is below 1e-15 for larger x. Arguments
    below 8 are shifted by G(x) = G(x + 8) / (x (x+1) ... (x+7)).
    """
    is_small = x < 8.0
    y = x + 8.0 if is_small else x
    product = x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0) * (x + 5.0) * (x + 6.0) * (x + 7.0)
    shift = log(product if is_small else 1.0)
    return stirling(y) - shift


#: smallest argument of log-gamma functions and logarithms; callers replace smaller arguments by it
MIN_POSITIVE = 1e-300
#: largest number of factors that are multiplied in a rising factorial; the product is finite for all allowed settings
MAX_FACTORS = 16


@inner_kernel
def log_rising_factorial(a, n):
    """Return ln of a (a + 1) ... (a + n - 1)."""
    if n > MAX_FACTORS:
        return log_gamma(a + n) - log_gamma(a)
    product = 1.0
    for i in range(n):
        product *= a + i
    return log(product)


@numba.njit(inline="always")
def digamma(x):
    """Return the digamma function of x >= 1e-150; the error is below 1e-14 (1 + |result|).

    Arguments below 8 are shifted by 8, and the eight reciprocals are subtracted as P'(x) / P(x) with P = x (x+1) ...
    (x+7). The asymptotic series to x**-14 follows.
    """
    is_small = x < 8.0
    product = x
    slope = 1.0
    for i in range(1, 8):
        slope = slope * (x + i) + product
        product = product * (x + i)
    y = x + 8.0 if is_small else x
    r = 1.0 / y
    z = r * r
    series = z * (
        1.0 / 12.0
        - z
        * (
            1.0 / 120.0
            - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32760.0 - z * (1.0 / 12.0)))))
        )
    )
    shift = slope / product if is_small else 0.0
    return log(y) - 0.5 * r - series - shift
