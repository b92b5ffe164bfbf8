"""The rows that users pass in: checked, read as numbers or labels, put into standard units.

scikit-learn checks shapes, types and names; what it lets pass or does not locate is named here: the
cell that holds nan, masked entries, counts that float64 would round, labels of several types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Number, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..model.joint import Model
from ..numeric.standardisation import moments, standardised
from ..numeric.validation import EXACT, cells_of, unrounded, where
from ..parts.weighted import with_weights
from ..training.recipe import Rows

__all__ = [
    "Prepared",
    "check_counts",
    "check_inputs",
    "check_labels",
    "check_targets",
    "check_weights",
    "codes",
    "counting",
    "distinct",
    "held_out_rows",
    "label_type",
    "prepared",
    "refuse_dates",
]

Array = NDArray[Any]
LOOSE = {"dtype": "numeric", "ensure_all_finite": False}  # nan is located below


def check_inputs(owner: BaseEstimator, x: Any, first: bool = False) -> Array:
    """Return `x` as a finite float64 matrix (N, d_in), N and d_in >= 1.

    Lists, arrays, data frames and anything with ``__array__`` are accepted.

    Parameters
    ----------
    owner : BaseEstimator
        Whose number and names of features `x` must have.
    x : array-like (N, d_in)
    first : bool
        `owner` takes note of number and names instead.

    Raises
    ------
    TypeError
        For sparse input, dates, and objects that are not numbers.
    ValueError
        For the wrong number of axes, no rows or columns, text, complex numbers, masked
        entries, nan and infinity, of which the first cell is named; for other features.

    Warns
    -----
    UserWarning
        If only one of `x` and `owner` has names of features.
    """
    _no_mask(x, "X")
    if hasattr(x, "__array__") and not hasattr(x, "shape"):
        x = np.asarray(x)  # scikit-learn would not know the number of its columns
    with _as_value_error("X", x):
        array = validate_data(owner, x, reset=first, **LOOSE)
    found = _finite(_float64(array, "X"), "X", getattr(owner, "feature_names_in_", None))
    return unrounded(found, x, "X")


def check_targets(y: Any, name: str = "y") -> Array:
    """Return `y` as a finite float64 array (N,) or (N, K) with N, K >= 1.

    Raises
    ------
    TypeError, ValueError
        As `check_inputs`; also for None.
    """
    if y is None:
        raise ValueError(
            f"a regression requires y to be passed, but the target y is None ({name}): "
            "give one target per row"
        )
    _one_per_row(y, name)
    _no_mask(y, name)
    with _as_value_error(name, y):
        array = check_array(y, ensure_2d=False, input_name=name, **LOOSE)
    return unrounded(_finite(_float64(array, name), name), y, name)


def _one_per_row(y: Any, name: str) -> None:
    if isinstance(y, (str, bytes, Number, Mapping)):
        raise ValueError(f"{name} must be an array or a list of one target per row; got {y!r}")


@contextmanager
def _as_value_error(name: str, given: Any) -> Iterator[None]:
    """Tell a whole number beyond the range of float64 as what it is, a wrong value.

    So too a cell of an array of objects that says nothing, as pandas' NA.
    """
    try:
        yield
    except ValueError as error:
        if "could not convert string" in str(error):
            remedy = "take BayesianMLPClassifier" if name == "y" else "encode it (OneHotEncoder)"
            raise ValueError(f"{name} must hold numbers: {error}. For text {remedy}") from None
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(
            f"{name} has an inhomogeneous shape; give as many numbers in each row"
        ) from None
    except TypeError:
        cells = cells_of(given)
        missing = next((i for i, cell in enumerate(cells.ravel()) if _is_missing(cell)), None)
        if missing is None:
            raise
        place = np.unravel_index(missing, cells.shape)
        raise ValueError(
            f"Input {name} contains a missing value, {cells[place]!r}, at {where(place)}. Remove "
            "or fill in such rows"
        ) from None
    except OverflowError:
        raise ValueError(
            f"{name} holds a whole number beyond the range of float64, 1.8e308; use other units"
        ) from None


def _no_mask(value: Any, name: str) -> None:
    if np.ma.is_masked(value):
        place = np.argwhere(np.ma.getmask(value))[0]
        raise ValueError(
            f"{name} has masked entries, the first at {where(place)}; remove such rows or fill "
            "them in"
        )


def _float64(array: Array, name: str) -> Array:
    """Convert an array that scikit-learn has let pass."""
    if array.dtype.kind == "O":  # whole numbers that only Python can hold
        with _as_value_error(name, array):  # of text too, as in pandas' categories
            array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers; got dtype {array.dtype}. Convert it to float")
    with np.errstate(over="ignore"):  # infinity is reported with its place
        return array.astype(np.float64, order="C")  # rounding of sums depends on layout


def _finite(array: Array, name: str, names: Array | None = None) -> Array:
    finite = np.isfinite(array)
    if not finite.all():
        place = tuple(int(i) for i in np.argwhere(~finite)[0])
        kind = "NaN" if np.isnan(array[place]) else "infinity"
        label = "" if names is None else f" ({names[place[1]]!r})"
        raise ValueError(
            f"Input {name} contains {kind} at {where(place)}{label}, and "
            f"{int((~finite).sum()) - 1} more NaN or infinite cells. Remove or fill in such rows"
        )
    return array


# Targets that are no plain numbers: class labels and counts.


def check_labels(y: Any, name: str = "y") -> Array:
    """Return class labels as an array (N,) of their own type: text, whole numbers or bool.

    Raises
    ------
    TypeError
        For labels of several types.
    ValueError
        For None, several columns, no rows, missing labels, numbers that are not whole, and
        other types.

    Warns
    -----
    DataConversionWarning
        For a single column (N, 1), as scikit-learn does.
    """
    if y is None:
        raise ValueError(
            f"a classifier requires y to be passed, but the target y is None ({name}): give one "
            "label per row"
        )
    _one_per_row(y, name)
    _no_mask(y, name)
    _one_kind(y, name)
    try:
        array = column_or_1d(y, warn=True)
    except ValueError as error:
        text = str(error).replace("y should", f"{name} should")
        raise ValueError(text if text.startswith(name) else f"{name}: {text}") from None
    if len(array) == 0:
        raise ValueError(f"{name} is empty: 0 sample(s) while a minimum of 1 is required.")
    with np.errstate(invalid="ignore"):  # of infinity, which is refused
        check_classification_targets(array)
    return array


def _one_kind(y: Any, name: str) -> None:
    """Raise for a missing label, and for several types, which NumPy would turn into text."""
    labels = np.asarray(y).ravel() if hasattr(y, "__array__") else y
    kind = getattr(getattr(labels, "dtype", None), "kind", "O")
    told = isinstance(kind, str) and kind in "biuUS"
    if told or not isinstance(labels, Iterable):
        return
    first, start = None, None
    for row, label in enumerate(labels):
        if _is_missing(label):
            raise ValueError(f"Input {name} contains NaN or None at row {row}: a label is missing")
        here = label_type(label)
        if first is None:
            first, start = here, label
        if here != first:
            raise TypeError(
                f"{name} mixes labels of several types: {first} ({start!r} at row 0) and "
                f"{here} ({label!r} at row {row}). Convert them to one type, e.g. with "
                "[str(label) for label in y]"
            )


def label_type(label: Any) -> str:
    """Name the type of one label as far as it matters: 1 and 1.0 are alike, 1 and True not."""
    if isinstance(label, (bool, np.bool_)):
        return "truth values"
    if isinstance(label, Real):
        return "numbers"
    return "text" if isinstance(label, str) else type(label).__name__


def _is_missing(label: Any) -> bool:
    """Whether a label is None, nan, or pandas' NA, of which no comparison has a truth value."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True
    except ValueError:  # a whole array, which has a message of its own
        return False


