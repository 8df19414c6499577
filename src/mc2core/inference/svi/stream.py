"""Streams: fits by SVI that are continued with new documents, by means of the population posterior.

A corpus is finite, but a stream of documents has no end. The posterior of a stream describes a *population*: a given
number of documents, drawn from the same source as the documents of the stream (McInerney, Ranganath and Blei, "The
Population Posterior and Bayesian Modeling on Streams", NIPS 2015). A mini-batch of B documents represents the
population in the same way as a mini-batch of a fit represents its corpus. Its statistics are multiplied by
population / B. The global parameters then take a step with the next learning rate of the schedule. The size of the
population is a setting and does not grow with the stream. A larger population makes the posterior narrower, whereas a
longer stream does not. If the population is the corpus of a fit, one pass over its documents is an epoch.

A fit processes each document once per epoch, but a stream receives each document only once. Therefore a stream
processes documents in blocks of at least 400, with several passes over each block. Each pass replaces the statistics
that the previous pass added to the global parameters, as in memoised variational inference (Hughes and Sudderth,
"Memoized online variational inference for Dirichlet process mixture models", NIPS 2013). The learning rate of a block
is as large as the combined rates of its mini-batches. Topics are added after the first pass, and clusters after the
last (:mod:`mc2core.inference.svi.births`). After each block, mini-batches of earlier documents are processed, so that
these documents can also use new topics and clusters. They are drawn from a *reservoir*, a uniform random sample of all
documents so far (docs/notes/arrivals.md).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
from scipy.special import digamma

from mc2core.base import storage
from mc2core.base.checks import counted, shown, whole
from mc2core.compute import streams
from mc2core.compute.threads import thread_budget
from mc2core.corpus import Corpus, alignment, matching, reservoir
from mc2core.corpus.building.counts import Dropped
from mc2core.families import DirichletCategorical
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import posterior_of
from mc2core.inference.registry import specified_in
from mc2core.inference.svi.births import add_new_clusters, suggest_topics
from mc2core.inference.svi.documents import take_batch
from mc2core.inference.svi.engine import MAX_CLUSTERS, MAX_TOPICS, SVI
from mc2core.inference.svi.globals import Globals, clusters_in_use, topics_in_use
from mc2core.inference.svi.local import local_step
from mc2core.inference.svi.local.document_level import DocumentLevelStep
from mc2core.inference.svi.settings import RunSettings
from mc2core.models import MC2
from mc2core.posterior import Posterior
from mc2core.posterior.posterior import posterior_file

if TYPE_CHECKING:
    import pandas as pd

    from mc2core.inference.base import State

# prefix of the names of the state's arrays in the file of a stream
_STATE = "stream."
# a cluster is small if it contains a smaller fraction of the latest documents
_SMALL = 0.01
# smallest number of documents in a block that is processed by several passes
_BLOCK = 400
# number of reservoir documents that are processed after a block, per document of the block
_AGAIN = 6


class Fitted(Protocol):
    """A :class:`mc2core.Fit`, or an object with the parts of a fit that are stored on disk."""

    @property
    def posterior(self) -> Posterior:
        """Posterior, whose provenance contains the model and the engine."""

    @property
    def state(self) -> State:
        """State of the first chain after the last iteration."""

    @property
    def trace(self) -> pd.DataFrame:
        """Trace of the fit, with a column ``tokens``."""

    @property
    def corpus(self) -> Corpus:
        """Fitted documents, or the random sample of these documents that is saved with a fit by SVI."""


class BlockRecord(NamedTuple):
    """Record of one block of a stream.

    documents, tokens : int
        Numbers of documents and tokens in the block.
    log_evidence : float
        Lower bound sum_j ln Z_j on the log probability of the words and contexts of the block, in nats, under the
        posterior before the block. A new context value has its prior probability.
    in_small : int
        Number of documents whose likeliest cluster contained less than 1 % of the latest documents.
    clusters_born, clusters_gone, topics_born, topics_gone : int
        Numbers of clusters and topics that came into use or went out of use. A cluster is in use if it is the likeliest
        cluster of at least one of the latest documents or of the reservoir documents. A topic is in use if its expected
        number of tokens is at least one half.
    """

    documents: int
    tokens: int
    log_evidence: float
    in_small: int
    clusters_born: int
    clusters_gone: int
    topics_born: int
    topics_gone: int


class Stream:
    """Continue a fit by SVI with new documents.

    The posterior describes a population of ``total_samples`` documents (McInerney, Ranganath and Blei 2015). Documents
    are processed in the order given, in blocks of 400 or of one mini-batch, whichever is larger. The step sizes
    continue the schedule of the fit. ``fit`` itself is not changed.

    - Topics are added for words that the existing topics do not explain, up to ``max_topics`` of the engine or its
      default. With tables, no topics are added.
    - Clusters are added if they improve the ELBO of a block, up to ``max_clusters`` of the engine or its default. This
      needs a model with a document level in which the number of clusters is not fixed.
    - For each new document, six earlier documents are processed again. They are drawn from a reservoir of at most 2,000
      documents, a uniform random sample of all documents so far.
    - Unused clusters and topics are removed after every ``total_samples`` documents. Existing clusters are not merged.
    - :meth:`grow` adds columns for new words and context values.

    Parameters
    ----------
    fit : mc2core.Fit
        A fit by SVI with mini-batches (``batch_size`` is not None) and without Spark.
    total_samples : int in [1, inf), optional
        Size of the population that the posterior describes. The default is the number of fitted documents. A larger
        number makes the posterior narrower.
    passes : int in [1, inf), default 3
        Number of passes over each block. With 1, documents are processed in mini-batches, as in an epoch of a fit. Then
        no clusters or topics are added, and no earlier documents are processed again.
    threads : int in [1, 1024], default 1
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    model : MC2
    engine : SVI
    n_documents : int
        Number of new documents that the stream has processed so far.
    fitted : dict
        Description of the original fit: the numbers of ``documents``, ``tokens`` and ``words``, the truncations
        ``clusters`` and ``topics``, the ``dimensions`` of the contexts, and ``log_evidence`` (of the last epoch, in
        nats).
    updates : list of dicts
        One entry per call of ``mc2 update``.
    taken : (n,) int64
        Fingerprints of the documents with ids that the stream has received (:mod:`mc2core.corpus.fingerprints`).

    Raises
    ------
    ValueError
        If the fit cannot be continued.

    Examples
    --------
    >>> import mc2core
    >>> from mc2core.inference import SVI, Stream
    >>> corpus = mc2core.Corpus.from_texts(["apple tree", "tree leaf apple", "iron nail", "nail iron forge"] * 5)
    >>> fit = mc2core.fit(corpus, engine=SVI(max_clusters=4), iterations=2)
    >>> new = mc2core.Corpus.from_texts(["apple leaf"], like=fit.posterior)
    >>> Stream(fit).partial_fit(new).n_documents
    1
    """

    def __init__(self, fit: Fitted, *, total_samples: int | None = None, passes: int = 3, threads: int = 1) -> None:
        if not hasattr(fit, "state"):
            raise ValueError(f"fit is {shown(fit)}; a fit by SVI is needed: mc2core.fit(corpus, engine=SVI())")
        self.model, self.engine = _specified(fit.posterior.provenance, threads)
        state = cast(Globals, fit.state)
        fitted = len(state.cluster)
        total_samples = fitted if total_samples is None else whole("total_samples", total_samples)
        self.passes = whole("passes", passes)
        self._kept = _documents_of(fit.posterior, reservoir.sample(fit.corpus))
        about = fit.posterior.provenance
        self._about = {
            name: about[name] for name in about if name not in ("corpus", "names", "chains", "stuck", "stopped_at")
        }
        self.n_documents, self.updates = 0, list[dict[str, Any]]()
        self.taken = _fingerprints_of(fit.posterior)
        tokens = int(fit.trace["tokens"].iloc[-1])
        evidence = None if math.isnan(state.last_evidence) else state.last_evidence
        self.fitted: dict[str, Any] = {"documents": fitted, "tokens": tokens, "log_evidence": evidence}
        self.fitted |= {"words": self._kept.n_words, "dimensions": dict(fit.posterior.dimensions)}
        self.fitted |= {"clusters": state.settings.n_clusters, "topics": state.settings.n_topics}
        settings = state.settings._replace(total_samples=total_samples)
        self._state = self._restored(state.arrays(), settings)
        self._state.n_visited, self._state.evidence = 0, 0.0  # an incomplete epoch of a stopped fit is not continued
        if total_samples != fitted:
            self._state.scale_counts(total_samples / fitted)
        # the state's documents: the latest ones, then the reservoir documents if these are processed again
        cluster, kept = self._state.cluster, reservoir.places(0, fitted, reservoir.MOST)
        self._state.set_documents(np.append(cluster[-total_samples:], cluster[kept if self.passes > 1 else []]))
        self._posterior: Posterior | None = None

    def _in_columns(self, corpus: Corpus) -> Corpus:
        """Return the documents of ``corpus`` with the words, contexts and units of the stream."""
        corpus = matching.in_units(corpus, self.model.contexts, self._kept.units)
        contexts = {name: corpus.contexts[name] for name in self._kept.contexts}
        return self._kept.with_documents(corpus.content, contexts)

    def _restored(self, arrays: Mapping[str, np.ndarray], settings: RunSettings) -> Globals:
        """Return a state with copies of ``arrays``."""
        contexts = StackedContexts(self._kept, self.model.contexts)
        shape = np.size(arrays.get("cluster", ())), self._kept.n_words
        return Globals.restore(self.model, settings, shape, contexts, arrays)

    def __repr__(self) -> str:
        return (
            f"Stream({counted(self.n_documents, 'documents')}, total_samples {self.total_samples}, {self.posterior!r})"
        )

    @property
    def total_samples(self) -> int:
        """Size of the population that the posterior describes, in documents."""
        return cast(int, self._state.settings.total_samples)

    @property
    def _n_latest(self) -> int:
        """Number of the latest documents whose clusters are in the state, without the reservoir documents."""
        return min(self.total_samples, self.fitted["documents"] + self.n_documents)

    @property
    def block(self) -> int:
        """Number of documents per block."""
        size = cast(int, self._state.settings.batch_size)
        return max(size, _BLOCK) if self.passes > 1 else size

    @property
    def posterior(self) -> Posterior:
        """Current posterior.

        Its ``cluster`` contains the clusters of at most the latest ``total_samples`` documents, which may include
        documents of the fit. ``provenance["stream"]`` contains the number of new documents and the settings of the
        stream.
        """
        if self._posterior is None:
            stream = {"documents": self.n_documents, "fitted": self.fitted, "updates": self.updates}
            stream |= {"passes": self.passes}
            stream |= self._state.settings._asdict()
            sample = self.engine.sample(self._kept, self._state)
            sample = replace(sample, cluster=sample.cluster[: self._n_latest])
            self._posterior = posterior_of(self.model, self._kept, [sample], self._about | {"stream": stream})
            self._posterior.fingerprints, self._posterior.reservoir = self.taken, self._kept
        return self._posterior

    def grow(self, corpus: Corpus, new_columns: int = 1) -> Corpus:
        """Add columns for new words and context values, and return the documents in the columns of the stream.

        A new column starts with its prior count s. In a topic with n expected tokens, the probability of each known
        word therefore changes by the factor (n + s V) / (n + s V'), where V and V' are the old and new numbers of
        words.

        Parameters
        ----------
        corpus : Corpus
            New documents. Words and context values must have names. Contexts that are not in the stream are left out.
            Contexts of the stream that are not in ``corpus`` are treated as missing.
        new_columns : int in [1, inf), default 1
            Smallest number of documents in which a new word or value must occur to get a column. Rarer words and values
            are left out.

        Returns
        -------
        Corpus
            The documents, to be passed to :meth:`partial_fit`.

        Raises
        ------
        ValueError
            If names are missing, if a context has another kind in the stream, or if no word has a column.
            The stream is then unchanged.
        """
        return self.place(corpus, new_columns)[0]

    def remember(self, fingerprints: np.ndarray) -> None:
        """Add the fingerprints of documents to the attribute ``taken``."""
        self.taken, self._posterior = np.append(self.taken, fingerprints), None

    def place(self, corpus: Corpus, new_columns: int) -> tuple[Corpus, alignment.NewColumns, list[Dropped]]:
        """Like :meth:`grow`, but also return the names that got new columns and the names that were left out."""
        known = {name: one for name, one in corpus.contexts.items() if name in self._kept.contexts}
        corpus = corpus.with_contexts(known)
        pattern, new = alignment.extended(alignment.schema_of(self.posterior), corpus, new_columns)
        placed, dropped = alignment.reindex_to_schema(Corpus, corpus, pattern)
        if new.words or new.values:
            self._kept, _ = alignment.reindex_to_schema(Corpus, self._kept, pattern)
            self._state.add_columns(StackedContexts(self._kept, self.model.contexts), len(pattern.words))
            self._posterior = None
        return placed, new, dropped

    def partial_fit(self, corpus: Corpus) -> Stream:
        """Update the posterior with new documents, in the order given.

        Documents are processed in blocks of :attr:`block` documents. Several calls give the same result as one call,
        bit for bit, if all calls except the last consist of whole blocks. After every ``total_samples`` documents,
        clusters and topics that are not in use are removed. If a document is passed twice, it counts twice.

        Parameters
        ----------
        corpus : Corpus
            Documents with the words and contexts of the fit (``Corpus.from_texts(..., like=fit.posterior)``).

        Returns
        -------
        Stream
            The stream itself.

        Raises
        ------
        ValueError
            If the words or contexts differ from those of the fit. The stream is then left unchanged. ValueError is also
            raised if a document has probability 0 in all clusters; the stream then includes the earlier blocks.
        """
        for _ in self.fit_blocks(corpus):
            pass
        return self

    def fit_blocks(self, corpus: Corpus, first: int = 0) -> Iterator[BlockRecord]:
        """Run :meth:`partial_fit` from document ``first`` on, and yield a :class:`BlockRecord` after each block."""
        self.posterior.check_corpus(corpus)
        contexts = self.posterior.stacked(corpus)
        state, size = self._state, self.block
        known, state.contexts = state.contexts, contexts
        try:
            with thread_budget(self.engine.threads) as pool:
                for start in range(first, corpus.n_documents, size):
                    rows = np.arange(start, min(start + size, corpus.n_documents))
                    yield self._fit_block(corpus, rows, pool)
        finally:
            state.contexts = known

    def _fit_block(self, corpus: Corpus, rows: np.ndarray, pool: Executor | None) -> BlockRecord:
        """Process one block of documents and add them to the latest documents and to the reservoir."""
        state, self._posterior = self._state, None
        latest, kept = np.split(state.cluster, [self._n_latest])
        clusters, topics = clusters_in_use(state), topics_in_use(state)
        n_clusters, n_topics = state.n_clusters, len(state.n_m)
        is_small = np.bincount(latest[latest >= 0], minlength=n_clusters) < _SMALL * len(latest)
        n_tokens, unmet = self._mass_of_new_names(corpus, rows)
        state.cluster = np.full(corpus.n_documents, -1, np.int32)
        try:
            learn = self._learn if self.passes > 1 else self.engine.fit_batch
            evidence = learn(corpus, state, rows, pool) + unmet
            own = state.cluster[rows]
            latest = np.append(latest, own)[-self.total_samples :]
            n_before = self.fitted["documents"] + self.n_documents
            if self.passes > 1:
                kept = np.append(kept, own)[reservoir.places(n_before, len(rows), reservoir.MOST)]
        finally:
            state.set_documents(np.append(latest, kept))
        self.n_documents += len(rows)
        if len(state.n_m) > n_topics:
            new = np.setdiff1d(topics_in_use(state), np.arange(n_topics))
            state.select(topics=np.append(np.arange(n_topics), new))
        self._kept = reservoir.update(self._kept, n_before, self._in_columns(corpus.subset(rows)))
        in_small = int(np.append(is_small, np.ones(state.n_clusters - n_clusters, bool))[own].sum())
        changes = (*_changes(clusters, clusters_in_use(state)), *_changes(topics, topics_in_use(state)))
        if self.passes > 1:
            self._go_over_kept(_AGAIN * len(rows), pool)
        if state.n_visited >= self.total_samples:
            self.engine.end_epoch(state, pool)
        return BlockRecord(len(rows), n_tokens, evidence, in_small, *changes)

    def _mass_of_new_names(self, corpus: Corpus, rows: np.ndarray) -> tuple[int, float]:
        """Return the number of tokens of a block, and a correction of its log evidence for unseen names, in nats.

        A word or context value without data gets ln E p instead of E ln p, that is, its prior probability.
        """
        state = self._state
        first, last = corpus.content.indptr[[rows[0], rows[-1] + 1]]
        words, counts = corpus.content.indices[first:last], corpus.content.data[first:last]
        unmet = _count_unseen(state.topic_words, words, counts) * _geometric(state.topic_word_prior)
        for family, columns in state.contexts.segments():
            if isinstance(family, DirichletCategorical):
                part = state.contexts.statistics[rows, columns]
                known = state.context_counts[columns]
                unmet += _count_unseen(known, part.indices, part.data) * _geometric(family.concentration)
        return int(counts.sum(dtype=np.int64)), unmet

    def _learn(self, corpus: Corpus, state: Globals, rows: np.ndarray, pool: Executor | None) -> float:
        """Update the state in place by several passes over a block.

        Returns the sum of ln Z_j over the documents of the block, under the global parameters before the block, in
        nats.
        """
        state.rescale()
        n_steps = -(-len(rows) // cast(int, state.settings.batch_size))
        rates = [self.engine.rate(self.model, state.n_updates + step) for step in range(n_steps)]
        rate, scale = 1.0 - math.prod(1.0 - one for one in rates), self.total_samples / len(rows)
        batch = take_batch(corpus, state.contexts, rows).narrowed()
        n_clusters, n_topics = self._n_new(len(rows))
        since, evidence = state.rows_of(batch), 0.0
        for number in range(self.passes):
            if number == 1 and n_topics:
                # not before the first pass, because its log evidence must be independent of the topics of the block
                suggest_topics(state, batch, since, n_topics, rate * scale)
            before = state.rows_of(batch) if number == self.passes - 1 else {}
            state.cluster[rows] = -1  # otherwise, documents would be fixed to the clusters of the previous pass
            local = local_step(state, batch, pool)
            state.step(batch, local, scale, rate, pool, since=since)
            if number == 0:
                evidence = local.documents.log_evidence
        if n_clusters:
            assert isinstance(local, DocumentLevelStep)
            add_new_clusters(state, batch, local.posteriors, before, since, n_clusters, scale, rate, pool)
        state.step_concentrations()
        state.n_updates += n_steps
        state.n_visited += len(rows)
        state.evidence += evidence
        return evidence

    def _go_over_kept(self, n: int, pool: Executor | None) -> None:
        """Process n random documents of the reservoir (all if it is smaller) in mini-batches, in place."""
        state, kept = self._state, self._kept
        contexts, (latest, state.cluster) = state.contexts, np.split(state.cluster, [self._n_latest])
        state.contexts = StackedContexts(kept, self.model.contexts)
        drawn = streams.generator(0, "svi.again", state.n_updates).permutation(kept.n_documents)[:n]
        size = cast(int, state.settings.batch_size)
        try:
            for first in range(0, len(drawn), size):
                rate = self.engine.rate(self.model, state.n_updates)
                self.engine.batch_step(kept, state, np.sort(drawn[first : first + size]), rate, pool)
        finally:
            state.cluster, state.contexts = np.append(latest, state.cluster), contexts

    def _n_new(self, n_documents: int) -> tuple[int, int]:
        """Return the largest numbers of clusters and topics that a block of ``n_documents`` documents may add."""
        state, level = self._state, self.model.document_level
        if state.settings.n_tables is not None:
            return 0, 0
        most = (self.engine.max_clusters or MAX_CLUSTERS[level]) if level and self.model.n_clusters is None else 0
        room = {"clusters": most - state.n_clusters}
        room["topics"] = (self.engine.max_topics or MAX_TOPICS[level]) - len(state.n_m)

        def allowed(what: str) -> int:
            by_rule = math.ceil(self.fitted[what] / self.fitted["documents"] * n_documents)
            return max(0, min(by_rule, room[what], n_documents))

        return allowed("clusters"), allowed("topics")

    # -- disk ------------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the stream as an .npz file, which can also be loaded as a posterior."""
        state = {f"{_STATE}{name}": array for name, array in self._state.arrays().items()}
        storage.write_arrays(path, self.posterior.arrays() | state)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threads: int = 1) -> Stream:
        """Read a saved stream from its file, or from the folder of a fit that ``mc2 update`` has updated.

        Raises ValueError if the file is damaged, has been changed or contains no stream.
        """
        path = posterior_file(path)
        arrays = storage.read_arrays(path)
        return cls.from_arrays(arrays, Posterior.from_arrays(arrays, path), path, threads=threads)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], posterior: Posterior, path: str | os.PathLike[str], *, threads: int = 1
    ) -> Stream:
        """Build a stream from the arrays and the ``posterior`` of a saved stream; errors mention ``path``."""
        if "stream" not in posterior.provenance:
            raise ValueError(f"{path} holds a posterior, but no stream to continue")
        stream = cls.__new__(cls)
        try:
            stream.model, stream.engine = _specified(posterior.provenance, threads)
            stream._about = {name: one for name, one in posterior.provenance.items() if name != "stream"}
            stream.taken = _fingerprints_of(posterior)
            stream._kept = _documents_of(posterior, cast(Corpus, posterior.reservoir))
            settings = dict(posterior.provenance["stream"])
            stream.n_documents = whole("documents", settings.pop("documents"), least=0)
            stream.fitted, stream.updates = settings.pop("fitted"), settings.pop("updates")
            stream.passes = whole("passes", settings.pop("passes"))
            own = {name.removeprefix(_STATE): one for name, one in arrays.items() if name.startswith(_STATE)}
            for name in ("total_samples", "batch_size"):
                whole(name, settings[name])
            stream._state = stream._restored(own, RunSettings(**settings))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a saved stream: {error}") from error
        stream._posterior = posterior
        return stream


