"""What the study of Algorithm 1 says; every verdict follows from the numbers beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill, wrap

import numpy as np

from .. import linear_gaussian as exactly
from ..linear_gaussian import Regression
from .models import (
    VARIANTS,
    ByBatch,
    BySamples,
    Path,
    WeightRow,
)

__all__ = ["batches", "head", "one_mean", "regression", "samples", "verdicts", "weights"]

WIDTH = 98
ROUNDING = 1e-9  # of a path
NEAR = 0.01  # nats of KL(posterior || q) above the least that count as "reached"


def head(mean: Regression, regression: Regression, steps: int) -> str:
    """Describe the two problems and the training."""
    return fill(
        "Sagar: Algorithm 1 with independent Gaussians where the posterior is known. A Gaussian "
        f"mean: {len(mean.y)} values, prior N(0, 1). A linear regression: {len(regression.y)} "
        f"rows, two inputs of correlation 0.6 and a bias, prior N(0, 1). {steps} steps of Adam "
        f"from q = prior; M = {VARIANTS['corrected'].samples} samples per step, all rows in every "
        "step, unless said.",
        WIDTH,
    )


def one_mean(problem: Regression, paths: Mapping[str, Path]) -> str:
    """Set every reading of the algorithm beside the exact posterior of a Gaussian mean."""
    best = exactly.inclusive_optimum(exactly.exact(problem))
    lines = [
        f"{'Gaussian mean':<32} {'mean':>8} {'deviation':>10}",
        f"{'exact posterior':<32} {best.mean[-1]:>8.4f} {best.deviation[-1]:>10.4g}",
    ]
    for name, path in paths.items():
        q = path.last
        lines.append(f"{VARIANTS[name].title:<32} {q.mean[-1]:>8.4f} {q.deviation[-1]:>10.4g}")
    return "\n".join(lines)


def regression(problem: Regression, paths: Mapping[str, Path]) -> str:
    """Set them beside the exact posterior of a regression, one weight at a time."""
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
    return "\n".join(lines)


def weights(rows: Sequence[WeightRow]) -> str:
    """Lay out the effective samples after each shift (G7)."""
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
    return "\n".join(lines)


def verdicts(
    problem: Regression,
    paths: Mapping[str, Path],
    apart: Mapping[str, float],
    slopes: Mapping[str, tuple[float, float]],
) -> str:
    """Judge the printed lines one by one."""
    best = exactly.inclusive_optimum(exactly.exact(problem))
    literal, fifth = paths["through"].last, paths["equation 5"].last
    slope = ", ".join(
        f"{name} {value:.4f}" + (f" (s.e. {error:.1g})" if error > 1e-12 else "")
        for name, (value, error) in slopes.items()
    )
    parts = [
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
    return "\n\n".join(fill(part, WIDTH) for part in parts)


def _apart(distance: float) -> str:
    if distance < ROUNDING:
        return "is the same: the data do not occur in it"
    return f"differs by up to {distance:.3g}"


def batches(rows: Sequence[ByBatch]) -> str:
    """Lay out what minibatches do to the deviation (D30)."""
    lines = [
        "(d) Gaussian mean by minibatches of S values, N/S inside the exponential: the deviation",
        f"{'S':>8} {'found':>8} {'predicted, sqrt(v + Var m_i)':>30}",
    ]
    lines += [f"{r.batch:>8} {r.found:>8.4f} {r.predicted:>30.4f}" for r in rows]
    return "\n".join(lines)


def samples(problem: Regression, rows: Sequence[BySamples]) -> str:
    """Lay out training with M samples per step, and say which M is enough."""
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
    return "\n".join([*lines, *wrap(last, WIDTH)])
