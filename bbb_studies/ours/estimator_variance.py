"""The noise of every gradient estimator, measured (D18-D26).

On a small network at three stages of its training, and on linear regression at the optimum.
All estimators of the free energy take the same number of weight samples per step; their
variance is compared with that of the reparameterised one, the report's, and so is variance x
time. The estimators of IWAE and of the EUBO are compared against the number of samples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray

from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.estimator import Batch, GradientEstimator
from bbb_numpy.gradients.estimator import GradientEstimator as Estimator
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.importance import DoublyReparameterised, SelfNormalised
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import Reparameterised, StickingTheLanding
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import EUBO, LogDensities, Renyi, log_weights
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import sigmoid
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import GaussianPosterior, MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots import style
from bbb_numpy.plots.style import BLUE, GREY, VERMILLION, finish
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies import linear_gaussian as exact
from bbb_studies.kit import Estimate, concise, listed, table, text, write
from bbb_studies.progress import ReportWork, counted, ignore_work, steps

Array = NDArray[Any]
N_STEP_SAMPLES = 2  # weight samples per step: one antithetic pair
ROWWISE_ESTIMATORS = ("local reparam.", "Flipout")  # for independent weights only
REFERENCE = "reparameterised"


@dataclass(frozen=True)
class ScoreFunction(GradientEstimator):
    """Black-box VI (Ranganath et al. 2014): the cost's values times the score of q (D20).

    Nothing but log q is differentiated; prior and likelihood have no learned numbers. With
    `baseline` each sample's cost is taken less the mean of the others, two at least.
    """

    posterior: GaussianPosterior = MeanField()
    baseline: bool = False

    def fill_gradient(self, at: Batch) -> tuple[Any, LogDensities]:
        """Return the free energy and its score-function gradient, as `Reparameterised` does."""
        step = self.forward(at)
        c = step.cotangents
        costs = np.sum(np.multiply(c, step.terms), axis=0)  # (S,)  h_s / S
        if self.baseline:
            costs = (costs - costs.mean()) * len(costs) / (len(costs) - 1)  # D20
        self.posterior.pull_back_direct(step.sample, costs, at.d_blocks)  # D20
        return step.value, step.terms


ESTIMATORS: dict[str, Callable[..., Any]] = {
    REFERENCE: Reparameterised,
    "reparameterised ±": lambda model, q: Reparameterised(model, q, antithetic=True),
    "closed-form KL": ClosedFormKL,
    "closed-form KL ±": lambda model, q: ClosedFormKL(model, q, antithetic=True),
    "sticking the landing": StickingTheLanding,
    "sticking the landing ±": lambda model, q: StickingTheLanding(
        model, q, antithetic=True
    ),
    "local reparam.": LocalReparameterisation,
    "Flipout": Flipout,
    "score function": ScoreFunction,
    "score, baseline": lambda model, q: ScoreFunction(model, q, baseline=True),
}


class Case(NamedTuple):
    """A model, a q and the rows of one step, for which gradients are measured."""

    name: str
    model: Model
    posterior: MeanField | FullRank
    theta: Array
    x: Array
    y: Array
    kl_weight: float


def network_cases(seed: int) -> list[Case]:
    """Train 13-50-1 on 256 rows and return start, half way and end, with the first 32 rows."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((256, 13))
    curve = np.sin(x @ rng.standard_normal((13, 2)) * 0.5).sum(axis=1, keepdims=True)
    y = curve + 0.3 * rng.standard_normal((256, 1))
    model = Model(MLP((13, 50, 1)), GaussianPrior(0.5), GaussianLikelihood(0.3))
    estimator = Reparameterised(model)
    constant = Adam(5e-3)
    fading = Adam(5e-3, schedule=Cosine())
    state = start(estimator, rng, constant)
    thetas = [state.theta]
    for optimizer in (constant, fading):
        recipe = Recipe(optimizer, epochs=500, samples=N_STEP_SAMPLES)
        state = fit(estimator, state, x, y, recipe, rng=rng, progress=False)
        thetas.append(state.theta)
    names = ("network, start", "network, half way", "network, end")
    return [
        Case(name, model, MeanField(), theta, x[:32], y[:32], 32 / 256)
        for name, theta in zip(names, thetas, strict=True)
    ]