def distinct(labels: Array, name: str = "y") -> Array:
    """Return the distinct labels, sorted (C,), or raise ValueError if there is only one."""
    found = np.unique(labels)
    if len(found) < 2:
        raise ValueError(
            f"{name} has only one class, {found[0]!s}: every probability would be 1 whatever the "
            "inputs, so there is nothing to learn. Give rows of at least two classes, or name all "
            "of them in partial_fit(X, y, classes=...)"
        )
    return found


def codes(labels: Array, classes: Array) -> NDArray[np.intp]:
    """Return the place of every label in the sorted `classes` (N,); -1 for one not there."""
    try:
        places = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    except TypeError:  # text among numbers is not there
        return np.full(len(labels), -1)
    return np.where(classes[places] == labels, places, -1)


def check_counts(y: Any, name: str = "y") -> None:
    """Raise ValueError for whole numbers that float64 would round, before anything is cast.

    The other demands on counts are those of `PoissonLikelihood.check_targets`.
    """
    try:
        array = np.asarray(y)
    except ValueError:
        return  # lists of several lengths, which `check_targets` names
    if array.dtype.kind not in "iufO" or not array.ndim:
        return
    try:
        # A float of 2^53 may be the rounding of the next whole number
        is_float = array.dtype.kind == "f"
        too_large = array.astype(np.float64) >= EXACT if is_float else array > EXACT
        found = np.argwhere(np.logical_and(too_large, array < np.inf))
    except TypeError:
        return  # text and the like, which `check_targets` names
    if len(found):
        place = tuple(int(i) for i in found[0])
        raise ValueError(
            f"{name} holds the count {array[place]!s} at row {place[0]}: counts above 2^53 = "
            f"{EXACT} are not exact in float64. Count in larger units"
        )


