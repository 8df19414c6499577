"""What everything else stands on: checks, files, logs, provenance."""
