"""Checks of arguments, with errors that name the argument, its value and the accepted values.

A check is a function of an argument's name and value that returns the value, converted if need be.
Names in capitals are checks; `InstanceOf`, `HasMethods`, `OneOf`, ... return checks. A function
declares the checks of its arguments in a decorator: ``@accepts(x=NUMBERS, rng=GENERATOR)``. A check
raises TypeError for a value of the wrong type and ValueError for one out of range.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, wraps
from numbers import Real
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

Check = Callable[[str, Any], Any]
Given = ParamSpec("Given")
Returned = TypeVar("Returned")

INFINITY = float("inf")
SMALLEST_POSITIVE = float(np.nextafter(0.0, 1.0))
MAX_SAMPLES = 10**6  # largest number of weight samples, or of chains
MAX_STEPS = 10**9  # largest number of epochs, draws or leapfrog steps
# Types that NumPy would convert to numbers, and that are refused
NON_NUMERIC_TYPES = str | bytes | np.datetime64 | np.timedelta64
MAX_INT64 = 2**63 - 1


def accepts(
    **checks: Check,
) -> Callable[[Callable[Given, Returned]], Callable[Given, Returned]]:
    """Return a decorator that checks arguments at every call; defaults are not checked.

    Parameters
    ----------
    **checks
        Check of each argument by its name.
    """

    def decorate(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
        signature = inspect.signature(function)
        assert set(checks) <= set(signature.parameters), checks

        @wraps(function)
        def checked(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
            bound = signature.bind(*args, **kwargs)
            for name, value in bound.arguments.items():
                if name in checks:
                    bound.arguments[name] = checks[name](name, value)
            return function(*bound.args, **bound.kwargs)

        return checked

    return decorate


def check_fields(owner: Any, description: str = "", /, **checks: Check) -> None:
    """Check fields of a frozen dataclass, and replace each by the result of its check.

    So a field of 2.0 becomes 2 if its check returns whole numbers.

    Parameters
    ----------
    owner : object
        The dataclass object, whose fields are changed in place.
    description : str
        Description of the owner for messages: "the prior" gives "scale of the prior".
    **checks
        Check of each field by its name.
    """
    for name, check in checks.items():
        label = f"{name} of {description}" if description else name
        object.__setattr__(owner, name, check(label, getattr(owner, name)))


def short_repr(value: Any) -> str:
    """Return a short description of `value` for messages, as the end of "...; got ".

    A class is followed by advice to make an object of it, an array by its shape and dtype.
    """
    if isinstance(value, type):
        return f"the class {value.__name__}; make an object of it: {value.__name__}()"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    text = repr(value).partition("\n")[0]
    return text if len(text) <= 80 else f"{text[:60]} ..., a {type(value).__name__}"


# --- single numbers


def _single(value: Any) -> Any:
    """Return the number in a zero-dimensional array, and other values unchanged."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _number(name: str, value: Any, expected: str) -> float:
    """Return `value` as a float, or raise an error: "`name` must be `expected`; got ..."."""
    number = _single(value)
    # Python's bool and NumPy's time spans count as real numbers, but are refused
    not_a_number = isinstance(number, bool | np.bool_ | np.timedelta64)
    if not_a_number or not isinstance(number, Real):
        raise TypeError(f"{name} must be {expected}; got {value!r}")
    try:
        return float(number)
    except OverflowError:
        raise ValueError(
            f"{name} must be {expected}; got a number too large for a float"
        ) from None


def whole(
    name: str,
    value: Any,
    minimum: int,
    maximum: int | None = MAX_INT64,
    expected: str = "",
) -> int:
    """Return `value` as an int if minimum <= value <= maximum, else raise an error.

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    value : object
        Value to check; floats without a fraction are accepted.
    minimum, maximum : int
        Smallest and largest accepted number; with `maximum` None there is no largest one.
    expected : str
        Description of the accepted values, for messages; by default "a whole number >= minimum".

    Raises
    ------
    TypeError
        If `value` is not a number.
    ValueError
        If it is not whole, or out of bounds.
    """
    upper = MAX_INT64 if maximum is None else maximum
    # a fast path for the most frequent case
    if type(value) is int and minimum <= value <= upper:
        return value
    expected = expected or f"a whole number >= {minimum}"
    number = _number(name, value, expected)
    if not minimum <= number < INFINITY or number != np.floor(number):
        raise ValueError(f"{name} must be {expected}; got {value!r}")
    integer = int(_single(value))
    if maximum is not None and integer > maximum:
        raise ValueError(f"{name} must be {expected} and <= {maximum}; got {value!r}")
    return integer


