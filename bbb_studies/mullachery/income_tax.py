"""Income tax per return by ZIP code and class of income: the regression that the paper left open.

Mullachery et al. name the set, Vermont 2016, and leave it unfinished. The task made of it here: the
logarithm of the income tax of an average return (A06500 / N1, in thousand USD) of one cell, which
is one ZIP code and one of six classes of adjusted gross income, from what its returns state before
any tax is computed. `LEAKING_COLUMNS` lists the columns that may not be inputs, and why.

Cross-validation keeps every ZIP code whole. Models differ in what they know of the mean and in
what they know of the noise; scores say which of the two mattered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import kstest
from sklearn.linear_model import LinearRegression

from bbb_numpy.evaluation.calibration import coverage, crps_mixture, pit
from bbb_numpy.evaluation.convergence import function_r_hats
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
from bbb_numpy.sampling.draws import DrawnWeights
from bbb_numpy.training import Recipe
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.comparing import draw, learn
from bbb_studies.data.locate import SETS, DamagedDataError, locate, numbers, read
from bbb_studies.kit import by_key, clustered_mean, panels, text, values, write
from bbb_studies.progress import ReportWork, counted, ignore_work, steps

Array = NDArray[Any]
Int = NDArray[np.intp]
TAX_FILE: str = SETS["irs_vermont"]["file"]
# Amounts in thousand USD, used as shares of A00100, the adjusted gross income
AMOUNT_COLUMNS = SETS["irs_vermont"]["amounts"]
COUNT_COLUMNS = SETS["irs_vermont"]["counts"]  # used per return
LEAKING_COLUMNS = SETS["irs_vermont"]["leaks"]  # must not be used, and why
AGGREGATE_ZIP_CODES = ("0", "00000", "99999")  # the state's total, and all other codes
INCOME_CLASSES = (
    "below 25",
    "25 to 50",
    "50 to 75",
    "75 to 100",
    "100 to 200",
    "200 and more",
)
# Log of a typical income of each class in thousand USD. It is subtracted from the log income, which
# would else be nearly a function of the class indicators: samplers mix slowly along directions that
# the data do not determine.
LOG_TYPICAL_INCOME = np.log([12.0, 36.0, 61.0, 87.0, 138.0, 380.0])
TAX_INPUTS = (
    "log income per return, less that typical of the class",
    *(f"{name} / income" for name in AMOUNT_COLUMNS.values()),
    *(f"{name} / returns" for name in COUNT_COLUMNS.values()),
    "log returns",
    *(f"class {name}" for name in INCOME_CLASSES[1:]),
)


class Cells(NamedTuple):
    """One row for each usable cell of ZIP code and class of income, N in all."""

    x: Array  # (N, d_in)  the columns of `TAX_INPUTS`
    y: Array  # (N, 1)  log of the income tax per return in thousand USD
    zip_code: NDArray[np.str_]  # (N,)  ZIP code
    income_class: NDArray[np.int_]  # (N,)  0 to 5, see `INCOME_CLASSES`
    returns: Array  # (N,)  number of returns, rounded to 10 by the IRS
    dropped: dict[str, int]  # reason -> rows left out


def load() -> Cells:
    """Read the file and return the cells that can be used, and what was dropped and why.

    Raises
    ------
    MissingDataError
        If the file is not there; says where to get it.
    DamagedDataError
        If a column is missing or holds no numbers.
    """
    header, text = read(locate("irs_vermont"))
    needed_columns = [
        "AGI_STUB",
        "N1",
        "A00100",
        "A06500",
        *AMOUNT_COLUMNS,
        *COUNT_COLUMNS,
    ]
    if absent := [name for name in ("ZIPCODE", *needed_columns) if name not in header]:
        raise DamagedDataError(f"{TAX_FILE} has no column {', '.join(absent)}")
    zip_code = text[:, header.index("ZIPCODE")]
    values = numbers(
        TAX_FILE,
        text[:, [header.index(name) for name in needed_columns]],
        needed_columns,
    )
    column = dict(zip(needed_columns, values.T, strict=True))
    reasons = {
        "state total and all other codes": np.isin(zip_code, AGGREGATE_ZIP_CODES),
        "no returns shown (suppressed by the IRS)": column["N1"] == 0,
        "income tax shown as 0 (suppressed by the IRS)": column["A06500"] <= 0,
        "no positive income": column["A00100"] <= 0,
    }
    is_usable = np.ones(len(zip_code), bool)
    dropped = {}
    for reason, matches in reasons.items():
        dropped[reason] = int((is_usable & matches).sum())
        is_usable &= ~matches
    column = {name: values[is_usable] for name, values in column.items()}
    income = column["A00100"]
    returns = column["N1"]
    income_class = column["AGI_STUB"].astype(int) - 1
    x = [
        np.log(income / returns) - LOG_TYPICAL_INCOME[income_class],
        *(column[name] / income for name in AMOUNT_COLUMNS),
        *(column[name] / returns for name in COUNT_COLUMNS),
        np.log(returns),
        np.eye(len(INCOME_CLASSES))[income_class, 1:],
    ]
    y = np.log(column["A06500"] / returns)[:, None]
    return Cells(
        np.column_stack(x), y, zip_code[is_usable], income_class, returns, dropped
    )


def folds(
    zip_code: NDArray[np.str_], n_folds: int = 5, seed: int = 0
) -> list[tuple[Int, Int]]:
    """Split rows into folds that keep the cells of every ZIP code together.

    The six cells of one ZIP code are alike: with a random split, training cells would say much of
    the test cells.

    Parameters
    ----------
    zip_code : ndarray (N,) of str
        Of each row.
    n_folds : int
        Number of folds.
    seed : int
        Of the assignment of ZIP codes to folds.

    Returns
    -------
    list of (train, test)
        Indices of rows; every row is in one test set.
    """
    names, code = np.unique(zip_code, return_inverse=True)
    fold = np.empty(len(names), int)
    fold[np.random.default_rng(seed).permutation(len(names))] = (
        np.arange(len(names)) % n_folds
    )
    tests = [fold[code] == index for index in range(n_folds)]
    return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in tests]


@dataclass(frozen=True)
class Effort:
    """How much is computed; less for a quick look."""

    hidden: int = 8  # tanh units
    prior_scale: float = 0.3  # standard deviation of the weights
    # Least noise of a cell, in standard deviations of the centred target
    noise_floor: float = 0.02
    chains: int = 4
    warm_up: int = 200
    draws: int = 200  # of each chain
    max_depth: int = 6  # of the trees of NUTS
    epochs: int = 600  # of VI, and of the fits from which chains start
    kept: int = 200  # components of the mixture that is scored


class Task(NamedTuple):
    """One fold: training cells with their targets, and test cells without."""

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
    note: Mapping[str, Any] = {}


def class_mean(task: Task) -> Mixture:
    """Predict the mean and the standard deviation of the class among the training cells."""
    targets = [
        task.y[task.income_class == class_index]
        for class_index in range(task.income_class.max() + 1)
    ]
    mean = np.array([y.mean() for y in targets])[task.test_class]
    scale = np.array([y.std(ddof=1) for y in targets])[task.test_class]
    return Mixture(mean[None, :, None], scale[None, :, None])


def least_squares(task: Task) -> Mixture:
    """Predict by linear regression with one noise; scales include the coefficients' errors."""
    fitted = LinearRegression().fit(task.x, task.y)
    residual = task.y - fitted.predict(task.x)
    design = np.column_stack([task.x, np.ones(len(task.x))])
    test = np.column_stack([task.test, np.ones(len(task.test))])
    variance = residual @ residual / (len(task.y) - design.shape[1])
    inverse = np.linalg.pinv(design.T @ design)
    scale = np.sqrt(variance * (1.0 + np.einsum("mi,ij,mj->m", test, inverse, test)))
    return Mixture(fitted.predict(task.test)[None, :, None], scale[None, :, None])


