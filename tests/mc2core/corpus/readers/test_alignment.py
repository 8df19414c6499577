"""``mc2 import --like``: new documents in the words, context columns, kinds and units of an earlier import."""

import csv
import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from helpers.commands import mc2
from helpers.fits import gibbs
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2core import Corpus, Posterior
from mc2core.base import storage
from mc2core.base.checks import counted
from mc2core.corpus.alignment import reindex_to_schema, schema_of
from mc2core.corpus.readers.reading import read_own
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running.loop import fit

NAMES = ("key", "body", "Year", "who", "title", "kind")
ROWS = [
    ("d0", "ferry harbour ferry", "1990", "ann; http://x.org:80", "T0", "x"),
    ("d1", "harbour sail ferry", "1991", "ann", "T1", "x"),
    ("d2", "bread oven bread", "1992", "bob", "T2", "y"),
    ("d3", "oven flour bread ferry", "1993", "bob; cid", "T3", "y"),
]
NEW = [
    ("n0", "zeppelin ferry ferry zeppelin kite", "1995", "http://x.org:80; dan", "N0"),
    ("n1", "bread", "", "dan; eve; ann", "N1"),
]
ROWS, NEW = ([dict(zip(NAMES, row, strict=False)) for row in rows] for rows in (ROWS, NEW))
SETTINGS = {"text": "body", "contexts": ["year=Year:number", "who:bag"]}
SETTINGS |= {"labels": "kind", "id": "key", "keep": ["title"]}


def write(path, rows):
    columns = list(rows[0])
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8-sig") as stream:
            writer = csv.DictWriter(stream, columns)
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.table({name: [row[name] for row in rows] for name in columns}), path)
    return path


def without(rows, *columns):
    return [{name: value for name, value in row.items() if name not in columns} for row in rows]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """Corpus and model of ROWS, both from their files; the model is fitted to the year in its standard unit."""
    folder = tmp_path_factory.mktemp("earlier")
    corpus, _ = read_own(write(folder / "train.csv", ROWS), SETTINGS)
    corpus.save(folder / "corpus")
    engine = gibbs(contexts={"who": DirichletCategorical(0.1), "year": NormalGamma()}, start_topics=3)
    model = fit(corpus.standardised("year"), *engine, iterations=4, seed=0, progress=False).posterior
    model.save(folder / "posterior.npz")
    return folder


@pytest.fixture(params=["corpus", "posterior.npz"])
def like(request, earlier):
    path = earlier / request.param
    return Corpus.load(path) if path.is_dir() else Posterior.load(path)


class TestLacking:
    @pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
    def test_columns_that_the_file_lacks(self, tmp_path, like, suffix):
        path = write(tmp_path / f"new{suffix}", without(NEW, "key", "title", "who", "Year"))
        corpus, dropped = read_own(path, {}, like)
        assert corpus.missing("who").all()
        assert corpus.missing("year").all()
        assert corpus.contexts["who"].shape == (2, 4)
        assert len(corpus.documents.columns) == 0
        assert sorted((one.what, one.why) for one in dropped[2:]) == [
            ("columns", "'key', not among those given"),
            ("columns", "'title', not among those given"),
            ("columns", "the labels 'kind', not among those given or not in every document"),
            ("contexts", "who, not given: missing in every document"),
            ("contexts", "year, not given: missing in every document"),
        ]
        with pytest.raises(ValueError, match="title"):
            read_own(path, {"keep": ["title"]}, like)
        with pytest.raises(
            ValueError, match=r"bare\S* has no column 'body', .*--text COLUMN .*; columns: 'key, Year, who"
        ):
            read_own(write(tmp_path / f"bare{suffix}", without(NEW, "body")), {}, like)

    def test_a_context_missing_everywhere_is_named_with_its_option(self, tmp_path, like, capsys):
        like.save(tmp_path / "like.npz" if isinstance(like, Posterior) else tmp_path / "like")
        earlier = str(next(tmp_path.glob("like*")))
        path = write(tmp_path / "new.csv", [{"abstract": "ferry", "when": "1995", "who": "ann"}])
        command = ["import", str(path), "--like", earlier, "--text", "abstract", "--out", str(tmp_path / "new")]
        mc2(command)
        told = capsys.readouterr()
        said = "mc2: context 'year' is missing in every document; give its column with --context year=COLUMN\n"
        assert told.err == said
        assert "1 context: year, not given" in told.out
        mc2([*command, "--context", "year=when", "--overwrite"])
        assert "year" not in capsys.readouterr().err


