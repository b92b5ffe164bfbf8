"""Copies of a user's functions, for which `np` is another module: nothing itself is replaced (D44).

``out = np.zeros(3)`` followed by ``out[0] = x`` asks NumPy to make a float of an exact number. So a
proof calls a *copy* of the function: the same code, whose global names and closure are its own.
Where the original finds NumPy, or a maker of arrays that was imported by its name, the copy finds
that of `makers`. What the function reaches (functions, methods, classes and their objects, modules,
also in lists and dicts, by decorators and partials) is copied in the same way, when its name is
read first. NumPy, the modules and the closures of the process stay as they are, so that there is
nothing to restore after an interrupt, and nothing that another thread or a forked child could see.

A copy is made once, so that what was the same object is the same copy, and lives as long as its
`Copies`. Lists, dicts and sets that hold nothing to be copied are shared, but for those of objects;
arrays always. What a call assigns to ``global`` and ``nonlocal`` names is written to the originals
where it is numbers, text, arrays or lists of these; attributes of objects stay with the copies.
As they are stay: the standard library, NumPy and this package; classes in C, enumerations,
exceptions, and objects with ``__del__``. A cache of `functools` begins empty.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import sysconfig
import threading
import typing
from abc import ABCMeta
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar, copy_context
from enum import Enum
from itertools import chain
from types import (
    BuiltinFunctionType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np

from ..fields.finite import Field
from .arrays import Exact
from .makers import ACTIVE_FIELD, STAND_INS, Vectorize, scipy_stand_in

__all__ = ["Copies", "Names", "in_own_context"]

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
COPIES: ContextVar[Copies | None] = ContextVar(
    "copies", default=None
)  # of the present call
SHELLS: WeakKeyDictionary[type, tuple[type, dict[str, type], dict[str, type]]] = (
    WeakKeyDictionary()
)
OWN = __name__.rpartition(".trace.")[0]
STDLIB = sysconfig.get_path("stdlib")
NUMBERS = {
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    NoneType,
    np.ndarray,
    np.float64,
    np.int64,
}
ATOMS = NUMBERS | {Exact, slice, range, np.ufunc, np.dtype, type(Ellipsis)}
MADE_LATER = 1 << 9  # a flag of classes that C has not compiled
OF_C = {
    MethodDescriptorType,
    WrapperDescriptorType,
    GetSetDescriptorType,
    ClassMethodDescriptorType,
}
METACLASSES = (type, ABCMeta, type(typing.Protocol))
HELD = (
    tuple,
    list,
    dict,
    threading.local,
)  # in C: a class may derive from them, and is copied
BASES = (object, type, *HELD)
READ_BY_TEXT = {"eval", "exec", "globals", "vars", "locals"}
OF_MODULES = (
    "__name__",
    "__file__",
    "__package__",
    "__spec__",
    "__loader__",
    "__doc__",
)
OF_CLASSES = {
    "__dict__",
    "__weakref__",
    "_abc_impl",
}  # which a class gets when it is made


def in_own_context(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Return a function that is called in a context of its own.

    What it sets of NumPy's treatment of errors and of the precision of decimals ends with it,
    wherever it is interrupted.
    """

    @functools.wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        __tracebackhide__ = True
        return copy_context().run(function, *args, **kwargs)

    return called


def _foreign(names: dict[str, Any]) -> bool:
    """Return whether these are the names of a module that stays as it is."""
    name = str(names.get("__name__", ""))
    root, file = name.partition(".")[0], names.get("__file__") or STDLIB
    stdlib = root in sys.stdlib_module_names and str(file).startswith(STDLIB)
    return stdlib or root == "numpy" or f"{name}.".startswith(f"{OWN}.")


