"""Kernels are compiled once for each state of the sources, and may be by several processes at once."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import numpy as np
import pytest
from numba.core.errors import TypingError

from mc2core.compute import kernels
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


CALLED = """
from mc2core.compute.kernels import kernel

FACTOR = {factor}

@kernel
def scaled(a):
    return FACTOR * a
"""
CALLER = """
from mc2core.compute.called import scaled
from mc2core.compute.kernels import kernel

@kernel
def twice(a):
    return 2.0 * scaled(a)
"""
CALL = """
from mc2core.inference.caller import twice
print(twice(1.0), sum(twice.stats.cache_misses.values()))
"""
STORES = {
    "beside the sources": {},
    "a folder of one's own": {"NUMBA_CACHE_DIR": "kernels"},
    # where numba goes if the package's folder cannot be written
    "the user's cache": {"NUMBA_CACHE_LOCATOR_CLASSES": "UserWideCacheLocator", "XDG_CACHE_HOME": "kernels"},
}


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_a_kernel_is_compiled_again_if_and_only_if_what_it_may_call_has_changed(tmp_path, store):
    package = tmp_path / "mc2core"
    for folder in ("", "compute", "explore", "inference"):
        (package / folder).mkdir()
        (package / folder / "__init__.py").touch()
    shutil.copy(kernels.__file__, package / "compute")
    shutil.copytree(Path(kernels.__file__).parents[1] / "base", package / "base")
    (package / "compute" / "called.py").write_text(CALLED.format(factor=10.0))
    (package / "inference" / "caller.py").write_text(CALLER)
    unset = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CACHE")}
    environment = unset | {name: value.replace("kernels", f"{tmp_path}/kernels") for name, value in store.items()}

    def call():
        command = [sys.executable, "-c", CALL]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    assert call() == "20.0 1\n"
    (package / "explore" / "page.py").write_text("A = 1\n")
    os.utime(package / "compute" / "called.py", (0, 0))
    assert call() == "20.0 0\n"
    (package / "compute" / "called.py").write_text(CALLED.format(factor=15.0))
    assert call() == "30.0 1\n"
    (package / "inference" / "caller.py").write_text("\n\n" + CALLER)  # another line, and so another name of its files
    assert call() == "30.0 1\n"
    stored = sorted(path.name.partition("-")[0] for path in tmp_path.rglob("*.nb[ic]"))
    assert stored == ["called.scaled"] * 2 + ["caller.twice"] * 2  # a list and a version of each


def test_kernels_are_made_of_nothing_in_the_folders_that_their_stamp_leaves_out():
    """Those of the papers' package are made of their own file and the library."""
    graph = grimp.build_graph("mc2core", "mc2papers", cache_dir=None)
    holders = {
        importer
        for importer in graph.find_modules_that_directly_import("mc2core.compute.kernels")
        for one in graph.get_import_details(importer=importer, imported="mc2core.compute.kernels")
        if re.search(r"import .*\bkernel\b", one["line_contents"])
    }
    made_of = set.union(holders, *map(graph.find_upstream_modules, holders))
    assert len(made_of) > 50
    left_out = {f"mc2core.{folder}" for folder in kernels.WITHOUT_KERNELS}
    assert left_out <= graph.modules
    assert not {one for one in made_of if any(one.startswith(f"{folder}.") for folder in left_out)}
    assert {one for one in made_of if one.startswith("mc2papers.")} == {"mc2papers.datasets.dumps.wikitext"}


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


NESTED = """
from mc2core.compute.kernels import kernel

@kernel
def half(a):
    return a / 2.0

@kernel
def quarter(a):
    return half(half(a))
"""
ENTRIES = """
import sys
from nested import half, quarter

def entries(one):
    versions = one.overloads.values()
    return [one.library.get_pointer_to_function(one.fndesc.llvm_cpython_wrapper_name) != 0 for one in versions]

for call in sys.argv[1:]:
    print({"half": half, "quarter": quarter}[call](6.0), end=" ")
print(entries(half), entries(quarter), sum(half.stats.cache_misses.values()), sum(quarter.stats.cache_misses.values()))
"""


