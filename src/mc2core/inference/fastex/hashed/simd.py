"""A block of 64 clusters at a time, as vector instructions: the arithmetic of FastEx's proposal.

LLVM does not turn loops with sums or maxima into vector code as good as this (it measured 4 times slower), so the
operations are spelled out as in :mod:`mc2core.compute.simd`. They are for use inside numba kernels only; indices are
not checked: BLOCK entries must follow ``first`` in every array. Multiplications and additions are fused explicitly and
no other liberties are taken, so a cluster has the same bits wherever it stands.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from mc2core.compute.simd import Arrays, call, constant, spread

#: clusters in one block; arrays over clusters are as long as whole blocks
BLOCK = 64
#: the constant of columns that hold no cluster: whatever the score is multiplied by, they get no weight
NO_CLUSTER = -math.inf
_FLOATS = ir.VectorType(ir.FloatType(), BLOCK)
_INTS = ir.VectorType(ir.IntType(32), BLOCK)
_WORDS = ir.VectorType(ir.IntType(64), BLOCK)
# sin(pi u) = pi u - (pi u)**3 / 3! + ...: error below 4e-6 for |u| <= 1/2
_SINE = [(-1) ** i * math.pi ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(5)]
# exp(r), |r| <= ln(2) / 2: relative error below 1e-6
_EXPONENTIAL = [1.0 / math.factorial(i) for i in range(7)]
_ROUND = 12582912.0  # 1.5 * 2**23: adding it leaves a float32's nearest integer in its low bits


def _floats(value):
    # llvmlite prints the constant in double precision, and LLVM wants one that float32 holds exactly
    return constant(_FLOATS, float(np.float32(value)))


def _fma(builder, a, b, c):
    return call(builder, f"llvm.fma.v{BLOCK}f32", _FLOATS, [a, b, c])


def _polynomial(builder, coefficients, x):
    value = _floats(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = _fma(builder, value, x, _floats(coefficient))
    return value


def _score_block(typingctx, signatures, query, norms, constants, slopes, first, factors, scores):
    """Scores of columns first..first + 63 into ``scores``; returns the largest.

    score = flatness * (constant + mass * slope) + flatness * norm * norms * cos(pi max(distance * inverse_bits
    - slack, 0)), distance being the bits in which the column of ``signatures`` (n_parts, columns) uint64 differs from
    ``query`` (n_parts,) uint64. ``factors``: inverse_bits, slack, norm, mass, flatness. Arrays are contiguous, floats
    float32.
    """
    five = types.UniTuple(types.float32, 5)
    signature = types.float32(signatures, query, norms, constants, slopes, types.intp, five, scores)

    def generate(context, builder, signature, arguments):
        arrays = Arrays(context, builder, signature, arguments)
        first, columns = arguments[5], builder.extract_value(arrays.struct(0).shape, 1)
        values = cgutils.unpack_tuple(builder, arguments[6], 5)
        inverse_bits, slack, norm, mass, flatness = (spread(builder, value, _FLOATS) for value in values)
        apart = cgutils.alloca_once_value(builder, ir.Constant(_INTS, None))
        with cgutils.for_range(builder, builder.extract_value(arrays.struct(1).shape, 0)) as loop:
            place = builder.add(builder.mul(loop.index, columns), first)
            wanted = builder.load(arrays.address(1, loop.index, ir.IntType(64)))
            different = builder.xor(arrays.load(0, place, _WORDS), spread(builder, wanted, _WORDS))
            count = builder.trunc(call(builder, f"llvm.ctpop.v{BLOCK}i64", _WORDS, [different]), _INTS)
            builder.store(builder.add(builder.load(apart), count), apart)
        distance = builder.sitofp(builder.load(apart), _FLOATS)
        zeros = _floats(0.0)
        t = _fma(builder, distance, inverse_bits, builder.fneg(slack))
        t = builder.select(builder.fcmp_ordered(">", t, zeros), t, zeros)
        u = builder.fsub(_floats(0.5), t)
        cosine = builder.fmul(u, _polynomial(builder, _SINE, builder.fmul(u, u)))
        linear = _fma(builder, mass, arrays.load(4, first, _FLOATS), arrays.load(3, first, _FLOATS))
        inner = builder.fmul(builder.fmul(norm, arrays.load(2, first, _FLOATS)), cosine)
        score = builder.fmul(flatness, builder.fadd(linear, inner))
        arrays.store(score, 7, first)
        return call(builder, f"llvm.vector.reduce.fmax.v{BLOCK}f32", ir.FloatType(), [score], ("nnan",))

    return signature, generate


def _weigh_block(typingctx, scores, first, top, floor):
    """Turn scores[first:first + 64] into exp(max(score - top, floor)), and into 0 where there is no cluster.

    Returns their sum; the tree of its additions has a fixed shape. float32, -80 < floor < 0.
    """
    signature = types.float32(scores, types.intp, types.float32, types.float32)

    def generate(context, builder, signature, arguments):
        arrays = Arrays(context, builder, signature, arguments)
        score = arrays.load(0, arguments[1], _FLOATS)
        floor = spread(builder, arguments[3], _FLOATS)
        x = builder.fsub(score, spread(builder, arguments[2], _FLOATS))
        x = builder.select(builder.fcmp_ordered(">", x, floor), x, floor)
        shifted = _fma(builder, x, _floats(1.0 / math.log(2.0)), _floats(_ROUND))
        n = builder.fsub(shifted, _floats(_ROUND))
        p = _polynomial(builder, _EXPONENTIAL, _fma(builder, n, _floats(-math.log(2.0)), x))
        power = builder.add(builder.fptosi(n, _INTS), constant(_INTS, 127))
        power = builder.bitcast(builder.shl(power, constant(_INTS, 23)), _FLOATS)
        is_cluster = builder.fcmp_ordered(">", score, _floats(NO_CLUSTER))
        weight = builder.select(is_cluster, builder.fmul(p, power), _floats(0.0))
        arrays.store(weight, 0, arguments[1])
        start = ir.Constant(ir.FloatType(), -0.0)
        return call(builder, f"llvm.vector.reduce.fadd.v{BLOCK}f32", ir.FloatType(), [start, weight], ("reassoc",))

    return signature, generate


# numba adds the first argument itself, which type checkers cannot know
score_block: Any = intrinsic(_score_block)
weigh_block: Any = intrinsic(_weigh_block)
