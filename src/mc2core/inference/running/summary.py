"""Summary of a run: numbers of clusters and topics, their latest changes, the agreement of chains, and warnings."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mc2core.base.checks import counted
from mc2core.corpus import Corpus
from mc2core.corpus.embeddings import projection_of
from mc2core.families.base import Family
from mc2core.families.stacked import StackedContexts
from mc2core.posterior import Posterior, consensus
from mc2core.posterior.hierarchy import MIN_AGREEMENT

logger = logging.getLogger(__name__)

#: columns of the trace whose changes are reported
_NAMES = ("clusters", "topics")
#: a chain is stuck if another chain has at least APART times as many clusters and a much higher log joint
APART = 3
#: minimum difference of log joints for a stuck chain, in standard deviations over iterations
_LOWER = 5.0
#: columns of the trace that must be stable before a run with iterations="auto" ends, with their names in messages
_FOLLOWED = {"log_joint": "log joint", "clusters": "clusters", "topics": "topics"}
# smallest number of iterations per quarter of a trace for which trends are computed
_FEWEST = 4
#: mean number of tokens per document below which a mixture model is recommended
_SHORT = 10
#: number of most frequent words that are checked for markup, and number of markup words that causes a warning
_COMMONEST, _MARKUP = 200, 3
_WORDS_OF_MARKUP = frozenset(
    {"amp", "br", "class", "div", "font", "gt", "href", "html", "http", "https", "img", "lt", "nbsp"}
    | {"php", "quot", "span", "src", "td", "tr", "www"}
)
#: weight of a context, relative to the weight of the words, below which the context has little effect
LIGHT = 0.02


def found(
    posterior: Posterior,
    traces: Sequence[Sequence[Mapping[str, float]]],
    names: Sequence[str] = _NAMES,
    truncations: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return the numbers of clusters and topics in use, and their change over the last third of each chain.

    Convergence cannot be determined from a single trace, so it is not reported.

    Parameters
    ----------
    posterior : posterior of the run.
    traces : trace of each chain, with one row per iteration.
    names : the numbers that the engine infers, "clusters" or "topics" or both; other numbers are left out.
    truncations : largest possible numbers of clusters and topics, if the results depend on them.

    Returns
    -------
    dict
        ``clusters``, ``topics``: int, numbers in use (:meth:`Posterior.number`). ``intervals``: dict, central 90 %
        intervals over samples of the numbers of main clusters and of topics (:meth:`Posterior.interval`); empty if
        there is only one sample. ``changing``: list, columns of the trace that are not stable (:func:`still_changing`).
        ``over``: int, a third of the iterations. ``before``, ``after``: dict, numbers of each chain ``over`` iterations
        before the end and at the end; empty if ``over`` is 0. ``chains``: dict, agreement of chains
        (:meth:`Posterior.between_chains`). ``n_clusters``: int, if it is fixed. ``truncations``: dict of int, if there
        are any. :func:`mc2core.fit` adds ``warnings`` (:func:`advice`). :func:`add_hierarchy` adds ``recommended``, the
        recommended number of clusters, and ``broad`` or ``fine``, the number of a second clustering, if there is one.
    """
    over = min(len(trace) for trace in traces) // 3
    about: dict[str, Any] = {"over": over, "before": {}, "after": {}, "intervals": {}}
    about["changing"] = [one for one in still_changing(traces) if one not in _NAMES or one in names]
    for name in names:
        if all(trace and name in trace[-1] for trace in traces):
            about[name] = posterior.number(name)
            if over:
                about["before"][name] = [int(trace[-1 - over][name]) for trace in traces]
                about["after"][name] = [int(trace[-1][name]) for trace in traces]
            if len(posterior.samples) > 1:
                of = consensus.COUNTED[name]
                about["intervals"][of] = list(posterior.interval(of))
    about["chains"] = posterior.between_chains()
    if most := posterior.provenance.get("model", {}).get("n_clusters"):
        about["n_clusters"] = most
    if truncations:
        about["truncations"] = dict(truncations)
    return about


