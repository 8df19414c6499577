"""What tables and figures share: their files, their look, claims and verdicts."""
