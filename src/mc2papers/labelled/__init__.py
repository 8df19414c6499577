"""Targets on real corpora with known classes, of no paper."""
