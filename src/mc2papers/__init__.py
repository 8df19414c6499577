"""The papers' tables and figures: plans, targets, and what each one shows."""
