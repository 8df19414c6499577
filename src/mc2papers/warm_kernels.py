"""Compile every kernel that the fits and scores of a configuration use, by fits to a tiny corpus."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.compute.kernel_store import store
from mc2core.corpus import Corpus
from mc2core.inference.registry import specify, takes_contexts
from mc2core.inference.running.loop import fit
from mc2core.models import context_families
from mc2core.posterior.scores import evaluate
from mc2papers.datasets.simulated import letters
from mc2papers.engines import engine_of


def warm_kernels(
    engine: str,
    variants: Sequence[Mapping[str, Any]],
    contexts: Mapping[str, Any],
    estimators: Sequence[str],
    n_documents: int = 12,
) -> None:
    """Compile every kernel that an engine with these settings, contexts and estimators uses.

    ``contexts`` maps names to family settings, as in a configuration. A small letters corpus with all contexts is
    simulated. The corpus is saved and loaded, as for a fit, because read-only arrays need other compiled kernels.
    """
    corpus, _ = letters.simulate(0, n_documents, n_tokens=10)
    families = context_families(contexts)
    rng = streams.generator(0, "warm kernels")
    of_kind = {
        "counts": sp.csr_matrix(rng.integers(1, 3, (n_documents, 3))),
        "number": rng.integers(0, 3, n_documents),
        "vector": rng.normal(size=(n_documents, 2)),
    }
    values = {name: of_kind[family.kind] for name, family in families.items()}
    with tempfile.TemporaryDirectory() as folder, store.taking_turns(engine):
        corpus.with_contexts(values).save(f"{folder}/corpus")
        stored = Corpus.load(f"{folder}/corpus")
        for variant in variants:
            settings = {name: value for name, value in variant.items() if name != "model"}
            used = families if takes_contexts(variant["model"]) else {}
            if variant["model"] == "nptot":  # npTOT uses only one numeric context
                used = dict([next(one for one in families.items() if one[1].name == "normal_gamma")])
            model, way = specify(variant["model"], engine_of(engine), settings, used)
            posterior = fit(stored, model, way.in_this_process(), iterations=2).posterior
            evaluate(posterior, stored, stored, estimators)
