"""The rows that users pass in: checked by scikit-learn, put into standard units.

What scikit-learn lets pass is refused here: masked cells, dates, labels of several types.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..numeric.layout import Array
from ..numeric.standardisation import moments, standardised
from ..training.recipe import Rows

__all__ = [
    "check_inputs",
    "check_pair",
    "check_weights",
    "need_finite",
    "prepared",
    "principal_axes",
]

# Principal variances so different keep Adam from its goal; so little is rounding; d^3 is a moment
COLLINEAR, SURELY, MOST_AXES = 1e3, 1e-10, 256


def _refuse_masks(**arguments: Any) -> None:
    for name, value in arguments.items():
        if np.ma.is_masked(value):
            place = np.argwhere(np.ma.getmask(value))[0].tolist()
            raise ValueError(f"{name} has masked entries, the first at {place}; fill them in")


def _float64(name: str, array: Any) -> Array:
    """Convert what scikit-learn has let pass: dates are no numbers, nor is text."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufO":
        kind = getattr(array, "dtype", type(array).__name__)
        raise TypeError(f"{name} must hold numbers; got {kind}. Encode or convert it")
    return array.astype(np.float64, order="C")  # rounding of sums depends on layout


def check_inputs(owner: BaseEstimator, x: Any) -> Array:
    """Return `x` as a finite float64 matrix (N, d_in) like the one that `owner` was fitted to."""
    _refuse_masks(X=x)
    return _float64("X", validate_data(owner, x, reset=False))


def check_pair(
    owner: BaseEstimator, x: Any, y: Any, *, first: bool, labels: bool
) -> tuple[Array, Array]:
    """Return `x` as `check_inputs`, and in `y` numbers (N,) or (N, K), or labels (N,) as they are.

    The `first` time `owner` takes note of number and names of features.
    """
    _refuse_masks(X=x, y=y)
    if labels and y is not None:
        _need_one_type(y)
    x, y = validate_data(owner, x, y, reset=first, multi_output=not labels)
    if labels:
        check_classification_targets(y)
        return _float64("X", x), y
    return _float64("X", x), _float64("y", y)


def _need_one_type(y: Any) -> None:
    """Raise for missing labels, and for text among others, all of which NumPy makes text."""
    if getattr(getattr(y, "dtype", None), "kind", "O") != "O":
        return
    labels = np.asarray(y, object).ravel()
    for row, one in enumerate(labels):
        if one is None or type(one).__name__ == "NAType":
            raise ValueError(f"y contains NaN or None at row {row}: a label is missing")
    if len({isinstance(one, str) for one in labels}) > 1:
        raise TypeError("y mixes text with other labels; convert them to one type")


def check_weights(sample_weight: Any, x: Array) -> Array | None:
    """Return the weights of the rows of `x` as float64 (N,); None if each counts once."""
    if sample_weight is None:
        return None
    _refuse_masks(sample_weight=sample_weight)
    for given in (sample_weight, np.asarray(sample_weight)):  # a time zone makes dates objects
        if getattr(getattr(given, "dtype", None), "kind", "") in ("m", "M"):
            raise TypeError(f"sample_weight must hold numbers; got {given.dtype}")
    weights = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not 0 < total < np.inf:
        raise ValueError(f"sample_weight sums to {total}, where nothing can be learned")
    return None if (weights == 1.0).all() else weights


class Prepared(NamedTuple):
    """What training gets: rows in standard units, and what those units are."""

    training: Rows
    held_out: Rows | None
    units: dict[str, Array]  # x_mean_, x_scale_ (d_in,), y_mean_, y_scale_ (K,); maybe x_axes_

    def typical(self) -> Rows:
        """Return as many rows as there are to train on, each as often as its weight asks for.

        Evenly spaced along the sum of the weights, so that it is the same on every call.
        """
        x, y, weights = self.training
        if weights is None:
            return self.training
        sums = np.cumsum(weights, dtype=np.float64)
        places = (np.arange(len(sums)) + 0.5) / len(sums) * sums[-1]
        chosen = np.searchsorted(sums, places, side="right").clip(max=len(sums) - 1)
        return Rows(x[chosen], y[chosen])


def principal_axes(x: Array, weights: Array | None) -> Array | None:
    """Return the axes (d, d) to which collinear rows (N, d) are turned; None for others (D60).

    Axes along which nothing varies, but for rounding, do not count.
    """
    if x.shape[1] > MOST_AXES:
        return None
    z = x.astype(np.float64) * (1.0 if weights is None else np.sqrt(weights)[:, None])
    variances, axes = np.linalg.eigh(z.T @ z)
    varies = variances[variances > SURELY * variances[-1]]
    return axes if varies.max(initial=0.0) > COLLINEAR * varies.min(initial=np.inf) else None


def prepared(
    rows: Rows,
    fraction: float,
    rng: np.random.Generator,
    standardize_x: bool,
    standardize_y: bool,
    dtype: Any,
    turn: bool = False,
) -> Prepared:
    """Hold a fraction of the rows out at random, and bring all to units of the others' moments.

    The generator is asked only if rows are held out. Of what is not standardised, mean 0 and scale
    1 are noted. With `turn` inputs that are collinear are turned to their principal axes (D60).
    """
    x, y, weights = rows
    held_out = int(np.ceil(fraction * len(x)))
    if held_out >= len(x):
        raise ValueError(
            f"validation_fraction {fraction:g} of {len(x)} rows leaves none to train on; "
            "use a smaller fraction or more rows"
        )
    order = rng.permutation(len(x)) if held_out else np.arange(len(x))
    validation, training = order[:held_out], order[held_out:]
    counts = None if weights is None else weights[training]
    x_mean, x_scale = moments(x[training], standardize_x, counts)
    y_mean, y_scale = moments(y[training], standardize_y, counts)
    x = standardised(x, x_mean, x_scale, dtype, "X")
    y = standardised(y, y_mean, y_scale, dtype, "y")
    units = {"x_mean_": x_mean, "x_scale_": x_scale, "y_mean_": y_mean, "y_scale_": y_scale}
    if turn and (axes := principal_axes(x[training], counts)) is not None:
        x, units["x_axes_"] = (x @ axes).astype(dtype), axes  # D60
    rows = Rows(x, y, None if weights is None else weights.astype(dtype))
    return Prepared(rows.at(training), rows.at(validation) if held_out else None, units)


def need_finite(what: str, found: Array, x: Array) -> None:
    """Raise ValueError unless `found` (N, ...) is finite, naming the row of `x` that is not."""
    finite = np.isfinite(found).reshape(len(found), -1).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        column = int(np.argmax(np.abs(x[row])))
        raise ValueError(
            f"{what} overflows {x.dtype} at row {row}: X there is as far as {x[row, column]:.3g} "
            f"standard deviations from its mean (column {column}; with standardize=False: in its "
            "own units). Check that row; it may be in other units than the rows of fit. If it is "
            "ordinary, the fitted weights or the noise are too large: fit again, with "
            "standardize=True or y in other units, and see whether training or sampling converge"
        )
