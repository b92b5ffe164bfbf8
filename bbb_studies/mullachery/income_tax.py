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
from bbb_numpy.plots.calibration import coverage_curve
from bbb_numpy.plots.style import BLACK, BLUE, GREY, VERMILLION, finish, plain_numbers
from bbb_numpy.progress import Done, counted, steps, unseen
from bbb_numpy.sampling.draws import DrawnWeights, Draws
from bbb_numpy.sampling.mcmc import NUTS
from bbb_numpy.sampling.run import sample
from bbb_numpy.training import Recipe
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.comparing import learn
from bbb_studies.data import income_tax as data
from bbb_studies.data.income_tax import CLASSES, Cells
from bbb_studies.kit import listed, plus_minus, write

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
    """Return the largest and the median over cells of R-hat of the function; None without ArviZ."""
    try:
        found = function_r_hats(draws, x)
    except ImportError:
        return {"r-hat, largest": None, "r-hat, median": None}
    return {"r-hat, largest": float(found.max()), "r-hat, median": float(np.median(found))}


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


def measure(cells: Cells, results: Mapping[str, Result]) -> dict[str, dict[str, Any]]:
    """Return the scores of every model by name.

    Pairs are mean and standard error, clustered by ZIP code; errors are of the logarithm, NLL in
    nats per cell, gains over linear regression, deviations medians.
    """
    y, base = cells.y[:, 0], results[BASE]
    sizes = {"small": cells.returns <= SMALL, "large": cells.returns > LARGE}
    out: dict[str, dict[str, Any]] = {}
    for name, one in results.items():
        error = y - one.mean
        pairs = {
            "nll": -one.log_density,
            "crps": one.crps,
            "nll_gained": one.log_density - base.log_density,
            "crps_gained": base.crps - one.crps,
            "squared_error_gained": (y - base.mean) ** 2 - error**2,
        }
        out[name] = {
            "rmse": float(np.sqrt(np.mean(error**2))),
            "median_relative_error": float(np.expm1(np.median(np.abs(error)))),
            **{key: clustered_mean(values, cells.place) for key, values in pairs.items()},
            "coverage": coverage(one.pit, (0.5, 0.9, 0.99)).share.tolist(),
            "kolmogorov": kolmogorov(one.pit),
            "epistemic": float(np.median(one.epistemic)),
            **{
                size: {
                    "coverage": float(coverage(one.pit[of], (0.9,)).share[0]),
                    "rmse": float(np.sqrt(np.mean(error[of] ** 2))),
                    "noise": float(np.median(one.noise[of])),
                }
                for size, of in sizes.items()
            },
            "notes": one.notes,  # of each fold
            "seconds": one.seconds,
        }
    return out


def reproduce(
    out: Path, seed: int = 0, *, effort: Effort | None = None, progress: bool | None = None
) -> str:
    """Run everything, write ``tax.png`` and ``numbers.json`` into `out`, return the tables."""
    cells = data.load()
    with steps(FOLDS * len(MODELS), progress) as done:
        results = cross_validate(cells, effort=effort, seed=seed, done=done)
    scores = measure(cells, results)
    found = {"seed": seed, "dropped": cells.dropped, "models": scores}
    write(out, {"tax": draw_figure(cells, results)}, found)
    return _tables(cells, scores)