def test_what_only_kernels_call_cannot_be_called_by_python_until_python_does(tmp_path):
    """In the process that compiled it and from the store."""
    (tmp_path / "nested.py").write_text(NESTED)
    environment = os.environ | {"NUMBA_CACHE_DIR": f"{tmp_path}/kernels"}

    def run(*calls):
        command = [sys.executable, "-c", ENTRIES, *calls]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert run("quarter") == "1.5 [False] [True] 1 1"
    assert run("quarter") == "1.5 [] [True] 0 0"
    assert run("half") == "3.0 [True] [] 1 0"
    assert run("quarter", "half") == "1.5 3.0 [True] [True] 0 0"
    assert run("half", "quarter") == "3.0 1.5 [True] [True] 0 0"
    shutil.rmtree(tmp_path / "kernels")
    assert run("quarter", "half", "half", "quarter") == "1.5 3.0 3.0 1.5 [True] [True] 2 1"
    shutil.rmtree(tmp_path / "kernels")
    assert run("half", "quarter") == "3.0 1.5 [True] [True] 1 1"


# says what it does, and stores a version when it is told to
SLOW = """
import sys
from numba.core import caching, event
from adding import add

class Told(event.Listener):
    def on_start(self, event):
        print("begins", flush=True)

    def on_end(self, event):
        pass

save = caching.IndexDataCacheFile.save
caching.IndexDataCacheFile.save = lambda *given: (print("compiled", flush=True), sys.stdin.readline(), save(*given))
event.register("numba:compile", Told())
print(add(1, 2), sum(add.stats.cache_hits.values()))
"""


@pytest.fixture
def slow(tmp_path):
    """The function that starts a process, whose lines are read and which is told to go on by ``communicate``."""
    (tmp_path / "adding.py").write_text(KERNEL)

    def start():
        command, pipe = [sys.executable, "-c", SLOW], subprocess.PIPE
        return subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True)

    return start


def test_a_version_that_another_process_compiles_is_waited_for(tmp_path, slow):
    """By processes that need the same, until it is stored; those that wait say that kernels are compiled."""
    first = slow()
    assert [first.stdout.readline() for _ in range(2)] == ["begins\n", "compiled\n"]
    second = slow()
    assert second.stdout.readline() == "begins\n"
    assert first.communicate("\n")[0] == "3 0\n"
    assert second.communicate()[0] == "3 1\n"
    assert not [*tmp_path.rglob("*.compiling")]


def test_a_lock_whose_process_was_killed_holds_nobody(slow):
    with slow() as first:
        assert [first.stdout.readline() for _ in range(2)] == ["begins\n", "compiled\n"]
        first.kill()
    assert slow().communicate("\n")[0] == "begins\ncompiled\n3 0\n"


def test_a_wait_for_what_is_never_compiled_ends(tmp_path, monkeypatch):
    @kernel
    def add(a, b):
        return a + b

    cache = kernels.SharedCache(add.py_func)
    monkeypatch.setattr(type(cache), "cache_path", str(tmp_path))
    monkeypatch.setattr(kernels, "_MOST_SECONDS", 0.1)
    monkeypatch.setattr(kernels, "_open", [add])
    holding = kernels.SharedCache(add.py_func)
    assert not holding._wait_for_others("a version")
    assert cache._wait_for_others("a version")
    holding.release()
    cache.release()
    assert not cache._wait_for_others("a version")
    cache.release()


def test_a_kernel_that_allocates_nothing_counts_no_references_and_refuses_to_allocate(monkeypatch):
    monkeypatch.setattr(kernels.SharedCache, "load_overload", lambda *_: None)  # LLVM's code is not stored

    @kernel
    def counted(pair, i):
        row = pair[0][i]
        if row[0] > 0:
            row = pair[1][i]
        row[0] += 1
        return row[0]

    uncounted = kernel(allocates=False)(counted.py_func)
    pair = np.zeros((2, 3)), np.ones((2, 3))
    count = {}
    for one in (counted, uncounted):
        assert [one(pair, 0), one(pair, 0), one(pair, 1)] == [1, 2, 1]
        pair[0][:], pair[1][:] = 0, 1
        (version,) = one.overloads.values()
        name, code = version.fndesc.mangled_name, version.library.get_llvm_str()
        (body,) = re.findall(rf"(?ms)^define [^\n]*@{name}\(.*?^}}", code)
        count[one] = body.count("@NRT_incref")
    assert count[counted] > 0 == count[uncounted]

    @kernel(allocates=False)
    def makes_one(n):
        return np.zeros(n).sum()

    with pytest.raises(TypingError, match="Only accept returning of array passed"):
        makes_one(3)
