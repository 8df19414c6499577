"""Files are written whole or not at all, and damage is told in one sentence."""

import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import warnings
import zipfile

import numpy as np
import pytest

from mc2core.base import storage


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


@pytest.mark.parametrize("kind", ["there", "dangling"])
def test_the_target_of_a_link_is_replaced(tmp_path, kind):
    for name in ("file", "folder"):
        (tmp_path / f"link to {name}").symlink_to(name)
    if kind == "there":
        (tmp_path / "file").write_text("old")
        (tmp_path / "folder").mkdir()
    with storage.replacing(tmp_path / "link to file") as stream:
        stream.write("new")
    with storage.replacing_folder(tmp_path / "link to folder") as folder:
        (folder / "one").write_text("new")
    assert (tmp_path / "file").read_text() == (tmp_path / "folder/one").read_text() == "new"
    assert all((tmp_path / f"link to {name}").is_symlink() for name in ("file", "folder"))


KILLED_WHILE_WRITING = """
import os, signal, sys
from mc2core.base import storage
path, kind = sys.argv[1:]
if kind == "file":
    with storage.replacing(path) as stream:
        stream.write("half")
        stream.flush()
        os.kill(os.getpid(), signal.SIGKILL)
move, moved = os.replace, []
def replace(source, target):
    move(source, target)
    if moved:
        os.kill(os.getpid(), signal.SIGKILL)
    moved.append(target)
if kind == "between":
    os.replace = replace
with storage.replacing_folder(path) as folder:
    (folder / "one").write_text("new")
    if kind == "folder":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "between":
        moved.append("")
"""


def killed_while_writing(path, kind):
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(path), kind], check=False)
    assert done.returncode == -signal.SIGKILL


class TestKilled:
    def test_what_is_left_goes_when_the_file_is_written_again(self, tmp_path):
        path = tmp_path / "a.txt"
        (tmp_path / ".a.txt.part").write_text("a download of another module")
        killed_while_writing(path, "file")
        assert len(files_of(tmp_path)) == 2
        with storage.replacing(tmp_path / "b.txt") as stream:
            stream.write("of no concern")
        assert len(files_of(tmp_path)) == 3
        with storage.replacing(path) as stream:
            stream.write("whole")
        assert files_of(tmp_path) == [".a.txt.part", "a.txt", "b.txt"]

    def test_what_is_left_of_folders_goes(self, tmp_path):
        path = tmp_path / "folder"
        killed_while_writing(path, "folder")
        with storage.replacing_folder(path) as folder:
            (folder / "one").write_text("whole")
        assert files_of(tmp_path) == ["folder"]

    def test_a_folder_whose_removal_was_interrupted_goes(self, tmp_path, monkeypatch):
        """Whether its lock was removed first, as it once was, or is left to the last."""
        path, remove = tmp_path / "folder", storage.shutil.rmtree

        def interrupted(folder, **given):
            remove(folder, **given)
            raise KeyboardInterrupt

        monkeypatch.setattr(storage.shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt), storage.replacing_folder(path):
            raise Broken
        monkeypatch.undo()
        assert len(files_of(tmp_path)) == 1
        (tmp_path / ".folder.new-abcdefgh.part/new").mkdir(parents=True)
        storage.remove_leftovers(path)
        assert files_of(tmp_path) == []

    @pytest.mark.parametrize("is_filled", [False, True])
    def test_a_complete_folder_takes_its_place_if_that_is_empty(self, tmp_path, is_filled):
        """Killed after the old folder moved away and before the new one, complete, took its place."""
        path = tmp_path / "folder"
        with storage.replacing_folder(path) as folder:
            (folder / "one").write_text("old")
        killed_while_writing(path, "between")
        assert not path.exists()
        if is_filled:
            path.mkdir()
            (path / "one").write_text("by hand")
        with pytest.raises(Broken):
            fail_in_folder(path)
        assert (path / "one").read_text() == ("by hand" if is_filled else "new")
        assert files_of(tmp_path) == ["folder"]

    def test_temporary_files_of_living_processes_are_left_alone(self, tmp_path):
        for replacing in (storage.replacing, storage.replacing_folder):
            path = tmp_path / replacing.__name__
            with replacing(path) as first:
                before = files_of(tmp_path)
                with pytest.raises(Broken), replacing(path):
                    raise Broken
                assert files_of(tmp_path) == before
                with replacing(path):
                    pass
                first.write("mine") if replacing is storage.replacing else (first / "mine").write_text("mine")
        assert (tmp_path / "replacing").read_text() == "mine"
        assert files_of(tmp_path / "replacing_folder") == ["mine"]
        assert files_of(tmp_path) == ["replacing", "replacing_folder"]

    def test_a_folder_taken_by_another_process_is_made_again(self, tmp_path, monkeypatch):
        make, taken = tempfile.mkdtemp, []

        def made_and_taken(**options):
            name = make(**options)
            if not taken:
                os.rmdir(name)
            taken.append(name)
            return name

        monkeypatch.setattr(tempfile, "mkdtemp", made_and_taken)
        with storage.replacing_folder(tmp_path / "folder") as folder:
            (folder / "one").write_text("whole")
        assert len(taken) == 2
        assert files_of(tmp_path) == ["folder"]


