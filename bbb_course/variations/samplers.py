"""Variations of chapter 10: samplers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import positive, real
from ..variants import Variation
from .changes import changed, each, replaced


def _heavy(mass: int) -> Variation:
    return changed(
        f"All momenta belong to the mass {mass}: the kinetic energy is r . r / {2 * mass}.",
        {
            "the energy -log pi(q) + r . r / 2 is": (
                f"the energy -log pi(q) + r . r / {2 * mass} is"
            ),
        },
        {
            "new_r @ new_r / 2": f"new_r @ new_r / {2 * mass}",
            " r @ r / 2": f" r @ r / {2 * mass}",
        },
        untrue=("halves",),
        wrong={
            f"new_log_pi - new_r @ new_r / {2 * mass} - (log_pi - r @ r / {2 * mass})": {
                f"new_log_pi - new_r @ new_r / {mass} - (log_pi - r @ r / {mass})": (
                    "the halves of the kinetic energies are missing."
                ),
                f"new_log_pi - new_r @ new_r * {mass} / 2 - (log_pi - r @ r * {mass} / 2)": (
                    f"the mass divides: r . r / {2 * mass}, since r is the mass times the velocity."
                ),
            },
        },
    )


def _leapfrog_with_mass(mass: int) -> Variation:
    return changed(
        f"All weights have the mass {mass}: the position moves by the momentum divided by it.",
        {"q_new = q + step r_half,": f"q_new = q + step r_half / {mass},"},
        {"new_q = q + step": f"new_q = q + step / {mass}"},
        wrong={
            f"new_q = q + step / {mass}": {
                f"new_q = q + step * {mass}": (
                    "the momentum is divided by the mass, not multiplied by it."
                ),
            },
        },
    )


def _turn_with_mass(mass: int) -> Variation:
    return Variation(
        asks=f"All weights have the mass {mass}: the velocity is r / {mass}.",
        after=f"(returned[0] / {mass}, returned[1] / {mass})",
        statement={
            "(q_right - q_left) . r_right, and going": (
                f"(q_right - q_left) . r_right / {mass},\n\nand going"
            ),
            "(q_right - q_left) . r_left, and that at the right end, with r_right;": (
                f"(q_right - q_left) . r_left / {mass}, and that at the right end, with r_right;"
            ),
        },
    )


AXES: dict[str, Any] = {
    "acceptance_probability": [
        [
            changed(
                "Return Barker's probability, ratio / (1 + ratio), not the largest one.",
                {
                    "Return the largest acceptance probability that keeps the traffic equal.": (
                        "Return Barker's acceptance probability, ratio / (1 + ratio), with the "
                        "ratio of which the largest one that keeps the traffic equal is made."
                    ),
                    "Hint: a probability is at most 1.": (
                        "Hint: that largest one is the ratio or 1."
                    ),
                },
                {
                    "return ratio if ratio < 1 else 1 + 0 * ratio": "return ratio / (1 + ratio)"
                },
                wrong={
                    "ratio / (1 + ratio)": {
                        "ratio": "ratio itself is no probability: divide it by 1 + ratio.",
                    },
                },
            )
        ],
        [
            Variation(
                asks="Return the probability of refusing the step.",
                after="1 - returned",
                statement={
                    "Shapes: four positive numbers:": (
                        "What is asked for is 1 minus this acceptance probability.\n\n"
                        "Shapes: four positive numbers:"
                    ),
                    "Return the probability of accepting the step.": (
                        "Return the probability of refusing the step."
                    ),
                },
            )
        ],
    ],
    "transition_matrix": [
        [
            changed(
                "A step is accepted by Barker's rule, ratio / (1 + ratio).",
                {
                    "Build that of Metropolis and Hastings.": (
                        "Build that of Barker: with the ratio of Metropolis and Hastings, "
                        "ratio / (1 + ratio) is accepted."
                    ),
                    "Return the kernel of Metropolis and Hastings,": "Return the kernel of Barker,",
                },
                {"(ratio if ratio < 1 else 1)": "(ratio / (1 + ratio))"},
            )
        ],
        [
            Variation(
                asks="Steps go from column to row: q and T are transposed.",
                before="q = q.T",
                after="returned.T",
                statement={
                    "entry (i, j) is the probability of going from i to j.": (
                        "entry (i, j) is the probability of going from j to i."
                    ),
                    "p @ T is p, p @ q is not.": "T @ p is p, q @ p is not.",
                    "the proposal from row to column. (Its rows need not add up to 1 here;": (
                        "the proposal from column to row. (Its columns need not add up to 1 here;"
                    ),
                    "Return T (N, N), whose rows add up to 1.": (
                        "Return T (N, N), whose columns add up to 1."
                    ),
                    "Proposal, from row to column.": "Proposal, from column to row.",
                    "Kernel, from row to column.": "Kernel, from column to row.",
                },
            )
        ],
    ],
    "leapfrog": [
        [
            *each((2, 3, 4), _leapfrog_with_mass),
            changed(
                "The halves change their places: half a step of the position, a whole one of the "
                "momentum, half a step of the position.",
                {
                    "half a step of the momentum, a whole step of the position, and the other half "
                    "of the momentum, with the slope at the new position.": (
                        "half a step of the position, a whole step of the momentum, with the slope "
                        "at that position, and the other half of the position."
                    ),
                    "r_half = r + (step / 2) slope(q), q_new = q + step r_half, "
                    "r_new = r_half + (step / 2) slope(q_new).": (
                        "q_half = q + (step / 2) r,\n"
                        "    r_new = r + step slope(q_half),\n"
                        "    q_new = q_half + (step / 2) r_new."
                    ),
                },
                {
                    "half = r + step / 2 * slope(q)": "half = q + step / 2 * r",
                    "new_q = q + step * half": "new_r = r + step * slope(half)",
                    "return new_q, half + step / 2 * slope(new_q)": (
                        "return half + step / 2 * new_r, new_r"
                    ),
                },
                untrue=("half", "moves"),
                wrong={
                    "half = q + step / 2 * r": {
                        "half = q + step * r": (
                            "the first step of the position is a whole one; asked for is half."
                        ),
                    },
                    "new_r = r + step * slope(half)": {
                        "new_r = r - step * slope(half)": (
                            "the sign of the momentum's step: it grows uphill of log pi."
                        ),
                        "new_r = r + step * slope(q)": (
                            "the momentum moves by the slope at the old position."
                        ),
                        "new_r = r + step / 2 * slope(half)": (
                            "the momentum moves half a step; it moves a whole one, the position "
                            "two halves."
                        ),
                    },
                    "return half + step / 2 * new_r": {
                        "return half": "the last half step of the position is missing.",
                        "return half + step / 2 * r": (
                            "the last half step of the position moves by the old momentum."
                        ),
                        "return half + step * new_r": (
                            "the last step of the position is a whole one; asked for is half."
                        ),
                    },
                },
            ),
        ],
    ],
    "log_acceptance_of_hmc": [
        each((2, 3, 4, 5), _heavy),
        [
            replaced(
                "new_log_pi",
                "new_energy",
                real(),
                lambda log_pi: -log_pi,
                "new_log_pi = -new_energy",
                "At the end the potential energy -log pi is given, at the start log pi.",
                {
                    "log_pi and new_log_pi are numbers;": (
                        "log_pi, at the start, and new_energy, -log pi at the end, are numbers;"
                    ),
                    "log_pi, new_log_pi : float Log density of the target at the start and at the "
                    "end.": (
                        "log_pi, new_energy : float\n        Log density of the target at the "
                        "start, and minus it at the end."
                    ),
                },
            )
        ],
    ],
    "u_turn": [
        each((2, 3, 4), _turn_with_mass),
        [
            Variation(
                asks="The momentum at the left end is given backwards in time, as one walks there.",
                before="r_left = -r_left",
                statement={
                    "the momenta there, both forwards in time.": (
                        "the momenta there, r_right forwards and r_left backwards in time."
                    ),
                    "Momenta at the two ends, forwards in time.": (
                        "Momenta at the two ends, the left one backwards in time."
                    ),
                    "gives the other number, with r_left.": (
                        "gives the other number, with minus r_left."
                    ),
                    "Return the slope at the left end, (q_right - q_left) . r_left": (
                        "Return the slope at the left end, -(q_right - q_left) . r_left"
                    ),
                },
            )
        ],
    ],
    "too_wide": [
        [
            replaced(
                "lam",
                "target",
                positive(),
                lambda lam: 1 / lam,
                "lam = 1 / target",
                "The variance of the target is given, 1 / lam.",
                {
                    "Shapes: five numbers; temperature is T.": (
                        "Shapes: five numbers; temperature is T, target is 1 / lam."
                    ),
                    "lam : float Precision of the target.": (
                        "target : float\n        Variance of the target, 1 / lam."
                    ),
                },
            )
        ],
        [
            Variation(
                asks="Return how many times the variance is too large: E x^2 divided by 1 / lam.",
                after="returned * lam",
                untrue=("this is E r^2",),
                statement={
                    "Return the variance E x^2 of the draws.": (
                        "Return E x^2 divided by the variance 1 / lam."
                    ),
                    "Return the variance of the draws.": (
                        "Return the variance of the draws in units of the target's."
                    ),
                },
            )
        ],
        [
            replaced(
                "c",
                "friction",
                positive(),
                lambda c: -np.log(c),
                "",
                "The friction is given, with c = exp(-friction h).",
                {
                    "Shapes: five numbers;": "Shapes: five numbers, friction in the place of c;",
                    "c : float Share of the momentum that a step keeps, from 0 to 1.": (
                        "friction : float\n        Friction, with c = exp(-friction h)."
                    ),
                },
                # (1 + c) / (1 - c) without the digits that 1 - c loses
                edits={"* (1 + c) / (1 - c)": "/ np.tanh(friction * h / 2)"},
                untrue=("upside down",),
                wrong={
                    "/ np.tanh(friction * h / 2)": {
                        "* np.tanh(friction * h / 2)": "the fraction of c is upside down.",
                        "/ np.tanh(friction / 2)": "c is exp(-friction h): h is missing.",
                    },
                },
            )
        ],
    ],
}
