"""Documents of your own: a reader for every form of file, and ``mc2 import``, which saves a corpus and its sheet."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2core.sources.datasheet import Dropped
    from mc2core.sources.own import ContextColumn

_DOCWORD = re.compile(r"docword\..+\.txt(\.gz)?|.*\.txt(\.gz)?")
#: settings that each form of input takes
_SETTINGS = {
    "a table": (
        "text",
        "bag",
        "counts",
        "contexts",
        "label",
        "id",
        "keep",
        "vocabulary",
        "min_documents",
        "max_words",
        "min_letters",
    ),
    "UCI bag-of-words": ("vocabulary",),
    "AnnData": ("contexts", "label", "layer"),
}
#: all of them
LAYOUT = tuple(dict.fromkeys(setting for settings in _SETTINGS.values() for setting in settings))


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options; the form of the input is told by its name."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "Tables (.jsonl, .csv, .tsv, .parquet) have a document to a row. A bag is a list or an object of counts in\n"
        "JSON; in CSV, names with semicolons between: 'graph; tree'. Only counts read 'graph:2' as graph, twice.\n"
        "UCI: docword.NAME.txt[.gz] beside vocab.NAME.txt. AnnData (.h5ad): counts of X or of --layer; contexts are\n"
        "columns of obs."
    )
    parser.add_argument("input", type=Path, help="table, docword.NAME.txt or .h5ad file")
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
    from mc2core import storage
    from mc2core.sources import datasheet

    if options.out.exists() and not (options.out / "corpus.json").is_file():
        raise ValueError(f"--out {options.out} exists and is no saved corpus; it will not be replaced")
    corpus, dropped = read_own(options.input, {setting: getattr(options, setting) for setting in LAYOUT})
    with storage.replacing_folder(options.out) as new:
        corpus.save(new)
        datasheet.write(new / "datasheet.md", options.out.name, f"imported from {options.input.name}", corpus, dropped)
    print((options.out / "datasheet.md").read_text(encoding="utf-8"), end="")


def read_own(path: Path, settings: Mapping[str, Any]) -> tuple[Corpus, list[Dropped]]:
    """Read a file of any form; its name tells which.

    Parameters
    ----------
    settings : of LAYOUT; None and what is empty count as not given. ``contexts``: "[NAME=]COLUMN:KIND" each.

    ValueError: a setting the form has no use for, or what the reader finds wrong.
    """
    from mc2core.sources import annotated, own, uci
    from mc2core.sources.counts import VocabularyRule

    name = path.name.lower()
    form = "AnnData" if name.endswith(".h5ad") else "UCI bag-of-words" if _DOCWORD.fullmatch(name) else "a table"
    given = {setting: value for setting, value in settings.items() if value not in (None, "", [])}
    for setting in given:
        if setting not in _SETTINGS[form]:
            raise ValueError(f"{setting!r} has no meaning for {path}, read as {form}")
    contexts = _contexts(given.get("contexts", ()))
    if form == "AnnData":
        annotated.rehearse(path, contexts, given.get("label"), given.get("layer"))
        return annotated.read(path, contexts, given.get("label"), given.get("layer")), []
    if form == "UCI bag-of-words":
        return uci.read(path, given.get("vocabulary")), []
    content = [kind for kind in own.CONTENT_KINDS if kind in given]
    if len(content) != 1:
        raise ValueError(f"{path}: give the column of the words, either as 'text' or as 'bag' or 'counts'")
    rule = None
    if "min_documents" in given or "max_words" in given:
        rule = VocabularyRule(given.get("min_documents", 1), given.get("max_words"))
    layout = own.Layout(
        given[content[0]],
        content[0],
        contexts,
        label=given.get("label"),
        id=given.get("id"),
        keep=given.get("keep", ()),
        min_letters=given.get("min_letters", 3),
    )
    vocabulary = own.read_vocabulary(given["vocabulary"]) if "vocabulary" in given else None
    return own.read_table(path, layout, vocabulary, rule)


def _contexts(texts: Sequence[str]) -> dict[str, ContextColumn]:
    contexts: dict[str, ContextColumn] = {}
    for name, column in map(_context, texts):
        if name in contexts:
            raise ValueError(f"context {name!r} is given twice")
        contexts[name] = column
    return contexts


def _context(text: str) -> tuple[str, ContextColumn]:
    """``"year=Publication year:number"`` as (name, column and kind); the name is the column's where it is left out."""
    from mc2core.sources.own import ContextColumn

    column, colon, kind = text.rpartition(":")
    name, sign, rest = column.partition("=")
    if not (colon and column and name):
        raise ValueError(f"context {text!r} must have the form COLUMN:KIND or NAME=COLUMN:KIND")
    return name, ContextColumn(rest if sign else column, kind)
