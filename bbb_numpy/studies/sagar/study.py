"""Sagar's Algorithm 1 where the posterior is known: as printed it fails, corrected it works.

The corrected algorithm is the package's own (`SelfNormalised` with `EUBO`, G7 and G8); the
printed lines are in `bbb_numpy.studies.sagar.printed`. Every verdict in the text follows
from the numbers beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from textwrap import fill, wrap
from typing import Any

import numpy as np

from .. import linear_gaussian as exactly
from ..linear_gaussian import Regression
from . import plots
from .system import (
    VARIANTS,
    ByBatch,
    BySamples,
    Path,
    Variant,
    WeightRow,
    correlated_regression,
    follow,
    gaussian_mean,
    minibatch_fixed_point,
    slopes_of_rho,
    train_with,
    weight_rows,
)

__all__ = ["reproduce"]

WIDTH = 98
ROUNDING = 1e-9  # of a path
NEAR = 0.01  # nats of KL(posterior || q) above the least that count as "reached"


def reproduce(
    out: FilePath,
    seed: int = 0,
    *,
    steps: int = 2000,
    samples: tuple[int, ...] = (1, 2, 5, 10, 30, 100, 300, 1000),
    runs: int = 5,
) -> str:
    """Run everything, write pictures and ``numbers.json`` into `out`, return the text.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
    steps, samples, runs : int, tuple of int, int
        Fewer for a quick look: steps of each training, the M that are compared, runs of each.
    """
    out.mkdir(parents=True, exist_ok=True)
    rngs = iter(np.random.default_rng(seed).spawn(1000))
    mean, regression = gaussian_mean(next(rngs)), correlated_regression(next(rngs))
    paths = {name: follow(v, mean, next(rngs), steps) for name, v in VARIANTS.items()}
    of_regression = {
        name: follow(VARIANTS[name], regression, next(rngs), steps)
        for name in ("corrected", "through", "equation 5")
    }
    moved = mean._replace(y=mean.y + 10.0)
    apart = {
        name: _distance(VARIANTS[name], mean, moved, seed, steps)
        for name in ("corrected", "through", "one")
    }
    slopes = slopes_of_rho(mean, next(rngs), max(samples))
    by_batch = [
        ByBatch(
            batch,
            float(
                follow(Variant("", batch_size=batch), mean, next(rngs), steps).deviations[-1, -1]
            ),
            minibatch_fixed_point(mean, batch)[1],
        )
        for batch in (1, 2, 5, 10, 20)
    ]
    by_samples = [train_with(m, regression, next(rngs), steps, runs) for m in samples]
    weights = weight_rows(next(rngs))

    pictures = {
        "trajectories": plots.trajectories(mean, paths, regression, of_regression["corrected"]),
        "samples": plots.samples(regression, by_samples, by_batch),
    }
    for name, figure in pictures.items():
        figure.savefig(out / f"{name}.png", dpi=100)
    numbers = {
        "gaussian mean": _final(mean, paths),
        "regression": _final(regression, of_regression),
        "paths apart": apart,
        "d U / d rho": slopes,
        "by batch": [row._asdict() for row in by_batch],
        "by samples": [row._replace(ratios=row.ratios.tolist())._asdict() for row in by_samples],
        "weights": [row._asdict() for row in weights],
    }
    text = json.dumps(numbers, indent=1, allow_nan=False)
    (out / "numbers.json").write_text(text + "\n", encoding="utf-8")
    parts = [
        _head(mean, regression, steps),
        "\n".join(_one_mean(mean, paths)),
        "\n".join(_regression(regression, of_regression)),
        "\n".join(_weights(weights)),
        *(fill(part, WIDTH) for part in _verdicts(mean, paths, apart, slopes)),
        "\n".join(_batches(by_batch)),
        "\n".join(_samples(regression, by_samples)),
    ]
    return "\n\n".join(parts)


def _distance(variant: Variant, one: Regression, other: Regression, seed: int, steps: int) -> float:
    """Return how far apart the paths on two data sets come with the same noise."""
    a, b = (follow(variant, p, np.random.default_rng(seed), steps) for p in (one, other))
    gaps = (a.means - b.means, a.deviations - b.deviations)
    return max(float(np.abs(gap).max()) for gap in gaps)


def _final(problem: Regression, paths: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    best = exactly.inclusive_optimum(exactly.exact(problem))
    ends = {"exact": best, **{name: path.last for name, path in paths.items()}}
    return {
        name: {"mean": q.mean.tolist(), "deviation": q.deviation.tolist()}
        for name, q in ends.items()
    }


def _head(mean: Regression, regression: Regression, steps: int) -> str:
    return fill(
        "Sagar: Algorithm 1 with independent Gaussians where the posterior is known. A Gaussian "
        f"mean: {len(mean.y)} values, prior N(0, 1). A linear regression: {len(regression.y)} "
        f"rows, two inputs of correlation 0.6 and a bias, prior N(0, 1). {steps} steps of Adam "
        f"from q = prior; M = {VARIANTS['corrected'].samples} samples per step, all rows in every "
        "step, unless said.",
        WIDTH,
    )


def _one_mean(problem: Regression, paths: Mapping[str, Path]) -> list[str]:
    best = exactly.inclusive_optimum(exactly.exact(problem))
    lines = [
        f"{'Gaussian mean':<32} {'mean':>8} {'deviation':>10}",
        f"{'exact posterior':<32} {best.mean[-1]:>8.4f} {best.deviation[-1]:>10.4g}",
    ]
    for name, path in paths.items():
        q = path.last
        lines.append(f"{VARIANTS[name].title:<32} {q.mean[-1]:>8.4f} {q.deviation[-1]:>10.4g}")
    return lines


def _regression(problem: Regression, paths: Mapping[str, Path]) -> list[str]:
    truth = exactly.exact(problem)
    inclusive, reverse = exactly.inclusive_optimum(truth), exactly.reverse_optimum(truth)
    rows = {
        "posterior, each weight alone": inclusive,
        **{VARIANTS[name].title: path.last for name, path in paths.items()},
        "(least free energy, for comparison)": reverse,
    }
    lines = [f"{'regression':<35} {'means':>24} {'deviations':>27}"]
    for name, q in rows.items():
        means = " ".join(f"{m:>7.4f}" for m in q.mean)
        deviations = " ".join(f"{d:>8.3g}" for d in q.deviation)
        lines.append(f"{name:<35} {means:>24} {deviations:>27}")
    return lines


def _weights(rows: Sequence[WeightRow]) -> list[str]:
    lines = [
        "(a) Weights of 200 samples of the prior: effective samples, or nan, after each shift",
        f"{'values':>8} {'log w from':>11} {'to':>8} {'+ min (printed)':>16} "
        f"{'- min':>8} {'- max':>8}",
    ]
    for row in rows:
        shown = ["nan" if e is None else f"{e:.1f}" for e in row.effective.values()]
        lines.append(
            f"{row.rows:>8} {row.low:>11.0f} {row.high:>8.0f} {shown[0]:>16} "
            f"{shown[1]:>8} {shown[2]:>8}"
        )
    return lines


def _verdicts(
    problem: Regression,
    paths: Mapping[str, Path],
    apart: Mapping[str, float],
    slopes: Mapping[str, tuple[float, float]],
) -> list[str]:
    best = exactly.inclusive_optimum(exactly.exact(problem))
    literal, fifth = paths["through"].last, paths["equation 5"].last
    slope = ", ".join(
        f"{name} {value:.4f}" + (f" (s.e. {error:.1g})" if error > 1e-12 else "")
        for name, (value, error) in slopes.items()
    )
    return [
        "(b) The gradient of log q(g(eps)), through g: the mean ends at "
        f"{literal.mean[-1]:.3g}, the deviation at {literal.deviation[-1]:.1g}. With every y "
        f"raised by 10 and the same noise the path {_apart(apart['through'])}. "
        f"The corrected one {_apart(apart['corrected'])}.",
        "(c) M = 1: the one weight is 1 whatever the data. With y raised by 10 the path "
        f"{_apart(apart['one'])}.",
        f"(e) Equation 5 as printed ends at the mean {fifth.mean[-1]:.4f} (exact "
        f"{best.mean[-1]:.4f}) and {fifth.deviation[-1] / best.deviation[-1]:.1g} of the right "
        f"deviation. dU/d rho where q is N(1, 0.5^2): {slope}.",
    ]


def _apart(distance: float) -> str:
    if distance < ROUNDING:
        return "is the same: the data do not occur in it"
    return f"differs by up to {distance:.3g}"


def _batches(rows: Sequence[ByBatch]) -> list[str]:
    lines = [
        "(d) Gaussian mean by minibatches of S values, N/S inside the exponential: the deviation",
        f"{'S':>8} {'found':>8} {'predicted, sqrt(v + Var m_i)':>30}",
    ]
    return lines + [f"{r.batch:>8} {r.found:>8.4f} {r.predicted:>30.4f}" for r in rows]


def _samples(problem: Regression, rows: Sequence[BySamples]) -> list[str]:
    truth = exactly.exact(problem)
    best = exactly.inclusive_optimum(truth)
    least = exactly.kl(truth.posterior, best)
    limit = np.exp(-exactly.renyi_divergence(2.0, truth.posterior, best))
    lines = [
        "Corrected, regression: KL(posterior || q) after training, above its least, "
        f"{least:.3f} nats",
        f"{'M':>8} {'median':>10} {'worst':>10} {'deviation / marginal':>26} {'effective M':>12}",
    ]
    for row in rows:
        ratios = " ".join(f"{r:.3f}" for r in row.ratios)
        lines.append(
            f"{row.samples:>8} {np.median(row.excess):>10.2g} {max(row.excess):>10.2g} "
            f"{ratios:>26} {row.share * row.samples:>12.1f}"
        )
    enough = [row.samples for row in rows if max(row.excess) <= NEAR]
    found = f"M = {min(enough)}" if enough else "none of these M"
    last = f"{found} is the first whose worst run is within {NEAR:g} nats. "
    last += (
        f"At the optimum {limit:.1%} of many samples are effective, exp(-D_2(posterior || q))."
        if limit > 0
        else "At the optimum the weights have infinite variance."
    )
    return [*lines, *wrap(last, WIDTH)]
