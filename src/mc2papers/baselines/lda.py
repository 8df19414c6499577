"""Latent Dirichlet allocation by scikit-learn's variational Bayes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import prior_count, whole
from mc2core.corpus import Corpus
from mc2core.posterior import Posterior, Sample, SparseRows
from mc2papers.baselines.base import Baseline, Fitted, one_thread, random_state


class LDA(Baseline):
    """Latent Dirichlet allocation (batch variational Bayes).

    A fit returns a :class:`~mc2core.posterior.Posterior` whose topics are posterior means. Each document has its own
    topic proportions, with the prior Dirichlet(document_prior, ..., document_prior). The estimator ``left_to_right``
    uses this prior. The cluster of a document is its most probable topic. The estimators ``marginal`` and ``icml14``
    are not used, because they assume that all words of a document come from one cluster.

    Parameters
    ----------
    n_topics : int in [1, inf), default 20
        Number of topics. Each topic is also a cluster.
    document_prior : float in [1e-10, 1e10], default 0.1
        Dirichlet prior of each topic in a document's proportions.
    topic_word_prior : float in [1e-10, 1e10], default 0.01
        Dirichlet prior of each word in a topic's distribution.
    iterations : int in [1, inf), default 20
        Number of passes over the corpus.
    starts : int in [1, inf), default 3
        Number of starts. The solution with the highest bound of ln p(words) is kept, because some starts end with
        topics that have no words.
    """

    name: ClassVar[str] = "lda"
    title: ClassVar[str] = "LDA"
    citation: ClassVar[str] = "Blei, Ng and Jordan (2003), Latent Dirichlet allocation; Hoffman et al. (2010)"
    leaves_model: ClassVar[bool] = True

    def __init__(
        self, *, n_topics: int = 20, document_prior: float = 0.1, topic_word_prior: float = 0.01, iterations: int = 20,
        starts: int = 3,
    ) -> None:  # fmt: skip
        self.n_topics = whole("n_topics", n_topics)
        self.document_prior = prior_count("document_prior", document_prior)
        self.topic_word_prior = prior_count("topic_word_prior", topic_word_prior)
        self.iterations = whole("iterations", iterations)
        self.starts = whole("starts", starts)

    def fit(self, corpus: Corpus, seed: int, model: Posterior | None = None) -> Fitted:
        with one_thread():
            content = sp.csr_matrix(corpus.content, dtype=np.float64)
            ends = [self._run(content, random_state(seed, "lda", start)) for start in range(self.starts)]
            found = max(ends, key=lambda end: end.score(content))
            shares = found.transform(content)
        topic_words = np.maximum(found.components_ - self.topic_word_prior, 0.0)
        prior = np.full(self.n_topics, self.document_prior)
        fitted = lda_model(corpus, topic_words, self.topic_word_prior, prior, shares)
        return Fitted(fitted, sum(end.n_iter_ for end in ends))

    def _run(self, content: sp.csr_matrix, state: int) -> Any:
        from sklearn import decomposition

        return decomposition.LatentDirichletAllocation(
            self.n_topics,
            doc_topic_prior=self.document_prior,
            topic_word_prior=self.topic_word_prior,
            learning_method="batch",
            max_iter=self.iterations,
            random_state=state,
        ).fit(content)


def lda_model(
    corpus: Corpus, topic_words: np.ndarray, topic_word_prior: float, document_prior: np.ndarray, shares: np.ndarray
) -> Posterior:
    """Return a fitted LDA as a posterior.

    Arguments are the (K, V) expected tokens of topics and their prior, the (K,) prior of the proportions of documents,
    and the (J, K) estimated proportions.
    """
    k, mean = len(topic_words), shares.mean(axis=0)
    sample = Sample(
        cluster_weights=mean / mean.sum(),
        new_cluster_weight=1.0,  # the proportions of a document are drawn only for this document
        topic_given_cluster=sp.identity(k, format="csr"),
        new_topic_weight=np.zeros(k),
        topic_words=topic_words,
        topic_word_prior=topic_word_prior,
        topic_weights=document_prior / document_prior.sum(),
        table_concentration=float(document_prior.sum()),
        contexts=SparseRows.from_dense(np.zeros((k, 0))),
        cluster=np.argmax(shares, axis=1).astype(np.int32),
    )
    return Posterior([sample], {}, {}, corpus.vocabulary, imported=corpus.imported)
