"""States, samples and checkpoints of another version: arrays that are missing, or of another type or size."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import fastex, gibbs, svi

from mc2core import Corpus
from mc2core.base import storage
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running import checkpoint
from mc2core.inference.running.loop import fit
from mc2core.posterior import Posterior, Sample, SparseRows
from mc2core.posterior.sample import pack_sample

CORPUS = Corpus(
    np.array([[1, 0, 2], [0, 3, 0], [1, 1, 1], [2, 0, 0]]),
    contexts={"year": np.array([1.0, 2.0, np.nan, 0.5]), "tag": np.eye(4, 2, dtype=int)},
)
CONTEXTS = {"year": NormalGamma(), "tag": DirichletCategorical(0.5)}
ENGINES = {
    "gibbs": gibbs(contexts=CONTEXTS, kernel="collapsed", start_topics=3, start_clusters=2),
    "gibbs own": gibbs(
        document_level=True,
        table_concentration=1,
        topic_concentration=1,
        topic_word_prior="learn",
        contexts=CONTEXTS,
        start_topics=3,
        start_clusters=2,
    ),
    "svi": svi(contexts=CONTEXTS, max_clusters=3, max_tables=2, max_topics=4, batch_size=2),
    "hash": fastex(n_clusters=3, proposal="hash"),
    "exact": fastex(n_clusters=3, proposal="exact"),
}


@pytest.fixture(scope="module")
def states():
    return {name: engine.init(CORPUS, 0).arrays() for name, engine in ENGINES.items()}


def forgeries(array):
    """The array with another shape or type, or with indices of what is not there."""
    array = np.asarray(array)
    yield "empty", array[:0] if array.ndim else np.zeros(0, array.dtype)
    yield "one dimension more", array[None]
    yield "repeated", np.concatenate([array, array]) if array.ndim else np.array([array, array])
    yield "text", np.full(array.shape, "x")
    yield "another type", np.zeros(array.shape, np.int64 if array.dtype.kind == "f" else np.float64)
    yield "half precision", np.zeros(array.shape, np.float16)
    for value in (-(2**31), -2, 2**30, 2**31 - 1):
        if array.dtype.kind == "i":
            last = array.copy()
            last[(-1,) * array.ndim] = value
            yield f"last {value}", last


@pytest.mark.parametrize("engine", ENGINES)
def test_states_of_another_make_are_refused_in_one_sentence(engine, states):
    arrays = states[engine]
    ENGINES[engine].restore(CORPUS, arrays)
    refused = 0
    for name in arrays:
        with pytest.raises(ValueError, match=f"^'{name}' is missing$"):
            ENGINES[engine].restore(CORPUS, {one: arrays[one] for one in arrays if one != name})
        for what, forged in forgeries(arrays[name]):
            try:
                ENGINES[engine].restore(CORPUS, arrays | {name: forged})
            except ValueError as error:
                assert "\n" not in str(error)  # noqa: PT017
                refused += 1
                continue
            # a number of topics, and counts
            possible = {"topic_weights": "repeated", "n_updates": "last", "tables": "last"}
            assert what.split()[0] == possible.get(name), f"{engine}: {name}, {what} was accepted"
    assert refused >= 6 * len(arrays)


# -- samples in models and checkpoints ---------------------------------------------------------------------------------
def sample(**changes):
    fields = {
        "cluster_weights": np.array([0.25, 0.75]),
        "new_cluster_weight": 0.1,
        "topic_given_cluster": sp.csr_matrix([[1.0, 0, 0], [0, 0.5, 0.5]]),
        "new_topic_weight": np.array([0.1, 0.2]),
        "topic_words": sp.csr_matrix([[2, 1, 0, 1], [0, 0, 0, 3], [1, 0, 0, 0]]),
        "topic_word_prior": 0.1,
        "topic_weights": np.array([0.9, 0.05, 0.01]),
        "table_concentration": 1.0,
        "contexts": SparseRows.from_dense(np.array([[0.5, 0.5], [1.5, 2.5]])),
        "cluster": np.array([0, 1, -1], dtype=np.int32),
        "log_joint": -3.0,
    }
    return Sample(**fields | changes)


def model(*samples):
    return Posterior(list(samples), {"tag": DirichletCategorical(0.5)}, {"tag": 2}, ["a", "b", "c", "d"])


@pytest.mark.parametrize("dense", [False, True])
def test_samples_of_another_make_are_refused_in_one_sentence(tmp_path, dense):
    tables = ("topic_given_cluster", "topic_words")
    one = sample(**{name: getattr(sample(), name).toarray() for name in tables} if dense else {})
    path = tmp_path / "posterior.npz"
    model(one, one).save(path)
    assert Posterior.load(path).representative.n_topics == 3
    whole = storage.read_arrays(path)
    for name in pack_sample(one, "1."):
        storage.write_arrays(path, {other: array for other, array in whole.items() if other != name})
        with pytest.raises(ValueError, match=r"posterior\.npz is not a saved posterior: sample 1: '.*' is missing"):
            Posterior.load(path)
        for what, forged in forgeries(whole[name]):
            storage.write_arrays(path, whole | {name: forged})
            try:
                Posterior.load(path)
            except ValueError as error:
                assert "\n" not in str(error)  # noqa: PT017
                continue
            assert name in ("1.words", "1.words.data"), f"{name}, {what} was accepted"
            assert what.split()[0] in ("last", "another"), f"{name}, {what} was accepted"


def test_descriptions_of_another_make_are_refused(tmp_path):
    path = tmp_path / "posterior.npz"
    model(sample()).save(path)
    whole = storage.read_arrays(path)
    for field, value in (
        ("vocabulary", ["a", "b", "c"]),
        ("dimensions", {"tag": 3}),
        ("dimensions", None),
        ("units", {"tag": [0.0, 0.0]}),
        ("n_samples", 10**9),
        ("n_samples", 0),
        ("n_samples", "1"),
        ("families", {"tag": 3}),
    ):
        meta = json.loads(str(whole["meta"])) | {field: value}
        storage.write_arrays(path, whole | {"meta": np.array(json.dumps(meta))})
        with pytest.raises(ValueError, match=r"posterior\.npz is not a saved posterior: "):
            Posterior.load(path)
    storage.write_arrays(path, whole | {"meta": np.array("[" * 100_000)})
    with pytest.raises(ValueError, match=r"posterior\.npz is not a saved posterior: its values are nested"):
        Posterior.load(path)


RUN = {"model": {"name": "mc2"}, "engine": {"name": "gibbs"}, "burn_in": 1, "thin": 2}


def test_a_checkpoint_of_another_corpus_is_refused_by_its_sizes(tmp_path):
    path = tmp_path / "c.npz"
    checkpoint.write(path, checkpoint.Checkpoint(RUN, 1, 1.5, {}, [sample()], [{"iteration": 1, "log_joint": -2.0}]))
    assert checkpoint.read(path, RUN, {"J": 3, "V": 4}).iteration == 1
    with pytest.raises(
        ValueError, match=r"c\.npz is not a checkpoint: .*'cluster' has the shape \(3,\); \(4,\) is needed"
    ):
        checkpoint.read(path, RUN, {"J": 4})


def test_the_checkpoint_of_another_model_or_engine_is_named(tmp_path):
    """The first difference in the order of the alphabet was burn_in, which only some engines have."""
    path = tmp_path / "c.npz"
    fit(CORPUS, *ENGINES["exact"], iterations=1, checkpoint=path)
    with pytest.raises(ValueError, match=r"is the checkpoint of another run: model\.name was 'mixture', now 'mc2'"):
        fit(CORPUS, *gibbs(start_topics=3), iterations=2, checkpoint=path)
    path.unlink()
    fit(CORPUS, *gibbs(start_topics=3), iterations=1, checkpoint=path)
    with pytest.raises(ValueError, match=r"checkpoint of another run: engine\.name was 'gibbs', now 'svi'"):
        fit(CORPUS, *svi(max_clusters=2, max_topics=3), iterations=2, checkpoint=path)


def test_a_state_of_another_make_names_the_checkpoint(tmp_path):
    path = tmp_path / "c.npz"
    fit(CORPUS, *ENGINES["exact"], iterations=1, checkpoint=path)
    stored = storage.read_arrays(path)
    storage.write_arrays(path, stored | {"state.cluster": np.full(4, 3)})
    with pytest.raises(ValueError, match=r"c\.npz cannot be resumed: 'cluster' holds an index that is not below 3"):
        fit(CORPUS, *ENGINES["exact"], iterations=2, checkpoint=path)


# -- descriptions ------------------------------------------------------------------------------------------------------
def test_letters_get_their_size_from_the_first_array_with_them():
    arrays = {"a": np.zeros(3), "b": np.zeros((2, 3)), "c": np.zeros((2, 4))}
    described = {"a": storage.Stored("f", "K"), "b": storage.Stored("f", "2 K")}
    assert storage.check_arrays(arrays, described, {}) == {"K": 3}
    assert storage.check_arrays(arrays, {"c": storage.Stored("f", "2 K-1")}, {"K": 5}) == {"K": 5}
    with pytest.raises(ValueError, match=r"'c' has the shape \(2, 4\); \(2, 3\) is needed"):
        storage.check_arrays(arrays, described | {"c": storage.Stored("f", "2 K")}, {})
    with pytest.raises(ValueError, match=r"'a' has the shape \(3,\); \(\) is needed"):
        storage.check_arrays(arrays, {"a": storage.Stored("f", "")}, {})


def test_a_malformed_matrix_is_refused(tmp_path):
    path = tmp_path / "posterior.npz"
    model(sample()).save(path)
    whole = storage.read_arrays(path)
    for part, values in (
        *(("indptr", [0, 4, 4]), ("indptr", [1, 3, 4]), ("indptr", [0, 3, 3]), ("indptr", [0, 3])),
        *(("indices", [0, 4, 3, 3, 0]), ("data", [1, 2]), ("shape", [3, 5]), ("shape", [-3, 4])),
    ):
        storage.write_arrays(path, whole | {f"0.words.{part}": np.array(values)})
        with pytest.raises(ValueError, match=r"posterior\.npz is not a saved posterior: sample 0: "):
            Posterior.load(path)
