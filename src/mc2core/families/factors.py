"""Rank-one updates of Cholesky factors of scatter matrices, and densities of Student's t from these factors.

A Gauss-Wishart posterior has strength kappa, 2 a degrees of freedom per coordinate, sums s = kappa m and scatter C. Its
scale matrix and predictive density are

    Psi = C - s s' / kappa,    p(x) prop. to |Psi|^-1/2 (1 + c (x - m)' Psi^-1 (x - m))^-(D / 2 + a)

with c = kappa / (kappa + 1).

A further observation adds c (x - m)(x - m)' to Psi. For this change of rank one, the Cholesky factor is updated in
O(D^2) (NIPS12, section 3.5). A density needs one triangular solve, also O(D^2). If the observation is in the sums, the
determinant and the distance without it follow from the factor with it, by the matrix determinant lemma.

If one vector is compared with many topics at once, the inverse factor W = U'^-1 is faster, because (x - m)' Psi^-1 (x -
m) = |W (x - m)|^2 needs no division. Let p = W v. After the change to Psi + s v v', the factor is U' K with K K' = I +
s p p', so W becomes K^-1 W. With t_0 = 1, t_r = t_{r-1} + s p_r^2 and the rows w_r of W, the new rows are

    row r = sqrt(t_{r-1} / t_r) (w_r - s p_r / t_{r-1} sum_{q < r} p_q w_q)
"""

from __future__ import annotations

import math

from mc2core.compute import special
from mc2core.compute.kernels import inner_kernel

#: largest number of downdates of a factor before it is recomputed
MAX_DOWNDATES = 100
#: least share that a downdate may leave of the determinant, and of the square of a pivot
MIN_LEFT = 1e-4


@inner_kernel
def factorise(strength, sums, scatter, x, ridge, factor):
    """Fill the upper triangle of ``factor`` with U, where U' U = Psi + ``ridge`` I, for sums and scatter without (D,)
    ``x`` (or zeros); ``strength`` excludes ``x``.

    The entries are NaN if rounding makes the matrix not positive definite.
    """
    dimension = sums.size
    for i in range(dimension):
        row, products = factor[i], scatter[i]
        others = sums[i] - x[i]
        for d in range(i, dimension):
            row[d] = products[d] - x[i] * x[d] - others * (sums[d] - x[d]) / strength
        row[i] += ridge
    for i in range(dimension):
        row = factor[i]
        pivot = math.sqrt(row[i])
        for d in range(i, dimension):
            row[d] /= pivot
        for e in range(i + 1, dimension):
            other, share = factor[e], row[e]
            for d in range(e, dimension):
                other[d] -= share * row[d]


@inner_kernel
def change_by_rank_one(factor, v, sign):
    """Update U of Psi to U of Psi + ``sign`` v v' in place; (D,) ``v`` is overwritten.

    Returns whether enough digits remain (:data:`MIN_LEFT`); if not, ``factor`` is invalid.
    """
    for i in range(v.size):
        row = factor[i]
        square = row[i] * row[i]
        changed = square + sign * v[i] * v[i]
        if not changed >= MIN_LEFT * square:
            return False
        pivot = math.sqrt(changed)
        cosine, sine = pivot / row[i], v[i] / row[i]
        row[i] = pivot
        for d in range(i + 1, v.size):
            row[d] = (row[d] + sign * sine * v[d]) / cosine
            v[d] = cosine * v[d] - sine * row[d]
    return True


