"""Kernels may be compiled by several processes at once."""

import subprocess
import sys

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
