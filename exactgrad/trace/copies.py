"""Copies of a user's functions in which `np` is another module, so that NumPy is not patched (D44).

``out = np.zeros(3)`` followed by ``out[0] = x`` asks NumPy to make a float of an exact number. So a
proof calls a *copy* of the function: the same code, with global names and a closure of its own.
Where the original finds NumPy, or a function such as np.zeros that was imported by its name, the
copy finds the version in `makers`. All that the function uses (functions, methods, classes and
their objects, modules, also in lists, dicts, decorators and partials) is copied in the same way,
when its name is first read. NumPy and the modules and closures of the process are not changed, so
that nothing has to be restored after an interrupt, and other threads and forked processes see
nothing of the proof.

Each object is copied once, so that two references to one object become references to one copy. A
copy lives as long as its `Copies`. Lists, dicts and sets with nothing to copy in them are shared
with the original, unless they are attributes of objects; arrays are always shared. A value that a
call assigns to a ``global`` or ``nonlocal`` name is written back to the original if it consists of
numbers, text, arrays, or lists and dicts of these; assignments to attributes of objects affect the
copies only. Not copied are the standard library, NumPy and this package, classes written in C,
enumerations, exceptions, and objects with ``__del__``. The copy of a function with a cache of
`functools` begins with an empty cache.
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
PACKAGE_NAME = __name__.rpartition(".trace.")[0]
STDLIB_PATH = sysconfig.get_path("stdlib")
# Types of values that are written back to ``global`` and ``nonlocal`` names of the originals
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
# Types whose values are never copied: copied functions use the same objects as the originals
SHARED_TYPES = PLAIN_TYPES | {Exact, slice, range, np.ufunc, np.dtype, type(Ellipsis)}
# Py_TPFLAGS_HEAPTYPE, a bit of ``cls.__flags__``: set if a ``class`` statement made the class
HEAP_TYPE_FLAG = 1 << 9
C_DESCRIPTORS = {
    MethodDescriptorType,
    WrapperDescriptorType,
    GetSetDescriptorType,
    ClassMethodDescriptorType,
}
METACLASSES = (type, ABCMeta, type(typing.Protocol))
# Classes written in C, besides `object` and `type`, from which a copied class may derive
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
    """The copy of a class, with the types of its attributes and of the original's when copied."""

    copy: type
    original_types: dict[str, type]
    copy_types: dict[str, type]


# The `Copies` whose method `call` is running; None outside of such calls
ACTIVE_COPIES: ContextVar[Copies | None] = ContextVar("copies", default=None)
CLASS_COPIES: WeakKeyDictionary[type, ClassCopy] = WeakKeyDictionary()


def in_own_context(
    function: Callable[Arguments, Result],
) -> Callable[Arguments, Result]:
    """Return a version of `function` that runs in its own copy of the context variables.

    So a change to np.errstate or to the decimal precision ends with the call, even with one that
    is interrupted.
    """

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        __tracebackhide__ = True
        return copy_context().run(function, *args, **kwargs)

    return call


def _is_library(names: dict[str, Any]) -> bool:
    """Return whether globals are those of a module of the stdlib, NumPy or exactgrad."""
    name = str(names.get("__name__", ""))
    root = name.partition(".")[0]
    file = str(names.get("__file__") or STDLIB_PATH)
    is_stdlib = root in sys.stdlib_module_names and file.startswith(STDLIB_PATH)
    return is_stdlib or root == "numpy" or f"{name}.".startswith(f"{PACKAGE_NAME}.")


class GlobalNames(dict[str, Any]):
    """The ``globals()`` of copied functions of a module: values are copied when first read.

    Parameters
    ----------
    copies : Copies
        The registry that makes the copies.
    original : dict
        The global variables of the module itself.
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
        if value is self:  # the name is not a global variable but a built-in of Python
            value = self.copies.builtins[name]
        self[name] = copy = self.copies.copy_of(value)
        return copy

    def prepare(self, code: CodeType) -> None:
        """Copy the globals that `code` may read without calling `__missing__`.

        Such code is that of class bodies and modules, and calls of eval, globals and the like. Also
        record in `assigned` the global names that the code assigns.
        """
        if dis.opmap["STORE_GLOBAL"] in code.co_code[::2]:
            instructions = dis.get_instructions(code)
            self.assigned |= {
                step.argval for step in instructions if step.opname == "STORE_GLOBAL"
            }
        names: Iterable[str] = code.co_names
        if DYNAMIC_LOOKUPS.intersection(code.co_names):
            names = list(self.original)
        elif code.co_flags & 1:  # in functions Python calls `__missing__` for globals
            names = ()
        for name in names:
            if name in self.original:
                self[name]
        for constant in code.co_consts:
            if type(constant) is CodeType:
                self.prepare(constant)

    def write_back(self) -> None:
        """Write values that copied functions have assigned to globals back to the module."""
        for name in self.assigned & self.keys():
            is_shared, value = self.copies.to_original(self[name])
            if is_shared and self.original.get(name, self) is not value:
                self.original[name] = value


class ModuleCopy(ModuleType):
    """A copy of a user's module, each attribute of which is copied when it is first read."""

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
    """Descriptor of a copied class that looks up the copy of one attribute in the running call."""

    def __init__(self, original: type, name: str) -> None:
        self.original = ref(original)
        self.name = name

    def value(self) -> Any:
        """Return the attribute's copy in the running `Copies.call`; outside of calls, itself."""
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
    """Descriptor of a copied attribute with ``__set__``, such as a property."""

    def __set__(self, instance: Any, value: Any) -> None:
        self.value().__set__(instance, value)

    def __delete__(self, instance: Any) -> None:
        self.value().__delete__(instance)


