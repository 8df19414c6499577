"""Corpus: round trips, parts and batches under hypothesis; what is mapped and what is not touched."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mc2core import Corpus
from mc2core.base.checks import counted
from mc2core.corpus import take_rows

QUICK = settings(max_examples=25, deadline=None, derandomize=True)
NAMES = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=6)
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)


@st.composite
def matrices(draw, rows, most=4):
    shape = (rows, draw(st.integers(1, most)))
    return sp.csr_matrix(draw(hnp.arrays(np.int64, shape, elements=st.sampled_from([0, 0, 1, 2, 70_000]))))


@st.composite
def corpora(draw):
    rows = draw(st.integers(1, 7))
    content = draw(matrices(rows, 6))
    contexts = {"author": draw(matrices(rows))}
    contexts["year"] = draw(hnp.arrays(np.float64, rows, elements=st.floats(-1e6, 1e6) | st.just(np.nan)))
    contexts["place"] = draw(hnp.arrays(np.float64, (rows, 2), elements=st.floats(-9, 9)))
    documents = pd.DataFrame({
        "title": draw(st.lists(TEXT, min_size=rows, max_size=rows)),
        "pages": draw(st.lists(st.integers(-9, 9), min_size=rows, max_size=rows)),
    }) if draw(st.booleans()) else None  # fmt: skip
    labels = draw(st.none() | matrices(rows) | hnp.arrays(np.int64, rows, elements=st.integers(0, 3)))
    return Corpus(
        content,
        vocabulary=draw(st.none() | st.lists(NAMES, min_size=content.shape[1], max_size=content.shape[1], unique=True)),
        contexts=contexts,
        labels=labels,
        documents=documents,
        context_names={"author": [f"a{a}" for a in range(contexts["author"].shape[1])]},
    )


def equal(one, other):
    if sp.issparse(one):
        return one.shape == other.shape and (one != other).nnz == 0
    return one is other is None or np.array_equal(one, other, equal_nan=True)


def assert_same(one, other):
    assert equal(one.content, other.content)
    assert one.contexts.keys() == other.contexts.keys()
    assert all(equal(one.contexts[name], other.contexts[name]) for name in one.contexts)
    assert equal(one.labels, other.labels)
    assert one.vocabulary == other.vocabulary
    assert one.has_vocabulary == other.has_vocabulary
    assert one.context_names == other.context_names
    assert one.label_names == other.label_names
    assert one.units == other.units
    pd.testing.assert_frame_equal(one.documents, other.documents, check_dtype=False)


class TestParts:
    @QUICK
    @given(corpus=corpora(), data=st.data())
    def test_subset_and_take_rows_are_scipy_indexing(self, corpus, data):
        rows = data.draw(hnp.arrays(np.int64, st.integers(0, 9), elements=st.integers(0, corpus.n_documents - 1)))
        assert equal(take_rows(corpus.content, rows), corpus.content[rows])
        part = corpus.subset(rows)
        assert equal(part.content, corpus.content[rows])
        assert all(equal(part.contexts[name], corpus.contexts[name][rows]) for name in corpus.contexts)
        assert corpus.labels is None or equal(part.labels, corpus.labels[rows])
        pd.testing.assert_frame_equal(part.documents, corpus.documents.iloc[rows].reset_index(drop=True))
        twice = part.subset(np.arange(len(rows))[::-1])
        pd.testing.assert_frame_equal(twice.documents, corpus.documents.iloc[rows[::-1]].reset_index(drop=True))
        assert equal(twice.content, corpus.content[rows[::-1]])
        mask = np.isin(np.arange(corpus.n_documents), rows)
        assert equal(corpus.subset(mask).content, corpus.content[np.flatnonzero(mask)])

    @QUICK
    @given(n=st.integers(2, 40), fraction=st.floats(0.01, 0.99), seed=st.integers(0, 5))
    def test_split_is_a_partition_in_order(self, n, fraction, seed):
        corpus = Corpus(np.arange(1, n + 1)[:, None])
        train, test = corpus.split(fraction, seed)
        parts = [part.content.toarray().ravel() for part in (train, test)]
        assert sorted(np.concatenate(parts)) == list(range(1, n + 1))
        assert all((np.diff(part) > 0).all() for part in parts)
        assert test.n_documents == min(max(round(n * fraction), 1), n - 1)
        assert equal(corpus.split(fraction, seed)[1].content, test.content)

    def test_split_depends_on_the_seed(self):
        corpus = Corpus(np.arange(1, 41)[:, None])
        chosen = {tuple(corpus.split(0.25, seed)[1].content.toarray().ravel()) for seed in range(10)}
        assert len(chosen) == 10

    @QUICK
    @given(n=st.integers(1, 30), size=st.integers(1, 40))
    def test_batches_cover_every_document_once(self, n, size):
        corpus = Corpus(np.ones((n, 1), dtype=int))
        batches = list(corpus.batches(size, seed=1, epoch=2))
        assert sorted(np.concatenate(batches)) == list(range(n))
        assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)

    def test_batches_differ_by_epoch(self):
        corpus = Corpus(np.ones((30, 1), dtype=int))
        first, again, second = (np.concatenate(list(corpus.batches(7, 1, epoch))) for epoch in (1, 1, 2))
        assert np.array_equal(first, again)
        assert not np.array_equal(first, second)


class TestContents:
    def test_digest_is_of_what_an_engine_sees(self):
        counts = np.array([[1, 0, 2], [0, 3, 0]])
        year, author = np.array([1.0, np.nan]), sp.csr_matrix([[1, 0], [0, 1]])
        base = Corpus(counts, contexts={"year": year, "author": author})
        variants = [
            Corpus(counts[:, [1, 0, 2]], contexts={"year": year, "author": author}),
            Corpus(np.hstack([counts, [[0], [0]]]), contexts={"year": year, "author": author}),
            Corpus(counts, contexts={"year": year[::-1], "author": author}),
            Corpus(counts, contexts={"year": year, "author": author[::-1]}),
            Corpus(counts, contexts={"year": year}),
            Corpus(counts, contexts={"date": year, "author": author}),
            # a context may bear any name, without hiding the words
            Corpus(counts, contexts={"content": author}),
            Corpus(counts + 1, contexts={"content": author}),
            base.subset([1, 0]),
            base.standardised("year"),
        ]
        assert len({base.digest, *(variant.digest for variant in variants)}) == 1 + len(variants)
        same = Corpus(
            sp.coo_matrix(counts), ["a", "b", "c"], {"author": author.toarray(), "year": year}, labels=np.array([0, 1])
        )
        assert same.digest == base.digest

    def test_counts_are_canonical_and_the_callers_matrix_unchanged(self):
        data, indices, indptr = np.array([3.0, 1.0, 0.0, 2.0]), np.array([2, 0, 1, 2]), np.array([0, 4, 4])
        given_matrix = sp.csr_matrix((data, indices, indptr), shape=(2, 3))
        corpus = Corpus(given_matrix)
        np.testing.assert_array_equal(corpus.content.toarray(), [[1, 0, 5], [0, 0, 0]])
        assert corpus.content.nnz == 2
        assert corpus.content.dtype == np.int32
        np.testing.assert_array_equal(given_matrix.indices, [2, 0, 1, 2])
        np.testing.assert_array_equal(given_matrix.data, [3.0, 1.0, 0.0, 2.0])
        assert corpus.n_tokens == 6
        np.testing.assert_array_equal(corpus.document_lengths, [6, 0])

    def test_constant_values_are_shifted_and_not_scaled(self):
        place = np.column_stack([np.full(12, 0.7), np.arange(12.0)])
        contexts = {"share": np.where(np.arange(12) < 9, 0.1, np.nan), "place": place}
        corpus = Corpus(np.ones((12, 1), int), contexts=contexts)
        assert corpus.standardised("share").units["share"] == (0.1, 1.0)
        (mean, _), (sd, _) = corpus.standardised("place").units["place"]
        assert (mean, sd) == (0.7, 1.0)

    def test_standardised_has_mean_0_and_sd_1_and_keeps_the_unit(self):
        year = np.array([1990.0, np.nan, 2000.0, 2003.0])
        corpus = Corpus(np.ones((4, 1), dtype=int), contexts={"year": year})
        changed = corpus.standardised("year")
        values = changed.contexts["year"]
        assert np.nanmean(values) == pytest.approx(0)
        assert np.nanstd(values) == pytest.approx(1)
        mean, sd = changed.units["year"]
        np.testing.assert_allclose(values * sd + mean, year)
        np.testing.assert_array_equal(corpus.contexts["year"], year)
        follower = corpus.subset([3, 1]).standardised("year", like=changed)
        np.testing.assert_array_equal(follower.contexts["year"], values[[3, 1]])
        constant = Corpus(np.ones((2, 1), dtype=int), contexts={"year": np.array([7.0, 7.0])}).standardised("year")
        np.testing.assert_array_equal(constant.contexts["year"], [0.0, 0.0])

    def test_with_contexts_keeps_the_rest(self):
        corpus = Corpus(
            np.eye(2, dtype=int),
            ["a", "b"],
            {"year": np.array([1.0, 2.0]), "author": np.eye(2, dtype=int)},
            labels=np.array([0, 1]),
            documents=pd.DataFrame({"title": ["x", "y"]}),
            context_names={"author": ["p", "q"]},
            label_names=["l", "m"],
        ).standardised("year")
        part = corpus.with_contexts({"year": corpus.contexts["year"]})
        assert part.units == corpus.units
        assert part.context_names == {}
        assert part.vocabulary == ["a", "b"]
        assert part.label_names == ["l", "m"]
        assert list(part.documents["title"]) == ["x", "y"]
        np.testing.assert_array_equal(corpus.missing("author"), [False, False])


class TestFiles:
    @QUICK
    @given(corpus=corpora())
    def test_save_and_load_round_trip(self, corpus, tmp_path_factory):
        folder = tmp_path_factory.mktemp("round") / "corpus"
        corpus.save(folder)
        loaded = Corpus.load(folder)
        assert_same(loaded, corpus)
        assert loaded.digest == corpus.digest
        loaded._digest = None
        assert loaded.digest == corpus.digest  # computed, not only remembered
        loaded.save(folder)  # over the files it is mapped from
        assert_same(Corpus.load(folder), corpus)

    def test_a_loaded_corpus_is_mapped_and_a_batch_reads_its_rows(self, tmp_path):
        generator = np.random.default_rng(0)
        content = sp.random(200, 50, 0.1, "csr", random_state=generator)
        content.data = np.ceil(content.data * 5)
        Corpus(content, contexts={"author": content[:, :9], "year": generator.normal(size=200)}).save(tmp_path / "c")
        corpus = Corpus.load(tmp_path / "c")
        for array in (
            corpus.content.data,
            corpus.content.indices,
            corpus.contexts["author"].data,
            corpus.contexts["author"].indices,
            corpus.contexts["year"],
        ):
            assert isinstance(array, np.memmap)
        batch = corpus.subset(np.array([5, 17]))
        assert not isinstance(batch.content.data, np.memmap)
        np.testing.assert_array_equal(batch.content.toarray(), content[[5, 17]].toarray())

    def test_documents_with_awkward_text_survive(self, tmp_path):
        titles = ["", "NA", 'a "quoted", one', "two\nlines", "a\rb", "c\r\n", " space "]
        frame = pd.DataFrame({"title": titles, "pages": [1.5, np.nan, 0.0, np.inf, 2.0, 3.0, 4.0]})
        Corpus(np.ones((7, 1), dtype=int), documents=frame).save(tmp_path / "c")
        pd.testing.assert_frame_equal(Corpus.load(tmp_path / "c").documents, frame, check_dtype=False)
        Corpus(np.ones((7, 1), dtype=int), documents=frame[["title"]]).save(tmp_path / "c")
        assert list(Corpus.load(tmp_path / "c").documents["title"]) == titles
        Corpus(np.ones((7, 1), dtype=int), documents=frame[["pages"]]).save(tmp_path / "c")
        pd.testing.assert_frame_equal(Corpus.load(tmp_path / "c").documents, frame[["pages"]])


def test_what_there_is_one_of_is_said_in_the_singular():
    assert repr(Corpus([[1]])) == "Corpus(1 document, 1 word, 1 token, contexts: none)"
    assert (
        repr(Corpus.from_observations([[0.5]], [0])) == "Corpus(1 document, 1 observation of 1 number, contexts: none)"
    )
    assert (counted(1, "entries"), counted(2, "entries")) == ("1 entry", "2 entries")
    with pytest.raises(ValueError, match=r"documents has 2 rows, but the corpus has 1 document$"):
        Corpus([[1]], documents=pd.DataFrame({"n": [1, 2]}))


@pytest.mark.parametrize(("dtype", "most"), [(np.int8, 127), (np.uint8, 255), (np.int16, 32_767)])
def test_repeated_entries_are_added_without_overflow(dtype, most):
    matrix = sp.coo_matrix((np.array([most] * 3, dtype), ([0, 0, 0], [1, 1, 1])), shape=(2, 2))
    assert Corpus(matrix).content.toarray().tolist() == [[0, 3 * most], [0, 0]]


def test_repeated_entries_above_the_largest_count_are_refused():
    most = 2**31 - 1
    with pytest.raises(ValueError, match=str(2 * most)):
        Corpus(sp.coo_matrix((np.array([most, most], np.int32), ([0, 0], [0, 0])), shape=(1, 1)))
