"""Corpus: the only shape in which data enters an engine or a score."""

from mc2core.corpus.corpus import Corpus
from mc2core.corpus.row_blocks import take_rows

__all__ = ["Corpus", "take_rows"]
