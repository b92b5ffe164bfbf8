"""The pictures of Krasser's system; styles and colours as in `bbb_numpy.plots.style`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bbb_numpy.plots import fits
from bbb_numpy.plots.style import BLACK, BLUE, GREY, SKY, VERMILLION, finish, plain_numbers

from .models import DATA, FUNCTIONS, Domain, Result

__all__ = ["noise", "prediction", "priors", "raw"]

X = "x (dimensionless)"


def prediction(result: Result) -> Figure:
    """Draw (a) the post's picture with the total band, (b) and (c) R9's difference."""
    figure = Figure(figsize=(13.0, 4.3), layout="constrained")
    a, b, c = figure.subplots(1, 3)
    _fit(result, a)
    a.set_xlabel(f"{X}\n(a) as in the post, with the total band")

    x, p = result.x[:, 0], result.predictive
    mean, of_means = p.mean[:, 0], result.of_means[:, 0]
    b.plot(x, mean, color=VERMILLION, lw=1.8, label="mean of 500 functions, E f(w)")
    b.plot(x, of_means, "--", color=BLUE, lw=1.6, label="function of the mean, f(E w)")
    inside = (x >= DATA[0]) & (x <= DATA[1])
    b.plot(x[inside], result.data.truth(x[inside]), ":", color=BLACK, lw=1.8, label="truth")
    finish(b, f"{X}\n(b) two predictions", "y (dimensionless)", 2)

    error = p.epistemic[:, 0] / FUNCTIONS**0.5
    c.fill_between(x, -4 * error, 4 * error, color=SKY, lw=0, label="± 4 standard errors")
    c.plot(x, mean - of_means, color=BLACK, lw=1.4, label="E f(w) − f(E w)")
    c.axhline(0.0, color=GREY, lw=0.7)
    finish(c, f"{X}\n(c) their difference", "difference (units of y)", 2)
    for ax in (b, c):
        _edges(ax)
    return figure


def priors(learned: Result, fixed: Result) -> Figure:
    """Draw the prior's numbers over epochs, learned and fixed, and what they do to the band."""
    figure = Figure(figsize=(13.0, 4.3), layout="constrained")
    a, b, c = figure.subplots(1, 3)
    for ax, columns in ((a, (1, 2)), (b, (0,))):
        for column in columns:
            name = ("π", "σ₁", "σ₂")[column]
            colour = BLUE if column == 1 else VERMILLION
            epochs = learned.trace.epochs
            ax.plot(
                epochs,
                learned.trace.prior[:, column],
                color=colour,
                lw=1.6,
                label=f"{name}, learned",
            )
            values = fixed.trace.prior[:, column]
            style = (0, (4, 2)) if column != 2 else (0, (1, 1.5))
            ax.plot(epochs, values, ls=style, color=colour, lw=1.4, label=f"{name}, fixed")
        ax.set_ylim(bottom=0.0)
        ax.set_xlim(0, epochs[-1])
    finish(a, "epoch\n(a) deviations of the two components", "deviation of a weight", 2)
    finish(b, "epoch\n(b) share of the wide component", "share π", 2)
    curves = {
        "prior learned": learned.predictive.epistemic,
        "prior fixed": fixed.predictive.epistemic,
    }
    fits.deviations(learned.x, curves, ranges=dict.fromkeys(curves, DATA), ax=c)
    plain_numbers(c.yaxis, minor="123456789")
    c.set_xlabel(f"{X}\n(c) epistemic deviation")
    return figure


def noise(full: Result, cold: Result) -> Figure:
    """Draw the learned noise over epochs and the two fits."""
    figure = Figure(figsize=(13.0, 4.3), layout="constrained")
    a, b, c = figure.subplots(1, 3)
    for result, colour, style in ((full, VERMILLION, "--"), (cold, BLUE, "-")):
        a.plot(
            result.trace.epochs,
            result.trace.noise,
            style,
            color=colour,
            lw=1.6,
            label=_label(result),
        )
    a.axhline(1.0, color=BLACK, ls=":", lw=1.4, label="truth")
    a.set_xlim(0, full.trace.epochs[-1])
    a.set_ylim(bottom=0.0)
    finish(a, "epoch\n(a) learned noise", "noise deviation (units of y)", 2)
    for ax, result, letter in ((b, full, "b"), (c, cold, "c")):
        _fit(result, ax)
        ax.set_xlabel(f"{X}\n({letter}) {_label(result)}")
    return figure


def raw(raised: Mapping[str, Domain]) -> Figure:
    """Draw pi over epochs for every seed, as the post trains it and through a sigmoid."""
    figure = Figure(figsize=(9.5, 4.0), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, (name, domain), letter in zip(axes, raised.items(), "ab", strict=True):
        for trace, finite in zip(domain.traces, domain.finite, strict=True):
            pi = trace.prior[:, 0]
            ax.plot(trace.epochs, pi, color=BLUE, lw=0.9, alpha=0.7)
            if not finite:
                ax.plot(
                    trace.epochs[-1],
                    pi[-1],
                    "X",
                    color=VERMILLION,
                    ms=9,
                    mec=BLACK,
                    label="cost is nan",
                    zorder=4,
                )
        ax.axhspan(1.0, 1.2, color="#F3D9C8", lw=0, label="no density: π ≥ 1")
        ax.plot([], [], color=BLUE, lw=0.9, label=f"π, {len(domain.traces)} seeds")
        ax.set_ylim(0.0, 1.2)
        ax.set_xlim(0, max(int(t.epochs[-1]) for t in domain.traces))
        finish(ax, f"epoch\n({letter}) {name}", "share π of the wide component", 3)
    axes[1].set_ylabel("")
    return figure


def _label(result: Result) -> str:
    return "KL × 0.1, narrow start" if result.setting.beta < 1 else "as in the post, noise learned"


def _fit(result: Result, ax: Axes) -> None:
    data = (result.data.x, result.data.y)
    p = result.predictive
    reach = float((np.abs(p.mean) + fits.BAND * p.total).max())
    limit = 1.08 * max(reach, float(np.abs(result.data.y).max()))
    fits.fit(result.x, p, data=data, truth=result.data.truth, y_limits=(-limit, limit), ax=ax)
    for line in ax.lines:
        if line.get_label() == "data":
            line.set_markersize(5.0)
    ax.set_ylabel("y (dimensionless)")


def _edges(ax: Axes) -> None:
    """Mark the range of the data."""
    ax.set_xlim(-1.5, 1.5)
    for edge in DATA:
        ax.axvline(edge, color="#8C8C8C", lw=0.7, ls=(0, (1, 2)), zorder=0.5)
