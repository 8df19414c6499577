"""Models of a corpus, with their hyper-parameters, priors and contexts.

The engines that fit models are in :mod:`mc2core.inference`.
"""

from __future__ import annotations

import copy
import math
from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from mc2core.base.checks import MAX_LABELS, choice, counted, once, positive, prior_count, truth_value, whole
from mc2core.base.settings import Settings, option
from mc2core.corpus import Corpus
from mc2core.corpus.embeddings import projection_of
from mc2core.families import (
    FAMILIES,
    ContentFamily,
    DiagonalNormalGamma,
    Family,
    NormalGamma,
    family_for,
    family_for_content,
    family_from_settings,
    family_settings,
)

__all__ = ["HDP", "MC2", "NPTOT", "Mixture", "Model"]

#: names of the concentrations alpha, v, eta (ICML14), in this order
ROLES = ("group", "table", "topic")
#: names of s (the prior of a topic's words) and of omega (the concentration of the document level)
WORDS = "words"
DOCUMENT = "document"
#: setting of each concentration: a fixed number, or LEARN
CONCENTRATIONS = {
    "group": "group_concentration",
    "table": "table_concentration",
    "topic": "topic_concentration",
    WORDS: "topic_word_prior",
    DOCUMENT: "document_concentration",
}
LEARN = "learn"
#: starting values of learnt concentrations
_START = {"group": 1.0, "table": 1.0, "topic": 1.0, WORDS: 0.01, DOCUMENT: 10.0}
#: default prior of a learnt concentration: Gamma(shape, rate)
_PRIOR = (1.0, 1.0)
#: default prior of omega, which may be in the hundreds; with rate 1, an omega of 100 would cost 100 nats
_DOCUMENT_PRIOR = (1.0, 0.01)
# number of components of an embedding that may have full strength per token of a document
_COMPONENTS_PER_TOKEN = 3.0
#: default of alpha / N; with 1, clusters of short documents become empty (docs/notes/gibbs_document_level.md)
_EACH = 10.0
#: largest default of alpha; larger values make the sizes of many clusters too equal (docs/notes/starts.md)
_IN_ALL = 100.0
#: default of the largest number of clusters of a mixture
MOST_CLUSTERS = 100
COMPONENTS = ("multinomial", "poisson", "gaussian", "gauss_wishart")
#: smallest prior of a mixture, so that a count divided by it stays far below the largest float
MIN_MIXTURE_PRIOR = 1e-100


