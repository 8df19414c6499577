"""FastEx: finite mixtures for thousands of clusters (NIPS12)."""
