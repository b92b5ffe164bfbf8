"""States on disk: a tree of values, arrays and objects of given classes, as one ``.npz`` file.

The file holds plain arrays, each named by its path in the tree (``fitted.training_.theta``), and
one JSON header. In the header values that JSON represents exactly are stored directly, tuples as
lists, and all other values as a dict with one key, their type: ``{"Cosine": {"final": 0.0}}``.

Nothing that is read is executed: there is no pickle, and classes and functions are looked up among
those of the `Format`. Objects check their own fields as they are made.
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
# Kinds of dtypes that a file may hold: booleans, integers, unsigned integers, floats, text
ARRAY_KINDS = "biufU"
# Classes that are stored as the name of a dtype
FLOAT_TYPES = (float, np.float64, np.float32)
# Functions that make a value from the tuple of its items, by the key in the header
MAKERS: dict[str, Any] = {
    "list": list,
    "dict": dict,
    "objects": partial(np.array, dtype=object),
}
GENERATORS = {cls.__name__: cls for cls in (np.random.PCG64, np.random.PCG64DXSM)}


class CheckpointError(ValueError):
    """Raised if a file cannot be read as the expected state, or a state cannot be stored."""


@dataclass(frozen=True)
class Format:
    """Format of a file: its name, its version, and the classes whose objects it may contain.

    Parameters
    ----------
    name : str
        Name of the format, e.g. 'bbb_numpy.learner'.
    version : int
        Version of the format; files of other versions are refused.
    known : tuple
        Dataclasses and named tuples whose objects a file may contain, and functions and classes
        that it may contain as values.
    old_names : OldNames
        Table of the names in files of earlier versions; by default `OLD_NAMES`.
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
        """Return the class or function that a file calls `name`; raise an error if unknown."""
        if name not in self.names:
            name = self.old_names.classes.get(name, name)
        if name not in self.names:
            raise CheckpointError(
                f"cannot be read; it holds {short_repr(name)}, which is no registered class or "
                "function; register your own with bbb_numpy.register before loading"
            )
        return self.names[name]


def write_state(path: Path, state: Any, form: Format) -> None:
    """Write `state` to the file `path`, replacing an older file only when the new one is complete.

    Parameters
    ----------
    path : Path
        File to write.
    state : named tuple
        Tree of values, arrays and objects of the classes of `form`.
    form : Format
        Name and version to write into the file, and the classes that it may contain.

    Raises
    ------
    CheckpointError
        If a value cannot be stored; the message names its place in `state`.
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
    """Return the state that `write_state` has stored in a file.

    Parameters
    ----------
    path : Path
        File to read.
    state_class : type
        Class of the state, a named tuple.
    form : Format
        Name and version that the file must have, and the classes that it may contain.

    Raises
    ------
    CheckpointError
        If the file is damaged, or of another format or version; the message begins with `path`.
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
    """Encode `value` for the JSON header, and add the arrays in it to the dict `arrays`.

    `location` is the path of the value in the tree; `_read` is the inverse. NumPy scalars become
    Python numbers, paths and dtypes become text.
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
    """Decode `value`, which `_pack` has encoded for the JSON header, and return the object.

    `location`, such as ``Class.field.key``, is the place by which old names are looked up;
    `read_array` returns an array by its name. A damaged form raises an error of any class.
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
    # field names in their order, by which the list of a named tuple becomes a dict
    names = _stored_fields(cls)
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
        Forms of the values in the JSON header, by field name.
    form : Format
        Classes that the file may contain, and old names of fields.
    read_array : callable
        Function that returns an array by its name.
    """
    field_names = getattr(cls, "__match_args__", ())
    # fields that are not stored any more are ignored in files of earlier versions
    local = set(field_names) - set(_stored_fields(cls))
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
    """Return the names of the fields of a dataclass or named tuple that are stored in files.

    Fields with ``metadata={"local": True}``, such as paths, belong to one machine and are not
    stored.
    """
    known = fields(cls) if is_dataclass(cls) else ()
    local = {item.name for item in known if item.metadata.get("local")}
    return [name for name in getattr(cls, "__match_args__", ()) if name not in local]
