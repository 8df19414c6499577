"""The loop: samples, trace, checkpoints and stops, shown with an engine small enough to predict."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pandas as pd
import pytest
from helpers.walks import CORPUS, Walk, WalkInParts, joints

from mc2core import Corpus
from mc2core.base import storage
from mc2core.base.checks import choice, whole
from mc2core.inference import SVI
from mc2core.inference.running import checkpoint, loop
from mc2core.inference.running.loop import fit
from mc2core.models import MC2


def test_samples_are_those_after_burn_in_every_thin():
    result = fit(CORPUS, MC2(), Walk(), iterations=10, seed=3, burn_in=4, thin=3)
    assert joints(result) == [result.trace.log_joint[5], result.trace.log_joint[8]]  # of iterations 6 and 9
    assert list(result.trace.iteration) == list(range(1, 11))
    assert (np.diff(result.trace.seconds) >= 0).all()


def test_half_of_the_iterations_are_burn_in_unless_told():
    assert len(fit(CORPUS, MC2(), Walk(), iterations=9, seed=0).posterior.samples) == 5


class Climb(Walk):
    """It climbs to iteration ``top`` and wobbles there by less than that."""

    name = "climb"
    default_iterations = 20
    top = 30

    def step(self, corpus, state, seed, iteration):
        super().step(corpus, state, seed, iteration)
        height = 10.0 * min(iteration, self.top) + iteration % 2
        return {"log_joint": height, "clusters": 1, "topics": 1}


@pytest.mark.parametrize(("top", "iterations"), [(0, 20), (19, 40), (30, 80), (2000, 320)])
@pytest.mark.parametrize("chains", [1, 2])
def test_an_automatic_run_ends_where_its_numbers_are_level(caplog, top, iterations, chains):
    caplog.set_level("INFO")
    engine = Climb()
    engine.top = top
    done = fit(CORPUS, MC2(), engine, iterations="auto", seed=1, chains=chains)
    assert done.provenance["iterations"] == done.trace["iteration"].max() == iterations
    assert len(done.posterior.samples) == chains * iterations // 2
    assert done.provenance["inferred"]["changing"] == (["log joint"] if top == 2000 else [])
    assert ("not stable after 20 iterations: continuing to 40" in caplog.text) is (iterations > 20)
    same = fit(CORPUS, MC2(), engine, iterations=iterations, seed=1, chains=chains)
    assert joints(done) == joints(same)
    assert done.provenance["burn_in"] == same.provenance["burn_in"] == iterations // 2


@pytest.mark.parametrize("before", [8, 20, 34, 40, 66])
def test_an_automatic_run_goes_on_from_a_checkpoint(tmp_path, before):
    engine, path = Climb(), tmp_path / "c.npz"
    fit(CORPUS, MC2(), engine, iterations=before, seed=1, checkpoint=path)
    done = fit(CORPUS, MC2(), engine, iterations="auto", seed=1, checkpoint=path)
    whole_run = fit(CORPUS, MC2(), engine, iterations="auto", seed=1)
    assert done.provenance["iterations"] == 80
    assert joints(done) == joints(whole_run)
    again = fit(CORPUS, MC2(), engine, iterations="auto", seed=1, checkpoint=path)
    assert again.provenance["iterations"] == 80
    assert joints(again) == joints(done)


def test_an_automatic_run_needs_samples():
    corpus = Corpus(np.eye(3, dtype=int))
    with pytest.raises(ValueError, match="iterations 'auto' needs an engine that keeps samples, such as gibbs; svi"):
        fit(corpus, MC2(), SVI(), iterations="auto")
    with pytest.raises(ValueError, match="iterations is 'automatic'; it must be a number"):
        fit(corpus, MC2(), iterations="automatic")


def test_callback_sees_every_iteration_and_is_not_timed():
    import time

    seen = []

    def callback(iteration, state):
        seen.append((iteration, state.position.sum()))
        time.sleep(0.2)
        return {"twice": 2 * iteration}

    result = fit(CORPUS, MC2(), Walk(), iterations=5, seed=1, callback=callback)
    assert [iteration for iteration, _ in seen] == [1, 2, 3, 4, 5]
    assert np.array_equal([total for _, total in seen], result.trace.log_joint)
    assert result.trace.twice.tolist() == [2, 4, 6, 8, 10]
    assert result.trace.seconds.iloc[-1] < 0.2


@pytest.mark.parametrize("raised", [StopIteration(), RuntimeError("no disk"), None])
@pytest.mark.parametrize("chains", [1, 2])
def test_a_failing_callback_returns_the_fit_so_far(tmp_path, caplog, chains, raised):
    """As does one whose answer is no dict of numbers; another run resumes from the checkpoint."""
    call = {"corpus": CORPUS, "engine": Walk(), "seed": 2, "chains": chains, "checkpoint": tmp_path / "c.npz"}

    def callback(iteration, state):
        if iteration == 4 and raised:
            raise raised
        return {"note": "text" if iteration == 4 else 2}

    stopped = fit(**call, iterations=10, callback=callback, trace=tmp_path / "trace.tsv")
    assert stopped.provenance["stopped_at"] == 4
    assert stopped.trace["iteration"].max() == 4
    assert len(stopped.posterior.samples) == 2 * chains
    name = f"{raised!r}" if raised else "ValueError"
    assert f"the callback raised {name}" in caplog.text
    assert "after iteration 4 of 10; the fit so far is returned" in caplog.text
    assert ("Traceback" in caplog.text) is not isinstance(raised, StopIteration)
    whole_run = fit(**call | {"checkpoint": None}, iterations=10)
    assert joints(fit(**call, iterations=10)) == joints(whole_run)


def test_a_failing_callback_of_the_last_iteration_is_told(caplog):
    def callback(iteration, state):
        return 1 / (iteration - 3)

    done = fit(CORPUS, MC2(), Walk(), iterations=3, callback=callback)
    assert "the callback raised TypeError" in caplog.text  # of the first: a number is no dict
    assert done.provenance["stopped_at"] == 1
    last = fit(CORPUS, MC2(), Walk(), iterations=3, callback=lambda iteration, state: {"x": 1 / (iteration - 3)})
    assert "ZeroDivisionError" in caplog.text
    assert "stopped_at" not in last.provenance


def test_kernels_are_prepared_by_the_first_fit_of_its_kind_alone(tmp_path, monkeypatch):
    """Other settings, and a corpus loaded from disk, whose arrays are read-only, may need others."""
    monkeypatch.setattr("mc2core.inference.running.loop._warmed", set())
    begun, init = [], Walk.init

    def counted(self, *given, **named):
        begun.append(self.stride)
        return init(self, *given, **named)

    monkeypatch.setattr(Walk, "init", counted)
    CORPUS.save(tmp_path / "corpus")
    of_kind = [(CORPUS, 1.0), (CORPUS, 2.0), (Corpus.load(tmp_path / "corpus", verify=True), 1.0)]
    for corpus, stride in of_kind:
        for n_starts in (2, 1):
            begun.clear()
            fit(corpus, MC2(), Walk(stride=stride), iterations=2)
            assert begun == [stride] * n_starts


def test_seconds_of_processors_are_of_steps_and_of_all_parts(tmp_path):
    class Busy(Walk):
        def advance(self, corpus, state, seed, iteration):
            until = time.process_time() + 0.02
            while time.process_time() < until:
                pass
            time.sleep(0.05)
            return super().advance(corpus, state, seed, iteration)

    for upto in (2, 4):
        spent = fit(CORPUS, MC2(), Busy(), iterations=upto, seed=1, burn_in=1, checkpoint=tmp_path / "c.npz").provenance
        assert upto * 0.02 <= spent["cpu_seconds"] < upto * 0.02 + 0.06
        assert spent["seconds"] >= upto * 0.07


PARTS = {"iterations": 4, "seed": 2, "burn_in": 1, "snapshots": [0, 0.3, 0.5, 0.6, 2, 3.9]}


def same_snapshots(one, other):
    snapshot_times = [[row["iteration"] for row in run.snapshots.provenance["snapshot_times"]] for run in (one, other)]
    joint = [[sample.log_joint for sample in run.snapshots.samples] for run in (one, other)]
    return snapshot_times[0] == snapshot_times[1] and joint[0] == joint[1]


def test_snapshots_are_taken_as_soon_as_parts_allow():
    result = fit(CORPUS, MC2(), WalkInParts(), **PARTS)
    snapshot_times = result.snapshots.provenance["snapshot_times"]
    np.testing.assert_allclose([row["iteration"] for row in snapshot_times], [0, 1 / 3, 2 / 3, 2, 4])
    assert (np.diff([row["seconds"] for row in snapshot_times]) > 0).all()
    assert [result.snapshots.samples[i].log_joint for i in (3, 4)] == result.trace.log_joint[[1, 3]].tolist()
    assert fit(CORPUS, MC2(), WalkInParts(), iterations=4, burn_in=1).snapshots is None
    with pytest.raises(ValueError, match=r"snapshots run from 0 to 5; they must lie within 0\.\.4"):
        fit(CORPUS, MC2(), WalkInParts(), iterations=4, snapshots=[5, 0])


def test_a_stop_within_an_iteration_is_resumed_there(tmp_path, monkeypatch):
    straight = fit(CORPUS, MC2(), WalkInParts(), **PARTS)
    monkeypatch.setattr(WalkInParts, "stop_at", (3, 2))
    with pytest.raises(SystemExit):
        fit(CORPUS, MC2(), WalkInParts(), checkpoint=tmp_path / "c.npz", **PARTS)
    assert json.loads(str(np.load(tmp_path / "c.npz")["meta"]))["iteration"] == 2
    monkeypatch.setattr(WalkInParts, "stop_at", None)
    resumed = fit(CORPUS, MC2(), WalkInParts(), checkpoint=tmp_path / "c.npz", **PARTS)
    assert np.array_equal(resumed.state.position, straight.state.position)
    assert joints(resumed) == joints(straight)
    assert same_snapshots(resumed, straight)


def test_an_old_checkpoint_is_renewed_within_an_iteration(tmp_path, monkeypatch):
    written = []
    write = checkpoint.write
    monkeypatch.setattr(checkpoint, "write", lambda path, done: written.append(done.iteration) or write(path, done))
    call = PARTS | {"checkpoint": tmp_path / "c.npz"}
    fit(CORPUS, MC2(), WalkInParts(), **call)
    assert written == [4]
    (tmp_path / "c.npz").unlink()
    written.clear()
    monkeypatch.setattr(loop, "_CHECKPOINT_SECONDS", 0.0)
    fit(CORPUS, MC2(), WalkInParts(), **call)
    assert written == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4]


def test_threads_do_not_make_another_run(tmp_path):
    call = {"seed": 5, "burn_in": 1, "checkpoint": tmp_path / "c.npz"}
    fit(CORPUS, MC2(), Walk(threads=1), iterations=2, **call)
    assert len(fit(CORPUS, MC2(), Walk(threads=2), iterations=4, **call).trace) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 6}, "c.npz is the checkpoint of another run: seed was 5, now 6; write elsewhere, or"),
        (
            {"model": MC2(document_level=False)},
            "another run: model.document_level was True, now False; write elsewhere, or remove it",
        ),
        ({"model": MC2(topic_word_prior=0.5)}, "another run: model.topic_word_prior was 0.01, now 0.5"),
        ({"engine": Walk(stride=2.0)}, "another run: engine.stride was 1.0, now 2.0"),
        (
            {"corpus": Corpus(np.ones((3, 3), dtype=int))},
            r"c.npz is the checkpoint of a run on another corpus \(3 documents\); write elsewhere, or remove it",
        ),
        (  # shapes are not looked at, nor a seed of which nobody thinks then
            {"corpus": Corpus(np.ones((4, 2), dtype=int)), "seed": 6},
            r"c.npz is the checkpoint of a run on another corpus \(3 documents\); write elsewhere, or remove it",
        ),
        ({"thin": 2}, "another run: thin was 1, now 2"),
        ({"burn_in": 0}, "c.npz has no samples of iterations 1 to 1, which a burn-in of 0 needs; give a burn-in of at"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change, message):
    call = {"corpus": CORPUS, "engine": Walk(), "iterations": 3, "seed": 5, "burn_in": 1, "thin": 1}
    call["checkpoint"] = tmp_path / "c.npz"
    fit(**call)
    before = call["checkpoint"].read_bytes()
    with pytest.raises(ValueError, match=message):
        fit(**(call | change))
    assert call["checkpoint"].read_bytes() == before


@pytest.mark.parametrize("thin", [1, 2, 3])
@pytest.mark.parametrize(
    "lengths",
    [
        [{"iterations": 10}, {"iterations": 20}],  # half of them, from 5 to 10
        [{"iterations": 10}, {"iterations": 11}, {"iterations": 23}],
        [{"iterations": 10, "burn_in": 4}, {"iterations": 20, "burn_in": 4}],
        [{"iterations": 10, "burn_in": 4}, {"iterations": 20}],
        [{"iterations": 10}, {"iterations": 20, "burn_in": 5}],
        [{"iterations": 6, "burn_in": 2}, {"iterations": 20, "burn_in": 15}],
    ],
)
def test_a_finished_fit_goes_on_to_the_bits_of_one_run(tmp_path, lengths, thin):
    files = {"checkpoint": tmp_path / "c.npz", "trace": tmp_path / "parts.tsv"}
    for length in lengths:
        parts = fit(CORPUS, MC2(), Walk(), **length, thin=thin, **files)
    whole_run = fit(CORPUS, MC2(), Walk(), **lengths[-1], thin=thin, trace=tmp_path / "whole.tsv")
    for name, run in (("parts", parts), ("whole", whole_run)):
        run.posterior.save(tmp_path / f"{name}.npz")
    assert (tmp_path / "parts.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert np.array_equal(parts.state.position, whole_run.state.position)
    columns = [run.trace.drop(columns="seconds") for run in (parts, whole_run)]
    pd.testing.assert_frame_equal(*columns)
    of_files = [pd.read_csv(path, sep="\t").drop(columns="seconds") for path in sorted(tmp_path.glob("*.tsv"))]
    pd.testing.assert_frame_equal(*of_files)
    burn_in, n = lengths[-1].get("burn_in", lengths[-1]["iterations"] // 2), lengths[-1]["iterations"]
    kept = [whole_run.trace.log_joint[i - 1] for i in range(1, n + 1) if i > burn_in and i % thin == 0]
    assert joints(parts) == kept


def test_samples_that_were_never_kept_are_asked_for_in_vain(tmp_path):
    call = {"corpus": CORPUS, "engine": Walk(), "checkpoint": tmp_path / "c.npz"}
    fit(**call, iterations=6)
    before = (tmp_path / "c.npz").read_bytes()
    message = (
        r"c.npz has no samples of iterations 3 to 3, which a burn-in of 2 needs; give a burn-in of at least 3 "
        r"\(and more iterations\), or write elsewhere$"
    )
    with pytest.raises(ValueError, match=message):
        fit(**call, iterations=10, burn_in=2)
    assert (tmp_path / "c.npz").read_bytes() == before
    assert len(fit(**call, iterations=10, burn_in=3).posterior.samples) == 7


def test_a_run_stopped_in_its_burn_in_may_have_a_shorter_one(tmp_path):
    def stop(iteration, state):
        if iteration == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit):
        fit(CORPUS, MC2(), Walk(), iterations=100, callback=stop, checkpoint=tmp_path / "c.npz")
    at = json.loads(str(np.load(tmp_path / "c.npz")["meta"]))["iteration"]  # 4, or 5 where the signal was seen later
    shorter = fit(CORPUS, MC2(), Walk(), iterations=20, burn_in=at, checkpoint=tmp_path / "c.npz")
    assert joints(shorter) == joints(fit(CORPUS, MC2(), Walk(), iterations=20, burn_in=at))


def test_a_finished_run_that_is_asked_for_again_does_nothing(tmp_path, monkeypatch, caplog):
    call = {"corpus": CORPUS, "engine": Walk(), "iterations": 6, "checkpoint": tmp_path / "c.npz"}
    first, before = fit(**call), (tmp_path / "c.npz").read_bytes()
    monkeypatch.setattr(Walk, "step", None)
    with caplog.at_level("INFO"):
        again = fit(**call)
    assert f"{tmp_path}/c.npz is at iteration 6 of 6: nothing is left to do" in caplog.text
    assert "compiling" not in caplog.text
    assert joints(again) == joints(first)
    assert (tmp_path / "c.npz").read_bytes() == before
    assert again.provenance["seconds"] == first.provenance["seconds"]


@pytest.mark.parametrize("burn_in", [None, 0, 2])
def test_a_checkpoint_past_the_end_is_refused(tmp_path, burn_in):
    """Whatever samples it lacks: with half of them as burn-in, advice on that led in a circle."""
    fit(CORPUS, MC2(), Walk(), iterations=7, burn_in=burn_in, checkpoint=tmp_path / "c.npz")
    message = r"c.npz is at iteration 7, after the requested 4; request at least 7, or write elsewhere$"
    for asked in (burn_in, None, 0):
        with pytest.raises(ValueError, match=message):
            fit(CORPUS, MC2(), Walk(), iterations=4, burn_in=asked, checkpoint=tmp_path / "c.npz")


def stopped_at(at, **call):
    """Stop a fit by a signal in iteration ``at``; what it leaves (the signal may be seen one iteration later)."""

    def stop(iteration, state):
        if iteration == at:
            os.kill(os.getpid(), signal.SIGTERM)

    left = []
    with pytest.raises(SystemExit):
        fit(CORPUS, MC2(), Walk(), callback=stop, on_stop=left.append, **call)
    return left[0]


@pytest.mark.parametrize("thin", [1, 2, 3])
@pytest.mark.parametrize("finished", [0, 60])
def test_a_stopped_run_has_samples_of_its_later_half_and_resumes(tmp_path, finished, thin):
    """A stop within the burn-in of a longer run left one sample of thirty, and shorter ones could not go on."""
    call = {"seed": 4, "thin": thin, "checkpoint": tmp_path / "c.npz"}
    if finished:
        fit(CORPUS, MC2(), Walk(), iterations=finished, **call)
    left = stopped_at(71, iterations=1000, **call)
    at = int(left.provenance["stopped_at"])
    assert at in (71, 72)
    assert left.provenance["burn_in"] == at // 2
    assert joints(left) == [left.trace.log_joint[i - 1] for i in range(at // 2 + 1, at + 1) if i % thin == 0]
    with pytest.raises(ValueError, match=rf"c.npz is at iteration {at}, after the requested 60; request at least {at}"):
        fit(CORPUS, MC2(), Walk(), iterations=60, **call)
    for iterations in (at, 100, 150):
        parts = fit(CORPUS, MC2(), Walk(), iterations=iterations, **call)
        whole_run = fit(CORPUS, MC2(), Walk(), iterations=iterations, seed=4, thin=thin)
        for name, run in (("parts", parts), ("whole", whole_run)):
            run.posterior.save(tmp_path / f"{name}.npz")
        assert (tmp_path / "parts.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_finished_fit_keeps_samples_until_a_longer_burn_in(tmp_path):
    """Gone on with, stopped within that burn-in, it had lost them: one state was left of thirty samples."""
    call = {"seed": 4, "checkpoint": tmp_path / "c.npz"}
    finished = fit(CORPUS, MC2(), Walk(), iterations=60, **call)
    left = stopped_at(70, iterations=200, burn_in=100, **call)
    at = int(left.provenance["stopped_at"])
    assert joints(left) == left.trace.log_joint[at // 2 : at].tolist()
    assert joints(left)[: 60 - at // 2] == joints(finished)[at // 2 - 30 :]
    assert left.provenance["burn_in"] == at // 2
    left = stopped_at(105, iterations=200, burn_in=100, **call)
    assert joints(left) == left.trace.log_joint[100 : int(left.provenance["stopped_at"])].tolist()
    parts, whole_run = (
        fit(CORPUS, MC2(), Walk(), iterations=200, burn_in=100, **how) for how in (call, {"seed": call["seed"]})
    )
    assert joints(parts) == joints(whole_run)


def test_a_burn_in_that_is_not_named_follows_one_that_was(tmp_path):
    """Samples begin where the named one left off, or where it would have begun."""
    call = {"seed": 4, "checkpoint": tmp_path / "c.npz"}
    at = int(stopped_at(40, iterations=200, burn_in=150, **call).provenance["stopped_at"])
    left = stopped_at(50, iterations=200, **call)
    end = int(left.provenance["stopped_at"])
    assert joints(left) == left.trace.log_joint[at:end].tolist()
    with pytest.raises(ValueError, match=rf"no samples of iterations 31 to {at}, which a burn-in of 30 needs"):
        fit(CORPUS, MC2(), Walk(), iterations=60, **call)
    assert joints(fit(CORPUS, MC2(), Walk(), iterations=200, **call)) == joints(
        fit(CORPUS, MC2(), Walk(), iterations=200, seed=4)
    )


@pytest.mark.parametrize("cut", [0, 10, 0.5])
def test_a_damaged_checkpoint_is_refused(tmp_path, cut):
    path = tmp_path / "c.npz"
    fit(CORPUS, MC2(), Walk(), iterations=3, checkpoint=path)
    content = path.read_bytes()
    path.write_bytes(content[: int(cut * len(content)) if isinstance(cut, float) else cut])
    with pytest.raises(ValueError, match=r"c.npz is not a.*; remove it to start again$"):
        fit(CORPUS, MC2(), Walk(), iterations=4, checkpoint=path)


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path):
    storage.write_arrays(tmp_path / "c.npz", {"a": np.ones(3)})
    with pytest.raises(ValueError, match=r"c.npz is not a checkpoint: 'meta'"):
        fit(CORPUS, MC2(), Walk(), iterations=4, checkpoint=tmp_path / "c.npz")


@pytest.mark.parametrize(
    ("forged", "named"),
    [
        ({"trace": 3}, "'trace' is '3'"),
        ({"trace": [{"topics": "3"}] * 3}, "'trace' is "),
        ({"run": ["seed"]}, "'run' is "),
        ({"run": {"burn_in": "2"}}, "'burn_in' is '2'"),
        ({"iteration": "3"}, "'iteration' is '3'"),
        ({"seconds": [1]}, r"'seconds' is '\[1\]'"),
        ({"n_samples": 1.5}, "'n_samples' is '1.5'"),
        ({"snapshot_times": {}}, "'snapshot_times' is '{}'"),
        ([1], r"its description is '\[1\]'"),
    ],
)
def test_a_forged_description_of_a_checkpoint_is_refused(tmp_path, forged, named):
    path = tmp_path / "c.npz"
    fit(CORPUS, MC2(), Walk(), iterations=3, checkpoint=path)
    arrays = storage.read_arrays(path)
    known = json.loads(str(arrays["meta"]))
    storage.write_arrays(path, arrays | {"meta": np.array(json.dumps(forged if forged == [1] else known | forged))})
    with pytest.raises(ValueError, match=rf"c\.npz is not a checkpoint: {named}"):
        checkpoint.load(path)


def test_first_difference_names_the_place():
    assert checkpoint.first_difference({"a": {"b": 1}}, {"a": {"b": 1}}) is None
    assert checkpoint.first_difference({"a": {"b": 1}}, {"a": {"b": 2}}) == "a.b was 1, now 2"
    assert checkpoint.first_difference({"a": 1}, {"a": 1, "c": 0}) == "c was None, now 0"
    assert checkpoint.first_difference({"a": 1}, {"a": 1, "c": False}) == "c was None, now False"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_after_the_step_and_the_run_goes_on(tmp_path, number):
    def stop(iteration, state):
        if iteration == 4:
            os.kill(os.getpid(), number)

    handler = signal.getsignal(number)
    left = []
    call = {"corpus": CORPUS, "engine": Walk(), "iterations": 9, "seed": 2}
    with pytest.raises((KeyboardInterrupt, SystemExit)) as stopped:
        fit(**call, callback=stop, checkpoint=tmp_path / "c.npz", on_stop=left.append)
    assert [one.provenance["stopped_at"] for one in left] in ([4], [5])
    assert joints(left[0]) == left[0].trace.log_joint[2:].tolist()
    if number == signal.SIGTERM:
        assert stopped.value.code == 143
    assert signal.getsignal(number) == handler
    meta = json.loads(str(np.load(tmp_path / "c.npz", allow_pickle=False)["meta"]))
    assert meta["iteration"] in (4, 5)  # the signal may be seen one step later
    result = fit(**call, checkpoint=tmp_path / "c.npz")
    assert np.array_equal(result.state.position, fit(**call).state.position)


def test_a_signal_after_the_last_look_still_leaves_a_checkpoint(tmp_path, monkeypatch):
    class Clock:
        perf_counter, process_time = time.perf_counter, time.process_time

        def __getattribute__(self, name):
            if name == "perf_counter" and sys._getframe(1).f_code is loop._iterate.__code__:
                os.kill(os.getpid(), signal.SIGINT)
            return object.__getattribute__(self, name)

    monkeypatch.setattr(loop, "time", Clock())
    with pytest.raises(KeyboardInterrupt):
        fit(CORPUS, MC2(), Walk(), iterations=9, seed=2, checkpoint=tmp_path / "c.npz")
    assert (tmp_path / "c.npz").is_file()


@pytest.mark.parametrize(("chains", "threads"), [(1, 1), pytest.param(3, 2, marks=pytest.mark.slow)])
def test_kill_9_and_resume_gives_the_same_bits(tmp_path, monkeypatch, chains, threads):
    """A real sampler, killed in a process of its own in the middle of its run, goes on in this one, on any threads."""
    script = textwrap.dedent("""
        import os, signal, sys
        import numpy as np, scipy.sparse as sp
        from mc2core import Corpus
        from mc2core.inference.running.loop import fit
        from mc2core.families import NormalGamma
        from mc2core.inference import Gibbs
        from mc2core.models import MC2
        draw = np.random.default_rng(0)
        corpus = Corpus(draw.poisson(0.4, (40, 30)), contexts={"x": draw.normal(size=40)})
        die, chains, threads = map(int, sys.argv[1:4])
        folder, seen = sys.argv[4], []
        def callback(iteration, state):
            seen.append(iteration)
            if seen.count(die) == min(chains, 2):  # of several, one is through with it, the next notes it
                os.kill(os.getpid(), signal.SIGKILL)
        result = fit(corpus, MC2(contexts={"x": NormalGamma()}), Gibbs(threads=threads), iterations=12, seed=1,
                     burn_in=6, chains=chains, callback=callback, checkpoint=folder + "/c.npz", checkpoint_every=2,
                     trace=folder + "/t.tsv", progress=False)
        result.posterior.save(folder + "/m.npz")
    """)

    def run_here(threads, folder):
        monkeypatch.setattr(sys, "argv", ["-c", "0", str(chains), str(threads), str(folder)])
        exec(script, {})

    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    run_here(1, tmp_path / "whole")
    command = [sys.executable, "-c", script, "7", str(chains), str(threads), str(tmp_path / "killed")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / "killed" / "m.npz").exists()
    run_here(threads, tmp_path / "killed")
    assert (tmp_path / "killed" / "m.npz").read_bytes() == (tmp_path / "whole" / "m.npz").read_bytes()
    one, other = (
        pd.read_csv(tmp_path / name / "t.tsv", sep="\t").drop(columns="seconds") for name in ("whole", "killed")
    )
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"iterations": 0}, "iterations is 0; it must be a whole number of at least 1"),
        ({"iterations": 2.5}, "iterations is 2.5; it must be a whole number"),
        ({"iterations": 5, "thin": 0}, "thin is 0; it must be a whole number of at least 1"),
        ({"iterations": 5, "seed": -1}, "seed is -1; it must be a whole number of at least 0"),
        ({"iterations": 5, "burn_in": 5}, "burn_in 5 and thin 1 leave no sample in 5 iterations"),
        ({"iterations": 5, "burn_in": 3, "thin": 3}, "burn_in 3 and thin 3 leave no sample in 5 iterations"),
        ({"iterations": 5, "checkpoint_every": 0}, "checkpoint_every is 0; it must be a whole number of at least 1"),
        ({"iterations": "many"}, "iterations is 'many'; it must be a number"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        fit(CORPUS, MC2(), Walk(), **call)


def test_shared_checks_name_the_nearest():
    assert whole("n", 3.0) == 3
    with pytest.raises(
        ValueError, match=r"kernel is 'colapsed'; allowed: collapsed, blocked; did you mean 'collapsed'"
    ):
        choice("kernel", "colapsed", ["collapsed", "blocked"])