# How often each row counts.


def refuse_dates(sample_weight: Any) -> None:
    """Raise TypeError for dates and spans of time, which NumPy casts to numbers."""
    for array in (sample_weight, np.asarray(sample_weight)):  # pandas' with a time zone are objects
        if getattr(getattr(array, "dtype", None), "kind", "") in ("m", "M"):
            raise TypeError(f"sample_weight must hold numbers; got dtype {array.dtype}")


def check_weights(sample_weight: Any, x: Array) -> Array | None:
    """Return the weights of the rows of `x` as float64 (N,); None if each counts once.

    Raises
    ------
    TypeError, ValueError
        Unless they are finite numbers >= 0, one for each row, and not all 0.
    """
    if sample_weight is None:
        return None
    _no_mask(sample_weight, "sample_weight")
    refuse_dates(sample_weight)
    try:
        weights = _check_sample_weight(
            sample_weight, x, dtype=np.float64, ensure_non_negative=True, copy=True
        )
    except (TypeError, ValueError) as error:
        told = "sample_weight" in str(error)
        raise (error if told else type(error)(f"sample_weight: {error}")) from None
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not total > 0:
        raise ValueError("sample_weight is 0 for every row, so that there is nothing to learn from")
    if not np.isfinite(total):
        raise ValueError("sample_weight sums to infinity; divide it by its largest number")
    return None if (weights == 1.0).all() else weights


def counting(rows: tuple[Array, Array], weights: Array | None) -> tuple[Array, Array, Array | None]:
    """Return `rows` (x, y) and their weights without those of weight 0, which are not there."""
    x, y = rows
    if weights is None or (weights > 0).all():
        return x, y, weights
    kept = weights > 0
    return x[kept], y[kept], weights[kept]