def _is_python(cls: type) -> bool:
    """Return whether a class was made by a ``class`` statement, and not written in C."""
    if not cls.__flags__ & HEAP_TYPE_FLAG or type(cls.__module__) is not str:
        return False
    descriptors = (
        value
        for name, value in vars(cls).items()
        if name not in CLASS_ATTRIBUTES and type(value) in C_DESCRIPTORS
    )
    return not any(value.__objclass__ is cls for value in descriptors)


def _is_copied(cls: type) -> bool:
    """Return whether a class has to be copied: it is a user's, written in Python, without __del__.

    Enumerations and exceptions are not copied.
    """
    if type(cls) not in METACLASSES and not _is_copied(type(cls)):
        return False
    if cls in C_BASES or issubclass(cls, BaseException | Enum):
        return False
    if hasattr(cls, "__del__"):
        return False
    if not all(base in C_BASES or _is_python(base) for base in cls.__mro__):
        return False
    # a class that `exec` has made in a namespace without ``__name__`` is a user's class
    if cls.__module__ == "builtins":
        return True
    module = sys.modules.get(cls.__module__, ModuleType(cls.__module__))
    return not _is_library(vars(module))


def _attribute_types(cls: type) -> dict[str, type]:
    """Return the type of each attribute that a class itself defines, by the attribute's name."""
    return {name: type(value) for name, value in vars(cls).items()}


