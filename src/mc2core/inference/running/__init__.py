"""Run any engine: the loop with its checkpoints, traces and signals, and the files of a fit."""
