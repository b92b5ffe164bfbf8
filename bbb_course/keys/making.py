"""How a key is written: the right answer with a decorator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..exercise import SIZES, Argument, Formula, Wrong

__all__ = ["formula"]


def formula(
    returns: str,
    tags: str,
    slopes: dict[str, str] | None = None,
    wrong: Mapping[str, Mapping[str, str]] | None = None,
    sizes: Mapping[str, int] = SIZES,
    extremes: Sequence[tuple[Any, ...]] = (),
    **arguments: Argument,
) -> Callable[[Callable[..., Any]], Formula]:
    """Make an exercise of its right answer; the arguments are named as the function names them.

    `returns` are names of blocks, `tags` entries of the book, `wrong` known mistakes: edits of the
    source, each old text there once, to new ones and what is said of them; others: `Formula`
    """

    def made(function: Callable[..., Any]) -> Formula:
        return Formula(
            name=function.__name__,
            tags=tuple(tags.split()),
            right=function,
            arguments=arguments,
            returns=tuple(returns.split()),
            slopes=slopes or {},
            wrong=tuple(
                Wrong(old, new, says)
                for old, mistakes in (wrong or {}).items()
                for new, says in mistakes.items()
            ),
            sizes={**SIZES, **sizes},
            extremes=tuple(extremes),
        )

    return made
