"""Records: named tuples that kernels receive as one pointer."""

import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.records import Record, record


@record
class Inner(NamedTuple):
    values: np.ndarray
    shift: float


@record
class Outer(NamedTuple):
    inner: Inner
    total: np.ndarray
    counts: np.ndarray


def given():
    inner = Inner(np.arange(6.0).reshape(2, 3), 0.5)
    return Outer(inner, np.zeros(1), np.arange(4, dtype=np.int32)[::2])


@inner_kernel
def add(outer, row):
    outer.total[0] += outer.inner.values[row, 1] + outer.inner.shift


@kernel
def total(outer):
    for row in range(outer.inner.values.shape[0]):
        add(outer, row)
        outer.counts[row] += row
    return outer.total[0] * outer.counts[1]


@kernel
def index(outer):
    return outer[1]


def test_a_kernel_reads_fields_and_writes_arrays():
    compiled, plain = given(), given()
    assert total(compiled) == total.py_func(plain) == (1 + 4 + 2 * 0.5) * 3
    for one, other in ((compiled.total, plain.total), (compiled.counts, plain.counts)):
        np.testing.assert_array_equal(one, other)


def test_a_record_is_one_value_with_a_type_for_its_fields():
    assert isinstance(numba.typeof(given()), Record)
    assert numba.typeof(given()) == numba.typeof(given())
    other = given()._replace(total=np.zeros(1, np.float32))
    assert numba.typeof(other) != numba.typeof(given())
    assert total(other) == total(given())


def test_a_record_cannot_be_indexed_in_a_kernel():
    with pytest.raises(numba.TypingError, match="getitem"):
        index(given())


def test_a_field_of_another_kind_than_compiled_is_an_error():
    total(given())
    with pytest.raises(numba.TypingError):
        total(given()._replace(total=object()))


def test_arrays_live_as_long_as_their_kernel():
    """Fields are borrowed: no reference is lost or kept."""
    values = np.zeros((2, 3))
    before = sys.getrefcount(values)
    for _ in range(100):
        total(Outer(Inner(values, 0.0), np.zeros(1), np.zeros(2, np.int32)))
    assert sys.getrefcount(values) == before
