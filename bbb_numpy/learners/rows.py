"""Check the rows that users pass in, and standardise them.

scikit-learn checks them first; masked cells, dates and labels of several types, which it accepts,
are refused here.
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
from ..numeric.validation import ANY_NUMBERS, contains_instance, short_repr
from ..training.recipe import Rows
from .columns import (
    MAX_NAMES_LISTED,
    describe_columns,
    encode_columns,
    is_missing,
    list_names,
)

__all__ = [
    "TrainingData",
    "append_offset",
    "as_frame",
    "check_exposure",
    "check_finite",
    "check_inputs",
    "check_pair",
    "check_weights",
    "encode_table",
    "largest_log_rate",
    "prepare_rows",
    "principal_axes",
]

# ratio of the largest to the smallest principal variance above which inputs are rotated to their
# principal axes: with correlated inputs Adam converges too slowly
MIN_COLLINEAR_RATIO = 1e3
EIGENVALUE_RTOL = 1e-10  # below this share of the largest a variance is rounding
# largest number of inputs that are rotated, since the eigenvectors of d inputs take d^3 operations
MAX_ROTATED_INPUTS = 256


def _refuse_cells(labels: str = "", **arguments: Any) -> None:
    """Raise ValueError for masked cells, TypeError for NumPy dates, which would become numbers.

    `arguments` are arrays by the names in messages. `labels` is the name of the one that may hold
    dates, which are labels of classes there.
    """
    for name, value in arguments.items():
        if np.ma.is_masked(value):
            index = np.argwhere(np.ma.getmask(value))[0].tolist()
            raise ValueError(
                f"{name} has masked entries, the first at {index}; fill them in"
            )
        array = value
        if isinstance(value, list | tuple):
            # A list of rows of different lengths raises ValueError; scikit-learn refuses it later
            with suppress(ValueError):
                array = np.asarray(value)
        has_objects = getattr(getattr(array, "dtype", None), "kind", "") == "O"
        if (
            name != labels
            and has_objects
            and contains_instance(array, np.datetime64 | np.timedelta64)
        ):
            raise TypeError(
                f"{name} must hold numbers; some are dates or time differences"
            )


def _float64(**arrays: Any) -> list[Array]:
    """Return copies of numeric arrays as float64 in C order; raise TypeError for dates and text.

    The names of the keyword arguments are used in messages.
    """
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufO":
            dtype = getattr(array, "dtype", type(array).__name__)
            raise TypeError(
                f"{name} must hold numbers; got {dtype}: encode or convert it"
            )
    # The memory order is always the same, since rounding errors of sums depend on it
    copy_in_c_order = partial(np.array, dtype=np.float64, order="C")
    return list(map(copy_in_c_order, arrays.values()))


def _name_column(**frames: Any) -> None:
    """Raise TypeError if a data frame has a column that is not numeric; the message names it.

    `frames` are data frames, or other arrays, by the names in messages.
    """
    for name, frame in frames.items():
        if (column := _column_of_no_numbers(frame)) is not None:
            label, dtype, cell = column
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
    """Return label, dtype and first non-numeric cell of the first column that is not numeric.

    Return None if all columns are numeric, or `frame` is not a data frame.
    """
    if not hasattr(frame, "dtypes") or not hasattr(frame, "columns"):
        return None
    for label, cells in frame.items():
        dtype_kind = getattr(cells.dtype, "kind", "O")
        if dtype_kind in "mM":
            return label, cells.dtype, cells.iloc[0]
        if dtype_kind in "biufc":
            continue
        for cell in cells:
            try:
                float(cell)
            except (TypeError, ValueError):
                if cell is not None:
                    return label, cells.dtype, cell
    return None


def as_frame(x: Any) -> Any:
    """Return a data frame of another library, such as polars, as one of pandas; else `x` itself.

    Parameters
    ----------
    x : object
        Inputs.
    """
    is_other = hasattr(x, "columns") and hasattr(x, "to_numpy")
    if hasattr(x, "iloc") or not is_other:
        return x
    from pandas import DataFrame

    return DataFrame({name: x[name].to_numpy() for name in x.columns})


def encode_table(x: Any) -> tuple[Any, dict[str, Any]]:
    """Encode the columns of a data frame for a new fit, unless all its cells are numbers.

    Parameters
    ----------
    x : data frame (N, n_columns)
        Inputs.

    Returns
    -------
    x : DataFrame (N, d_in), or data frame
        The features that encode the columns; a table of numbers unchanged.
    fitted : dict
        Fields of `FittedState` that describe the columns; empty if `x` is unchanged.

    Raises
    ------
    TypeError, ValueError
        If a column cannot be encoded; the message names it.
    """
    frame = as_frame(x)
    if not hasattr(frame, "iloc"):
        return x, {}
    has_gaps = any(is_missing(cells).any() for _, cells in frame.items())
    if not has_gaps and _column_of_no_numbers(frame) is None:
        return x, {}
    columns = describe_columns(frame)
    fitted: dict[str, Any] = {"columns_": columns, "n_features_in_": len(columns)}
    if all(isinstance(label, str) for label in frame.columns):
        fitted["feature_names_in_"] = np.array(frame.columns, dtype=object)
    return encode_columns(frame, columns), fitted


def _encode_as_in_fit(owner: BaseEstimator, x: Any) -> tuple[BaseEstimator, Any, bool]:
    """Return arguments of `validate_data`: owner, inputs, and whether to store their features.

    A table is encoded as that of the fit of `owner`; its features need not be compared with those
    of the fit, so that they are stored in a learner that is not used any more.
    """
    columns = getattr(owner, "columns_", None)
    if columns is None:
        return owner, x, False
    frame = as_frame(x)
    if hasattr(frame, "iloc"):
        return type(owner)(), encode_columns(frame, columns), True
    n_features = sum(len(column.features) for column in columns)
    if n_features != owner.n_features_in_:
        names = list_names([column.name for column in columns], MAX_NAMES_LISTED)
        raise TypeError(
            f"X must be a data frame, as in fit, with the columns {names}; got a "
            f"{type(x).__name__}"
        )
    return owner, x, False


def check_inputs(owner: BaseEstimator, x: Any) -> Array:
    """Check inputs of a fitted learner, and return them as a finite float64 matrix (N, d_in).

    Parameters
    ----------
    owner : BaseEstimator
        The fitted learner, whose features the inputs must have.
    x : array-like (N, d_in)
        Inputs.

    Raises
    ------
    TypeError, ValueError
        If a cell is not a number, missing or infinite, or the features are others than in `fit`.
        For a data frame the message names the column.
    """
    _refuse_cells(X=x)
    owner, x, first = _encode_as_in_fit(owner, x)
    try:
        return _float64(X=validate_data(owner, x, reset=first))[0]
    except (TypeError, ValueError):
        _name_column(X=x)
        raise


def check_pair(
    owner: BaseEstimator, x: Any, y: Any, *, first: bool, labels: bool
) -> tuple[Array, Array]:
    """Check inputs and targets, and return them as float64; class labels are not converted.

    Parameters
    ----------
    owner : BaseEstimator
        The learner.
    x : array-like (N, d_in)
        Inputs.
    y : array-like (N,) or (N, K)
        Targets.
    first : bool
        Whether to store the number and the names of features in `owner`. If False, they must be
        those that it has stored.
    labels : bool
        Whether `y` holds labels of classes.

    Returns
    -------
    x : ndarray (N, d_in)
        Inputs.
    y : ndarray (N,) or (N, K)
        Targets.

    Raises
    ------
    TypeError, ValueError
        As `check_inputs`, for inputs and targets.
    """
    _refuse_cells(labels="y" if labels else "", X=x, y=y)
    if labels and y is not None:
        _check_label_types(y)
    if not first:
        owner, x, first = _encode_as_in_fit(owner, x)
    try:
        rows, targets = validate_data(owner, x, y, reset=first, multi_output=not labels)
        if labels:
            check_classification_targets(targets)
            return _float64(X=rows)[0], targets
        rows, targets = _float64(X=rows, y=targets)
        return rows, targets
    except (TypeError, ValueError):
        _name_column(X=x)
        if not labels:
            _name_column(y=y)
        raise


def _check_label_types(y: Any) -> None:
    """Raise ValueError for missing labels, TypeError for labels of which only some are text."""
    if getattr(getattr(y, "dtype", None), "kind", "O") != "O":
        return
    labels = np.asarray(y, object).ravel()
    for row, label in enumerate(labels):
        if label is None or type(label).__name__ == "NAType":
            raise ValueError(f"y contains NaN or None at row {row}: a label is missing")
    if len({isinstance(label, str) for label in labels}) > 1:
        raise TypeError("y mixes text with other labels; convert them to one type")


def check_weights(sample_weight: Any, x: Array) -> Array | None:
    """Check sample weights, and return them as float64 (N,), or None if all of them are 1.

    Parameters
    ----------
    sample_weight : float or array-like (N,), optional
        Number of times that each row counts, >= 0; a single number is the weight of every row. None
        stands for 1.
    x : ndarray (N, d_in)
        Inputs, whose number of rows the weights must have.

    Raises
    ------
    TypeError, ValueError
        If a weight is not a number or negative, or their sum is 0 or infinite.
    """
    if sample_weight is None:
        return None
    _refuse_cells(sample_weight=sample_weight)
    if not isinstance(sample_weight, Number):  # one number for all rows
        sample_weight = ANY_NUMBERS("sample_weight", sample_weight)
    weights = _check_sample_weight(
        sample_weight, x, dtype=np.float64, ensure_non_negative=True
    )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not 0 < total < np.inf:
        raise ValueError(
            f"sample_weight must have a finite sum > 0; got weights that sum to {total}"
        )
    if (weights == 1.0).all():
        return None
    return weights


def check_exposure(exposure: Any, x: Array) -> Array:
    """Check exposures, and return them as float64 (N,).

    Parameters
    ----------
    exposure : float or array-like (N,)
        Time, area or number of persons over which the events of each row were counted, > 0; a
        single number is that of every row.
    x : ndarray (N, d_in)
        Inputs, whose number of rows the exposures must have.

    Raises
    ------
    TypeError, ValueError
        If an exposure is not a finite number > 0, or their number is wrong.
    """
    _refuse_cells(exposure=exposure)
    array = np.asarray(ANY_NUMBERS("exposure", exposure), np.float64)
    if array.shape not in ((), (len(x),)):
        raise ValueError(
            f"exposure must be one number, or one for each of {len(x)} rows; got shape "
            f"{array.shape}"
        )
    array = np.broadcast_to(array, len(x))
    allowed = (array > 0.0) & np.isfinite(array)
    if not allowed.all():
        row = int(np.argmin(allowed))
        raise ValueError(
            f"exposure must be a finite number > 0; got {array[row]!s} at row {row}. Leave out "
            "rows over which nothing was counted"
        )
    return array


class TrainingData(NamedTuple):
    """Standardised rows for training, and the shifts and scales of the standardisation."""

    training: Rows
    held_out: Rows | None
    # by name of attribute: x_mean_ and x_scale_ (d_in,), y_mean_ and y_scale_ (K,), x_axes_
    # (d_in, d_in) if inputs were rotated, and exposure_scale_ if there are exposures
    units: dict[str, Any]

    def resample_by_weight(self) -> Rows:
        """Return N rows chosen from the N training rows, about in proportion to their weights.

        They are evenly spaced along the cumulative sum of the weights, and so the same on every
        call.
        """
        x, y, weights = self.training
        if weights is None:
            return self.training
        sums = np.cumsum(weights, dtype=np.float64)
        levels = (np.arange(len(sums)) + 0.5) / len(sums) * sums[-1]
        chosen = np.searchsorted(sums, levels, side="right").clip(max=len(sums) - 1)
        return Rows(x[chosen], y[chosen])


def principal_axes(x: Array, weights: Array | None) -> Array | None:
    """Return the principal axes of inputs if they are collinear, else None (D60).

    Inputs are collinear if the ratio of the largest to the smallest principal variance exceeds
    `MIN_COLLINEAR_RATIO`. Variances of 0, but for rounding, are left out.

    Parameters
    ----------
    x : ndarray (N, d)
        Inputs of mean 0.
    weights : ndarray (N,), optional
        Number of times that each row counts; by default once.

    Returns
    -------
    ndarray (d, d) or None
        Orthonormal axes, as columns, by increasing variance.
    """
    if x.shape[1] > MAX_ROTATED_INPUTS:
        return None
    z = x.astype(np.float64)
    if weights is not None:
        z = z * np.sqrt(weights)[:, None]
    variances, axes = np.linalg.eigh(z.T @ z)
    nonzero = variances[variances > EIGENVALUE_RTOL * variances[-1]]
    largest, smallest = nonzero.max(initial=0.0), nonzero.min(initial=np.inf)
    if largest > MIN_COLLINEAR_RATIO * smallest:
        return axes
    return None


def prepare_rows(
    rows: Rows,
    fraction: float,
    rng: np.random.Generator,
    standardize_x: bool,
    standardize_y: bool,
    dtype: Any,
    rotate: bool = False,
    has_exposure: bool = False,
) -> TrainingData:
    """Split rows into training and held-out rows at random, and standardise them.

    Mean and standard deviation are those of the training rows. If nothing is standardised, the
    result has mean 0 and scale 1.

    Parameters
    ----------
    rows : Rows
        x (N, d_in), y (N, K), weights (N,) or None.
    fraction : float
        Share of the rows to hold out, in [0, 1); their number is rounded up.
    rng : numpy.random.Generator
        Chooses the held-out rows; nothing is drawn if `fraction` is 0.
    standardize_x, standardize_y : bool
        Whether to standardise the inputs, and the targets.
    dtype : dtype
        Floating-point type of the returned rows.
    rotate : bool
        Whether to rotate inputs that are collinear to their principal axes (D60).
    has_exposure : bool
        Whether the last column of x holds exposures; it becomes the offset log(exposure), in units
        of the exposure in which one count is expected on average (D72).

    Returns
    -------
    TrainingData

    Raises
    ------
    ValueError
        If no row is left to train on, or a number is too large for `dtype`.
    """
    x, y, weights = rows
    exposure = x[:, -1]
    if has_exposure:
        x = x[:, :-1]
    n_held_out = int(np.ceil(fraction * len(x)))
    if n_held_out >= len(x):
        raise ValueError(
            f"validation_fraction {fraction:g} of {len(x)} rows leaves none to train on; "
            "use a smaller fraction or more rows"
        )
    order: Array = np.arange(len(x))
    if n_held_out:
        order = rng.permutation(len(x))
    validation, training = order[:n_held_out], order[n_held_out:]
    counts = None
    if weights is not None:
        counts = weights[training]
        weights = weights.astype(dtype)
    x_mean, x_scale = moments(x[training], standardize_x, counts)
    y_mean, y_scale = moments(y[training], standardize_y, counts)
    x = standardise(x, x_mean, x_scale, dtype, "X")
    y = standardise(y, y_mean, y_scale, dtype, "y")
    units: dict[str, Any] = {
        "x_mean_": x_mean,
        "x_scale_": x_scale,
        "y_mean_": y_mean,
        "y_scale_": y_scale,
    }
    if rotate and (axes := principal_axes(x[training], counts)) is not None:
        x = (x @ axes).astype(dtype)  # along principal axes (D60)
        units["x_axes_"] = axes
    if has_exposure:
        scale = _exposure_per_count(exposure[training], y[training], counts)
        x = append_offset(x, exposure, scale)
        units["exposure_scale_"] = scale
    rows = Rows(x, y, weights)
    held_out = rows.at(validation) if n_held_out else None
    return TrainingData(rows.at(training), held_out, units)


def _exposure_per_count(exposure: Array, y: Array, weights: Array | None) -> float:
    """Return the exposure in which one count is expected, if rates do not depend on X.

    `exposure` is (N,), `y` (N, K) are counts, of which the mean over the K columns is taken, and
    `weights` (N,) say how often each row counts, by default once.
    """
    if weights is None:
        weights = np.ones(len(exposure))
    events = y.mean(axis=1, dtype=np.float64)
    # Half an event is added, so that the scale is finite where no event was counted
    return float(weights @ exposure / (weights @ events + 0.5))


def append_offset(x: Array, exposure: Array, scale: float) -> Array:
    """Return inputs `x` (N, d) with log(exposure / scale) as another column, (N, d + 1) (D72).

    Parameters
    ----------
    x : ndarray (N, d)
        Standardised inputs.
    exposure : ndarray (N,)
        Exposure of each row, > 0.
    scale : float
        Exposure in which one count is expected, the unit of exposures in training.
    """
    offset = np.log(exposure) - np.log(scale)  # log exposure, about -log count (D72)
    return np.column_stack([x, offset]).astype(x.dtype)


def largest_log_rate(rows: Rows, has_exposure: bool) -> float:
    """Return the logarithm of the largest rate that counts show, from which on it grows slower.

    It is log max 2 (y + 1) / (e + 1), of log(1 + max y) without exposures e (D72).

    Parameters
    ----------
    rows : Rows
        Training rows, whose last input is the offset log e if there are exposures.
    has_exposure : bool
    """
    exposure: Any = 1.0
    if has_exposure:
        exposure = np.exp(rows.x[:, -1:].astype(np.float64))
    return float(np.log(2.0 * np.max((rows.y + 1.0) / (exposure + 1.0))))


def check_finite(name: str, values: Array, x: Array) -> None:
    """Raise ValueError if predictions are not finite; the message names a row and a column of X.

    Parameters
    ----------
    name : str
        Description of the values, the subject of the message, such as "the prediction".
    values : ndarray (N, ...)
        Predictions at each row.
    x : ndarray (N, d_in)
        Inputs in training's units, of which the message names the farthest from 0.
    """
    finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        column = int(np.argmax(np.abs(x[row])))
        raise ValueError(
            f"{name} overflows {x.dtype} at row {row}: X there is as far as {x[row, column]:.3g} "
            f"standard deviations from its mean (column {column}; with standardize=False: in its "
            "own units). Check that row; it may be in other units than the rows of fit. If it is "
            "ordinary, the fitted weights or the noise are too large: fit again, with "
            "standardize=True or y in other units, and see whether training or sampling converge"
        )
