"""The exercises as students get them: each solution with a hole in the place of its marked part.

The folder ``solutions`` has a file for each exercise: its statement, and between two marks one way
to answer. An exercise is changed there, and only there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .keys import CHAPTERS, name_of
from .marks import BEGIN, END, template
from .variants import n_variants, solution_of

__all__ = ["BEGIN", "END", "SOLUTIONS", "copy_templates", "solution_paths", "solution_text",
           "template"]  # fmt: skip

SOLUTIONS = Path(__file__).with_name("solutions")


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


def solution_text(path: Path, seed: str = "") -> str:
    """Return the text of a solution, or of the solution of a variant.

    Parameters
    ----------
    path : Path
        File of the book's solution.
    seed : str
        Seed of the variant; '' for the exercise of the book.

    Raises
    ------
    ValueError
        If a seed is given and the exercise has no variant.
    """
    text = path.read_text(encoding="utf-8")
    if not seed:
        return text
    if not n_variants(name_of(path)):
        raise ValueError(f"{name_of(path)} has no variant")
    return solution_of(text, name_of(path), seed)


def copy_templates(
    folder: Path, chapters: Sequence[str] = (), seed: str = ""
) -> dict[Path, bool]:
    """Write the templates of exercises into a folder; existing files are kept.

    Parameters
    ----------
    folder : Path
        Made if missing; each chapter becomes a folder in it.
    chapters : sequence of str
        As `solution_paths` takes them.
    seed : str
        Seed of the variants to write, of the exercises that have any; '' for those of the book.

    Returns
    -------
    dict of Path to bool
        For the file of each exercise, whether it was written: False if it existed.
    """
    written = {}
    for path in solution_paths(chapters):
        if seed and not n_variants(name_of(path)):
            continue
        target = folder / path.relative_to(SOLUTIONS)
        target.parent.mkdir(parents=True, exist_ok=True)
        written[target] = not target.exists()
        if written[target]:
            target.write_text(template(solution_text(path, seed)), encoding="utf-8")
    return written
