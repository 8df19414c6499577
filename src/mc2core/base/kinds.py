"""Kinds of contexts, as columns of tables, corpora, configurations and pages name them."""

from __future__ import annotations

#: kind: the family it has unless another one is named
FAMILY_OF_KIND = {
    "number": "normal_gamma",
    "date": "normal_gamma",
    "bag": "dirichlet",  # names
    "text": "dirichlet",  # words
    "counts": "dirichlet",  # names with counts
    "vector": "diagonal_normal_gamma",  # of a file of their own, or of AnnData's obsm
}
#: families that take standardised numbers
STANDARDISED = ("normal_gamma", "diagonal_normal_gamma", "gauss_wishart")
KINDS = tuple(FAMILY_OF_KIND)
#: kinds whose context is a number a document; that of all others but "vector" is counts
NUMBERS = ("number", "date")
