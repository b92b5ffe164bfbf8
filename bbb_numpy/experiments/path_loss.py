"""Wu's second system: a radio field over a plane with buildings (W6), and his two questions.

`compare` sets MLE, MAP and VI side by side. `WHY` asks why a large error does not come with a
large deviation, `HOW` how to fit the simulated function exactly; both are lists of variants of
one base case, each measured on several data sets by `measure`.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from ..closed_form import ClosedFormKL
from ..datasets import path_loss as data
from ..datasets.path_loss import Receivers, Scene
from ..estimators import Estimator
from ..full_rank import FullRank
from ..likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from ..model import Model
from ..predictive import Predictive
from .wu_quartic import METHODS, Fitted, Setup, average, judge, table, train

__all__ = [
    "HOW",
    "WHY",
    "Measured",
    "Variant",
    "bias_and_spread",
    "compare",
    "draw_maps",
    "measure",
    "rank_correlation",
    "reproduce",
]

Array = NDArray[Any]
Average = dict[str, tuple[float, float]]

CELLS = 40  # of the map, along each side
EDGE = 3.0  # m: a cell this close to a jump of the field is near an edge
FRESH = 2000  # held-out receivers
WORST = 0.1  # share of the cells that count as those of the largest error


def full_rank(model: Model) -> Estimator:
    """Return the estimator of a full-rank posterior that starts narrow."""
    return ClosedFormKL(model, FullRank(0.3, -5.0))


def places_alone(scene: Scene, places: Array) -> Array:
    """Return the places themselves: the network is told x and y."""
    return places


def places_and_distance(scene: Scene, places: Array) -> Array:
    """Return x, y and log10 of the distance."""
    return np.hstack([places, data.features(scene, places)[:, :1]])


def distance_and_walls(scene: Scene, places: Array) -> Array:
    """Return log10 of the distance and the number of walls, whichever building's."""
    found = data.features(scene, places)
    return np.stack([found[:, 0], found[:, 1:].sum(axis=1)], axis=1)


@dataclass(frozen=True)
class Variant:
    """One way to measure, to describe the place, and to train."""

    name: str = "VI"
    build: Callable[[Model], Estimator] = METHODS["VI"]
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
    members: int = 1
    count: int = 400  # receivers
    scene: Scene = Scene()
    inputs: Callable[[Scene, Array], Array] = places_alone
    area: Callable[[Array], NDArray[np.bool_]] | None = None  # where receivers are

    def but(self, name: str, **changes: Any) -> Variant:
        """Return this variant with other numbers, of its own or of its setup."""
        own = {key: changes.pop(key) for key in list(changes) if key in self.__dataclass_fields__}
        return replace(self, name=name, setup=replace(self.setup, **changes), **own)


class Measured(NamedTuple):
    """One data set, one fit, the maps in dB or dBm (cells,), and the numbers."""

    receivers: Receivers
    fitted: Fitted
    truth: Array
    predictive: Predictive
    near: NDArray[np.bool_]
    numbers: dict[str, float]


BASE = Variant()
NOISE_HEAD = HeteroscedasticLikelihood(0.05)
MANY = {"count": 1600, "batch_size": 100}
SMOOTH, EXACT = "VI, no buildings", "full rank, right inputs"
WEIGHTS = 2 + len(BASE.scene.buildings)  # in which the field is linear: lambda, phi_j, constant
NOISE_LIMIT = BASE.scene.shadowing * sqrt(WEIGHTS / BASE.count)  # dB, of least squares in them


def without_corner(places: Array) -> NDArray[np.bool_]:
    """Return where receivers are when the corner x, y > 60 m has none."""
    return ~np.all(places > 60.0, axis=1)


