"""FastEx for many clusters: proposals from neighbours beside exact and hashed ones, and beside k-means.

    python benchmarks/fastex_scale.py chain --clusters 10000 --documents 100000 [--proposal neighbours] [--sweeps 8]
    python benchmarks/fastex_scale.py kmeans --clusters 1000 --documents 20000 [--passes 3]
    python benchmarks/fastex_scale.py threads --clusters 10000 --documents 50000
    python benchmarks/fastex_scale.py exact --clusters 100000 --documents 1000000 --words 5000000
    python benchmarks/fastex_scale.py seating --clusters 2500 --documents 20000
    python benchmarks/fastex_scale.py choices --corpus ohsumed --clusters 1000 --set "tries=2" --set "tries=8"

Prints the tables of fastex_scale.md. Seconds are CPU seconds of the process, start (graph included) first, without
compilation and scoring, except in ``threads`` and ``exact`` (wall). The corpus is the simulated encyclopaedia with seed
7, which no figure of the workflow is drawn from; ``choices`` and ``seating`` take ohsumed (its validation half) and
nips from ``--mirror``, too.
"""

from __future__ import annotations

import argparse
import ast
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
from markdown_tables import heading, row

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.compute.threads import thread_budget
from mc2core.engines import FastEx
from mc2core.engines.fastex.exact import ExactState
from mc2core.engines.fastex.neighbours.graph import find_neighbours
from mc2core.model.clustering import variation_of_information
from mc2core.sources.catalogue import DATASETS
from mc2core.sources.collections import nips
from mc2core.sources.simulated.encyclopaedia import Encyclopaedia, simulate

SEED = 7


def encyclopaedia(given: argparse.Namespace) -> Corpus:
    return simulate(Encyclopaedia(given.clusters, given.documents, given.words), seed=SEED)


def compile_kernels(corpus: Corpus, settings: dict, sweeps: int) -> None:
    few = corpus.subset(np.arange(min(50, corpus.n_documents)))
    engine = FastEx(**{**settings, "n_clusters": min(settings["n_clusters"], 200)})
    state = engine.init(few, 0)
    for iteration in range(1, sweeps + 1):
        engine.step(few, state, 0, iteration)


def follow(corpus: Corpus, settings: dict, sweeps: int) -> Iterator[tuple[int, float, float, dict, object]]:
    """(sweep, seconds of it, seconds in all, row of the trace, state); sweep 0 is the start."""
    compile_kernels(corpus, settings, sweeps)
    engine = FastEx(**settings)
    started = time.process_time()
    state = engine.init(corpus, 0)
    used = time.process_time() - started
    yield 0, used, used, {}, state
    for sweep in range(1, sweeps + 1):
        started = time.process_time()
        of_sweep = engine.step(corpus, state, 0, sweep)
        seconds = time.process_time() - started
        used += seconds
        yield sweep, seconds, used, of_sweep, state


def peak_gb() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f}"


def chain(given: argparse.Namespace) -> None:
    corpus, j = encyclopaedia(given), given.documents
    settings = {"n_clusters": given.clusters, "proposal": given.proposal, **given.set[0]}
    print(f"K = {given.clusters}, J = {j}, V = {given.words}, {settings}")
    heading("sweep", "us a document", "seconds in all", "VI, bits", "log joint a document", "moved", "peak GB")
    for sweep, seconds, used, of_sweep, state in follow(corpus, settings, given.sweeps):
        vi = variation_of_information(corpus.labels, state.cluster)
        log_joint = f"{of_sweep['log_joint'] / j:.2f}" if sweep else ""
        moved = f"{of_sweep['accepted']:.3f}" if sweep else ""
        row(sweep, f"{seconds / j * 1e6:.1f}", f"{used:.1f}", f"{vi:.2f}", log_joint, moved, peak_gb())


