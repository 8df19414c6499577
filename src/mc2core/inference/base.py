"""Interface between the inference engines and the loop that runs them."""

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
    """State of a run: exactly the data that the next step needs. :meth:`Engine.step` changes the state in place.

    Attributes
    ----------
    model : Model
        Model of the run.
    cluster : (J,) int
        Current cluster of each document.
    progress : float
        Completed share of the current iteration; 0 between two iterations.
    """

    model: Any
    cluster: np.ndarray
    progress: float = 0.0

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Return the state as a dict of arrays for a checkpoint. The arrays need not be copies."""


class Engine(Settings, ABC):
    """Base class of inference algorithms. An engine has only settings, no model and no data.

    One call of :meth:`step` is one iteration: a sweep (Gibbs, FastEx) or an epoch (SVI). All random numbers depend on
    (seed, purpose, iteration, document), so a run can be continued from its state with identical results.
    """

    #: name of the engine in configuration files and in the registry
    name: ClassVar[str]
    #: classes of models that the engine can fit, default model first; :meth:`supports` makes further checks
    models: ClassVar[tuple[type[Model], ...]]
    #: whether a posterior averages over samples of several iterations (otherwise it contains only the last state)
    keeps_samples: ClassVar[bool]
    #: whether a fit stores a sample of its documents, to which :class:`mc2core.inference.Stream` adds new ones
    keeps_documents: ClassVar[bool] = False
    #: name of the algorithm in descriptions of a fit, with the paper that published it
    description: ClassVar[str]
    #: name of the iterations in descriptions of a fit
    iteration_name: ClassVar[str] = "sweeps"
    #: default number of sweeps or epochs of a run
    default_iterations: ClassVar[int]
    excluded: ClassVar[tuple[str, ...]] = ("threads",)

    threads: int = 1
    #: default number of chains without Spark; see :attr:`default_chains`
    several_chains: ClassVar[int] = 1
    #: number of shards of the corpus that Spark executors process; None if Spark is not used
    n_shards: int | None = None

    @property
    def default_chains(self) -> int:
        """Default number of chains of a fit. On Spark, it is 1, because two chains cannot share the executors."""
        return self.several_chains if self.n_shards is None else 1

    @property
    def can_stream(self) -> bool:
        """Whether :class:`mc2core.inference.Stream` can continue a fit with these settings."""
        return False

    def supports(self, model: Model) -> None:
        """Raise ValueError, with a message of one sentence, if this engine with its settings cannot fit the model.

        Only this method checks combinations of settings; :meth:`init` and :meth:`restore` rely on it.
        """
        if not isinstance(model, self.models):
            able = ", ".join(kind.name for kind in self.models)
            raise ValueError(f"{type(self).__name__} cannot fit {model.name}; it fits {able}")

    @classmethod
    def defaults_for(cls, model: type[Model]) -> dict[str, Any]:
        """Return the default settings for a class of models that differ from :meth:`defaults`."""
        return {}

    def need_memory(self, model: Any, corpus: Corpus, chains: int = 1) -> None:
        """Raise ValueError if this number of chains does not fit into memory. Engines need not override this method."""

    @abstractmethod
    def init(self, model: Any, corpus: Corpus, seed: int) -> State:
        """Return the starting state; raise ValueError if the corpus does not fit the settings."""

    @abstractmethod
    def step(self, corpus: Corpus, state: State, seed: int, iteration: int) -> dict[str, float]:
        """Run iteration ``iteration`` (from 1), change ``state`` in place, and return the row of the trace.

        The row has ``clusters`` and ``topics`` (in use), and ``log_joint`` or ``elbo`` (in nats).
        """

    def to_warm(self, model: Any, corpus: Corpus) -> tuple[Engine, Sequence[int]]:
        """Return an engine and iterations whose run on a few documents compiles all kernels of a run on ``corpus``."""
        return self, (1, 2)

    def advance(self, corpus: Corpus, state: State, seed: int, iteration: int) -> dict[str, float] | None:
        """Run the next part of iteration ``iteration``; return the row of the trace after the last part, else None.

        Between two parts, a run can be saved, displayed and stopped. Short iterations consist of one part.
        """
        return self.step(corpus, state, seed, iteration)

    @abstractmethod
    def sample(self, corpus: Corpus, state: State) -> Sample:
        """Return the state as a posterior sample, without changing the state."""

    def log_odds_of_clusters(self, state: State) -> float | None:
        """Return the log odds in nats of the clusters of a state against one cluster; None if they are not computed."""
        return None

    @abstractmethod
    def restore(self, model: Any, corpus: Corpus, arrays: Mapping[str, np.ndarray]) -> State:
        """Restore the state from the result of ``State.arrays``; raise ValueError if it does not fit the corpus."""

    def truncations(self, model: Any, corpus: Corpus) -> dict[str, int]:
        """Return the truncations of ``clusters`` and ``topics``, or {} if the results do not depend on any."""
        return {}

    def in_this_process(self) -> Self:
        """Return an equivalent engine that does not use Spark; the engine itself if it does not use Spark."""
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


# -- length of a run -----------------------------------------------------------------------------------------------


#: value of ``iterations`` that lets a run choose its number of iterations
AUTO = "auto"
# largest number of doublings of the default length; a time limit would make results depend on the machine
_DOUBLINGS = 4


def lengths_of(engine: Engine, iterations: Any) -> list[int]:
    """Return the numbers of iterations after which a run may end, ascending.

    If ``iterations`` is "auto", they are 1, 2, 4, 8 and 16 times the default of the engine; otherwise, there is only
    one. Raises ValueError if "auto" is used with an engine that keeps no samples, or if a number is not whole.
    """
    if not (isinstance(iterations, str) and iterations == AUTO):
        return [engine.default_iterations if iterations is None else whole("iterations", iterations)]
    if not engine.keeps_samples:
        raise ValueError(f"iterations 'auto' needs an engine that keeps samples, such as gibbs; {engine.name} has none")
    return [engine.default_iterations << doublings for doublings in range(_DOUBLINGS + 1)]


def run_length(engine: Engine, iterations: Any, burn_in: Any, thin: Any) -> tuple[int, int, int]:
    """Return ``iterations``, ``burn_in`` and ``thin`` as ints; raise ValueError if they leave no sample.

    If ``iterations`` is None, the default of the engine is used. If it is "auto", the first length of
    :func:`lengths_of` is used. If ``burn_in`` is None, it is half of ``iterations``.
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
