"""Settings of an import, in the form used by the command line, configurations and saved corpora, and their layout."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from mc2core.base.checks import choice, once
from mc2core.corpus.building import letters
from mc2core.corpus.building.cells import MISSING, Missing
from mc2core.corpus.building.columns import CONTENT_KINDS, SEPARATOR, ContextColumn, Layout, Rare
from mc2core.corpus.building.counts import VocabularyRule
from mc2core.corpus.building.tokens import MIN_LETTERS, Tokenise, Tokeniser

#: forms of input with one document per row, text or entry
TABLE, UCI, TEXTS = "a table", "UCI bag-of-words", "texts"
#: form of input with one observation per row
OBSERVATIONS = "a table of observations"
#: name of the tokeniser if words were extracted by a user's function, which a file cannot store
FUNCTION = "function"
#: settings by which text is split into words
TOKENS = ("tokeniser", "stop_words", "min_letters", "max_ngram")
#: settings by which text is split into words and words are counted
WORDS = (*TOKENS, "word_counts")
#: settings that select words and values
CHOSEN = ("vocabulary", "min_df", "max_df", "max_features", "rare")
#: setting for no stop words, or for no separator
NONE = "none"
_FEWEST_LETTERS = {"unicode": MIN_LETTERS, "a-z": 3, FUNCTION: 1}
_LISTS = ("contexts", "keep", "separators", "observations", "missing")


def complete(settings: Mapping[str, Any], separator: str = SEPARATOR) -> dict[str, Any]:
    """Return the settings completed by defaults; ``separator`` is the default separator of names in bags."""
    full = {"word_counts": "raw"} | dict(settings)
    separators = list(full.get("separators", ()))
    if not any(parse_separator(text)[0] == "" for text in separators):
        separators = [separator, *separators]
    return full | tokens_of(full) | {"separators": separators}


def tokens_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings TOKENS by name, with defaults for settings that are not given."""
    tokeniser = choice("tokeniser", settings.get("tokeniser", "unicode"), _FEWEST_LETTERS)
    default = {
        "tokeniser": tokeniser,
        "stop_words": NONE if tokeniser == FUNCTION else "english",
        "min_letters": _FEWEST_LETTERS[tokeniser],
        "max_ngram": 1,
    }
    return default | {name: settings[name] for name in TOKENS if name in settings}


