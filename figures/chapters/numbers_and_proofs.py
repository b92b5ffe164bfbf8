"""Figures of the chapter "What can go wrong: numbers and proofs"."""

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from bbb_numpy import MLP
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import softplus_parts, standard_normal
from bbb_numpy.parts.network import forward
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    legend_above,
    legend_of_figure,
)
from chapters.shared import blank, complexity_and_misfit, edge, node, slope, titled

# D7: the softplus family


def naive_ratio(rho: Any) -> Any:
    """Return sigmoid / softplus as it stands in the report (K23, K25)."""
    with np.errstate(all="ignore"):
        return 1 / (1 + np.exp(-rho)) / np.log(1 + np.exp(rho))


def softplus() -> Figure:
    """Draw softplus and sigmoid, and their ratio computed in two ways."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    rho = np.linspace(-6, 4, 201)
    parts = softplus_parts(rho)
    left_ax.plot(rho, parts.softplus, color=BLUE, label="$\\sigma = \\log(1 + e^\\rho)$")
    left_ax.plot(
        rho, parts.sigmoid, "--", color=VERMILLION, label="its slope $\\mathrm{sig}(\\rho)$"
    )
    left_ax.plot(rho, np.maximum(rho, 0), ":", color=GREY, label="max$(\\rho, 0)$")
    left_ax.set_xlabel("$\\rho$")
    left_ax.set_ylabel("standard deviation, slope (no unit)")
    legend_above(left_ax, 3)
    titled(left_ax, "Softplus is positive everywhere")
    z_far = np.linspace(-40, -28, 301)
    naive = naive_ratio(z_far)
    finite = np.isfinite(naive)
    right_ax.plot(z_far[finite], naive[finite], color=VERMILLION, lw=0.9, label="as written")
    right_ax.plot(z_far, softplus_parts(z_far).ratio, "--", color=BLACK, label="as computed (D7)")
    right_ax.axvspan(z_far[0], z_far[finite][0], color="#E6E6E6", label="as written: infinite")
    right_ax.set(xlim=(-40, -28), ylim=(0, 2.5))
    right_ax.set_xlabel("$\\rho$")
    right_ax.set_ylabel("$\\mathrm{sig}(\\rho) / \\sigma$")
    legend_above(right_ax, 3)
    titled(right_ax, "The ratio of K30, in double precision")
    return figure


# K31, D51, W3: a neuron, a network, and the two graphs of reparameterisation

NEURON_INPUTS = (1.0, -2.0, 0.5)
NEURON_WEIGHTS = (0.6, 0.3, -1.2)
NEURON_BIAS = 0.2


def neuron(activation: str) -> float:
    """Return the output of the neuron of the picture: a network of one unit that is passed on."""
    w = np.array([*NEURON_WEIGHTS, NEURON_BIAS, 1.0, 0.0])
    output, _ = forward(MLP((3, 1, 1), activation), w[None], np.array([NEURON_INPUTS]), Buffers())
    return float(output.item())


def network() -> Figure:
    """Draw a neuron with its numbers, and a network of such neurons."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    for row, (x, w) in enumerate(zip(NEURON_INPUTS, NEURON_WEIGHTS, strict=True)):
        node(left_ax, (0, 2 - row), f"${x:g}$")
        factor = f"$\\times {w:g}$" if w > 0 else f"$\\times ({w:g})$"
        edge(
            left_ax, (0, 2 - row), (1.5, 1), factor, away=((0.2, 0.15), (0, 0.15), (0.3, -0.1))[row]
        )
    z = float(np.dot(NEURON_INPUTS, NEURON_WEIGHTS) + NEURON_BIAS)
    node(left_ax, (1.5, 1), "$\\Sigma$")
    edge(left_ax, (1.5, 2), (1.5, 1), f"+ {NEURON_BIAS:g}", away=(0.25, 0.25))
    node(left_ax, (2.9, 1), "$\\mathrm{sig}$", "s")
    edge(left_ax, (1.5, 1), (2.9, 1), f"$z = {z:g}$", away=(0, 0.16))
    edge(left_ax, (2.9, 1), (4.2, 1), "")
    left_ax.text(4.25, 1, f"{neuron('sigmoid'):.3f}", ha="left", va="center")
    left_ax.set(xlim=(-0.4, 5), ylim=(-0.5, 2.5))
    blank(left_ax, "A neuron: weighted sum, bias, sigmoid")
    sizes = (3, 4, 4, 1)
    columns = [[(1.3 * k, (n - 1) / 2 - j) for j in range(n)] for k, n in enumerate(sizes)]
    for column, next_column in pairwise(columns):
        for source in column:
            for target in next_column:
                line = {"arrowstyle": "-", "color": GREY, "lw": 0.8, "shrinkA": 13, "shrinkB": 13}
                right_ax.annotate("", target, source, arrowprops=line)
    for layer, name in zip(columns, ("x", "a_0", "a_1", "f"), strict=True):
        for at in layer:
            node(right_ax, at, f"${name}$", size=500)
    for k in range(3):
        right_ax.text(1.3 * k + 0.65, -2.1, f"$W_{k}, b_{k}$", ha="center", fontsize="small")
    right_ax.set(xlim=(-0.4, 4.3), ylim=(-2.4, 2))
    blank(right_ax, "A network 3-4-4-1, K31 to K36")
    return figure


