"""Documents of your own: a reader for every form of file, and what an earlier import says of a new one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2core.sources.datasheet import Dropped
    from mc2core.sources.own.following import Followed, Pattern
    from mc2core.sources.own.table import ContextColumn

_DOCWORD = re.compile(r"docword\..+\.txt(\.gz)?|.*\.txt(\.gz)?")
_TABLE, _UCI, _ANNDATA = "a table", "UCI bag-of-words", "AnnData"
_COLUMNS = ("text", "bag", "counts", "contexts", "min_letters")
_FACTS = ("label", "id", "keep")
_WORDS = ("vocabulary", "min_documents", "max_words")
#: settings that each form of input takes
_SETTINGS = {
    _TABLE: (*_COLUMNS, *_FACTS, *_WORDS),
    _UCI: ("vocabulary",),
    _ANNDATA: ("contexts", "label", "layer"),
}
#: all of them
LAYOUT = tuple(dict.fromkeys(setting for settings in _SETTINGS.values() for setting in settings))


def read_own(path: Path, settings: Mapping[str, Any], like: Followed | None = None) -> tuple[Corpus, list[Dropped]]:
    """Read a file of any form; its name tells which.

    Parameters
    ----------
    settings : of LAYOUT; None and what is empty count as not given. ``contexts``: "[NAME=]COLUMN:KIND" each.
    like : read the documents as those of this corpus, or those this model was fitted on, were: in its words and the
        columns, kinds and units of its contexts (a model's: those it was fitted with). Where it comes from a file of
        the same form, the file's columns are known too, and only ``label``, ``id`` and ``keep`` may be given; they are
        the earlier ones otherwise, as far as the file has them. Where it does not, columns are given as ever. A
        context that the file lacks is missing in every document.

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
    from mc2core.sources.own import following

    name = path.name.lower()
    form = _ANNDATA if name.endswith(".h5ad") else _UCI if _DOCWORD.fullmatch(name) else _TABLE
    given = {setting: value for setting, value in settings.items() if value not in (None, "", [])}
    for setting in given:
        if setting not in _SETTINGS[form]:
            raise ValueError(f"{setting!r} has no meaning for {path}, read as {form}")
    pattern = None if like is None else following.pattern_of(like)
    earlier = {} if pattern is None else _earlier(pattern, form, given)
    used: dict[str, Any] = ({"min_letters": 3} if form == _TABLE else {}) | earlier | given
    corpus, dropped = _read(path, form, used, _columns(earlier) - _columns(given))
    stored = {setting: value for setting, value in used.items() if setting not in _WORDS}
    stored |= {setting: list(stored[setting]) for setting in ("contexts", "keep") if setting in stored}
    corpus.imported = {"form": form, "settings": stored}
    if pattern is None:
        return corpus, dropped
    lacking = _lacking(corpus, earlier)
    corpus, unknown = following.conform(corpus, pattern)
    return corpus, [*dropped, *unknown, *lacking]


def _read(path: Path, form: str, settings: Mapping[str, Any], optional: set[str]) -> tuple[Corpus, list[Dropped]]:
    """The file as it is; ``optional`` columns may be absent."""
    from mc2core.sources.own import annotated, table, uci
    from mc2core.sources.text.counts import VocabularyRule

    contexts = _contexts(settings.get("contexts", ()))
    if form == _ANNDATA:
        arguments = path, contexts, settings.get("label"), settings.get("layer"), sorted(optional)
        annotated.rehearse(*arguments)
        return annotated.read(*arguments), []
    if form == _UCI:
        return uci.read(path, settings.get("vocabulary")), []
    content = [kind for kind in table.CONTENT_KINDS if kind in settings]
    if len(content) != 1:
        raise ValueError(f"{path}: give the column of the words, either as 'text' or as 'bag' or 'counts'")
    rule = None
    if "min_documents" in settings or "max_words" in settings:
        rule = VocabularyRule(settings.get("min_documents", 1), settings.get("max_words"))
    layout = table.Layout(
        settings[content[0]],
        content[0],
        contexts,
        label=settings.get("label"),
        id=settings.get("id"),
        keep=settings.get("keep", ()),
        min_letters=settings["min_letters"],
        optional=optional,
    )
    vocabulary = table.read_vocabulary(settings["vocabulary"]) if "vocabulary" in settings else None
    return table.read_table(path, layout, vocabulary, rule)


def _earlier(pattern: Pattern, form: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What ``pattern`` says of the columns of a file of this form; ValueError where ``given`` says it as well."""
    is_known = pattern.form == form
    for setting in given:
        if form != _UCI and (setting in _WORDS or (is_known and setting not in _FACTS)):
            raise ValueError(f"{setting!r} cannot be given: {pattern.what} that is followed has decided it")
    if not is_known:
        return {}
    earlier = {setting: value for setting, value in pattern.settings.items() if setting not in given}
    contexts = [text for text in earlier.get("contexts", ()) if parse_context(text)[0] in pattern.columns]
    return earlier | {"contexts": contexts}


def _lacking(corpus: Corpus, earlier: Mapping[str, Any]) -> list[Dropped]:
    """Columns that an earlier import kept beside the documents and that ``corpus`` was made without."""
    from mc2core.sources.datasheet import Dropped

    kept = [column for column in (earlier.get("id"), *earlier.get("keep", ())) if column]
    lacking = [Dropped("columns", 1, f"{name!r}, not in the file") for name in kept if name not in corpus.documents]
    if "label" in earlier and corpus.labels is None:
        lacking.append(
            Dropped("columns", 1, f"the label {earlier['label']!r}, not in the file or not in every document")
        )
    return lacking


def _columns(settings: Mapping[str, Any]) -> set[str]:
    """Columns of contexts, label, id and kept ones."""
    columns = {parse_context(text)[1].column for text in settings.get("contexts", ())}
    return columns | {settings[name] for name in ("label", "id") if name in settings} | set(settings.get("keep", ()))


def _contexts(texts: Sequence[str]) -> dict[str, ContextColumn]:
    contexts: dict[str, ContextColumn] = {}
    for name, column in map(parse_context, texts):
        if name in contexts:
            raise ValueError(f"context {name!r} is given twice")
        contexts[name] = column
    return contexts


def parse_context(text: str) -> tuple[str, ContextColumn]:
    """``"year=Publication year:number"`` as (name, column and kind); the name is the column's where it is left out."""
    from mc2core.sources.own.table import ContextColumn

    column, colon, kind = text.rpartition(":")
    name, sign, rest = column.partition("=")
    if not (colon and column and name):
        raise ValueError(f"context {text!r} must have the form COLUMN:KIND or NAME=COLUMN:KIND")
    return name, ContextColumn(rest if sign else column, kind)
