"""Running any engine: the loop over iterations, checkpoints, the files of a fit, and updates with new documents."""
