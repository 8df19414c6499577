"""Fits and scores as files: what the workflow's jobs and the command line both do."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mc2core import clustering, locks, rng, storage
from mc2core.corpus import Corpus
from mc2core.engines.base import State, context_families
from mc2core.engines.loop import fit
from mc2core.engines.registry import make_engine, takes_contexts
from mc2core.model import Model
from mc2core.sources import letters

logger = logging.getLogger(__name__)


def fit_corpus(
    corpus: Corpus,
    *,
    engine: str,
    contexts: Mapping[str, Any],
    settings: Mapping[str, Any],
    iterations: int,
    seed: int,
    model: str | os.PathLike[str],
    trace: str | os.PathLike[str],
    evidence: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str],
    burn_in: int | None = None,
    thin: int = 1,
    checkpoint_every: int = 50,
    threads: int = 1,
    snapshots: str | os.PathLike[str] | None = None,
    moments: Sequence[float] = (),
    progress: bool | None = None,
    follow_labels: bool = False,
) -> dict[str, Any]:
    """Fit an engine and write model, trace and evidence; returns the evidence.

    ``snapshots`` is written too, a model of the samples at ``moments`` (iterations), if there are any.

    A run that was killed goes on from ``checkpoint``, which is removed once the outputs are there.
    While it runs, a second fit that writes the same model is refused (ValueError).
    Other contexts of the corpus than those in ``contexts`` are named in the log and not looked at, so they do not tie a
    checkpoint.
    With ``follow_labels`` each row of the trace has ``vi_bits``, the distance of the clusters from the corpus' labels.
    """
    missing = [name for name in contexts if name not in corpus.contexts]
    if missing:
        raise ValueError(f"the corpus has no context {missing[0]!r}; it has: {', '.join(corpus.contexts) or 'none'}")
    if ignored := sorted(set(corpus.contexts) - set(contexts)):
        logger.info("contexts of the corpus that this fit does not use: %s", ", ".join(ignored))
    part = corpus.with_contexts({name: corpus.contexts[name] for name in contexts})
    with locks.only_one(model, "another fit"):
        done = fit(
            part,
            make_engine(engine, settings, contexts, threads),
            iterations=iterations,
            seed=seed,
            burn_in=burn_in,
            thin=thin,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            trace=trace,
            snapshots=moments,
            progress=progress,
            callback=_distance_to(corpus.labels) if follow_labels else None,
        )
        done.model.save(model)
        if snapshots is not None and done.snapshots is not None:
            done.snapshots.save(snapshots)
        storage.write_json(evidence, done.evidence)
        Path(checkpoint).unlink(missing_ok=True)
    return done.evidence


def _distance_to(labels: Any) -> Callable[[int, State], dict[str, float]]:
    """Callback of the loop: variation of information between ``labels`` and the clusters of the state, in bits."""
    if not isinstance(labels, np.ndarray):
        raise ValueError("the clusters cannot be followed: the corpus has no label for each document")
    return lambda iteration, state: {"vi_bits": clustering.variation_of_information(labels, state.cluster)}


def evaluate(
    model: Model, train: Corpus, test: Corpus | None, estimators: Sequence[str] = ("marginal",), seed: int = 0
) -> dict[str, Any]:
    """Scores of a model: sizes, held-out perplexity (None without a test part), agreement with labels.

    Clusters and topics are those in use, averaged over the samples kept; agreement is that of the last sample's
    clusters with the labels of the train part, where it has them.

    ValueError: a part whose words, or where they are scored contexts, are not the model's, or another train part.
    """
    model.check_fitted(train)
    scores: dict[str, Any] = {
        "clusters": float(np.mean([sample.n_clusters for sample in model.samples])),
        "topics": float(np.mean([sample.n_topics for sample in model.samples])),
        "samples": len(model.samples),
        "train_documents": train.n_documents,
        "test_documents": 0 if test is None else test.n_documents,
        "perplexity": {name: None if test is None else model.perplexity(test, name, seed) for name in estimators},
    }
    if train.labels is not None and isinstance(train.labels, np.ndarray):
        scores |= agreement(train.labels, model.last.cluster)
    return scores


def agreement(labels: np.ndarray, cluster: np.ndarray) -> dict[str, float]:
    """Clustering scores of MODEL section 5 for (J,) ``cluster`` against (J,) true ``labels``."""
    return {
        "purity": clustering.purity(labels, cluster),
        "nmi": clustering.nmi(labels, cluster),
        "rand_index": clustering.rand_index(labels, cluster),
        "f_score": clustering.f_score(labels, cluster),
    }


def warm_kernels(
    engine: str,
    variants: Sequence[Mapping[str, Any]],
    contexts: Mapping[str, Any],
    estimators: Sequence[str],
    n_documents: int = 12,
) -> None:
    """Compile every kernel that an engine with these settings, contexts and estimators uses, on a few letters.

    ``contexts`` maps names to family settings, as a plan holds them; a corpus with a context of each is made up. It is
    saved and loaded, as that of a fit is: kernels are compiled anew for arrays that cannot be written to.
    """
    corpus, _ = letters.simulate(0, n_documents, n_tokens=10)
    families = context_families(contexts) if takes_contexts(engine) else {}
    draw = rng.generator(0, "warm kernels")
    values = {}
    for name, family in families.items():
        dimension = 3 if family.name == "dirichlet" else len(family.prior(0))
        natural = np.tile(family.prior(dimension), (n_documents, 1))
        values[name] = family.draw_observations(
            family.draw_parameters(natural, draw), np.ones(n_documents, dtype=np.int64), draw
        )
    with tempfile.TemporaryDirectory() as folder:
        corpus.with_contexts(values).save(f"{folder}/corpus")
        stored = Corpus.load(f"{folder}/corpus")
        for settings in variants:
            model = fit(stored, make_engine(engine, settings, families), iterations=2, burn_in=1, progress=False).model
            model.predict(stored)
            evaluate(model, stored, stored, estimators)


def describe_topics(model: Model, n_words: int = 10) -> pd.DataFrame:
    """Topics of the last sample, the commonest first: topic, weight (share of tokens of the model), words."""
    share = model.cluster_weights @ model.topic_given_cluster
    order = np.argsort(-share, kind="stable")
    words = model.top_words(n_words)
    return pd.DataFrame(
        {
            "topic": order + 1,
            "weight": share[order],
            "words": [" ".join(words[topic]) for topic in order],
        }
    )
