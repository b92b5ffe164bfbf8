"""How the gradient of an objective for theta is estimated, NumPy alone.

`estimator`: what all estimators share, and what they refuse. `reparameterised`: the report's (K21,
K30). `closed_form`, `importance`, `local_reparameterisation`, `flipout`: the others; `rowwise`
serves the last two. `catalogue`: where the tables of `bbb_numpy.registry` once were.
"""
