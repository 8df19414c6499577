"""Compiled building blocks: kernels on disk, special functions, random streams and variates, threads."""
