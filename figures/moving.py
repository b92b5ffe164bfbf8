"""The README's moving picture: what is believed of a function while its data arrive.

Usage: ``python figures/moving.py`` writes fit.gif into this folder. Every frame is a posterior of
its own, by NUTS on the hand-derived gradient; the first has no data, and is the prior.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.figure import Figure

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model, sample
from bbb_numpy.plots.style import BLACK, BLUE, SKY, VERMILLION, legend_above

HERE = Path(__file__).parent
COUNTS = (0, 1, 2, 4, 8, 16, 32, 64)  # rows that have arrived
NOISE = 0.1
MODEL = Model(MLP((1, 20, 1), "tanh"), GaussianPrior(1.0), GaussianLikelihood(NOISE))
GRID = np.linspace(-4.0, 4.0, 121)


def truth(x: Any) -> Any:
    """Return the function that is to be found."""
    return np.sin(2.0 * x)


def data(seed: int = 0) -> tuple[Any, Any]:
    """Return all rows (N, 1), in the order in which they arrive."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, (COUNTS[-1], 1))
    return x, truth(x) + NOISE * rng.standard_normal(x.shape)


def functions(x: Any, y: Any, seed: int = 1) -> Any:
    """Return draws of the function at the grid (S, G), given these rows."""
    rng = np.random.default_rng(seed)
    if len(x):
        options = {"sampler": "nuts", "warm_up": 200, "seed": seed, "progress": False}
        found = sample(MODEL, x, y, chains=8, draws=60, **options)
        weights = found.flat
    else:
        weights = MODEL.prior.draw(rng, {}, (480, MODEL.layout.size))
    return MODEL.predict(np.ascontiguousarray(weights), GRID[:, None])[:, :, 0]


def frame(ax: Any, x: Any, y: Any, drawn: Any) -> None:
    """Draw what is believed after some rows."""
    ax.clear()
    mean, deviation = drawn.mean(axis=0), drawn.std(axis=0)
    for width, colour, label in (
        (np.hypot(deviation, NOISE), SKY, "95 % of new observations"),
        (deviation, BLUE, "95 % of functions"),
    ):
        band = mean - 1.96 * width, mean + 1.96 * width
        ax.fill_between(GRID, *band, color=colour, alpha=0.35, linewidth=0, label=label)
    ax.plot(GRID, mean, color=BLUE, label="mean")
    ax.plot(GRID, truth(GRID), color=BLACK, linestyle="--", linewidth=1, label="truth")
    ax.plot(x[:, 0], y[:, 0], "o", color=VERMILLION, markersize=4, label="data")
    ax.set(xlim=(-4, 4), ylim=(-4, 4), xlabel="x", ylabel="y")
    ax.set_title(f"{len(x)} observations", loc="left", pad=30)
    legend_above(ax, 5)


def main() -> None:
    """Write fit.gif."""
    x, y = data()
    found = [(x[:n], y[:n], functions(x[:n], y[:n])) for n in COUNTS]
    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    ax = figure.subplots()
    moving = FuncAnimation(figure, lambda i: frame(ax, *found[i]), frames=len(found))
    moving.save(HERE / "fit.gif", PillowWriter(fps=1), dpi=90)


if __name__ == "__main__":
    main()
