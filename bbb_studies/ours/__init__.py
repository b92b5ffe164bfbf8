"""Our own: the variance of every gradient estimator, and the bounds around the evidence."""
