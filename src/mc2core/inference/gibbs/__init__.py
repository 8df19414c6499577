"""Gibbs sampling of MC2 (ICML14)."""
