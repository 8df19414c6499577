"""Tables and figures of UAI 2016."""
