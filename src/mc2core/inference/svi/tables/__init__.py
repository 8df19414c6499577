"""SVI-MC2 with tables, as UAI16 prints it."""
