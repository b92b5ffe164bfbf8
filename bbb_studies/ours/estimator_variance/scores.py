"""The noise of gradients: variances, biases and times, relative to a reference (D18-D26)."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.catalogue import Estimator
from bbb_numpy.gradients.importance import DoublyReparameterised, SelfNormalised
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.objectives import EUBO, Renyi, log_weights
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import sigmoid
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.progress import Done, counted, unseen
from bbb_studies import linear_gaussian as exact

from ..estimates import Estimate
from .models import ESTIMATORS, REFERENCE, ROWWISE, SAMPLES, Place

__all__ = [
    "COUNTS",
    "STEPS",
    "Noise",
    "Spot",
    "Study",
    "curves",
    "difference",
    "measure",
    "on_network",
    "order",
    "ratio",
    "sampled",
]

Array = NDArray[Any]
STEPS = 2000  # gradients of each estimator at each place ...
BATCHES = 20  # ... in so many batches, whose scatter gives the standard errors
COUNTS = (1, 2, 5, 10, 20, 50, 100)  # samples of IWAE and of the EUBO
CURVE_STEPS = 4000


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


@dataclass(frozen=True)
class Study:
    """All that is measured."""

    noises: dict[str, dict[str, Noise]]  # of place and estimator; the last two places are linear
    spots: dict[str, list[Spot]]  # from `curves`
    far: list[Spot]  # from `on_network`

    @property
    def biases(self) -> list[float]:
        """Differences of means to the reference's, of every other estimator at every place."""
        return [
            noise.bias
            for rows in self.noises.values()
            for name, noise in rows.items()
            if name != REFERENCE
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
            Estimate._make(float(np.median(times[name])) / clock * r for r in both[name]),
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


def curves(seed: int, steps: int = CURVE_STEPS, *, done: Done = unseen) -> dict[str, list[Spot]]:
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
    for count in counted(COUNTS, done):
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
        inputs = (estimator.draw(rng, count), place.x, place.y, place.kl_weight, buffers.rewind())
        _, grads[step], terms = estimator.value_and_grad(place.theta, *inputs)
        logs = log_weights(terms, place.kl_weight)
        shares = np.exp(logs - logs.max())
        effective[step] = shares.sum() ** 2 / np.sum(shares**2)
    return grads, float(effective.mean())


def _deviation(grads: Array) -> float:
    return float(np.sqrt(grads.var(axis=0).sum()))


def order(end: dict[str, Noise]) -> list[str]:
    """Return the estimators by falling variance, the geometric mean of both blocks."""
    return sorted(end, key=lambda name: -end[name].location.mean * end[name].scale.mean)
