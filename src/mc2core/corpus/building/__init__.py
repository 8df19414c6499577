"""Turn texts, cells and lists of names from files, lists or data frames into the arrays of a corpus."""
