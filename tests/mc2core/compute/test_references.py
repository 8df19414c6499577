"""Kernels get named tuples by reference: what they read, write and leave behind is as of Python's own."""

import weakref
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError

from mc2core.compute.kernels import kernel
from mc2core.compute.references import by_reference


@by_reference
class Inner(NamedTuple):
    """A field that is a reference itself."""

    scale: float
    sums: np.ndarray


class Pair(NamedTuple):
    """A field that is a tuple by value."""

    left: np.ndarray
    number: int


@by_reference
class Fields(NamedTuple):
    """One of each kind."""

    vector: np.ndarray
    is_set: bool
    matrix: np.ndarray
    number: int
    inner: Inner
    key: np.uint64
    pair: Pair
    small: np.ndarray


def fields_of(seed=0, number=-5):
    """Arrays of several types, one of them neither in C's nor in Fortran's order."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(6, 9))[::2, ::-3]
    inner, pair = Inner(float(rng.normal()), rng.normal(size=4)), Pair(rng.integers(9, size=3), int(rng.integers(9)))
    small = rng.integers(-9, 9, size=(2, 3), dtype=np.int8)
    return Fields(rng.normal(size=5), bool(rng.integers(2)), matrix, number, inner, np.uint64(2**63), pair, small)


@kernel
def sizes(fields):
    vector, matrix, small = fields.vector, fields.matrix, fields.small
    return vector.size, vector.itemsize, matrix.shape[0], matrix.shape[1], small.size, small.itemsize


@kernel
def total(fields):
    """A sum in which every entry of every field counts."""
    result = fields.number + fields.inner.scale + (0.5 if fields.is_set else 0.25) + np.float64(fields.key >> 32)
    for i in range(fields.vector.size):
        result = 0.9 * result + fields.vector[i]
    for i in range(fields.matrix.shape[0]):
        for j in range(fields.matrix.shape[1]):
            result = 0.9 * result + fields.matrix[i, j]
    for x in fields.inner.sums:
        result = 0.9 * result + x
    for x in fields.pair.left:
        result = 0.9 * result + x * fields.pair.number
    for x in fields.small[1]:
        result = 0.9 * result + x
    return result


@kernel
def handed_on(fields):
    return total(fields) + 1.0


@kernel
def unpacked(fields):
    vector, is_set, _, number, inner, _, (left, times), _ = fields
    scale, sums = inner
    return vector[0] + is_set + number + scale + sums[-1] + left[0] * times + fields[0][1] + fields[-1][1, 2]


@kernel
def fill(fields):
    for i in range(fields.matrix.shape[0]):
        fields.matrix[i, 1] = i
    fields.inner.sums[:] = 7.0
    fields.pair.left[2] += 10
    fields.small[0] = fields.small[1]


@kernel
def number_of(fields):
    return fields.number


@pytest.mark.parametrize("read", [sizes, total, handed_on, unpacked])
def test_what_is_read_is_what_python_reads(read):
    for seed in range(3):
        assert read(fields_of(seed)) == read.py_func(fields_of(seed))


def test_what_is_written_is_there():
    ours, python = fields_of(), fields_of()
    fill(ours)
    fill.py_func(python)
    assert total.py_func(ours) == total.py_func(python) != total.py_func(fields_of())


def test_fields_are_read_anew_in_each_call():
    assert [number_of(fields_of(number=number)) for number in range(100)] == list(range(100))


def test_other_types_of_fields_are_another_version():
    one = fields_of()
    other = one._replace(vector=np.arange(5, dtype=np.int32), matrix=np.ascontiguousarray(one.matrix))
    assert total(other) == total.py_func(other)
    assert total(one) == total.py_func(one)


def arrays_of(fields):
    """Weak references to the arrays, those in fields of fields too."""
    found = [one for one in fields if isinstance(one, np.ndarray)] + [fields.inner.sums, fields.pair.left]
    return [weakref.ref(array) for array in found]


def test_arrays_are_left_to_their_owner():
    fields = fields_of()
    arrays = arrays_of(fields)
    for _ in range(10):
        fill(fields)
        expected = handed_on.py_func(fields)
        assert handed_on(fields) == expected
    assert all(array() is not None for array in arrays)
    del fields
    assert [array() for array in arrays] == [None] * 5


def test_a_field_that_cannot_be_read_is_refused():
    assert number_of(fields_of()) == -5
    with pytest.raises(OverflowError):
        number_of(fields_of(number=2**63))
    assert number_of(fields_of(number=3)) == 3


def test_read_only_arrays_are_not_written_to():
    fields = fields_of()
    fields.inner.sums.flags.writeable = False
    assert total(fields) == total.py_func(fields)
    with pytest.raises(TypingError, match="readonly"):
        fill(fields)


def test_there_is_no_other_field():
    @kernel
    def read(fields):
        return fields.name

    with pytest.raises(TypingError, match="name"):
        read(fields_of())
