"""What every kernel starts from and returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from ...numeric.layout import Array

__all__ = ["Info", "Kernel", "State", "Target", "evaluate", "finite", "init", "select"]

Target = Callable[[Array], tuple[Array, Array]]


class State(NamedTuple):
    """Where S chains are."""

    position: Array  # (S, D)
    log_density: Array  # (S,)  in nats, unnormalised
    gradient: Array  # (S, D)  of the log density


class Info(NamedTuple):
    """What one step did, for each of S chains."""

    acceptance: Array  # (S,)  probability, for NUTS its mean over the trajectory
    accepted: Array  # (S,) bool  whether the chain moved
    divergent: (
        Array  # (S,) bool  whether the energy error passed `leapfrog.MAX_ENERGY_ERROR`
    )
    energy: Array  # (S,)  of the new state: -log density + kinetic
    gradients: Array  # (S,) int  evaluations of the target's gradient
    depth: Array  # (S,) int  doublings of a NUTS trajectory, else 0

    @classmethod
    def of(
        cls,
        acceptance: Array,
        accepted: Array,
        divergent: Array,
        energy: Array,
        gradients: int,
    ) -> Info:
        """Return what a step did that took as many gradients for every chain."""
        zeros = np.zeros(len(energy), int)
        return cls(acceptance, accepted, divergent, energy, zeros + gradients, zeros)


class Kernel(Protocol):
    """What a kernel has: `MetropolisHastings`, `HMC`, `ChEES`, `NUTS`, or one's own.

    A state is a `State`, or a named tuple that begins with its fields and goes on with what the
    kernel carries from step to step, in arrays of one row per chain.
    """

    def init(self, target: Target, position: Array) -> Any:
        """Return the state at `position` (S, D)."""

    def step(self, target: Target, rng: Generator, state: Any) -> tuple[Any, Info]:
        """Move every chain once."""


def evaluate(target: Target, position: Array) -> tuple[Array, Array]:
    """Return log density (S,) and gradient (S, D); where either is not finite, -inf and 0.

    A trajectory that leaves what can be computed has left the posterior: -inf rejects it. The
    rule depends on the position alone, so the leapfrog stays reversible.
    """
    with np.errstate(all="ignore"):
        return finite(*target(position))


def finite(value: Array, gradient: Array) -> tuple[Array, Array]:
    """Return both, with -inf and 0 where either is not finite; the caller silences warnings."""
    sums = value + np.add.reduce(gradient, axis=1)  # (S,)
    inside = np.isfinite(sums)
    if inside.all():
        return value, gradient
    return np.where(inside, value, -np.inf), np.where(inside[:, None], gradient, 0.0)


def init(target: Target, position: Array) -> State:
    """Return the state of S chains that start at `position` (S, D).

    Raises
    ------
    ValueError
        If `position` is not a matrix, the target does not return what it should, or the density
        of a chain is not finite and positive there.
    """
    if position.ndim != 2:
        raise ValueError(
            f"position must have shape (chains, numbers); got {position.shape}"
        )
    position = position.copy()
    with np.errstate(all="ignore"):
        found = target(position) if callable(target) else None
        wanted = (position.shape[:1], position.shape)
        shapes = tuple(map(np.shape, found)) if isinstance(found, tuple) else None
        if shapes != wanted:
            given = (
                type(found).__name__ if shapes is None else f"arrays of shapes {shapes}"
            )
            raise ValueError(
                "a target must be a function of positions (S, D) that returns a pair, log "
                f"densities (S,) and gradients (S, D), here of shapes {wanted}; got {given}"
            )
        value, gradient = finite(*found)
    bad = np.flatnonzero(~np.isfinite(value))
    if bad.size:
        raise ValueError(
            f"the log density or its gradient is not finite where chains {bad.tolist()} start; "
            "start them elsewhere, narrow the prior, bring x and y to standard units, or check the "
            "target"
        )
    return State(position, value, gradient)


def select(take: Array, new: State, old: State) -> State:
    """Return the states of `new` where `take` (S,) is true, else those of `old`."""
    return State(
        np.where(take[:, None], new.position, old.position),
        np.where(take, new.log_density, old.log_density),
        np.where(take[:, None], new.gradient, old.gradient),
    )


NAMED = {"state": {"State": State}}
