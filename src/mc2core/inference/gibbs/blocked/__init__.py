"""The blocked move: all clusters and topics at once, given the random measures."""
