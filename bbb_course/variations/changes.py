"""Variations that several exercises share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..exercise import Argument
from ..variants import Replacement, Variation

__all__ = [
    "MOVES_BY_SIGMA",
    "SIGMOID",
    "changed",
    "each",
    "in_bits",
    "opposite",
    "per_log_sigma",
    "replaced",
    "transposed",
]

SIGMOID = " / (1 + np.exp(-rho))"
MOVES_BY_SIGMA = {  # mistakes where sigma is exp(rho)
    " * sigma": {
        "": "the chain rule: sigma moves with rho by sigma itself.",
        SIGMOID: "the sigmoid is the slope of softplus; exp(rho) has the slope sigma.",
        " / sigma": "sigma is divided by; with rho it moves by sigma.",
    },
}
ALL_NEGATED = "tuple(-block for block in returned)"


def opposite(
    asks: str, statement: Mapping[str, str], n_blocks: int = 2, **options: Any
) -> Variation:
    """Return the variation that asks for minus what the book's exercise asks for.

    Parameters
    ----------
    asks : str
        What is asked for.
    statement : mapping of str to str
        Edits of the solution's file.
    n_blocks : int
        Number of blocks of the exercise.
    **options : Any
        Further fields of the variation.
    """
    after = ALL_NEGATED if n_blocks > 1 else "-returned"
    return Variation(asks=asks, statement=statement, after=after, **options)


def in_bits(
    statement: Mapping[str, str], n_blocks: int = 1, **options: Any
) -> Variation:
    """Return the variation whose result is in bits.

    Parameters
    ----------
    statement : mapping of str to str
        Edits of the solution's file.
    n_blocks : int
        Number of blocks of the exercise, all of them in nats or slopes of nats.
    **options : Any
        Further fields of the variation.
    """
    after = "returned / np.log(2)"
    if n_blocks > 1:
        after = "tuple(block / np.log(2) for block in returned)"
    asks = "All results are in bits: nats divided by log 2."
    return Variation(asks=asks, statement=statement, after=after, **options)


def replaced(
    old: str,
    new: str,
    argument: Argument,
    convert: Callable[[Any], Any],
    before: str,
    asks: str,
    statement: Mapping[str, str],
    **options: Any,
) -> Variation:
    """Return the variation in which an argument stands in the place of another.

    Parameters
    ----------
    old, new : str
        Names of the arguments.
    argument : Argument
        The new one.
    convert : callable
        Takes the old argument to the new one.
    before : str
        Statement that computes the old argument.
    asks : str
        What is given.
    statement : mapping of str to str
        Edits of the solution's file.
    **options : Any
        Further fields of the variation.
    """
    arguments = {old: Replacement(new, argument, convert)}
    return Variation(
        asks=asks, statement=statement, before=before, arguments=arguments, **options
    )


def transposed(
    arguments: Mapping[str, Argument],
    asks: str,
    statement: Mapping[str, str],
    after: str = "",
    **options: Any,
) -> Variation:
    """Return the variation in which matrices are transposed.

    Parameters
    ----------
    arguments : mapping of str to Argument
        The transposed arguments, by name.
    asks : str
        How they are stored.
    statement : mapping of str to str
        Edits of the solution's file.
    after : str
        Expression in `returned`, where the result is transposed, too.
    **options : Any
        Further fields of the variation.
    """
    names = ", ".join(arguments)
    return Variation(
        asks=asks,
        statement=statement,
        before=f"{names} = {', '.join(f'{name}.T' for name in arguments)}",
        after=after,
        arguments={
            name: Replacement(name, argument, np.transpose)
            for name, argument in arguments.items()
        },
        **options,
    )


def changed(
    asks: str, statement: Mapping[str, str], edits: Mapping[str, str], **options: Any
) -> Variation:
    """Return the variation that edits the right answer.

    Parameters
    ----------
    asks : str
        What is asked for.
    statement, edits : mapping of str to str
        Edits of the solution's file and of the right answer.
    **options : Any
        Further fields of the variation.
    """
    return Variation(asks=asks, statement=statement, edits=edits, **options)


def per_log_sigma(statement: Mapping[str, str]) -> Variation:
    """Return the variation that asks for slopes for log sigma in the place of sigma.

    Parameters
    ----------
    statement : mapping of str to str
        Edits of the solution's file.
    """
    return Variation(
        asks="The second slope is that for log sigma, not for sigma.",
        statement=statement,
        after="(returned[0], returned[1] * sigma)",
        returns="d_mu d_log_sigma",
    )


def each(
    values: Sequence[Any], make: Callable[[Any], Variation]
) -> tuple[Variation, ...]:
    """Return a variation for each value of a constant.

    Parameters
    ----------
    values : sequence
        The constants.
    make : callable
        Takes one to its variation.
    """
    return tuple(make(value) for value in values)
