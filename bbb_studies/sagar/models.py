"""Sagar's Algorithm 1 on two problems whose posterior is known: training and measures.

A Gaussian mean, and a linear regression with correlated inputs. `bbb_studies.sagar.study`
runs them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import cos, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.importance import SelfNormalised
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import EUBO, LogDensities, log_weights
from bbb_numpy.numeric.elementary import sigmoid
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam

from .. import linear_gaussian as exactly
from ..linear_gaussian import Gaussian, Regression
from .printed import Equation5, ThroughTheSamples, printed_weights, shifted_weights

__all__ = [
    "VARIANTS",
    "ByBatch",
    "BySamples",
    "Falling",
    "Path",
    "Study",
    "Variant",
    "WeightRow",
    "correlated_regression",
    "distance",
    "effective_share",
    "excess",
    "follow",
    "gaussian_mean",
    "minibatch_fixed_point",
    "slopes_of_rho",
    "train_with",
    "weight_rows",
]

Array = NDArray[Any]
START_RATE = 0.05
MARKS = 40  # points of a path


@dataclass(frozen=True)
class Falling:
    """Half a cosine over `total` epochs, for training that is done a few epochs at a time."""

    done: int
    total: int

    def __call__(self, epoch: float, epochs: int) -> float:
        """Return the factor on the learning rate."""
        return 0.5 * (1.0 + cos(pi * min((self.done + epoch) / self.total, 1.0)))


@dataclass(frozen=True)
class Variant:
    """One way to read the algorithm."""

    title: str
    estimator: type[SelfNormalised] = SelfNormalised
    samples: int = 200  # M
    batch_size: int | None = None  # S; None: all rows


VARIANTS = {
    "corrected": Variant("corrected"),
    "through": Variant("gradient through g, as printed", ThroughTheSamples),
    "equation 5": Variant("Equation 5 as printed", Equation5),
    "one": Variant("M = 1", samples=1),
    "minibatch": Variant("N/S inside exp, S = 1", batch_size=1),
}


class Path(NamedTuple):
    """q as training goes; the last weight is the bias."""

    steps: Array  # (T,)
    means: Array  # (T, P)
    deviations: Array  # (T, P)
    last: Gaussian
    estimator: SelfNormalised
    theta: Array  # after the last step


class WeightRow(NamedTuple):
    """Three shifts of the log weights for one size of the data."""

    rows: int
    low: float  # smallest and largest log weight
    high: float
    effective: dict[str, float | None]  # effective samples of each shift; None: nan weights


class BySamples(NamedTuple):
    """Training with M samples per step, several runs."""

    samples: int
    excess: list[float]  # nats
    ratios: Array  # (P,)  deviation over that of the posterior's marginal, mean over runs
    share: float  # effective samples over M, at the end


class ByBatch(NamedTuple):
    """Training with minibatches of S rows: the bias's deviation and what it should tend to."""

    batch: int
    found: float
    predicted: float


@dataclass(frozen=True, eq=False)
class Study:
    """All that is trained and measured; paths by the names of `VARIANTS`."""

    steps: int
    mean: Regression
    regression: Regression
    paths: dict[str, Path]  # of the Gaussian mean
    of_regression: dict[str, Path]
    apart: dict[str, float]  # how far a path moves with the data
    slopes: dict[str, tuple[float, float]]  # with standard errors
    by_batch: list[ByBatch]
    by_samples: list[BySamples]
    weights: list[WeightRow]


def gaussian_mean(rng: np.random.Generator, rows: int = 20, noise: float = 1.6) -> Regression:
    """Draw `rows` values of mean 1; the model's bias is their mean, with prior N(0, 1).

    The only input is 0 everywhere, so that its weight meets no data and keeps the prior.
    """
    y = 1.0 + noise * rng.standard_normal((rows, 1))
    model = Model(MLP((1, 1)), GaussianPrior(1.0), GaussianLikelihood(noise))
    return Regression(model, np.zeros((rows, 1)), y)


def correlated_regression(rng: np.random.Generator) -> Regression:
    """Draw 30 rows with two inputs of correlation 0.6; three weights with prior N(0, 1)."""
    return exactly.draw(rng, rows=30, d_in=2, correlation=0.6, noise=1.0, prior=1.0)


