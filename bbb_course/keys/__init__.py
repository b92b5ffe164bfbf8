"""The keys: the right answer of each exercise, and the mistakes that are known by name.

One module for each chapter of the book, with its exercises in their order. A right answer is
written from the equation alone; a known mistake is an edit of its source, so that what is said of
it can be proved.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from ..exercise import Exercise

__all__ = ["CHAPTERS", "chapters", "exercises", "find", "name_of"]

CHAPTERS = {  # chapter, as its folder is called: its module here
    "01_a_distribution_over_weights": "weights",
    "02_free_energy": "free_energy",
    "03_training": "training",
    "04_prediction": "prediction",
    "05_priors": "priors",
    "06_likelihoods": "likelihoods",
    "07_estimators": "estimators",
    "08_bounds": "bounds",
    "09_correlated_posteriors": "correlated",
    "10_samplers": "samplers",
    "11_model_checking": "checking",
    "12_what_can_go_wrong": "going_wrong",
}


@cache
def chapters() -> dict[str, tuple[Exercise, ...]]:
    """Return the exercises of each chapter, both in the order of the book."""
    modules = {
        name: import_module(f".{exercise}", __package__)
        for name, exercise in CHAPTERS.items()
    }
    return {
        name: tuple(
            exercise
            for exercise in vars(module).values()
            if isinstance(exercise, Exercise)
        )
        for name, module in modules.items()
    }


@cache
def exercises() -> dict[str, Exercise]:
    """Return all exercises by name, in the order of the book."""
    return {
        exercise.name: exercise
        for exercises_of_chapter in chapters().values()
        for exercise in exercises_of_chapter
    }


def find(name: str) -> Exercise:
    """Return an exercise by its name.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    by_name = exercises()
    if name not in by_name:
        raise ValueError(
            f"no exercise is called {name!r}; `bbb-numpy grade --list` shows them all"
        )
    return by_name[name]


def name_of(path: Path) -> str:
    """Return the exercise that a file answers: its stem, without a number before it."""
    return path.stem.lstrip("0123456789").lstrip("_")
