"""Births and merges under direct assignment, on validation documents of real NIPS: rows of svi_trials.md.

    python benchmarks/svi_direct_moves.py nips-corpus-20111211.zip [--epochs 2] [--seeds 1] [--clusters 40 --topics 120] [--only WORD]

A tenth of the training documents held out (split of seed 1 within that of seed 0), words only, ``marginal`` estimator,
one thread, defaults else. After each epoch six moves of a kind are tried, most promising first; each is taken where the
exact ELBO over the whole corpus, epsilon and v refitted, rises by it. With truncations by rule every document but a few
is in a cluster of about four.
"""  # noqa: E501

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable, Iterator

import numpy as np

from mc2core.corpus import Corpus
from mc2core.engines import seeding
from mc2core.engines.svi import local, sticks
from mc2core.engines.svi.direct.state import DirectGlobals
from mc2core.engines.svi.direct.weights import step_weights
from mc2core.engines.svi.direct.words import assign_documents, word_topics
from mc2core.engines.svi.engine import SVI
from mc2core.engines.svi.state import GROUP, divergence, step_concentrations
from mc2core.sources.collections import nips

_CANDIDATES, _STEPS = 6, 5
# a topic is split off where its cluster has at most this share of its tokens
_NEARLY_ALL = 0.9


def bound(engine: SVI, corpus: Corpus, state: DirectGlobals) -> float:
    """Exact ELBO of ``state`` with the best local posteriors, in nats."""
    batch = local.take_batch(corpus, state.contexts, np.arange(corpus.n_documents))
    expected = state.expectations()
    words = word_topics(state, expected, batch.words, None)
    _, documents = assign_documents(batch, words, expected, None)
    return documents.log_evidence - divergence(state, engine.concentrations(state))


def settled(engine: SVI, state: DirectGlobals, n_k: np.ndarray) -> DirectGlobals:
    """``state`` with sticks of ``n_k`` documents in its clusters, and epsilon and v refitted."""
    state.concentration_rates = state.concentration_rates.copy()
    state.group_sticks = sticks.stick_posterior(np.append(n_k, 0.0), engine.concentrations(state).mean[GROUP])
    step_concentrations(state, engine.concentration_settings)
    state.weights = step_weights(state.objective, state.weights, _STEPS)
    return state


def alike(rows: np.ndarray) -> Iterator[tuple[int, int]]:
    """Pairs of rows (n, d) of counts by how alike their frequencies are (Hellinger), a few; the larger first."""
    size = rows.sum(axis=1)
    roots = np.sqrt(rows / np.maximum(size, 1e-300)[:, None])
    known = np.triu(roots @ roots.T, 1)
    for flat in np.argsort(-known, axis=None)[:_CANDIDATES]:
        a, b = np.unravel_index(flat, known.shape)
        yield (int(a), int(b)) if size[a] >= size[b] else (int(b), int(a))


def merged_topics(engine: SVI, corpus: Corpus, state: DirectGlobals) -> Iterator[Callable[[], DirectGlobals]]:
    """Two topics become one."""
    for keep, drop in list(alike(state.topic_words.T)):

        def move(keep: int = keep, drop: int = drop) -> DirectGlobals:
            new = copy.copy(state)
            new.topic_words, new.n_km, new.n_m = state.topic_words.copy(), state.n_km.copy(), state.n_m.copy()
            new.topic_weights = state.topic_weights.copy()
            for one in (new.topic_words.T, new.n_km.T, new.n_m, new.topic_weights):
                one[keep] += one[drop]
                one[drop] = 0.0
            new.keep(np.arange(len(new.n_km)), np.delete(np.arange(len(new.n_m)), drop))
            return settled(engine, new, state.n_k)

        yield move


def merged_clusters(engine: SVI, corpus: Corpus, state: DirectGlobals) -> Iterator[Callable[[], DirectGlobals]]:
    """Two clusters become one."""
    for keep, drop in list(alike(state.n_km)):

        def move(keep: int = keep, drop: int = drop) -> DirectGlobals:
            new = copy.copy(state)
            new.n_km, n_k, new.context_counts = state.n_km.copy(), state.n_k.copy(), state.context_counts.copy()
            new.context_totals = state.context_totals.copy()
            for one in (new.n_km, n_k, new.context_counts.T, new.context_totals.T):
                one[keep] += one[drop]
            new.cluster = np.where(state.cluster == drop, np.int32(keep), state.cluster)
            left = np.delete(np.arange(len(n_k)), drop)
            new.keep(left, np.arange(len(new.n_m)))
            return settled(engine, new, n_k[left])

        yield move


