"""``mc2 import``: convert documents to a saved corpus with a datasheet."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc2core.app.commands import add_embeddings, add_words

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2core.posterior import Posterior


_FORMS = """\
input:
  tables (.jsonl, .csv, .tsv, .parquet, .xlsx, or with .gz): one document per row
  a folder: one document per .txt file, with the columns text, file and folder
  bibliographies: RIS (.ris), BibTeX (.bib), PubMed (.xml, .nbib), Web of Science (savedrecs.txt), OpenAlex (.jsonl),
  and CSV with a title, authors and an abstract, as from Scopus. They need no further options: the text is title and
  abstract; contexts are year, author, journal, keyword, mesh and reference; duplicates are left out. Values of
  author, keyword and reference in one document only are left out (--rare author=1 keeps them)
  UCI bag of words: docword.NAME.txt[.gz], with vocab.NAME.txt in the same folder

columns:
  A bag is a list or an object of counts in JSON. In CSV it is names separated by semicolons or the --separator:
  'graph; tree'. Only --counts reads 'graph:2' as twice graph.
  Words of running text are runs of letters, marks and digits of any script. Languages without spaces (Chinese,
  Japanese, Thai) become pairs of characters; for real words, cut the text yourself and import a bag.
  Observations are numbers instead of words, one observation per row (--document, --observations). All other columns
  must be equal in all rows of a document.

--like uses the columns of the earlier import. Words and values that it does not know are left out and counted.
--context NAME=COLUMN gives a context another column.

examples:
  mc2 import export.ris --min-df 2 --out corpus
  mc2 import papers.csv --text abstract --context year:number --context author=authors:bag --out corpus"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _FORMS
    parser.add_argument("input", type=Path, help="table, bibliography, folder of .txt files, or docword.NAME.txt")
    parser.add_argument(
        "--like",
        metavar="FIT|CORPUS",
        type=Path,
        help="read documents with the words, contexts and units of a fit or an earlier import, so that the fit can "
        "score them",
    )
    parser.add_argument(
        "--append",
        action="store_true",
        help="add the documents to the corpus in --out, read in the same way; an input that was added before is not "
        "added again",
    )
    parser.add_argument(
        "--new-columns",
        metavar="N",
        type=int,
        help="add columns for new words and context values that occur in at least N of the documents (default: 1 with "
        "--append; with --like they are left out)",
    )
    add_words(parser, "column")
    parser.add_argument(
        "--document", metavar="COLUMN", help="column that identifies the document (one observation per row)"
    )
    parser.add_argument(
        "--observations",
        metavar="COLUMN,...",
        help="columns with the numbers of an observation, in place of words",
    )
    parser.add_argument(
        "--kind",
        choices=("numbers", "counts", "binary"),
        help="kind of observations: numbers in any unit, counts, or binary (zeros and ones) (default: numbers)",
    )
    parser.add_argument(
        "--context",
        dest="contexts",
        action="append",
        metavar="[NAME=]COLUMN:KIND",
        help="column to import as a context; KIND is number, date, bag, counts or text. NAME=FILE.npy:vector reads a "
        "matrix with one row per document; may be repeated",
    )
    _add_documents(parser)
    _add_words(parser)
    _add_values(parser)
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, required=True, help="folder for the corpus and datasheet.md"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the corpus in --out")


def _add_documents(parser: argparse.ArgumentParser) -> None:
    """Add the options for embeddings, labels, ids and kept columns."""
    add_embeddings(parser)
    parser.add_argument(
        "--embed",
        metavar="MODEL",
        type=Path,
        help="folder of a sentence-transformers model that makes the embeddings of --text; nothing is downloaded",
    )
    parser.add_argument(
        "--labels", metavar="COLUMN", help="column with the true class of each document, for scores only"
    )
    parser.add_argument("--id", metavar="COLUMN", help="column with a unique name per document")
    parser.add_argument(
        "--keep",
        metavar="COLUMN",
        action="append",
        help="column to show in tables and reports, such as a title; may be repeated",
    )


