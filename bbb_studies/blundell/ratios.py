"""The picture of the weights' signal-to-noise ratios."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from bbb_numpy.evaluation.pruning import decibels
from bbb_numpy.plots.style import BLACK, BLUE, GREY, PALE, VERMILLION, axes_or_new, finish

__all__ = ["ratios"]


def ratios(ratio: Any, *, share: float = 0.75, ax: Axes | None = None) -> Axes:
    """Draw density and distribution function of signal-to-noise ratios in dB (D36).

    Blundell et al. 2015, Figure 4.

    Parameters
    ----------
    ratio : ndarray (P,)
        From `pruning.signal_to_noise`, some > 0.
    share : float
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
    bins, label = min(60, max(8, level.size // 15)), f"density, {level.size} weights"
    ax.hist(level, bins, density=True, color=PALE, edgecolor=BLUE, linewidth=0.8, label=label)
    right = ax.twinx()
    right.plot(level, np.arange(1, level.size + 1) / level.size, color=BLACK, linewidth=1.6)
    right.set(ylim=(0, 1), ylabel="share of weights below")
    cut = float(np.quantile(level, share))
    ax.axvline(cut, color=VERMILLION, linestyle="--", linewidth=1.8, label=f"{share:.0%} below")
    ax.plot([], [], color=BLACK, linewidth=1.6, label="distribution function (right)")
    ax.grid(axis="x", color=GREY, alpha=0.2)
    finish(ax, "signal-to-noise ratio 10 log10(|μ| / σ) (dB)", "density (per dB)", 2)
    return ax