def _make_class_copy(cls: type, metaclass: type, bases: tuple[type, ...]) -> type:
    """Return the copy of a class, given the copies of its metaclass and of its bases.

    All proofs share one copy of a class, until an attribute of the class or of the copy is added,
    removed or changes its type, or metaclass or bases change.
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
    # `__init_subclass__` has run for the original classes: it must not run again for copies
    if "__init_subclass__" in names:
        names["__init_subclass__"] = classmethod(lambda cls, **options: None)
    make = ABCMeta.__new__ if issubclass(metaclass, ABCMeta) else type.__new__
    copy: type = make(metaclass, cls.__name__, bases, names)
    CLASS_COPIES[cls] = ClassCopy(copy, _attribute_types(cls), _attribute_types(copy))
    return copy


class Copies:
    """Copies of a function and of all objects that it uses; each object is copied once."""

    def __init__(self) -> None:
        # maps the id of a value to the value and its copy; kept alive, its id stays its own
        self.copies: dict[int, tuple[Any, Any]] = {}
        self.originals: dict[int, Any] = {}  # maps the id of a copy to the original
        # maps the id of a module's globals to their copy; to None if the module is not copied
        self.global_names: dict[int, GlobalNames | None] = {}
        # closure cells and their copies, to write back what is assigned to ``nonlocal`` names
        self.cells: list[tuple[CellType, CellType]] = []
        # functions still to be called that fill empty copies, as copies may contain each other
        self.unfilled: list[Callable[[], None]] = []
        self.builtins = {**vars(builtins), "__import__": self._import}

    def call(
        self,
        field: Field,
        function: Callable[..., Any],
        *arguments: Any,
        trace: Callable[..., Any] | None = None,
    ) -> Any:
        """Call the copy of a function, in which np.zeros and the like make exact arrays.

        Parameters
        ----------
        field : Field
            The field of these exact arrays.
        function : callable
            The user's function.
        *arguments
            Its arguments, of which copies are passed.
        trace : callable, optional
            Trace function that `sys.settrace` sets during the call. It should restore the outer
            trace function when `ACTIVE_FIELD` is not `field`: an interrupt may prevent its removal
            at the end of the call.

        Returns
        -------
        object
            What the copy returns. Its assignments to ``global`` and ``nonlocal`` names have been
            written back to the originals (see `to_original`).
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

        # in a copied context, so that the call's changes of context variables end with it
        return copy_context().run(call_copy)

    def copy_of(self, value: Any) -> Any:
        """Return the complete copy of a value, or itself if nothing in it has to be copied."""
        copy = self._copy(value)
        while self.unfilled:
            self.unfilled.pop()()
        return copy

    def write_back(self) -> None:
        """Write values that a call has assigned to global and nonlocal names to the originals."""
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
        """Return whether an assigned value may be written to its original, and the value to write.

        `value` is one that a copied function has assigned. If it is a copy, its original is
        written; else it may be written if it is plain data (of `PLAIN_TYPES`, or a container
        of these), or an object that is not copied.
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
        """Import a module and return its copy; copied functions use this as ``__import__``."""
        return self.copy_of(builtins.__import__(*args, **kwargs))

    def _copy(self, value: Any, own_containers: bool = False) -> Any:
        """Return the copy of a value, whose contents the functions in `unfilled` still have to add.

        Lists, dicts and sets with nothing to copy in them are copied only if `own_containers` is
        True.
        """
        cls = type(value)
        if cls in SHARED_TYPES:
            return value
        entry = self.copies.get(id(value))
        if entry is not None:
            return entry[1]
        # until the copy exists, register the value itself: it may contain itself
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
        """Record that `copy` is the copy of `value`, and that it is its own copy; return `copy`."""
        self.copies[id(value)] = value, copy
        self.copies[id(copy)] = copy, copy
        self.originals[id(copy)] = value
        return copy

    # --- functions

    def _names_of(self, function: FunctionType) -> GlobalNames | None:
        """Return the globals for the copy of a function; None if its module is not copied."""
        original = function.__globals__
        if id(original) not in self.global_names:
            self.global_names[id(original)] = None
            if not _is_library(original):
                self.global_names[id(original)] = GlobalNames(self, original)
        return self.global_names[id(original)]

    def _copy_function(self, function: FunctionType) -> Any:
        """Return the copy of a function, with copied globals, closure, defaults and attributes.

        A function of the standard library, NumPy or exactgrad is returned itself, unless it has a
        closure, which may contain functions of the user.
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
        """Return the copy of a closure cell; itself if it is empty or needs no copy."""
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
        """Return a copy of `value` that `make` builds from copies of its parts.

        It is `value` itself if no part has a copy.
        """
        copies = tuple(map(self._copy, parts))
        if all(map(operator.is_, parts, copies)):
            return value
        return self._register(value, make(*copies))

    def _copy_method(self, method: MethodType) -> Any:
        """Return the copy of a bound method: its copied function bound to its copied object."""
        return self._rebuild(method, (method.__func__, method.__self__), MethodType)

    def _copy_partial(self, partial: functools.partial[Any]) -> Any:
        """Return the copy of a `functools.partial`, with copied function and arguments."""
        return self._rebuild(
            partial,
            (partial.func, partial.args, partial.keywords),
            lambda function, args, keywords: functools.partial(
                function, *args, **keywords
            ),
        )

    def _copy_cached(self, cached: Any) -> Any:
        """Return the copy of a function that `functools.lru_cache` wraps, with an empty cache."""
        cache = functools.lru_cache(**cached.cache_parameters())
        return self._register(cached, cache(self._copy(cached.__wrapped__)))

    def _copy_wrapped(self, wrapper: Any) -> Any:
        """Return the copy of a staticmethod or classmethod, with its function copied."""
        return self._rebuild(wrapper, (wrapper.__func__,), type(wrapper))

    def _copy_property(self, original: property) -> Any:
        """Return the copy of a property: copied getter, setter and deleter."""
        functions = original.fget, original.fset, original.fdel
        return self._rebuild(
            original, functions, functools.partial(property, doc=original.__doc__)
        )

    def _copy_variable(self, variable: ContextVar[Any]) -> Any:
        """Return a new context variable whose default is the copy of the variable's value.

        A variable without a value, or whose value has no copy, is returned itself.
        """

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
        """Return the same method, such as append, of the copy of its container.

        Other built-in functions are returned themselves.
        """
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
        """Return the copy of a list, dict, set or the like; itself if no item has a copy.

        If `own_containers` is True, it is copied in any case.
        """
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

        # fill containers after objects: sets and dicts hash their items, which must be complete
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
        """Return the copy of an object, with its items, attributes and slots copied.

        An object whose class is not copied is returned itself, unless its class is one of
        `COPIED_C_CLASSES`.
        """
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
        """Set the attributes in ``__slots__`` of `copy` to copies of those of `value`."""
        for cls in type(value).__mro__:
            for name, slot in vars(cls).items():
                if type(slot) is not MemberDescriptorType:
                    continue
                try:
                    content = slot.__get__(value)
                except AttributeError:  # the object has no value in this slot
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
# Classes of the standard library and NumPy whose objects are copied: they hold users' functions
COPIED_C_CLASSES = {
    functools.cached_property,
    functools.partialmethod,
    functools.singledispatchmethod,
    SimpleNamespace,
    threading.local,
    np.vectorize,
}
