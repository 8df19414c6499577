"""Held-out likelihood and perplexity (public name; see :mod:`mc2core.model.perplexity`)."""

from mc2core.model.perplexity import log_likelihood, perplexity

__all__ = ["log_likelihood", "perplexity"]
