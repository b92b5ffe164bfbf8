"""The calibration homework: P(bin 1 | ball) of Powerball with intervals, against the exact truth.

The draws are made by the rules, so no file is needed, and the right answer is known (D37).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbb_studies.data import powerball

from .exercise import Exercise, Finding, Unusable, Verdict, ask

__all__ = ["Lottery"]

Array = NDArray[Any]
N_BALLS = 69
N_DRAWS = 500  # of a history
N_HISTORIES = 40
MAX_REGRET = 0.01  # nats per ball
COVERAGE_RANGE = (0.85, 0.97)  # for intervals of 90 %
# In every tenth history labels are exchanged, where an answer from the rules alone fails
EXCHANGE_PERIOD = 10
REGRET_RATIO = 5  # mean regret there over the median: above it, that is said
# An interval that ends this close to the truth holds it, since 0 and 1 are truths too
TRUTH_TOLERANCE = 0.002


def history(seed: int) -> tuple[Array, Array]:
    """Return the numbers and labels (2 L,) of L draws."""
    rng = np.random.default_rng(seed)
    order = rng.permuted(np.tile(np.arange(1, N_BALLS + 1), (N_DRAWS, 1)), axis=1)
    white = np.sort(order[:, : powerball.N_WHITE_BALLS], axis=1)
    numbers = white[:, [column - 1 for column in powerball.LABEL_RANKS]].ravel()
    return numbers, np.tile([1, 0], N_DRAWS)


def regret(probability: Array) -> float:
    """Return the regret, in nats per ball, of predicted P(bin 1 | number) (N,)."""
    truth = powerball.exact(N_BALLS)
    mass = truth.mass[:, 1:]
    stated = np.clip(np.stack([1 - probability, probability]), 1e-6, 1.0)
    return float(-np.sum(mass * np.log(stated)) - truth.log_loss)


@dataclass(frozen=True, kw_only=True)
class Lottery(Exercise):
    """An exercise whose answer predicts, with intervals: regret and coverage are measured."""

    patience: ClassVar[float] = 3.0

    def judge(self, answer: Any) -> Verdict:
        """Let the answer learn from many histories."""
        truth = powerball.exact(N_BALLS)
        share = truth.mass[:, 1:].sum(axis=0)
        exact = truth.probability[1:]
        possible = share > 0
        lost = []
        inside = []
        widths = []
        for seed in range(N_HISTORIES):
            numbers, labels = history(seed)
            exchanged = seed % EXCHANGE_PERIOD == 0
            if exchanged:
                labels = 1 - labels
            probability, low, high = ask(answer, numbers, labels, N_BALLS, blocks=3)
            for name, numbers_of_balls in (
                ("probability", probability),
                ("low", low),
                ("high", high),
            ):
                if (
                    numbers_of_balls.shape != (N_BALLS,)
                    or not ((numbers_of_balls >= 0) & (numbers_of_balls <= 1)).all()
                ):
                    raise Unusable(
                        f"{name} must be {N_BALLS} numbers from 0 to 1, for the balls 1 to "
                        f"{N_BALLS}"
                    )
            if exchanged:
                probability, low, high = 1 - probability, 1 - high, 1 - low
            lost.append(regret(probability))
            holds_truth = (low - TRUTH_TOLERANCE <= exact) & (
                exact <= high + TRUTH_TOLERANCE
            )
            inside.append(share[possible] @ holds_truth[possible])
            widths.append(share @ (high - low))
        loss = float(np.mean(lost))
        covered = float(np.mean(inside))
        score = {"regret": loss, "coverage": covered, "width": float(np.mean(widths))}
        findings = []
        if loss > MAX_REGRET:
            message = f"{loss:.4f} nats per ball; at most {MAX_REGRET} is asked for"
            if np.mean(lost[::EXCHANGE_PERIOD]) > REGRET_RATIO * np.median(lost):
                message += (
                    "; most are lost where labels are exchanged: "
                    "learn from this history alone"
                )
            findings.append(Finding("regret", message))
        if not COVERAGE_RANGE[0] <= covered <= COVERAGE_RANGE[1]:
            adjective = "narrow" if covered < COVERAGE_RANGE[0] else "wide"
            message = (
                f"intervals that say 90 % hold the truth in {covered:.0%}: "
                f"they are too {adjective}"
            )
            findings.append(Finding("coverage", message))
        head = f"regret {loss:.4f} nats, coverage {covered:.0%} of 90 %, width {score['width']:.3f}"
        return Verdict(
            self.name, not findings, "scored", head, tuple(findings), score=score
        )
