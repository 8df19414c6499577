"""Latent Dirichlet allocation by online variational Bayes of Spark's MLlib (UAI16, table 2)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mc2core.base.checks import finite, prior_count, whole
from mc2core.compute import spark
from mc2core.corpus import Corpus
from mc2papers.baselines.base import Baseline, Fitted, random_state
from mc2papers.baselines.lda import lda_model


class MLlibLDA(Baseline):
    """Latent Dirichlet allocation by MLlib's online variational Bayes.

    A fit returns a :class:`~mc2core.posterior.Posterior` like :class:`~mc2papers.baselines.lda.LDA`, with the document
    prior that MLlib learns. Results depend on the numbers of Spark's threads and of partitions. Both are therefore
    fixed: a local master has ``partitions`` threads. The method needs Java and the extra "spark".

    Parameters
    ----------
    n_topics : int in [1, inf), default 20
        Number of topics. Each topic is also a cluster.
    document_prior : float in [1e-10, 1e10], default 0.1
        Initial Dirichlet prior of each topic in a document's proportions; MLlib learns it.
    topic_word_prior : float in [1e-10, 1e10], default 0.01
        Dirichlet prior of each word in a topic's distribution.
    iterations : int in [1, inf), default 20
        Number of mini-batches.
    batch_fraction : float in (0, 1], default 0.1
        Fraction of the documents in each mini-batch, drawn at random. The number of passes over the corpus is
        ``iterations`` times this fraction.
    learning_offset : float in (0, inf), default 1024.0
        Offset tau_0 of the rates (tau_0 + t)**-0.51. With a smaller offset, the first mini-batches count more.
    partitions : int in [1, inf), default 2
        Number of partitions of the documents, and of threads of the local master.
    """

    name: ClassVar[str] = "mllib_lda"
    title: ClassVar[str] = "LDA (MLlib)"
    citation: ClassVar[str] = "Hoffman, Blei and Bach (2010), Online learning for LDA; Meng et al. (2016), MLlib"
    leaves_model: ClassVar[bool] = True

    def __init__(
        self, *, n_topics: int = 20, document_prior: float = 0.1, topic_word_prior: float = 0.01, iterations: int = 20,
        batch_fraction: float = 0.1, learning_offset: float = 1024.0, partitions: int = 2,
    ) -> None:  # fmt: skip
        self.n_topics = whole("n_topics", n_topics)
        self.document_prior = prior_count("document_prior", document_prior)
        self.topic_word_prior = prior_count("topic_word_prior", topic_word_prior)
        self.iterations = whole("iterations", iterations)
        self.batch_fraction = finite("batch_fraction", batch_fraction)
        if not 0 < self.batch_fraction <= 1:
            raise ValueError(f"batch_fraction is {batch_fraction!r}; it must be above 0 and at most 1")
        self.learning_offset = finite("learning_offset", learning_offset)
        if not self.learning_offset > 0:
            raise ValueError(f"learning_offset is {learning_offset!r}; it must be above 0")
        self.partitions = whole("partitions", partitions)

    @property
    def master(self) -> str:
        """Return the Spark master."""
        return f"local[{self.partitions}]"

    def fit(self, corpus: Corpus, seed: int, model: Any = None) -> Fitted:
        with spark.session({"spark.master": self.master}), spark.in_a_sentence("MLlib's LDA failed"):
            topics, prior, shares = self._run(corpus, random_state(seed, self.name))
        expected = np.maximum(topics - self.topic_word_prior, 0.0)
        return Fitted(lda_model(corpus, expected, self.topic_word_prior, prior, shares), self.iterations)

    def _run(self, corpus: Corpus, state: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Fit by MLlib; return the (K, V) Dirichlet parameters of topics, the learnt (K,) prior of the proportions of
        documents, and the (J, K) proportions."""
        context = spark.context()
        from pyspark.ml.clustering import LDA
        from pyspark.ml.linalg import SparseVector
        from pyspark.sql import SparkSession

        content = corpus.content
        rows = [
            (j, SparseVector(corpus.n_words, content.indices[first:last], content.data[first:last].astype(float)))
            for j, (first, last) in enumerate(zip(content.indptr[:-1], content.indptr[1:], strict=True))
        ]
        frame = SparkSession(context).createDataFrame(context.parallelize(rows, self.partitions), ["id", "features"])
        frame.cache()
        found = LDA(
            k=self.n_topics,
            maxIter=self.iterations,
            seed=state,
            optimizer="online",
            subsamplingRate=self.batch_fraction,
            learningOffset=self.learning_offset,
            docConcentration=[self.document_prior] * self.n_topics,
            topicConcentration=self.topic_word_prior,
            optimizeDocConcentration=True,
        ).fit(frame)
        shares = np.zeros((corpus.n_documents, self.n_topics))
        for row in found.transform(frame).select("id", "topicDistribution").collect():
            shares[row[0]] = row[1].toArray()
        return found.topicsMatrix().toArray().T, found.estimatedDocConcentration().toArray(), shares
