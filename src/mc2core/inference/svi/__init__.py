"""SVI-MC2: stochastic variational inference (UAI16)."""
