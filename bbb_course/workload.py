"""Time and difficulty of an exercise, by a rule on what its solution takes.

Nobody's time was measured. The rule is stated on exercises/README.md, beside the table that is
made of it.
"""

from __future__ import annotations

import ast
import textwrap
from functools import cache
from typing import NamedTuple

from .exercise import Formula
from .keys import find, name_of
from .marks import marked_part
from .templates import SOLUTIONS, solution_paths
from .variants import n_variants

__all__ = ["LEVELS", "Effort", "effort", "effort_table"]

# Minutes that each item takes. Reading counts twice, at a hundred words a minute.
MINUTES_PER_WORD = 0.02
MINUTES_PER_OPERATION = 0.5
MINUTES_PER_FORMULA = 2.0
MINUTES_PER_DERIVATIVE = 3.0  # beside those of a formula
MINUTES_PER_MISTAKE = 0.25  # a known mistake is one that somebody looked for
MINUTES_OF_A_PROGRAM = (
    20.0  # where no formula says what to write, and the answer is scored
)
ROUNDED_TO = 5  # minutes

# Difficulty: a derivative counts 1, ten operations 1, a scored program 3
OPERATIONS_PER_POINT = 10
POINTS_OF_A_PROGRAM = 3.0
LEVELS = {"easy": 1.5, "medium": 3.5, "hard": float("inf")}  # and the points below

OPERATIONS = (
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call),
    *(ast.Subscript, ast.comprehension, ast.For, ast.If),
)


class Effort(NamedTuple):
    """What the solution of an exercise takes.

    Attributes
    ----------
    minutes : int
        Time for one who has read the entries, a multiple of five.
    level : str
        'easy', 'medium' or 'hard'.
    words : int
        Length of the statement.
    operations : int
        Operators, calls, indices, loops and cells of tables in the solution.
    formulas : int
        Results that are asked for; 0 for a scored program.
    derivatives : int
        Those of them that are derivatives.
    mistakes : int
        Mistakes of the key that have a name.
    """

    minutes: int
    level: str
    words: int
    operations: int
    formulas: int
    derivatives: int
    mistakes: int


@cache
def effort(name: str) -> Effort:
    """Return the time and the difficulty of an exercise, by what its solution takes.

    Parameters
    ----------
    name : str
        Name of the exercise, such as 'softplus'.

    Raises
    ------
    ValueError
        If there is no such exercise.

    Examples
    --------
    >>> effort("softplus").minutes, effort("softplus").level
    (5, 'easy')
    """
    exercise = find(name)
    (path,) = (path for path in solution_paths() if name_of(path) == name)
    text = path.read_text(encoding="utf-8")
    words = len((ast.get_docstring(ast.parse(text)) or "").split())
    operations = _operations(marked_part(text))
    formulas = derivatives = mistakes = 0
    is_formula = isinstance(exercise, Formula)
    if isinstance(exercise, Formula):
        formulas = len(exercise.returns)
        derivatives = sum(
            block.startswith("d_") or block in exercise.slopes
            for block in exercise.returns
        )
        mistakes = len(exercise.wrong)
    minutes = (
        words * MINUTES_PER_WORD
        + operations * MINUTES_PER_OPERATION
        + formulas * MINUTES_PER_FORMULA
        + derivatives * MINUTES_PER_DERIVATIVE
        + mistakes * MINUTES_PER_MISTAKE
    )
    points = operations / OPERATIONS_PER_POINT + derivatives
    if not is_formula:
        minutes += MINUTES_OF_A_PROGRAM
        points += POINTS_OF_A_PROGRAM
    rounded = max(ROUNDED_TO, ROUNDED_TO * round(minutes / ROUNDED_TO))
    level = next(level for level, limit in LEVELS.items() if points < limit)
    return Effort(rounded, level, words, operations, formulas, derivatives, mistakes)


def _operations(code: str) -> int:
    """Return the number of operations in the marked part of a solution."""
    body = textwrap.indent(textwrap.dedent(code), "    ")
    nodes = [*ast.walk(ast.parse(f"def solution():\n{body}"))]
    cells = sum(len(node.elts) for node in nodes if isinstance(node, ast.Set))
    return cells + sum(isinstance(node, OPERATIONS) for node in nodes)


def effort_table() -> str:
    """Return the table of all exercises for exercises/README.md."""
    lines = ["| exercise | minutes | difficulty | variants |", "|---|---:|---|---:|"]
    for path in solution_paths():
        minutes, level, *_ = effort(name_of(path))
        where = path.relative_to(SOLUTIONS).as_posix()
        title = where.removesuffix(".py").replace("_", " ").replace("/", " / ")
        link = f"[{title}](../bbb_course/solutions/{where})"
        number = n_variants(name_of(path)) or "none"
        lines.append(f"| {link} | {minutes} | {level} | {number} |")
    names = [name_of(path) for path in solution_paths()]
    total = sum(effort(name).minutes for name in names)
    varied = sum(n_variants(name) > 0 for name in names)
    counts = f"{varied} of {len(names)} have some"
    lines.append(f"| all | {total} | {total / 60:.0f} hours | {counts} |")
    return "\n".join(lines)
