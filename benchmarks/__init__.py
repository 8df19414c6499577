"""Timings and qualities that are measured again and again: ``python -m benchmarks``; the README beside says how."""
