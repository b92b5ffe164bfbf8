"""Chapter 10: samplers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Check, kernels
from ..exercise import formula, given, positive, real, unit


@formula(
    density=positive(),
    new_density=positive(),
    forward=positive(),
    backward=positive(),
    returns="alpha",
    tags="M6",
    wrong={
        "new_density * backward / (density * forward)": {
            "new_density / density": (
                "the proposal's ratio is missing: right for symmetric proposals alone."
            ),
            "new_density * forward / (density * backward)": (
                "the proposal's ratio is upside down: the way back stands above."
            ),
            "density * forward / (new_density * backward)": (
                "the fraction is upside down: better states would be refused."
            ),
        },
        "ratio if ratio < 1 else 1 + 0 * ratio": {
            "ratio": "the minimum with 1 is missing: it is a probability.",
            "ratio / (1 + ratio)": (
                "the rule is Barker's: valid, but it refuses more than it must; asked for is "
                "Metropolis and Hastings'."
            ),
        },
    },
)
def acceptance_probability(
    density: Any, new_density: Any, forward: Any, backward: Any
) -> Any:
    """Return Metropolis and Hastings' acceptance probability.

    Parameters
    ----------
    density, new_density : float
        Densities of the target at the old and the new state, up to a factor.
    forward : float
        Density with which the proposal goes from the old state to the new.
    backward : float
        Density with which it goes from the new state to the old.
    """
    ratio = new_density * backward / (density * forward)
    return ratio if ratio < 1 else 1 + 0 * ratio


@formula(
    p=positive("N"),
    q=positive("NN"),
    returns="T",
    tags="M5 M6",
    sizes={"N": 3},
    wrong={
        "kernel[i, i] = 1 - sum(kernel[i, j] for j in range(n) if j != i)": {
            "kernel[i, i] = q[i, i]": (
                "what is refused is lost: a refused step stays, so the diagonal holds the rest."
            ),
        },
        "q[i, j] * (ratio if ratio < 1 else 1)": {
            "q[i, j]": (
                "this is the proposal itself, which has no detailed balance (the printed proof)."
            ),
            "(ratio if ratio < 1 else 1)": (
                "this is the acceptance probability; a step is proposed first, and then accepted."
            ),
        },
        "p[j] * q[j, i] / (p[i] * q[i, j])": {
            "p[j] / p[i]": "the proposal's ratio is missing: q is not symmetric here.",
            "p[i] * q[i, j] / (p[j] * q[j, i])": "the fraction is upside down.",
        },
    },
)
def transition_matrix(p: Any, q: Any) -> Any:
    """Return the kernel of Metropolis and Hastings on N states.

    Parameters
    ----------
    p : ndarray (N,)
        Target, up to a factor.
    q : ndarray (N, N)
        Proposal, from row to column.

    Returns
    -------
    T : ndarray (N, N)
        Kernel, from row to column.
    """
    n = len(p)
    kernel = 0 * q
    for i in range(n):
        for j in range(n):
            if j != i:
                ratio = p[j] * q[j, i] / (p[i] * q[i, j])
                kernel[i, j] = q[i, j] * (ratio if ratio < 1 else 1)
        kernel[i, i] = 1 - sum(kernel[i, j] for j in range(n) if j != i)
    return kernel


def slope_of_a_quartic(q: Any) -> Any:
    """Return the slope of log pi(q) = -sum(q^4 / 4 + q^2 / 2)."""
    return -(q**3) - q


def slope_of_a_valley(q: Any) -> Any:
    """Return the slope of log pi(q) = sum(q) - sum(q^2) / 2 - sum(q)^2 / 2, with a common cause."""
    return 1 - q - np.sum(q)


@formula(
    q=real("P"),
    r=real("P"),
    step=positive(),
    slope=given(slope_of_a_quartic, slope_of_a_valley),
    returns="new_q new_r",
    tags="M8",
    wrong={
        "half + step / 2 * slope(new_q)": {
            "half": "the last half step of the momentum is missing.",
            "half + step / 2 * slope(q)": "the last half step uses the slope at the old position.",
            "half + step * slope(new_q)": (
                "the last step of the momentum is a whole one; half a step at each end."
            ),
        },
        "half = r + step / 2 * slope(q)": {
            "half = r + step * slope(q)": (
                "the first step of the momentum is a whole one; half a step at each end."
            ),
            "half = r - step / 2 * slope(q)": (
                "the sign of the first half step: the momentum grows uphill of log pi."
            ),
        },
        "new_q = q + step * half": {
            "new_q = q + step * r": "the position moves by the old momentum.",
            "new_q = q + step / 2 * half": (
                "the position moves half a step; it moves a whole one, the momentum two halves."
            ),
        },
    },
)
def leapfrog(q: Any, r: Any, step: Any, slope: Any) -> Any:
    """Return position and momentum after one leapfrog step.

    Parameters
    ----------
    q, r : ndarray (P,)
        Position and momentum.
    step : float
        Step size.
    slope : callable
        Takes a position (P,) to the gradient (P,) of log pi.

    Returns
    -------
    new_q, new_r : ndarray (P,)
        Position and momentum after the step.
    """
    half = r + step / 2 * slope(q)
    new_q = q + step * half
    return new_q, half + step / 2 * slope(new_q)


@formula(
    log_pi=real(),
    new_log_pi=real(),
    r=real("P"),
    new_r=real("P"),
    returns="log_ratio",
    tags="M7",
    wrong={
        "(log_pi - r @ r / 2)": {
            "(log_pi + r @ r / 2)": (
                "the sign of the first kinetic energy: fast starts would be refused."
            ),
        },
        "new_log_pi - new_r @ new_r / 2": {
            "new_log_pi": (
                "the kinetic energies are missing, at the end at least: the ratio is that of "
                "Metropolis' walk."
            ),
        },
        "new_log_pi - new_r @ new_r / 2 - (log_pi - r @ r / 2)": {
            "new_log_pi + new_r @ new_r / 2 - (log_pi + r @ r / 2)": (
                "the signs of the kinetic energies: the log density falls by them."
            ),
            "new_log_pi - log_pi": (
                "the kinetic energies are missing: this is right for a symmetric walk, not for a "
                "trajectory."
            ),
            "new_log_pi - new_r @ new_r - (log_pi - r @ r)": (
                "the halves of the kinetic energies are missing."
            ),
            "log_pi - r @ r / 2 - (new_log_pi - new_r @ new_r / 2)": (
                "the sign: this is the new energy minus the old; the ratio falls when energy rises."
            ),
        },
    },
)
def log_acceptance_of_hmc(log_pi: Any, new_log_pi: Any, r: Any, new_r: Any) -> Any:
    """Return the logarithm of the acceptance ratio of a trajectory.

    Parameters
    ----------
    log_pi, new_log_pi : float
        Log density of the target at the start and at the end.
    r, new_r : ndarray (P,)
        Momenta at the start, as it was drawn, and at the end.
    """
    return new_log_pi - new_r @ new_r / 2 - (log_pi - r @ r / 2)


@formula(
    q_left=real("P"),
    q_right=real("P"),
    r_left=real("P"),
    r_right=real("P"),
    returns="at_left at_right",
    tags="M9",
    wrong={
        "(q_right - q_left) @ r_left": {
            "(q_left - q_right) @ r_left": (
                "the sign, as in the paper's middle term: the distance grows to the right."
            ),
            "q_right @ r_left": "the left end is not subtracted.",
            "(q_right - q_left) @ r_right": "both numbers use the momentum at the right end.",
        },
        "(q_right - q_left) @ r_right": {
            "(q_left - q_right) @ r_right": (
                "the sign, as in the paper's middle term: the distance grows with r at the right "
                "end."
            ),
            "q_right @ r_right": "the left end is not subtracted.",
        },
    },
)
def u_turn(q_left: Any, q_right: Any, r_left: Any, r_right: Any) -> Any:
    """Return the slopes of half the squared distance between the ends.

    Parameters
    ----------
    q_left, q_right : ndarray (P,)
        Positions at the two ends of the trajectory.
    r_left, r_right : ndarray (P,)
        Momenta at the two ends, forwards in time.

    Returns
    -------
    at_left, at_right : float
        Slopes at the left and at the right end.
    """
    return (q_right - q_left) @ r_left, (q_right - q_left) @ r_right


check_a_sampler = Check(name="check_a_sampler", tags=("M5", "M6"), subjects=kernels)


@formula(
    lam=positive(),
    v=positive(),
    temperature=positive(),
    h=positive(),
    c=unit(),
    returns="variance",
    tags="D64",
    wrong={
        "temperature + h**2 / 4 * v * (1 + c) / (1 - c)": {
            "temperature": "the noise of the minibatches is missing: it heats, too.",
            "temperature + h**2 / 4 * v": (
                "(1 + c) / (1 - c) is missing: a momentum that lasts keeps its noise. This is "
                "right for Langevin dynamics alone, c = 0."
            ),
            "temperature + h**2 / 4 * v * (1 - c) / (1 + c)": "the fraction of c is upside down.",
            "temperature + h**2 / 4 * v * temperature * (1 + c) / (1 - c)": (
                "minibatches do not know the temperature: their noise is not multiplied by it."
            ),
        },
        "lam * (1 - h**2 / 4 * lam)": {
            "lam": "the steps' own heat is missing: they are right for small h alone.",
            "lam * (1 + h**2 / 4 * lam)": "the sign: long steps make draws wider.",
            "(1 - h**2 / 4 * lam)": "this is E r^2; E x^2 is E r^2 / lam.",
        },
    },
)
def too_wide(lam: Any, v: Any, temperature: Any, h: Any, c: Any) -> Any:
    """Return the variance of the draws of stochastic gradient HMC.

    Parameters
    ----------
    lam : float
        Precision of the target.
    v : float
        Variance of a minibatch's gradient.
    temperature : float
        Temperature T of the dynamics.
    h : float
        Step size.
    c : float
        Share of the momentum that a step keeps, from 0 to 1.
    """
    heated = temperature + h**2 / 4 * v * (1 + c) / (1 - c)
    return heated / (lam * (1 - h**2 / 4 * lam))
