"""Measure the time and the quality of the library regularly: ``python -m benchmarks`` (README in this folder)."""
