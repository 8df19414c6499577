"""Updates of saved fits with new documents (``mc2 update``).

A fit by SVI is continued as a stream (:mod:`mc2core.inference.svi.stream`), and the likelihood of the new documents
before the update is reported. A fit by Gibbs gets additional documents, while the fitted documents remain in their
clusters (:mod:`mc2core.inference.gibbs.added`).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from mc2core.base import stopping, storage
from mc2core.base.checks import whole
from mc2core.base.progress import showing, work
from mc2core.base.provenance import environment
from mc2core.compute import streams
from mc2core.compute.threads import in_blocks, thread_budget
from mc2core.corpus import Corpus, alignment
from mc2core.corpus.building.columns import POOLED
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.fingerprints import fingerprints_of
from mc2core.families.stacked import StackedContexts
from mc2core.inference.registry import specified_in
from mc2core.inference.running import checkpoint as checkpoints
from mc2core.inference.running.drift import MAX_IN_SMALL, MAX_LEFT_OUT, drift
from mc2core.inference.running.loop import tell_unused
from mc2core.posterior import Posterior, Sample
from mc2core.posterior.posterior import POSTERIOR, posterior_file

if TYPE_CHECKING:
    from mc2core.inference.svi.globals import Globals
    from mc2core.inference.svi.stream import Stream

logger = logging.getLogger(__name__)
# seconds between two checkpoints; a killed update loses at most this time and the current block
_CHECKPOINT_SECONDS = 60.0
# attributes of the records of blocks that are summed over an update
_COUNTED = (*("documents", "tokens", "in_small"), *("clusters_born", "clusters_gone", "topics_born", "topics_gone"))
_ELSEWHERE = "name another folder, or remove it"
_REPEATED = "in the fit already (same id)"
#: number of sweeps over the added documents, per sample of the fit
SWEEPS = 20
#: the cluster of a document is uncertain if its probability is lower
UNSURE = 0.5
#: a new fit is recommended if one of these is exceeded: added documents relative to fitted documents, and the increase
#: of the fraction of documents with uncertain clusters
MAX_ADDED, MAX_UNSURE = 0.25, 0.2


class _FitFile(NamedTuple):
    """The verified contents of a posterior's file."""

    path: Path
    arrays: dict[str, np.ndarray]
    digest: str
    posterior: Posterior
    stamp: tuple[int, int, int]  # inode, size and modification time when the file was read

    @classmethod
    def read(cls, path: Path) -> _FitFile:
        """Read the file. Raises ValueError if it is missing or damaged, or is not a posterior."""
        stamp = _stamp(path)
        arrays, digest = storage.read_signed(path)
        return cls(path, arrays, digest, Posterior.from_arrays(arrays, path), stamp)

    def latest(self) -> _FitFile:
        """Return this object, or read the file again if it has been replaced."""
        return self if _stamp(self.path) == self.stamp else self.read(self.path)

    def stream(self, total_samples: int | None = None, threads: int = 1) -> Stream:
        """Return the saved stream, or a new stream from a fit. Raises ValueError if it cannot be continued."""
        from mc2core.inference.svi.stream import Stream, state_of

        posterior, checkpoint = self.posterior, self.path.parent / "checkpoint.npz"
        if "stream" in posterior.provenance:
            stream = Stream.from_arrays(self.arrays, posterior, self.path, threads=threads)
            if total_samples not in (None, stream.total_samples):
                raise ValueError(
                    f"total_samples is {total_samples}, but {self.path} has {stream.total_samples}, which cannot change"
                )
            return stream
        stored = _checkpoint(checkpoint, posterior.provenance)
        trace = pd.DataFrame(stored.trace)
        if trace.empty:
            raise ValueError(f"{checkpoint} is in the middle of an epoch; finish the epoch with mc2 fit")
        if posterior.reservoir is None:
            raise ValueError(f"{self.path} lacks the fitted documents, which mc2 fit stores there")
        state = state_of(posterior, stored.state, int(trace["tokens"].iloc[-1]))
        return Stream(
            _Saved(posterior, state, trace, posterior.reservoir), total_samples=total_samples, threads=threads
        )


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return inode, size and modification time of a file, at least one of which changes when it is replaced."""
    found = path.stat() if path.is_file() else None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found else (0, 0, 0)


class _Saved(NamedTuple):
    """The saved results of a fit that a stream needs; ``corpus`` is the saved sample of the fitted documents."""

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
    new_columns: int | None = None,
    iterations: int | None = None,
    threads: int = 1,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Add new documents to a fit, and return the provenance of the result.

    SVI processes the documents ``new`` in blocks, in their order. At the end, ``posterior.npz`` and ``provenance.json``
    in ``out`` are replaced. A killed update by SVI is resumed by the same call, with identical results.

    Gibbs samples only the clusters of the new documents, for each sample of the fitted documents. The fitted documents
    remain in their clusters, and clusters keep their numbers. ``new`` contains the new documents, or a corpus of the
    fitted documents followed by the new documents. The posterior of all documents is written to ``out``, with the new
    documents as a corpus (``added``). If ``new`` contains the fitted documents, all documents are also written as a
    corpus (``corpus``).

    If an update is complete, calling this function again does nothing.

    Parameters
    ----------
    fit : folder of ``mc2 fit`` or of an update, or the file ``posterior.npz`` in this folder
    new : folder of a corpus, or a file that ``mc2 import`` can read, in the format of the fitted documents
    out : output folder; the default is the folder of the fit for SVI, and :func:`beside` for Gibbs
    total_samples : size of the population, as in :class:`mc2core.inference.Stream`; only for the first update by SVI
    columns : columns of words and contexts in a file, if they differ from the columns of the fitted file; keys are
        "text", "bag", "counts", "contexts" and "id" of :func:`mc2core.corpus.readers.reading.read_own`, and
        "embeddings" for the file of embeddings
    new_columns : smallest number of documents in which a new word or value must occur to get a column; the default is 1
        for SVI. For Gibbs, the default is ``min_df`` of the import, but at least 2, for words, and ``rare`` of the
        import, or 2, for values
    iterations : number of Gibbs sweeps over the new documents; the default is :data:`SWEEPS`
    threads : number of threads; the result does not depend on it
    progress : whether to show progress, as in :func:`mc2core.inference.running.loop.fit`

    Raises
    ------
    ValueError
        If the fit cannot be continued, if documents were already used, or if ``out`` contains files of another update.
    """
    path, new, columns = posterior_file(fit), Path(new), dict(columns or {})
    file = _FitFile.read(path)
    posterior = file.posterior
    if path.name != POSTERIOR:
        raise ValueError(f"{path} is not {POSTERIOR} in the folder of a fit, next to its other files")
    fit, engine = path.parent, posterior.provenance.get("engine", {}).get("name")
    if out is None:
        out = beside(fit) if engine == "gibbs" else fit
    out = Path(out)
    if _is_corpus(out):
        raise ValueError(f"{out} holds a corpus; {_ELSEWHERE}")
    if columns and _is_corpus(new):
        raise ValueError(f"{next(iter(columns))!r} applies only to a file of documents, but {new} is a corpus")
    for name in ("seed", "iterations"):
        if name not in posterior.provenance:
            raise ValueError(f"{path} does not record the {name} of its fit, so it cannot be updated")
    if engine == "gibbs":
        if total_samples is not None:
            raise ValueError(f"total_samples is {total_samples}; only fits by svi use it")
        if out.resolve() == fit.resolve():
            raise ValueError("the update of a fit by gibbs is a new fit; give another folder with --out")
        sweeps = SWEEPS if iterations is None else whole("iterations", iterations)
        with stopping.install(), storage.exclusive_lock(out / POSTERIOR, "another fit"), showing(progress):
            return _add_documents(file, new, out, columns, new_columns, sweeps, threads)
    if engine != "svi":
        raise ValueError(
            f"the fit is by {engine}, which cannot be updated (fits by gibbs and svi can); assign the new documents to "
            "its clusters with mc2 import --like and mc2 clusters, or fit all documents again"
        )
    if iterations is not None:
        raise ValueError(f"iterations is {iterations}; a fit by svi uses each new document once")
    with stopping.install(), storage.exclusive_lock(out / POSTERIOR, "another fit"), showing(progress):
        return _go_on(
            file.latest(), new, out, total_samples, columns, 1 if new_columns is None else new_columns, threads
        )


