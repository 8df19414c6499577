"""What is believed: models, their hyper-parameters and priors. How they are inferred is in :mod:`mc2core.inference`."""
