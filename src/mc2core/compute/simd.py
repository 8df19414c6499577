"""Vector instructions for compiled kernels: sums and searches of weights, blocks of clusters for FastEx, signatures.

Draws from many weights need sums of short rows. LLVM does not vectorise these sums, which makes them 6 times slower on
rows of 100 weights. The functions here therefore use portable LLVM vector operations directly. They can be called only
in numba kernels. Indices are not checked: every array must have ``LANES`` entries from ``first`` on. ``row`` is the
flat index at which a row of a matrix starts. Matrices are passed whole, because a numba view of a row updates two
atomic reference counts, which takes as long as the arithmetic.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

#: number of weights that one vector operation processes
LANES = 16
_F32 = ir.VectorType(ir.FloatType(), LANES)
_F64 = ir.VectorType(ir.DoubleType(), LANES)
_I32 = ir.VectorType(ir.IntType(32), LANES)


# -- helpers of the code generators --------------------------------------------------------------------------------
class Arrays:
    """Access to the array arguments of an intrinsic by vectors; ``place`` is the position of an argument."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder, self.kinds, self.arguments = context, builder, signature.args, arguments

    def struct(self, place: int) -> Any:
        """Return the numba structure of the array."""
        return self.context.make_array(self.kinds[place])(self.context, self.builder, self.arguments[place])

    def address(self, place: int, index: Any, vector: Any) -> Any:
        """Return the address of entry ``index`` of the flattened array, as a pointer to a ``vector``."""
        return self.builder.bitcast(self.builder.gep(self.struct(place).data, [index]), vector.as_pointer())

    def load(self, place: int, index: Any, vector: Any) -> Any:
        """Return the entries from ``index`` on as a ``vector``."""
        return self.builder.load(self.address(place, index, vector), align=4)

    def store(self, value: Any, place: int, index: Any) -> None:
        """Write a vector to the entries from ``index`` on."""
        self.builder.store(value, self.address(place, index, value.type), align=4)


def constant(vector: Any, value: float) -> Any:
    """Return a vector with ``value`` in all entries."""
    return ir.Constant(vector, [value] * vector.count)


def spread(builder: Any, scalar: Any, vector: Any) -> Any:
    """Return a vector with ``scalar`` in all entries."""
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, one, constant(ir.VectorType(ir.IntType(32), vector.count), 0))


def call(builder: Any, name: str, result: Any, arguments: list[Any], fastmath: tuple[str, ...] = ()) -> Any:
    """Generate a call of the LLVM function ``name`` with the return type ``result``."""
    kinds = [argument.type for argument in arguments]
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, kinds), name)
    return builder.call(function, arguments, fastmath=fastmath)


def _prefetch(typingctx, array, index):
    """Prefetch the cache line of array[index]; the index need not be valid."""
    signature = types.void(array, types.intp)

    def generate(context, builder, signature, arguments):
        pointer = Arrays(context, builder, signature, arguments).address(0, arguments[1], ir.IntType(8))
        how = [ir.Constant(ir.IntType(32), value) for value in (0, 3, 1)]  # read access, highest locality, data cache
        call(builder, "llvm.prefetch.p0i8", ir.VoidType(), [pointer, *how])
        return context.get_dummy_value()

    return signature, generate


# -- weights -------------------------------------------------------------------------------------------------------
def _sum(builder, vector):
    """Return the float64 sum of the 16 entries, in a fixed order of additions."""
    start, wide = ir.Constant(ir.DoubleType(), -0.0), builder.fpext(vector, _F64)
    return call(builder, "llvm.vector.reduce.fadd.v16f64", ir.DoubleType(), [start, wide], ("reassoc",))