class Names(dict[str, Any]):
    """The global names of a module as its copied functions see them, copied when they are read."""

    def __init__(self, copies: Copies, original: dict[str, Any]) -> None:
        super().__init__((key, original[key]) for key in OF_MODULES if key in original)
        self.copies, self.original = copies, original
        self.written = set[str]()  # by ``global``
        self["__builtins__"] = copies.builtins

    def __missing__(self, name: str) -> Any:
        found = self.original.get(name, self)
        if found is self:  # it is no global name; those of Python are looked up once
            found = self.copies.builtins[name]
        found = self[name] = self.copies.of(found)
        return found

    def prepare(self, code: CodeType) -> None:
        """Read what a function reads but not by its global names; note which it writes."""
        if dis.opmap["STORE_GLOBAL"] in code.co_code[::2]:
            steps = dis.get_instructions(code)
            self.written |= {
                step.argval for step in steps if step.opname == "STORE_GLOBAL"
            }
        names = () if code.co_flags & 1 else code.co_names  # of the body of a class
        for name in (
            self.original if READ_BY_TEXT.intersection(code.co_names) else names
        ):
            if name in self.original:
                self[name]
        for inner in code.co_consts:
            if type(inner) is CodeType:
                self.prepare(inner)

    def write(self) -> None:
        """Write to the originals what has been assigned to global names."""
        for name in self.written & self.keys():
            found, one = self.copies.original(self[name])
            if found and self.original.get(name, self) is not one:
                self.original[name] = one


class Module(ModuleType):
    """A module of which the attributes are copied when they are read."""

    def __init__(self, copies: Copies, original: ModuleType) -> None:
        super().__init__(original.__name__, original.__doc__)
        vars(self).update({"__copied__": (copies, original), "__file__": None})

    def __getattr__(self, name: str) -> Any:
        copies, original = vars(self)["__copied__"]
        found = copies.of(getattr(original, name))
        setattr(self, name, found)
        return found

    def __dir__(self) -> Iterable[str]:
        return dir(vars(self)["__copied__"][1])


class Attribute:
    """An attribute of the copy of a class: what is copied in the present call."""

    def __init__(self, original: type, name: str) -> None:
        self.original, self.name = ref(original), name

    def found(self) -> Any:
        """Return the copy; the attribute itself outside of calls."""
        original, copies = self.original(), COPIES.get()
        try:
            value = vars(original)[self.name]
        except (KeyError, TypeError):
            raise AttributeError(self.name) from None
        return value if copies is None else copies.of(value)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        found = self.found()
        get = getattr(type(found), "__get__", None)
        return found if get is None else get(found, instance, owner)


class WrittenAttribute(Attribute):
    """One that is asked before the attributes of an object, such as a property."""

    def __set__(self, instance: Any, value: Any) -> None:
        self.found().__set__(instance, value)

    def __delete__(self, instance: Any) -> None:
        self.found().__delete__(instance)


def _is_python(cls: type) -> bool:
    """Return whether a class is made by a statement, and not by C."""
    own = (
        one
        for key, one in vars(cls).items()
        if key not in OF_CLASSES and type(one) in OF_C
    )
    made = cls.__flags__ & MADE_LATER and type(cls.__module__) is str
    return bool(made) and not any(one.__objclass__ is cls for one in own)


def _is_copied(cls: type) -> bool:
    """Return whether a class is written in Python, by a user, and copies of its objects do."""
    if type(cls) not in METACLASSES and not _is_copied(type(cls)):
        return False
    python = all(c in BASES or _is_python(c) for c in cls.__mro__)
    kept = issubclass(cls, BaseException | Enum) or hasattr(cls, "__del__")
    if cls in BASES or not python or kept:
        return False
    module = vars(sys.modules.get(cls.__module__, ModuleType(cls.__module__)))
    # one that is written in Python and of builtins is of a text that was run without a name
    return cls.__module__ == "builtins" or not _foreign(module)


def _shape(cls: type) -> dict[str, type]:
    return {key: type(one) for key, one in vars(cls).items()}


