"""Held-out likelihood and perplexity (public name; see :mod:`mc2core.posterior.perplexity`)."""

from mc2core.posterior.perplexity import log_likelihood, perplexity

__all__ = ["log_likelihood", "perplexity"]
