"""Write signatures.txt: what the public functions and classes take, with every default.

    python tests/project/signatures.py

Results of everybody who does not name an argument depend on its default. Who changes one runs this
again, and says so in CHANGELOG.md.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_suffix(".txt")
FOLDERS = ("numeric", "parts", "model", "gradients", "training", "sampling", "evaluation",
           "learners", "plots", "data")  # fmt: skip
ALONE = ("bbb_numpy.plain", "bbb_numpy.registry", "bbb_numpy.combinations", "exactgrad.gradcheck",
         "exactgrad.proofs", "exactgrad.derivatives")  # fmt: skip


def parameters(public: Any) -> str:
    """Return the parameters of a function or class: names and defaults, no annotations."""
    taken = inspect.signature(public).parameters.values()
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in taken]
    text = re.sub(r"<function [\w.<>]*<lambda> at \w+>", "lambda", str(inspect.Signature(plain)))
    # classes and functions by their names alone: no modules, no addresses
    return re.sub(r"<(?:class|function|built-in function) '?(?:\w+\.)*(\w+)[^>]*>", r"\1", text)


def lines(name: str) -> Iterator[str]:
    """Yield a line for each public function, class and method of a module that has a default."""
    module = importlib.import_module(name)
    for public in map(vars(module).get, getattr(module, "__all__", ())):
        if not callable(public) or getattr(public, "__module__", "") != name:
            continue
        members = {"": public}
        if inspect.isclass(public):
            attributes = {
                key: getattr(public, key) for key in vars(public) if not key.startswith("_")
            }
            members |= {
                f".{key}": member
                for key, member in attributes.items()
                if inspect.isfunction(member)
            }
        for key, member in members.items():
            try:
                taken = parameters(member)
            except ValueError:  # a named tuple or an error, made by C
                continue
            if "=" in taken:
                yield f"{name}.{public.__name__}{key}{taken}"


def modules() -> list[str]:
    """Return the names of the modules whose defaults people use."""
    names = [
        str(file.relative_to(ROOT).with_suffix("")).replace("/", ".")
        for folder in FOLDERS
        for file in sorted((ROOT / "bbb_numpy" / folder).rglob("*.py"))
        if file.stem != "__init__"
    ]
    return [*ALONE, *names]


def stored() -> dict[str, list[str]]:
    """Return the lines of the file, by module."""
    lines_by_module: dict[str, list[str]] = {name: [] for name in modules()}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        path = line.partition("(")[0]
        lines_by_module[
            max((n for n in lines_by_module if path.startswith(f"{n}.")), key=len)
        ].append(line)
    return lines_by_module


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    every = [line for name in modules() for line in lines(name)]
    FILE.write_text("".join(f"{line}\n" for line in every), encoding="utf-8")
