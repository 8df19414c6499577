"""A fit by SVI that goes on with documents as they come, by the population posterior.

A corpus has an end, a stream has not. Its posterior is that of a *population*: of so many documents, drawn from where
those of the stream come from (McInerney, Ranganath and Blei, "The Population Posterior and Bayesian Modeling on
Streams", NIPS 2015). A mini-batch of B documents stands for the population, as one of a fit stands for its corpus: its
statistics count population / B times, and the globals move towards them at the next rate of the engine's schedule. The
population is a setting, not a count of what came: a larger one makes the posterior narrower, the length of the stream
does not. With the population of a fit, one pass over its documents is an epoch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

from mc2core.base import storage
from mc2core.base.checks import whole
from mc2core.compute.threads import thread_budget
from mc2core.corpus import Corpus
from mc2core.corpus.checks import all_missing
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import posterior_of
from mc2core.inference.registry import specify
from mc2core.inference.svi.engine import SVI
from mc2core.inference.svi.state import Globals, RunSettings
from mc2core.models import MC2
from mc2core.posterior import Posterior

if TYPE_CHECKING:
    from mc2core.inference.running.loop import Fit

# arrays of the state in the file of a stream, beside those of its posterior
_STATE = "stream."


class Stream:
    """A fit by SVI with mini-batches, of its first chain, that goes on with new documents.

    Its posterior is the population posterior (McInerney, Ranganath and Blei 2015), that of as many documents as
    ``population`` says. Documents are taken in the order in which they come, in mini-batches of the fit's size, at the
    rates that follow those of the fit. Clusters and topics can fall out of use, but none are born; with a document
    level none are joined, since that takes all documents at once. The fit itself is not changed.

    Parameters
    ----------
    fit : mc2core.Fit
        By SVI, with or without tables or a document level, with mini-batches (``batch_size`` is not None) and without
        Spark (``n_shards`` is None).
    population : int in [1, inf), optional
        Documents that the posterior is of; as many as were fitted if not given. What the fit counted in its documents
        is scaled to it. It says how sure the posterior is; how fast it follows the stream is for the engine's ``delay``
        and ``forgetting`` to say.
    threads : int in [1, inf), default 1
        Never changes a bit of the result.

    Attributes
    ----------
    model : MC2
    engine : SVI
    n_documents : int
        Documents taken so far, not those of the fit.

    Raises
    ------
    ValueError
        A fit that cannot go on, in one sentence.
    """

    def __init__(self, fit: Fit, *, population: int | None = None, threads: int = 1) -> None:
        state = fit.state
        fitted = len(state.cluster)
        population = fitted if population is None else whole("population", population)
        self.model, self.engine = _pair(fit.provenance, threads)
        self._columns = _one_document(fit.posterior)
        about = fit.posterior.provenance
        self._about = {name: about[name] for name in about if name not in ("corpus", "chains", "stopped_at")}
        self.n_documents = 0
        settings = cast(Globals, state).settings._replace(population=population)
        self._state = self._restored(state.arrays(), settings)
        self._state.n_visited, self._state.evidence = 0, 0.0  # what a stop left of an epoch is over
        if population != fitted:
            self._state.weigh(population / fitted)
            self._state.follow(self._state.cluster[-population:])
        self._posterior: Posterior | None = None

    def _restored(self, arrays: Mapping[str, np.ndarray], settings: RunSettings) -> Globals:
        """The state of a stream from its arrays, which are copied."""
        contexts = StackedContexts(self._columns, self.model.contexts)
        shape = np.size(arrays.get("cluster", ())), self._columns.n_words
        return self.engine.kind(self.model).restore(self.model, settings, shape, contexts, arrays)

    def __repr__(self) -> str:
        return f"Stream({self.n_documents} documents, population {self.population}, {self.posterior!r})"

    @property
    def population(self) -> int:
        """Documents that the posterior is of."""
        return cast(int, self._state.settings.population)

    @property
    def posterior(self) -> Posterior:
        """What is known now.

        ``cluster`` has the latest documents, those of the fit among them, at most as many as the population.
        ``provenance["stream"]`` says how many documents the stream has taken and which settings it follows.
        """
        if self._posterior is None:
            stream = {"documents": self.n_documents, **self._state.settings._asdict()}
            sample = self.engine.sample(self._columns, self._state)
            self._posterior = posterior_of(self.model, self._columns, [sample], self._about | {"stream": stream})
        return self._posterior

    def partial_fit(self, corpus: Corpus) -> Stream:
        """Go on with new documents, in their order.

        They are cut into mini-batches; the last one is smaller where the documents do not fill it. So several calls
        leave the same bits as one where every call but the last has whole mini-batches. After as many documents as the
        population the state is put in order as at the end of an epoch: clusters that are the likeliest one of none of
        the latest, and topics of less than half a token, are left out.

        Parameters
        ----------
        corpus : Corpus
            In the words and contexts of the fit (``Corpus.from_texts(..., like=fit.posterior)``).

        Returns
        -------
        Stream
            This one.

        Raises
        ------
        ValueError
            Other words or contexts than those of the fit: nothing is changed. Or a document that no cluster can hold:
            those of the mini-batches before it were taken, and ``n_documents`` counts them.
        """
        self.posterior.check_corpus(corpus)
        contexts = self.posterior.stacked(corpus)
        state, size = self._state, cast(int, self._state.settings.batch_size)
        known, state.contexts, self._posterior = state.contexts, contexts, None
        try:
            with thread_budget(self.engine.threads) as pool:
                for first in range(0, corpus.n_documents, size):
                    self._visit(corpus, np.arange(first, min(first + size, corpus.n_documents)), pool)
        finally:
            state.contexts = known
        return self

    def _visit(self, corpus: Corpus, rows: np.ndarray, pool: Executor | None) -> None:
        """One mini-batch; its documents become the latest ones."""
        state = self._state
        latest, state.cluster = state.cluster, np.full(corpus.n_documents, -1, np.int32)
        try:
            self.engine.visit(corpus, state, rows, pool)
            latest = np.append(latest, state.cluster[rows])[-self.population :]
        finally:
            state.follow(latest)
        self.n_documents += len(rows)
        if state.n_visited >= self.population:
            self.engine.end_epoch(state, pool)

    # -- disk ------------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one .npz file, whole or not at all: the posterior, and what the stream needs to go on bit for bit.

        It is a saved posterior, too, which ``Posterior.load`` and ``mc2 clusters`` read.
        """
        state = {f"{_STATE}{name}": array for name, array in self._state.arrays().items()}
        storage.write_arrays(path, self.posterior.arrays() | state)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threads: int = 1) -> Stream:
        """Read a saved stream; ValueError for a damaged or changed file, or one without a stream."""
        posterior = Posterior.load(path)
        if "stream" not in posterior.provenance:
            raise ValueError(f"{path} holds a posterior, but no stream to go on with")
        arrays = storage.read_arrays(path)
        stream = cls.__new__(cls)
        try:
            stream.model, stream.engine = _pair(posterior.provenance, threads)
            stream._columns = _one_document(posterior)
            stream._about = {name: one for name, one in posterior.provenance.items() if name != "stream"}
            settings = dict(posterior.provenance["stream"])
            stream.n_documents = whole("documents", settings.pop("documents"), least=0)
            own = {name.removeprefix(_STATE): one for name, one in arrays.items() if name.startswith(_STATE)}
            for name in ("population", "batch_size"):
                whole(name, settings[name])
            stream._state = stream._restored(own, RunSettings(**settings))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a saved stream: {error}") from error
        stream._posterior = posterior
        return stream