#: columns of NEW as another file calls them
OTHER = {"key": "number", "body": "abstract", "Year": "when", "who": "writers: all", "title": "title"}


class TestNamedAnew:
    @pytest.mark.parametrize(
        "contexts", [["year=when", "who=writers: all:bag"], ["who=writers: all:bag", "year=when:date"]]
    )
    def test_columns(self, tmp_path, like, contexts):
        """What they hold stays: words, kinds and units are the model's."""
        renamed = [{OTHER[name]: value for name, value in row.items()} for row in NEW]
        given_ = {"text": "abstract", "contexts": contexts, "id": "number", "min_letters": 2, "word_counts": "raw"}
        corpus, dropped = read_own(write(tmp_path / "new.csv", renamed), given_, like)
        same, as_before = read_own(write(tmp_path / "same.csv", NEW), {}, like)
        assert corpus.digest == same.digest
        assert dropped == as_before
        assert corpus.units == same.units
        assert corpus.documents.to_dict("list") == {"number": ["n0", "n1"], "title": ["N0", "N1"]}
        # what came of it is followed by its new names
        assert read_own(tmp_path / "new.csv", {}, corpus)[0].digest == same.digest

    def test_the_column_must_be_there(self, tmp_path, like):
        with pytest.raises(ValueError, match="writer"):
            read_own(write(tmp_path / "new.csv", NEW), {"contexts": ["who=writer"]}, like)


