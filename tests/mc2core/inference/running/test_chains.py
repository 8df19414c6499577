"""Several chains in one fit: each is the fit of its seed, whatever the threads, and goes on from where it was."""

import dataclasses
import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from helpers.walks import CORPUS, Walk, WalkInParts, joints

from mc2core import Corpus
from mc2core.compute.threads import n_threads
from mc2core.inference.registry import specify
from mc2core.inference.running import loop
from mc2core.inference.running.loop import checkpoints_of, fit
from mc2core.models import MC2
from mc2core.posterior import SparseRows

CALL = {"corpus": CORPUS, "model": MC2(), "iterations": 9, "seed": 3, "burn_in": 4, "thin": 2}


def bytes_of(run, path):
    run.posterior.save(path / "posterior.npz")
    return (path / "posterior.npz").read_bytes()


def rows_of(run):
    return run.trace.drop(columns="seconds")


def test_a_posterior_has_all_samples_and_its_first_chain_is_one():
    three, one = (fit(**CALL, engine=Walk(), chains=chains) for chains in (3, 1))
    assert three.posterior.provenance["chains"] == three.provenance["chains"] == [2, 2, 2]
    assert "chains" not in one.posterior.provenance
    assert joints(three)[:2] == joints(one)
    assert three.state.position.tolist() == one.state.position.tolist()
    assert three.trace[["iteration", "chain"]].to_numpy().tolist() == [[i, c] for i in range(1, 10) for c in (1, 2, 3)]
    of_chain = three.trace.set_index(["chain", "iteration"]).log_joint
    assert joints(three) == [of_chain[chain, iteration] for chain in (1, 2, 3) for iteration in (6, 8)]
    assert len(set(joints(three))) == 6
    assert joints(fit(**CALL | {"seed": 4}, engine=Walk(), chains=3))[2:4] != joints(three)[2:4]


def test_chains_do_not_hang_on_threads_or_on_how_many_there_are(tmp_path):
    runs = {threads: fit(**CALL, engine=Walk(threads=threads), chains=4) for threads in (1, 2, 3, 9)}
    assert len({bytes_of(run, tmp_path) for run in runs.values()}) == 1
    for run in runs.values():
        pd.testing.assert_frame_equal(rows_of(run), rows_of(runs[1]))
    assert joints(fit(**CALL, engine=Walk(), chains=2)) == joints(runs[1])[:4]
    assert runs[9].provenance["threads"] == 9


def test_chains_run_side_by_side_on_the_threads_that_there_are():
    seen = set()

    class Meeting(Walk):
        """Its chains wait for one another, in the start and in each step: alone none would go on."""

        of = threading.Barrier(2, timeout=20)

        def init(self, model, corpus, seed):
            self.of.wait()
            return super().init(model, corpus, seed)

        def step(self, corpus, state, seed, iteration):
            self.of.wait()
            seen.add(self.threads)
            return super().step(corpus, state, seed, iteration)

    fit(CORPUS, MC2(), warmed(Meeting, threads=5), iterations=3, chains=2)
    assert seen == {2}


def test_default_chains_run_side_by_side_with_the_same_bits(tmp_path, monkeypatch):
    seen = set()

    class Two(Walk):
        several_chains = 2

        def step(self, corpus, state, seed, iteration):
            seen.add(threading.get_ident())
            time.sleep(0.02)
            return super().step(corpus, state, seed, iteration)

    monkeypatch.setattr(loop, "n_cores", lambda: 2)
    unnamed = fit(**CALL, engine=Two(), chains=None)
    assert len(seen) == 2
    assert bytes_of(unnamed, tmp_path) == bytes_of(fit(**CALL, engine=Two(), chains=2), tmp_path)


def warmed(kind, **settings):
    """An engine whose kernels need no run of one chain before."""
    engine = kind(**settings)
    engine.to_warm = lambda model, corpus: (Walk(), (1,))
    return engine