def _shell(cls: type, meta: type, bases: tuple[type, ...]) -> type:
    """Return the copy of a class, which all calls share while the class has the same attributes."""
    shell, *shapes = SHELLS.get(cls, (cls, {}, {}))
    if shapes == [_shape(cls), _shape(shell)] and (type(shell), shell.__bases__) == (
        meta,
        bases,
    ):
        return shell
    names: dict[str, Any] = {}
    for key, one in vars(cls).items():
        if key.startswith("__") and type(one) in (str, tuple, NoneType):
            names[key] = one
        elif type(one) is not MemberDescriptorType and key not in OF_CLASSES:
            names[key] = (WrittenAttribute if hasattr(one, "__set__") else Attribute)(
                cls, key
            )
    if "__init_subclass__" in names:  # it has been called, for the original
        names["__init_subclass__"] = classmethod(lambda cls, **options: None)
    make = ABCMeta.__new__ if issubclass(meta, ABCMeta) else type.__new__
    shell = make(meta, cls.__name__, bases, names)
    SHELLS[cls] = shell, _shape(cls), _shape(shell)
    return shell


class Copies:
    """The copies of what a function reaches, each made once."""

    def __init__(self) -> None:
        self.known: dict[
            int, tuple[Any, Any]
        ] = {}  # by identity: the original, and its copy
        self.originals: dict[int, Any] = {}  # by the identity of the copy
        self.names: dict[
            int, Names | None
        ] = {}  # None: of a module that stays as it is
        self.cells: list[tuple[CellType, CellType]] = []  # that may be assigned to
        self.unfilled: list[Callable[[], None]] = []
        self.builtins = {**vars(builtins), "__import__": self._imported}

    def call(
        self,
        field: Field,
        function: Callable[..., Any],
        *arguments: Any,
        trace: Callable[..., Any] | None = None,
    ) -> Any:
        """Return what a function's copy returns: in this call makers make numbers of a field.

        `trace` is for `sys.settrace`. It should end itself where `ACTIVE_FIELD` is another one: an
        interrupt may come before it is ended here.
        """

        def called() -> Any:
            ACTIVE_FIELD.set(field)
            COPIES.set(self)
            before = sys.gettrace()
            try:
                if trace:
                    sys.settrace(trace)
                return copy(*given)
            finally:
                if trace:
                    sys.settrace(before)
                self.write()

        copy, *given = map(self.of, (function, *arguments))
        return copy_context().run(
            called
        )  # what is set inside is forgotten with the context

    def of(self, value: Any) -> Any:
        """Return the copy of a value, or the value itself where nothing in it is copied."""
        found = self._of(value)
        while self.unfilled:
            self.unfilled.pop()()
        return found

    def write(self) -> None:
        """Write to the originals what a call has assigned to ``global`` and ``nonlocal`` names."""
        for names in filter(None, self.names.values()):
            if names.written:
                names.write()
        for original, copy in self.cells:
            try:
                found, one = self.original(copy.cell_contents)
                if found and original.cell_contents is not one:
                    original.cell_contents = one
            except ValueError:  # one of them has been deleted
                continue

    def original(self, value: Any) -> tuple[bool, Any]:
        """Return whether a value of a copy can be given to others, and what is given then."""
        if id(value) in self.originals:
            return True, self.originals[id(value)]
        inner: Iterable[Any] = ()
        if type(value) in (list, tuple, set):
            inner = value
        elif type(value) is dict:
            inner = chain(value, value.values())
        elif type(value) not in NUMBERS:
            known = self.known.get(id(value))
            return known is not None and known[1] is value, value
        types = set(map(type, inner)) - NUMBERS
        return not types or all(
            self.original(one) == (True, one) for one in inner
        ), value

    def _imported(self, *args: Any, **kwargs: Any) -> Any:
        return self.of(builtins.__import__(*args, **kwargs))

    def _of(self, value: Any, owned: bool = False) -> Any:
        kind = type(value)
        if kind in ATOMS:
            return value
        known = self.known.get(id(value))
        if known is None:
            self.known[id(value)] = (
                value,
                value,
            )  # until there is a copy: it may lead to itself
            stand_in = STAND_INS.get(id(value)) or scipy_stand_in(value)
            if stand_in is not None:
                return self._is(value, stand_in)
            if kind in CONTAINERS:
                return self._container(value, owned)
            if kind in COPIED:
                return COPIED[kind](self, value)
            return (
                self._class(value) if isinstance(value, type) else self._object(value)
            )
        return known[1]

    def _is(self, value: Any, copy: Any) -> Any:
        """Note a copy."""
        self.known[id(value)] = value, copy
        self.known[id(copy)] = copy, copy
        self.originals[id(copy)] = value
        return copy

    # --- functions

    def _function(self, function: FunctionType) -> Any:
        original, closure = function.__globals__, function.__closure__
        if id(original) not in self.names:
            made = None if _foreign(original) else Names(self, original)
            self.names[id(original)] = made
        names = self.names[id(original)]
        if type(original) is Names or (names is None and not closure):
            return function
        cells = tuple(map(self._cell, closure)) if closure else None
        given = original if names is None else names
        copy = FunctionType(function.__code__, given, function.__name__, None, cells)
        self._is(function, copy)

        def fill() -> None:
            if names is not None:
                names.prepare(function.__code__)
            if function.__defaults__:
                copy.__defaults__ = self._of(function.__defaults__)
            if function.__kwdefaults__:
                copy.__kwdefaults__ = self._of(function.__kwdefaults__)
            copy.__qualname__, copy.__module__ = (
                function.__qualname__,
                function.__module__,
            )
            for key, one in vars(function).items():
                setattr(copy, key, self._of(one))

        self.unfilled.append(fill)
        return copy

    def _cell(self, cell: CellType) -> CellType:
        known = self.known.get(id(cell))
        if known is not None:
            copied: CellType = known[1]
            return copied
        try:
            content = cell.cell_contents
        except ValueError:  # it is empty
            return cell
        if type(content) in ATOMS:
            return cell
        copy = CellType()
        self.known[id(cell)] = cell, copy
        self.cells.append((cell, copy))

        def fill() -> None:
            copy.cell_contents = self._of(content)

        self.unfilled.append(fill)
        return copy

    def _method(self, method: MethodType) -> Any:
        function, of = self._of(method.__func__), self._of(method.__self__)
        same = function is method.__func__ and of is method.__self__
        return method if same else self._is(method, MethodType(function, of))

    def _partial(self, partial: functools.partial[Any]) -> Any:
        parts = partial.func, partial.args, partial.keywords
        function, args, keywords = map(self._of, parts)
        if function is parts[0] and args is parts[1] and keywords is parts[2]:
            return partial
        return self._is(partial, functools.partial(function, *args, **keywords))

    def _cached(self, cached: Any) -> Any:
        function = self._of(cached.__wrapped__)
        return self._is(
            cached, functools.lru_cache(**cached.cache_parameters())(function)
        )

    def _wrapped(self, wrapper: Any) -> Any:
        return self._is(wrapper, type(wrapper)(self._of(wrapper.__func__)))

    def _property(self, one: property) -> Any:
        get, write, delete = map(self._of, (one.fget, one.fset, one.fdel))
        return self._is(one, property(get, write, delete, one.__doc__))

    def _variable(self, variable: ContextVar[Any]) -> Any:
        try:
            found = self._of(value := variable.get())
        except LookupError:
            return variable
        same = found is value
        return (
            variable
            if same
            else self._is(variable, ContextVar(variable.name, default=found))
        )

    def _reference(self, reference: ref[Any]) -> Any:
        found = self._of(value := reference())
        return reference if found is value else self._is(reference, ref(found))

    def _built_in(self, method: BuiltinFunctionType) -> Any:
        """Return the method of a container that is copied."""
        of = method.__self__
        found = self._of(of) if type(of) in CONTAINERS else of
        return (
            method if found is of else self._is(method, getattr(found, method.__name__))
        )

    def _module(self, module: ModuleType) -> Any:
        return (
            module if _foreign(vars(module)) else self._is(module, Module(self, module))
        )

    # --- containers

    def _container(self, value: Any, owned: bool) -> Any:
        """Return a copy if anything in it is one, or if it is to be a container of its own."""
        kind, keyed = type(value), hasattr(value, "keys")
        values = [*value.values()] if keyed else [*value]
        keys = [*value] if keyed else []
        plain = ATOMS.issuperset(map(type, chain(keys, values)))
        if plain and not owned:
            return value
        copy: Any = None
        if kind not in (tuple, MappingProxyType):
            copy = kind()
            self.known[id(value)] = value, copy
        old = [*keys, *values]
        new = old if plain else [self._of(one, owned) for one in old]
        if not owned and all(map(lambda one, other: one is other, old, new)):
            if copy is not None:
                self.known[id(value)] = value, value
            return value
        if kind is tuple:
            return self._is(value, tuple(new))
        new_keys, new_values = new[: len(keys)], new[len(keys) :]
        if kind is MappingProxyType:
            return self._is(
                value, MappingProxyType(dict(zip(new_keys, new_values, strict=True)))
            )

        def fill() -> None:
            if kind is defaultdict:
                copy.default_factory = self._of(value.default_factory)
            pairs = zip(new_keys, new_values, strict=True)
            (getattr(copy, "extend", None) or copy.update)(
                pairs if keyed else new_values
            )

        # hashes of objects are asked for when these are filled
        self.unfilled.insert(0, fill)
        return self._is(value, copy)

    # --- classes and their objects

    def _class(self, cls: type) -> Any:
        if cls not in SHELLS and not _is_copied(cls):
            return cls
        bases = tuple(map(self._of, cls.__bases__))
        return self._is(cls, _shell(cls, self._of(type(cls)), bases))

    def _object(self, value: Any) -> Any:
        kind = type(value)
        cls = Vectorize if kind is np.vectorize else self._of(kind)
        if cls is kind and kind not in HOLDERS:
            return value
        if isinstance(value, tuple):
            copy = tuple.__new__(cls, [self._of(one, True) for one in value])
        else:
            base = next((one for one in HELD if isinstance(value, one)), object)
            copy = base.__new__(cls)
        self._is(value, copy)

        def fill() -> None:
            if isinstance(value, list):
                list.extend(copy, [self._of(one, True) for one in list.__iter__(value)])
            if isinstance(value, dict):
                pairs = [
                    (self._of(k), self._of(one, True)) for k, one in dict.items(value)
                ]
                dict.update(copy, pairs)
            if hasattr(value, "__dict__"):
                copied = {
                    key: self._of(one, True) for key, one in value.__dict__.items()
                }
                copy.__dict__.update(copied)
            for owner in kind.__mro__:
                for key, slot in vars(owner).items():
                    if type(slot) is MemberDescriptorType:
                        try:
                            content = slot.__get__(value)
                        except AttributeError:  # it has not been assigned to
                            continue
                        vars(self._of(owner))[key].__set__(
                            copy, self._of(content, True)
                        )

        self.unfilled.append(fill)
        return copy


COPIED: dict[type, Callable[[Copies, Any], Any]] = {
    FunctionType: Copies._function,
    MethodType: Copies._method,
    ModuleType: Copies._module,
    functools.partial: Copies._partial,
    type(functools.lru_cache(len)): Copies._cached,
    staticmethod: Copies._wrapped,
    classmethod: Copies._wrapped,
    property: Copies._property,
    ContextVar: Copies._variable,
    ref: Copies._reference,
    BuiltinFunctionType: Copies._built_in,
}
CONTAINERS = {list, tuple, dict, set, deque, OrderedDict, defaultdict, Counter, MappingProxyType,
              WeakKeyDictionary}  # fmt: skip
HOLDERS = {functools.cached_property, functools.partialmethod, functools.singledispatchmethod,
           SimpleNamespace, threading.local, np.vectorize}  # fmt: skip
