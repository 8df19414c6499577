"""The Gibbs sampler of MC2 (ICML14), the HDP and npTOT: its settings, starting state and iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mc2core.base import memory
from mc2core.base.checks import MAX_LABELS, choice, whole
from mc2core.compute import streams
from mc2core.compute.threads import MAX_THREADS, thread_budget
from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import Engine, State
from mc2core.inference.gibbs.assignments import start_assignments
from mc2core.inference.gibbs.cluster_odds import log_odds_of_clusters
from mc2core.inference.gibbs.start import clusters_to_try, start_chain, start_directions, start_topics, topics_to_try
from mc2core.inference.gibbs.state import DocumentLevelState, GibbsState, SharedState
from mc2core.inference.gibbs.topic_moves import SPARE_TOPICS, move_bytes
from mc2core.models import HDP, MC2, NPTOT, Model, TopicModel
from mc2core.posterior import Sample

if TYPE_CHECKING:
    from mc2core.inference.shards import ShardedCorpus

# default values of start_topics and start_clusters without a document level
_TOPICS, _CLUSTERS = 50, 20
_MAX_TOKENS = 2**31 - 1
KERNELS = ("collapsed", "blocked", "interleaved", "parallel")


class Gibbs(Engine):
    """Inference by Gibbs sampling, for MC2 (ICML14, section 3.2), the HDP and npTOT.

    Parameters
    ----------
    kernel : {"collapsed", "blocked", "interleaved", "parallel"}, default "interleaved"
        Sampling scheme. "collapsed" moves one document or token at a time. "blocked" draws the parameters, and then
        moves all documents and tokens given the parameters. "interleaved" does both in each iteration. With a document
        level, "interleaved" is the same as "collapsed", and "blocked" is not available. "parallel" needs a document
        level; it moves tokens on all threads, at a cost that hardly depends on the number of topics. npTOT needs
        "collapsed", which is its default. Observations need "collapsed" or "interleaved".
    start_topics : int in [1, 2147483647] or None, default None
        Largest number of topics in the starting state. None means 50. With a document level, None means that a start
        with few topics and a start with many topics are compared on held-out documents. The smaller number is the cube
        root of the number of tokens, or more if documents are few and long. The larger number is four times the cube
        root. The start with many topics is used if it predicts better by one standard error.
    start_clusters : int in [1, 2147483647] or None, default None
        Largest number of clusters in the starting state. It must not be set if the model has n_clusters. None means 20.
        With a document level, None means that starts with 20 and with 100 clusters (at most one per ten documents) are
        compared on held-out documents. 100 clusters are used if they predict better by 1 % and by three standard
        errors. If the model has n_clusters, the best of three starts with twice this number is used. Corpora of fewer
        than a hundred documents have only one start, with few topics. Corpora of more than a million tokens have only
        one start, with many topics. If the model has embeddings, the starting clusters are clusters of the embeddings.
        Their number is five times start_clusters (or five times 20), but at most one per ten documents.
    n_shards : int in [1, inf) or None, default None
        Number of parts into which Spark splits the corpus (docs/how_to/spark.md). It needs the kernel "parallel". With
        None, Spark is not used. The result does not depend on this setting.
    threads : int in [1, 1024], default 1
        Number of threads. The result does not depend on it.

    Raises
    ------
    ValueError
        If a setting is outside its range.

    See Also
    --------
    SVI : a faster engine, which returns one approximation instead of samples.

    Examples
    --------
    >>> import mc2core
    >>> from mc2core.inference import Gibbs
    >>> corpus = mc2core.Corpus.from_texts(["apple tree", "tree leaf apple", "iron nail", "nail iron forge"])
    >>> fit = mc2core.fit(corpus, engine=Gibbs(start_topics=4), iterations=4, chains=1)
    >>> len(fit.posterior.samples)  # the first half of the iterations is discarded
    2
    """

    name: ClassVar[str] = "gibbs"
    description: ClassVar[str] = "Gibbs sampling"
    models = (MC2, HDP, NPTOT)
    keeps_samples: ClassVar[bool] = True
    default_iterations: ClassVar[int] = 60
    several_chains = 2
    excluded = ("threads", "n_shards")

    def __init__(
        self,
        *,
        kernel: str = "interleaved",
        start_topics: int | None = None,
        start_clusters: int | None = None,
        n_shards: int | None = None,
        threads: int = 1,
    ) -> None:
        self.kernel = choice("kernel", kernel, KERNELS)
        self.start_topics = None if start_topics is None else whole("start_topics", start_topics, most=MAX_LABELS)
        self.start_clusters = (
            None if start_clusters is None else whole("start_clusters", start_clusters, most=MAX_LABELS)
        )
        self.n_shards = None if n_shards is None else whole("n_shards", n_shards)
        self.threads = whole("threads", threads, most=MAX_THREADS)

    # -- the contract --------------------------------------------------------------------------------------
    @classmethod
    def defaults_for(cls, model: type[Model]) -> dict[str, Any]:
        return {"kernel": "collapsed"} if issubclass(model, NPTOT) else {}

    def supports(self, model: Model) -> None:
        super().supports(model)
        assert isinstance(model, TopicModel)
        if not model.has_clusters:
            self.refuse_idle({"start_clusters": "a model with clusters (--model mc2)"})
        if model.n_clusters is not None:
            self.refuse_idle({"start_clusters": f"a model without n_clusters, which is {model.n_clusters}"})
        if model.document_level and self.kernel == "blocked":
            raise ValueError(
                "kernel is 'blocked'; with a document level it must be 'collapsed', 'interleaved' or 'parallel'"
            )
        if model.burstiness and self.kernel == "parallel":
            raise ValueError("burstiness needs kernel 'collapsed' or 'interleaved', and this one is 'parallel'")
        if not model.document_level and self.kernel == "parallel":
            raise ValueError("kernel is 'parallel', which needs a document level; without it, use 'blocked'")
        if self.n_shards is not None and self.kernel != "parallel":
            raise ValueError(
                f"n_shards is {self.n_shards} and kernel {self.kernel!r}; only the kernel 'parallel' works on Spark"
            )
        if model.has_token_context and self.kernel != "collapsed":
            raise ValueError(f"kernel is {self.kernel!r}; for npTOT it must be 'collapsed'")
        if model.content is not None and self.kernel in ("blocked", "parallel"):
            raise ValueError(
                f"kernel is {self.kernel!r}; if topics emit observations, it must be 'collapsed' or 'interleaved'"
            )

    def init(self, model: TopicModel, corpus: Corpus, seed: int) -> GibbsState:
        self.need_memory(model, corpus)
        directions, clusters, topics = self._start(model, corpus)
        state: GibbsState
        if model.document_level:
            with thread_budget(self.threads) as pool:
                state = start_chain(
                    model, corpus, topics, clusters, self.kernel, seed, pool, self._sharded, directions
                )  # fmt: skip
        else:
            contexts = StackedContexts(corpus, model.cluster_contexts)
            rng, seen = streams.generator(seed, "start"), corpus
            if model.content is not None:
                # k-means topics only cluster the documents, because no move of this state would merge duplicates
                seen, _ = start_topics(model, corpus, topics[0], rng)
            n_clusters = (model.n_clusters or clusters[0]) if model.has_clusters else None
            assignments = start_assignments(seen, contexts, n_clusters, topics[0], rng)
            state = SharedState.from_assignments(model, corpus, contexts, assignments)
            state.draw_weights(seed, 0)
        state.log_joint = state.compute_log_joint()
        return state

    def need_memory(self, model: TopicModel, corpus: Corpus, chains: int = 1) -> None:
        n_tokens = corpus.n_tokens
        if n_tokens > _MAX_TOKENS:
            raise ValueError(f"the corpus has {n_tokens} tokens; the Gibbs engine takes at most {_MAX_TOKENS}")
        _, clusters, topics = self._start(model, corpus)
        n_clusters = (model.n_clusters or clusters[-1]) if model.has_clusters else corpus.n_documents
        n_clusters, n_topics = min(n_clusters, corpus.n_documents), topics[-1]
        sizes = n_clusters, n_topics, model.document_level, model.has_token_context
        n_bytes = start_bytes(corpus, *sizes, self.threads) + (chains - 1) * start_bytes(corpus, *sizes, 0)
        of_threads = f" on {self.threads} threads" if self.threads > 1 else ""
        run = "a Gibbs run" if chains == 1 else f"a Gibbs run of {chains} chains, each"
        what = f"{run} of {n_tokens} tokens from {n_clusters} clusters and {n_topics} topics{of_threads}"
        fewer = (", or chains" if chains > 1 else "") + (", or threads" if of_threads else "")
        memory.need(n_bytes, what, f"start_topics and start_clusters may be lower{fewer}")

    def _start(self, model: TopicModel, corpus: Corpus) -> tuple[np.ndarray | None, list[int], list[int]]:
        """Return the directions of embeddings, and the numbers of clusters and of topics to try, ascending."""
        if model.document_level:
            directions = start_directions(model, corpus)
            clusters = clusters_to_try(corpus, self.start_clusters, directions is not None)
        else:
            directions, clusters = None, [self.start_clusters or _CLUSTERS]
        if self.start_topics:
            return directions, clusters, [self.start_topics]
        if model.document_level:
            return directions, clusters, topics_to_try(corpus)
        return directions, clusters, [topics_to_try(corpus)[0] if model.content is not None else _TOPICS]

    def step(self, corpus: Corpus, state: GibbsState, seed: int, iteration: int) -> dict[str, float]:  # type: ignore[override]
        with thread_budget(self.threads) as pool:
            state.step(corpus, self.kernel, seed, iteration, pool, self._sharded(corpus))
        return state.report()

    def _sharded(self, corpus: Corpus) -> ShardedCorpus | None:
        """Return the corpus distributed to Spark executors, or None if the engine does not use Spark."""
        if self.n_shards is None:
            return None
        from mc2core.inference.shards import shards_of

        return shards_of(corpus, self.n_shards)

    def sample(self, corpus: Corpus, state: State) -> Sample:
        assert isinstance(state, GibbsState)
        return state.sample()

    def log_odds_of_clusters(self, state: State) -> float | None:
        if not isinstance(state, DocumentLevelState) or not state.model.has_clusters:
            return None
        return log_odds_of_clusters(state)

    def restore(self, model: TopicModel, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> GibbsState:
        kind = DocumentLevelState if model.document_level else SharedState
        return kind.restore(model, corpus, arrays)


def start_bytes(
    corpus: Corpus, n_clusters: int, n_topics: int, has_document_level: bool, has_times: bool, threads: int
) -> int:
    """Return the number of bytes needed by a state with the given sizes, including its sweep.

    ``has_document_level`` is True if documents have topic proportions of their own; ``has_times`` is True for npTOT.
    """
    n_tokens = corpus.n_tokens
    # topics of tokens, twice; counts of topics in clusters; weights; the corpus grouped by word
    n_bytes = 8 * n_tokens + 4 * n_clusters * n_topics + 24 * n_topics + 24 * corpus.content.nnz
    if has_times:
        n_bytes += 4 * corpus.n_words * n_topics
    if has_document_level:
        # token lists by topic; counts of words in topics, twice while they are extended; tau and its tables
        n_bytes += 16 * n_tokens + 8 * corpus.n_words * (n_topics + SPARE_TOPICS) + 24 * n_clusters * n_topics
        n_bytes += threads * move_bytes(n_tokens, corpus.n_documents, corpus.n_words, n_clusters, n_topics)
    return n_bytes
