"""Tables of documents have the index of the DataFrame that they were read from: their columns can be assigned to it."""

import io

import numpy as np
import pandas as pd
import pytest
from helpers.commands import mc2
from helpers.fits import gibbs

from mc2core import Corpus, Fit, fit

N = 24
WORDS = [["ferry", "harbour", "sail"], ["bread", "flour", "oven"]]


def frame_of(index=None):
    """Two groups; the frame is sorted by a column that has nothing to do with them."""
    rng = np.random.default_rng(3)
    group = np.arange(N) % 2
    texts = [" ".join(rng.choice(WORDS[k], 8)) for k in group]
    frame = pd.DataFrame({"text": texts, "year": 1990.0 + group, "title": [f"t{j}" for j in range(N)], "group": group})
    frame = frame if index is None else frame.set_axis(index)
    return frame.sample(frac=1.0, random_state=5)


def test_an_index_of_numbers_may_have_gaps(tmp_path):
    Corpus.from_texts(pd.Series(["red lake", "sea"], index=[0.5, np.nan])).save(tmp_path / "own")
    np.testing.assert_array_equal(Corpus.load(tmp_path / "own").index, [0.5, np.nan])


def corpus_of(frame):
    return Corpus.from_dataframe(frame, "text", contexts=["year"], keep=["title"])


def fitted(corpus):
    return fit(corpus, *gibbs(kernel="collapsed", contexts=["year"], start_topics=4), iterations=4, progress=False)


def numbers(done):
    """Of each document, by cut: its cluster in the recommended clustering and in that of the fit, from 1."""
    posterior = done.posterior
    recommended = posterior.find_hierarchy(done.corpus).recommended
    return {
        "recommended": posterior.assign(done.corpus, cut=recommended)[0] + 1,
        "all": posterior.by_size[posterior.cluster] + 1,
    }


INDEXES = {
    "numbers": None,
    "texts": [f"id {j}" for j in range(N)],
    "dates": pd.date_range("2001-01-01", periods=N, name="day"),
    "two levels": pd.MultiIndex.from_product([range(N // 2), ["a", "b"]]),
    "twice the same": [j // 2 for j in range(N)],
}


@pytest.mark.parametrize("kind", INDEXES)
def test_clusters_are_assigned_to_the_rows_that_they_are_of(kind):
    frame = frame_of(INDEXES[kind])
    done = fitted(corpus_of(frame))
    table = done.documents()
    assert table.index.equals(frame.index)
    assert table["document_title"].tolist() == frame["title"].tolist()
    assert table["document"].tolist() == list(range(1, N + 1))
    assert done.corpus.documents.index.equals(frame.index)
    predicted = done.posterior.predict_context(done.corpus, "year").table()
    assert predicted.index.equals(frame.index)
    if frame.index.is_unique:
        for cut, wanted in numbers(done).items():
            frame["cluster"] = done.documents(cut)["cluster"]
            assert frame["cluster"].tolist() == wanted.tolist()


def test_split_subset_and_fit_keep_the_index_of_the_frame():
    """Of a frame whose rows are numbered from 0, too: a part of it has others."""
    frame = frame_of().sort_index()
    corpus = corpus_of(frame)
    assert corpus.documents.index.equals(frame.index)
    train, test = corpus.split(0.25, seed=1)
    for part in (train, test, train.subset([3, 1]), corpus.subset(np.arange(N) > 20), train.standardised("year")):
        assert (frame.loc[part.documents.index, "title"] == part.documents["title"]).all()
    done = fitted(train)
    for cut, wanted in numbers(done).items():
        frame["cluster"] = done.documents(cut)["cluster"]
        assert frame["cluster"].notna().sum() == train.n_documents
        assert frame.loc[train.documents.index, "cluster"].tolist() == wanted.tolist()
    of_test = Fit(done.posterior, test).documents()
    assert of_test.index.equals(test.documents.index)
    assert Corpus.concatenate([train, test]).documents.index.equals(train.documents.index.append(test.documents.index))
    like = Corpus.from_dataframe(frame.loc[test.documents.index], like=done.posterior)
    assert like.documents.index.equals(test.documents.index)


def test_a_corpus_takes_the_index_of_its_series_or_frame():
    frame = frame_of()
    assert Corpus.from_texts(frame["text"]).documents.index.equals(frame.index)
    assert Corpus.from_texts(list(frame["text"]), documents=frame[["title"]]).documents.index.equals(frame.index)
    counts = pd.DataFrame(np.ones((N, 2), int), index=frame.index)
    assert Corpus(counts).documents.index.equals(frame.index)
    assert Corpus(counts.to_numpy(), documents=frame[["title"]]).documents.index.equals(frame.index)
    plain = Corpus(counts.to_numpy())
    assert plain.index is None
    assert plain.subset([4, 2]).documents.index.equals(pd.RangeIndex(2))
    with pytest.raises(ValueError, match="the index has 3 rows, but the corpus has 24 documents"):
        plain.set_index(pd.RangeIndex(3))


@pytest.mark.parametrize("kind", INDEXES)
def test_it_is_saved(tmp_path, kind):
    frame = frame_of(INDEXES[kind])
    corpus = corpus_of(frame)
    corpus.save(tmp_path / "corpus")
    loaded = Corpus.load(tmp_path / "corpus", verify=True)
    wanted = frame.index.map(str) if kind == "two levels" else frame.index
    assert loaded.documents.index.equals(wanted)
    assert loaded.documents.index.name == wanted.name
    assert loaded.documents["title"].tolist() == frame["title"].tolist()
    (tmp_path / "corpus/index.csv").write_text('"index"\n1\n')
    with pytest.raises(
        ValueError, match=r"index.csv (has 1 row, but the corpus has 24 documents|is missing or damaged)"
    ):
        Corpus.load(tmp_path / "corpus")


def test_commands_print_documents_by_their_number(tmp_path, capsys):
    corpus = corpus_of(frame_of())
    fitted(corpus).posterior.save(tmp_path / "posterior.npz")
    corpus.save(tmp_path / "corpus")
    for command in (["clusters"], ["contexts"]):
        more = ["year"] if command == ["contexts"] else []
        mc2([*command, tmp_path / "posterior.npz", tmp_path / "corpus", *more])
        printed = pd.read_csv(io.StringIO(capsys.readouterr().out))
        assert printed["document_title"].tolist() == corpus.documents["title"].tolist()
        assert printed["document"].tolist() == list(range(1, N + 1))
