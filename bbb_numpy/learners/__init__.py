"""Bayesian MLPs as scikit-learn estimators; the extra `learners` installs scikit-learn.

- `regressor` and `classifier`: the two learners; `base` is what they share.
- `plan`, `defaults`, `nested`: constructor arguments, what they stand for, and their fields.
- `rows`, `columns`: data, checked, encoded and standardised; `encoder`: the encoding for pipelines.
- `inference`, `methods`: how the posterior is found.
- `state`, `representation`: what a fit leaves, and how it is shown.
- `novelty`: where the training rows lie, and which rows are unlike them.
- `diagnosis`, `fit_measures`, `fit_report`: whether a fit describes its training rows.
- `recalibrated`: wrappers that correct a fitted estimator by held-out rows.
- `checkpoint`: fitted learners in files.
"""
