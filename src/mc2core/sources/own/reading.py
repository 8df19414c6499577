"""Documents of your own: a reader for every form of file, and what an earlier import says of a new one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc2core.base.checks import choice, whole

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2core.corpus.building.columns import ContextColumn, Rare
    from mc2core.corpus.building.counts import Dropped
    from mc2core.corpus.building.rows import BadRows
    from mc2core.corpus.building.tokens import Tokeniser
    from mc2core.sources.own.following import Followed, Pattern

_DOCWORD = re.compile(r".*\.txt(\.gz)?")
_TABLE, _UCI, _ANNDATA = "a table", "UCI bag-of-words", "AnnData"
_COLUMNS = (
    *("text", "bag", "counts", "contexts", "tokeniser", "stop_words", "min_letters", "ngrams"),
    *("separators", "date_format", "word_counts"),
)
_FACTS = ("labels", "id", "keep")
_WORDS = ("vocabulary", "min_documents", "max_share", "max_words", "rare")
TOKENISERS = ("unicode", "a-z")
#: settings that each form of input takes
_SETTINGS = {
    _TABLE: (*_COLUMNS, *_FACTS, *_WORDS, "skip_bad"),
    _UCI: ("vocabulary",),
    _ANNDATA: ("contexts", "labels", "layer", "date_format"),
}
#: all of them
LAYOUT = tuple(dict.fromkeys(setting for settings in _SETTINGS.values() for setting in settings))


def read_own(
    path: Path, settings: Mapping[str, Any], like: Followed | None = None, bad: BadRows | None = None
) -> tuple[Corpus, list[Dropped]]:
    """Read a file of any form, or a folder of text files; its name tells which.

    Parameters
    ----------
    settings : of LAYOUT; None and what is empty count as not given. ``contexts``: "[NAME=]COLUMN:KIND" each.
        ``tokeniser``: of TOKENISERS; ``stop_words``: a language, a file of words, or "none"; ``separators``:
        "[COLUMN=]SIGN" each; ``rare``: "NAME=N" or "NAME=N:pool" each; ``word_counts``: "raw", "presence" or "log";
        ``skip_bad``: so many bad rows of a table are left out.
    like : read the documents as those of this corpus, or those this model was fitted on, were: in its words and the
        columns, kinds and units of its contexts (a model's: those it was fitted with). Where it comes from a file of
        the same form, the file's columns are known too, and only ``labels``, ``id`` and ``keep`` may be given; they are
        the earlier ones otherwise, as far as the file has them. Where it does not, columns are given as ever. A
        context that the file lacks is missing in every document.
    bad : takes up the bad rows of a table.

    Returns
    -------
    corpus : documents in the order of the file; its ``imported`` says how they were read.
    dropped : what was left out and why, unknown words and values among it.

    Raises
    ------
    ValueError
        A setting that the form has no use for or that ``like`` has decided, what the reader finds wrong, or documents
        without any word of ``like``.
    """
    from mc2core.corpus.building.columns import CONTENT_KINDS
    from mc2core.corpus.building.rows import BadRows
    from mc2core.sources.own import following

    name = "" if path.is_dir() else path.name.lower()
    form = _ANNDATA if name.endswith(".h5ad") else _UCI if _DOCWORD.fullmatch(name) else _TABLE
    given = {setting: value for setting, value in settings.items() if value not in (None, "", [])}
    for setting in given:
        if setting not in _SETTINGS[form]:
            raise ValueError(f"{setting!r} has no meaning for {path}, read as {form}")
    if "stop_words" in given:
        given["stop_words"] = _stop_words(given["stop_words"])
    pattern = None if like is None else following.pattern_of(like)
    earlier = {} if pattern is None else _earlier(pattern, form, given)
    used: dict[str, Any] = ({"tokeniser": "unicode"} if form == _TABLE else {}) | earlier | given
    if path.is_dir() and not any(kind in used for kind in CONTENT_KINDS):
        used["text"] = "text"
    bad = BadRows() if bad is None else bad
    bad.allowed, bad.can_allow = whole("skip_bad", given.get("skip_bad", 0), least=0), True
    corpus, dropped = _read(path, form, used, _columns(earlier) - _columns(given), bad)
    stored = {setting: value for setting, value in used.items() if setting not in (*_WORDS, "skip_bad")}
    stored |= {setting: list(stored[setting]) for setting in ("contexts", "keep", "separators") if setting in stored}
    corpus.imported = {"form": form, "settings": stored}
    if pattern is None:
        return corpus, dropped
    lacking = _lacking(corpus, earlier)
    corpus, unknown = following.conform(corpus, pattern)
    return corpus, [*dropped, *unknown, *lacking]


def _read(
    path: Path, form: str, settings: Mapping[str, Any], optional: set[str], bad: BadRows
) -> tuple[Corpus, list[Dropped]]:
    """The file as it is; ``optional`` columns may be absent."""
    from mc2core.corpus.building.columns import CONTENT_KINDS, Layout
    from mc2core.corpus.building.counts import VocabularyRule
    from mc2core.sources.own import annotated, table, uci

    contexts = _contexts(settings.get("contexts", ()))
    if form == _ANNDATA:
        labels, layer, date_format = map(settings.get, ("labels", "layer", "date_format"))
        arguments = path, contexts, labels, layer, sorted(optional), date_format
        annotated.rehearse(*arguments)
        return annotated.read(*arguments), []
    if form == _UCI:
        return uci.read(path, settings.get("vocabulary")), []
    content = [kind for kind in CONTENT_KINDS if kind in settings]
    if len(content) != 1:
        raise ValueError(f"{path}: give the column of the words, either as 'text' or as 'bag' or 'counts'")
    rule = None
    limits = {name: settings[name] for name in ("min_documents", "max_words", "max_share") if name in settings}
    if limits:
        rule = VocabularyRule(**limits)
    layout = Layout(
        settings[content[0]],
        content[0],
        contexts,
        labels=settings.get("labels"),
        id=settings.get("id"),
        keep=settings.get("keep", ()),
        tokeniser=_tokeniser(settings),
        optional=optional,
        separators=dict(map(_separator, settings.get("separators", ()))),
        date_format=settings.get("date_format"),
        rare=dict(map(_rare, settings.get("rare", ()))),
        word_counts=settings.get("word_counts", "raw"),
    )
    vocabulary = table.read_vocabulary(settings["vocabulary"]) if "vocabulary" in settings else None
    return table.read_table(path, layout, vocabulary, rule, bad)


def _tokeniser(settings: Mapping[str, Any]) -> Tokeniser:
    """The tokeniser of running text."""
    from mc2core.corpus.building.tokens import Tokeniser
    from mc2core.sources.text import words

    name = choice("tokeniser", settings["tokeniser"], TOKENISERS)
    wanted: Any = settings.get("stop_words", "english")
    wanted = None if wanted == "none" else wanted
    if name == "unicode":
        return Tokeniser(stop_words=wanted, min_letters=settings.get("min_letters"), ngrams=settings.get("ngrams", 1))
    return Tokeniser(
        partial(words.words_of, min_letters=1, stop_words=words.STOP_WORDS if wanted == "english" else ()),
        stop_words=None if wanted == "english" else wanted,
        min_letters=settings.get("min_letters", 3),
        ngrams=settings.get("ngrams", 1),
    )


def _stop_words(wanted: str) -> str | list[str]:
    """A language or "none" as it is, a file as its words."""
    from mc2core.sources.own import table

    is_file = isinstance(wanted, str) and (Path(wanted).suffix or os.sep in wanted)
    return table.read_vocabulary(wanted) if is_file else wanted


def notes_of(corpus: Corpus) -> list[str]:
    """How words were made of the documents, for a datasheet."""
    from mc2core.corpus.building.tokens import has_pairs

    settings = (corpus.imported or {}).get("settings", {})
    notes = []
    if "text" in settings:
        rule = {
            "unicode": "letters, marks and digits of any script, lower case, an apostrophe inside kept",
            "a-z": "letters a-z, lower case, accents dropped",
        }[settings["tokeniser"]]
        stop_words = settings.get("stop_words", "english")
        left_out = "a list of its own" if isinstance(stop_words, list) else stop_words
        notes.append(f"words are runs of {rule}; stop words: {left_out}")
    if "text" in settings and settings["tokeniser"] == "unicode" and has_pairs(corpus.vocabulary):
        notes.append(
            "scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are counted as overlapping pairs of "
            "characters, not as words"
        )
    if settings.get("word_counts", "raw") != "raw":
        times = {"presence": "once", "log": "1 + floor(log2 n) times, n being how often it is there"}
        notes.append(f"each word of a document is counted {times[settings['word_counts']]}")
    return notes


def _separator(text: str) -> tuple[str, str]:
    """``"tags=,"`` as (column, sign); the column is "", all of them, where it is left out."""
    column, sign, separator = text.rpartition("=")
    return (column, separator) if sign and column and separator else ("", text)


def _rare(text: str) -> tuple[str, Rare]:
    """``"author=2:pool"`` as (context, what becomes of its rare values)."""
    from mc2core.corpus.building.columns import Rare

    name, _, rest = text.partition("=")
    number, colon, pool = rest.partition(":")
    if not (name and number.isdecimal() and int(number) > 0 and pool == ("pool" if colon else "")):
        raise ValueError(f"rare {text!r} must have the form CONTEXT=N or CONTEXT=N:pool, N at least 1")
    return name, Rare(int(number), bool(colon))


def _earlier(pattern: Pattern, form: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What ``pattern`` says of the columns of a file of this form; ValueError where ``given`` says it as well."""
    is_known = pattern.form == form
    if is_known and form == _TABLE:
        # imports from before there were others knew the letters a-z only
        pattern = replace(pattern, settings={"tokeniser": "a-z", **pattern.settings})
    for setting in given:
        if form != _UCI and (setting in _WORDS or (is_known and setting not in (*_FACTS, "skip_bad"))):
            raise ValueError(f"{setting!r} cannot be given: {pattern.what} that is followed has decided it")
    if not is_known:
        return {}
    earlier = {setting: value for setting, value in pattern.settings.items() if setting not in given}
    contexts = [text for text in earlier.get("contexts", ()) if parse_context(text)[0] in pattern.columns]
    return earlier | {"contexts": contexts}


def _lacking(corpus: Corpus, earlier: Mapping[str, Any]) -> list[Dropped]:
    """Columns that an earlier import kept beside the documents and that ``corpus`` was made without."""
    from mc2core.corpus.building.counts import Dropped

    kept = [column for column in (earlier.get("id"), *earlier.get("keep", ())) if column]
    lacking = [Dropped("columns", 1, f"{name!r}, not in the file") for name in kept if name not in corpus.documents]
    if "labels" in earlier and corpus.labels is None:
        lacking.append(
            Dropped("columns", 1, f"the labels {earlier['labels']!r}, not in the file or not in every document")
        )
    return lacking


def _columns(settings: Mapping[str, Any]) -> set[str]:
    """Columns of contexts, labels, id and kept ones."""
    columns = {parse_context(text)[1].column for text in settings.get("contexts", ())}
    return columns | {settings[name] for name in ("labels", "id") if name in settings} | set(settings.get("keep", ()))


def _contexts(texts: Sequence[str]) -> dict[str, ContextColumn]:
    contexts: dict[str, ContextColumn] = {}
    for name, column in map(parse_context, texts):
        if name in contexts:
            raise ValueError(f"context {name!r} is given twice")
        contexts[name] = column
    return contexts


def parse_context(text: str) -> tuple[str, ContextColumn]:
    """``"year=Publication year:number"`` as (name, column and kind); the name is the column's where it is left out."""
    from mc2core.corpus.building.columns import ContextColumn

    column, colon, kind = text.rpartition(":")
    name, sign, rest = column.partition("=")
    if not (colon and column and name):
        raise ValueError(f"context {text!r} must have the form COLUMN:KIND or NAME=COLUMN:KIND")
    return name, ContextColumn(rest if sign else column, kind)
