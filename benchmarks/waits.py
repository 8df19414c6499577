"""Measure how long users wait for common commands, in several checkouts side by side.

    python -m benchmarks.waits --data-folder DATA_FOLDER --out waits.md BEFORE=../before NOW=.

Each checkout needs an installation in its ``.venv``, as the README describes. Before a row marked "cold", the compiled
kernels in the ``src`` of the checkout are deleted. Each command runs once. The table has its elapsed time and, in
brackets, its processor time including child processes. No other program may run on the machine.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import resource
import shutil
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

_SHORT = 3671
_TWO = ["--threads", "2"]


class Checkout:
    """Run the commands of one checkout; they write their files to ``folder``."""

    def __init__(self, root: Path, folder: Path):
        self.root, self.folder = root.resolve(), folder

    def cold(self) -> None:
        """Delete all compiled kernels."""
        for kernels in (self.root / "src").rglob("*.nb[ic]"):
            kernels.unlink()

    def run(self, *command: str) -> tuple[float, float]:
        """Run a command in the environment of the checkout; return its elapsed and processor seconds."""
        own = self.root / ".venv" / "bin" / command[0]
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run([own, *command[1:]], cwd=self.root, capture_output=True, text=True, check=False)
        clock, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
        return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def mc2(self, *arguments: str) -> tuple[float, float]:
        return self.run("mc2", *arguments)

    def read(self, table: Path, *options: str) -> str:
        """Import a table; return the folder of the corpus."""
        made = str(self.folder / table.stem)
        self.mc2("import", str(table), "--text", "text", *options, "--out", made)
        return made

    def posterior(self, fit: str) -> str:
        """Return the path of the posterior of a fit, whose name depends on the checkout."""
        names = ("posterior.npz", "model.npz")
        return next(str(Path(fit) / name) for name in names if (Path(fit) / name).exists())


def measured(here: Checkout, tables: dict[str, Path]) -> dict[str, Callable[[], tuple[float, float]]]:
    """Return the name of each row with a function that measures it; later rows use files of earlier rows."""
    fits = {name: str(here.folder / f"fit-{name}") for name in ("example", *tables)}
    corpora: dict[str, str] = {}

    def first_fit() -> tuple[float, float]:
        corpora["example"] = here.read(Path("config/example.csv"), "--min-df", "2")
        here.cold()
        return here.mc2("fit", corpora["example"], "--out", fits["example"])

    def example() -> tuple[float, float]:
        here.cold()
        folder = here.folder / "cold"
        data, fit = str(folder / "corpus"), str(folder / "fit")
        steps = [
            here.mc2("import", "config/example.csv", "--text", "text", "--min-df", "2", "--out", data),
            here.mc2("fit", data, "--out", fit),
            here.mc2("describe", here.posterior(fit), data, "--out", str(folder / "page")),
        ]
        clock, processor = zip(*steps, strict=True)
        return sum(clock), sum(processor)

    def fit_of(name: str, *options: str) -> Callable[[], tuple[float, float]]:
        def run() -> tuple[float, float]:
            corpora[name] = here.read(tables[name], "--min-df", "5")
            return here.mc2("fit", corpora[name], *options, "--out", fits[name])

        return run

    def of(command: str, name: str, *options: str) -> Callable[[], tuple[float, float]]:
        return lambda: here.mc2(command, here.posterior(fits[name]), corpora[name], *options)

    return {
        "`mc2 --help`": lambda: here.mc2("--help"),
        "import of `Corpus` and `fit`": lambda: here.run("python", "-c", "from mc2core import Corpus, fit"),
        "`snakemake -n`": lambda: here.run("snakemake", "-n", "--quiet"),
        "first `mc2 fit` (two dozen documents), cold": first_fit,
        "import + fit + describe of `config/example.csv`, cold": example,
        f"start and one iteration, {_SHORT:,} titles": fit_of("titles", "--iterations", "1", *_TWO),
        "default fit, 1,740 papers of NIPS, two threads": fit_of("nips", *_TWO),
        "`mc2 describe` of it, two threads": of("describe", "nips", *_TWO, "--out", str(here.folder / "page-nips")),
        "`mc2 clusters` of it": of("clusters", "nips", *_TWO),
        "default fit, 7,400 abstracts, two threads": fit_of("abstracts", *_TWO),
        "`mc2 evaluate` of the 7,400 abstracts, two threads": of("evaluate", "abstracts", *_TWO),
    }


def write_tables(data_folder: Path, folder: Path) -> dict[str, Path]:
    """Write abstracts and titles of Ohsumed, and papers of NIPS, as tables with a column ``text``."""
    texts: dict[str, list[str]] = {"abstracts": [], "nips": []}
    with tarfile.open(data_folder / "labelled" / "ohsumed_single_23.tar.gz") as archive:
        for member in archive:
            if re.search(r"C\d\d/\d+$", member.name):
                texts["abstracts"].append(archive.extractfile(member).read().decode("latin-1"))  # type: ignore[union-attr]
    texts["titles"] = [text.partition("\n")[0] for text in texts["abstracts"][:_SHORT]]
    with zipfile.ZipFile(data_folder / "nips" / "nips-corpus-20111211.zip") as archive:
        parts = {
            Path(name).name: archive.read(name).decode("latin-1") for name in archive.namelist() if "/nips." in name
        }
    words = [line.split(" = ")[0] for line in parts["nips.vocab"].splitlines()]
    for line in filter(None, parts["nips.corpus"].splitlines()):
        pairs = (pair.split(":") for pair in line.split()[1:])
        texts["nips"].append(" ".join(" ".join([words[int(word)]] * int(count)) for word, count in pairs))
    paths = {}
    for name, of_it in texts.items():
        paths[name] = folder / f"{name}.csv"
        with paths[name].open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([["text"], *([" ".join(text.split())] for text in of_it)])
    return paths


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.waits", description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", nargs="+", metavar="NAME=FOLDER", help="a column's name and its checkout")
    parser.add_argument("--data-folder", type=Path, required=True, help="folder of the real data")
    parser.add_argument("--out", type=Path, required=True, help="table as Markdown")
    options = parser.parse_args(arguments)
    seen: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as name:
        tables = write_tables(options.data_folder, Path(name))
        for column, _, root in (checkout.partition("=") for checkout in options.checkouts):
            folder = Path(name) / column
            folder.mkdir()
            os.environ.pop("PYTHONPATH", None)
            for row, run in measured(Checkout(Path(root), folder), tables).items():
                clock, processor = run()
                seen.setdefault(row, {})[column] = f"{clock:.1f} ({processor:.1f})"
                print(f"{column}: {row}: {seen[row][column]}, load {os.getloadavg()[0]:.1f}", flush=True)
            shutil.rmtree(folder)
    columns = list(next(iter(seen.values())))
    lines = [f"| what | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {row} | {' | '.join(of_row.values())} |" for row, of_row in seen.items()]
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
