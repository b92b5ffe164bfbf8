"""States on disk: a tree of values, arrays and objects of given classes, as one ``.npz`` file.

The file holds plain arrays, each named by its place in the tree (``fitted.training_.theta``), and
one JSON header. There a value stands as it is if JSON holds it exactly, a tuple as a list, and all
else as a table of one name, which says what it is: ``{"Cosine": {"final": 0.0}}``.

Nothing that is read is executed: there is no pickle, and classes and functions are looked up among
those that the `Format` gives. An object's own checks are made.
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
KINDS = "biufU"  # of arrays: truth values, numbers, text
FLOATS = (float, np.float64, np.float32)
MAKERS: dict[str, Any] = {
    "list": list,
    "dict": dict,
    "objects": partial(np.array, dtype=object),
}
GENERATORS = {kind.__name__: kind for kind in (np.random.PCG64, np.random.PCG64DXSM)}


class CheckpointError(ValueError):
    """A file does not hold what it should, or a state cannot be stored."""


@dataclass(frozen=True)
class Format:
    """A kind of file."""

    name: str  # e.g. 'bbb_numpy.learner'
    version: int  # a file of another one is refused
    # dataclasses and named tuples of which a file may hold objects; functions and classes as values
    known: tuple[Any, ...]
    # of what files of earlier versions hold
    old_names: OldNames = field(default_factory=lambda: OLD_NAMES)

    @cached_property
    def names(self) -> dict[str, Any]:
        """What is known, by name."""
        return {thing.__name__: thing for thing in self.known}

    def named(self, name: str) -> Any:
        """Return what is known by a name that a file says, today's or an earlier one."""
        if name not in self.names:
            name = self.old_names.classes.get(name, name)
        if name not in self.names:
            raise CheckpointError(
                f"cannot be read; it holds {short_repr(name)}, which is no registered class or "
                "function; one of your own is registered first (bbb_numpy.register)"
            )
        return self.names[name]


def write_state(path: Path, state: Any, form: Format) -> None:
    """Write `state`, a named tuple, replacing an older file only when all is written.

    What cannot be stored is a `CheckpointError` that names its place in `state`.
    """
    arrays: dict[str, Array] = {"header": np.zeros(0, np.uint8)}
    content = {
        name: _packed(name, value, form, arrays)
        for name, value in state._asdict().items()
    }
    header = {"format": form.name, "version": form.version, "written_by": __version__}
    header["content"] = content
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    write_arrays(path, arrays)


def read_state(path: Path, kind: type, form: Format) -> Any:
    """Return the object of class `kind` that `write_state` wrote.

    Anything but such a file of this format and version is a `CheckpointError` that names it.
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
                    return _read_fields(kind, header["content"], form, read_array)
        except CheckpointError as error:
            raise CheckpointError(f"{path}: {error}") from None
        except Exception as error:
            raise CheckpointError(f"{path} {damaged(error)}") from None
    raise CheckpointError(
        f"{path}: format must be {form.name!r}, version {form.version}; got "
        f"{short_repr(header['format'])}, version {short_repr(header['version'])}, "
        f"written by bbb_numpy {short_repr(header.get('written_by'))}"
    )


def _packed(place: str, value: Any, form: Format, arrays: dict[str, Array]) -> Any:
    """Return what JSON holds of `value`, and put its arrays into `arrays`; undone by `_read`.

    NumPy's scalars become Python's; paths and dtypes become text.
    """
    pack = partial(_packed, form=form, arrays=arrays)
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif isinstance(value, np.dtype) or (isinstance(value, type) and value in FLOATS):
        value = np.dtype(value).name
    kind, label = type(value), type(value).__name__
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (tuple, list):
        items = [pack(f"{place}[{i}]", item) for i, item in enumerate(value)]
        return items if kind is tuple else {"list": items}
    if isinstance(value, Mapping):
        pairs = [
            [pack(place, key), pack(f"{place}.{key}", one)]
            for key, one in value.items()
        ]
        return {"dict": pairs}
    if kind is np.ndarray and value.dtype.kind in KINDS:
        if place in arrays:
            raise CheckpointError(
                f"{place} cannot be saved: there are two arrays of that name"
            )
        arrays[place] = value
        return {"array": place}
    if kind is np.ndarray and value.dtype == object and value.ndim == 1:
        return {"objects": [pack(place, item) for item in value]}
    if (
        kind is np.random.Generator
        and value.bit_generator.state["bit_generator"] in GENERATORS
    ):
        return {"generator": value.bit_generator.state}
    if form.names.get(label) is kind:
        names = _stored(kind)
        named = {name: pack(f"{place}.{name}", getattr(value, name)) for name in names}
        return {label: named if is_dataclass(kind) else list(named.values())}
    if form.names.get(name := getattr(value, "__name__", "")) is value:
        return {"name": name}
    raise CheckpointError(
        f"{place} = {short_repr(value)} cannot be saved; accepted are numbers, text, arrays of "
        f"them, generators on {' or '.join(GENERATORS)}, and objects of registered classes "
        "(bbb_numpy.register)"
    )


def _read(
    value: Any, place: str, form: Format, read_array: Callable[[str], Array]
) -> Any:
    """Undo `_packed`; whatever does not fit raises an error of its own.

    The place, such as ``Class.field.key``, is where `old_names` looks earlier names up.
    """
    if isinstance(value, str):
        return form.old_names.rename_value(place, value)
    if isinstance(value, list):
        return tuple(_read(item, place, form, read_array) for item in value)
    if not isinstance(value, dict):
        return value
    [(label, inside)] = value.items()
    if label == "array":
        return read_array(inside)
    if label == "name":
        return form.named(inside)
    if label == "generator":
        bits = GENERATORS[inside["bit_generator"]]()
        bits.state = inside
        return np.random.Generator(bits)
    if label == "dict":
        items = {}
        for packed_key, item in inside:
            stored_key = _read(packed_key, "", form, read_array)
            key = form.old_names.rename_field(place, stored_key)
            if key is not None or stored_key is None:
                items[key] = _read(item, f"{place}.{key}", form, read_array)
        return items
    if label in MAKERS:
        return MAKERS[label](_read(inside, place, form, read_array))
    kind = form.named(label)
    names = _stored(kind)  # a class of these: no function is called
    if isinstance(inside, list):
        order = form.old_names.order(kind.__name__, names, len(inside))
        inside = dict(zip(order, inside, strict=True))
    return _read_fields(kind, inside, form, read_array)


def _read_fields(
    kind: Any,
    stored: Mapping[Any, Any],
    form: Format,
    read_array: Callable[[str], Array],
) -> Any:
    """Return an object of a class, given what a file holds of its fields."""
    fields_of_kind = getattr(kind, "__match_args__", ())
    local = set(fields_of_kind) - set(
        _stored(kind)
    )  # which files of earlier versions have
    owner, values = kind.__name__, {}
    for stored_name, item in stored.items():
        name = stored_name
        if name not in fields_of_kind:
            name = form.old_names.rename_field(owner, name)
        if name is not None and name not in local:
            values[name] = _read(item, f"{owner}.{name}", form, read_array)
    return kind(**values)


def _stored(kind: Any) -> list[str]:
    """Return the fields of a dataclass or named tuple that a file holds.

    Those of ``metadata={"local": True}`` are of this machine, such as paths, and stay here.
    """
    known = fields(kind) if is_dataclass(kind) else ()
    local = {one.name for one in known if one.metadata.get("local")}
    return [name for name in getattr(kind, "__match_args__", ()) if name not in local]
