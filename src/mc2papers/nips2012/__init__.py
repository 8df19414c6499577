"""Tables and figures of NIPS 2012."""