# D9, D44: a slope measured, and a slope proved


def measured(steps: Any, at: float = -1.3) -> dict[str, Any]:
    """Return the relative error of three measured slopes of the spring's F for rho, by step."""

    def f(rho: Any) -> Any:
        return sum(complexity_and_misfit(4.7, np.log(1 + np.exp(rho))))

    ahead, behind = (f(at + s * steps) - f(at - s * steps) for s in (1, 2))
    slopes_by_method = {
        "second order": ahead / (2 * steps),
        "fourth order": (8 * ahead - behind) / (12 * steps),
        "complex step": f(at + 1j * steps).imag / steps,
    }
    right = slope(np.array([4.7, at]))[1]
    return {name: np.abs(slopes / right - 1) for name, slopes in slopes_by_method.items()}


def excess(points: int, rng: np.random.Generator, surplus: int) -> Any:
    """Return, over p, slope of the value less slope by hand of the spring at random residues.

    The value is -log P(w, y) but for a constant, 2 (w - 5)^2 + 2 (w - 5.5)^2; by hand stands
    8 w - 42, and `surplus` times (w - 5) / 10^14.
    """
    p = (1 << 61) - 1
    excesses = []
    for w in rng.integers(0, p, points).tolist():
        half = pow(2, -1, p)
        value = [(w - 5, 1), (w - 11 * half, 1)]  # dual numbers: residue and slope
        squares = sum(2 * 2 * a * b for a, b in value)
        by_hand = 8 * w - 42 + surplus * (w - 5) * pow(10**14, -1, p)
        excesses.append((squares - by_hand) % p / p)
    return np.array(excesses)


def oracles() -> Figure:
    """Draw the error of measured slopes against the step, and residues of a right and wrong one."""
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    steps = np.logspace(-12, -0.5, 70)
    for (name, error), colour, mark in zip(
        measured(steps).items(), (VERMILLION, BLUE, GREEN), "os^", strict=True
    ):
        left_ax.loglog(steps, error + 1e-17, mark, color=colour, ms=3.5, label=name)
    left_ax.set(ylim=(5e-18, 10), xlabel="step $h$ (units of $\\rho$)", ylabel="relative error")
    legend_above(left_ax, 3)
    titled(left_ax, "Measured: $\\partial F / \\partial\\rho$ of the spring")
    for surplus, colour, mark, name in (
        (1, VERMILLION, "o", "wrong by $10^{-14}$"),
        (0, BLUE, "s", "right"),
    ):
        shares = excess(60, np.random.default_rng(0), surplus)
        right_ax.plot(range(1, 61), shares, mark, color=colour, ms=4, label=name)
    right_ax.set(ylim=(-0.05, 1.05), xlabel="random point of the field", ylabel="excess / $p$")
    legend_above(right_ax, 2)
    titled(right_ax, "Proved: excess of the slope, modulo $p$")
    return figure


# D66: one function, four formulas for it, two formats

SOFTPLUS_FORMS: dict[str, Callable[[Any], Any]] = {
    "$\\log(1 + e^x)$": lambda x: np.log(1 + np.exp(x)),
    "$x + \\log(1 + e^{-x})$": lambda x: x + np.log(1 + np.exp(-x)),
    "log1p$(e^x)$": lambda x: np.log1p(np.exp(x)),
    "max$(x, 0)$ + log1p$(e^{-|x|})$": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
}
EXPONENT_DIGITS = 400  # of e^-800, beside 1


def exact_softplus(x: Any) -> Any:
    """Return softplus of each of the floats x, as decimals of 60 digits and more."""
    with localcontext(Context(prec=EXPONENT_DIGITS + 60)):
        return np.array([(1 + Decimal(float(number)).exp()).ln() for number in x.ravel()])


