"""The rows that users pass in: checked by scikit-learn, put into standard units.

What scikit-learn lets pass is refused here: masked cells, dates, labels of several types.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..numeric.layout import Array
from ..numeric.standardisation import moments, standardise
from ..numeric.validation import ANY_NUMBERS, holds, short_repr
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


def _refuse_cells(labels: str = "", **arguments: Any) -> None:
    """Raise for masked cells, and for NumPy's dates among objects, of which it makes numbers.

    `labels` names the argument that may hold dates.
    """
    for name, value in arguments.items():
        if np.ma.is_masked(value):
            place = np.argwhere(np.ma.getmask(value))[0].tolist()
            raise ValueError(
                f"{name} has masked entries, the first at {place}; fill them in"
            )
        array = value
        if isinstance(value, list | tuple):
            # lists of several lengths, which scikit-learn refuses
            with suppress(ValueError):
                array = np.asarray(value)
        objects = (
            name != labels and getattr(getattr(array, "dtype", None), "kind", "") == "O"
        )
        if objects and holds(array, np.datetime64 | np.timedelta64):
            raise TypeError(
                f"{name} must hold numbers; some are dates or spans of time"
            )


def _float64(**arrays: Any) -> list[Array]:
    """Convert what scikit-learn has let pass: dates are no numbers, nor is text."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufO":
            kind = getattr(array, "dtype", type(array).__name__)
            raise TypeError(
                f"{name} must hold numbers; got {kind}. Encode or convert it"
            )
    # on which sums depend
    copy_in_c_order = partial(np.array, dtype=np.float64, order="C")
    return list(map(copy_in_c_order, arrays.values()))


def _name_column(**frames: Any) -> None:
    """Raise TypeError with the name of a column whose cells are no numbers, if there is one."""
    for name, frame in frames.items():
        if (found := _column_of_no_numbers(frame)) is not None:
            label, dtype, cell = found
            remedy = "encode them, as OneHotEncoder does, or bbb-numpy fit of a file"
            if getattr(dtype, "kind", "") in "mM" or hasattr(cell, "year"):
                remedy = (
                    "make days of them, (dates - dates.min()) / pandas.Timedelta(days=1), as "
                    f"bbb-numpy fit does of a file with --dates {label!r}"
                )
            raise TypeError(
                f"{name} must hold numbers; its column {label!r} holds {dtype}, such as "
                f"{short_repr(cell)}: {remedy}"
            ) from None


def _column_of_no_numbers(frame: Any) -> tuple[Any, Any, Any] | None:
    """Return name, dtype and first such cell of the first column that is not of numbers."""
    if not hasattr(frame, "dtypes") or not hasattr(frame, "columns"):
        return None
    for label, cells in frame.items():
        kind = getattr(cells.dtype, "kind", "O")
        if kind in "mM":
            return label, cells.dtype, cells.iloc[0]
        for cell in () if kind in "biufc" else cells:
            try:
                float(cell)
            except (TypeError, ValueError):
                if cell is not None:
                    return label, cells.dtype, cell
    return None


def check_inputs(owner: BaseEstimator, x: Any) -> Array:
    """Return `x` as a finite float64 matrix (N, d_in) like the one that `owner` was fitted to."""
    _refuse_cells(X=x)
    try:
        return _float64(X=validate_data(owner, x, reset=False))[0]
    except (TypeError, ValueError):
        _name_column(X=x)
        raise


def check_pair(
    owner: BaseEstimator, x: Any, y: Any, *, first: bool, labels: bool
) -> tuple[Array, Array]:
    """Return `x` as `check_inputs`, and in `y` numbers (N,) or (N, K), or labels (N,) as they are.

    The `first` time `owner` takes note of number and names of features.
    """
    _refuse_cells(labels="y" if labels else "", X=x, y=y)
    if labels and y is not None:
        _need_one_type(y)
    try:
        rows, targets = validate_data(owner, x, y, reset=first, multi_output=not labels)
        if labels:
            check_classification_targets(targets)
            return _float64(X=rows)[0], targets
        rows, targets = _float64(X=rows, y=targets)
        return rows, targets
    except (TypeError, ValueError):
        _name_column(**{"X": x} if labels else {"X": x, "y": y})
        raise


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
    _refuse_cells(sample_weight=sample_weight)
    if not isinstance(sample_weight, Number):  # one for all rows
        sample_weight = ANY_NUMBERS("sample_weight", sample_weight)
    weights = _check_sample_weight(
        sample_weight, x, dtype=np.float64, ensure_non_negative=True
    )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not 0 < total < np.inf:
        raise ValueError(f"sample_weight sums to {total}, where nothing can be learned")
    return None if (weights == 1.0).all() else weights


class Prepared(NamedTuple):
    """What training gets: rows in standard units, and what those units are."""

    training: Rows
    held_out: Rows | None
    # x_mean_, x_scale_ (d_in,), y_mean_, y_scale_ (K,); maybe x_axes_
    units: dict[str, Array]

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
    return (
        axes
        if varies.max(initial=0.0) > COLLINEAR * varies.min(initial=np.inf)
        else None
    )


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
    x = standardise(x, x_mean, x_scale, dtype, "X")
    y = standardise(y, y_mean, y_scale, dtype, "y")
    units = {
        "x_mean_": x_mean,
        "x_scale_": x_scale,
        "y_mean_": y_mean,
        "y_scale_": y_scale,
    }
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
