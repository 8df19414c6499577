"""Rank-one updates of Cholesky factors of scatter matrices, and Student-t densities computed from these factors.

A Gauss-Wishart posterior has strength kappa, 2 a degrees of freedom per coordinate, sums s = kappa m and scatter C. Its
scale matrix and predictive density are

    Psi = C - s s' / kappa,    p(x) prop. to |Psi|^-1/2 (1 + c (x - m)' Psi^-1 (x - m))^-(D / 2 + a)

with c = kappa / (kappa + 1).

An additional observation adds c (x - m)(x - m)' to Psi. This is a rank-one change, so the Cholesky factor is updated in
O(D^2) (NIPS12, section 3.5). A density needs one triangular solve, which also takes O(D^2). If the observation is
included in the sums, the matrix determinant lemma gives the determinant and the distance without the observation from
the factor with it.

To compare one vector with many topics, the inverse factor W = U'^-1 is faster, because (x - m)' Psi^-1 (x - m) =
|W (x - m)|^2 needs no division. Let p = W v. After the change to Psi + s v v', the factor is U' K with K K' = I +
s p p', so W becomes K^-1 W. With t_0 = 1, t_r = t_{r-1} + s p_r^2 and the rows w_r of W, the new rows are

    row r = sqrt(t_{r-1} / t_r) (w_r - s p_r / t_{r-1} sum_{q < r} p_q w_q)
"""

from __future__ import annotations

import math

from mc2core.compute import special
from mc2core.compute.kernels import inner_kernel

#: largest number of downdates of a factor before it is recomputed
MAX_DOWNDATES = 100
#: smallest ratio of the determinant, or of a squared pivot, after and before a downdate
MIN_LEFT = 1e-4


@inner_kernel
def factorise(strength, sums, scatter, x, ridge, factor):
    """Fill the upper triangle of ``factor`` with U, where U' U = Psi + ``ridge`` I.

    ``x`` (D,) is first removed from ``sums`` and ``scatter``; zeros remove nothing. ``strength`` already excludes
    ``x``. The entries are NaN if rounding makes the matrix not positive definite.
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
    """Update the factor U of Psi to the factor of Psi + ``sign`` v v', in place; ``v`` (D,) is overwritten.

    Returns whether the result is accurate enough (:data:`MIN_LEFT`); if not, ``factor`` is invalid.
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
    """Fill column m of ``inverse`` (D (D + 1) / 2, columns) with the lower triangle W = U'^-1, row by row."""
    for s in range(factor.shape[0]):
        for r in range(s, factor.shape[0]):
            total = 1.0 if r == s else 0.0
            for q in range(s, r):
                total -= factor[q, r] * inverse[q * (q + 1) // 2 + s, m]
            inverse[r * (r + 1) // 2 + s, m] = total / factor[r, r]


@inner_kernel
def change_inverse_by_rank_one(inverse, m, v, sign, sums):
    """Update the inverse factor in column m for Psi + ``sign`` v v', in place; ``sums`` (D,) is overwritten.

    Returns whether the result is accurate enough, as :func:`change_by_rank_one`.
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
    """Return v' Psi^-1 v by forward substitution; ``v`` (D,) is overwritten."""
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
    """Return ln of the normalising constant of the Student t, without D / 2 ln pi; ``freedom`` is 2 a."""
    dimension = factor.shape[0]
    half_log_det = 0.0
    for i in range(dimension):
        half_log_det += math.log(factor[i, i])
    head = 0.5 * dimension * math.log(strength / (strength + 1.0))
    head += special.log_gamma(0.5 * (dimension + freedom)) - special.log_gamma(0.5 * freedom)
    return head - half_log_det


@inner_kernel
def log_student(strength, freedom, sums, factor, head, x, v):
    """Return ln p(x), given the result ``head`` of :func:`log_head`; ``v`` (D,) is overwritten."""
    for d in range(v.size):
        v[d] = x[d] - sums[d] / strength
    c = strength / (strength + 1.0)
    return head - 0.5 * (v.size + freedom) * math.log1p(c * squared_distance(factor, v))


@inner_kernel
def log_student_without(strength, freedom, sums, scatter, ridge, factor, x, v, room):
    """Return :func:`log_student` of ``x`` after removing ``x`` from ``sums``, ``scatter`` and ``factor``.

    ``strength`` and ``freedom`` already exclude ``x``; ``v`` (D,) and ``room`` (D, D) are overwritten.
    """
    for d in range(v.size):
        v[d] = x[d] - (sums[d] - x[d]) / strength
    # without x, the determinant is left |Psi|, and 1 + c times the squared distance is 1 / left
    left = 1.0 - strength / (strength + 1.0) * squared_distance(factor, v)
    if left >= MIN_LEFT:
        return log_head(strength, freedom, factor) + 0.5 * (v.size - 1 + freedom) * math.log(left)
    return log_student_anew(strength, freedom, sums, scatter, ridge, x, v, room)


@inner_kernel
def log_student_anew(strength, freedom, sums, scatter, ridge, x, v, room):
    """Return :func:`log_student_without`, computed with a new factor without ``x``."""
    factorise(strength, sums, scatter, x, ridge, room)
    for d in range(v.size):
        v[d] = x[d] - (sums[d] - x[d]) / strength
    c = strength / (strength + 1.0)
    head = log_head(strength, freedom, room)
    return head - 0.5 * (v.size + freedom) * math.log1p(c * squared_distance(room, v))


@inner_kernel
def shift_of(strength, sums, x, sign, v):
    """Fill ``v`` (D,) with the vector of the rank-one change that adds ``x`` (``sign`` 1) or removes it (-1).

    ``sums`` are the sums before the change; ``strength`` excludes ``x``.
    """
    root = math.sqrt(strength / (strength + 1.0))
    for d in range(v.size):
        others = sums[d] - x[d] if sign < 0 else sums[d] + 0.0
        v[d] = root * (x[d] - others / strength)
