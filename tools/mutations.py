"""Change the code in one place at a time, and check that the tests of this code fail.

python tools/mutations.py [--only NAME ...] [--part I/N] [--out FOLDER] [--minutes M] [--again]
python tools/mutations.py --check
python tools/mutations.py --table [--out FOLDER]

``mutations.toml`` has the mutations. Each mutation is applied to a copy of the checkout; the checkout does not change.
The tests of a mutation must pass without it and fail with it. Mutations with the same tests share the run without a
mutation. Results are appended to ``mutations.csv`` in the output folder; a second call continues after the stored
results. ``--check`` runs no tests and reports the mutations that can no longer be applied.

After a mutation of ``src/mc2core``, kernels are compiled again in a separate folder, which takes most of the time.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
#: elapsed seconds after which a run of tests is stopped
LIMIT = 900
#: packages that most tests import; they are imported only once
LOADED = (
    "_hypothesis_pytestplugin", "hypothesis.extra.numpy", "numba.core.config", "pandas", "pytest", "scipy.special",
    "scipy.stats", "sklearn.cluster", "xdist",
)  # fmt: skip
COLUMNS = ("mutation", "result", "test", "seconds")


class Mutation(NamedTuple):
    """A change of the code, and the tests that must fail with this change."""

    name: str
    file: str
    old: str  # occurs once in the file
    new: str
    breaks: str
    tests: str  # arguments of pytest
    plain: bool = False  # whether the tests run without compiled kernels

    @property
    def part(self) -> str:
        """Return the name of the module in tables."""
        return self.file.removeprefix("src/").removeprefix("mc2core/").removesuffix(".py").replace("/", ".")

    @property
    def may_change_kernels(self) -> bool:
        """Return whether kernels must be compiled again after the mutation."""
        return self.file.startswith("src/mc2core/") and not self.file.startswith("src/mc2core/explore/")


def mutations() -> list[Mutation]:
    """Return the mutations in ``mutations.toml``."""
    with (ROOT / "tools/mutations.toml").open("rb") as stream:
        return [Mutation(name, **one) for name, one in tomllib.load(stream).items()]


def misplaced(one: Mutation) -> str:
    """Return the reason why a mutation cannot be applied or tested; "" if it can."""
    path = ROOT / one.file
    found = path.read_text(encoding="utf-8").count(one.old) if path.is_file() else 0
    if found != 1:
        return f"{one.name}: its text occurs {found} times in {one.file}, not once"
    files, _, chosen = one.tests.partition(" -k ")
    absent = [word for word in shlex.split(files) if word.endswith(".py") and not (ROOT / word).is_file()]
    if not absent:
        text = "".join((ROOT / word).read_text(encoding="utf-8") for word in shlex.split(files) if word.endswith(".py"))
        absent = [word for word in re.findall(r"\w+", chosen) if word not in ("and", "or", "not") and word not in text]
    return f"{one.name}: {absent[0]} is not there" if absent else ""


def copy_checkout(folder: Path) -> None:
    """Copy the checkout without ignored files; files keep their times, by which numba finds their compiled kernels."""
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    shutil.rmtree(folder, ignore_errors=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def run(mutation: Mutation, checkout: Path, kernels: Path) -> tuple[str, str, float]:
    """Run the tests of a mutation in a fork of this process.

    Returns the outcome (passed, failed, stopped or broken), the first failed test, and the processor seconds.
    """
    log = checkout / "tests.log"
    if (child := os.fork()) == 0:
        os._exit(_call(mutation, checkout, kernels, log))
    until = time.monotonic() + LIMIT
    while (ended := os.wait4(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            until = math.inf
        time.sleep(0.1)
    seconds, output = ended[2].ru_utime + ended[2].ru_stime, log.read_text(encoding="utf-8")
    code, failed = os.waitstatus_to_exitcode(ended[1]), re.search(r"^FAILED (\S+?::[^\s[]+)", output, re.M)
    if code == 0:
        return "passed", "", seconds
    if code == 1 and failed:
        return "failed", failed[1], seconds
    print(output[-2000:], file=sys.stderr)
    return "stopped" if code < 0 else "broken", "", seconds


def _call(mutation: Mutation, checkout: Path, kernels: Path, log: Path) -> int:
    import numba.core.config
    import pytest

    os.chdir(checkout)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.environ |= {"PYTHONPATH": str(checkout / "src"), "NUMBA_CACHE_DIR": str(kernels)}
    os.environ["NUMBA_DISABLE_JIT"] = str(int(mutation.plain))
    numba.core.config.reload_config()
    sys.path.insert(0, str(checkout / "src"))
    code = int(pytest.main(["-x", "-q", "-n", "0", "-p", "no:cacheprovider", *shlex.split(mutation.tests)]))
    sys.stdout.flush()
    return code


def read(path: Path) -> list[dict[str, str]]:
    """Return the stored results."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, COLUMNS))


