"""Bayesian MLPs with scikit-learn's habits.

`regressor`, `classifier` and what they share, `base`. `plan`, `inference`: their arguments.
`rows`: the data they are given, checked and put into standard units. `checkpoint`: their files.
`habits`: what they inherit from scikit-learn.
"""