def born_topics(engine: SVI, corpus: Corpus, state: DirectGlobals) -> Iterator[Callable[[], DirectGlobals]]:
    """A cluster with most of a shared topic's tokens, but not nearly all, gets a topic of them alone."""
    share = state.n_km / np.maximum(state.n_km.sum(axis=0), 1e-300)
    tokens = np.where(share < _NEARLY_ALL, state.n_km, 0.0)
    cluster = tokens.argmax(axis=0)
    content = seeding.members(np.maximum(state.cluster, 0), len(state.n_km)) @ corpus.content
    for m in np.argsort(-tokens.max(axis=0), kind="stable")[:_CANDIDATES]:

        def move(m: int = int(m), k: int = int(cluster[m])) -> DirectGlobals:
            words = np.minimum(np.asarray(content[k].todense(), float).ravel(), state.topic_words[:, m])
            moved = words * min(1.0, state.n_km[k, m] / max(words.sum(), 1e-300))
            part = moved.sum() / state.n_m[m]
            new = copy.copy(state)
            new.topic_words = np.column_stack([state.topic_words, moved])
            new.topic_words[:, m] -= moved
            new.n_km = np.column_stack([state.n_km, np.zeros(len(state.n_km))])
            new.n_km[k, [m, -1]] = state.n_km[k, m] - moved.sum(), moved.sum()
            new.n_m = new.topic_words.sum(axis=0)
            new.topic_weights = np.append(state.topic_weights, part * state.topic_weights[m])
            new.topic_weights[m] *= 1.0 - part
            return settled(engine, new, state.n_k)

        yield move


MOVES = {"none": None, "merges of topics": merged_topics, "merges of clusters": merged_clusters, "births": born_topics}


def try_moves(kind: str, engine: SVI, corpus: Corpus, state: DirectGlobals) -> tuple[DirectGlobals, list[float]]:
    """The state after the best of a kind's moves, and the nats that each tried would gain alone."""
    if MOVES[kind] is None:
        return state, []
    now = bound(engine, corpus, settled(engine, copy.copy(state), state.n_k))
    known = []
    for move in MOVES[kind](engine, corpus, state):
        new = move()
        known.append((bound(engine, corpus, new) - now, new))
    best, new = max(known, key=lambda one: one[0])
    return (new if best > 0 else state), [gain for gain, _ in known]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--clusters", type=int)
    parser.add_argument("--topics", type=int)
    parser.add_argument("--rounds", type=int, default=1, help="moves taken after an epoch, at most")
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    arguments = parser.parse_args()
    train, test = (one.with_contexts({}) for one in nips.read(arguments.path).split(0.1, seed=0)[0].split(0.1, seed=1))
    print("| moves | seed | perplexity after each epoch | raised the ELBO, best gain (nats) | K, M | CPU s |")
    print("|---|---|---|---|---|---|")
    for kind in MOVES if not arguments.only else [name for name in MOVES if arguments.only in name]:
        for seed in range(arguments.seeds):
            engine = SVI(n_clusters=arguments.clusters, n_topics=arguments.topics)
            state, shown, gains = engine.init(train, seed), [], []
            started = time.process_time()
            for epoch in range(1, arguments.epochs + 1):
                engine.step(train, state, seed, epoch)
                for _ in range(arguments.rounds):
                    state, gained = try_moves(kind, engine, train, state)
                    gains += gained
                shown.append(engine.model(train, [engine.sample(train, state)], {}).perplexity(test))
            raised = f"{sum(gain > 0 for gain in gains)} of {len(gains)}, {max(gains):.0f}" if gains else "-"
            seconds, size = time.process_time() - started, f"{len(state.n_km)}, {len(state.n_m)}"
            figures = ", ".join(f"{one:.1f}" for one in shown)
            print(f"| {kind} | {seed} | {figures} | {raised} | {size} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
