"""Plain sentences on how a report was made, and on the limits of its results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mc2core.base.checks import counted
from mc2core.explore.agreement import n_chains
from mc2core.explore.description import Description
from mc2core.explore.tables import Tables

TITLE = "How this was made, and its limits"
MIN_SURE = 0.5
"""Probability of a document's cluster below which the document could belong to several clusters."""
LAST = "The results describe these documents only. They do not show why groups or periods differ."
"""The last sentence of every report."""


def sentences(description: Description, tables: Tables) -> list[str]:
    """Return paragraphs without markup on the method and its limits, for readers who do not know the model."""
    version = description.posterior.provenance.get("versions", {}).get("mc2core", "")
    contexts = sorted(description.posterior.families)
    n, content = counted(description.n_documents or description.corpus.n_documents, "documents"), _content(description)
    program = f"The program mc2core{f' {version}' if version else ''}"
    if description.without_clusters:
        method = f"{program} looked for topics in {n} by their {content}."
    else:
        by = f"by their {content} and their {_join(contexts)}" if contexts else f"by their {content} alone"
        method = f"{program} looked for groups among {n}, {by}."
    if not description.is_of_observations and description.posterior.representative.n_topics:
        method += " It counts words, and does not read sentences."
    paragraphs = [method, _names(description), *_number(description), *_runs(description)]
    if description.without_clusters or description.no_groups:
        return [*paragraphs, LAST]
    if contexts:
        paragraphs.append(
            f"Documents with similar values of {_join(contexts)} are more likely to be in the same cluster, because "
            "the program used these values. Clusters that differ in them are therefore no proof of a difference in "
            'words. Only differences "by more than chance explains" passed a test that uses words alone.'
        )
    unsure, shown = int((tables["documents"]["probability"] < MIN_SURE).sum()), description.corpus.n_documents
    paragraphs.append(
        f"{unsure:,} of {counted(shown, 'documents')} could belong to several clusters: each is less than half sure. "
        "Read some documents of a cluster before you say what it is about."
    )
    if content == "words" and (empty := int((description.corpus.document_lengths == 0).sum())):
        paragraphs.append(f"In {counted(empty, 'documents')} without words, contexts and chance decide the cluster.")
    return [*paragraphs, LAST]


def _content(description: Description) -> str:
    if not description.posterior.representative.n_topics:
        return "contexts"
    return "observations" if description.is_of_observations else "words"


def _names(description: Description) -> str:
    """Return a sentence on the names of clusters and topics."""
    text = "Nobody told the program what to look for."
    if description.is_of_observations or not description.posterior.representative.n_topics:
        return text
    if description.names:
        return f"{text} A person gave some of the names. The other names are three frequent words."
    return f"{text} A name is three frequent words, chosen by the program."


def _number(description: Description) -> list[str]:
    """Return a list with one sentence on the number of clusters, or an empty list for models without clusters."""
    posterior, size = description.posterior, description.recommended
    if description.without_clusters:
        return []
    if (chosen := posterior.provenance.get("model", {}).get("n_clusters")) is not None:
        text, less = f"The number of clusters, {chosen}, was set by the user.", "have no documents or were merged."
        return [text if size == chosen else f"{text} The program reports {size} of them; the others {less}"]
    if description.no_groups:
        return ["The program found no groups that are clear enough to report."]
    text = f"The number of clusters, {size}, is a recommendation; other numbers are possible."
    if size < description.n_clusters:
        text += f" It was reached by merging the {description.n_clusters} clusters of the fit."
    return [text]


def _runs(description: Description) -> list[str]:
    """Return a list with one sentence on the agreement of runs from different starts; empty without clusters."""
    posterior, n = description.posterior, n_chains(description.posterior)
    if description.without_clusters or description.no_groups:
        return []
    if n == 1:
        return ["The program ran once. Another random start may give other clusters."]
    hierarchy, size = posterior.hierarchy, description.recommended
    agreement = np.nan if hierarchy is None else hierarchy.agreement[size - 1]
    score = "" if np.isnan(agreement) else (
        f" Their agreement on which documents belong together is {agreement:.2f}, where 1 is complete agreement and 0 "
        "is chance (adjusted Rand index)."
    )  # fmt: skip
    return [f"The program ran {n} times from different random starts.{score}"]


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
