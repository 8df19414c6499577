"""Where corpora come from: the catalogue of datasets, readers, dumps, simulators."""