class Model(Settings, ABC):
    """Base class of models: levels, hyper-parameters, priors and contexts, without data and without an algorithm.

    Attributes
    ----------
    contexts : dict from str to Family or None
        Family of each context, by name. A family may be None until :meth:`for_corpus` chooses it.
    content : ContentFamily or None
        Family of the observations; None if topics emit words.
    """

    #: name of the model in experiments tables and on the command line
    name: ClassVar[str]
    #: numbers ("clusters", "topics") that a fit infers; other numbers are fixed by the model
    reported: ClassVar[Sequence[str]] = ("clusters", "topics")

    #: whether topics may emit observations in place of words
    has_content: ClassVar[bool] = False

    contexts: dict[str, Any]
    content: ContentFamily | None = None
    #: whether the embeddings of a corpus are used if no contexts are named
    uses_embeddings: bool = False

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor as a dict that can be written as JSON."""
        values = super().settings()
        if "content" in values:
            values["content"] = self.content and family_settings(self.content)
        if "contexts" in values:
            values["contexts"] = {name: family and family_settings(family) for name, family in self.contexts.items()}
        return values

    def describe(self) -> str:
        """Return the short description of the model that ``mc2 fit`` shows."""
        return type(self).__name__

    @property
    def cluster_contexts(self) -> dict[str, Family]:
        """The contexts that depend on the cluster of a document."""
        return self.contexts

    def for_corpus(self, corpus: Corpus) -> Model:
        """Return the model with a family for every context and, if topics emit observations, for the observations.

        If no family was set, the default family for the data in ``corpus`` is used.

        Raises ValueError if the corpus lacks a context, or if the model does not support the content of the corpus.
        """
        for name in self.contexts:
            if name not in corpus.contexts:
                has = ", ".join(corpus.contexts) or "none"
                raise ValueError(f"the corpus has no context {name!r}; it has: {has}")
        known = copy.copy(self)
        projection = projection_of(corpus.imported)
        embedded = None if projection is None or projection.name not in corpus.contexts else projection.name
        if self.uses_embeddings and embedded and not self.contexts:
            known.contexts = {embedded: None}
        known.contexts = {
            name: family or (embedding_family(corpus, name) if name == embedded else family_for(corpus.contexts[name]))
            for name, family in known.contexts.items()
        }
        if corpus.observations is None and self.content is not None:
            raise ValueError("content is a family of observations, but the corpus has words")
        if corpus.observations is not None:
            if not self.has_content:
                raise ValueError(f"{self.name} needs words; fit observations by mc2 or hdp")
            known.content = self.content or family_for_content(corpus.content_kind)
            if known.content.content_kind != corpus.content_kind:
                raise ValueError(
                    f"content is {type(known.content).__name__}, of {known.content.content_kind}, but the corpus holds "
                    f"{corpus.content_kind}; give the kind to Corpus.from_observations"
                )
            assert isinstance(known, TopicModel)
            known.refuse_words()
        return known


def embedding_family(corpus: Corpus, name: str) -> DiagonalNormalGamma:
    """Return the family of the embeddings ``name`` of a corpus, with the default strength.

    The strength is ``_COMPONENTS_PER_TOKEN`` times the mean number of tokens per document (without empty documents),
    divided by the number of components, but at most 1 (docs/notes/embeddings.md).
    """
    lengths = corpus.document_lengths
    tokens = float(lengths[lengths > 0].mean()) if lengths.any() else np.inf
    strength = min(1.0, _COMPONENTS_PER_TOKEN * tokens / corpus.contexts[name].shape[1])
    return DiagonalNormalGamma(strength=float(f"{strength:.3g}"))


class TopicModel(Model):
    """Base class of MC2, the HDP and npTOT: a hierarchy of Dirichlet processes over topics.

    Attributes
    ----------
    n_clusters : int or None
        Number of clusters N of a finite mixture. With None, the model is a Dirichlet process, in which the number of
        clusters is unbounded.
    group_concentration, table_concentration, topic_concentration : float or "learn"
        The concentrations alpha, v and eta of ICML14.
    document_level : bool
        Whether each document has its own topic proportions, drawn from DP(omega, proportions of its cluster).
    document_concentration : float or "learn"
        Concentration omega of the document level.
    burstiness : bool or None
        Whether a document may repeat its words without drawing them from its topics again. With None, words may repeat
        if the model has a document level, the topics emit words, and the engine supports repetition.
    topic_word_prior : float or "learn"
        Parameter s of the symmetric Dirichlet prior of a topic's words.
    concentration_priors : dict from concentration names to the [shape, rate] of their Gamma priors
    """

    #: whether documents are clustered; otherwise each document is its own cluster
    has_clusters: ClassVar[bool] = True
    #: whether the model can have a document level
    has_document_level: ClassVar[bool] = True
    has_content = True
    #: whether topics emit a context with each token
    has_token_context: ClassVar[bool] = False
    #: names of the concentrations of the model
    roles: tuple[str, ...] = ROLES

    n_clusters: int | None = None
    group_concentration: float | str = 1.0
    table_concentration: float | str
    topic_concentration: float | str
    document_level: bool = False
    document_concentration: float | str = LEARN
    burstiness: bool | None = None
    topic_word_prior: float | str
    concentration_priors: dict[str, list[float]]

    def _set_hierarchy(
        self,
        table_concentration: float | str,
        topic_concentration: float | str,
        topic_word_prior: float | str,
        concentration_priors: Mapping[str, Any] | None,
    ) -> None:
        """Check and set the arguments that all of these models have."""
        self.table_concentration = concentration("table_concentration", table_concentration)
        self.topic_concentration = concentration("topic_concentration", topic_concentration)
        self.topic_word_prior = concentration("topic_word_prior", topic_word_prior)
        further = (WORDS, DOCUMENT) if self.has_document_level else (WORDS,)
        self.concentration_priors = _priors(concentration_priors, self.roles, further)
        self.refuse_idle_priors()
        if self.content is not None:
            self.refuse_words()

    def refuse_idle_priors(self, fixed: Mapping[str, str] | None = None) -> None:
        """Raise ValueError if a prior was set for a concentration that the engine does not learn.

        The keys of ``fixed`` are the concentrations that the engine does not learn. The values are the settings with
        which the engine would learn these concentrations.
        """
        for role, prior in self.concentration_priors.items():
            if role == DOCUMENT and not self.document_level:
                needs = option("document_level", True)
            else:
                needs = "" if self.is_learnt(role) else option(CONCENTRATIONS[role], LEARN)
            needs = needs or (fixed or {}).get(role, "")
            if needs and prior != list(_DOCUMENT_PRIOR if role == DOCUMENT else _PRIOR):
                raise ValueError(f"concentration_priors[{role!r}] needs {needs}")

    def refuse_words(self) -> None:
        """Raise ValueError if a setting that applies only to words was changed in a model of observations."""
        needed = "a corpus of words, and this one holds observations"
        self.refuse_idle({"topic_word_prior": needed, **({"burstiness": needed} if self.burstiness else {})})

    def _set_document_level(
        self, document_level: bool, document_concentration: float | str, burstiness: bool | None
    ) -> None:
        """Check and set the arguments of the document level: whether it is used, omega, and burstiness."""
        self.document_level = truth_value("document_level", document_level)
        self.document_concentration = concentration("document_concentration", document_concentration)
        if self.has_document_level and not self.document_level:
            self.refuse_idle({"document_concentration": option("document_level", True)})
        self.burstiness = None if burstiness is None else truth_value("burstiness", burstiness)
        if self.burstiness and not self.document_level:
            raise ValueError(f"burstiness needs {option('document_level', True)}")

    @property
    def may_repeat(self) -> bool:
        """Whether words may repeat, if the engine supports repetition."""
        return self.burstiness is not False and self.document_level and self.content is None

    @property
    def _repeats(self) -> str:
        return ", in which documents may repeat their words (burstiness)" if self.may_repeat else ""

    @property
    def most_clusters(self) -> float:
        """Largest possible number of clusters: N, or infinity if the number is unbounded."""
        return self.n_clusters or math.inf

    def is_learnt(self, role: str) -> bool:
        """Return whether the concentration ``role`` is learnt rather than fixed."""
        return getattr(self, CONCENTRATIONS[role]) == LEARN

    def start_of(self, role: str) -> float:
        """Return the fixed value of the concentration ``role`` or, if it is learnt, its starting value."""
        return _START[role] if self.is_learnt(role) else float(getattr(self, CONCENTRATIONS[role]))

    def prior_of(self, role: str) -> tuple[float, float]:
        """Return the shape and the rate of the Gamma prior of the concentration ``role``."""
        shape, rate = self.concentration_priors.get(role, _DOCUMENT_PRIOR if role == DOCUMENT else _PRIOR)
        return shape, rate


def concentration(name: str, value: float | str) -> float | str:
    """Check a concentration, and return it as a float or as LEARN."""
    if isinstance(value, str) and value != LEARN:
        raise ValueError(f"{name} is {value!r}; it must be a number or {LEARN!r}")
    return LEARN if isinstance(value, str) else prior_count(name, value)


def _priors(priors: Any, roles: tuple[str, ...], further: tuple[str, ...]) -> dict[str, list[float]]:
    """Return a checked copy of ``concentration_priors``: [shape, rate] by role.

    Missing roles in ``roles`` get the default (1, 1). Roles in ``further`` are optional.
    """
    allowed = (*roles, *further)
    if priors is not None and not isinstance(priors, Mapping):
        raise ValueError(
            f"concentration_priors is {priors!r}; it must map some of {', '.join(allowed)} to (shape, rate)"
        )
    known: dict[str, list[float]] = {role: list(_PRIOR) for role in roles}
    for role, prior in (priors or {}).items():
        choice("concentration_priors", role, allowed)
        if isinstance(prior, str) or not isinstance(prior, Sequence | np.ndarray) or len(prior) != 2:
            raise ValueError(f"concentration_priors[{role!r}] is {prior!r}; it must be (shape, rate)")
        known[role] = [
            prior_count(f"concentration_priors[{role!r}] {part}", value)
            for part, value in zip(("shape", "rate"), prior, strict=True)
        ]
    return known


def content_family(content: Any) -> ContentFamily | None:
    """Return the argument ``content``, which is a family, the settings of a family or None, as a family or None."""
    family = family_from_settings(content) if isinstance(content, Mapping) else content
    if family is not None and not (isinstance(family, ContentFamily) and family.strength == 1.0):
        known = ", ".join(f"{one.__name__}()" for one in FAMILIES.values() if issubclass(one, ContentFamily))
        raise ValueError(f"content is {content!r}; it must be one of {known} with strength 1, or None for words")
    return family


def context_families(contexts: Any) -> dict[str, Any]:
    """Return the argument ``contexts`` as a dict from names to families or None.

    A family may be given by its settings. For a list of names, all values are None. None means that the family is
    chosen later, by the kind of the context.
    """
    if contexts is None:
        return {}
    if not isinstance(contexts, list | tuple | Mapping):
        raise ValueError(
            f"contexts is {contexts!r}; it must be a list of names, or map them to families such as NormalGamma()"
        )
    given = list(contexts.items() if isinstance(contexts, Mapping) else ((name, None) for name in contexts))
    for name, _ in given:
        if not isinstance(name, str):
            raise ValueError(f"contexts has the name {name!r}; a context's name is a string")
    families: dict[str, Family | None] = {}
    for name, family in once(given, "context").items():
        if isinstance(family, Mapping):
            family = family_from_settings(family)
        if family is not None and not isinstance(family, Family):
            raise ValueError(f"contexts[{name!r}] is {family!r}; a family such as NormalGamma() is needed")
        families[name] = family
    return families


class MC2(TopicModel):
    """Multilevel clustering with contexts (MC2): clusters of documents, topics of words, and contexts per cluster.

    The number of topics is inferred, and also the number of clusters unless ``n_clusters`` is set. By default, the
    model has a document level, which is our extension. ``MC2(document_level=False)`` is the model of the papers
    (ICML14, UAI16).

    Parameters
    ----------
    document_level : bool, default True
        Whether each document has its own topic proportions, drawn from DP(omega, tau), where tau are the proportions of
        its cluster. If False, all documents of a cluster have the proportions tau.
    document_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        Concentration omega of the document level. The larger omega, the closer the proportions of documents are to the
        proportions of their cluster. "learn" starts at 10.
    burstiness : bool or None, default None
        Whether a document may repeat its words (burstiness): a word that occurs ten times in a document may then be one
        draw from the document's topics. With None, burstiness is used if the model has a document level, the corpus has
        words, and the engine supports it (Gibbs with kernel "collapsed" or "interleaved").
    n_clusters : int in [1, 2147483647] or None, default None
        Fixed number of clusters N. The model is then a finite mixture, whose weights have the prior Dirichlet(alpha /
        N, ..., alpha / N). Some of the N clusters may stay empty. With None, the model is a Dirichlet process, and the
        number of clusters is inferred.
    contexts : list of names, or mapping of names to families or None, default None
        Contexts of the corpus that the model uses. A family may be an object, a mapping of its settings, or None for
        the default: NormalGamma for numbers, DirichletCategorical for counts. If ``contexts`` is None, the model uses
        the embeddings of the corpus, if there are any (:meth:`mc2core.Corpus.with_embeddings`). With an empty list, the
        model uses no context.
    content : ContentFamily or mapping of its settings or None, default None
        Family of the observations, if the corpus has observations instead of words. None selects the default for the
        kind of the observations: DiagonalNormalGamma for numbers, GammaPoissonVector for counts, BetaBernoulliVector
        for zeros and ones. GaussWishart is an alternative for numbers. If the corpus has words, ``content`` must be
        None.
    group_concentration : float in [1e-10, 1e10] or "learn" or None, default None
        Concentration alpha of the clusters; "learn" starts at 1. None means "learn" or, if n_clusters is N, the fixed
        value min(10 N, 100). With a smaller fixed alpha, clusters of short documents tend to become empty. With a
        larger alpha, the sizes of many clusters become too equal.
    table_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        Concentration v of the topic proportions of clusters; "learn" starts at 1.
    topic_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        Concentration eta of the topics; "learn" starts at 1.
    topic_word_prior : float in [1e-10, 1e10] or "learn", default 0.01
        Parameter s of the symmetric Dirichlet prior of a topic's words; "learn" starts at 0.01.
    concentration_priors : dict of {"group", "table", "topic", "words", "document"} to pair of float in [1e-10, 1e10] or None, default None
        Gamma prior (shape, rate) of each learnt concentration. The default is (1, 0.01) for "document" and (1, 1) for
        all others.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    See Also
    --------
    HDP : topics without clusters of documents.
    Mixture : clusters without topics.
    mc2core.fit : fits a model.

    Examples
    --------
    >>> from mc2core.families import DirichletCategorical
    >>> from mc2core.models import MC2
    >>> MC2(contexts=["year"], n_clusters=8).n_clusters
    8
    >>> print(MC2(contexts={"author": DirichletCategorical(concentration=0.1)}).describe())
    MC2 with a document level (document_concentration=learn), in which documents may repeat their words (burstiness);
    with --set document_level=false, as in the paper, the documents of a cluster share its proportions
    """  # noqa: E501

    name = "mc2"

    def __init__(
        self,
        *,
        document_level: bool = True,
        document_concentration: float | str = LEARN,
        burstiness: bool | None = None,
        n_clusters: int | None = None,
        contexts: Any = None,
        content: Any = None,
        group_concentration: float | str | None = None,
        table_concentration: float | str = LEARN,
        topic_concentration: float | str = LEARN,
        topic_word_prior: float | str = 0.01,
        concentration_priors: Mapping[str, Any] | None = None,
    ) -> None:
        self._set_document_level(document_level, document_concentration, burstiness)
        self.content = content_family(content)
        self.contexts, self.uses_embeddings = context_families(contexts), contexts is None
        if n_clusters is not None:
            self.n_clusters = whole("n_clusters", n_clusters, most=MAX_LABELS)
            self.roles = tuple(role for role in ROLES if role != "group")
        if group_concentration is None:
            group_concentration = LEARN if self.n_clusters is None else min(_EACH * self.n_clusters, _IN_ALL)
        self.group_concentration = concentration("group_concentration", group_concentration)
        if self.n_clusters is not None and self.is_learnt("group"):
            raise ValueError(f"group_concentration is {LEARN!r}; with n_clusters it must be a number or None")
        self._set_hierarchy(table_concentration, topic_concentration, topic_word_prior, concentration_priors)

    def describe(self) -> str:
        told = f" of {counted(self.n_clusters, 'clusters')}" if self.n_clusters else ""
        if self.document_level:
            level = f"with a document level (document_concentration={self.document_concentration}){self._repeats}"
            paper = "with --set document_level=false, as in the paper, the documents of a cluster share its proportions"
            return f"MC2{told} {level}; {paper}"
        return f"MC2{told}, the documents of a cluster share its topic proportions (document_level=false)"


class HDP(TopicModel):
    """Hierarchical Dirichlet process: a topic model without clusters and contexts, which infers the number of topics.

    Parameters
    ----------
    document_level : bool, default False
        Whether to add a third level of topic proportions, drawn from DP(omega, tau), where tau are the proportions of
        the document in the HDP. The model is then MC2 with a document level in which each document is its own cluster.
        This option is meant for comparisons with MC2.
    document_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        Concentration omega of the document level. "learn" starts at 10.
    burstiness : bool or None, default None
        Whether a document may repeat its words (burstiness): a word that occurs ten times in a document may then be one
        draw from the document's topics. With None, burstiness is used if the model has a document level, the corpus has
        words, and the engine supports it (Gibbs with kernel "collapsed" or "interleaved").
    content : ContentFamily or mapping of its settings or None, default None
        Family of the observations, if the corpus has observations instead of words. None selects the default for the
        kind of the observations: DiagonalNormalGamma for numbers, GammaPoissonVector for counts, BetaBernoulliVector
        for zeros and ones. GaussWishart is an alternative for numbers. If the corpus has words, ``content`` must be
        None.
    table_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        Concentration v of the topic proportions of documents; "learn" starts at 1.
    topic_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        Concentration eta of the topics; "learn" starts at 1.
    topic_word_prior : float in [1e-10, 1e10] or "learn", default 0.01
        Parameter s of the symmetric Dirichlet prior of a topic's words; "learn" starts at 0.01.
    concentration_priors : dict of {"table", "topic", "words", "document"} to pair of float in [1e-10, 1e10] or None, default None
        Gamma prior (shape, rate) of each learnt concentration. The default is (1, 0.01) for "document" and (1, 1) for
        all others.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    See Also
    --------
    MC2 : topics and clusters of documents.

    Examples
    --------
    >>> from mc2core.models import HDP
    >>> HDP(topic_word_prior=0.1).topic_word_prior
    0.1
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
        burstiness: bool | None = None,
        content: Any = None,
        table_concentration: float | str = LEARN,
        topic_concentration: float | str = LEARN,
        topic_word_prior: float | str = 0.01,
        concentration_priors: Mapping[str, Any] | None = None,
    ) -> None:
        self._set_document_level(document_level, document_concentration, burstiness)
        self.content = content_family(content)
        self.contexts = {}
        self._set_hierarchy(table_concentration, topic_concentration, topic_word_prior, concentration_priors)

    def describe(self) -> str:
        return f"the HDP{' of three levels' if self.document_level else ''}{self._repeats}; no clusters"


