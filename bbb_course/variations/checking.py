"""Variations of chapter 11: model checking and calibration."""

from __future__ import annotations

from typing import Any

from ..exercise import given, positive
from ..variants import Variation
from .changes import changed, each, in_bits, opposite, replaced

MIDDLE = "(new_low + new_high) / 2"
NOT_A_VARIANCE = {": square the noise scale": ""}


def _readings(number: int) -> Variation:
    return changed(
        f"At each place {number} readings are taken, with noise of their own.",
        {
            "What would a reading of y at phi tell about w, before it is read?": (
                f"What would {number} readings of y at phi tell about w, before they are read?"
            ),
            "By how much it would": "By how much they would",
            "logarithm of 1 + v / sigma^2,": f"logarithm of 1 + {number} v / sigma^2,",
            "is told, 1 + v": f"is told, 1 + {number} v",
            "Return what a measurement at each row": (
                f"Return what {number} measurements at each row"
            ),
        },
        {"ratio = variance": f"ratio = {number} * variance"},
        untrue=("the entropy of y",),
        wrong={
            "np.log1p(ratio) / 2": {
                f"{number} * np.log1p(ratio / {number}) / 2": (
                    f"this is {number} times what one reading tells; the next one tells less."
                ),
            },
            f"{number} * variance": {
                f"{number}**2 * variance": (
                    f"the noise of a mean of {number} has the variance sigma^2 / {number}."
                ),
            },
        },
    )