def _add_words(parser: argparse.ArgumentParser) -> None:
    """Add the options for the selection and counting of words."""
    parser.add_argument(
        "--vocabulary",
        metavar="FILE",
        type=Path,
        help="file with the words to count, one per line (default: all words)",
    )
    parser.add_argument(
        "--min-df", type=int, metavar="N", help="drop words that occur in fewer than N documents (default 1)"
    )
    parser.add_argument(
        "--max-df", type=float, metavar="SHARE", help="drop words that occur in more than this share of the documents"
    )
    parser.add_argument("--max-features", type=int, metavar="N", help="keep only the N most frequent words")
    parser.add_argument(
        "--stop-words", metavar="LANGUAGE|FILE|none", help="stop words to remove from running text (default: english)"
    )
    parser.add_argument(
        "--min-letters",
        type=int,
        metavar="N",
        help="drop words with fewer than N letters from running text (default 2)",
    )
    parser.add_argument("--max-ngram", type=int, metavar="N", help="also count sequences of up to N words (default 1)")
    parser.add_argument(
        "--tokeniser",
        choices=("unicode", "a-z"),
        help="a-z: words without accents, as in the papers (default: unicode)",
    )
    parser.add_argument(
        "--word-counts",
        choices=("raw", "presence", "log"),
        help="count a word that occurs n times n times (raw, the default), once (presence), or 1 + floor(log2 n) "
        "times (log)",
    )


