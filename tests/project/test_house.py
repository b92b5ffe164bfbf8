"""The house stands: no module imports itself by way of others.

import-linter keeps the floors apart; this is about the rooms of one floor too, and counts every
import, those inside functions and under TYPE_CHECKING as well.
"""

import ast
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "bbb_numpy"


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


def test_no_module_imports_itself_by_way_of_others():
    assert circle(PACKAGE) == []


def planted(folder: Path, **texts: str) -> Path:
    """Write a package with the modules low.a, low.b and top."""
    (folder / "house" / "low").mkdir(parents=True)
    for name in ("__init__", "low/__init__", "low/a", "low/b", "top"):
        (folder / "house" / f"{name}.py").write_text(texts.get(name.split("/")[-1], ""))
    return folder / "house"


def test_a_planted_circle_is_found_wherever_the_imports_stand(tmp_path):
    hidden = {
        "function": "def f():\n    from . import a\n",
        "type": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import A\n",
        "absolute": "import house.low.a\n",
        "roundabout": "from ..top import T\n",
    }
    for kind, text in hidden.items():
        package = planted(tmp_path / kind, a="from .b import B\n", b=text, top="from .low import a")
        around = {"house.low.a", "house.low.b"} | ({"house.top"} if kind == "roundabout" else set())
        assert set(circle(package)) == around, kind
    package = planted(
        tmp_path / "none", a="from .b import B\n", b="import os\n", top="import house"
    )
    assert circle(package) == []
    assert imports("house.top", package / "top.py", modules(package)) == {"house"}
