"""Checks of the data that users pass in, with errors that name argument and place.

One path, with and without scikit-learn. The opening words of some messages are those that
scikit-learn's conformance checks look for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.exceptions import NotFittedError
except ImportError:

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """A method was called that needs `fit` first."""


__all__ = [
    "NotFittedError",
    "check_columns",
    "check_inputs",
    "check_same_rows",
    "check_targets",
    "column_names",
]

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
