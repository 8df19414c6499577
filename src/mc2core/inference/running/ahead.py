"""Compilation of kernels in advance, by tiny fits with all engines, followed by scores and predictions."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.inference.registry import DEFAULT_ENGINE, specify, takes_contexts
from mc2core.inference.running.loop import fit
from mc2core.posterior import Posterior, perplexity
from mc2core.posterior.consensus import consensus
from mc2core.posterior.proportions import DocumentTopics

_Cases = dict[str, list[tuple[str, dict[str, Any]]]]
#: models and settings for which the kernels of each engine are compiled
_WORDS: _Cases = {
    "gibbs": [("mc2", {}), ("mc2", {"document_level": False}), ("hdp", {}), ("nptot", {})],
    "svi": [("mc2", {}), ("mc2", {"batch_size": 5}), ("mc2", {"document_level": False, "batch_size": 5})],
    "fastex": [("mixture", {"n_clusters": 4, "proposal": one}) for one in ("exact", "hash", "neighbours")],
}
_OBSERVATIONS: _Cases = {"gibbs": [("mc2", {})], "svi": [("mc2", {"batch_size": 5})]}
_N_DOCUMENTS, _N_GROUPS, _N_WORDS, _N_OBSERVATIONS = 24, 3, 9, 120
_ITERATIONS = 4  # in SVI, topics are merged from the end of the third epoch on


def compile_kernels(engine: str) -> None:
    """Compile the kernels of fits by ``engine``, of scores and of predictions, for corpora loaded from files.

    A corpus that was built in memory has arrays of other types, which need other kernels. Of these, only the kernels of
    the default model are compiled.
    """
    rng = streams.generator(0, "compile")
    # the documents differ strongly, so that fits find several clusters and merge some of them
    group = np.arange(_N_DOCUMENTS) % _N_GROUPS
    contexts = {
        "names": sp.csr_matrix(rng.integers(0, 3, (_N_DOCUMENTS, 3))),
        "number": rng.normal(size=_N_DOCUMENTS),
        "vector": rng.normal(group[:, None], 0.1, (_N_DOCUMENTS, 2)),
    }
    is_usual = group[:, None] == np.arange(_N_WORDS) % _N_GROUPS
    words = Corpus(rng.poisson(np.where(is_usual, 5.0, 0.2)), contexts=contexts)
    values, document = rng.normal(size=(_N_OBSERVATIONS, 2)), np.arange(_N_OBSERVATIONS) % _N_DOCUMENTS
    observations = Corpus.from_observations(values, document, contexts)
    with tempfile.TemporaryDirectory() as folder:
        for corpus, cases in ((words, _WORDS), (observations, _OBSERVATIONS)):
            corpus.save(f"{folder}/corpus")
            for model, settings in cases.get(engine, []):
                _use(Corpus.load(f"{folder}/corpus"), model, engine, settings, Path(folder))
    if engine == DEFAULT_ENGINE:
        fit(words, progress=False, iterations=2)


def _use(corpus: Corpus, model: str, engine: str, settings: dict[str, Any], folder: Path) -> None:
    """Fit a model, save and load its posterior, and compute scores and predictions."""
    names = [*corpus.contexts] if takes_contexts(model) else []
    if model == "nptot":
        names = ["number"]
    made = specify(model, engine, settings, names)
    fit(corpus, *made, iterations=_ITERATIONS, progress=False).posterior.save(folder / "posterior.npz")
    posterior = Posterior.load(folder / "posterior.npz")
    sample = posterior.representative
    if posterior.is_of_observations:
        posterior.log_density(corpus, perplexity.suited(posterior))
    else:
        posterior.perplexity(corpus, perplexity.suited(posterior))
    if not sample.documents_are_clusters:
        posterior.assign(corpus)
        consensus([sample.cluster] * 2, 0)
        posterior.find_hierarchy(corpus)
        DocumentTopics(sample).tokens(corpus, sample.cluster, threads=1)
    for name in posterior.families:  # in nptot, tokens instead of documents have contexts
        posterior.predict_context(corpus, name)
