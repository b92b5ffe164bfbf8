"""The noise of every gradient estimator, measured (D18-D26).

On a small network at three stages of its training, and on linear regression at the optimum.
All estimators of the free energy take the same number of weight samples per step; their
variance is compared with that of the reparameterised one, the report's, and so is variance x
time. The estimators of IWAE and of the EUBO are compared against the number of samples.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.catalogue import Estimator
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.importance import DoublyReparameterised, SelfNormalised
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import Reparameterised, StickingTheLanding
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import EUBO, Renyi, log_weights
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import sigmoid
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam, Cosine

from .. import linear_gaussian as exact
from . import plots as exact_pictures
from .evidence_bounds import Estimate, concise

__all__ = ["ESTIMATORS", "REFERENCE", "Noise", "Place", "Spot", "measure", "reproduce"]

Array = NDArray[Any]
SAMPLES = 2  # weight samples per step: one antithetic pair
STEPS = 2000  # gradients of each estimator at each place ...
BATCHES = 20  # ... in so many batches, whose scatter gives the standard errors
COUNTS = (1, 2, 5, 10, 20, 50, 100)  # samples of IWAE and of the EUBO
CURVE_STEPS = 4000
ROWWISE = ("local reparam.", "Flipout")  # they need independent weights
REFERENCE = "reparameterised"
ESTIMATORS: dict[str, Callable[..., Estimator]] = {
    REFERENCE: Reparameterised,
    "reparameterised ±": lambda model, q: Reparameterised(model, q, antithetic=True),
    "closed-form KL": ClosedFormKL,
    "closed-form KL ±": lambda model, q: ClosedFormKL(model, q, antithetic=True),
    "sticking the landing": StickingTheLanding,
    "sticking the landing ±": lambda model, q: StickingTheLanding(model, q, antithetic=True),
    "local reparam.": LocalReparameterisation,
    "Flipout": Flipout,
}


class Place(NamedTuple):
    """Where gradients are measured: a model, a q, and the rows of one step."""

    name: str
    model: Model
    posterior: MeanField | FullRank
    theta: Array
    x: Array
    y: Array
    kl_weight: float


class Noise(NamedTuple):
    """What was measured of one estimator at one place, relative to the reference."""

    location: Estimate  # variance of the gradient for mu, summed over its numbers
    scale: Estimate  # the same for rho; for full rank, for the whole factor
    cost: Estimate  # variance of both blocks x time
    seconds: float  # median of a step, draw and value_and_grad; not relative
    bias: float  # difference of mean gradients to the reference in standard errors, rms


class Spot(NamedTuple):
    """One estimator at one number of samples, relative to the size of the true gradient."""

    samples: int
    bias: float  # |mean gradient - true gradient|
    error: float  # of the bias: deviation / sqrt(number of gradients)
    deviation: float  # root of the summed variance
    effective: float  # mean effective number of samples, 1 / sum of squared shares


def network_places(seed: int) -> list[Place]:
    """Train 13-50-1 on 256 rows and return start, half way and end, with the first 32 rows."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((256, 13))
    curve = np.sin(x @ rng.standard_normal((13, 2)) * 0.5).sum(axis=1, keepdims=True)
    y = curve + 0.3 * rng.standard_normal((256, 1))
    model = Model(MLP((13, 50, 1)), GaussianPrior(0.5), GaussianLikelihood(0.3))
    estimator, constant, fading = Reparameterised(model), Adam(5e-3), Adam(5e-3, schedule=Cosine())
    state = start(estimator, rng, constant)
    thetas = [state.theta]
    for optimizer in (constant, fading):
        state = fit(
            estimator,
            state,
            x,
            y,
            Recipe(optimizer=optimizer, epochs=500, samples=SAMPLES),
            rng=rng,
        )
        thetas.append(state.theta)
    names = ("network, start", "network, half way", "network, end")
    return [
        Place(name, model, MeanField(), theta, x[:32], y[:32], 32 / 256)
        for name, theta in zip(names, thetas, strict=True)
    ]