def _pair(provenance: Mapping[str, Any], threads: int) -> tuple[MC2, SVI]:
    """Model and engine of a fit; ValueError where it cannot go on as a stream."""
    of_model, of_engine = dict(provenance["model"]), dict(provenance["engine"])
    names = of_model.pop("name"), of_engine.pop("name")
    if names[1] != SVI.name:
        raise ValueError(f"the fit is by {names[1]}; a stream goes on from one by {SVI.name}")
    if of_engine["batch_size"] is None:
        raise ValueError("batch_size is None; a stream needs mini-batches")
    if of_engine["n_shards"] is not None:
        raise ValueError(f"n_shards is {of_engine['n_shards']}; a stream is worked on without Spark: it must be None")
    contexts = of_model.pop("contexts")
    model, engine = specify(*names, of_model | of_engine, contexts, threads)
    return cast(MC2, model), cast(SVI, engine)


def _one_document(posterior: Posterior) -> Corpus:
    """A corpus of one word, with the words, names and units of those that are fitted."""
    sizes = posterior.dimensions | posterior.vector_lengths
    contexts = {name: all_missing(kind, 1, sizes[name]) for name, kind in posterior.context_kinds.items()}
    word = sp.csr_matrix(([1], ([0], [0])), shape=(1, posterior.n_words))
    corpus = Corpus(word, posterior.vocabulary, contexts, context_names=posterior.context_names, units=posterior.units)
    corpus.imported = posterior.imported
    return corpus