def kmeans(given: argparse.Namespace) -> None:
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.feature_extraction.text import TfidfTransformer

    corpus = encyclopaedia(given)
    print(f"K = {given.clusters}, J = {given.documents}, V = {given.words}, MiniBatchKMeans on tf-idf")
    heading("passes", "seconds in all", "VI, bits", "peak GB")
    started = time.process_time()
    rows = TfidfTransformer().fit_transform(corpus.content.astype(np.float32))
    for passes in given.passes:
        began = time.process_time()
        found = MiniBatchKMeans(given.clusters, max_iter=passes, n_init=1, init="random", random_state=0).fit(rows)
        used = time.process_time() - began + (began - started if passes == given.passes[0] else 0.0)
        vi = variation_of_information(corpus.labels, found.labels_.astype(np.int32))
        row(passes, f"{used:.1f}", f"{vi:.2f}", peak_gb())


def threads(given: argparse.Namespace) -> None:
    """Wall time of the graph, of a sweep from a random start and of a later one, on one thread and on two."""
    corpus, n = encyclopaedia(given), given.documents
    settings = {"n_clusters": given.clusters, "proposal": "neighbours", "exact_sweeps": [], **given.set[0]}
    engine = FastEx(**settings)
    for many in (1, 2):
        compile_kernels(corpus, {**settings, "threads": many}, 1)
    heading("threads", "graph, us a document", *(f"sweep {sweep}" for sweep in range(1, given.sweeps + 1)), "made anew")
    states = []
    for many in (1, 2):
        with thread_budget(many) as pool:
            started = time.perf_counter()
            graph = find_neighbours(corpus.content, engine.n_neighbours, engine.list_budget, 0, pool)
            wall = [time.perf_counter() - started]
            start = streams.generator(0, "fastex init").integers(0, given.clusters, n, dtype=np.int32)
            state = engine.restore(corpus, {"cluster": start, "neighbours": graph})
            for sweep in range(1, given.sweeps + 1):
                started = time.perf_counter()
                state.sweep(streams.key(0, "benchmark", sweep), np.zeros(2, np.int64), pool)
                wall.append(time.perf_counter() - started)
        anew = f"{state.redone[0] / (given.sweeps * n):.3f}"
        row(many, *(f"{seconds / n * 1e6:.1f}" for seconds in wall), anew if many > 1 else "")
        states.append(state)
    assert np.array_equal(states[0].cluster, states[1].cluster)


def exact(given: argparse.Namespace) -> None:
    """Wall time of the first documents of an exact sweep from the true clusters, on one thread and on two."""
    corpus, few = encyclopaedia(given), 5000
    started = time.process_time()
    state = ExactState(corpus, FastEx(n_clusters=given.clusters, **given.set[0])._settings, np.asarray(corpus.labels))
    print(f"tables: {time.process_time() - started:.0f} s of CPU, once compiled less")
    state.cluster = state.cluster[:few]
    heading("threads", "us a document", "moved")
    for sweep, many in enumerate((2, 1, 2)):  # the first compiles, and lets documents settle
        moves = np.zeros(2, np.int64)
        with thread_budget(many) as pool:
            started = time.perf_counter()
            state.sweep(streams.key(0, "benchmark", sweep), moves, pool)
        if sweep:
            row(many, f"{(time.perf_counter() - started) / few * 1e6:.0f}", f"{moves[1] / few:.3f}")


@numba.njit
def seat(neighbours, order, uniforms, share, n_clusters, cluster):
    """Seat documents in ``order``: with probability ``share`` beside a neighbour that is seated, else anywhere."""
    is_seated = np.zeros(cluster.size, np.bool_)
    for i in range(order.size):
        j = order[i]
        beside = [cluster[other] for other in neighbours[j] if other >= 0 and is_seated[other]]
        cluster[j] = int(uniforms[i, 1] * n_clusters)
        if len(beside) > 0 and uniforms[i, 0] < share:
            cluster[j] = beside[int(uniforms[i, 1] * len(beside))]
        is_seated[j] = True


