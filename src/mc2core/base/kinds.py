"""Kinds of contexts, as columns of tables, corpora, plans and pages name them."""

from __future__ import annotations

#: kind: the family it has unless another one is named; of families of numbers only this one takes standardised ones
FAMILY_OF_KIND = {
    "number": "normal_gamma",
    "date": "normal_gamma",
    "bag": "dirichlet",  # names
    "text": "dirichlet",  # words
    "counts": "dirichlet",  # names with counts
    "vector": "diagonal_normal_gamma",  # of a file of their own, or of AnnData's obsm
}
KINDS = tuple(FAMILY_OF_KIND)
#: kinds whose context is a number a document; that of all others but "vector" is counts
NUMBERS = ("number", "date")