def network(
    task: Task, *, hidden: bool = True, by_cell: bool = True, nuts: bool = True
) -> Mixture:
    """Predict by a Bayesian network for the target less the mean of its class.

    Parameters
    ----------
    task : Task
        Training and test cells.
    hidden : bool
        False: no hidden layer, a linear model.
    by_cell : bool
        Whether the noise is a function of the inputs, or one number for all cells.
    nuts : bool
        Whether to sample by NUTS, each chain from a draw of a mean-field fit of its own, or to
        predict by the mean-field fit (VI).

    Returns
    -------
    Mixture
        A component for each draw of the weights; for NUTS with R-hat, divergences and gradients.
    """
    effort = task.effort
    method_seed = 2 if nuts else 1
    rng = np.random.default_rng([*task.seed, method_seed])
    mean, scale = moments(task.x, True)
    x = (task.x - mean) / scale
    test = (task.test - mean) / scale
    class_means = class_mean(task._replace(test_class=task.income_class)).means[0, :, 0]
    target_sd = (task.y - class_means).std(ddof=1)
    y = ((task.y - class_means) / target_sd)[:, None]
    likelihood: Likelihood = GaussianLikelihood(0.3, learn=True)
    if by_cell:
        likelihood = HeteroscedasticLikelihood(effort.noise_floor)
    layers = (x.shape[1], *[effort.hidden] * hidden, likelihood.heads(1))
    model = Model(MLP(layers, "tanh"), GaussianPrior(effort.prior_scale), likelihood)
    estimator = ClosedFormKL(model, MeanField(0.3, -4.0))
    source: Any = estimator  # of the weights that predict
    recipe = Recipe(Adam(1e-2, schedule=Cosine()), epochs=effort.epochs, batch_size=250)
    theta = learn(estimator, x, y, recipe, rng)
    note = {}
    if nuts:
        start = []
        for chain in range(effort.chains):
            if chain:
                theta = learn(estimator, x, y, recipe, rng)
            w = estimator.weights(theta, estimator.draw_weights(rng, 1))[0]
            learned = [v.ravel() for v in estimator.layout.views(theta).values()][2:]
            start.append(np.concatenate([w, *learned]))
        draws = draw(
            model,
            x,
            y,
            max_depth=effort.max_depth,
            chains=effort.chains,
            warm_up=effort.warm_up,
            draws=effort.draws,
            seed=rng,
            start=np.array(start),
        )
        source = DrawnWeights(model)
        theta = draws.flat
        r_hat = function_r_hats(draws, test)
        note = {
            "r-hat, largest": float(r_hat.max()),
            "r-hat, median": float(np.median(r_hat)),
            "divergences": float(draws.divergences),
            "gradients": float(draws.stats["gradients"].sum()),
        }
    eps = source.draw_weights(rng, effort.kept, theta.dtype)
    w = source.weights(theta, eps)
    params = source.params(theta, eps)
    outputs = model.predict(w, test)  # (T, M, heads)
    means = class_mean(task).means[0] + target_sd * likelihood.mean(params, outputs)
    noise = np.sqrt(np.broadcast_to(likelihood.variance(params, outputs), means.shape))
    return Mixture(means, target_sd * noise, note)


