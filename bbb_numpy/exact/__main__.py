"""Prove a gradient from the command line: ``python -m bbb_numpy.exact file.py:function --theta 3``.

The exit status is 0 if it is proved, 1 if it is not, 2 if the question makes no sense.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from .proofs import prove

__all__ = ["main"]

VALUES = "numbers (0.1,0.2), a shape of random ones (5x3, or 3 for a vector) or a .npy file"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the verdict, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m bbb_numpy.exact", description="Prove or refute a hand-written gradient."
    )
    parser.add_argument("function", help="module:function or file.py:function")
    parser.add_argument("arguments", nargs="*", help=f"what it takes after theta, each {VALUES}")
    parser.add_argument("--theta", required=True, help=f"{VALUES}; negative: --theta=-1,2")
    parser.add_argument("--data", help="a .npz file with further arguments, by their names")
    parser.add_argument("--seed", type=int, default=0, help="of random numbers, 0 or more")
    asked = parser.parse_args(argv)
    try:
        if asked.seed < 0:
            raise ValueError(f"--seed is a whole number, 0 or more; got {asked.seed}")
        rng, function = np.random.default_rng(asked.seed), _function(asked.function)
        theta = np.ravel(_values("--theta", asked.theta, rng)).astype(float)
        given = [_values("an argument", text, rng) for text in asked.arguments]
        named = _loaded(asked.data, ".npz") if asked.data else {}
        proof = prove(function, theta, *_bound(function, theta, given, named), seed=asked.seed)
    except (TypeError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(proof)
    return 0 if proof else 1


def _function(text: str) -> Callable[..., Any]:
    """Return the function that ``module:function`` or ``file.py:function`` names."""
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise ValueError(f"say module:function or file.py:function; got {text!r}")
    path = Path(place)
    if path.suffix == ".py" and not path.is_file():
        raise ValueError(f"there is no file {place}")
    sys.path.insert(0, str(path.resolve().parent) if path.suffix == ".py" else "")
    try:
        if path.suffix != ".py":
            module = import_module(place)
        else:  # its name may be that of a module of Python's
            spec: Any = spec_from_file_location(f"file {path.stem}", path)
            module = sys.modules[spec.name] = module_from_spec(spec)
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    found: Any = getattr(module, name, None)
    if not callable(found):
        own = [key for key, one in vars(module).items() if inspect.isfunction(one)]
        raise ValueError(f"{place} has no function {name}; it has {', '.join(own) or 'none'}")
    return found


def _values(what: str, text: str, rng: np.random.Generator) -> Any:
    """Return numbers, random numbers of a shape, or those of a file; one number is a float."""
    if text.endswith(".npy"):
        return _loaded(text, ".npy")
    if re.fullmatch(r"\d+(x\d+)*", text):
        return rng.standard_normal([int(size) for size in text.split("x")])
    try:
        numbers = [float(part) for part in text.removesuffix(",").split(",")]
    except ValueError:
        raise ValueError(f"{what} is {VALUES}; got {text!r}") from None
    return np.array(numbers) if "," in text else numbers[0]


def _loaded(path: str, ending: str) -> Any:
    if not path.endswith(ending):
        raise ValueError(f"a {ending} file is wanted here; got {path!r}")
    try:
        found = np.load(path)
        return dict(found) if ending == ".npz" else found
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _bound(function: Any, theta: Any, given: list[Any], named: Any) -> Sequence[Any]:
    """Return the arguments after theta in the order of the function's."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(theta, *given, **named)
    except TypeError as error:
        shapes = [f"an argument of shape {np.shape(one)}" for one in given]
        came = ", ".join(["theta", *shapes, *named])
        raise ValueError(f"the function takes {signature}; got {came}: {error}") from error
    return list(bound.arguments.values())[1:] if named else given


if __name__ == "__main__":
    sys.exit(main())