def _tables(cells: Cells, scores: Mapping[str, Mapping[str, Any]]) -> str:
    rows = {
        "cells": f"{len(cells.y)}",
        "ZIP codes": f"{len(np.unique(cells.place))}",
        "inputs": f"{cells.x.shape[1]}",
        "lowest tax of a return, 1000 USD": f"{np.exp(cells.y.min()):.2f}",
        "highest tax of a return, 1000 USD": f"{np.exp(cells.y.max()):.0f}",
        f"small cells, {SMALL:g} returns or less": f"{(cells.returns <= SMALL).sum()}",
        f"large cells, more than {LARGE:g}": f"{(cells.returns > LARGE).sum()}",
        **{f"left out: {reason}": f"{count}" for reason, count in cells.dropped.items()},
    }
    chains = {
        name: one["notes"] for name, one in scores.items() if "divergences" in one["notes"][0]
    }
    return "\n\n".join(
        [
            listed(
                "Income tax per return, Vermont 2016, by cell: ZIP code x class of income. Target: "
                "its logarithm.\nFive folds, every ZIP code whole.",
                "the data",
                rows.items(),
                {"value": str},
            ),
            listed(
                "RMSE, CRPS: of the logarithm; median: of the absolute relative error; NLL: nats "
                "per cell; +- standard error\nby ZIP code; 50, 90, 99 %: coverage; KS: "
                "Kolmogorov's distance of the PIT x sqrt(cells), at 5 % 1.36.",
                "model",
                scores.items(),
                {
                    "RMSE": "{0[rmse]:.4f}",
                    "median": "{0[median_relative_error]:.1%}",
                    "NLL": lambda s: plus_minus(s["nll"], 3),
                    "CRPS 1e-3": lambda s: plus_minus(s["crps"], 1, 1e3),
                    "50 %": "{0[coverage][0]:.1%}",
                    "90 %": "{0[coverage][1]:.1%}",
                    "99 %": "{0[coverage][2]:.1%}",
                    "KS": "{0[kolmogorov]:.1f}",
                },
            ),
            listed(
                "Gained over linear regression, +- standard error by ZIP code.",
                "gained",
                scores.items(),
                {
                    "NLL, nats": lambda s: plus_minus(s["nll_gained"], 3),
                    "CRPS, 1e-3": lambda s: plus_minus(s["crps_gained"], 1, 1e3),
                    "squared error, 1e-3": lambda s: plus_minus(s["squared_error_gained"], 2, 1e3),
                },
            ),
            listed(
                "By size of the cell: 90 % coverage; RMSE; learned noise (median). Epistemic: "
                "median deviation.",
                "small, large cells",
                scores.items(),
                {
                    "90 %, small": "{0[small][coverage]:.0%}",
                    "large": "{0[large][coverage]:.0%}",
                    "RMSE, small": "{0[small][rmse]:.3f}",
                    "large ": "{0[large][rmse]:.3f}",
                    "noise, small": "{0[small][noise]:.3f}",
                    "large  ": "{0[large][noise]:.3f}",
                    "epistemic, all": "{0[epistemic]:.4f}",
                },
            ),
            listed(
                "Chains of NUTS: R-hat in function space (rank-normalised, of halved chains) over "
                "the cells of a fold.",
                "chains",
                chains.items(),
                {
                    "divergences": lambda some: f"{sum(n['divergences'] for n in some):.0f}",
                    "largest R-hat: worst fold": lambda some: _r_hat(some, "largest", max),
                    "best": lambda some: _r_hat(some, "largest", min),
                    "median R-hat: worst": lambda some: _r_hat(some, "median", max),
                    "best ": lambda some: _r_hat(some, "median", min),
                },
            ),
        ]
    )


def _r_hat(
    notes: Sequence[Mapping[str, Any]], which: str, of_folds: Callable[[list[float]], float]
) -> str:
    """Return one of the folds' R-hats; "-" without ArviZ."""
    found = [note[f"r-hat, {which}"] for note in notes]
    return "-" if None in found else f"{of_folds(found):.2f}"


MARKERS = "osD^v*"
SHADES = ("#000000", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00")
LEVELS = np.linspace(0.02, 0.98, 49)


def draw_figure(cells: Cells, results: Mapping[str, Result]) -> Figure:
    """Draw predictions, calibration and the learned noise of the last model against others."""
    figure = Figure(figsize=(15.0, 4.8), layout="constrained")
    a, b, c = figure.subplots(1, 3)
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
