"""Pictures that the subcommands write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..numeric.files import atomic_write
from .problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .baselines import Forecast
    from .held_out import Measurement

__all__ = [
    "COVERAGE_LEVELS",
    "coverage_of_levels",
    "draw_calibration",
    "draw_pictures",
    "save_picture",
]

Array = NDArray[Any]
COVERAGE_LEVELS = np.arange(1, 20) / 20  # probabilities of the intervals in the plot
LEVEL = 0.9  # level of the intervals in the plot of residuals


def save_picture(ax: Any, path: str) -> None:
    """Write the figure of an Axes to a file, which is replaced only once the new one is complete.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes of the figure.
    path : str
        The file; its ending names the format.
    """
    with atomic_write(Path(path)) as file:
        ax.get_figure(root=True).savefig(file, dpi=150, format=Path(path).suffix[1:])


def coverage_of_levels(forecast: Forecast) -> Any:
    """Return the `Coverage` of central intervals: the share of targets inside, by level."""
    from ..evaluation.calibration import coverage

    return coverage(forecast.pit, COVERAGE_LEVELS)


def draw_calibration(forecasts: Mapping[str, Forecast], y: Array, path: str) -> None:
    """Write a plot of interval coverage; for classes, of the most probable class's reliability.

    Parameters
    ----------
    forecasts : mapping of str to Forecast
        One to four forecasts of the same rows, by the labels of the legend.
    y : ndarray (N,)
        Observed targets; classes as columns of ``proba``.
    path : str
        The file.
    """
    from ..plots.calibration import coverage_curve, reliability_diagram
    from .baselines import top_label_reliability

    if next(iter(forecasts.values())).proba is None:
        ax = coverage_curve(
            {name: coverage_of_levels(forecast) for name, forecast in forecasts.items()}
        )
    else:
        ax = reliability_diagram(
            {
                name: top_label_reliability(forecast, y)
                for name, forecast in forecasts.items()
            }
        )
    save_picture(ax, path)


def draw_pictures(
    problem: Problem, measurement: Measurement, folder: Path
) -> list[Path]:
    """Write pictures of the held-out rows into a folder, and return their paths.

    Parameters
    ----------
    problem : Problem
        The table.
    measurement : Measurement
        What the learner is worth on the held-out rows.
    folder : Path
        Where the pictures go; it is made if there is none.
    """
    from ..plots.fits import residuals

    folder.mkdir(parents=True, exist_ok=True)
    name = "coverage.png"
    if problem.task == "classification":
        name = "reliability.png"
    paths = [folder / name]
    forecast = measurement.forecast
    draw_calibration({"the model": forecast}, measurement.y, str(paths[0]))
    if measurement.ends is not None:
        paths.append(folder / "residuals.png")
        ends = measurement.ends
        ax = residuals(forecast.mean, measurement.y, ends, level=LEVEL)
        unit = f"(units of {problem.target})"
        ax.set(xlabel=f"predicted mean {unit}")
        ax.set(ylabel=f"{problem.target} - predicted mean {unit}")
        save_picture(ax, str(paths[1]))
    return paths