def beside(fit: Path) -> Path:
    """Return the default folder of an update by Gibbs, next to the folder of the fit.

    Its name is NAME-updated. If the fit is an update itself, the name gets the next number, such as NAME-updated2.
    """
    stem, _, number = fit.name.rpartition("-updated")
    stem, count = (stem, int(number or 1) + 1) if stem and (number == "" or number.isdigit()) else (fit.name, 1)
    return fit.with_name(f"{stem}-updated{count if count > 1 else ''}")


# -- by SVI --------------------------------------------------------------------------------------------------------
def _go_on(
    file: _FitFile, new: Path, out: Path, total_samples: int | None, columns: Mapping[str, Any], new_columns: int,
    threads: int,
) -> dict[str, Any]:  # fmt: skip
    """Run an update by SVI, from its start or from its checkpoint, and return the provenance."""
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
            raise ValueError(f"{part} belongs to another update; finish that one, or remove it to start again")
        logger.info("%s has taken %d documents: resuming from there", part, stream.updates[-1]["documents"])
    corpus, dropped = _read(new, file.posterior, columns, new_columns)
    files = _files(new, corpus, source["documents_of"])
    fingerprints = fingerprints_of(corpus)
    is_new = _is_new(corpus, fingerprints, files, stream, stream.updates[:-1] if part.is_file() else stream.updates)
    if not is_new.any():
        raise ValueError(f"the fit already contains the documents of {new}; a document can be used only once")
    # the documents of omitted words are unknown, so omitted tokens are divided in proportion to the remaining tokens
    lost = sum(one.number for one in dropped if one.what == "tokens")
    n_tokens, repeated = corpus.n_tokens, int((~is_new).sum())
    if repeated:
        dropped.append(Dropped("documents", repeated, "already in the fit (same id or file)"))
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
    """Process the remaining documents of the current update, and write checkpoints to the file ``part``."""
    now, saved = stream.updates[-1], time.perf_counter()
    with stopping.flush() as stop, work("svi, new documents", corpus.n_documents, "documents", now["documents"]) as bar:
        for record in stream.fit_blocks(corpus, now["documents"]):
            now["batches"].append(record.log_evidence / max(record.tokens, 1))
            for name in ("log_evidence", *_COUNTED):
                now[name] += getattr(record, name)
            bar.advance(record.documents, {"log likelihood per word": now["batches"][-1]})
            is_asked_to_stop = bool(stop)
            if is_asked_to_stop or time.perf_counter() - saved > _CHECKPOINT_SECONDS:
                stream.save(part)
                saved = time.perf_counter()
            if is_asked_to_stop and now["documents"] < corpus.n_documents:
                logger.warning("stopped by signal %d after %d documents", stop[0], now["documents"])
                stopping.stop(stop[0])


