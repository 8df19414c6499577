"""Simulators: the letters, corpora in the shape of the real ones, an encyclopaedia."""
