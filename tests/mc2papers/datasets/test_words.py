"""Words of texts against their definition, sign by sign, and their counts."""

import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2core.corpus.building.letters import words_of
from mc2papers.datasets.words import count_words


def by_definition(text, min_letters):
    signs = (sign for sign in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(sign))
    runs = "".join(sign if "a" <= sign <= "z" else " " for sign in signs).split()
    return [run for run in runs if len(run) >= min_letters]


@settings(max_examples=200, deadline=None)
@given(st.text() | st.text("aAbB é́ﬁ-K"), st.integers(1, 4))
def test_words_are_those_of_the_definition(text, min_letters):
    assert words_of(text, min_letters, ()) == by_definition(text, min_letters)


@pytest.mark.slow
def test_every_character_folds_as_defined():
    every = "".join(f"ab{chr(code)}cd " for code in range(0x110000))
    assert words_of(every, 1, ()) == by_definition(every, 1)
    assert words_of("Schrödinger\u2019s ﬁeld", 1, ()) == ["schrodinger", "s", "field"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["oak", "elm", "Ärger", "z" * 40]), max_size=9), max_size=5))
def test_counts_are_those_of_each_text(texts):
    counts, names = count_words(texts)
    assert names == sorted({word for text in texts for word in text})
    assert (counts.shape, counts.dtype) == ((len(texts), len(names)), "int32")
    rows = [dict(zip((names[v] for v in row.indices), row.data.tolist(), strict=True)) for row in counts]
    assert rows == [dict(Counter(text)) for text in texts]
