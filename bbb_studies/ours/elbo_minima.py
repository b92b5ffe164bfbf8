"""One data set, many starts: the minima of the free energy, and what lies between them (D53).

A mean field over a network 1-3-1, for which the free energy can be had without noise: the units
are independent, and each sees its inputs through one Gaussian number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from math import log, pi, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.model.joint import Model
from bbb_numpy.numeric.elementary import softplus
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots import style
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.kit import Claim, claims, listed, panels, text, write
from bbb_studies.progress import counted, steps

Array = NDArray[Any]
N_UNITS = 3
N_TRAIN_ROWS = 24
NOISE_SCALE = 0.2
N_STARTS = 24
# The term N log(noise_scale sqrt(2 pi)) that every free energy has, in nats.
FREE_ENERGY_CONSTANT = N_TRAIN_ROWS * log(NOISE_SCALE * sqrt(2.0 * pi))
# Functions whose root mean square difference on the data is smaller count as the same.
MIN_FUNCTION_RMSD = 0.1
MODEL = Model(
    MLP((1, N_UNITS, 1), "tanh"), GaussianPrior(2.0), GaussianLikelihood(NOISE_SCALE)
)
ESTIMATOR = ClosedFormKL(MODEL, MeanField(1.0, -3.0), antithetic=True)
HERMITE_NODES, HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
PATH_SHARES = np.linspace(0.0, 1.0, 41)[:, None]  # of the way from theta to theta
LINE_COLOURS = (
    style.BLUE,
    style.VERMILLION,
    style.GREEN,
    style.PURPLE,
    style.GREY,
    style.ORANGE,
)
LINE_STYLES = tuple(zip(LINE_COLOURS, ("-", "--", "-.", ":", "--", "-"), strict=True))


class Study(NamedTuple):
    """Thetas that the starts reached, lowest free energy first; energies in nats."""

    x: Array  # (N, 1)
    y: Array  # (N, 1)
    thetas: Array  # (starts, 2P)
    energies: Array  # (starts,)
    kinds: Array  # (starts,)  of int: which function each means, 0 that of the first
    # Free energies at `PATH_SHARES` of the way from the first theta to another.
    ways: dict[str, Array]


def moments(theta: Array, x: Array) -> tuple[Array, Array]:
    """Return mean and variance (N,) of f(x) under q, by quadrature over each unit's input.

    Parameters
    ----------
    theta : array (2P,)
        The means mu, then the rho of the mean field.
    x : array (N, 1)
        Inputs.
    """
    mu, rho = theta.reshape(2, -1)
    w, b, v = mu[:-1].reshape(3, N_UNITS)
    sigma_w, sigma_b, sigma_v = softplus(rho)[:-1].reshape(3, N_UNITS)
    input_scale = np.sqrt((x * sigma_w) ** 2 + sigma_b**2)
    inputs = (x * w + b)[..., None] + input_scale[..., None] * HERMITE_NODES
    activations = np.tanh(inputs)
    # Mean and mean square of every unit, (N, N_UNITS).
    mean_unit = activations @ HERMITE_WEIGHTS / sqrt(2.0 * pi)
    mean_square_unit = activations**2 @ HERMITE_WEIGHTS / sqrt(2.0 * pi)
    variance = mean_square_unit @ (v**2 + sigma_v**2) - mean_unit**2 @ v**2
    return mean_unit @ v + mu[-1], variance + softplus(rho[-1:]) ** 2  # D53


def free_energy(theta: Array, x: Array, y: Array) -> float:
    """Return F = -ELBO in nats: E (y - f)^2 is (y - E f)^2 + Var f (D53).

    Parameters
    ----------
    theta : array (2P,)
        The means mu, then the rho of the mean field.
    x : array (N, 1)
        Inputs.
    y : array (N, 1)
        Targets.
    """
    mean, variance = moments(theta, x)
    noise = np.zeros((2, len(theta) // 2))
    # Without rows the value is the KL alone.
    kl = ESTIMATOR.value_and_grad(theta, noise, x[:0], y[:0]).value
    return float(
        kl
        + np.sum((y[:, 0] - mean) ** 2 + variance) / (2.0 * NOISE_SCALE**2)
        + FREE_ENERGY_CONSTANT
    )


def images(theta: Array) -> Iterator[Array]:
    """Yield theta with its units exchanged and turned in all ways, itself first (D53)."""
    mu, rho = (part[:-1].reshape(3, N_UNITS) for part in theta.reshape(2, -1))
    for order in map(list, permutations(range(N_UNITS))):
        for signs in product((1.0, -1.0), repeat=N_UNITS):
            image = theta.reshape(2, -1).copy()
            image[:, :-1] = (mu * signs)[:, order].ravel(), rho[:, order].ravel()  # D53
            yield image.ravel()


def nearest(theta: Array, reference: Array) -> Array:
    """Return the image of `theta` that is nearest to `reference`: the two are then aligned.

    Parameters
    ----------
    theta : array (2P,)
        Whose images are searched.
    reference : array (2P,)
        What the image is to be near to.
    """
    return min(
        images(theta), key=lambda image: float(np.linalg.norm(image - reference))
    )


def path(a: Array, point: Array, b: Array, t: Any) -> Array:
    """Return points on the parabola from `a` to `b` with the control point `point`.

    Parameters
    ----------
    a, b : array (2P,)
        The two ends, theta at t = 0 and t = 1.
    point : array (2P,)
        Control point of the parabola; (a + b) / 2 gives a straight line.
    t : float or array (T, 1)
        Shares of the way, from 0 to 1.
    """
    return (1.0 - t) ** 2 * a + 2.0 * t * (1.0 - t) * point + t**2 * b


def bend(
    a: Array, b: Array, x: Array, y: Array, rng: np.random.Generator, count: int = 2000
) -> Array:
    """Return the control point of a path with a low mean of F (Garipov et al. 2018).

    Parameters
    ----------
    a, b : array (2P,)
        The two ends of the path.
    x : array (N, 1)
        Inputs.
    y : array (N, 1)
        Targets.
    rng : numpy.random.Generator
        Draws the positions on the path, then the noise of each step.
    count : int
        Number of Adam steps.

    Returns
    -------
    array (2P,)
        The `point` of `path`.
    """
    point = 0.5 * (a + b)
    optimizer = Adam(0.05)
    state = optimizer.init(point)
    for step, t in enumerate(rng.uniform(size=count)):
        noise = ESTIMATOR.draw(rng, 8)
        theta = path(a, point, b, t)
        slope = 2.0 * t * (1.0 - t) * ESTIMATOR.value_and_grad(theta, noise, x, y).grad
        optimizer.update(point, slope, state, Cosine()(step, count))
    return point


def search(
    seed: int, starts: int = N_STARTS, epochs: int = 3000, progress: bool | None = None
) -> Study:
    """Train from every start, sort the functions that the starts reached, and walk between them.

    Parameters
    ----------
    seed : int
        Of the data, the starts and their training.
    starts : int
        Number of starts.
    epochs : int
        Passes over the data in each training.
    progress : bool, optional
        Show a progress bar; by default only in a terminal.

    Returns
    -------
    Study
        Thetas, free energies and paths.
    """
    rng = np.random.default_rng(seed)
    optimizer = Adam(0.05, schedule=Cosine())
    x = np.linspace(-2.0, 2.0, N_TRAIN_ROWS)[:, None]
    y = np.sin(3.0 * x) + NOISE_SCALE * rng.standard_normal((N_TRAIN_ROWS, 1))
    recipe = Recipe(
        optimizer=optimizer, epochs=epochs, batch_size=N_TRAIN_ROWS, samples=4
    )
    thetas = []
    with steps(starts, progress) as report:
        for start_rng in counted(rng.spawn(starts), report):
            initial = start(ESTIMATOR, start_rng, optimizer)
            state = fit(ESTIMATOR, initial, x, y, recipe, rng=start_rng, progress=False)
            if state.stopped == "interrupted":
                raise KeyboardInterrupt
            thetas.append(state.theta)
    thetas.sort(key=lambda theta: free_energy(theta, x, y))
    energies = np.array([free_energy(theta, x, y) for theta in thetas])
    functions = _distinct_functions([moments(theta, x)[0] for theta in thetas])
    best = thetas[0]
    best_images = list(images(best))
    end_by_name = {
        "itself, a unit turned": best_images[1],
        "itself, two units exchanged": best_images[2**N_UNITS],
    }
    for name, function_index in (("its function again", 0), ("another function", 1)):
        for i in 1 + np.flatnonzero(functions[1:] == function_index)[:1]:
            end_by_name[name] = thetas[i]
            end_by_name[f"{name}, aligned"] = nearest(thetas[i], best)
    points = {
        name: (0.5 * (best + target), target) for name, target in end_by_name.items()
    }
    if (target := end_by_name.get("another function, aligned")) is not None:
        points["the same by a bend"] = bend(best, target, x, y, rng), target
    ways = {
        name: np.array(
            [
                free_energy(theta, x, y)
                for theta in path(best, point, target, PATH_SHARES)
            ]
        )
        for name, (point, target) in points.items()
    }
    return Study(x, y, np.array(thetas), energies, functions, ways)


def _distinct_functions(means: Sequence[Array]) -> Array:
    """Return the number of each function (N,); near ones, by `MIN_FUNCTION_RMSD`, share one."""
    numbers = np.empty(len(means), int)
    distinct = [means[0]]
    for i, mean in enumerate(means):
        is_near = np.sqrt(np.mean((distinct - mean) ** 2, axis=1)) < MIN_FUNCTION_RMSD
        if is_near.any():
            numbers[i] = is_near.argmax()
        else:
            numbers[i] = len(distinct)
            distinct.append(mean)
    return numbers


def reproduce(
    out: Path, seed: int = 0, progress: bool | None = None, **size: int
) -> str:
    """Run the study, write ``elbo-minima.png`` and ``.json``, and return the tables.

    Parameters
    ----------
    out : Path
        Folder of the results.
    seed : int
        Of the data, the starts and their training.
    progress : bool, optional
        Show a progress bar; by default only in a terminal.
    **size : int
        `starts` and `epochs` of a shorter run, passed on to `search`.

    Returns
    -------
    str
        The tables.
    """
    study = search(seed, progress=progress, **size)
    write(out, {"elbo-minima": draw(study)}, study, "elbo-minima")
    rows_of_functions = (
        (f"{k}", study.energies[study.kinds == k]) for k in range(study.kinds.max() + 1)
    )
    barriers = {
        name: float(energies.max() - max(energies[0], energies[-1]))
        for name, energies in study.ways.items()
    }
    return text(
        listed(
            f"1-{N_UNITS}-1, {N_TRAIN_ROWS} rows: the functions that {len(study.kinds)} starts "
            "found.",
            "function | starts | bound, nats | worst",
            rows_of_functions,
            lambda part: f"{len(part)} | {-part[0]:.2f} | {-part[-1]:.2f}",
        ),
        listed(
            "From the best theta to another: how far the bound falls below both ends, nats.",
            "to | barrier",
            barriers,
            "{:.2f}",
        ),
        claims("What D53 says.", "derivations.md", claims_of_the_derivations(study)),
    )


def claims_of_the_derivations(study: Study) -> list[Claim]:
    """Return the statements of D53, each beside the measured number."""
    all_equal = [
        free_energy(image, study.x, study.y) for image in images(study.thetas[0])
    ]
    centre = moments(np.mean(list(images(study.thetas[0])), axis=0), study.x)[0]
    energy_range = float(np.ptp(all_equal))
    centre_range = float(np.ptp(centre))
    least_symmetric = (
        np.sum((study.y - study.y.mean()) ** 2) / (2.0 * NOISE_SCALE**2)
        + FREE_ENERGY_CONSTANT
    )
    best = float(study.energies[0])
    statement = "F of the best, less than any symmetric theta has"
    return [
        Claim(
            f"F of its {len(all_equal)} images, apart",
            "0",
            f"{energy_range:.0e}",
            energy_range < 1e-9,
        ),
        Claim(
            "their mean is a constant function, off by",
            "0",
            f"{centre_range:.0e}",
            centre_range < 1e-9,
        ),
        Claim(
            statement,
            f"< {least_symmetric:.1f}",
            f"{best:.1f}: not convex",
            best < least_symmetric,
        ),
    ]


def draw(study: Study) -> Figure:
    """Draw the free energies reached, the functions they mean, and the ways between."""
    figure, (left_ax, middle, right) = panels(13.0, 4.4, 1, 3)
    grid = np.linspace(-3.0, 3.0, 121)[:, None]
    middle.plot(study.x, study.y, ".", color=style.BLACK, label="data")
    for index, (function_index, (colour, line)) in enumerate(
        zip(np.unique(study.kinds), LINE_STYLES, strict=False)
    ):
        starts = np.flatnonzero(study.kinds == function_index)
        name = f"function {index}"
        left_ax.plot(
            starts + 1,
            study.energies[starts],
            "osD^vP"[index],
            color=colour,
            label=name,
        )
        mean = moments(study.thetas[starts[0]], grid)[0]
        middle.plot(grid, mean, ls=line, color=colour, label=name)
    for (name, energies), (colour, line) in zip(
        [*study.ways.items()][1:], LINE_STYLES, strict=False
    ):
        right.plot(PATH_SHARES, energies, color=colour, ls=line, label=name)
    for ax in (left_ax, right):
        ax.set_yscale("log")
        style.plain_numbers(ax.yaxis, minor="24")
    style.finish(left_ax, "start, by what it reached", "free energy (nats)", 2)
    style.finish(middle, "x (dimensionless)", "mean of f(x) (dimensionless)", 2)
    style.finish(
        right,
        "place on the way from the best theta (its share)",
        "free energy (nats)",
        2,
    )
    return figure
