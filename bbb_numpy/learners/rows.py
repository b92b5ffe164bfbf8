"""The rows that users pass in: checked, read as numbers or labels, put into standard units.

Errors name argument and place. One path, with and without scikit-learn. The opening words of some
messages are those that scikit-learn's conformance checks look for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..training.recipe import Rows
from .habits import DataConversionWarning

__all__ = [
    "NotFittedError",
    "Prepared",
    "check_columns",
    "check_counts",
    "check_inputs",
    "check_labels",
    "check_same_rows",
    "check_targets",
    "codes",
    "column_names",
    "distinct",
    "held_out_rows",
    "moments",
    "prepared",
    "standardised",
]


try:
    from sklearn.exceptions import NotFittedError
except ImportError:

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """A method was called that needs `fit` first."""


Array = NDArray[Any]
SHOWN = 5  # names listed in a message before "..."


def check_inputs(x: Any, name: str = "X") -> Array:
    """Return `x` as a finite float64 matrix (N, d_in), N and d_in >= 1.

    Lists, arrays, data frames and anything with ``__array__`` are accepted.

    Raises
    ------
    TypeError
        For sparse input, dates, and objects that are not numbers.
    ValueError
        For the wrong number of axes, no rows or columns, text, complex numbers, masked
        entries, nan and infinity; the first offending cell is named.
    """
    array = _numbers(x, name)
    if array.ndim < 2:
        raise ValueError(
            f"Expected 2D array for {name}, got {array.ndim}D array of shape {array.shape}. "
            f"Reshape your data: {name}.reshape(-1, 1) if it is a single column, "
            f"{name}.reshape(1, -1) if it is a single row."
        )
    if array.ndim > 2:
        raise ValueError(
            f"{name} must be a matrix of shape (rows, columns); got shape {array.shape}. "
            f"Flatten every row: {name}.reshape(len({name}), -1)"
        )
    _not_empty(array, name)
    return _finite(array, name, column_names(x))


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
    array = _numbers(y, name)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have shape (rows,) or (rows, outputs); got shape {array.shape}"
        )
    _not_empty(array, name)
    return _finite(array, name)


def check_same_rows(**arrays: Array) -> None:
    """Raise ValueError unless all arrays have the same length."""
    if len({len(array) for array in arrays.values()}) > 1:
        sizes = ", ".join(f"{name} has {len(array)}" for name, array in arrays.items())
        raise ValueError(
            f"{' and '.join(arrays)} must have the same number of rows; {sizes}. "
            "Row i of each must belong together"
        )


def column_names(x: Any) -> Array | None:
    """Return the column names of a data frame as an object array (d_in,), or None.

    Names count when all of them are text; numbered columns are the same as none.

    Raises
    ------
    TypeError
        If only some of the names are text.
    """
    columns = getattr(x, "columns", None)
    if columns is None or callable(columns) or not isinstance(columns, Iterable):
        return None
    names = list(columns)
    text = sum(isinstance(name, str) for name in names)
    if names and text == len(names):
        return np.array([str(name) for name in names], dtype=object)
    if text:
        kinds = sorted({type(name).__name__ for name in names})
        raise TypeError(
            f"X has column names of several types ({', '.join(kinds)}); only names that are all "
            "text are supported. Convert them: X.columns = X.columns.astype(str)"
        )
    return None


def check_columns(x: Any, array: Array, width: int, names: Array | None, owner: str) -> None:
    """Compare columns with those seen in `fit`.

    Parameters
    ----------
    x : object
        What the user passed, which may carry column names.
    array : ndarray (N, d)
        The same as numbers.
    width : int
        Number of columns seen in `fit`.
    names : ndarray or None
        Their names, if they had any.
    owner : str
        Class of the learner, for the message.

    Raises
    ------
    ValueError
        For another number of columns, other names or another order of names.

    Warns
    -----
    UserWarning
        If only one of the two has names, as scikit-learn does.
    """
    given = column_names(x)
    if given is not None and names is not None:
        if list(given) != list(names):
            raise ValueError(_names_differ(list(given), list(names)))
    elif names is not None:
        warnings.warn(
            f"X does not have valid feature names, but {owner} was fitted with feature names",
            UserWarning,
            stacklevel=4,
        )
    elif given is not None:
        warnings.warn(
            f"X has feature names, but {owner} was fitted without feature names",
            UserWarning,
            stacklevel=4,
        )
    if array.shape[1] != width:
        raise ValueError(
            f"X has {array.shape[1]} features, but {owner} is expecting {width} features as input. "
            "Pass the same columns as in fit"
        )


def _numbers(value: Any, name: str) -> Array:
    """Convert to a float64 array, or say what cannot be converted."""
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise TypeError(
            f"{name} is sparse ({type(value).__name__}); sparse input is not supported. "
            f"Convert it: {name}.toarray()"
        )
    if np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries; remove such rows or fill them in")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"{name} cannot be made an array; its rows must be equally long: {error}"
        ) from None
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}")
    if array.dtype.kind in "OUST":
        _no_text(array, name)
    elif array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers; got dtype {array.dtype}. Convert it to float")
    try:
        with np.errstate(over="ignore"):  # infinity is reported with its place
            return array.astype(np.float64, order="C")  # rounding of sums depends on layout
    except OverflowError:
        raise ValueError(
            f"{name} holds a whole number beyond the range of float64, 1.8e308; use other units"
        ) from None
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must hold numbers only: {error}") from None


def _no_text(array: Array, name: str) -> None:
    for place, item in np.ndenumerate(array):
        if isinstance(item, (str, bytes)):
            raise ValueError(
                f"{name} must hold numbers; got text {str(item)!r} at {_place(place)}. "
                "Convert numbers with astype(float), encode categories as numbers"
            )


def _not_empty(array: Array, name: str) -> None:
    if len(array) == 0:
        raise ValueError(
            f"{name} is empty: 0 sample(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    if array.size == 0:
        raise ValueError(
            f"{name} has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required."
        )


def _finite(array: Array, name: str, names: Array | None = None) -> Array:
    finite = np.isfinite(array)
    if not finite.all():
        place = tuple(int(i) for i in np.argwhere(~finite)[0])
        kind = "NaN" if np.isnan(array[place]) else "infinity"
        label = "" if names is None else f" ({names[place[1]]!r})"
        raise ValueError(
            f"Input {name} contains {kind} at {_place(place)}{label}, and "
            f"{int((~finite).sum()) - 1} more NaN or infinite cells. Remove or fill in such rows"
        )
    return array


def _place(place: tuple[int, ...]) -> str:
    return ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column"), place, strict=False))


def _names_differ(given: list[str], fitted: list[str]) -> str:
    message = "The feature names should match those that were passed during fit.\n"
    unseen, missing = sorted(set(given) - set(fitted)), sorted(set(fitted) - set(given))
    for title, names in (
        ("Feature names unseen at fit time:", unseen),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if names:
            listed = [f"- {name}\n" for name in names[:SHOWN]]
            message += title + "\n" + "".join(listed) + ("- ...\n" if len(names) > SHOWN else "")
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message


# Targets that are no plain numbers: class labels and counts.

EXACT = 2**53  # float64 holds every whole number up to this one
KINDS = {"b": "truth values", "i": "numbers", "u": "numbers", "f": "numbers"}
KINDS |= {"U": "text", "S": "bytes"}


def check_labels(y: Any, name: str = "y") -> Array:
    """Return class labels as an array (N,) of their own type.

    Text, whole numbers, truth values and any other type that can be sorted, one type at a time.

    Raises
    ------
    TypeError
        For labels of several types, or of one that cannot be sorted.
    ValueError
        For None, several columns, no rows, missing labels, and numbers that are not whole.

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
    if np.ma.is_masked(y):
        raise ValueError(f"{name} has masked entries; remove such rows or fill them in")
    array = _labels(y, name)
    if array.dtype.kind in "cV":
        raise ValueError(f"Unknown label type: {name} of dtype {array.dtype}")
    if array.ndim == 2 and array.shape[1] == 1:
        warnings.warn(
            f"A column-vector {name} was passed when a 1d array was expected. Change the shape of "
            f"{name} to (n_samples,), for example with {name}.ravel()",
            DataConversionWarning,
            stacklevel=5,
        )
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(
            f"{name} must hold one label per row, shape (rows,); got shape {array.shape}. For "
            "several yes-or-no questions use BayesianMLPRegressor(likelihood='bernoulli')"
        )
    if len(array) == 0:
        raise ValueError(f"{name} is empty: 0 sample(s) while a minimum of 1 is required.")
    _one_kind(array, name)
    return array