AXES: dict[str, Any] = {
    "crps_of_draws": [
        [
            changed(
                "The mean over pairs leaves out each draw with itself: T (T - 1) pairs.",
                {
                    "The mean over pairs includes each draw with itself, T^2 pairs.": (
                        "The mean over pairs leaves out each draw with itself: T (T - 1) pairs."
                    ),
                    "Hint: step 7 of D34 has another divisor, for another question.": (
                        "Hint: step 7 of D34 has this divisor."
                    ),
                },
                {
                    "np.mean(abs(draws[:, None] - draws)) / 2": (
                        "np.sum(abs(draws[:, None] - draws)) / (2 * len(draws) * (len(draws) - 1))"
                    )
                },
                untrue=("the half before", "the fair form"),
                wrong={
                    "/ (2 * len(draws) * (len(draws) - 1))": {
                        "/ (len(draws) * (len(draws) - 1))": (
                            "the half before the second term is missing."
                        ),
                        "/ (2 * (len(draws) - 1) ** 2)": (
                            "there are T (T - 1) pairs, not (T - 1)^2."
                        ),
                    },
                },
            ),
            changed(
                "Return another proper score, with squares under a root: both means are of "
                "(1 + d^2)^(1/2), d the difference, not of |d|.",
                {
                    "CRPS = mean over draws of |x - y| - (1/2) mean over all pairs of draws of "
                    "|x - x'|.": (
                        "score = mean over draws of (1 + (x - y)^2)^(1/2)\n"
                        "            - (1/2) mean over all pairs of draws of "
                        "(1 + (x - x')^2)^(1/2)."
                    ),
                    "If all draws are one number it is the absolute error.": (
                        "If all draws are one number it grows with the absolute error."
                    ),
                    "Return the CRPS of the draws at y.": "Return the score of the draws at y.",
                },
                {
                    "np.mean(abs(draws - y))": "np.mean((1 + (draws - y) ** 2) ** 0.5)",
                    "np.mean(abs(draws[:, None] - draws))": (
                        "np.mean((1 + (draws[:, None] - draws) ** 2) ** 0.5)"
                    ),
                },
                untrue=("the fair form", "the error of the mean", "errors are squared"),
                wrong={
                    "np.mean((1 + (draws - y) ** 2) ** 0.5)": {
                        "(1 + (np.mean(draws) - y) ** 2) ** 0.5": (
                            "this is the score of the mean; the mean of the scores is asked for."
                        ),
                        "np.mean(1 + (draws - y) ** 2)": "the root is missing in the first mean.",
                        "np.mean(abs(draws - y))": (
                            "the first mean is of |d|; asked for is that of (1 + d^2)^(1/2)."
                        ),
                        "np.mean(1 + (draws - y) ** 2) ** 0.5": (
                            "the root is taken of the mean; asked for is the mean of the roots."
                        ),
                    },
                },
            ),
        ],
        [
            opposite(
                "Return minus the score, a reward.",
                {
                    "Return one number.": "Return minus it, one number.",
                    "of the draws at y.": "of the draws at y, with a minus.",
                },
                n_blocks=1,
            )
        ],
    ],
    "coverage": [
        [
            Variation(
                asks="Return the share of targets outside.",
                after="1 - returned",
                statement={
                    "Return the share of rows with low <= y <= high.": (
                        "Return the share of rows without low <= y <= high."
                    ),
                    "Return the share of the targets inside their intervals.": (
                        "Return the share of the targets outside their intervals."
                    ),
                },
            )
        ],
        [
            changed(
                "The ends do not belong to the intervals.",
                {
                    "low <= y <= high.": "low < y < high.",
                    "Ends of the intervals; they belong to them.": (
                        "Ends of the intervals; they do not belong to them."
                    ),
                },
                {"low <= y": "low < y", "y <= high": "y < high"},
                untrue=("exchanged",),
                wrong={
                    "(low < y) & (y < high)": {
                        "(low >= y) | (y >= high)": "inside and outside are exchanged.",
                    },
                },
            )
        ],
    ],
    "occams_razor": [
        [
            opposite(
                "Return the logarithm the other way round, in favour of the fair coin.",
                {
                    "Return log P(D | unknown r) - log P(D | fair),": (
                        "Return log P(D | fair) - log P(D | unknown r),"
                    ),
                    "Return the log Bayes factor against the fair coin.": (
                        "Return the log Bayes factor for the fair coin."
                    ),
                },
                n_blocks=1,
            )
        ],
        [
            in_bits({"in nats. Try": "in bits. Try"}),
        ],
        [
            replaced(
                "tails",
                "flips",
                given(8, 5, 6, 7),
                lambda tails: tails + 50,
                "tails = flips - heads",
                "The number of all flips is given, not that of tails.",
                {
                    "heads and tails are whole numbers h and t.": (
                        "heads and flips are whole numbers h and h + t."
                    ),
                    "Try 5 and 3, then 50 and 30.": "Try 5 and 8, then 50 and 80.",
                    "heads, tails : int Numbers of flips that showed each side.": (
                        "heads, flips : int\n        Numbers of heads, and of all flips."
                    ),
                },
            )
        ],
    ],
    "conformal_interval": [
        [
            changed(
                "The score is the distance from the middle of the interval.",
                {
                    "the score of each is how far its target lies beyond the nearer end of its "
                    "interval, and is negative inside.": (
                        "the score of each is how far its target lies from the middle of its "
                        "interval."
                    ),
                    "each moves outwards by the bound, or inwards if it is negative.": (
                        "the middle of the model's, less the bound and plus the bound."
                    ),
                },
                {
                    "np.maximum(low - y, y - high)": "abs(y - (low + high) / 2)",
                    "new_low - bound, new_high + bound": (
                        f"{MIDDLE} - bound, {MIDDLE} + bound"
                    ),
                },
                untrue=(
                    "cut off",
                    "this is the distance",
                    "is outside",
                    "the signs",
                    "halved",
                ),
                wrong={
                    f"{MIDDLE} - bound, {MIDDLE} + bound": {
                        f"{MIDDLE} + bound, {MIDDLE} - bound": (
                            "the signs of the bound: the lower end is the middle less the bound."
                        ),
                        f"{MIDDLE} - bound / 2, {MIDDLE} + bound / 2": (
                            "the bound is halved: it is the distance of each end from the middle."
                        ),
                        "new_low - bound, new_high + bound": (
                            "the bound is added at the ends; it is a distance from the middle."
                        ),
                    },
                    "abs(y - (low + high) / 2)": {
                        "y - (low + high) / 2": "the score is a distance: its sign does not count.",
                        "abs(y - (high - low) / 2)": (
                            "(high - low) / 2 is half of the width; the middle is (low + high) / 2."
                        ),
                    },
                },
            )
        ],
        [
            replaced(
                "percent",
                "miss",
                given(50, 75, 60, 70),
                lambda percent: 100 - percent,
                "percent = 100 - miss",
                "The share that may be missed is given, 100 minus the coverage in percent.",
                {
                    "percent is a whole number, at most 100 B / (B + 1).": (
                        "miss = 100 - percent is a whole number, at least 100 / (B + 1)."
                    ),
                    "a probability of at least `percent` in 100.": (
                        "a probability of at least 1 - `miss` / 100."
                    ),
                    "percent : int Coverage in percent, at most 100 B / (B + 1).": (
                        "miss : int\n        100 minus the coverage in percent, at least "
                        "100 / (B + 1)."
                    ),
                },
            )
        ],
    ],
    "information_gain": [
        each((2, 3, 4), _readings),
        [
            replaced(
                "noise_scale",
                "noise_precision",
                positive(),
                lambda scale: scale**-2.0,
                "noise_scale = noise_precision**-0.5",
                "The noise is given by its precision, 1 / sigma^2.",
                {
                    "noise_scale is a number.": "noise_precision = 1 / sigma^2 is a number.",
                    "noise_scale : float Standard deviation of": (
                        "noise_precision : float\n        One over the variance of"
                    ),
                },
                restated=NOT_A_VARIANCE,
                wrong={
                    "/ noise_scale**2": {
                        "* noise_scale**2": (
                            "the variance is divided by the precision; it is multiplied by it."
                        ),
                    },
                },
            ),
            replaced(
                "noise_scale",
                "noise_variance",
                positive(),
                lambda scale: scale**2.0,
                "noise_scale = noise_variance**0.5",
                "The noise is given by its variance, sigma^2.",
                {
                    "noise_scale is a number.": "noise_variance = sigma^2 is a number.",
                    "noise_scale : float Standard deviation of": (
                        "noise_variance : float\n        Variance of"
                    ),
                },
                restated=NOT_A_VARIANCE,
            ),
        ],
        [
            in_bits(
                {
                    "(B,), in nats.": "(B,), in bits.",
                    "weights, in nats.": "weights, in bits.",
                }
            )
        ],
    ],
}
