"""Reproduce the tables and figures of the papers from a configuration."""
