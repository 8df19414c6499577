"""Readers of documents from files: tables, text files, bibliographies, observations and UCI bags of words."""
