"""Posteriors, the results of all engines. Scores, tables and figures use only a corpus and a posterior."""

from mc2core.posterior.posterior import Posterior
from mc2core.posterior.sample import Sample, SparseRows

__all__ = ["Posterior", "Sample", "SparseRows"]
