"""MLE, MAP, VI and ensembles, trained and judged side by side (W1, W2)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation import predictive
from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.estimator import GradientEstimator as Estimator
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Likelihood, Model
from bbb_numpy.model.objectives import MAP, MLE
from bbb_numpy.numeric.elementary import logsumexp
from bbb_numpy.numeric.standardisation import moments
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.sampling.draws import Draws
from bbb_numpy.sampling.mcmc import NUTS
from bbb_numpy.sampling.run import sample
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam, Cosine

Array = NDArray[Any]

METHODS: dict[str, Callable[[Model], Estimator]] = {
    "MLE": lambda model: Reparameterised(model, PointMass(0.3), MLE()),  # W1
    "MAP": lambda model: Reparameterised(model, PointMass(0.3), MAP()),  # W2
    "VI": lambda model: ClosedFormKL(model, MeanField(0.3, -4.0)),
}


@dataclass(frozen=True)
class Setup:
    """How a network is trained, whatever the method."""

    hidden: tuple[int, ...] = (20,)
    activation: str = "tanh"
    prior_scale: float = 2.0
    # Its numbers are in standardised units.
    likelihood: Likelihood = GaussianLikelihood(0.2, learn=True)
    epochs: int = 3000
    batch_size: int = 40
    learning_rate: float = 1e-2
    samples: int = 1  # weight samples per step; a point estimate needs no more
    standardise: bool = True  # whether inputs and targets are standardised
    schedule: Callable[[float, int], float] = Cosine()  # of the learning rate


@dataclass(frozen=True, eq=False)
class Fitted:
    """One trained network, or several as an equal mixture, in the units of the data."""

    estimator: Estimator
    thetas: tuple[Array, ...]
    x_scale: tuple[Array, Array]  # mean and standard deviation, (d_in,) each
    y_scale: tuple[Array, Array]  # (K,) each
    seed: int

    def _inputs(self, x: Array) -> Array:
        return (x - self.x_scale[0]) / self.x_scale[1]

    def predict(self, x: Array, samples: int = 100) -> Predictive:
        """Return the moments of the mixture at `x` (N, d_in); the same weights for any `x`.

        Between members the means vary too, which is epistemic (D4 with the member as part of w).

        Parameters
        ----------
        x : array (N, d_in)
            Inputs in the units of the data.
        samples : int
            Weight vectors of each member; 1 for a point estimate.

        Returns
        -------
        Predictive
            Mean, epistemic and aleatoric standard deviation (N, K), in the units of y.
        """
        moments_by_member = self._by_member(
            predictive.predict, samples, self._inputs(x)
        )
        means, epistemic, aleatoric = (
            np.stack(moment) for moment in zip(*moments_by_member, strict=True)
        )
        between_members = means.var(axis=0, ddof=1) if len(means) > 1 else 0.0
        mean, scale = self.y_scale
        return Predictive(
            mean + scale * means.mean(axis=0),
            scale * np.sqrt(np.mean(epistemic**2, axis=0) + between_members),
            scale * np.sqrt(np.mean(aleatoric**2, axis=0)),
        )

    def functions(self, x: Array, samples: int = 50) -> Array:
        """Return functions (members * samples, N, K) drawn from the mixture.

        Parameters
        ----------
        x : array (N, d_in)
            Inputs in the units of the data.
        samples : int
            Functions of each member; 1 for a point estimate.
        """
        mean, scale = self.y_scale
        drawn = self._by_member(predictive.sample_functions, samples, self._inputs(x))
        return mean + scale * np.concatenate(drawn)

    def log_density(self, x: Array, y: Array, samples: int = 100) -> Array:
        """Return log P(y|x, D) (N,) of the mixture, in nats, of y in its own units (D5).

        Parameters
        ----------
        x : array (N, d_in)
            Inputs in the units of the data.
        y : array (N, K)
            Targets in the units of the data.
        samples : int
            Weight vectors of each member; 1 for a point estimate.
        """
        mean, scale = self.y_scale
        score = predictive.log_predictive_density
        logs = self._by_member(score, samples, self._inputs(x), (y - mean) / scale)
        return logsumexp(np.stack(logs), axis=0) - np.log(len(logs) * np.prod(scale))

    def _by_member(
        self, summarise: Callable[..., Any], samples: int, *rows: Array
    ) -> list[Any]:
        """Return the result of a function of `evaluation.predictive` for each network."""
        if isinstance(self.estimator.posterior, PointMass):
            samples = 1
        return [
            summarise(
                self.estimator,
                theta,
                *rows,
                rng=np.random.default_rng([self.seed, member]),
                samples=samples,
            )
            for member, theta in enumerate(self.thetas)
        ]


def train(
    build: Callable[[Model], Estimator],
    setup: Setup,
    x: Array,
    y: Array,
    *,
    seed: int,
    members: int = 1,
) -> Fitted:
    """Train `members` networks from different starts, and return their mixture.

    Parameters
    ----------
    build : callable
        From a model to its estimator: an entry of `METHODS`, or one's own.
    setup : Setup
        Network, prior, likelihood and training.
    x : array (N, d_in)
        Inputs.
    y : array (N, K)
        Targets.
    seed : int
        Same seed, same numbers.
    members : int
        Number of networks.

    Returns
    -------
    Fitted
        The mixture, in the units of the data.
    """
    x_scale = moments(x, setup.standardise)
    y_scale = moments(y, setup.standardise)
    outputs = setup.likelihood.heads(y.shape[1])
    net = MLP((x.shape[1], *setup.hidden, outputs), setup.activation)
    estimator = build(Model(net, GaussianPrior(setup.prior_scale), setup.likelihood))
    recipe = Recipe(
        optimizer=Adam(setup.learning_rate, schedule=setup.schedule),
        epochs=setup.epochs,
        batch_size=setup.batch_size,
        samples=setup.samples,
    )
    rows = (x - x_scale[0]) / x_scale[1], (y - y_scale[0]) / y_scale[1]
    rngs = np.random.default_rng(seed).spawn(members)
    thetas = tuple(learn(estimator, *rows, recipe, rng) for rng in rngs)
    return Fitted(estimator, thetas, x_scale, y_scale, seed)


def learn(
    estimator: Estimator, x: Array, y: Array, recipe: Recipe, rng: np.random.Generator
) -> Array:
    """Return the theta that training reaches from a new start.

    Parameters
    ----------
    estimator : GradientEstimator
        What is trained.
    x : array (N, d_in)
        Inputs, as the network sees them.
    y : array (N, K)
        Targets, as the likelihood sees them.
    recipe : Recipe
        How it is trained.
    rng : numpy.random.Generator
        Draws the start, then minibatches and noise.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, which ends the whole study.
    """
    initial = start(estimator, rng, recipe.optimizer)
    trained = fit(estimator, initial, x, y, recipe, rng=rng, progress=False)
    if trained.stopped == "interrupted":
        raise KeyboardInterrupt
    return trained.theta


def draw(
    model: Model, x: Array, y: Array, *, max_depth: int = 6, **options: Any
) -> Draws:
    """Return posterior draws by NUTS, from one group of chains.

    Divergences are counted in what is returned, without a warning.

    Parameters
    ----------
    model : Model
        Network, prior and likelihood.
    x : array (N, d_in)
        Inputs.
    y : array (N, K)
        Targets.
    max_depth : int
        Doublings of a trajectory at most.
    **options : Any
        Those of `bbb_numpy.sampling.sample`.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, which ends the whole study.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*divergent transitions", UserWarning)
        kernel = NUTS(max_depth=max_depth)
        draws = sample(model, x, y, sampler=kernel, groups=1, progress=False, **options)
    if not draws.finished:
        raise KeyboardInterrupt
    return draws


def judge(fitted: Fitted, x: Array, y: Array, truth: Array) -> dict[str, float]:
    """Return errors and calibration of a fit on held-out rows.

    Parameters
    ----------
    fitted : Fitted
        Network or mixture.
    x : array (N, d_in)
        Inputs.
    y : array (N, 1)
        Targets, in the units of the data.
    truth : array (N, 1)
        The noiseless function.

    Returns
    -------
    dict
        ``rmse`` of the mean to the noiseless `truth`; ``log density`` per row, in nats;
        ``coverage`` of y by mean +- 1.96 total standard deviations; mean
        ``epistemic`` standard deviation.
    """
    p = fitted.predict(x)
    return {
        "rmse": float(np.sqrt(np.mean((p.mean - truth) ** 2))),
        "log density": float(fitted.log_density(x, y).mean()),
        "coverage": float(np.mean(np.abs(y - p.mean) < 1.96 * p.total)),
        "epistemic": float(p.epistemic.mean()),
    }
