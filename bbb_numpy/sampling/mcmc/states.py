"""Protocols of targets and kernels, and the states and reports that all kernels share."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from ...numeric.layout import Array

__all__ = ["Info", "Kernel", "State", "Target", "evaluate", "finite", "init", "select"]


class Target(Protocol):
    """A log density with its gradient: `model.log_joint.LogJoint`, or any such function."""

    def __call__(self, position: Array, /) -> tuple[Array, Array]:
        """Return the log densities of all chains, and their gradients.

        Parameters
        ----------
        position : ndarray (S, D)
            Positions of S chains, float64 or float32, which the function must not change.

        Returns
        -------
        log_density : ndarray (S,)
            Log densities, in nats and up to a constant; -inf or nan outside of the support.
        gradient : ndarray (S, D)
            Gradients of the log density at each position.
        """


class State(NamedTuple):
    """Positions of S chains, with the log density and its gradient at each position."""

    position: Array  # (S, D)  positions of S chains
    log_density: Array  # (S,)  log densities, in nats and up to a constant
    gradient: Array  # (S, D)  gradient of the log density


class Info(NamedTuple):
    """Report of one step, for each of S chains."""

    # (S,)  acceptance probability; for NUTS its mean over the trajectory
    acceptance: Array
    accepted: Array  # (S,) bool  whether the chain has a new position
    # (S,) bool  whether the energy error was above `leapfrog.MAX_ENERGY_ERROR`
    divergent: Array
    # (S,)  energy of the new state: -log density + kinetic energy, in nats
    energy: Array
    gradients: Array  # (S,) int  number of evaluations of the target's gradient
    # (S,) int  number of doublings of a NUTS trajectory; 0 for other kernels
    depth: Array

    @classmethod
    def of(
        cls,
        acceptance: Array,
        accepted: Array,
        divergent: Array,
        energy: Array,
        gradients: int,
    ) -> Info:
        """Return the report of a step with the same number of gradient evaluations in all chains.

        Parameters
        ----------
        acceptance, accepted, divergent, energy : ndarray (S,)
            The fields of these names.
        gradients : int
            Number of evaluations of the target's gradient for each chain.
        """
        zeros = np.zeros(len(energy), int)
        return cls(acceptance, accepted, divergent, energy, zeros + gradients, zeros)


class Kernel(Protocol):
    """A transition of a Markov chain: `MetropolisHastings`, `HMC`, `NUTS`, or one of your own.

    Its state is a `State`, or a named tuple whose first fields are those of `State`; the other
    fields are arrays with one row for each chain, which the kernel carries from step to step.

    A warm-up can tune a kernel that also has a method ``adapt(target, rng, state, warm_up, *,
    dense, target_accept)`` like `Adaptable.adapt`. All methods are pure: the same arguments, with
    the generator in the same state, give the same results.
    """

    def init(self, target: Target, position: Array) -> Any:
        """Return the initial state of S chains, with log density and gradient at `position`.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        position : ndarray (S, D)
            Initial positions.
        """

    def step(self, target: Target, rng: Generator, state: Any) -> tuple[Any, Info]:
        """Return the state after one step of every chain, and a report of the step.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            The only source of randomness.
        state : State
            State that `init` or the step before returned; it is not changed.

        Returns
        -------
        state : State
            The next state, of the same class.
        info : Info
            Report of the step.
        """


def evaluate(target: Target, position: Array) -> tuple[Array, Array]:
    """Return log densities (S,) and gradients (S, D), set to -inf and 0 if either is not finite.

    A position at which floats overflow counts as outside of the support: -inf makes the kernel
    reject it. The rule depends on the position alone, so the leapfrog stays reversible.

    Parameters
    ----------
    target : Target
        Function of the log density (S,) in nats, and of its gradient (S, D).
    position : ndarray (S, D)
        Positions of S chains.
    """
    with np.errstate(all="ignore"):
        return finite(*target(position))


def finite(value: Array, gradient: Array) -> tuple[Array, Array]:
    """Return log densities and gradients, set to -inf and 0 if either is not finite.

    Infinite numbers make NumPy warn here unless the caller silences it, as `evaluate` does.

    Parameters
    ----------
    value : ndarray (S,)
        Log densities of S chains.
    gradient : ndarray (S, D)
        Gradients of the log densities.
    """
    # (S,)  one sum for each chain: finite if its log density and all its gradient are
    sums = value + np.add.reduce(gradient, axis=1)
    inside = np.isfinite(sums)
    if inside.all():
        return value, gradient
    return np.where(inside, value, -np.inf), np.where(inside[:, None], gradient, 0.0)


def init(target: Target, position: Array) -> State:
    """Return the initial state of S chains at `position`, which is copied.

    Parameters
    ----------
    target : Target
        Function of the log density (S,) in nats, and of its gradient (S, D).
    position : ndarray (S, D)
        Initial positions of S chains.

    Raises
    ------
    ValueError
        If `position` is not a matrix, the target does not return a pair of the right shapes, or
        the log density or its gradient is not finite at the position of a chain.
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
    """Return the result of a target if it is a pair of the right shapes, else raise ValueError.

    `position` (S, D) is the argument with which the target was called.
    """
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
    """Return the new state for chains where `take` is true, and the old state for the others.

    Parameters
    ----------
    take : ndarray (S,) of bool
        True for each chain whose new state is taken.
    new, old : State
        States of the same S chains.
    """
    return State(
        np.where(take[:, None], new.position, old.position),
        np.where(take, new.log_density, old.log_density),
        np.where(take[:, None], new.gradient, old.gradient),
    )


NAMED = {"state": {"State": State}}
