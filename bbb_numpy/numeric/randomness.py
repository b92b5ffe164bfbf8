"""The argument `random_state`: None, a seed or a generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arguments import whole

__all__ = ["check_generator", "check_random_state"]


def check_generator(random_state: Any, name: str = "random_state") -> np.random.Generator:
    """Return a generator of one's own for None, a whole number >= 0 or a generator.

    An object (`numpy.random.Generator` or the older `RandomState`) is asked for a seed, and
    so moves on: the next call gives another generator.
    """
    check_random_state(random_state, name)
    if isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state.integers(2**32, size=4))
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(None if random_state is None else int(random_state))


def check_random_state(random_state: Any, name: str = "random_state") -> None:
    """Raise unless `check_generator` can use `random_state`; draws nothing."""
    if random_state is None or isinstance(
        random_state, (np.random.Generator, np.random.RandomState)
    ):
        return
    try:
        whole(name, random_state, 0, None)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must be None, a whole number >= 0, a numpy.random.Generator or a "
            f"numpy.random.RandomState; got {str(error).partition('; got ')[2]}"
        ) from None
