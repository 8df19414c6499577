"""Corpora, the only form in which engines and scores accept data."""

from mc2core.corpus.corpus import Corpus
from mc2core.corpus.row_blocks import take_rows

__all__ = ["Corpus", "take_rows"]