def real(name: str, value: Any, low: float, high: float, expected: str = "") -> float:
    """Return `value` as a float if ``low <= value < high``, else raise an error.

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    value : object
        Value to check.
    low, high : float
        Bounds; `low` is accepted and `high` is not.
    expected : str
        Description of the accepted values, for messages; by default the two bounds.

    Raises
    ------
    TypeError
        If `value` is not a number.
    ValueError
        If it is out of bounds or nan.
    """
    if type(value) is float and low <= value < high:
        return value
    expected = expected or f"a number >= {low:g} and < {high:g}"
    number = _number(name, value, expected)
    if not low <= number < high:
        raise ValueError(f"{name} must be {expected}; got {value!r}")
    return number


positive = partial(
    real, low=SMALLEST_POSITIVE, high=INFINITY, expected="positive and finite"
)
not_negative = partial(real, low=0.0, high=INFINITY, expected="finite and >= 0")
fraction = partial(real, low=0.0, high=1.0)
proper_fraction = partial(real, low=SMALLEST_POSITIVE, high=1.0, expected="> 0 and < 1")
# Check of a scale that may be 0, and whose square is finite
spread = partial(real, low=0.0, high=1e150, expected="finite and >= 0, and below 1e150")
# Check of a scale whose square, and the inverse of the square, are finite
standard_deviation = partial(
    real,
    low=1e-150,
    high=1e150,
    expected="positive and finite, between 1e-150 and 1e150",
)
SHARE = partial(
    real, low=0.0, high=float(np.nextafter(1.0, 2.0)), expected="between 0 and 1"
)
COUNT = partial(whole, minimum=1)
STEPS = partial(whole, minimum=1, maximum=MAX_STEPS)
SAMPLES = partial(whole, minimum=1, maximum=MAX_SAMPLES)


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool; raise TypeError for values that are no bool, such as 'no' and 1.

    `name` is the name of the argument, for the message.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {value!r}")
    return bool(value)


# --- arrays


@dataclass(frozen=True)
class Numbers:
    """Check for an array of real numbers, which keeps its dtype.

    Parameters
    ----------
    shape : tuple of int or None, optional
        Required shape, with None for an axis of any length; by default any shape.
    finite : bool
        True to refuse nan and infinity.
    low, high : float
        Smallest and largest accepted number.
    min_length : int
        Smallest accepted number of rows, or of the numbers of a vector.
    whole : bool
        True to refuse fractions.
    """

    shape: tuple[int | None, ...] | None = None
    finite: bool = True
    low: float = -np.inf
    high: float = np.inf
    min_length: int = 0
    whole: bool = False

    def __call__(self, name: str, value: Any) -> NDArray[Any]:
        """Return `value` as an array of real numbers, or raise an error about argument `name`."""
        array = _real_array(name, value)
        if self.shape is not None and not self._fits(array.shape):
            expected = ", ".join(
                "any" if length is None else str(length) for length in self.shape
            )
            raise ValueError(f"{name} must have shape ({expected}); got {array.shape}")
        if self.finite and not np.isfinite(array).all():
            raise ValueError(f"{name} holds nan or infinity")
        if min(array.size, len(np.atleast_1d(array))) < self.min_length:
            items = "rows" if array.ndim > 1 else "numbers"
            raise ValueError(
                f"{name} must hold {self.min_length} or more {items}; got shape {array.shape}"
            )
        if (self.low, self.high) != (-np.inf, np.inf):
            # the bounds are float64, because Python's 1e-150 would become 0 beside a float32
            inside = (array >= np.float64(self.low)) & (array <= np.float64(self.high))
            if not inside.all():
                if self.high < np.inf:
                    expected = f"between {self.low:g} and {self.high:g}"
                elif self.low == SMALLEST_POSITIVE:
                    expected = "> 0"
                else:
                    expected = f">= {self.low:g}"
                raise ValueError(
                    f"{name} must be {expected}; got {array[~inside][0]!s}"
                )
        if self.whole and (fractional := array[array != np.floor(array)]).size:
            raise ValueError(f"{name} must hold whole numbers; got {fractional[0]!s}")
        return array

    def _fits(self, shape: tuple[int, ...]) -> bool:
        """Return whether `shape` equals the required shape, in which None stands for any length."""
        pattern = self.shape or ()
        pairs = zip(pattern, shape, strict=False)
        return len(shape) == len(pattern) and all(a in (None, b) for a, b in pairs)


