"""``mc2 import``: documents of your own become a saved corpus with its datasheet."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2core.sources.datasheet import Dropped
    from mc2core.sources.own import ContextColumn

_DOCWORD = re.compile(r"docword\..+\.txt(\.gz)?|.*\.txt(\.gz)?")
#: options that each form of input takes, besides those of all forms
_OPTIONS = {
    "a table": (
        "text",
        "bag",
        "context",
        "label",
        "id",
        "keep",
        "vocabulary",
        "min_documents",
        "max_words",
        "min_letters",
    ),
    "UCI bag-of-words": ("vocabulary",),
    "AnnData": ("context", "label", "layer"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options; the form of the input is told by its name."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "Tables (.jsonl, .csv, .tsv, .parquet) have a document to a row. A bag is a list or an object of counts in\n"
        "JSON; in CSV, names with semicolons between: 'graph:2; tree'. UCI: docword.NAME.txt[.gz] beside\n"
        "vocab.NAME.txt. AnnData (.h5ad): counts of X or of --layer; contexts are columns of obs."
    )
    parser.add_argument("input", type=Path, help="table, docword.NAME.txt or .h5ad file")
    words = parser.add_mutually_exclusive_group()
    words.add_argument("--text", metavar="COLUMN", help="column of running text")
    words.add_argument("--bag", metavar="COLUMN", help="column of words with counts, taken as they are")
    parser.add_argument(
        "--context",
        action="append",
        metavar="[NAME=]COLUMN:KIND",
        help="a column that is a context, of kind number, bag or text; may be given again",
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
    from mc2core import storage
    from mc2core.sources import datasheet

    if options.out.exists() and not (options.out / "corpus.json").is_file():
        raise ValueError(f"--out {options.out} exists and is no saved corpus; it will not be replaced")
    corpus, dropped = _read(options)
    with storage.replacing_folder(options.out) as new:
        corpus.save(new)
        datasheet.write(new / "datasheet.md", options.out.name, f"imported from {options.input.name}", corpus, dropped)
    print((options.out / "datasheet.md").read_text(encoding="utf-8"), end="")


def _read(options: argparse.Namespace) -> tuple[Corpus, list[Dropped]]:
    from mc2core.sources import annotated, own, uci
    from mc2core.sources.counts import VocabularyRule

    name = options.input.name.lower()
    form = "AnnData" if name.endswith(".h5ad") else "UCI bag-of-words" if _DOCWORD.fullmatch(name) else "a table"
    for option in {one for known in _OPTIONS.values() for one in known} - set(_OPTIONS[form]):
        if getattr(options, option) is not None:
            raise ValueError(f"--{option.replace('_', '-')} has no meaning for {options.input}, read as {form}")
    contexts = dict(_context(text) for text in options.context or [])
    if form == "AnnData":
        return annotated.read(options.input, contexts, options.label, options.layer), []
    if form == "UCI bag-of-words":
        return uci.read(options.input, options.vocabulary), []
    if options.text is None and options.bag is None:
        raise ValueError(f"{options.input}: give the column of the words by --text or --bag")
    rule = None
    if options.min_documents is not None or options.max_words is not None:
        rule = VocabularyRule(1 if options.min_documents is None else options.min_documents, options.max_words)
    layout = own.Layout(
        options.text or options.bag,
        "text" if options.text else "bag",
        contexts,
        label=options.label,
        id=options.id,
        keep=options.keep or (),
        min_letters=3 if options.min_letters is None else options.min_letters,
    )
    vocabulary = None if options.vocabulary is None else own.read_vocabulary(options.vocabulary)
    return own.read_table(options.input, layout, vocabulary, rule)


def _context(text: str) -> tuple[str, ContextColumn]:
    """``"year=Publication year:number"`` as (name, column and kind); the name is the column's where it is left out."""
    from mc2core.sources.own import ContextColumn

    column, colon, kind = text.rpartition(":")
    name, sign, rest = column.partition("=")
    if not (colon and column and name):
        raise ValueError(f"--context {text!r} must have the form COLUMN:KIND or NAME=COLUMN:KIND")
    return name, ContextColumn(rest if sign else column, kind)