WHY = (
    BASE,
    BASE.but("VI, 1600 receivers", **MANY),
    BASE.but("VI, 64-64", hidden=(64, 64)),
    BASE.but("VI, prior 0.25", prior_scale=0.25),
    BASE.but("VI, prior 1", prior_scale=1.0),
    BASE.but("VI, 12-12", hidden=(12, 12)),
    BASE.but("full rank, 12-12", build=full_rank, hidden=(12, 12), learning_rate=2e-3, samples=4),
    BASE.but("5 VI", members=5),
    BASE.but("5 MAP", build=METHODS["MAP"], members=5),
    BASE.but("5 MLE", build=METHODS["MLE"], members=5),
    BASE.but("VI, noise head", likelihood=NOISE_HEAD),
    BASE.but("VI, noise head, 1600", likelihood=NOISE_HEAD, **MANY),
    BASE.but(
        "5 MAP, noise head, 1600", build=METHODS["MAP"], members=5, likelihood=NOISE_HEAD, **MANY
    ),
    BASE.but(SMOOTH, scene=Scene(buildings=())),
    BASE.but("VI, empty corner", area=without_corner),
    BASE.but("5 MAP, empty corner", build=METHODS["MAP"], members=5, area=without_corner),
    BASE.but(
        EXACT,
        build=full_rank,
        hidden=(),
        inputs=data.features,
        samples=4,
    ),
)

LEAST_SQUARES = BASE.but(
    "400 receivers, 32-32, 2 dB, 500 epochs",
    build=METHODS["MLE"],
    likelihood=GaussianLikelihood(0.2),
)
SILENT = Scene(shadowing=0.0)
HOW = (
    LEAST_SQUARES,
    LEAST_SQUARES.but("100 receivers", count=100),
    LEAST_SQUARES.but("1600 receivers", **MANY),
    LEAST_SQUARES.but("8-8", hidden=(8, 8)),
    LEAST_SQUARES.but("128-128", hidden=(128, 128)),
    LEAST_SQUARES.but("0 dB", scene=SILENT),
    LEAST_SQUARES.but("6 dB", scene=Scene(shadowing=6.0)),
    LEAST_SQUARES.but("100 epochs", epochs=100),
    LEAST_SQUARES.but("2000 epochs", epochs=2000),
    LEAST_SQUARES.but("1600, 64-64, 0 dB", **MANY, hidden=(64, 64), scene=SILENT),
    LEAST_SQUARES.but(
        "6400, 64-64, 0 dB", count=6400, batch_size=200, hidden=(64, 64), scene=SILENT
    ),
    LEAST_SQUARES.but("x, y, log10 d", inputs=places_and_distance),
    LEAST_SQUARES.but("log10 d, walls; 32-32", inputs=distance_and_walls),
    LEAST_SQUARES.but("log10 d, walls of each; 32-32", inputs=data.features),
    LEAST_SQUARES.but("log10 d, walls of each; linear", inputs=data.features, hidden=()),
    LEAST_SQUARES.but("the same, 0 dB", inputs=data.features, hidden=(), scene=SILENT),
)


def rank_correlation(one: Array, other: Array) -> float:
    """Return Spearman's rank correlation of two flat arrays; nan if either is constant."""
    ranks = []
    for values in (one, other):
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        middle = np.cumsum(count) - 0.5 * count  # ties share the mean of their ranks
        ranks.append(middle[place] - middle[place].mean())
    if any(np.ptp(rank) == 0.0 for rank in ranks):
        return float("nan")
    return float(ranks[0] @ ranks[1] / np.sqrt((ranks[0] @ ranks[0]) * (ranks[1] @ ranks[1])))


