"""Exports of exercises for two graders of courses: Otter-Grader and nbgrader.

For Otter-Grader a test file in its exception-based format, ``tests/NAME.py``. For nbgrader the
instructor's source notebook, ``source/CHAPTER/NAME.ipynb`` with metadata of schema 3: the
statement, a cell with the solution between its marks, and a locked cell of tests. Both call
`judge`, so what a student reads there is the proof or the diagnosis.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .keys import name_of
from .templates import BEGIN, END, SOLUTIONS, solution_text
from .variants import n_variants

__all__ = ["FORMATS", "export"]

FORMATS = ("otter", "nbgrader")

OTTER = """OK_FORMAT = False

from otter.test_files import test_case

name = "{name}"
points = 1


@test_case(points=1, hidden=False)
def test_{name}(env):
    from bbb_course import judge

    assert "{name}" in env, "{name} is not defined"
    verdict = judge("{name}", env["{name}"]{variant})
    assert verdict.passed, str(verdict)
"""

TESTS = """from bbb_course import judge

verdict = judge("{name}", {name}{variant})
assert verdict.passed, str(verdict)
print(verdict)"""


def export(
    form: str, paths: Sequence[Path], folder: Path, seed: str = ""
) -> list[Path]:
    """Write the tests of exercises for another grader, and return the files.

    Parameters
    ----------
    form : str
        'otter' or 'nbgrader'.
    paths : sequence of Path
        Files named as their exercises; for nbgrader with a marked solution.
    folder : Path
        Made if missing.
    seed : str
        Seed of the variants; '' for the exercises of the book. Exercises without a variant are
        left out.

    Raises
    ------
    ValueError
        If a file has no marked solution, for nbgrader, which makes the students' notebooks itself.
    """
    written = []
    variant = f', variant="{seed}"' if seed else ""
    for path in paths:
        name = name_of(path)
        if seed and not n_variants(name):
            continue
        if form == "otter":
            target = folder / "tests" / f"{name}.py"
            text = OTTER.format(name=name, variant=variant)
        else:
            chapter = path.resolve().parent.name
            target = folder / "source" / chapter / f"{path.stem}.ipynb"
            tests = TESTS.format(name=name, variant=variant)
            notebook = _notebook(path, solution_text(path, seed), tests)
            text = json.dumps(notebook, indent=1) + "\n"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def _notebook(path: Path, text: str, tests_code: str) -> dict[str, Any]:
    """Return a source notebook of nbgrader, of the text of a solution and its tests."""
    name = name_of(path)
    if BEGIN not in text or END not in text:
        raise ValueError(
            f"{path} has no solution between its marks; nbgrader makes the students' version of "
            f"files that have one, as those in {SOLUTIONS}"
        )
    tree = ast.parse(text)
    statement = ast.get_docstring(tree) or name
    code = "".join(text.splitlines(keepends=True)[tree.body[0].end_lineno :]).strip()
    marks = {"schema_version": 3, "task": False}
    answer = {
        "grade": False,
        "solution": True,
        "locked": False,
        "grade_id": name,
        **marks,
    }
    tests = {
        "grade": True,
        "solution": False,
        "locked": True,
        "grade_id": f"{name}-tests",
        **marks,
    }
    cells = [
        _cell("markdown", f"statement-{name}", statement, {}),
        _cell("code", f"answer-{name}", code, answer),
        _cell("code", f"tests-{name}", tests_code, {**tests, "points": 1}),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(
    cell_type: str, cell_id: str, source: str, marks: dict[str, Any]
) -> dict[str, Any]:
    """Return a cell of a notebook, in the format of nbformat 4."""
    cell: dict[str, Any] = {
        "cell_type": cell_type,
        "id": cell_id[:64].replace("_", "-"),
        "metadata": {"nbgrader": marks} if marks else {},
        "source": source,
    }
    if cell_type == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell
