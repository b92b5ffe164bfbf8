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
MAX_PANELS = 4  # largest number of columns in the plot of partial dependence


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
    model: Any, problem: Problem, rows: Array, measurement: Measurement, folder: Path
) -> list[Path]:
    """Write pictures of the held-out rows into a folder, and return their paths.

    Parameters
    ----------
    model : BayesianMLPRegressor or BayesianMLPClassifier
        The learner that was measured, with its ``columns_``.
    problem : Problem
        The table.
    rows : ndarray
        Numbers of the held-out rows.
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
        paths.append(folder / "dependence.png")
        _draw_dependence(model, problem, rows, paths[2])
    return paths


def _draw_dependence(model: Any, problem: Problem, rows: Array, path: Path) -> None:
    """Write a plot of the mean prediction against each of the columns that matter most."""
    from matplotlib.figure import Figure

    from ..evaluation.what_matters import importances, partial_dependence
    from ..plots.dependence import dependence

    names = [column.name for column in problem.columns]
    table = problem.table.iloc[rows][names]
    result = importances(model, table)
    shares = dict(zip(result.names, np.asarray(result.share).tolist(), strict=True))
    drawn = [column.name for column in problem.columns if not column.date]
    drawn = sorted(drawn, key=lambda name: -shares[name])[:MAX_PANELS]
    size = (4.0 * max(len(drawn), 1), 3.8)
    panels = Figure(figsize=size, layout="constrained").subplots(
        1, max(len(drawn), 1), squeeze=False, sharey=True
    )
    for ax, name in zip(panels[0], drawn, strict=False):
        dependence(partial_dependence(model, table, name), label=name, ax=ax)
        ax.set_ylabel("")
    panels[0, 0].set_ylabel(f"mean prediction ± 2 sd (units of {problem.target})")
    save_picture(panels[0, 0], str(path))
