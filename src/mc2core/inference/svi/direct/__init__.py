"""SVI-MC2 with direct assignment of tokens to topics: no tables."""
