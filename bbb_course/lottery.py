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
BALLS, DRAWS, HISTORIES = 69, 500, 40
REGRET = 0.01  # nats per ball that an answer may lose
COVERAGE = (0.85, 0.97)  # of intervals that say 90 %
# labels are exchanged in each such history: an answer by the rules is seen
EXCHANGED = 10
MANY_TIMES = 5
# an interval that ends so close to the truth holds it: 0 and 1 are truths, too
TOUCH = 0.002


def history(seed: int) -> tuple[Array, Array]:
    """Return the numbers and labels (2 L,) of L draws."""
    rng = np.random.default_rng(seed)
    order = rng.permuted(np.tile(np.arange(1, BALLS + 1), (DRAWS, 1)), axis=1)
    white = np.sort(order[:, : powerball.WHITE], axis=1)
    numbers = white[:, [place - 1 for place in powerball.PLACES]].ravel()
    return numbers, np.tile([1, 0], DRAWS)


def regret(probability: Array) -> float:
    """Return how many nats per ball a stated P(bin 1 | number) (N,) loses to the exact one."""
    truth = powerball.exact(BALLS)
    mass = truth.mass[:, 1:]
    stated = np.clip(np.stack([1 - probability, probability]), 1e-6, 1.0)
    return float(-np.sum(mass * np.log(stated)) - truth.log_loss)


@dataclass(frozen=True, kw_only=True)
class Lottery(Exercise):
    """An exercise whose answer predicts, with intervals: regret and coverage are measured."""

    patience: ClassVar[float] = 3.0

    def judge(self, answer: Any) -> Verdict:
        """Let the answer learn from many histories."""
        truth = powerball.exact(BALLS)
        share = truth.mass[:, 1:].sum(axis=0)
        exact = truth.probability[1:]
        possible = share > 0
        lost, inside, widths = [], [], []
        for seed in range(HISTORIES):
            numbers, labels = history(seed)
            exchanged = seed % EXCHANGED == 0
            if exchanged:
                labels = 1 - labels
            probability, low, high = ask(answer, numbers, labels, BALLS, blocks=3)
            for name, one in (
                ("probability", probability),
                ("low", low),
                ("high", high),
            ):
                if one.shape != (BALLS,) or not ((one >= 0) & (one <= 1)).all():
                    raise Unusable(
                        f"{name} must be {BALLS} numbers from 0 to 1, for the balls 1 to {BALLS}"
                    )
            if exchanged:
                probability, low, high = 1 - probability, 1 - high, 1 - low
            lost.append(regret(probability))
            held = (low - TOUCH <= exact) & (exact <= high + TOUCH)
            inside.append(share[possible] @ held[possible])
            widths.append(share @ (high - low))
        loss, covered = float(np.mean(lost)), float(np.mean(inside))
        score = {"regret": loss, "coverage": covered, "width": float(np.mean(widths))}
        findings = []
        if loss > REGRET:
            says = f"{loss:.4f} nats per ball; at most {REGRET} is asked for"
            if np.mean(lost[::EXCHANGED]) > MANY_TIMES * np.median(lost):
                says += "; most are lost where labels are exchanged: learn from this history alone"
            findings.append(Finding("regret", says))
        if not COVERAGE[0] <= covered <= COVERAGE[1]:
            way = "narrow" if covered < COVERAGE[0] else "wide"
            says = f"intervals that say 90 % hold the truth in {covered:.0%}: they are too {way}"
            findings.append(Finding("coverage", says))
        head = f"regret {loss:.4f} nats, coverage {covered:.0%} of 90 %, width {score['width']:.3f}"
        return Verdict(
            self.name, not findings, "scored", head, tuple(findings), score=score
        )
