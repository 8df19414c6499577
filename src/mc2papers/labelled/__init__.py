"""Targets that belong to no paper, on real corpora with known classes."""
