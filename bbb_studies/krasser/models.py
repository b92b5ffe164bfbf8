"""Krasser's system: one period of a sine, 1-20-20-1 with a learned scale mixture prior.

`run` trains one setting and measures it; `bbb_studies.krasser.study` runs them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.predictive import Predictive, sample_functions
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import FreeEnergy
from bbb_numpy.numeric.validation import OneOf
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.progress import Done, counted, unseen
from bbb_numpy.training import NonFiniteError, Recipe, Training, fit, start
from bbb_numpy.training.optimizers import Adam
from bbb_studies.data.kebude import Toy
from bbb_studies.data.krasser import one_period

from .raw_mixture import RawMixturePrior

__all__ = ["SETTINGS", "Domain", "Numbers", "Result", "Setting", "Trace", "domains", "run", "train"]

Array = NDArray[Any]
DATA, PANEL = (-0.5, 0.5), (-1.5, 1.5)  # x of the data, x of the prediction
NOISE, FUNCTIONS, POINTS = 1.0, 500, 1000
FAST = 0.1  # the learning rate at which the raw numbers leave their domain


@dataclass(frozen=True)
class Setting:
    """What differs between the runs; all else is the post's."""

    title: str
    prior: Any = ScaleMixturePrior(learn=True)
    likelihood: GaussianLikelihood = GaussianLikelihood(NOISE)
    beta: float = 1.0  # weight of the KL term
    rho: float = 0.0  # start of every rho
    learning_rate: float = 0.03

    def estimator(self) -> Reparameterised:
        """Return the post's network with this prior and likelihood.

        It starts at mu ~ N(0, s^2) with s = 0.456 the deviation of the prior's starting values.
        """
        posterior = MeanField(ScaleMixturePrior().deviation({}), self.rho, 0.0)
        model = Model(MLP((1, 20, 20, 1)), self.prior, self.likelihood)
        return Reparameterised(model, posterior, FreeEnergy(self.beta))


LEARNED_NOISE = GaussianLikelihood(NOISE, learn=True)
SETTINGS = {
    "post": Setting("as in the post"),
    "fixed": Setting("prior fixed", ScaleMixturePrior()),
    "noise": Setting("noise learned", likelihood=LEARNED_NOISE),
    "cold": Setting("the same, KL x 0.1", likelihood=LEARNED_NOISE, beta=0.1, rho=-4.0),
}


@dataclass(frozen=True)
class Numbers:
    """One run as numbers; deviations in units of y."""

    free_energy: float  # nats, KL at full weight; mean of the last tenth of training
    kl: float
    nll: float
    rmse: float  # of the predictive mean to the truth, inside the data
    rmse_of_means: float  # of the prediction from posterior means
    coverage: float  # of new y inside, by mean +- 1.96 total deviations
    coverage_epistemic: float  # of the same y by mean +- 1.96 epistemic deviations
    epistemic_inside: float  # mean over the data range
    epistemic_outside: float  # mean over the rest of the panel
    pi: float
    sigma1: float
    sigma2: float
    noise: float  # learned, or fixed
    gap: float  # E_q f(x, w) - f(x, E_q w), root mean square over the panel
    gap_error: float  # its Monte Carlo standard error, root mean square over the panel
    gap_largest: float  # the gap that is most of its standard errors away from 0
    gap_seen: float  # share of the panel where the gap exceeds 4 standard errors
    seconds_training: float  # wall time
    seconds_functions: float  # wall time of 500 functions at 1000 points

    @property
    def ratio(self) -> float:
        """Epistemic deviation outside the data over that inside."""
        return self.epistemic_outside / self.epistemic_inside

    @property
    def seconds(self) -> float:
        """Wall time of training and prediction."""
        return self.seconds_training + self.seconds_functions


class Trace(NamedTuple):
    """Learned numbers as training goes."""

    epochs: Array  # (T,)
    prior: Array  # (T, 3)  pi, sigma1, sigma2
    noise: Array  # (T,)


@dataclass(frozen=True, eq=False)
class Result:
    """One trained setting."""

    setting: Setting
    data: Toy
    training: Training
    trace: Trace
    x: Array  # (POINTS, 1)
    predictive: Predictive  # (POINTS, 1) each
    of_means: Array  # (POINTS, 1)  f(x, E_q w)
    numbers: Numbers


class Domain(NamedTuple):
    """The prior's numbers at the raised learning rate, for some seeds."""

    traces: list[Trace]
    finite: list[bool]  # whether every free energy was

    @property
    def left(self) -> int:
        """How many seeds had pi outside (0, 1) or a deviation <= 0."""
        bad = [(t.prior[:, 0] <= 0) | (t.prior[:, 0] >= 1) for t in self.traces]
        sign = [(t.prior[:, 1:] <= 0).any(axis=1) for t in self.traces]
        return sum(bool((b | s).any()) for b, s in zip(bad, sign, strict=True))

    @property
    def swapped(self) -> int:
        """How many seeds had sigma2 >= sigma1."""
        return sum(bool((t.prior[:, 2] >= t.prior[:, 1]).any()) for t in self.traces)

    @property
    def largest(self) -> float:
        """The largest pi of all seeds."""
        return max(float(t.prior[:, 0].max()) for t in self.traces)


