"""One experiment of the report: data, training, prediction, and the numbers it is judged by.

`run` can be read from top to bottom. `bbb_studies.kebude.report` runs them all: problem 1,
and problem 2 on three ranges, each in the settings that have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy import check
from bbb_numpy.evaluation.predictive import BAND, Predictive, predict
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Model
from bbb_numpy.numeric.elementary import softplus
from bbb_numpy.numeric.standardisation import moments
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.training import Epoch, Recipe, fit, start
from bbb_numpy.training.optimizers import SGD, Adam, Cosine, Optimizer
from bbb_studies.data.toys import Toy, cubic, sine

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A problem of the report's Section 2 on one range."""

    problem: int
    x_range: float  # data lie in [-x_range, x_range], for problem 1 in [0, x_range]
    rows: int  # the report's sample count; it names none for problem 1
    draw: Callable[..., Toy]
    data: tuple[float, float]
    panel: tuple[float, float]  # x of the figure; its ends stand for "outside the data"
    y_limits: tuple[float, float]  # the same for all settings, so that they compare
    # standard deviation of epsilon; the report's prior has it too (errata.md)
    noise: float

    @property
    def interval(self) -> str:
        """The range of the data as text."""
        return f"[{self.data[0]:g}, {self.data[1]:g}]"


CASES = {
    (case.problem, case.x_range): case
    for case in (
        Case(2, 4.0, 500, cubic, (-4.0, 4.0), (-6.0, 6.0), (-230.0, 230.0), 3.0),
        Case(2, 2.5, 300, cubic, (-2.5, 2.5), (-6.0, 6.0), (-130.0, 130.0), 3.0),
        Case(2, 1.0, 125, cubic, (-1.0, 1.0), (-6.0, 6.0), (-60.0, 60.0), 3.0),
        Case(1, 0.5, 500, sine, (0.0, 0.5), (-0.5, 1.0), (-2.6, 2.6), 0.02),
    )
}


@dataclass(frozen=True)
class Setting:
    """How a case is trained; the network is always the report's, 1-100-1 with ReLU."""

    title: str
    what: str  # the way of training in words, for a table
    optimizer: Optimizer
    epochs: int
    batch_size: int
    samples: int
    prior_scale: float | None  # None: sigma_data, the noise of the case
    likelihood: GaussianLikelihood
    standardise: bool
    # of the cases that have this setting
    ranges: tuple[float, ...] = (4.0, 2.5, 1.0, 0.5)
    # what the program behind the report's figures does (errata.md)
    as_drawn: bool = False
    # sigma_data is "the data's standard deviation", as Section 4.2 says
    literal: bool = False


PRINTED_SETTING = Setting(
    "as printed",
    "as its text says: SGD, one row a step, noise of the model 1",
    SGD(1e-3),
    epochs=100,
    batch_size=1,
    samples=1,
    prior_scale=None,
    likelihood=GaussianLikelihood(1.0),
    standardise=False,
)
TRAINING_SETTINGS = {
    "printed": PRINTED_SETTING,
    "as-drawn": replace(
        PRINTED_SETTING,
        title="as drawn",
        what="as the program behind its figures does: noise of the data 9, not 3",
        ranges=(4.0, 2.5, 1.0),
        as_drawn=True,
    ),
    "literal": replace(
        PRINTED_SETTING,
        title="literally",
        what="as printed, the prior as wide as y: 'sigma_data' taken literally",
        ranges=(4.0,),
        literal=True,
    ),
    # In standardised units, weights of prior sd s make functions of variance
    # 100 s^4 (1 + x^2) / 2 + s^2: an sd of 1.6 at x = 1 for s = 0.4, but 10 for s = 1,
    # which a mean field over 100 units cannot bring down where the data are few.
    "should-be": Setting(
        "as it should be",
        "its errors corrected: Adam, standardised x and y, the noise learned",
        Adam(3e-2, schedule=Cosine()),
        epochs=600,
        batch_size=25,
        samples=4,
        prior_scale=0.4,
        likelihood=GaussianLikelihood(0.5, learn=True),
        standardise=True,
    ),
}


def n_updates(experiment: tuple[int, float, str]) -> float:
    """Return the number of optimizer steps of an experiment (problem, x_range, setting)."""
    problem, x_range, setting = experiment
    training = TRAINING_SETTINGS[setting]
    return training.epochs * CASES[problem, x_range].rows / training.batch_size


