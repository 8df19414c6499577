"""What runs every engine: the loop, its checkpoints, traces and signals, fits as files."""
