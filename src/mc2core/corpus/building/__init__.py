"""From texts, cells and lists of names to the arrays of a corpus; the same for files, lists and data frames."""
