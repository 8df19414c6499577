"""A finite mixture over documents (NIPS12, section 2)."""

from __future__ import annotations

from mc2core.base.checks import MAX_LABELS, choice, positive, whole
from mc2core.models.base import Model

COMPONENTS = ("multinomial", "poisson", "gaussian", "gauss_wishart")
#: below this a Dirichlet's density is no number any more
MIN_PRIOR = 1e-100


class Mixture(Model):
    """Documents in K clusters, each with a distribution over word counts of its own; no topics and no contexts.

    The components' weights have a symmetric Dirichlet prior.

    Parameters
    ----------
    n_clusters : int in [1, 2147483647], default 100
        K, clusters; more than documents are allowed, and some then stay empty.
    component : {"multinomial", "poisson", "gaussian", "gauss_wishart"}, default "multinomial"
        Distribution of the word counts in a cluster (:mod:`mc2core.inference.fastex.components`). Poisson: each
        word's count has a rate of its own. Gaussian: the document's V counts are normal around the cluster's mean, with
        a precision of the cluster's own. Gauss-Wishart: with a whole covariance matrix of the cluster's own. It takes
        16 V^2 bytes a cluster and V^2 / 2 multiplications to score one, so that it suits tens or hundreds of words.
    topic_word_prior : float in [1e-100, inf), default 0.01
        a, Dirichlet parameter of every word. With Poisson components it is the shape of the Gamma prior of every word's
        rate, with Gaussian ones of either kind the documents that the prior mean of 0 counts for. V * topic_word_prior
        is at most 1e9.
    weight_prior : float in [1e-100, inf), default 1.0
        Dirichlet parameter of every cluster weight. K * weight_prior is at most 1e9.
    rate_prior : float in [1e-100, inf), default 1.0
        Rate of the Gamma prior of rates (Poisson) or, its shape being 1, of precisions (Gaussian; Gauss-Wishart: those
        of single words). 1 suits variances in a cluster that are near 1.

    Raises
    ------
    ValueError
        An argument outside its range.
    """

    name = "mixture"

    def __init__(
        self,
        *,
        n_clusters: int = 100,
        component: str = "multinomial",
        topic_word_prior: float = 0.01,
        weight_prior: float = 1.0,
        rate_prior: float = 1.0,
    ) -> None:
        self.n_clusters = whole("n_clusters", n_clusters, most=MAX_LABELS)
        self.component = choice("component", component, COMPONENTS)
        self.topic_word_prior = _prior("topic_word_prior", topic_word_prior)
        self.weight_prior = _prior("weight_prior", weight_prior)
        self.rate_prior = _prior("rate_prior", rate_prior)
        self.contexts = {}
        if self.component == "multinomial":
            self.refuse_idle({"rate_prior": f"another component than {self.component!r} (--set component=poisson)"})

    def describe(self) -> str:
        return f"a mixture of {self.n_clusters} clusters at most, each with words of its own"


def _prior(name: str, value: float) -> float:
    number = positive(name, value)
    if number < MIN_PRIOR:
        raise ValueError(f"{name} is {value!r}; it must be at least {MIN_PRIOR:g}")
    return number
