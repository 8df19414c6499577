"""Hashed proposals inside exact Metropolis-Hastings (NIPS12 section 3)."""
