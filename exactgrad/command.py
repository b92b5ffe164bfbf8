"""Prove a gradient from the command line: ``exactgrad file.py::function --theta 3``.

The exit status is 0 if it is proved, 1 if it is not, 2 if the question makes no sense. With
``--floats`` the question is whether the function loses digits in floats.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .floats.stability import MAX_LOSS, stability
from .proofs import prove

__all__ = ["add_arguments", "main", "run"]

VALUES = (
    "numbers (0.1,0.2), a shape of random ones (5x3, or 3 for a vector) or a .npy file"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``exactgrad`` command: prove a gradient, print the proof, return the exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The command-line arguments, without the name of the program. By default ``sys.argv[1:]``.

    Returns
    -------
    int
        0 if the gradient is proved, 1 if it is not, 2 if the function cannot be imported or called.

    Raises
    ------
    SystemExit
        If an option is unknown or missing, with the exit status 2, or after ``--help``.
    """
    parser = argparse.ArgumentParser(
        prog="exactgrad", description="Prove or refute a hand-written gradient."
    )
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    try:
        return run(arguments)
    except ValueError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of the ``exactgrad`` command to `parser`, in place."""
    parser.add_argument("function", help="file.py::function or module:function")
    parser.add_argument(
        "arguments", nargs="*", help=f"what it takes after theta, each {VALUES}"
    )
    parser.add_argument(
        "--theta",
        default="3",
        help=f"{VALUES}; negative: --theta=-1,2 (default: 3 random numbers)",
    )
    parser.add_argument(
        "--data", help="a .npz file with further arguments, by their names"
    )
    parser.add_argument(
        "--floats",
        action="store_true",
        help="look for inputs at which digits are lost in floats, instead of a proof",
    )
    parser.add_argument(
        "--dtype", choices=[*MAX_LOSS], default="float64", help="of --floats"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of random numbers, 0 or more"
    )


def run(options: argparse.Namespace) -> int:
    """Prove the gradient of the function that `options` name, and print the proof.

    With ``--floats`` print its stability in floats instead.

    Parameters
    ----------
    options : argparse.Namespace
        The command line, as parsed by a parser whose arguments come from `add_arguments`.

    Returns
    -------
    int
        The exit status: 0 if the gradient is proved or if no digits are lost, else 1.

    Raises
    ------
    ValueError
        If the function cannot be imported or called with these arguments, or returns no pair of a
        value and a gradient.
    """
    if options.seed < 0:
        raise ValueError(
            f"--seed must be a whole number, 0 or more; got {options.seed}"
        )
    rng = np.random.default_rng(options.seed)
    function = _import_function(options.function)
    theta = np.ravel(_parse_values("--theta", options.theta, rng)).astype(float)
    positional = [_parse_values("an argument", text, rng) for text in options.arguments]
    named = {}
    if options.data:
        named = _load(options.data, ".npz")
    arguments = _in_order(function, theta, positional, named)
    try:
        result = _answer(options, function, theta, arguments)
    except TypeError as error:
        raise ValueError(str(error)) from error
    print(result)
    return 0 if result else 1


def _answer(
    options: argparse.Namespace, function: Any, theta: Any, arguments: Sequence[Any]
) -> Any:
    """Return the proof or the stability, as `options` ask, of a function of these arguments."""
    if not options.floats:
        return prove(function, theta, *arguments, seed=options.seed)
    return stability(
        function, theta, *arguments, dtype=options.dtype, seed=options.seed
    )


def _import_function(text: str) -> Callable[..., Any]:
    """Import and return the function named ``file.py::function`` or ``module:function``.

    ValueError is raised if `text` has another form, or if there is no such file or function.
    """
    source, _, name = text.rpartition(":")
    source = source.removesuffix(":")
    if not source or not name:
        raise ValueError(
            f"function must be file.py::function or module:function; got {text!r}"
        )
    path = Path(source)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise ValueError(f"there is no file {source}")
    folder = ""
    if is_file:
        folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        module = _import_file(path) if is_file else import_module(source)
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"{source} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    function: Any = getattr(module, name, None)
    if not callable(function):
        names = [
            key for key, value in vars(module).items() if inspect.isfunction(value)
        ]
        raise ValueError(
            f"{source} has no function {name}; it has {', '.join(names) or 'none'}"
        )
    return function


def _import_file(path: Path) -> ModuleType:
    """Import the Python file at `path` and return it as a module.

    It is called ``file NAME`` in `sys.modules`: with a blank no installed module is replaced.
    """
    spec: Any = spec_from_file_location(f"file {path.stem}", path)
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _parse_values(name: str, text: str, rng: np.random.Generator) -> Any:
    """Return the float or array that `text` describes: numbers, a shape or a ``.npy`` file.

    ``0.5`` is a float, ``0.1,0.2`` an array of two numbers; the shape ``5x3`` is an array (5, 3) of
    standard normal numbers drawn by `rng`. `name` is the name of the argument in an error.
    """
    if text.endswith(".npy"):
        return _load(text, ".npy")
    if re.fullmatch(r"\d+(x\d+)*", text):
        return rng.standard_normal([int(size) for size in text.split("x")])
    try:
        numbers = [float(number) for number in text.removesuffix(",").split(",")]
    except ValueError:
        raise ValueError(f"{name} must be {VALUES}; got {text!r}") from None
    if "," in text:
        return np.array(numbers)
    return numbers[0]


def _load(path: str, ending: str) -> Any:
    """Load a ``.npy`` file as an array, or a ``.npz`` file as a dict of arrays by name.

    ValueError is raised if `path` does not end with `ending` ('.npy' or '.npz'), or if the file
    cannot be read.
    """
    if not path.endswith(ending):
        raise ValueError(f"--data must be a {ending} file; got {path!r}")
    try:
        with open(path, "rb") as file:
            loaded = np.load(file)
            if ending == ".npz":
                return dict(loaded)
            return loaded
    except (
        OSError,
        ValueError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        MemoryError,
    ) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _in_order(
    function: Any, theta: Any, positional: list[Any], named: Any
) -> Sequence[Any]:
    """Return all arguments after theta as one sequence, in the order of the function's signature.

    `positional` is the list of those without a name, `named` a dict by name. ValueError is raised
    if the function does not take them.
    """
    signature = inspect.signature(function)
    try:
        bound = signature.bind(theta, *positional, **named)
    except TypeError as error:
        shapes = [f"an argument of shape {np.shape(value)}" for value in positional]
        got = ", ".join(["theta", *shapes, *named])
        raise ValueError(
            f"the function takes {signature}; got {got}: {error}"
        ) from error
    if not named:
        return positional
    return list(bound.arguments.values())[1:]
