"""Source files from a mirror or their official addresses."""
