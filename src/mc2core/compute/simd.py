"""Sixteen weights at a time, as vector instructions, for compiled kernels.

LLVM does not vectorise the sums of short rows that drawing from many weights needs (it measured 6 times slower on
rows of 100), so these say it directly, as portable LLVM vector operations that any processor's back end lowers.
They are for use inside numba kernels only. Indices are not checked: ``LANES`` entries must follow ``first`` (and
``row``, the place of a matrix's row) in every array. Matrices are passed whole, because a numba view of a row costs
two atomic reference counts, as much as the arithmetic.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 16
_F32 = ir.VectorType(ir.FloatType(), LANES)
_F64 = ir.VectorType(ir.DoubleType(), LANES)
_I32 = ir.VectorType(ir.IntType(32), LANES)


def _address(context, builder, array_type, array, first, vector):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [first]), vector.as_pointer())


def _load(context, builder, array_type, array, first, vector):
    return builder.load(_address(context, builder, array_type, array, first, vector), align=4)


def _sum(builder, vector):
    """Sum in float64, as a tree of fixed shape."""
    name = "llvm.vector.reduce.fadd.v16f64"
    signature = ir.FunctionType(ir.DoubleType(), [ir.DoubleType(), _F64])
    reduce = cgutils.get_or_insert_function(builder.module, signature, name)
    wide = builder.fpext(vector, _F64)
    return builder.call(reduce, [ir.Constant(ir.DoubleType(), -0.0), wide], fastmath=("reassoc",))


def _running_sums(builder, total, zeros):
    """Running sums of the 16 entries of ``total``, in four steps of doubled reach."""
    for reach in (1, 2, 4, 8):
        # lanes of the second operand are numbered from LANES on: the lowest ones are filled with zeros
        moved = ir.Constant(_I32, [lane - reach if lane >= reach else LANES for lane in range(LANES)])
        total = builder.fadd(total, builder.shuffle_vector(total, zeros, moved))
    return total


def _spread(builder, scalar, vector):
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, one, ir.Constant(_I32, [0] * LANES))


def _weigh_counts(typingctx, counts, row, prior, scale, weights, first):
    """weights[first:first + 16] = (counts.ravel()[row + first...] + prior[first...]) * scale[first...].

    Returns their float64 sum. ``counts`` int32; ``prior``, ``scale``, ``weights`` float32; all contiguous.
    """
    signature = types.float64(counts, types.intp, prior, scale, weights, types.intp)

    def generate(context, builder, signature, arguments):
        kinds = signature.args
        first = arguments[5]
        n = _load(context, builder, kinds[0], arguments[0], builder.add(arguments[1], first), _I32)
        a = _load(context, builder, kinds[2], arguments[2], first, _F32)
        h = _load(context, builder, kinds[3], arguments[3], first, _F32)
        p = builder.fmul(builder.fadd(builder.sitofp(n, _F32), a), h)
        builder.store(p, _address(context, builder, kinds[4], arguments[4], first, _F32), align=4)
        return _sum(builder, p)

    return signature, generate


def _weigh_products(typingctx, left, row, right, other_row, sums, first):
    """sums[first:first + 16] = running sums of left.ravel()[row + first...] * right.ravel()[other_row + first...].

    Returns the last, the sum of the 16. ``left``, ``right`` float32, ``sums`` float64; all contiguous.
    """
    signature = types.float64(left, types.intp, right, types.intp, sums, types.intp)

    def generate(context, builder, signature, arguments):
        kinds = signature.args
        first = arguments[5]
        a = _load(context, builder, kinds[0], arguments[0], builder.add(arguments[1], first), _F32)
        b = _load(context, builder, kinds[2], arguments[2], builder.add(arguments[3], first), _F32)
        products = builder.fpext(builder.fmul(a, b), _F64)
        sums = _running_sums(builder, products, ir.Constant(_F64, [0.0] * LANES))
        builder.store(sums, _address(context, builder, kinds[4], arguments[4], first, _F64), align=8)
        return builder.extract_element(sums, ir.Constant(ir.IntType(32), LANES - 1))

    return signature, generate


def _find_lane(typingctx, weights, first, u, left_out):
    """Index 0..15 of the first running sum of weights[first:first + 16] that exceeds ``u`` (float64); 16 if none does.

    The weight at the place ``left_out`` of ``weights`` counts as 0, if it is one of these. Running sums are float32,
    taken in four steps of doubled reach. The weight at the index is above 0.
    """
    signature = types.intp(weights, types.intp, types.float64, types.intp)

    def generate(context, builder, signature, arguments):
        total = _load(context, builder, signature.args[0], arguments[0], arguments[1], _F32)
        zeros = ir.Constant(_F32, [0.0] * LANES)
        lane = builder.trunc(builder.sub(arguments[3], arguments[1]), ir.IntType(32))
        is_out = builder.icmp_signed("==", _spread(builder, lane, _I32), ir.Constant(_I32, list(range(LANES))))
        total = builder.select(is_out, zeros, total)
        total = _running_sums(builder, total, zeros)
        aim = builder.fptrunc(arguments[2], ir.FloatType())
        passed = builder.bitcast(builder.fcmp_ordered("<=", total, _spread(builder, aim, _F32)), ir.IntType(LANES))
        return builder.zext(builder.ctpop(passed), ir.IntType(64))

    return signature, generate


def _count_passed(typingctx, sums, first, u):
    """How many of sums[first:first + 16] are at most ``u``: for ascending sums, the index of the first above it."""
    signature = types.intp(sums, types.intp, types.float64)

    def generate(context, builder, signature, arguments):
        found = _load(context, builder, signature.args[0], arguments[0], arguments[1], _F64)
        passed = builder.fcmp_ordered("<=", found, _spread(builder, arguments[2], _F64))
        return builder.zext(builder.ctpop(builder.bitcast(passed, ir.IntType(LANES))), ir.IntType(64))

    return signature, generate


# numba adds the first argument itself, which type checkers cannot know
weigh_counts: Any = intrinsic(_weigh_counts)
weigh_products: Any = intrinsic(_weigh_products)
find_lane: Any = intrinsic(_find_lane)
count_passed: Any = intrinsic(_count_passed)