class TestValues:
    def test_words_that_are_cut_already_serve_a_model_of_text(self, tmp_path, like):
        cut = [row | {"body": row["body"].replace(" ", ";")} for row in NEW]
        corpus, _ = read_own(write(tmp_path / "new.csv", cut), {"bag": "body"}, like)
        assert corpus.content.toarray().tolist() == [[0, 2, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]

    def test_separators_go_with_their_columns(self, tmp_path):
        """A sign between the names of a column is that of the context's, whatever its column, and of no other."""
        rows = [{"t": "ferry sail", "who": "ann|bob", "tags": "a,b"}, {"t": "sail", "who": "bob", "tags": "b"}]
        settings_ = {"text": "t", "contexts": ["who:bag", "tags:bag"], "separators": ["who=|", "tags=,"]}
        like, _ = read_own(write(tmp_path / "a.csv", rows), settings_)
        new = write(tmp_path / "new.csv", [{"t": "ferry", "by": "bob|ann", "tags": "b"}])
        corpus, _ = read_own(new, {"contexts": ["who=by"]}, like)
        assert corpus.contexts["who"].toarray().tolist() == [[1, 1]]
        other = write(tmp_path / "other.csv", [{"t": "ferry", "by": "bob/ann", "tags": "b"}])
        corpus, _ = read_own(other, {"contexts": ["who=by"], "separators": ["by=/"]}, like)
        assert corpus.contexts["who"].toarray().tolist() == [[1, 1]]
        engine = gibbs(contexts={"tags": DirichletCategorical()}, start_topics=2)
        model = fit(like, *engine, iterations=2, seed=0, progress=False).posterior
        assert read_own(new, {}, model)[0].contexts["tags"].toarray().tolist() == [[0, 1]]

    def test_a_text_with_separators_in_it_may_be_one_name(self, tmp_path):
        path = write(tmp_path / "a.csv", [{"t": "ferry", "who": "ann; bob", "tags": "a;b"}])
        corpus, _ = read_own(path, {"text": "t", "contexts": ["who:bag", "tags:bag"], "separators": ["who=none"]})
        assert corpus.context_names == {"who": ["ann; bob"], "tags": ["a", "b"]}


class TestRefused:
    @pytest.mark.parametrize(
        ("given_", "message"),
        [
            ({"vocabulary": "v.txt"}, "'vocabulary' cannot be given: the {} fixes it"),
            ({"max_features": 5}, "'max_features' cannot be given: the {} fixes it"),
            ({"min_df": 2}, "'min_df' cannot be given: the {} fixes it"),
            ({"rare": ["who=2"]}, "'rare' cannot be given: the {} fixes it"),
            ({"min_letters": 3}, "'min_letters' is 3, but the {} was made with 2"),
            ({"tokeniser": "a-z"}, "'tokeniser' is 'a-z', but the {} was made with 'unicode'"),
            ({"word_counts": "log"}, "'word_counts' is 'log', but the {} was made with 'raw'"),
            ({"contexts": ["author=who"]}, "context 'author' is not in the {}, which has: who, year"),
            ({"contexts": ["author=who:bag"]}, "context 'author' is not in the {}, which has: who, year"),
            ({"contexts": ["who=Year:number"]}, "context 'who' is read as numbers, but the {} has names there"),
        ],
    )
    def test_what_contradicts_the_earlier_documents(self, tmp_path, like, given_, message):
        message = message.format("model" if isinstance(like, Posterior) else "corpus")
        with pytest.raises(ValueError, match=rf"^{message}$"):
            read_own(write(tmp_path / "new.csv", NEW), given_, like)

    def test_what_cannot_be_followed(self, tmp_path):
        path, counts = write(tmp_path / "new.csv", NEW), np.ones((1, 2), int)
        twice = Corpus(counts, ["a", "b"])
        twice._vocabulary = ["a", "a"]  # as a corpus that was saved before names were compared
        for like, message in (
            (Corpus(counts), "the corpus does not name its words, so no documents can be read in its columns"),
            (Corpus(counts, ["a", "b"], {"who": counts}), "the corpus does not name its columns of context 'who'"),
            (twice, "the corpus has the name 'a' twice among its words"),
            (Corpus(counts, ["a", "b"]), "no word of the new documents is among the 2 words of the corpus"),
            ({"words": ["a"]}, "like is dict; a Corpus or a Posterior is needed"),
        ):
            with pytest.raises(ValueError, match=message):
                read_own(path, {"text": "body"}, like)

    @pytest.mark.parametrize(
        "stored", [7, {}, {"settings": 3}, {"settings": {"text": 5}}, {"settings": {"contexts": "year"}},
                   {"settings": {"keep": [1]}}, {"settings": {"min_letters": "3"}}, {"settings": {"path": "/x"}}],
    )  # fmt: skip
    def test_a_damaged_account_of_the_import_is_refused(self, tmp_path, stored):
        like = Corpus(np.ones((1, 2), int), ["ferry", "b"])
        like.imported = stored
        like.save(tmp_path / "like")
        with pytest.raises(ValueError, match="the import settings of the corpus are damaged: "):
            read_own(write(tmp_path / "new.csv", NEW), {"text": "body"}, Corpus.load(tmp_path / "like"))

    def test_files_of_earlier_versions_have_no_account_of_the_import(self, earlier, tmp_path):
        arrays = storage.read_arrays(earlier / "posterior.npz")
        meta = json.loads(str(arrays["meta"]))
        del meta["imported"]
        storage.write_arrays(tmp_path / "posterior.npz", arrays | {"meta": np.array(json.dumps(meta))})
        assert Posterior.load(tmp_path / "posterior.npz").imported is None


class TestRead:
    @pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
    def test_new_documents_in_the_columns_of_the_earlier_ones(self, tmp_path, like, suffix):
        corpus, dropped = read_own(write(tmp_path / f"new{suffix}", NEW), {}, like)
        assert corpus.vocabulary == ["bread", "ferry", "flour", "harbour", "oven", "sail"]
        assert corpus.content.toarray().tolist() == [[0, 2, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
        assert corpus.context_names == {"who": ["ann", "bob", "cid", "http://x.org:80"]}
        assert corpus.contexts["who"].toarray().tolist() == [[0, 0, 0, 1], [1, 0, 0, 0]]
        # 1990 to 1993: mean 1991.5, variance 1.25
        assert corpus.units.get("year", (0, 1)) == pytest.approx(
            (1991.5, 1.25**0.5) if isinstance(like, Posterior) else (0, 1)
        )
        mean, sd = corpus.units.get("year", (0.0, 1.0))
        np.testing.assert_allclose(corpus.contexts["year"] * sd + mean, [1995, np.nan])
        assert corpus.documents.to_dict("list") == {"key": ["n0", "n1"], "title": ["N0", "N1"]}
        assert corpus.labels is None
        what = "the model" if isinstance(like, Posterior) else "the corpus"
        assert [(one.number, one.what, one.why) for one in dropped] == [
            (2, "words", f"unknown to {what}"),
            (3, "tokens", f"of a word unknown to {what}"),
            (2, "values of who", f"unknown to {what}"),
            (3, "counts of who", f"of a value unknown to {what}"),
            (1, "columns", "the labels 'kind', not among those given or not in every document"),
        ]

    def test_the_earlier_documents_come_back_as_they_were(self, tmp_path, earlier):
        like = Corpus.load(earlier / "corpus")
        corpus, dropped = read_own(write(tmp_path / "again.jsonl", ROWS), {}, like)
        assert (corpus.digest, dropped, corpus.imported) == (like.digest, [], like.imported)
        assert (corpus.labels.tolist(), corpus.label_names) == (like.labels.tolist(), like.label_names)

    def test_a_model_scores_new_documents_from_the_command_line(self, tmp_path, output_of, refused):
        """The model alone is enough, and what came of it serves a third import as well."""
        options = ["--text", "body", "--context", "year=Year:number", "--context", "who:bag", "--min-letters", "4"]
        train, new = write(tmp_path / "train.csv", ROWS), write(tmp_path / "new.csv", NEW)
        model = str(tmp_path / "fit/posterior.npz")
        mc2(["import", train, *options, "--out", tmp_path / "own"])
        families = ["--context", "year:normal_gamma", "--context", "who:dirichlet,concentration=0.1"]
        of_mc2 = [*families, "--set", "document_level=false", "--iterations", "4"]
        mc2(["fit", tmp_path / "own", *of_mc2, "--out", tmp_path / "fit"])
        mc2(["import", new, "--out", tmp_path / "free", *options])
        error = "has 4 words, but the model was fitted on 6: word 2 is 'flour' in the model"
        refused(f"evaluate {model} {tmp_path}/free", error)
        for like, out in ((model, "like"), (str(tmp_path / "like"), "again")):
            sheet = output_of(["import", new, "--like", like, "--out", tmp_path / out])
            assert f"Source: imported from new.csv, like {like}" in sheet
            assert "- 3 tokens: of a word unknown to the " in sheet
            assert "- 2 values of who: unknown to the " in sheet
            assert json.loads(output_of(["evaluate", model, tmp_path / out, "--estimator", "context"]))["tokens"] == 3
            assert len(output_of(["clusters", model, tmp_path / out]).splitlines()) == 3
        assert Corpus.load(tmp_path / "again").digest == Corpus.load(tmp_path / "like").digest

    def test_labels_and_facts_may_be_other_ones(self, tmp_path, like):
        rows = [row | {"kind": kind, "group": "g"} for row, kind in zip(NEW, ("x", ""), strict=True)]
        path = write(tmp_path / "new.csv", rows)
        assert read_own(path, {}, like)[0].labels is None
        corpus, dropped = read_own(path, {"labels": "group", "id": "title", "keep": ["body"]}, like)
        assert corpus.label_names == ["g"]
        assert corpus.documents.columns.tolist() == ["title", "body"]
        assert not [one for one in dropped if one.what == "columns"]
        with pytest.raises(ValueError, match="line 3 has no value in column 'kind'"):
            read_own(path, {"labels": "kind"}, like)

    def test_of_a_model_the_contexts_are_those_it_was_fitted_with(self, tmp_path, earlier):
        corpus = Corpus.load(earlier / "corpus")
        engine = gibbs(contexts={"who": DirichletCategorical(0.1)}, start_topics=3)
        model = fit(corpus, *engine, iterations=2, seed=0, progress=False).posterior
        new, dropped = read_own(write(tmp_path / "new.csv", without(NEW, "Year")), {}, model)
        assert list(new.contexts) == ["who"]
        assert not [one for one in dropped if one.what == "contexts"]
        assert model.predict_proba(new).shape[0] == 2

    def test_files_of_the_uci_format(self, tmp_path, like):
        (tmp_path / "docword.x.txt").write_text("2\n3\n3\n1 1 4\n1 2 5\n2 3 1\n")
        (tmp_path / "vocab.x.txt").write_text("sail\nkite\nferry\n")
        corpus, dropped = read_own(tmp_path / "docword.x.txt", {}, like)
        assert corpus.content.toarray().tolist() == [[0, 0, 0, 0, 0, 4], [0, 1, 0, 0, 0, 0]]
        assert [(one.number, one.what) for one in dropped][:2] == [(1, "words"), (5, "tokens")]
        assert {one.why.split(",")[0] for one in dropped if one.what == "contexts"} == {"year", "who"}
        again, dropped = read_own(tmp_path / "docword.x.txt", {}, read_own(tmp_path / "docword.x.txt", {})[0])
        assert (again.vocabulary, dropped) == (["sail", "kite", "ferry"], [])
        columns = {"text": "body", "contexts": ["year=Year:number"]}
        with pytest.raises(ValueError, match="context 'year' is not in the corpus, which has: none"):
            read_own(write(tmp_path / "new.csv", NEW), columns, again)
        assert read_own(write(tmp_path / "new.csv", NEW), {"text": "body"}, again)[0].n_tokens == 3

    def test_what_was_not_imported_is_followed_by_given_columns(self, tmp_path):
        """A corpus made in Python, or by an earlier version: words, values and units are known, the file's columns
        not."""
        made = Corpus(
            np.eye(2, 3, dtype=int),
            ["ferry", "bread", "oven"],
            {"who": np.eye(2, dtype=int), "year": [1990.0, 1994.0]},
            context_names={"who": ["ann", "dan"]},
        ).standardised("year")
        path = write(tmp_path / "new.csv", NEW)
        with pytest.raises(ValueError, match="give one column of words"):
            read_own(path, {}, made)
        columns = {"text": "body", "contexts": ["year=Year:number", "who:bag"], "min_letters": 5}
        corpus, _ = read_own(path, columns, made)
        assert corpus.content.toarray().tolist() == [[2, 0, 0], [0, 1, 0]]
        assert corpus.contexts["who"].toarray().tolist() == [[0, 1], [1, 1]]
        assert corpus.contexts["year"][0] == (1995 - 1992) / 2
        for text, message in (
            ("who=Year:number", "context 'who' is read as numbers, but the corpus has names there"),
            ("year=who:bag", "context 'year' is read as names, but the corpus has numbers there"),
            ("x=who:bag", "context 'x' is not in the corpus, which has: who, year"),
        ):
            with pytest.raises(ValueError, match=message):
                read_own(path, columns | {"contexts": [text]}, made)
        with pytest.raises(ValueError, match="'vocabulary' cannot be given"):
            read_own(path, columns | {"vocabulary": "words.txt"}, made)

    @settings(max_examples=60, deadline=None)
    @given(
        rows=st.lists(
            st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 9), max_size=4), min_size=1, max_size=5
        ),
        wanted=st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True),
    )
    def test_columns_are_rearranged_as_by_hand(self, rows, wanted):
        names = sorted({name for row in rows for name in row} | {"a"})
        table = [[row.get(name, 0) for name in names] for row in rows]
        like = Corpus(np.ones((1, len(wanted)), int), wanted, {"n": [1.0]})
        corpus = Corpus(sp.csr_matrix(np.array(table)), names, {"n": np.zeros(len(rows))})
        known = {name for row in rows for name in row if name in wanted}
        if not known and corpus.n_tokens:
            with pytest.raises(ValueError, match=re.escape(f"among the {counted(len(wanted), 'words')} of")):
                reindex_to_schema(Corpus, corpus, schema_of(like))
            return
        found, dropped = reindex_to_schema(Corpus, corpus, schema_of(like))
        assert found.content.toarray().tolist() == [[row.get(name, 0) for name in wanted] for row in rows]
        lost = [(name, count) for row in rows for name, count in row.items() if name not in wanted]
        numbers = {one.what: one.number for one in dropped}
        assert numbers.get("words", 0) == len({name for name, _ in lost})
        assert numbers.get("tokens", 0) == sum(count for _, count in lost)