def _running_sums(builder, total, zeros):
    """Return the cumulative sums of the 16 entries of ``total``, in four steps that add entries 1, 2, 4 and 8 apart."""
    for reach in (1, 2, 4, 8):
        # indices from LANES on refer to the second operand, so the lowest lanes are filled with zeros
        moved = ir.Constant(_I32, [lane - reach if lane >= reach else LANES for lane in range(LANES)])
        total = builder.fadd(total, builder.shuffle_vector(total, zeros, moved))
    return total


def _weigh_counts(typingctx, counts, row, prior, scale, weights, first):
    """weights[first:first + 16] = (counts.ravel()[row + first...] + prior[first...]) * scale[first...].

    Returns the float64 sum of the 16 weights. ``counts`` is int32; ``prior``, ``scale`` and ``weights`` are float32.
    All arrays are contiguous.
    """
    signature = types.float64(counts, types.intp, prior, scale, weights, types.intp)

    def generate(context, builder, signature, arguments):
        arrays, first = Arrays(context, builder, signature, arguments), arguments[5]
        n = arrays.load(0, builder.add(arguments[1], first), _I32)
        a, h = arrays.load(2, first, _F32), arrays.load(3, first, _F32)
        p = builder.fmul(builder.fadd(builder.sitofp(n, _F32), a), h)
        arrays.store(p, 4, first)
        return _sum(builder, p)

    return signature, generate


def _weigh_gathered(typingctx, values, places, row, dense, weights, first):
    """weights[first:first + 16] = values[row + first...] * dense[places[row + first...]]; return their float64 sum.

    ``places`` is int32; ``values``, ``dense`` and ``weights`` are float32; all are contiguous.
    """
    signature = types.float64(values, places, types.intp, dense, weights, types.intp)

    def generate(context, builder, signature, arguments):
        arrays, first = Arrays(context, builder, signature, arguments), arguments[5]
        here = builder.add(arguments[2], first)
        where, data = arrays.load(1, here, _I32), arrays.struct(3).data
        gathered = ir.Constant(_F32, ir.Undefined)
        for lane in range(LANES):
            number = ir.Constant(ir.IntType(32), lane)
            place = builder.zext(builder.extract_element(where, number), ir.IntType(64))
            gathered = builder.insert_element(gathered, builder.load(builder.gep(data, [place])), number)
        p = builder.fmul(arrays.load(0, here, _F32), gathered)
        arrays.store(p, 4, first)
        return _sum(builder, p)

    return signature, generate


def _weigh_products(typingctx, left, row, right, other_row, sums, first):
    """sums[first:first + 16] = cumulative sums of left.ravel()[row + first...] * right.ravel()[other_row + first...].

    Returns the last entry, the sum of the 16 products. ``left`` and ``right`` are float32, ``sums`` is float64; all are
    contiguous.
    """
    signature = types.float64(left, types.intp, right, types.intp, sums, types.intp)

    def generate(context, builder, signature, arguments):
        arrays, first = Arrays(context, builder, signature, arguments), arguments[5]
        a = arrays.load(0, builder.add(arguments[1], first), _F32)
        b = arrays.load(2, builder.add(arguments[3], first), _F32)
        products = builder.fpext(builder.fmul(a, b), _F64)
        sums = _running_sums(builder, products, constant(_F64, 0.0))
        arrays.store(sums, 4, first)
        return builder.extract_element(sums, ir.Constant(ir.IntType(32), LANES - 1))

    return signature, generate


def _find_lane(typingctx, weights, first, u, left_out):
    """Return the index 0..15 of the first cumulative sum of weights[first:first + 16] above ``u`` (float64), else 16.

    weights[left_out] counts as 0. Cumulative sums are float32 (see :func:`_running_sums`). The weight at the returned
    index is positive.
    """
    signature = types.intp(weights, types.intp, types.float64, types.intp)

    def generate(context, builder, signature, arguments):
        total = Arrays(context, builder, signature, arguments).load(0, arguments[1], _F32)
        zeros = constant(_F32, 0.0)
        lane = builder.trunc(builder.sub(arguments[3], arguments[1]), ir.IntType(32))
        is_out = builder.icmp_signed("==", spread(builder, lane, _I32), ir.Constant(_I32, list(range(LANES))))
        total = builder.select(is_out, zeros, total)
        total = _running_sums(builder, total, zeros)
        aim = builder.fptrunc(arguments[2], ir.FloatType())
        passed = builder.bitcast(builder.fcmp_ordered("<=", total, spread(builder, aim, _F32)), ir.IntType(LANES))
        return builder.zext(builder.ctpop(passed), ir.IntType(64))

    return signature, generate


