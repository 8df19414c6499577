"""Sixteen weights at a time, as vector instructions, for compiled kernels.

LLVM does not vectorise the sums of short rows that drawing from many weights needs (it measured 6 times slower on
rows of 100), so these say it directly, as portable LLVM vector operations that any processor's back end lowers.
They are for use inside numba kernels only. Indices are not checked: ``first`` must be a multiple of ``LANES`` with
``LANES`` entries behind it in every array.
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


def _weigh_counts(typingctx, counts, prior, scale, weights, first):
    """weights[first:first + 16] = (counts + prior) * scale; returns their float64 sum.

    ``counts`` int32; ``prior``, ``scale``, ``weights`` float32; all one-dimensional and contiguous.
    """
    signature = types.float64(counts, prior, scale, weights, types.intp)

    def generate(context, builder, signature, arguments):
        kinds = signature.args
        first = arguments[4]
        n = _load(context, builder, kinds[0], arguments[0], first, _I32)
        a = _load(context, builder, kinds[1], arguments[1], first, _F32)
        h = _load(context, builder, kinds[2], arguments[2], first, _F32)
        p = builder.fmul(builder.fadd(builder.sitofp(n, _F32), a), h)
        builder.store(p, _address(context, builder, kinds[3], arguments[3], first, _F32), align=4)
        return _sum(builder, p)

    return signature, generate


def _weigh_products(typingctx, left, right, weights, first):
    """weights[first:first + 16] = left * right (float32, contiguous); returns their float64 sum."""
    signature = types.float64(left, right, weights, types.intp)

    def generate(context, builder, signature, arguments):
        kinds = signature.args
        first = arguments[3]
        a = _load(context, builder, kinds[0], arguments[0], first, _F32)
        b = _load(context, builder, kinds[1], arguments[1], first, _F32)
        p = builder.fmul(a, b)
        builder.store(p, _address(context, builder, kinds[2], arguments[2], first, _F32), align=4)
        return _sum(builder, p)

    return signature, generate


# numba adds the first argument itself, which type checkers cannot know
weigh_counts: Any = intrinsic(_weigh_counts)
weigh_products: Any = intrinsic(_weigh_products)
