"""The variance of every gradient estimator (D18-D26)."""