def _find_equal(typingctx, numbers, first, number):
    """Return the index 0..15 of the first entry of numbers[first:first + 16] equal to ``number`` (int32), else 16."""
    signature = types.intp(numbers, types.intp, types.int32)

    def generate(context, builder, signature, arguments):
        found = Arrays(context, builder, signature, arguments).load(0, arguments[1], _I32)
        is_equal = builder.icmp_signed("==", found, spread(builder, arguments[2], _I32))
        # an additional bit after the last lane gives 16 if no entry is equal
        bits = builder.zext(builder.bitcast(is_equal, ir.IntType(LANES)), ir.IntType(64))
        bits = builder.or_(bits, ir.Constant(ir.IntType(64), 1 << LANES))
        return builder.cttz(bits, ir.Constant(ir.IntType(1), 1))

    return signature, generate


def _count_passed(typingctx, sums, first, u):
    """Return the number of entries of sums[first:first + 16] that are at most ``u``.

    For ascending sums, this is the index of the first entry above ``u``.
    """
    signature = types.intp(sums, types.intp, types.float64)

    def generate(context, builder, signature, arguments):
        found = Arrays(context, builder, signature, arguments).load(0, arguments[1], _F64)
        passed = builder.fcmp_ordered("<=", found, spread(builder, arguments[2], _F64))
        return builder.zext(builder.ctpop(builder.bitcast(passed, ir.IntType(LANES))), ir.IntType(64))

    return signature, generate


# -- blocks of 64 clusters ------------------------------------------------------------------------------------------
# LLVM's own vector code for loops with sums or maxima is 4 times slower, so the operations are written explicitly.
# Every array must have BLOCK entries from ``first`` on. Multiplications and additions are fused explicitly, and no
# other reordering is allowed, so the score of a cluster does not depend on its column.

#: number of clusters in one block; arrays over clusters consist of whole blocks
BLOCK = 64
#: constant of the score in columns without a cluster; it makes their weight 0
NO_CLUSTER = -math.inf
_FLOATS = ir.VectorType(ir.FloatType(), BLOCK)
_INTS = ir.VectorType(ir.IntType(32), BLOCK)
_WORDS = ir.VectorType(ir.IntType(64), BLOCK)
# sin(pi u) = pi u - (pi u)**3 / 3! + ...: error below 4e-6 for |u| <= 1/2
_SINE = [(-1) ** i * math.pi ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(5)]
# exp(r), |r| <= ln(2) / 2: relative error below 1e-6
_EXPONENTIAL = [1.0 / math.factorial(i) for i in range(7)]
_ROUND = 12582912.0  # 1.5 * 2**23: adding it to a float32 rounds to an integer, which is in the low bits of the sum


def _floats(value):
    # llvmlite writes constants in double precision, and LLVM accepts only values that float32 represents exactly
    return constant(_FLOATS, float(np.float32(value)))


def _fma(builder, a, b, c):
    return call(builder, f"llvm.fma.v{BLOCK}f32", _FLOATS, [a, b, c])


