"""Stored kernels: what damages them, which processes compile and store at once, and which edit makes others of them."""

import ast
import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import grimp
import pytest
from helpers.crossed import first

from mc2core.compute import kernel_store, kernels

KERNEL = """
from mc2core.compute.kernels import inner_kernel, kernel

@inner_kernel
def half(a):
    return a / 2

@kernel
def add(a, b):
    return half(a) + half(b)

@kernel
def double(a):
    return 2 * a
"""
ADD = "from adding import add; print(add(1, 2), add(1.5, 2.5), *(sum(n.values()) for n in add.stats[1:]))"
COMPILED, LOADED = ["1.5", "2.0", "0", "2"], ["1.5", "2.0", "2", "0"]


@pytest.fixture
def process(tmp_path):
    """The function that starts a process in a folder with a module of kernels, which stores them in ``kernels``."""
    (tmp_path / "adding.py").write_text(KERNEL)
    environment = os.environ | {"NUMBA_CACHE_DIR": f"{tmp_path}/kernels"}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)

    def start(code=ADD, **options):
        command = [sys.executable, "-c", code]
        options = {"env": environment, "cwd": tmp_path, **pipes, "text": True, **options}
        return subprocess.Popen(command, **options)

    return start


@pytest.fixture
def run(process):
    """The function that runs such a process to its end: what it prints."""

    def call(code=ADD, **options):
        with process(code, **options) as job:
            try:
                printed, said = job.communicate(timeout=60)
            except BaseException:
                job.kill()  # it waits for a lock
                raise
            assert (job.returncode, said) == (0, "")
            return printed.split()

    return call


def stored_in(folder, ending="*.nb[ic]"):
    return sorted(folder.rglob(ending))


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def become_a_folder(path):
    path.unlink()
    path.mkdir()


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": cut,
    "flipped": flip,
    "gone": Path.unlink,
    "a folder": become_a_folder,
    "a link to nothing": lambda path: (path.unlink(), path.symlink_to("nothing")),
}


def some_files(folder):
    """A folder with three files and their checksums."""
    (folder / "state/engine").mkdir(parents=True)
    paths = [folder / "state/engine" / name for name in ("f-1.nbi", "f-1.1.nbc", "f-1.2.nbc")]
    for path in paths:
        path.write_bytes(path.name.encode() * 9)
    kernel_store._write_checksums(folder)
    return paths


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_removed_and_no_other(tmp_path, damage):
    whole, damaged, other = some_files(tmp_path)
    damage(damaged)
    kernel_store._remove_damaged(tmp_path)
    assert {*tmp_path.glob("*/*/*")} == {whole, other}
    assert not damaged.is_symlink()


@pytest.mark.parametrize("damage", [DAMAGE["empty"], DAMAGE["gone"], become_a_folder], ids=["empty", "gone", "folder"])
def test_without_checksums_all_files_are_removed(tmp_path, damage):
    some_files(tmp_path)
    damage(tmp_path / "checksums")
    kernel_store._remove_damaged(tmp_path)
    assert not [*tmp_path.glob("*/*/*")]


def test_files_without_a_checksum_are_removed(tmp_path):
    paths = some_files(tmp_path)
    left = [tmp_path / "state/engine" / name for name in ("g-1.nbi", "g-1.1.nbc.tmp.0123")]
    for path in left:
        path.write_bytes(b"left by a process that was killed")
    kernel_store._remove_damaged(tmp_path)
    assert {*tmp_path.glob("*/*/*")} == {*paths}


@pytest.mark.slow
def test_damaged_kernels_are_compiled_again(tmp_path, run):
    assert run() == COMPILED
    assert run() == LOADED
    flip(stored_in(tmp_path, "*.1.nbc")[0])
    assert run() == ["1.5", "2.0", "1", "1"]
    cut(stored_in(tmp_path, "*.nbi")[0])
    cut(stored_in(tmp_path, "*.2.nbc")[0])
    assert run() == COMPILED
    assert run() == LOADED


