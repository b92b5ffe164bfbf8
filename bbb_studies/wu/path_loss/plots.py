"""The pictures of the radio field (W6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bbb_numpy.plots.style import BLACK, BLUE, GREEN, VERMILLION, finish, plain_numbers
from bbb_studies.data.path_loss import Scene

from .models import BASE, EDGE, NOISE_LIMIT, Average, Measured, rms


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
                values.reshape(isqrt(values.size), -1),
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


def draw_why(why: Mapping[str, Average], runs: Mapping[str, Sequence[Measured]]) -> Figure:
    """Draw rank correlations, and error against deviation in tenths of the map."""
    figure = Figure(figsize=(13.0, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    _by_name(left, why, "rank epistemic", "with the epistemic deviation", "o", BLUE, 0.12)
    _by_name(left, why, "rank total", "with the total deviation", "s", VERMILLION, -0.12)
    _by_name(left, why, "rank if right", "epistemic, were it right", "|", BLACK)
    left.axvline(0.0, color="#8C8C8C", linewidth=0.8)
    finish(left, "rank correlation of |error| and deviation over the map (± 1 s.e.)", "", 3)
    draw_tenths(runs, right)
    return figure


def draw_tenths(runs: Mapping[str, Sequence[Measured]], ax: Axes) -> None:
    """Draw error against total deviation, by tenths of the cells, of three variants."""
    highest = 0.0
    for name, style, colour in (
        ("VI", "o-", BLUE),
        ("5 MLE", "^--", GREEN),
        ("VI, noise head, 1600", "s-.", VERMILLION),
    ):
        total = np.concatenate([run.predictive.total for run in runs[name]])
        error = np.concatenate([run.predictive.mean - run.truth for run in runs[name]])
        tenths = np.array_split(np.argsort(total), 10)
        x, y = (np.array([rms(v[t]) for t in tenths]) for v in (total, error))
        ax.plot(x, y, style, color=colour, label=name, markersize=5)
        highest = max(highest, x.max(), y.max())
    noise = BASE.scene.shadowing  # is in the total deviation, not in the error to the truth
    line = np.linspace(noise, highest, 100)
    ax.plot(line, np.sqrt(line**2 - noise**2), ":", color=BLACK, label="were it right")
    ax.set_ylim(0.0)
    finish(ax, "total deviation (dB), by tenths of the cells", "RMSE of the mean (dB)", 2)


def draw_how(how: Mapping[str, Average]) -> Figure:
    """Draw the error of every change of the base case."""
    figure = Figure(figsize=(9.0, 5.6), layout="constrained")
    ax = figure.subplots()
    shown = {name: numbers for name, numbers in how.items() if numbers["rmse"][0] > 1e-3}
    _by_name(ax, shown, "rmse", "whole plane", "o", BLACK)
    _by_name(ax, shown, "near", f"within {EDGE:g} m of a jump", "^", VERMILLION)
    _by_name(ax, shown, "far", "elsewhere", "v", BLUE)
    ax.axvline(NOISE_LIMIT, color="#8C8C8C", linestyle="--", label="noise limit, right inputs")
    ax.set_xscale("log")
    plain_numbers(ax.xaxis)
    ax.set_xticks([0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0])
    finish(ax, "RMSE to the map without shadowing (dB; ± 1 s.e.)", "", 4)
    return figure


def _by_name(
    ax: Axes,
    found: Mapping[str, Average],
    key: str,
    label: str,
    marker: str,
    colour: str,
    shift: float = 0.0,
) -> None:
    """Draw one number of every variant with its error, the first variant at the top."""
    names = list(found)[::-1]
    height = np.arange(len(names))
    mean, error = np.array([found[name][key] for name in names]).T
    ax.errorbar(
        mean,
        height + shift,
        xerr=error,
        fmt=marker,
        color=colour,
        label=label,
        markersize=12 if marker == "|" else 5,
        linewidth=1.2,
    )
    ax.set_yticks(height, names)
