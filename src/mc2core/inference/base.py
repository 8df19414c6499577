"""The interface of inference engines to the loop that runs them."""

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
    """State of a run: everything that the next step needs, and nothing else. ``step`` changes it in place.

    Every state has ``model``, ``cluster`` ((J,) int: the current cluster of each document) and ``progress``, the
    completed share of the current iteration (0 between two iterations).
    """

    model: Any
    cluster: np.ndarray
    progress: float = 0.0

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Return the state as a dict of plain arrays, for a checkpoint. They need not be copies."""


class Engine(Settings, ABC):
    """Base class of inference algorithms. An engine has only settings, no model and no data.

    One call of :meth:`step` is one iteration: a sweep (Gibbs, FastEx) or an epoch (SVI). All random numbers depend on
    (seed, purpose, iteration, document), so a run can be continued from its state with identical results.
    """

    #: name in configuration files and in the registry
    name: ClassVar[str]
    #: kinds of models it can fit, its default model first; :meth:`supports` makes further checks
    models: ClassVar[tuple[type[Model], ...]]
    #: whether a posterior averages over samples of several iterations, or contains only the last state
    keeps_samples: ClassVar[bool]
    #: whether a fit keeps a sample of its documents, to which :class:`mc2core.inference.Stream` adds new ones
    keeps_documents: ClassVar[bool] = False
    #: name of the algorithm, with its source if it is a paper, and of its iterations, for descriptions of a fit
    description: ClassVar[str]
    iteration_name: ClassVar[str] = "sweeps"
    #: sweeps or epochs of a run that names no number of them
    default_iterations: ClassVar[int]
    excluded: ClassVar[tuple[str, ...]] = ("threads",)

    threads: int = 1
    #: default number of chains, see :attr:`default_chains`
    several_chains: ClassVar[int] = 1
    #: number of parts of the corpus that Spark's executors process; None uses only this process
    n_shards: int | None = None

    @property
    def default_chains(self) -> int:
        """Default number of chains of a fit. It is one on Spark, because two chains cannot share the executors."""
        return self.several_chains if self.n_shards is None else 1

    @property
    def can_stream(self) -> bool:
        """Whether :class:`mc2core.inference.Stream` can continue a fit with these settings."""
        return False

    def supports(self, model: Model) -> None:
        """Raise ValueError, with a message of one sentence, if this engine with its settings cannot fit the model.

        Combinations are refused only here; :meth:`init` and :meth:`restore` rely on it.
        """
        if not isinstance(model, self.models):
            able = ", ".join(kind.name for kind in self.models)
            raise ValueError(f"{type(self).__name__} cannot fit {model.name}; it fits {able}")

    @classmethod
    def defaults_for(cls, model: type[Model]) -> dict[str, Any]:
        """Return default settings for a kind of model that differ from :meth:`defaults`."""
        return {}

    def need_memory(self, model: Any, corpus: Corpus, chains: int = 1) -> None:
        """Raise ValueError unless this many chains fit into memory. Engines need not implement it."""

    @abstractmethod
    def init(self, model: Any, corpus: Corpus, seed: int) -> State:
        """Return the starting state. Raises ValueError if the corpus does not fit the settings."""

    @abstractmethod
    def step(self, corpus: Corpus, state: State, seed: int, iteration: int) -> dict[str, float]:
        """Run iteration ``iteration`` (from 1), change ``state`` in place, and return the row of the trace.

        The row has ``clusters`` and ``topics`` (in use), and ``log_joint`` or ``elbo`` (in nats).
        """

    def to_warm(self, model: Any, corpus: Corpus) -> tuple[Engine, Sequence[int]]:
        """Return an engine and iterations that, on a few documents, compile all kernels of a run on ``corpus``."""
        return self, (1, 2)

    def advance(self, corpus: Corpus, state: State, seed: int, iteration: int) -> dict[str, float] | None:
        """Run the next part of iteration ``iteration``. Returns its row of the trace once it is complete, else None.

        A run can be saved, shown and stopped between two parts. Engines with short iterations run them in one part.
        """
        return self.step(corpus, state, seed, iteration)

    @abstractmethod
    def sample(self, corpus: Corpus, state: State) -> Sample:
        """Return the state as a sample for scores. The state does not change."""

    def log_odds_of_clusters(self, state: State) -> float | None:
        """Return by how many nats the clusters of a state are likelier than one cluster; None if this is not known."""
        return None

    @abstractmethod
    def restore(self, model: Any, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> State:
        """Return the state from the result of ``State.arrays``. Raises ValueError if it does not fit the corpus."""

    def truncations(self, model: Any, corpus: Corpus) -> dict[str, int]:
        """Return the truncations of ``clusters`` and ``topics``, if results depend on them; {} otherwise."""
        return {}

    def in_this_process(self) -> Self:
        """Return an equivalent engine that works in this process: the engine itself unless it uses Spark."""
        if self.n_shards is None:
            return self
        alone = copy.copy(self)
        alone.n_shards = None
        return alone


def posterior_of(model: Model, corpus: Corpus, samples: list[Sample], provenance: Mapping[str, Any]) -> Posterior:
    """Return the posterior that consists of ``samples`` of a model on ``corpus``."""
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


#: smallest number of iterations of a run with ``iterations="auto"``
AUTO = "auto"
# how often this number is doubled at most; a limit of time would make results depend on the machine
_DOUBLINGS = 4


def lengths_of(engine: Engine, iterations: Any) -> list[int]:
    """Return the numbers of iterations after which a run may end, ascending: one, unless ``iterations`` is "auto".

    Then they are the default of the engine, and twice, 4, 8 and 16 times as many. Raises ValueError for an engine that
    keeps no samples, or for a number that is not whole.
    """
    if not (isinstance(iterations, str) and iterations == AUTO):
        return [engine.default_iterations if iterations is None else whole("iterations", iterations)]
    if not engine.keeps_samples:
        raise ValueError(f"iterations 'auto' needs an engine that keeps samples, such as gibbs; {engine.name} has none")
    return [engine.default_iterations << doublings for doublings in range(_DOUBLINGS + 1)]


def run_length(engine: Engine, iterations: Any, burn_in: Any, thin: Any) -> tuple[int, int, int]:
    """Return the three numbers as ints. Raises ValueError if they leave no sample.

    ``iterations`` None is the default of the engine, "auto" the first of its lengths (:func:`lengths_of`), and
    ``burn_in`` None is half of ``iterations``.
    """
    iterations = lengths_of(engine, iterations)[0]
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
    """Return the number of samples of a run: one at each multiple of ``thin`` after ``burn_in``."""
    return max(0, iterations // thin - burn_in // thin)
