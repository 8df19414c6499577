"""The loop that runs the iterations of any engine, and records trace, samples and checkpoints."""

from __future__ import annotations

import copy
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from mc2core.base import progress as telling
from mc2core.base import stopping, storage
from mc2core.base.checks import counted, finite, several, shown, whole
from mc2core.base.provenance import environment
from mc2core.compute import streams
from mc2core.compute.kernel_store import store
from mc2core.compute.kernels import compile_seconds
from mc2core.compute.threads import in_blocks, n_cores, thread_budget
from mc2core.corpus import Corpus
from mc2core.corpus.matching import as_stored
from mc2core.families import Family
from mc2core.inference.base import Engine, State, lengths_of, n_samples, posterior_of, run_length
from mc2core.inference.registry import DEFAULT_MODEL, engine_class, engine_for, model_class
from mc2core.inference.running import checkpoint as checkpoints
from mc2core.inference.running.summary import (
    ONE_CLUSTER,
    advice,
    found,
    is_one_cluster,
    still_changing,
    stuck_chains,
    tell_weights,
)
from mc2core.models import Model
from mc2core.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

Callback = Callable[[int, State], Mapping[str, float] | None]

#: settings and array types for which this process has compiled kernels
_warmed: set[tuple[str, ...]] = set()

# seconds between two checkpoints; a killed run loses at most this time and the current part of an iteration
_CHECKPOINT_SECONDS = 60.0
# default number of iterations between two checkpoints
_EVERY = 50


@dataclass(repr=False)
class RunResult:
    """Result of a run: the posterior, the final state, the trace and the provenance.

    Attributes
    ----------
    posterior : Posterior
        Samples of all chains, one chain after another.
    state : State
        State of the first chain after the last iteration.
    trace : DataFrame
        One row per iteration and chain. The columns are chain (from 1), iteration, seconds, and the values that the
        engine reports (clusters, topics, log_joint or elbo, ...). ``seconds`` is the cumulative time of initialisation
        and steps, without compilation and callbacks. For parallel chains, the time is divided evenly among them.
    provenance : dict
        Model, engine, seed, corpus digest, versions, git commit, machine, cores, seconds (elapsed) and cpu_seconds (of
        all threads). The entry ``inferred`` contains the numbers of clusters and topics with their intervals, their
        change over the last iterations of each chain, and the agreement of the chains
        (:func:`mc2core.inference.running.summary.found`).
    corpus : Corpus
        The corpus that was passed to :func:`fit`. It is in its original units, and includes contexts that the model
        does not use.
    snapshots : Posterior or None
        One sample of the first chain per requested snapshot; None if no snapshots were requested.
        ``snapshots.provenance["snapshot_times"]`` contains the iteration (with fraction) and the seconds of each
        snapshot.
    """

    posterior: Posterior
    corpus: Corpus
    state: State = None  # type: ignore[assignment]
    trace: pd.DataFrame = None  # type: ignore[assignment]
    provenance: dict[str, Any] = field(default_factory=dict)
    snapshots: Posterior | None = None

    def __repr__(self) -> str:
        length = "" if self.trace is None else f"{length_of(self.trace)}, "
        return f"{type(self).__name__}({length}{self.posterior!r})"


