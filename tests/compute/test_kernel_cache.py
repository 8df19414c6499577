"""Kernels stored on disk go when a source has changed."""

from mc2core.compute import kernel_cache


def test_kernels_go_when_any_source_has_changed_and_stay_otherwise(tmp_path):
    inner = tmp_path / "engines" / "__pycache__"
    inner.mkdir(parents=True)
    (tmp_path / "numerics.py").write_text("A = 1\n")
    (tmp_path / "engines" / "loop.py").write_text("")
    kernels = [inner / "loop.sweep-1.py311.nbi", inner / "loop.sweep-1.py311.1.nbc"]

    def left():
        kernel_cache.drop_stale(tmp_path)
        return [path.exists() for path in kernels]

    def store():
        for path in kernels:
            path.write_bytes(b"")

    store()
    assert left() == [False, False]  # of an unknown state
    store()
    assert left() == [True, True]
    (tmp_path / "numerics.py").write_text("A = 10\n")
    assert left() == [False, False]
    store()
    assert left() == [True, True]
    (tmp_path / "engines" / "new.py").write_text("")
    assert left() == [False, False]


def test_a_package_that_cannot_be_written_is_left_alone(tmp_path):
    (tmp_path / "a.py").write_text("")
    (tmp_path / "__pycache__").write_text("a file where the folder should be")
    kernel_cache.drop_stale(tmp_path)
    assert (tmp_path / "__pycache__").is_file()
