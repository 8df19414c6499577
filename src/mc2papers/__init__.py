"""The papers' tables and figures: configurations, targets, and what each one shows."""