def _fingerprints_of(posterior: Posterior) -> np.ndarray:
    return np.zeros(0, np.int64) if posterior.fingerprints is None else posterior.fingerprints


def _changes(before: np.ndarray, after: np.ndarray) -> tuple[int, int]:
    """Return the number of elements only in ``after``, and the number of elements only in ``before``."""
    return len(np.setdiff1d(after, before)), len(np.setdiff1d(before, after))


def _count_unseen(table: np.ndarray, columns: np.ndarray, counts: np.ndarray) -> float:
    """Return the sum of the ``counts`` whose ``columns`` have only zeros in ``table`` (columns, n)."""
    used, place = np.unique(columns, return_inverse=True)
    return float(counts[~table[used].any(axis=1)[place]].sum())


def _geometric(prior: float) -> float:
    """Return ln E p - E ln p for a probability p with prior count ``prior`` and no data.

    The terms of the total count are omitted.
    """
    return math.log(prior) - float(digamma(prior))


def _specified(provenance: Mapping[str, Any], threads: int) -> tuple[MC2, SVI]:
    """Return the model and the engine of a fit. Raises ValueError if a stream cannot continue the fit."""
    model, engine = specified_in(provenance, threads)
    if not isinstance(engine, SVI):
        raise ValueError(f"the fit is by {engine.name}; a stream continues a fit by {SVI.name}")
    if not isinstance(model, MC2) or model.content is not None:  # new observations would change the unit of all
        raise ValueError("the fit is of observations; a stream needs documents of words")
    if engine.batch_size is None:
        raise ValueError("batch_size is None; a stream needs mini-batches")
    if engine.n_shards is not None:
        raise ValueError(f"n_shards is {engine.n_shards}; it must be None, because streams do not use Spark")
    return model, engine


def state_of(posterior: Posterior, arrays: Mapping[str, np.ndarray], n_tokens: int) -> Globals:
    """Return the state of a fit, built from the arrays of its checkpoint.

    Raises ValueError if the fit cannot be continued, or if the arrays do not match it.

    ``n_tokens`` is the number of tokens of the fitted documents.
    """
    model, engine = _specified(posterior.provenance, 1)
    kept = _documents_of(posterior, cast(Corpus, posterior.reservoir))
    shape = max(np.size(arrays.get("cluster", ())), 1), posterior.n_words
    settings = engine.resolved(model, shape[0], n_tokens)
    return Globals.restore(model, settings, shape, StackedContexts(kept, model.contexts), arrays)


def _documents_of(posterior: Posterior, corpus: Corpus) -> Corpus:
    """Return the documents of ``corpus`` with the words, contexts and units of the posterior."""
    corpus = matching.in_units(corpus, posterior.families, posterior.units)
    contexts = {name: corpus.contexts[name] for name in posterior.families}
    names, units = posterior.context_names, posterior.units
    found = Corpus(corpus.content, posterior.vocabulary, contexts, context_names=names, units=units)
    found.imported = posterior.imported
    return found
