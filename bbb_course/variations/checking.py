"""Variations of chapter 11: model checking and calibration."""

from __future__ import annotations

from typing import Any

from ..exercise import given
from ..variants import Variation
from .changes import changed, in_bits, opposite, replaced

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
                drops_mistakes=True,
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
                drops_mistakes=True,
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
                drops_mistakes=True,
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
                {"(low <= y) & (y <= high)": "(low < y) & (y < high)"},
                drops_mistakes=True,
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
                        "(new_low + new_high) / 2 - bound, (new_low + new_high) / 2 + bound"
                    ),
                },
                drops_mistakes=True,
            )
        ],
        [
            replaced(
                "percent",
                "miss",
                given(50, 75, 60),
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
}
