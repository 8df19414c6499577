"""Updates of fits as files with new documents: ``mc2 update``.

A fit by SVI continues as a stream (:mod:`mc2core.inference.svi.stream`); the likelihood of new documents before the
update is reported. A Gibbs chain continues over all documents, old and new.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from mc2core.base import stopping, storage
from mc2core.base.checks import counted
from mc2core.base.progress import showing, work
from mc2core.base.provenance import environment
from mc2core.compute import streams
from mc2core.corpus import Corpus, alignment
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.fingerprints import fingerprints_of
from mc2core.inference.registry import specified_in
from mc2core.inference.running import checkpoint as checkpoints
from mc2core.inference.running.drift import drift
from mc2core.inference.running.files import fit_corpus
from mc2core.inference.running.loop import asked_for, checkpoints_of, seeds_of, tell_unused
from mc2core.posterior import Posterior
from mc2core.posterior.posterior import POSTERIOR, posterior_file

if TYPE_CHECKING:
    from mc2core.inference.svi.globals import Globals
    from mc2core.inference.svi.stream import Stream

logger = logging.getLogger(__name__)
# no more work than of so many seconds is lost when an update is killed
_CHECKPOINT_SECONDS = 60.0
# numbers of a visit that an update adds up
_COUNTED = (
    *("documents", "tokens", "in_small"),
    *("clusters_born", "clusters_gone", "topics_born", "topics_gone"),
)
_ELSEWHERE = "name another folder, or remove it"
_OWN_CORPUS = "a fit by gibbs goes on with its own corpus, to which mc2 import --append has added documents"


class _FitFile(NamedTuple):
    """A posterior's file, read and verified once."""

    path: Path
    arrays: dict[str, np.ndarray]
    digest: str
    posterior: Posterior
    stamp: tuple[int, int, int]  # of the file, when it was read

    @classmethod
    def read(cls, path: Path) -> _FitFile:
        """Read the file. Raises ValueError if it is missing, damaged or of another kind."""
        stamp = _stamp(path)
        arrays, digest = storage.read_signed(path)
        return cls(path, arrays, digest, Posterior.from_arrays(arrays, path), stamp)

    def latest(self) -> _FitFile:
        """Return this file, or the current one if it was replaced since."""
        return self if _stamp(self.path) == self.stamp else self.read(self.path)

    def stream(self, total_samples: int | None = None, threads: int = 1) -> Stream:
        """Return the stream of an update, or a new one from a fit. Raises ValueError if it cannot be continued."""
        from mc2core.inference.svi.stream import Stream, state_of

        posterior, checkpoint = self.posterior, self.path.parent / "checkpoint.npz"
        if "stream" in posterior.provenance:
            stream = Stream.from_arrays(self.arrays, posterior, self.path, threads=threads)
            if total_samples not in (None, stream.total_samples):
                raise ValueError(
                    f"total_samples is {total_samples}, but that of {self.path} is {stream.total_samples}; it stays"
                )
            return stream
        stored = _checkpoint(checkpoint, posterior.provenance)
        trace = pd.DataFrame(stored.trace)
        if trace.empty:
            raise ValueError(f"{checkpoint} has not ended an epoch; mc2 fit goes on with it")
        if posterior.kept is None:
            raise ValueError(f"{self.path} has none of the documents that were fitted, which mc2 fit keeps there")
        state = state_of(posterior, stored.state, int(trace["tokens"].iloc[-1]))
        return Stream(_Saved(posterior, state, trace, posterior.kept), total_samples=total_samples, threads=threads)


def _stamp(path: Path) -> tuple[int, int, int]:
    """What changes where a file is replaced."""
    found = path.stat() if path.is_file() else None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found else (0, 0, 0)


class _Saved(NamedTuple):
    """A fit, as far as a stream goes on from it; ``corpus`` are the documents that were kept."""

    posterior: Posterior
    state: Globals
    trace: pd.DataFrame
    corpus: Corpus


