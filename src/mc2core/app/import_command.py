"""``mc2 import``: documents of your own as a saved corpus and its datasheet."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mc2core.sources.own.reading import LAYOUT, read_own

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2core.model import Model


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options; the form of the input is told by its name."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "Tables (.jsonl, .csv, .tsv, .parquet) have a document to a row. A bag is a list or an object of counts in\n"
        "JSON; in CSV, names with semicolons between: 'graph; tree'. Only counts read 'graph:2' as graph, twice.\n"
        "UCI: docword.NAME.txt[.gz] beside vocab.NAME.txt. AnnData (.h5ad): counts of X or of --layer; contexts are\n"
        "columns of obs. --like leaves out, and counts, the words and values that the earlier import does not have;\n"
        "--label, --id and --keep are its own where the file has them, unless they are given."
    )
    parser.add_argument("input", type=Path, help="table, docword.NAME.txt or .h5ad file")
    parser.add_argument(
        "--like",
        metavar="MODEL|CORPUS",
        type=Path,
        help="read as an earlier import was, with its words, contexts, kinds and units: what its model can score",
    )
    words = parser.add_mutually_exclusive_group()
    words.add_argument("--text", metavar="COLUMN", help="column of running text")
    words.add_argument("--bag", metavar="COLUMN", help="column of words, taken as they are")
    words.add_argument("--counts", metavar="COLUMN", help="column of words with counts: 'graph:2; tree'")
    parser.add_argument(
        "--context",
        dest="contexts",
        action="append",
        metavar="[NAME=]COLUMN:KIND",
        help="a column that is a context, of kind number, bag, counts or text; may be given again",
    )
    parser.add_argument("--label", metavar="COLUMN", help="true group of each document, for scores only")
    parser.add_argument("--id", metavar="COLUMN", help="a name that no two documents share")
    parser.add_argument(
        "--keep", metavar="COLUMN", action="append", help="keep a column, such as a title; again and again"
    )
    parser.add_argument(
        "--vocabulary", metavar="FILE", type=Path, help="the words, one to a line (default: those seen)"
    )
    parser.add_argument("--min-documents", type=int, metavar="N", help="drop words in fewer documents (default 1)")
    parser.add_argument("--max-words", type=int, metavar="N", help="keep only the N most frequent words")
    parser.add_argument("--min-letters", type=int, metavar="N", help="of a word in running text (default 3)")
    parser.add_argument("--layer", help="layer of an AnnData file that holds the counts (default: X)")
    parser.add_argument("--out", metavar="FOLDER", type=Path, required=True, help="for the corpus and datasheet.md")


def run(options: argparse.Namespace) -> None:
    """Read, check and save; the folder is written whole or not at all, and only a corpus is ever replaced.

    ValueError: an option the input has no use for, a folder that holds something else, or what the reader finds wrong.
    """
    from mc2core.base import storage
    from mc2core.corpus.files import CORPUS_FILES
    from mc2core.sources import datasheet

    storage.refuse_foreign(options.out, CORPUS_FILES)
    like = None if options.like is None else _load(options.like)
    corpus, dropped = read_own(options.input, {setting: getattr(options, setting) for setting in LAYOUT}, like)
    source = f"imported from {options.input.name}" + (f", like {options.like}" if like else "")
    with storage.replacing_folder(options.out, CORPUS_FILES) as new:
        corpus.save(new)
        datasheet.write(new / "datasheet.md", options.out.name, source, corpus, dropped)
    print((options.out / "datasheet.md").read_text(encoding="utf-8"), end="")


def _load(path: Path) -> Corpus | Model:
    from mc2core.corpus import Corpus
    from mc2core.model import Model

    if not path.exists():
        raise ValueError(f"--like {path} is missing; a model (.npz) or the folder of a corpus is needed")
    return Corpus.load(path) if path.is_dir() else Model.load(path)