def linear_cases(seed: int) -> list[Case]:
    """Return linear regression at the optimum of mean field and at that of full rank (D28)."""
    model, x, y = problem = exact.draw(np.random.default_rng(seed))
    truth = exact.exact(problem)
    best = exact.reverse_optimum(truth)
    factor = MeanField()
    full = FullRank()
    at_best = factor.pack(best.mean, best.deviation)
    return [
        Case("linear, mean field", model, factor, at_best, x, y, 1.0),
        Case("linear, full rank", model, full, full.pack(*truth.posterior), x, y, 1.0),
    ]


N_GRADIENTS = 2000  # of each estimator in each case
# The gradients are split into so many batches, whose scatter gives the standard errors.
N_VARIANCE_BATCHES = 20
CURVE_SAMPLE_COUNTS = (1, 2, 5, 10, 20, 50, 100)  # samples of IWAE and of the EUBO
N_CURVE_GRADIENTS = 4000


class Noise(NamedTuple):
    """Variance and cost of one estimator in one case, relative to the reference."""

    location: Estimate  # variance of the gradient for mu, summed over its numbers
    scale: Estimate  # the same for rho; for full rank, for the whole factor
    cost: Estimate  # variance of both blocks x time
    seconds: float  # median of a step, draw and value_and_grad; not relative


class CurvePoint(NamedTuple):
    """One estimator at one number of samples, relative to the size of the true gradient."""

    samples: int
    bias: float  # |mean gradient - true gradient|
    error: float  # standard error of the bias: deviation / sqrt(number of gradients)
    deviation: float  # standard deviation, root of the summed variance
    effective: float  # mean effective number of samples, 1 / sum of squared shares


def measure(case: Case, seed: int, steps: int = N_GRADIENTS) -> dict[str, Noise]:
    """Return the relative gradient variance and time of every estimator that the posterior allows.

    The estimators take turns, with the same random numbers: a batch of one follows a batch of the
    other, so that a busy moment of the machine is shared.

    Parameters
    ----------
    case : Case
        Model, posterior and rows at which gradients are drawn.
    seed : int
        Of the noise; every estimator starts from the same generator.
    steps : int
        Number of gradients of each estimator.

    Returns
    -------
    dict of str to Noise
        Variance, and variance x time, relative to `REFERENCE`, by estimator.
    """
    independent = isinstance(case.posterior, MeanField)
    names = [
        name for name in ESTIMATORS if independent or name not in ROWWISE_ESTIMATORS
    ]
    estimators = {name: ESTIMATORS[name](case.model, case.posterior) for name in names}
    rngs = {name: np.random.default_rng(seed) for name in names}
    buffers = {name: Buffers() for name in names}
    noises = {
        n: np.empty(e.noise_shape(N_STEP_SAMPLES, len(case.x)))
        for n, e in estimators.items()
    }
    grads = {name: np.empty((steps, case.theta.size)) for name in names}
    times = {name: np.empty(steps) for name in names}
    for batch in np.array_split(np.arange(steps), N_VARIANCE_BATCHES):
        for name, estimator in estimators.items():
            for step in batch:
                started = perf_counter()
                estimator.fill(rngs[name], noises[name])
                grad = estimator.value_and_grad(
                    case.theta,
                    noises[name],
                    case.x,
                    case.y,
                    case.kl_weight,
                    buffers[name].rewind(),
                ).grad
                times[name][step] = perf_counter() - started
                grads[name][step] = grad
    n_means = case.model.layout.size
    reference = grads[REFERENCE]
    clock = float(np.median(times[REFERENCE]))
    ratios = {name: ratio(grads[name], reference) for name in names}
    return {
        name: Noise(
            ratio(grads[name][:, :n_means], reference[:, :n_means]),
            ratio(grads[name][:, n_means:], reference[:, n_means:]),
            Estimate._make(
                float(np.median(times[name])) / clock * r for r in ratios[name]
            ),
            float(np.median(times[name])),
        )
        for name in names
    }