def length_of(trace: pd.DataFrame) -> str:
    """Return the length of a run as a phrase, such as "60 iterations" or "60 iterations in 2 chains"."""
    chains = trace["chain"].nunique() if len(trace) else 1
    of_each = counted(len(trace) // chains, "iterations")
    return of_each + (f" in {chains} chains" if chains > 1 else "")


@dataclass
class _Chain:
    """A running chain.

    Attributes
    ----------
    state : State
        Current state.
    done : Checkpoint
        Record of the completed iterations. Its ``state`` is set when the checkpoint is written.
    ahead : list of float
        Iterations of the remaining snapshots, ascending.
    burn_in : int, optional
        Burn-in that the user has set.
    path : path, optional
        File of the checkpoint.
    saved : float
        ``time.perf_counter`` at the last checkpoint.
    """

    corpus: Corpus
    model: Model
    engine: Engine
    state: State
    done: checkpoints.Checkpoint
    ahead: list[float]
    burn_in: int | None
    path: str | os.PathLike[str] | None
    saved: float

    @property
    def now(self) -> float:
        """Number of completed iterations, plus the completed fraction of the current one."""
        return self.done.iteration + self.state.progress

    def advance(self) -> dict[str, float] | None:
        """Run the next part of an iteration.

        Returns the report of the engine when the iteration is complete, otherwise None.
        """
        return self.engine.advance(self.corpus, self.state, self.done.run["seed"], self.done.iteration + 1)

    def note(self, report: Mapping[str, float], callback: Callback | None) -> Exception | None:
        """Record a completed iteration: add a row to the trace, and a sample if the thinning interval has passed.

        Returns the exception that the callback has raised, or None.
        """
        done = self.done
        done.iteration = iteration = done.iteration + 1
        done.trace.append({"iteration": iteration, "seconds": done.seconds, "tokens": self.corpus.n_tokens, **report})
        if self.engine.keeps_samples:
            self.drop()
            if len(done.samples) < n_samples(iteration, done.run["burn_in"], done.run["thin"]):
                done.samples.append(self.engine.sample(self.corpus, self.state))
        try:
            more = dict(callback(iteration, self.state) or {}) if callback is not None else {}
            done.trace[-1].update({name: float(value) for name, value in more.items()})
        except Exception as error:  # any exception of the callback must leave the fit so far intact
            return error
        return None

    def drop(self) -> None:
        """Remove the samples of the burn-in.

        If no burn-in has been set, the samples of the first half of the completed iterations are removed. A longer run
        would not use them either, because its burn-in would be longer.
        """
        done, named = self.done, self.burn_in
        is_within = named is not None and n_samples(done.iteration, named, done.run["thin"]) == 0
        done.drop(done.iteration // 2 if named is None or (is_within and done.samples) else named)

    def show(self) -> None:
        """Store a snapshot if the chain has reached the iteration of the next one."""
        now = self.now
        if self.ahead and self.ahead[0] <= now:
            self.done.snapshots.append(self.engine.sample(self.corpus, self.state))
            self.done.snapshot_times.append({"iteration": now, "seconds": self.done.seconds})
            self.ahead = [moment for moment in self.ahead if moment > now]

    def save(self) -> None:
        """Write a checkpoint, if the run has checkpoints."""
        if self.path is not None:
            self.done.state = self.state.arrays()
            checkpoints.write(self.path, self.done)
        self.saved = time.perf_counter()


def asked_for(
    model: Model, engine: Engine, corpus: Corpus, seed: int, burn_in: int, thin: int, snapshots: Sequence[float]
) -> dict[str, Any]:
    """Return the values that must not change when a chain is resumed: settings, seed and corpus."""
    parts: dict[str, Model | Engine] = {"model": model, "engine": engine}
    asked: dict[str, Any] = {part: {"name": one.name} | one.settings() for part, one in parts.items()}
    asked |= {"seed": seed, "corpus": corpus.digest, "names": corpus.names_digest}
    if engine.keeps_samples:
        asked |= {"burn_in": burn_in, "thin": thin}
    if snapshots:
        asked |= {"snapshots": snapshots}
    return asked


def _stored(
    path: str | os.PathLike[str] | None, engine: Engine, asked: Mapping[str, Any], corpus: Corpus, iterations: int
) -> checkpoints.Checkpoint | None:
    """Return the stored checkpoint of this run, or None if there is none."""
    if path is None:
        return None
    sizes = {"J": corpus.n_documents, "V": corpus.n_words}
    stored = checkpoints.read(path, asked, sizes)
    if stored is None:
        return None
    if stored.iteration > iterations:
        raise ValueError(
            f"{path} is at iteration {stored.iteration}, after the requested {iterations}; "
            f"request at least {stored.iteration}, or write elsewhere"
        )
    if engine.keeps_samples and stored.lacks(asked["burn_in"]):
        first, last = asked["burn_in"] + 1, stored.begins_after
        raise ValueError(
            f"{path} has no samples of iterations {first} to {last}, which a burn-in of {first - 1} needs; "
            f"give a burn-in of at least {last} (and more iterations), or write elsewhere"
        )
    return stored


def _begin(
    corpus: Corpus,
    model: Model,
    engine: Engine,
    asked: dict[str, Any],
    stored: checkpoints.Checkpoint | None,
    burn_in: int | None,
    path: str | os.PathLike[str] | None,
) -> _Chain:
    """Initialise a chain, or resume it from its checkpoint ``stored``."""
    ahead = asked.get("snapshots", [])
    if stored is None:
        with telling.work(f"{engine.name}, start"):
            state = engine.init(model, corpus, asked["seed"])
        done = checkpoints.Checkpoint(asked, 0, 0.0, state={})
    else:
        try:
            state, done = engine.restore(model, corpus, stored.state), stored
        except ValueError as error:
            raise ValueError(f"{path} cannot be resumed: {error}; remove it to start again") from error
    chain = _Chain(corpus, model, engine, state, done, ahead, burn_in, path, time.perf_counter())
    if engine.keeps_samples:
        chain.drop()
    if done.snapshot_times:
        chain.ahead = [moment for moment in ahead if moment > chain.now]
    return chain


def seeds_of(seed: int, chains: int) -> list[int]:
    """Return a seed per chain. The first chain has the seed of the fit, so it equals a fit with one chain."""
    return [seed, *(int(streams.key(seed, "chain", number) >> np.uint64(33)) for number in range(1, chains))]


def checkpoints_of(path: str | os.PathLike[str], chains: int) -> list[Path]:
    """Return the checkpoint file of each chain: ``path`` for the first chain, then NAME.chain2.npz and so on."""
    path = Path(path)
    more = (path.with_name(f"{path.stem}.chain{number}{path.suffix}") for number in range(2, chains + 1))
    return [path, *more]


@contextmanager
def _side_by_side(engine: Engine, chains: int, threads: int) -> Iterator[tuple[Executor | None, Engine]]:
    """Yield a thread pool for parallel chains (or None), and the engine with its number of threads per chain."""
    together = min(threads, chains) if engine.in_this_process() is engine else 1
    if together == 1:
        yield None, engine
        return
    one = copy.copy(engine)
    one.threads = max(1, engine.threads // together)
    with thread_budget(together) as pool:
        yield pool, one


def _timed(work: Callable[[int], Any], n: int, pool: Executor | None) -> tuple[list[Any], float, float]:
    """Run ``work(number)`` for n parallel chains; return the results, the elapsed seconds and the processor seconds."""
    before, cpu_before = time.perf_counter(), time.process_time()
    results = in_blocks(pool, lambda first, last: work(first), n, 1)
    return results, time.perf_counter() - before, time.process_time() - cpu_before


def fit(
    corpus: Corpus,
    model: Model | None = None,
    engine: Engine | None = None,
    *,
    iterations: int | Literal["auto"] | None = None,
    seed: int = 0,
    chains: int | None = 1,
    burn_in: int | None = None,
    thin: int = 1,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = _EVERY,
    trace: str | os.PathLike[str] | None = None,
    snapshots: Sequence[float] = (),
    progress: bool | None = None,
    on_stop: Callable[[RunResult], None] | None = None,
) -> RunResult:
    """Fit a model to a corpus.

    Parameters
    ----------
    corpus : Corpus
        Documents to fit. Numeric contexts are standardised internally; results and new documents are in the original
        unit.
    model : Model, optional
        The model. The default is ``MC2()``, which has a document level and uses no contexts except embeddings.
    engine : Engine, optional
        The inference engine. The default is ``Gibbs()`` or, if ``Gibbs()`` does not support the model, the default
        engine of the model.
    iterations : int or "auto", optional
        Number of sweeps (Gibbs, FastEx) or epochs (SVI), counted from the start of the run. The default is 60 sweeps or
        10 epochs. With "auto", a sampler runs 60, 120, 240, 480 or 960 sweeps: it ends when log joint, clusters and
        topics are stable in all chains (:func:`mc2core.inference.running.summary.still_changing`), or after 960.
    seed : int
        Seed of the random numbers. The same corpus, settings and seed give identical results, bit for bit, for any
        number of threads and after a resume.
    chains : int
        Number of independent chains. Their samples form one posterior, and their agreement shows how certain the
        clusters are (:meth:`mc2core.Posterior.between_chains`). The first chain equals a fit with one chain. By
        default, :func:`mc2core.fit` runs two chains in parallel on the available cores. For SVI and on Spark, the
        default is one chain.
    burn_in : int, optional
        Number of iterations before the first sample. By default, the first half of the completed iterations is
        discarded, so that a run that is stopped early has samples too. ``burn_in`` and ``thin`` are not allowed for
        engines that do not sample.
    thin : int
        Interval between samples: after the burn-in, every thin-th iteration gives a sample.
    callback : function, optional
        Function that is called with (iteration, state) after each step of each chain. It must not change the state. It
        may return a dict of numbers, which become columns of the trace. Its running time is not counted. If it raises
        an exception, the run stops after this iteration: a warning names the exception, and the fit so far is
        returned. To stop a run early without a traceback, raise ``StopIteration``.
    checkpoint : path, optional
        File from which the run can be resumed, or continued with more iterations. The results are the same as without
        an interruption. If the file exists, the run starts from it. It is written every ``checkpoint_every``
        iterations, about every minute, at the end, and when the process receives SIGINT or SIGTERM. Further chains use
        NAME.chain2.npz and so on.
    checkpoint_every : int
        Number of iterations between two checkpoints.
    trace : path, optional
        File to which the trace is written, as tab-separated values.
    snapshots : numbers from 0 to ``iterations``, optional
        Iterations at which a sample of the first chain is stored, for example to plot the course of the run.
    progress : bool, optional
        Whether to show progress. By default, it is shown as a bar in a terminal or notebook, and as lines in the log
        elsewhere.
    on_stop : function, optional
        Function that is called with the fit so far if a signal stops the run.

    Returns
    -------
    Fit
        The posterior and the documents, with tables and plots (:class:`mc2core.Fit`). If the run was stopped early,
        ``provenance["stopped_at"]`` is the number of the last iteration.

    Raises
    ------
    ValueError
        If an argument is invalid, or if the checkpoint belongs to another run.
    KeyboardInterrupt, SystemExit
        If SIGINT or SIGTERM (exit code 143) stops the run. Before the run stops, the checkpoint is written, unless the
        run is still in its start. A second signal stops the run at once.

    See Also
    --------
    mc2core.models.MC2 : the default model.
    mc2core.inference.Gibbs : the default engine.
    mc2core.sklearn.MC2Clusterer : an estimator of scikit-learn that runs this function.

    Examples
    --------
    >>> import mc2core
    >>> from mc2core.models import MC2
    >>> texts = ["apple tree leaf", "leaf tree apple", "iron nail forge", "forge iron nail"]
    >>> corpus = mc2core.Corpus.from_texts(texts, contexts={"year": [1990, 1991, 2001, 2002]})
    >>> fit = mc2core.fit(corpus, MC2(contexts=["year"]), iterations=4, seed=0)
    >>> fit.posterior.cluster.shape
    (4,)
    """
    if not isinstance(corpus, Corpus):
        made = "mc2core.Corpus(matrix), Corpus.from_texts(texts) or Corpus.from_dataframe(frame, text=column)"
        raise ValueError(f"corpus is {type(corpus).__name__}; a Corpus is needed: {made}")
    if corpus.content.nnz == 0 and not corpus.contexts:
        raise ValueError("the corpus is empty: no document has a word and there is no context")
    model, engine = _specified(model, engine)
    model = model.for_corpus(corpus)
    engine.supports(model)
    tell_unused(corpus, model.contexts)
    # unused contexts are removed, except from a corpus without words, which could not be fitted without contexts
    given = corpus
    if corpus.n_tokens and set(corpus.contexts) > set(model.contexts):
        corpus = corpus.with_contexts({name: corpus.contexts[name] for name in model.contexts})
    corpus = standardise(corpus, model.contexts)
    tell_weights(corpus, model.cluster_contexts)
    is_named = burn_in is not None
    lengths = lengths_of(engine, iterations)
    least, burn_in, thin = run_length(engine, iterations, burn_in, thin)
    threads = engine.threads if chains is not None else max(engine.threads, min(n_cores(), engine.default_chains))
    chains = engine.default_chains if chains is None else whole("chains", chains)
    engine.need_memory(model, corpus, chains)
    checkpoint_every = whole("checkpoint_every", checkpoint_every)
    if checkpoint is None and checkpoint_every != _EVERY:
        raise ValueError("checkpoint_every needs checkpoint, the path of the file")
    seed = whole("seed", seed, least=0)
    if not (callback is None or callable(callback)):
        raise ValueError(f"callback is {shown(callback)}; a function of the iteration and the state is needed")
    ahead = _moments(snapshots, least)
    if len(lengths) > 1 and not is_named:
        # the final length is unknown; until then, each chain drops the first half of its completed iterations
        burn_in = lengths[-1] // 2
    paths = [None] * chains if checkpoint is None else checkpoints_of(checkpoint, chains)
    asked, stored = [], []
    for number, (path, own_seed) in enumerate(zip(paths, seeds_of(seed, chains), strict=True)):
        asked.append(asked_for(model, engine, corpus, own_seed, burn_in, thin, [] if number else ahead))
        stored.append(_stored(path, engine, asked[-1], corpus, lengths[-1]))
    iterations = _goal([one for one in stored if one is not None], lengths)
    _tell_resumed(paths, stored, iterations)
    named = burn_in if is_named else None
    with stopping.install(), telling.showing(progress), _side_by_side(engine, chains, threads) as (pool, own):
        with stopping.defer():
            is_done = all(one is not None and one.iteration == iterations for one in stored)
            compiled = 0.0 if is_done else _warm(model, engine, corpus)

            def begin(number: int) -> _Chain:
                return _begin(corpus, model, own, asked[number], stored[number], named, paths[number])

            runs, seconds, cpu_seconds = _timed(begin, chains, pool)
            new = [run for run, one in zip(runs, stored, strict=True) if one is None]
            _share(new, seconds, cpu_seconds)
        return _iterate(runs, pool, engine, given, lengths, compiled, callback, checkpoint_every, trace, on_stop)


def _moments(snapshots: Any, iterations: int) -> list[float]:
    """Return the iterations of snapshots in ascending order.

    Raises ValueError if a snapshot is later than the last iteration.
    """
    ahead = sorted(finite("snapshots", moment) for moment in several("snapshots", snapshots))
    if ahead and not 0 <= ahead[0] <= ahead[-1] <= iterations:
        raise ValueError(f"snapshots run from {ahead[0]:g} to {ahead[-1]:g}; they must lie within 0..{iterations}")
    return ahead


def _tell_resumed(paths: Sequence[Any], stored: Sequence[checkpoints.Checkpoint | None], iterations: int) -> None:
    """Log the iteration from which each chain with a checkpoint is resumed."""
    for number, (path, one) in enumerate(zip(paths, stored, strict=True)):
        if one is not None and one.seconds > 0.0:  # otherwise, the chain has not run yet
            rest = "nothing is left to do" if one.iteration == iterations else "resuming from there"
            whose = f"chain {number + 1}: " if len(paths) > 1 else ""
            logger.info("%s%s is at iteration %d of %d: %s", whose, path, one.iteration, iterations, rest)


def _goal(done: Sequence[checkpoints.Checkpoint], lengths: Sequence[int]) -> int:
    """Return the iteration at which the run ends next: the first of ``lengths`` (ascending) that is not exceeded.

    If all chains have reached this length and their traces still change, the following length is returned.
    """
    least = min((one.iteration for one in done), default=0)
    ahead = [length for length in lengths if length >= least]
    is_there = all(one.iteration == ahead[0] for one in done)
    return ahead[1] if len(ahead) > 1 and is_there and still_changing([one.trace for one in done]) else ahead[0]


def _share(chains: Sequence[_Chain], seconds: float, cpu_seconds: float) -> None:
    """Divide the elapsed and processor seconds evenly among the chains, and add them to their records."""
    for chain in chains:
        chain.done.seconds += seconds / len(chains)
        chain.done.cpu_seconds += cpu_seconds / len(chains)


def _specified(model: Model | None, engine: Engine | None) -> tuple[Model, Engine]:
    """Return the model and the engine, where None is replaced by the default.

    Raises ValueError if an argument has the wrong type.
    """
    if not (model is None or isinstance(model, Model)):
        raise ValueError(f"model is {shown(model)}; a model is needed, such as mc2core.models.MC2()")
    if not (engine is None or isinstance(engine, Engine)):
        raise ValueError(f"engine is {shown(engine)}; an engine is needed, such as mc2core.inference.Gibbs()")
    if engine is None:
        fitted = type(model) if model else model_class(DEFAULT_MODEL)
        kind = engine_class(engine_for(fitted))
        engine = kind(**kind.defaults_for(fitted))
    return model or engine.models[0](), engine


def _iterate(
    chains: list[_Chain],
    pool: Executor | None,
    engine: Engine,
    given: Corpus,
    lengths: Sequence[int],
    compiled: float,
    callback: Callback | None,
    checkpoint_every: int,
    trace: str | os.PathLike[str] | None,
    on_stop: Callable[[RunResult], None] | None,
) -> RunResult:
    """Run the remaining iterations of all chains. Chains with the fewest completed iterations run first.

    ``given`` is the corpus of the user, whereas the corpora of chains contain only the contexts that the model uses.
    ``lengths`` contains the numbers of iterations after which the run may end, ascending. Other arguments are as in
    :func:`fit`.
    """
    least, failed, done = min(chain.done.iteration for chain in chains), None, [chain.done for chain in chains]
    iterations = _goal(done, lengths)
    all_done = sum(chain.done.iteration for chain in chains)
    with (
        stopping.flush() as stop,
        _trace_file(trace, _rows(chains, 0, least)) as write_row,
        telling.work(engine.name, iterations * len(chains), "iterations", all_done) as bar,
    ):
        for chain in chains:
            chain.show()
        while least < iterations:
            behind = [chain for chain in chains if chain.done.iteration == least]
            reports, seconds, cpu_seconds = _timed(lambda number: behind[number].advance(), len(behind), pool)  # noqa: B023
            _share(behind, seconds, cpu_seconds)
            for chain, report in zip(behind, reports, strict=True):
                if report is not None:
                    failed = chain.note(report, None if failed else callback) or failed
                    bar.advance(1, report)
                chain.show()
            before, least = least, min(chain.done.iteration for chain in chains)
            for row in _rows(chains, before, least):
                write_row(row)
            # read the signal only once: if it arrived between two reads, the run would stop without a checkpoint
            is_asked_to_stop = bool(stop or failed)
            for chain, report in zip(behind, reports, strict=True):
                iteration = chain.done.iteration
                is_due = report is not None and (iteration % checkpoint_every == 0 or iteration == iterations)
                if is_due or is_asked_to_stop or time.perf_counter() - chain.saved > _CHECKPOINT_SECONDS:
                    chain.save()
            now = min(chain.now for chain in chains)
            if failed:
                where = None if isinstance(failed, StopIteration) else failed
                told = "the callback raised %r after iteration %.4g of %d; the fit so far is returned"
                logger.warning(told, failed, now, iterations, exc_info=where)
                if not stop:
                    break
            if is_asked_to_stop and least < iterations:
                if on_stop is not None:
                    on_stop(_result(chains, engine, given, iterations, compiled))
                logger.warning("stopped by signal %d after iteration %.4g of %d", stop[0], now, iterations)
                stopping.stop(stop[0])
            if least == iterations and iterations < (iterations := _goal(done, lengths)):
                logger.info("not stable after %d iterations: continuing to %d", least, iterations)
                bar.total = iterations * len(chains)
        return _result(chains, engine, given, iterations, compiled)


def _rows(chains: Sequence[_Chain], first: int, last: int) -> list[dict[str, float]]:
    """Return the rows of the trace for iterations first + 1..last, sorted by iteration and chain."""
    return [
        {"chain": number, **chain.done.trace[i]} for i in range(first, last) for number, chain in enumerate(chains, 1)
    ]


def _result(chains: Sequence[_Chain], engine: Engine, given: Corpus, iterations: int, compiled: float) -> RunResult:
    """Return the result of a complete or stopped run; a chain without samples contributes its current state."""
    import pandas as pd  # takes a third of the time to import mc2core

    first = chains[0]
    model, corpus, done = first.model, first.corpus, first.done
    samples = [
        (engine.keeps_samples and chain.done.samples) or [engine.sample(corpus, chain.state)] for chain in chains
    ]
    made_by = {name: value for name, value in environment().items() if name in ("versions", "git_commit")}
    provenance = done.run | {"iterations": iterations} | made_by
    least = min(chain.done.iteration for chain in chains)
    if least < iterations:
        provenance["stopped_at"] = min(chain.now for chain in chains)
    traces = [chain.done.trace for chain in chains]
    of_chains: dict[str, Any] = {"chains": [len(part) for part in samples]} if len(chains) > 1 else {}
    if stuck := stuck_chains(traces):
        of_chains["stuck"] = stuck
    odds = [engine.log_odds_of_clusters(one.state) for number, one in enumerate(chains) if number not in stuck]
    if known := [one for one in odds if one is not None]:
        of_chains["log_odds_of_clusters"] = sum(known)
    posterior = posterior_of(model, corpus, [one for part in samples for one in part], provenance | of_chains)
    timing = {name: sum(getattr(chain.done, name) for chain in chains) for name in ("seconds", "cpu_seconds")}
    timing |= {"compile_seconds": compiled, "threads": engine.threads}
    shown = None
    if done.snapshots:
        about = provenance | timing | {"snapshot_times": done.snapshot_times}
        shown = posterior_of(model, corpus, done.snapshots, about)
    numbers = found(posterior, traces, model.reported, engine.truncations(model, corpus))
    numbers["warnings"] = advice(posterior, corpus)
    if is_one_cluster(numbers):
        logger.info(ONE_CLUSTER)
    about = posterior.provenance | timing | {"inferred": numbers} | environment()
    return RunResult(posterior, given, first.state, pd.DataFrame(_rows(chains, 0, least)), about, shown)


def _warm(model: Model, engine: Engine, corpus: Corpus) -> float:
    """Compile all kernels of the run by a tiny fit of a few documents; return the seconds of compilation.

    Nothing is compiled if this process has already run a fit with the same settings.
    """
    engine, lengths = engine.in_this_process(), corpus.document_lengths
    iterations: Sequence[int] = ()
    with suppress(ValueError):  # the run itself reports this error, with the correct number of documents
        engine, iterations = engine.to_warm(model, corpus)
    kinds = *(f"{type(one).__qualname__}{one.settings()}" for one in (model, engine)), *_types(corpus)
    if kinds in _warmed:
        return 0.0
    few = np.sort(np.argsort(-lengths, kind="stable")[: min(3, corpus.n_documents)])
    part = as_stored(corpus.subset(few), corpus)
    loading = telling.work(f"{engine.name}, preparing kernels")
    with compile_seconds() as seconds, store.taking_turns(engine.name), loading, suppress(ValueError):
        state = engine.init(model, part, seed=0)
        for iteration in iterations:
            engine.step(part, state, 0, iteration)
        engine.sample(part, engine.restore(model, part, state.arrays()))
        _warmed.add(kinds)
    return sum(seconds)


def _types(corpus: Corpus) -> list[str]:
    """Return the type and writability of each array of the corpus, on which the compiled kernels depend."""
    parts = [
        (one.indptr, one.indices, one.data) if sp.issparse(one) else (one,)
        for one in (corpus.content, *corpus.contexts.values())
    ]
    return [f"{array.dtype}{array.flags.writeable}" for arrays in parts for array in arrays]


@contextmanager
def _trace_file(path: Any, rows: list[dict[str, float]]) -> Iterator[Callable[[dict[str, float]], None]]:
    """Write the existing rows of the trace to a file, and yield a function that appends a row to the file."""
    if path is None:
        yield lambda row: None
        return

    def line(row: dict[str, float]) -> str:
        return "\t".join(f"{value:.10g}" for value in row.values()) + "\n"

    with storage.replacing(path) as stream:
        for i, row in enumerate(rows):
            stream.write(("\t".join(row) + "\n" if i == 0 else "") + line(row))
    with Path(path).open("a", encoding="utf-8") as stream:

        def append(row: dict[str, float]) -> None:
            with storage.naming(path):
                if stream.tell() == 0:
                    stream.write("\t".join(row) + "\n")
                stream.write(line(row))
                stream.flush()

        yield append


def tell_unused(corpus: Corpus, used: Collection[str]) -> None:
    """Log a warning if the corpus has contexts that the model does not use; ``used`` are the contexts of the model."""
    if ignored := sorted(set(corpus.contexts) - set(used)):
        logger.warning("contexts of the corpus that this fit does not use: %s", ", ".join(ignored))


def standardise(corpus: Corpus, families: Mapping[str, Family]) -> Corpus:
    """Standardise the contexts with Gaussian ``families``, unless the corpus has already standardised them."""
    for name, family in families.items():
        if family.is_standardised and name not in corpus.units and corpus.context_kinds[name] != "counts":
            corpus = corpus.standardised(name)
    return corpus
