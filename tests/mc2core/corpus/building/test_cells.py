"""Dates, numbers and bags of single cells, against values worked out by hand."""

import datetime
import io
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from pandas._libs.parsers import STR_NA_VALUES

from mc2core.corpus.building.cells import MISSING, Missing, parse_bag, parse_date, parse_number
from mc2core.corpus.building.columns import Rare
from mc2core.corpus.building.counts import VocabularyRule, damped


@pytest.mark.parametrize(
    ("value", "year"),
    [
        ("2019", 2019.0),
        ("2019.5", 2019.5),
        (2019, 2019.0),
        (1914.25, 1914.25),
        ("-44", -44.0),
        ("2019-07", 2019 + 181 / 365),
        ("2020-07", 2020 + 182 / 366),
        ("2019-07-02", 2019 + 182 / 365),
        ("20190702", 2019 + 182 / 365),
        ("2019-07-02T12:00:00", 2019 + 182.5 / 365),
        ("2019-07-02T14:00:00+02:00", 2019 + 182.5 / 365),
        ("Tue, 02 Jul 2019 12:00:00 +0000", 2019 + 182.5 / 365),
        ("2 Jul 2019", 2019 + 182 / 365),
        (datetime.date(2019, 7, 2), 2019 + 182 / 365),
        (np.datetime64("2019-07-02"), 2019 + 182 / 365),
        (pd.Timestamp("2019-07-02 12:00"), 2019 + 182.5 / 365),
    ],
)
def test_a_date_is_a_year_and_its_fraction(value, year):
    assert parse_date(value) == pytest.approx(year, abs=1e-12)


def test_dates_that_are_none():
    assert all(math.isnan(parse_date(value)) for value in (None, "", " ", math.nan, pd.NaT, np.datetime64("NaT")))
    for value in ("soon", "03.05.2019", "2019-13", "1556841600", 1556841600, True, ["2019"], "2019-02-30", math.inf):
        with pytest.raises(ValueError, match=r"^found .*; a date such as 2019, 2019-07 or 2019-07-02"):
            parse_date(value)
    for value in ("9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00"):
        with pytest.raises(ValueError, match="in UTC, this is not a date of the years 1 to 9999"):
            parse_date(value)
    assert parse_date("03.05.2019", "%d.%m.%Y") == pytest.approx(2019 + 122 / 365)
    with pytest.raises(ValueError, match=r"found '2019'; a date of the form '%d\.%m\.%Y'"):
        parse_date("2019", "%d.%m.%Y")


def test_codes_of_missing_values_are_those_of_pandas():
    assert {"", *MISSING} == STR_NA_VALUES
    assert pd.read_csv(io.StringIO("\n".join(["x", *MISSING])))["x"].isna().all()


def test_codes_that_are_numbers_stand_for_equal_numbers():
    missing = Missing(["-99", "unknown"])
    for value, code in ((-99, "-99"), (-99.0, "-99"), (np.int8(-99), "-99"), (" -99 ", "-99"), ("unknown", "unknown")):
        assert missing.code_of(value) == code
    assert [missing.code_of(value) for value in (99, "-99.0", "Unknown", None, [-99], True, math.nan)] == [None] * 7


def test_decimal_commas_only_where_they_are_allowed():
    assert parse_number("3,14", decimal_comma=True) == 3.14
    assert parse_number("3.14", decimal_comma=True) == 3.14
    for text, allowed in (("3,14", False), ("1,000,000", True)):
        with pytest.raises(ValueError, match="a finite number"):
            parse_number(text, allowed)


def test_whole_numbers_of_a_column_with_gaps_are_names():
    assert parse_bag(2.0, False) == parse_bag([2.0], False) == {"2": 1}
    with pytest.raises(ValueError, match=r"found 2\.5; a list of names"):
        parse_bag(2.5, False)


def test_only_the_separator_separates():
    assert parse_bag("Lund, S.; Okafor", False) == {"Lund, S.": 1, "Okafor": 1}
    assert parse_bag("red, green;blue", False, ",") == {"red": 1, "green;blue": 1}
    assert parse_bag("a:2|b", True, "|") == {"a": 2, "b": 1}
    assert parse_bag("a; b", False, None) == {"a; b": 1}


def test_rare_values_are_dropped_or_pooled():
    counts = sp.csr_matrix(np.array([[1, 2, 0, 0], [1, 0, 1, 0], [1, 0, 0, 3]], np.int32))
    names = ["ann", "bob", "cid", "dan"]
    kept, left, dropped = Rare(2).apply("who", counts, names)
    assert (kept.toarray().tolist(), left) == ([[1], [1], [1]], ["ann"])
    assert [(one.what, one.number, one.why) for one in dropped] == [("values of who", 3, "in fewer than 2 documents")]
    kept, left, dropped = Rare(2, is_pooled=True).apply("who", counts, names)
    assert (kept.toarray().tolist(), left) == ([[1, 2], [1, 1], [1, 3]], ["ann", "(rare)"])
    assert dropped[0].why == "in fewer than 2 documents, counted as '(rare)'"
    with pytest.raises(ValueError, match="context 'who' has no value in 9 documents or more"):
        Rare(9).apply("who", counts, names)


def test_words_in_too_large_a_share_are_dropped():
    counts = sp.csr_matrix(np.array([[5, 1, 0], [1, 0, 1], [1, 1, 0], [2, 0, 0]], np.int32))
    kept, words, dropped = VocabularyRule(max_df=0.5).apply(counts, ["a", "b", "c"])
    assert (kept.toarray().tolist(), words) == ([[1, 0], [0, 1], [1, 0], [0, 0]], ["b", "c"])
    assert [(one.what, one.number, one.why) for one in dropped] == [
        ("words", 1, "in more than 50% of the documents"),
        ("tokens", 9, "of a word in more than 50% of the documents"),
    ]
    for share in (0, 1.1):
        with pytest.raises(ValueError, match="max_df is"):
            VocabularyRule(max_df=share)


def test_counts_of_bursts_are_damped():
    counts = sp.csr_matrix(np.array([[1, 2, 3, 4, 0], [7, 8, 0, 0, 2**31 - 1]], np.int32))
    assert damped(counts, "raw") is counts
    assert damped(counts, "presence").toarray().tolist() == [[1, 1, 1, 1, 0], [1, 1, 0, 0, 1]]
    assert damped(counts, "log").toarray().tolist() == [[1, 2, 2, 3, 0], [3, 4, 0, 0, 31]]
    assert counts.data.max() == 2**31 - 1