def _labels(y: Any, name: str) -> Array:
    """Return an array in which no label has changed its type."""
    if hasattr(y, "__array__") or hasattr(y, "toarray"):
        return np.asarray(y)
    try:
        plain = np.asarray(y)
    except ValueError:
        raise ValueError(f"{name} must hold one label per row, all alike") from None
    if plain.ndim != 1 or plain.dtype.kind not in "USif":
        return plain
    # NumPy has turned [1, "a"] into text, and [True, 2] into numbers
    return plain if len({_kind(label) for label in y}) == 1 else np.array(list(y), dtype=object)


def _kind(label: Any) -> str:
    """Name the type of one label as far as it matters: 1 and 1.0 are alike, 1 and True not."""
    if isinstance(label, (bool, np.bool_)):
        return "truth values"
    if isinstance(label, Real):
        return "numbers"
    if isinstance(label, str):
        return "text"
    return type(label).__name__


def _shown(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def kind(labels: Array) -> str:
    """Name the type of all labels."""
    return KINDS.get(labels.dtype.kind) or _kind(labels[0])


def _is_missing(label: Any) -> bool:
    """Whether a label is None, nan, or pandas' NA, of which no comparison has a truth value."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def _one_kind(array: Array, name: str) -> None:
    """Raise unless all labels are of one type, none is missing, and numbers are whole."""
    if array.dtype.kind in "biuUS":
        return
    missing = [i for i, label in enumerate(array.tolist()) if _is_missing(label)]
    if array.dtype.kind in "Mm":
        missing = np.flatnonzero(np.isnat(array)).tolist()
    if missing:
        raise ValueError(
            f"Input {name} contains NaN or None at row {missing[0]}: a label is missing"
        )
    if array.dtype.kind == "O":
        kinds = [_kind(label) for label in array]
        other = next((i for i, one in enumerate(kinds) if one != kinds[0]), None)
        if other is not None:
            raise TypeError(
                f"{name} mixes labels of several types: {kinds[0]} ({_shown(array[0])} at row 0) "
                f"and {kinds[other]} ({_shown(array[other])} at row {other}). Convert them to one "
                "type, e.g. with [str(label) for label in y]"
            )
    if kind(array) == "numbers":
        values = array.astype(np.float64) if array.dtype.kind == "f" else array
        wrong = [i for i, v in enumerate(values.tolist()) if isinstance(v, float) and v % 1 != 0]
        if wrong:
            raise ValueError(
                f"Unknown label type: continuous. {name} holds {_shown(array[wrong[0]])} at row "
                f"{wrong[0]}; labels that are numbers must be whole. For real targets use "
                "BayesianMLPRegressor"
            )


def distinct(labels: Array, name: str = "y") -> Array:
    """Return the distinct labels, sorted (C,), C >= 2.

    Raises
    ------
    TypeError
        If they cannot be sorted.
    ValueError
        If there is only one.
    """
    try:
        found = np.unique(labels)
    except TypeError:
        raise TypeError(
            f"{name} holds labels of type {type(labels[0]).__name__}, which cannot be sorted; "
            "convert them to text or numbers"
        ) from None
    if len(found) < 2:
        raise ValueError(
            f"{name} has only one class, {found[0]!s}: every probability would be 1 whatever the "
            "inputs, so there is nothing to learn. Give rows of at least two classes, or name all "
            "of them in partial_fit(X, y, classes=...)"
        )
    return found


def codes(labels: Array, classes: Array, name: str = "y") -> NDArray[np.intp]:
    """Return the place of every label in the sorted `classes` (N,); -1 for one that is not there.

    Raises
    ------
    TypeError
        If labels and classes are of different types.
    """
    if kind(labels) != kind(classes):
        raise TypeError(
            f"{name} holds labels of another type, {kind(labels)} such as {_shown(labels[0])}, "
            f"than the classes, {kind(classes)} such as {_shown(classes[0])}"
        )
    places = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    return np.where(classes[places] == labels, places, -1)


def check_counts(y: Any, name: str = "y") -> None:
    """Raise ValueError for whole numbers that float64 would round, before anything is cast.

    The other demands on counts are those of `PoissonLikelihood.check_targets`.
    """
    array = np.asarray(y)
    if array.dtype.kind not in "iufO":
        return
    try:
        # A float of 2^53 may be the rounding of the next whole number
        too_large = array >= EXACT if array.dtype.kind == "f" else array > EXACT
        found = np.argwhere(np.logical_and(too_large, array < np.inf))
    except TypeError:
        return  # text and the like, which `check_targets` names
    if len(found):
        place = tuple(int(i) for i in found[0])
        raise ValueError(
            f"{name} holds the count {array[place]!s} at row {place[0]}: counts above 2^53 = "
            f"{EXACT} are not exact in float64. Count in larger units"
        )


# Shift and scale of columns, for training in standard units.


def moments(array: Array, standardize: bool) -> tuple[Array, Array]:
    """Return mean and deviation of the columns of (N, d); deviation 1 where nothing varies."""
    if not standardize:
        return np.zeros(array.shape[1]), np.ones(array.shape[1])
    largest = np.abs(array).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # squares of 1e200 would overflow
    scaled = array / unit
    mean, scale = scaled.mean(axis=0), scaled.std(axis=0)
    # A constant column leaves rounding errors of the mean, which must not be blown up.
    constant = scale <= 10 * np.finfo(float).eps
    mean = np.where(constant, scaled[0], mean)
    return mean * unit, np.where(constant, 1.0, scale * unit)


def standardised(array: Array, mean: Array, scale: Array, dtype: Any, name: str) -> Array:
    """Return (array - mean) / scale as `dtype`.

    Raises
    ------
    ValueError
        If a number is too large for that, naming argument and place.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        out = ((array - mean) / scale).astype(dtype)
    if not np.isfinite(out).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(out))[0])
        raise ValueError(
            f"{name} is too large at row {row}, column {column} for {np.dtype(dtype)}: "
            f"{array[row, column]:g} with mean {mean[column]:g} and deviation {scale[column]:g}"
        )
    return out


class Prepared(NamedTuple):
    """What training gets: rows in standard units, and what those units are."""

    training: Rows
    held_out: Rows | None
    units: dict[str, Array]  # x_mean_, x_scale_ (d_in,), y_mean_, y_scale_ (K,)


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
    """
    order = rng.permutation(len(x)) if held_out else np.arange(len(x))
    units: dict[str, Array] = {}
    scaled = []
    for name, array, wanted in (("x", x, standardize_x), ("y", y, standardize_y)):
        mean, scale = moments(array[order[held_out:]], wanted)
        units |= {f"{name}_mean_": mean, f"{name}_scale_": scale}
        argument = "X" if name == "x" else "y"
        scaled.append(standardised(array, mean, scale, dtype, argument)[order])
    training = Rows(*(array[held_out:] for array in scaled))
    validation = Rows(*(array[:held_out] for array in scaled)) if held_out else None
    return Prepared(training, validation, units)
