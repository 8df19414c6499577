"""Baselines, which are the methods that the papers compare with. Only the jobs that fit them load scikit-learn."""