NUTS_MODEL = "network, noise by cell, NUTS"
MODELS: dict[str, Callable[[Task], Mixture]] = {
    "class mean": class_mean,
    "linear regression": least_squares,
    "linear, noise by cell, NUTS": partial(network, hidden=False),
    "network, one noise, VI": partial(network, by_cell=False, nuts=False),
    "network, noise by cell, VI": partial(network, nuts=False),
    NUTS_MODEL: network,
}


N_FOLDS = 5
N_CRPS_COMPONENTS = 100  # of a mixture; the CRPS takes the square of their number
COVERAGE_INTERVALS = {"50 %": 0.5, "90 %": 0.9, "99 %": 0.99}  # central intervals
SMALL_CELL_RETURNS = 50.0  # a cell with so many returns or fewer is small
LARGE_CELL_RETURNS = 200.0  # a cell with more is large
BASELINE_MODEL = "linear regression"


@dataclass(eq=False)
class Result:
    """Predictions of one model for all N cells, each by the fold that did not train on it."""

    mean: Array  # (N,)
    epistemic: Array  # (N,)  standard deviation of the mean between weight samples
    noise: Array  # (N,)  root mean noise variance
    log_density: Array  # (N,)
    pit: Array  # (N,)
    crps: Array  # (N,)
    notes: list[Mapping[str, Any]] = field(default_factory=list)  # of each fold


