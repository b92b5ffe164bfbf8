"""Figures of the chapter "Likelihoods"."""

from collections.abc import Callable
from math import lgamma, log
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bbb_numpy.numeric.elementary import gamma_half_step, log_factorial, softplus_parts
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    legend_above,
    legend_of_figure,
)
from bbb_studies.data import path_loss
from chapters.shared import titled

# D12, D13, D15, D31, D41, D43, W6: likelihoods


def pulls(residual: Any) -> dict[str, tuple[Any, Any]]:
    """Return price -log P up to a constant, and pull on the mean, of residuals in units of s.

    Gaussian noise, Student's t with 4 degrees, and noise that has followed its residual (D12).
    """
    square = residual**2
    return {
        "Gaussian": (square / 2, residual),
        "Student t, 4 degrees": (2.5 * np.log1p(square / 4), 5 * residual / (4 + square)),
        "noise head at $\\sigma = |y - m|$": (np.log(np.abs(residual)) + 0.5, 1 / residual),
    }


def residuals() -> Figure:
    """Draw what a residual costs under three kinds of noise, and how it pulls at the mean."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    r = np.linspace(0.2, 6, 291)
    looks = (BLACK, "-"), (GREEN, "--"), (BLUE, "-.")
    for (name, (price, pull)), (colour, dash) in zip(pulls(r).items(), looks, strict=True):
        left_ax.plot(r, price, dash, color=colour, lw=1.8, label=name)
        right_ax.plot(r, pull, dash, color=colour, lw=1.8)
    left_ax.set(xlim=(0, 6), ylim=(-1.2, 8), ylabel="$-\\log P$ and a constant (nats)")
    right_ax.set(
        xlim=(0, 6), ylim=(0, 5.2), ylabel="pull on the mean, $\\partial \\log P/\\partial f$"
    )
    titles = (left_ax, "What a residual costs"), (right_ax, "How it pulls")
    for ax, title in titles:
        ax.set_xlabel("residual $y - f$, in units of the scale")
        ax.set_title(title, loc="left", fontsize="medium")
    legend_of_figure(figure, left_ax, 3)
    return figure


def discrete() -> Figure:
    """Draw the price of two classes against the logit, and of counts against the log rate."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    z, f = np.linspace(-6, 6, 241), np.linspace(-2, 4, 241)
    for y, colour, dash in ((1, BLUE, "-"), (0, VERMILLION, "--")):
        price = softplus_parts(z).softplus - y * z
        left_ax.plot(z, price, dash, color=colour, lw=1.8, label=f"$y = {y}$")
    for y, colour, dash in ((0, VERMILLION, "--"), (3, BLUE, "-"), (10, BLACK, "-.")):
        price = np.exp(f) - y * f + log_factorial(y)
        right_ax.plot(f, price, dash, color=colour, lw=1.8, label=f"$y = {y}$")
        if y:
            right_ax.plot(log(y), y - y * log(y) + log_factorial(y), "o", color=colour, ms=6)
    left_ax.set(xlim=(-6, 6), ylim=(0, 6.5), xlabel="logit $z$", ylabel="$-\\log P$ (nats)")
    right_ax.set(xlim=(-2, 4), ylim=(0, 20), xlabel="log rate $f$", ylabel="$-\\log P$ (nats)")
    for ax, title in ((left_ax, "Two classes"), (right_ax, "Counts: least at $e^f = y$")):
        legend_above(ax, 3)
        titled(ax, title)
    return figure


STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
            -3617 / 122400, 43867 / 244188, -174611 / 125400)  # fmt: skip


def left_out(z: float) -> Any:
    """Return the size of the first term that is left out after 0, 1, 2, ... of them (D31)."""
    return np.array([abs(c) / z ** (2 * j + 1) for j, c in enumerate(STIRLING)])


def digits_lost(nu: Any) -> Any:
    """Return how far the difference of two log Gammas is from g(nu) (D41)."""
    apart = [lgamma((df + 1) / 2) - lgamma(df / 2) - log(df / 2) / 2 for df in nu]
    return np.abs(apart - gamma_half_step(nu).value)