def append(path: Path, *row: str) -> None:
    """Append a result to the file."""
    with path.open("a", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerow(row)


def judge(mutation: Mutation, results: Path, checkout: Path, kernels: Path) -> str:
    """Run the tests of a mutation without it (unless these have passed already) and with it; store the result."""
    own = f"without: {'plain ' * mutation.plain}{mutation.tests}"
    if not any(one["mutation"] == own and one["result"] == "passed" for one in read(results)):
        outcome, test, seconds = run(mutation, checkout, kernels)
        append(results, own, outcome, test, f"{seconds:.0f}")
        if outcome != "passed":
            return f"its tests do not pass without it ({outcome} {test})"
    path = checkout / mutation.file
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as own_kernels:
        path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        outcome, test, seconds = run(mutation, checkout, Path(own_kernels) if mutation.may_change_kernels else kernels)
        shutil.copy2(ROOT / mutation.file, path)
    result = {"failed": "caught", "passed": "not caught"}.get(outcome, outcome)
    append(results, mutation.name, result, test.removeprefix("tests/"), f"{seconds:.0f}")
    return f"{result} {test} ({seconds:.0f} s)"


def table(results: Path) -> str:
    """Return a Markdown table of the last result of each mutation that was run, with their number."""
    last, listed = {one["mutation"]: one for one in read(results)}, mutations()
    rows = [(one, last[one.name]) for one in listed if one.name in last]
    caught = sum(found["result"] == "caught" for _, found in rows)
    lines = [
        f"{caught} of the {len(rows)} mutations that were run are caught; `tools/mutations.toml` has {len(listed)}.",
        "",
        "| module | what the mutation breaks | test that fails | seconds |",
        "|---|---|---|---:|",
    ]
    for one, found in rows:
        test = f"`{found['test'].rpartition('::')[2]}`" if found["result"] == "caught" else f"**{found['result']}**"
        lines.append(f"| {one.part} | {one.breaks} | {test} | {found['seconds']} |")
    return "\n".join(lines)


def main() -> int:
    """Run the command; return 1 if a mutation was not caught or cannot be applied."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="mutations of these names")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="every N-th mutation, from number I on")
    parser.add_argument("--out", type=Path, default=Path("mutations"), help="folder of results and kernels")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no mutation after so many minutes")
    parser.add_argument("--again", action="store_true", help="run those again that have a result")
    parser.add_argument("--check", action="store_true", help="report mutations that do not find their place")
    parser.add_argument("--table", action="store_true", help="print the results as a table")
    given, chosen = parser.parse_args(), mutations()
    if wrong := [sentence for one in chosen if (sentence := misplaced(one))]:
        print(*wrong, sep="\n")
        return 1
    if given.check:
        print(f"{len(chosen)} mutations find their places")
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    results, kernels = given.out.resolve() / "mutations.csv", given.out.resolve() / "kernels"
    if given.table:
        print(table(results))
        return 0
    for name in LOADED:
        importlib.import_module(name)
    number, parts = map(int, given.part.split("/"))
    checkout = given.out.resolve() / f"checkout-{number}"
    copy_checkout(checkout)
    begun, done = time.monotonic(), set() if given.again else {one["mutation"] for one in read(results)}
    wanted = [one for one in chosen if one.name in given.only or not given.only][number - 1 :: parts]
    for mutation in wanted:
        if mutation.name not in done and time.monotonic() - begun < 60 * given.minutes:
            print(mutation.name, judge(mutation, results, checkout, kernels), flush=True)
    last = {one["mutation"]: one["result"] for one in read(results)}
    return int(any(last.get(one.name, "caught") != "caught" for one in chosen))


if __name__ == "__main__":
    sys.exit(main())