def ratio(grads: Array, reference: Array) -> Estimate:
    """Return the ratio of summed variances, with the jackknife error over batches.

    Both have one gradient per row, drawn in the same order with the same random numbers.

    Parameters
    ----------
    grads : array (steps, K)
        Gradients of the estimator, one in a row.
    reference : array (steps, K)
        Gradients of the reference estimator.

    Returns
    -------
    Estimate
        The ratio, and its jackknife standard error.
    """
    squares = _batch_squares(grads)
    reference_squares = _batch_squares(reference)
    left_out = (squares.sum() - squares) / (reference_squares.sum() - reference_squares)
    spread = (N_VARIANCE_BATCHES - 1) * np.mean((left_out - left_out.mean()) ** 2)
    return Estimate(
        float(squares.sum() / reference_squares.sum()), float(np.sqrt(spread))
    )


def _batch_squares(grads: Array) -> Array:
    """Return the squared distance to the mean, summed, of every batch (N_VARIANCE_BATCHES,)."""
    squares = np.sum((grads - grads.mean(axis=0)) ** 2, axis=1)
    return np.array(
        [batch.sum() for batch in np.array_split(squares, N_VARIANCE_BATCHES)]
    )


def curves(
    seed: int, steps: int = N_CURVE_GRADIENTS, *, report: ReportWork = ignore_work
) -> dict[str, list[CurvePoint]]:
    """Return bias and noise of IWAE's two gradients and of the EUBO's, by the number of samples.

    They are measured on linear regression, at a q beside the inclusive optimum and wider: there no
    gradient is 0, and the importance weights have all moments that matter here.

    Parameters
    ----------
    seed : int
        Of the data and the noise.
    steps : int
        Number of gradients of each estimator at each number of samples.
    report : callable
        Called with 1 after each number of samples.

    Returns
    -------
    dict of str to list of CurvePoint
        One `CurvePoint` for each of `CURVE_SAMPLE_COUNTS`, by estimator.
    """
    model, x, y = problem = exact.draw(np.random.default_rng(seed), correlation=0.3)
    posterior = exact.exact(problem).posterior
    family = MeanField()
    v = posterior.deviation**2
    sigma = 1.5 * posterior.deviation
    gap = 0.5 * posterior.deviation
    theta = family.pack(posterior.mean - gap, sigma)
    case = Case("linear, beside the optimum", model, family, theta, x, y, 1.0)
    # G8 in expectation: -(m - mu) / sigma^2 and [1 / sigma - (v + (m - mu)^2) / sigma^3] sig(rho)
    d_rho = (1.0 / sigma - (v + gap**2) / sigma**3) * sigmoid(theta[len(sigma) :])
    slope = np.concatenate([-gap / sigma**2, d_rho])
    estimators: dict[str, Estimator] = {
        "IWAE": Reparameterised(model, family, Renyi(0.0)),
        "doubly": DoublyReparameterised(model, family, Renyi(0.0)),
        "EUBO": SelfNormalised(model, family, EUBO()),
    }
    spots: dict[str, list[CurvePoint]] = {name: [] for name in estimators}
    for count in counted(CURVE_SAMPLE_COUNTS, report):
        drawn = {
            n: sample_gradients(e, case, count, steps, seed)
            for n, e in estimators.items()
        }
        iwae = drawn["doubly"][0].mean(axis=0)  # unbiased, and the less noisy one
        for name, (grads, effective) in drawn.items():
            true = slope if name == "EUBO" else iwae
            true_norm = float(np.linalg.norm(true))
            bias = float(np.linalg.norm(grads.mean(axis=0) - true)) / true_norm
            noise = float(np.sqrt(grads.var(axis=0).sum())) / true_norm
            spots[name].append(
                CurvePoint(count, bias, noise / steps**0.5, noise, effective)
            )
    return spots


def sample_gradients(
    estimator: Estimator, case: Case, count: int, steps: int, seed: int
) -> tuple[Array, float]:
    """Return gradients (steps, ...) and the mean effective number of samples.

    Parameters
    ----------
    estimator : GradientEstimator
        Estimator with an importance-weighted objective.
    case : Case
        Model, posterior and rows at which gradients are drawn.
    count : int
        Weight samples of one gradient.
    steps : int
        Number of gradients.
    seed : int
        Of the noise.

    Returns
    -------
    grads : array (steps, K)
        One gradient in a row.
    effective : float
        Effective number of samples, 1 / sum of squared shares, mean over gradients.
    """
    rng = np.random.default_rng(seed)
    buffers = Buffers()
    grads = np.empty((steps, case.theta.size))
    effective = np.empty(steps)
    for step in range(steps):
        _, grads[step], terms = estimator.value_and_grad(
            case.theta,
            estimator.draw(rng, count),
            case.x,
            case.y,
            case.kl_weight,
            buffers.rewind(),
        )
        logs = log_weights(terms, case.kl_weight)
        shares = np.exp(logs - logs.max())
        effective[step] = shares.sum() ** 2 / np.sum(shares**2)
    return grads, float(effective.mean())