def _add_values(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading cells and rows."""
    parser.add_argument(
        "--separator",
        dest="separators",
        action="append",
        metavar="[COLUMN=]SIGN",
        help="character between names in a cell of kind bag (default: semicolon), or 'none' if each cell has one name; "
        "may be repeated",
    )
    parser.add_argument(
        "--rare",
        action="append",
        metavar="CONTEXT=N[:pool]",
        help="drop context values that occur in fewer than N documents; with :pool count them as '(rare)'; may be "
        "repeated",
    )
    parser.add_argument(
        "--missing",
        action="extend",
        type=lambda codes: codes.split(","),
        metavar="CODE,...",
        help="further codes of missing values, such as unknown,-99; may be repeated. "
        "Default: empty cells and the codes of pandas (NA, N/A, NaN, null, None, ...). "
        "Include 'none' to turn off the pandas codes.",
    )
    parser.add_argument(
        "--date-format", metavar="FORMAT", help="format of dates that are not ISO 8601, such as %%d.%%m.%%Y"
    )
    parser.add_argument(
        "--skip-bad",
        type=int,
        metavar="N",
        help="leave out up to N bad rows and list them in bad_rows.tsv (default: stop)",
    )


def run(options: argparse.Namespace) -> None:
    """Read documents, and save the corpus and its datasheet.

    The folder is replaced only when the new folder is complete. An existing corpus is replaced only with --overwrite or
    --append. Raises ValueError if an option does not apply to the input, if the folder contains other files than a
    corpus, or if the input is damaged.
    """
    from mc2core.base import storage
    from mc2core.corpus.files import CORPUS_FILES, META

    storage.refuse_foreign(options.out, CORPUS_FILES, META)
    if options.input.resolve().is_relative_to(options.out.resolve()):
        raise ValueError(f"{options.input} is in --out {options.out}, which is replaced; name another folder")
    if options.append and options.overwrite:
        raise ValueError("--append and --overwrite exclude each other; give one of them")
    if options.append and options.like:
        raise ValueError("--append reads documents like those in --out, so --like cannot be given")
    if options.embed is not None and options.embeddings is not None:
        raise ValueError("--embed makes the embeddings and --embeddings gives them; give one of them")
    if options.embed is not None and (options.bag or options.counts or options.document):
        raise ValueError("--embed needs running text (--text), or a folder of texts")
    if options.new_columns is not None and not (options.append or options.like):
        raise ValueError("--new-columns needs --append or --like")
    with storage.exclusive_lock(options.out, "another import"):  # what it finds there stays until this one ends
        if not (options.append or options.overwrite) and (options.out / META).exists():
            raise ValueError(
                f"--out {options.out} holds a corpus{_size(options.out)}; --overwrite replaces it, --append adds to it"
            )
        if options.append and _is_there(options):
            return
        _import(options)


def _import(options: argparse.Namespace) -> None:
    """Read the documents, save the corpus, and print the datasheet."""
    from mc2core.base import storage
    from mc2core.base.checks import counted
    from mc2core.base.progress import work
    from mc2core.corpus import Corpus, datasheet
    from mc2core.corpus.alignment import new_to
    from mc2core.corpus.building.counts import Dropped
    from mc2core.corpus.building.encoder import encode
    from mc2core.corpus.building.rows import BadRows
    from mc2core.corpus.embeddings import projection_of
    from mc2core.corpus.files import CORPUS_FILES, META
    from mc2core.corpus.readers.reading import BIBLIOGRAPHY, LAYOUT, notes_of, read_own
    from mc2core.corpus.subsets import has_known_id
    from mc2core.explore.texts import texts_of

    like = Corpus.load(options.out) if options.append else None if options.like is None else _load(options.like)
    new_columns = 1 if options.append and options.new_columns is None else options.new_columns
    settings, bad = {setting: getattr(options, setting) for setting in LAYOUT}, BadRows()
    if options.embed is not None:
        settings["embeddings"] = lambda corpus: encode(texts_of(corpus, options.input), options.embed)
    with work(f"reading {options.input}"):
        corpus, dropped = read_own(options.input, settings, like, bad, new_columns)
    if options.append and BIBLIOGRAPHY in (corpus.imported or {}):
        assert isinstance(like, Corpus)
        is_known = has_known_id(like, corpus)
        if is_known.all():
            print(f"the documents of {options.input} are in {options.out} already; nothing to do")
            return
        corpus = corpus.subset(~is_known)
        dropped = [*dropped, Dropped("documents", int(is_known.sum()), "the corpus has their ids already")]
    corpus.imported = {**(corpus.imported or {}), "digest": storage.digest_path(options.input)}
    missing = [name for name in corpus.contexts if like and corpus.missing(name).all()]
    new = [] if like is None or new_columns is None else new_to(like, corpus).messages()
    source = f"imported from {options.input.name}" + (f", like {options.like}" if options.like else "")
    if options.append:
        new = [f"{counted(corpus.n_documents, 'documents')}: {options.input.name}", *new]
        assert isinstance(like, Corpus)
        corpus, source = _append_corpus(like, corpus, options.input)
    with work("writing the corpus"), storage.replacing_folder(options.out, CORPUS_FILES, META) as folder:
        corpus.save(folder)
        facts = options.out.name, source, corpus, dropped
        datasheet.write(folder / "datasheet.md", *facts, notes=notes_of(corpus), new=new)
        if bad.number:
            bad.write(folder / "bad_rows.tsv")
    projection = projection_of(corpus.imported)
    for name in missing:
        remedy = f"give its column with --context {name}=COLUMN"
        if name in corpus.vector_lengths:
            remedy = f"give its file with --context {name}=FILE.npy:vector"
        if projection is not None and name == projection.name:
            remedy = "give its vectors with --embeddings FILE.npy"
        print(f"mc2: context {name!r} is missing in every document; {remedy}", file=sys.stderr)
    print((options.out / "datasheet.md").read_text(encoding="utf-8"), end="")


def _is_there(options: argparse.Namespace) -> bool:
    """Return whether the input was already imported or appended, and print a message if so.

    Raises ValueError if there is no corpus.
    """
    from mc2core.base import storage
    from mc2core.corpus import Corpus
    from mc2core.corpus.alignment import files_of

    if options.out.parent.is_dir():
        storage.remove_leftovers(options.out)  # of a killed import, which may have just moved the corpus away
    if not (options.out / "corpus.json").is_file():
        raise ValueError(f"--append: there is no corpus in {options.out} yet; import the first documents without it")
    if storage.digest_path(options.input) in files_of(Corpus.load(options.out).imported):
        print(f"the documents of {options.input} are in {options.out} already; nothing to do")
        return True
    return False


def _append_corpus(before: Corpus, new: Corpus, path: Path) -> tuple[Corpus, str]:
    """Return both corpora as one corpus, which records the appended file, and a phrase on its source.

    Raises ValueError if a document of each corpus has the same id.
    """
    from mc2core.base import storage
    from mc2core.corpus import Corpus

    imported: dict[str, Any] = before.imported or {"form": "", "settings": {}}
    column = imported["settings"].get("id")
    ids = [set(one.documents[column].astype(str)) if column in one.documents else set() for one in (before, new)]
    if twice := sorted(ids[0] & ids[1]):
        raise ValueError(f"{path}: {column!r} {twice[0]!r} is the id of a document that is in the corpus already")
    corpus = Corpus.concatenate([before, new])
    entry = {"file": path.name, "digest": storage.digest_path(path), "documents": new.n_documents}
    parts = [*imported.get("appended", ()), entry]
    corpus.imported = imported | {"appended": parts}
    return corpus, f"imported, then appended: {', '.join(part['file'] for part in parts)}"


def _size(folder: Path) -> str:
    """Return a phrase on the size of a corpus, such as " of 260 documents"; "" if the corpus is damaged."""
    from mc2core.base.checks import counted
    from mc2core.corpus.files import read_meta

    try:
        return f" of {counted(read_meta(folder)['shape'][0], 'documents')}"
    except (OSError, ValueError):
        return ""


def _load(path: Path) -> Corpus | Posterior:
    from mc2core.corpus import Corpus
    from mc2core.posterior import Posterior
    from mc2core.posterior.posterior import posterior_file

    if not path.exists():
        raise ValueError(f"--like {path} is missing; give a fit or the folder of a corpus")
    return Posterior.load(path) if posterior_file(path).is_file() else Corpus.load(path)
