"""What a fit makes of the contexts of its corpus, where users may expect something else."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

import numpy as np

from mc2core.corpus import Corpus
from mc2core.families import Family, NormalGamma

logger = logging.getLogger(__name__)

#: prior standard deviations of a mean from which it is said to be far
_FAR = 10.0


def tell_unused(corpus: Corpus, used: Collection[str]) -> None:
    """Log a warning that names the contexts of the corpus that are not ``used``."""
    if ignored := sorted(set(corpus.contexts) - set(used)):
        logger.warning("contexts of the corpus that this fit does not use: %s", ", ".join(ignored))


def tell_far(corpus: Corpus, families: Mapping[str, Family]) -> None:
    """Log a warning for each numeric context in its own unit that is far from what its prior expects."""
    for name, family in families.items():
        if not isinstance(family, NormalGamma) or name in corpus.units or name not in corpus.contexts:
            continue
        values = np.asarray(corpus.contexts[name])
        if values.ndim != 1 or corpus.missing(name).all():
            continue
        mean, sd = float(np.nanmean(values)), family.mean_sd
        if abs(mean - family.mu0) > _FAR * sd:
            logger.warning(
                "context %r has the mean %.4g, far from what its prior expects, %.4g with standard deviation %.4g: "
                "corpus.standardised(%r) has the mean 0",
                *(name, mean, family.mu0, sd, name),
            )
