"""The estimate of the memory that a Gibbs run takes, before it is allocated, against what is allocated."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.base import memory
from mc2core.compute import streams
from mc2core.compute.threads import thread_budget
from mc2core.families.stacked import StackedContexts
from mc2core.inference import Gibbs
from mc2core.inference.gibbs.assignments import start_assignments
from mc2core.inference.gibbs.engine import start_bytes
from mc2core.inference.gibbs.start import start_topics
from mc2core.inference.gibbs.state import DocumentLevelState
from mc2core.inference.gibbs.topic_moves import split_and_merge_topics
from mc2core.models import MC2

N_DOCUMENTS, N_WORDS, N_TOKENS, N_TOPICS, N_CLUSTERS = 1000, 2000, 400_000, 10, 5


def large():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, N_DOCUMENTS, N_TOKENS), rng.integers(0, N_WORDS, N_TOKENS)
    return Corpus(sp.csr_matrix((np.ones(N_TOKENS, np.int64), (rows, columns)), shape=(N_DOCUMENTS, N_WORDS)))


def allocated(corpus, threads):
    """Bytes at the peak of a start and of moves of topics, in which most is allocated."""
    model = MC2()
    tracemalloc.start()
    try:
        contexts, rng = StackedContexts(corpus, {}), streams.generator(0, "start")
        seen, topic = start_topics(model, corpus, N_TOPICS, rng)
        assignments = start_assignments(seen, contexts, N_CLUSTERS, N_TOPICS, rng, topic)
        state = DocumentLevelState.from_assignments(model, corpus, contexts, assignments)
        with thread_budget(threads) as pool:
            split_and_merge_topics(
                state.assignments, corpus.content, state.proportions, state.omega, state.concentrations, 0.01,
                streams.key(0, "split"), 1, pool=pool,
            )  # fmt: skip
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_estimate_counts_what_each_thread_has_to_itself():
    corpus = large()
    allocated(corpus.subset(np.arange(10)), 1)  # kernels and modules
    measured, estimated = {}, {}
    for threads in (1, 4):
        measured[threads] = allocated(corpus, threads)
        estimated[threads] = start_bytes(corpus, N_CLUSTERS, N_TOPICS, True, False, threads)
        assert 0.7 * measured[threads] < estimated[threads] < 2.0 * measured[threads]
    assert estimated[4] - estimated[1] == pytest.approx(measured[4] - measured[1], rel=0.05)


def test_a_run_on_too_many_threads_is_refused_before_it_starts(monkeypatch):
    corpus = large()
    one, sixteen = (start_bytes(corpus, 20, 74, True, False, threads) for threads in (1, 16))
    assert sixteen > 3 * one
    monkeypatch.setattr(memory, "available_bytes", lambda: (one + sixteen) // 2)
    with pytest.raises(ValueError, match=r"on 16 threads would take .* of memory, .*or threads$"):
        Gibbs(threads=16, start_topics=74).init(MC2(), corpus, 0)
