"""Measurements of time and quality that are repeated regularly: ``python -m benchmarks`` (see the README in this
folder)."""
