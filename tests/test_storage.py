"""Files are written whole or not at all, and damage is told in one sentence."""

import os
import stat

import numpy as np
import pytest

from mc2core import storage


class Broken(Exception):
    pass


def fail_in_file(path):
    with storage.replacing(path) as stream:
        stream.write("half")
        raise Broken


def fail_in_folder(path):
    with storage.replacing_folder(path) as folder:
        (folder / "half").write_text("x")
        raise Broken


def files_of(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "kept.txt"
    with storage.replacing(path) as stream:
        stream.write("old")
    with pytest.raises(Broken):
        fail_in_file(path)
    assert path.read_text() == "old"
    assert files_of(tmp_path) == ["kept.txt"]


def test_a_failed_first_write_leaves_nothing(tmp_path):
    with pytest.raises(Broken):
        fail_in_file(tmp_path / "new.txt")
    with pytest.raises(Broken):
        fail_in_folder(tmp_path / "new")
    assert files_of(tmp_path) == []


def test_nothing_is_seen_before_the_end(tmp_path):
    path = tmp_path / "file.txt"
    with storage.replacing(path) as stream:
        stream.write("x")
        stream.flush()
        assert not path.exists()
    assert path.read_text() == "x"


def test_written_files_obey_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        storage.write_json(tmp_path / "a.json", 1)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o640


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "folder"
    for name in ("one", "two"):
        with storage.replacing_folder(path) as folder:
            (folder / name).write_text(name)
    assert files_of(path) == ["two"]
    with pytest.raises(Broken):
        fail_in_folder(path)
    assert files_of(path) == ["two"]
    assert files_of(tmp_path) == ["folder"]


def test_a_folder_that_cannot_be_put_in_place_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    with storage.replacing_folder(path) as folder:
        (folder / "one").write_text("one")
    move = os.replace

    def failing(source, target):
        if str(source).endswith(".part"):
            raise OSError("no space")
        move(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="no space"), storage.replacing_folder(path) as folder:
        (folder / "two").write_text("two")
    assert files_of(path) == ["one"]
    assert files_of(tmp_path) == ["folder"]


ARRAYS = {
    "counts": np.arange(7, dtype=np.int32),
    "table": np.eye(3),
    "name": np.array("text"),
    "none": np.zeros((0, 4)),
}


def test_arrays_round_trip(tmp_path):
    storage.write_arrays(tmp_path / "a.npz", ARRAYS)
    found = storage.read_arrays(tmp_path / "a.npz")
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_objects_are_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "a.npz"
    storage.write_arrays(path, ARRAYS)
    with pytest.raises(ValueError, match="'bad' holds Python objects"):
        storage.write_arrays(path, {"bad": np.array([{}], dtype=object)})
    assert storage.read_arrays(path).keys() == ARRAYS.keys()


def test_any_truncation_of_an_array_file_is_a_value_error(tmp_path):
    storage.write_arrays(tmp_path / "whole.npz", ARRAYS)
    whole = (tmp_path / "whole.npz").read_bytes()
    path = tmp_path / "cut.npz"
    for length in range(0, len(whole), 13):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"cut\.npz is not a whole array file"):
            storage.read_arrays(path)


def test_any_changed_byte_is_found_or_harmless(tmp_path):
    """A flipped byte gives ValueError, or lies in what zip does not need and changes nothing."""
    storage.write_arrays(tmp_path / "whole.npz", ARRAYS)
    whole = (tmp_path / "whole.npz").read_bytes()
    path = tmp_path / "changed.npz"
    refused = 0
    for position in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[position] ^= 0x55
        path.write_bytes(bytes(damaged))
        try:
            found = storage.read_arrays(path)
        except ValueError:
            refused += 1
            continue
        for name in found.keys() & ARRAYS.keys():
            np.testing.assert_array_equal(found[name], ARRAYS[name])
    assert refused > len(whole) / 3 / 2


def test_a_pickle_is_never_opened(tmp_path):
    np.savez(tmp_path / "objects.npz", bad=np.array([{}], dtype=object))
    np.save(tmp_path / "plain.npy", np.arange(3))
    with pytest.raises(ValueError, match=r"objects\.npz is not a whole array file"):
        storage.read_arrays(tmp_path / "objects.npz")
    with pytest.raises(ValueError, match=r"plain\.npy is not a whole array file"):
        storage.read_arrays(tmp_path / "plain.npy")


def test_json_round_trip_and_damage(tmp_path):
    path = tmp_path / "a.json"
    storage.write_json(path, {"b": [1, 2.5, None], "a": "é"})
    assert storage.read_json(path) == {"a": "é", "b": [1, 2.5, None]}
    path.write_text('{"a": ')
    with pytest.raises(ValueError, match=r"a\.json is not readable JSON"):
        storage.read_json(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"a\.json is not readable JSON"):
        storage.read_json(path)


def test_digests_tell_names_types_shapes_and_values_apart():
    base = {"a": np.arange(6), "b": np.zeros(0)}
    variants = [
        {"a": np.arange(6)},
        {"c": np.arange(6), "b": np.zeros(0)},
        {"a": np.arange(6).reshape(2, 3), "b": np.zeros(0)},
        {"a": np.arange(6.0), "b": np.zeros(0)},
        {"a": np.arange(6)[::-1], "b": np.zeros(0)},
    ]
    assert len({storage.digest_arrays(one) for one in (base, *variants)}) == 1 + len(variants)
    assert storage.digest_arrays(dict(reversed(base.items()))) == storage.digest_arrays(base)
    assert storage.digest_arrays({"a": np.arange(12)[::2]}) == storage.digest_arrays({"a": np.arange(0, 12, 2)})
    assert storage.digest_value({"a": 1, "b": 2}) == storage.digest_value({"b": 2, "a": 1})
    assert storage.digest_value({"a": 1}) != storage.digest_value({"a": 1.5})
