"""FastEx: costs, acceptance and clustering quality of hashed, exact and the baseline's proposals.

    python benchmarks/fastex.py speed    [--clusters 100 1000] [--bits 32 128] [--documents 10000]
    python benchmarks/fastex.py draw     [--clusters 1000] [--bits 128]
    python benchmarks/fastex.py moves    [--clusters 100 1000] [--bits 128]
    python benchmarks/fastex.py quality  [--clusters 100] [--bits 128] [--documents 20000] [--sweeps 10] [--only NAME]
    python benchmarks/fastex.py crossing [--clusters 25 50 100 200 400 800] [--bits 32 128]
    python benchmarks/fastex.py cores    [--clusters 1000] [--bits 128]
    python benchmarks/fastex.py lemma
    python benchmarks/fastex.py table    [--clusters 10000] [--words 3000000 5000000] [--documents 30000]

Prints the tables of fastex.md. The corpus is the simulated encyclopaedia, about 100 distinct words a document. Times
are CPU seconds of the thread, except in ``cores`` (wall); compilation is excluded. ``speed``, ``draw``, ``crossing``
and ``table`` start from the true clusters, so documents stay where they are, as in a chain that has converged;
``quality`` and ``cores`` start at random. Several threads share hashed sweeps only in rounds (``cores``), which are
approximate. Run it while the machine does nothing else.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numba
import numpy as np
from markdown_tables import heading, row

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.compute.signatures import popcount
from mc2core.compute.threads import thread_budget
from mc2core.engines import FastEx
from mc2core.engines.fastex.components import (
    BACKGROUND_SIZE,
    GAUSSIAN,
    MULTINOMIAL,
    POISSON,
    Constants,
    document_mass,
    linear_terms,
    log_evidence,
    theta_of,
    word_term,
)
from mc2core.engines.fastex.hashed.sweep import propose_all
from mc2core.model.clustering import variation_of_information
from mc2core.sources.simulated.encyclopaedia import Encyclopaedia, simulate

N_WORDS = 50_000
REPEATS = 5


def hashed(bits: list[int]) -> Iterator[tuple[str, dict]]:
    for b in bits:
        for projection in ("balanced", "paper"):
            yield f"{projection}, {b} bits", {"proposal": "hash", "projection": projection, "bits": b}


def rivals(bits: list[int]) -> Iterator[tuple[str, dict]]:
    yield from hashed(bits)
    yield "exact", {"proposal": "exact"}
    yield "baseline", {"proposal": "baseline"}


def state_at(corpus: Corpus, cluster: np.ndarray, settings: dict):
    """State of a chain at these clusters, its kernels compiled by a sweep over a few documents."""
    engine = FastEx(**settings)
    few = corpus.subset(np.arange(20))
    first = engine._state(few, cluster[:20].astype(np.int32))
    first.sweep(streams.key(0, "benchmark", 0), np.zeros(2, np.int64))
    return engine._state(corpus, cluster.astype(np.int32))


def time_sweeps(state) -> tuple[float, np.ndarray]:
    """Median CPU microseconds a document, and moves (proposed, accepted) for each document and sweep."""
    seconds, moves = [], np.zeros(2, np.int64)
    for sweep in range(REPEATS):
        started = time.thread_time()
        state.sweep(streams.key(0, "benchmark", sweep), moves)
        seconds.append(time.thread_time() - started)
    n_documents = len(state.cluster)
    return float(np.median(seconds)) / n_documents * 1e6, moves / (REPEATS * n_documents)


def speed(given: argparse.Namespace) -> None:
    heading("K", "proposal", "us a document")
    for k in given.clusters:
        corpus = simulate(Encyclopaedia(k, given.documents, N_WORDS), seed=0)
        for name, settings in rivals(given.bits):
            cost, _ = time_sweeps(state_at(corpus, np.asarray(corpus.labels), {"n_clusters": k, **settings}))
            row(k, name, f"{cost:.1f}")


# -- the proposal alone --------------------------------------------------------------------------------------------
@numba.njit
def bare_proposals(signatures, queries, weight_at, uniforms, cumulative, proposed):
    """The least a hashed proposal must do: distances, a looked-up weight for each, prefix sums, a binary search."""
    for j in range(queries.shape[0]):
        total = 0.0
        for k in range(signatures.shape[0]):
            apart = 0
            for part in range(signatures.shape[1]):
                apart += popcount(signatures[k, part] ^ queries[j, part])
            total += weight_at[apart]
            cumulative[k] = total
        proposed[j] = np.searchsorted(cumulative, uniforms[j] * total)


def draw(given: argparse.Namespace) -> None:
    heading("K", "bits", "proposal, us", "bare kernel, us", "ratio")
    for k in given.clusters:
        corpus = simulate(Encyclopaedia(k, given.documents, N_WORDS), seed=0)
        uniforms, proposed = np.random.default_rng(0).random(given.documents), np.zeros(given.documents, np.int32)
        for b in given.bits:
            state = state_at(corpus, np.asarray(corpus.labels), {"n_clusters": k, "proposal": "hash", "bits": b})
            signatures = np.ascontiguousarray(state.clusters.columns.signature.T[:k])
            weight_at = np.exp(-np.arange(b + 1, dtype=float))
            data = state.documents, state.clusters, state.constants
            ours, bare = [], []
            for repeat in range(1 + 2 * REPEATS):
                started = time.thread_time()
                propose_all(streams.key(0, "benchmark", repeat), *data, proposed)
                between = time.thread_time()
                bare_proposals(signatures, state.documents.signature, weight_at, uniforms, np.empty(k), proposed)
                ours.append(between - started)
                bare.append(time.thread_time() - between)
            ours_us, bare_us = (float(np.median(times[1:])) / given.documents * 1e6 for times in (ours, bare))
            row(k, b, f"{ours_us:.2f}", f"{bare_us:.2f}", f"{ours_us / bare_us:.2f}")


# -- moves and quality ---------------------------------------------------------------------------------------------
def moves(given: argparse.Namespace) -> None:
    heading(
        "K", "clusters at the start", "proposal", "proposed", "acceptance", "accepted moves/s", "balanced / paper >= 5"
    )
    for k in given.clusters:
        corpus = simulate(Encyclopaedia(k, given.documents, N_WORDS), seed=0)
        truth = np.asarray(corpus.labels)
        generator = np.random.default_rng(0)
        astray = np.where(generator.random(len(truth)) < 0.2, generator.integers(0, k, len(truth)), truth)
        for start, cluster in (("true", truth), ("a fifth astray", astray)):
            for b in given.bits:
                per_second = {}
                for name, settings in hashed([b]):
                    cost, (proposed, accepted) = time_sweeps(state_at(corpus, cluster, {"n_clusters": k, **settings}))
                    per_second[name] = accepted / cost * 1e6
                    balanced, paper = next(iter(per_second.values())), per_second[name]
                    ratio = "" if len(per_second) == 1 else "no move accepted"
                    if ratio and paper > 0:
                        ratio = f"{balanced / paper:.1f}, {'holds' if balanced >= 5 * paper else 'does not hold'}"
                    row(
                        k,
                        start,
                        name,
                        f"{proposed:.4f}",
                        f"{accepted / max(proposed, 1e-9):.4f}",
                        f"{paper:.0f}",
                        ratio,
                    )


def chain(corpus: Corpus, engine: FastEx, sweeps: int, seed: int = 0) -> tuple[list[float], list[float]]:
    """CPU seconds of the thread up to each sweep, fits of the projection included, and VI (bits) to the truth."""
    few = corpus.subset(np.arange(20))
    engine.step(few, engine.init(few, seed), seed, 1)
    started = time.thread_time()
    state, used = engine.init(corpus, seed), time.thread_time() - started
    seconds, vi = [], []
    for sweep in range(1, sweeps + 1):
        started = time.thread_time()
        engine.step(corpus, state, seed, sweep)
        used += time.thread_time() - started
        seconds.append(used)
        vi.append(float(variation_of_information(corpus.labels, state.cluster)))
    return seconds, vi


def quality(given: argparse.Namespace) -> None:
    shown = [s for s in (1, 2, 5, 10, 20, 50, 100) if s <= given.sweeps]
    levels = (8.0, 6.0, 5.0, 2.0, 1.0, 0.5)
    columns = [f"VI after {s}" for s in shown] + [f"s to VI {level:g}" for level in levels]
    heading("K", "proposal", *columns, "s a sweep")
    for k in given.clusters:
        corpus = simulate(Encyclopaedia(k, given.documents, N_WORDS), seed=0)
        for name, settings in rivals(given.bits):
            if given.only and not name.startswith(given.only):
                continue
            seconds, vi = chain(corpus, FastEx(n_clusters=k, **settings), given.sweeps)
            reached = [next((f"{s:.1f}" for s, v in zip(seconds, vi, strict=True) if v <= x), "never") for x in levels]
            row(k, name, *(f"{vi[s - 1]:.2f}" for s in shown), *reached, f"{np.median(np.diff(seconds)):.2f}")


def crossing(given: argparse.Namespace) -> None:
    heading("K", "exact, us", *(f"{name}, us" for name, _ in hashed(given.bits)))
    for k in given.clusters:
        corpus = simulate(Encyclopaedia(k, given.documents, N_WORDS), seed=0)
        truth = np.asarray(corpus.labels)
        every = [{"proposal": "exact"}, *(settings for _, settings in hashed(given.bits))]
        row(k, *(f"{time_sweeps(state_at(corpus, truth, {'n_clusters': k, **one}))[0]:.1f}" for one in every))


def cores(given: argparse.Namespace) -> None:
    heading(
        "K", "documents", "a round", "threads", "wall us a document", "times faster", "VI after the sweeps, 3 seeds"
    )
    for k in given.clusters:
        corpus = simulate(Encyclopaedia(k, given.documents, N_WORDS), seed=0)
        alone = 0.0
        for together, threads in ((1, 1), (1000, 1), (1000, 2)):
            settings = {"n_clusters": k, "proposal": "hash", "bits": given.bits[0], "documents_per_round": together}
            state, wall = state_at(corpus, np.asarray(corpus.labels), settings), []
            with thread_budget(threads) as pool:
                for sweep in range(REPEATS):
                    started = time.perf_counter()
                    state.sweep(streams.key(0, "benchmark", sweep), np.zeros(2, np.int64), pool)
                    wall.append(time.perf_counter() - started)
            cost = float(np.median(wall)) / given.documents * 1e6
            alone = cost if threads == 1 else alone
            engine = FastEx(**settings, threads=threads)
            vi = [chain(corpus, engine, given.sweeps, seed)[1][-1] for seed in range(3)]
            ratio = f"{alone / cost:.2f}" if threads > 1 else ""
            row(k, given.documents, together, threads, f"{cost:.1f}", ratio, ", ".join(f"{value:.2f}" for value in vi))


# -- Lemma 1, and the table of counts ------------------------------------------------------------------------------
@numba.njit
def over_words(constants, n, x):
    words = inner = 0.0
    for d in range(x.size):
        words += word_term(constants.component, constants.log_gamma, constants.word_prior, n[d], x[d])
        inner += x[d] * np.float64(theta_of(constants.component, constants.theta, constants.word_prior, n[d]))
    return words, inner


def lemma(given: argparse.Namespace) -> None:
    """Linear form (eq. 11) less exact log evidence of one document, in nats, in a cluster of n documents."""
    a, n_words, sizes = 0.3, 6, (8, 16, 32, 64, 128, 256)
    generator = np.random.default_rng(0)
    one, x = generator.poisson(3.0, (10, n_words)), np.array([4, 2, 0, 3, 1, 5])
    heading("component", *(f"n = {10 * size}" for size in sizes), "least and largest ratio of neighbours")
    for name, component in (("multinomial", MULTINOMIAL), ("poisson", POISSON), ("gaussian", GAUSSIAN)):
        none = np.zeros(0)
        constants = Constants(component, n_words, np.uint64(8), a, 0.7, 0.5, 0.0, 1.0, 64, 0.0, 1.0, 1, none, none)
        own = int(document_mass(component, x, np.array([0, n_words]))[0])
        errors = []
        for size in sizes:
            rows = np.tile(one, (size, 1))
            n = rows.sum(axis=0)
            mass = int(document_mass(component, rows.ravel(), np.arange(0, rows.size + 1, n_words)).sum())
            of_cluster = len(rows), mass, int((n**2).sum())
            words, inner = over_words(constants, n, x)
            constant, slope, factor = linear_terms(constants, np.zeros(BACKGROUND_SIZE), *of_cluster, 0)
            shift = 0.0 if component == GAUSSIAN else x.sum() * np.log(a)  # theta: relative to a word it lacks
            linear = float(constant) + own * float(slope) + float(factor) * inner + shift
            errors.append(linear - log_evidence(constants, *of_cluster, words, own))
        ratios = np.array(errors[:-1]) / errors[1:]
        row(name, *(f"{error:.4f}" for error in errors), f"{ratios.min():.2f}, {ratios.max():.2f}")


def table(given: argparse.Namespace) -> None:
    heading("K", "V", "documents", "start", "non-zero counts", "bytes a non-zero count", "us a document")
    for n_words in given.words:
        for k in given.clusters:
            corpus = simulate(Encyclopaedia(k, given.documents, n_words), seed=0)
            scattered = np.random.default_rng(0).integers(0, k, given.documents)
            for start, cluster in (("true", np.asarray(corpus.labels)), ("random", scattered)):
                state = state_at(corpus, cluster, {"n_clusters": k, "proposal": "hash", "bits": given.bits[0]})
                started = time.thread_time()
                state.sweep(streams.key(0, "benchmark", 0), np.zeros(2, np.int64))
                cost = (time.thread_time() - started) / given.documents * 1e6
                used = int(state.used[0])
                row(k, n_words, given.documents, start, used, f"{state.slots.nbytes / used:.1f}", f"{cost:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = {f.__name__: f for f in (speed, draw, moves, quality, crossing, cores, lemma, table)}
    parser.add_argument("what", choices=tables)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--clusters", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--bits", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--words", type=int, nargs="+", default=[3_000_000, 5_000_000])
    parser.add_argument("--sweeps", type=int, default=10)
    parser.add_argument("--only", help="quality of this proposal alone: balanced, paper, exact or baseline")
    given = parser.parse_args()
    tables[given.what](given)


if __name__ == "__main__":
    main()
