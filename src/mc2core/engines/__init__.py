"""Inference engines and their registry."""
