"""Occam's razor at work, in real numbers: Figure 6 of Mullachery et al. (M20, M21).

(a) Labels: eight points on a line have 256 label vectors. For three logistic models, a straight
line, a parabola and a polynomial of degree 7, and for a network, the evidence of *all* of them:
each model has probability one to spend.
(b) Regression: a line, a small and a large network, each judged by annealed importance sampling
on data drawn from each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.model_checks import BayesFactor, in_words
from bbb_numpy.progress import counted, steps
from bbb_studies.comparing import (
    Claim,
    captioned,
    claims,
    plus_minus,
    table,
    table_of_columns,
    write,
)

from . import plots
from .models import (
    LABELS,
    NOISE,
    POINTS,
    PRIOR,
    ROWS,
    WIDTH,
    Budget,
    Labelled,
    changes,
    label_models,
)
from .scores import Checked, Measured, best_rival, check_labels, divergences, measure

__all__ = ["claims_of_the_paper", "reproduce"]

EXACT = ("line", "parabola", "degree 7")  # models of labels without Monte Carlo


def reproduce(
    out: Path, seed: int = 0, *, budget: Budget | None = None, progress: bool | None = None
) -> str:
    """Compute, write ``occam.png`` and ``occam.json`` into `out`, return the tables."""
    budget = budget or Budget()
    first, second, third = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    with steps(4 * budget.checked + 3 * 4 * budget.sets, progress) as done:
        models = label_models(first, budget)
        checks = list(counted(check_labels(models, second, budget), done))
        regressions = measure(third, budget, done)
    picture = plots.razor(models, regressions)
    write(out, {"occam": picture}, _numbers(models, checks, regressions), "occam")
    return _tables(models, checks, regressions, budget)


def _numbers(
    models: Mapping[str, Labelled], checks: Sequence[Checked], measured: Sequence[Measured]
) -> dict[str, Any]:
    return {
        "labels": {
            name: {"probability": m.probability, "error": m.error} for name, m in models.items()
        },
        "checks": [
            {
                "model": check.model,
                "labels": LABELS[check.labels],
                "log_probability": check.known,
                "its error": check.known_error,
                "annealed": check.run.log_evidence,
                "error": check.run.error,
            }
            for check in checks
        ],
        "divergences": divergences(models),
        "regressions": [
            {"source": one.source, "y": one.y[:, 0], "found": one.found} for one in measured
        ],
    }


def _tables(
    models: Mapping[str, Labelled],
    checks: Sequence[Checked],
    measured: Sequence[Measured],
    budget: Budget,
) -> str:
    parts = {
        "Occam's razor: (a) models of labels, (b) of regressions; all weights Gaussian.": table(
            ("run", "value"),
            [
                ("(a) points", f"{POINTS}"),
                ("label vectors", f"{2**POINTS}"),
                ("deviation of a logistic weight", f"{PRIOR:g}"),
                ("(b) rows", f"{ROWS}"),
                ("deviation of the noise", f"{NOISE:g}"),
                ("deviation of a weight", f"{WIDTH:g}"),
                ("(a) chains, powers of annealing", f"{2 * budget.chains}, {budget.steps // 2}"),
                ("(b) chains, powers of annealing", f"{budget.chains}, {budget.steps}"),
            ],
        ),
        "(a) P(D|m) of one data set, on average, by the label changes along the line.": _labels(
            models
        ),
        "Line, parabola: quadrature; degree 7: 2^-8; network 1-20-20-1: prior draws. Simple: at "
        "most one change.": _models(models),
        "On data from the model of the row, the model of the column loses on average (KL, nats).": (
            _divergences(models)
        ),
        "Annealed importance sampling of some log P(D|m), nats; z: less the value of "
        "above, in standard\nerrors of both.": _checks(checks),
        "(b) log P(D|m), nats +- standard error: line 1-1 exactly, networks 1-3-1 and 1-20-20-1 by "
        "annealing;\nlog B: the model that made the data against the best other; < 0: for the "
        "other.": _regressions(measured),
        "(b) Over the data sets; nats.": _gains(measured),
    }
    judged = claims(
        "Figure 6 as drawn by hand, and the numbers of (a); the last line: (b).",
        "the paper",
        claims_of_the_paper(models, measured),
    )
    return f"{captioned(parts)}\n\n{judged}"


def _by_changes(models: Mapping[str, Labelled]) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Return by label changes how many label vectors there are, and each model's mean P(D|m)."""
    groups = [changes(LABELS) == c for c in range(POINTS)]
    means = {
        name: np.array([model.probability[group].mean() for group in groups])
        for name, model in models.items()
    }
    return np.array([group.sum() for group in groups]), means


