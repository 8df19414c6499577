"""The command line program ``mc2``."""