@pytest.mark.slow
def test_files_of_a_process_that_was_killed_are_removed(tmp_path, process, run):
    """It had stored them and not written their checksums, and holds no lock any more."""
    stop = "from adding import add; from mc2core.compute import kernel_store; import sys\n"
    code = "kernel_store._write_checksums = lambda folder: (print('stored', flush=True), sys.stdin.readline())\n"
    with process(stop + code + "add(1, 2)") as killed:
        assert killed.stdout.readline() == "stored\n"
        killed.kill()
    assert stored_in(tmp_path)
    assert run() == COMPILED
    assert run() == LOADED


# numba writes the index, then the version that it names
KILLED = """
import os
from numba.core import caching
caching.IndexDataCacheFile._save_data = lambda self, name, data: os.kill(os.getpid(), 9)
from adding import add
add(1.5, 2.5)
"""
CHECKED = """
import sys
from adding import add, double
from mc2core.compute.kernel_store import store
store.check()
print("checked", flush=True)
sys.stdin.readline()
print(double(1), add(1.5, 2.5))
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_damaged", [False, True], ids=["a comment was edited", "the index was damaged"])
def test_a_new_index_never_names_versions_of_the_last_one(tmp_path, process, run, is_damaged):
    """Neither for a process that starts later, nor for one that has checked the files before."""
    assert run() == COMPILED
    if not is_damaged:
        with (tmp_path / "adding.py").open("a") as stream:
            stream.write("# edited")
    with process(CHECKED) as other:
        assert other.stdout.readline() == "checked\n"
        if is_damaged:
            flip(stored_in(tmp_path, "*add-*.nbi")[0])
        with process(KILLED) as killed:
            assert (killed.wait(), killed.stderr.read()) == (-9, "")
        assert other.communicate("\n") == ("2 2.0\n", "")
    assert run()[:2] == COMPILED[:2]
    assert run() == LOADED


TURNS = "from mc2core.compute.kernel_store import store\nfrom adding import add\nimport sys\n"
TURNS += "with store.taking_turns({what!r}):\n    {code}"


def test_one_process_compiles_the_same_kernels_and_others_wait(process):
    first_code = "print(add(1, 2), flush=True); sys.stdin.readline(); add(1.5, 2.5)"
    wait = "from mc2core.base import progress\nprogress.LINE_SECONDS = 0.1\nwith progress.showing(True):\n    exec("
    with process(TURNS.format(what="gibbs", code=first_code)) as first:
        assert first.stdout.readline() == "1.5\n"
        with process(wait + repr(TURNS.format(what="gibbs", code=ADD)) + ")") as second:
            told = second.stderr.readline()
            if "waiting" not in told:  # on a busy machine, the bar has a line before
                told = second.stderr.readline()
            assert first.communicate("\n")[1] == ""  # or it would wait for ever
            assert "waiting for another process that compiles the same kernels" in told
            # it had looked for a version of the second types before that one was there
            assert second.communicate()[0].split() == ["1.5", "2.0", "1", "1"]


@pytest.mark.slow
@pytest.mark.parametrize("code", [ADD, TURNS.format(what="svi", code=ADD)], ids=["no turns", "others' turns"])
def test_processes_that_compile_other_kernels_do_not_wait(process, run, code):
    with process(TURNS.format(what="gibbs", code="print(add(1, 2), flush=True); sys.stdin.readline()")) as first:
        assert first.stdout.readline() == "1.5\n"
        assert run(code) == ["1.5", "2.0", "1", "1"]
        assert first.communicate("\n") == ("", "")


@pytest.mark.slow
def test_a_process_that_waits_for_the_store_reports_it(tmp_path, process):
    code = "from mc2core.base import progress\nprogress.LINE_SECONDS = 0.1\nwith progress.showing(True):\n    exec("
    place = tmp_path / "kernels/mc2core-kernels"
    with open(kernel_store._open(place / "storing.lock")) as held:
        assert kernel_store.storage.take_lock(held.fileno(), wait=True)
        waiting = process(code + repr(ADD) + ")")
        end = threading.Timer(20, waiting.kill)  # it says nothing
        end.start()
        told = waiting.stderr.readline()
        end.cancel()
    with waiting:
        assert waiting.communicate()[0].split() == COMPILED
    assert "waiting for another process that stores kernels" in told


# between choosing the name of a version and writing it down, both processes have read the same list
STORE = """
import time
from numba.core import caching
save = caching.IndexDataCacheFile._save_index
caching.IndexDataCacheFile._save_index = lambda self, overloads: (time.sleep(1), save(self, overloads))
from adding import add
add(*{arguments})
"""


@pytest.mark.slow
def test_versions_stored_by_two_processes_at_once_are_both_kept(process, run):
    jobs = [process(STORE.format(arguments=arguments)) for arguments in ("(1, 2)", "(1.5, 2.5)")]
    assert [job.communicate()[1] for job in jobs] == ["", ""]
    assert run() == LOADED


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


FULL = "from mc2core.compute import kernel_store; kernel_store._MIN_FREE_BYTES = 2**62\n"
NOWHERE = "/dev/null/kernels"
UNUSABLE = {
    "a folder that cannot be": {"env": os.environ | {"NUMBA_CACHE_DIR": NOWHERE}},
    "beyond a quota": {"preexec_fn": limit_files},
    "a full disk": {"code": FULL + ADD},
}


@pytest.mark.parametrize("given", first(UNUSABLE))
def test_kernels_that_cannot_be_stored_are_compiled_in_memory(tmp_path, run, given):
    assert run(**UNUSABLE[given])[:2] == COMPILED[:2]
    assert not stored_in(tmp_path)


@pytest.mark.slow
def test_what_is_stored_on_a_disk_that_is_full_now_is_used(tmp_path, run):
    assert run() == COMPILED
    before = {path: path.read_bytes() for path in stored_in(tmp_path)}
    # the disk of temporary files has room
    code = FULL.replace("2**62", "2**20") + (
        "import shutil, types\n"
        "usage = shutil.disk_usage\n"
        "full = types.SimpleNamespace(free=0)\n"
        "shutil.disk_usage = lambda place: usage(place) if 'mc2-kernels-' in str(place) else full\n"
    )
    assert run(code + ADD) == LOADED
    flip(stored_in(tmp_path, "*.1.nbc")[0])
    assert run(code + ADD) == ["1.5", "2.0", "1", "1"]
    assert before.keys() == {*stored_in(tmp_path)}


CALLED = """
from mc2core.compute.kernels import kernel