def update_fit(
    fit: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    total_samples: int | None = None,
    columns: Mapping[str, Any] | None = None,
    new_columns: int = 1,
    iterations: int | None = None,
    threads: int = 1,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Continue a fit with new documents, and return the provenance of the result.

    SVI processes the documents ``new`` in mini-batches, in their order; ``posterior.npz`` and ``provenance.json`` in
    ``out`` are replaced at the end. Gibbs sweeps over all documents, so ``new`` must contain the fitted documents
    first, followed by the new ones; ``out`` must be another folder, which gets the same files as by ``mc2 fit``.

    If a killed update is called again, it is resumed with identical results. A completed update does nothing.

    Parameters
    ----------
    fit : folder of ``mc2 fit`` or of an update, or ``posterior.npz`` in it
    new : folder of a corpus, or what ``mc2 import`` reads, in the form of the documents of the fit
    out : folder; by default that of the fit
    total_samples : as in :class:`mc2core.inference.Stream`, for the first update by SVI
    columns : where a file holds words and contexts, if not where those of the fit were: "text", "bag", "counts",
        "contexts" and "id" of :func:`mc2core.corpus.readers.reading.read_own`, and the file of its "embeddings"
    new_columns : smallest number of documents in which a new word or value must occur to get a column
    iterations : number of sweeps by Gibbs; by default as many as in the fit
    threads : the result does not depend on their number

    Raises
    ------
    ValueError
        If the fit cannot be continued, if documents were already used, or if ``out`` has files of another update.
    """
    path, new, columns = posterior_file(fit), Path(new), dict(columns or {})
    file = _FitFile.read(path)
    posterior = file.posterior
    if path.name != POSTERIOR:
        raise ValueError(f"{path} is not {POSTERIOR} in the folder of a fit, beside which its other files are")
    fit = path.parent
    out = fit if out is None else Path(out)
    if columns and _is_corpus(new):
        raise ValueError(f"{next(iter(columns))!r} has no meaning for {new}, which is a corpus; it is for a file")
    for name in ("seed", "iterations"):
        if name not in posterior.provenance:
            raise ValueError(f"{path} does not say the {name} of its fit, which cannot go on")
    engine = posterior.provenance.get("engine", {}).get("name")
    if engine == "gibbs":
        if total_samples is not None:
            raise ValueError(f"total_samples is {total_samples}; a fit by gibbs is of the documents that it has")
        return _continue_chains(fit, new, out, file, new_columns, iterations, threads, progress)
    if engine != "svi":
        raise ValueError(f"the fit is by {engine}, which cannot go on; fits by svi and gibbs can")
    if iterations is not None:
        raise ValueError(f"iterations is {iterations}; a fit by svi takes each new document once")
    with stopping.install(), storage.only_one(out / POSTERIOR, "another fit"), showing(progress):
        return _go_on(file.latest(), new, out, total_samples, columns, new_columns, threads)


# -- by SVI --------------------------------------------------------------------------------------------------------
def _go_on(
    file: _FitFile, new: Path, out: Path, total_samples: int | None, columns: Mapping[str, Any], new_columns: int,
    threads: int,
) -> dict[str, Any]:  # fmt: skip
    """The update of a stream, from the start or from where it was stopped."""
    from mc2core.inference.svi.stream import Stream

    path, part = out / POSTERIOR, out / "update.npz"
    source: dict[str, Any] = {"from": file.digest, "documents_of": _identity(new), "columns": columns}
    is_in_place = out == file.path.parent
    if path.is_file():
        known = file if is_in_place else _FitFile.read(path)
        updates = known.posterior.provenance.get("stream", {}).get("updates")
        if updates and _is_of(updates[-1], source, is_in_place):
            logger.info("%s has these documents already: nothing is left to do", path)
            return _leave(out, known.stream(threads=threads))
    if out.resolve() != file.path.parent.resolve() and path.is_file() and not part.is_file():
        raise ValueError(f"{out} holds another fit; {_ELSEWHERE}")
    stream = file.stream(total_samples, threads) if not part.is_file() else Stream.load(part, threads=threads)
    if part.is_file():
        if not (stream.updates and _is_of(stream.updates[-1], source, False)) or total_samples not in (
            None,
            stream.total_samples,
        ):
            raise ValueError(f"{part} is of another update; finish that one, or remove it to start again")
        logger.info("%s has taken %d documents: resuming from there", part, stream.updates[-1]["documents"])
    corpus, dropped = _read(new, file.posterior, columns, new_columns)
    files = _files(new, corpus, source["documents_of"])
    fingerprints = fingerprints_of(corpus)
    is_new = _is_new(corpus, fingerprints, files, stream, stream.updates[:-1] if part.is_file() else stream.updates)
    if not is_new.any():
        raise ValueError(f"the documents of {new} were taken before: each is taken once")
    # which of the documents of a file had the tokens that were left out is not known: an even share of them
    lost = sum(one.number for one in dropped if one.what == "tokens")
    n_tokens, repeated = corpus.n_tokens, int((~is_new).sum())
    if repeated:
        dropped.append(Dropped("documents", repeated, "taken before: their ids, or their file, are known"))
        corpus = corpus.subset(is_new)
        lost = round(lost * corpus.n_tokens / max(n_tokens, 1))
    placed, names, left_out = stream.place(corpus, new_columns)
    lost += sum(one.number for one in left_out if one.what == "tokens")
    tell_unused(corpus, placed.contexts)
    for one in (dropped := [*dropped, *left_out]):
        logger.warning("left out: %s", one)
    if not part.is_file():
        stream.updates = [{name: one[name] for name in one if name != "batches"} for one in stream.updates]
        stream.updates.append(
            source
            | {"file": new.name, "log_evidence": 0.0, **dict.fromkeys(_COUNTED, 0), "repeated": repeated}
            | {"files": [digest for digest, _ in files]}
            | {"left_out_tokens": lost, "new_words": len(names.words), "batches": []}
            | {"new_values": {name: len(values) for name, values in names.values.items()}}
        )
    _take(stream, placed, part)
    if fingerprints is not None:
        stream.remember(fingerprints[is_new])
    return _leave(out, stream)


def _take(stream: Stream, corpus: Corpus, part: Path) -> None:
    """The documents that the last of the updates has not had yet; ``part`` is written on the way."""
    now, saved = stream.updates[-1], time.perf_counter()
    with (
        stopping.flush() as stop,
        work("svi, new documents", corpus.n_documents, "documents", now["documents"]) as bar,
    ):
        for visit in stream.visits(corpus, now["documents"]):
            now["batches"].append(visit.log_evidence / max(visit.tokens, 1))
            for name in ("log_evidence", *_COUNTED):
                now[name] += getattr(visit, name)
            bar.advance(visit.documents, {"log likelihood a word": now["batches"][-1]})
            is_asked_to_stop = bool(stop)
            if is_asked_to_stop or time.perf_counter() - saved > _CHECKPOINT_SECONDS:
                stream.save(part)
                saved = time.perf_counter()
            if is_asked_to_stop and now["documents"] < corpus.n_documents:
                logger.warning("stopped by signal %d after %d documents", stop[0], now["documents"])
                stopping.stop(stop[0])


def _leave(out: Path, stream: Stream) -> dict[str, Any]:
    """Write what an update leaves, or what a killed one has not come to."""
    with work("writing the posterior"):
        stream.save(out / POSTERIOR)
    about = stream.posterior.provenance | {"drift": drift(stream.fitted, stream.updates)} | environment()
    storage.write_json(out / "provenance.json", about)
    # that of the fit would go on without the new documents, and what it writes would replace them
    for name in ("update.npz", "checkpoint.npz"):
        (out / name).unlink(missing_ok=True)
    return about


def _checkpoint(path: Path, about: Mapping[str, Any], seed: int | None = None) -> checkpoints.Checkpoint:
    """The checkpoint of the fit that ``about`` is the provenance of."""
    names = ("model", "engine", "seed", "corpus", "names", "burn_in", "thin", "snapshots")
    run = {name: about[name] for name in names if name in about} | ({} if seed is None else {"seed": seed})
    stored = checkpoints.read(path, run)
    if stored is None:
        raise ValueError(f"{path} is missing, which mc2 fit leaves and without which a fit cannot go on")
    return stored


def _is_of(one: Mapping[str, Any], source: Mapping[str, Any], is_in_place: bool) -> bool:
    """Whether an update took the documents of ``source``, from its posterior; in place that is another one by now."""
    return all(one[name] == source[name] for name in source if not (is_in_place and name == "from"))


# -- documents -----------------------------------------------------------------------------------------------------
def _files(path: Path, corpus: Corpus, identity: str) -> list[tuple[str, int]]:
    """Digests of the files that documents come from, and how many come from each, in their order; of a corpus that
    does not know its files, its own.
    """
    known = corpus.imported or {}
    if not _is_corpus(path) or "digest" not in known:
        return [(identity, corpus.n_documents)]
    more = [(one["digest"], one["documents"]) for one in known.get("appended", ())]
    return [(known["digest"], corpus.n_documents - sum(n for _, n in more)), *more]


def _is_new(
    corpus: Corpus,
    fingerprints: np.ndarray | None,
    files: Sequence[tuple[str, int]],
    stream: Stream,
    updates: Sequence[Mapping[str, Any]],
) -> np.ndarray:
    """(J,) bool: documents that neither the fit nor the ``updates`` took: none with the same id or of the same file."""
    if stream.posterior.was_fitted_on(corpus):
        return np.zeros(corpus.n_documents, dtype=bool)
    taken = alignment.files_of(stream.posterior.imported).union(*(one.get("files", ()) for one in updates))
    is_new = np.repeat([digest not in taken for digest, _ in files], [n for _, n in files])
    return is_new if fingerprints is None else is_new & ~np.isin(fingerprints, stream.taken)


def _identity(path: Path) -> str:
    """What the documents of a file or of the folder of a corpus are told by: their counts, contexts and names."""
    if not _is_corpus(path):
        return storage.digest_path(path)
    corpus = Corpus.load(path)
    return storage.digest_value([corpus.digest, corpus.names_digest])


def _is_corpus(path: Path) -> bool:
    return (path / "corpus.json").is_file()


def _read(
    path: Path, posterior: Posterior, columns: Mapping[str, Any], new_columns: int
) -> tuple[Corpus, list[Dropped]]:
    """The documents of a corpus, or of a file that is read as those of the fit were."""
    from mc2core.corpus.readers.reading import read_own

    with work(f"reading {path}"):
        if _is_corpus(path) or (posterior.imported is None and not columns):
            return Corpus.load(path), []
        return read_own(path, columns, posterior, None, new_columns, reads_unused=False)


# -- by Gibbs ------------------------------------------------------------------------------------------------------
def _continue_chains(
    fit: Path, new: Path, out: Path, file: _FitFile, new_columns: int, iterations: int | None, threads: int,
    progress: bool | None,
) -> dict[str, Any]:  # fmt: skip
    """Sweeps over all documents by the chains of a fit, each from where it was."""
    posterior, about = file.posterior, file.posterior.provenance
    if out.resolve() == fit.resolve():
        raise ValueError("a fit by gibbs goes on in a folder of its own: --out names it")
    model, engine = specified_in(about, threads)
    of_model, of_engine = dict(about["model"]), dict(about["engine"])
    names = of_model.pop("name"), of_engine.pop("name")
    contexts = of_model.pop("contexts", None)
    if model.has_token_context:  # type: ignore[attr-defined]
        raise ValueError(f"the fit is of {model.name}, whose tokens have contexts: it cannot go on")
    if not _is_corpus(new):
        raise ValueError(f"{new} is not the folder of a corpus; {_OWN_CORPUS}")
    corpus = _with_old_first(Corpus.load(new), posterior, new_columns)
    iterations = about["iterations"] if iterations is None else iterations
    chains = len(about.get("chains", [1]))
    # another one: what the chains drew so far has brought them where they are
    seed = int(streams.key(about["seed"], "continued", corpus.n_documents) >> np.uint64(33))
    checkpoint = out / "checkpoint.npz"
    if (out / POSTERIOR).is_file() and not checkpoint.is_file():
        raise ValueError(f"{out} holds another fit; {_ELSEWHERE}")
    paths = zip(
        checkpoints_of(fit / "checkpoint.npz", chains), seeds_of(about["seed"], chains),
        checkpoints_of(checkpoint, chains), seeds_of(seed, chains), strict=True,
    )  # fmt: skip
    thin = about.get("thin", 1)
    for old, old_seed, path, own in paths:
        if not path.is_file():
            stored = _checkpoint(old, about, old_seed)
            with work(f"{engine.name}, drawing new documents"):
                state = engine.extend(model, corpus, stored.state, own)  # type: ignore[attr-defined]
            run = asked_for(model, engine, corpus, own, iterations // 2, thin, [])
            checkpoints.write(path, checkpoints.Checkpoint(run, 0, 0.0, state.arrays()))
    before = about.get("from", {"iterations": [], "seeds": []})
    source = {"posterior": file.digest, "documents": len(posterior.cluster)}
    source["iterations"] = [*before["iterations"], about.get("stopped_at", about["iterations"])]
    source["seeds"] = [*before["seeds"], about["seed"]]
    return fit_corpus(
        corpus, out, model=names[0], engine=names[1], contexts=contexts, settings=of_model | of_engine, seed=seed,
        iterations=iterations, chains=chains, thin=thin, threads=threads, progress=progress,
        keep_all=True, source={"from": source},
    )  # fmt: skip


def _with_old_first(corpus: Corpus, posterior: Posterior, new_columns: int) -> Corpus:
    """The documents of the fit, then those that were added, in its columns and new ones behind.

    ValueError where ``corpus`` does not begin with the documents of the fit, or has no others.
    """
    n_before = len(posterior.samples[0].cluster)
    corpus = corpus.with_contexts({name: one for name, one in corpus.contexts.items() if name in posterior.families})
    schema = alignment.schema_of(posterior)
    if corpus.n_documents <= n_before:
        here = counted(corpus.n_documents, "documents")
        raise ValueError(f"the corpus has {here} and the fit {n_before:,}; {_OWN_CORPUS}")
    before, _ = alignment.conform(Corpus, corpus.subset(np.arange(n_before)), schema)
    if not posterior.was_fitted_on(before):
        raise ValueError(f"the corpus does not begin with the documents of the fit; {_OWN_CORPUS}")
    new = corpus.subset(np.arange(n_before, corpus.n_documents))
    schema, _ = alignment.extended(schema, new, new_columns)
    placed, dropped = alignment.conform(Corpus, corpus, schema)
    for one in dropped:
        logger.warning("left out: %s", one)
    return placed
