"""The tables of the study of Algorithm 1."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .. import linear_gaussian as exactly
from ..comparing import Claim, captioned, claims, table
from ..linear_gaussian import Gaussian, Regression
from .models import VARIANTS, Path, Study

__all__ = ["claims_of_the_paper", "lay_out"]

ROUNDING = 1e-9  # of a path
NEAR = 0.01  # nats of KL(posterior || q) above the least that count as "reached"
CLOSE = 0.05  # relative; a deviation this near the posterior's counts as right


def lay_out(found: Study) -> str:
    """Return every number that is printed, and which lines of the algorithm hold."""
    return captioned(
        {
            "Gaussian mean: 20 values, prior N(0, 1); q after training (units of y).": _one_mean(
                found
            ),
            "Regression: 30 rows, inputs of correlation 0.6 and a bias, prior N(0, 1); nats.": (
                _regression(found.regression, found.of_regression)
            ),
            "(a) Weights of 200 samples of the prior (G7): effective samples after each shift.": (
                _weights(found)
            ),
            "(b), (c) Every value raised by 10, same noise: how far the path moves (units of y).": (
                _apart(found.apart)
            ),
            "(d) N/S inside the exponential (D30): deviation of q, Gaussian mean (units of y).": (
                _batches(found)
            ),
            "(e) dU/d rho of the bias where q is N(1, 0.5^2) (nats).": _slopes(found),
            "Corrected, regression: KL above its least (nats); sd over marginal sd.": _samples(
                found
            ),
            f"Weights must be finite, a path see the data, a deviation be within {CLOSE:.0%}.": (
                claims("the paper, as printed", claims_of_the_paper(found))
            ),
        }
    )


def _one_mean(found: Study) -> str:
    best = exactly.inclusive_optimum(exactly.exact(found.mean))
    ends = {"exact posterior": best} | _ends(found.paths)
    rows = [[name, f"{q.mean[-1]:.4f}", f"{q.deviation[-1]:.4g}"] for name, q in ends.items()]
    head = f"{found.steps} steps, M = {VARIANTS['corrected'].samples}, all rows"
    return table((head, "mean", "deviation"), rows)


def _ends(paths: Mapping[str, Path]) -> dict[str, Gaussian]:
    return {VARIANTS[name].title: path.last for name, path in paths.items()}


def _regression(problem: Regression, paths: Mapping[str, Path]) -> str:
    truth = exactly.exact(problem)
    ends = {
        "posterior, each weight alone": exactly.inclusive_optimum(truth),
        **_ends(paths),
        "least free energy": exactly.reverse_optimum(truth),
    }
    rows = []
    for name, q in ends.items():
        numbers = [f"{m:.4f}" for m in q.mean] + [f"{d:.3g}" for d in q.deviation]
        with np.errstate(over="ignore"):
            rows.append([name, *numbers, f"{exactly.kl(truth.posterior, q):.3g}"])
    head = ("", "mean 1", "mean 2", "bias", "sd 1", "sd 2", "of bias", "KL(p || q)")
    return table(head, rows)


def _weights(found: Study) -> str:
    rows = [
        [
            str(row.rows),
            f"{row.low:.0f}",
            f"{row.high:.0f}",
            *("nan" if e is None else f"{e:.1f}" for e in row.effective.values()),
        ]
        for row in found.weights
    ]
    head = ("values", "log w from (nats)", "to", "+ min (printed)", "- min", "- max")
    return table(head, rows)


def _apart(apart: Mapping[str, float]) -> str:
    return table(
        ("reading", "largest difference"),
        [[VARIANTS[name].title, f"{distance:.3g}"] for name, distance in apart.items()],
    )


def _slopes(found: Study) -> str:
    rows = [
        [name, f"{value:.4f}", f"{error:.1g}" if error > 1e-12 else "0"]
        for name, (value, error) in found.slopes.items()
    ]
    return table(("estimate", "mean", "standard error"), rows)


def _batches(found: Study) -> str:
    rows = [[str(r.batch), f"{r.found:.4f}", f"{r.predicted:.4f}"] for r in found.by_batch]
    return table(("S", "found", "predicted, sqrt(v + Var m_i)"), rows)


def _samples(found: Study) -> str:
    truth = exactly.exact(found.regression)
    best = exactly.inclusive_optimum(truth)
    limit = np.exp(-exactly.renyi_divergence(2.0, truth.posterior, best))
    rows = [
        [
            str(row.samples),
            f"{np.median(row.excess):.2g}",
            f"{max(row.excess):.2g}",
            "yes" if max(row.excess) <= NEAR else "no",
            *(f"{ratio:.3f}" for ratio in row.ratios),
            f"{row.share * row.samples:.1f}",
            f"{row.share:.1%}",
        ]
        for row in found.by_samples
    ]
    rows.append(["many, at the optimum", "0", "0", "yes", *3 * ["1.000"], "", f"{limit:.1%}"])
    head = ("M", "median", "worst", f"<= {NEAR:g}", "sd 1", "sd 2", "of bias",
            "effective M", "share")  # fmt: skip
    return table(head, rows)


def claims_of_the_paper(found: Study) -> list[Claim]:
    """Judge the printed lines one by one."""
    best = exactly.inclusive_optimum(exactly.exact(found.mean))
    lost = [row.rows for row in found.weights if row.effective["+ min"] is None]
    ratios = {
        name: path.deviations[-1, -1] / best.deviation[-1] for name, path in found.paths.items()
    }
    exact, (value, error) = found.slopes["exact"][0], found.slopes["Equation 5 as printed"]
    return [
        Claim("(a) weights exp(log w + min log w)", "finite", f"nan of {lost} values", not lost),
        *(
            Claim(
                said,
                "sees the data",
                f"moves by {found.apart[name]:.3g}",
                found.apart[name] > ROUNDING,
            )
            for name, said in (
                ("through", "(b) gradient of log q(g(eps)), through g"),
                ("one", "(c) one sample per step"),
                ("corrected", "(not printed) corrected, G8"),
            )
        ),
        *(
            Claim(
                said, "deviation x 1", f"x {ratios[name]:.1g}", bool(abs(ratios[name] - 1) <= CLOSE)
            )
            for name, said in (
                ("minibatch", "(d) N/S inside exp, S = 1"),
                ("equation 5", "(e) Equation 5"),
            )
        ),
        Claim(
            "(e) Equation 5 is dU/d rho", f"{exact:.4f}", f"{value:.4f}", abs(value - exact) / error
        ),
    ]
