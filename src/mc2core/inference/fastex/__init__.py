"""FastEx: finite mixtures with thousands of clusters (NIPS12)."""