def _winners(means: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return by label changes the most probable of the exact models."""
    return [max(EXACT, key=lambda name: means[name][c]) for c in range(POINTS)]


def _labels(models: Mapping[str, Labelled]) -> str:
    sizes, means = _by_changes(models)
    columns = {
        "changes": [f"{c}" for c in range(POINTS)],
        "sets": [f"{size}" for size in sizes],
    }
    for name, values in means.items():
        columns[name] = [f"{value:.2e}" for value in values]
    columns["best but the network"] = _winners(means)
    return table_of_columns(columns)


def _models(models: Mapping[str, Labelled]) -> str:
    simple = changes(LABELS) <= 1
    every = models.values()
    columns = {
        "model": list(models),
        "weights": [f"{m.model.layout.size}" for m in every],
        "sum over all D, less 1": [f"{m.probability.sum() - 1.0:.0e}" for m in every],
        "largest s.e., %": [f"{100 * np.max(m.error / m.probability):.0f}" for m in every],
        f"P of the {simple.sum()} simple D, %": [
            f"{100 * m.probability[simple].sum():.0f}" for m in every
        ],
    }
    return table_of_columns(columns)


def _divergences(models: Mapping[str, Labelled]) -> str:
    rows = [
        [name, *(f"{value:.3f}" for value in row.values())]
        for name, row in divergences(models).items()
    ]
    return table(["data from", *models], rows)


def _checks(checks: Sequence[Checked]) -> str:
    columns = {
        "model": [c.model for c in checks],
        "changes": [f"{changes(LABELS)[c.labels]}" for c in checks],
        "above": [f"{c.known:.3f}" for c in checks],
        "annealed": [plus_minus(c.run.log_evidence, c.run.error, 3) for c in checks],
        "z": [f"{c.off:+.1f}" for c in checks],
    }
    return table_of_columns(columns)


def _regressions(measured: Sequence[Measured]) -> str:
    factors = [best_rival(one)[1] for one in measured]
    columns = {"data from": [one.source for one in measured]}
    for name in measured[0].found:
        found = [one.found[name] for one in measured]
        columns[name] = [
            plus_minus(f.log_evidence, f.error, 1) if f.error else f"{f.log_evidence:.1f}"
            for f in found
        ]
    columns["log B"] = [f"{factor.log:+.1f} +- {factor.error:.1f}" for factor in factors]
    columns["evidence"] = [_words(factor) for factor in factors]
    return table_of_columns(columns)


def _words(factor: BayesFactor) -> str:
    return in_words(factor.log).split(",")[0].removeprefix("not worth more than a ")


def _gains(measured: Sequence[Measured]) -> str:
    *smaller, large = measured[0].found
    found = [{name: f.log_evidence for name, f in one.found.items()} for one in measured]
    sources = [one.source for one in measured]
    paid = [f[s] - f[large] for f, s in zip(found, sources, strict=True) if s != large]
    lost = [
        f[large] - f[name]
        for f, s in zip(found, sources, strict=True)
        for name in smaller
        if s == large
    ]
    gaps = [f.log_evidence - f.lower for one in measured for f in one.found.values() if f.error]
    rows = [
        (f"{large}, below the model that made the data", f"{min(paid):.1f}", f"{max(paid):.1f}"),
        (f"the others, below the {large} on its data", f"{min(lost):.1f}", f"{max(lost):.0f}"),
        (
            "mean log weight of annealing, below its estimate",
            f"{min(gaps):.1f}",
            f"{max(gaps):.1f}",
        ),
    ]
    return table(("", "least", "most"), rows)


def claims_of_the_paper(
    models: Mapping[str, Labelled], measured: Sequence[Measured]
) -> list[Claim]:
    """Judge Figure 6 and its sentence by the evidence of all label vectors (M21), and (b)."""
    off = max(abs(model.probability.sum() - 1.0) for model in models.values())
    winners = _winners(_by_changes(models)[1])
    simple, complex_ = winners[0], winners[-1]
    middle = "parabola" if "parabola" in winners[1:-1] else "none"
    lost = min(kl for m, row in divergences(models).items() for o, kl in row.items() if o != m)
    wins, sets = sum(best_rival(one)[1].log > 0 for one in measured), len(measured)
    return [
        Claim("probability that a model has", "'a total of 1'", f"off by {off:.0e}", off < 1e-12),
        Claim("on simple data wins (here the line)", "the simple", simple, simple == "line"),
        Claim("in between (the parabola)", "the correct", middle, middle == "parabola"),
        Claim("on spread data (degree 7)", "the complex", complex_, complex_ == "degree 7"),
        Claim("the least that is lost on data of another", "> 0", f"{lost:.3f}", lost > 0, True),
        Claim("the model that made the data wins: sets", f"{sets}", f"{wins}", wins == sets, True),
    ]
