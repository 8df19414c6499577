"""Checks, files, logs and provenance, used by all other packages."""
