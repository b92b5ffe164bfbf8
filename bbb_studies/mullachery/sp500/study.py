"""S&P 500: is the next day's direction predictable from past prices? (Mullachery et al.; D38).

Walk-forward: every year is forecast by what was known when it began. The paper reports nothing;
here every forecaster is set against the share of rises so far, with errors that respect that the
companies of one day move together.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import NormalDist

import numpy as np

from bbb_numpy.progress import steps
from bbb_studies.comparing import (
    Claim,
    captioned,
    claims,
    plus_minus,
    table,
    table_of_columns,
    write,
)
from bbb_studies.data import sp500 as data

from . import plots
from .models import FORECASTERS, NUTS_NAME, VI_NAME, Effort
from .scores import BASE, FIRST, THIN, Facts, Scores, Walk, facts, leak, measure, walk_forward

__all__ = ["SECOND", "claims_of_the_paper", "reproduce"]

SECOND, SECOND_FIRST = "close_505_2013_2018.csv.gz", 2015  # a second table, baselines alone
BASELINES = (BASE, "last value", "logistic regression")
SCORES = ("accuracy", "log loss", "Brier")


def reproduce(
    out: Path, seed: int = 0, *, effort: Effort | None = None, progress: bool | None = None
) -> str:
    """Run everything, write ``forecasts.png`` and ``numbers.json``, return the tables."""
    prices, second = data.load(), data.load(SECOND)
    rows, others = data.rows(prices), data.rows(second)
    baselines = {name: FORECASTERS[name] for name in BASELINES}
    work = len(list(data.splits(rows, FIRST))) * (len(FORECASTERS) + 1)
    work += len(list(data.splits(others, SECOND_FIRST))) * len(baselines)
    with steps(work, progress) as done:
        walk = walk_forward(rows, effort=effort, seed=seed, done=done)
        other = walk_forward(others, forecasters=baselines, first=SECOND_FIRST, done=done)
        leaked = leak(rows, len(prices.symbols), done=done)
    both = {"first": facts(prices, walk), "second": facts(second, other)}
    scores, other_scores = measure(walk), measure(other)
    found = {
        "seed": seed,
        "facts": both["first"],
        "accuracy with a planted leak": leaked,
        "forecasters": scores,
        "second table": both["second"],
        "its forecasters": other_scores,
    }
    write(out, {"forecasts": plots.draw(walk, scores)}, found)
    return _tables(both, walk, scores, leaked, other_scores)


def _tables(
    prices: Mapping[str, Facts],
    walk: Walk,
    scores: Mapping[str, Scores],
    leaked: float,
    second: Mapping[str, Scores],
) -> str:
    parts = {
        "S&P 500, next-day direction, refitted every year on all that was known; on the second "
        "table baselines\nalone. +-: standard error, clustered by day; design effect: its square "
        "over that of independent rows.": _prices(prices),
        "Gained: over climatology on the same rows; ECE: expected calibration error in ten bins "
        "of equal mass\n(that of right probabilities by chance, if rows were independent).": (
            _scores(scores)
        ),
        "Gained, in standard errors; without a real gain one number of the table exceeds 'of all' "
        "and one\nplanned ahead 'of one', up or down, with probability 5 % at most.": (
            _ratios(scores)
        ),
        "Stated probabilities of a rise, and a planted leak.": _probabilities(walk, leaked),
        "Second table: gained over climatology.": _gains(second),
    }
    judged = claims(
        "The paper names the task and prints nothing; here: scores with a gain beyond 'of all'.",
        "the paper",
        claims_of_the_paper(scores),
    )
    return f"{captioned(parts)}\n\n{judged}"


def _prices(prices: Mapping[str, Facts]) -> str:
    every = prices.values()
    errors = [f.naive_error * f.design_effect**0.5 for f in every]
    columns = {
        "prices": list(prices),
        "companies": [f"{f.companies}" for f in every],
        "left out": [f"{f.dropped}" for f in every],
        "days": [f"{f.days}" for f in every],
        "forecast": [f"{f.years[0]} to {f.years[1]}" for f in every],
        "rows": [f"{f.rows_tested}" for f in every],
        "on days": [f"{f.days_tested}" for f in every],
        "rises, %": [
            plus_minus(f.rises, error, 2, 100) for f, error in zip(every, errors, strict=True)
        ],
        "if independent": [f"{100 * f.naive_error:.2f}" for f in every],
        "design effect": [f"{f.design_effect:.1f}" for f in every],
        "worth rows": [f"{f.rows_tested / f.design_effect:.0f}" for f in every],
    }
    return table_of_columns(columns)


def _scores(scores: Mapping[str, Scores]) -> str:
    every = scores.values()
    columns = {
        "forecaster": list(scores),
        "accuracy %": [plus_minus(*s.accuracy, 2, 100) for s in every],
        "log loss": [f"{s.log_loss[0]:.4f}" for s in every],
        "ECE": [f"{s.calibration_error:.3f} ({s.calibration_error_by_chance:.3f})" for s in every],
    }
    return f"{table_of_columns(columns)}\n\n{_gains(scores)}"


def _gains(scores: Mapping[str, Scores]) -> str:
    rows = [
        [
            name,
            plus_minus(*one.accuracy_gained, 2, 100),
            plus_minus(*one.log_loss_gained, 2, 1e3),
            plus_minus(*one.brier_gained, 2, 1e3),
        ]
        for name, one in scores.items()
        if name != BASE
    ]
    return table(["gained", "accuracy %", "log loss 1e-3 nats", "Brier 1e-3"], rows)


def _in_errors(scores: Mapping[str, Scores]) -> dict[str, dict[str, float]]:
    """Return all gains over climatology, in their standard errors."""
    return {
        name: {score: gain / error for score, (gain, error) in one.gains.items()}
        for name, one in scores.items()
        if name != BASE
    }


def _limit(comparisons: int) -> float:
    """Return the size that one of so many exceeds by chance with probability 5 % (D38)."""
    return NormalDist().inv_cdf(1.0 - 0.025 / comparisons)


def _ratios(scores: Mapping[str, Scores]) -> str:
    found = _in_errors(scores)
    count = len(SCORES) * len(found)
    rows = [[name, *(f"{ratio:+.1f}" for ratio in row.values())] for name, row in found.items()]
    rows += [
        [f"limit of all {count}", *(f"{_limit(count):.2f}" for _ in SCORES)],
        ["limit of one", *(f"{_limit(1):.2f}" for _ in SCORES)],
    ]
    return table(["gained, s.e.", *SCORES], rows)


def _probabilities(walk: Walk, leaked: float) -> str:
    repeat, sampled = walk.results["last value"], walk.results[NUTS_NAME]
    gap = np.abs(sampled.proba - walk.results[VI_NAME].proba).mean()
    chains = np.mean([note["between chains"] for note in sampled.notes])
    divergences = sum(note["divergences"] for note in sampled.notes)
    rows = [
        ("last value, after a rise", f"{repeat.proba[repeat.up].mean():.3f}"),
        ("last value, after a fall", f"{repeat.proba[~repeat.up].mean():.3f}"),
        ("NUTS, mean", f"{sampled.proba.mean():.3f}"),
        ("NUTS, deviation between rows", f"{sampled.proba.std():.3f}"),
        ("NUTS less VI, mean size", f"{gap:.3f}"),
        ("NUTS, deviation between chains", f"{chains:.4f}"),
        ("NUTS, divergences", f"{divergences:.0f}"),
        ("networks train on each company once in days", f"{THIN}"),
        ("accuracy of logistic regression, inputs one day too new, %", f"{100 * leaked:.1f}"),
    ]
    return table(("probabilities", "value"), rows)


def claims_of_the_paper(scores: Mapping[str, Scores]) -> list[Claim]:
    """Judge by forecaster whether the direction can be told better than by climatology."""
    found = _in_errors(scores)
    limit = _limit(len(SCORES) * len(found))
    beyond = {
        name: [score for score, ratio in row.items() if ratio > limit]
        for name, row in found.items()
    }
    return [
        Claim(
            f"{name} beats climatology", "some score", ", ".join(some) or "none", bool(some), True
        )
        for name, some in beyond.items()
    ]
