"""Collections that fit in memory, each in its official format."""