class TestContextsThatTheFitDoesNotUse:
    @pytest.fixture(scope="class")
    def model(self, earlier):
        corpus = Corpus.load(earlier / "corpus")
        engine = gibbs(contexts={"year": NormalGamma()}, start_topics=3)
        return fit(corpus, *engine, iterations=2, seed=0, progress=False).posterior

    @pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
    def test_they_stay_contexts_of_the_corpus(self, tmp_path, model, suffix):
        """They were dropped without a word: a report on the new documents had no authors."""
        path = write(tmp_path / f"new{suffix}", NEW)
        corpus, dropped = read_own(path, {}, model)
        assert list(corpus.contexts) == ["year", "who"]
        assert corpus.context_names["who"] == ["ann", "dan", "eve", "http://x.org:80"]
        assert corpus.contexts["who"].toarray().tolist() == [[0, 1, 0, 1], [1, 1, 1, 0]]
        assert not [one for one in dropped if "who" in f"{one}"]
        assert model.predict_proba(corpus).shape == (2, len(model.cluster_weights))
        assert model.predict_context(corpus, "year").mean.shape == (2,)
        # where the file stands otherwise, it says where; a name that nothing had before is still refused
        (renamed,) = [{name if name != "who" else "by": one for name, one in row.items()} for row in NEW[:1]]
        corpus, _ = read_own(write(tmp_path / f"by{suffix}", [renamed]), {"contexts": ["who=by"]}, model)
        assert corpus.context_names["who"] == ["dan", "http://x.org:80"]
        with pytest.raises(ValueError, match="context 'author' is not in the model, which has: year"):
            read_own(path, {"contexts": ["author=who:bag"]}, model)

    def test_they_may_be_absent_and_get_columns_of_their_own(self, tmp_path, model):
        corpus, _ = read_own(write(tmp_path / "bare.csv", without(NEW, "who")), {}, model)
        assert list(corpus.contexts) == ["year"]
        corpus, _ = read_own(write(tmp_path / "new.csv", NEW), {}, model, None, 1)
        assert (list(corpus.contexts), corpus.n_words) == (["year", "who"], model.n_words + 2)

    def test_a_data_frame_keeps_them(self, earlier, model):
        frame = pd.DataFrame(NEW).assign(Year=[1995.0, 1996.0])
        corpus = Corpus.from_dataframe(frame, text="body", contexts={"year": "Year", "who": "who"}, separator=";")
        engine = gibbs(contexts={"year": NormalGamma()}, start_topics=3)
        own = fit(corpus, *engine, iterations=2, seed=0, progress=False).posterior
        again = Corpus.from_dataframe(frame, like=own)
        assert again.context_names["who"] == corpus.context_names["who"]
        assert (again.contexts["who"] != corpus.contexts["who"]).nnz == 0
        assert own.was_fitted_on(again)
