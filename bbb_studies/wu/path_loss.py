"""Wu's second system: a radio field over a plane with buildings (W6), and his two questions.

MLE, MAP and VI are compared. `WHY_VARIANTS` ask why a large error does not come with a large
standard deviation, `HOW_VARIANTS` how to fit the simulated function exactly; both are lists of
variants of one base case, each measured on several data sets by `measure`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isqrt, nan, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from scipy.stats import spearmanr

from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.estimator import GradientEstimator as Estimator
from bbb_numpy.model.joint import Model
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from bbb_studies.comparing import METHODS, Fitted, Setup, judge, train
from bbb_studies.data import path_loss as data
from bbb_studies.data.path_loss import Receivers, Scene
from bbb_studies.kit import (
    Claim,
    Estimate,
    average,
    by_key,
    claims,
    listed,
    panels,
    text,
    write,
)
from bbb_studies.progress import counted, steps

Average = dict[str, Estimate]
Array = NDArray[Any]
CELLS_PER_SIDE = 40  # of the map, along each side
EDGE_DISTANCE_M = (
    3.0  # a cell so close to a jump of the field, or closer, is near an edge
)
N_FRESH_RECEIVERS = 2000  # held-out receivers
WORST_SHARE = 0.1  # share of the cells that count as those of the largest error


def full_rank(model: Model) -> Estimator:
    """Return the gradient estimator of a full-rank posterior that starts narrow."""
    return ClosedFormKL(model, FullRank(0.3, -5.0))


def position_inputs(scene: Scene, positions: Array) -> Array:
    """Return the positions themselves: the network is given x and y.

    Parameters
    ----------
    scene : Scene
        Not used.
    positions : ndarray (N, 2)
        In m.

    Returns
    -------
    ndarray (N, 2)
    """
    return positions


def position_and_distance_inputs(scene: Scene, positions: Array) -> Array:
    """Return x, y and log10 of the distance to the transmitter.

    Parameters
    ----------
    scene : Scene
        Where the transmitters are; the distance is that to the first.
    positions : ndarray (N, 2)
        In m.

    Returns
    -------
    ndarray (N, 3)
    """
    return np.hstack([positions, data.features(scene, positions)[:, :1]])


def distance_and_wall_inputs(scene: Scene, positions: Array) -> Array:
    """Return log10 of the distance to the transmitter and the number of walls between.

    Parameters
    ----------
    scene : Scene
        Where transmitters and buildings are; distance and walls are those to the first
        transmitter.
    positions : ndarray (N, 2)
        In m.

    Returns
    -------
    ndarray (N, 2)
    """
    features = data.features(scene, positions)
    return np.stack([features[:, 0], features[:, 1:].sum(axis=1)], axis=1)


@dataclass(frozen=True)
class Variant:
    """One experiment: the measurements, the inputs of the network, and how it is trained."""

    name: str = "VI"
    build: Callable[[Model], Estimator] = METHODS["VI"]  # estimator of a model
    setup: Setup = field(
        default=Setup(
            hidden=(32, 32),
            activation="relu",
            prior_scale=0.5,
            likelihood=GaussianLikelihood(0.3, learn=True),
            epochs=500,
            batch_size=50,
        )
    )
    members: int = 1  # of an ensemble
    count: int = 400  # receivers
    scene: Scene = Scene()
    inputs: Callable[[Scene, Array], Array] = position_inputs
    area: Callable[[Array], NDArray[np.bool_]] | None = None  # where receivers may be

    def vary(self, name: str, **changes: Any) -> Variant:
        """Return a variant that differs in some fields, of its own or of its setup.

        Parameters
        ----------
        name : str
            Of the new variant.
        **changes
            Fields of `Variant` or of `Setup`.
        """
        own_fields = {
            key: changes.pop(key)
            for key in list(changes)
            if key in self.__dataclass_fields__
        }
        return replace(
            self, name=name, setup=replace(self.setup, **changes), **own_fields
        )


BASE_VARIANT = Variant()
NOISE_HEAD = HeteroscedasticLikelihood(0.05)
MANY_RECEIVERS = {"count": 1600, "batch_size": 100}
# The field is linear in so many parameters: lambda, phi_j of each building, and a constant.
N_FIELD_WEIGHTS = 2 + len(BASE_VARIANT.scene.buildings)
# RMSE of least squares in these parameters, which noise alone causes
NOISE_LIMIT_DB = BASE_VARIANT.scene.shadowing * sqrt(
    N_FIELD_WEIGHTS / BASE_VARIANT.count
)


def without_corner(positions: Array) -> NDArray[np.bool_]:
    """Return which positions (N, 2) are outside the corner x, y > 60 m."""
    return ~np.all(positions > 60.0, axis=1)


WHY_VARIANTS = (
    BASE_VARIANT,
    BASE_VARIANT.vary("VI, 1600 receivers", **MANY_RECEIVERS),
    BASE_VARIANT.vary("VI, 64-64", hidden=(64, 64)),
    BASE_VARIANT.vary("VI, prior 0.25", prior_scale=0.25),
    BASE_VARIANT.vary("VI, prior 1", prior_scale=1.0),
    BASE_VARIANT.vary("VI, 12-12", hidden=(12, 12)),
    BASE_VARIANT.vary(
        "full rank, 12-12",
        build=full_rank,
        hidden=(12, 12),
        learning_rate=2e-3,
        samples=4,
    ),
    BASE_VARIANT.vary("5 VI", members=5),
    BASE_VARIANT.vary("5 MAP", build=METHODS["MAP"], members=5),
    BASE_VARIANT.vary("5 MLE", build=METHODS["MLE"], members=5),
    BASE_VARIANT.vary("VI, noise head", likelihood=NOISE_HEAD),
    BASE_VARIANT.vary("VI, noise head, 1600", likelihood=NOISE_HEAD, **MANY_RECEIVERS),
    BASE_VARIANT.vary(
        "5 MAP, noise head, 1600",
        build=METHODS["MAP"],
        members=5,
        likelihood=NOISE_HEAD,
        **MANY_RECEIVERS,
    ),
    BASE_VARIANT.vary("VI, no buildings", scene=Scene(buildings=())),
    BASE_VARIANT.vary("VI, empty corner", area=without_corner),
    BASE_VARIANT.vary(
        "5 MAP, empty corner", build=METHODS["MAP"], members=5, area=without_corner
    ),
    BASE_VARIANT.vary(
        "full rank, right inputs",
        build=full_rank,
        hidden=(),
        inputs=data.features,
        samples=4,
    ),
)

LEAST_SQUARES = BASE_VARIANT.vary(
    "400 receivers, 32-32, 2 dB, 500 epochs",
    build=METHODS["MLE"],
    likelihood=GaussianLikelihood(0.2),
)
NOISELESS_SCENE = Scene(shadowing=0.0)
HOW_VARIANTS = (
    LEAST_SQUARES,
    LEAST_SQUARES.vary("100 receivers", count=100),
    LEAST_SQUARES.vary("1600 receivers", **MANY_RECEIVERS),
    LEAST_SQUARES.vary("8-8", hidden=(8, 8)),
    LEAST_SQUARES.vary("128-128", hidden=(128, 128)),
    LEAST_SQUARES.vary("0 dB", scene=NOISELESS_SCENE),
    LEAST_SQUARES.vary("6 dB", scene=Scene(shadowing=6.0)),
    LEAST_SQUARES.vary("100 epochs", epochs=100),
    LEAST_SQUARES.vary("2000 epochs", epochs=2000),
    LEAST_SQUARES.vary(
        "1600, 64-64, 0 dB", **MANY_RECEIVERS, hidden=(64, 64), scene=NOISELESS_SCENE
    ),
    LEAST_SQUARES.vary(
        "6400, 64-64, 0 dB",
        count=6400,
        batch_size=200,
        hidden=(64, 64),
        scene=NOISELESS_SCENE,
    ),
    LEAST_SQUARES.vary("x, y, log10 d", inputs=position_and_distance_inputs),
    LEAST_SQUARES.vary("log10 d, walls; 32-32", inputs=distance_and_wall_inputs),
    LEAST_SQUARES.vary("log10 d, walls of each; 32-32", inputs=data.features),
    LEAST_SQUARES.vary(
        "log10 d, walls of each; linear", inputs=data.features, hidden=()
    ),
    LEAST_SQUARES.vary(
        "the same, 0 dB", inputs=data.features, hidden=(), scene=NOISELESS_SCENE
    ),
)


class Measured(NamedTuple):
    """One data set and fit of a variant, maps in dB or dBm (cells,), and the numbers."""

    receivers: Receivers
    fitted: Fitted
    truth: Array
    predictive: Predictive
    near: NDArray[np.bool_]
    numbers: dict[str, float]


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else nan


def _rms(values: Array) -> float:
    return sqrt(_mean(values**2))


def rank_correlation(x: Array, y: Array) -> float:
    """Return Spearman's rank correlation of two arrays; nan if either is constant.

    Parameters
    ----------
    x, y : ndarray (N,)
    """
    if np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return nan
    return float(spearmanr(x, y).statistic)


def measure(variant: Variant, seed: int) -> Measured:
    """Draw receivers, train, predict the map, and judge it.

    Parameters
    ----------
    variant : Variant
        The experiment.
    seed : int
        Of the receivers and the training.

    Returns
    -------
    Measured
        The numbers are those of `judge` on fresh receivers over the whole plane, and of the map:

        - ``near`` and ``far``: RMSE within `EDGE_DISTANCE_M` of a jump and elsewhere, in dB;
          ``epistemic near``, ``total far`` etc.: mean standard deviations of the same cells.
        - ``rank epistemic`` and ``rank total``: rank correlation of absolute error and standard
          deviation; ``rank if right``: the mean of the epistemic one if the truth is a function
          drawn from the posterior.
        - ``tenths``: RMSE in the tenth of the cells with the largest total standard deviation, over
          that in the tenth with the smallest.
        - ``worst near``: of the cells with the largest errors the share near a jump.
        - ``corner error`` and ``corner epistemic``: of the corner that `without_corner` leaves out.

        Numbers that are not defined are left out.
    """
    scene = variant.scene
    rng = np.random.default_rng(seed)
    measurements = data.receivers(scene, rng, variant.count, variant.area)
    fresh = data.receivers(scene, rng, N_FRESH_RECEIVERS)
    cells = data.grid(scene, CELLS_PER_SIDE)
    truth = data.field(scene, cells)
    near = data.near_edge(scene, cells, EDGE_DISTANCE_M)

    x = variant.inputs(scene, measurements.places)
    fitted = train(
        variant.build,
        variant.setup,
        x,
        measurements.y,
        seed=seed,
        members=variant.members,
    )
    numbers = judge(fitted, variant.inputs(scene, fresh.places), fresh.y, fresh.truth)
    inputs = variant.inputs(scene, cells)
    moments = fitted.predict(inputs)
    p = Predictive._make(moment[:, 0] for moment in moments)
    error = np.abs(p.mean - truth[:, 0])

    draw_errors = np.abs(fitted.functions(inputs, 30)[..., 0] - p.mean)  # (S, cells)
    rank_correlations_if_right = [rank_correlation(d, p.epistemic) for d in draw_errors]
    worst = error >= np.quantile(error, 1.0 - WORST_SHARE)
    tenths = np.array_split(np.argsort(p.total), 10)
    ratio_of_tenths = nan
    if np.ptp(p.total):
        ratio_of_tenths = _rms(error[tenths[-1]]) / _rms(error[tenths[0]])
    corner = ~without_corner(cells)
    numbers |= {
        "near": _rms(error[near]),
        "far": _rms(error[~near]),
        "rank epistemic": rank_correlation(error, p.epistemic),
        "rank total": rank_correlation(error, p.total),
        "rank if right": float(np.mean(rank_correlations_if_right)),
        "rank if right, sd": float(np.std(rank_correlations_if_right)),
        "epistemic near": _mean(p.epistemic[near]),
        "epistemic far": _mean(p.epistemic[~near]),
        "total near": _mean(p.total[near]),
        "total far": _mean(p.total[~near]),
        "tenths": ratio_of_tenths,
        "worst near": float(near[worst].mean()),
        "edge share": float(near.mean()),
        "corner error": _rms(error[corner]),
        "corner epistemic": _mean(p.epistemic[corner]),
    }
    numbers = {name: value for name, value in numbers.items() if isfinite(value)}
    return Measured(measurements, fitted, truth[:, 0], p, near, numbers)


def bias_and_spread(runs: Sequence[Measured]) -> dict[str, tuple[float, float]]:
    """Return bias and spread of the predictions between data sets, near jumps and far from them.

    Both are root mean squares over cells, in dB. The bias is the mean over data sets less the
    truth, corrected for the variance of that mean. The spread is the standard deviation between
    data sets, which the epistemic standard deviation should equal.
    """
    means = np.stack([run.predictive.mean for run in runs])  # (R, cells)
    variance = means.var(axis=0, ddof=1)
    squared_bias = (means.mean(axis=0) - runs[0].truth) ** 2 - variance / len(runs)
    near = runs[0].near
    return {
        name: (sqrt(max(_mean(squared_bias[mask]), 0.0)), sqrt(_mean(variance[mask])))
        for name, mask in (("near", near), ("far", ~near))
    }


def _draw_maps(methods: Mapping[str, Measured]) -> Figure:
    """Draw truth, predicted maps, absolute errors and standard deviations of every method."""
    scene = BASE_VARIANT.scene
    vi_run = methods["VI"]
    n_columns = len(methods) + 1
    mask = f"within {EDGE_DISTANCE_M:g} m of a jump"
    power = {"truth and receivers": vi_run.truth}
    error = {mask: vi_run.near * 1.0}
    deviation = {"VI, epistemic": vi_run.predictive.epistemic}
    for name, method in methods.items():
        power[f"{name}, predicted"] = method.predictive.mean
        error[f"{name}, |error|"] = np.abs(method.predictive.mean - vi_run.truth)
        deviation[f"{name}, total"] = method.predictive.total
    figure, axes = panels(3.3 * n_columns, 9.6, 3, n_columns, sharex=True, sharey=True)
    for row, label, colours, maps in (
        (axes[0], "power (dBm)", "cividis", power),
        (axes[1], "|error| (dB)", "inferno", error),
        (axes[2], "standard deviation (dB)", "viridis", deviation),
    ):
        maps_on_scale = [
            image_map for title, image_map in maps.items() if title != mask
        ]
        scale = {
            "cmap": colours,
            "vmin": min(image_map.min() for image_map in maps_on_scale),
            "vmax": max(np.quantile(image_map, 0.995) for image_map in maps_on_scale),
        }
        for ax, (title, image_map) in zip(row, maps.items(), strict=True):
            colour = "white"
            options = scale
            if title == mask:
                colour = "black"
                options = {"cmap": "Greys", "vmin": 0.0, "vmax": 2.0}
            image = ax.imshow(
                image_map.reshape(isqrt(image_map.size), -1),
                origin="lower",
                extent=(0.0, scene.width, 0.0, scene.height),
                **options,
            )
            for x_min, y_min, x_max, y_max, _ in scene.buildings:
                width = x_max - x_min
                height = y_max - y_min
                ax.add_patch(
                    Rectangle(
                        (x_min, y_min), width, height, fill=False, edgecolor=colour
                    )
                )
            ax.plot(
                *np.transpose(scene.transmitters),
                "^",
                color=colour,
                markeredgecolor="black",
            )
            ax.set_title(title, fontsize="medium")
        row[0].set_ylabel("y (m)")
        figure.colorbar(image, ax=row, label=label, shrink=0.9)
    for ax in axes[-1]:
        ax.set_xlabel("x (m)")
    axes[0, 0].plot(*vi_run.receivers.places.T, ".", color="white", markersize=1.5)
    return figure


# From this rank correlation on the standard deviation counts as "large where the error is large".
MIN_LARGE_CORRELATION = 0.5
MAX_EXACT_ERROR_DB = 1e-6  # RMSE below which a fit counts as exact


def quick(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for a quick look: every training a quarter as long."""
    return {"seed": seed, "effort": 0.25}


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for twice as many data sets."""
    return {"seed": seed, "repeats": 4}


def reproduce(
    out: Path,
    seed: int = 0,
    repeats: int = 2,
    effort: float = 1.0,
    progress: bool | None = None,
) -> str:
    """Fit the radio field by all variants, and return the tables.

    Writes ``maps.png`` and ``numbers.json``.

    Parameters
    ----------
    out : Path
        Folder of the files.
    seed : int
        Of the first data set; the others have the seeds that follow.
    repeats : int
        Number of data sets, from which every standard error comes.
    effort : float
        A factor on the epochs of every training.
    progress : bool, optional
        Whether to show a bar, see `bbb_studies.progress.steps`.

    Returns
    -------
    str
        The tables.
    """
    methods = [BASE_VARIANT.vary(name, build=build) for name, build in METHODS.items()]
    groups = {"methods": methods, "why": WHY_VARIANTS[1:], "how": HOW_VARIANTS}
    runs: dict[str, dict[str, list[Measured]]] = {group: {} for group in groups}
    with steps(repeats * sum(map(len, groups.values())), progress) as report:
        for group, variants in groups.items():
            for variant in variants:
                epochs = max(1, round(effort * variant.setup.epochs))
                shorter = variant.vary(variant.name, epochs=epochs)
                seeds = counted(range(seed, seed + repeats), report)
                runs[group][variant.name] = [
                    measure(shorter, variant_seed) for variant_seed in seeds
                ]
    runs["why"] = {BASE_VARIANT.name: runs["methods"]["VI"], **runs["why"]}
    averages = {
        group: {
            name: average([variant.numbers for variant in measured])
            for name, measured in measured_by_variant.items()
        }
        for group, measured_by_variant in runs.items()
    }
    bias_by_region = {}
    if repeats > 1:
        bias_by_region = bias_and_spread(runs["why"][BASE_VARIANT.name])
    numbers = {
        "seed": seed,
        "repeats": repeats,
        **averages,
        "bias and spread": bias_by_region,
    }
    first_runs = {name: measured[0] for name, measured in runs["methods"].items()}
    write(out, {"maps": _draw_maps(first_runs)}, numbers)
    return _tables(averages, bias_by_region, repeats)


def _tables(
    averages: Mapping[str, Mapping[str, Average]],
    bias_by_region: Mapping[str, Any],
    repeats: int,
) -> str:
    def share(bias_and_sd: tuple[float, float]) -> str:
        bias, sd = bias_and_sd
        bias_share = bias**2 / np.sum(np.square(bias_and_sd))
        return f"{bias:.2f} | {sd:.2f} | {bias_share:.0%}"

    first_column = f"{repeats} data sets"
    return text(
        by_key(
            "RMSE (dB) to the map without shadowing, near jumps and far from them; nats a row and "
            "share in 95 %\nof new receivers; epistemic sd (dB). Always mean +- standard error.",
            f"{first_column} | rmse | near | far | log density | coverage | epistemic",
            averages["methods"],
        ),
        by_key(
            "(a) Rank correlation of |error| and sd; tenths: RMSE, least over most sure.",
            f"{first_column} | rank epistemic | rank total | rank if right | tenths | "
            "worst near",
            averages["why"],
        ),
        by_key(
            f"RMSE and mean standard deviations within {EDGE_DISTANCE_M:g} m of a jump and "
            "elsewhere (dB).",
            f"{first_column} | near | far | total near | total far | epistemic near | "
            "epistemic far",
            averages["why"],
        ),
        listed(
            "Bias of the mean of VI over data sets, and spread between its fits (dB).",
            "of a jump | bias | spread | bias, of the squared error",
            bias_by_region,
            share,
        ),
        by_key(
            "(b) Least squares: one thing changed at a time, then several, then the inputs.",
            f"{first_column} | rmse | near | far",
            averages["how"],
        ),
        claims(
            f"'Large' is a rank correlation of {MIN_LARGE_CORRELATION:g}; noise limit: "
            f"{BASE_VARIANT.scene.shadowing:g} sqrt({N_FIELD_WEIGHTS}/{BASE_VARIANT.count}) dB.",
            "the slides",
            claims_of_the_slides(averages["why"], averages["how"]),
        ),
    )


def claims_of_the_slides(
    why_averages: Mapping[str, Average], how_averages: Mapping[str, Average]
) -> list[Claim]:
    """Judge both claims of the slides: uncertainty where the error is large, and an exact fit.

    Of the base case, of the best variant whose inputs are x and y alone, and of the two linear
    ones.

    Parameters
    ----------
    why_averages, how_averages : mapping
        Means with standard errors by variant, of `WHY_VARIANTS` and `HOW_VARIANTS`.
    """

    def _best_of(
        variants: tuple[Variant, ...], among: Mapping[str, Average], key: str
    ) -> list[str]:
        names = [
            v.name for v in variants if v.inputs is position_inputs and v.name in among
        ]
        return sorted(names, key=lambda name: among[name][key][0])

    rows = []
    for name in (
        BASE_VARIANT.name,
        _best_of(WHY_VARIANTS, why_averages, "rank total")[-1],
    ):
        rank = why_averages[name]["rank total"][0]
        statement = f"large error, 'large variance': {name}"
        rows.append(
            Claim(statement, "large", f"{rank:.2f}", rank >= MIN_LARGE_CORRELATION)
        )
    *_, linear_name, noiseless_name = how_averages
    for name in (
        _best_of(HOW_VARIANTS, how_averages, "rmse")[0],
        linear_name,
        noiseless_name,
    ):
        rmse = how_averages[name]["rmse"][0]
        error_text = f"{rmse:.1e} dB"
        if rmse > MAX_EXACT_ERROR_DB:
            error_text = f"{rmse:.2f} dB"
        statement = f"approximates the simulated function: {name}"
        rows.append(
            Claim(statement, "'perfectly'", error_text, rmse < MAX_EXACT_ERROR_DB)
        )
    rmse, error = how_averages[linear_name]["rmse"]
    z = abs(rmse - NOISE_LIMIT_DB) / error if error else inf
    limit = f"{NOISE_LIMIT_DB:.2f} dB"
    return [
        *rows,
        Claim("noise limit, the same inputs", limit, f"{rmse:.2f} dB", z, True),
    ]
