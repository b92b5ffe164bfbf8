"""Checks of targets that are no plain numbers: class labels and counts."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .sklearn_base import DataConversionWarning

__all__ = ["check_counts", "check_labels", "codes", "distinct"]

Array = NDArray[Any]
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
