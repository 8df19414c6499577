"""The two decorators of kernels: what of a function is compiled, and how often."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event

from mc2core.compute import kernels
from mc2core.compute.kernel_store import folder
from mc2core.compute.kernels import compile_seconds, inner_kernel, kernel


class Compiled(event.Listener):
    """Names of the functions that are compiled."""

    def __init__(self):
        self.names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].__name__)

    def on_end(self, event):
        pass


@pytest.fixture
def unstored(monkeypatch):
    """Kernels that are compiled in each run of the tests, since none are stored."""
    monkeypatch.setattr(kernels, "folder", lambda: None)


@pytest.mark.usefixtures("unstored")
def test_constants_make_no_versions_of_an_inner_kernel():
    @inner_kernel
    def inner(values, which, is_last, factor):
        return values[which] * factor + is_last

    @kernel
    def outer(values):
        total = inner(values, 0, True, 1.0) + inner(values, 1, False, 2.0)
        for i in range(len(values)):
            total += inner(values, i, i > 1, values[i])
        return total

    compiled = Compiled()
    with event.install_listener("numba:compile", compiled):
        assert outer(np.array([3.0, 5.0, 7.0])) == 98.0
    assert compiled.names == ["outer", "inner"]


@pytest.mark.usefixtures("unstored")
def test_python_calls_an_inner_kernel_as_a_kernel_of_its_own():
    @inner_kernel
    def ratio(a, b):
        """The ratio."""
        return a / b

    @kernel
    def inverse(b):
        return ratio(1.0, b)

    assert (ratio.__name__, ratio.__doc__) == ("ratio", "The ratio.")
    assert inverse(0.0) == np.inf
    compiled = Compiled()
    with event.install_listener("numba:compile", compiled):
        assert ratio(1.0, 0.0) == ratio(2.0, 0.0) == np.inf  # plain Python raises
    assert compiled.names == ["ratio"]


@pytest.mark.usefixtures("unstored")
def test_seconds_of_compiling_are_counted():
    @kernel
    def add(a, b):
        return a + b

    with compile_seconds() as seconds:
        add(1, 2)
    assert len(seconds) == 1
    with compile_seconds() as seconds:
        add(3, 4)
    assert seconds == []


def test_threads_that_decorate_at_once_get_stored_kernels():
    def slow(*arguments, **options):
        time.sleep(0.01)  # the others come to the same place
        return njit(*arguments, **options)

    njit, given = numba.njit, numba.config.CACHE_DIR
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(8) as pool:
        patch.setattr(numba, "njit", slow)
        decorated = list(pool.map(kernel, [lambda x: x] * 8))
    assert all(folder() in Path(one.stats.cache_path).parents for one in decorated)
    assert given == numba.config.CACHE_DIR
