"""Protocols of targets and kernels, and what every kernel starts from and returns."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from ...numeric.layout import Array

__all__ = ["Info", "Kernel", "State", "Target", "evaluate", "finite", "init", "select"]


class Target(Protocol):
    """A log density with its gradient: `model.log_joint.LogJoint`, or any such function."""

    def __call__(self, position: Array, /) -> tuple[Array, Array]:
        """Return log densities and their gradients, of all chains at once.

        Parameters
        ----------
        position : ndarray (S, D)
            Positions of S chains, float64 or float32. They must not be changed.

        Returns
        -------
        log_density : ndarray (S,)
            In nats, up to a constant; -inf or nan outside of the support.
        gradient : ndarray (S, D)
            Of the log density at each position.
        """


class State(NamedTuple):
    """Positions of S chains, with log density and gradient there."""

    position: Array  # (S, D)
    log_density: Array  # (S,)  in nats, unnormalised
    gradient: Array  # (S, D)  of the log density


class Info(NamedTuple):
    """Report of one step, for each of S chains."""

    acceptance: Array  # (S,)  probability, for NUTS its mean over the trajectory
    accepted: Array  # (S,) bool  whether the chain moved
    # (S,) bool  whether the energy error was above `leapfrog.MAX_ENERGY_ERROR`
    divergent: Array
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
        """Return the report of a step that took the same number of gradients in every chain.

        Parameters
        ----------
        acceptance, accepted, divergent, energy : ndarray (S,)
            As the fields of this class.
        gradients : int
            Evaluations of the target's gradient for each chain.
        """
        zeros = np.zeros(len(energy), int)
        return cls(acceptance, accepted, divergent, energy, zeros + gradients, zeros)


class Kernel(Protocol):
    """A transition of a Markov chain: `MetropolisHastings`, `HMC`, `NUTS`, or one of your own.

    Its state is a `State`, or a named tuple that begins with the fields of one and goes on with
    what the kernel carries from step to step, in arrays of one row per chain.

    A warm-up can tune a kernel that also has ``adapt(target, rng, state, warm_up, *, dense,
    target_accept)``, as `Adaptable.adapt`. All methods are pure: the same arguments, with the
    generator in the same state, give the same results.
    """

    def init(self, target: Target, position: Array) -> Any:
        """Return the state of chains that start at some positions.

        Parameters
        ----------
        target : Target
        position : ndarray (S, D)
        """

    def step(self, target: Target, rng: Generator, state: Any) -> tuple[Any, Info]:
        """Move every chain once.

        Parameters
        ----------
        target : Target
        rng : Generator
            The only source of randomness.
        state : State
            What `init`, or the step before, has returned. It is not changed.

        Returns
        -------
        state : State
            The next state, of the same class.
        info : Info
            Report of the step.
        """


def evaluate(target: Target, position: Array) -> tuple[Array, Array]:
    """Return log density (S,) and gradient (S, D); where either is not finite, -inf and 0.

    A trajectory that leaves what can be computed has left the posterior: -inf rejects it. The
    rule depends on the position alone, so the leapfrog stays reversible.

    Parameters
    ----------
    target : Target
    position : ndarray (S, D)
    """
    with np.errstate(all="ignore"):
        return finite(*target(position))


def finite(value: Array, gradient: Array) -> tuple[Array, Array]:
    """Return log densities and gradients, with -inf and 0 where either is not finite.

    The caller silences NumPy's warnings, as `evaluate` does.

    Parameters
    ----------
    value : ndarray (S,)
    gradient : ndarray (S, D)
    """
    sums = value + np.add.reduce(gradient, axis=1)  # (S,)
    inside = np.isfinite(sums)
    if inside.all():
        return value, gradient
    return np.where(inside, value, -np.inf), np.where(inside[:, None], gradient, 0.0)


def init(target: Target, position: Array) -> State:
    """Return the initial state of chains at the given positions, which are copied.

    Parameters
    ----------
    target : Target
    position : ndarray (S, D)

    Raises
    ------
    ValueError
        If `position` is not a matrix, the target does not return a pair of the right shapes, or
        the density of a chain is not finite and positive there.
    """
    if position.ndim != 2:
        raise ValueError(
            f"position must have shape (chains, numbers); got {position.shape}"
        )
    position = position.copy()
    with np.errstate(all="ignore"):
        returned = target(position) if callable(target) else None
        value, gradient = finite(*_check_pair(returned, position))
    outside = np.flatnonzero(~np.isfinite(value))
    if outside.size:
        raise ValueError(
            f"the log density or its gradient is not finite where chains {outside.tolist()} "
            "start; start them elsewhere, narrow the prior, bring x and y to standard units, or "
            "check the target"
        )
    return State(position, value, gradient)


def _check_pair(returned: Any, position: Array) -> tuple[Array, Array]:
    """Return what a target has returned if it is a pair of the right shapes, else raise."""
    expected = (position.shape[:1], position.shape)
    got = type(returned).__name__
    if isinstance(returned, tuple):
        shapes = tuple(map(np.shape, returned))
        if shapes == expected:
            return returned
        got = f"arrays of shapes {shapes}"
    raise ValueError(
        "a target must be a function of positions (S, D) that returns a pair, log densities (S,) "
        f"and gradients (S, D), here of shapes {expected}; got {got}"
    )


def select(take: Array, new: State, old: State) -> State:
    """Return new states of some chains and old states of the others.

    Parameters
    ----------
    take : ndarray (S,) of bool
        True where the new state is taken.
    new, old : State
    """
    return State(
        np.where(take[:, None], new.position, old.position),
        np.where(take, new.log_density, old.log_density),
        np.where(take[:, None], new.gradient, old.gradient),
    )


NAMED = {"state": {"State": State}}
