"""Source files from a local data folder or their official addresses."""
