"""Checks, files, logs and provenance, which all other packages use."""
