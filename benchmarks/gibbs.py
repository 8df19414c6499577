"""Comparison of kernels for models with a document level: ``python -m benchmarks.gibbs``.

There are three tables. The first shows the progress of a chain at each quarter of a run: iterations, processor seconds,
and the perplexity of held-out words by ``left_to_right``. The second shows the processor nanoseconds per token for each
part of an iteration, and for all work in blocks, which runs on several threads. The third has reference times for a
sweep over tokens: the time of a plain loop that weighs every topic for every token, and the time of the memory traffic
at full bandwidth.

Quarters refer to ``clock``, the estimated elapsed time on an otherwise idle machine. It is the processor time outside
of blocks, plus the processor time in blocks divided by the number of threads. Runs on a busy machine can therefore be
compared.

``--library PYTHON`` adds rows of LDA and of the HDP by tomotopy, which must be installed for that interpreter. Both run
with the same number of workers for the same time. The same estimator scores held-out words, given tomotopy's topics.

``--gain`` measures the elapsed time of the same iterations in three ways: on one thread, on ``--threads`` threads, and
in this number of parallel processes with one thread each. It reports the gain by threads and by processes, the seconds
of each part of an iteration, and the processor seconds of each part outside of blocks. It needs an otherwise idle
machine.

``--documents N --workers W`` measures the parts of an iteration on Spark, with W executors of one core each and W
shards. It reports the processor seconds of this process outside and inside of Spark's jobs, of the slowest task, and of
Spark's own processes.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import statistics
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numba
import numpy as np
import psutil
import scipy.sparse as sp

from benchmarks.recovery import Cell, draw
from benchmarks.suite import DATA_FOLDER
from mc2core import Corpus
from mc2core.compute import spark, streams, threads
from mc2core.inference import Gibbs, shards
from mc2core.inference.base import posterior_of
from mc2core.inference.gibbs import (
    assignments,
    documents,
    parallel,
    start,
    state,
    topic_moves,
    weights,
)
from mc2core.inference.gibbs import engine as gibbs_engine
from mc2core.inference.gibbs.state import DocumentLevelState, GibbsState
from mc2core.models import MC2
from mc2core.posterior import perplexity, perplexity_kernels
from mc2papers.datasets.collections import nips

KERNELS = ("collapsed", "parallel")
#: parts of an iteration, and the functions that compute them
PARTS = {
    "tokens": (state, ("sweep_document_topics",)),
    "topics split and merged": (state, ("split_and_merge_topics",)),
    "documents given tau": (state, ("sweep_members",)),
    "omega": (state, ("draw_omega",)),
    "tables": (state, ("sample_document_tables",)),
    "documents given tables": (state, ("sweep_clusters",)),
    "weights": (state, ("update_weights", "draw_proportions", "count_topics")),
    "joint": (GibbsState, ("compute_log_joint",)),
}
#: without repeats of words, which the parallel kernel does not support
_MODEL = MC2(burstiness=False)
_QUARTERS = 4
_BLOCK = 50_000  # documents drawn at a time
_TOPICS = 300  # number of topics of tomotopy's LDA, and of its HDP at the start
_LOOPED = 200_000  # approximate number of tokens that the plain loop visits
_NUMBERS = 1 << 24  # length of each array of the triad that measures bandwidth: 128 MB, more than a cache has


# -- corpora: training and test documents ----------------------------------------------------------------------------
def real_nips() -> tuple[Corpus, Corpus]:
    return nips.read(DATA_FOLDER / "nips/nips-corpus-20111211.zip").with_contexts({}).split(0.1, seed=0)


def short(n_documents: int = 20_000) -> tuple[Corpus, Corpus]:
    """Return training and test documents of ten words in twenty clusters."""
    drawn = draw(Cell(20, n_documents, 10, 20.0), 0)
    return drawn.corpus, drawn.held_out


CORPORA: dict[str, Callable[[], tuple[Corpus, Corpus]]] = {"nips": real_nips, "short": short}


# -- time ------------------------------------------------------------------------------------------------------------
class Watch:
    """Measure processor seconds since the start, in total, in each part, and in all work in blocks."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = defaultdict(float)
        #: seconds of each part outside of blocks, and elapsed seconds
        self.alone: dict[str, float] = defaultdict(float)
        self.clocks: dict[str, float] = defaultdict(float)
        self.in_blocks, self._depth, self._started = 0.0, 0, time.process_time()

    @property
    def seconds(self) -> float:
        return time.process_time() - self._started

    def clock(self, n_threads: int) -> float:
        return self.seconds - self.in_blocks + self.in_blocks / n_threads

    def timed(self, call: Callable[..., Any], part: str) -> Callable[..., Any]:
        def run(*arguments: Any, **more: Any) -> Any:
            started, clock, blocks = time.process_time(), time.perf_counter(), self.in_blocks
            try:
                return call(*arguments, **more)
            finally:
                seconds = time.process_time() - started
                self.parts[part] += seconds
                self.clocks[part] += time.perf_counter() - clock
                self.alone[part] += seconds - (self.in_blocks - blocks)

        return run

    def timed_blocks(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            if threading.current_thread() is not threading.main_thread() or self._depth:
                return call(*arguments)  # already inside of measured blocks
            started, self._depth = time.process_time(), 1
            try:
                return call(*arguments)
            finally:
                self.in_blocks += time.process_time() - started
                self._depth = 0

        return run


@contextmanager
def watching() -> Iterator[Watch]:
    """Measure all chains of this process until the end of the block."""
    watch, kept = Watch(), []
    apart = ("tokens", (parallel, ("sweep_documents_apart",)))  # imported by the state only when it is called
    for part, (owner, names) in (*PARTS.items(), apart):
        kept += [(owner, name, getattr(owner, name), watch.timed(getattr(owner, name), part)) for name in names]
    modules = (assignments, weights, documents, parallel, start, topic_moves, threads)
    kept += [(module, "in_blocks", module.in_blocks, watch.timed_blocks(module.in_blocks)) for module in modules]
    for owner, name, _, new in kept:
        setattr(owner, name, new)
    try:
        yield watch
    finally:
        for owner, name, old, _ in kept:
            setattr(owner, name, old)


# -- chains ----------------------------------------------------------------------------------------------------------
Row = dict[str, Any]


def run(
    train: Corpus, test: Corpus, kernel: str, seed: int, n_threads: int, seconds: float
) -> tuple[list[Row], Row, list[Row]]:
    """Run a chain for ``seconds`` on the clock; return rows at its quarters, a row of parts, and reference times."""
    model, engine, few = _MODEL, Gibbs(kernel=kernel, threads=n_threads), train.subset(np.arange(40))
    engine.step(few, engine.init(model, few, 0), 0, 1)  # compiles kernels
    reached: list[tuple[Row, Any]] = []
    with watching() as watch:
        chain = engine.init(model, train, seed)
        of_start, iteration = watch.seconds, 0
        watch.parts.clear()
        blocks_of_start = watch.in_blocks
        while len(reached) < _QUARTERS:
            iteration += 1
            engine.step(train, chain, seed, iteration)
            clock = watch.clock(n_threads)
            if clock >= seconds * (len(reached) + 1) / _QUARTERS:
                row = {
                    "clock": clock, "processor": watch.seconds, "start": of_start, "iterations": iteration,
                    "clusters": chain.assignments.n_clusters, "topics": chain.assignments.n_topics,
                    "joint": chain.log_joint,
                }  # fmt: skip
                reached.append((row, engine.sample(train, chain)))
        scale = 1e9 / train.n_tokens / iteration
        parts = {part: watch.parts[part] * scale for part in PARTS}
        parts |= {
            "all": (watch.seconds - of_start) * scale,
            "of it in blocks": (watch.in_blocks - blocks_of_start) * scale,
        }
    assert isinstance(chain, DocumentLevelState)
    about = {"chain": kernel, "seed": seed}
    rows = []
    for row, sample in reached:
        posterior = posterior_of(model, train, [sample], {})
        rows.append(about | row | {"perplexity": posterior.perplexity(test, "left_to_right", threads=n_threads)})
    return rows, about | {"topics": reached[-1][0]["topics"]} | parts, limits(train, chain, n_threads)


# -- threads and processes -------------------------------------------------------------------------------------------
def _run_alone(
    engine: Gibbs, corpus: Corpus, chain: DocumentLevelState, iterations: range, ready: Any, results: Any
) -> None:
    """Put the elapsed seconds of these iterations into ``results``; measure when all processes are ready.

    One iteration runs before the measurement, because it copies the memory that is shared with the parent process.
    """
    engine.step(corpus, chain, 0, iterations.start - 1)
    ready.wait()
    started = time.perf_counter()
    for iteration in iterations:
        engine.step(corpus, chain, 0, iteration)
    results.put(time.perf_counter() - started)


def clock_of(engine: Gibbs, corpus: Corpus, chain: DocumentLevelState, iterations: range, n_processes: int) -> float:
    """Return the elapsed seconds per iteration (mean over parallel processes); ``chain`` does not change."""
    context = multiprocessing.get_context("fork")
    ready, results = context.Barrier(n_processes), context.Queue()
    processes = [
        context.Process(target=_run_alone, args=(engine, corpus, chain, iterations, ready, results))
        for _ in range(n_processes)
    ]
    for process in processes:
        process.start()
    seconds = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return statistics.fmean(seconds) / len(iterations)


def run_gain(
    train: Corpus, kernel: str, n_threads: int, settled: int, iterations: int = 5, rounds: int = 3
) -> tuple[Row, list[Row]]:
    """Return a row with the gain by threads and by processes, after ``settled`` iterations, and rows of the parts."""
    alone, together = (Gibbs(kernel=kernel, threads=n) for n in (1, n_threads))
    chain = together.init(_MODEL, train, 0)
    assert isinstance(chain, DocumentLevelState)
    for iteration in range(1, settled + 1):
        together.step(train, chain, 0, iteration)
    timed = range(settled + 2, settled + 2 + iterations)
    ways = (alone, 1), (together, 1), (alone, n_threads)
    seconds = [[clock_of(engine, train, chain, timed, n) for engine, n in ways] for _ in range(rounds)]
    one, threaded, beside = (statistics.median(of_way) for of_way in zip(*seconds, strict=True))
    row = {
        "chain": kernel, "clusters": chain.assignments.n_clusters, "topics": chain.assignments.n_topics,
        "one thread, s": one, f"{n_threads} threads, s": threaded, f"{n_threads} processes, s": beside,
        "gain of threads": one / threaded, "gain of processes": n_threads * one / beside,
        "threads / processes": beside / (n_threads * threaded),
    }  # fmt: skip
    watches = []
    for engine in (alone, together):
        again = DocumentLevelState.restore(chain.model, train, chain.arrays())
        with watching() as watch:
            step = watch.timed(engine.step, "all")
            for iteration in timed:
                step(train, again, 0, iteration)
        watches.append(watch)
    one_watch, watch = watches
    parts: list[Row] = [
        {
            "part": part, "clock, one thread": one_watch.clocks[part] / iterations,
            f"clock, {n_threads} threads": watch.clocks[part] / iterations,
            "processor": watch.parts[part] / iterations, "of it not in blocks": watch.alone[part] / iterations,
        }
        for part in sorted([*PARTS, "all"], key=lambda part: -watch.alone[part])
    ]  # fmt: skip
    return row, parts


# -- reference times for a sweep over tokens -------------------------------------------------------------------------
@numba.njit(error_model="numpy")
def _dense_sweep(indptr, word, counts, topic, cluster, prior, n_wm, n_m, s, vs, uniform, n_documents):
    """Resample the topics of the tokens of the first documents one by one, with the weights of all topics."""
    n_topics, i = n_m.size, 0
    n_j, sums = np.zeros(n_topics, np.int64), np.empty(n_topics)
    for j in range(n_documents):
        n_j[:] = 0
        first = i
        for cell in range(indptr[j], indptr[j + 1]):
            for _ in range(counts[cell]):
                n_j[topic[i]] += 1
                i += 1
        i = first
        for cell in range(indptr[j], indptr[j + 1]):
            w = word[cell]
            for _ in range(counts[cell]):
                m, total = topic[i], 0.0
                n_j[m], n_wm[w, m], n_m[m] = n_j[m] - 1, n_wm[w, m] - 1, n_m[m] - 1
                for m in range(n_topics):
                    total += (n_j[m] + prior[cluster[j], m]) * (n_wm[w, m] + s) / (n_m[m] + vs)
                    sums[m] = total
                m = min(np.searchsorted(sums, uniform[i] * total), n_topics - 1)
                n_j[m], n_wm[w, m], n_m[m], topic[i] = n_j[m] + 1, n_wm[w, m] + 1, n_m[m] + 1, m
                i += 1


def dense_loop(corpus: Corpus, chain: DocumentLevelState, n_tokens: int = _LOOPED) -> float:
    """Return the nanoseconds per token of a plain loop over the first documents, on a copy of the chain."""
    assignments, content, n_words = chain.assignments, corpus.content, corpus.n_words
    n_documents = max(1, int(np.searchsorted(assignments.document_start, n_tokens, side="right")) - 1)
    prior, n_wm = chain.omega * chain.proportions[:, :-1], chain.words()
    given = content.indptr, content.indices, content.data, assignments.topic.copy(), assignments.cluster, prior
    tables = n_wm, n_wm.sum(axis=0, dtype=np.int64), chain.topic_word_prior, chain.topic_word_prior * n_words
    uniform = np.random.default_rng(0).random(assignments.document_start[n_documents])
    _dense_sweep(*given, *tables, uniform, 0)  # compiles kernels
    started = time.process_time()
    _dense_sweep(*given, *tables, uniform, n_documents)
    return 1e9 * (time.process_time() - started) / assignments.document_start[n_documents]


@numba.njit(nogil=True, fastmath=True)
def _triad(a, b, c):
    for i in range(a.size):
        a[i] = b[i] + 3.0 * c[i]


def bandwidth(n_threads: int) -> float:
    """Return the bytes per second that all threads together move in the triad a = b + 3 c (the best of three runs)."""
    arrays = np.ones((3, _NUMBERS))
    bounds = np.linspace(0, _NUMBERS, n_threads + 1).astype(int)
    _triad(*arrays[:, :1])  # compiles kernels
    best = np.inf
    for _ in range(3):
        parts = [
            threading.Thread(target=_triad, args=tuple(arrays[:, first:last]))
            for first, last in itertools.pairwise(bounds)
        ]
        started = time.perf_counter()
        for part in parts:
            part.start()
        for part in parts:
            part.join()
        best = min(best, time.perf_counter() - started)
    return float(arrays.nbytes / best)


def limits(corpus: Corpus, chain: DocumentLevelState, n_threads: int) -> list[Row]:
    """Return the time of the plain loop, and the time for the least memory traffic of a sweep at full bandwidth.

    The traffic of a token is its topic (read and written), and the word and count of its cell, divided by the tokens of
    the cell. If the cache holds no counts, the word's row of topic counts is also read once per cell. A dense row takes
    4 bytes per topic; a sparse row takes 8 bytes per positive entry.
    """
    n_wm, cells = chain.words(), corpus.content.nnz / corpus.n_tokens
    met = np.bincount(corpus.content.indices, minlength=len(n_wm)) @ np.count_nonzero(n_wm, axis=1) / corpus.n_tokens
    alone = 8.0 + 8.0 * cells
    moved = {
        "corpus and topics": alone,
        "and dense rows": alone + 4.0 * n_wm.shape[1] * cells,
        "and entries of rows": alone + 8.0 * met,
    }
    rows: list[Row] = [
        {"limit": "plain loop", "threads": 1, "bytes a token": "", "GB/s": "", "ns a token": dense_loop(corpus, chain)}
    ]
    for n in range(1, n_threads + 1):
        speed = bandwidth(n)
        rows += [
            {"limit": what, "threads": n, "bytes a token": size, "GB/s": speed / 1e9, "ns a token": 1e9 * size / speed}
            for what, size in moved.items()
        ]
    return rows


# -- many documents --------------------------------------------------------------------------------------------------
def known_state(n_documents: int, seed: int = 0) -> tuple[Corpus, DocumentLevelState]:
    """Draw documents of 100 words with at most five topics (50 clusters, 200 topics); return the true state too."""
    rng = np.random.default_rng(seed)
    n_words, n_topics, n_clusters, length, own = 20_000, 200, 50, 100, 5
    tau = rng.dirichlet(np.full(n_topics, 0.1), n_clusters)
    # each topic has Zipf's law over its own order of the words
    step, shift = 2 * rng.integers(1, n_words // 2, n_topics) + 1, rng.integers(0, n_words, n_topics)
    zipf = np.cumsum(1.0 / (np.arange(n_words) + 3.0))
    cluster, topics, blocks = np.arange(n_documents, dtype=np.int32) % n_clusters, [], []
    for first in range(0, n_documents, _BLOCK):
        z = cluster[first : first + _BLOCK]
        cumulative = np.cumsum(tau, axis=1)
        mine = np.stack([
            np.searchsorted(cumulative[k] / cumulative[k, -1], rng.random(own)) for k in z
        ]).astype(np.int32)  # fmt: skip
        topic = np.take_along_axis(mine, rng.integers(0, own, (len(z), length)), axis=1).ravel()
        rank = np.searchsorted(zipf, rng.random(len(topic)) * zipf[-1])
        word = ((step[topic] * rank + shift[topic]) % n_words).astype(np.int32)
        document = np.repeat(np.arange(len(z), dtype=np.int32), length)
        order = np.lexsort((word, document))
        topics.append(topic[order])
        blocks.append(sp.csr_matrix((np.ones(len(word), np.int32), (document, word)), (len(z), n_words)))
    corpus, topic = Corpus(sp.vstack(blocks, format="csr")), np.concatenate(topics)
    del blocks, topics
    used, renamed = np.unique(topic, return_inverse=True)
    n_km = np.zeros((n_clusters, len(used)), np.int32)
    np.add.at(n_km, (np.repeat(cluster, length), renamed), 1)
    epsilon = np.append(np.bincount(renamed) / len(renamed) * 0.999, 0.001)
    mass = np.column_stack([n_km, np.zeros(n_clusters)]) + 10.0 * epsilon
    arrays = {
        "cluster": cluster, "topic": renamed.astype(np.int32), "topic_weights": epsilon[:-1],
        "scalars": np.array([epsilon[-1], 1.0, 20.0, 20.0, 0.0]),
        "proportions": mass / mass.sum(axis=1, keepdims=True), "tables": (n_km > 0).astype(np.int32),
        "document_concentration": np.array(10.0),
    }  # fmt: skip
    return corpus, DocumentLevelState.restore(MC2(), corpus, arrays)


@contextmanager
def peak_memory() -> Iterator[Callable[[], float]]:
    """Yield a function that returns the peak anonymous memory of this process in GB, sampled twenty times a second."""
    most, done = [0.0], threading.Event()

    def look() -> None:
        while not done.wait(0.05):
            status = Path("/proc/self/status").read_text(encoding="ascii")
            most[0] = max(most[0], int(status.partition("RssAnon:")[2].split()[0]) / 2**20)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield lambda: most[0]
    finally:
        done.set()
        watcher.join()


def run_many(n_documents: int, kernel: str, n_threads: int, iterations: int = 2) -> tuple[Row, list[Row]]:
    """Run iterations from the true state of :func:`known_state`; return times of parts, memory and reference times."""
    corpus, chain = known_state(n_documents)
    engine, few = Gibbs(kernel=kernel, threads=n_threads), corpus.subset(np.arange(40))
    engine.step(few, engine.init(_MODEL, few, 0), 0, 1)  # compiles kernels
    with peak_memory() as most, watching() as watch:
        for iteration in range(1, iterations + 1):
            engine.step(corpus, chain, 0, iteration)
        scale = 1e9 / corpus.n_tokens / iterations
        row = {
            "documents": n_documents, "chain": kernel, "clusters": chain.assignments.n_clusters,
            "topics": chain.assignments.n_topics, "processor": watch.seconds / iterations,
            "clock": watch.clock(n_threads) / iterations, "GB": most(),
            **{part: watch.parts[part] * scale for part in PARTS}, "of it in blocks": watch.in_blocks * scale,
        }  # fmt: skip
    return row, limits(corpus, chain, n_threads)


# -- on Spark --------------------------------------------------------------------------------------------------------
def timed_task(work: shards.Work, shard: shards.Shard, step: Mapping[str, np.ndarray]) -> tuple[Any, float]:
    """Run ``work`` in a task of Spark; return its result and its processor seconds."""
    started = time.process_time()
    return work(shard, step), time.process_time() - started


class TimedShards:
    """A corpus on executors that sums the processor seconds of the slowest task of each job and of this process."""

    def __init__(self, sharded: shards.ShardedCorpus) -> None:
        self.shards, self._sharded = sharded.shards, sharded
        self.tasks, self.here, self.clock = 0.0, 0.0, 0.0

    def run(self, arrays: Mapping[str, Any], work: shards.Work) -> list[Any]:
        """Run a job like :meth:`ShardedCorpus.run`, and measure it."""
        here, clock = time.process_time(), time.perf_counter()
        results = self._sharded.run(arrays, partial(timed_task, work))
        self.here += time.process_time() - here
        self.clock += time.perf_counter() - clock
        self.tasks += max(seconds for _, seconds in results)
        return [result for result, _ in results]


def seconds_below() -> float:
    """Return the processor seconds of all running child processes."""
    found = 0.0
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += sum(one.cpu_times()[:2])
    return found


def run_on_spark(n_documents: int, n_workers: int, iterations: int = 3) -> Row:
    """Run iterations on Spark from the true state of :func:`known_state`; return the processor seconds of the parts."""
    corpus, chain = known_state(n_documents)
    few, alone = corpus.subset(np.arange(40)), Gibbs(kernel="parallel")
    alone.step(few, alone.init(_MODEL, few, 0), 0, 1)  # compiles kernels
    with tempfile.TemporaryDirectory() as folder:
        properties = {
            "spark.master": f"local-cluster[{n_workers},1,1500]", "spark.executor.memory": "1400m",
            spark.FOLDER: folder,
        }  # fmt: skip
        with spark.session(properties), watching() as watch, mock.patch.object(gibbs_engine, "shards_of") as shards_of:
            timed = TimedShards(shards.shards_of(corpus, n_workers))
            shards_of.return_value = timed
            on_spark = Gibbs(kernel="parallel", n_shards=n_workers)
            for iteration in range(1, iterations + 2):
                if iteration == 2:  # iteration 1 is not measured: executors open their shards and load kernels
                    timed.tasks = timed.here = timed.clock = 0.0
                    watch.parts.clear()
                    below, started = seconds_below(), time.process_time()
                on_spark.step(corpus, chain, 0, iteration)
            here, below = time.process_time() - started, seconds_below() - below
    return {
        "documents": n_documents, "workers": n_workers, "topics": chain.assignments.n_topics,
        "this process, outside the job": (here - timed.here) / iterations,
        "in it": timed.here / iterations, "slowest task": timed.tasks / iterations,
        "Spark's processes, tasks included": below / iterations, "job by the clock": timed.clock / iterations,
        **{part: watch.parts[part] / iterations for part in PARTS},
    }  # fmt: skip


# -- comparison with tomotopy ----------------------------------------------------------------------------------------
def run_library(
    python: str, kind: str, n_topics: int, train: Corpus, test: Corpus, seed: int, n_threads: int, seconds: float
) -> Row:
    """Run a chain of tomotopy and return its row; ``clock`` is its processor seconds divided by its workers."""
    with tempfile.TemporaryDirectory() as folder:
        sp.save_npz(f"{folder}/corpus.npz", train.content)
        script = Path(__file__).with_name("tomotopy_chain.py")
        settings = [folder, kind, n_topics, seed, n_threads, seconds]
        subprocess.run([python, str(script), *map(str, settings)], check=True)
        found = dict(np.load(f"{folder}/found.npz"))
    processor, iterations = float(found["processor"]), int(found["iterations"])
    return {
        "chain": f"tomotopy, {kind}",
        "seed": seed,
        "clock": processor / n_threads,
        "processor": processor,
        "iterations": iterations,
        "topics": len(found["alpha"]),
        "ns a token": processor * 1e9 / iterations / train.n_tokens,
        "perplexity": score(test, found["psi"], found["alpha"]),
    }


def score(test: Corpus, psi: np.ndarray, alpha: np.ndarray) -> float:
    """Return the perplexity by ``left_to_right``, given (M, V) ``psi`` and theta_j ~ Dirichlet(alpha).

    A probability in ``psi`` is at least 1e-12, because tomotopy drops words that do not occur in the training data.
    """
    content, log_p, shape = test.content, np.empty((test.n_documents, 1)), (test.n_documents, 1)
    by_word = np.maximum(np.ascontiguousarray(psi.T, dtype=np.float64), 1e-12)
    asked = perplexity_kernels.Asked(
        alpha.astype(np.float64)[None], np.array([streams.key(0, "benchmark")]), np.zeros(shape, np.int64),
        np.full(shape, float(perplexity.LEFT_TO_RIGHT_PARTICLES)),
    )  # fmt: skip
    perplexity_kernels.left_to_right(
        content.indptr.astype(np.int64), content.indices.astype(np.int64), content.data.astype(np.int64),
        np.arange(test.n_words), by_word, asked, perplexity.LEFT_TO_RIGHT_MOVES, 0, test.n_documents, log_p,
    )  # fmt: skip
    return float(np.exp(-log_p.sum() / test.n_tokens))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gibbs", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--corpus", choices=CORPORA, default="nips")
    parser.add_argument("--kernels", nargs="*", choices=KERNELS, default=KERNELS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0, help="of a chain, by the clock of an idle machine")
    parser.add_argument("--held-out", type=int, default=40, help="documents to score")
    parser.add_argument("--library", metavar="PYTHON", help="an interpreter that has tomotopy")
    parser.add_argument("--gain", type=int, metavar="N", help="threads beside processes, after N iterations; no more")
    parser.add_argument("--documents", type=int, help="so many of 100 words, two iterations each, and nothing else")
    parser.add_argument("--workers", type=int, help="with --documents: on Spark, on so many executors")
    given = parser.parse_args()
    if given.documents and given.workers:
        print(as_markdown([run_on_spark(given.documents, given.workers)]))
        return
    if given.documents:
        for kernel in given.kernels:
            row, beside = run_many(given.documents, kernel, given.threads)
            print(as_markdown([row]), as_markdown(beside), sep="\n", flush=True)
        return
    train, test = CORPORA[given.corpus]()
    if given.gain is not None:
        for kernel in given.kernels:
            row, parts = run_gain(train, kernel, given.threads, given.gain)
            print(as_markdown([row]), as_markdown(parts), sep="\n", flush=True)
        return
    test = test.subset(np.arange(min(given.held_out, test.n_documents)))
    for seed in given.seeds:
        for kernel in given.kernels:
            rows, row, beside = run(train, test, kernel, seed, given.threads, given.seconds)
            print(as_markdown(rows), as_markdown([row]), as_markdown(beside), sep="\n", flush=True)
        for kind in ("LDA", "HDP") if given.library else ():
            row = run_library(given.library, kind, _TOPICS, train, test, seed, given.threads, given.seconds)
            print(as_markdown([row]), flush=True)


def as_markdown(table: list[Row]) -> str:
    heads = list(table[0])
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    lines += [
        "| " + " | ".join(f"{one:.4g}" if isinstance(one, float) else str(one) for one in row.values()) + " |"
        for row in table
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