@pytest.mark.parametrize("threads", [1, 2])
def test_time_is_shared_among_chains(threads):
    class Busy(Walk):
        def step(self, corpus, state, seed, iteration):
            until = time.thread_time() + 0.05
            while time.thread_time() < until:
                pass
            return super().step(corpus, state, seed, iteration)

    begun = time.perf_counter()
    run = fit(CORPUS, MC2(), Busy(threads=threads), iterations=4, chains=2)
    taken = time.perf_counter() - begun
    assert 0.4 <= run.provenance["cpu_seconds"] < 0.8
    assert run.provenance["seconds"] < taken
    last = run.trace.groupby("chain").seconds.last()
    assert last.sum() == pytest.approx(run.provenance["seconds"])
    assert last[1] == pytest.approx(last[2], rel=0.2)


def test_a_chain_already_done_is_named_where_others_are_not(tmp_path, caplog):
    call = {**CALL, "engine": Walk(), "checkpoint": tmp_path / "c.npz"}
    fit(**call)
    with caplog.at_level("INFO"):
        fit(**call, chains=2)
    told = [line for line in caplog.messages if "nothing is left to do" in line]
    assert len(told) == 1
    assert told[0].startswith(f"chain 1: {tmp_path / 'c.npz'} is at iteration ")


def test_checkpoints_of_chains_are_beside_that_of_the_first(tmp_path):
    assert [path.name for path in checkpoints_of("f/c.npz", 3)] == ["c.npz", "c.chain2.npz", "c.chain3.npz"]
    fit(**CALL, engine=Walk(), chains=3, checkpoint=tmp_path / "c.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.chain2.npz", "c.chain3.npz", "c.npz"]


@pytest.mark.parametrize("engine", [Walk, WalkInParts])
def test_chains_that_were_left_at_different_iterations_all_go_on(tmp_path, engine):
    whole = fit(**CALL, engine=engine(threads=2), chains=3, trace=tmp_path / "whole.tsv")
    path, trace = tmp_path / "c.npz", tmp_path / "parts.tsv"
    for iterations, chains in ((3, 2), (5, 1), (7, 3), (9, 3)):
        call = CALL | {"iterations": iterations, "burn_in": min(4, iterations - 2)}
        parts = fit(**call, engine=engine(), chains=chains, checkpoint=path, trace=trace)
    assert bytes_of(parts, tmp_path) == bytes_of(whole, tmp_path)
    pd.testing.assert_frame_equal(rows_of(parts), rows_of(whole))
    one, other = (pd.read_csv(file, sep="\t").drop(columns="seconds") for file in (trace, tmp_path / "whole.tsv"))
    pd.testing.assert_frame_equal(one, other)
    checkpoints_of(path, 3)[1].unlink()  # lost: its chain starts again, the others have nothing to do
    steps = []

    class Told(engine):
        name = engine.name

        def advance(self, corpus, state, seed, iteration):
            steps.append((seed, iteration))
            return super().advance(corpus, state, seed, iteration)

    again = fit(**CALL, engine=Told(), chains=3, checkpoint=path)
    assert bytes_of(again, tmp_path) == bytes_of(whole, tmp_path)
    assert len({seed for seed, _ in steps if seed != 0}) == 1  # 0 is that of the run before, for compiled kernels


@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_stops_all_chains_and_leaves_what_there_is(tmp_path, threads):
    seen = []

    def stop(iteration, state):
        seen.append(iteration)
        if seen.count(6) == 2:  # of the second chain: a second signal would stop at once
            seen.clear()
            os.kill(os.getpid(), signal.SIGTERM)

    left, path = [], tmp_path / "c.npz"
    call = {"engine": Walk(threads=threads), "chains": 3, "checkpoint": path}
    with pytest.raises(SystemExit):
        fit(**CALL, **call, callback=stop, on_stop=left.append)
    assert left[0].provenance["stopped_at"] in (6, 7)
    assert left[0].provenance["chains"] == [1, 1, 1]
    assert len(left[0].trace) == 3 * left[0].provenance["stopped_at"]
    assert bytes_of(fit(**CALL, **call), tmp_path) == bytes_of(fit(**CALL, engine=Walk(), chains=3), tmp_path)


