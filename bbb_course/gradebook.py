"""Verdicts as a gradebook reads them: the fields of ``bbb-numpy grade --json``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .exercise import Verdict
from .keys import chapters
from .workload import effort

__all__ = ["SCHEMA", "gradebook"]

SCHEMA = 1  # one more whenever a field is renamed, or means something else
MAX_POINTS = 1.0  # of every exercise


def gradebook(
    paths: Sequence[Path], verdicts: Sequence[Verdict], variant: str = ""
) -> dict[str, Any]:
    """Return the verdicts on files in a form that JSON can hold.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    verdicts : sequence of Verdict
        One for each.
    variant : str
        Seed that was asked for; '' if each file named its own.

    Returns
    -------
    dict
        Its fields are described in docs/grading.md.
    """
    chapter_of = {
        exercise.name: chapter
        for chapter, exercises in chapters().items()
        for exercise in exercises
    }
    answers = [
        {
            "file": str(path),
            "chapter": chapter_of[verdict.exercise],
            **verdict.as_dict(),
            "points": MAX_POINTS * verdict.passed,
            "max_points": MAX_POINTS,
            "minutes": effort(verdict.exercise).minutes,
            "message": str(verdict),
        }
        for path, verdict in zip(paths, verdicts, strict=True)
    ]
    return {
        "schema": SCHEMA,
        "variant": variant,
        "passed": sum(verdict.passed for verdict in verdicts),
        "of": len(answers),
        "answers": answers,
    }
