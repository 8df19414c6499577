"""``mc2 sheet``: write a question sheet with which people check clusters, and score their answers."""

from __future__ import annotations

import argparse
from pathlib import Path

from mc2core.app.commands import add_fit, add_threads, say


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_fit(parser, "posterior")
    parser.add_argument("corpus", type=Path, nargs="?", help="folder of the fitted corpus (not needed for --score)")
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help="new folder for sheet.csv and sheet.html; the answers stay in FIT"
    )
    parser.add_argument(
        "--texts",
        metavar="COLUMN|FILE",
        help="show texts, from a column that the import kept or from the imported file (default: titles)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice of words and documents (default 0)")
    add_threads(parser)
    parser.add_argument(
        "--score",
        metavar="ANSWERS.csv",
        type=Path,
        nargs="+",
        help="print the share of right answers of each file (one person each) with its 90 %% interval, as CSV",
    )


def run(options: argparse.Namespace) -> None:
    """Write a question sheet, or score answers."""
    import pandas as pd

    from mc2core.corpus import Corpus
    from mc2core.explore.sheet import score_sheet, write_sheet

    if options.score:
        scores = [score_sheet(options.posterior, one).assign(answers=str(one)) for one in options.score]
        print(pd.concat(scores).to_csv(index=False, float_format="%.3g"), end="")
        return
    if options.corpus is None or options.out is None:
        raise ValueError("a question sheet needs the corpus and a folder: mc2 sheet FIT CORPUS --out FOLDER")
    n = write_sheet(
        options.posterior, Corpus.load(options.corpus), options.out, options.texts, options.seed, options.threads
    )
    message = f"{options.out}: {n} questions; send sheet.html (a form) or sheet.csv (a spreadsheet) to people"
    say(f"{message}\nnext: mc2 sheet {options.posterior} --score answers.csv")