def _leave(out: Path, stream: Stream) -> dict[str, Any]:
    """Write the results of an update, and remove the checkpoints of the update and of the fit."""
    with work("writing the posterior"):
        stream.save(out / POSTERIOR)
    about = stream.posterior.provenance | {"drift": drift(stream.fitted, stream.updates)} | environment()
    storage.write_json(out / "provenance.json", about)
    # otherwise, the fit could later be resumed without the new documents and overwrite the result
    for name in ("update.npz", "checkpoint.npz"):
        (out / name).unlink(missing_ok=True)
    return about


def _checkpoint(path: Path, about: Mapping[str, Any], seed: int | None = None) -> checkpoints.Checkpoint:
    """Return the checkpoint of the fit whose provenance is ``about``."""
    names = ("model", "engine", "seed", "corpus", "names", "burn_in", "thin", "snapshots")
    run = {name: about[name] for name in names if name in about} | ({} if seed is None else {"seed": seed})
    stored = checkpoints.read(path, run)
    if stored is None:
        raise ValueError(f"{path} is missing; mc2 fit writes it, and an update needs it")
    return stored


def _is_of(one: Mapping[str, Any], source: Mapping[str, Any], is_in_place: bool) -> bool:
    """Return whether the update ``one`` used the same documents as ``source`` and continued the same posterior.

    The posterior is not compared if the update was written to the folder of the fit.
    """
    return all(one[name] == source[name] for name in source if not (is_in_place and name == "from"))