def _polynomial(builder, coefficients, x):
    value = _floats(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = _fma(builder, value, x, _floats(coefficient))
    return value


def _score_block(typingctx, signatures, query, norms, constants, slopes, first, factors, scores):
    """Write the scores of columns first..first + 63 to ``scores``; return the largest score.

    score = inverse_temperature * (constant + mass * slope) + inverse_temperature * norm * norms * cos(pi max(distance *
    inverse_bits - slack, 0)). The distance is the number of bits in which the column of ``signatures`` (n_parts,
    columns) uint64 and ``query`` (n_parts,) uint64 differ. ``factors`` are inverse_bits, slack, norm, mass and
    inverse_temperature. Arrays are contiguous, and floats are float32.
    """
    five = types.UniTuple(types.float32, 5)
    signature = types.float32(signatures, query, norms, constants, slopes, types.intp, five, scores)

    def generate(context, builder, signature, arguments):
        arrays = Arrays(context, builder, signature, arguments)
        first, columns = arguments[5], builder.extract_value(arrays.struct(0).shape, 1)
        values = cgutils.unpack_tuple(builder, arguments[6], 5)
        inverse_bits, slack, norm, mass, inverse_temperature = (spread(builder, value, _FLOATS) for value in values)
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
        score = builder.fmul(inverse_temperature, builder.fadd(linear, inner))
        arrays.store(score, 7, first)
        return call(builder, f"llvm.vector.reduce.fmax.v{BLOCK}f32", ir.FloatType(), [score], ("nnan",))

    return signature, generate


def _weigh_block(typingctx, scores, first, top, floor):
    """Replace scores[first:first + 64] by exp(max(score - top, floor)), and by 0 for columns without a cluster.

    Returns the sum of the new values, added in a fixed order. All numbers are float32, and -80 < floor < 0.
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


# -- signatures --------------------------------------------------------------------------------------------
#: number of signs in one machine word of a signature
WORD_BITS = 64


def _add_where_set(typingctx, sums, first, mask, value):
    """Add ``value`` to sums[first + b] for every bit b that is set in ``mask``.

    ``sums`` is contiguous int32 and must have 64 entries from ``first`` on (not checked); ``mask`` is uint64 and
    ``value`` int32. This is one masked vector addition on processors with such an instruction; a loop over the bits is
    several times slower.
    """
    signature = types.void(sums, types.intp, types.uint64, types.int32)

    def generate(context, builder, signature, arguments):
        vector = ir.VectorType(ir.IntType(32), WORD_BITS)
        arrays = Arrays(context, builder, signature, arguments)
        chosen = builder.bitcast(arguments[2], ir.VectorType(ir.IntType(1), WORD_BITS))
        increment = builder.select(chosen, spread(builder, arguments[3], vector), ir.Constant(vector, None))
        arrays.store(builder.add(arrays.load(0, arguments[1], vector), increment), 0, arguments[1])
        return context.get_dummy_value()

    return signature, generate


def _above(typingctx, sums, first, threshold):
    """Return a uint64 whose bit b is set if sums[first + b] > ``threshold`` (int32).

    ``sums`` is as in :func:`_add_where_set`.
    """
    signature = types.uint64(sums, types.intp, types.int32)

    def generate(context, builder, signature, arguments):
        vector = ir.VectorType(ir.IntType(32), WORD_BITS)
        values = Arrays(context, builder, signature, arguments).load(0, arguments[1], vector)
        is_above = builder.icmp_signed(">", values, spread(builder, arguments[2], vector))
        return builder.bitcast(is_above, ir.IntType(64))

    return signature, generate


# annotated as Any, because numba passes the first argument itself and type checkers would require it
prefetch: Any = intrinsic(_prefetch)
weigh_counts: Any = intrinsic(_weigh_counts)
weigh_gathered: Any = intrinsic(_weigh_gathered)
weigh_products: Any = intrinsic(_weigh_products)
find_lane: Any = intrinsic(_find_lane)
find_equal: Any = intrinsic(_find_equal)
count_passed: Any = intrinsic(_count_passed)
score_block: Any = intrinsic(_score_block)
weigh_block: Any = intrinsic(_weigh_block)
add_where_set: Any = intrinsic(_add_where_set)
above: Any = intrinsic(_above)
