"""Kernels may be compiled by several processes at once."""

import subprocess
import sys

import numpy as np

from mc2core.compute.kernels import kernel

KERNEL = """
from mc2core.compute.kernels import kernel

@kernel
def add(a, b):
    return a + b
"""
# between choosing the name of a version and writing it down, both processes have read the same list
STORE = """
import sys, time
from numba.core import caching
save = caching.IndexDataCacheFile._save_index
caching.IndexDataCacheFile._save_index = lambda self, overloads: (time.sleep(1), save(self, overloads))
from adding import add
add(*eval(sys.argv[1]))
"""
READ = """
from adding import add
print(add(1, 2), add(1.5, 2.5), *(sum(count.values()) for count in (add.stats.cache_hits, add.stats.cache_misses)))
"""


def test_versions_stored_by_two_processes_at_once_are_both_kept(tmp_path):
    (tmp_path / "adding.py").write_text(KERNEL)

    def start(code, *arguments):
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)

    for job in [start(STORE, "(1, 2)"), start(STORE, "(1.5, 2.5)")]:
        assert job.wait() == 0
    reader = start(READ)
    assert reader.communicate()[0].split() == ["3", "4.0", "2", "0"]


def test_constants_and_narrow_integers_do_not_make_versions():
    @kernel
    def inner(values, which, is_last, factor):
        return values[which] * factor + is_last

    @kernel
    def outer(values, places):
        total = inner(values, 0, True, 1.0) + inner(values, which=1, is_last=False, factor=2.0)
        for i in range(len(places)):
            total += inner(values, places[i], i > 1, 0.5) + inner(values, i, i > 1, values[i])
        return total

    values, places = np.array([3.0, 5.0, 7.0]), np.array([2, 1], np.int32)
    assert outer(values, places) == 54.0
    assert len(inner.signatures) == 1
    assert outer.py_func(values, places) == 54.0