def log_density(mixture: Mixture, y: Array) -> Array:
    """Return the log density of targets under a mixture of Gaussians, in nats.

    Parameters
    ----------
    mixture : Mixture
        Of T Gaussians for each of M cells.
    y : ndarray (M, 1)
        Targets.

    Returns
    -------
    ndarray (M,)
    """
    z = (y - mixture.means) / mixture.scales
    log_densities = -0.5 * z * z - np.log(mixture.scales) - 0.5 * LOG_2PI
    return logsumexp(log_densities[..., 0], axis=0) - np.log(len(log_densities))


def cross_validate(
    cells: Cells,
    *,
    models: Mapping[str, Callable[[Task], Mixture]] = MODELS,
    n_folds: int = N_FOLDS,
    effort: Effort | None = None,
    seed: int = 0,
    report: ReportWork = ignore_work,
) -> dict[str, Result]:
    """Predict every cell by every model, trained on other ZIP codes.

    Parameters
    ----------
    cells : Cells
        The data.
    models : mapping
        Functions of a `Task` by name.
    n_folds : int
        Number of folds, see `folds`.
    effort : Effort, optional
        How much to compute.
    seed : int
        Of the folds and the models.
    report : callable
        Is called with 1 after each model of each fold.

    Returns
    -------
    dict of Result
        By the name of the model.
    """
    effort = effort or Effort()
    n_cells = len(cells.y)
    results = {name: Result(*np.full((6, n_cells), np.nan)) for name in models}
    for fold, (train, test) in enumerate(folds(cells.zip_code, n_folds, seed)):
        task = Task(
            x=cells.x[train],
            y=cells.y[train, 0],
            income_class=cells.income_class[train],
            test=cells.x[test],
            test_class=cells.income_class[test],
            seed=(seed, fold),
            effort=effort,
        )
        y = cells.y[test]
        for name, model in counted(models.items(), report):
            result = results[name]
            mixture = model(task)
            components = np.linspace(
                0, len(mixture.means) - 1, min(len(mixture.means), N_CRPS_COMPONENTS)
            ).astype(int)
            result.mean[test] = mixture.means.mean(axis=0)[:, 0]
            result.epistemic[test] = mixture.means.std(axis=0)[:, 0]
            result.noise[test] = np.sqrt((mixture.scales**2).mean(axis=0))[:, 0]
            result.log_density[test] = log_density(mixture, y)
            result.pit[test] = pit(mixture.means, mixture.scales, y)[:, 0]
            result.crps[test] = crps_mixture(
                mixture.means[components], mixture.scales[components], y
            )[:, 0]
            result.notes.append(mixture.note)
    return results


def measure(cells: Cells, results: Mapping[str, Result]) -> dict[str, dict[str, Any]]:
    """Return the scores of every model in cross-validation.

    Parameters
    ----------
    cells : Cells
        The data.
    results : mapping
        As returned by `cross_validate`, the baseline included.

    Returns
    -------
    dict of dict
        Pairs are mean and standard error, clustered by ZIP code; errors are of the logarithm, NLL
        in nats per cell, gains over linear regression, standard deviations medians.
    """
    y = cells.y[:, 0]
    baseline = results[BASELINE_MODEL]
    sizes = {
        "small": cells.returns <= SMALL_CELL_RETURNS,
        "large": cells.returns > LARGE_CELL_RETURNS,
    }
    scores: dict[str, dict[str, Any]] = {}
    for name, result in results.items():
        error = y - result.mean
        kolmogorov = kstest(result.pit, "uniform", method="asymp")
        pairs = {
            "nll": -result.log_density,
            "crps": result.crps,
            "nll_gained": result.log_density - baseline.log_density,
            "crps_gained": baseline.crps - result.crps,
            "squared_error_gained": (y - baseline.mean) ** 2 - error**2,
        }
        scores[name] = {
            "rmse": float(np.sqrt(np.mean(error**2))),
            "median_relative_error": float(np.expm1(np.median(np.abs(error)))),
            **{
                key: clustered_mean(values, cells.zip_code)
                for key, values in pairs.items()
            },
            "coverage": coverage(
                result.pit, tuple(COVERAGE_INTERVALS.values())
            ).share.tolist(),
            # by chance above 1.36 in 5 % of data sets
            "kolmogorov": float(kolmogorov.statistic * np.sqrt(len(y))),
            "epistemic": float(np.median(result.epistemic)),
            **{
                size: {
                    "coverage": float(coverage(result.pit[of], (0.9,)).share[0]),
                    "rmse": float(np.sqrt(np.mean(error[of] ** 2))),
                    "noise": float(np.median(result.noise[of])),
                }
                for size, of in sizes.items()
            },
            "notes": result.notes,  # of each fold
        }
    return scores