def measure(variant: Variant, seed: int) -> Measured:
    """Draw receivers, train, predict the map, and judge it.

    Returns
    -------
    Measured
        The numbers are those of `judge` on fresh receivers over the whole plane, and of the map:
        ``near`` and ``far``, RMSE within `EDGE` of a jump and elsewhere, in dB, and of the same
        cells the mean ``epistemic`` and ``total`` deviation; ``rank epistemic`` and ``rank
        total``, rank correlation of absolute error and deviation, and ``rank if right``, what
        that of the epistemic one is on average when the truth is itself a function drawn from
        the posterior; ``tenths``, RMSE in the tenth of the cells of largest total deviation over
        that in the tenth of smallest; ``worst near``, the share near a jump of the cells of
        largest error; ``corner error`` and ``corner epistemic``, of the corner that
        `without_corner` leaves out. What is not defined, as a rank correlation of a point
        estimate, is left out.
    """
    scene = variant.scene
    rng = np.random.default_rng(seed)
    known = data.receivers(scene, rng, variant.count, variant.area)
    fresh = data.receivers(scene, rng, FRESH)
    cells = data.grid(scene, CELLS)
    truth, near = data.field(scene, cells), data.near_edge(scene, cells, EDGE)

    x = variant.inputs(scene, known.places)
    fitted = train(variant.build, variant.setup, x, known.y, seed=seed, members=variant.members)
    numbers = judge(fitted, variant.inputs(scene, fresh.places), fresh.y, fresh.truth)
    inputs = variant.inputs(scene, cells)
    found = fitted.predict(inputs)
    p = Predictive(*(moment[:, 0] for moment in found))
    error = np.abs(p.mean - truth[:, 0])

    drawn = np.abs(fitted.functions(inputs, 30)[..., 0] - p.mean)  # (S, cells)
    right = [rank_correlation(d, p.epistemic) for d in drawn]
    worst = error >= np.quantile(error, 1.0 - WORST)
    tenths = np.array_split(np.argsort(p.total), 10)
    corner = ~without_corner(cells)
    numbers |= {
        "near": _rms(error[near]),
        "far": _rms(error[~near]),
        "rank epistemic": rank_correlation(error, p.epistemic),
        "rank total": rank_correlation(error, p.total),
        "rank if right": float(np.mean(right)),
        "rank if right, deviation": float(np.std(right)),
        "epistemic near": _mean(p.epistemic[near]),
        "epistemic far": _mean(p.epistemic[~near]),
        "total near": _mean(p.total[near]),
        "total far": _mean(p.total[~near]),
        "tenths": _rms(error[tenths[-1]]) / _rms(error[tenths[0]]) if np.ptp(p.total) else nan,
        "worst near": float(near[worst].mean()),
        "edge share": float(near.mean()),
        "corner error": _rms(error[corner]),
        "corner epistemic": _mean(p.epistemic[corner]),
    }
    numbers = {name: value for name, value in numbers.items() if isfinite(value)}
    return Measured(known, fitted, truth[:, 0], p, near, numbers)


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else nan


def _rms(values: Array) -> float:
    return sqrt(_mean(values**2)) if len(values) else nan


def bias_and_spread(runs: Sequence[Measured]) -> dict[str, tuple[float, float]]:
    """Split the error of several data sets near jumps and elsewhere, in dB.

    Returns
    -------
    dict
        ``near`` and ``far``: root mean square over cells of the bias, the mean over data sets
        less the truth (freed of the variance that this mean still has), and of the deviation
        between data sets, which an epistemic deviation should equal.
    """
    means = np.stack([run.predictive.mean for run in runs])  # (R, cells)
    variance = means.var(axis=0, ddof=1)
    squared = (means.mean(axis=0) - runs[0].truth) ** 2 - variance / len(runs)
    near = runs[0].near
    return {
        name: (sqrt(max(_mean(squared[chosen]), 0.0)), sqrt(_mean(variance[chosen])))
        for name, chosen in (("near", near), ("far", ~near))
    }


def compare(seed: int = 0, base: Variant = BASE) -> dict[str, Measured]:
    """Train every one of `METHODS` on the same receivers, and measure."""
    return {name: measure(base.but(name, build=METHODS[name]), seed) for name in METHODS}


def reproduce(out: Path, seed: int = 0, repeats: int = 4, effort: float = 1.0) -> str:
    """Run everything; write ``maps.png``, ``why.png``, ``how.png`` and ``numbers.json``.

    Parameters
    ----------
    out : Path
        An existing folder.
    seed : int
        Of the first data set, which is the one in the maps.
    repeats : int
        Data sets, from which every standard error comes.
    effort : float
        Factor on all epochs, for a quick look.

    Returns
    -------
    str
        What the numbers say.
    """

    def shorter(variant: Variant) -> Variant:
        return variant.but(variant.name, epochs=max(1, round(effort * variant.setup.epochs)))

    seeds = range(seed, seed + repeats)
    pairs = [compare(which, shorter(BASE)) for which in seeds]
    runs = {BASE.name: [pair[BASE.name] for pair in pairs]}
    for variant in WHY[1:]:
        runs[variant.name] = [measure(shorter(variant), which) for which in seeds]
    side = {name: average([pair[name].numbers for pair in pairs]) for name in METHODS}
    why = {name: average([run.numbers for run in measured]) for name, measured in runs.items()}
    how = {
        variant.name: average([measure(shorter(variant), which).numbers for which in seeds])
        for variant in HOW
    }
    split = bias_and_spread(runs[BASE.name]) if repeats > 1 else {}
    numbers = {"methods": side, "why": why, "how": how, "bias and spread": split}
    (out / "numbers.json").write_text(
        json.dumps({"seed": seed, "repeats": repeats, **numbers}, indent=1, allow_nan=False) + "\n",
        encoding="utf-8",
    )
    draw_maps(pairs[0]).savefig(out / "maps.png", dpi=100)
    _draw_why(why, runs).savefig(out / "why.png", dpi=100)
    _draw_how(how).savefig(out / "how.png", dpi=100)
    return "\n\n".join(
        [_scene_text(repeats), _side_text(side), _why_text(why, split), _how_text(how)]
    )


# What the numbers say.


def _rows(found: Mapping[str, Average], columns: Mapping[str, str], digits: int = 2) -> str:
    """Lay out mean (standard error) of `columns`, number by title."""
    rows = [
        [
            name,
            *(
                "{:.{d}f} ({:.{d}f})".format(*numbers[key], d=digits) if key in numbers else "-"
                for key in columns.values()
            ),
        ]
        for name, numbers in found.items()
    ]
    return table(["", *columns], rows)


def _paragraph(*sentences: str) -> str:
    return textwrap.fill(" ".join(sentences), 98, subsequent_indent="  ")


def _scene_text(repeats: int) -> str:
    scene, setup = BASE.scene, BASE.setup
    (x, y), losses = scene.transmitters[0], [f"{b.wall_loss:g}" for b in scene.buildings]
    return _paragraph(
        f"Plane {scene.width:g} m x {scene.height:g} m, transmitter at ({x:g}, {y:g}) m:",
        f"P_T = {scene.power:g} dBm, P_0 = {scene.reference_loss:g} dB at",
        f"{scene.reference_distance:g} m, lambda = {scene.exponent:g}; {len(losses)} buildings of",
        f"{', '.join(losses)} dB for each wall on the straight line; shadowing",
        f"{scene.shadowing:g} dB. {BASE.count} receivers at random.",
        f"Network {'-'.join(map(str, (2, *setup.hidden, 1)))}, {setup.activation}, on x and y;",
        f"prior deviation {setup.prior_scale:g} and noise learned, in standardised units;",
        f"{setup.epochs} epochs of Adam. All tables: mean (standard error) of {repeats} data sets.",
    )


def _side_text(side: Mapping[str, Average]) -> str:
    columns = {
        "RMSE dB": "rmse",
        "near jumps": "near",
        "elsewhere": "far",
        "nats/row": "log density",
        "in 95%": "coverage",
        "epistemic dB": "epistemic",
    }
    best = {
        "Least RMSE": min(side, key=lambda m: side[m]["rmse"][0]),
        "highest log density": max(side, key=lambda m: side[m]["log density"][0]),
        "coverage nearest 95%": min(side, key=lambda m: abs(side[m]["coverage"][0] - 0.95)),
    }
    return "\n".join(
        [
            _paragraph(
                "Side by side: RMSE to the map without shadowing; held-out log",
                "density and coverage of new receivers:",
            ),
            _rows(side, columns),
            "; ".join(f"{what}: {which}" for what, which in best.items()) + ".",
        ]
    )


