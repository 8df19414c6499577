"""The contract between an engine and the one loop that runs every engine."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from mc2core.base.checks import whole
from mc2core.base.settings import Settings
from mc2core.corpus import Corpus
from mc2core.models import Model
from mc2core.posterior import Posterior, Sample


class State(ABC):
    """Everything the next step needs, and nothing else; ``step`` changes it in place.

    Every state has ``model``, ``cluster`` ((J,) int: the present cluster of each document) and ``progress``, the share
    of the current iteration that is done (0 between two iterations).
    """

    model: Any
    cluster: np.ndarray
    progress: float = 0.0

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """The state as named plain arrays, for a checkpoint. No copy is needed."""


class Engine(Settings, ABC):
    """An inference algorithm. It has settings only, no model and no data.

    One call of :meth:`step` is one iteration: a sweep (Gibbs, FastEx) or an epoch (SVI). All its random numbers depend
    on (seed, purpose, iteration, document), so the state alone continues a run with the same bits.
    """

    #: name in configuration files and in the registry
    name: ClassVar[str]
    #: the kinds of models it can fit, the one of a fit that names none first; :meth:`supports` refuses what more it
    #: must
    models: ClassVar[tuple[type[Model], ...]]
    #: whether a posterior averages over samples of several iterations, or holds the last state only
    keeps_samples: ClassVar[bool]
    #: sweeps or epochs of a run that names no number of them
    default_iterations: ClassVar[int]
    aside: ClassVar[tuple[str, ...]] = ("threads",)

    threads: int = 1
    #: chains of a fit that names no number of them, see :attr:`default_chains`
    several_chains: ClassVar[int] = 1
    #: parts of the corpus that Spark's executors work on; None is this process alone
    n_shards: int | None = None

    @property
    def default_chains(self) -> int:
        """Chains of a fit that names no number of them; one on Spark, whose executors are no help to a second."""
        return self.several_chains if self.n_shards is None else 1

    def supports(self, model: Model) -> None:
        """ValueError, in one sentence, for a model that this engine with its settings cannot fit.

        The one place where combinations are refused; :meth:`init` and :meth:`restore` take what it lets pass.
        """
        if not isinstance(model, self.models):
            able = ", ".join(kind.name for kind in self.models)
            raise ValueError(f"{type(self).__name__} cannot fit {model.name}; it fits {able}")

    @classmethod
    def defaults_for(cls, model: type[Model]) -> dict[str, Any]:
        """Settings that a kind of model needs, of a fit that names none: other ones than :meth:`defaults` has."""
        return {}

    @abstractmethod
    def init(self, model: Any, corpus: Corpus, seed: int) -> State:
        """Starting state. ValueError where the corpus does not fit the settings."""

    @abstractmethod
    def step(self, corpus: Corpus, state: State, seed: int, iteration: int) -> dict[str, float]:
        """Do iteration ``iteration`` (from 1); change ``state`` in place and return the row of the trace.

        The row has ``clusters`` and ``topics`` (in use) and one of ``log_joint``, ``elbo`` (nats).
        """

    def to_warm(self, model: Any, corpus: Corpus) -> tuple[Engine, Sequence[int]]:
        """An engine and iterations that compile, on a few documents, all kernels of a run on the whole ``corpus``."""
        return self, (1, 2)

    def advance(self, corpus: Corpus, state: State, seed: int, iteration: int) -> dict[str, float] | None:
        """Do the next part of iteration ``iteration``: its row of the trace once it is done, None before.

        A run can be saved, shown and stopped between two parts. Engines whose iterations are short do them in one.
        """
        return self.step(corpus, state, seed, iteration)

    @abstractmethod
    def sample(self, corpus: Corpus, state: State) -> Sample:
        """The state as scores see it; it is not changed."""

    @abstractmethod
    def restore(self, model: Any, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> State:
        """The inverse of ``State.arrays``; ValueError where they do not fit the corpus."""

    def truncations(self, model: Any, corpus: Corpus) -> dict[str, int]:
        """The most ``clusters`` and ``topics`` that a fit can find, where what it finds follows them; {} elsewhere."""
        return {}

    def in_this_process(self) -> Self:
        """The engine that does all of this one's work in this process: itself where it needs no Spark."""
        if self.n_shards is None:
            return self
        alone = copy.copy(self)
        alone.n_shards = None
        return alone


def posterior_of(model: Model, corpus: Corpus, samples: list[Sample], provenance: Mapping[str, Any]) -> Posterior:
    """The posterior of some samples of a model on ``corpus``."""
    contexts = model.cluster_contexts
    return Posterior(
        samples=samples,
        families=dict(contexts),
        dimensions={name: family.dimension(corpus.contexts[name]) for name, family in contexts.items()},
        vocabulary=corpus.vocabulary,
        context_names={name: names for name, names in corpus.context_names.items() if name in contexts},
        units={name: unit for name, unit in corpus.units.items() if name in contexts},
        provenance=dict(provenance),
        imported=corpus.imported,
    )


# -- checks that the constructors share ----------------------------------------------------------------------------


def run_length(engine: Engine, iterations: Any, burn_in: Any, thin: Any) -> tuple[int, int, int]:
    """The three as ints; ValueError where they leave no sample.

    ``iterations`` None is the engine's default, ``burn_in`` None half of ``iterations``.
    """
    iterations = engine.default_iterations if iterations is None else whole("iterations", iterations)
    thin = whole("thin", thin)
    if not engine.keeps_samples and (burn_in is not None or thin != 1):
        name = "thin" if burn_in is None else "burn_in"
        raise ValueError(
            f"{name} needs an engine that keeps samples, such as gibbs; {engine.name} keeps its last state"
        )
    burn_in = iterations // 2 if burn_in is None else whole("burn_in", burn_in, least=0)
    if engine.keeps_samples and n_samples(iterations, burn_in, thin) == 0:
        raise ValueError(
            f"burn_in {burn_in} and thin {thin} leave no sample in {iterations} iterations; "
            "one is kept at each multiple of thin after burn_in"
        )
    return iterations, burn_in, thin


def n_samples(iterations: int, burn_in: int, thin: int) -> int:
    """Samples that a run keeps: one at each multiple of ``thin`` after ``burn_in``, whose place does not hang on it."""
    return max(0, iterations // thin - burn_in // thin)
