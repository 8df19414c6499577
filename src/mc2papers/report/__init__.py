"""Files, style, claims and verdicts of all tables and figures."""
