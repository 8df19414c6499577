"""Figures of the papers: each function draws from plain data and returns the figure and the table of what is drawn."""