class TestLock:
    def test_one_process_at_a_time_holds_it(self, tmp_path):
        path = tmp_path / "new" / "posterior.npz"
        with (
            storage.exclusive_lock(path, "another fit"),
            pytest.raises(ValueError, match=r"posterior\.npz is in use by another fit that is still running"),
            storage.exclusive_lock(path, "another fit"),
        ):
            pass
        with storage.exclusive_lock(path, "another fit"):
            pass
        assert files_of(tmp_path) == []

    def test_folders_made_for_it_that_are_empty_go(self, tmp_path):
        (tmp_path / "old").mkdir()
        for path in (tmp_path / "a/b/posterior.npz", tmp_path / "old/posterior.npz"):
            with pytest.raises(ValueError, match="refused"), storage.exclusive_lock(path, "another fit"):
                raise ValueError("refused")
        assert files_of(tmp_path) == ["old"]
        with storage.exclusive_lock(tmp_path / "a/b/posterior.npz", "another fit"):
            (tmp_path / "a/file").write_text("")
        assert files_of(tmp_path / "a") == ["file"]


@pytest.fixture
def small_files():
    """No file of this process may grow beyond 10,000 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestReplacing:
    def test_a_failed_write_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "kept.txt"
        with storage.replacing(path) as stream:
            stream.write("old")
        with pytest.raises(Broken):
            fail_in_file(path)
        assert path.read_text() == "old"
        assert files_of(tmp_path) == ["kept.txt"]

    def test_a_failed_first_write_leaves_nothing(self, tmp_path):
        with pytest.raises(Broken):
            fail_in_file(tmp_path / "new.txt")
        with pytest.raises(Broken):
            fail_in_folder(tmp_path / "new")
        assert files_of(tmp_path) == []

    def test_nothing_is_seen_before_the_end(self, tmp_path):
        path = tmp_path / "file.txt"
        with storage.replacing(path) as stream:
            stream.write("x")
            stream.flush()
            assert not path.exists()
        assert path.read_text() == "x"

    def test_written_files_obey_the_umask(self, tmp_path):
        old = os.umask(0o027)
        try:
            storage.write_json(tmp_path / "a.json", 1)
        finally:
            os.umask(old)
        assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o640

    def test_a_folder_is_replaced_as_a_whole(self, tmp_path):
        path = tmp_path / "folder"
        for name in ("one", "two"):
            with storage.replacing_folder(path) as folder:
                (folder / name).write_text(name)
        assert files_of(path) == ["two"]
        with pytest.raises(Broken):
            fail_in_folder(path)
        assert files_of(path) == ["two"]
        assert files_of(tmp_path) == ["folder"]

    def test_a_folder_that_cannot_be_put_in_place_leaves_the_old_one(self, tmp_path, monkeypatch):
        path = tmp_path / "folder"
        with storage.replacing_folder(path) as folder:
            (folder / "one").write_text("one")
        move = os.replace

        def failing(source, target):
            if source.name == "new":
                raise OSError("no space")
            move(source, target)

        monkeypatch.setattr(os, "replace", failing)
        with pytest.raises(OSError, match="no space"), storage.replacing_folder(path) as folder:
            (folder / "two").write_text("two")
        assert files_of(path) == ["one"]
        assert files_of(tmp_path) == ["folder"]

    def test_a_file_that_may_not_grow_is_named_and_the_old_one_stays(self, tmp_path, small_files):
        large = np.arange(5000)
        storage.write_arrays(tmp_path / "a.npz", ARRAYS)
        before = (tmp_path / "a.npz").read_bytes()
        with pytest.raises(OSError, match=r"/a\.npz could not be written: File too large$"):
            storage.write_arrays(tmp_path / "a.npz", {"large": large})
        with pytest.raises(OSError, match=r"/b\.json could not be written: File too large$"):
            storage.write_json(tmp_path / "b.json", list(range(5000)))
        with pytest.raises(OSError, match=r"/c\.npy could not be written: File too large$"):
            storage.write_array(tmp_path / "c.npy", large)
        with (
            pytest.raises(OSError, match=r"/folder could not be written: File too large$"),
            storage.replacing_folder(tmp_path / "folder") as folder,
        ):
            (folder / "names.txt").write_text("x" * 20_000)
        with (
            pytest.raises(OSError, match=r"/outer could not be written: File too large$"),
            storage.replacing_folder(tmp_path / "outer") as folder,
            storage.replacing_folder(folder / "inner") as inner,
        ):
            storage.write_array(inner / "x.npy", large)
        assert (tmp_path / "a.npz").read_bytes() == before
        assert files_of(tmp_path) == ["a.npz", "c.npy"]


ARRAYS = {
    "counts": np.arange(7, dtype=np.int32),
    "table": np.eye(3),
    "name": np.array("text"),
    "none": np.zeros((0, 4)),
}


class TestJson:
    def test_round_trip_and_damage(self, tmp_path):
        path = tmp_path / "a.json"
        storage.write_json(path, {"b": [1, 2.5, None], "a": "é"})
        assert storage.read_json(path) == {"a": "é", "b": [1, 2.5, None]}
        path.write_text('{"a": ')
        with pytest.raises(ValueError, match=r"a\.json is not readable JSON"):
            storage.read_json(path)
        path.write_bytes(b"\xff\xfe")
        with pytest.raises(ValueError, match=r"a\.json is not readable JSON"):
            storage.read_json(path)


class TestArrays:
    def test_round_trip(self, tmp_path):
        storage.write_arrays(tmp_path / "a.npz", ARRAYS)
        found = storage.read_arrays(tmp_path / "a.npz")
        assert found.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)

    def test_objects_are_refused_and_the_old_file_stays(self, tmp_path):
        path = tmp_path / "a.npz"
        storage.write_arrays(path, ARRAYS)
        with pytest.raises(ValueError, match="'bad' holds Python objects"):
            storage.write_arrays(path, {"bad": np.array([{}], dtype=object)})
        assert storage.read_arrays(path).keys() == ARRAYS.keys()

    def test_any_truncation_of_an_array_file_is_a_value_error(self, tmp_path):
        storage.write_arrays(tmp_path / "whole.npz", ARRAYS)
        whole = (tmp_path / "whole.npz").read_bytes()
        path = tmp_path / "cut.npz"
        for length in range(0, len(whole), 13):
            path.write_bytes(whole[:length])
            with pytest.raises(ValueError, match=r"cut\.npz is not a complete array file"):
                storage.read_arrays(path)

    def test_any_changed_byte_is_found_or_harmless(self, tmp_path):
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

    def test_no_flipped_bit_of_a_header_ends_in_another_error(self, tmp_path):
        """Bit 3 of bytes 146 and 179 ended in tokenize.TokenError: NumPy hands a damaged header to Python's parser."""
        storage.write_arrays(tmp_path / "whole.npz", ARRAYS)
        whole = (tmp_path / "whole.npz").read_bytes()
        path = tmp_path / "changed.npz"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for position in (*range(0, 180), *range(len(whole) - 100, len(whole))):
                for bit in range(8):
                    damaged = bytearray(whole)
                    damaged[position] ^= 1 << bit
                    path.write_bytes(damaged)
                    try:
                        found = storage.read_arrays(path)
                    except ValueError:
                        continue
                    assert storage.digest_arrays(found) == storage.digest_arrays(ARRAYS), (position, bit)

    def test_an_exchanged_array_is_found_by_the_digest(self, tmp_path):
        """The archive's own checksums hold, as after an edit with other tools."""
        path = tmp_path / "a.npz"
        storage.write_arrays(path, ARRAYS)
        stored = dict(np.load(path))
        np.savez(path, **{**stored, "table": np.ones((3, 3))})
        with pytest.raises(ValueError, match=r"a\.npz was changed after it was written"):
            storage.read_arrays(path)
        np.savez(path, **stored)
        assert storage.read_arrays(path).keys() == ARRAYS.keys()

    def test_claims_of_size_allocate_nothing(self, tmp_path):
        """A forged header with checksums that match; a file that is mapped has none."""
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }"
        for length in (10**9, 10**12, 10**18):
            claim = b"\x93NUMPY\x01\x00\x76\x00" + (header % length).ljust(117) + b"\n"
            (tmp_path / "a.npy").write_bytes(claim)
            with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
                archive.writestr("x.npy", claim)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for path, read in ((tmp_path / "a.npz", storage.read_arrays), (tmp_path / "a.npy", storage.map_array)):
                with pytest.raises(ValueError, match=f"{path.name} is not a complete array file"):
                    read(path)
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KB

    def test_an_array_is_mapped_and_may_be_empty(self, tmp_path):
        for array in (np.arange(6.0).reshape(2, 3), np.zeros((0, 3), np.int32)):
            storage.write_array(tmp_path / "a.npy", array)
            found = storage.map_array(tmp_path / "a.npy")
            assert (found.dtype, found.shape, found.flags.writeable) == (array.dtype, array.shape, False)
            np.testing.assert_array_equal(found, array)

    def test_a_pickle_is_never_opened(self, tmp_path):
        np.savez(tmp_path / "objects.npz", bad=np.array([{}], dtype=object))
        np.save(tmp_path / "plain.npy", np.arange(3))
        with pytest.raises(ValueError, match=r"objects\.npz is not a complete array file"):
            storage.read_arrays(tmp_path / "objects.npz")
        with pytest.raises(ValueError, match=r"plain\.npy is not a complete array file"):
            storage.read_arrays(tmp_path / "plain.npy")
        np.savez(tmp_path / "other.npz", **ARRAYS)
        with pytest.raises(ValueError, match=r"other\.npz was changed after it was written, or not written by mc2core"):
            storage.read_arrays(tmp_path / "other.npz")

    def test_digests_tell_names_types_shapes_and_values_apart(self):
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


@pytest.mark.parametrize("there", ["nothing", "ours", "foreign"])
def test_a_folder_that_vanishes_while_it_is_read_is_read_again(tmp_path, monkeypatch, there):
    folder, looked = tmp_path / "out", []
    folder.mkdir()
    look = type(folder).rglob

    def vanishing(self, pattern):
        looked.append(self)
        if len(looked) == 1:  # another process moves it away, and may put another in its place
            self.rename(tmp_path / "moved")
            if there != "nothing":
                self.mkdir()
                (self / ("a.npy" if there == "ours" else "thesis.tex")).touch()
            raise FileNotFoundError(self)
        return look(self, pattern)

    monkeypatch.setattr(type(folder), "rglob", vanishing)
    if there == "foreign":
        with pytest.raises(ValueError, match=r"holds thesis\.tex"):
            storage.refuse_foreign(folder, r"a\.npy")
    else:
        storage.refuse_foreign(folder, r"a\.npy")
