"""Hashed proposals inside exact Metropolis-Hastings (NIPS12 sections 3 and 4)."""
