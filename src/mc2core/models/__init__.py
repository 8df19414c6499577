"""What is believed: models, their hyper-parameters and priors. How they are fitted is in :mod:`mc2core.inference`."""

from mc2core.models.base import Model
from mc2core.models.hdp import HDP
from mc2core.models.mc2 import MC2
from mc2core.models.mixture import Mixture
from mc2core.models.nptot import NPTOT

__all__ = ["HDP", "MC2", "NPTOT", "Mixture", "Model"]
