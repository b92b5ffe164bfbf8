"""The exercises as students get them: each solution with a hole in the place of its marked part.

The folder ``solutions`` has a file for each exercise: its statement, and between two marks one way
to answer. An exercise is changed there, and only there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .keys import name_of
from .marks import BEGIN, END, template
from .variants import n_variants, solution_of

__all__ = ["BEGIN", "END", "SOLUTIONS", "copy_templates", "solution_paths", "solution_text",
           "template"]  # fmt: skip

SOLUTIONS = Path(__file__).with_name("solutions")


def solution_paths(names: Sequence[str] = ()) -> list[Path]:
    """Return the files of the solutions in the order of the book.

    Parameters
    ----------
    names : sequence of str
        Chapters by name, ``02_free_energy``, or number, ``02``; exercises of them by name,
        ``02_free_energy/1_softplus``, or number, ``02/1``. By default all.

    Raises
    ------
    ValueError
        If there is no such chapter or exercise.
    """
    paths = sorted(SOLUTIONS.glob("*/*.py"))
    if not names:
        return paths
    chosen: set[Path] = set()
    for name in names:
        chapter, _, exercise = name.partition("/")
        matching = {
            path
            for path in paths
            if chapter in (path.parent.name, path.parent.name[:2])
            and exercise in ("", path.stem, path.stem.partition("_")[0])
        }
        if not matching:
            raise ValueError(
                f"no chapter or exercise is called {name!r}; `bbb-numpy grade --list` shows "
                "them all"
            )
        chosen |= matching
    return sorted(chosen)


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
    folder: Path, names: Sequence[str] = (), seed: str = ""
) -> dict[Path, bool]:
    """Write the templates of exercises into a folder; existing files are kept.

    Parameters
    ----------
    folder : Path
        Made if missing; each chapter becomes a folder in it.
    names : sequence of str
        Chapters and exercises, as `solution_paths` takes them.
    seed : str
        Seed of the variants to write, of the exercises that have any; '' for those of the book.

    Returns
    -------
    dict of Path to bool
        For the file of each exercise, whether it was written: False if it existed.
    """
    written = {}
    for path in solution_paths(names):
        if seed and not n_variants(name_of(path)):
            continue
        target = folder / path.relative_to(SOLUTIONS)
        target.parent.mkdir(parents=True, exist_ok=True)
        written[target] = not target.exists()
        if written[target]:
            target.write_text(template(solution_text(path, seed)), encoding="utf-8")
    return written
