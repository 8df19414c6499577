"""Targets that belong to no paper: real corpora with known classes."""