class NPTOT(TopicModel):
    """Nonparametric topics over time (npTOT): an HDP in which each topic has a distribution of times.

    A topic emits a word and a time for each of its tokens. The time of a token is the time of its document. The
    posterior does not store the distributions of times.

    Parameters
    ----------
    contexts : list of names, or mapping of names to families or None
        The context with the times: exactly one numeric context, with the family NormalGamma and strength 1. Times may
        be missing in some documents.
    table_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        Concentration v of the topic proportions of documents; "learn" starts at 1.
    topic_concentration : float in [1e-10, 1e10] or "learn", default "learn"
        Concentration eta of the topics; "learn" starts at 1.
    topic_word_prior : float in [1e-10, 1e10] or "learn", default 0.01
        Parameter s of the symmetric Dirichlet prior of a topic's words; "learn" starts at 0.01.
    concentration_priors : dict of {"table", "topic", "words"} to pair of float in [1e-10, 1e10] or None, default None
        Gamma prior (shape, rate) of each learnt concentration. The default is (1, 1).

    Raises
    ------
    ValueError
        If an argument is outside its range, or if there is not exactly one context.

    See Also
    --------
    MC2 : contexts per cluster of documents.
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
    """Raise ValueError unless there is exactly one context, with the family NormalGamma or no family yet."""
    families = list(contexts.values())
    if len(families) != 1 or not (families[0] is None or isinstance(families[0], NormalGamma)):
        given = ", ".join(f"{name!r} ({one.name if one else 'no family'})" for name, one in contexts.items())
        raise ValueError(
            f"npTOT takes exactly one context, of the family normal_gamma, but contexts holds {given or 'none'}"
        )
    if families[0] is not None and families[0].strength < 1.0:
        raise ValueError(f"npTOT needs a context with strength 1, but {next(iter(contexts))!r} has {families[0]!r}")


class Mixture(Model):
    """Finite mixture of K clusters of documents, each with its own distribution over words (NIPS12).

    There are no topics and no contexts. The weights of the clusters have a symmetric Dirichlet prior.

    Parameters
    ----------
    n_clusters : int in [1, 2147483647] or None, default None
        Number of clusters K. If K exceeds the number of documents, some clusters stay empty. With None, there are at
        most 100 clusters, and the recommended clustering may have fewer clusters.
    component : {"multinomial", "poisson", "gaussian", "gauss_wishart"}, default "multinomial"
        Distribution of the word counts in a cluster. "multinomial" has a probability per word. "poisson" has a rate per
        word. "gaussian" has a mean per word and one precision per cluster. "gauss_wishart" has a full covariance matrix
        per cluster, which needs 16 V^2 bytes; the vocabulary should then have at most a few hundred words.
    topic_word_prior : float in [1e-100, inf), default 0.1
        Prior parameter a. For "multinomial", a is the Dirichlet parameter of every word. For "poisson", a is the shape
        of the Gamma prior of the rates. For the Gaussian components, a is the weight of the prior mean 0, as a number
        of documents. V * topic_word_prior must not exceed 1e9.
    weight_prior : float in [1e-100, inf), default 0.1
        Dirichlet parameter of every cluster weight. K * weight_prior must not exceed 1e9.
    rate_prior : float in [1e-100, inf), default 1.0
        Rate of a Gamma prior. For "poisson", this is the prior of the rates. For the Gaussian components, this is the
        prior of the precisions, with shape 1. The value 1 is suitable if variances within clusters are near 1.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    See Also
    --------
    mc2core.inference.FastEx : the engine of this model.

    Examples
    --------
    >>> from mc2core.models import Mixture
    >>> Mixture(n_clusters=1000).n_clusters
    1000
    """

    name = "mixture"

    def __init__(
        self,
        *,
        n_clusters: int | None = None,
        component: str = "multinomial",
        topic_word_prior: float = 0.1,
        weight_prior: float = 0.1,
        rate_prior: float = 1.0,
    ) -> None:
        self.n_clusters = None if n_clusters is None else whole("n_clusters", n_clusters, most=MAX_LABELS)
        self.component = choice("component", component, COMPONENTS)
        self.topic_word_prior = _prior("topic_word_prior", topic_word_prior)
        self.weight_prior = _prior("weight_prior", weight_prior)
        self.rate_prior = _prior("rate_prior", rate_prior)
        self.contexts = {}
        if self.component == "multinomial":
            self.refuse_idle({"rate_prior": f"another component than {self.component!r} (--set component=poisson)"})

    @property
    def most_clusters(self) -> int:
        """Largest possible number of clusters."""
        return self.n_clusters or MOST_CLUSTERS

    def describe(self) -> str:
        return f"a mixture of {counted(self.most_clusters, 'clusters')} at most, each with words of its own"


def _prior(name: str, value: float) -> float:
    number = positive(name, value)
    if number < MIN_MIXTURE_PRIOR:
        raise ValueError(f"{name} is {value!r}; it must be at least {MIN_MIXTURE_PRIOR:g}")
    return number
