"""MC2 (ICML14), with or without a document level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mc2core.base.checks import MAX_LABELS, MAX_PRIOR, whole
from mc2core.models.base import LEARN, ROLES, TopicModel, concentration, content_family, context_families

#: alpha / N where neither is said: with 1, clusters of short documents empty (docs/notes/gibbs_document_level.md)
_EACH = 10.0


class MC2(TopicModel):
    """Documents in clusters, words in topics, contexts emitted by clusters; the numbers of both are unknown, unless that
    of clusters is told.

    Parameters
    ----------
    document_level : bool, default True
        Whether a document's topic proportions are drawn from DP(omega, those of its cluster) (ours). False is the model
        of ICML14 and UAI16, whose documents share the proportions of their cluster.
    document_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        omega, of the document level; "learn" starts at 10.
    n_clusters : int in [1, 2147483647] or None, default None
        N, clusters as they are asked for: a finite mixture, whose weights have the prior Dirichlet(alpha / N, ...,
        alpha / N). Documents may leave some of the N empty. None is a Dirichlet process: the number is found.
    contexts : list of names, or mapping of names to families or None, default None
        Contexts of the corpus that clusters emit. Families, their settings as a configuration holds them, or None: that of the
        context's kind, NormalGamma of numbers and DirichletCategorical of counts. No contexts at all: the embeddings of the
        corpus (:meth:`mc2core.Corpus.with_embeddings`), if it has any; an empty list leaves them out.
    content : VectorFamily or mapping of its settings or None, default None
        What topics emit in a corpus of observations: None is the family of their kind, DiagonalNormalGamma of numbers,
        GammaPoissonVector of counts, BetaBernoulliVector of zeros and ones; GaussWishart is another one of numbers.
        Where it is of words: None.
    group_concentration : float in [1e-10, 1e10] or "learn" or None, default None
        alpha of ICML14, of document clusters; "learn" starts at 1. None is "learn", and 10 N with n_clusters, where it
        is not learnt: with N or less, clusters of short documents empty.
    table_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        v, within a cluster; "learn" starts at 1.
    topic_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        eta, of topics; "learn" starts at 1.
    topic_word_prior : float in [1e-10, 1e10] or "learn", default 0.01
        s, of the symmetric Dirichlet prior of a topic's words; "learn" starts at 0.01.
    concentration_priors : dict of {"group", "table", "topic", "words", "document"} to pair of float in [1e-10, 1e10] or None, default None
        Gamma prior (shape, rate) of each concentration that is learnt; (1, 1) where not given, of document (1, 0.01).

    Raises
    ------
    ValueError
        An argument outside its range.
    """  # noqa: E501

    name = "mc2"

    def __init__(
        self,
        *,
        document_level: bool = True,
        document_concentration: float | str = LEARN,
        n_clusters: int | None = None,
        contexts: Any = None,
        content: Any = None,
        group_concentration: float | str | None = None,
        table_concentration: float | str = LEARN,
        topic_concentration: float | str = LEARN,
        topic_word_prior: float | str = 0.01,
        concentration_priors: Mapping[str, Any] | None = None,
    ) -> None:
        self._set_document_level(document_level, document_concentration)
        self.content = content_family(content)
        self.contexts, self.uses_embeddings = context_families(contexts), contexts is None
        if n_clusters is not None:
            self.n_clusters = whole("n_clusters", n_clusters, most=MAX_LABELS)
            self.roles = tuple(role for role in ROLES if role != "group")
        if group_concentration is None:
            group_concentration = LEARN if self.n_clusters is None else min(_EACH * self.n_clusters, MAX_PRIOR)
        self.group_concentration = concentration("group_concentration", group_concentration)
        if self.n_clusters is not None and self.is_learnt("group"):
            raise ValueError(f"group_concentration is {LEARN!r}; with n_clusters it must be a number or None")
        self._set_hierarchy(table_concentration, topic_concentration, topic_word_prior, concentration_priors)

    def describe(self) -> str:
        told = f" of at most {self.n_clusters} clusters" if self.n_clusters else ""
        if self.document_level:
            return (
                f"MC2{told} with a document level (document_concentration={self.document_concentration}); "
                "--set document_level=false is the paper's, where documents of a cluster share its topic proportions"
            )
        return f"MC2{told}, the documents of a cluster share its topic proportions (document_level=false)"