def _why_text(why: Mapping[str, Average], split: Mapping[str, tuple[float, float]]) -> str:
    columns = {
        "rank epist.": "rank epistemic",
        "rank total": "rank total",
        "if right": "rank if right",
        "RMSE near": "near",
        "RMSE far": "far",
        "total near": "total near",
        "total far": "total far",
    }
    means = {name: {k: m for k, (m, _) in numbers.items()} for name, numbers in why.items()}
    vi, exact = means[BASE.name], means[EXACT]
    lines = [
        "(a) 'The location that have large error prediction should have large variance, but why is",
        "not this situation?'",
        _paragraph(
            "Rank correlation of |error| over the map with the epistemic and the total deviation;",
            "what the former would be, were the truth a function drawn from the",
            "posterior; RMSE and",
            f"mean total deviation in dB within {EDGE:g} m of a jump and elsewhere:",
        ),
        _rows(why, columns),
        _paragraph(
            f"Where: {vi['edge share']:.0%} of the plane is within {EDGE:g} m of a",
            "jump (a shadow's",
            f"edge or a wall), and {vi['worst near']:.0%} of the worst tenth of the cells. RMSE of",
            f"VI there {vi['near']:.2f} dB, elsewhere {vi['far']:.2f}; epistemic deviation",
            f"{vi['epistemic near']:.2f} and {vi['epistemic far']:.2f}.",
        ),
    ]
    if split:
        (bias, spread), (bias_far, spread_far) = split["near"], split["far"]
        lines.append(
            _paragraph(
                f"Why: near jumps the mean of VI over data sets misses by {bias:.2f}",
                "dB, while fits",
                f"of different data sets differ by {spread:.2f} dB (elsewhere {bias_far:.2f} and",
                f"{spread_far:.2f}). A deviation over weights answers for the second, but",
                f"{bias**2 / (bias**2 + spread**2):.0%} of the squared error near",
                "jumps is the first, a bias that all fits share.",
            )
        )
    plain = [v.name for v in WHY if v.inputs is places_alone]
    ranked = sorted(plain, key=lambda name: -means[name]["rank total"])[:3]
    heads = [v.name for v in WHY if v.setup.likelihood is NOISE_HEAD]
    corners = [("VI", "VI, empty corner"), ("5 MAP", "5 MAP, empty corner")]
    lines += [
        _paragraph(
            "What can be asked: with the epistemic deviation exactly right the rank correlation",
            f"would be {vi['rank if right']:.2f} (deviation from truth to truth",
            f"{vi['rank if right, deviation']:.2f}), not 1: one error is one draw,",
            f"and the deviation varies little over the plane. VI has {vi['rank epistemic']:.2f}.",
        ),
        _paragraph(
            "What changes it: told x and y alone, the highest rank correlations with the total",
            "deviation are",
            ", ".join(f"{means[name]['rank total']:.2f} ({name})" for name in ranked) + ".",
            "A noise head puts into the aleatoric part what the mean cannot follow:",
            "total deviation near jumps over elsewhere is",
            ", ".join(f"{means[n]['total near'] / means[n]['total far']:.2f} ({n})" for n in heads)
            + f", {vi['total near'] / vi['total far']:.2f} without one.",
            "RMSE in the tenth of the cells of largest total deviation over that in the tenth of",
            "smallest:",
            ", ".join(f"{means[n]['tenths']:.2f} ({n})" for n in ("VI", "5 MLE", *heads)) + ".",
        ),
        _paragraph(
            "What it does see: without receivers in the corner x, y > 60 m the epistemic deviation",
            "there goes from",
            ", ".join(
                f"{means[a]['corner epistemic']:.2f} to {means[b]['corner epistemic']:.2f} dB "
                f"({a}; RMSE there {means[a]['corner error']:.2f} to "
                f"{means[b]['corner error']:.2f})"
                for a, b in corners
            )
            + ".",
        ),
        _paragraph(
            "Where there is no bias: without buildings the RMSE of VI is",
            f"{means[SMOOTH]['rmse']:.2f} dB and its epistemic deviation",
            f"{means[SMOOTH]['epistemic']:.2f}; with the right inputs and full rank",
            f"{exact['rmse']:.2f} and {exact['epistemic']:.2f}. The deviation then",
            "tells the size of",
            "the error; its place it can tell only as far as the deviation varies.",
        ),
    ]
    return "\n".join(lines)