def constants() -> Figure:
    """Draw the bound on Stirling's error, and the digits that a difference loses."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    for z, colour, mark in ((1, VERMILLION, "s--"), (3, GREY, "^-."), (9, BLUE, "o-")):
        left_ax.plot(range(len(STIRLING)), left_out(z), mark, color=colour, ms=5,
                  label=f"$\\alpha = {z}$")  # fmt: skip
    left_ax.axhline(2.0**-53, color=BLACK, ls=":", label="double precision")
    left_ax.axvline(6, color=GREY, lw=0.7)
    left_ax.set(
        yscale="log", xlabel="terms of the series", ylabel="error is at most", ylim=(1e-19, 10)
    )
    nu = np.geomspace(1, 1e12, 241)
    right_ax.plot(nu, np.maximum(digits_lost(nu), 1e-18), ".", color=VERMILLION, ms=4,
               label="error of the difference")  # fmt: skip
    right_ax.plot(nu, -gamma_half_step(nu).value, color=BLACK, label="$-g(\\nu)$, as one function")
    right_ax.set(xscale="log", yscale="log", xlabel="degrees of freedom $\\nu$", ylim=(1e-17, 10))
    right_ax.set_ylabel("size (dimensionless)")
    titles = (
        (left_ax, "Stirling: six terms, from $\\alpha = 9$ on"),
        (right_ax, "The constant of Student's t"),
    )
    for ax, title in titles:
        legend_above(ax, 2)
        titled(ax, title)
    return figure


def along_a_line() -> tuple[Any, Any, Any]:
    """Return x in m, power in dBm along y = 65 m, and a continuous curve: its mean over 5 m."""
    x = np.linspace(0, 100, 2001)
    power = path_loss.field(path_loss.Scene(), np.column_stack([x, np.full(2001, 65.0)]))[:, 0]
    width = 101
    inside = np.convolve(np.pad(power, width // 2, "edge"), np.full(width, 1 / width), "valid")
    return x, power, inside


def shadows() -> Figure:
    """Draw the map of the received power, and its jumps along one line."""
    figure = Figure(figsize=(8.8, 4.2), layout="constrained")
    axes = figure.subplot_mosaic([["map", "line"], ["map", "error"]], height_ratios=(3, 1))
    scene = path_loss.Scene()
    image = path_loss.field(scene, path_loss.grid(scene, 200)).reshape(200, 200)
    map_image = axes["map"].imshow(image, origin="lower", extent=(0, 100, 0, 100), cmap="cividis",
                               vmin=-85, vmax=-35)  # fmt: skip
    figure.colorbar(map_image, ax=axes["map"], label="power (dBm)", shrink=0.7)
    for a, b, c, d, _ in scene.buildings:
        axes["map"].plot([a, c, c, a, a], [b, b, d, d, b], color="white", lw=1)
    axes["map"].plot(*scene.transmitters[0], "^", color="white", mec=BLACK, ms=8)
    axes["map"].axhline(65, color="white", ls="--", lw=1.2)
    axes["map"].set(xlabel="$x$ (m)", ylabel="$y$ (m)")
    axes["map"].set_title("Five buildings, one transmitter", loc="left", fontsize="medium")
    x, power, smooth = along_a_line()
    axes["line"].plot(x, power, color=BLACK, lw=1.2, label="the field")
    axes["line"].plot(x, smooth, "--", color=BLUE, lw=1.6, label="a continuous curve")
    axes["error"].plot(x, np.abs(power - smooth), color=VERMILLION, lw=1.2)
    axes["line"].set(xlim=(0, 100), ylabel="power (dBm)", xticklabels=[])
    axes["error"].set(xlim=(0, 100), ylim=(0, 6), ylabel="|error| (dB)")
    axes["error"].set_xlabel("$x$ (m), along the dashed line")
    legend_above(axes["line"], 2)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "residuals": residuals,
    "discrete": discrete,
    "constants": constants,
    "shadows": shadows,
}
