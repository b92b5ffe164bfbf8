"""States on disk: a tree of values, arrays and objects of given classes, as one ``.npz`` file.

The file holds plain arrays, each named by its place in the tree (``fitted.training_.theta``), and
one JSON header. There a value stands as it is if JSON holds it exactly, a tuple as a list, and all
else as a table of one name, which says what it is: ``{"Cosine": {"final": 0.0}}``.

Nothing that is read is executed. Classes and functions are looked up among those that the `Format`
gives, the fields of an object are held to the types of their annotations, and the object's own
checks are made. What goes with what is for the owner of the state to judge.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ..version import __version__
from .files import check_regular, write_arrays

__all__ = [
    "CheckpointError",
    "Format",
    "check_type",
    "pack",
    "read_state",
    "same_names",
    "unpack",
    "write_state",
]

Array = NDArray[Any]
KINDS = "biufU"  # of arrays: truth values, numbers, text
NOT_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
GENERATORS = {kind.__name__: kind for kind in (np.random.PCG64, np.random.PCG64DXSM)}
HEADER_NAMES = {"format", "version", "written_by", "content"}

MESSAGE = 1000  # characters


class CheckpointError(ValueError):
    """A file does not hold what it should, or a state cannot be stored."""

    def __init__(self, message: str) -> None:
        if len(message) > MESSAGE:  # a file can make names, and so messages, of megabytes
            message = f"{message[: MESSAGE // 2]} ... {message[-MESSAGE // 2 :]}"
        super().__init__(message)


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Parameters
    ----------
    name : str
        E.g. ``'bbb_numpy.learner'``.
    version : int
        A file of another version is refused.
    known : tuple of classes and functions
        Dataclasses and named tuples of which a file may hold objects; functions and classes that
        may themselves be values.
    """

    name: str
    version: int
    known: tuple[Any, ...]

    @cached_property
    def names(self) -> dict[str, Any]:
        """What is known, by name."""
        return {thing.__name__: thing for thing in self.known}


def write_state(path: Path, state: Any, form: Format) -> None:
    """Write `state`, an object of a known class, replacing an older file only when all is written.

    Raises
    ------
    CheckpointError
        Naming the place in `state` of what cannot be stored.
    OSError
        If the file cannot be written; an older one is untouched.
    """
    arrays: dict[str, Array] = {}
    header = {
        "format": form.name,
        "version": form.version,
        "written_by": __version__,
        "content": _packed_fields("", state, form, arrays),
    }
    text = json.dumps(header).encode()
    write_arrays(path, {"header": np.frombuffer(text, np.uint8), **arrays})


def read_state(path: Path, kind: type, form: Format) -> Any:
    """Return the object of class `kind` that `write_state` wrote.

    Raises
    ------
    CheckpointError
        For anything but such a file of this format and version; names the place in the state.
    OSError
        If there is no such file or it cannot be read.
    """
    try:
        check_regular(path)
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:  # NumPy reads as far as an array says it goes
                if (damaged := archive.testzip()) is not None:
                    raise ValueError(f"CRC of {damaged}")
            file.seek(0)
            with np.load(file, allow_pickle=False) as entries:
                arrays = {name: np.asarray(entries[name]) for name in entries.files}
        except Exception as error:  # damage can upset every layer from zip to number format
            raise CheckpointError(
                f"cannot be read; it is no state, or damaged ({_line(error)})"
            ) from None
    if "header" not in arrays:
        raise CheckpointError("has no header, and so holds no state")
    state = _object("", kind, _content(arrays.pop("header"), form), form, arrays)
    if arrays:
        raise CheckpointError(f"has unknown entries {sorted(arrays)}")
    return state


