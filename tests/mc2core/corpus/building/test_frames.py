"""Corpora from lists of texts and from data frames, as people write them."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from helpers.commands import mc2
from helpers.fits import gibbs

import mc2core
from mc2core import Corpus
from mc2core.inference import Gibbs
from mc2core.models import MC2

TEXTS = ["Trees and graphs", "graphs, graphs", "Дом"]


def test_texts_with_contexts_as_lists():
    corpus = Corpus.from_texts(
        TEXTS,
        contexts={
            "author": [["ann", "bob; cid"], "ann", None],
            "year": [1999, None, 2001.5],
            "day": [datetime.date(2019, 7, 2), None, pd.Timestamp("2020-01-01")],
            "tag": sp.csr_matrix(np.array([[1, 0], [0, 2], [0, 0]])),
        },
        labels=["x", "y", "x"],
        documents=pd.DataFrame({"title": ["A", "B", "C"]}),
    )
    assert corpus.vocabulary == ["graphs", "trees", "дом"]
    assert corpus.content.toarray().tolist() == [[1, 1, 0], [2, 0, 0], [0, 0, 1]]
    assert list(corpus.contexts) == ["author", "year", "day", "tag"]
    assert corpus.context_names == {"author": ["ann", "bob; cid"]}
    assert corpus.contexts["author"].toarray().tolist() == [[1, 1], [1, 0], [0, 0]]
    assert np.array_equal(corpus.contexts["year"], [1999, np.nan, 2001.5], equal_nan=True)
    assert corpus.contexts["day"][[0, 2]] == pytest.approx([2019 + 182 / 365, 2020])
    assert corpus.contexts["tag"].toarray().tolist() == [[1, 0], [0, 2], [0, 0]]
    assert (corpus.labels.tolist(), corpus.label_names) == ([0, 1, 0], ["x", "y"])
    assert corpus.documents["title"].tolist() == ["A", "B", "C"]


CODED = """text,author,year,day,label,title
apple tree leaf apple,Ann; Bob,1990,2019-01-01,a,One
NA,NA; Bob,-99,NA,b,NA
iron nail forge iron,n/a,NA,2019-03-01,a,Two
leaf tree na null nail,Ann;;unknown,-99.0,,b,null
unknown,#N/A,2001.5,unknown,a,unknown
"""


@pytest.mark.parametrize("missing", [None, "none", "unknown,-99", "none,NA,n/a,-99,#N/A"])
def test_a_csv_and_its_frame_make_the_same_corpus(tmp_path, capsys, missing):
    """With codes for missing texts, names, numbers, dates and kept columns."""
    text = CODED.replace("NA", "").replace("n/a", "") if missing == "none" else CODED
    text = text if missing == "unknown,-99" else text.replace("2001.5,unknown", "2001.5,")
    (tmp_path / "a.csv").write_text(text)
    options = [] if missing is None else [f"--missing={missing}"]
    options += ["--text", "text", "--context", "author:bag", "--context", "year:number", "--context", "day:date"]
    options += ["--labels", "label", "--keep", "title", "--out", str(tmp_path / "corpus")]
    mc2(["import", tmp_path / "a.csv", *options])
    read = pd.read_csv(tmp_path / "a.csv", keep_default_na=missing is None or "none" not in missing, dtype=str)
    for column, convert in (("year", pd.to_numeric), ("day", pd.to_datetime)):
        read[column] = convert(read[column], errors="coerce")
    call = {"text": "text", "contexts": ["author", "year", "day"], "labels": "label", "keep": ["title"]}
    made = Corpus.from_dataframe(read, **call, separator=";", missing=missing)
    imported = Corpus.load(tmp_path / "corpus")
    assert (made.digest, made.names_digest) == (imported.digest, imported.names_digest)
    assert made.documents["title"].tolist() == imported.documents["title"].tolist()
    sheet = capsys.readouterr().out
    if missing is None:
        assert "- 3 values of 'author': read as missing: 'NA' (1), 'n/a' (1), '\\#N/A' (1)\n" in sheet
        assert "- 1 value of 'text': read as missing: 'NA' (1)\n" in sheet
        assert imported.context_names["author"] == ["Ann", "Bob", "unknown"]
        assert {"na", "null", "unknown"} <= set(imported.vocabulary)  # within a text, and no code
        assert imported.documents["title"].tolist() == ["One", "", "Two", "", "unknown"]
    elif missing == "unknown,-99":
        assert "- 3 values of 'year': read as missing: '-99' (2), 'NA' (1)\n" in sheet
        assert imported.contexts["year"][~imported.missing("year")].tolist() == [1990, 2001.5]


def test_words_in_a_bag_are_no_codes_but_names_are(caplog):
    frame = pd.DataFrame({"words": [["null", "nan"], "NA", ["null"]], "who": [["NA", "ann"], {"null": 2}, "bob"]})
    corpus = Corpus.from_dataframe(frame, bag="words", contexts=["who"])
    assert corpus.vocabulary == ["nan", "null"]
    assert corpus.content.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]
    assert corpus.context_names["who"] == ["ann", "bob"]
    assert "2 values of 'who': read as missing: 'NA' (1), 'null' (1)" in caplog.text
    assert Corpus.from_texts(["NA", "na a tree"], missing="none", stop_words=None).vocabulary == ["na", "tree"]
    assert Corpus.from_texts(["NA", "na a tree"], stop_words=None).document_lengths.tolist() == [0, 2]


def test_codes_do_not_change_what_a_context_is():
    texts, years = ["a tree", "a lake", "a hill"], [1990, "unknown", -99]
    corpus = Corpus.from_texts(texts, contexts={"year": years}, missing=["unknown", -99])
    assert np.array_equal(corpus.contexts["year"], [1990, np.nan, np.nan], equal_nan=True)
    more = Corpus.from_texts(["tree"], contexts={"year": [-99]}, like=corpus)
    assert np.isnan(more.contexts["year"]).all()


@pytest.mark.parametrize("role", ["labels", "id"])
def test_labels_and_ids_that_are_codes_say_how_to_keep_them(role):
    frame = pd.DataFrame({"text": ["a tree", "a lake"], "x": ["NA", "b"]})
    with pytest.raises(ValueError, match=r"'NA' is read as missing \(--missing none reads it as a name\)"):
        Corpus.from_dataframe(frame, text="text", **{role: "x"})
    assert Corpus.from_dataframe(frame, text="text", **{role: "x"}, missing="none").n_documents == 2


def test_words_of_texts_are_chosen():
    assert Corpus.from_texts(TEXTS, min_df=2).vocabulary == ["graphs"]
    assert Corpus.from_texts(TEXTS, max_df=0.5).vocabulary == ["trees", "дом"]
    assert Corpus.from_texts(TEXTS, vocabulary=["дом", "cow"]).content.toarray().tolist() == [[0, 0], [0, 0], [1, 0]]
    assert Corpus.from_texts(TEXTS, stop_words=None, word_counts="presence").content.data.tolist() == [1] * 5
    assert Corpus.from_texts(["a|b c"], tokenise=lambda text: text.split("|")).vocabulary == ["a", "b c"]


def test_a_data_frame():
    columns = {
        "abstract": ["Trees and graphs", None, "graphs"],
        "year": [1999, np.nan, 2001],
        "when": pd.to_datetime(["2019-07-02", None, "2020-01-01"]),
        "who": [["ann"], ["ann", "bob"], []],
        "tags": pd.array(["a, b", "b", None], "string"),
        "size": pd.array([1, None, 3], "Int64"),
        "key": ["i", "j", "k"],
        "words": [["x", "y"], ["x"], []],
    }
    frame = pd.DataFrame(columns, index=[10, 20, 30])
    contexts = {"year": "year", "when": "when", "author": "who", "tag": "tags"}
    corpus = Corpus.from_dataframe(frame, "abstract", contexts=contexts, labels="key", id="key", separator=",")
    assert corpus.content.toarray().tolist() == [[1, 1], [0, 0], [1, 0]]
    assert corpus.context_kinds == {"year": "number", "when": "number", "author": "counts", "tag": "counts"}
    assert corpus.context_names == {"author": ["ann", "bob"], "tag": ["a", "b"]}
    assert np.array_equal(corpus.missing("when"), [False, True, False])
    sizes = Corpus.from_dataframe(frame, "abstract", contexts=["size"]).contexts["size"]
    assert np.array_equal(sizes, [1, np.nan, 3], equal_nan=True)
    assert corpus.documents["key"].tolist() == ["i", "j", "k"]
    assert Corpus.from_dataframe(frame, bag="words", contexts=["year"]).vocabulary == ["x", "y"]
    frame["abstract"] = ["trees", 7, "graphs"]
    with pytest.raises(ValueError, match="frame, row 20, column 'abstract': found 7; text is needed"):
        Corpus.from_dataframe(frame, "abstract")


HALF = 2019 + 182 / 365  # 2 July
DAYS = datetime.date(2019, 7, 2), datetime.date(2020, 1, 1)
TYPES = {
    "categories of integers": (pd.Categorical([1, 2, None]), ["1", "2"]),
    "categories of booleans": (pd.Categorical([True, False, None]), ["True", "False"]),
    "categories of numbers": (pd.Categorical([1.5, 2.0, None]), ["1.5", "2.0"]),
    "intervals": (pd.cut(pd.Series([1.0, 5.0, np.nan]), [0, 3, 6]), ["(0, 3]", "(3, 6]"]),
    "dictionary": (pd.array([1, 2, None], pd.ArrowDtype(pa.dictionary(pa.int8(), pa.int64()))), ["1", "2"]),
    "booleans": (pd.array([True, False, None], "boolean"), ["True", "False"]),
    "booleans of arrow": (pd.array([True, False, None], "bool[pyarrow]"), ["True", "False"]),
    "booleans as objects": (pd.Series([True, False, None], dtype=object), ["True", "False"]),
    "text of arrow": (pd.array(["b", "a", None], "string[pyarrow]"), ["b", "a"]),
    "Int64": (pd.array([3, 1, None], "Int64"), [3, 1]),
    "Float64": (pd.array([0.5, 1, None], "Float64"), [0.5, 1]),
    "integers of arrow": (pd.array([3, 1, None], "int64[pyarrow]"), [3, 1]),
    "decimals": (pd.Series([Decimal("1.5"), Decimal(2), None]), [1.5, 2]),
    "periods": (pd.PeriodIndex(["2019-07-02", "2020-01-01", None], freq="D"), [HALF, 2020]),
    "dates in a zone": (pd.to_datetime(["2019-07-02T02", "2020-01-01T02", None]).tz_localize("+02:00"), [HALF, 2020]),
    "dates of arrow": (pd.array([*DAYS, None], "date32[pyarrow]"), [HALF, 2020]),
}


@pytest.mark.parametrize("name", TYPES)
def test_each_column_type_is_names_or_numbers_with_missing_ones(name):
    values, expected = TYPES[name]
    frame = pd.DataFrame({"text": TEXTS, "value": values})
    for corpus in (
        Corpus.from_dataframe(frame, "text", contexts=["value"]),
        Corpus.from_texts(TEXTS, contexts={"value": values}),
    ):
        assert corpus.missing("value").tolist() == [False, False, True]
        if isinstance(expected[0], str):
            names = corpus.context_names["value"]
            assert [names[column] for column in corpus.contexts["value"].indices] == expected
        else:
            assert corpus.contexts["value"][:2] == pytest.approx(expected)
    if isinstance(expected[0], str):
        labelled = Corpus.from_dataframe(frame[:2], "text", labels="value")
        assert [labelled.label_names[label] for label in labelled.labels] == expected
    like = Corpus.from_dataframe(frame, "text", contexts=["value"], like=corpus)
    assert like.context_kinds == corpus.context_kinds


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (pd.Categorical([1, 2, 1]), "categories"),
        (pd.Series([1, 2, 1]).astype("category"), "categories"),
        (np.array([True, False, True]), "booleans"),
        (np.array(["2019-07-02"] * 3, "datetime64[D]"), "dates"),
    ],
)
def test_categories_booleans_and_dates_are_not_taken_for_numbers(values, what):
    with pytest.raises(ValueError, match=f"context 'value' holds {what}; Corpus.from_texts and from_dataframe read"):
        Corpus(np.eye(3, dtype=int), contexts={"value": values})


FRAME = pd.DataFrame({"text": ["a"]})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Corpus.from_texts("one text"), "texts is a single text; give a list"),
        (lambda: Corpus.from_texts(["a lake", 7]), "texts, index 1, column 'texts': found 7; text is needed"),
        (lambda: Corpus.from_texts([]), "texts has no document"),
        (lambda: Corpus.from_texts(["lake"], {"year": [1, 2]}), r"contexts\['year'\] has 2 entries, but texts has 1"),
        (lambda: Corpus.from_texts(["lake"], {"a b": [1]}), "context name 'a b' must be a plain identifier"),
        (lambda: Corpus.from_texts(["lake"], {"who": [1.5j]}), r"index 0, column .*: found 1\.5j"),
        (
            lambda: Corpus.from_texts(["lake"], vocabulary=["lake"], max_features=1),
            "min_df, max_df and max_features cannot",
        ),
        (lambda: Corpus.from_texts(["lake"], word_counts="twice"), "word_counts is 'twice'; allowed: raw, presence"),
        (lambda: Corpus.from_dataframe([1]), "frame is list; a pandas DataFrame is needed"),
        (lambda: Corpus.from_dataframe(FRAME, "txt"), "no column 'txt'; did you mean 'text'"),
        (lambda: Corpus.from_texts([3, 4]), r"^texts: 2 of 2 rows cannot be read:\n  index 0, column"),
        (
            lambda: Corpus.from_dataframe(FRAME, "text", contexts="text"),
            r"contexts is 'text'; a list of columns is needed: \['text'\]",
        ),
        (lambda: Corpus.from_dataframe(FRAME, "text", keep="text"), "keep is 'text'; a list"),
        (lambda: Corpus.from_dataframe(FRAME), "give one column of words"),
        (lambda: mc2core.fit(np.ones((2, 3)), iterations=1), "corpus is ndarray; a Corpus is needed: mc2core.Corpus"),
        (
            lambda: mc2core.fit(Corpus([[1]]), engine="gibbs", iterations=1),
            "engine is 'gibbs'; an engine is needed, such as mc2core.inference.Gibbs",
        ),
    ],
)
def test_what_cannot_be_used_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_package_shows_what_it_has():

    assert {"Corpus", "Fit", "Posterior", "fit", "clustering", "perplexity"} <= set(dir(mc2core))
    assert (mc2core.__path__[0] and __import__("pathlib").Path(mc2core.__path__[0]) / "py.typed").is_file()
    assert repr(Gibbs(start_topics=7)) == "Gibbs(start_topics=7)"
    assert repr(MC2(contexts=["day"], topic_word_prior=0.1)) == "MC2(contexts={'day': None}, topic_word_prior=0.1)"
    assert repr(MC2()) == "MC2()"
    done = mc2core.fit(Corpus.from_texts(TEXTS), *gibbs(start_topics=2), iterations=1, chains=1, progress=False)
    last = done.posterior.representative
    sizes = f"{last.n_clusters} clusters, {last.n_topics} topics, 3 words, 1 sample"
    assert repr(done.posterior) == f"Posterior({sizes}, contexts: none)"
    contexts = {"who": ["ann", "bob", None], "day": ["2019-07-02"] * 3, "year": [1, 2, 3]}
    said = repr(Corpus.from_texts(TEXTS, contexts))
    assert said.endswith("contexts: who (names), day (names), year (numbers))")
    assert repr(done) == f"Fit(1 iteration, {done.posterior!r})"
    both = mc2core.fit(Corpus.from_texts(TEXTS), *gibbs(start_topics=2), iterations=3, chains=2, progress=False)
    assert repr(both).startswith("Fit(3 iterations in 2 chains, Posterior(")