def _how_text(how: Mapping[str, Average]) -> str:
    columns = {"RMSE dB": "rmse", "near jumps": "near", "elsewhere": "far"}
    *_, right, silent = how
    on_places = {v.name for v in HOW if v.inputs is places_alone}
    best = min(on_places, key=lambda name: how[name]["rmse"][0])
    scene = BASE.scene
    return "\n".join(
        [
            "(b) 'How to train a neural network that can approximate the simulated function",
            "perfectly?'",
            _paragraph(
                "Least squares (MLE with a fixed noise deviation); one thing changed",
                "at a time, then several, then the inputs. RMSE to the map without shadowing:",
            ),
            _rows(how, columns),
            _paragraph(
                f"Told x and y alone the best is {how[best]['rmse'][0]:.2f} dB ({best}),",
                f"{how[best]['near'][0]:.2f} near jumps: a network is continuous, the function is",
                "not. Told log10 d and the walls of each building, in which the",
                "function is linear,",
                f"{WEIGHTS} weights reach {how[right]['rmse'][0]:.2f} dB; the limit",
                "set by the noise",
                f"is {scene.shadowing:g} sqrt({WEIGHTS}/{BASE.count}) = {NOISE_LIMIT:.2f} dB.",
                f"Without noise: {how[silent]['rmse'][0]:.1e} dB.",
            ),
        ]
    )


# Pictures.


def draw_maps(methods: Mapping[str, Measured], figure: Figure | None = None) -> Figure:
    """Draw truth, predicted maps, absolute errors and deviations of every method side by side.

    Parameters
    ----------
    methods : mapping
        From `compare`; one of them is 'VI'.
    figure : Figure, optional
        Empty. Default: a new one.

    Returns
    -------
    Figure
    """
    scene, shown = BASE.scene, list(methods.values())
    errors = [np.abs(m.predictive.mean - m.truth) for m in shown]
    columns = len(shown) + 1
    if figure is None:
        figure = Figure(figsize=(3.3 * columns, 9.6), layout="constrained")
    panels = figure.subplots(3, columns, sharex=True, sharey=True)
    vi = methods["VI"]
    rows = (
        ("power (dBm)", "cividis", [vi.truth, *(m.predictive.mean for m in shown)]),
        ("|error| (dB)", "inferno", [vi.near * 1.0, *errors]),
        (
            "deviation (dB)",
            "viridis",
            [vi.predictive.epistemic, *(m.predictive.total for m in shown)],
        ),
    )
    titles = (
        ["truth and receivers", *(f"{name}, predicted" for name in methods)],
        [f"within {EDGE:g} m of a jump", *(f"{name}, |error|" for name in methods)],
        ["VI, epistemic", *(f"{name}, total" for name in methods)],
    )
    for i, (label, colours, maps) in enumerate(rows):
        lowest = min(values.min() for values in maps[i == 1 :])
        highest = max(np.quantile(values, 0.995) for values in maps[i == 1 :])
        for j, (ax, values) in enumerate(zip(panels[i], maps, strict=True)):
            mask = i == 1 and j == 0
            image = ax.imshow(
                values.reshape(CELLS, CELLS),
                origin="lower",
                extent=(0.0, scene.width, 0.0, scene.height),
                cmap="Greys" if mask else colours,
                vmin=0.0 if mask else lowest,
                vmax=2.0 if mask else highest,
            )
            _furnish(ax, scene, "black" if mask else "white")
            ax.set_title(titles[i][j], fontsize="medium")
            ax.set_xlabel("x (m)" if i == 2 else "")
            ax.set_ylabel("y (m)" if j == 0 else "")
        figure.colorbar(image, ax=panels[i], label=label, shrink=0.9)
    panels[0, 0].plot(*vi.receivers.places.T, ".", color="white", markersize=1.5)
    return figure


