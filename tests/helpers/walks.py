"""Random walks in place of samplers: small enough to predict, and the loop must not care."""

import os
import signal

import numpy as np
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.inference.base import Engine, State
from mc2core.models import MC2
from mc2core.posterior import Sample, SparseRows

CORPUS = Corpus(np.array([[1, 0, 2], [0, 3, 0], [1, 1, 1]]))


class WalkState(State):
    part = 0

    def __init__(self, cluster, position):
        self.cluster, self.position = cluster, position

    def arrays(self):
        return {"cluster": self.cluster, "position": self.position, "part": np.array(self.part)}


class Walk(Engine):
    """A random walk in place of a sampler: the loop must not care."""

    name = "walk"
    models = (MC2,)
    default_iterations = 10
    keeps_samples = True

    def __init__(self, *, stride=1.0, threads=1):
        self.stride, self.threads = stride, threads

    def init(self, model, corpus, seed):
        return WalkState(np.zeros(corpus.n_documents, dtype=np.int32), streams.generator(seed, "init").normal(size=2))

    def step(self, corpus, state, seed, iteration):
        state.position += self.stride * streams.generator(seed, "step", iteration).normal(size=2)
        return {"log_joint": float(state.position.sum()), "clusters": 1, "topics": 1}

    def sample(self, corpus, state):
        one = np.ones(1)
        words = sp.csr_matrix(np.ones((1, corpus.n_words)))
        values = dict.fromkeys(("cluster_weights", "topic_weights"), one)
        return Sample(
            **values, new_cluster_weight=0.0, topic_given_cluster=np.ones((1, 1)), new_topic_weight=np.zeros(1),
            topic_words=words, topic_word_prior=0.5, table_concentration=1.0,
            contexts=SparseRows.from_dense(np.zeros((1, 0))),
            cluster=state.cluster.copy(), log_joint=float(state.position.sum()),
        )  # fmt: skip

    def restore(self, model, corpus, arrays):
        return WalkState(arrays["cluster"].copy(), arrays["position"].copy())


def joints(result):
    return [sample.log_joint for sample in result.posterior.samples]


class WalkInParts(Walk):
    """A walk whose iterations come in three parts; stops itself where it is told to."""

    name = "walk in parts"
    stop_at = None

    def init(self, model, corpus, seed):
        state = super().init(model, corpus, seed)
        state.part = 0
        return state

    def advance(self, corpus, state, seed, iteration):
        state.position += streams.generator(seed, f"part {state.part}", iteration).normal(size=2)
        state.part = (state.part + 1) % 3
        state.progress = state.part / 3
        if (iteration, state.part) == self.stop_at:
            os.kill(os.getpid(), signal.SIGTERM)
        return None if state.part else {"log_joint": float(state.position.sum()), "clusters": 1, "topics": 1}

    def restore(self, model, corpus, arrays):
        state = super().restore(model, corpus, arrays)
        state.part = int(arrays["part"])
        state.progress = state.part / 3
        return state
