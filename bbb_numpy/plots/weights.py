"""Pictures of weights: posterior densities of each layer, signal-to-noise ratios."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..evaluation.pruning import decibels
from ..numeric.layout import Layout
from ..numeric.validation import (
    NUMBERS,
    SMALLEST,
    TEXT,
    A,
    Numbers,
    Optional,
    accepts,
    fraction,
    positive,
    whole,
)
from .style import BLACK, BLUE, GREY, PALE, VERMILLION, axes_or_new, legend_above

__all__ = ["densities_of_draws", "densities_of_mean_field", "ratios", "weight_densities"]

Array = NDArray[Any]
POINTS = 400  # of every curve
MOST_CURVES = 40  # thin lines of one panel; the thick one is always of all weights


@accepts(mean=Numbers((None,)), deviation=Numbers((None,)), at=Numbers((None,)))
def densities_of_mean_field(mean: Any, deviation: Any, at: Any) -> Array:
    """Return the densities (P, G) of P independent Gaussians at the points `at` (G,)."""
    if len(mean) != len(deviation) or not (deviation > 0).all():
        raise ValueError(
            f"deviation must hold a number > 0 for each of the {len(mean)} of mean; got {deviation}"
        )
    mean, deviation = np.asarray(mean, float)[:, None], np.asarray(deviation, float)[:, None]
    with np.errstate(over="ignore"):  # so far out the density is 0
        z = (np.asarray(at, float) - mean) / deviation
        return np.exp(-0.5 * z * z) / (deviation * np.sqrt(2.0 * np.pi))


@accepts(draws=Numbers((None, None), least=2, limit=1e150), at=Numbers((None,)))
def densities_of_draws(draws: Any, at: Any) -> Array:
    """Return kernel estimates (P, G) of the densities of draws (T, P) at the points `at` (G,).

    Gaussian kernels of Silverman's width, 0.9 min(deviation, IQR / 1.34) T^(-1/5), on a fine
    histogram of the draws.
    """
    draws, at = np.asarray(draws, float), np.asarray(at, float)
    low, high = np.percentile(draws, [25, 75], axis=0)
    narrow = np.minimum(draws.std(axis=0, ddof=1), (high - low) / 1.34)
    width = 0.9 * np.where(narrow > 0, narrow, 1e-3) * len(draws) ** -0.2
    found = np.empty((draws.shape[1], len(at)))
    for j, column in enumerate(draws.T):
        cells = np.linspace(column.min(), column.max() + 1e-12, 257)
        share = np.histogram(column, cells)[0] / len(column)
        middle = 0.5 * (cells[1:] + cells[:-1])
        kernels = densities_of_mean_field(middle, np.full(middle.shape, width[j]), at)
        found[j] = share @ kernels
    return found


@accepts(
    layout=A(Layout),
    draws=Optional(Numbers((None, None), least=2)),
    mean=Optional(Numbers((None,))),
    deviation=Optional(Numbers((None,), low=SMALLEST)),
    prior=Optional(positive),
    columns=partial(whole, least=1, most=100),
    unit=TEXT,
)
def weight_densities(
    layout: Layout,
    draws: Any = None,
    *,
    mean: Any = None,
    deviation: Any = None,
    prior: float | None = None,
    columns: int = 2,
    unit: str = "dimensionless",
) -> Figure:
    """Draw the posterior density of every weight, one panel for each block of the network.

    Thin lines are single weights, the thick one the average over all of the block.

    Parameters
    ----------
    layout : Layout
        Of the P weights, e.g. ``model.layout``.
    draws : ndarray (T, P), optional
        Of a sampler; drawn as kernel estimates.
    mean, deviation : ndarray (P,), optional
        Of a mean-field posterior, instead of draws; drawn exactly.
    prior : float, optional
        Deviation of a Gaussian prior, drawn dashed.
    columns : int
        Panels in a row.
    unit : str
        Of the weights, for the labels.

    Raises
    ------
    ValueError
        Unless either draws or mean and deviation are given, with P numbers.
    """
    if (draws is None) == (mean is None) or (mean is None) != (deviation is None):
        raise ValueError("give either draws, or mean and deviation")
    for argument, given in (("draws", draws), ("mean", mean), ("deviation", deviation)):
        if given is not None and given.shape[-1] != layout.size:
            raise ValueError(
                f"{argument} must hold the {layout.size} weights of the layout; got shape "
                f"{given.shape}"
            )
    names = list(layout.slices)
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(5.0 * columns, 2.9 * rows + 0.4), layout="constrained")
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for ax in axes[len(names) :]:
        ax.remove()
    for ax, name in zip(axes, names, strict=False):
        where = layout.slices[name]
        if draws is None:
            m, s = np.asarray(mean)[where], np.asarray(deviation)[where]
            low, high = (m - 4 * s).min(), (m + 4 * s).max()
        else:
            part = np.asarray(draws)[:, where]
            low, high = np.percentile(part, [0.1, 99.9])
            low, high = low - 0.1 * (high - low), high + 0.1 * (high - low)
        at = np.linspace(low, high, POINTS)
        curves = (
            densities_of_mean_field(m, s, at) if draws is None else densities_of_draws(part, at)
        )
        _panel(ax, at, curves, prior)
        ax.set_title(f"{name} {dict(layout.blocks)[name]}", fontsize="medium")
        ax.set_xlabel(f"weight ({unit})")
        ax.set_ylabel("density")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _panel(ax: Axes, at: Array, curves: Array, prior: float | None) -> None:
    chosen = np.unique(np.linspace(0, len(curves) - 1, min(len(curves), MOST_CURVES)).astype(int))
    for j, curve in enumerate(curves[chosen]):
        label = "single weights" if j == 0 else None
        ax.plot(at, curve, color=BLUE, linewidth=0.8, alpha=0.6, label=label)
    average = curves.mean(axis=0)
    ax.plot(at, average, color=VERMILLION, linewidth=2.2, label="average")
    peaks = curves.max(axis=1)
    if prior is not None:
        density = densities_of_mean_field([0.0], [prior], at)[0]
        ax.plot(at, density, "--", color=BLACK, linewidth=1.3, label="prior")
        peaks = np.append(peaks, density.max())
    top = max(1.3 * float(average.max()), float(np.quantile(peaks, 0.9)))
    ax.set_ylim(0, 1.05 * min(top, float(peaks.max())))
    ax.set_xlim(at[0], at[-1])


@accepts(ratio=NUMBERS, ax=Optional(A(Axes)))
def ratios(ratio: Any, *, share: float | None = 0.75, ax: Axes | None = None) -> Axes:
    """Draw density and distribution function of signal-to-noise ratios in dB (D36).

    Blundell et al. 2015, Figure 4.

    Parameters
    ----------
    ratio : ndarray (P,)
        From `pruning.signal_to_noise`, > 0.
    share : float, optional
        Marks the ratio below which this share of the weights lies.
    ax : Axes, optional

    Returns
    -------
    Axes
        Of the density; the distribution function has its own axis on the right.
    """
    ax = axes_or_new(ax)
    level = np.sort(decibels(np.ravel(ratio)))
    level = level[np.isfinite(level)]
    if not level.size:
        raise ValueError("ratio has no positive number")
    ax.hist(
        level,
        bins=min(60, max(8, level.size // 15)),
        density=True,
        color=PALE,
        edgecolor=BLUE,
        linewidth=0.8,
        label=f"density, {level.size} weights",
    )
    ax.set_xlabel("signal-to-noise ratio 10 log10(|μ| / σ) (dB)")
    ax.set_ylabel("density (per dB)")
    right = ax.twinx()
    right.plot(
        level, np.arange(1, level.size + 1) / level.size, color=BLACK, linewidth=1.6, label="CDF"
    )
    right.set_ylim(0, 1)
    right.set_ylabel("share of weights below")
    if share is not None:
        cut = float(np.quantile(level, fraction("share", share)))
        ax.axvline(cut, color=VERMILLION, linestyle="--", linewidth=1.8, label=f"{share:.0%} below")
    ax.plot([], [], color=BLACK, linewidth=1.6, label="distribution function (right)")
    ax.grid(axis="x", color=GREY, alpha=0.2)
    legend_above(ax, 2)
    return ax