def seating(given: argparse.Namespace) -> None:
    """A random start against a start by seating, on the same graph."""
    corpus, n = corpus_of(given), given.clusters
    settings = {"n_clusters": n, "proposal": "neighbours", **given.set[0]}
    compile_kernels(corpus, settings, max(given.shown))
    engine = FastEx(**settings)
    started = time.process_time()
    first = engine.init(corpus, 0)
    seconds, graph = time.process_time() - started, first.arrays()["neighbours"]
    print(f"{given.corpus}: J = {corpus.n_documents}, K = {n}, {settings}")
    heading("seated beside a neighbour", *(f"sweep {sweep}: log joint, VI, seconds" for sweep in given.shown))
    for share in (0.0, 0.9, 1.0):
        cluster, used, rng = first.cluster.copy(), seconds, np.random.default_rng(1)
        if share:
            order, uniforms = rng.permutation(len(cluster)), rng.random((len(cluster), 2))
            seat(graph, order[:0], uniforms[:0], share, n, cluster)  # compiles it
            started = time.process_time()
            seat(graph, order, uniforms, share, n, cluster)
            used += time.process_time() - started
        state, cells = engine.restore(corpus, {"cluster": cluster, "neighbours": graph}), []
        for sweep in range(1, max(given.shown) + 1):
            started = time.process_time()
            of_sweep = engine.step(corpus, state, 0, sweep)
            used += time.process_time() - started
            if sweep in given.shown:
                vi = variation_of_information(corpus.labels, state.cluster)
                cells.append(f"{of_sweep['log_joint'] / len(cluster):.2f}, {vi:.2f}, {used:.2f}")
        row(share or "none: random start", *cells)


def corpus_of(given: argparse.Namespace) -> Corpus:
    if given.corpus == "ohsumed":
        paths = {"files": [Path(given.mirror, "labelled/ohsumed_single_23.tar.gz")]}
        return DATASETS["ohsumed"].read(paths, 0, half="validation").corpus
    if given.corpus == "nips":
        return nips.read(Path(given.mirror, "nips/nips-corpus-20111211.zip"))
    if given.corpus == "common":
        return simulate(Encyclopaedia(200, 10_000, 300, distinct_words=40, typical_words=60), seed=SEED)
    return encyclopaedia(given)


def choices(given: argparse.Namespace) -> None:
    corpus = corpus_of(given)
    n = corpus.n_documents
    print(f"{given.corpus}: J = {n}, V = {corpus.n_words}, K = {given.clusters}")
    heading("settings", "seconds of the start", *(f"sweep {sweep}: log joint, VI, seconds" for sweep in given.shown))
    for chosen in given.set:
        settings = {"n_clusters": given.clusters, "proposal": "neighbours", **chosen}
        cells = []
        for sweep, _, used, of_sweep, state in follow(corpus, settings, max(given.shown)):
            vi = "" if corpus.labels is None else f"{variation_of_information(corpus.labels, state.cluster):.2f}, "
            if sweep == 0:
                cells.append(f"{used:.2f}")
            elif sweep in given.shown:
                cells.append(f"{of_sweep['log_joint'] / n:.2f}, {vi}{used:.2f}")
        row(", ".join(f"{name}={value}" for name, value in chosen.items()) or "defaults", *cells)


def settings_of(text: str) -> dict:
    """``a=1 b=[2]`` as settings."""
    return {name: ast.literal_eval(value) for name, value in (one.split("=") for one in text.split())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = {f.__name__: f for f in (chain, kmeans, threads, exact, seating, choices)}
    parser.add_argument("what", choices=tables)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--proposal", default="neighbours")
    parser.add_argument("--sweeps", type=int, default=8)
    parser.add_argument("--passes", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--corpus", default="encyclopaedia")
    parser.add_argument("--mirror", default="mirror", help="folder with labelled/ and nips/ (docs/workflow.md)")
    parser.add_argument("--shown", type=int, nargs="+", default=[1, 4, 5, 8, 12])
    parser.add_argument("--set", type=settings_of, action="append", help="settings of a chain: tries=2 exact_sweeps=[]")
    given = parser.parse_args()
    given.set = given.set or [{}]
    tables[given.what](given)


if __name__ == "__main__":
    main()
