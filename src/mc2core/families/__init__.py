"""Likelihood families with conjugate priors, which all engines share (see ``base``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mc2core.base.checks import nearest
from mc2core.corpus.checks import FAMILY_OF_KIND, kind_of
from mc2core.families.base import ContentFamily, Family, VectorFamily
from mc2core.families.discrete import (
    BetaBernoulli,
    BetaBernoulliVector,
    DirichletCategorical,
    GammaPoisson,
    GammaPoissonVector,
)
from mc2core.families.gaussian import DiagonalNormalGamma, GaussWishart, NormalGamma

__all__ = [
    "FAMILIES", "BetaBernoulli", "BetaBernoulliVector", "ContentFamily", "DiagonalNormalGamma",
    "DirichletCategorical", "Family", "GammaPoisson", "GammaPoissonVector", "GaussWishart", "NormalGamma",
    "VectorFamily", "family_for", "family_for_content", "family_from_settings",
]  # fmt: skip

FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (
        DirichletCategorical, NormalGamma, DiagonalNormalGamma, GaussWishart, GammaPoisson, GammaPoissonVector,
        BetaBernoulli, BetaBernoulliVector,
    )
}  # fmt: skip
#: suggestions for names of likelihoods, since families are named after their priors
_HINTS = {
    **dict.fromkeys(
        ("gaussian", "normal"),
        "use 'normal_gamma' for a number or a date, 'diagonal_normal_gamma' or 'gauss_wishart' for a vector",
    ),
    **dict.fromkeys(("categorical", "multinomial"), "use 'dirichlet' for names"),
    "poisson": "use 'gamma_poisson' for counts, 'gamma_poisson_vector' for a vector of counts",
    "bernoulli": "use 'beta_bernoulli' for zeros and ones, 'beta_bernoulli_vector' for a vector of them",
}
_OF_KIND = {"counts": FAMILY_OF_KIND["bag"], "number": FAMILY_OF_KIND["number"], "vector": FAMILY_OF_KIND["vector"]}

_OF_CONTENT: dict[str, type[ContentFamily]] = {
    family.content_kind: family for family in (DiagonalNormalGamma, GammaPoissonVector, BetaBernoulliVector)
}


def family_for_content(kind: str) -> ContentFamily:
    """Return the default family of observations, given their kind (``Corpus.content_kind``)."""
    return _OF_CONTENT[kind]()


def family_for(context: Any) -> Family:
    """Return the default family of a context.

    The default is NormalGamma for (J,) numbers, DirichletCategorical for (J, A) counts, and DiagonalNormalGamma for
    (J, D) vectors.
    """
    return FAMILIES[_OF_KIND[kind_of(context)]]()


def family_from_settings(settings: Mapping[str, Any]) -> Family:
    """Build a family from ``{"family": name, **hyper-parameters}``, as in configuration files and saved models.

    Raises ValueError for an unknown family or hyper-parameter; the message suggests the nearest known name.
    """
    rest = dict(settings)
    name = rest.pop("family", None)
    if name not in FAMILIES:
        hint = f"; {_HINTS[name]}" if name in _HINTS else nearest(name, FAMILIES)
        raise ValueError(f"family {name!r} is not known{hint}")
    known = FAMILIES[name]().settings()
    for key in rest:
        if key not in known:
            raise ValueError(f"family {name!r} has no setting {key!r}{nearest(key, known)}")
    return FAMILIES[name](**rest)


def family_settings(family: Family) -> dict[str, Any]:
    """Return the settings of a family, the inverse of :func:`family_from_settings`."""
    return {"family": family.name, **family.settings()}
