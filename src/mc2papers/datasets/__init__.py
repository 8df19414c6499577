"""Sources of corpora: the catalogue of datasets, readers, dumps and simulators."""
