"""Embeddings as a context: the reduction, what is refused, and fits and predictions that follow it."""

import json
import re
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.commands import mc2
from sklearn.decomposition import PCA

from mc2core import Corpus, Posterior, fit
from mc2core.app.cli import main
from mc2core.corpus.embeddings import KEY, MAX_COMPONENTS, Projection, projection_of
from mc2core.explore.description import Description
from mc2core.explore.tables import tables_of
from mc2core.families import DiagonalNormalGamma
from mc2core.inference import SVI, Gibbs, Stream
from mc2core.inference.gibbs import assignments
from mc2core.models import MC2

STRENGTH = 0.45
GROUPS = np.arange(60) % 3
TEXTS = [
    f"{('boat', 'oven', 'bird')[group]} {('sail', 'bread', 'wing')[group]} day{j % 4}" for j, group in enumerate(GROUPS)
]


def vectors(length=80, seed=0, dtype=np.float32):
    """Three directions with noise, of lengths from 1 to 9."""
    rng = np.random.default_rng(seed)
    made = 3.0 * rng.normal(size=(3, length))[GROUPS] + rng.normal(size=(60, length))
    return (made * rng.uniform(1, 9, (60, 1)) / np.linalg.norm(made, axis=1, keepdims=True)).astype(dtype)


def test_the_reduction_is_whitened_principal_components():
    given = vectors()
    directions = given.astype(float) / np.linalg.norm(given.astype(float), axis=1, keepdims=True)
    pca = PCA(MAX_COMPONENTS, whiten=True, svd_solver="full").fit(directions)
    projection = Projection.from_vectors(given)
    found = projection.apply(given)
    assert found.shape == (60, MAX_COMPONENTS)
    # scikit-learn's variances have n - 1 below; which sign a component has is open
    np.testing.assert_allclose(
        np.abs(found), np.abs(pca.transform(directions)) * np.sqrt(60 / 59), rtol=1e-3, atol=1e-4
    )
    assert projection.explained == pytest.approx(pca.explained_variance_ratio_.sum(), abs=1e-5)
    np.testing.assert_array_equal(projection.apply(given[7:8])[0], found[7])
    stored = projection_of({KEY: json.loads(json.dumps(projection.stored()))})
    np.testing.assert_array_equal(stored.apply(given), found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:-1], "embeddings have 59 rows, but the corpus has 60 documents"),
        (lambda x: x[:, 0], "embeddings hold 1-dimensional float64; a dense matrix of numbers with a row for each"),
        (lambda x: x.astype(str), "embeddings hold 2-dimensional <U"),
        (lambda x: sp.csr_matrix(x), "embeddings hold 0-dimensional object"),
        (lambda x: x[:, :0], "embeddings have 0 columns; 1 to 16,384 are allowed"),
        (lambda x: np.where(np.arange(60)[:, None] == 5, np.inf, x), "document 5 has a number that is infinite"),
        (lambda x: np.where(x == x[5, 2], np.nan, x), "document 5 has a number that is NaN"),
        (lambda x: 0 * x, "no document has a vector other than zeros"),
        (lambda x: np.outer(np.arange(1.0, 61.0), x[0]), "the vectors of all 60 documents point in the same direction"),
    ],
)  # fmt: skip
def test_what_is_no_matrix_of_directions_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Corpus.from_texts(TEXTS, embeddings=change(vectors(dtype=float)))


def test_vectors_of_bad_rows_that_are_left_out_are_named(tmp_path, capsys):
    frame = pd.DataFrame({"text": TEXTS, "year": np.arange(60).astype(object)})
    frame.loc[7, "year"] = "soon"
    frame.to_csv(tmp_path / "own.csv", index=False)
    command = ["import", str(tmp_path / "own.csv"), "--text", "text", "--context", "year:number", "--skip-bad", "1"]
    for given in (vectors(), np.delete(vectors(), 7, axis=0)):
        np.save(tmp_path / "own.npy", given)
        done = main([*command, "--embeddings", str(tmp_path / "own.npy"), "--out", str(tmp_path / "corpus")])
        refused = capsys.readouterr().err
        assert (done == 0) == (len(given) == 59)
        assert ("embeddings also have rows for the bad rows" in refused) == (len(given) == 60)
        assert ("the rows that belong to: line 9" in refused) == (len(given) == 60)