def linear_places(seed: int) -> list[Place]:
    """Return linear regression at the optimum of mean field and at that of full rank (D28)."""
    model, x, y = problem = exact.draw(np.random.default_rng(seed))
    truth = exact.exact(problem)
    best, factor, full = exact.reverse_optimum(truth), MeanField(), FullRank()
    at_best = factor.pack(best.mean, best.deviation)
    return [
        Place("linear, mean field", model, factor, at_best, x, y, 1.0),
        Place("linear, full rank", model, full, full.pack(*truth.posterior), x, y, 1.0),
    ]


def measure(place: Place, seed: int, steps: int = STEPS) -> dict[str, Noise]:
    """Measure every estimator that the posterior allows, in turns, with the same random numbers.

    A batch of one follows a batch of the other, so that a busy moment of the machine
    is shared.
    """
    independent = isinstance(place.posterior, MeanField)
    names = [name for name in ESTIMATORS if independent or name not in ROWWISE]
    estimators = {name: ESTIMATORS[name](place.model, place.posterior) for name in names}
    rngs = {name: np.random.default_rng(seed) for name in names}
    buffers = {name: Buffers() for name in names}
    noises = {n: np.empty(e.noise_shape(SAMPLES, len(place.x))) for n, e in estimators.items()}
    grads = {name: np.empty((steps, place.theta.size)) for name in names}
    times = {name: np.empty(steps) for name in names}
    for batch in np.array_split(np.arange(steps), BATCHES):
        for name, estimator in estimators.items():
            for step in batch:
                before = perf_counter()
                estimator.fill(rngs[name], noises[name])
                inputs = (noises[name], place.x, place.y, place.kl_weight, buffers[name].rewind())
                grad = estimator.value_and_grad(place.theta, *inputs).grad
                times[name][step] = perf_counter() - before
                grads[name][step] = grad
    cut = place.model.layout.size
    reference, clock = grads[REFERENCE], float(np.median(times[REFERENCE]))
    both = {name: ratio(grads[name], reference) for name in names}
    return {
        name: Noise(
            ratio(grads[name][:, :cut], reference[:, :cut]),
            ratio(grads[name][:, cut:], reference[:, cut:]),
            Estimate(*(float(np.median(times[name])) / clock * r for r in both[name])),
            float(np.median(times[name])),
            difference(grads[name], reference),
        )
        for name in names
    }


def ratio(grads: Array, reference: Array) -> Estimate:
    """Return the ratio of summed variances, with the jackknife error over batches.

    Both have one gradient per row, drawn in the same order with the same random numbers.
    """
    own, other = (_batch_squares(g) for g in (grads, reference))
    left_out = (own.sum() - own) / (other.sum() - other)
    spread = (BATCHES - 1) * np.mean((left_out - left_out.mean()) ** 2)
    return Estimate(float(own.sum() / other.sum()), float(np.sqrt(spread)))


def _batch_squares(grads: Array) -> Array:
    """Return the squared distance to the mean, summed, of every batch (BATCHES,)."""
    squares = np.sum((grads - grads.mean(axis=0)) ** 2, axis=1)
    return np.array([part.sum() for part in np.array_split(squares, BATCHES)])


def difference(grads: Array, reference: Array) -> float:
    """Return the difference of means in its own standard errors, root mean square."""
    gap = grads - reference
    error = gap.std(axis=0) / np.sqrt(len(gap))
    seen = error > 1e-9 * np.abs(reference).max()
    z = gap.mean(axis=0)[seen] / error[seen]
    return float(np.sqrt(np.mean(z**2))) if seen.any() else 0.0


