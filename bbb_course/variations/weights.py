"""Variations of chapter 1: why a distribution over weights."""

from __future__ import annotations

from typing import Any

from ..exercise import positive
from ..variants import Variation
from .changes import changed, each, in_bits, opposite, replaced


def _square_with_mean(mean: int) -> Variation:
    return changed(
        f"Before the measurements w is believed to be about {mean}, not 0.",
        {
            "believed to be about 0,": f"believed to be about {mean},",
            "(1/2) w^2": f"(1/2) (w - {mean})^2",
        },
        {
            "(x @ y) / noise**2 / precision": (
                f"((x @ y) / noise**2 + {mean} / prior**2) / precision"
            ),
        },
        untrue=("the linear term",),
        restated={
            "the prior is missing: this is least squares, to which one adds 1/prior^2": (
                "the prior's precision 1/prior^2 is missing in the sum"
            )
        },
        wrong={
            "((x @ y) / noise**2 +": {
                "(x @ y +": "the noise is missing in the linear term, x.y / noise^2 of it.",
            },
            f"{mean} / prior**2)": {
                f"{mean})": (
                    f"the prior's mean is multiplied by its precision: {mean} / prior^2 is added."
                ),
            },
        },
    )


def _mean_of_measurements(number: int) -> Variation:
    return changed(
        f"The new y is the mean of {number} measurements at the same force, each with noise of "
        "its own.",
        {
            "and the measurement adds its own noise.": (
                f"and {number} measurements of it, whose mean is y, add their own noise, each of "
                "the standard deviation `noise`."
            ),
        },
        {"noise**2": f"noise**2 / {number}"},
        untrue=("standard deviations are added", "square it before"),
        wrong={
            f"x**2 * variance + noise**2 / {number}": {
                f"x**2 * variance + noise / {number}": (
                    "the noise is a standard deviation: square it before it is added to a variance."
                ),
                f"(abs(x) * variance**0.5 + noise / {number}**0.5) ** 2": (
                    "standard deviations are added; of independent numbers the variances add up."
                ),
                f"(x**2 * variance + noise**2) / {number}": (
                    "w is the same in all measurements: of the noise alone there is a mean."
                ),
                f"x**2 * variance + noise**2 * {number}": (
                    "this is the variance of a sum; a mean varies less than one measurement."
                ),
                f"x**2 * variance + noise**2 / {number}**2": (
                    "this is as if one noise were divided: the variance of a mean falls with the "
                    "number, not with its square."
                ),
            },
        },
    )


def _evidence_with_mean(mean: int) -> Variation:
    return changed(
        f"The prior of w has the mean {mean}, not 0.",
        {
            "with w from N(0, prior^2)": f"with w from N({mean}, prior^2)",
            "So y has mean 0 and a variance": f"So y has the mean m = {mean} x and a variance",
            "log N(y; 0, v) = -y^2 / (2 v)": "log N(y; m, v) = -(y - m)^2 / (2 v)",
        },
        {"-(y**2) / (2 * variance)": f"-((y - {mean} * x) ** 2) / (2 * variance)"},
        restated={"at w = 0": f"at w = {mean}"},
        wrong={
            f"(y - {mean} * x)": {
                f"(y - {mean})": f"w has the mean {mean}, so y has the mean {mean} x.",
            },
        },
    )


def _flips_of_several(number: int) -> Variation:
    return Variation(
        asks=f"Each flip was seen {number} times over, and counts as {number} flips.",
        statement={
            "multiplies it by r, one that shows tails by 1 - r.": (
                f"multiplies it by r^{number}, one that shows tails by (1 - r)^{number}."
            ),
        },
        before=f"flips = np.repeat(flips, {number})",
    )


