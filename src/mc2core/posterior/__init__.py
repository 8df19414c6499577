"""Posterior: the only shape in which a fit leaves an engine. Scores, tables and figures read corpus and posterior."""

from mc2core.posterior.posterior import Posterior
from mc2core.posterior.sample import Sample, SparseRows

__all__ = ["Posterior", "Sample", "SparseRows"]
