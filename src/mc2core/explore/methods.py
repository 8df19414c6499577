"""A paragraph for the methods section of a paper, made from the provenance of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mc2core.base.checks import counted
from mc2core.corpus import Corpus
from mc2core.corpus.building.settings import CHOSEN, WORDS
from mc2core.corpus.checks import CONTENT_KINDS
from mc2core.corpus.readers.bibliography import messages
from mc2core.corpus.readers.reading import BIBLIOGRAPHY
from mc2core.inference.base import n_samples
from mc2core.inference.registry import engine_class
from mc2core.posterior import Posterior, consensus

_MODELS = {
    "mc2": "MC2, multilevel clustering with group-level contexts (Nguyen et al., 2014)",
    "hdp": "a hierarchical Dirichlet process (Teh et al., 2006)",
    "nptot": "npTOT, a hierarchical Dirichlet process whose topics emit a time (Dubey et al., 2013)",
    "mixture": "a finite mixture (Ahmed et al., 2012)",
}


def paragraph(posterior: Posterior, corpus: Corpus, provenance: Mapping[str, Any], recommended: int) -> str:
    """Return the paragraph for the methods section.

    ``provenance`` is the provenance of the fit, and ``recommended`` the recommended number of clusters. Raises
    ValueError if the provenance lacks the model, the engine or the iterations.
    """
    if not {"model", "engine", "iterations"} <= set(provenance):
        raise ValueError("the posterior has no provenance of a fit; mc2core.fit and mc2 fit leave one")
    model, engine = provenance["model"], provenance["engine"]
    kind = engine_class(engine["name"])
    method, unit = kind.description, kind.iteration_name
    level = _level(model, posterior.representative.has_repeats)
    sentences = [
        f"We fitted {_MODELS[model['name']]}{level}{_clusters(model)}{_contexts(model)} to "
        f"{_documents(posterior, corpus, provenance)}.",
        _preprocessing(posterior.imported or corpus.imported, corpus),
        _missing(posterior, corpus),
        f"Inference was by {method}, {_run(posterior, provenance, unit)}, with the random seed {provenance['seed']}.",
        _updates(provenance),
        f"Engine settings: {_settings(engine)}." if _settings(engine) else "",
        _describe_result(posterior, recommended, model.get("n_clusters") is not None),
        _versions(provenance),
    ]
    reproduction = "The same corpus, settings and seed give the same result."
    if "updates" in provenance or "stream" in provenance:
        reproduction = "The same documents in the same order, settings and seeds give the same result."
    return " ".join(one for one in [*sentences, reproduction] if one)


def _documents(posterior: Posterior, corpus: Corpus, provenance: Mapping[str, Any]) -> str:
    """Return a phrase with the number of fitted documents and, for the fitted corpus, of tokens and words."""
    if "stream" in provenance:
        return counted(provenance["stream"]["fitted"]["documents"], "documents")
    if not posterior.was_fitted_on(corpus):
        return counted(len(posterior.samples[0].cluster), "documents")
    kind = CONTENT_KINDS[corpus.content_kind] if corpus.is_of_observations else "words"
    tokens = counted(corpus.n_tokens, "observations" if corpus.is_of_observations else "tokens")
    return f"{counted(corpus.n_documents, 'documents')} ({tokens} of {counted(corpus.n_words, kind)})"


def _preprocessing(imported: Mapping[str, Any] | None, corpus: Corpus) -> str:
    """Return sentences on how words were extracted and selected."""
    if imported is None:
        built = "observations" if corpus.is_of_observations else "counts"
        return f"The corpus was built from {built}; how these were made is not recorded."
    settings = imported.get("settings", {}) | imported.get("chosen", {})
    notes = messages(imported[BIBLIOGRAPHY]) if BIBLIOGRAPHY in imported else []
    works = [f"{note[0].upper()}{note[1:]}." for note in notes]
    shown = {name: settings[name] for name in (*WORDS, *CHOSEN, "missing") if settings.get(name)}
    shown |= {"vocabulary": "given"} if "vocabulary" in shown else {}
    if isinstance(shown.get("stop_words"), list):
        shown["stop_words"] = f"a list of {len(shown['stop_words'])}"
    listed = ", ".join(f"{name} {', '.join(one) if isinstance(one, list) else one}" for name, one in shown.items())
    return " ".join([*works, *([f"Preprocessing: {listed}."] if listed else [])])


def _missing(posterior: Posterior, corpus: Corpus) -> str:
    """Return a sentence on missing values in the contexts of the model; "" if ``corpus`` is not the fitted corpus."""
    if not posterior.was_fitted_on(corpus):
        return ""
    missing = {name: int(corpus.missing(name).sum()) for name in posterior.families if name in corpus.contexts}
    rules = (posterior.imported or {}).get("chosen", {}).get("rare", ())
    rare = {name for name, _, rule in (one.partition("=") for one in rules) if not rule.endswith(":pool")}
    listed = ", ".join(
        f"{name} in {counted(n, 'documents')}{' (or all left out as rare)' if name in rare else ''}"
        for name, n in missing.items()
        if n
    )
    return f"Values are missing: {listed}." if listed else ""


def _updates(provenance: Mapping[str, Any]) -> str:
    """Return sentences on the documents that were added after the fit."""
    sentences = []
    if updates := provenance.get("updates"):
        added, times = sum(one["documents"] for one in updates), counted(len(updates), "updates")
        came = f"{counted(added, 'documents')} {'was' if added == 1 else 'were'} added"
        sweeps = counted(updates[-1]["sweeps"], "sweeps")
        sentences.append(
            f"{came} to the {updates[0]['before']:,} of the fit in {times}: given each sample, the clusters and topics "
            f"of the new documents were drawn by {sweeps} of Gibbs sampling; the clusters of earlier documents were "
            "held fixed."
        )
    if stream := provenance.get("stream"):
        updates = f" in {counted(len(stream['updates']), 'updates')}" if stream["updates"] else ""
        sentences.append(f"The fit was then updated with {counted(stream['documents'], 'documents')}{updates}.")
    return " ".join(sentences)


def _versions(provenance: Mapping[str, Any]) -> str:
    names = {"mc2core": "mc2core", "python": "Python", "numpy": "NumPy"}
    versions = [f"{names[one]} {number}" for one, number in provenance.get("versions", {}).items() if one in names]
    commit, _, changes = (provenance.get("git_commit") or "").partition("+")
    suffix = f" (commit {commit[:8]}{', with changes' if changes else ''})" if commit else ""
    return f"We used {', '.join(versions) or 'mc2core (version not recorded)'}{suffix}."


def _level(model: dict[str, Any], has_repeats: bool) -> str:
    if model["name"] != "mc2":
        return ""
    if not model.get("document_level"):
        return " without a document level, as in the paper"
    omega = model["document_concentration"]
    level = f" with a document level ({'its concentration learnt' if omega == 'learn' else f'concentration {omega:g}'})"
    return level + (", whose documents may repeat their words" if has_repeats else "")


def _clusters(model: dict[str, Any]) -> str:
    n_clusters = model.get("n_clusters")
    return "" if n_clusters is None else f", with {counted(n_clusters, 'clusters')}"


def _contexts(model: dict[str, Any]) -> str:
    contexts = model.get("contexts") or {}
    descriptions = [f"{name} ({one['family']}, strength {one['strength']:g})" for name, one in contexts.items()]
    return f", with the contexts {', '.join(descriptions)}," if descriptions else ""


def burn_in_of(posterior: Posterior) -> int:
    """Return the number of iterations that were discarded before the first sample.

    This is half of the iterations, also for a resumed fit, unless the number of samples shows another burn-in.
    """
    provenance = posterior.provenance
    iterations, thin = int(provenance.get("stopped_at", provenance["iterations"])), provenance["thin"]
    per_chain = (provenance.get("chains") or [len(posterior.samples)])[0]
    return iterations // 2 if per_chain == n_samples(iterations, iterations // 2, thin) else provenance["burn_in"]


def _run(posterior: Posterior, provenance: Mapping[str, Any], unit: str) -> str:
    """Return a phrase with the iterations, burn-in, samples and chains."""
    phrase = counted(provenance.get("stopped_at", provenance["iterations"]), unit)
    if provenance.get("burn_in") is not None and engine_class(provenance["engine"]["name"]).keeps_samples:
        phrase += f", of which the first {burn_in_of(posterior)} were discarded"
    chains = len(provenance.get("chains", []) or [1])
    return phrase + (f", in {chains} independent chains" if chains > 1 else "")


def _settings(engine: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in engine.items() if name != "name" and value is not None)


def _describe_result(posterior: Posterior, recommended: int, is_fixed: bool) -> str:
    if posterior.samples[0].documents_are_clusters:
        return f"The fit has {counted(posterior.representative.n_topics, 'topics')}."
    if recommended == 1 and not is_fixed:
        topics = counted(posterior.representative.n_topics, "topics")
        return f"No groups of documents were found (one cluster is recommended). The fit has {topics}."
    text = f"The fit has {counted(posterior.n_clusters, 'clusters')}"
    if len(posterior.samples) > 1:
        text += f" ({consensus.in_samples(posterior.interval('main clusters'))})"
    text += f" and {counted(posterior.representative.n_topics, 'topics')}."
    if "ari" in (chains := posterior.between_chains()):
        text += f" On all clusters, the chains agree with an adjusted Rand index of {chains['ari']:.2f}."
    if recommended < posterior.representative.n_clusters:
        text += f" We report the recommended clustering, a cut of these into {counted(recommended, 'clusters')}"
        agreement = np.nan if posterior.hierarchy is None else posterior.hierarchy.agreement[recommended - 1]
        between = f"; the cuts of the chains into {recommended} agree with an adjusted Rand index of {agreement:.2f}."
        text += "." if np.isnan(agreement) else between
    if posterior.hierarchy is not None and posterior.hierarchy.other:
        text += f" The {posterior.hierarchy.other_name} clustering has {posterior.hierarchy.other} clusters."
    return " ".join([text, *merged_by_hand(posterior)])


def merged_by_hand(posterior: Posterior) -> list[str]:
    """Return a sentence on each merge of clusters by hand."""
    return [
        f"{len(one['clusters'])} of {counted(one['of'], 'recommended clusters')} were merged by hand after the fit: "
        f"{'; '.join(one['names'])}."
        for one in posterior.provenance.get("merged", [])
    ]