FACTOR = {factor}

@kernel
def scaled(a):
    return FACTOR * a
"""
CALLER = '''
from mc2core.compute.called import scaled
from mc2core.compute.kernels import kernel

@kernel
def twice(a):
    """{told}"""
    return 2.0 * scaled(a)
'''
CALL = """
from mc2core.inference.caller import twice
print(twice(1.0), sum(twice.stats.cache_misses.values()))
"""
STORES = {
    "beside the sources": {"XDG_CACHE_HOME": "elsewhere"},
    "a folder of one's own": {"NUMBA_CACHE_DIR": "kernels"},
    "the user's cache": {"XDG_CACHE_HOME": "kernels"},
}


@pytest.mark.slow
@pytest.mark.parametrize("where", STORES)
def test_a_kernel_is_compiled_again_iff_its_code_has_changed(tmp_path, run, where):
    package = tmp_path / "mc2core"
    for folder in ("", "compute", "explore", "inference"):
        (package / folder).mkdir()
        (package / folder / "__init__.py").touch()
    (package / "__init__.py").write_text('__version__ = "0"\n')
    for module in kernels, kernel_store:
        shutil.copy(module.__file__, package / "compute")
    shutil.copytree(Path(kernels.__file__).parents[1] / "base", package / "base")
    called, caller = package / "compute" / "called.py", package / "inference" / "caller.py"
    called.write_text(CALLED.format(factor=10.0))
    caller.write_text(CALLER.format(told="Twice."))
    unset = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CACHE")}
    env = unset | {name: f"{tmp_path}/{folder}" for name, folder in STORES[where].items()}
    if where == "the user's cache":
        (package / "__pycache__").write_text("no folder can be made here")

    def call():
        return run(CALL, env=env | {"PYTHONDONTWRITEBYTECODE": "1"})

    assert call() == ["20.0", "1"]
    places = {"beside the sources": package / "__pycache__", "a folder of one's own": tmp_path / "kernels"}
    assert stored_in(places.get(where, tmp_path / "kernels/mc2core"))
    (package / "explore" / "html_report.py").write_text("A = 1\n")
    called.write_text('"""Told."""\n# and commented\n' + CALLED.format(factor=10.0))
    assert call() == ["20.0", "0"]
    called.write_text(CALLED.format(factor=15.0))
    assert call() == ["30.0", "1"]
    caller.write_text(CALLER.format(told="Two times."))  # numba itself looks at the kernel's own file
    assert call() == ["30.0", "1"]
    called.write_text(CALLED.format(factor=10.0))
    assert call() == ["20.0", "1"]


def test_kernels_of_the_last_few_states_of_the_sources_are_kept(tmp_path):
    folders = [tmp_path / f"{number}" for number in range(6)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        os.utime(folder, (number, number))
        (tmp_path / f"contents{number}.code").write_text(folder.name)
    kernel_store._remove_old(tmp_path, folders[0])
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["0", "3", "4", "5"]
    assert sorted(path.read_text() for path in tmp_path.glob("*.code")) == ["0", "3", "4", "5"]


def test_a_forked_process_leaves_the_locks_to_its_parent(tmp_path, monkeypatch):
    kernels, store = tmp_path / "kernels", kernel_store.Store()
    kernels.mkdir()
    monkeypatch.setattr(kernel_store, "folder", lambda: kernels)
    monkeypatch.setattr(kernel_store, "store", store)

    def is_free(name):
        with open(kernel_store._open(tmp_path / name)) as other:
            return kernel_store.storage.take_lock(other.fileno(), wait=False)

    (told, tell), (heard, say) = os.pipe(), os.pipe()
    with open(tell, "w"):
        with store.taking_turns("gibbs"), store.storing():
            store.await_turn()
            child = os.fork()
            if child == 0:
                store.forget()
                os.write(say, b".")
                os.close(tell)
                os.read(told, 1)  # until its parent is done, or fails
                os._exit(len(store._locks))
            assert os.read(heard, 1) == b"."
            assert not is_free("gibbs.lock")
            assert not is_free("storing.lock")
        assert is_free("gibbs.lock")
        assert is_free("storing.lock")
    assert os.waitpid(child, 0)[1] == 0


def test_kernels_use_nothing_that_their_digest_leaves_out():
    """Those of the papers' package are made of their own file and the library."""
    graph = grimp.build_graph("mc2core", "mc2papers", cache_dir=None)
    holders = set()
    for importer in graph.find_modules_that_directly_import("mc2core.compute.kernels"):
        for one in graph.get_import_details(importer=importer, imported="mc2core.compute.kernels"):
            if "kernel" in one["line_contents"].partition(" import ")[2]:
                holders.add(importer)
    made_of = set.union(holders, *map(graph.find_upstream_modules, holders))
    assert len(made_of) > 50
    left_out = {f"mc2core.{folder}" for folder in kernel_store.WITHOUT_KERNELS}
    assert left_out <= graph.modules
    assert not {one for one in made_of if any(one.startswith(f"{folder}.") for folder in left_out)}
    for one in holders:
        if one.startswith("mc2papers."):
            assert not {other for other in graph.find_upstream_modules(one) if other.startswith("mc2papers.")}


#: modules of numba that its documentation describes, and that of the base class for `numba.extending.infer_getattr`
DOCUMENTED = {
    *("numba", "numba.extending", "numba.core", "numba.core.event", "numba.core.types", "numba.core.cgutils"),
    "numba.core.typing.templates",
}


def test_only_documented_features_of_numba_are_used():
    root = Path(kernels.__file__).parents[2]
    seen = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numba":
                assert node.module in DOCUMENTED, (path, node.lineno)
                seen.add(node.module)
            elif isinstance(node, ast.Import):
                assert {one.name for one in node.names if one.name.startswith("numba.")} <= DOCUMENTED, path
            elif isinstance(node, ast.keyword) and (node.arg or "").startswith("_"):
                assert node.arg not in ("_nrt", "_dbg_extend_lifetimes", "_dbg_optnone"), (path, node.lineno)
            elif isinstance(node, ast.Attribute):
                private = {"_cache", "_compiler", "_compile_for_args", "add_overload", "get_call_template"}
                assert node.attr not in private or path.name == "kernel_store.py", (path, node.lineno, node.attr)
    assert seen >= {"numba.core", "numba.extending"}
