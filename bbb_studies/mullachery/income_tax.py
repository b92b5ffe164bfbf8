"""Income tax per return by ZIP code and class of income: the regression that the paper left open.

Cross-validation keeps every ZIP code whole. Models differ in what they know of the mean and in
what they know of the noise; scores say which of the two mattered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from bbb_numpy.evaluation.calibration import coverage, crps_mixture, kolmogorov, pit
from bbb_numpy.evaluation.convergence import function_r_hats
from bbb_numpy.evaluation.reliability import clustered_mean
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.model.joint import Likelihood, Model
from bbb_numpy.numeric.elementary import LOG_2PI, logsumexp
from bbb_numpy.numeric.standardisation import moments
from bbb_numpy.parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.calibration import STYLES, coverage_curve, pit_histogram
from bbb_numpy.plots.style import BLACK, BLUE, GREY, VERMILLION, finish, plain_numbers
from bbb_numpy.progress import Done, counted, steps, unseen
from bbb_numpy.sampling.draws import DrawnWeights, Draws
from bbb_numpy.sampling.mcmc import NUTS
from bbb_numpy.sampling.run import sample
from bbb_numpy.training import Recipe
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.comparing import (
    Claim,
    captioned,
    claims,
    learn,
    plus_minus,
    table,
    table_of_columns,
    write,
)
from bbb_studies.data import income_tax as data
from bbb_studies.data.income_tax import CLASSES, Cells

Array = NDArray[Any]


@dataclass(frozen=True)
class Effort:
    """How much is computed; less for a quick look."""

    hidden: int = 8
    prior_scale: float = 0.3
    noise_floor: float = 0.02  # of the noise by cell, in deviations of the centred target
    chains: int = 4
    warm_up: int = 200
    draws: int = 200
    max_depth: int = 6
    epochs: int = 600
    kept: int = 200  # components of the mixture that is scored


class Task(NamedTuple):
    """Training cells with targets, and test cells without."""

    x: Array  # (N, d_in)
    y: Array  # (N,)  logarithms
    income_class: NDArray[np.int_]  # (N,)
    test: Array  # (M, d_in)
    test_class: NDArray[np.int_]  # (M,)
    seed: tuple[int, ...]
    effort: Effort


class Mixture(NamedTuple):
    """An equal mixture of T Gaussians for each of M cells."""

    means: Array  # (T, M, 1)
    scales: Array  # (T, M, 1)
    note: dict[str, Any]


def class_mean(task: Task) -> Mixture:
    """Climatology: mean and deviation of the class among the training cells."""
    found = [task.y[task.income_class == one] for one in range(task.income_class.max() + 1)]
    mean, scale = (np.array([function(y) for y in found]) for function in (np.mean, _deviation))
    return Mixture(mean[task.test_class][None, :, None], scale[task.test_class][None, :, None], {})


def _deviation(y: Array) -> float:
    return float(np.std(y, ddof=1))


def least_squares(task: Task) -> Mixture:
    """Linear regression with one noise deviation; the error of the coefficients included."""
    mean, scale = moments(task.x, True)
    design, test = (
        np.column_stack([(x - mean) / scale, np.ones(len(x))]) for x in (task.x, task.test)
    )
    inverse = np.linalg.pinv(design.T @ design)
    weights = inverse @ (design.T @ task.y)
    residual = task.y - design @ weights
    variance = residual @ residual / (len(task.y) - design.shape[1])
    leverage = np.einsum("mi,ij,mj->m", test, inverse, test)
    deviation = np.sqrt(variance * (1.0 + leverage))
    return Mixture((test @ weights)[None, :, None], deviation[None, :, None], {})


class Prepared(NamedTuple):
    """A task in the units of a network."""

    model: Model
    x: Array
    y: Array  # (N, 1)
    test: Array
    centre: Array  # (M, 1)  what to add to predictions, after
    scale: float  # multiplying by this


def _prepare(task: Task, hidden: tuple[int, ...], likelihood: Likelihood) -> Prepared:
    mean, scale = moments(task.x, True)
    centre = class_mean(task._replace(test_class=task.income_class)).means[0, :, 0]
    spread = _deviation(task.y - centre)
    net = MLP((task.x.shape[1], *hidden, likelihood.heads(1)), "tanh")
    return Prepared(
        Model(net, GaussianPrior(task.effort.prior_scale), likelihood),
        (task.x - mean) / scale,
        ((task.y - centre) / spread)[:, None],
        (task.test - mean) / scale,
        class_mean(task).means[0],
        spread,
    )


def _mixture(
    ready: Prepared, source: Any, theta: Array, rng: np.random.Generator, kept: int
) -> Mixture:
    """Return the mixture over `kept` weight samples, in the units of the targets."""
    eps = source.draw_weights(rng, kept, theta.dtype)
    w, params = source.weights(theta, eps), source.params(theta, eps)
    f = ready.model.predict(w, ready.test)  # (T, M, heads)
    likelihood = ready.model.likelihood
    means = ready.centre + ready.scale * likelihood.mean(params, f)
    noise = np.sqrt(np.broadcast_to(likelihood.variance(params, f), means.shape))
    return Mixture(means, ready.scale * noise, {})


def _train(ready: Prepared, task: Task, rng: np.random.Generator) -> tuple[Any, Array]:
    estimator = ClosedFormKL(ready.model, MeanField(0.3, -4.0))
    recipe = Recipe(Adam(1e-2, schedule=Cosine()), epochs=task.effort.epochs, batch_size=250)
    return estimator, learn(estimator, ready.x, ready.y, recipe, rng)


def _variational(hidden: bool, by_cell: bool) -> Callable[[Task], Mixture]:
    def predict(task: Task) -> Mixture:
        ready = _prepare(task, *_parts(task, hidden, by_cell))
        rng = np.random.default_rng([*task.seed, 1])
        estimator, theta = _train(ready, task, rng)
        return _mixture(ready, estimator, theta, rng, task.effort.kept)

    return predict


def _sampled(hidden: bool, by_cell: bool) -> Callable[[Task], Mixture]:
    """Sample by NUTS, every chain from a draw of a mean-field fit of its own."""

    def predict(task: Task) -> Mixture:
        effort = task.effort
        ready = _prepare(task, *_parts(task, hidden, by_cell))
        rng = np.random.default_rng([*task.seed, 2])
        begin = []
        for _ in range(effort.chains):
            estimator, theta = _train(ready, task, rng)
            w = estimator.weights(theta, estimator.draw_weights(rng, 1))[0]
            learned = [v.ravel() for v in estimator.layout.views(theta).values()][2:]
            begin.append(np.concatenate([w, *learned]))
        draws = sample(
            ready.model, ready.x, ready.y, sampler=NUTS(max_depth=effort.max_depth),
            chains=effort.chains, groups=1, warm_up=effort.warm_up, draws=effort.draws, seed=rng,
            start=np.array(begin), progress=False,
        )  # fmt: skip
        source = DrawnWeights(ready.model)
        found = _mixture(ready, source, draws.flat, rng, effort.kept)
        return found._replace(
            note={
                **_r_hats(draws, ready.test),
                "divergences": float(draws.divergences),
                "gradients": float(draws.stats["gradients"].sum()),
            }
        )

    return predict


def _parts(task: Task, hidden: bool, by_cell: bool) -> tuple[tuple[int, ...], Likelihood]:
    """Return the hidden widths and the likelihood."""
    likelihood: Likelihood = (
        HeteroscedasticLikelihood(task.effort.noise_floor)
        if by_cell
        else GaussianLikelihood(0.3, learn=True)
    )
    return (task.effort.hidden,) if hidden else (), likelihood


def _r_hats(draws: Draws, x: Array) -> dict[str, Any]:
    """Return the largest and the median over cells of R-hat of the function, or why there is none.

    None stands for infinity, which JSON does not know: each chain stands still.
    """
    try:
        found = function_r_hats(draws, x)
    except (ImportError, ValueError) as error:  # no ArviZ, or too few chains or draws
        return {"why no r-hat": str(error)}
    named = {"r-hat, largest": found.max(), "r-hat, median": np.median(found)}
    return {name: float(one) if np.isfinite(one) else None for name, one in named.items()}


NUTS_NAME = "network, noise by cell, NUTS"
MODELS: dict[str, Callable[[Task], Mixture]] = {
    "class mean": class_mean,
    "linear regression": least_squares,
    "linear, noise by cell, NUTS": _sampled(hidden=False, by_cell=True),
    "network, one noise, VI": _variational(hidden=True, by_cell=False),
    "network, noise by cell, VI": _variational(hidden=True, by_cell=True),
    NUTS_NAME: _sampled(hidden=True, by_cell=True),
}


FOLDS, FOR_CRPS = 5, 100
SMALL, LARGE = 50.0, 200.0  # returns of a cell
BASE = "linear regression"


class Result(NamedTuple):
    """One model, all N cells predicted once, each by the fold that did not train on it."""

    mean: Array  # (N,)
    epistemic: Array  # (N,)  deviation of the mean between weight samples
    noise: Array  # (N,)  root mean noise variance
    log_density: Array  # (N,)
    pit: Array  # (N,)
    crps: Array  # (N,)
    notes: list[dict[str, Any]]  # of each fold
    seconds: float


def _empty(size: int) -> Result:
    a, b, c, d, e, f = np.full((6, size), np.nan)
    return Result(a, b, c, d, e, f, [], 0.0)


def log_density(found: Mixture, y: Array) -> Array:
    """Return the log density (M,) of targets (M, 1) under a mixture of Gaussians, in nats."""
    z = (y - found.means) / found.scales
    each = -0.5 * z * z - np.log(found.scales) - 0.5 * LOG_2PI
    return logsumexp(each[..., 0], axis=0) - np.log(len(each))


def cross_validate(
    cells: Cells,
    *,
    models: Mapping[str, Callable[[Task], Mixture]] = MODELS,
    count: int = FOLDS,
    effort: Effort | None = None,
    seed: int = 0,
    done: Done = unseen,
) -> dict[str, Result]:
    """Predict every cell by every model, trained on other ZIP codes."""
    effort = effort or Effort()
    out = {name: _empty(len(cells.y)) for name in models}
    for fold, (train, test) in enumerate(data.folds(cells.place, count, seed)):
        task = Task(
            cells.x[train],
            cells.y[train, 0],
            cells.income_class[train],
            cells.x[test],
            cells.income_class[test],
            (seed, fold),
            effort,
        )
        y = cells.y[test]
        for name, model in counted(models.items(), done):
            began = perf_counter()
            found = model(task)
            seconds = perf_counter() - began
            some = np.linspace(0, len(found.means) - 1, min(len(found.means), FOR_CRPS)).astype(int)
            one = out[name]
            one.mean[test] = found.means.mean(axis=0)[:, 0]
            one.epistemic[test] = found.means.std(axis=0)[:, 0]
            one.noise[test] = np.sqrt((found.scales**2).mean(axis=0))[:, 0]
            one.log_density[test] = log_density(found, y)
            one.pit[test] = pit(found.means, found.scales, y)[:, 0]
            one.crps[test] = crps_mixture(found.means[some], found.scales[some], y)[:, 0]
            one.notes.append(found.note)
            out[name] = one._replace(seconds=one.seconds + seconds)
    return out


class Scores(NamedTuple):
    """What is said of one model; pairs are mean and standard error, clustered by ZIP code.

    Errors are of the logarithm; gains over linear regression.
    """

    rmse: float
    median_relative_error: float
    nll: tuple[float, float]  # nats per cell
    crps: tuple[float, float]
    nll_gained: tuple[float, float]
    crps_gained: tuple[float, float]
    squared_error_gained: tuple[float, float]
    coverage: dict[str, float]  # by level in %
    coverage_90_small_cells: float
    coverage_90_large_cells: float
    kolmogorov: float
    epistemic: float  # medians of deviations
    noise_small_cells: float
    noise_large_cells: float
    error_small_cells: float  # root mean squares
    error_large_cells: float
    notes: list[dict[str, Any]]  # of each fold
    seconds: float


def measure(cells: Cells, results: Mapping[str, Result]) -> dict[str, Scores]:
    """Return the scores of every model."""
    y, base = cells.y[:, 0], results[BASE]
    small, large = cells.returns <= SMALL, cells.returns > LARGE
    out = {}
    for name, one in results.items():
        error = y - one.mean
        held = coverage(one.pit, (0.5, 0.9, 0.99))
        gained = (y - base.mean) ** 2 - error**2
        out[name] = Scores(
            rmse=float(np.sqrt(np.mean(error**2))),
            median_relative_error=float(np.expm1(np.median(np.abs(error)))),
            nll=clustered_mean(-one.log_density, cells.place),
            crps=clustered_mean(one.crps, cells.place),
            nll_gained=clustered_mean(one.log_density - base.log_density, cells.place),
            crps_gained=clustered_mean(base.crps - one.crps, cells.place),
            squared_error_gained=clustered_mean(gained, cells.place),
            coverage=dict(zip(("50", "90", "99"), held.share.tolist(), strict=True)),
            coverage_90_small_cells=float(coverage(one.pit[small], (0.9,)).share[0]),
            coverage_90_large_cells=float(coverage(one.pit[large], (0.9,)).share[0]),
            kolmogorov=kolmogorov(one.pit),
            epistemic=float(np.median(one.epistemic)),
            noise_small_cells=float(np.median(one.noise[small])),
            noise_large_cells=float(np.median(one.noise[large])),
            error_small_cells=float(np.sqrt(np.mean(error[small] ** 2))),
            error_large_cells=float(np.sqrt(np.mean(error[large] ** 2))),
            notes=one.notes,
            seconds=one.seconds,
        )
    return out


MARKERS = "osD^v*"
SHADES = ("#000000", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00")
LEVELS = np.linspace(0.02, 0.98, 49)


def draw_figure(cells: Cells, results: Mapping[str, Result]) -> Figure:
    """Draw predictions, calibration and the learned noise of the last model against others."""
    figure = Figure(figsize=(15.0, 9.6), layout="constrained")
    (a, b, c), (d, e, f) = figure.subplots(2, 3)
    best, linear = NUTS_NAME, BASE
    _draw_predictions(a, cells, results[best].mean)
    predicted = f"predicted income tax per return (1000 USD)\n(a) {best}; by class of income"
    finish(a, predicted, "income tax per return (1000 USD)", 3)
    styles = {
        best: best,
        linear: linear,
        "network, noise by cell, VI": "network, noise by cell, VI",
        "network, one noise, VI": "network, one noise",
    }
    coverage_curve(
        {
            label: coverage(results[name].pit, LEVELS)
            for name, label in styles.items()
            if name in results
        },
        ax=b,
    )
    b.set_xlabel("level of the central interval\n(b) coverage, all cells")
    _draw_noise(c, cells, results, best, linear)
    for ax, name, letter in ((d, linear, "d"), (e, best, "e")):
        pit_histogram(results[name].pit, ax=ax)
        ax.set_xlabel(f"PIT, F(y)\n({letter}) {name}")
    top = max(d.get_ylim()[1], e.get_ylim()[1])
    d.set_ylim(0, top)
    e.set_ylim(0, top)
    _draw_by_size(f, cells, results, styles)
    return figure


def _draw_predictions(ax: Axes, cells: Cells, mean: Any) -> None:
    for which, (marker, shade) in enumerate(zip(MARKERS, SHADES, strict=True)):
        chosen = cells.income_class == which
        ax.plot(
            np.exp(mean[chosen]), np.exp(cells.y[chosen, 0]), marker, color=shade, markersize=4,
            alpha=0.7, label=f"{CLASSES[which]} k",
        )  # fmt: skip
    ends = np.exp([cells.y.min(), cells.y.max()])
    ax.plot(ends, ends, "--", color=BLACK, linewidth=1.0)
    ax.set_xscale("log")
    ax.set_yscale("log")
    plain_numbers(ax.xaxis)
    plain_numbers(ax.yaxis)


def _draw_noise(
    ax: Axes, cells: Cells, results: Mapping[str, Result], best: str, linear: str
) -> None:
    ax.plot(
        cells.returns, results[best].noise, ".", color=BLUE, markersize=4, alpha=0.5,
        label="learned noise of each cell",
    )  # fmt: skip
    tenths = np.array_split(np.argsort(cells.returns, kind="stable"), 10)  # decile by decile
    for name, colour, marker, aside in ((best, BLACK, "o", 0.94), (linear, VERMILLION, "s", 1.06)):
        error = cells.y[:, 0] - results[name].mean
        ax.plot(
            [aside * np.median(cells.returns[t]) for t in tenths],
            [np.sqrt(np.mean(error[t] ** 2)) for t in tenths],
            marker, color=colour, markersize=6, markerfacecolor=colour if name == best else "white",
            markeredgewidth=1.6,
            label=f"RMSE by decile, {'network' if name == best else 'linear'}",
        )  # fmt: skip
    at = np.array([cells.returns.min(), cells.returns.max()])
    middle = np.median(results[best].noise) * np.sqrt(np.median(cells.returns) / at)
    ax.plot(at, middle, "--", color=GREY, linewidth=1.4, label="1 / sqrt(returns)")
    ax.set_xscale("log")
    ax.set_yscale("log")
    plain_numbers(ax.xaxis)
    plain_numbers(ax.yaxis, minor="25")
    x_label = "returns of the cell (deciles at their medians, side by side)\n(c) noise by size"
    finish(ax, f"{x_label} of the cell", "deviation of log tax", 2)


def _draw_by_size(
    ax: Axes, cells: Cells, results: Mapping[str, Result], styles: Mapping[str, str]
) -> None:
    fifths = np.array_split(np.argsort(cells.returns, kind="stable"), 5)
    there = {name: label for name, label in styles.items() if name in results}
    aside = 1.045 ** (2.0 * np.arange(len(there)) - len(there) + 1.0)  # a factor: x is logarithmic
    for (name, label), (colour, marker, style), shift in zip(
        there.items(), STYLES, aside, strict=False
    ):
        held = [coverage(results[name].pit[fifth], (0.9,)) for fifth in fifths]
        share = np.array([one.share[0] for one in held])
        low, high = np.array([(one.low[0], one.high[0]) for one in held]).T
        ax.errorbar(
            [shift * np.median(cells.returns[fifth]) for fifth in fifths], 100 * share,
            yerr=100 * np.abs([share - low, high - share]), marker=marker, linestyle=style,
            color=colour, capsize=3, markersize=6, label=label,
        )  # fmt: skip
    ax.axhline(90, color=BLACK, linestyle="--", linewidth=1.0, label="90 %")
    ax.set_xscale("log")
    ticks = [20, 50, 100, 200, 500, 1000]
    ax.set_xticks(ticks, [f"{tick}" for tick in ticks])
    ax.xaxis.set_minor_formatter(NullFormatter())
    x_label = "returns of the cell (fifths at their medians, side by side)\n(f) coverage of 90 %"
    finish(ax, f"{x_label} intervals by size", "targets inside (%, 95 % interval)", 2)


def reproduce(
    out: Path, seed: int = 0, *, effort: Effort | None = None, progress: bool | None = None
) -> str:
    """Run everything, write ``tax.png`` and ``numbers.json`` into `out`, return the tables."""
    cells = data.load()
    with steps(FOLDS * len(MODELS), progress) as done:
        results = cross_validate(cells, effort=effort, seed=seed, done=done)
    scores = measure(cells, results)
    found = {"seed": seed, "facts": facts(cells), "models": scores}
    write(out, {"tax": draw_figure(cells, results)}, found)
    return _tables(cells, scores)


def facts(cells: Cells) -> dict[str, Any]:
    """Return what the cells are, and how many rows were left out, by reason."""
    return {
        "cells": len(cells.y),
        "places": len(np.unique(cells.place)),
        "inputs": cells.x.shape[1],
        "dropped": cells.dropped,
        "small cells": int((cells.returns <= SMALL).sum()),
        "large cells": int((cells.returns > LARGE).sum()),
        "lowest tax": float(np.exp(cells.y.min())),
        "highest tax": float(np.exp(cells.y.max())),
    }


def _tables(cells: Cells, scores: Mapping[str, Scores]) -> str:
    every = scores.values()
    parts = {
        "Income tax per return, Vermont 2016, by cell: ZIP code x class of income. Target: its "
        "logarithm.\nFive folds, every ZIP code whole.": _cells(cells),
        "RMSE, CRPS: of the logarithm; median: of the absolute relative error; NLL: nats per cell; "
        "+- standard error\nby ZIP code; 50, 90, 99 %: coverage; KS: Kolmogorov's distance of the "
        "PIT x sqrt(cells), at 5 % 1.36.": _scores(scores),
        "Gained over linear regression, +- standard error by ZIP code.": table_of_columns(
            {
                "gained": list(scores),
                "NLL, nats": [plus_minus(*s.nll_gained, 3) for s in every],
                "CRPS, 1e-3": [plus_minus(*s.crps_gained, 1, 1e3) for s in every],
                "squared error, 1e-3": [plus_minus(*s.squared_error_gained, 2, 1e3) for s in every],
            }
        ),
        "By size of the cell: 90 % coverage; RMSE; learned noise (median). Epistemic: median "
        "deviation.": _by_size(scores),
        "Chains of NUTS: R-hat in function space (rank-normalised, of halved chains) over the "
        "cells of a fold.": _chains(scores),
    }
    judged = claims(
        "The paper leaves this regression open and prints nothing; s.e.: how far from none.",
        "the paper",
        claims_of_the_paper(scores),
    )
    return f"{captioned(parts)}\n\n{judged}"


def _cells(cells: Cells) -> str:
    found = facts(cells)
    rows = [
        ("cells", f"{found['cells']}"),
        ("ZIP codes", f"{found['places']}"),
        ("inputs", f"{found['inputs']}"),
        ("lowest tax of a return, 1000 USD", f"{found['lowest tax']:.2f}"),
        ("highest tax of a return, 1000 USD", f"{found['highest tax']:.0f}"),
        (f"small cells, {SMALL:g} returns or less", f"{found['small cells']}"),
        (f"large cells, more than {LARGE:g}", f"{found['large cells']}"),
        *((f"left out: {reason}", f"{count}") for reason, count in cells.dropped.items()),
    ]
    return table(("the data", "value"), rows)


def _scores(scores: Mapping[str, Scores]) -> str:
    every = scores.values()
    columns = {
        "model": list(scores),
        "RMSE": [f"{s.rmse:.4f}" for s in every],
        "median": [f"{s.median_relative_error:.1%}" for s in every],
        "NLL": [plus_minus(*s.nll, 3) for s in every],
        "CRPS 1e-3": [plus_minus(*s.crps, 1, 1e3) for s in every],
        "50 %": [f"{s.coverage['50']:.1%}" for s in every],
        "90 %": [f"{s.coverage['90']:.1%}" for s in every],
        "99 %": [f"{s.coverage['99']:.1%}" for s in every],
        "KS": [f"{s.kolmogorov:.1f}" for s in every],
    }
    return table_of_columns(columns)


def _by_size(scores: Mapping[str, Scores]) -> str:
    every = scores.values()
    columns = {
        "small, large cells": list(scores),
        "90 %, small": [f"{s.coverage_90_small_cells:.0%}" for s in every],
        "large": [f"{s.coverage_90_large_cells:.0%}" for s in every],
        "RMSE, small": [f"{s.error_small_cells:.3f}" for s in every],
        "large ": [f"{s.error_large_cells:.3f}" for s in every],
        "noise, small": [f"{s.noise_small_cells:.3f}" for s in every],
        "large  ": [f"{s.noise_large_cells:.3f}" for s in every],
        "epistemic, all": [f"{s.epistemic:.4f}" for s in every],
    }
    return table_of_columns(columns)


def _chains(scores: Mapping[str, Scores]) -> str:
    notes = {name: one.notes for name, one in scores.items() if "divergences" in one.notes[0]}
    columns = {
        "chains": list(notes),
        "divergences": [f"{sum(n['divergences'] for n in some):.0f}" for some in notes.values()],
        "largest R-hat: worst fold": [_r_hat(some, "largest", max) for some in notes.values()],
        "best": [_r_hat(some, "largest", min) for some in notes.values()],
        "median R-hat: worst": [_r_hat(some, "median", max) for some in notes.values()],
        "best ": [_r_hat(some, "median", min) for some in notes.values()],
    }
    reasons = {
        note["why no r-hat"] for some in notes.values() for note in some if "why no r-hat" in note
    }
    return "\n".join([table_of_columns(columns), *(f"no R-hat: {why}" for why in sorted(reasons))])


def _r_hat(
    notes: Sequence[Mapping[str, Any]], which: str, of_folds: Callable[[list[float]], float]
) -> str:
    """Return one of the folds' R-hats, of which None is infinite; or that there are none."""
    found = [note.get(f"r-hat, {which}", np.nan) for note in notes]
    value = of_folds([np.inf if one is None else one for one in found])
    return "-" if np.isnan(value) else f"{value:.2f}"


def claims_of_the_paper(scores: Mapping[str, Scores]) -> list[Claim]:
    """Judge what the regression left open can show: that networks and noise by cell gain."""
    best, noise = scores[NUTS_NAME], scores["linear, noise by cell, NUTS"]
    linear = scores[BASE]
    first = "the network with noise by cell gains over linear regression, nats"
    gains = {
        first: (best.nll_gained, 3, 1.0),
        "... by the noise alone, with a linear mean, nats": (noise.nll_gained, 3, 1.0),
        "... in squared error, 1e-3": (best.squared_error_gained, 2, 1e3),
    }
    small, large = linear.coverage_90_small_cells, linear.coverage_90_large_cells
    held = "one noise: 90 % intervals hold, in small cells"
    return [
        *(
            Claim(said, "more than 0", plus_minus(*gain, digits, scale), gain[0] / gain[1], True)
            for said, (gain, digits, scale) in gains.items()
        ),
        Claim(held, "< 90 %", f"{small:.0%}", small < 0.9, True),
        Claim("... in large ones", "> 90 %", f"{large:.0%}", large > 0.9, True),
    ]
