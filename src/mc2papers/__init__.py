"""The tables and figures of the papers: configurations and targets."""