@dataclass(frozen=True)
class Numbers:
    """Numbers by which Section 8 is judged; standard deviations (sd) in units of y."""

    # nats per example, of y in its own units; last tenth of training
    free_energy: float
    rmse: float  # of the predictive mean to the true curve, inside the data range
    truth_sd: float  # of the true curve there: the rmse of a constant
    # standard deviation of a weight, in units of the network's weights
    prior_scale: float
    noise_learned: float  # or fixed
    noise_true: float  # root mean square of fresh y around the true curve
    coverage: float  # of fresh y in the data range, by the central 95 % interval
    # share of the data range where truth is in mean +- 2 epistemic
    truth_in_epistemic: float
    truth_in_total: float  # the same with mean +- 2 total sd
    # x outside the data at which the truth first leaves mean +- 2 total sd, to the left and to the
    # right; the end of the panel if it does not
    truth_left: float
    truth_right: float
    epistemic_inside: float  # mean epistemic sd inside the data range
    epistemic_left: float  # epistemic sd at the left end of the panel
    epistemic_right: float
    ratio: float  # mean of the last two over epistemic_inside
    misses: float  # |mean - truth| / total sd at the ends of the panel, the larger
    bend_outside: float  # of the mean: 0 a straight line, 1 as bent as the truth
    bend_panel: float  # of the mean over the whole panel, on the same scale
    sigma_start: float  # median sd of the weights, in units of the network's weights
    sigma_end: float
    sigma_law: float | None  # sigma_start exp(learning rate * epochs), for plain SGD
    gradient_error: float  # largest relative error of all coordinates, by complex step


@dataclass(frozen=True, eq=False)
class Result:
    """One experiment: data, training, predictions and numbers."""

    case: Case
    setting: Setting
    seed: int
    data: Toy
    theta: Array
    history: tuple[Epoch, ...]  # nats, of y in its own units
    x: Array  # (G, 1)  the panel
    predictive: Predictive  # (G, 1) each, in units of y
    numbers: Numbers

    @property
    def name(self) -> str:
        """File name without suffix."""
        key = next(
            key
            for key, value in TRAINING_SETTINGS.items()
            if value.title == self.setting.title
        )
        return f"problem{self.case.problem}-range{self.case.x_range:g}-{key}"


