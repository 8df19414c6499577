"""Forged states, samples and checkpoints: whole files of wrong content are refused in one sentence."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import fastex, gibbs, svi

from mc2core import Corpus, fit
from mc2core.base import storage
from mc2core.base.described import Stored, check, check_csr
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running import checkpoint
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
        learn_concentrations=["group", "words"],
        contexts=CONTEXTS,
        start_topics=3,
        start_clusters=2,
    ),
    "svi": svi(contexts=CONTEXTS, max_clusters=3, n_tables=2, n_topics=4, batch_size=2),
    "hash": fastex(n_clusters=3, proposal="hash"),
    "exact": fastex(n_clusters=3, proposal="exact"),
    "baseline": fastex(n_clusters=3, proposal="baseline"),
}


@pytest.fixture(scope="module")
def states():
    return {name: engine.init(CORPUS, 0).arrays() for name, engine in ENGINES.items()}


def forgeries(array):
    """The array with another shape, type or content; some of them may be valid all the same."""
    array = np.asarray(array)
    yield "empty", array[:0] if array.ndim else np.zeros(0, array.dtype)
    yield "one dimension more", array[None]
    yield "repeated", np.concatenate([array, array]) if array.ndim else np.array([array, array])
    yield "text", np.full(array.shape, "x")
    yield "another type", np.zeros(array.shape, np.int64 if array.dtype.kind == "f" else np.float64)
    yield "half precision", np.zeros(array.shape, np.float16)
    for value in (np.nan, np.inf, -np.inf, -1e300, 1e300):
        if array.dtype.kind == "f":
            yield f"all {value}", np.full(array.shape, value)
            last = array.copy()
            last[(-1,) * array.ndim] = value
            yield f"last {value}", last
    for value in (-(2**31), -2, 2**30, 2**31 - 1):
        if array.dtype.kind == "i":
            yield f"all {value}", np.full(array.shape, value)
            last = array.copy()
            last[(-1,) * array.ndim] = value
            yield f"last {value}", last


def is_possible(engine, name, what):
    """Whether a run might hold such a value, as far as its array alone tells."""
    value = what.split()[-1]
    if engine == "svi":
        unbounded = {"table_topic", "context_counts", "context_totals", "evidence", "last_evidence", "elbo"}
        return (
            (value == "1e+300" and name not in ("shrink",))
            or (value == "-1e+300" and name in unbounded)
            or (value in ("nan", "inf", "-inf") and name in ("elbo", "last_evidence"))  # NaN before the first
            or (value in ("1073741824", "2147483647") and name == "n_updates")
        )
    return engine.startswith("gibbs") and (name, what) in {("scalars", "last -1e+300"), ("scalars", "last 1e+300")}


@pytest.mark.parametrize("engine", ENGINES)
def test_forged_states_are_refused_in_one_sentence(engine, states):
    """42 forged Gibbs states were accepted, SVI crashed, FastEx ended in KeyError and TypeError."""
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
            assert is_possible(engine, name, what), f"{engine}: {name}, {what} was accepted"
    assert refused >= 9 * len(arrays)


def test_other_forged_states_of_gibbs_and_svi_are_refused(states):
    gibbs, svi = states["gibbs"], states["svi"]
    weights = gibbs["topic_weights"]
    used = gibbs["cluster"].max() + 1
    for engine, changes, message in (
        ("gibbs", {"topic_weights": weights / 2}, "'topic_weights' and the rest sum to"),
        ("gibbs", {"cluster": np.where(gibbs["cluster"] == 0, used, gibbs["cluster"])}, "leaves out a number"),
        ("gibbs", {"topic": np.zeros_like(gibbs["topic"])}, "'cluster' or 'topic' leaves out a number"),
        ("svi", {"n_visited": np.array(3)}, "'n_visited' is 3; mini-batches have 2 documents"),
        ("svi", {"context_counts": -1 - svi["context_counts"]}, "'context_counts' holds statistics of no distribution"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            ENGINES[engine].restore(CORPUS, states[engine] | changes)


# -- samples in models and checkpoints ---------------------------------------------------------------------------------
def sample(**changes):
    fields = {
        "cluster_weights": np.array([0.25, 0.75]),
        "new_cluster_weight": 0.1,
        "topic_given_cluster": sp.csr_matrix([[1.0, 0, 0], [0, 0.5, 0.5]]),
        "new_topic_weight": np.array([0.1, 0.2]),
        "topic_words": sp.csr_matrix([[2, 1, 0, 1], [0, 0, 0, 3], [1, 0, 0, 0]]),
        "topic_prior": 0.1,
        "topic_weights": np.array([0.9, 0.05, 0.01]),
        "table_concentration": 1.0,
        "contexts": SparseRows.of(np.array([[0.5, 0.5], [1.5, 2.5]])),
        "cluster": np.array([0, 1, -1], dtype=np.int32),
        "log_joint": -3.0,
    }
    return Sample(**fields | changes)


def model(*samples):
    return Posterior(list(samples), {"tag": DirichletCategorical(0.5)}, {"tag": 2}, ["a", "b", "c", "d"])


@pytest.mark.parametrize("dense", [False, True])
def test_forged_samples_are_refused_in_one_sentence(tmp_path, dense):
    tables = ("topic_given_cluster", "topic_words")
    one = sample(**{name: getattr(sample(), name).toarray() for name in tables} if dense else {})
    path = tmp_path / "posterior.npz"
    model(one, one).save(path)
    assert Posterior.load(path).representative.n_topics == 3
    whole = storage.read_arrays(path)
    # counts, natural parameters and the joint, which comes last of the scalars, have no upper bound
    unbounded = {"1.words", "1.words.data", "1.natural.least", "1.natural.above.data", "1.scalars"}
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
            assert name in unbounded, f"{name}, {what} was accepted"
            assert what.startswith("last") or name != "1.scalars", f"{name}, {what} was accepted"
            assert what.split()[-1] not in ("nan", "-2") or name == "1.scalars", f"{name}, {what} was accepted"


def test_forged_descriptions_of_models_are_refused(tmp_path):
    path = tmp_path / "posterior.npz"
    model(sample()).save(path)
    whole = storage.read_arrays(path)
    for field, value in (
        ("vocabulary", ["a", "b", "c"]),
        ("vocabulary", "abcd"),
        ("vocabulary", [1, 2, 3, 4]),
        ("dimensions", {"tag": 3}),
        ("dimensions", {"tag": -1}),
        ("dimensions", {}),
        ("dimensions", None),
        ("context_names", {"tag": ["p"]}),
        ("context_names", {"gat": ["p", "q"]}),
        ("units", {"tag": [0.0, 0.0]}),
        ("units", {"gat": [0.0, 1.0]}),
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
    with pytest.raises(ValueError, match=r"posterior\.npz is not a saved posterior: its values lie within each other"):
        Posterior.load(path)


RUN = {"model": {"name": "mc2"}, "engine": {"name": "gibbs"}, "burn_in": 1, "thin": 2}
ROWS = [{"iteration": 1, "log_joint": -2.0}, {"iteration": 2, "log_joint": -1.0}, {"iteration": 3, "log_joint": 0.0}]


def done(**changes):
    fields = {"run": RUN, "iteration": 3, "seconds": 1.5, "state": {}, "samples": [sample()], "trace": ROWS}
    return checkpoint.Checkpoint(**fields | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": []}, "it has 0 samples, but its run has kept 1 so far"),
        ({"samples": [sample()] * 2}, "it has 2 samples, but its run has kept 1 so far"),
        ({"trace": ROWS[1:]}, "its trace has 2 rows, not one for each of 3 iterations"),
        ({"trace": ROWS[::-1]}, "its trace has 3 rows, not one"),
        ({"iteration": 4}, "its trace has 3 rows, not one for each of 4"),
        ({"iteration": 10**12}, "its trace has 3 rows, not one for each of 1000000000000"),
        ({"iteration": -1}, "it is at iteration -1"),
        ({"iteration": 2.5}, "it is at iteration 2.5"),
        ({"seconds": -1.0}, "it is at iteration 3 after -1.0 seconds"),
        ({"cpu_seconds": -1.0}, "it took -1.0 seconds of processors"),
        ({"trace": [*ROWS[:2], {"iteration": 3, "log_joint": "x"}]}, "numbers are needed"),
        ({"samples": [sample(cluster=np.array([0, 2, 0]))]}, "sample 0: 'cluster' holds 2; .* below 2"),
        (
            {"snapshots": [sample(new_cluster_weight=np.nan)], "snapshot_times": [{"iteration": 1}]},
            "sample snapshot.0: ",
        ),
    ],
)
def test_forged_checkpoints_are_refused_in_one_sentence(tmp_path, changes, message):
    path = tmp_path / "c.npz"
    checkpoint.write(path, done())
    assert checkpoint.read(path, RUN, {"J": 3, "V": 4}).iteration == 3
    with pytest.raises(
        ValueError, match=r"c\.npz is not a checkpoint: .*'cluster' has the shape \(3,\); \(4,\) is needed"
    ):
        checkpoint.read(path, RUN, {"J": 4})
    checkpoint.write(path, done(**changes))
    with pytest.raises(ValueError, match=message) as caught:
        checkpoint.read(path, RUN, {"J": 3, "V": 4})
    assert "\n" not in str(caught.value)


def test_the_checkpoint_of_another_model_or_engine_is_told_by_its_name(tmp_path):
    """The first difference in the order of the alphabet was burn_in, which only some engines have."""
    path = tmp_path / "c.npz"
    fit(CORPUS, *ENGINES["exact"], iterations=1, checkpoint=path)
    with pytest.raises(
        ValueError, match=r"is the checkpoint of another run: model\.name is 'mixture' there and 'mc2' here"
    ):
        fit(CORPUS, *gibbs(start_topics=3), iterations=2, checkpoint=path)
    path.unlink()
    fit(CORPUS, *gibbs(start_topics=3), iterations=1, checkpoint=path)
    with pytest.raises(ValueError, match=r"checkpoint of another run: engine\.name is 'gibbs' there and 'svi' here"):
        fit(CORPUS, *svi(max_clusters=2, n_topics=3), iterations=2, checkpoint=path)


def test_a_forged_state_names_the_checkpoint(tmp_path):
    path = tmp_path / "c.npz"
    fit(CORPUS, *ENGINES["exact"], iterations=1, checkpoint=path)
    stored = storage.read_arrays(path)
    storage.write_arrays(path, stored | {"state.cluster": np.full(4, 3)})
    with pytest.raises(ValueError, match=r"c\.npz cannot be resumed: 'cluster' holds 3; .* below 3"):
        fit(CORPUS, *ENGINES["exact"], iterations=2, checkpoint=path)
    np.savez(path, **stored)  # as before digests were stored
    assert len(fit(CORPUS, *ENGINES["exact"], iterations=2, checkpoint=path).trace) == 2


# -- descriptions ------------------------------------------------------------------------------------------------------
def test_letters_get_their_size_from_the_first_array_that_has_them():
    arrays = {"a": np.zeros(3), "b": np.zeros((2, 3)), "c": np.zeros((2, 4))}
    described = {"a": Stored("f", "K"), "b": Stored("f", "2 K")}
    assert check(arrays, described, {}) == {"K": 3}
    assert check(arrays, {"c": Stored("f", "2 K-1")}, {"K": 5}) == {"K": 5}
    with pytest.raises(ValueError, match=r"'c' has the shape \(2, 4\); \(2, 3\) is needed"):
        check(arrays, described | {"c": Stored("f", "2 K")}, {})
    with pytest.raises(ValueError, match=r"'a' has the shape \(3,\); \(\) is needed"):
        check(arrays, {"a": Stored("f", "")}, {})


def test_a_malformed_matrix_is_refused():
    matrix = sp.csr_matrix([[1, 0, 2], [0, 3, 0]])
    arrays = {f"x.{part}": getattr(matrix, part) for part in ("indptr", "indices", "data")}
    arrays["x.shape"] = np.array(matrix.shape)
    counts = Stored("n", "M V", least=0)
    assert check_csr(arrays, "x", counts, {"V": 3}) == {"V": 3, "M": 2}
    for change, message in (
        ({"x.indptr": np.array([0, 4, 3], np.int32)}, r"'x\.indptr' does not rise from 0 to 3"),
        ({"x.indptr": np.array([1, 2, 3], np.int32)}, r"'x\.indptr' does not rise from 0 to 3"),
        ({"x.indptr": np.array([0, 2, 2], np.int32)}, r"'x\.indptr' does not rise from 0 to 3"),
        ({"x.indices": np.array([0, 3, 1], np.int32)}, r"'x\.indices' holds 3; .* below 3"),
        ({"x.data": np.array([1, -2, 3])}, r"'x\.data' holds -2; it must be at least 0"),
        ({"x.data": np.array([1, 2])}, r"'x\.data' has the shape \(2,\); \(3,\) is needed"),
        ({"x.shape": np.array([2, 4])}, r"'x' has the shape \(2, 4\); \(2, 3\) is needed"),
        ({"x.shape": np.array([-2, 3])}, r"'x\.shape' holds -2"),
    ):
        with pytest.raises(ValueError, match=message):
            check_csr(arrays | change, "x", counts, {"V": 3})