def class_weights(class_weight: Any, classes: Array, counts: Array) -> Array:
    """Return the weight of each of the `classes` (C,), whose rows count `counts` (C,) in all.

    Raises
    ------
    ValueError
        Unless `class_weight` is 'balanced', or a dict of labels among `classes` to numbers >= 0.
    """
    if class_weight == "balanced":
        occurs = counts > 0
        equal = counts.sum() / np.count_nonzero(occurs)
        return np.divide(equal, counts, out=np.ones(len(counts)), where=occurs)
    labels = classes.tolist()
    for label, weight in class_weight.items():
        if label not in labels:
            raise ValueError(
                f"class_weight names the label {label!r}, which is not among the classes {labels}"
            )
        if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
            raise ValueError(
                f"class_weight[{label!r}] must be a finite number >= 0; got {weight!r}"
            )
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])


# What training gets.


class Prepared(NamedTuple):
    """What training gets: rows in standard units, and what those units are."""

    training: Rows
    held_out: Rows | None
    units: dict[str, Array]  # x_mean_, x_scale_ (d_in,), y_mean_, y_scale_ (K,)
    weights: tuple[Array, Array | None] | None = None  # of both sets of rows; None: 1 each

    def counted(self, model: Model) -> tuple[Model, Rows, Rows | None]:
        """Return the model and both sets of rows as training takes them, with weights if any."""
        if self.weights is None:
            return model, self.training, self.held_out
        training, held_out = (
            None if rows is None or v is None else Rows(rows.x, with_weights(rows.y, v))
            for rows, v in zip((self.training, self.held_out), self.weights, strict=True)
        )
        assert training is not None
        return model.weighted(), training, held_out

    def typical(self) -> Rows:
        """Return as many rows as there are to train on, each as often as its weight asks for.

        Evenly spaced along the sum of the weights, so that it is the same on every call.
        """
        if self.weights is None:
            return self.training
        sums = np.cumsum(self.weights[0], dtype=np.float64)
        places = (np.arange(len(sums)) + 0.5) / len(sums) * sums[-1]
        chosen = np.searchsorted(sums, places, side="right").clip(max=len(sums) - 1)
        return Rows(self.training.x[chosen], self.training.y[chosen])


def held_out_rows(rows: int, fraction: float) -> int:
    """Return how many of `rows` rows are held out, or raise if none would be left to train on."""
    count = int(np.ceil(fraction * rows))
    if count >= rows:
        raise ValueError(
            f"validation_fraction {fraction:g} of {rows} rows leaves none to train on; "
            "use a smaller fraction or more rows"
        )
    return count


def prepared(
    x: Array,
    y: Array,
    held_out: int,
    rng: np.random.Generator,
    standardize_x: bool,
    standardize_y: bool,
    dtype: Any,
    weights: Array | None = None,
) -> Prepared:
    """Hold rows out at random, and bring all to standard units by the moments of the others.

    Parameters
    ----------
    x, y : ndarray (N, d_in), (N, K)
        Checked, float64.
    held_out : int
        Number of rows.
    rng : numpy.random.Generator
        Asked only if rows are held out.
    standardize_x, standardize_y : bool
        Otherwise mean 0 and scale 1 are noted.
    dtype : dtype
        Of the result.
    weights : ndarray (N,), optional
        How often each row counts, > 0.
    """
    order = rng.permutation(len(x)) if held_out else np.arange(len(x))
    units: dict[str, Array] = {}
    scaled = []
    for name, array, wanted in (("x", x, standardize_x), ("y", y, standardize_y)):
        kept = order[held_out:]
        mean, scale = moments(array[kept], wanted, None if weights is None else weights[kept])
        units |= {f"{name}_mean_": mean, f"{name}_scale_": scale}
        argument = "X" if name == "x" else "y"
        scaled.append(standardised(array, mean, scale, dtype, argument)[order])
    training = Rows._make(array[held_out:] for array in scaled)
    validation = Rows._make(array[:held_out] for array in scaled) if held_out else None
    if weights is None:
        return Prepared(training, validation, units)
    split = weights[order[held_out:]], weights[order[:held_out]] if held_out else None
    return Prepared(training, validation, units, split)
