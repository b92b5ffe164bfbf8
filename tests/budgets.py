"""The statements and the seconds that each folder may have: prints them, exit 1 above a budget.

python tests/budgets.py            # `make lint` runs it
python tests/budgets.py --write    # set the budgets anew: seconds from the last `make test`

A statement is one of Python's; docstrings, comments and blank lines are free. Seconds are those of
a folder's tests without the slow ones, as `pytest --seconds` measures them.
"""

import ast
import json
import math
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "budgets.toml"
SECONDS = ROOT / ".pytest_cache" / "v" / "seconds" / "folders"  # of the last whole run
# These have a row for each of their folders, and one for the modules that are in none of them
DIVIDED = ("bbb_numpy", "tests")
# what is read: the book's, and right and wrong answers to its exercises
FREE = (
    ("exercises",),
    ("figures",),
    ("notebooks",),
    ("bbb_course", "solutions"),
    ("tests", "course", "wrong"),
)
SPARE = 1.03  # of statements, for small changes
A_PART = 50  # and for a part, as the guides of CONTRIBUTING.md add one
SPARE_SECONDS = 2.0  # machines differ


def statements(path):
    """Count the statements of a file."""
    return count(ast.parse(path.read_text("utf-8")))


def count(node):
    """Count the statements inside of a statement; expressions have none."""
    total = 0
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, field, ()):
            text = isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant)
            docstring = text and isinstance(inner.value.value, str)
            total += (isinstance(inner, ast.stmt) and not docstring) + count(inner)
    return total


def folder(path):
    """Return the row that a path, relative to the root, belongs to; None if it is free."""
    parts = Path(path).parts
    free = any(parts[: len(start)] == start for start in FREE)
    if len(parts) < 2 or free or parts[0].startswith(".") or parts[0] in ("build", "dist"):
        return None
    return "/".join(parts[:2]) if parts[0] in DIVIDED and len(parts) > 2 else parts[0]


def files():
    """Return the Python files of every folder."""
    paths_by_folder = {}
    for top in sorted(ROOT.iterdir()):
        if top.is_dir() and folder(f"{top.name}/x.py"):
            for path in top.rglob("*.py"):
                if name := folder(path.relative_to(ROOT)):
                    paths_by_folder.setdefault(name, []).append(path)
    return paths_by_folder


def counted():
    """Return the statements of every folder."""
    return {name: sum(map(statements, paths)) for name, paths in sorted(files().items())}


def table():
    """Return the budgets: of each folder its statements, and of one with tests its seconds."""
    return tomllib.loads(TABLE.read_text("utf-8"))


def above_seconds(taken):
    """Return the folders whose tests took more than their budget, of {folder: seconds}."""
    budgets = table()
    return [name for name, s in taken.items() if s > budgets.get(name, {}).get("seconds", 0)]


def wrong(n_statements):
    """Return what is wrong with the statements that there are now, {folder: number}."""
    budgets = table()
    return sorted(
        [f"{name} is not in the table" for name in n_statements.keys() - budgets.keys()]
        + [f"{name} has no Python, but a row" for name in budgets.keys() - n_statements.keys()]
        + [
            f"{name}: {n_statements[name]:,} of {budgets[name]['statements']:,} statements"
            for name in n_statements.keys() & budgets.keys()
            if n_statements[name] > budgets[name]["statements"]
        ]
    )


def write(n_statements):
    """Set the budgets to what there is, and a little more."""
    seconds = json.loads(SECONDS.read_text("utf-8")) if SECONDS.exists() else {}
    budgets = table()
    rows = []
    for name, count in n_statements.items():
        row = f'"{name}" = {{statements = {max(math.ceil(SPARE * count), count + A_PART)}'
        if name.split("/")[0] == "tests":
            old_seconds = budgets.get(name, {}).get("seconds", 0)
            max_seconds = (
                math.ceil(SPARE_SECONDS * seconds[name]) if name in seconds else old_seconds
            )
            row += f", seconds = {max_seconds}"
        rows.append(row + "}")
    head = TABLE.read_text("utf-8").partition("\n\n")[0]
    TABLE.write_text("\n".join([head, "", *rows, ""]), "utf-8")


if __name__ == "__main__":
    now = counted()
    if sys.argv[1:] == ["--write"]:
        write(now)
    print(f"{sum(now.values()):,} statements in {len(now)} folders, of tests/budgets.toml")
    if mistakes := wrong(now):
        sys.exit("\n".join(["not as in tests/budgets.toml:", *mistakes]))
