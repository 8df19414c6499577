"""Proposals from the clusters of a document's nearest documents, inside exact Metropolis-Hastings."""
