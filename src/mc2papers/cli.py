"""Run the workflow, make one dataset of the papers, or compare results with reference results.

mc2papers run uai2016_figure1
mc2papers run icml2014 --cores 4 -- --dry-run
mc2papers folder
mc2papers corpus nips --real nips-corpus-20111211.zip --out data/nips
mc2papers corpus letters --out data/letters
mc2papers compare results docs/papers/real.csv
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

from mc2core.app.commands import add_command, run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit code: 0, 2 after an error message, or 130 after Ctrl-C."""
    return run("mc2papers", __doc__, _add_commands, arguments)


def _add_commands(commands: Any) -> None:
    from pathlib import Path

    run = add_command(commands, "run", _run, "make tables and figures of the papers in results/ of this folder")
    targets = "tables, figures or papers (default: all); then -- and options of Snakemake"
    run.add_argument("targets", nargs="*", metavar="TARGET", help=targets)
    run.add_argument("--cores", default="all", help="cores to use at most (default all)")
    add_command(commands, "folder", _folder, "print the folder of the Snakefile and of its configurations")
    corpus = add_command(
        commands, "corpus", _corpus, "read or simulate a dataset of the papers, split it, and write its folder"
    )
    corpus.add_argument("dataset", help="letters, nips, pnas, nuswide, wikipedia, w100, w1000, pubmed or aua")
    corpus.add_argument(
        "--real", metavar="FILE", type=Path, help="read this source file (nips) or folder (nuswide, aua)"
    )
    corpus.add_argument("--scale", type=float, help="size of a simulated corpus; 1 is the paper's (not letters)")
    corpus.add_argument("--test-size", type=float, default=0.1, help="share held out; 0 for none (default 0.1)")
    corpus.add_argument("--seed", type=int, default=0, help="seed of the simulation and of the split (default 0)")
    corpus.add_argument("--out", metavar="FOLDER", type=Path, required=True, help="folder to write the dataset to")
    compare = add_command(commands, "compare", _compare, "show the progress of a run, and compare its results")
    compare.add_argument("results", type=Path, help="folder of results of the workflow")
    compare.add_argument("reference", type=Path, help="CSV file of reference results")
    compare.add_argument("--record", action="store_true", help="write the results of the run to the file first")


def _checkout() -> Path:
    """Return the folder of the workflow: the checkout, or the copy that setup.py puts into an installed package."""
    from pathlib import Path

    package = Path(__file__).resolve().parent
    for folder in (package / "checkout", package.parents[1]):
        if (folder / "workflow" / "Snakefile").is_file():
            return folder
    raise ValueError(f"the workflow is not next to {package}; install mc2core from a wheel, or with -e from a checkout")


def _folder(options: argparse.Namespace) -> None:
    print(_checkout())


def _run(options: argparse.Namespace) -> NoReturn:
    import os

    from mc2core.base.extras import require

    require("snakemake", "workflow", "mc2papers run")
    command = ["--snakefile", str(_checkout() / "Snakefile"), "--cores", options.cores, *options.targets]
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *command])


def _compare(options: argparse.Namespace) -> None:
    from mc2papers.report import reference

    if options.record:
        reference.record(options.results, options.reference)
    if not options.reference.is_file():
        raise ValueError(f"{options.reference} is missing; --record writes it")
    fresh, known = reference.read_results(options.results), reference.read_record(options.reference)
    print(reference.describe(fresh, known))
    if "differs" in set(reference.compare(fresh, known)["agreement"]):
        raise SystemExit(1)


def _corpus(options: argparse.Namespace) -> None:
    import json

    from mc2core.base.progress import work
    from mc2papers.datasets.catalogue import prepare

    with work(f"making the corpus {options.dataset}"):
        about = prepare(
            options.dataset,
            options.out,
            source="real" if options.real else "simulated",
            seed=options.seed,
            test_size=options.test_size,
            settings={} if options.scale is None else {"scale": options.scale},
            files={"files": [options.real]} if options.real else {},
        )
    print(json.dumps(about, indent=2, sort_keys=True))


if __name__ == "__main__":
    sys.exit(main())
