"""Tables and figures of ICML 2014."""
