"""Wikipedia and PubMed: dumps become shards, shards become a corpus."""