def quick(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for a quick look: short chains and trainings."""
    effort = Effort(chains=2, warm_up=50, draws=50, max_depth=5, epochs=150, kept=50)
    return {"seed": seed, "effort": effort}


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    effort: Effort | None = None,
    progress: bool | None = None,
) -> str:
    """Compare models of the income tax by cross-validation, and return the tables.

    Writes ``tax.png`` and ``numbers.json``.

    Parameters
    ----------
    out : Path
        Folder of the files.
    seed : int
        Of the folds and the models.
    effort : Effort, optional
        How much to compute.
    progress : bool, optional
        Whether to show a bar, see `bbb_studies.progress.steps`.

    Returns
    -------
    str
        The tables.
    """
    cells = load()
    with steps(N_FOLDS * len(MODELS), progress) as report:
        results = cross_validate(cells, effort=effort, seed=seed, report=report)
    scores = measure(cells, results)
    output = {"seed": seed, "dropped": cells.dropped, "models": scores}
    write(out, {"tax": _draw(cells, results)}, output)
    return _tables(cells, scores)


def _tables(cells: Cells, scores: Mapping[str, Mapping[str, Any]]) -> str:
    rows = {
        "cells": len(cells.y),
        "ZIP codes": len(np.unique(cells.zip_code)),
        "inputs": cells.x.shape[1],
        "lowest tax of a return, 1000 USD": f"{np.exp(cells.y.min()):.2f}",
        "highest tax of a return, 1000 USD": f"{np.exp(cells.y.max()):.0f}",
        f"small cells, {SMALL_CELL_RETURNS:g} returns or less": (
            cells.returns <= SMALL_CELL_RETURNS
        ).sum(),
        f"large cells, more than {LARGE_CELL_RETURNS:g}": (
            cells.returns > LARGE_CELL_RETURNS
        ).sum(),
        **{f"left out: {reason}": count for reason, count in cells.dropped.items()},
    }
    chains = {}
    for name, score in scores.items():
        if any(score["notes"]):
            keys = "divergences", "r-hat, largest", "r-hat, median"
            chains[name] = {
                key: max(note[key] for note in score["notes"]) for key in keys
            }
    return text(
        values(
            "Income tax per return, Vermont 2016, by cell: ZIP code x class of income. Target: "
            "its logarithm.\nFive folds, every ZIP code whole.",
            "the data",
            rows,
        ),
        by_key(
            "RMSE, CRPS: of the logarithm; NLL: nats per cell; +- standard error by ZIP code; 50, "
            "90, 99 %: coverage;\nKolmogorov: distance of the PIT x sqrt(cells), at 5 % 1.36.",
            "model | rmse | median_relative_error | nll | crps | kolmogorov | 50 % | 90 % | 99 %",
            {
                name: {
                    **score,
                    **dict(zip(COVERAGE_INTERVALS, score["coverage"], strict=True)),
                }
                for name, score in scores.items()
            },
        ),
        by_key(
            "Gained over linear regression, +- standard error by ZIP code.",
            "gained | nll_gained | crps_gained | squared_error_gained",
            scores,
        ),
        *(
            by_key(
                f"{size.capitalize()} cells: 90 % coverage; RMSE; learned noise (median).",
                f"{size} cells | coverage | rmse | noise",
                {name: score[size] for name, score in scores.items()},
            )
            for size in ("small", "large")
        ),
        by_key(
            "Chains of NUTS, worst fold: R-hat in function space (rank-normalised, of halved "
            "chains) over its cells.",
            "chains | divergences | r-hat, largest | r-hat, median",
            chains,
        ),
    )


CLASS_MARKERS = "osD^v*"
CLASS_SHADES = ("#000000", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00")
COVERAGE_LEVELS = np.linspace(0.02, 0.98, 49)


def _draw(cells: Cells, results: Mapping[str, Result]) -> Figure:
    """Draw predictions, calibration and the learned noise of the last model against others."""
    figure, (prediction_ax, coverage_ax, noise_ax) = panels(15.0, 4.8, 1, 3)
    _draw_predictions(prediction_ax, cells, results[NUTS_MODEL].mean)
    names = (
        NUTS_MODEL,
        BASELINE_MODEL,
        "network, noise by cell, VI",
        "network, one noise, VI",
    )
    curves = {
        name.replace("one noise, VI", "one noise"): coverage(
            results[name].pit, COVERAGE_LEVELS
        )
        for name in names
        if name in results
    }
    coverage_curve(curves, ax=coverage_ax)
    coverage_ax.set_xlabel("level of the central interval\n(b) coverage, all cells")
    _draw_noise(noise_ax, cells, results)
    for axis in (prediction_ax.xaxis, prediction_ax.yaxis):
        plain_numbers(axis)
    return figure


def _draw_predictions(ax: Axes, cells: Cells, mean: Array) -> None:
    for class_index, (marker, shade) in enumerate(
        zip(CLASS_MARKERS, CLASS_SHADES, strict=True)
    ):
        in_class = cells.income_class == class_index
        label = f"{INCOME_CLASSES[class_index]} k"
        predicted_tax = np.exp(mean[in_class])
        tax = np.exp(cells.y[in_class, 0])
        ax.plot(
            predicted_tax,
            tax,
            marker,
            color=shade,
            markersize=4,
            alpha=0.7,
            label=label,
        )
    ends = np.exp([cells.y.min(), cells.y.max()])
    ax.plot(ends, ends, "--", color=BLACK, linewidth=1.0)
    ax.set(xscale="log", yscale="log")
    predicted = f"predicted income tax per return (1000 USD)\n(a) {NUTS_MODEL}; by class of income"
    finish(ax, predicted, "income tax per return (1000 USD)", 3)


def _draw_noise(ax: Axes, cells: Cells, results: Mapping[str, Result]) -> None:
    noise = results[NUTS_MODEL].noise
    label = "learned noise of each cell"
    ax.plot(cells.returns, noise, ".", color=BLUE, markersize=4, alpha=0.5, label=label)
    tenths = np.array_split(np.argsort(cells.returns, kind="stable"), 10)
    for name, label, colour, fill, marker, x_factor in (
        (NUTS_MODEL, "network", BLACK, BLACK, "o", 0.94),
        (BASELINE_MODEL, "linear", VERMILLION, "white", "s", 1.06),
    ):
        error = cells.y[:, 0] - results[name].mean
        ax.plot(
            [x_factor * np.median(cells.returns[t]) for t in tenths],
            [np.sqrt(np.mean(error[t] ** 2)) for t in tenths],
            marker,
            color=colour,
            markersize=6,
            markerfacecolor=fill,
            markeredgewidth=1.6,
            label=f"RMSE by decile, {label}",
        )
    returns = np.array([cells.returns.min(), cells.returns.max()])
    curve = np.median(noise) * np.sqrt(np.median(cells.returns) / returns)
    ax.plot(returns, curve, "--", color=GREY, linewidth=1.4, label="1 / sqrt(returns)")
    ax.set(xscale="log", yscale="log")
    plain_numbers(ax.xaxis)
    plain_numbers(ax.yaxis, minor="25")
    x_label = "returns of the cell (deciles at their medians, side by side)\n(c) noise by size"
    finish(ax, f"{x_label} of the cell", "standard deviation of log tax", 2)
