"""Define and measure benchmarks, store their history, and write the README with their results."""

from __future__ import annotations

import argparse
import csv
import inspect
import os
import platform
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HISTORY = ROOT / "benchmarks/history.csv"
PAGE = ROOT / "benchmarks/README.md"
DATA_FOLDER = Path(os.environ.get("MC2_DATA_FOLDER") or ROOT.parent / "shared/mirror")
_MARK = "<!-- below: made from history.csv by python -m benchmarks --record -->\n"

Figures = Callable[..., Iterator[float]]


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    Attributes
    ----------
    name, measures, unit : str
        Name of the benchmark, description of the measured quantity, and unit of the figures.
    figures : callable
        (**sizes) -> endless iterator of figures. A figure is measured when it is requested. Preparation (data,
        compilation, the first sweeps) is not measured.
    sizes, tiny : dict
        Default arguments of ``figures``, and the arguments that a test replaces to run in seconds.
    repeats : int
        Default number of figures per run.
    needs : str
        "data_folder" (``figures`` then has the argument ``data_folder``), "spark", or "" for no requirement.
    """

    name: str
    measures: str
    unit: str
    figures: Figures
    sizes: Mapping[str, Any]
    tiny: Mapping[str, Any]
    repeats: int
    needs: str


#: all benchmarks by name, in the order of their definition
BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(
    unit: str, *, tiny: Mapping[str, Any] | None = None, repeats: int = 3, needs: str = ""
) -> Callable[[Figures], Figures]:
    """Register a function as a benchmark, with its name, the first line of its docstring and its default arguments."""

    def register(figures: Figures) -> Figures:
        name = figures.__name__.replace("_", "-")
        parameters = inspect.signature(figures).parameters.values()
        sizes = {one.name: one.default for one in parameters if one.default is not one.empty}
        measures = (figures.__doc__ or "").partition("\n")[0].rstrip(".")
        BENCHMARKS[name] = Benchmark(name, measures, unit, figures, sizes, tiny or {}, repeats, needs)
        return figures

    return register


def parser_of(name: str, about: str | None, corpora: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser with the common options of the studies: ``--only`` (corpora) and ``--data-folder``."""
    known = list(corpora)
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=(about or "").partition(":")[0])
    made.add_argument("--only", nargs="+", choices=known, default=known, metavar="CORPUS", help="; ".join(known))
    of_data = "folder of the real data (MC2_DATA_FOLDER)"
    made.add_argument("--data-folder", type=Path, default=DATA_FOLDER, help=of_data)
    return made


def processor_seconds(work: Callable[..., Any], *arguments: Any) -> float:
    """Run ``work``, and return the processor seconds that all threads of this process used."""
    started = time.process_time()
    work(*arguments)
    return time.process_time() - started


def measure(one: Benchmark, repeats: int, data_folder: Path, sizes: Mapping[str, Any]) -> list[float]:
    """Return ``repeats`` figures of a benchmark at these sizes."""
    given = {**sizes, "data_folder": data_folder} if one.needs == "data_folder" else sizes
    with closing(one.figures(**given)) as figures:  # type: ignore[type-var]
        return list(islice(figures, repeats))


@dataclass(frozen=True)
class Row:
    """One row of the history; ``load`` is the mean number of processes that ran in the minute before the run."""

    date: str
    commit: str
    benchmark: str
    sizes: str
    unit: str
    median: float
    least: float
    most: float
    repeats: int
    load: float
    machine: str
    versions: str

    def is_like(self, other: Row) -> bool:
        """Return whether two results may be compared: the same work on the same kind of machine."""
        return all(getattr(self, name) == getattr(other, name) for name in ("benchmark", "sizes", "unit", "machine"))


def circumstances() -> dict[str, Any]:
    """Return the values that all rows of one run share."""
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()), "commit": _commit(), "load": round(os.getloadavg()[0], 1),
        "machine": _machine(), "versions": _versions(),
    }  # fmt: skip


def row_of(one: Benchmark, figures: list[float], shared: Mapping[str, Any]) -> Row:
    """Return the row of a benchmark with these results, measured at its default sizes."""
    median, least, most = (float(f"{of(figures):.4g}") for of in (statistics.median, min, max))
    sizes = ", ".join(f"{name}={value}" for name, value in one.sizes.items())
    return Row(
        benchmark=one.name, sizes=sizes, unit=one.unit, median=median, least=least, most=most, repeats=len(figures),
        **shared,
    )  # fmt: skip


def _commit() -> str:
    """Return the commit of the checkout, with a plus if the code of the library differs from it."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)

    changed = git("diff", "--quiet", "HEAD", "--", "src").returncode
    return git("rev-parse", "--short=7", "HEAD").stdout.strip() + "+" * bool(changed)


def _machine() -> str:
    """Return the model of the processor and the number of cores."""
    described = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    return f"{described[1] if described else platform.machine()}, {os.cpu_count()} cores"


def _versions() -> str:
    names = ("mc2core", "numba", "numpy", "scipy")
    return f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in names)


# -- history and page ----------------------------------------------------------------------------------------------
def read_history(path: Path) -> list[Row]:
    """Return all rows, the oldest first."""
    kinds = {"median": float, "least": float, "most": float, "repeats": int, "load": float}
    with path.open(encoding="utf-8", newline="") as stream:
        return [
            Row(**{name: kinds.get(name, str)(value) for name, value in row.items()}) for row in csv.DictReader(stream)
        ]


def append(row: Row, path: Path) -> None:
    """Append a row to the history."""
    with path.open("a", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, [one.name for one in fields(Row)], lineterminator="\n")
        if stream.tell() == 0:
            table.writeheader()
        table.writerow(asdict(row))


def ratio(row: Row, history: list[Row]) -> float | None:
    """Return the median divided by the median of the last comparable row of ``history``; None if there is none."""
    return next((row.median / one.median for one in reversed(history) if row.is_like(one) and one.median), None)


def page(text: str, history: list[Row]) -> str:
    """Return the page ``text`` with a new table below its mark, which has the last result of every benchmark."""
    lines = [
        "| benchmark | what is measured | median (least to most) | unit | ratio | load | date, commit |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in BENCHMARKS.values():
        numbers = [i for i, row in enumerate(history) if row.benchmark == one.name]
        cells = ["", one.unit, "", "", ""]
        if numbers:
            row = history[numbers[-1]]
            change = ratio(row, history[: numbers[-1]])
            cells = [
                f"{row.median:g} ({row.least:g} to {row.most:g})", row.unit, "" if change is None else f"{change:.2f}",
                f"{row.load:g}", f"{row.date}, {row.commit}",
            ]  # fmt: skip
        lines.append("| " + " | ".join([f"`{one.name}`", one.measures, *cells]) + " |")
    return text.partition(_MARK)[0] + _MARK + "\n" + "\n".join(lines) + "\n"