def curves(seed: int, steps: int = CURVE_STEPS) -> dict[str, list[Spot]]:
    """Measure IWAE's two gradients and the EUBO's against the number of samples.

    On linear regression, at a q beside the inclusive optimum and wider: there no gradient is 0,
    and the importance weights have all moments that matter here.
    """
    model, x, y = problem = exact.draw(np.random.default_rng(seed), correlation=0.3)
    posterior, family = exact.exact(problem).posterior, MeanField()
    v = posterior.deviation**2
    sigma, gap = 1.5 * posterior.deviation, 0.5 * posterior.deviation
    theta = family.pack(posterior.mean - gap, sigma)
    place = Place("linear, beside the optimum", model, family, theta, x, y, 1.0)
    # G8 in expectation: -(m - mu) / sigma^2 and [1 / sigma - (v + (m - mu)^2) / sigma^3] s(rho)
    d_rho = (1.0 / sigma - (v + gap**2) / sigma**3) * sigmoid(theta[len(sigma) :])
    slope = np.concatenate([-gap / sigma**2, d_rho])
    estimators: dict[str, Estimator] = {
        "IWAE": Reparameterised(model, family, Renyi(0.0)),
        "doubly": DoublyReparameterised(model, family, Renyi(0.0)),
        "EUBO": SelfNormalised(model, family, EUBO()),
    }
    found: dict[str, list[Spot]] = {name: [] for name in estimators}
    for count in COUNTS:
        drawn = {n: sampled(e, place, count, steps, seed) for n, e in estimators.items()}
        iwae = drawn["doubly"][0].mean(axis=0)  # unbiased, and the less noisy one
        for name, (grads, effective) in drawn.items():
            true = slope if name == "EUBO" else iwae
            size = float(np.linalg.norm(true))
            bias = float(np.linalg.norm(grads.mean(axis=0) - true)) / size
            noise = _deviation(grads) / size
            found[name].append(Spot(count, bias, noise / steps**0.5, noise, effective))
    return found


def on_network(place: Place, seed: int, steps: int = 200) -> list[Spot]:
    """Return the EUBO's deviation on a network, relative to the reparameterised gradient's."""
    eubo = SelfNormalised(place.model, place.posterior, EUBO())
    reference = Reparameterised(place.model, place.posterior)
    spots = []
    for count in (2, 10, 100):
        grads, effective = sampled(eubo, place, count, steps, seed)
        usual = _deviation(sampled(reference, place, count, steps, seed)[0])
        spots.append(Spot(count, 0.0, 0.0, _deviation(grads) / usual, effective))
    return spots


def sampled(
    estimator: Estimator, place: Place, count: int, steps: int, seed: int
) -> tuple[Array, float]:
    """Return gradients (steps, ...) and the mean effective number of samples."""
    rng, buffers = np.random.default_rng(seed), Buffers()
    grads, effective = np.empty((steps, place.theta.size)), np.empty(steps)
    for step in range(steps):
        noise = estimator.draw(rng, count)
        batch = (noise, place.x, place.y, place.kl_weight, buffers.rewind())
        _, grads[step], terms = estimator.value_and_grad(place.theta, *batch)
        logs = log_weights(terms, place.kl_weight)
        shares = np.exp(logs - logs.max())
        effective[step] = shares.sum() ** 2 / np.sum(shares**2)
    return grads, float(effective.mean())


def _deviation(grads: Array) -> float:
    return float(np.sqrt(grads.var(axis=0).sum()))


def order(end: dict[str, Noise]) -> list[str]:
    """Return the estimators by falling variance, the geometric mean of both blocks."""
    return sorted(end, key=lambda name: -end[name].location.mean * end[name].scale.mean)


