"""Convert dumps of Wikipedia and PubMed to shards, and shards to a corpus."""
