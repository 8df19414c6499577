"""A paragraph for the methods section of a paper, made from the provenance of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mc2core.base.checks import counted
from mc2core.corpus import Corpus
from mc2core.corpus.checks import CONTENT_KINDS
from mc2core.posterior import Posterior, consensus

_MODELS = {
    "mc2": "MC2, multilevel clustering with group-level contexts (Nguyen et al., 2014)",
    "hdp": "a hierarchical Dirichlet process (Teh et al., 2006)",
    "nptot": "npTOT, a hierarchical Dirichlet process whose topics emit a time (Dubey et al., 2013)",
    "mixture": "a finite mixture (Ahmed et al., 2012)",
}
_ENGINES = {
    "gibbs": ("Gibbs sampling", "sweeps"),
    "svi": ("stochastic variational inference (Huynh et al., 2016)", "epochs"),
    "fastex": ("Markov chain Monte Carlo (FastEx; Ahmed et al., 2012)", "sweeps"),
}


def paragraph(posterior: Posterior, corpus: Corpus, about: Mapping[str, Any], recommended: int) -> str:
    """Return the paragraph for the methods section, which reports the ``recommended`` number of clusters.

    ``about`` is the provenance of the fit. Raises ValueError if it lacks the model, the engine or the iterations.
    """
    if not {"model", "engine", "iterations"} <= set(about):
        raise ValueError("the posterior has no provenance of a fit; mc2core.fit and mc2 fit leave one")
    model, engine = about["model"], about["engine"]
    how, unit = _ENGINES[engine["name"]]
    tokens = f"tokens of {corpus.n_words:,} words"
    if corpus.is_of_observations:
        tokens = f"observations of {corpus.n_words} {CONTENT_KINDS[corpus.content_kind]}"
    said = [
        f"We fitted {_MODELS[model['name']]}{_level(model)}{_clusters(model)}{_contexts(model)} to "
        f"{counted(corpus.n_documents, 'documents')} ({corpus.n_tokens:,} {tokens}).",
        f"Inference was by {how}, {_run(about, unit)}, with the random seed {about['seed']}.",
    ]
    if _settings(engine):
        said.append(f"Engine settings: {_settings(engine)}.")
    if found := _found(posterior, recommended):
        said.append(found)
    names = {"mc2core": "mc2core", "python": "Python", "numpy": "NumPy"}
    versions = [f"{names[one]} {number}" for one, number in about.get("versions", {}).items() if one in names]
    commit = f" (commit {about['git_commit'][:8]})" if about.get("git_commit") else ""
    said.append(f"We used {', '.join(versions) or 'mc2core'}{commit}. The same corpus, settings and seed give the same")
    said.append("result.")
    return " ".join(said)


def _level(model: dict[str, Any]) -> str:
    if model["name"] != "mc2":
        return ""
    if not model.get("document_level"):
        return " without a document level, as in the paper"
    omega = model["document_concentration"]
    return f" with a document level ({'its concentration learnt' if omega == 'learn' else f'concentration {omega:g}'})"


def _clusters(model: dict[str, Any]) -> str:
    n_clusters = model.get("n_clusters")
    return "" if n_clusters is None else f", with {counted(n_clusters, 'clusters')}"


def _contexts(model: dict[str, Any]) -> str:
    contexts = model.get("contexts") or {}
    named = [f"{name} ({one['family'] if isinstance(one, dict) else one})" for name, one in contexts.items()]
    return f", with the contexts {', '.join(named)}," if named else ""


def _run(about: Mapping[str, Any], unit: str) -> str:
    """Iterations, burn-in, samples and chains."""
    said = f"{about.get('stopped_at', about['iterations']):g} {unit}"
    if about.get("burn_in") is not None and about["engine"]["name"] == "gibbs":
        said += f", of which the first {about['burn_in']} were discarded"
    chains = len(about.get("chains", []) or [1])
    return said + (f", in {chains} independent chains" if chains > 1 else "")


def _settings(engine: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in engine.items() if name != "name" and value is not None)


def _found(posterior: Posterior, recommended: int) -> str:
    if posterior.samples[0].documents_are_clusters:
        return f"The fit has {posterior.representative.n_topics} topics."
    found = f"The fit has {counted(posterior.n_clusters, 'clusters')}"
    if len(posterior.samples) > 1:
        found += f" ({consensus.in_samples('clusters', posterior.interval('main clusters'))})"
    chains = posterior.between_chains()
    agree = f", and the chains agree by an adjusted Rand index of {chains['ari']:.2f}" if "ari" in chains else ""
    found += f" and {counted(posterior.representative.n_topics, 'topics')}{agree}."
    if recommended < posterior.representative.n_clusters:
        found += f" We report the recommended clustering, a cut of these into {counted(recommended, 'clusters')}."
    return found