def order(noises: dict[str, Noise]) -> list[str]:
    """Return the estimators by falling variance, the geometric mean of both blocks."""
    return sorted(
        noises, key=lambda name: -noises[name].location.mean * noises[name].scale.mean
    )


def draw_variances(
    noises: Mapping[str, Mapping[str, Noise]],
    spots: Mapping[str, Sequence[CurvePoint]],
    names: Sequence[str],
) -> Figure:
    """Draw the variance ratios at every place, and the noise of IWAE and EUBO by number of samples.

    Parameters
    ----------
    noises : mapping of str to mapping of str to Noise
        Results of `measure`, by place.
    spots : mapping of str to sequence of CurvePoint
        Results of `curves`.
    names : sequence of str
        Estimators from top to bottom.

    Returns
    -------
    matplotlib Figure
        A panel for each place above, two panels of curves below.
    """
    figure = Figure(figsize=(13.0, 7.6), layout="constrained")
    upper, lower = cast(Any, figure.subfigures(2, 1, height_ratios=(1.15, 1.0)))
    panels = upper.subplots(1, len(noises), sharey=True)
    for ax, letter, (case_name, rows) in zip(
        panels, "abcde", noises.items(), strict=True
    ):
        _draw_ratios(ax, names, rows)
        ax.set_xlabel(f"relative variance\n({letter}) {case_name}")
    style.legend_of_figure(upper, panels[0], 4)
    left_ax, right = lower.subplots(1, 2)
    counts = [spot.samples for spot in spots["IWAE"]]
    for ax, key, colour, marks, label in (
        (left_ax, "IWAE", BLUE, "o-", "IWAE, reparameterised"),
        (left_ax, "doubly", VERMILLION, "s--", "IWAE, doubly reparameterised"),
        (right, "EUBO", BLUE, "o-", "EUBO, standard deviation"),
    ):
        ax.plot(
            counts, [s.deviation for s in spots[key]], marks, color=colour, label=label
        )
    bias = [s.bias for s in spots["EUBO"]]
    errors = [s.error for s in spots["EUBO"]]
    right.errorbar(
        counts,
        bias,
        errors,
        color=VERMILLION,
        marker="s",
        linestyle="--",
        capsize=2,
        label="EUBO, bias ± its s.e.",
    )
    for ax, title, limits in (
        (left_ax, "(f) IWAE", (1.0, 100.0)),
        (right, "(g) EUBO, score form", (1e-3, 10.0)),
    ):
        ax.set_xscale("log")
        ax.set_yscale("log")
        for axis in (ax.xaxis, ax.yaxis):
            style.plain_numbers(axis)
        ax.set_ylim(*limits)
        samples = (
            f"weight samples per step\n{title}, linear regression beside the optimum"
        )
        finish(ax, samples, "relative to |true gradient|", 2)
    return figure


def _draw_ratios(ax: Axes, names: Sequence[str], rows: Mapping[str, Noise]) -> None:
    fields = (
        ("location", "μ", BLUE, "o", BLUE, 0.2),
        ("scale", "ρ", VERMILLION, "s", "white", 0.0),
        ("cost", "both, × time", GREY, "D", GREY, -0.2),
    )
    values = [
        getattr(noise, field[0]).mean for noise in rows.values() for field in fields
    ]
    lowest = min(value for value in values if value > 1e-12)
    edge = 10.0 ** np.floor(np.log10(min(lowest, 0.1)) - 0.3)
    for field, label, colour, marker, face, shift in fields:
        for row, name in enumerate(reversed(names)):
            if name not in rows:
                continue
            value, error = getattr(rows[name], field)
            legend_label = label if row == 0 else None
            if value < 1e-12:
                ax.plot(edge, row + shift, "<", color=colour, clip_on=False)
                ax.text(
                    edge * 1.4,
                    row + shift,
                    "0",
                    color=colour,
                    va="center",
                    fontsize=8,
                )
                continue
            ax.errorbar(
                value,
                row + shift,
                xerr=2.0 * error,
                color=colour,
                marker=marker,
                label=legend_label,
                markerfacecolor=face,
                markersize=5,
                linestyle="none",
                capsize=2,
            )
    ax.axvline(1.0, color=style.BLACK, linewidth=0.8, linestyle=":")
    ax.set_xscale("log")
    ax.set_xlim(left=edge)
    style.plain_numbers(ax.xaxis)
    ax.xaxis.set_major_locator(LogLocator(numticks=4))
    ax.set_yticks(range(len(names)), list(reversed(names)))
    for row in range(len(names)):
        ax.axhline(row + 0.5, color="#E0E0E0", linewidth=0.6)