def reproduce(out: Path, seed: int = 0) -> str:
    """Measure, write ``estimator-variance.png``, ``.json`` and ``.txt``, and return the text.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
        Of data, training and noise.
    """
    network, linear = network_places(seed), linear_places(seed)
    found = {place.name: measure(place, seed + 1) for place in [*network, *linear]}
    spots, far = curves(seed), on_network(network[-1], seed)
    text, end = describe(found, spots, far), found[network[-1].name]
    out.mkdir(parents=True, exist_ok=True)
    exact_pictures.variances(found, spots, order(end)).savefig(
        out / "estimator-variance.png", dpi=100
    )
    (out / "estimator-variance.txt").write_text(text + "\n", encoding="utf-8")
    rows = {
        "relative to the reparameterised": {
            place: {name.strip(): noise._asdict() for name, noise in rows.items()}
            for place, rows in found.items()
        },
        "against samples": {name: [s._asdict() for s in row] for name, row in spots.items()},
    }
    (out / "estimator-variance.json").write_text(
        json.dumps(rows, indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    return text


def table(found: dict[str, dict[str, Noise]]) -> str:
    """Lay out the ratios of every place but the last, which full rank has to itself."""
    *places, _ = found
    cells = [["estimator", *("mu", "rho") * len(places)]]
    cells += [
        [name, *(concise(*r, most=3) for place in places for r in found[place][name][:2])]
        for name in order(found[places[-2]])
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    gaps = ["", *("  ", " ") * len(places)]
    lines = [
        "".join(
            gap + (cell.rjust(width) if gap else cell.ljust(width))
            for gap, cell, width in zip(gaps, row, widths, strict=True)
        )
        for row in cells
    ]
    titles = [place.removeprefix("network, ") for place in places]
    groups = zip(titles, widths[1::2], widths[2::2], strict=True)
    head = " " * widths[0] + "".join(title.rjust(a + b + 3) for title, a, b in groups)
    return "\n".join([head, *lines])


def describe(
    found: dict[str, dict[str, Noise]], spots: dict[str, list[Spot]], far: list[Spot]
) -> str:
    """Say what was measured; every verdict follows from the numbers beside it."""
    *_, end_name, _, last_name = found
    end, last = found[end_name], found[last_name]
    paid = sorted(end, key=lambda name: end[name].cost.mean)
    zero = last["sticking the landing"]
    bias = [n.bias for rows in found.values() for name, n in rows.items() if name != REFERENCE]
    lines = [
        f"Variance of the gradient with {SAMPLES} weight samples per step, relative to the "
        f"{REFERENCE} one,",
        "summed over mu and over rho; ± draws the samples as an antithetic pair. In brackets the "
        "standard",
        f"error of the last digits, from {STEPS} gradients each. Network 13-50-1, 32 rows of 256, "
        "at the start,",
        "half way and at the end of training; linear regression, 40 rows, at the mean-field "
        "optimum. By",
        "falling variance at the network's end.",
        "",
        table(found),
        "",
        "Linear regression at the full-rank optimum, where q is the posterior (mu, factor):",
        *(
            f"  {name:<{max(map(len, last))}}  {concise(*last[name].location):>9}  "
            f"{concise(*last[name].scale):>9}"
            for name in order(last)
        ),
        f"  Sticking the landing there: variance {max(zero.location.mean, zero.scale.mean):.0e} "
        "of the reparameterised, which is rounding.",
        "",
        "Time of a step at the network's end, and variance of all numbers x time; the error is "
        "that of the\nvariance alone. Best first:",
        *(
            f"  {name:<{max(map(len, end))}}  {1e6 * end[name].seconds:6.0f} us  "
            f"{concise(*end[name].cost):>9}"
            for name in paid
        ),
        "",
        "Differences of mean gradients to the reparameterised one, in their own standard errors "
        "and root mean",
        f"square over all numbers (1 if there is no bias): {min(bias):.2f} to {max(bias):.2f}, "
        f"mean {np.mean(bias):.2f}.",
        "",
        "Against the number of samples, on linear regression beside the optimum; deviations "
        "relative to the",
        "size of the true gradient, the EUBO's bias likewise:",
        "samples  effective  IWAE  IWAE, doubly reparameterised  EUBO  bias of EUBO",
        *(
            f"{plain.samples:7d}  {plain.effective:9.1f}  {plain.deviation:4.2f}  "
            f"{doubly.deviation:28.2f}  {eubo.deviation:4.2f}  "
            f"{concise(eubo.bias, eubo.error):>12}"
            for plain, doubly, eubo in zip(*spots.values(), strict=True)
        ),
        f"The first and the last row: IWAE's deviation times "
        f"{spots['IWAE'][-1].deviation / spots['IWAE'][0].deviation:.2f}, doubly reparameterised "
        f"times {spots['doubly'][-1].deviation / spots['doubly'][0].deviation:.2f}.",
        "On the network's end the EUBO's weights leave "
        + ", ".join(f"{s.effective:.2f} of {s.samples}" for s in far)
        + " samples;",
        "its deviation is "
        + ", ".join(f"{s.deviation:.2f}" for s in far)
        + " times that of the reparameterised gradient with as many.",
    ]
    return "\n".join(lines)
