"""npTOT, topics over time (Dubey et al. 2013)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mc2core.corpus import Corpus
from mc2core.families import Family, NormalGamma
from mc2core.models.base import LEARN, Model, TopicModel, context_families


class NPTOT(TopicModel):
    """An HDP whose topics emit the document's time with every token. A fit keeps no context.

    Parameters
    ----------
    contexts : list of names, or mapping of names to families or None
        Exactly one context of numbers, of the family NormalGamma and of strength 1. A missing time says nothing.
    table_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        v, within a document; "learn" starts at 1.
    topic_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        eta, of topics; "learn" starts at 1.
    topic_word_prior : float in [1e-10, 1e10] or "learn", default 0.01
        s, of the symmetric Dirichlet prior of a topic's words; "learn" starts at 0.01.
    concentration_priors : dict of {"table", "topic", "words"} to pair of float in [1e-10, 1e10] or None, default None
        Gamma prior (shape, rate) of each concentration that is learnt; (1, 1) where not given.

    Raises
    ------
    ValueError
        An argument outside its range, or other contexts than one.
    """

    name = "nptot"
    reported = ("topics",)
    has_clusters = False
    has_token_context = True
    has_document_level = False
    has_content = False
    roles = ("table", "topic")

    def __init__(
        self,
        *,
        contexts: Any,
        table_concentration: float | str = LEARN,
        topic_concentration: float | str = LEARN,
        topic_word_prior: float | str = 0.01,
        concentration_priors: Mapping[str, Any] | None = None,
    ) -> None:
        self.contexts = context_families(contexts)
        _check_one_number(self.contexts)
        self._set_hierarchy(table_concentration, topic_concentration, topic_word_prior, concentration_priors)

    def describe(self) -> str:
        return "npTOT, an HDP whose topics emit times; no clusters"

    @property
    def cluster_contexts(self) -> dict[str, Family]:
        return {}

    def for_corpus(self, corpus: Corpus) -> Model:
        known = super().for_corpus(corpus)
        _check_one_number(known.contexts)
        return known


def _check_one_number(contexts: Mapping[str, Family | None]) -> None:
    """ValueError unless there is one context, of numbers as far as is known."""
    families = list(contexts.values())
    if len(families) != 1 or not (families[0] is None or isinstance(families[0], NormalGamma)):
        given = ", ".join(f"{name!r} ({one.name if one else 'no family'})" for name, one in contexts.items())
        raise ValueError(
            f"npTOT takes exactly one context, of the family normal_gamma, but contexts holds {given or 'none'}"
        )
    if families[0] is not None and families[0].strength < 1.0:
        raise ValueError(f"npTOT takes a context of strength 1, but {next(iter(contexts))!r} has {families[0]!r}")
