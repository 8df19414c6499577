"""Fits with words only, with a context, and with the context of random documents, on samples of a corpus."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.inference.registry import specify
from mc2core.inference.running.loop import fit
from mc2core.posterior.descent import find_hierarchy
from mc2core.posterior.scores import agreement, evaluate
from mc2papers.baselines.kmeans import KMeans
from mc2papers.labelled.contexts_help import CONTEXT, KMEANS, RANDOM, WORDS
from mc2papers.report.agreement import MEASURES

if TYPE_CHECKING:
    from mc2papers.baselines.assignments import Assignments

logger = logging.getLogger(__name__)


def fits_with_contexts(
    corpus: Corpus, runs: Mapping[str, Mapping[str, Any]], *, seeds: int, tokens: int | None = None, threads: int = 1
) -> pd.DataFrame:
    """Fit each run with words only, with its context, and with the context of random documents.

    Each seed has its own sample of the documents and its own split. A tenth of the sample is held out.

    Parameters
    ----------
    runs : ``method`` and ``fit`` by name, as in :func:`mc2papers.labelled.contexts_help.runs_with_contexts`; each has
        one context
    tokens : approximate number of tokens of a sample; with None, or if the corpus has fewer, all documents are used

    Returns
    -------
    One row per context, method, seed and given (WORDS, CONTEXT or RANDOM). The columns are documents, classes, clusters
    (recommended), MEASURES of all clusters, recommended_ari and recommended_nmi, fixed_ari and fixed_nmi (after
    clusters are merged to the number of classes), perplexity and cpu_seconds. The perplexity is that of held-out
    documents, without their contexts. Without classes, cells are NaN. For KMEANS, only fixed_ari and fixed_nmi exist.
    """
    rows = []
    for seed in range(seeds):
        n = corpus.n_documents if tokens is None else round(corpus.n_documents * tokens / corpus.n_tokens)
        drawn = streams.generator(seed, "sample").permutation(corpus.n_documents)[:n]
        train, test = corpus.subset(np.sort(drawn)).split(0.1, seed)
        order = streams.generator(seed, "context at random").permutation(train.n_documents)
        scores: dict[Any, dict[str, Any]] = {}
        for run in runs.values():
            (context,) = run["fit"]["contexts"]
            values = train.contexts[context]
            for given, used in ((WORDS, {}), (CONTEXT, {context: values}), (RANDOM, {context: values[order]})):
                part = train.with_contexts(used)
                for method in (run["method"], KMEANS):
                    key = method, given, *used
                    if key not in scores:
                        scores[key] = (
                            _score_kmeans(part, seed)
                            if method == KMEANS
                            else _fit_and_score(part, test, run["fit"], used, seed, threads)
                        )
                    labels = {"context": context, "method": method, "given": given, "seed": seed}
                    rows.append(labels | {"documents": len(drawn), "classes": _n_classes(train)} | scores[key])
        logger.info("seed %d of %d", seed + 1, seeds)
    table = pd.DataFrame(rows).drop_duplicates(["context", "method", "given", "seed"])
    return table[table["cpu_seconds"].notna()]


def _fit_and_score(
    train: Corpus, test: Corpus, settings: Mapping[str, Any], contexts: Mapping[str, Any], seed: int, threads: int
) -> dict[str, Any]:
    """Fit a model to the training documents and return its scores."""
    families = {name: settings["contexts"][name] for name in contexts}
    specification = specify(settings["model"], settings["engine"], settings["settings"], families, threads)
    lengths = {name: settings[name] for name in ("iterations", "burn_in", "thin", "chains") if name in settings}
    begun = time.process_time()
    posterior = fit(train, *specification, **lengths, seed=seed, progress=False).posterior
    spent = time.process_time() - begun
    scores = evaluate(posterior, train, test, ["marginal"])
    row = {name: scores.get(name) for name in MEASURES}
    row |= {"perplexity": scores["perplexity"][scores["estimator"]], "cpu_seconds": spent}
    if not _n_classes(train):
        return row
    hierarchy = find_hierarchy(posterior, train)
    for cut, n in (("recommended", hierarchy.recommended), ("fixed", min(_n_classes(train), hierarchy.n_clusters))):
        row |= _agreement(train, hierarchy.cut(n), cut)
    return row | {"clusters": hierarchy.recommended}


def _score_kmeans(train: Corpus, seed: int) -> dict[str, Any]:
    """Return the scores of K-means with one cluster per class; {} without classes or with a numeric context."""
    if not _n_classes(train) or not all(map(sp.issparse, train.contexts.values())):
        return {}
    begun = time.process_time()
    assignments = cast("Assignments", KMeans(n_clusters=_n_classes(train)).fit(train, seed).result)
    (cluster,) = assignments.solutions.values()
    return {"cpu_seconds": time.process_time() - begun} | _agreement(train, cluster, "fixed")


def _n_classes(corpus: Corpus) -> int:
    return len(np.unique(corpus.labels)) if isinstance(corpus.labels, np.ndarray) else 0


def _agreement(corpus: Corpus, cluster: np.ndarray, cut: str) -> dict[str, float]:
    scores = agreement(np.asarray(corpus.labels), cluster)
    return {f"{cut}_{name}": scores[name] for name in ("ari", "nmi")}
