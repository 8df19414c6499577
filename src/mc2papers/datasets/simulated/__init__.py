"""Simulate the letters data, corpora with the sizes of the real corpora, and an encyclopaedia."""
