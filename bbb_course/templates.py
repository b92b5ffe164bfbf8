"""The exercises as students get them: each solution with a hole in the place of its marked part.

The folder ``solutions`` has a file for each exercise: its statement, and between two marks one way
to answer. An exercise is changed there, and only there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from .keys import CHAPTERS

__all__ = ["BEGIN", "END", "SOLUTIONS", "copy_templates", "marked_part", "solution_paths",
           "template"]  # fmt: skip

SOLUTIONS = Path(__file__).with_name("solutions")
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
    """Return the answer in the text of a solution, between its marks."""
    match = MARKED.search(solution)
    return match[2] if match else ""


def solution_paths(chapters: Sequence[str] = ()) -> list[Path]:
    """Return the files of the solutions in the order of the book.

    Parameters
    ----------
    chapters : sequence of str
        Chapters by name, ``02_free_energy``, or number, ``02``. By default all.

    Raises
    ------
    ValueError
        If there is no such chapter.
    """
    numbers = {name[:2]: name for name in CHAPTERS}
    chosen = [numbers.get(chapter, chapter) for chapter in chapters]
    for chapter in chosen:
        if chapter not in CHAPTERS:
            raise ValueError(
                f"no chapter is called {chapter!r}; `bbb-numpy grade --list` shows them all"
            )
    names = dict.fromkeys(chosen) or CHAPTERS
    return [path for name in names for path in sorted((SOLUTIONS / name).glob("*.py"))]


def copy_templates(folder: Path, chapters: Sequence[str] = ()) -> dict[Path, bool]:
    """Write the templates of exercises into a folder; existing files are kept.

    Parameters
    ----------
    folder : Path
        Made if missing; each chapter becomes a folder in it.
    chapters : sequence of str
        As `solution_paths` takes them.

    Returns
    -------
    dict of Path to bool
        For the file of each exercise, whether it was written: False if it existed.
    """
    written = {}
    for path in solution_paths(chapters):
        target = folder / path.relative_to(SOLUTIONS)
        target.parent.mkdir(parents=True, exist_ok=True)
        written[target] = not target.exists()
        if written[target]:
            target.write_text(
                template(path.read_text(encoding="utf-8")), encoding="utf-8"
            )
    return written
