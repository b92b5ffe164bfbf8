"""The methods of the UCI benchmark: from a training part to a posterior.

Every method has the same network, likelihood (Gaussian with learned noise) and family of priors;
they differ in how they come to a posterior. Two do not: ``hmc-heteroscedastic`` has another
likelihood, and ``default`` is the learner as it comes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy import training
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.family import is_linear
from bbb_numpy.gradients.importance import SelfNormalised
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Likelihood, Model
from bbb_numpy.model.kl_weights import LinearWarmUp, NoWarmUp
from bbb_numpy.model.objectives import EUBO, MAP, FreeEnergy, Renyi
from bbb_numpy.numeric.validation import OneOf, positive, real, whole
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.hyperpriors import HalfCauchy
from bbb_numpy.parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.parts.priors import LayerwiseGaussianPrior
from bbb_numpy.sampling.draws import DrawnWeights, Draws
from bbb_numpy.sampling.mcmc import HMC, MCLMC, NUTS, ChEES
from bbb_numpy.sampling.run import sample
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.replicates import fit_replicates

__all__ = ["METHODS", "SAMPLERS", "Candidate", "Fit", "Settings", "check_method", "fit"]

Array = NDArray[Any]
Method = Callable[..., "list[Fit]"]
NOISE = GaussianLikelihood(0.3, learn=True)


@dataclass(frozen=True)
class Settings:
    """What all trials of a set share. Numbers of steps are those of one full fit.

    Parameters
    ----------
    units : int
        ReLU units of the one hidden layer.
    samples : int
        Posterior samples of the predictive mixture, at least.
    batch_size, steps, full_rank_steps : int
        Of training; a full-rank step costs as much as twenty others.
    renyi_samples : int
        Weight samples per step of Renyi's bound.
    eubo_samples, eubo_rows, eubo_steps : int
        Samples, rows per step (all if there are no more) and steps of the EUBO, whose weights
        are biased on minibatches (D30).
    members : int
        Point estimates of an ensemble.
    chains, warm_up, draws, thin : int
        Of the samplers.
    start_batch, start_steps : int
        Chains begin at point estimates, trained so long on minibatches of so many rows.
    path, leaps : float, int
        Longest trajectory of HMC, in units of the metric and in leapfrog steps. ChEES begins with
        the one and keeps to the other, as do the steps of MCLMC between two draws.
    depth : int
        Deepest tree of NUTS, of at most 2^depth - 1 leapfrog steps.
    pilot : float
        Length of the samplers' runs by which priors are compared, in units of warm-up and
        draws.
    folds : int
        Validation folds of a fifth of the training part each, at most 5, on which methods without
        a bound compare candidates.
    seed : int
    dtype : {'float32', 'float64'}
    """

    units: int = 50
    samples: int = 500
    batch_size: int = 32
    steps: int = 6000
    full_rank_steps: int = 1000
    renyi_samples: int = 5
    eubo_samples: int = 50
    eubo_rows: int = 2000
    eubo_steps: int = 300
    members: int = 5
    chains: int = 4
    warm_up: int = 400
    draws: int = 125
    thin: int = 2
    start_batch: int = 32
    start_steps: int = 1500
    path: float = 1.0
    leaps: int = 100
    depth: int = 5
    pilot: float = 0.4
    folds: int = 2
    seed: int = 0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name not in ("path", "pilot", "folds", "dtype"):
                whole(name, value, 0 if name in ("seed", "warm_up") else 1)
        positive("path", self.path)
        whole("folds", self.folds, 1, 5)  # each is a fifth
        real("pilot", self.pilot, 0.01, 1.0, "between 0.01 and 1")
        OneOf("float32", "float64")("dtype", self.dtype)


class Candidate(NamedTuple):
    """Hyperparameters of one fit."""

    prior: float | None  # multiplier of the layers' scales (1, 1/sqrt(units)); None: N(0, 1)
    learning_rate: float = 1e-2
    length: float = 1.0  # in units of the settings' steps


@dataclass(frozen=True)
class Fit:
    """A posterior: one or more sources of weights, equally weighted, with what they learned."""

    sources: tuple[Any, ...]
    thetas: tuple[Array, ...]
    bound: float | None = None  # the objective per row, in nats; lower is better
    notes: dict[str, float] = field(default_factory=dict)
    draws: Draws | None = None  # of a sampler, to be judged

    def members(self, samples: int) -> Iterator[tuple[Any, Array, int]]:
        """Yield each source with what it learned and its share of `samples`."""
        for source, theta in zip(self.sources, self.thetas, strict=True):
            point = isinstance(getattr(source, "posterior", None), PointMass)
            yield source, theta, 1 if point else -(-samples // len(self.sources))


def fit(
    x: Array,
    y: Array,
    method: str,
    candidates: Sequence[Candidate],
    settings: Settings,
    seed: Sequence[int],
) -> list[Fit]:
    """Fit a method to standardised rows `x` (N, d_in), `y` (N, 1), once for each candidate.

    Candidates that differ in their prior alone are trained as one computation where that wins.
    All have the same random numbers.
    """
    if len({candidate[1:] for candidate in candidates}) > 1:
        raise ValueError("candidates that are fitted together may differ in their prior alone")
    rngs = [np.random.default_rng(seed) for _ in candidates]
    return METHODS[method](x, y, candidates, settings, rngs)


def model(
    inputs: int, candidate: Candidate, settings: Settings, likelihood: Likelihood = NOISE
) -> Model:
    """Return network, prior and likelihood."""
    scale = candidate.prior
    scales = (1.0, 1.0) if scale is None else (scale, scale * settings.units**-0.5)
    network = MLP((inputs, settings.units, likelihood.heads(1)))
    return Model(network, LayerwiseGaussianPrior(scales), likelihood)


def _train(
    estimators: Sequence[Any],
    x: Array,
    y: Array,
    candidate: Candidate,
    rngs: Sequence[np.random.Generator],
    steps: int,
    batch_size: int,
    samples: int = 1,
) -> list[Fit]:
    """Train with Adam and a step size that falls to 0, together if there are several."""
    optimizer = Adam(candidate.learning_rate, schedule=Cosine())
    starts = [
        training.start(estimator, rng, optimizer, x.dtype)
        for estimator, rng in zip(estimators, rngs, strict=True)
    ]
    free_energy = isinstance(estimators[0].objective, FreeEnergy)
    recipe = training.Recipe(
        optimizer,
        epochs=max(1, round(steps * candidate.length / -(-len(x) // batch_size))),
        batch_size=batch_size,
        samples=samples,
        warm_up=LinearWarmUp(0.5) if free_energy else NoWarmUp(),
    )
    first = estimators[0]
    side_by_side = isinstance(first, Reparameterised) and is_linear(first.objective)
    gaussian = isinstance(first.model.likelihood, GaussianLikelihood)  # what replicates need
    if len(estimators) > 1 and side_by_side and gaussian:
        count = len(estimators)
        rows = [x] * count, [y] * count
        states = fit_replicates(estimators, starts, *rows, recipe, rngs=rngs, progress=False)
    else:
        states = [
            training.fit(estimator, start, x, y, recipe, rng=rng, progress=False)
            for estimator, start, rng in zip(estimators, starts, rngs, strict=True)
        ]
    fits = []
    for estimator, state in zip(estimators, states, strict=True):
        last = state.history[-max(1, len(state.history) // 20) :]
        bound = float(np.mean([epoch.objective for epoch in last])) / len(x)
        fits.append(Fit((estimator,), (state.theta,), bound))
    return fits


def _variational(
    parts: Callable[[Model], Any],
    steps: str = "steps",
    samples: str | None = None,
    rows: str = "batch_size",
) -> Method:
    """Return the method that minimises an objective, from how its estimator is made of a model.

    `steps`, `samples` (None: 1) and `rows` name the settings of its training.
    """

    def method(
        x: Array, y: Array, candidates: Sequence[Candidate], settings: Settings, rngs: Any
    ) -> list[Fit]:
        estimators = [parts(model(x.shape[1], c, settings)) for c in candidates]
        return _train(
            estimators,
            x,
            y,
            candidates[0],
            rngs,
            steps=getattr(settings, steps),
            batch_size=min(getattr(settings, rows), len(x)),
            samples=1 if samples is None else getattr(settings, samples),
        )

    return method


def _points(
    x: Array,
    y: Array,
    candidate: Candidate,
    settings: Settings,
    rngs: Sequence[np.random.Generator],
    steps: int,
    batch_size: int,
    likelihood: Likelihood = NOISE,
) -> list[Fit]:
    """Return point estimates from different starts (W2)."""
    one = Reparameterised(model(x.shape[1], candidate, settings, likelihood), PointMass(0.3), MAP())
    return _train([one] * len(rngs), x, y, candidate, rngs, steps, batch_size)


def ensemble(
    x: Array, y: Array, candidates: Sequence[Candidate], settings: Settings, rngs: Any
) -> list[Fit]:
    """Fit point estimates from several starts (Lakshminarayanan et al. 2017), equally weighted."""
    found = []
    for candidate, rng in zip(candidates, rngs, strict=True):
        starts = rng.spawn(settings.members)
        members = _points(x, y, candidate, settings, starts, settings.steps, settings.batch_size)
        sources = tuple(source for one in members for source in one.sources)
        found.append(Fit(sources, tuple(theta for one in members for theta in one.thetas)))
    return found


def default(
    x: Array, y: Array, candidates: Sequence[Candidate], settings: Settings, rngs: Any
) -> list[Fit]:
    """Fit `BayesianMLPRegressor()`: nothing is chosen, `candidates` and sizes of `settings` unused.

    Standardising is left out: the part is in the learner's own units already.
    """
    from bbb_numpy.learners.regressor import BayesianMLPRegressor  # which needs scikit-learn

    found = []
    for rng in rngs:
        seed = int(rng.integers(2**31))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            learner = BayesianMLPRegressor(standardize=False, random_state=seed, progress=False)
            learner.fit(x.astype(np.float64), y[:, 0].astype(np.float64))
        notes = {"warnings": float(len(said)), "epochs": float(learner.n_iter_)}
        found.append(Fit((learner.estimator_,), (learner.theta_,), None, notes))
    return found


def _sampled(kernel: Callable[[Settings], Any], likelihood: Likelihood = NOISE) -> Method:
    """Return the method that draws from the posterior of weights and noise."""

    def draw(
        x: Array, y: Array, candidate: Candidate, settings: Settings, rng: np.random.Generator
    ) -> Fit:
        """Draw with several chains, each of which begins at a point estimate of its own."""
        size = settings.start_steps, settings.start_batch
        starts = _points(x, y, candidate, settings, rng.spawn(settings.chains), *size, likelihood)
        whole = model(x.shape[1], candidate, settings, likelihood)
        with warnings.catch_warnings():  # how many diverged is recorded, and the bias
            warnings.filterwarnings(
                "ignore", message=".*divergent transitions", category=UserWarning
            )
            warnings.filterwarnings("ignore", message=".*is not adjusted", category=UserWarning)
            draws = sample(
                whole,
                x,
                y,
                sampler=kernel(settings),
                chains=settings.chains,
                groups=1,  # each worker has a trial of its own
                start=np.stack([one.thetas[0] for one in starts]),
                draws=settings.draws,
                warm_up=settings.warm_up,
                thin=settings.thin,
                hyperpriors={name: HalfCauchy(1.0) for name, _ in whole.learned()},
                seed=rng,
                dtype=settings.dtype,
                progress=False,
            )
        kernel_used: Any = draws.kernel
        target: Any = draws.target
        notes = {
            "acceptance": float(draws.stats["acceptance"].mean()),
            "divergent": float(draws.divergences),
            "gradients_per_draw": float(draws.stats["gradients"].mean()),
            "step_size": float(kernel_used.step_size),
        }
        if getattr(kernel_used, "unadjusted", False):
            notes["expected_bias"] = draws.expected_bias
        return Fit((DrawnWeights(target.model),), (draws.flat,), None, notes, draws)

    def method(
        x: Array, y: Array, candidates: Sequence[Candidate], settings: Settings, rngs: Any
    ) -> list[Fit]:
        return [draw(x, y, c, settings, rng) for c, rng in zip(candidates, rngs, strict=True)]

    return method


def _hmc(settings: Settings) -> HMC:
    # One step size, as when the nine sets were run
    return HMC(path=settings.path, max_steps=settings.leaps, small_steps=0.0)


# What draws from the posterior; another sampler is another line here, and a label in `tables`
SAMPLERS: dict[str, Method] = {
    # Hamiltonian Monte Carlo (M7) and the no-U-turn sampler (M9, M10)
    "hmc": _sampled(_hmc),
    "nuts": _sampled(lambda settings: NUTS(max_depth=settings.depth)),
    # HMC that finds the length of its path (D47), and microcanonical, unadjusted (D48, D49, D50)
    "chees": _sampled(lambda settings: ChEES(path=settings.path, max_steps=settings.leaps)),
    "mclmc": _sampled(lambda settings: MCLMC(max_steps=settings.leaps)),
    # the noise as a second output of the network (D12)
    "hmc-heteroscedastic": _sampled(_hmc, HeteroscedasticLikelihood()),
}
QS = MeanField(rho_offset=-4.0)
METHODS: dict[str, Method] = {
    # Bayes by Backprop as in the report
    "mean-field": _variational(lambda model: Reparameterised(model, QS)),
    # the same bound, with the KL in closed form and noise at the units (D18, D21)
    "local-reparam": _variational(lambda model: LocalReparameterisation(model, QS)),
    # all correlations between weights (M1-M4)
    "full-rank": _variational(
        lambda model: ClosedFormKL(model, FullRank(rho_offset=-4.0, unit=0.01)), "full_rank_steps"
    ),
    # a point (W2)
    "map": _variational(lambda model: Reparameterised(model, PointMass(0.3), MAP())),
    # Renyi's bound of order 1/2 (Li and Turner 2016) on minibatches (D25, D30)
    "renyi": _variational(
        lambda model: Reparameterised(model, QS, Renyi(0.5)), samples="renyi_samples"
    ),
    # Sagar's Algorithm 1, corrected (G2-G8): large minibatches, many samples
    "eubo": _variational(
        lambda model: SelfNormalised(model, QS, EUBO()), "eubo_steps", "eubo_samples", "eubo_rows"
    ),
    **SAMPLERS,
    "ensemble": ensemble,
    "default": default,
}


def check_method(name: str) -> None:
    """Raise ValueError, which lists them, unless there is a method of this name."""
    if name not in METHODS:
        raise ValueError(f"there is no method {name!r}; there are {', '.join(METHODS)}")
