"""The house stands: no module imports itself by way of others.

import-linter keeps the floors apart; this is about the rooms of one floor too, and counts every
import, those inside functions and under TYPE_CHECKING as well.
"""

import ast
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGES = sorted(Path(__file__).resolve().parents[2].glob("bbb_*"))


def modules(package: Path) -> dict[str, Path]:
    """Return the files of all modules of a package by their dotted names."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path, known: Mapping[str, Path]) -> set[str]:
    """Return the modules among `known` that the module `name` imports, wherever it does."""
    found = set()
    home = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = home[: len(home) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:  # a module of that package, or a name in that module
                inner = f"{source}.{alias.name}"
                found.add(inner if inner in known else source)
    return found & set(known)


def circle(package: Path) -> list[str]:
    """Return the modules of one circle of imports, the first again at the end; [] without any."""
    known = modules(package)
    graph = {name: imports(name, path, known) for name, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_no_module_imports_itself_by_way_of_others(package):
    assert circle(package) == []
