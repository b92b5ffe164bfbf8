"""States on disk: a tree of values, arrays and objects of given classes, as one ``.npz`` file.

The file holds plain arrays, each named by its path in the tree (``fitted.training_.theta``), and
one JSON header. The header holds values that JSON holds exactly, tuples as lists, and all other
values as a table of one key, which says what the value is: ``{"Cosine": {"final": 0.0}}``.

Nothing that is read is executed: there is no pickle, and classes and functions are looked up among
those of the `Format`. Objects that are read make their own checks of their fields.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..version import __version__
from .files import check_regular, write_arrays
from .old_names import OLD_NAMES, OldNames
from .reading import array_reader, damaged
from .validation import short_repr

__all__ = ["CheckpointError", "Format", "read_state", "write_state"]

Array = NDArray[Any]
ARRAY_KINDS = "biufU"  # dtypes of arrays that a file holds: truth values, numbers, text
FLOAT_TYPES = (float, np.float64, np.float32)
MAKERS: dict[str, Any] = {
    "list": list,
    "dict": dict,
    "objects": partial(np.array, dtype=object),
}
GENERATORS = {cls.__name__: cls for cls in (np.random.PCG64, np.random.PCG64DXSM)}


class CheckpointError(ValueError):
    """A file does not hold what it should, or a state cannot be stored."""


@dataclass(frozen=True)
class Format:
    """Format of a file: its name, version, and the classes of which it may hold objects.

    Parameters
    ----------
    name : str
        E.g. 'bbb_numpy.learner'.
    version : int
        Files of other versions are refused.
    known : tuple
        Dataclasses and named tuples of which a file may hold objects, and functions and classes
        that it may hold as values.
    old_names : OldNames
        Names in files of earlier versions.
    """

    name: str
    version: int
    known: tuple[Any, ...]
    old_names: OldNames = field(default_factory=lambda: OLD_NAMES)

    @cached_property
    def names(self) -> dict[str, Any]:
        """Known classes and functions, by name."""
        return {known.__name__: known for known in self.known}

    def named(self, name: str) -> Any:
        """Return the class or function that a name in a file stands for, current or earlier."""
        if name not in self.names:
            name = self.old_names.classes.get(name, name)
        if name not in self.names:
            raise CheckpointError(
                f"cannot be read; it holds {short_repr(name)}, which is no registered class or "
                "function; one of your own is registered first (bbb_numpy.register)"
            )
        return self.names[name]


def write_state(path: Path, state: Any, form: Format) -> None:
    """Write a state, replacing an older file only when it is complete.

    Parameters
    ----------
    path : Path
    state : named tuple
    form : Format

    Raises
    ------
    CheckpointError
        If a value cannot be stored, with its path in `state`.
    """
    arrays: dict[str, Array] = {"header": np.zeros(0, np.uint8)}
    content = {
        name: _pack(name, value, form, arrays)
        for name, value in state._asdict().items()
    }
    header = {"format": form.name, "version": form.version, "written_by": __version__}
    header["content"] = content
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    write_arrays(path, arrays)


def read_state(path: Path, state_class: type, form: Format) -> Any:
    """Return the state in a file of `write_state`.

    Parameters
    ----------
    path : Path
    state_class : type
        Named tuple of the state.
    form : Format

    Raises
    ------
    CheckpointError
        If it is no file of this format and version, with its name.
    """
    try:
        check_regular(path)
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None
    with open(path, "rb") as file:
        try:
            with array_reader(file) as read_array:
                header = json.loads(read_array("header").tobytes())
                if (header["format"], header["version"]) == (form.name, form.version):
                    return _read_fields(
                        state_class, header["content"], form, read_array
                    )
        except CheckpointError as error:
            raise CheckpointError(f"{path}: {error}") from None
        except Exception as error:
            raise CheckpointError(f"{path} {damaged(error)}") from None
    raise CheckpointError(
        f"{path}: format must be {form.name!r}, version {form.version}; got "
        f"{short_repr(header['format'])}, version {short_repr(header['version'])}, "
        f"written by bbb_numpy {short_repr(header.get('written_by'))}"
    )


def _pack(location: str, value: Any, form: Format, arrays: dict[str, Array]) -> Any:
    """Return the JSON form of `value`, and add its arrays to `arrays`; `_read` is the inverse.

    `location` is its path in the tree. NumPy's scalars become Python's; paths and dtypes text.
    """
    pack = partial(_pack, form=form, arrays=arrays)
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif isinstance(value, np.dtype) or (
        isinstance(value, type) and value in FLOAT_TYPES
    ):
        value = np.dtype(value).name
    cls = type(value)
    label = cls.__name__
    if value is None or cls in (bool, int, float, str):
        return value
    if cls in (tuple, list):
        items = [pack(f"{location}[{i}]", item) for i, item in enumerate(value)]
        return items if cls is tuple else {"list": items}
    if isinstance(value, Mapping):
        pairs = [
            [pack(location, key), pack(f"{location}.{key}", item)]
            for key, item in value.items()
        ]
        return {"dict": pairs}
    if cls is np.ndarray and value.dtype.kind in ARRAY_KINDS:
        if location in arrays:
            raise CheckpointError(
                f"{location} cannot be saved: there are two arrays of that name"
            )
        arrays[location] = value
        return {"array": location}
    if cls is np.ndarray and value.dtype == object and value.ndim == 1:
        return {"objects": [pack(location, item) for item in value]}
    if (
        cls is np.random.Generator
        and value.bit_generator.state["bit_generator"] in GENERATORS
    ):
        return {"generator": value.bit_generator.state}
    if form.names.get(label) is cls:
        names = _stored_fields(cls)
        named = {
            name: pack(f"{location}.{name}", getattr(value, name)) for name in names
        }
        if is_dataclass(cls):
            return {label: named}
        return {label: list(named.values())}
    if form.names.get(name := getattr(value, "__name__", "")) is value:
        return {"name": name}
    raise CheckpointError(
        f"{location} = {short_repr(value)} cannot be saved; accepted are numbers, text, arrays of "
        f"them, generators on {' or '.join(GENERATORS)}, and objects of registered classes "
        "(bbb_numpy.register)"
    )


def _read(
    value: Any, location: str, form: Format, read_array: Callable[[str], Array]
) -> Any:
    """Return the value of a JSON form, the inverse of `_pack`; damage raises various errors.

    `location`, such as ``Class.field.key``, is where `old_names` looks earlier names up.
    """
    if isinstance(value, str):
        return form.old_names.rename_value(location, value)
    if isinstance(value, list):
        return tuple(_read(item, location, form, read_array) for item in value)
    if not isinstance(value, dict):
        return value
    [(label, content)] = value.items()
    if label == "array":
        return read_array(content)
    if label == "name":
        return form.named(content)
    if label == "generator":
        bits = GENERATORS[content["bit_generator"]]()
        bits.state = content
        return np.random.Generator(bits)
    if label == "dict":
        items = {}
        for packed_key, item in content:
            stored_key = _read(packed_key, "", form, read_array)
            key = form.old_names.rename_field(location, stored_key)
            if key is not None or stored_key is None:
                items[key] = _read(item, f"{location}.{key}", form, read_array)
        return items
    if label in MAKERS:
        return MAKERS[label](_read(content, location, form, read_array))
    cls = form.named(label)
    names = _stored_fields(cls)  # a class of these: no function is called
    if isinstance(content, list):
        order = form.old_names.order(cls.__name__, names, len(content))
        content = dict(zip(order, content, strict=True))
    return _read_fields(cls, content, form, read_array)


def _read_fields(
    cls: Any,
    stored: Mapping[Any, Any],
    form: Format,
    read_array: Callable[[str], Array],
) -> Any:
    """Return an object of class `cls` from the stored values of its fields.

    Parameters
    ----------
    cls : type
        A dataclass or named tuple.
    stored : mapping
        Stored values by field name, as in JSON; arrays are names for `read_array`.
    form : Format
        Classes that the file may hold, and names of fields in earlier versions.
    read_array : callable
        Returns the array of a name.
    """
    field_names = getattr(cls, "__match_args__", ())
    local = set(field_names) - set(
        _stored_fields(cls)
    )  # files of earlier versions have them
    owner = cls.__name__
    values = {}
    for stored_name, item in stored.items():
        name = stored_name
        if name not in field_names:
            name = form.old_names.rename_field(owner, name)
        if name is not None and name not in local:
            values[name] = _read(item, f"{owner}.{name}", form, read_array)
    return cls(**values)


def _stored_fields(cls: Any) -> list[str]:
    """Return the names of the fields of a dataclass or named tuple that a file holds.

    Fields of ``metadata={"local": True}``, such as paths, belong to this machine and are left out.
    """
    known = fields(cls) if is_dataclass(cls) else ()
    local = {item.name for item in known if item.metadata.get("local")}
    return [name for name in getattr(cls, "__match_args__", ()) if name not in local]
