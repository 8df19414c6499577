"""Documents with topic proportions of their own, theta_j ~ DP(omega, tau_k): a level below MC2's clusters."""
