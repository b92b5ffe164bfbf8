"""Chapter 11: model checking and calibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Check, predictions
from ..exercise import formula, given, positive, real
from ..lottery import Lottery


@formula(
    draws=real("T"),
    y=real(),
    returns="crps",
    tags="D34",
    wrong={
        "np.mean(abs(draws[:, None] - draws)) / 2": {
            "np.mean(abs(draws[:, None] - draws))": "the half before the second term is missing.",
            "np.sum(abs(draws[:, None] - draws)) / (2 * len(draws) * (len(draws) - 1))": (
                "this is the fair form, divided by T (T - 1): unbiased for the distribution that "
                "was drawn from. Asked for is the score of the draws as they are (D34, step 7)."
            ),
        },
        "- np.mean(abs(draws[:, None] - draws)) / 2": {
            "": (
                "the second term is missing: the score would not be proper, and the sharpest "
                "statement would win."
            ),
            "+ np.mean(abs(draws[:, None] - draws)) / 2": (
                "the sign of the second term: spread is credited, not punished."
            ),
        },
        "np.mean(abs(draws - y))": {
            "abs(np.mean(draws) - y)": (
                "this is the error of the mean; the mean of the errors is asked for."
            ),
            "np.mean((draws - y) ** 2)": "errors are squared; the CRPS has absolute ones.",
        },
    },
)
def crps_of_draws(draws: Any, y: Any) -> Any:
    """Return the CRPS of T draws at a target.

    Parameters
    ----------
    draws : ndarray (T,)
        Draws from the predictive distribution.
    y : float
        Target.
    """
    return np.mean(abs(draws - y)) - np.mean(abs(draws[:, None] - draws)) / 2


@formula(
    low=real("B"),
    high=real("B"),
    y=real("B"),
    returns="share",
    tags="D35",
    sizes={"B": 16},
    edge_cases=[  # ends belong to the interval, and nothing beyond them
        (np.zeros(4), np.ones(4), np.array([0.0, 1.0, 0.5, 2.0])),
        (np.zeros(2), np.ones(2), np.array([-1e-9, 1.000000001])),
    ],
    wrong={
        "(low <= y) & (y <= high)": {
            "(y <= high)": "only the upper end is looked at.",
            "(low <= y)": "only the lower end is looked at.",
            "(low > y) | (y > high)": "inside and outside are exchanged.",
            "(abs(y - (low + high) / 2) <= (high - low))": (
                "the interval is twice as wide: its half-width is half of high - low."
            ),
        },
    },
)
def coverage(low: Any, high: Any, y: Any) -> Any:
    """Return the share of the targets inside their intervals.

    Parameters
    ----------
    low, high : ndarray (B,)
        Ends of the intervals; they belong to them.
    y : ndarray (B,)
        Targets.
    """
    return np.mean(1.0 * ((low <= y) & (y <= high)))


@formula(
    heads=given(5, 0, 1, 2),
    tails=given(3, 0, 1, 2),
    returns="log_bayes_factor",
    tags="M18 M20 M21",
    edge_cases=[(50, 30)],  # whose factorials are no 64-bit integers
    wrong={
        "- (heads + tails) * np.log(0.5)": {
            "": "the fair coin's evidence is missing: the log evidence of the other model is left.",
            "+ (heads + tails) * np.log(0.5)": (
                "the sign of the fair coin's evidence: a ratio is a difference of logarithms."
            ),
        },
        "np.arange(1, heads + tails + 2)": {
            "np.arange(1, heads + tails + 1)": (
                "(h + t + 1)! stands below, not (h + t)!: the integral over r gives one more "
                "factor."
            ),
        },
        "log_evidence = above - below": {
            "log_evidence = above": "1 / (h + t + 1)! is missing in the integral over r (M18).",
            "log_evidence = sum(n * np.log(max(n, 1) / max(heads + tails, 1)) "
            "for n in (heads, tails))": (
                "the best r is put in: the evidence averages over r, and pays for that."
            ),
        },
    },
)
def occams_razor(heads: Any, tails: Any) -> Any:
    """Return the log Bayes factor of a coin of unknown bias against a fair one.

    Parameters
    ----------
    heads, tails : int
        Numbers of flips that showed each side.
    """

    def log_factorial(n: int) -> Any:
        return np.sum(np.log(np.arange(1, n + 1)))

    above = log_factorial(heads) + log_factorial(tails)
    below = np.sum(np.log(np.arange(1, heads + tails + 2)))
    log_evidence = above - below
    return log_evidence - (heads + tails) * np.log(0.5)


check_calibration = Check(name="check_calibration", tags=("D35",), subjects=predictions)
powerball = Lottery(name="powerball", tags=("D37", "D35"))


@formula(
    low=real("B"),
    high=real("B"),
    y=real("B"),
    new_low=real(),
    new_high=real(),
    percent=given(50, 25, 40, 30),
    returns="new_low new_high",
    tags="D77",
    edge_cases=[  # every target well inside: intervals shrink
        (np.zeros(3), np.full(3, 4.0), np.array([1.0, 2.0, 3.0]), -1.0, 3.0, 50),
        (np.zeros(7), np.ones(7), np.arange(7.0), 0.0, 1.0, 25),
    ],
    wrong={
        "-(-percent * (len(y) + 1) // 100)": {
            "-(-percent * len(y) // 100)": (
                "the new row is forgotten: it is one of N + 1 rows, all ranks equally likely."
            ),
            "max(percent * (len(y) + 1) // 100, 1)": (
                "the rank is rounded down: the probability falls below the coverage."
            ),
        },
        "[rank - 1]": {
            "[rank]": "the rank counts from 1, an index from 0: this is the next larger score.",
        },
        "np.maximum(low - y, y - high)": {
            "np.maximum(np.maximum(low - y, y - high), 0)": (
                "scores are cut off at 0: intervals that are too wide would not shrink."
            ),
            "abs(y - (low + high) / 2)": (
                "this is the distance from the middle; the score is that beyond the nearer end."
            ),
            "np.minimum(low - y, y - high)": (
                "a target is outside by the larger of the two distances, not by the smaller."
            ),
            "np.maximum(y - low, high - y)": (
                "the signs: low - y is positive where y lies below the interval."
            ),
        },
        "new_low - bound, new_high + bound": {
            "new_low + bound, new_high - bound": (
                "the signs of the bound: a positive score widens the interval."
            ),
            "new_low - bound / 2, new_high + bound / 2": (
                "the bound is halved: each end moves by all of it."
            ),
        },
    },
)
def conformal_interval(
    low: Any, high: Any, y: Any, new_low: Any, new_high: Any, percent: Any
) -> Any:
    """Return an interval that holds a new target with a guaranteed probability.

    Parameters
    ----------
    low, high : ndarray (B,)
        Ends of the model's intervals of the held-out rows.
    y : ndarray (B,)
        Their targets.
    new_low, new_high : float
        Ends of the model's interval of the new row.
    percent : int
        Coverage in percent, at most 100 B / (B + 1).
    """
    scores = np.maximum(low - y, y - high)
    rank = -(-percent * (len(y) + 1) // 100)  # rounded up
    bound = np.sort(scores)[rank - 1]
    return new_low - bound, new_high + bound


@formula(
    features=real("BI"),
    factor=real("II"),
    noise_scale=positive(),
    returns="gain",
    tags="D84",
    wrong={
        "np.sum((features @ factor) ** 2, axis=1)": {
            "np.sum((features @ factor.T) ** 2, axis=1)": (
                "the factor is transposed: the covariance is L L^T, and phi^T L L^T phi is the "
                "square of the length of L^T phi."
            ),
            "np.sum(features @ factor, axis=1) ** 2": (
                "this is the square of a sum; asked for is the sum of the squares."
            ),
            "np.sum(abs(features @ factor), axis=1)": (
                "a variance is a sum of squares, not of absolute values."
            ),
        },
        "variance / noise_scale**2": {
            "variance / noise_scale": (
                "a variance is divided by a standard deviation: square the noise scale."
            ),
            "variance": "the noise is missing: a reading that is all noise tells nothing.",
            "np.sqrt(variance) / noise_scale": (
                "this is the ratio of standard deviations; the formula has that of the variances."
            ),
        },
        "np.log1p(ratio) / 2": {
            "np.log1p(ratio)": "the half is missing.",
            "np.log(variance + noise_scale**2) / 2": (
                "this is the entropy of y but for a constant: that of the noise is not taken away."
            ),
            "ratio / 2": "the logarithm is missing: this is its value for little information.",
        },
    },
)
def information_gain(features: Any, factor: Any, noise_scale: Any) -> Any:
    """Return what a measurement at each row would tell about the weights, in nats.

    Parameters
    ----------
    features : ndarray (B, I)
        Rows that could be measured; the mean of y is features @ w.
    factor : ndarray (I, I)
        L of the covariance L L^T of the weights w.
    noise_scale : float
        Standard deviation of y around its mean.
    """
    variance = np.sum((features @ factor) ** 2, axis=1)
    ratio = variance / noise_scale**2
    return np.log1p(ratio) / 2