def _furnish(ax: Axes, scene: Scene, colour: str) -> None:
    """Draw the buildings' walls and the transmitters."""
    for left, bottom, right, top, _ in scene.buildings:
        size = (right - left, top - bottom)
        ax.add_patch(Rectangle((left, bottom), *size, fill=False, edgecolor=colour, linewidth=1.0))
    ax.plot(*np.transpose(scene.transmitters), "^", color=colour, markeredgecolor="black")


def _draw_why(why: Mapping[str, Average], runs: Mapping[str, Sequence[Measured]]) -> Figure:
    figure = Figure(figsize=(13.0, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    names = list(why)[::-1]
    height = np.arange(len(names))
    for key, label, marker, colour, shift in (
        ("rank epistemic", "with the epistemic deviation", "o", "#0072B2", 0.12),
        ("rank total", "with the total deviation", "s", "#D55E00", -0.12),
        ("rank if right", "epistemic, were it right", "|", "#000000", 0.0),
    ):
        mean, error = np.array([why[name][key] for name in names]).T
        left.errorbar(mean, height + shift, xerr=error, fmt=marker, color=colour, label=label,
                      markersize=12 if marker == "|" else 5, linewidth=1.2)  # fmt: skip
    left.axvline(0.0, color="#8C8C8C", linewidth=0.8)
    left.set_yticks(height, names)
    left.set_xlabel("rank correlation of |error| and deviation over the map (± 1 s.e.)")
    left.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3, frameon=False)
    styles = (("VI", "o-", "#0072B2"), ("5 MLE", "^--", "#009E73"),
              ("VI, noise head, 1600", "s-.", "#D55E00"))  # fmt: skip
    highest = 0.0
    for name, style, colour in styles:
        total = np.concatenate([run.predictive.total for run in runs[name]])
        error = np.concatenate([run.predictive.mean - run.truth for run in runs[name]])
        tenths = np.array_split(np.argsort(total), 10)
        x, y = (np.array([_rms(v[t]) for t in tenths]) for v in (total, error))
        right.plot(x, y, style, color=colour, label=f"{name}", markersize=5)
        highest = max(highest, x.max(), y.max())
    noise = BASE.scene.shadowing  # is in the total deviation, not in the error to the truth
    line = np.linspace(noise, highest, 100)
    right.plot(line, np.sqrt(line**2 - noise**2), ":", color="black", label="were it right")
    right.set_xlabel("total deviation (dB), by tenths of the cells")
    right.set_ylabel("RMSE of the mean (dB)")
    right.set_ylim(0.0)
    right.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return figure


def _draw_how(how: Mapping[str, Average]) -> Figure:
    figure = Figure(figsize=(9.0, 5.6), layout="constrained")
    ax = figure.subplots()
    names = [name for name in how if how[name]["rmse"][0] > 1e-3][::-1]
    height = np.arange(len(names))
    for key, label, marker, colour in (
        ("rmse", "whole plane", "o", "#000000"),
        ("near", f"within {EDGE:g} m of a jump", "^", "#D55E00"),
        ("far", "elsewhere", "v", "#0072B2"),
    ):
        mean, error = np.array([how[name][key] for name in names]).T
        ax.errorbar(mean, height, xerr=error, fmt=marker, color=colour, label=label, markersize=6)
    ax.axvline(NOISE_LIMIT, color="#8C8C8C", linestyle="--", label="noise limit, right inputs")
    ax.set_xscale("log")
    ax.set_xticks(ticks := [0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0], [f"{tick:g}" for tick in ticks])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("RMSE to the map without shadowing (dB; ± 1 s.e.)")
    ax.set_yticks(height, names)
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=4, frameon=False)
    return figure