def run(name: str = "post", seed: int = 0, epochs: int = 1500) -> Result:
    """Draw data, train one of `SETTINGS`, predict and measure.

    The data of a seed are the same for all settings.

    Raises
    ------
    ValueError
        If there is no such setting.
    """
    setting = SETTINGS[OneOf(*SETTINGS)("name", name)]
    data_rng, train_rng, predict_rng = np.random.default_rng(seed).spawn(3)
    data = one_period(data_rng, noise=NOISE)
    began = perf_counter()
    training, trace, finite = train(setting, data, train_rng, epochs)
    trained = perf_counter()
    if not finite:
        raise ArithmeticError(f"{setting.title}: the free energy became nan")
    estimator = setting.estimator()
    x = np.linspace(*PANEL, POINTS)[:, None]
    functions = sample_functions(estimator, training.theta, x, rng=predict_rng, samples=FUNCTIONS)
    predicted = perf_counter()

    blocks = estimator.layout.views(training.theta)
    noise = np.full((POINTS, 1), trace.noise[-1])
    predictive = Predictive(functions.mean(axis=0), functions.std(axis=0, ddof=1), noise)
    of_means = estimator.model.predict(blocks["mu"][None], x)[0]
    last = training.history[-max(1, epochs // 10) :]
    pi, sigma1, sigma2 = map(float, trace.prior[-1])
    numbers = Numbers(
        free_energy=float(np.mean([e.kl + e.nll for e in last])),
        kl=float(np.mean([e.kl for e in last])),
        nll=float(np.mean([e.nll for e in last])),
        **_errors(x, predictive, of_means, data),
        pi=pi,
        sigma1=sigma1,
        sigma2=sigma2,
        noise=float(trace.noise[-1]),
        **_gap(predictive, of_means),
        seconds_training=trained - began,
        seconds_functions=predicted - trained,
    )
    return Result(setting, data, training, trace, x, predictive, of_means, numbers)


def train(
    setting: Setting, data: Toy, rng: np.random.Generator, epochs: int, every: int = 10
) -> tuple[Training, Trace, bool]:
    """Train full batch, S = 1, and note the learned numbers every so many epochs.

    Returns
    -------
    tuple of Training, Trace, bool
        The last says whether every free energy was finite; training ends at the first that is not.
    """
    estimator, optimizer = setting.estimator(), Adam(setting.learning_rate)
    state, finite = start(estimator, rng, optimizer), True
    marks, rows = [0], [_learned(setting, estimator, state.theta)]
    while marks[-1] < epochs and finite:
        some = min(every, epochs - marks[-1])
        recipe = Recipe(optimizer, epochs=some, batch_size=len(data.x))
        try:
            state = fit(estimator, state, *data[:2], recipe, rng=rng, progress=False)
        except NonFiniteError as error:
            state, finite = error.training, False
        if state.stopped == "interrupted":
            raise KeyboardInterrupt  # numbers of half a training would look like those of a whole
        marks.append(len(state.history))
        rows.append(_learned(setting, estimator, state.theta))
    table = np.array(rows)
    return state, Trace(np.array(marks), table[:, :3], table[:, 3]), finite


def _learned(setting: Setting, estimator: Reparameterised, theta: Array) -> list[float]:
    blocks = estimator.layout.views(theta)
    noise = setting.likelihood.noise_scale(blocks, 1)
    return [*setting.prior.values(blocks), float(noise[0])]


def domains(
    seed: int = 0, seeds: int = 12, epochs: int = 150, done: Done = unseen
) -> dict[str, Domain]:
    """Train at learning rate 0.1 with the post's raw numbers and with R8's; note every epoch."""
    priors = {
        "as the post trains it": RawMixturePrior(),
        "through a sigmoid (R8)": ScaleMixturePrior(learn=True),
    }
    found = {}
    for name, prior in priors.items():
        setting, traces, finite = Setting(name, prior, learning_rate=FAST), [], []
        for k in counted(range(seed, seed + seeds), done, epochs):
            data_rng, train_rng, _ = np.random.default_rng(k).spawn(3)
            data = one_period(data_rng, noise=NOISE)
            _, trace, good = train(setting, data, train_rng, epochs, every=1)
            traces.append(trace)
            finite.append(good)
        found[name] = Domain(traces, finite)
    return found


def _errors(x: Array, p: Predictive, of_means: Array, data: Toy) -> dict[str, float]:
    """Compare with the truth inside the data, and the epistemic deviations in and out."""
    inside = (x >= DATA[0]) & (x <= DATA[1])
    error = (p.mean - data.truth(x))[inside]
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "rmse_of_means": float(np.sqrt(np.mean((of_means - data.truth(x))[inside] ** 2))),
        "coverage": _coverage(error, p.total[inside]),
        "coverage_epistemic": _coverage(error, p.epistemic[inside]),
        "epistemic_inside": float(p.epistemic[inside].mean()),
        "epistemic_outside": float(p.epistemic[~inside].mean()),
    }


def _coverage(error: Array, deviation: Array) -> float:
    """Return the probability that a new y, N(truth, NOISE^2), is within 1.96 deviations."""
    reach = 1.96 * deviation
    edges = np.stack([error + reach, error - reach]) / (NOISE * 2**0.5)
    upper, lower = (np.array([erf(e) for e in edge]) for edge in edges)
    return float(np.mean(0.5 * (upper - lower)))


def _gap(p: Predictive, of_means: Array) -> dict[str, float]:
    """Measure E_q f(x, w) - f(x, E_q w) and its Monte Carlo standard error (R9)."""
    gap, error = p.mean - of_means, p.epistemic / FUNCTIONS**0.5
    z = np.abs(gap) / error
    return {
        "gap": float(np.sqrt(np.mean(gap**2))),
        "gap_error": float(np.sqrt(np.mean(error**2))),
        "gap_largest": float(gap.flat[z.argmax()]),
        "gap_seen": float(np.mean(z > 4)),
    }