def lay_out(
    noises: dict[str, dict[str, Noise]], curves: dict[str, list[CurvePoint]]
) -> str:
    """Return the text of the study: every printed number, and which derivations it shows.

    Parameters
    ----------
    noises : dict of str to dict of str to Noise
        Results of `measure`, by place.
    curves : dict of str to list of CurvePoint
        Results of the function `curves`.
    """
    at_end = noises["network, end"]
    posterior = noises["linear, full rank"]
    best_first = sorted(at_end.items(), key=lambda item: item[1].cost.mean)
    spots = zip(*curves.values(), strict=True)
    return text(
        f"Network 13-50-1, 32 rows of 256; linear regression, 40 rows; variance of {N_GRADIENTS} "
        f"gradients\nof {N_STEP_SAMPLES} weight samples, relative (error of last digits).",
        ratios(noises),
        listed(
            "Linear regression at the full-rank optimum, where q is the posterior.",
            "estimator | mu | factor",
            ((name, posterior[name]) for name in order(posterior)),
            lambda n: f"{concise(*n.location)} | {concise(*n.scale)}",
        ),
        listed(
            "Time of a step at the network's end, and variance x time, relative; best first.",
            "estimator | time (us) | variance x time",
            best_first,
            lambda n: f"{1e6 * n.seconds:.0f} | {concise(*n.cost)}",
        ),
        listed(
            "Beside the optimum: standard deviations over the size of the true gradient.",
            "samples | effective | IWAE | doubly reparameterised | EUBO | bias of EUBO",
            ((str(spot[0].samples), spot) for spot in spots),
            lambda spot: (
                f"{spot[0].effective:.1f} | {spot[0].deviation:.2f} | {spot[1].deviation:.2f} | "
                f"{spot[2].deviation:.2f} | {concise(spot[2].bias, spot[2].error)}"
            ),
        ),
    )


def ratios(noises: dict[str, dict[str, Noise]]) -> str:
    """Return a table of the ratios of every case but the last, where full rank is alone."""
    cases = [*noises][:-1]
    rows = [
        [
            name,
            *(
                concise(*r, max_digits=3)
                for case in cases
                for r in noises[case][name][:2]
            ),
        ]
        for name in order(noises[cases[-2]])
    ]
    titles = [re.sub("^network, |, mean field$| way$", "", case) for case in cases]
    head = [f"{title}, {block}" for title in titles for block in ("mu", "rho")]
    return table(["estimator", *head], rows)


def reproduce(out: Path, seed: int = 0, progress: bool | None = None) -> str:
    """Measure, write ``estimator-variance.png`` and ``.json``, and return the tables.

    Parameters
    ----------
    out : Path
        Folder of the results.
    seed : int
        Of everything that is drawn.
    progress : bool, optional
        Show a progress bar; by default only in a terminal.

    Returns
    -------
    str
        The tables.
    """
    cases = [*network_cases(seed), *linear_cases(seed)]
    with steps(len(cases) + len(CURVE_SAMPLE_COUNTS), progress) as report:
        noises = {case.name: measure(case, seed + 1) for case in counted(cases, report)}
        spots = curves(seed, report=report)
    figure = draw_variances(noises, spots, order(noises["network, end"]))
    rows = {"relative to the reparameterised": noises, "against samples": spots}
    write(out, {"estimator-variance": figure}, rows, "estimator-variance")
    return lay_out(noises, spots)