def run(
    problem: int,
    x_range: float,
    setting: str,
    *,
    seed: int = 0,
    rows: int | None = None,
    epochs: int | None = None,
) -> Result:
    """Run one experiment: draw data, train, predict and measure; same seed, same numbers.

    Parameters
    ----------
    problem, x_range : int, float
        A key of `CASES`.
    setting : str
        A key of `TRAINING_SETTINGS`. For "as-drawn" the noise of the data is three times as large
        and "epistemic" is `last_layer`; the other settings share their data.
    seed : int
        Of the data, the training and the predictions.
    rows, epochs : int, optional
        Number of training rows and of passes over them, instead of the report's.

    Returns
    -------
    Result
        Data, trained parameters, predictions over the panel, and numbers.

    Raises
    ------
    KeyError
        If there is no such case or setting.
    KeyboardInterrupt
        If training was interrupted: half a training has no numbers.
    """
    case = CASES[problem, x_range]
    training = TRAINING_SETTINGS[setting]
    data_rng, train_rng, predict_rng = np.random.default_rng(seed).spawn(3)
    noise = case.noise
    if training.as_drawn:
        # The report's program takes the variance for the standard deviation.
        noise = case.noise**2
    rows = case.rows if rows is None else rows
    data = case.draw(data_rng, rows, *case.data, noise)
    fresh = case.draw(data_rng, 2000, *case.data, noise)

    x_mean, x_sd = moments(data.x, training.standardise)  # (1,) each
    y_mean, y_sd = moments(data.y, training.standardise)
    x = (data.x - x_mean) / x_sd
    y = (data.y - y_mean) / y_sd
    sigma_data = case.noise
    if training.literal:
        sigma_data = float(data.y.std())
    prior = GaussianPrior(training.prior_scale or sigma_data)
    posterior = MeanField()
    if training.as_drawn:
        posterior = MeanField(0.01)
    model = Model(MLP((1, 100, 1)), prior, training.likelihood)
    estimator = Reparameterised(model, posterior)
    state = start(estimator, train_rng, training.optimizer)
    epochs = training.epochs if epochs is None else epochs
    recipe = Recipe(
        training.optimizer,
        epochs,
        batch_size=training.batch_size,
        samples=training.samples,
    )
    trained = fit(estimator, state, x, y, recipe, rng=train_rng)
    if trained.stopped == "interrupted":
        # The numbers of half a training would look like those of a whole one.
        raise KeyboardInterrupt

    low, high = (-7.5, 7.5) if training.as_drawn else case.panel
    panel = np.linspace(low, high, 241)[:, None]
    x_all = (np.concatenate([panel, fresh.x]) - x_mean) / x_sd
    predictive = predict(estimator, trained.theta, x_all, rng=predict_rng, samples=500)
    if training.as_drawn:
        epistemic = last_layer(estimator, trained.theta, x_all)
        predictive = predictive._replace(epistemic=epistemic)
    predictive = Predictive(
        mean=y_mean + y_sd * predictive.mean,
        epistemic=y_sd * predictive.epistemic,
        aleatoric=y_sd * predictive.aleatoric,
    )
    on_panel = Predictive._make(m[: len(panel)] for m in predictive)
    on_fresh = Predictive._make(m[len(panel) :] for m in predictive)

    # A density of y is that of the standardised y over y_sd, so each example costs
    # log(y_sd) nats more: only then do the free energies of both settings compare.
    shift = len(x) * log(y_sd[0])
    history = tuple(
        e._replace(objective=e.objective + shift, nll=e.nll + shift)
        for e in trained.history
    )
    # The free energy of one epoch is noisy: average over the last tenth.
    last_objectives = [e.objective for e in history[-max(1, len(history) // 10) :]]
    gradient_error = _gradient_error(estimator, trained.theta, x, y, predict_rng)
    noise_scale = training.likelihood.noise_scale(
        estimator.layout.views(trained.theta), 1
    )
    sigma_start = _median_sigma(estimator, state.theta)
    sigma_law = None
    if isinstance(training.optimizer, SGD):
        sigma_law = sigma_start * exp(training.optimizer.learning_rate * len(history))
    numbers = Numbers(
        free_energy=float(np.mean(last_objectives)) / len(x),
        prior_scale=prior.scale,
        noise_learned=float(y_sd[0] * noise_scale[0]),
        noise_true=float(np.sqrt(np.mean((fresh.y - fresh.truth(fresh.x)) ** 2))),
        coverage=float(
            np.mean(np.abs(fresh.y - on_fresh.mean) < 1.96 * on_fresh.total)
        ),
        **_inside_and_outside(case, panel, on_panel, data.truth(panel)),
        sigma_start=sigma_start,
        sigma_end=_median_sigma(estimator, trained.theta),
        sigma_law=sigma_law,
        gradient_error=gradient_error,
    )
    return Result(
        case=case,
        setting=training,
        seed=seed,
        data=data,
        theta=trained.theta,
        history=history,
        x=panel,
        predictive=on_panel,
        numbers=numbers,
    )


def _gradient_error(
    estimator: Reparameterised,
    theta: Array,
    x: Array,
    y: Array,
    rng: np.random.Generator,
) -> float:
    """Return the largest relative error of the gradient on a minibatch of eight rows."""
    eps = estimator.draw(rng, 2)
    share = 8 / len(x)
    gradient = check(
        lambda theta: estimator.value_and_grad(theta, eps, x[:8], y[:8], share),
        theta,
        blocks=estimator.layout.slices,
    )
    return float(gradient.error)


def _median_sigma(estimator: Reparameterised, theta: Array) -> float:
    """Return the median standard deviation of the weights under the posterior."""
    return float(np.median(softplus(estimator.layout.views(theta)["rho"])))


def last_layer(estimator: Reparameterised, theta: Array, x: Array) -> Array:
    """Return the standard deviation that the report's program draws as its band.

    It is that of the last layer alone, behind fixed hidden units, and the sigma of the bias is
    not squared: sqrt(a^2 sigma_W^2 + sigma_b). The program draws the units anew at every x; here
    they are those of the mean weights.

    Parameters
    ----------
    estimator : Reparameterised
        With a mean-field posterior over a network 1-H-1 with ReLU.
    theta : ndarray
        Parameters of the posterior.
    x : ndarray (N, 1)
        In the units of the network.

    Returns
    -------
    ndarray (N, 1)
    """
    q = estimator.layout.views(theta)
    net = estimator.model.network.layout
    mu = net.views(q["mu"])
    sigma = net.views(softplus(q["rho"]))
    a = np.maximum(x @ mu["W0"] + mu["b0"], 0.0)  # (N, H)
    return np.sqrt(a**2 @ sigma["W1"] ** 2 + sigma["b1"])


def _inside_and_outside(
    case: Case, x: Array, p: Predictive, truth: Array
) -> dict[str, float]:
    """Compare the prediction with the truth inside and outside the data range."""
    x = x[:, 0]
    truth = truth[:, 0]
    mean, epistemic, total = p.mean[:, 0], p.epistemic[:, 0], p.total[:, 0]
    low, high = case.data
    inside = (x >= low) & (x <= high)
    error = np.abs(mean - truth)
    leaves_band = error > BAND * total
    ends = [0, -1]
    return {
        "rmse": float(np.sqrt(np.mean(error[inside] ** 2))),
        "truth_sd": float(truth[inside].std()),
        "truth_in_epistemic": float(np.mean(error[inside] <= BAND * epistemic[inside])),
        "truth_in_total": float(np.mean(~leaves_band[inside])),
        "truth_left": float(x[leaves_band & (x < low)].max(initial=x[0])),
        "truth_right": float(x[leaves_band & (x > high)].min(initial=x[-1])),
        "epistemic_inside": float(epistemic[inside].mean()),
        "epistemic_left": float(epistemic[0]),
        "epistemic_right": float(epistemic[-1]),
        "ratio": float(epistemic[ends].mean() / epistemic[inside].mean()),
        "misses": float((error[ends] / total[ends]).max()),
        "bend_outside": 0.5
        * sum(_bend(x[s], mean[s], truth[s]) for s in (x <= low, x >= high)),
        "bend_panel": _bend(x, mean, truth),
    }


def _bend(x: Array, mean: Array, truth: Array) -> float:
    """Return how bent `mean` is, relative to `truth`.

    Each is compared with its own least-squares line: the ratio of the two root mean square errors.
    """
    line = np.stack([np.ones_like(x), x], axis=1)
    projection = line @ np.linalg.pinv(line)
    rms_bends = [
        float(np.sqrt(np.mean((v - projection @ v) ** 2))) for v in (mean, truth)
    ]
    return rms_bends[0] / rms_bends[1]
