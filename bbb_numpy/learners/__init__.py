"""Bayesian MLPs as scikit-learn estimators: the extra `learners` brings scikit-learn.

`regressor`, `classifier` and what they share, `base`. `plan`, `inference`: their arguments.
`rows`: the data they are given, checked and put into standard units. `checkpoint`: their files.
"""