@inner_kernel
def invert(factor, inverse, m):
    """Fill column m of (D (D + 1) / 2, columns) ``inverse`` with the triangle W = U'^-1, row by row."""
    for s in range(factor.shape[0]):
        for r in range(s, factor.shape[0]):
            total = 1.0 if r == s else 0.0
            for q in range(s, r):
                total -= factor[q, r] * inverse[q * (q + 1) // 2 + s, m]
            inverse[r * (r + 1) // 2 + s, m] = total / factor[r, r]


@inner_kernel
def change_inverse_by_rank_one(inverse, m, v, sign, sums):
    """Update column m of :func:`invert` for Psi + ``sign`` v v' in place; (D,) ``sums`` is overwritten.

    Returns whether enough digits remain, as :func:`change_by_rank_one`.
    """
    t = 1.0
    for r in range(v.size):
        row, p = r * (r + 1) // 2, 0.0
        for s in range(r + 1):
            p += inverse[row + s, m] * v[s]
        before, t = t, t + sign * p * p
        if not t >= MIN_LEFT * before:
            return False
        scale, share = math.sqrt(before / t), sign * p / before
        sums[r] = 0.0
        for s in range(r + 1):
            w = inverse[row + s, m]
            inverse[row + s, m] = scale * (w - share * sums[s])
            sums[s] += p * w
    return True


@inner_kernel
def squared_distance(factor, v):
    """Return v' Psi^-1 v by forward substitution; (D,) ``v`` is overwritten."""
    total = 0.0
    for i in range(v.size):
        row = factor[i]
        share = v[i] / row[i]
        total += share * share
        for d in range(i + 1, v.size):
            v[d] -= share * row[d]
    return total


@inner_kernel
def log_head(strength, freedom, factor):
    """Return the log of the factor of Student's t before the power, without D / 2 ln pi; ``freedom`` is 2 a."""
    dimension = factor.shape[0]
    half_log_det = 0.0
    for i in range(dimension):
        half_log_det += math.log(factor[i, i])
    head = 0.5 * dimension * math.log(strength / (strength + 1.0))
    head += special.log_gamma(0.5 * (dimension + freedom)) - special.log_gamma(0.5 * freedom)
    return head - half_log_det


@inner_kernel
def log_student(strength, freedom, sums, factor, head, x, v):
    """Return ln p(x), given the result ``head`` of :func:`log_head`; (D,) ``v`` is overwritten."""
    for d in range(v.size):
        v[d] = x[d] - sums[d] / strength
    c = strength / (strength + 1.0)
    return head - 0.5 * (v.size + freedom) * math.log1p(c * squared_distance(factor, v))


@inner_kernel
def log_student_without(strength, freedom, sums, scatter, ridge, factor, x, v, room):
    """Return :func:`log_student` of ``x`` after removing it from sums, scatter and ``factor``.

    ``strength`` and ``freedom`` exclude ``x``; (D,) ``v`` and (D, D) ``room`` are overwritten.
    """
    for d in range(v.size):
        v[d] = x[d] - (sums[d] - x[d]) / strength
    # |Psi without| = left |Psi|, and 1 + c times the distance in it is 1 / left
    left = 1.0 - strength / (strength + 1.0) * squared_distance(factor, v)
    if left >= MIN_LEFT:
        return log_head(strength, freedom, factor) + 0.5 * (v.size - 1 + freedom) * math.log(left)
    return log_student_anew(strength, freedom, sums, scatter, ridge, x, v, room)


@inner_kernel
def log_student_anew(strength, freedom, sums, scatter, ridge, x, v, room):
    """Return :func:`log_student_without`, with a factor that is recomputed without ``x``."""
    factorise(strength, sums, scatter, x, ridge, room)
    for d in range(v.size):
        v[d] = x[d] - (sums[d] - x[d]) / strength
    c = strength / (strength + 1.0)
    head = log_head(strength, freedom, room)
    return head - 0.5 * (v.size + freedom) * math.log1p(c * squared_distance(room, v))


@inner_kernel
def shift_of(strength, sums, x, sign, v):
    """Fill (D,) ``v`` with the vector of the change of rank one by which ``x`` joins (``sign`` 1) or leaves (-1).

    ``sums`` are the sums before the change; ``strength`` excludes ``x``.
    """
    root = math.sqrt(strength / (strength + 1.0))
    for d in range(v.size):
        others = sums[d] - x[d] if sign < 0 else sums[d] + 0.0
        v[d] = root * (x[d] - others / strength)
