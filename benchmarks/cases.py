"""Define the benchmarks; no other module of ``python -m benchmarks`` calls the library."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.suite import ROOT, benchmark, processor_seconds
from mc2core import Corpus, Posterior
from mc2core.app.answers import Answers
from mc2core.app.predict_command import MOST
from mc2core.compute import spark, streams
from mc2core.corpus import subsets
from mc2core.corpus.readers.lines import LineReader
from mc2core.explore.describe import describe
from mc2core.inference import SVI, FastEx, Gibbs
from mc2core.inference.base import Engine
from mc2core.inference.gibbs.parallel import sweep_documents_apart
from mc2core.inference.gibbs.state import DocumentLevelState
from mc2core.inference.gibbs.tokens import sweep_document_topics
from mc2core.inference.running.loop import fit
from mc2core.models import MC2, Mixture, Model
from mc2core.posterior import Sample, SparseRows
from mc2core.posterior.clustering import adjusted_rand_index
from mc2papers.datasets.collections import labelled_images, nips
from mc2papers.datasets.dumps import pubmed, wikipedia
from mc2papers.datasets.simulated import encyclopaedia, shapes
from mc2papers.nips2012.convergence import OUR_PRIORS

_SEED = 0
_AS_PRINTED = MC2(document_level=False)
#: functions that return a model and an engine, by name
FITS: dict[str, Callable[..., tuple[Model, Engine]]] = {
    "MC2, collapsed": lambda: (_AS_PRINTED, Gibbs(kernel="collapsed")),
    "MC2, interleaved": lambda: (_AS_PRINTED, Gibbs()),
    "document level": lambda: (MC2(), Gibbs()),
    "document level, parallel": lambda: (MC2(), Gibbs(kernel="parallel")),
    "SVI": lambda: (_AS_PRINTED, SVI()),
    "SVI, tables": lambda: (_AS_PRINTED, SVI(max_clusters=40, max_tables=20, max_topics=120, batch_size=50)),
    "SVI, document level": lambda: (MC2(), SVI()),
    "SVI, shards": lambda batch_size, n_shards: (
        _AS_PRINTED,
        SVI(max_clusters=40, max_topics=120, batch_size=batch_size, n_shards=n_shards),
    ),
    "FastEx": lambda n_clusters, proposal: (
        Mixture(n_clusters=n_clusters, **OUR_PRIORS),
        FastEx(proposal=proposal, exact_sweeps=() if proposal == "neighbours" else (5,)),
    ),
}


def lacks(needed: str, data_folder: Path) -> str | None:
    """Return a message if ``needed`` ("data_folder" or "spark") is missing on this machine, else None."""
    if needed == "data_folder" and not data_folder.is_dir():
        return (
            f"no local data folder of the real data in {data_folder}; --data-folder or MC2_DATA_FOLDER names its folder"
        )
    return spark.missing() if needed == "spark" else None


# -- data, steps, fits ---------------------------------------------------------------------------------------------
def simulated_nips(scale: float) -> Corpus:
    """Return a simulated corpus without contexts, ``scale`` times as large as the NIPS corpus."""
    return shapes.simulate(shapes.NIPS, _SEED, scale)[0].with_contexts({})


def articles(n_documents: int, n_clusters: int) -> Corpus:
    """Return a simulated encyclopaedia with 50,000 different words and ``n_clusters`` categories."""
    return encyclopaedia.simulate(encyclopaedia.Encyclopaedia(n_clusters, n_documents, 50_000), _SEED)


def steps(pair: tuple[Model, Engine], corpus: Corpus, units: float, untimed: int = 3) -> Iterator[float]:
    """Yield the processor seconds of each step times ``units``, without the first ``untimed`` steps (compilation)."""
    model, engine = pair
    state = engine.init(model, corpus, _SEED)
    for iteration in count(1):
        seconds = processor_seconds(engine.step, corpus, state, _SEED, iteration)
        if iteration > untimed:
            yield seconds * units


def fitted(corpus: Corpus, pair: tuple[Model, Engine], iterations: int, seed: int = _SEED) -> Posterior:
    return fit(corpus, *pair, iterations=iterations, seed=seed, progress=False).posterior


# -- engines -------------------------------------------------------------------------------------------------------
@benchmark("ns per token", tiny={"scale": 0.05})
def gibbs_collapsed(scale: float = 0.5) -> Iterator[float]:
    """Time of a collapsed sweep of MC2 on simulated NIPS."""
    corpus = simulated_nips(scale)
    return steps(FITS["MC2, collapsed"](), corpus, 1e9 / corpus.n_tokens)


@benchmark("ns per token", tiny={"scale": 0.05})
def gibbs_interleaved(scale: float = 0.5) -> Iterator[float]:
    """Time of a blocked move and a collapsed sweep of MC2 on simulated NIPS."""
    corpus = simulated_nips(scale)
    return steps(FITS["MC2, interleaved"](), corpus, 1e9 / corpus.n_tokens)


@benchmark("ns per token", tiny={"scale": 0.05})
def gibbs_documents(scale: float = 0.5) -> Iterator[float]:
    """Time of a sweep of MC2 with a document level on simulated NIPS."""
    corpus = simulated_nips(scale)
    return steps(FITS["document level"](), corpus, 1e9 / corpus.n_tokens)


@benchmark("ns per token", tiny={"scale": 0.05})
def gibbs_parallel(scale: float = 0.5) -> Iterator[float]:
    """Time of a sweep of MC2 with a document level by the kernel ``parallel``, on simulated NIPS."""
    corpus = simulated_nips(scale)
    return steps(FITS["document level, parallel"](), corpus, 1e9 / corpus.n_tokens)


def known_topics(n_topics: int, n_documents: int) -> tuple[Corpus, DocumentLevelState]:
    """Draw documents of 700 tokens, and return them with the true state; each document has at most 30 topics."""
    rng, n_words, length = np.random.default_rng(_SEED), 10_000, 700
    psi = rng.dirichlet(np.full(n_words, 0.02), n_topics) / (
        np.arange(n_words) + 10
    )  # a few words are frequent in all topics
    weights, document = rng.dirichlet(np.ones(n_topics)), np.repeat(np.arange(n_documents), length)
    topics = []
    for _ in range(n_documents):
        own = rng.choice(n_topics, min(30, n_topics), replace=False, p=weights)
        topics.append(rng.choice(own, length, p=rng.dirichlet(np.full(len(own), 0.5))))
    topic = np.concatenate(topics)
    word = np.empty_like(topic)
    for m in np.unique(topic):
        here = topic == m
        word[here] = rng.choice(n_words, here.sum(), p=psi[m] / psi[m].sum())
    order = np.lexsort((word, document))
    corpus = Corpus(sp.csr_matrix((np.ones(len(word), int), (document, word)), (n_documents, n_words)))
    used, topic = np.unique(topic[order], return_inverse=True)
    cluster, n_topics = np.arange(n_documents) % 20, len(used)
    n_km = np.zeros((cluster.max() + 1, n_topics))
    np.add.at(n_km, (cluster[document], topic), 1)
    epsilon = np.append(n_km.sum(axis=0), 1.0) / (len(word) + 1)
    tau = np.column_stack([n_km, np.zeros(len(n_km))]) + 100 * epsilon
    arrays = {
        "cluster": cluster,
        "topic": topic,
        "topic_weights": epsilon[:-1],
        "scalars": np.array([epsilon[-1], 1.0, 20.0, n_topics / 8, 0.0]),
        "proportions": tau / tau.sum(axis=1, keepdims=True),
        "tables": (n_km > 0).astype(int),
        "document_concentration": np.array(20.0),
    }
    return corpus, DocumentLevelState.restore(MC2(), corpus, arrays)


def token_sweeps(n_topics: int, n_documents: int, kernel: str) -> Iterator[float]:
    """Yield the processor nanoseconds per token of each sweep over tokens, without the first three (compilation)."""
    corpus, state = known_topics(n_topics, n_documents)
    given = state.concentrations, state.topic_word_prior

    def sweep(iteration: int) -> None:
        if kernel == "parallel":
            state.proportions = sweep_documents_apart(
                state.assignments, corpus, state.proportions, state.omega, *given, _SEED, iteration, None
            )
        else:
            key = streams.key(_SEED, "topics", iteration)
            state.proportions, _ = sweep_document_topics(
                state.assignments, corpus.content, state.proportions, state.omega, *given, key
            )

    for iteration in count():
        seconds = processor_seconds(sweep, iteration)
        if iteration > 2:
            yield seconds * 1e9 / corpus.n_tokens


@benchmark("ns per token", tiny={"n_topics": 5, "n_documents": 20})
def gibbs_tokens_few(n_topics: int = 100, n_documents: int = 800) -> Iterator[float]:
    """Time of a sweep over tokens by the kernel ``parallel``, with 100 topics and one thread."""
    return token_sweeps(n_topics, n_documents, "parallel")


@benchmark("ns per token", tiny={"n_topics": 5, "n_documents": 20})
def gibbs_tokens_many(n_topics: int = 1000, n_documents: int = 800) -> Iterator[float]:
    """Time of a sweep over tokens by the kernel ``parallel``, with 1,000 topics and one thread."""
    return token_sweeps(n_topics, n_documents, "parallel")


@benchmark("ns per token", tiny={"n_topics": 5, "n_documents": 20})
def gibbs_tokens_collapsed(n_topics: int = 1000, n_documents: int = 800) -> Iterator[float]:
    """Time of a collapsed sweep over tokens for MC2 with a document level and 1,000 topics."""
    return token_sweeps(n_topics, n_documents, "collapsed")


@benchmark("µs per document", tiny={"scale": 0.05})
def svi_direct(scale: float = 1.0) -> Iterator[float]:
    """Time of an epoch of SVI with default settings on simulated NIPS."""
    corpus = simulated_nips(scale)
    return steps(FITS["SVI"](), corpus, 1e6 / corpus.n_documents, untimed=1)


@benchmark("µs per document", tiny={"scale": 0.05})
def svi_tables(scale: float = 1.0) -> Iterator[float]:
    """Time of an epoch of SVI with 40 clusters of 20 tables, 120 topics and batches of 50, on simulated NIPS."""
    corpus = simulated_nips(scale)
    return steps(FITS["SVI, tables"](), corpus, 1e6 / corpus.n_documents, untimed=1)


@benchmark("µs per document", tiny={"scale": 0.05})
def svi_documents(scale: float = 1.0) -> Iterator[float]:
    """Time of an epoch of SVI for MC2 with a document level, on simulated NIPS."""
    corpus = simulated_nips(scale)
    return steps(FITS["SVI, document level"](), corpus, 1e6 / corpus.n_documents, untimed=1)


def visits(n_documents: int, n_clusters: int, proposal: str) -> Iterator[float]:
    engine = FITS["FastEx"](n_clusters, proposal)
    return steps(engine, articles(n_documents, n_clusters), 1e6 / n_documents)


@benchmark("µs per document", repeats=5, tiny={"n_documents": 100, "n_clusters": 10})
def fastex_exact(n_documents: int = 50_000, n_clusters: int = 1000) -> Iterator[float]:
    """Time of a FastEx sweep that scores every cluster, on a simulated encyclopaedia."""
    return visits(n_documents, n_clusters, "exact")


@benchmark("µs per document", repeats=5, tiny={"n_documents": 100, "n_clusters": 10})
def fastex_hash(n_documents: int = 50_000, n_clusters: int = 1000) -> Iterator[float]:
    """Time of a FastEx sweep with hashed proposals, on a simulated encyclopaedia."""
    return visits(n_documents, n_clusters, "hash")


@benchmark("µs per document", repeats=5, tiny={"n_documents": 100, "n_clusters": 10})
def fastex_neighbours(n_documents: int = 50_000, n_clusters: int = 1000) -> Iterator[float]:
    """Time of a FastEx sweep with proposals from neighbours, on a simulated encyclopaedia."""
    return visits(n_documents, n_clusters, "neighbours")


@benchmark("s", repeats=1, tiny={"n_documents": 60})
def start_documents(n_documents: int = 3671) -> Iterator[float]:
    """Time to compute the start of a chain of MC2 with a document level, on a simulated encyclopaedia."""
    corpus = articles(n_documents, 20)
    model, engine = FITS["document level"]()
    engine.init(model, corpus.subset(np.arange(50)), _SEED)  # compiles kernels
    while True:
        yield processor_seconds(engine.init, model, corpus, _SEED)


# -- new processes -------------------------------------------------------------------------------------------------
def process_seconds(code: str, store: str) -> float:
    """Run ``code`` in a new Python process that stores compiled kernels in ``store``; return its processor seconds."""

    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    started = used()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"NUMBA_CACHE_DIR": store}, check=True)
    return used() - started


def fit_a_little(engine: str) -> None:
    """Fit a few documents; :func:`first_fit` calls this function in a new process."""
    fitted(simulated_nips(0.02), FITS[engine](), 3)


@benchmark("s", repeats=1, tiny={"engine": "SVI"})
def first_fit(engine: str = "document level") -> Iterator[float]:
    """Time to import the library and fit 35 documents in a new process, including compilation of all kernels."""
    while True:
        with tempfile.TemporaryDirectory() as store:
            yield process_seconds(f"from benchmarks.cases import fit_a_little; fit_a_little({engine!r})", store)


@benchmark("s", repeats=1, tiny={"settings": "document_level=false"})
def example_first(settings: str = "document_level=true") -> Iterator[float]:
    """Time of ``mc2 import``, ``fit`` and ``describe`` for config/example.csv, including compilation of all kernels."""
    while True:
        with tempfile.TemporaryDirectory() as folder:
            data, made = f"{folder}/corpus", f"{folder}/fit"
            commands = (
                ["import", "config/example.csv", "--text", "text", "--keep", "title", "--out", data],
                ["fit", data, "--set", settings, "--out", made],
                ["describe", f"{made}/posterior.npz", data, "--out", f"{folder}/description"],
            )
            code = "import sys; from mc2core.app.cli import main; sys.exit(main({!r}))"
            yield sum(process_seconds(code.format(command), f"{folder}/kernels") for command in commands)


@benchmark("s", repeats=5)
def import_library() -> Iterator[float]:
    """Time to import ``Corpus`` and ``fit`` in a new process."""
    with tempfile.TemporaryDirectory() as store:
        while True:
            yield process_seconds("from mc2core import Corpus, fit", store)


# -- data ----------------------------------------------------------------------------------------------------------
@benchmark("ms per MB of text", tiny={"scale": 0.02})
def read_texts(scale: float = 1.0) -> Iterator[float]:
    """Time of ``Corpus.from_texts`` on the texts of simulated NIPS."""
    corpus = simulated_nips(scale)
    words = np.asarray(corpus.vocabulary, dtype=object)
    texts = [" ".join(np.repeat(words[row.indices], row.data)) for row in corpus.content]
    size = sum(map(len, texts)) / 1e6
    while True:
        yield processor_seconds(Corpus.from_texts, texts) * 1e3 / size


def parsing(parse: Callable[[Path, Path], Any], files: list[Path], opener: Callable[..., Any]) -> Iterator[float]:
    """Yield the processor milliseconds per MB of XML for parsing all files one after another."""
    size = 0
    for path in files:
        with opener(path) as stream:
            size += len(stream.read())
    with tempfile.TemporaryDirectory() as name:
        parse(files[0], Path(name, "compiled"))
        for repeat in count():
            seconds = [processor_seconds(parse, path, Path(name, f"{repeat} {path.name}")) for path in files]
            yield sum(seconds) * 1e3 / (size / 1e6)


@benchmark("ms per MB of XML", needs="data_folder")
def read_wikipedia(data_folder: Path) -> Iterator[float]:
    """Time to convert the Wikipedia dumps in the local data folder to shards, including decompression."""

    def parse(path: Path, folder: Path) -> None:
        wikipedia.parse_pages(path, folder, allow_truncated=True)

    return parsing(parse, sorted((data_folder / "wikipedia").glob("enwiki-*.bz2")), bz2.open)


@benchmark("ms per MB of XML", needs="data_folder")
def read_pubmed(data_folder: Path) -> Iterator[float]:
    """Time to convert the PubMed citations in the local data folder to shards, including decompression."""

    def parse(path: Path, folder: Path) -> None:
        pubmed.parse_citations(path, folder, pubmed.Selection())

    return parsing(parse, sorted((data_folder / "pubmed").glob("*.xml.gz")), gzip.open)


# -- scores --------------------------------------------------------------------------------------------------------
def scoring(estimator: str, scale: float, engine: str = "SVI", iterations: int = 1) -> Iterator[float]:
    """Yield the processor milliseconds per held-out document that an estimator of perplexity takes."""
    train, test = simulated_nips(scale).split(0.1, seed=_SEED)
    model = fitted(train, FITS[engine](), iterations)
    model.perplexity(test.subset(np.arange(2)), estimator)  # compiles kernels
    while True:
        yield processor_seconds(model.perplexity, test, estimator) * 1e3 / test.n_documents


@benchmark("ms per document", repeats=5, tiny={"scale": 0.05})
def perplexity_marginal(scale: float = 1.0) -> Iterator[float]:
    """Time to compute held-out perplexity by ``marginal`` after an SVI epoch on simulated NIPS."""
    return scoring("marginal", scale)


@benchmark("ms per document", tiny={"scale": 0.05})
def perplexity_importance(scale: float = 0.5) -> Iterator[float]:
    """Time to compute held-out perplexity by ``importance`` after an SVI epoch on simulated NIPS."""
    return scoring("importance", scale)


@benchmark("ms per document", tiny={"scale": 0.05})
def perplexity_left_to_right(scale: float = 0.5) -> Iterator[float]:
    """Time to compute held-out perplexity by ``left_to_right`` after an SVI epoch on simulated NIPS."""
    return scoring("left_to_right", scale)


@benchmark("ms per document", tiny={"scale": 0.05})
def perplexity_documents(scale: float = 0.3) -> Iterator[float]:
    """Time to compute held-out perplexity by ``left_to_right`` for MC2 with a document level, on simulated NIPS."""
    return scoring("left_to_right", scale, "document level", 2)


@benchmark("µs per document", tiny={"n_documents": 20, "n_words": 500})
def predict_lines(n_documents: int = 5_000, n_words: int = 10_000) -> Iterator[float]:
    """Time of predictions as by ``mc2 predict`` for lines of 20 words, with 50 clusters and 200 topics."""
    posterior, lines = lines_of_a_model(n_documents, n_words)
    reader, answers = LineReader(posterior, {}), Answers(posterior, top=5, threads=1)

    def answer() -> None:
        for first in range(0, n_documents, MOST):
            documents = reader.read(lines[first : first + MOST])
            assert documents.corpus is not None
            for said in answers.of(documents.corpus):
                json.dumps(said)

    answer()  # compiles kernels
    while True:
        yield 1e6 / n_documents * processor_seconds(answer)


def lines_of_a_model(
    n_documents: int, n_words: int, clusters: int = 50, topics: int = 200, omega: float = 5.0
) -> tuple[Posterior, list[tuple[int, bytes]]]:
    """Return a random posterior with a document level, and JSON lines of documents of 20 words drawn from it."""
    random = np.random.default_rng(_SEED)
    tau = random.dirichlet(np.full(topics, 0.05), clusters)
    psi = random.dirichlet(np.full(n_words, 0.02), topics)
    sample = Sample(
        cluster_weights=random.dirichlet(np.full(clusters, 5.0)), new_cluster_weight=0.0, topic_given_cluster=tau,
        new_topic_weight=np.zeros(clusters), topic_words=1e4 * psi, topic_word_prior=0.01,
        topic_weights=np.full(topics, 1.0 / (topics + 1.0)), table_concentration=20.0,
        contexts=SparseRows.from_dense(np.zeros((clusters, 0))), cluster=np.arange(clusters, dtype=np.int32),
        document_concentration=omega,
    )  # fmt: skip
    words = np.array(
        ["zq" + "".join("abcdefghij"[int(digit)] for digit in f"{number:05d}") for number in range(n_words)]
    )
    lines = []
    for number in range(n_documents):
        proportions = random.dirichlet(omega * tau[random.choice(clusters, p=sample.cluster_weights)] + 1e-6)
        text = " ".join(words[random.choice(n_words, 20, p=proportions @ psi)])
        lines.append((number + 1, json.dumps({"text": text}).encode()))
    about = {"model": {"name": "mc2"}, "engine": {"name": "gibbs"}}
    posterior = Posterior([sample], {}, {}, words.tolist(), provenance=about)
    posterior.imported = {"form": "", "settings": {"tokeniser": "unicode"}}
    return posterior, lines


@benchmark("s", repeats=1, tiny={"scale": 0.05})
def describe_documents(scale: float = 0.5) -> Iterator[float]:
    """Time to write the tables and the HTML report of a fit of MC2 with a document level to simulated NIPS."""
    corpus = simulated_nips(scale)
    model = fitted(corpus, FITS["document level"](), 2)
    with tempfile.TemporaryDirectory() as folder:
        describe(model, corpus.subset(np.arange(50)), f"{folder}/few", progress=False)  # compiles kernels
        while True:
            yield processor_seconds(lambda: describe(model, corpus, f"{folder}/all", progress=False))


@benchmark("perplexity", needs="data_folder", tiny={"epochs": 1})
def quality_nips(data_folder: Path, epochs: int = 2) -> Iterator[float]:
    """Held-out perplexity on real NIPS by ``marginal``, after two epochs of SVI with seeds 0, 1 and 2."""
    train, test = nips.read(data_folder / "nips/nips-corpus-20111211.zip").with_contexts({}).split(0.1, seed=_SEED)
    for seed in count():
        yield fitted(train, FITS["SVI"](), epochs, seed).perplexity(test, "marginal", progress=False)


@benchmark("ARI, more is better", needs="data_folder", tiny={"sweeps": 2})
def quality_sports(data_folder: Path, sweeps: int = 60) -> Iterator[float]:
    """Agreement of MC2 (document level) with the classes of UIUC-Sports (report half), seeds 0 to 2."""
    files = (data_folder / "labelled" / f"uiuc-sports-{part}.txt" for part in ("annotations", "info"))
    corpus = subsets.half(labelled_images.read_sports(*files)[0], "report")
    for seed in count():
        model = fitted(corpus, FITS["document level"](), sweeps, seed)
        yield adjusted_rand_index(corpus.labels, model.cluster)


# -- Spark ---------------------------------------------------------------------------------------------------------
@benchmark("ms per mini-batch", needs="spark", tiny={"n_documents": 40, "batch_size": 20})
def spark_overhead(n_documents: int = 10_000, batch_size: int = 1000) -> Iterator[float]:
    """Additional elapsed time of a mini-batch of SVI if two threads of Spark compute it."""
    corpus = articles(n_documents, 40)
    pairs = [FITS["SVI, shards"](batch_size, n_shards) for n_shards in (None, 2)]
    with tempfile.TemporaryDirectory() as folder, spark.session({"spark.master": "local[2]", spark.FOLDER: folder}):
        states = [engine.init(model, corpus, _SEED) for model, engine in pairs]
        for epoch in count(1):
            seconds = []
            for (_, engine), state in zip(pairs, states, strict=True):
                started = time.perf_counter()
                engine.step(corpus, state, _SEED, epoch)
                seconds.append(time.perf_counter() - started)
            if epoch > 1:
                yield (seconds[1] - seconds[0]) * 1e3 / (n_documents / batch_size)