def stored(form: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of an import: the settings for later imports, and the settings that selected words."""
    record = {name: value for name, value in settings.items() if name not in (*CHOSEN, "skip_bad")}
    if form == TABLE and not has_text(record):
        record = {name: value for name, value in record.items() if name not in TOKENS}
    chosen = {name: name == "vocabulary" or settings[name] for name in CHOSEN if name in settings}
    return {
        "form": form,
        "settings": record | {name: list(record[name]) for name in _LISTS if name in record},
        **({"chosen": chosen} if chosen else {}),
    }


def has_text(settings: Mapping[str, Any]) -> bool:
    """Return whether a column contains text that is split into words."""
    contexts = parse_contexts(settings.get("contexts", ()))
    return "text" in settings or any(one.kind == "text" for one in contexts.values())


def layout_of(settings: Mapping[str, Any], optional: Collection[str] = (), tokenise: Tokenise | None = None) -> Layout:
    """Return the layout of a table from its :func:`complete` settings.

    Parameters
    ----------
    settings : mapping
        Result of :func:`complete`.
    optional : collection of str
        Columns that the table may lack.
    tokenise : callable, optional
        The user's function, if the tokeniser is FUNCTION.

    Raises ValueError if the value of a setting is invalid.
    """
    content = [kind for kind in CONTENT_KINDS if kind in settings]
    if len(content) != 1:
        raise ValueError(
            "give one column of words: by --text, --bag or --counts (mc2 import), by text, bag or counts "
            "(configuration), or by text= or bag= (Python)"
        )
    return Layout(
        settings[content[0]],
        content[0],
        parse_contexts(settings.get("contexts", ())),
        labels=settings.get("labels"),
        id=settings.get("id"),
        keep=settings.get("keep", ()),
        tokeniser=tokeniser_of(settings, tokenise),
        optional=optional,
        separators=once(map(parse_separator, settings["separators"]), "the separator of"),
        date_format=settings.get("date_format"),
        rare=once(map(_rare, settings.get("rare", ())), "the rule for rare values of"),
        word_counts=settings["word_counts"],
        missing=missing_of(settings),
    )


def codes_of(missing: Any) -> list[str]:
    """Return the codes of the setting ``missing``: a list, or a text separated by commas."""
    several = missing.split(",") if isinstance(missing, str) else missing
    return [code for one in several if (code := str(one).strip())]


def missing_of(settings: Mapping[str, Any]) -> Missing:
    """Return the codes of missing values: the codes of pandas and the given codes, or only the given codes if these
    include NONE."""
    codes = codes_of(settings.get("missing", ()))
    return Missing([one for one in codes if one != NONE] if NONE in codes else [*MISSING, *codes])


def rule_of(settings: Mapping[str, Any]) -> VocabularyRule | None:
    """Return the rule by which words are selected; None if no setting limits the vocabulary."""
    limits = {name: settings[name] for name in ("min_df", "max_features", "max_df") if name in settings}
    return VocabularyRule(**limits) if limits else None


def tokeniser_of(settings: Mapping[str, Any], tokenise: Tokenise | None = None) -> Tokeniser:
    """Return the tokeniser of :func:`complete` settings. Raises ValueError if a user's function is needed."""
    name, words = settings["tokeniser"], settings["stop_words"]
    words = None if words == NONE else words
    if name == FUNCTION and tokenise is None:
        raise ValueError(
            "the earlier words were made by a Python function; give it again (tokenise=), or give the words of "
            "the new documents (bag)"
        )
    if name == "a-z":
        is_papers = words == "english"
        tokenise = partial(letters.words_of, min_letters=1, stop_words=letters.STOP_WORDS if is_papers else ())
        words = None if is_papers else words
    return Tokeniser(tokenise, stop_words=words, min_letters=settings["min_letters"], max_ngram=settings["max_ngram"])


def parse_contexts(texts: Sequence[str]) -> dict[str, ContextColumn]:
    """Parse ``["year=Publication year:number", ...]`` into ``{name: column and kind}``.

    The default name is the name of the column. Raises ValueError if the form is invalid or a name is given twice.
    """
    return once(map(_context, texts), "context")


def _context(text: str) -> tuple[str, ContextColumn]:
    column, colon, kind = text.rpartition(":")
    name, sign, source = column.partition("=")
    if not (colon and column and name):
        raise ValueError(f"context {text!r} must have the form COLUMN:KIND or NAME=COLUMN:KIND")
    if not name.isidentifier():
        plain = re.sub(r"\W+", "_", name).strip("_").lower()
        plain, of = plain if plain.isidentifier() else kind, source if sign else column
        option = shlex.join(["--context", f"{plain}={of}:{kind}"])
        raise ValueError(
            f"context name {name!r} must be a plain identifier such as {plain!r}: {option} (in Python "
            f"contexts={{{plain!r}: {of!r}}})"
        )
    return name, ContextColumn(source if sign else column, kind)


def parse_separator(text: str) -> tuple[str, str | None]:
    """Parse ``"tags=,"`` to (column, separator).

    If no column is given, the column is "", which stands for all columns. The separator is None for ``"none"``.
    """
    column, sign, separator = text.rpartition("=")
    if not (sign and column and separator):
        column, separator = "", text
    return column, None if separator == NONE else separator


def _rare(text: str) -> tuple[str, Rare]:
    """Parse ``"author=2:pool"`` to the context and the rule for its rare values."""
    name, _, rule = text.partition("=")
    number, colon, pool = rule.partition(":")
    if not (name and number.isdecimal() and int(number) > 0 and pool == ("pool" if colon else "")):
        raise ValueError(f"rare {text!r} must have the form CONTEXT=N or CONTEXT=N:pool, N at least 1")
    return name, Rare(int(number), bool(colon))
