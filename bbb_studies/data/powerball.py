r"""US Powerball draws, and the exact probabilities that belong to them (floor 5, D37).

Five white balls of N are drawn without replacement and sorted, w1 < ... < w5. The paper's task:
given the number of one ball, is it from bin 1 (w1, label 1) or bin 3 (w3, label 0)? The rules of
the game answer it: `exact` has P(bin 1 | number) and what no classifier can beat.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .locate import SETS, DamagedDataError, increasing_days, locate, numbers, read

Array = NDArray[Any]
Int = NDArray[np.int_]
FILE: str = SETS["powerball"]["file"]
FILE_COLUMNS: list[str] = SETS["powerball"]["columns"]
N_WHITE_BALLS = 5  # balls per draw
LABEL_RANKS = (1, 3)  # ranks of the balls with label 1 and with label 0
# The first day of each rule and its white balls; the first began in 2009, before the file.
WHITE_BALL_RULES = (("2009-01-07", 59), ("2015-10-07", 69))
# The first day of each rule and its Powerballs.
POWERBALL_RULES = (("2009-01-07", 39), ("2012-01-15", 35), ("2015-10-07", 26))


class Draws(NamedTuple):
    """Draws in the order of their days."""

    days: NDArray[np.datetime64]  # (L,)
    white: Int  # (L, 5)  increasing in every row
    balls: Int  # (L,)  white balls in the urn that day: 59 or 69
    # (L,)  the Powerball, from an urn of its own; None if not played
    red: Int | None = None


class Examples(NamedTuple):
    """Two examples per draw, side by side."""

    number: Int  # (2L,)  of one ball
    label: Int  # (2L,)  1 from bin 1 (w1), 0 from bin 3 (w3)
    # (2L,)  which draw: both examples of one belong on the same side of a split
    draw: Int
    balls: Int  # (2L,)  in the urn: known that day, and not given to the classifiers


class Exact(NamedTuple):
    """The joint distribution of bin and number for one of the two balls at random."""

    # (2, N + 1)  P(label, number) at numbers 0 to N; row 0 is bin 3, row 1 bin 1
    mass: Array
    shares: Mapping[int, float]  # share of the draws, by number of balls in the urn

    @property
    def probability(self) -> Array:
        """P(bin 1 | number) (N + 1,); nan for numbers that cannot be drawn."""
        total = self.mass.sum(axis=0)
        return np.divide(
            self.mass[1], total, out=np.full(total.shape, np.nan), where=total > 0
        )

    @property
    def accuracy(self) -> float:
        """Largest expected accuracy of any classifier, reached by naming the likelier bin."""
        return float(self.mass.max(axis=0).sum())

    @property
    def limit(self) -> int:
        """The largest number for which bin 1 is the likelier bin."""
        return int(np.flatnonzero(self.mass[1] > self.mass[0]).max())

    @property
    def log_loss(self) -> float:
        """The least mean -log p(label | number), in nats: the entropy of the bin given it."""
        possible = self.mass[self.mass > 0]
        total = np.broadcast_to(self.mass.sum(axis=0), self.mass.shape)[self.mass > 0]
        return float(possible @ np.log(total / possible))

    @property
    def draw_deviation(self) -> float:
        """Standard deviation of the accuracy on one draw, whose two balls are dependent."""
        bin_1_likelier = self.mass[1] > self.mass[0]
        mean = square = 0.0
        for balls, share in self.shares.items():
            # low is w1, high is w3; w2 lies between, w4 and w5 above.
            low, high = np.indices((balls + 1, balls + 1))
            n_between = (high - low - 1).clip(0)
            n_above = balls - high
            weight = (
                share
                * (low > 0)
                * n_between
                * n_above
                * (n_above - 1)
                / 2
                / comb(balls, N_WHITE_BALLS)
            )
            right = 0.5 * (bin_1_likelier[low].astype(float) + ~bin_1_likelier[high])
            mean += float((weight * right).sum())
            square += float((weight * right**2).sum())
        return sqrt(max(square - mean**2, 0.0))


def mass_of_place(balls: int, rank: int) -> Array:
    r"""Return the distribution of the k-th smallest of five white balls (D37).

    .. math:: P(w_k = v) = \binom{v - 1}{k - 1} \binom{N - v}{5 - k} \Big/ \binom N5

    Parameters
    ----------
    balls : int
        White balls N >= 5 in the urn.
    rank : int
        k; 1 is the smallest of the five.

    Returns
    -------
    array (balls + 1,)
        P(w_k = v) at v = 0 to `balls`.
    """
    ways = [
        comb(v - 1, rank - 1) * comb(balls - v, N_WHITE_BALLS - rank)
        for v in range(1, balls + 1)
    ]
    return np.array([0, *ways], float) / comb(balls, N_WHITE_BALLS)  # D37


def exact(shares: int | Mapping[int, float]) -> Exact:
    """Return the exact joint distribution of bin and number (D37).

    `shares` are the balls in the urn; or their shares of the draws, for a classifier that is not
    told by which rule a ball was drawn.
    """
    share_by_balls = shares if isinstance(shares, Mapping) else {shares: 1.0}
    mass = np.zeros((2, max(share_by_balls) + 1))
    for balls, share in share_by_balls.items():
        for label, rank in ((1, LABEL_RANKS[0]), (0, LABEL_RANKS[1])):
            mass[label, : balls + 1] += 0.5 * share * mass_of_place(balls, rank)
    return Exact(mass, share_by_balls)


def load(until: str | None = None) -> Draws:
    """Load the draws from the data folder, up to a last day such as ``"2017-12-31"``.

    Raises
    ------
    MissingDataError
        If the file is not there.
    DamagedDataError
        If days do not increase, or balls are not what the rules of the day allow.
    ValueError
        If `until` is no day, or leaves no draw.
    """
    text = read(locate("powerball"), FILE_COLUMNS)[1]
    days = increasing_days(FILE, text[:, 0])
    values = numbers(FILE, text[:, 1:7], FILE_COLUMNS[1:7])
    white = values[:, :5].astype(int)
    red = values[:, 5].astype(int)
    balls = urn(days, WHITE_BALL_RULES)
    reds = urn(days, POWERBALL_RULES)
    is_valid = (
        (values % 1 == 0).all(axis=1) & (white[:, 0] >= 1) & (white[:, -1] <= balls)
    )
    is_valid &= (np.diff(white, axis=1) > 0).all(axis=1) & (red >= 1) & (red <= reds)
    for row in np.flatnonzero(~is_valid):
        raise DamagedDataError(
            f"{FILE}: data row {row + 1} ({days[row]}) must have five increasing white balls "
            f"from 1 to {balls[row]} and a Powerball from 1 to {reds[row]}; it has "
            f"{', '.join(text[row, 1:7])}"
        )
    keep = slice(None) if until is None else days <= np.datetime64(until, "D")
    if not len(days[keep]):
        raise ValueError(
            f"until must be {days[0]} or later, the day of the first draw; got {until}"
        )
    return Draws(days[keep], white[keep], balls[keep], red[keep])


def urn(days: NDArray[np.datetime64], rules: tuple[tuple[str, int], ...]) -> Int:
    """Return the number of balls in the urn on each day.

    Parameters
    ----------
    days : array (L,) of datetime64
        Days of the draws.
    rules : tuple of (day, count)
        `WHITE_BALL_RULES` or `POWERBALL_RULES`.

    Returns
    -------
    array (L,) of int
    """
    balls = np.zeros(len(days), int)
    for day, count in rules:
        balls[days >= np.datetime64(day)] = count
    return balls


def rules(draws: Draws) -> dict[int, float]:
    """Return the share of the draws by number of balls in the urn."""
    counts = dict(zip(*np.unique(draws.balls, return_counts=True), strict=True))
    return {
        int(balls): float(count) / len(draws.balls) for balls, count in counts.items()
    }


def examples(draws: Draws) -> Examples:
    """Return both examples of every draw."""
    count = len(draws.days)
    return Examples(
        draws.white[:, [rank - 1 for rank in LABEL_RANKS]].ravel(),
        np.tile([1, 0], count),
        np.repeat(np.arange(count), 2),
        np.repeat(draws.balls, 2),
    )