def contains_instance(array: Any, classes: Any) -> bool:
    """Return whether `array` is an object array with an item of one of `classes`."""
    objects = isinstance(array, np.ndarray) and array.dtype == object
    return objects and any(isinstance(item, classes) for item in array.flat)


def _real_array(name: str, value: Any) -> NDArray[Any]:
    """Return `value` as an array of real numbers, or raise an error about the argument `name`."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries; remove such rows or fill them in")
    try:
        array = np.asarray("" if value is None else value)
        if contains_instance(array, NON_NUMERIC_TYPES):
            array = np.array("")
        if array.dtype.kind == "O" or array.dtype in (np.float16, np.longdouble):
            # numbers too large for float64 become infinity, which is refused later
            with np.errstate(over="ignore"):
                array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.array("")
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must be an array of real numbers; got {short_repr(value)}"
        )
    return array


NUMBERS = Numbers()
ANY_NUMBERS = Numbers(finite=False)
MATRIX = Numbers((None, None))


def FLOATS(name: str, value: Any) -> NDArray[Any]:
    """Return `value` as a finite array if its dtype is float64 or float32, else raise an error.

    `name` is the name of the argument, for the message.
    """
    array = NUMBERS(name, value)
    # the value's own dtype counts, because `NUMBERS` converts objects to float64
    dtype = getattr(value, "dtype", array.dtype)
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} must be of dtype float64 or float32; got {dtype}")
    return array


def DTYPE(name: str, value: Any) -> np.dtype[Any]:
    """Return the dtype that `value` is or names; raise ValueError unless float32 or float64.

    `name` is the name of the argument, for the message.
    """
    dtype = np.dtype(object)
    if isinstance(value, str | type | np.dtype):
        # np.dtype raises TypeError for other text, and ValueError for text with a number in it
        with suppress(TypeError, ValueError):
            dtype = np.dtype(value)
    if dtype not in (np.float32, np.float64):
        raise ValueError(
            f"{name} must be 'float64' or 'float32'; got {short_repr(value)}"
        )
    return dtype


# --- objects


def _checked_by(predicate: Callable[[Any], Any], expected: str) -> Check:
    """Return a check that raises TypeError ("must be `expected`") unless `predicate(value)`."""

    def check(name: str, value: Any) -> Any:
        if not predicate(value):
            raise TypeError(f"{name} must be {expected}; got {short_repr(value)}")
        return value

    return check


def InstanceOf(*classes: type, expected: str = "") -> Check:
    """Return a check(name, value) that returns `value`, or raises TypeError if of another class.

    `expected` describes such values in the message; by default it names the classes.
    """
    names = " or ".join(cls.__name__ for cls in classes)
    expected = expected or f"an object of type {names}"

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, classes):
            raise TypeError(f"{name} must be {expected}; got {short_repr(value)}")
        return value

    return check


def HasMethods(example: str, *methods: str) -> Check:
    """Return a check that raises TypeError unless a value is an object with certain methods.

    Classes and modules are refused.

    Parameters
    ----------
    example : str
        Example of an accepted object for the message: "must be an object such as ``example``".
    *methods : str
        Names of the methods that the object must have.
    """

    def check(name: str, value: Any) -> Any:
        # classes and modules are refused, because np.random has functions of such names too
        if isinstance(value, type | ModuleType) or not set(methods) <= set(dir(value)):
            raise TypeError(
                f"{name} must be an object such as {example}; got {short_repr(value)}"
            )
        return value

    return check


def OneOf(*choices: str) -> Check:
    """Return a check that raises ValueError unless a value is one of the strings `choices`."""
    return KeyOf(dict.fromkeys(choices))


def KeyOf(table: Mapping[str, Any]) -> Check:
    """Return a check that raises ValueError unless a value is a key of `table`.

    Keys that are added to `table` later are accepted, too.
    """

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, str) or value not in table:
            expected = ", ".join(map(repr, table))
            raise ValueError(
                f"{name} must be one of {expected}; got {short_repr(value)}"
            )
        return value

    return check


def Optional(check: Check) -> Check:
    """Return a check that accepts None and every value that `check` accepts."""
    return lambda name, value: None if value is None else check(name, value)


def ListOf(check_item: Check) -> Check:
    """Return a check for a list, tuple or array whose items `check_item` accepts."""

    def is_list(value: Any) -> bool:
        return (
            isinstance(value, list | tuple | np.ndarray)
            and getattr(value, "ndim", 1) > 0
        )

    check_list = _checked_by(is_list, "a list with one entry each")

    def check(name: str, value: Any) -> Any:
        for item in check_list(name, value):
            check_item(name, item)
        return value

    return check


def MappingOf(check_item: Check, example: str = "") -> Check:
    """Return a check for a mapping with text as keys and values that `check_item` accepts.

    Parameters
    ----------
    check_item : callable
        Check of each value of the mapping.
    example : str
        Example of an accepted mapping, for messages; by default the message has none.
    """

    def has_names(value: Any) -> bool:
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)

    expected = "a mapping with text as names" + (example and f", e.g. {example}")
    check_mapping = _checked_by(has_names, expected)

    def check(name: str, value: Any) -> dict[str, Any]:
        return {
            key: check_item(f"{name}[{key!r}]", item)
            for key, item in check_mapping(name, value).items()
        }

    return check


def PathOf(content: str) -> Check:
    """Return a check for a path: a str or os.PathLike that is not empty.

    `content` names the target of the path in the message: 'file' or 'folder'. An empty path is
    refused because it would be the working folder.
    """
    expected = f"the path of a {content}"

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, str | os.PathLike):
            raise TypeError(f"{name} must be {expected}; got {short_repr(value)}")
        if not os.fspath(value):
            raise ValueError(f"{name} must be {expected}; got {short_repr(value)}")
        return value

    return check


def FUNCTION(name: str, value: Any) -> Any:
    """Return `value` if it can be called and is no class, else raise TypeError.

    `name` is the name of the argument, for the message.
    """
    if not callable(value) or isinstance(value, type):
        raise TypeError(f"{name} must be a function; got {short_repr(value)}")
    return value


PATH = PathOf("file")
FOLDER = PathOf("folder")
# Check for a generator; a seed is refused, because every call would draw the same numbers
GENERATOR = InstanceOf(
    np.random.Generator,
    expected="a numpy.random.Generator, e.g. numpy.random.default_rng(0)",
)


def check_generator(
    random_state: Any, name: str = "random_state"
) -> np.random.Generator:
    """Return a new generator that is seeded by `random_state`.

    From a generator (`numpy.random.Generator` or the older `RandomState`) the seed is drawn, which
    changes the state of that generator: the next call returns a different result.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Seed or source of a seed; with None the seed is taken from the operating system.
    name : str
        Name of the argument, for messages.

    Raises
    ------
    TypeError
        If `random_state` is of another type.
    ValueError
        If the number is negative.
    """
    if isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state.integers(2**32, size=4))
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is not None:
        expected = (
            "None, a whole number >= 0, a numpy.random.Generator or a "
            "numpy.random.RandomState"
        )
        random_state = whole(name, random_state, 0, None, expected)
    return np.random.default_rng(random_state)