def test_zero_rows_are_missing_and_ranks_limit_the_components():
    given = vectors()
    given[:, 10:] = 2.5
    given[3], given[4] = 0.0, np.nan
    corpus = Corpus.from_dataframe(pd.DataFrame({"text": TEXTS}), "text", embeddings=given)
    assert np.flatnonzero(corpus.missing("embedding")).tolist() == [3, 4]
    assert corpus.vector_lengths == {"embedding": 11}  # ten columns that vary, and the constant ones by the length
    few = Corpus.from_texts(TEXTS[:5], embeddings=vectors()[:5])
    assert few.vector_lengths == {"embedding": 4}
    known = few.contexts["embedding"]
    np.testing.assert_allclose(known.T @ known / 5, np.eye(4), atol=1e-5)
    huge = Corpus.from_texts(TEXTS, embeddings=1e300 * vectors(dtype=float)).contexts["embedding"]
    np.testing.assert_allclose(
        huge, Corpus.from_texts(TEXTS, embeddings=vectors(dtype=float)).contexts["embedding"], atol=1e-6
    )


def test_new_documents_are_reduced_as_those_of_the_fit(tmp_path, monkeypatch, capfd):
    """And what ``mc2 predict`` says of the documents of the fit is what the posterior says of them."""
    given = vectors()
    np.save(tmp_path / "all.npy", given)
    (tmp_path / "own.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    source = [str(tmp_path / "own.jsonl"), "--embeddings", str(tmp_path / "all.npy")]
    mc2(["import", *source, "--text", "text", "--out", tmp_path / "data"])
    assert "embeddings of 80 numbers were reduced to 20 principal components" in capfd.readouterr().out
    command = ["fit", str(tmp_path / "data"), "--engine", "svi", "--set", "max_clusters=6", "--set", "max_topics=6"]
    mc2([*command, "--iterations", "3", "--out", tmp_path / "fit"])
    posterior, corpus = Posterior.load(tmp_path / "fit"), Corpus.load(tmp_path / "data")
    assert (
        f"context embedding: the embeddings of the corpus, strength {STRENGTH} (default rule)" in capfd.readouterr().out
    )
    description = Description.from_posterior(posterior, corpus)
    tables = tables_of(description)
    told = tables["summary"].set_index("name")["value"]["embeddings"]
    # the first typical document is the nearest by words and embeddings together
    first = tables["cluster_documents"].query("rank == 1").iloc[0]
    own = np.flatnonzero(description.cluster == first["cluster"] - 1)
    shares = corpus.content[own].toarray() / corpus.document_lengths[own, None]
    by_words = np.sqrt(shares) @ description.node_features(np.array([int(first["cluster"]) - 1]))[0]
    directions = corpus.contexts["embedding"][own] * projection_of(corpus.imported).sd
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    mean = directions.mean(axis=0)
    both = 0.5 * (by_words + directions @ mean / np.linalg.norm(mean))
    assert (first["document"] - 1, first["overlap"]) == (own[both.argmax()], pytest.approx(both.max()))
    assert re.fullmatch(f"80 numbers, reduced to 20 components with [0-9]+% of the variance; strength {STRENGTH}", told)
    # 3 components for each of three tokens, of 20
    assert posterior.families["embedding"].strength == pytest.approx(STRENGTH)
    other = Corpus.from_texts(TEXTS[:9], embeddings=given[:9], like=posterior)
    expected = posterior.predict_proba(corpus)
    np.testing.assert_allclose(posterior.predict_proba(other), expected[:9], rtol=1e-9, atol=1e-12)
    mc2(["import", *source, "--like", tmp_path / "fit", "--out", tmp_path / "again"])
    np.testing.assert_allclose(
        posterior.predict_proba(Corpus.load(tmp_path / "again")), expected, rtol=1e-9, atol=1e-12
    )

    records = [{"text": text, "embedding": row} for text, row in zip(TEXTS, given.tolist(), strict=True)]
    records += [{"text": TEXTS[0]}, {"text": "", "embedding": given[1].tolist()}]
    records += [{"text": TEXTS[0], "embedding": [1.0] * 79}, {"text": TEXTS[0], "embedding": [None, *[1.0] * 79]}]
    (tmp_path / "lines").write_text("".join(json.dumps(record) + "\n" for record in records))
    with open(tmp_path / "lines", "rb") as stream:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        capfd.readouterr()
        assert main(["predict", str(tmp_path / "fit")]) == 2
    out, err = capfd.readouterr()
    said = [json.loads(line) for line in out.splitlines()]
    assert [one["cluster"] - 1 for one in said[:60]] == expected.argmax(axis=1).tolist()
    np.testing.assert_allclose([one["probability"] for one in said[:60]], expected.max(axis=1), atol=1e-6)
    assert (said[61]["cluster"], said[60]["contexts"]) == (said[1]["cluster"], {})
    assert re.search("line 63.* a list of 80 numbers.*line 64.* no gaps", err, re.DOTALL)


@pytest.mark.parametrize("length", [8, 80])
def test_vectors_that_were_not_reduced_are_refused(tmp_path, capsys, refused, length):
    """Those of 8 numbers are as long as what they are reduced to."""
    given = vectors(length)
    corpus = Corpus.from_texts(TEXTS, embeddings=given)
    made = fit(corpus, MC2(), SVI(max_clusters=4, max_topics=4), iterations=1)
    made.posterior.save(tmp_path / "fit.npz")
    np.save(tmp_path / "all.npy", given)
    (tmp_path / "own.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    command = ["import", str(tmp_path / "own.jsonl"), "--text", "text", "--like", str(tmp_path / "fit.npz")]
    command += ["--out", str(tmp_path / "new"), "--overwrite"]
    message = "the vectors of context 'embedding' were not reduced like those of the model; .*--embeddings FILE.npy"
    assert main([*command, "--context", f"embedding={tmp_path / 'all.npy'}:vector"]) == 2
    assert re.search(message, capsys.readouterr().err)
    error = "give them with --embeddings FILE.npy (in Python embeddings=)"
    refused([*command, "--context", "embedding=text:bag"], error)
    mc2(command)
    said = "context 'embedding' is missing in every document; give its vectors with --embeddings FILE.npy"
    assert said in capsys.readouterr().err
    raw = Corpus(corpus.content, corpus.vocabulary, {"embedding": given.astype(float)})
    for read in (made.posterior.predict, lambda one: Corpus.concatenate([corpus, one]), Stream(made).partial_fit):
        with pytest.raises(ValueError, match="the vectors of context 'embedding' were not reduced like those of the"):
            read(raw)
    with pytest.raises(ValueError, match=message):
        Corpus.from_texts(TEXTS, {"embedding": given.astype(float)}, like=made.posterior)


def test_an_update_takes_embeddings_as_the_import_does(tmp_path, capsys, refused):
    given = vectors()
    np.save(tmp_path / "all.npy", given)
    np.save(tmp_path / "new.npy", given[:20])
    for name, n in (("all", 60), ("new", 20)):
        rows = [json.dumps({"text": text, "id": f"{name} {j}"}) for j, text in enumerate(TEXTS[:n])]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    command = ["import", str(tmp_path / "all.jsonl"), "--text", "text", "--id", "id", "--out", str(tmp_path / "data")]
    mc2([*command, "--embeddings", tmp_path / "all.npy"])
    settings = ["--engine", "svi", "--set", "max_clusters=4", "--set", "batch_size=20", "--iterations", "1"]
    mc2(["fit", tmp_path / "data", *settings, "--out", tmp_path / "fit"])
    update = ["update", str(tmp_path / "fit"), str(tmp_path / "new.jsonl"), "--out", str(tmp_path / "more")]
    refused([*update, "--embeddings", tmp_path / "all.npy"], "embeddings have 60 rows, but the corpus has 20 documents")
    mc2([*update, "--embeddings", tmp_path / "new.npy"])
    said = capsys.readouterr()
    assert f"--embeddings {tmp_path / 'new.npy'} --out FOLDER" in said.out
    assert "left out" not in said.err


@pytest.mark.parametrize(("strength", "most"), [(0.5, 30), (0.0, 20)])
def test_a_chain_starts_from_more_clusters_that_embeddings_find(monkeypatch, strength, most):
    """Of 300 documents with one word. With strength 0, from those of words."""
    numbers, cluster_documents = [], assignments.cluster_documents

    def noted(corpus, contexts, n_clusters, rng, directions):
        cluster = cluster_documents(corpus, contexts, n_clusters, rng, directions)
        numbers.append(n_clusters)
        if n_clusters == most:  # one cluster or, by embeddings, several for each direction
            assert len(np.unique(cluster)) == (most if strength else 1)
            expected = corpus.contexts["embedding"] * projection_of(embedded.imported).sd
            if strength:
                expected /= np.linalg.norm(expected, axis=1, keepdims=True)
                np.testing.assert_allclose(directions, expected, atol=1e-4)
        return cluster

    monkeypatch.setattr(assignments, "cluster_documents", noted)
    given = np.concatenate([vectors(seed=seed) for seed in range(5)])
    embedded = Corpus(np.ones((300, 1), int)).with_embeddings(given)
    model = MC2(contexts={"embedding": DiagonalNormalGamma(strength=strength)})
    Gibbs().init(model.for_corpus(embedded), embedded, 0)
    assert min(numbers) == most


def test_a_corpus_keeps_its_reduction_in_parts_files_and_unions(tmp_path):
    given = vectors()
    whole = Corpus.from_texts(TEXTS, embeddings=given)
    whole.save(tmp_path / "corpus")
    first, last = whole.subset(np.arange(40)), Corpus.load(tmp_path / "corpus").subset(np.arange(40, 60))
    united = Corpus.concatenate([first, last])
    np.testing.assert_array_equal(united.contexts["embedding"], whole.contexts["embedding"])
    assert united.imported[KEY] == whole.imported[KEY]
    with pytest.raises(ValueError, match="reduced differently"):
        Corpus.concatenate([first, Corpus.from_texts(TEXTS[40:], embeddings=given[40:])])
    with pytest.raises(ValueError, match="embeddings have 79 numbers, but earlier ones have 80"):
        Corpus.from_texts(TEXTS, embeddings=given[:, :79], like=whole)
    without = Corpus.from_texts(TEXTS, like=whole)
    assert without.missing("embedding").all()
    assert without.imported[KEY] == whole.imported[KEY]
    damaged = whole.imported[KEY] | {"basis": whole.imported[KEY]["basis"][:-8]}
    with pytest.raises(ValueError, match="the stored reduction of embeddings is damaged"):
        projection_of({KEY: damaged})


def test_they_are_used_by_default_and_an_empty_list_uses_none():
    corpus = Corpus.from_texts(TEXTS, embeddings=vectors())
    engine = SVI(max_clusters=4, max_topics=4)
    assert fit(corpus, MC2(), engine, iterations=1).posterior.context_kinds == {"embedding": "vector"}
    assert fit(corpus, None, engine, iterations=1).posterior.context_kinds == {"embedding": "vector"}
    assert fit(corpus, MC2(contexts=[]), engine, iterations=1).posterior.context_kinds == {}
    assert fit(corpus.with_contexts({}), MC2(), engine, iterations=1).posterior.context_kinds == {}
    long = Corpus(100 * corpus.content, corpus.vocabulary).with_embeddings(vectors())
    assert MC2().for_corpus(long).contexts["embedding"].strength == 1.0


def test_a_local_model_embeds_once_and_downloads_nothing(tmp_path, monkeypatch, refused):
    """The package is stood in for: its vectors follow from the letters of a text."""
    calls = []

    class SentenceTransformer:
        def __init__(self, path, device, local_files_only):
            assert (path, local_files_only) == (str(tmp_path / "model"), True)

        def encode(self, texts, show_progress_bar):
            calls.append(texts)
            return np.array([[text.count(letter) for letter in "abcdefghijkl"] for text in texts], np.float32)

    stand_in = ModuleType("sentence_transformers")
    stand_in.SentenceTransformer, stand_in.__spec__ = SentenceTransformer, ModuleSpec("sentence_transformers", None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", stand_in)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = [json.dumps({"text": text}) for text in (*TEXTS, "")]
    (tmp_path / "own.jsonl").write_text("\n".join(rows))
    command = ["import", str(tmp_path / "own.jsonl"), "--text", "text", "--embed", str(tmp_path / "model")]
    refused([*command, "--out", tmp_path / "data"], "download the model there first")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text("{}")
    mc2([*command, "--out", tmp_path / "data"])
    corpus = Corpus.load(tmp_path / "data")
    assert np.flatnonzero(corpus.missing("embedding")).tolist() == [60]
    assert len(calls) == 1
    assert len(calls[0]) == len(set(TEXTS))
    (tmp_path / "own.jsonl").write_text("\n".join([*rows, json.dumps({"text": "oven day0"})]))
    like = ["import", *command[1:4], "--like", str(tmp_path / "data"), *command[4:], "--out", str(tmp_path / "more")]
    mc2(like)
    assert calls[1:] == [["oven day0"]]
    more = Corpus.load(tmp_path / "more")
    np.testing.assert_array_equal(more.contexts["embedding"][:60], corpus.contexts["embedding"][:60])
