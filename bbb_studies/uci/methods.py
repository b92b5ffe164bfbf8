"""The methods of the UCI benchmark: from a training part to a posterior.

Every method has the same network, likelihood (Gaussian with learned noise) and family of priors;
they differ in how they come to a posterior. Four do not: ``hmc-heteroscedastic`` has another
likelihood, ``laplace`` and ``last-layer`` a learned prior, and ``default`` is the learner as it
comes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy import training
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.estimator import is_linear
from bbb_numpy.gradients.importance import SelfNormalised
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Likelihood, Model
from bbb_numpy.model.kl_weights import LinearWarmUp, NoWarmUp
from bbb_numpy.model.objectives import EUBO, MAP, FreeEnergy, Renyi
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.hyperpriors import HalfCauchy
from bbb_numpy.parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from bbb_numpy.parts.low_rank import LowRank
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.parts.priors import GaussianPrior, LayerwiseGaussianPrior
from bbb_numpy.sampling.draws import DrawnWeights, Draws
from bbb_numpy.sampling.mcmc import HMC, MCLMC, NUTS, SGHMC, ChEES
from bbb_numpy.sampling.run import sample
from bbb_numpy.training import laplace
from bbb_numpy.training.optimizers import IVON, SGD, Adam, Cosine, Optimizer
from bbb_numpy.training.recipe import Rows
from bbb_numpy.training.state import Training
from bbb_numpy.training.swag import swag
from bbb_studies.dropout import Dropout
from bbb_studies.replicates import fit_replicates

Array = NDArray[Any]
LEARNED_NOISE_LIKELIHOOD = GaussianLikelihood(0.3, learn=True)
SWAG_RATE = 10.0  # step sizes of SGD on the mean squared error, in units of Adam's
# Snapshots of SGD's path for SWAG, an epoch apart or more, in a quarter of the steps.
N_SNAPSHOTS = 30


@dataclass(frozen=True)
class Settings:
    """What all trials of a set share. Numbers of steps are those of one full fit."""

    units: int = 50  # ReLU units of the one hidden layer
    samples: int = 500  # posterior samples in the predictive mixture, at least
    batch_size: int = 32
    steps: int = 6000
    full_rank_steps: int = 1000  # each takes as long as twenty of other methods
    renyi_samples: int = 5  # weight samples per step of Rényi's bound
    # The EUBO's importance weights are biased on minibatches (D30), so a step has all rows, up
    # to `eubo_rows`.
    eubo_samples: int = 50
    eubo_rows: int = 2000
    eubo_steps: int = 300
    members: int = 5  # point estimates of an ensemble
    # of the samplers
    chains: int = 4
    warm_up: int = 400
    draws: int = 125
    thin: int = 2
    # Chains begin at point estimates that are trained on minibatches.
    start_batch: int = 32
    start_steps: int = 1500
    # the longest trajectory of HMC, in units of the metric and in leapfrog steps; ChEES begins
    # with the one and keeps to the other, as do the steps of MCLMC between two draws
    path: float = 1.0
    leaps: int = 100
    depth: int = 5  # doublings of a NUTS tree: at most 2^depth - 1 leapfrog steps
    pilot: float = 0.4  # share of warm-up and draws in the runs that compare priors
    # Validation folds, each a fifth of the training part, for methods without a bound.
    folds: int = 2
    seed: int = 0
    dtype: str = "float32"  # or float64


class Candidate(NamedTuple):
    """Hyperparameters of one fit."""

    # Multiplier of the layers' scales (1, 1/sqrt(units)); None is the prior N(0, 1).
    prior: float | None
    learning_rate: float = 1e-2
    length: float = 1.0  # of training, in units of the settings' steps
    left_out: float = 0.0  # share of inputs and units; for dropout alone


@dataclass(frozen=True)
class Fit:
    """A posterior: one or more sources of weights, equally weighted, with what they learned."""

    sources: tuple[Any, ...]
    thetas: tuple[Array, ...]
    bound: float | None = None  # the objective per row, in nats; lower is better
    notes: dict[str, float] = field(default_factory=dict)
    draws: Draws | None = None  # of a sampler, for R-hat and effective sample sizes

    def members(self, samples: int) -> Iterator[tuple[Any, Array, int]]:
        """Yield each source of weights with its theta and its share of `samples`.

        Parameters
        ----------
        samples : int
            Weight vectors of the whole mixture, at least; a point estimate has 1.
        """
        for source, theta in zip(self.sources, self.thetas, strict=True):
            share = 1 if _is_point(source) else -(-samples // len(self.sources))
            yield source, theta, share


def _is_point(source: Any) -> bool:
    return isinstance(source, Reparameterised) and isinstance(
        source.posterior, PointMass
    )


def model(
    inputs: int,
    candidate: Candidate,
    settings: Settings,
    likelihood: Likelihood = LEARNED_NOISE_LIKELIHOOD,
) -> Model:
    """Return the network of the benchmark with its prior and likelihood.

    Parameters
    ----------
    inputs : int
        Number of inputs.
    candidate : Candidate
        Gives the scales of the prior.
    settings : Settings
        Gives the number of hidden units.
    likelihood : Likelihood
        By default Gaussian with learned noise.
    """
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
    rule: Callable[..., Optimizer] = Adam,
) -> list[Fit]:
    """Train with a step size that falls to 0, together if there are several."""
    optimizer = rule(candidate.learning_rate, schedule=Cosine())
    starts = [
        training.start(estimator, rng, optimizer, x.dtype)
        for estimator, rng in zip(estimators, rngs, strict=True)
    ]
    first = estimators[0]
    recipe = training.Recipe(
        optimizer,
        epochs=max(1, round(steps * candidate.length / -(-len(x) // batch_size))),
        batch_size=batch_size,
        samples=samples,
        warm_up=LinearWarmUp(0.5)
        if isinstance(first.objective, FreeEnergy)
        else NoWarmUp(),
    )
    # What `fit_replicates` needs: a linear objective, and a Gaussian likelihood.
    side_by_side = isinstance(first, Reparameterised) and is_linear(first.objective)
    gaussian = isinstance(first.model.likelihood, GaussianLikelihood)
    count = len(estimators)
    if count > 1 and side_by_side and gaussian:
        states = fit_replicates(
            estimators,
            starts,
            [x] * count,
            [y] * count,
            recipe,
            rngs=rngs,
            progress=False,
        )
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


FitOne = Callable[[Array, Array, Candidate, Settings, np.random.Generator], Fit]


@dataclass(frozen=True)
class Method:
    """How to fit a posterior: by training an `estimator`, or else by calling `fit_one`."""

    label: str  # name in tables and pictures
    group: str  # "variational", "points" or "samplers": in one panel of the pictures
    criterion: (
        str  # by which candidates are compared: "bound", "validation" or "nothing"
    )
    cost: float  # seconds of a trial on one core of 2026, per thousand rows
    estimator: Callable[[Model], Any] | None = None
    steps: str = "steps"  # field of `Settings` with the number of training steps
    rows: str = "batch_size"  # field with the batch size
    samples: str | None = (
        None  # field with the weight samples of a step; None: 1 sample
    )
    fit_one: FitOne | None = None


def fit(
    x: Array,
    y: Array,
    method: str,
    candidates: Sequence[Candidate],
    settings: Settings,
    seed: Sequence[int],
) -> list[Fit]:
    """Return the fits of one method, one for each candidate.

    Candidates are trained as one computation where that is faster, all with the same random
    numbers.

    Parameters
    ----------
    x : array (N, d_in)
        Inputs, standardised.
    y : array (N, 1)
        Targets, standardised.
    method : str
        A key of `METHODS`.
    candidates : sequence of Candidate
        They differ in their prior alone.
    settings : Settings
        Sizes of the computation.
    seed : sequence of int
        Of every candidate's generator.
    """
    rngs = [np.random.default_rng(seed) for _ in candidates]
    definition = METHODS[method]
    if definition.fit_one is not None:
        return [
            definition.fit_one(x, y, c, settings, rng)
            for c, rng in zip(candidates, rngs, strict=True)
        ]
    assert definition.estimator is not None
    return _train(
        [definition.estimator(model(x.shape[1], c, settings)) for c in candidates],
        x,
        y,
        candidates[0],
        rngs,
        steps=getattr(settings, definition.steps),
        batch_size=min(getattr(settings, definition.rows), len(x)),
        samples=getattr(settings, definition.samples) if definition.samples else 1,
    )


def _points(full_model: Model) -> Reparameterised:
    return Reparameterised(full_model, PointMass(0.3), MAP())


def _ensemble(
    x: Array,
    y: Array,
    candidate: Candidate,
    settings: Settings,
    rng: np.random.Generator,
) -> Fit:
    """Fit point estimates from several starts (Lakshminarayanan et al. 2017), equally weighted."""
    estimator = _points(model(x.shape[1], candidate, settings))
    starts = rng.spawn(settings.members)
    members = _train(
        [estimator] * settings.members,
        x,
        y,
        candidate,
        starts,
        steps=settings.steps,
        batch_size=settings.batch_size,
    )
    return Fit(
        (estimator,) * settings.members, tuple(member.thetas[0] for member in members)
    )


def _dropout(
    x: Array,
    y: Array,
    candidate: Candidate,
    settings: Settings,
    rng: np.random.Generator,
) -> Fit:
    """Fit a network that leaves out inputs and units (Gal and Ghahramani 2016)."""
    full_model = model(x.shape[1], candidate, settings)
    estimator = Dropout(full_model, PointMass(0.3), MAP(), (candidate.left_out,) * 2)
    return _train(
        [estimator], x, y, candidate, [rng], settings.steps, settings.batch_size
    )[0]


def _swag(
    x: Array,
    y: Array,
    candidate: Candidate,
    settings: Settings,
    rng: np.random.Generator,
) -> Fit:
    """Fit a Gaussian to SGD's path from a point on (Maddox et al. 2019): diagonal and low rank.

    The covariance is half that of the snapshots' weights plus half its diagonal. The step size is
    of the mean squared error, in units of the noise, lest little noise make SGD diverge.
    """
    point = _points(model(x.shape[1], candidate, settings))
    batch = min(settings.batch_size, len(x))
    n_weights = point.model.layout.size
    (trained,) = _train([point], x, y, candidate, [rng], settings.steps, batch)
    theta = trained.thetas[0]  # the weights and the logarithm of the noise
    rule = SGD(
        SWAG_RATE * candidate.learning_rate * np.exp(2.0 * float(theta[-1])) / batch
    )
    epochs = round(settings.steps / 4 / N_SNAPSHOTS / -(-len(x) // batch))
    recipe = training.Recipe(rule, max(1, epochs), batch)
    state = Training(theta, rule.init(theta))
    snapshots = list[Array]()
    for _ in range(N_SNAPSHOTS):
        state = training.fit(point, state, x, y, recipe, rng=rng, progress=False)
        snapshots.append(state.theta)
    path = np.array(snapshots)
    gaussian, theta = swag(path[:, :n_weights])
    learned = np.mean(path[:, n_weights:], axis=0)
    return Fit(
        (Reparameterised(point.model, gaussian),),
        (np.concatenate([theta, learned]).astype(x.dtype),),
    )


def _laplace(
    x: Array,
    y: Array,
    candidate: Candidate,
    settings: Settings,
    rng: np.random.Generator,
    covariance: str = "full",
) -> Fit:
    """Fit as the learner's ``inference="laplace"``: the evidence chooses prior and noise (D55).

    Half the steps are those to the first MAP estimate, each later one has half of those before.
    """
    network = MLP((x.shape[1], settings.units, 1))
    full_model = Model(
        network, GaussianPrior(0.5, learn=True), GaussianLikelihood(0.5, learn=True)
    )
    source = laplace.Linearised(full_model, laplace.Laplace(covariance))
    batch_size = min(settings.batch_size, len(x))
    optimizer = Adam(candidate.learning_rate, schedule=Cosine())
    epochs = max(1, round(settings.steps / 2 / -(-len(x) // batch_size)))
    recipe = training.Recipe(optimizer, epochs=epochs, batch_size=batch_size)
    state, evidence = laplace.fit(source, Rows(x, y), recipe, rng, progress=False)
    if state.stopped == "interrupted":
        # The numbers of half a training would look like those of a whole one.
        raise KeyboardInterrupt
    return Fit((source,), (state.theta,), None, {"log_evidence": evidence})


def _default(
    x: Array,
    y: Array,
    candidate: Candidate,
    settings: Settings,
    rng: np.random.Generator,
) -> Fit:
    """Fit `BayesianMLPRegressor()`: nothing is chosen, `candidate` and sizes of `settings` unused.

    The part is in the learner's own units already: standardising it changes rounding alone. So the
    target is modelled as it is, where ``target="auto"`` may have taken its logarithm.
    """
    # which needs scikit-learn
    from bbb_numpy.learners.regressor import BayesianMLPRegressor

    seed = int(rng.integers(2**31))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = BayesianMLPRegressor(random_state=seed, progress=False)
        learner.fit(x.astype(np.float64), y[:, 0].astype(np.float64))
    notes = {"warnings": float(len(caught))}
    draws = getattr(learner, "draws_", None)
    if draws is None:
        notes["epochs"] = float(learner.n_iter_)
    theta = learner.theta_
    if hasattr(learner, "x_axes_"):  # D60: the first layer's weights are turned back
        model = learner.estimator_.model
        theta = theta.copy()
        first_layer = model.network.layout.views(theta[:, : model.layout.size])["W0"]
        first_layer[...] = learner.x_axes_ @ first_layer
    return Fit((learner.estimator_,), (theta,), None, notes, draws)


def _sampled(
    kernel: Callable[[Settings], Any], likelihood: Likelihood = LEARNED_NOISE_LIKELIHOOD
) -> FitOne:
    """Return what draws from the posterior of weights and noise, each chain from a point (W2)."""

    def draw(
        x: Array,
        y: Array,
        candidate: Candidate,
        settings: Settings,
        rng: np.random.Generator,
    ) -> Fit:
        full_model = model(x.shape[1], candidate, settings, likelihood)
        starts = _train(
            [_points(full_model)] * settings.chains,
            x,
            y,
            candidate,
            rng.spawn(settings.chains),
            steps=settings.start_steps,
            batch_size=settings.start_batch,
        )
        with warnings.catch_warnings():  # divergences and bias are in the notes
            for message in (".*divergent transitions", ".*is not adjusted"):
                warnings.filterwarnings("ignore", message=message, category=UserWarning)
            draws = sample(
                full_model,
                x,
                y,
                sampler=kernel(settings),
                chains=settings.chains,
                groups=1,  # each worker has a trial of its own
                start=np.stack([point.thetas[0] for point in starts]),
                draws=settings.draws,
                warm_up=settings.warm_up,
                thin=settings.thin,
                hyperpriors={name: HalfCauchy(1.0) for name, _ in full_model.learned()},
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

    return draw


def _hmc(settings: Settings) -> HMC:
    # All trajectories have the tuned step size, as when the recorded trials were run.
    return HMC(path=settings.path, max_steps=settings.leaps, small_steps=0.0)


MEAN_FIELD = MeanField(rho_offset=-4.0)


def natural_rows(rows: int, settings: Settings) -> int:
    """Return the batch size of IVON: few rows estimate too noisy a curvature (D62).

    Parameters
    ----------
    rows : int
        Number of training rows.
    settings : Settings
        Gives the usual batch size.
    """
    return min(max(2 * settings.batch_size, rows // 32), 8 * settings.batch_size, rows)


def _natural(
    x: Array,
    y: Array,
    candidate: Candidate,
    settings: Settings,
    rng: np.random.Generator,
) -> Fit:
    """Fit by IVON, in a fifth of the steps."""
    estimator = LocalReparameterisation(
        model(x.shape[1], candidate, settings), MEAN_FIELD
    )
    # The usual learning rate of IVON is 0.2, in units of Newton's step, where Adam's is 0.01.
    newton = candidate._replace(learning_rate=20.0 * candidate.learning_rate)
    return _train(
        [estimator],
        x,
        y,
        newton,
        [rng],
        steps=settings.steps // 5,
        batch_size=natural_rows(len(x), settings),
        rule=IVON,
    )[0]


METHODS: dict[str, Method] = {  # in the order of print
    # Bayes by Backprop as in the report
    "mean-field": Method(
        label="mean field",
        group="variational",
        criterion="bound",
        cost=3,
        estimator=lambda model: Reparameterised(model, MEAN_FIELD),
    ),
    # the same bound, with the KL in closed form and noise at the units (D18, D21)
    "local-reparam": Method(
        label="mean field by local reparam.",
        group="variational",
        criterion="bound",
        cost=4,
        estimator=lambda model: LocalReparameterisation(model, MEAN_FIELD),
    ),
    # the same posterior by natural gradients (D61, D62)
    "ivon": Method(
        label="natural gradients (IVON)",
        group="variational",
        criterion="bound",
        cost=4,
        fit_one=_natural,
    ),
    # a few directions of correlated weights (D59)
    "low-rank": Method(
        label="low rank",
        group="variational",
        criterion="bound",
        cost=6,
        estimator=lambda model: ClosedFormKL(model, LowRank(rho_offset=-4.0)),
    ),
    # all correlations between weights (M1-M4)
    "full-rank": Method(
        label="full rank",
        group="variational",
        criterion="bound",
        cost=8,
        estimator=lambda model: ClosedFormKL(
            model, FullRank(rho_offset=-4.0, unit=0.01)
        ),
        steps="full_rank_steps",
    ),
    # Rényi's bound of order 1/2 (Li and Turner 2016) on minibatches (D25, D30)
    "renyi": Method(
        label="Rényi bound",
        group="variational",
        criterion="bound",
        cost=5,
        estimator=lambda model: Reparameterised(model, MEAN_FIELD, Renyi(0.5)),
        samples="renyi_samples",
    ),
    # Sagar's Algorithm 1, corrected (G2-G8): large minibatches, many samples
    "eubo": Method(
        label="inclusive KL (Sagar's, corrected)",
        group="variational",
        criterion="validation",
        cost=4,
        estimator=lambda model: SelfNormalised(model, MEAN_FIELD, EUBO()),
        steps="eubo_steps",
        rows="eubo_rows",
        samples="eubo_samples",
    ),
    # a point (W2)
    "map": Method(
        label="MAP", group="points", criterion="validation", cost=2, estimator=_points
    ),
    "ensemble": Method(
        label="ensemble",
        group="points",
        criterion="validation",
        cost=3,
        fit_one=_ensemble,
    ),
    # points without some of their inputs and units; a point's path when SGD goes on
    "dropout": Method(
        label="MC dropout",
        group="points",
        criterion="validation",
        cost=5,
        fit_one=_dropout,
    ),
    "swag": Method(
        label="SWAG", group="points", criterion="validation", cost=5, fit_one=_swag
    ),
    # a Gaussian around a point, and the network linear there (D54)
    "laplace": Method(
        label="linearised Laplace",
        group="points",
        criterion="nothing",
        cost=3,
        fit_one=_laplace,
    ),
    # Bayesian linear regression on a point's features (D56)
    "last-layer": Method(
        label="Bayesian last layer",
        group="points",
        criterion="nothing",
        cost=3,
        fit_one=partial(_laplace, covariance="last-layer"),
    ),
    "default": Method(
        label="default learner",
        group="variational",
        criterion="nothing",
        cost=10,
        fit_one=_default,
    ),
    # Hamiltonian Monte Carlo (M7) and the no-U-turn sampler (M9, M10)
    "hmc": Method(
        label="HMC",
        group="samplers",
        criterion="validation",
        cost=20,
        fit_one=_sampled(_hmc),
    ),
    "nuts": Method(
        label="NUTS",
        group="samplers",
        criterion="validation",
        cost=25,
        fit_one=_sampled(lambda settings: NUTS(max_depth=settings.depth)),
    ),
    # HMC that finds the length of its path (D47), and microcanonical, unadjusted (D48, D49, D50)
    "chees": Method(
        label="ChEES-HMC",
        group="samplers",
        criterion="validation",
        cost=25,
        fit_one=_sampled(
            lambda settings: ChEES(path=settings.path, max_steps=settings.leaps)
        ),
    ),
    "mclmc": Method(
        label="MCLMC",
        group="samplers",
        criterion="validation",
        cost=20,
        fit_one=_sampled(lambda settings: MCLMC(max_steps=settings.leaps)),
    ),
    # by minibatches, with friction and unadjusted (D64, D65)
    "sghmc": Method(
        label="SGHMC",
        group="samplers",
        criterion="validation",
        cost=10,
        fit_one=_sampled(
            lambda settings: SGHMC(batch_size=settings.start_batch, steps=10)
        ),
    ),
    # the noise as a second output of the network (D12)
    "hmc-heteroscedastic": Method(
        label="heteroscedastic HMC",
        group="samplers",
        criterion="validation",
        cost=25,
        fit_one=_sampled(_hmc, HeteroscedasticLikelihood()),
    ),
}
SAMPLERS = tuple(name for name, method in METHODS.items() if method.group == "samplers")
