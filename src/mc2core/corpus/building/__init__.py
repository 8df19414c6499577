"""Conversion of texts, cells and lists of names from files, lists or data frames to the arrays of a corpus."""
