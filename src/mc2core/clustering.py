"""Agreement of a clustering with the truth (public name; see :mod:`mc2core.posterior.clustering`)."""

from mc2core.posterior.clustering import (
    adjusted_rand_index,
    extended_nmi,
    f_score,
    nmi,
    purity,
    rand_index,
    variation_of_information,
)

__all__ = ["adjusted_rand_index", "extended_nmi", "f_score", "nmi", "purity", "rand_index", "variation_of_information"]
