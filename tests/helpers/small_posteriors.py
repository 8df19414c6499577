"""A posterior of two clusters and three contexts, written down, and a corpus that it can speak of."""

import numpy as np
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.families import DirichletCategorical, GammaPoisson, NormalGamma
from mc2core.posterior import Posterior, Sample, SparseRows

WORDS = ["ash", "birch", "cedar", "date"]


def make_model(dense=False, n_samples=2):
    generator = np.random.default_rng(0)
    families = {"author": DirichletCategorical(0.5), "pages": GammaPoisson(2.0, 0.1), "year": NormalGamma(0, 2, 3, 4)}
    prior = np.array([0.5, 0.5, 2.0, 0.1, *NormalGamma(0, 2, 3, 4).prior(4)])
    samples = []
    for i in range(n_samples):
        words = generator.integers(0, 5, (3, 4))
        words[0, i] = 9
        samples.append(
            Sample(
                cluster_weights=np.array([0.25, 0.75]),
                new_cluster_weight=0.1,
                topic_given_cluster=generator.dirichlet(np.ones(3), 2),
                new_topic_weight=np.array([0.1, 0.2]),
                topic_words=words.astype(float) if dense else sp.csr_matrix(words),
                topic_word_prior=0.01,
                topic_weights=np.array([0.5, 0.2, 0.2]),
                table_concentration=1.5,
                contexts=SparseRows.from_dense(
                    prior + np.array([[2.0, 0, 6, 1, 1.5, 1, 0.5, 1.2], [0, 1, 2, 2, -3, 2, 1, 3]])
                ),
                cluster=np.array([0, 1, 1], dtype=np.int32),
                log_joint=-12.5 - i,
            )
        )
    return Posterior(
        samples,
        families,
        {"author": 2, "pages": 2, "year": 4},
        WORDS,
        context_names={"author": ["p", "q"]},
        units={"year": (2000.0, 5.0)},
        provenance={"model": {"name": "mc2"}, "engine": {"name": "gibbs", "a": [1, 2]}, "seed": 3},
    )


def make_corpus():
    return Corpus(
        np.array([[3, 0, 1, 0], [0, 0, 0, 0], [0, 2, 0, 5]]),
        contexts={
            "author": np.array([[1, 0], [0, 0], [0, 2]]),
            "pages": np.array([3.0, np.nan, 1.0]),
            "year": np.array([0.2, np.nan, -1.0]),
        },
    )


def word_given_cluster(sample):
    """(K, V): the words of a token of each cluster, topics not in use included."""
    new = sample.new_topic_weight[:, None]
    return (1.0 - new) * (sample.topic_given_cluster @ sample.word_given_topic) + new / sample.topic_words.shape[1]
