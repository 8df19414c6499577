"""Cost of the Gibbs kernels on the NIPS corpus, in nanoseconds a token, compilation excluded.

    python benchmarks/gibbs_kernels.py path/to/nips-corpus-20111211.zip [--sweeps 30]

The state measured is that after some interleaved sweeps from the engine's start. Every move then starts from a copy
of it; the least of several repetitions is shown, as wall time and as processor time of the calling thread (the two
differ when other work shares the cores).
"""

from __future__ import annotations

import argparse
import copy
import json
import time
import tracemalloc
from collections.abc import Callable

import numba
import numpy as np

from mc2core.compute import streams
from mc2core.compute.threads import thread_budget
from mc2core.corpus import Corpus
from mc2core.engines.gibbs.blocked.move import move_blocked
from mc2core.engines.gibbs.documents import sweep_clusters
from mc2core.engines.gibbs.engine import Gibbs, GibbsState
from mc2core.engines.gibbs.timed_tokens import sweep_timed_topics
from mc2core.engines.gibbs.tokens import sweep_topics
from mc2core.families import NormalGamma
from mc2core.sources.collections import nips


def least(state: GibbsState, move: Callable[[GibbsState, int], None], repeats: int) -> tuple[float, float]:
    """Least (wall, processor) seconds of ``move`` on copies of the state; the first one is not counted."""
    times = []
    for i in range(repeats + 1):
        mine = copy.copy(state)
        mine.assignments, mine.concentrations = copy.deepcopy((state.assignments, state.concentrations))
        wall, processor = time.perf_counter(), time.thread_time()
        move(mine, i)
        times.append((time.perf_counter() - wall, time.thread_time() - processor))
    return min(wall for wall, _ in times[1:]), min(processor for _, processor in times[1:])


@numba.njit
def plain_sweep(cluster, document, word, topic, n_km, n_wm, n_m, prior, s, uniforms, work):
    """The collapsed sweep as a plain dense float64 loop over tokens in document order: the yardstick of the figures."""
    for i in range(word.size):
        k, w, m = cluster[document[i]], word[i], topic[i]
        n_km[k, m] -= 1
        n_wm[w, m] -= 1
        n_m[m] -= 1
        total = 0.0
        for m in range(n_m.size):
            total += (n_km[k, m] + prior[m]) * (n_wm[w, m] + s) / (n_m[m] + n_wm.shape[0] * s)
            work[m] = total
        target, m = uniforms[i] * total, 0
        while work[m] < target:
            m += 1
        topic[i] = m
        n_km[k, m] += 1
        n_wm[w, m] += 1
        n_m[m] += 1


def plain(corpus: Corpus, engine: Gibbs, state: GibbsState) -> float:
    """Least seconds of three sweeps of :func:`plain_sweep` from the state, after one that compiles."""
    assignments = state.assignments
    n_wm = np.ascontiguousarray(engine.sample(corpus, state).topic_words.toarray().T.astype(np.float64))
    document = np.repeat(np.arange(corpus.n_documents), corpus.document_lengths)
    word = np.repeat(corpus.content.indices, corpus.content.data)
    prior = state.concentrations.table * assignments.topic_weights
    uniforms, work = np.random.default_rng(0).random(len(word)), np.zeros(assignments.n_topics)
    counts = (assignments.n_km.astype(np.float64), n_wm, n_wm.sum(axis=0))
    arguments = (assignments.cluster, document, word, assignments.topic.copy(), *counts, prior, engine.topic_prior)
    times = []
    for _ in range(4):
        start = time.perf_counter()
        plain_sweep(*arguments, uniforms, work)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def token_times(corpus: Corpus, n_topics: int, sweeps: int, repeats: int) -> dict[str, object]:
    """Tokens of npTOT after some sweeps of it, and from the same state those of the HDP, in nanoseconds a token."""
    engine = Gibbs(
        kernel="collapsed", one_cluster_per_document=True, token_contexts=True, contexts={"year": NormalGamma()},
        start_topics=n_topics,
    )  # fmt: skip
    corpus = corpus.standardised("year")
    state = engine.init(corpus, 0)
    for iteration in range(1, sweeps + 1):
        engine.step(corpus, state, 0, iteration)

    def timed(state: GibbsState, i: int) -> None:
        assert state.times is not None
        concentrations, key = state.concentrations, streams.key(0, "topics", i)
        sweep_timed_topics(state.assignments, corpus, state.times, concentrations, engine.topic_prior, key)

    def plain(state: GibbsState, i: int) -> None:
        key = streams.key(0, "topics", i)
        sweep_topics(state.assignments, state.cells, state.concentrations, engine.topic_prior, key)

    result: dict[str, object] = {"topics": state.assignments.n_topics}
    for name, move in {"npTOT": timed, "HDP": plain}.items():
        wall, processor = least(state, move, repeats)
        result[name] = {
            "wall": round(wall / corpus.n_tokens * 1e9, 1),
            "processor": round(processor / corpus.n_tokens * 1e9, 1),
        }
    return result


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("archive")
    arguments.add_argument("--sweeps", type=int, default=30)
    arguments.add_argument("--topics", type=int, default=100)
    arguments.add_argument("--repeats", type=int, default=5)
    options = arguments.parse_args()
    corpus = nips.read_zip(options.archive)
    engine = Gibbs(start_topics=options.topics)
    state = engine.init(corpus, 0)
    for iteration in range(1, options.sweeps + 1):
        engine.step(corpus, state, 0, iteration)
    tokens = corpus.n_tokens

    def blocked(threads: int) -> Callable[[GibbsState, int], None]:
        def move(state: GibbsState, i: int) -> None:
            with thread_budget(threads) as pool:
                move_blocked(
                    state.assignments, corpus.content, state.cells, state.contexts, state.concentrations,
                    engine.topic_prior, 0, i, pool,
                )  # fmt: skip

        return move

    def documents(state: GibbsState, i: int) -> None:
        sweep_clusters(state.assignments, state.contexts, state.concentrations, streams.key(0, "documents", i))

    def topics(state: GibbsState, i: int) -> None:
        sweep_topics(
            state.assignments, state.cells, state.concentrations, engine.topic_prior, streams.key(0, "topics", i)
        )

    def tables(state: GibbsState, i: int) -> None:
        engine._update_weights(state, 0, i)

    def log_joint(state: GibbsState, i: int) -> None:
        engine.log_joint(corpus, state)

    moves = {
        "documents": documents,
        "tokens": topics,
        "tables": tables,
        "blocked, 1 thread": blocked(1),
        "blocked, 2 threads": blocked(2),
        "log joint": log_joint,
    }
    result: dict[str, object] = {
        "clusters": state.assignments.n_clusters,
        "topics": state.assignments.n_topics,
        "tokens": tokens,
    }
    for name, move in moves.items():
        wall, processor = least(state, move, options.repeats)
        result[name] = {"wall": round(wall / tokens * 1e9, 1), "processor": round(processor / tokens * 1e9, 1)}
    result["plain dense float64 loop, tokens only"] = {"wall": round(plain(corpus, engine, state) / tokens * 1e9, 1)}
    del state
    result["tokens with times"] = token_times(corpus, options.topics, options.sweeps, options.repeats)
    tracemalloc.start()
    state = engine.init(corpus, 0)
    tracemalloc.reset_peak()
    engine.step(corpus, state, 0, 1)
    result["bytes a token, peak"] = round(tracemalloc.get_traced_memory()[1] / tokens, 1)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
