"""The reader of MATLAB 5 files against scipy's writer."""

import struct

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from mc2core.sources.formats.matlab import read_matlab

DTYPES = st.sampled_from(["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
numbers = DTYPES.flatmap(lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=2, max_dims=3, max_side=4)))
texts = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@st.composite
def sparse(draw):
    shape = draw(npst.array_shapes(min_dims=2, max_dims=2, max_side=5))
    return sp.csc_matrix(draw(npst.arrays("f8", shape, elements=st.sampled_from([0.0, 0.0, 1.0, 2.5]))))


def cells(children):
    def as_cell(values):
        array = np.empty((len(values), 1), dtype=object)
        array[:, 0] = values
        return array

    return st.lists(children, min_size=1, max_size=4).map(as_cell)


def agree(read, written):
    if isinstance(written, str):
        return read == written
    if sp.issparse(written):
        return sp.issparse(read) and read.shape == written.shape and (read != written).nnz == 0
    if written.dtype == object:
        return len(read) == written.size and all(map(agree, read, written.ravel(order="F")))
    return read.dtype == written.dtype and np.array_equal(read, written, equal_nan=read.dtype.kind == "f")


@settings(max_examples=100, deadline=None)
@given(
    value=st.one_of(numbers, texts, sparse(), cells(st.one_of(numbers, texts, sparse(), cells(texts)))),
    compressed=st.booleans(),
)
def test_what_scipy_writes_is_read(tmp_path_factory, value, compressed):
    path = tmp_path_factory.mktemp("matlab") / "a.mat"
    scipy.io.savemat(path, {"before": 1.0, "value": value, "after": "text"}, do_compression=compressed)
    read = read_matlab(path, ["value", "after"])
    assert set(read) == {"value", "after"}
    assert agree(read["value"], value)
    assert read["after"] == "text"


def test_big_endian_files_are_read(tmp_path):
    """A file as workstations of the nineties wrote it, put together by hand from the format's description."""
    flags, shape = struct.pack(">4I", 6, 8, 6, 0), struct.pack(">2I2i", 5, 8, 1, 3)
    name, data = struct.pack(">2I8s", 1, 5, b"value"), struct.pack(">2I3d", 9, 24, 1.5, -2.0, 3.0)
    body = flags + shape + name + data
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "a.mat").write_bytes(header + struct.pack(">2I", 14, len(body)) + body)
    assert read_matlab(tmp_path / "a.mat", ["value"])["value"].tolist() == [[1.5, -2.0, 3.0]]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([[1j]]), "variable 'value' holds complex numbers"),
        ({"field": 1.0}, "is of class 2, which is neither numbers, text nor cells"),
        (np.array(["ab", "cd"]), "more than one row"),
    ],
)
def test_what_no_data_file_needs_is_refused(tmp_path, value, message):
    scipy.io.savemat(tmp_path / "a.mat", {"value": value})
    with pytest.raises(ValueError, match=f"a.mat is not a whole MATLAB file: .*{message}"):
        read_matlab(tmp_path / "a.mat", ["value"])


def test_a_compressed_variable_that_ends_early_is_refused(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"value": np.arange(50.0)}, do_compression=True)
    whole = (tmp_path / "a.mat").read_bytes()
    (tmp_path / "a.mat").write_bytes(whole[:132] + struct.pack("<I", len(whole) - 136 - 5) + whole[136:-5])
    with pytest.raises(ValueError, match="a compressed variable ends early"):
        read_matlab(tmp_path / "a.mat", ["value"])


def test_a_sparse_entry_outside_its_matrix_is_refused(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"value": sp.csc_matrix(([1.0], ([4], [0])), shape=(5, 1))})
    whole = (tmp_path / "a.mat").read_bytes()
    row = struct.pack("<2I", 4 << 16 | 5, 4)  # the row numbers: one small element
    assert whole.count(row) == 1
    (tmp_path / "a.mat").write_bytes(whole.replace(row, struct.pack("<2I", 4 << 16 | 5, 99)))
    with pytest.raises(ValueError, match="sparse variable 'value' has an entry outside its 5 rows"):
        read_matlab(tmp_path / "a.mat", ["value"])


def test_cells_may_not_nest_for_ever(tmp_path):
    value = "text"
    for _ in range(12):
        inner = np.empty((1, 1), dtype=object)
        inner[0, 0] = value
        value = inner
    scipy.io.savemat(tmp_path / "a.mat", {"value": value})
    with pytest.raises(ValueError, match="nested more than 8 deep"):
        read_matlab(tmp_path / "a.mat", ["value"])
