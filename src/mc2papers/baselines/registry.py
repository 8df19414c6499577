"""Registry of the baselines by their names in configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mc2core.base.checks import choice
from mc2papers.baselines.affinity import Affinity, HDPAffinity
from mc2papers.baselines.base import Baseline
from mc2papers.baselines.cut import Cut
from mc2papers.baselines.gaussian_mixture import GaussianMixture
from mc2papers.baselines.kmeans import KMeans
from mc2papers.baselines.lda import LDA
from mc2papers.baselines.mllib import MLlibLDA
from mc2papers.baselines.nmf import NMF

#: name in configuration files: class
BASELINES: dict[str, type[Baseline]] = {
    one.name: one for one in (LDA, MLlibLDA, KMeans, GaussianMixture, NMF, Affinity, HDPAffinity, Cut)
}


def make_baseline(name: str, settings: Mapping[str, Any]) -> Baseline:
    """Make a baseline from plain settings. Raises ValueError for an unknown name or setting, or an invalid value."""
    known = BASELINES[choice("baseline", name, BASELINES)].defaults()
    for setting in settings:
        choice(f"a setting of baseline {name!r}", setting, known)
    return BASELINES[name](**settings)