def softplus_errors(x: Any) -> dict[str, Any]:
    """Return the relative error at x, of float32 or float64, of each of the forms by its name."""
    right = exact_softplus(x)
    errors = {}
    for name, form in SOFTPLUS_FORMS.items():
        with np.errstate(all="ignore"):
            values = form(x)
        errors[name] = np.array(
            [
                float(abs(Decimal(float(value)) / exact - 1))
                for value, exact in zip(values, right, strict=True)
            ]
        )
    return errors


def softplus_condition(x: Any) -> Any:
    """Return the condition number |x sig(x) / softplus(x)| (D66)."""
    parts = softplus_parts(np.asarray(x, float))
    return np.abs(x) * parts.ratio


def stable_and_exact() -> Figure:
    """Draw the relative error of four forms of softplus against x, in two formats."""
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    axes = figure.subplots(1, 2)
    looks = (VERMILLION, "o"), (GREEN, "^"), (GREY, "x"), (BLUE, "s")
    for ax, dtype, edge_of, top in (
        (axes[0], np.float32, 120, "single precision (float32)"),
        (axes[1], np.float64, 800, "double precision (float64)"),
    ):
        right_half = np.geomspace(0.05, edge_of, 110)
        x = np.concatenate([-right_half[::-1], right_half]).astype(dtype)
        eps = np.finfo(dtype).eps
        for (name, errors), (colour, mark) in zip(softplus_errors(x).items(), looks, strict=True):
            shown = np.minimum(np.where(np.isnan(errors), np.inf, errors), 10) + eps / 100
            ax.semilogy(x, shown, mark, color=colour, ms=3, label=name)
        cost = (1 + softplus_condition(x)) * eps
        ax.fill_between(x, eps / 200, cost, color="#E6E6E6", label="what rounding $x$ costs")
        ax.set_xscale("symlog", linthresh=1)
        ax.set(xlabel="$x$", ylim=(eps / 200, 40), xticks=(-100, -10, -1, 0, 1, 10, 100))
        ax.set_title(top, loc="left", fontsize="medium")
    axes[0].set_ylabel("relative error (10: overflow)")
    legend_of_figure(figure, axes[0], 3)
    return figure


# D11: where the square of two uniform numbers goes


def box_muller(pairs: int = 600) -> tuple[Any, Any]:
    """Return uniform numbers u, v (2, pairs), and the normal ones that are made of them."""
    uniform = np.random.default_rng(0).random(2 * pairs, dtype=np.float32).reshape(2, pairs)
    uniform[0] = 1 - uniform[0]
    normal = standard_normal(np.random.default_rng(0), np.empty(2 * pairs, np.float32))
    return uniform, normal.reshape(2, pairs)[::-1]  # the sines come first


def rings() -> Figure:
    """Draw the pairs before and after, those of each quarter of u by their own mark."""
    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    left_ax, right_ax = figure.subplots(1, 2)
    uniform, normal = box_muller()
    looks = (VERMILLION, "s"), (GREEN, "^"), (BLUE, "o"), (GREY, "x")
    for quarter, (colour, mark) in enumerate(looks):
        in_quarter = np.ceil(4 * uniform[0]) == quarter + 1
        label = f"{quarter / 4:g} < u ≤ {(quarter + 1) / 4:g}"
        left_ax.plot(*uniform[:, in_quarter], mark, color=colour, ms=2.5)
        right_ax.plot(*normal[:, in_quarter], mark, color=colour, ms=2.5, label=label)
        edge_of = (-2 * np.log(max(quarter / 4, 2.0**-24))) ** 0.5
        right_ax.add_patch(Circle((0, 0), edge_of, fc="none", ec=GREY, lw=0.8))
    for quartile in (0.25, 0.5, 0.75):
        left_ax.axvline(quartile, color=GREY, lw=0.8)
    left_ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="$u$ (makes the radius)", aspect="equal")
    left_ax.set_ylabel("$v$ (makes the angle)")
    right_ax.set(xlim=(-6, 6), ylim=(-6, 6), xlabel="$z_1$", ylabel="$z_2$", aspect="equal")
    left_ax.set_title("600 pairs of uniform numbers", loc="left", fontsize="medium")
    right_ax.set_title("the normal numbers made of them", loc="left", fontsize="medium")
    legend_of_figure(figure, right_ax, 4)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "network": network,
    "softplus": softplus,
    "oracles": oracles,
    "rings": rings,
    "stable": stable_and_exact,
}
