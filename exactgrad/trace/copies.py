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
import operator
import sys
import sysconfig
import threading
import typing
from abc import ABCMeta
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar, copy_context
from enum import Enum
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
from typing import Any, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np

from ..fields.finite import Field
from .arrays import Exact
from .makers import ACTIVE_FIELD, STAND_INS, Vectorize, scipy_stand_in

__all__ = ["Copies", "GlobalNames", "in_own_context"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
PACKAGE = __name__.rpartition(".trace.")[0]
STDLIB_PATH = sysconfig.get_path("stdlib")
# Types of values that a copied function may write to global names of the original module
PLAIN_TYPES = {
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
# Types whose values are not copied: copies and originals share them
SHARED_TYPES = PLAIN_TYPES | {Exact, slice, range, np.ufunc, np.dtype, type(Ellipsis)}
# Bit of ``cls.__flags__``: set if the class was made at run time, as by a ``class`` statement
HEAP_TYPE_FLAG = 1 << 9
C_DESCRIPTORS = {
    MethodDescriptorType,
    WrapperDescriptorType,
    GetSetDescriptorType,
    ClassMethodDescriptorType,
}
METACLASSES = (type, ABCMeta, type(typing.Protocol))
# Classes in C, besides `object` and `type`, from which a copied class may derive
CONTAINER_BASES = (tuple, list, dict, threading.local)
C_BASES = (object, type, *CONTAINER_BASES)
DYNAMIC_LOOKUPS = {"eval", "exec", "globals", "vars", "locals"}
MODULE_ATTRIBUTES = (
    "__name__",
    "__file__",
    "__package__",
    "__spec__",
    "__loader__",
    "__doc__",
)
# Attributes that Python itself adds to a class, which are not copied
CLASS_ATTRIBUTES = {"__dict__", "__weakref__", "_abc_impl"}


class ClassCopy(NamedTuple):
    """The copy of a class, and the types of the attributes of both when it was made."""

    copy: type
    original_types: dict[str, type]
    copy_types: dict[str, type]


# The copies of the call that is running; None outside of calls
ACTIVE_COPIES: ContextVar[Copies | None] = ContextVar("copies", default=None)
CLASS_COPIES: WeakKeyDictionary[type, ClassCopy] = WeakKeyDictionary()


def in_own_context(
    function: Callable[Arguments, Result],
) -> Callable[Arguments, Result]:
    """Return a version of `function` that always runs in its own copy of the context variables.

    What a call changes in NumPy's treatment of errors or in the precision of decimals ends with the
    call, wherever it is interrupted.
    """

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        __tracebackhide__ = True
        return copy_context().run(function, *args, **kwargs)

    return call


def _is_library(names: dict[str, Any]) -> bool:
    """Return whether a module with these global names stays uncopied: stdlib, NumPy, exactgrad."""
    name = str(names.get("__name__", ""))
    root = name.partition(".")[0]
    file = str(names.get("__file__") or STDLIB_PATH)
    is_stdlib = root in sys.stdlib_module_names and file.startswith(STDLIB_PATH)
    return is_stdlib or root == "numpy" or f"{name}.".startswith(f"{PACKAGE}.")


class GlobalNames(dict[str, Any]):
    """The global names of a module as its copied functions see them, copied when they are read.

    Parameters
    ----------
    copies : Copies
        The copies of the call.
    original : dict
        The names of the module itself.
    """

    def __init__(self, copies: Copies, original: dict[str, Any]) -> None:
        present = (name for name in MODULE_ATTRIBUTES if name in original)
        super().__init__((name, original[name]) for name in present)
        self.copies = copies
        self.original = original
        self.assigned = set[str]()  # names that functions declare ``global`` and write
        self["__builtins__"] = copies.builtins

    def __missing__(self, name: str) -> Any:
        value = self.original.get(name, self)
        if value is self:  # the name is no global but a built-in of Python
            value = self.copies.builtins[name]
        self[name] = copy = self.copies.copy_of(value)
        return copy

    def prepare(self, code: CodeType) -> None:
        """Copy globals that `code` may read without `__missing__`; record those that it assigns."""
        if dis.opmap["STORE_GLOBAL"] in code.co_code[::2]:
            instructions = dis.get_instructions(code)
            self.assigned |= {
                step.argval for step in instructions if step.opname == "STORE_GLOBAL"
            }
        names: Iterable[str] = code.co_names
        if DYNAMIC_LOOKUPS.intersection(code.co_names):
            names = list(self.original)
        elif code.co_flags & 1:  # a function, for which `__missing__` copies them
            names = ()
        for name in names:
            if name in self.original:
                self[name]
        for constant in code.co_consts:
            if type(constant) is CodeType:
                self.prepare(constant)

    def write_back(self) -> None:
        """Write global variables that copied functions have assigned back to the module."""
        for name in self.assigned & self.keys():
            is_shared, value = self.copies.to_original(self[name])
            if is_shared and self.original.get(name, self) is not value:
                self.original[name] = value


class ModuleCopy(ModuleType):
    """A copy of a module, each attribute of which is copied when it is first read."""

    def __init__(self, copies: Copies, original: ModuleType) -> None:
        super().__init__(original.__name__, original.__doc__)
        vars(self).update({"__copied__": (copies, original), "__file__": None})

    def __getattr__(self, name: str) -> Any:
        copies, original = vars(self)["__copied__"]
        copy = copies.copy_of(getattr(original, name))
        setattr(self, name, copy)
        return copy

    def __dir__(self) -> Iterable[str]:
        return dir(vars(self)["__copied__"][1])


class CopiedAttribute:
    """An attribute of a copied class: it returns the copy that the running call has made."""

    def __init__(self, original: type, name: str) -> None:
        self.original = ref(original)
        self.name = name

    def value(self) -> Any:
        """Return the copy made in the running call; outside of calls, the original attribute."""
        original = self.original()
        copies = ACTIVE_COPIES.get()
        try:
            value = vars(original)[self.name]
        except (KeyError, TypeError):
            raise AttributeError(self.name) from None
        if copies is None:
            return value
        return copies.copy_of(value)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        value = self.value()
        get = getattr(type(value), "__get__", None)
        if get is None:
            return value
        return get(value, instance, owner)


class CopiedDataDescriptor(CopiedAttribute):
    """A copied attribute that precedes those of an object, such as a property."""

    def __set__(self, instance: Any, value: Any) -> None:
        self.value().__set__(instance, value)

    def __delete__(self, instance: Any) -> None:
        self.value().__delete__(instance)


def _is_python(cls: type) -> bool:
    """Return whether a class was made by a ``class`` statement, and not compiled in C."""
    if not cls.__flags__ & HEAP_TYPE_FLAG or type(cls.__module__) is not str:
        return False
    descriptors = (
        value
        for name, value in vars(cls).items()
        if name not in CLASS_ATTRIBUTES and type(value) in C_DESCRIPTORS
    )
    return not any(value.__objclass__ is cls for value in descriptors)


def _is_copied(cls: type) -> bool:
    """Return whether a class is copied: it is a user's class, written in Python."""
    if type(cls) not in METACLASSES and not _is_copied(type(cls)):
        return False
    if cls in C_BASES or issubclass(cls, BaseException | Enum):
        return False
    if hasattr(cls, "__del__"):
        return False
    if not all(base in C_BASES or _is_python(base) for base in cls.__mro__):
        return False
    # `exec` made it in a namespace without ``__name__``
    if cls.__module__ == "builtins":
        return True
    module = sys.modules.get(cls.__module__, ModuleType(cls.__module__))
    return not _is_library(vars(module))


def _attribute_types(cls: type) -> dict[str, type]:
    """Return the type of each attribute of a class, by name."""
    return {name: type(value) for name, value in vars(cls).items()}


def _make_class_copy(cls: type, metaclass: type, bases: tuple[type, ...]) -> type:
    """Return the copy of a class, with copied `metaclass` and `bases`.

    All calls share one copy, until an attribute of the class or of the copy changes its type.
    """
    shared = CLASS_COPIES.get(cls)
    if (
        shared is not None
        and shared.original_types == _attribute_types(cls)
        and shared.copy_types == _attribute_types(shared.copy)
        and type(shared.copy) is metaclass
        and shared.copy.__bases__ == bases
    ):
        return shared.copy
    names: dict[str, Any] = {}
    for name, value in vars(cls).items():
        if name.startswith("__") and type(value) in (str, tuple, NoneType):
            names[name] = value
        elif type(value) is MemberDescriptorType or name in CLASS_ATTRIBUTES:
            continue
        elif hasattr(value, "__set__"):
            names[name] = CopiedDataDescriptor(cls, name)
        else:
            names[name] = CopiedAttribute(cls, name)
    if "__init_subclass__" in names:  # the hook has run for the original class
        names["__init_subclass__"] = classmethod(lambda cls, **options: None)
    make = ABCMeta.__new__ if issubclass(metaclass, ABCMeta) else type.__new__
    copy: type = make(metaclass, cls.__name__, bases, names)
    CLASS_COPIES[cls] = ClassCopy(copy, _attribute_types(cls), _attribute_types(copy))
    return copy


class Copies:
    """The copies of what a function reaches, each made once."""

    def __init__(self) -> None:
        # maps the id of a value to the value, which is so kept alive, and its copy
        self.copies: dict[int, tuple[Any, Any]] = {}
        self.originals: dict[int, Any] = {}  # maps the id of a copy to the original
        # maps the id of a module's global names to their copy; None if it is not copied
        self.global_names: dict[int, GlobalNames | None] = {}
        # pairs of a closure's cell and its copy: functions may assign to ``nonlocal`` names
        self.cells: list[tuple[CellType, CellType]] = []
        # functions that fill copies, still to be called: copies may contain each other
        self.unfilled: list[Callable[[], None]] = []
        self.builtins = {**vars(builtins), "__import__": self._import}

    def call(
        self,
        field: Field,
        function: Callable[..., Any],
        *arguments: Any,
        trace: Callable[..., Any] | None = None,
    ) -> Any:
        """Call the copy of a function while np.zeros and the like make exact numbers of `field`.

        Parameters
        ----------
        field : Field
            The field of the exact numbers that np.zeros and the like make.
        function : callable
            The user's function.
        *arguments
            Its arguments, which are copied alike.
        trace : callable, optional
            For `sys.settrace` during the call. It should end itself where `ACTIVE_FIELD` is
            another one: an interrupt may come before it is ended here.
        """
        copy, *argument_copies = map(self.copy_of, (function, *arguments))

        def call_copy() -> Any:
            ACTIVE_FIELD.set(field)
            ACTIVE_COPIES.set(self)
            outer_trace = sys.gettrace()
            try:
                if trace:
                    sys.settrace(trace)
                return copy(*argument_copies)
            finally:
                if trace:
                    sys.settrace(outer_trace)
                self.write_back()

        # context variables that the call sets end with its context
        return copy_context().run(call_copy)

    def copy_of(self, value: Any) -> Any:
        """Return the copy of a value, or the value itself if nothing in it has to be copied."""
        copy = self._copy(value)
        while self.unfilled:
            self.unfilled.pop()()
        return copy

    def write_back(self) -> None:
        """Write to the originals what a call has assigned to ``global`` and ``nonlocal`` names."""
        for names in self.global_names.values():
            if names is not None and names.assigned:
                names.write_back()
        for original, copy in self.cells:
            try:
                is_shared, value = self.to_original(copy.cell_contents)
                if is_shared and original.cell_contents is not value:
                    original.cell_contents = value
            except ValueError:  # one of the two cells is empty: its name was deleted
                continue

    def to_original(self, value: Any) -> tuple[bool, Any]:
        """Return whether a value may be written to an original, and the value to write.

        `value` is one that a copied function has assigned. If it is the copy of an original, that
        is what is written; else it has to be plain data.
        """
        if id(value) in self.originals:
            return True, self.originals[id(value)]
        if type(value) in PLAIN_TYPES:
            return True, value
        if type(value) is dict:
            items = [*value, *value.values()]
        elif type(value) in (list, tuple, set):
            items = [*value]
        else:
            entry = self.copies.get(id(value))
            return entry is not None and entry[1] is value, value
        return all(self.to_original(item) == (True, item) for item in items), value

    def _import(self, *args: Any, **kwargs: Any) -> Any:
        """Return the copy of an imported module: the ``__import__`` of copied functions."""
        return self.copy_of(builtins.__import__(*args, **kwargs))

    def _copy(self, value: Any, own_containers: bool = False) -> Any:
        """Return the copy of a value; the functions in `unfilled` still have to fill its contents.

        Containers that hold nothing to be copied are copied only if `own_containers`.
        """
        cls = type(value)
        if cls in SHARED_TYPES:
            return value
        entry = self.copies.get(id(value))
        if entry is not None:
            return entry[1]
        # the value stands for its copy until there is one, as it may contain itself
        self.copies[id(value)] = value, value
        stand_in = STAND_INS.get(id(value)) or scipy_stand_in(value)
        if stand_in is not None:
            return self._register(value, stand_in)
        if cls in CONTAINER_TYPES:
            return self._copy_container(value, own_containers)
        if cls in COPIERS:
            return COPIERS[cls](self, value)
        if isinstance(value, type):
            return self._copy_class(value)
        return self._copy_object(value)

    def _register(self, value: Any, copy: Any) -> Any:
        """Record that `copy` is the copy of `value`, and return `copy`."""
        self.copies[id(value)] = value, copy
        self.copies[id(copy)] = copy, copy
        self.originals[id(copy)] = value
        return copy

    # --- functions

    def _names_of(self, function: FunctionType) -> GlobalNames | None:
        """Return the global names for a function's copy; None if its module is not copied."""
        original = function.__globals__
        if id(original) not in self.global_names:
            self.global_names[id(original)] = None
            if not _is_library(original):
                self.global_names[id(original)] = GlobalNames(self, original)
        return self.global_names[id(original)]

    def _copy_function(self, function: FunctionType) -> Any:
        """Return the copy of a function, with copied globals, closure, defaults and attributes.

        A function of a library is returned itself, unless it has a closure.
        """
        names = self._names_of(function)
        closure = function.__closure__
        if type(function.__globals__) is GlobalNames or (names is None and not closure):
            return function
        copy = FunctionType(
            function.__code__,
            function.__globals__ if names is None else names,
            function.__name__,
            None,
            tuple(map(self._copy_cell, closure)) if closure else None,
        )
        self._register(function, copy)

        def fill() -> None:
            if names is not None:
                names.prepare(function.__code__)
            if function.__defaults__:
                copy.__defaults__ = self._copy(function.__defaults__)
            if function.__kwdefaults__:
                copy.__kwdefaults__ = self._copy(function.__kwdefaults__)
            copy.__qualname__ = function.__qualname__
            copy.__module__ = function.__module__
            for name, value in vars(function).items():
                setattr(copy, name, self._copy(value))

        self.unfilled.append(fill)
        return copy

    def _copy_cell(self, cell: CellType) -> CellType:
        """Return the copy of a closure's cell; an empty cell, or one of plain data, is shared."""
        if id(cell) in self.copies:
            earlier_copy: CellType = self.copies[id(cell)][1]
            return earlier_copy
        try:
            content = cell.cell_contents
        except ValueError:  # the cell is empty
            return cell
        if type(content) in SHARED_TYPES:
            return cell
        copy = CellType()
        self.copies[id(cell)] = cell, copy
        self.cells.append((cell, copy))

        def fill() -> None:
            copy.cell_contents = self._copy(content)

        self.unfilled.append(fill)
        return copy

    def _rebuild(
        self, value: Any, parts: tuple[Any, ...], make: Callable[..., Any]
    ) -> Any:
        """Return `make(*copies)` of the copies of `parts`; `value` itself if no part has a copy."""
        copies = tuple(map(self._copy, parts))
        if all(map(operator.is_, parts, copies)):
            return value
        return self._register(value, make(*copies))

    def _copy_method(self, method: MethodType) -> Any:
        """Return the copy of a bound method: a copied function bound to a copied object."""
        return self._rebuild(method, (method.__func__, method.__self__), MethodType)

    def _copy_partial(self, partial: functools.partial[Any]) -> Any:
        """Return the copy of a `functools.partial`."""
        return self._rebuild(
            partial,
            (partial.func, partial.args, partial.keywords),
            lambda function, args, keywords: functools.partial(
                function, *args, **keywords
            ),
        )

    def _copy_cached(self, cached: Any) -> Any:
        """Return the copy of a function with `functools.lru_cache`, whose cache is empty."""
        cache = functools.lru_cache(**cached.cache_parameters())
        return self._register(cached, cache(self._copy(cached.__wrapped__)))

    def _copy_wrapped(self, wrapper: Any) -> Any:
        """Return the copy of a staticmethod or classmethod."""
        return self._rebuild(wrapper, (wrapper.__func__,), type(wrapper))

    def _copy_property(self, original: property) -> Any:
        """Return the copy of a property: copied getter, setter and deleter."""
        functions = original.fget, original.fset, original.fdel
        return self._rebuild(
            original, functions, functools.partial(property, doc=original.__doc__)
        )

    def _copy_variable(self, variable: ContextVar[Any]) -> Any:
        """Return a context variable whose default is the copy of the variable's value."""

        def make(value: Any) -> ContextVar[Any]:
            return ContextVar(variable.name, default=value)

        try:
            return self._rebuild(variable, (variable.get(),), make)
        except LookupError:  # the variable has no value
            return variable

    def _copy_reference(self, reference: ref[Any]) -> Any:
        """Return the copy of a weak reference: a weak reference to the copy of its object."""
        return self._rebuild(reference, (reference(),), ref)

    def _copy_built_in(self, method: BuiltinFunctionType) -> Any:
        """Return the same method of the copied container; other built-in functions are shared."""
        container = method.__self__
        if type(container) not in CONTAINER_TYPES:
            return method
        return self._rebuild(
            method, (container,), lambda copy: getattr(copy, method.__name__)
        )

    def _copy_module(self, module: ModuleType) -> Any:
        """Return the copy of a user's module; a module of a library is returned itself."""
        if _is_library(vars(module)):
            return module
        return self._register(module, ModuleCopy(self, module))

    # --- containers

    def _copy_container(self, value: Any, own_containers: bool) -> Any:
        """Return the copy of a container, if an item has a copy or if `own_containers`."""
        cls = type(value)
        is_mapping = hasattr(value, "keys")
        items = [*value]
        keys: list[Any] = []
        if is_mapping:
            keys = items
            items = [*keys, *value.values()]
        all_shared = SHARED_TYPES.issuperset(map(type, items))
        if all_shared and not own_containers:
            return value
        is_immutable = cls in (tuple, MappingProxyType)
        if not is_immutable:  # filled later: an item may refer to this container
            copy = cls()
            self.copies[id(value)] = value, copy
        copies = items
        if not all_shared:
            copies = [self._copy(item, own_containers) for item in items]
        if not own_containers and all(map(operator.is_, items, copies)):
            self.copies[id(value)] = value, value
            return value
        values = copies[len(keys) :]
        pairs = [*zip(copies[: len(keys)], values, strict=is_mapping)]
        if cls is tuple:
            return self._register(value, tuple(values))
        if cls is MappingProxyType:
            return self._register(value, MappingProxyType(dict(pairs)))

        def fill() -> None:
            if cls is defaultdict:
                copy.default_factory = self._copy(value.default_factory)
            for key, item in pairs:
                copy[key] = item
            if cls is set:
                copy.update(values)
            elif not is_mapping:
                copy.extend(values)

        # containers are filled last: sets and dicts hash their items, which must be complete
        self.unfilled.insert(0, fill)
        return self._register(value, copy)

    # --- classes and their objects

    def _copy_class(self, cls: type) -> Any:
        """Return the copy of a user's class; other classes are returned themselves."""
        if cls not in CLASS_COPIES and not _is_copied(cls):
            return cls
        bases = tuple(map(self._copy, cls.__bases__))
        return self._register(cls, _make_class_copy(cls, self._copy(type(cls)), bases))

    def _copy_object(self, value: Any) -> Any:
        """Return the copy of an object whose class is copied: its items, attributes and slots."""
        original_class = type(value)
        cls: Any = Vectorize
        if original_class is not np.vectorize:
            cls = self._copy(original_class)
        if cls is original_class and original_class not in COPIED_C_CLASSES:
            return value
        if isinstance(value, tuple):
            copy: Any = tuple.__new__(cls, [self._copy(item, True) for item in value])
        else:
            bases = (base for base in CONTAINER_BASES if isinstance(value, base))
            copy = next(bases, object).__new__(cls)
        self._register(value, copy)

        def fill() -> None:
            if isinstance(value, list):
                items = list.__iter__(value)
                list.extend(copy, [self._copy(item, True) for item in items])
            if isinstance(value, dict):
                for key, item in dict.items(value):
                    dict.__setitem__(copy, self._copy(key), self._copy(item, True))
            if hasattr(value, "__dict__"):
                for name, attribute in value.__dict__.items():
                    copy.__dict__[name] = self._copy(attribute, True)
            self._fill_slots(value, copy)

        self.unfilled.append(fill)
        return copy

    def _fill_slots(self, value: Any, copy: Any) -> None:
        """Set the ``__slots__`` attributes of `copy` to copies of those of `value`."""
        for cls in type(value).__mro__:
            for name, slot in vars(cls).items():
                if type(slot) is not MemberDescriptorType:
                    continue
                try:
                    content = slot.__get__(value)
                except AttributeError:  # the slot has no value
                    continue
                slot_copy = vars(self._copy(cls))[name]
                slot_copy.__set__(copy, self._copy(content, True))


COPIERS: dict[type, Callable[[Copies, Any], Any]] = {
    FunctionType: Copies._copy_function,
    MethodType: Copies._copy_method,
    ModuleType: Copies._copy_module,
    functools.partial: Copies._copy_partial,
    type(functools.lru_cache(len)): Copies._copy_cached,
    staticmethod: Copies._copy_wrapped,
    classmethod: Copies._copy_wrapped,
    property: Copies._copy_property,
    ContextVar: Copies._copy_variable,
    ref: Copies._copy_reference,
    BuiltinFunctionType: Copies._copy_built_in,
}
CONTAINER_TYPES = {
    list,
    tuple,
    dict,
    set,
    deque,
    OrderedDict,
    defaultdict,
    Counter,
    MappingProxyType,
    WeakKeyDictionary,
}
# Classes of the standard library and of NumPy whose objects hold functions of the user
COPIED_C_CLASSES = {
    functools.cached_property,
    functools.partialmethod,
    functools.singledispatchmethod,
    SimpleNamespace,
    threading.local,
    np.vectorize,
}