def test_a_signal_in_the_start_stops_there(tmp_path):
    class Slow(Walk):
        def init(self, model, corpus, seed):
            if seed == CALL["seed"]:
                os.kill(os.getpid(), signal.SIGINT)
            return super().init(model, corpus, seed)

    with pytest.raises(KeyboardInterrupt):
        fit(**CALL, engine=warmed(Slow, threads=2), chains=2, checkpoint=tmp_path / "c.npz")
    assert not list(tmp_path.iterdir())


def test_an_error_in_any_chain_ends_the_fit():
    class Failing(Walk):
        def step(self, corpus, state, seed, iteration):
            if iteration == 3 and seed > 3:
                raise ValueError("this chain fails")
            return super().step(corpus, state, seed, iteration)

    for threads in (1, 2):
        with pytest.raises(ValueError, match="this chain fails"):
            fit(**CALL, engine=Failing(threads=threads), chains=2)


def test_snapshots_are_of_the_first_chain():
    two, one = (fit(**CALL, engine=Walk(), chains=chains, snapshots=[0, 5]).snapshots for chains in (2, 1))
    assert [sample.log_joint for sample in two.samples] == [sample.log_joint for sample in one.samples]
    assert two.between_chains() == {}


def test_chains_are_compared_by_their_clusterings():
    class Clusters(Walk):
        """The first chain has other clusters than all others."""

        def init(self, model, corpus, seed):
            state = super().init(model, corpus, seed)
            state.cluster = np.array([0, 0, 1] if seed == CALL["seed"] else [0, 1, 1], np.int32)
            return state

        def sample(self, corpus, state):
            two = {"topic_given_cluster": np.ones((2, 1)), "new_topic_weight": np.zeros(2)}
            two |= {"cluster_weights": np.full(2, 0.5), "contexts": SparseRows.from_dense(np.zeros((2, 0)))}
            return dataclasses.replace(super().sample(corpus, state), **two)

    run = fit(**CALL, engine=Clusters(), chains=3)
    between = run.provenance["inferred"]["chains"]
    assert between == run.posterior.between_chains()
    assert (between["clusters"], between["topics"]) == ([2, 2, 2], [1, 1, 1])
    # chains 2 and 3 are alike; of three pairs the first has another one together than these: ARI -1/2, VI 4/3 bits
    assert between["ari"] == pytest.approx((1 - 0.5 - 0.5) / 3)
    assert between["vi_bits"] == pytest.approx((0 + 4 / 3 + 4 / 3) / 3)
    assert fit(**CALL, engine=Clusters()).provenance["inferred"]["chains"] == {}


def test_bad_numbers_of_chains_are_named():
    for chains in (0, 1.5, "two"):
        with pytest.raises(ValueError, match="chains is "):
            fit(**CALL, engine=Walk(), chains=chains)


SETTINGS = {"gibbs": {"start_topics": 5}, "svi": {"max_clusters": 4, "max_topics": 6}, "fastex": {"n_clusters": 4}}


@pytest.mark.parametrize("name", SETTINGS)
def test_chains_of_every_engine_but_spark_run_side_by_side(name):
    _, engine = specify("mixture" if name == "fastex" else "mc2", name, SETTINGS[name], threads=4)
    with loop._side_by_side(engine, 2, engine.threads) as (pool, own):
        assert (n_threads(pool), own.threads) == (2, 2)
    engine.n_shards = 3
    with loop._side_by_side(engine, 2, engine.threads) as (pool, own):
        assert (n_threads(pool), own.threads) == (1, 4)
    alone = engine.in_this_process()
    assert (alone.n_shards, engine.n_shards) == (None, 3)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_engines_chains_are_the_same_bits_on_any_threads(tmp_path, name):
    corpus = Corpus(np.random.default_rng(0).poisson(0.4, (60, 30)))
    found = []
    for threads in (1, 2, 5):
        pair = specify("mixture" if name == "fastex" else "mc2", name, SETTINGS[name], threads=threads)
        run = fit(corpus, *pair, iterations=4, seed=1, chains=2, progress=False)
        found.append(bytes_of(run, tmp_path))
        first, second = (run.trace[run.trace.chain == number].iloc[-1, 4:].tolist() for number in (1, 2))
        assert first != second
    assert found[0] == found[1] == found[2]
