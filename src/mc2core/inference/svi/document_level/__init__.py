"""SVI of documents with topic proportions of their own, theta_j ~ DP(omega, tau_k): a level below direct assignment."""