def _content(entry: Array, form: Format) -> Any:
    """Return the tree in the header of a file, which must be of this format and version."""
    if entry.dtype != np.uint8 or len(entry.shape) != 1:
        raise CheckpointError(f"header must be an array of bytes; got {entry.dtype}")
    try:
        header = json.loads(entry.tobytes().decode("ascii"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"header is not JSON: {error}") from None
    if not isinstance(header, dict) or header.get("format") != form.name:
        raise CheckpointError(f"header: format must be {form.name!r}")
    version = header.get("version")
    if type(version) is not int or version != form.version:
        raise CheckpointError(
            f"header: version {version!r} is not supported, this package reads version "
            f"{form.version}; the file was written by bbb_numpy {header.get('written_by')!r}"
        )
    same_names("header", header, HEADER_NAMES)
    check_type("written_by", header["written_by"], str)
    return header["content"]


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


def pack(place: str, value: Any, form: Format, arrays: dict[str, Array]) -> Any:
    """Return what JSON holds of `value`, and put its arrays into `arrays`; undone by `unpack`.

    NumPy's scalars become Python's; paths and dtypes become text.

    Raises
    ------
    CheckpointError
        Naming the place of what cannot be stored.
    """
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif isinstance(value, np.dtype):
        value = value.name
    elif isinstance(value, type) and value in (float, np.float64, np.float32):
        value = np.dtype(value).name
    kind, label = type(value), type(value).__name__
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if isfinite(value) else {"float": str(value)}
    if kind is tuple:
        return _packed_items(place, value, form, arrays)
    if kind is list and _is_table(value, form):
        _add(place, np.array(value, np.float64), arrays)
        return {"rows": type(value[0]).__name__}
    if kind is list:
        return {"list": _packed_items(place, value, form, arrays)}
    if isinstance(value, Mapping) and all(_is_name(key) for key in value):
        items = {key: pack(f"{place}.{key}", value[key], form, arrays) for key in value}
        return {"dict": items}
    if kind is np.ndarray and value.dtype.kind in KINDS:
        _add(place, value, arrays)
        return {"array": value.dtype.str}
    if kind is np.ndarray and value.dtype == object and value.ndim == 1:
        return {"objects": _packed_items(place, value.tolist(), form, arrays)}
    if kind is np.random.Generator and value.bit_generator.state["bit_generator"] in GENERATORS:
        return {"generator": value.bit_generator.state}
    if form.names.get(label) is kind:
        return {label: _packed_fields(place, value, form, arrays)}
    if form.names.get(name := getattr(value, "__name__", "")) is value:
        return {"name": name}
    given = f"of dtype {value.dtype}" if kind is np.ndarray else f"= {_line(value)}"
    raise CheckpointError(
        f"{place} {given} cannot be saved; accepted are numbers, text, arrays of them, generators "
        f"on {' or '.join(GENERATORS)}, and the package's own {', '.join(form.names)}"
    )


def _packed_items(place: str, items: Any, form: Format, arrays: dict[str, Array]) -> list[Any]:
    return [pack(f"{place}[{i}]", item, form, arrays) for i, item in enumerate(items)]


def _packed_fields(place: str, value: Any, form: Format, arrays: dict[str, Array]) -> Any:
    return {
        name: pack(_inside(place, name), getattr(value, name), form, arrays)
        for name in _fields(type(value))
    }


def _is_table(rows: list[Any], form: Format) -> bool:
    """Whether these are named tuples of one known kind that hold floats alone."""
    kind: Any = type(rows[0]) if rows else None
    known: bool = hasattr(kind, "_fields") and form.names.get(kind.__name__) is kind
    return known and all(type(row) is kind and {*map(type, row)} == {float} for row in rows)


def _add(place: str, array: Array, arrays: dict[str, Array]) -> None:
    if place in arrays or place == "header":
        raise CheckpointError(f"{place} cannot be saved: there are two arrays of that name")
    arrays[place] = array


def unpack(place: str, value: Any, hint: Any, form: Format, arrays: dict[str, Array]) -> Any:
    """Undo `pack`, taking what belongs to `value` out of `arrays`.

    Raises
    ------
    CheckpointError
        Naming the first place that does not hold what its type, `hint`, and the format allow.
    """
    made = _unpacked(place, value, form, arrays)
    check_type(place, made, hint)
    return made


def _unpacked(place: str, value: Any, form: Format, arrays: dict[str, Array]) -> Any:
    if type(value) is float and not isfinite(value):
        raise CheckpointError(f"{place}: a number is too large")
    if isinstance(value, list):
        return tuple(_items(place, value, form, arrays))
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise CheckpointError(f"{place} must be a table of one name; got {_line(value)}")
    [(label, inside)] = value.items()
    if label not in READERS:
        return _object(place, _known_class(place, label, form), inside, form, arrays)
    wanted, read = READERS[label]
    if type(inside) is not wanted:
        raise CheckpointError(f"{place}: {label} of the wrong type; got {_line(inside)}")
    return read(place, inside, form, arrays)


def _known_class(place: str, label: str, form: Format) -> Any:
    classes = {name: thing for name, thing in form.names.items() if _has_fields(thing)}
    if label not in classes:
        raise CheckpointError(f"{place}: unknown class {label!r}; known are {', '.join(classes)}")
    return classes[label]


def _object(place: str, kind: type, given: Any, form: Format, arrays: dict[str, Array]) -> Any:
    """Make an object of its fields, each held to the type of its annotation."""
    where, hints = f"{place}: {kind.__name__}" if place else "content", _hints(kind)
    same_names(where, given, set(_fields(kind)))
    made = {
        name: unpack(_inside(place, name), given[name], hints[name], form, arrays)
        for name in _fields(kind)
    }
    try:
        return kind(**made)
    except Exception as error:  # whatever upset its own checks is the file's fault
        raise CheckpointError(f"{where}: {_line(error)}") from None


def _float(place: str, text: str, form: Format, arrays: dict[str, Array]) -> float:
    if text not in NOT_FINITE:
        raise CheckpointError(f"{place} must be one of {list(NOT_FINITE)}; got {text!r}")
    return NOT_FINITE[text]


def _items(place: str, items: list[Any], form: Format, arrays: dict[str, Array]) -> list[Any]:
    return [_unpacked(f"{place}[{i}]", item, form, arrays) for i, item in enumerate(items)]


def _dict(place: str, table: dict[str, Any], form: Format, arrays: dict[str, Array]) -> Any:
    return {key: _unpacked(f"{place}.{key}", item, form, arrays) for key, item in table.items()}


def _array(
    place: str,
    dtype: str,
    form: Format,
    arrays: dict[str, Array],
    shape: tuple[int, ...] | None = None,
) -> Array:
    """Read an array; of a `shape`, if given, that of one row."""
    if place not in arrays:
        raise CheckpointError(f"{place} is missing")
    array = arrays.pop(place)
    if array.dtype.str != dtype or array.dtype.kind not in KINDS:
        raise CheckpointError(f"{place} must have dtype {dtype!r}; got {array.dtype.str!r}")
    if shape is not None and array.shape[1:] != shape:
        raise CheckpointError(f"{place} must have shape {(None, *shape)}; got {array.shape}")
    try:
        if array.dtype.kind == "U":
            array.tolist()
    except (ValueError, SystemError) as error:  # what is no character, NumPy leaves to Python
        raise CheckpointError(f"{place} is no text: {error}") from None
    return array


def _rows(place: str, label: str, form: Format, arrays: dict[str, Array]) -> list[Any]:
    kind = _known_class(place, label, form)
    names = _fields(kind)
    if any(_hints(kind)[name] is not float for name in names):
        raise CheckpointError(f"{place}: {label} has fields that are no numbers")
    array = _array(place, np.dtype(np.float64).str, form, arrays, (len(names),))
    return [kind(*row) for row in array.tolist()]


def _objects(place: str, items: list[Any], form: Format, arrays: dict[str, Array]) -> Array:
    if any(type(item) not in (bool, int, float, str) for item in items):
        raise CheckpointError(f"{place} must hold numbers or text; got {_line(items)}")
    return np.array(items, object)


def _name(place: str, label: str, form: Format, arrays: dict[str, Array]) -> Any:
    if label not in form.names:
        raise CheckpointError(f"{place}: unknown name {label!r}")
    return form.names[label]


def _generator(place: str, state: Any, form: Format, arrays: dict[str, Array]) -> Any:
    try:
        bits = GENERATORS[state["bit_generator"]]()
        bits.state = state
        told, given = (json.dumps(one, sort_keys=True) for one in (bits.state, state))
        same = told == given and state["has_uint32"] in (0, 1)
    except (TypeError, KeyError, ValueError, OverflowError):
        same = False
    if not same:
        raise CheckpointError(f"{place}: not the state of a generator; got {_line(state)}")
    return np.random.Generator(bits)


# What each label says is under it: its type in JSON, and what makes the value of that
READERS: dict[str, tuple[type, Callable[[str, Any, Format, dict[str, Array]], Any]]] = {
    "float": (str, _float),
    "list": (list, _items),
    "dict": (dict, _dict),
    "rows": (str, _rows),
    "array": (str, _array),
    "objects": (list, _objects),
    "name": (str, _name),
    "generator": (dict, _generator),
}


def same_names(where: str, given: Any, expected: set[str]) -> None:
    """Raise CheckpointError unless `given` is a table of exactly these names."""
    if not isinstance(given, dict):
        raise CheckpointError(f"{where} must be a table of names; got {_line(given)}")
    missing, unknown = sorted(expected - set(given)), sorted(set(given) - expected)
    if missing or unknown:
        raise CheckpointError(f"{where}: missing {missing}, unknown {unknown}")


def check_type(place: str, value: Any, hint: Any) -> None:
    """Raise CheckpointError unless `value` is of the annotated type `hint`."""
    if not _fits(value, hint):
        wanted = hint.__name__ if isinstance(hint, type) else hint
        raise CheckpointError(f"{place} must be of type {wanted}; got {_line(value)}")


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if hasattr(origin, "__value__"):  # an alias, as NDArray is since NumPy 2.5
        return _fits(value, origin.__value__[inner])
    if hint is Any:
        return True
    if hint in (bool, int, str):
        return type(value) is hint
    if hint is float:
        return type(value) in (int, float)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin is tuple and inner[-1] is not Ellipsis:
        right = type(value) is tuple and len(value) == len(inner)
        return right and all(map(_fits, value, inner))
    if origin in (tuple, list):
        return type(value) is origin and all(_fits(item, inner[0]) for item in value)
    if origin is np.ndarray:
        [kind] = get_args(inner[1])
        return isinstance(value, np.ndarray) and (kind is Any or value.dtype == kind)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(_fits(item, inner[1]) for item in value.values())
    if getattr(hint, "_is_protocol", False):
        return not isinstance(value, type) and all(hasattr(value, name) for name in _members(hint))
    return isinstance(value, origin or hint)


@cache
def _members(protocol: type) -> set[str]:
    """Return the names of what a protocol asks for."""
    asking = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False)]
    names = {name for base in asking for name in (*vars(base), *_hints(base))}
    return {name for name in names if not name.startswith("_") or name == "__call__"}


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fields(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass or named tuple."""
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    names: tuple[str, ...] = getattr(kind, "_fields", ())
    return names


def _has_fields(thing: Any) -> bool:
    return isinstance(thing, type) and (is_dataclass(thing) or hasattr(thing, "_fields"))


def _is_name(key: Any) -> bool:
    return isinstance(key, str) and key.isidentifier()


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _line(value: Any) -> str:
    """Return an error's message, or a value as it prints, on one line that is not too long."""
    text = str(value) if isinstance(value, Exception) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 300 else f"{text[:297]}..."
