"""The part of a solution's file between two marks, of which students get a hole."""

from __future__ import annotations

import re

__all__ = ["BEGIN", "END", "marked_part", "template", "with_marked_part"]

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"  # nbgrader's marks
MARKED = re.compile(rf"^( *){BEGIN}\n(.*?) *{END}\n", re.DOTALL | re.MULTILINE)
HOLE = r"\1# YOUR CODE HERE\n\1raise NotImplementedError\n"


def template(solution: str) -> str:
    """Return the text of a solution with a hole in the place of its marked part.

    Raises
    ------
    ValueError
        If the text does not have exactly one marked part.
    """
    text, n_holes = MARKED.subn(HOLE, solution)
    if n_holes != 1:
        raise ValueError(f"a solution must have one marked part; this has {n_holes}")
    return text


def marked_part(solution: str) -> str:
    """Return the answer in the text of a solution, between its marks; '' if there is none."""
    match = MARKED.search(solution)
    return match[2] if match else ""


def with_marked_part(solution: str, answer: str) -> str:
    """Return the text of a solution with another answer between its marks."""
    return MARKED.sub(
        lambda match: f"{match[1]}{BEGIN}\n{answer}{match[1]}{END}\n", solution
    )
