"""What the features of a learner stand for: a column of numbers, or the categories of one of text.

The command line fits tables with columns of text; a learner that it made remembers by these how, so
that its file is enough to predict from another table.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LONGEST_CATEGORY", "LONGEST_NAME", "MOST_CATEGORIES", "Column"]

MOST_CATEGORIES = 100  # of a column
LONGEST_CATEGORY = 200  # characters
LONGEST_NAME = 200


@dataclass(frozen=True)
class Column:
    """A column of a table, and the features that stand for it.

    Parameters
    ----------
    name : str
    categories : tuple of str
        Sorted and distinct, one feature of 0 and 1 for each; () for a column of numbers.

    Raises
    ------
    ValueError
        If name or categories are empty, too long, too many, or not in order.
    """

    name: str
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= LONGEST_NAME:
            raise ValueError(f"name must have 1 to {LONGEST_NAME} characters")
        if len(self.categories) > MOST_CATEGORIES:
            raise ValueError(f"accepted are {MOST_CATEGORIES} categories of a column")
        if not all(1 <= len(one) <= LONGEST_CATEGORY for one in self.categories):
            raise ValueError(f"categories must have 1 to {LONGEST_CATEGORY} characters")
        if list(self.categories) != sorted(set(self.categories)):
            raise ValueError("categories must be sorted, and none there twice")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features: ``'size'``, or ``'colour=blue'``, ``'colour=red'``."""
        if not self.categories:
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)