AXES: dict[str, Any] = {
    "completing_the_square": [
        [
            replaced(
                "prior",
                "prior_precision",
                positive(),
                lambda sd: sd**-2.0,
                "prior = prior_precision**-0.5",
                "The prior is given by its precision, one over its variance.",
                {
                    "give or take `prior`;": "with the precision `prior_precision`;",
                    "/ prior^2 + (1/2) sum_i": "prior_precision + (1/2) sum_i",
                    "prior and noise are standard deviations, two numbers.": (
                        "prior_precision is a number, and noise, a standard deviation, too."
                    ),
                    "prior : float Standard deviation of w before": (
                        "prior_precision : float\n        Precision of w before"
                    ),
                },
            )
        ],
        each((1, 2, 3, 5), _square_with_mean),
        [
            Variation(
                asks="Return the posterior's precision in the place of its variance.",
                after="(returned[0], 1 / returned[1])",
                returns="mean precision",
                untrue=("this is the standard deviation",),
                restated={
                    "this is the precision; the variance is one over it": (
                        "this is the variance; the precision is one over it"
                    )
                },
                statement={
                    "Return mean and variance. Hint": "Return mean and precision.\n\nHint",
                    "Return mean and variance of the": "Return mean and precision of the",
                    "mean, variance : float": "mean, precision : float",
                },
            )
        ],
    ],
    "posterior_predictive": [
        [
            replaced(
                "variance",
                "sd",
                positive(),
                lambda variance: variance**0.5,
                "variance = sd**2",
                "What is known of w is given by its standard deviation.",
                {
                    "some `mean` and `variance`.": "some `mean` and standard deviation `sd`.",
                    "mean, variance (of w) and noise (a standard deviation)": (
                        "mean, sd (of w) and noise (standard deviations)"
                    ),
                    "mean, variance : float Of the posterior of w.": (
                        "mean, sd : float\n        Mean and standard deviation of w."
                    ),
                },
            )
        ],
        [
            Variation(
                asks="Return the standard deviation of the new y, not its variance.",
                after="(returned[0], returned[1] ** 0.5)",
                returns="prediction spread",
                statement={
                    "the mean and the variance of the new y,": (
                        "the mean and the standard deviation of the new y,"
                    ),
                    "Return mean (N,) and variance (N,)": (
                        "Return mean (N,) and standard deviation (N,)"
                    ),
                    "total : ndarray (N,) Variance of": (
                        "spread : ndarray (N,)\n        Standard deviation of"
                    ),
                },
            )
        ],
        each((2, 3, 4), _mean_of_measurements),
    ],
    "evidence_of_one_datum": [
        each((1, 2, 3, 5), _evidence_with_mean),
        [in_bits({"in nats, with all constants": "in bits, with all constants"})],
        [
            opposite(
                "Return minus the log density.",
                {
                    "Return the log density,": "Return minus the log density,",
                    "Return log P(y).": "Return minus log P(y).",
                },
                n_blocks=1,
            )
        ],
    ],
    "conjugate_coin": [
        each((2, 3, 4), _flips_of_several),
        [
            Variation(
                asks=(
                    "Return the posterior's mean and variance: those of a Beta(a, b) are "
                    "a / (a + b) and a b / ((a + b)^2 (a + b + 1))."
                ),
                after=(
                    "(returned[0] / (returned[0] + returned[1]), returned[0] * returned[1] / "
                    "((returned[0] + returned[1]) ** 2 * (returned[0] + returned[1] + 1)))"
                ),
                returns="mean variance",
                statement={
                    "Return the posterior's two parameters.": (
                        "Return the posterior's mean and variance."
                    ),
                    "Return the parameters (heads', tails') of the Beta posterior.": (
                        "Return mean and variance of the Beta posterior."
                    ),
                    "heads, tails : float Parameters of the posterior, in the order of alpha "
                    "and beta.": "mean, variance : float\n        Of the posterior of r.",
                },
            )
        ],
        [
            Variation(
                asks="In flips 1 is tails and 0 is heads.",
                before="flips = 1 - flips",
                statement={
                    "flips is (N,), 1 for heads and 0 for tails.": (
                        "flips is (N,), 1 for tails and 0 for heads."
                    ),
                    "flips : ndarray (N,) 1 for heads and 0 for tails.": (
                        "flips : ndarray (N,)\n        1 for tails and 0 for heads."
                    ),
                },
            )
        ],
    ],
    "kl_of_two_normals": [
        [
            Variation(
                asks="Return the divergence the other way round, KL(p || q).",
                before="mean, sd, prior_mean, prior = prior_mean, prior, mean, sd",
                restated={
                    "where q is narrow": "where p is narrow",
                    "the variance of q": "the variance of p",
                    "by q's variance: the density inside log p is the prior's": (
                        "by p's variance: the density inside log q is q's"
                    ),
                    "2 prior^2": "2 sd^2",
                    "KL(p || q)": "KL(q || p)",
                },
                statement={
                    "Return KL(q || p). Hint": (
                        "Return KL(p || q): q and p change their places in the formula.\n\nHint"
                    ),
                    "You need E[(w - mean)^2] and E[(w - prior_mean)^2] under q.": (
                        "For KL(p || q) take minus this difference, under p."
                    ),
                    "Return KL(q || p) in nats.": "Return KL(p || q) in nats.",
                },
            )
        ],
        [
            in_bits(
                {
                    "standard deviations. Return": "standard deviations. In bits, return",
                    "in nats.": "in bits.",
                }
            )
        ],
        [
            replaced(
                "prior",
                "prior_precision",
                positive(),
                lambda sd: sd**-2.0,
                "prior = prior_precision**-0.5",
                "p is given by its precision, prior_precision = 1 / prior^2.",
                {
                    "four numbers; sd and prior are standard deviations.": (
                        "four numbers; sd is a standard deviation, prior_precision is one over "
                        "the square of prior."
                    ),
                    "prior : float Standard deviation of p.": (
                        "prior_precision : float\n        Precision of p, one over its variance."
                    ),
                },
            )
        ],
    ],
}
