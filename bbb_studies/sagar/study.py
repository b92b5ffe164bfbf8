"""Sagar's Algorithm 1 where the posterior is known: as printed it fails, corrected it works.

The corrected algorithm is the package's own (`SelfNormalised` with `EUBO`, G7 and G8); the
printed lines are in `bbb_studies.sagar.printed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from bbb_numpy.progress import Done, counted, unseen
from bbb_numpy.progress import steps as count_steps

from .. import linear_gaussian as exactly
from ..comparing import Claim, claims, listed, table, write
from ..linear_gaussian import Gaussian, Regression
from . import plots
from .models import (
    VARIANTS,
    ByBatch,
    Path,
    Study,
    Variant,
    correlated_regression,
    distance,
    follow,
    gaussian_mean,
    minibatch_fixed_point,
    slopes_of_rho,
    train_with,
    weight_rows,
)

__all__ = ["claims_of_the_paper", "lay_out", "measure", "reproduce"]

ON_REGRESSION, APART = ("corrected", "through", "equation 5"), ("corrected", "through", "one")
BATCHES = (1, 2, 5, 10, 20)
ROUNDING = 1e-9  # of a path
NEAR = 0.01  # nats of KL(posterior || q) above the least that count as "reached"
CLOSE = 0.05  # relative; a deviation this near the posterior's counts as right


def measure(
    seed: int, steps: int, samples: tuple[int, ...], runs: int, done: Done = unseen
) -> Study:
    """Train every reading of the algorithm on both problems; arguments as for `reproduce`.

    `done` is told how often the algorithm has run.
    """
    rngs = iter(np.random.default_rng(seed).spawn(1000))
    mean, regression = gaussian_mean(next(rngs)), correlated_regression(next(rngs))
    paths = {
        name: follow(v, mean, next(rngs), steps) for name, v in counted(VARIANTS.items(), done)
    }
    of_regression = {
        name: follow(VARIANTS[name], regression, next(rngs), steps)
        for name in counted(ON_REGRESSION, done)
    }
    moved = mean._replace(y=mean.y + 10.0)
    apart = {
        name: distance(VARIANTS[name], mean, moved, seed, steps) for name in counted(APART, done, 2)
    }
    slopes = slopes_of_rho(mean, next(rngs), max(samples))
    by_batch = []
    for batch in counted(BATCHES, done):
        path = follow(Variant("", batch_size=batch), mean, next(rngs), steps)
        predicted = minibatch_fixed_point(mean, batch)[1]
        by_batch.append(ByBatch(batch, float(path.deviations[-1, -1]), predicted))
    return Study(
        steps=steps,
        mean=mean,
        regression=regression,
        paths=paths,
        of_regression=of_regression,
        apart=apart,
        slopes=slopes,
        by_batch=by_batch,
        by_samples=[
            train_with(m, regression, next(rngs), steps, runs) for m in counted(samples, done, runs)
        ],
        weights=weight_rows(next(rngs)),
    )


def reproduce(
    out: FilePath,
    seed: int = 0,
    *,
    steps: int = 2000,
    samples: tuple[int, ...] = (1, 2, 5, 10, 30, 100, 300, 1000),
    runs: int = 5,
    progress: bool | None = None,
) -> str:
    """Run everything, write pictures and ``numbers.json`` into `out`, return the tables.

    Steps of each training, the M that are compared, and runs of each.
    """
    work = len(VARIANTS) + len(ON_REGRESSION) + 2 * len(APART) + len(BATCHES) + runs * len(samples)
    with count_steps(work, progress) as done:
        found = measure(seed, steps, samples, runs, done)
    corrected = found.of_regression["corrected"]
    pictures = {
        "trajectories": plots.trajectories(found.mean, found.paths, found.regression, corrected),
        "samples": plots.samples(found.regression, found.by_samples, found.by_batch),
    }
    numbers = {
        "gaussian mean": _final(found.mean, found.paths),
        "regression": _final(found.regression, found.of_regression),
        "paths apart": found.apart,
        "d U / d rho": found.slopes,
        "by batch": found.by_batch,
        "by samples": found.by_samples,
        "weights": found.weights,
    }
    write(out, pictures, numbers)
    return lay_out(found)


def _final(problem: Regression, paths: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    best = exactly.inclusive_optimum(exactly.exact(problem))
    ends = {"exact": best, **{name: path.last for name, path in paths.items()}}
    return {name: {"mean": q.mean, "deviation": q.deviation} for name, q in ends.items()}


def lay_out(found: Study) -> str:
    """Return every number that is printed, and which lines of the algorithm hold."""
    judged = f"Weights must be finite, a path see the data, a deviation be within {CLOSE:.0%}."
    return "\n\n".join(
        [
            _one_mean(found),
            _regression(found),
            _weights(found),
            listed(
                "(b), (c) How far the path moves if every value does by 10 (units of y).",
                "reading",
                ((VARIANTS[name].title, distance) for name, distance in found.apart.items()),
                {"most": lambda distance: f"{distance:.3g}"},
            ),
            listed(
                "(d) N/S inside the exponential (D30): deviation of q, Gaussian mean (units of y).",
                "S",
                ((str(row.batch), row) for row in found.by_batch),
                {
                    "found": lambda row: f"{row.found:.4f}",
                    "predicted, sqrt(v + Var m_i)": lambda row: f"{row.predicted:.4f}",
                },
            ),
            listed(
                "(e) dU/d rho of the bias where q is N(1, 0.5^2) (nats).",
                "estimate",
                found.slopes.items(),
                {
                    "mean": lambda slope: f"{slope[0]:.4f}",
                    "standard error": lambda slope: f"{slope[1]:.1g}" if slope[1] > 1e-12 else "0",
                },
            ),
            _samples(found),
            claims(judged, "the paper, as printed", claims_of_the_paper(found)),
        ]
    )


def _ends(paths: Mapping[str, Path]) -> dict[str, Gaussian]:
    return {VARIANTS[name].title: path.last for name, path in paths.items()}


def _one_mean(found: Study) -> str:
    best = exactly.inclusive_optimum(exactly.exact(found.mean))
    return listed(
        "Gaussian mean: 20 values, prior N(0, 1); q after training (units of y).",
        f"{found.steps} steps, M = {VARIANTS['corrected'].samples}, all rows",
        ({"exact posterior": best} | _ends(found.paths)).items(),
        {
            "mean": lambda q: f"{q.mean[-1]:.4f}",
            "deviation": lambda q: f"{q.deviation[-1]:.4g}",
        },
    )


def _regression(found: Study) -> str:
    caption = "Regression: 30 rows, inputs of correlation 0.6 and a bias, prior N(0, 1); nats."
    truth = exactly.exact(found.regression)
    ends = {
        "posterior, each weight alone": exactly.inclusive_optimum(truth),
        **_ends(found.of_regression),
        "least free energy": exactly.reverse_optimum(truth),
    }
    rows = []
    for name, q in ends.items():
        numbers = [f"{m:.4f}" for m in q.mean] + [f"{d:.3g}" for d in q.deviation]
        with np.errstate(over="ignore"):
            rows.append([name, *numbers, f"{exactly.kl(truth.posterior, q):.3g}"])
    head = ("", "mean 1", "mean 2", "bias", "sd 1", "sd 2", "of bias", "KL(p || q)")
    return f"{caption}\n\n{table(head, rows)}"


def _weights(found: Study) -> str:
    caption = "(a) Weights of 200 samples of the prior (G7): effective samples after each shift."
    rows = []
    for row in found.weights:
        effective = ["nan" if e is None else f"{e:.1f}" for e in row.effective.values()]
        rows.append([str(row.rows), f"{row.low:.0f}", f"{row.high:.0f}", *effective])
    head = ("values", "log w from (nats)", "to", "+ min (printed)", "- min", "- max")
    return f"{caption}\n\n{table(head, rows)}"


def _samples(found: Study) -> str:
    truth = exactly.exact(found.regression)
    best = exactly.inclusive_optimum(truth)
    limit = np.exp(-exactly.renyi_divergence(2.0, truth.posterior, best))
    return listed(
        "Corrected, regression: KL above its least (nats); sd over marginal sd; effective samples,"
        f"\nof many at the optimum {limit:.1%}.",
        "M",
        ((str(row.samples), row) for row in found.by_samples),
        {
            "median": lambda row: f"{np.median(row.excess):.2g}",
            "worst": lambda row: f"{max(row.excess):.2g}",
            f"<= {NEAR:g}": lambda row: "yes" if max(row.excess) <= NEAR else "no",
            "sd 1": lambda row: f"{row.ratios[0]:.3f}",
            "sd 2": lambda row: f"{row.ratios[1]:.3f}",
            "of bias": lambda row: f"{row.ratios[2]:.3f}",
            "effective": lambda row: f"{row.share * row.samples:.1f}",
            "of M": lambda row: f"{row.share:.1%}",
        },
    )


def claims_of_the_paper(found: Study) -> list[Claim]:
    """Judge the printed lines one by one."""
    best = exactly.inclusive_optimum(exactly.exact(found.mean)).deviation[-1]
    lost = [row.rows for row in found.weights if row.effective["+ min"] is None]
    rows = [
        Claim("(a) weights exp(log w + min log w)", "finite", f"nan of {lost} values", not lost)
    ]
    for name, said in (
        ("through", "(b) gradient of log q(g(eps)), through g"),
        ("one", "(c) one sample per step"),
        ("corrected", "corrected, G8"),
    ):
        apart, ours = found.apart[name], name == "corrected"
        rows.append(Claim(said, "sees the data", f"moves by {apart:.3g}", apart > ROUNDING, ours))
    for name, said in (
        ("minibatch", "(d) N/S inside exp, S = 1"),
        ("equation 5", "(e) Equation 5"),
    ):
        ratio = float(found.paths[name].deviations[-1, -1] / best)
        rows.append(Claim(said, "deviation x 1", f"x {ratio:.1g}", abs(ratio - 1) <= CLOSE))
    exact, (value, error) = found.slopes["exact"][0], found.slopes["Equation 5 as printed"]
    off = abs(value - exact) / error
    return [*rows, Claim("(e) Equation 5 is dU/d rho", f"{exact:.4f}", f"{value:.4f}", off)]
