"""What each public entry says to input it cannot use: one sentence, always a ValueError."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.base import storage
from mc2core.compute import streams
from mc2core.families import DirichletCategorical, GammaPoisson, NormalGamma, family_from_settings
from mc2core.inference import Gibbs, Stream
from mc2core.inference.running.loop import fit
from mc2core.models import MC2
from mc2core.posterior import Posterior, Sample, SparseRows, clustering

COUNTS = np.array([[1, 0, 2], [0, 3, 0]])
AUTHOR = sp.csr_matrix([[1, 0], [0, 1]])


def corpus(content=COUNTS, **changes):
    return Corpus(content, **{"contexts": {"year": np.array([0.5, np.nan]), "author": AUTHOR}} | changes)


def context(**contexts):
    return corpus(contexts=contexts)


def model(**changes):
    fields = {
        "cluster_weights": np.array([1.0]), "new_cluster_weight": 0.1, "topic_given_cluster": np.array([[1.0]]),
        "new_topic_weight": np.array([0.1]), "topic_words": np.array([[2, 1, 1]]), "topic_word_prior": 0.1,
        "topic_weights": np.array([0.9]), "table_concentration": 1.0,
        "contexts": SparseRows.from_dense(np.array([[0.5, 0.5]])), "cluster": np.array([0, 0], dtype=np.int32),
    }  # fmt: skip
    return Posterior(
        [Sample(**fields | changes)], {"author": DirichletCategorical(0.5)}, {"author": 2}, ["a", "b", "c"]
    )


def damaged_folder(folder, change):
    """Load a saved corpus after ``change(folder)``."""
    corpus(
        vocabulary=["a", "b", "c"], documents=pd.DataFrame({"n": [1, 2]}), context_names={"author": ["p", "q"]}
    ).save(folder / "corpus")
    change(folder / "corpus")
    return Corpus.load(folder / "corpus")


def edit(**fields):
    def change(folder):
        meta = storage.read_json(folder / "corpus.json")
        storage.write_json(folder / "corpus.json", meta | fields)

    return change


def drop(field):
    def change(folder):
        meta = storage.read_json(folder / "corpus.json")
        del meta[field]
        storage.write_json(folder / "corpus.json", meta)

    return change


def cut(name, length=90):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:length])


def put(name, array):
    return lambda folder: np.save(folder / name, array)


def damaged_model(folder, write):
    model().save(folder / "posterior.npz")
    write(folder / "posterior.npz")
    return Posterior.load(folder / "posterior.npz")


def changed_meta(**fields):
    def write(path):
        arrays = storage.read_arrays(path)
        arrays["meta"] = np.array(json.dumps(json.loads(str(arrays["meta"])) | fields))
        storage.write_arrays(path, arrays)

    return write


def without(name):
    return lambda path: storage.write_arrays(
        path, {key: value for key, value in storage.read_arrays(path).items() if key != name}
    )


BAD_COLUMN = sp.csr_matrix(([1, 1], [0, 1], [0, 1, 2]), shape=(2, 3))
BAD_COLUMN.indices[1] = 7

CASES = {
    # the constructor of Corpus
    "negative count": (lambda d: corpus([[1, 0], [0, -2]]), "content: row 1, column 1 holds -2; counts are whole"),
    "fraction": (lambda d: corpus([[0.5, 1], [1, 1]]), "content: row 0, column 0 holds 0.5; counts are whole"),
    "NaN count": (lambda d: corpus([[1, 1], [np.nan, 1]]), "content: row 1, column 0 holds nan; counts are whole"),
    "infinite count": (lambda d: corpus([[1, 1], [1, np.inf]]), "content: row 1, column 1 holds inf; counts are"),
    "huge count": (lambda d: corpus([[2**31, 1], [1, 1]]), "holds 2147483648; .* below 2"),
    "huge sum of repeated entries": (
        lambda d: corpus(sp.csr_matrix(([2**31 - 1, 1, 1], [0, 0, 0], [0, 2, 3]), shape=(2, 3))),
        "content: row 0, column 0 holds 2147483648",
    ),
    "words as text": (lambda d: corpus([["a"], ["b"]]), "content must be a two-dimensional matrix of counts, not 2"),
    "names as a matrix of text": (
        lambda d: corpus(contexts={"author": np.array([["ann", "bob"], ["bob", ""]])}),
        "context 'author' is a matrix of text; a list of names for each document goes to Corpus.from_texts",
    ),
    "one-dimensional content": (lambda d: corpus([1, 2]), "content must be a two-dimensional matrix of counts, not 1"),
    "complex content": (lambda d: corpus(sp.csr_matrix([[1j], [2]])), "content holds complex128 values"),
    "column outside the matrix": (lambda d: corpus(BAD_COLUMN), "content is not a well-formed sparse matrix"),
    "no documents": (lambda d: Corpus(np.zeros((0, 3), dtype=int)), "content has no documents"),
    "all empty": (lambda d: fit(Corpus(np.zeros((2, 3), dtype=int))), "the corpus is empty: no document has a word"),
    "vocabulary length": (lambda d: corpus(vocabulary=["a"]), "vocabulary has 1 name; needed: 3"),
    "line break in a word": (lambda d: corpus(vocabulary=["a", "b\n", "c"]), "vocabulary has a name with a line break"),
    "documents length": (
        lambda d: corpus(documents=pd.DataFrame({"n": [1]})), "documents has 1 row, but the corpus has 2"
    ),
    # contexts and labels
    "context length": (lambda d: context(year=[1.0]), r"context 'year' has shape \(1,\), but the corpus has 2"),
    "count context length": (lambda d: context(tag=AUTHOR[:1]), "context 'tag' has 1 row, but the corpus has 2"),
    "infinite context": (lambda d: context(year=[1, np.inf]), "context 'year': document 1 is infinite; use NaN"),
    "context of text": (lambda d: context(year=["old", "new"]), "context 'year' must hold numbers"),
    "negative tag": (lambda d: context(tag=[[1, 0], [-1, 0]]), "context 'tag': row 1, column 0 holds -1"),
    "context name": (lambda d: corpus(contexts={"../x": AUTHOR}), "context name '../x' must be a plain identifier"),
    "the same column twice": (
        lambda d: corpus(documents=pd.DataFrame([["x", "y"]] * 2, columns=["title", "title"])),
        "documents has the column 'title' twice",
    ),
    "a column without a name": (
        lambda d: corpus(documents=pd.DataFrame(["x", "y"])),
        "documents has the column 0; the name of a column is text of at least one letter",
    ),
    "a column with an empty name": (
        lambda d: corpus(documents=pd.DataFrame({"": ["x", "y"]})),
        "documents has the column ''; the name of a column is text",
    ),
    "names of no context": (lambda d: corpus(context_names={"tag": []}), "context_names names 'tag', which is not"),
    "number of context names": (
        lambda d: corpus(context_names={"author": ["p"]}), r"context_names\['author'\] has 1 name; needed: 2"
    ),
    "labels length": (lambda d: corpus(labels=[0]), r"labels has shape \(1,\), but the corpus has 2 documents"),
    "negative label": (lambda d: corpus(labels=[0, -1]), "labels must be whole numbers of at least 0"),
    "fractional label": (lambda d: corpus(labels=[0.5, 1]), "labels must be whole numbers of at least 0"),
    "label names": (lambda d: corpus(labels=[0, 2], label_names=["a"]), "label_names has 1 name; needed: 3"),
    "unit of sd 0": (lambda d: corpus(units={"year": (1, 0)}), r"units\['year'\] must be \(mean, sd > 0\)"),
    "contexts as a list": (lambda d: corpus(contexts=["year"]), r"contexts is \['year'\]; a mapping by name is needed"),
    "contexts of texts as a list": (
        lambda d: Corpus.from_texts(["a b"], contexts=["year"]), r"contexts is \['year'\]; a mapping by name is needed"
    ),
    "values of a context as a number": (
        lambda d: Corpus.from_texts(["a b"], contexts={"year": 1}), r"contexts\['year'\] is 1; a list is needed"
    ),
    "texts as a number": (lambda d: Corpus.from_texts(1), "texts is 1; a list is needed"),
    "other contexts as a list": (lambda d: corpus().with_contexts(["year"]), "a mapping by name is needed"),
    "units as a list": (lambda d: corpus(units=["year"]), r"units is \['year'\]; a mapping by name is needed"),
    "documents as a list": (lambda d: corpus(documents=[1, 2]), r"documents is \[1, 2\]; a pandas DataFrame is needed"),
    "vocabulary as a word": (lambda d: corpus(vocabulary="abc"), "vocabulary is 'abc'; a list is needed"),
    "a column of contexts twice": (
        lambda d: Corpus.from_dataframe(pd.DataFrame({"t": ["a b"], "y": [1]}), "t", contexts=["y", "y"]),
        "context 'y' is given twice",
    ),
    "a separator that is a number": (
        lambda d: Corpus.from_dataframe(pd.DataFrame({"t": ["a b"]}), "t", separator=1), "separator is 1; a sign such"
    ),
    "a column to keep as a number": (
        lambda d: Corpus.from_dataframe(pd.DataFrame({"t": ["a b"]}), "t", keep=1), "keep is 1; a list is needed"
    ),
    "min_df of text": (lambda d: Corpus.from_texts(["a b"], min_df="2"), "min_df is '2'; it must be a number"),
    "max_df of text": (lambda d: Corpus.from_texts(["a b"], max_df="2"), "max_df is '2'; it must be a number"),
    "number of documents as text": (
        lambda d: Corpus.from_observations([[1.0]], [0], n_documents="1"), "n_documents is '1'; it must be a number"
    ),
    "embeddings beside a context of their name": (
        lambda d: context(embedding=[1.0, 2.0]).with_embeddings(np.eye(2)), "context 'embedding' is given twice"
    ),
    "a context of a model twice": (lambda d: MC2(contexts=["year", "year"]), "context 'year' is given twice"),
    "a context's name in a list": (lambda d: MC2(contexts=[["year"]]), r"contexts has the name \['year'\]"),
    "a stream of no fit": (lambda d: Stream("x"), r"fit is 'x'; a fit by SVI is needed: mc2core\.fit"),
    "a callback that is none": (lambda d: fit(corpus(), callback=1), "callback is 1; a function of the iteration"),
    "snapshots that are none": (lambda d: fit(corpus(), snapshots=1), "snapshots is 1; a list is needed"),
    "too many threads": (lambda d: Gibbs(threads=10_000), "threads is 10000; .* at least 1 and at most 1024"),
    "too many threads of a prediction": (
        lambda d: model().predict(corpus(), threads=10_000), "threads is 10000; .* at least 1 and at most 1024"
    ),
    # parts of a corpus
    "parts that are none": (lambda d: Corpus.concatenate("ab"), "corpora is 'ab'; a list is needed"),
    "a part that is none": (lambda d: Corpus.concatenate([corpus(), "a"]), "corpora holds 'a'; a list of Corpus"),
    "split of text": (lambda d: corpus().split("a"), "test_size is 'a'; it must be a number"),
    "document outside": (lambda d: corpus().subset([0, 2]), r"document 2 is outside 0\.\.1"),
    "mask length": (lambda d: corpus().subset([True]), r"the mask has shape \(1,\), but the corpus has 2"),
    "fractional document": (lambda d: corpus().subset([0.5]), "documents are chosen by a list of whole numbers"),
    "split of everything": (lambda d: corpus().split(1.0), "test_size is 1.0; it must lie between 0 and 1"),
    "split of one": (lambda d: corpus().subset([0]).split(0.5), "a corpus of one document cannot be split"),
    "negative seed": (lambda d: corpus().split(0.5, seed=-1), "seed is -1: a seed is a whole number of at least 0"),
    "fractional seed": (lambda d: streams.key(0.5, "x"), "seed is 0.5: a seed is a whole number"),
    "seed of text": (lambda d: streams.generator("1", "x"), "seed is '1': a seed is a whole number"),
    "batch size": (lambda d: list(corpus().batches(0, 0, 1)), "size is 0; it must be a whole number of at least 1"),
    "standardise tags": (lambda d: corpus().standardised("author"), "'author' is not a numeric context"),
    "standardise twice": (
        lambda d: corpus().standardised("year").standardised("year"), "'year' is standardised already"
    ),
    "standardise like raw": (
        lambda d: corpus().standardised("year", like=corpus()), "the reference corpus is not standardised"
    ),
    # saved corpora
    "no corpus": (lambda d: Corpus.load(d), "holds no corpus: corpus.json is missing"),
    "broken meta": (lambda d: damaged_folder(d, cut("corpus.json", 20)), "corpus.json is not readable JSON"),
    "other format": (lambda d: damaged_folder(d, edit(format="x")), "corpus.json cannot be read: its format is 'x'"),
    "newer format": (
        lambda d: damaged_folder(d, edit(format="mc2core corpus 10")), "of a newer mc2core than .*: update mc2core"
    ),
    "missing field": (lambda d: damaged_folder(d, drop("digest")), "corpus.json lacks a field .*'digest'"),
    "wrong field": (lambda d: damaged_folder(d, edit(units=[1])), "corpus.json lacks a field or holds a wrong one"),
    "other shape": (lambda d: damaged_folder(d, edit(shape=[5, 3])), "content.indptr.npy holds .* 6 values of int64"),
    "context shape": (
        lambda d: damaged_folder(d, edit(contexts={"author": [9, 2], "year": None})),
        r"context.author the shape \[9, 2\], but there are 2 documents",
    ),
    "names of a numeric context": (
        lambda d: damaged_folder(d, edit(context_names=["year"])), "columns of 'year', which is not a count context"
    ),
    "missing array": (
        lambda d: damaged_folder(d, lambda folder: (folder / "content.data.npy").unlink()), "data.npy is missing"
    ),
    "cut array": (lambda d: damaged_folder(d, cut("content.data.npy")), "data.npy is not a complete array file"),
    "array of another type": (
        lambda d: damaged_folder(d, put("content.data.npy", np.ones(3))), "data.npy holds .* float64; 3 values of int32"
    ),
    "falling row pointers": (
        lambda d: damaged_folder(d, put("content.indptr.npy", np.array([0, 4, 3]))), "indptr.npy does not rise from 0"
    ),
    "short vocabulary": (
        lambda d: damaged_folder(d, cut("vocabulary.txt", 2)).vocabulary, "vocabulary.txt has 1 line; needed: 3"
    ),
    "short documents": (
        lambda d: damaged_folder(d, cut("documents.csv", 6)).documents, "documents.csv has 1 row, but the corpus has 2"
    ),
    # models and estimators
    "model cut short": (
        lambda d: damaged_model(d, lambda path: path.write_bytes(path.read_bytes()[:200])), "not a complete array file"
    ),
    "model of other format": (lambda d: damaged_model(d, changed_meta(format="x")), "saved posterior: its format is"),
    "model of newer format": (
        lambda d: damaged_model(d, changed_meta(format="mc2core posterior 99")), "of a newer mc2core than"
    ),
    "model without an array": (lambda d: damaged_model(d, without("0.natural.least")), "is not a saved posterior"),
    "model of words that are numbers": (
        lambda d: damaged_model(d, changed_meta(vocabulary=[1, 2, 3])), r"saved posterior: 'vocabulary' is '\[1, 2"
    ),
    "model of names that are numbers": (
        lambda d: damaged_model(d, changed_meta(context_names={"author": [1, 2]})), "posterior: 'context_names' is"
    ),
    "model without a description": (
        lambda d: damaged_model(d, changed_meta(provenance=None)), "not a saved posterior: 'provenance' is 'None'"
    ),
    "model of no samples": (lambda d: damaged_model(d, changed_meta(n_samples=0)), "needs at least one sample"),
    "model of unknown family": (
        lambda d: damaged_model(d, changed_meta(families={"author": {"family": "dirichlt"}})),
        "family 'dirichlt' is not known; did you mean 'dirichlet'",
    ),
    "other vocabulary": (lambda d: model().perplexity(corpus([[1], [1]])), "has 1 word, but the model was fitted"),
    "context absent": (
        lambda d: model().perplexity(Corpus(COUNTS), "context"), "context 'author' is not in the corpus; it has: none"
    ),
    "context absent where clusters are told": (
        lambda d: model().predict_proba(Corpus(COUNTS)), "it has: none; use_context=False .* predicts from words alone"
    ),
    "context of other columns": (
        lambda d: model().predict(context(author=np.eye(2, 5, dtype=int))), "'author' has 5 columns, but the model was"
    ),
    "unknown context": (lambda d: model().context_mean("yaer"), "'yaer' is not in the posterior; it has: author"),
    "no top words": (lambda d: model().top_words(0), "n is 0; it must be at least 1"),
    "estimator": (
        lambda d: model().perplexity(corpus(), "importence"), "estimator is 'importence'; .* did you mean 'importance'"
    ),
    "perplexity of nothing": (
        lambda d: model().perplexity(Corpus(COUNTS * 0, contexts={"author": AUTHOR})), "perplexity needs words"
    ),
    "perplexity seed": (lambda d: model().perplexity(corpus(), seed=-2), "seed is -2: a seed is a whole number"),
    "threads": (lambda d: model().perplexity(corpus(), threads=0), "threads is 0; it must be a whole number"),
    "no table concentration": (
        lambda d: model(table_concentration=float("nan"), new_cluster_weight=0.0).perplexity(corpus(), "importance"),
        r"table_concentration is nan; an admixture \(HDP, LDA\) needs a finite one",
    ),
    "topic of nothing": (
        lambda d: model(topic_word_prior=0.0, topic_words=np.zeros((1, 3))).perplexity(corpus()),
        "topic 0 has neither words nor prior mass",
    ),
    # families
    "unknown family": (lambda d: family_from_settings({"family": "gausian"}), "family 'gausian' is not known"),
    "unknown setting": (
        lambda d: family_from_settings({"family": "dirichlet", "a": 1}), "has no setting 'a'; known: concentration"
    ),
    "concentration 0": (lambda d: DirichletCategorical(0), "DirichletCategorical concentration is 0; .* above 0"),
    "infinite mean": (lambda d: NormalGamma(mu0=np.inf), "NormalGamma mu0 is inf; it must be a finite number"),
    "shape of text": (lambda d: GammaPoisson("2"), "is '2'; it must be a number"),
    "fraction of Poisson": (lambda d: GammaPoisson().statistics(np.array([1, 2.5])), "document 1 holds 2.5; counts"),
    "Gaussian of tags": (lambda d: NormalGamma().statistics(AUTHOR), "needs one number for each document, not a"),
    # clustering
    "lengths of clusterings": (lambda d: clustering.nmi([0, 1], [0]), "truth has 2 documents, but clusters has 1"),
    "empty clustering": (lambda d: clustering.purity([], []), "truth is empty; at least one document is needed"),
    "fractional clusters": (lambda d: clustering.f_score([0, 1], [0.5, 1]), "clusters holds float64 values; labels"),
    "memberships for nmi": (lambda d: clustering.nmi(AUTHOR, [0, 1]), "memberships suit extended_nmi only"),
    "negative membership": (
        lambda d: clustering.extended_nmi([[1, 0], [2, -1]], [0, 1]), "truth: document 1 holds -1.0; memberships must"
    ),
    "no membership": (
        lambda d: clustering.extended_nmi([0, 1], [[1, 0], [0, 0]]), "clusters: document 1 has no membership at all"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_in_one_sentence(case, tmp_path):
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message) as caught:
        call(tmp_path)
    assert "\n" not in str(caught.value)
