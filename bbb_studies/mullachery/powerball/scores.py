"""How Powerball's classifiers are judged: on held-out draws, and against the exact rule (D37)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.reliability import Reliability, expected_calibration_error, reliability
from bbb_numpy.progress import Done, unseen
from bbb_studies.data import powerball as data

from .models import COST, METHODS, NUMBERS, Fitted, Setup, train

__all__ = ["RULE", "Interval", "Scores", "cross_validate", "folds", "per_draw", "under_the_rules"]

Array = NDArray[Any]
RULE = "exact rule"
CLIP = 1e-6  # log loss takes probabilities of 0 and 1 as this far from them


class Interval(NamedTuple):
    """A mean and its standard error, or for what has no noise the deviation between fits."""

    mean: float
    error: float


class Scores(NamedTuple):
    """What cross-validation says of one classifier."""

    accuracy: Interval
    above_rule: Interval  # accuracy minus that of the exact rule on the same balls
    log_loss: Interval  # nats
    true_accuracy: Interval  # expected under the rules, by their probabilities
    true_log_loss: Interval
    rmse: Interval  # of P(bin 1 | number) against the exact one, over the balls drawn
    calibration_error: float  # of the held-out probabilities, first repeat
    wrong: tuple[float, float]  # of the bin-3 balls those called bin 1; the other way round
    reliability: Reliability  # first repeat
    seconds: float  # per fit
    rhat: tuple[float, float]  # largest in any fit: at the boundary, at any ball; nan without
    divergent: int  # transitions in all fits


def per_draw(scores: Array, draw: Array) -> Interval:
    """Return the mean of held-out scores (M,), and its standard error over whole draws.

    All scores of one draw, its two balls in every repeat, are averaged first: only draws are
    independent, so the error is the deviation of these averages over sqrt(draws). It is that of
    new draws for given classifiers; how these vary with their training rows is measured apart,
    without noise, by `under_the_rules`. `draw` (M,) says to which draw each belongs.
    """
    of = np.bincount(draw, scores) / np.bincount(draw)
    return Interval(float(of.mean()), float(of.std(ddof=1) / np.sqrt(len(of))))


def folds(draws: int, count: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield `count` parts of the draws, at random and of equal size: whole draws are held out."""
    yield from np.array_split(rng.permutation(draws), count)


def _take(rows: data.Examples, keep: Array) -> data.Examples:
    return data.Examples._make(part[keep] for part in rows)


def _log_losses(p: Array, label: Array) -> Array:
    p = np.clip(p, CLIP, 1.0 - CLIP)
    return -np.log(np.where(label == 1, p, 1.0 - p))


def under_the_rules(p: Array, exact: data.Exact) -> dict[str, float]:
    """Return expected accuracy, log loss and RMSE of probabilities (70,) under the rules.

    No held-out rows are needed, so there is no noise of them.
    """
    mass = np.zeros((2, len(NUMBERS)))
    mass[:, : exact.mass.shape[1]] = exact.mass
    total, right = mass.sum(axis=0), np.zeros(len(NUMBERS))
    right[: exact.mass.shape[1]] = np.nan_to_num(exact.probability)
    return {
        "accuracy": float(np.where(p > 0.5, mass[1], mass[0]).sum()),
        "log loss": float(
            sum(part @ _log_losses(p, np.full(p.shape, j)) for j, part in enumerate(mass))
        ),
        "rmse": float(np.sqrt(total @ (p - right) ** 2)),
    }


def cross_validate(
    rows: data.Examples,
    exact: data.Exact,
    setup: Setup,
    seed: int,
    count: int,
    repeats: int,
    done: Done = unseen,
) -> dict[str, Scores]:
    """Judge all classifiers and the exact rule by repeated cross-validation over whole draws.

    There are `count` folds, and the draws are shuffled and parted anew `repeats` times.
    """
    rng = np.random.default_rng(seed)
    rule = np.pad(np.nan_to_num(exact.probability), (0, len(NUMBERS) - exact.mass.shape[1]))
    fits: dict[str, list[Fitted]] = {name: [] for name in (*METHODS, RULE)}
    parts = []
    for repeat in range(repeats):
        for fold, part in enumerate(folds(int(rows.draw.max()) + 1, count, rng)):
            parts.append(np.isin(rows.draw, part))
            for name in METHODS:
                given = _take(rows, ~parts[-1])
                fits[name].append(train(name, given, seed + 1000 * repeat + fold, setup))
                done(COST.get(name, 1))
            fits[RULE].append(Fitted(rule, 0.0))
    held = {
        name: np.concatenate(
            [fit.probability[rows.number[out]] for fit, out in zip(some, parts, strict=True)]
        )
        for name, some in fits.items()
    }
    label, draw = (
        np.concatenate([column[out] for out in parts]) for column in (rows.label, rows.draw)
    )
    best = (held[RULE] > 0.5) == (label == 1)
    return {
        name: _summary(fits[name], held[name], label, draw, best, exact, repeats)
        for name in (*METHODS, RULE)
    }


def _largest_rhat(fits: Sequence[Fitted], limit: int) -> tuple[float, float]:
    """Return the largest R-hat of the logit at the boundary and at any ball; nan without chains."""
    found = np.array([fit.rhat for fit in fits if fit.rhat is not None])
    if not found.size:
        return np.nan, np.nan
    return float(found[:, limit].max()), float(found[:, 1:].max())


def _summary(
    fits: Sequence[Fitted],
    p: Array,
    label: Array,
    draw: Array,
    best: Array,
    exact: data.Exact,
    repeats: int,
) -> Scores:
    each = len(label) // repeats  # of the first repeat, every ball once
    first, table = p > 0.5, reliability(p[:each], label[:each])
    right = (first == (label == 1)).astype(float)
    under = [under_the_rules(fit.probability, exact) for fit in fits]
    of = {
        key: Interval(
            float(np.mean([row[key] for row in under])),
            float(np.std([row[key] for row in under], ddof=1 if len(under) > 1 else 0)),
        )
        for key in under[0]
    }
    return Scores(
        per_draw(right, draw),
        per_draw(right - best, draw),
        per_draw(_log_losses(p, label), draw),
        of["accuracy"],
        of["log loss"],
        of["rmse"],
        expected_calibration_error(table),
        (float(first[label == 0].mean()), float((~first)[label == 1].mean())),
        table,
        float(np.mean([fit.seconds for fit in fits])),
        _largest_rhat(fits, exact.limit),
        sum(fit.divergent for fit in fits),
    )
