"""Running text to words of any script: what is a word, what is left out, and a function in place of the rule."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2core.corpus.building.counts import CountsBuilder
from mc2core.corpus.building.letters import words_of
from mc2core.corpus.building.tokens import Tokeniser, languages


def words(text, **settings):
    return [word for word in Tokeniser(**settings).words(text) if word is not None]


@pytest.mark.parametrize(
    ("text", "stop_words", "expected"),
    [
        ("AI in the UK: don't panic", "english", ["ai", "uk", "panic"]),
        ("Straße STRASSE", None, ["straße", "strasse"]),
        ("Дом у реки — дом.", "russian", ["дом", "реки", "дом"]),
        ("Ο λόγος, ΛΌΓΟΣ", None, ["λόγος", "λόγος"]),
        ("हिन्दी में पाठ", None, ["हिन्दी", "में", "पाठ"]),
        ("نص عربي", None, ["نص", "عربي"]),
        ("\u0645\u06cc\u200c\u062e\u0648", None, ["\u0645\u06cc\u200c\u062e\u0648"]),
        ("l'homme d\u2019Angola aujourd'hui", "french", ["homme", "angola", "aujourd'hui"]),
        ("dog's 'quoted' rock'n'roll O'Neil", "english", ["dog", "quoted", "rock'n'roll", "o'neil"]),
        ("e\u0301tude étude co\u00adop foo_bar e-mail", None, ["étude", "étude", "coop", "foo", "bar", "mail"]),
        ("covid19 3d 2023 1,000 x", None, ["covid19", "3d"]),
        ("İstanbul", None, ["istanbul"]),
        ("日本語 a中b カナ", None, ["日本", "本語", "カナ"]),
        ("\ud800 ok", None, ["ok"]),
    ],
)  # fmt: skip
def test_words_of_every_script(text, stop_words, expected):
    assert words(text, stop_words=stop_words) == expected


def test_stop_words_are_kept_for_many_languages():
    assert {"english", "french", "german", "greek", "japanese", "russian", "spanish"} <= set(languages())
    assert words("und der Hund", stop_words="german") == ["hund"]
    assert words("und der Hund", stop_words=["Hund"]) == ["und", "der"]
    assert words("the dog's", stop_words=None) == ["the", "dog's"]
    with pytest.raises(ValueError, match=r"language of stop words is 'grman'.*did you mean 'german'"):
        Tokeniser(stop_words="grman")


def test_ngrams_do_not_cross_what_is_left_out():
    assert Tokeniser(max_ngram=3).count("White House staff of the White House") == {
        "white": 2, "house": 2, "staff": 1, "white_house": 2, "house_staff": 1, "white_house_staff": 1,
    }  # fmt: skip


def test_a_function_takes_the_place_of_the_rule():
    assert words("Eins|zwei drei", tokenise=lambda text: text.split("|")) == ["Eins", "zwei drei"]
    assert words("a|bb|the", tokenise=lambda text: text.split("|"), min_letters=2, stop_words="english") == ["bb"]
    for wrong, message in ((lambda text: text, "the tokeniser gave str"), (lambda text: [1], "gave 1 as a word")):
        with pytest.raises(ValueError, match=message):
            words("x", tokenise=wrong)
    with pytest.raises(ValueError, match="tokenise is 'split'; a function"):
        Tokeniser("split")


scripts = st.text(st.sampled_from("abAB ,.'’_-09éßДд日カकि\u0301\u200d\u00ad\n"), max_size=40)


@settings(max_examples=200, deadline=None)
@given(texts=st.lists(scripts, max_size=4))
def test_counts_are_those_of_the_words_one_by_one(texts):
    one = Tokeniser(min_letters=1)
    for text in [*texts, *texts]:
        assert one.count(text) == Counter(words(text, min_letters=1))


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.sampled_from("abcxyz ABC,.-\n"), max_size=60))
def test_plain_letters_give_the_words_of_the_papers_corpora(text):
    assert words(text, min_letters=3, stop_words=None) == words_of(text, 3, ())


def test_words_outside_given_names_are_left_out_or_one_name():
    one = Tokeniser(stop_words=None)
    for others, expected in ((None, [[2, 0], [0, 1]]), ("cow", [[2, 1], [0, 3]]), ("ox", [[2, 0], [0, 1]])):
        builder = CountsBuilder(["дом", "cow"], others)
        for text in ("дом дом dog", "日本語 cow"):
            builder.add(one.count(text))
        matrix, names = builder.finish()
        assert (matrix.toarray().tolist(), names, builder.outside) == (expected, ["дом", "cow"], 3)
        builder.add({"cow": 7})
        assert builder.finish()[0].toarray().tolist() == [[0, 7]]
