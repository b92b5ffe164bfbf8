"""The bounds around the evidence, on linear regression where all of them are known (D25, D28, G6).

For four q, from the prior to the posterior: ELBO, importance-weighted and Renyi bounds, and the
self-normalised estimate of the evidence upper bound, all against the number of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from bbb_numpy.gradients.estimator import GradientEstimator as Estimator
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.objectives import log_weights
from bbb_numpy.numeric.elementary import logsumexp
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.plots import style
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, VERMILLION
from bbb_studies import linear_gaussian as exact
from bbb_studies.kit import Estimate, concise, estimate, listed, table, text, write
from bbb_studies.linear_gaussian import Exact, Gaussian, Regression
from bbb_studies.progress import counted, steps

Array = NDArray[Any]


def problem(seed: int = 0) -> Regression:
    """Draw 20 rows with two correlated inputs, small enough for the prior to be a q."""
    return exact.draw(np.random.default_rng(seed), rows=20, noise=0.5, prior=1.0)


def approximations(truth: Exact, prior_scale: float) -> dict[str, Gaussian]:
    """Return the four q, from the prior to the posterior.

    Parameters
    ----------
    truth : Exact
        Posterior and evidence of the regression.
    prior_scale : float
        Standard deviation of every weight under the prior.

    Returns
    -------
    dict of str to Gaussian
        The four q, by name.
    """
    size = len(truth.precision)
    return {
        "the prior": Gaussian(np.zeros(size), prior_scale**2 * np.eye(size)),
        "reverse-KL mean field": exact.reverse_optimum(truth),
        "inclusive-KL mean field": exact.inclusive_optimum(truth),
        "full rank": truth.posterior,
    }


def estimator_of(data: Regression, q: Gaussian) -> tuple[Estimator, Array]:
    """Return an estimator whose posterior can be `q`, and the theta that describes `q`.

    Parameters
    ----------
    data : Regression
        Model and rows.
    q : Gaussian
        Its covariance decides between `MeanField` and `FullRank`.

    Returns
    -------
    estimator : GradientEstimator
    theta : array (K,)
    """
    if np.array_equal(q.covariance, np.diag(np.diag(q.covariance))):
        family = MeanField()
        return Reparameterised(data.model, family), family.pack(q.mean, q.deviation)
    full = FullRank()
    return Reparameterised(data.model, full), full.pack(q.mean, q.covariance)


# Numbers k of samples of a bound; all divide the last.
BOUND_SAMPLE_COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
BOUND_NAMES = ("IWAE", "Renyi 1/2", "EUBO")
# Independent sets, each of as many samples as the last of these numbers.
N_SAMPLE_SETS = 1000
N_SETS_PER_PASS = 10  # of these sets in one pass through the model


class Case(NamedTuple):
    """One q and what was measured with it; bounds less the log evidence, in nats."""

    name: str
    q: Gaussian
    elbo: float  # exact
    renyi: float  # exact, alpha = 1/2, of infinitely many samples
    eubo: float  # exact
    finite: bool  # whether the importance weights have a finite variance
    bounds: dict[str, tuple[Estimate, ...]]  # of each kind, at each of the counts
    steps: dict[str, tuple[Estimate, ...]]  # from one count to the next, same samples
    sampled_elbo: Estimate
    sampled_eubo: Estimate


def draw(
    data: Regression,
    q: Gaussian,
    rng: np.random.Generator,
    repeats: int = N_SAMPLE_SETS,
    n_samples: int = BOUND_SAMPLE_COUNTS[-1],
) -> Array:
    """Return the log importance weights of samples from `q`, by the library's own forward pass.

    Parameters
    ----------
    data : Regression
        Model and rows.
    q : Gaussian
        Distribution of the samples.
    rng : numpy.random.Generator
        Draws the noise.
    repeats : int
        Number R of independent sets.
    n_samples : int
        Samples in each set.

    Returns
    -------
    array (repeats, n_samples)
        log P(w, D) - log q(w), in nats.
    """
    estimator, theta = estimator_of(data, q)
    rows = []
    for start in range(0, repeats, N_SETS_PER_PASS):
        sets = min(N_SETS_PER_PASS, repeats - start)
        terms = exact.log_densities(
            estimator, theta, estimator.draw(rng, sets * n_samples), data
        )
        rows.append(log_weights(terms, 1.0).reshape(sets, n_samples))
    return np.concatenate(rows)


def draw_posterior(
    data: Regression, q: Gaussian, truth: Exact, rng: np.random.Generator, samples: int
) -> Array:
    """Return log P(w, D) - log q(w) of weights that are drawn from the posterior.

    The noise of an estimator is an argument: eps = (w - mu) / sigma, or L^-1 (w - mu), makes any w
    that one likes.

    Parameters
    ----------
    data : Regression
        Model and rows.
    q : Gaussian
        Distribution whose density is evaluated.
    truth : Exact
        Holds the posterior.
    rng : numpy.random.Generator
        Draws the weights.
    samples : int
        Number S of weights.

    Returns
    -------
    array (samples,)
        In nats.
    """
    estimator, theta = estimator_of(data, q)
    factor = np.linalg.cholesky(truth.posterior.covariance)
    w = truth.posterior.mean + rng.standard_normal((samples, len(q.mean))) @ factor.T
    noise = np.linalg.solve(np.linalg.cholesky(q.covariance), (w - q.mean).T).T
    return log_weights(exact.log_densities(estimator, theta, noise, data), 1.0)


def bound(bound_name: str, logs: Array, count: int) -> Array:
    """Return the bound (R,) of `count` samples, averaged over the sets that each row holds.

    Rows keep their samples at every `count`, so differences between counts have the Monte Carlo
    error of the difference alone.

    Parameters
    ----------
    bound_name : str
        One of `BOUND_NAMES`.
    logs : array (R, k_max)
        Log weights of R sets of samples.
    count : int
        Number k of samples of the bound, a divisor of k_max.
    """
    sets = logs.reshape(len(logs), -1, count)
    if bound_name == "EUBO":
        shares = np.exp(sets - logsumexp(sets, keepdims=True))
        return np.sum(shares * sets, axis=-1).mean(axis=1)
    order = {"IWAE": 1.0, "Renyi 1/2": 0.5}[bound_name]  # 1 - alpha
    return ((logsumexp(order * sets) - np.log(count)) / order).mean(axis=1)


def measure(
    data: Regression, name: str, q: Gaussian, truth: Exact, rng: np.random.Generator
) -> Case:
    """Return every bound of one q, exact and estimated, less the log evidence.

    Parameters
    ----------
    data : Regression
        Model and rows.
    name : str
        Name of q in tables and pictures.
    q : Gaussian
        Distribution to measure.
    truth : Exact
        Posterior and evidence.
    rng : numpy.random.Generator
        Draws the samples of q, then those of the posterior.

    Returns
    -------
    Case
        All values in nats.
    """
    logs = draw(data, q, rng) - truth.log_evidence
    bounds = {}
    steps = {}
    for bound_name in BOUND_NAMES:
        values = [bound(bound_name, logs, count) for count in BOUND_SAMPLE_COUNTS]
        bounds[bound_name] = tuple(map(estimate, values))
        steps[bound_name] = tuple(
            estimate(higher - lower) for lower, higher in pairwise(values)
        )
    posterior_logs = (
        draw_posterior(data, q, truth, rng, 100 * N_SAMPLE_SETS) - truth.log_evidence
    )
    mixed_precision = 2.0 * truth.precision - np.linalg.inv(q.covariance)
    return Case(
        name,
        q,
        exact.elbo(truth, q) - truth.log_evidence,
        exact.renyi(truth, q, 0.5) - truth.log_evidence,
        exact.eubo(truth, q) - truth.log_evidence,
        bool(np.linalg.eigvalsh(mixed_precision).min() > 0.0),
        bounds,
        steps,
        estimate(logs.mean(axis=1)),
        estimate(posterior_logs),
    )


BOUND_STYLES = {  # colour, marker, line, name
    "IWAE": (BLUE, "o", "-", "importance-weighted bound"),
    "Renyi 1/2": (GREEN, "^", "--", "Rényi bound, α = 1/2"),
    "EUBO": (VERMILLION, "s", ":", "self-normalised EUBO"),
}


def draw_bounds(
    cases: Sequence[Case], counts: Sequence[int], figure: Figure | None = None
) -> Figure:
    """Draw all bounds against the number of samples, one panel for each q.

    Parameters
    ----------
    cases : sequence of Case
        One panel each, at most four.
    counts : sequence of int
        Numbers of samples at which `cases` have bounds.
    figure : matplotlib Figure, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Figure
        The figure with its panels.
    """
    figure = figure or Figure(figsize=(12.6, 4.2), layout="constrained")
    panels = figure.subplots(1, len(cases))
    for ax, letter, case in zip(panels, "abcd", cases, strict=True):
        _draw_panel(ax, case, counts)
        ax.set_xlabel(f"samples k\n({letter}) q: {case.name}")
    panels[0].set_ylabel("bound − log evidence ± 2 s.e. (nats)")
    style.legend_of_figure(figure, panels[0], 6)
    return figure


def _draw_panel(ax: Axes, case: Case, counts: Sequence[int]) -> None:
    ax.axhline(0.0, color=BLACK, linewidth=1.2, label="log evidence")
    ax.axhline(
        case.elbo,
        color=GREY,
        linewidth=1.4,
        linestyle=(0, (1, 1.5)),
        label="exact ELBO",
    )
    ax.axhline(
        case.eubo, color=GREY, linewidth=1.4, linestyle=(0, (6, 2)), label="exact EUBO"
    )
    for bound_name, (colour, marker, line, label) in BOUND_STYLES.items():
        means = [b.mean for b in case.bounds[bound_name]]
        errors = [2.0 * b.error for b in case.bounds[bound_name]]
        ax.errorbar(
            counts,
            means,
            errors,
            color=colour,
            marker=marker,
            linestyle=line,
            markersize=4.5,
            linewidth=1.3,
            capsize=2,
            label=label,
        )
    ax.set_xscale("log")
    style.plain_numbers(ax.xaxis)
    largest_gap = max(-case.elbo, case.eubo)
    if largest_gap > 20.0:
        ax.set_yscale("symlog", linthresh=1.0)
        ax.set_yticks([-100, -10, -1, 0, 1, 10])
        ax.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−"))
        )
    elif largest_gap < 1e-6:
        largest = max(
            abs(b.mean) for bound_name in BOUND_STYLES for b in case.bounds[bound_name]
        )
        ax.set_ylim(-1.0, 1.0)
        ax.text(
            0.5,
            0.56,
            f"all bounds equal:\nwithin {largest:.0e} nats",
            transform=ax.transAxes,
            ha="center",
        )


# Nats: where q is the posterior all bounds are the log evidence.
BOUNDS_EQUAL_ATOL = 1e-9


def lay_out(data: Regression, log_evidence: float, cases: Sequence[Case]) -> str:
    """Return the text of the study: every printed number, and which derivations it shows.

    Parameters
    ----------
    data : Regression
        Model and rows.
    log_evidence : float
        In nats.
    cases : sequence of Case
        Results of `measure`.
    """
    rows, d_in = data.x.shape
    exact = listed(
        f"Exact, less log evidence (nats); below, {N_SAMPLE_SETS} sets of "
        f"{BOUND_SAMPLE_COUNTS[-1]} samples.",
        f"{rows} rows, {d_in} inputs, a bias; log evidence {log_evidence:.4f} | ELBO | Renyi 1/2 | "
        "EUBO | variance of weights",
        ((f"q: {case.name}", case) for case in cases),
        lambda case: (
            f"{case.elbo + 0.0:+.4f} | {case.renyi + 0.0:+.4f} | {case.eubo + 0.0:+.4f} | "
            f"{'finite' if case.finite else 'infinite'}"
        ),
    )
    bounds = [_bounds(case) for case in cases if case.eubo > BOUNDS_EQUAL_ATOL]
    return text(
        exact, *bounds, "'EUBO' is the self-normalised estimate from samples of q."
    )


def _bounds(case: Case) -> str:
    rows = []
    for k, *bounds in zip(
        BOUND_SAMPLE_COUNTS,
        *(case.bounds[bound_name] for bound_name in BOUND_NAMES),
        strict=True,
    ):
        shortfall = concise(case.eubo - bounds[-1].mean, bounds[-1].error)
        rows.append([str(k), *(concise(*bound) for bound in bounds), shortfall])
    caption = f"q: {case.name}. Bounds of k samples, less the log evidence (nats)."
    return f"{caption}\n\n{table(('k', *BOUND_NAMES, 'EUBO below its limit'), rows)}"


def reproduce(out: Path, seed: int = 0, progress: bool | None = None) -> str:
    """Measure every q, write ``evidence-bounds.png`` and ``.json``, and return the tables.

    Parameters
    ----------
    out : Path
        Folder of the results.
    seed : int
        Of data and samples.
    progress : bool, optional
        Show a progress bar; by default only in a terminal.

    Returns
    -------
    str
        The tables.
    """
    data_rng_seed, *seeds = np.random.SeedSequence(seed).spawn(6)
    data = problem(int(data_rng_seed.generate_state(1)[0]))
    truth = exact.exact(data)
    rngs = map(np.random.default_rng, seeds[:4])
    named_rngs = list(zip(approximations(truth, 1.0).items(), rngs, strict=True))
    with steps(len(named_rngs), progress) as report:
        cases = [
            measure(data, name, q, truth, rng)
            for (name, q), rng in counted(named_rngs, report)
        ]
    stored = {
        "log_evidence": truth.log_evidence,
        "counts": BOUND_SAMPLE_COUNTS,
        "cases": cases,
    }
    write(
        out,
        {"evidence-bounds": draw_bounds(cases, BOUND_SAMPLE_COUNTS)},
        stored,
        "evidence-bounds",
    )
    return lay_out(data, truth.log_evidence, cases)
