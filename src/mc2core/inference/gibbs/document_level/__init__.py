"""The document level, a DP at each document below MC2's clusters: theta_j ~ DP(omega, tau_k)."""