# -- documents -----------------------------------------------------------------------------------------------------
def _files(path: Path, corpus: Corpus, identity: str) -> list[tuple[str, int]]:
    """Return the digest and the number of documents of each source file of a corpus, in order.

    A corpus that does not record its source files counts as one file.
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
    """Return whether each document is new, (J,) bool.

    A document is not new if its id, or the digest of its file, was used by the fit or by one of the ``updates``.
    """
    if stream.posterior.was_fitted_on(corpus):
        return np.zeros(corpus.n_documents, dtype=bool)
    taken = alignment.files_of(stream.posterior.imported).union(*(one.get("files", ()) for one in updates))
    is_new = np.repeat([digest not in taken for digest, _ in files], [n for _, n in files])
    return is_new if fingerprints is None else is_new & ~np.isin(fingerprints, stream.taken)


def _identity(path: Path) -> str:
    """Return a digest of a file, or of the counts, contexts and names of a corpus folder."""
    if not _is_corpus(path):
        return storage.digest_path(path)
    corpus = Corpus.load(path)
    return storage.digest_value([corpus.digest, corpus.names_digest])


def _is_corpus(path: Path) -> bool:
    return (path / "corpus.json").is_file()


def _read(
    path: Path, posterior: Posterior, columns: Mapping[str, Any], new_columns: int
) -> tuple[Corpus, list[Dropped]]:
    """Return the documents of a corpus folder or file, read with the settings of the fit, and what was left out."""
    from mc2core.corpus.readers.reading import read_own

    with work(f"reading {path}"):
        if _is_corpus(path) or (posterior.imported is None and not columns):
            return Corpus.load(path), []
        return read_own(path, columns, posterior, None, new_columns, reads_unused=False)


# -- by Gibbs ------------------------------------------------------------------------------------------------------
def _add_documents(
    file: _FitFile, new: Path, out: Path, columns: Mapping[str, Any], new_columns: int | None, sweeps: int,
    threads: int,
) -> dict[str, Any]:  # fmt: skip
    """Run an update by Gibbs, and return the provenance.

    The clusters and topics of the new documents are drawn for each sample of the fitted documents.
    """
    from mc2core.inference.gibbs.added import AddedDocuments, Held, widened
    from mc2core.posterior.added import with_added

    posterior, about = file.posterior, file.posterior.provenance
    source: dict[str, Any] = {"from": file.digest, "documents_of": _identity(new), "columns": dict(columns)}
    if (out / POSTERIOR).is_file():
        known = Posterior.load(out).provenance
        if known.get("updates") and _is_of(known["updates"][-1], source, False):
            logger.info("%s has these documents already: nothing is left to do", out / POSTERIOR)
            return known
        raise ValueError(f"{out} holds another fit; {_ELSEWHERE}")
    model, _ = specified_in(about, threads)
    if posterior.representative.is_admixture or model.has_token_context:  # type: ignore[attr-defined]
        raise ValueError(f"the fit is of {model.name}, which has no clusters to which documents can be added")
    if posterior.is_of_observations:
        raise ValueError("documents cannot be added to a fit of observations; fit all documents again")
    corpus, before, dropped = _new_documents(new, posterior, columns)
    schema = _with_new_columns(posterior, corpus, new_columns)
    placed, unknown = alignment.reindex_to_schema(Corpus, corpus, schema)
    for one in (dropped := [*dropped, *unknown]):
        logger.warning("left out: %s", one)
    contexts = StackedContexts(placed, posterior.families)
    known_columns = np.concatenate(
        [np.zeros(0, np.int64)]
        + [contexts.segment(name).start + np.arange(posterior.dimensions[name]) for name in contexts.names]
    ).astype(np.int64)
    most = float(model.most_clusters)  # type: ignore[attr-defined]
    eta = float(model.start_of("topic"))  # type: ignore[attr-defined]
    told = work("documents added", len(posterior.samples), "samples")

    def add(number: int, _: int) -> Sample:
        sample = widened(posterior.samples[number], placed.n_words, contexts.prior, known_columns)
        seed = int(streams.key(about["seed"], "update", len(sample.cluster) + number) >> np.uint64(33))
        chain = AddedDocuments(Held.from_sample(sample, most, eta), placed, contexts, seed)
        for sweep in range(sweeps):
            chain.sweep(sweep)
        bar.advance()
        return chain.sample()

    with told as bar, thread_budget(threads) as pool:
        samples = in_blocks(pool, add, len(posterior.samples), 1)
    whole = None if before is None else _together(before, placed, schema)
    fingerprints = _joined_fingerprints(posterior, placed)
    update = source | {"file": new.name, "documents": placed.n_documents, "tokens": placed.n_tokens}
    update |= {"sweeps": sweeps, "repeated": sum(one.number for one in dropped if one.why == _REPEATED)}
    update |= {"left_out_tokens": sum(one.number for one in dropped if one.what == "tokens")}
    update |= {"new_words": len(schema.words) - posterior.n_words, "before": len(posterior.cluster)}
    provenance = about | {"updates": [*about.get("updates", []), update]}
    provenance |= {"corpus": "" if whole is None else whole.digest}
    result = with_added(
        posterior, samples, vocabulary=schema.words, provenance=provenance, fingerprints=fingerprints,
        dimensions={name: len(contexts.prior[contexts.segment(name)]) for name in contexts.names},
        context_names={name: one for name, one in schema.columns.items() if one is not None},
    )  # fmt: skip
    result.provenance["updates"][-1] |= _placed(posterior, result)
    with work("writing the posterior"):
        out.mkdir(parents=True, exist_ok=True)
        placed.imported = corpus.imported
        placed.save(out / "added")
        if whole is not None:
            whole.save(out / "corpus")
        result.save(out / POSTERIOR)
        storage.write_json(out / "provenance.json", result.provenance | environment())
    return result.provenance


def _new_documents(
    path: Path, posterior: Posterior, columns: Mapping[str, Any]
) -> tuple[Corpus, Corpus | None, list[Dropped]]:
    """Return the new documents, the fitted documents or None, and what was left out.

    The fitted documents are returned if the corpus at ``path`` begins with them. Raises ValueError if no document is
    new.
    """
    corpus, dropped = _read(path, posterior, columns, 1)
    corpus = corpus.with_contexts({name: one for name, one in corpus.contexts.items() if name in posterior.families})
    n_before, before, schema = len(posterior.cluster), None, alignment.schema_of(posterior)
    if corpus.n_documents >= n_before:
        old, _ = alignment.reindex_to_schema(Corpus, corpus.subset(np.arange(n_before)), schema)
        if posterior.was_fitted_on(old):
            before = old
            if corpus.n_documents > n_before:
                corpus = corpus.subset(np.arange(n_before, corpus.n_documents))
            else:
                raise ValueError(f"{path} has no documents other than those of the fit")
    fingerprints = fingerprints_of(corpus)
    if fingerprints is not None and posterior.fingerprints is not None:
        is_known = np.isin(fingerprints, posterior.fingerprints)
        if is_known.all():
            raise ValueError(f"the documents of {path} are in the fit already (same ids)")
        if is_known.any():
            corpus = corpus.subset(~is_known)
            dropped.append(Dropped("documents", int(is_known.sum()), _REPEATED))
    return corpus, before, dropped


def _with_new_columns(posterior: Posterior, corpus: Corpus, least: int | None) -> alignment.Schema:
    """Return the words and context values of the fit, extended by frequent new words and values of ``corpus``.

    A new word must occur in at least ``min_df`` new documents, but at least 2. A new value must occur in at least the
    number of documents given by ``rare``, or 2. ``least`` replaces these limits. Without ``least``, no words are added
    if the vocabulary of the import was set by the user or limited by ``max_features``.
    """
    chosen = (posterior.imported or {}).get("chosen", {})
    schema = alignment.schema_of(posterior)
    of_words = max(2, int(chosen.get("min_df", 1))) if least is None else least
    is_closed = least is None and ("vocabulary" in chosen or "max_features" in chosen)
    words = schema.words if is_closed else alignment.extended(schema, corpus, of_words)[0].words
    rules = dict(text.partition("=")[::2] for text in chosen.get("rare", ()))
    columns = dict(schema.columns)
    for name, known in schema.columns.items():
        if known is None or len(known) != posterior.dimensions.get(name) or POOLED in known:
            continue  # new values need one parameter per value, and no pooled value for all rare values
        rule = int(rules.get(name, "2").partition(":")[0]) if least is None else least
        columns[name] = alignment.extended(schema, corpus, max(rule, 1))[0].columns[name]
    return replace(schema, words=words, columns=columns)


def _together(before: Corpus, placed: Corpus, schema: alignment.Schema) -> Corpus:
    """Return a corpus of the fitted and the new documents, with the columns of the updated fit."""
    old, _ = alignment.reindex_to_schema(Corpus, before, schema)
    whole = Corpus.concatenate([old, placed])
    whole.imported = before.imported
    return whole


def _joined_fingerprints(posterior: Posterior, new: Corpus) -> np.ndarray | None:
    fingerprints = fingerprints_of(new)
    if fingerprints is None or posterior.fingerprints is None:
        return None
    return np.concatenate([posterior.fingerprints, fingerprints])


def _placed(before: Posterior, after: Posterior) -> dict[str, Any]:
    """Return the sizes of the recommended clusters before and after an update, and the certainty of new documents."""
    if before.hierarchy is None or after.hierarchy is None:
        old, new, sure = before.by_size[before.cluster], after.by_size[after.cluster], None
    else:
        old, new = (one.hierarchy.cut(one.hierarchy.recommended) for one in (before, after))  # type: ignore[union-attr]
        sure = after.hierarchy.shares_of_added(after.hierarchy.recommended)  # type: ignore[attr-defined]
    n_before, size = len(old), int(new.max(initial=0)) + 1
    sizes = [np.bincount(one, minlength=size).tolist() for one in (old, new)]
    found = {"sizes_before": sizes[0], "sizes": sizes[1], "n_old_clusters": int(old.max(initial=0)) + 1}
    if sure is None:
        return found
    certainty = sure[np.arange(len(sure)), new[n_before:]]
    found |= {"mean_probability": float(certainty.mean()), "unsure": int((certainty < UNSURE).sum())}
    of_old = before.hierarchy.probability(before.hierarchy.recommended)  # type: ignore[union-attr]
    return found if of_old is None else found | {"unsure_before": float((of_old.max(axis=1) < UNSURE).mean())}


def needs_new_fit(provenance: Mapping[str, Any]) -> list[str]:
    """Return the reasons why all documents should be fitted again after updates by Gibbs; empty if there are none."""
    updates = provenance["updates"]
    now, first = updates[-1], updates[0]["before"]
    added = sum(one["documents"] for one in updates)
    in_new = sum(now["sizes"][now["n_old_clusters"] :])
    left_out = now["left_out_tokens"] / max(now["left_out_tokens"] + now["tokens"], 1)
    reasons = []
    if added > MAX_ADDED * first:
        reasons.append(f"{added:,} documents were added to the {first:,} of the fit")
    if in_new > MAX_IN_SMALL * now["documents"]:
        reasons.append(f"{in_new:,} of the {now['documents']:,} new documents are in new clusters")
    if left_out > MAX_LEFT_OUT:
        reasons.append(f"{left_out:.0%} of the words of the new documents are unknown")
    usual = now.get("unsure_before", 0.0)
    if now.get("unsure", 0) > (usual + MAX_UNSURE) * now["documents"]:
        reasons.append(
            f"{now['unsure']:,} of the new documents have no cluster with probability {UNSURE:g} or more, "
            f"and {usual:.0%} of the earlier ones"
        )
    return reasons
