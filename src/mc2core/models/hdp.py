"""The hierarchical Dirichlet process (Teh et al. 2006)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mc2core.models.base import LEARN, TopicModel, content_family


class HDP(TopicModel):
    """Documents with topic proportions, words in topics whose number is unknown; no clusters and no contexts.

    Parameters
    ----------
    document_level : bool, default False
        Whether there is one more level, proportions drawn from DP(omega, those of MC2's document level): the HDP of
        three levels, beside which MC2 with a document level is compared.
    document_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        omega, of that level; "learn" starts at 10.
    content : VectorFamily or mapping of its settings or None, default None
        What topics emit in a corpus of observations: None is the family of their kind, DiagonalNormalGamma of numbers,
        GammaPoissonVector of counts, BetaBernoulliVector of zeros and ones; GaussWishart is another one of numbers.
        Where it is of words: None.
    table_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        v, within a document; "learn" starts at 1.
    topic_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        eta, of topics; "learn" starts at 1.
    topic_word_prior : float in [1e-10, 1e10] or "learn", default 0.01
        s, of the symmetric Dirichlet prior of a topic's words; "learn" starts at 0.01.
    concentration_priors : dict of {"table", "topic", "words", "document"} to pair of float in [1e-10, 1e10] or None, default None
        Gamma prior (shape, rate) of each concentration that is learnt; (1, 1) where not given, of document (1, 0.01).

    Raises
    ------
    ValueError
        An argument outside its range.
    """  # noqa: E501

    name = "hdp"
    reported = ("topics",)
    has_clusters = False
    roles = ("table", "topic")

    def __init__(
        self,
        *,
        document_level: bool = False,
        document_concentration: float | str = LEARN,
        content: Any = None,
        table_concentration: float | str = LEARN,
        topic_concentration: float | str = LEARN,
        topic_word_prior: float | str = 0.01,
        concentration_priors: Mapping[str, Any] | None = None,
    ) -> None:
        self._set_document_level(document_level, document_concentration)
        self.content = content_family(content)
        self.contexts = {}
        self._set_hierarchy(table_concentration, topic_concentration, topic_word_prior, concentration_priors)

    def describe(self) -> str:
        return f"the HDP{' of three levels' if self.document_level else ''}; no clusters"