def follow(
    variant: Variant, problem: Regression, rng: np.random.Generator, steps: int = 2000
) -> Path:
    """Train q from the prior on, by `training.fit`, and note it on the way.

    `steps` is rounded down to whole epochs.
    """
    estimator = variant.estimator(problem.model, MeanField(), EUBO())
    rows = len(problem.x)
    batch = variant.batch_size or rows
    per_epoch = -(-rows // batch)
    epochs = max(1, steps // per_epoch)
    every = max(1, epochs // MARKS)
    adam = Adam(START_RATE)
    state = start(estimator, rng, adam, variational=_prior(problem))
    marks, thetas = [0], [state.theta]
    while marks[-1] < epochs:
        done = marks[-1]
        state = fit(
            estimator,
            state,
            problem.x,
            problem.y,
            Recipe(
                optimizer=replace(adam, schedule=Falling(done, epochs)),
                epochs=min(every, epochs - done),
                batch_size=batch,
                samples=variant.samples,
            ),
            rng=rng,
            progress=False,
        )
        if state.stopped == "interrupted":
            raise KeyboardInterrupt  # half a path would look like a whole one
        marks.append(len(state.history))
        thetas.append(state.theta)
    q = [exactly.gaussian(estimator, theta) for theta in thetas]
    return Path(
        np.array(marks) * per_epoch,
        np.array([g.mean for g in q]),
        np.array([g.deviation for g in q]),
        q[-1],
        estimator,
        state.theta,
    )


def distance(variant: Variant, one: Regression, other: Regression, seed: int, steps: int) -> float:
    """Return how far apart the paths on two data sets come with the same noise."""
    a, b = (follow(variant, p, np.random.default_rng(seed), steps) for p in (one, other))
    gaps = (a.means - b.means, a.deviations - b.deviations)
    return max(float(np.abs(gap).max()) for gap in gaps)


def excess(problem: Regression, q: Gaussian) -> float:
    """Return KL(posterior || q) less its least value for independent Gaussians, in nats."""
    truth = exactly.exact(problem)
    least = exactly.kl(truth.posterior, exactly.inclusive_optimum(truth))
    with np.errstate(over="ignore"):
        return exactly.kl(truth.posterior, q) - least


def effective_share(
    path: Path, problem: Regression, rng: np.random.Generator, samples: int
) -> float:
    """Return 1 / (S sum w^2) of the last q, averaged over 20 draws of S samples: 1 is the best."""
    shares = []
    for _ in range(20):
        noise = path.estimator.draw(rng, samples)
        terms = exactly.log_densities(path.estimator, path.theta, noise, problem)
        _, cotangents = EUBO()(terms, 1.0)
        shares.append(1.0 / (samples * float(np.sum(cotangents.posterior**2))))
    return float(np.mean(shares))


def minibatch_fixed_point(problem: Regression, batch: int) -> tuple[float, float]:
    """Return mean and deviation that `gaussian_mean` tends to with minibatches of S rows (D30).

    On minibatch i the weights are those of N(m_i, v), the posterior had its rows been seen
    N / S times: v is the posterior's variance, and m_i scatters with the minibatch mean. Moments
    matched over all minibatches are those of the mixture: v + Var(m_i).
    """
    truth, rows = exactly.exact(problem), len(problem.y)
    variance = truth.posterior.covariance[-1, -1]
    of_means = problem.y.var() / batch * (rows - batch) / max(rows - 1, 1)
    pull = (1.0 - variance / 1.0**2) ** 2  # m_i = (1 - v / prior variance) times the minibatch mean
    return float(truth.posterior.mean[-1]), float(np.sqrt(variance + pull * of_means))


def _log_weights_of_the_prior(problem: Regression, rng: np.random.Generator, samples: int) -> Array:
    """Return log P(w, D) - log q(w) (S,) with the prior as q."""
    estimator = SelfNormalised(problem.model, MeanField(), EUBO())
    noise = estimator.draw(rng, samples)
    terms = exactly.log_densities(estimator, _prior(problem), noise, problem)
    return log_weights(terms, 1.0)


def _prior(problem: Regression) -> Array:
    size = problem.model.layout.size
    return MeanField().pack(np.zeros(size), np.ones(size))


def train_with(
    samples: int, problem: Regression, rng: np.random.Generator, steps: int, runs: int
) -> BySamples:
    """Train the corrected algorithm `runs` times with so many samples per step."""
    variant = Variant(f"M = {samples}", samples=samples)
    paths = [follow(variant, problem, own, steps) for own in rng.spawn(runs)]
    marginal = exactly.inclusive_optimum(exactly.exact(problem)).deviation
    return BySamples(
        samples,
        [excess(problem, path.last) for path in paths],
        np.mean([path.last.deviation / marginal for path in paths], axis=0),
        float(np.mean([effective_share(path, problem, rng, samples) for path in paths])),
    )


def weight_rows(rng: np.random.Generator, samples: int = 200) -> list[WeightRow]:
    """Normalise the weights of the prior as q for growing data, with three shifts (G7)."""
    out = []
    for rows in (20, 200, 2000):
        log_w = _log_weights_of_the_prior(gaussian_mean(rng, rows), rng, samples)
        zero, low, high = np.zeros(samples), float(log_w.min()), float(log_w.max())
        shares = {
            "+ min": printed_weights(log_w),
            "- min": shifted_weights(log_w, -low),
            "- max": -EUBO()(LogDensities(zero, log_w, zero), 1.0)[1].posterior,
        }
        effective = {
            name: 1.0 / float(np.sum(w**2)) if np.isfinite(w).all() else None
            for name, w in shares.items()
        }
        out.append(WeightRow(rows, low, high, effective))
    return out


def slopes_of_rho(
    problem: Regression, rng: np.random.Generator, samples: int, repeats: int = 200
) -> dict[str, tuple[float, float]]:
    """Return dU/drho of the bias where q is N(1, 0.5^2): exact, and estimates with errors (G5)."""
    truth = exactly.exact(problem)
    at = Gaussian(np.array([0.0, 1.0]), np.diag([1.0, 0.25]))
    theta = MeanField().pack(at.mean, at.deviation)
    m, v, sigma = truth.posterior.mean[-1], truth.posterior.covariance[-1, -1], at.deviation[-1]
    d_sigma = 1.0 / sigma - (v + (m - at.mean[-1]) ** 2) / sigma**3  # G8
    found = {"exact": (float(d_sigma * sigmoid(theta[-1])), 0.0)}
    estimators = {
        "score form, G8": SelfNormalised(problem.model, MeanField(), EUBO()),
        "Equation 5 corrected": Equation5(problem.model, MeanField(), EUBO(), corrected=True),
        "Equation 5 as printed": Equation5(problem.model, MeanField(), EUBO()),
        "through g as printed": ThroughTheSamples(problem.model, MeanField(), EUBO()),
    }
    for name, estimator in estimators.items():
        noises = (estimator.draw(rng, samples) for _ in range(repeats))
        grads = (estimator.value_and_grad(theta, e, problem.x, problem.y)[1] for e in noises)
        values = [grad[-1] for grad in grads]
        found[name] = (float(np.mean(values)), float(np.std(values, ddof=1) / repeats**0.5))
    return found