def still_changing(traces: Sequence[Sequence[Mapping[str, float]]]) -> list[str]:
    """Return which of log joint, clusters and topics still change in the second half of at least one chain.

    A column of the trace is stable if its means over the third and the fourth quarter of the iterations are close. They
    may differ by the standard deviation within these quarters, or by 1 cluster or topic if this is larger. With fewer
    than 16 iterations, all columns are considered stable. A stable trace shows no trend, but another initial state may
    still lead to another result.

    Parameters
    ----------
    traces : trace of each chain, with one row per iteration.

    Examples
    --------
    >>> rising = [{"log_joint": -100.0 + iteration, "topics": 7} for iteration in range(40)]
    >>> still_changing([rising])
    ['log joint']
    """
    return [told for name, told in _FOLLOWED.items() if not all(_is_level(trace, name) for trace in traces)]


def _is_level(trace: Sequence[Mapping[str, float]], name: str) -> bool:
    later = [row.get(name, 0.0) for row in trace[len(trace) // 2 :]]
    first, second = np.array(later[: len(later) // 2]), np.array(later[len(later) // 2 :])
    if len(first) < _FEWEST:
        return True
    spread = math.sqrt(0.5 * (first.var() + second.var()))
    return abs(float(second.mean() - first.mean())) <= max(spread, 0.0 if name == "log_joint" else 1.0)


def sentence(about: Mapping[str, Any]) -> str:
    """Return the result of :func:`found` as a sentence, or "" if it has neither clusters nor topics."""
    names = [name for name in _NAMES if name in about]
    if not names:
        return ""
    numbers = [f"{counted(about[name], name)}{_interval(name, about)}" for name in names]
    first = "found " + " and ".join(numbers) + _of_at_most([about], names)
    if about["chains"]:
        first = f"{first}; {agreement(about['chains'])}"
        return _with_changes(first, about, _changes([about], names)) + _meaning([about])
    first = f"{first}; {ONE_CHAIN}" if "clusters" in names else first
    return _with_changes(first, about, _ends(about, names)) + _meaning([about])


def sentence_of_all(about: Sequence[Mapping[str, Any]]) -> str:
    """Return the results of :func:`found` for several fits with different seeds as one sentence, or ""."""
    known = [one for one in about if any(name in one for name in _NAMES)]
    if len(known) < 2:
        return sentence(known[0]) if known else ""
    names = [name for name in _NAMES if name in known[0]]
    numbers = [_counted_range([one[name] for one in known], name) for name in names]
    first = f"found {' and '.join(numbers)} in {len(known)} fits{_of_at_most(known, names)}"
    changing = dict.fromkeys(name for one in known for name in one.get("changing", []))
    return _with_changes(first, {**known[0], "changing": [*changing]}, _changes(known, names)) + _meaning(known)


ONE_CHAIN = "one chain; another start may differ"
#: message for a fit with all documents in one cluster
ONE_CLUSTER = "no groups of documents were found: topics alone explain how documents differ (docs/how_to/choosing_k.md)"


def is_one_cluster(about: Mapping[str, Any]) -> bool:
    """Return whether a fit with topics recommends only one cluster, although the model allows more clusters."""
    return about.get("recommended", about.get("clusters")) == 1 and about.get("n_clusters") != 1 and "topics" in about


def _meaning(known: Sequence[Mapping[str, Any]]) -> str:
    return f"; {ONE_CLUSTER}" if any(map(is_one_cluster, known)) else ""


def agreement(chains: Mapping[str, Any]) -> str:
    """Return the result of :meth:`Posterior.between_chains` as a phrase.

    >>> agreement({"clusters": [31, 33], "ari": 0.714, "vi_bits": 1.5, "recommended": 12, "recommended_ari": 0.93})
    '2 chains of 31 and 33 clusters agree by ARI 0.71, VI 1.50 bits on all clusters, by ARI 0.93 on the recommended 12'
    """
    name = next(name for name in _NAMES if name in chains)
    *numbers, last = chains[name]
    said = f"{len(chains[name])} chains of {', '.join(map(str, numbers))} and {counted(last, name)}"
    if "ari" not in chains:
        return said
    said = f"{said} agree by ARI {chains['ari']:.2f}, VI {chains['vi_bits']:.2f} bits on all clusters"
    if "recommended_ari" in chains:
        said += f", by ARI {chains['recommended_ari']:.2f} on the recommended {chains['recommended']}"
    return said


def _interval(name: str, about: Mapping[str, Any]) -> str:
    """Return the interval of the number of main clusters as a phrase, or ""."""
    bounds = about["intervals"].get("main clusters") if name == "clusters" else None
    return "" if bounds is None else f" ({consensus.in_samples(bounds)})"


def _ends(about: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return phrases with the values of each number at the start and end of the last third, for a single chain."""
    ends = [(name, about["before"][name][0], about["after"][name][0]) for name in names if name in about["before"]]
    return [
        f"{name} were {after} at the start and the end" if before == after else f"{name} went from {before} to {after}"
        for name, before, after in ends
    ]


def _changes(known: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Return phrases with the change of each number over the last third, for all chains of several fits."""
    told = []
    for name in names:
        if all(name in one["before"] for one in known):
            ends = [pair for one in known for pair in zip(one["before"][name], one["after"][name], strict=True)]
            told.append(f"{name} changed by {_range([after - before for before, after in ends], '+')}")
    return told


def _of_at_most(known: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Return the truncations as a phrase, or "" if the engines have none."""
    if not all("truncations" in one for one in known):
        return ""
    following = [name for name in names if name in known[0]["truncations"]]
    most = " and ".join(_counted_range([one["truncations"][name] for one in known], name) for name in following)
    return f" (at most {most}; {' and '.join(following)} depend on this limit: docs/how_to/choosing_k.md)"


def _with_changes(first: str, about: Mapping[str, Any], told: Sequence[str]) -> str:
    """Append the phrases ``told`` about changes, and the number of iterations, to the phrase ``first``."""
    over = "iteration" if about["over"] == 1 else f"{about['over']} iterations"
    if not told:
        return first
    still = f"; the last two quarters differ in {', '.join(about['changing'])}" if about.get("changing") else ""
    return f"{first}; over the last {over} {', '.join(told)}{still}"


def _counted_range(values: Sequence[int], what: str) -> str:
    """Return a range of counts with its noun, such as "12 to 15 clusters" or "1 cluster"."""
    least, most = min(values), max(values)
    return counted(most, what) if least == most else f"{least:,} to {counted(most, what)}"


def _range(values: Sequence[int], sign: str = "") -> str:
    """Return a range as a phrase, such as "12 to 15" or "12"; with ``sign`` "+", for example "0 to +3"."""
    least, most = (f"{value:{sign if value else ''}d}" for value in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"


# -- weights of contexts --------------------------------------------------------------------------------------------
def context_weights(corpus: Corpus, families: Mapping[str, Family]) -> dict[str, float]:
    """Return the weight of the words (key "") and of each context, in nats per document.

    A weight is the mean negative log likelihood of the words or context values if all documents are in one cluster. It
    is an upper bound of the information that the words or the context of a document contain about its cluster. The
    strength of a context is included.
    """
    counts = np.bincount(corpus.content.indices, weights=corpus.content.data)
    counts, n = counts[counts > 0], max(corpus.n_documents, 1)
    found = {"": float(counts @ np.log(counts.sum() / counts)) / n}
    for name in families:
        stacked = StackedContexts(corpus, {name: families[name]})
        total = stacked.prior + np.asarray(stacked.statistics.sum(axis=0)).ravel()
        found[name] = -float(families[name].log_marginal(total) + stacked.log_base.sum()) / n
    return found


def tell_weights(corpus: Corpus, families: Mapping[str, Family]) -> None:
    """Log the weights of words and contexts, and warn of contexts that outweigh the words or have little effect."""
    if not families or corpus.is_of_observations or not corpus.n_tokens:
        return
    weights = context_weights(corpus, families)
    of_words = weights.pop("")
    listed = [f"{name} {_nats(weight)} (strength {families[name].strength:g})" for name, weight in weights.items()]
    logger.info("nats per document: words %s; contexts: %s", _nats(of_words), ", ".join(listed))
    for name, weight in weights.items():
        strength = families[name].strength
        compared = f"{_nats(weight)} nats per document, and the words {_nats(of_words)}"
        if 0.0 < weight < LIGHT * of_words:
            logger.warning(
                "context %r weighs little next to the words: %s. Its strength is %g and cannot exceed 1; shorter texts "
                "would give it more weight", name, compared, strength,
            )  # fmt: skip
        elif weight > of_words:
            logger.warning(
                "context %r outweighs the words: %s; with strength=%.1g it would weigh half as much as the words",
                name, compared, 0.5 * strength * of_words / weight,
            )  # fmt: skip


def _nats(weight: float) -> str:
    return f"{weight:,.0f}" if weight >= 100 else f"{weight:.2g}"


# -- warnings ----------------------------------------------------------------------------------------------------------
def stuck_chains(traces: Sequence[Sequence[Mapping[str, float]]]) -> list[int]:
    """Return the indices of stuck chains.

    A chain is stuck if the chain with the highest log joint has at least APART times as many clusters and a much higher
    log joint. ``traces`` contains the trace of each chain, of which the second half is used. The list is empty if the
    traces have no ``log_joint``.
    """
    if len(traces) < 2 or not all(len(trace) > 3 and {"log_joint", "clusters"} <= trace[-1].keys() for trace in traces):
        return []
    later = [trace[len(trace) // 2 :] for trace in traces]
    joint = [np.array([row["log_joint"] for row in rows]) for rows in later]
    clusters = [float(np.median([row["clusters"] for row in rows])) for rows in later]
    spread = max(float(values.std()) for values in joint)
    best = int(np.argmax([values.mean() for values in joint]))
    return [
        number
        for number, values in enumerate(joint)
        if clusters[best] >= APART * clusters[number] and values.mean() < joint[best].mean() - _LOWER * spread
    ]


def add_hierarchy(posterior: Posterior, corpus: Corpus, inferred: dict[str, Any]) -> None:
    """Find the hierarchy of clusterings of a fit, if possible, and update ``inferred``, the result of :func:`found`."""
    if not posterior.representative.documents_are_clusters:
        try:
            hierarchy = posterior.find_hierarchy(corpus)
            inferred["recommended"] = hierarchy.recommended
            inferred |= {hierarchy.other_name: hierarchy.other} if hierarchy.other else {}
        except ValueError as error:
            logger.info("no clustering is recommended: %s", error)
        inferred["chains"] = posterior.between_chains()
        inferred["warnings"] = advice(posterior, corpus)


def advice(posterior: Posterior, corpus: Corpus) -> list[str]:
    """Return warnings about the quality of the clusters of a fit, one sentence each.

    ``corpus`` contains the fitted documents or other documents. If the posterior has a hierarchy, the recommended
    clusterings of the chains are compared; otherwise, all clusters are compared.
    """
    return [*_of_chains(posterior), *_of_texts(posterior, corpus)]


def _of_chains(posterior: Posterior) -> list[str]:
    between, said = posterior.between_chains(), []
    if "ari" not in between:
        return []
    for number in posterior.provenance.get("stuck", []):
        said.append(
            f"chain {number + 1} is stuck at {counted(between['clusters'][number], 'clusters')}, though another chain "
            "explains the documents far better: the clusters shown are from the other chain"
        )
    ari, of_what = between["ari"], "they "
    if "recommended_ari" in between:
        ari, of_what = between["recommended_ari"], f"the recommended {between['recommended']} of each "
    # with one cluster, the agreement of clusterings has no meaning
    elif posterior.hierarchy is not None and posterior.hierarchy.recommended == 1:
        return said
    if not said and ari < MIN_AGREEMENT:
        *others, last = between["clusters"]
        numbers = " and ".join([*map(str, others), counted(last, "clusters")])
        said.append(
            f"different starts found {numbers}, and {of_what}agree only in part (adjusted Rand index "
            f"{ari:.2f}; 1 if identical): treat single clusters with care, look at fewer clusters, or run more "
            "iterations or chains"
        )
    return said


def _of_texts(posterior: Posterior, corpus: Corpus) -> list[str]:
    if corpus.is_of_observations or not corpus.n_tokens:
        return []
    said, length = [], corpus.n_tokens / corpus.n_documents
    projection = projection_of(posterior.imported)
    has_embeddings = projection is not None and projection.name in posterior.families
    if length < _SHORT and not has_embeddings and posterior.provenance.get("model", {}).get("name") != "mixture":
        said.append(
            f"texts of {counted(round(length), 'words')} show little of their topics: compare with a mixture, whose "
            "clusters have words of their own (model mixture)"
        )
    documents = np.bincount(corpus.content.indices, minlength=corpus.n_words)
    common = {posterior.vocabulary[word] for word in np.argsort(-documents, kind="stable")[:_COMMONEST]}
    if len(found := sorted(common & _WORDS_OF_MARKUP)) >= _MARKUP:
        said.append(f"markup in the texts (words such as {', '.join(found[:3])}): clean them before the import")
    return said
