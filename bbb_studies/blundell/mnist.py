"""MNIST as Blundell et al. (2015, Section 5.1) classify it, in three columns; pruning.

The paper's words, followed literally; F minimised well; what reaches the paper's number. Of a row
with several candidates, each trained briefly, the one that makes the fewest errors on the
validation images is trained on. Test images decide nothing. After every epoch the state is stored,
so that the same call goes on after an interruption.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, product
from math import exp, log1p
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.evaluation import pruning
from bbb_numpy.evaluation.predictive import predict_classes
from bbb_numpy.gradients.estimator import GradientEstimator
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Model
from bbb_numpy.model.kl_weights import (
    Shares,
    geometric_kl_weights,
    proportional_kl_weights,
)
from bbb_numpy.model.objectives import MAP, MLE, FreeEnergy
from bbb_numpy.numeric.reading import read_json
from bbb_numpy.numeric.storing import Format, read_state, write_state
from bbb_numpy.parts.discrete import CategoricalLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.parts.priors import GaussianPrior, LayerwiseGaussianPrior, Prior
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    plain_numbers,
)
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import SGD, Adam, Cosine, Optimizer, OptimizerState
from bbb_numpy.training.state import Epoch, Training
from bbb_studies.data import mnist as data
from bbb_studies.data.mnist import MNIST
from bbb_studies.dropout import Dropout
from bbb_studies.kit import (
    Claim,
    claims,
    classes_of_mean,
    listed,
    panels,
    plain,
    text,
    values,
    write,
)
from bbb_studies.processes import in_processes
from bbb_studies.progress import counted, steps
from bbb_studies.sampled_prior import LocalSampledPrior

Array = NDArray[Any]
TRAINING_METHODS = ("SGD", "MAP", "BBB", "dropout")
STUDY_COLUMNS = ("the paper's words", "F minimised", "its number")
WIDTHS = (400, 800, 1200)
# The paper's grid of pi, -log sigma1 and -log sigma2
MIXTURE_PRIORS = tuple(product((0.25, 0.5, 0.75), (0, 1, 2), (6, 7, 8)))
# Shares of inputs and units that dropout leaves out of a network most of whose weights are removed
SPARSE_DROPOUT_RATES = (0.05, 0.15, 0.15)
# Standard deviation of the initial weights: sqrt(2 / 784), which ReLU layers propagate unchanged
INITIAL_SCALE = 0.05
KL_SHARES: dict[str, Shares] = {
    "proportional": proportional_kl_weights,
    "geometric": geometric_kl_weights,
}


@dataclass(frozen=True)
class Candidate:
    """How one network is trained. Of the candidates of one row the best is trained to the end."""

    column: str  # one of STUDY_COLUMNS
    row: str
    method: str  # one of TRAINING_METHODS
    epochs: int
    hidden: int = 400  # units of each of two layers
    optimizer: str = "Adam"  # or 'SGD'
    learning_rate: float = 1e-3
    # (pi, -log sigma1, -log sigma2) of a mixture, or the standard deviation of a Gaussian; None:
    # a Gaussian for each layer whose standard deviation is learned
    prior: tuple[float, int, int] | float | None = (0.5, 0, 6)
    shares: str = "proportional"
    samples: int = 1  # S, weight vectors of a step
    rho: float = -5.0  # every sigma starts at softplus(rho); BBB only
    beta: float = 1.0  # weight of the KL term; 1 is F
    # local reparameterisation, which samples outputs in place of weights
    local: bool = False
    # share of the weights that is removed while the others are trained
    removed: float = 0.0
    # epochs before the first weight is removed, with a learning rate schedule of their own; 0: a
    # quarter of all epochs, under one schedule
    dense: int = 0
    # trained on the validation images too, after all choices have been made
    all_images: bool = False
    start: int = 0  # added to the seed
    # all candidates of the row are trained to the end, and their predictions averaged
    averaged: bool = False

    @property
    def name(self) -> str:
        """The settings that matter, as printed in the tables."""
        parts = [f"{self.hidden} units", f"{self.optimizer} {self.learning_rate:g}"]
        if self.method in ("MAP", "BBB"):
            prior = "N(0, learned^2) by layer"
            if isinstance(self.prior, tuple):
                prior = "pi {:g}, -log sigma1 {}, -log sigma2 {}".format(*self.prior)
            elif self.prior:
                prior = f"N(0, {self.prior:.3g}^2)"
            parts += [prior]
        if self.shares != "proportional":
            parts.append(f"KL weights {self.shares}")
        if self.samples != 1:
            parts.append(f"S = {self.samples}")
        if self.local:
            parts.append("local reparameterisation")
        if self.beta != 1.0:
            parts.append(f"KL times {self.beta:g}")
        if self.removed:
            parts.append(f"{self.removed:.0%} removed on the way")
        if self.all_images:
            parts.append("validation images too")
        return ", ".join(parts)


PAPERS_WORDS, F_MINIMISED, PAPERS_NUMBER = STUDY_COLUMNS
# Bayes by Backprop as the paper trains it, and by local reparameterisation
LITERAL_OPTIONS: dict[str, Any] = {"optimizer": "SGD", "shares": "geometric"}
LOCAL_OPTIONS: dict[str, Any] = {"prior": 1.0, "local": True}

CANDIDATES = (
    Candidate(PAPERS_WORDS, "SGD", "SGD", 15, optimizer="SGD"),
    Candidate(PAPERS_WORDS, "BBB, mixture", "BBB", 8, **LITERAL_OPTIONS),
    Candidate(PAPERS_WORDS, "BBB, Gaussian", "BBB", 8, **LITERAL_OPTIONS, prior=1.0),
    Candidate(F_MINIMISED, "F, mixture", "BBB", 10),
    Candidate(F_MINIMISED, "F, Gaussian", "BBB", 15, prior=None, local=True),
    Candidate(PAPERS_NUMBER, "tempered", "BBB", 20, **LOCAL_OPTIONS, beta=0.1),
    Candidate(PAPERS_NUMBER, "MC dropout", "dropout", 15),
    Candidate(
        PAPERS_NUMBER, "sparse", "BBB", 20, **LOCAL_OPTIONS, beta=0.1, removed=0.98
    ),
)

# Predictions of these four networks are averaged: two starts of each of two
AVERAGED_CANDIDATES = tuple(
    replace(candidate, averaged=True, start=start)
    for candidate in (
        Candidate(PAPERS_NUMBER, "several starts", "dropout", 40, 800),
        Candidate(
            PAPERS_NUMBER, "several starts", "BBB", 20, **LOCAL_OPTIONS, beta=0.1
        ),
    )
    for start in (0, 1)
)
SPARSE_CANDIDATE = Candidate(
    PAPERS_NUMBER,
    "sparse, 1200",
    "BBB",
    24,
    1200,
    **LOCAL_OPTIONS,
    beta=0.03,
    removed=0.98,
)
SPARSE_DROPOUT_CANDIDATE = Candidate(
    PAPERS_NUMBER, "MC dropout, sparse", "dropout", 85, 800, removed=0.98, dense=40
)
# The widths, epochs and priors of the paper; first what takes minutes, not hours
PAPER_CANDIDATES = (
    *AVERAGED_CANDIDATES,
    *(
        replace(c, row=f"{c.row}, all images", all_images=True)
        for c in AVERAGED_CANDIDATES
    ),
    SPARSE_DROPOUT_CANDIDATE,
    *(
        replace(
            SPARSE_DROPOUT_CANDIDATE,
            row="several sparse starts",
            averaged=True,
            start=i,
        )
        for i in range(3)
    ),
    Candidate(
        PAPERS_NUMBER, "tempered, 1200", "BBB", 30, 1200, **LOCAL_OPTIONS, beta=0.03
    ),
    SPARSE_CANDIDATE,
    Candidate(PAPERS_NUMBER, "MC dropout, 800", "dropout", 40, 800),
    Candidate(PAPERS_NUMBER, "tempered, 400", "BBB", 40, **LOCAL_OPTIONS, beta=0.1),
    *(
        Candidate(
            PAPERS_NUMBER,
            f"mixture, {beta:g}, {i}",
            "BBB",
            40,
            local=True,
            beta=beta,
            start=i,
        )
        for beta in (0.1, 0.01)
        for i in range(3)
    ),
    Candidate(F_MINIMISED, "F, Gaussian, 400", "BBB", 100, prior=None, local=True),
    *(
        Candidate(F_MINIMISED, "F, mixture, 400", "BBB", 600, prior=prior)
        for prior in MIXTURE_PRIORS
    ),
    *(Candidate(PAPERS_WORDS, f"SGD, {h}", "SGD", 600, h, "SGD") for h in WIDTHS),
    *(
        Candidate(PAPERS_WORDS, f"SGD, dropout, {h}", "dropout", 600, h, "SGD")
        for h in WIDTHS
    ),
    *(
        Candidate(
            PAPERS_WORDS,
            f"BBB, mixture, {h}",
            "BBB",
            600,
            h,
            **LITERAL_OPTIONS,
            prior=prior,
        )
        for h in WIDTHS
        for prior in MIXTURE_PRIORS
    ),
    *(
        Candidate(
            PAPERS_WORDS,
            f"BBB, Gaussian, {h}",
            "BBB",
            600,
            h,
            **LITERAL_OPTIONS,
            prior=exp(-wide),
        )
        for h in WIDTHS
        for wide in (0, 1, 2)
    ),
)


@dataclass(frozen=True)
class Settings:
    """Size of the study; the defaults are those of the command."""

    seed: int = 0
    train: int = 50_000  # the first images of the training part
    validation: int = 10_000  # the last ones
    test: int = 10_000
    batch: int = 128
    search: int = 5  # epochs of every candidate, where a row has more than one
    draws: int = 20  # weight vectors that predictions are averaged over
    pruning_draws: int = 5


@dataclass
class Run:
    """State of one network in training: all that its next epoch depends on."""

    training: Training
    rng: np.random.Generator
    # of the mean network, validation images
    errors: list[float] = field(default_factory=list)
    seconds: float = 0.0  # of processor time


class Stored(NamedTuple):
    """Content of a network's file."""

    candidate: Candidate
    settings: Settings
    run: Run


RUN_FORMAT = Format(
    "bbb_numpy.mnist", 4, (Candidate, Settings, Run, Training, OptimizerState, Epoch)
)
RUN_FORMAT_NAME = f"{RUN_FORMAT.name} {RUN_FORMAT.version}"


def build(
    candidate: Candidate, share_removed_so_far: float | None = None
) -> GradientEstimator:
    """Return the gradient estimator of a candidate: network, prior, likelihood and objective.

    Parameters
    ----------
    candidate : Candidate
        How the network is trained.
    share_removed_so_far : float, optional
        Share of the weights that is removed. Dropout leaves out fewer units the larger it is. By
        default the share at the end of training.
    """
    c = candidate
    prior: Prior = LayerwiseGaussianPrior(learn=True)
    if isinstance(c.prior, tuple):
        pi, wide, narrow = c.prior
        prior = ScaleMixturePrior(pi, exp(-wide), exp(-narrow))
    elif c.prior:
        prior = GaussianPrior(c.prior)
    model = Model(MLP((784, c.hidden, c.hidden, 10)), prior, CategoricalLikelihood())
    if c.method == "dropout":
        if share_removed_so_far is None:
            share_removed_so_far = c.removed
        progress = log1p(-share_removed_so_far) / (log1p(-c.removed) or 1.0)
        rates = tuple(
            a + progress * (b - a)
            for a, b in zip(Dropout.rates, SPARSE_DROPOUT_RATES, strict=True)
        )
        return Dropout(model, PointMass(INITIAL_SCALE), MLE(), rates)
    if c.method == "SGD":
        return Reparameterised(model, PointMass(INITIAL_SCALE), MLE())
    if c.method == "MAP":
        return Reparameterised(model, PointMass(INITIAL_SCALE), MAP())
    estimator: type[GradientEstimator] = Reparameterised
    if c.local and isinstance(prior, ScaleMixturePrior):
        estimator = LocalSampledPrior
    elif c.local:
        estimator = LocalReparameterisation
    return estimator(model, MeanField(INITIAL_SCALE, c.rho), FreeEnergy(c.beta))


@dataclass(frozen=True)
class MaskedAdam(Adam):
    """Adam for the weights that are not removed; the others keep their values."""

    mask: Any = None  # 1 or 0 for each number of theta

    def update(
        self,
        theta: Array,
        grad: Array,
        state: OptimizerState,
        factor: float,
        scale: float = 1.0,
    ) -> None:
        """Take one step of Adam in place, with the gradient of the removed weights set to 0.

        Parameters
        ----------
        theta, grad, state, factor, scale
            As in `Optimizer.update`; `grad` is changed, too.
        """
        grad *= self.mask
        super().update(theta, grad, state, factor)


def optimizer_for(
    candidate: Candidate, epoch: int = 0, kept_weights: Array | None = None
) -> Optimizer:
    """Return the optimizer of one epoch.

    The learning rate falls along half a cosine: over all epochs, or, if the candidate has `dense`
    epochs, over these and anew over the others.

    Parameters
    ----------
    candidate : Candidate
        Names optimizer and learning rate.
    epoch : int
        Number of epochs before this one.
    kept_weights : ndarray, optional
        As returned by `remove_weights`: 0 for the numbers of theta that must not change.
    """
    first, last = candidate.dense, candidate.epochs
    if epoch < candidate.dense:
        first, last = 0, candidate.dense

    def schedule(part: float, _: int) -> float:
        return Cosine()(epoch - first + part, last - first)

    if candidate.optimizer == "SGD":
        return SGD(candidate.learning_rate, schedule)
    adam = Adam(candidate.learning_rate, schedule=schedule)
    if kept_weights is None:
        return adam
    return MaskedAdam(adam.learning_rate, schedule=schedule, mask=kept_weights)


# rho of a removed weight in training: sigma is 1e-13, for a signal-to-noise ratio needs one > 0
REMOVED_RHO = -30.0


def share_removed(candidate: Candidate, epoch: int) -> float:
    """Return the share of weights that is removed in an epoch (Zhu and Gupta 2017, equation 1).

    The share rises as a cubic from a quarter to three quarters of the epochs, or in the first half
    of those after the `dense` ones: fast while many weights are superfluous, slowly at the end.

    Parameters
    ----------
    candidate : Candidate
        Its share `removed` is reached in the end.
    epoch : int
        Number of epochs before this one.
    """
    first_epoch = candidate.dense or candidate.epochs / 4
    length = max((candidate.epochs - candidate.dense) / 2, 1.0)
    progress = min(max((epoch + 1 - first_epoch) / length, 0.0), 1.0)
    return candidate.removed * (1.0 - (1.0 - progress) ** 3)


def weights_to_remove(
    estimator: GradientEstimator, theta: Array, share: float
) -> NDArray[np.bool_]:
    """Return which weights to remove: those of lowest signal-to-noise ratio or magnitude.

    Parameters
    ----------
    estimator : GradientEstimator
        With a mean-field posterior weights are ranked by signal-to-noise ratio, else by magnitude.
    theta : ndarray
        Parameters of the posterior, or the weights of a point estimate.
    share : float
        Share of the entries of all weight matrices; biases stay.

    Returns
    -------
    ndarray (P,) of bool
        True where a weight is to be removed.
    """
    magnitude = np.abs(theta)
    if isinstance(estimator.posterior, MeanField):
        magnitude = pruning.signal_to_noise_of(estimator, theta)
    matrices = pruning.matrices(estimator.model.layout)
    return pruning.lowest(magnitude, share, matrices)


def remove_weights(
    candidate: Candidate, training: Training, share: float
) -> Array | None:
    """Remove weights from a network in training, in place.

    Parameters
    ----------
    candidate : Candidate
        How the network is trained.
    training : Training
        Its parameters and the state of the optimizer are changed.
    share : float
        Share of the weights that is to be removed, those removed before included.

    Returns
    -------
    ndarray or None
        1 for the numbers of theta that are kept, 0 for the others; None if `share` is 0.
    """
    if not share:
        return None
    estimator = build(candidate)
    kept_weights = np.ones_like(training.theta)
    weights = training.theta
    # Removing w raises the loss by about w^2 E[grad^2] (LeCun et al. 1990).
    if candidate.method == "dropout":
        weights = weights * np.sqrt(training.optimizer_state.arrays["v"])
    removed = weights_to_remove(estimator, weights, share)
    for array, rho in ((kept_weights, 0.0), (training.theta, REMOVED_RHO)):
        blocks = estimator.layout.views(array)
        blocks["mu"][removed] = 0.0
        if "rho" in blocks:
            blocks["rho"][removed] = rho
    for array in training.optimizer_state.arrays.values():
        array *= (
            kept_weights  # else moments of past gradients would move removed weights
        )
    return kept_weights


def train_epoch(
    run: Run, candidate: Candidate, settings: Settings, x: Array, y: Array
) -> None:
    """Train a network for one more epoch.

    Parameters
    ----------
    run : Run
        Changed in place.
    candidate, settings : Candidate, Settings
        How the network is trained.
    x, y : ndarray (N, 784) and (N, 10), float32
        Training images and their one-hot labels.

    Raises
    ------
    KeyboardInterrupt
        If training was interrupted; `run` is then as before.
    """
    start_time = time.process_time()
    epoch = len(run.errors)
    c = candidate
    share = share_removed(c, epoch)
    kept_weights = remove_weights(c, run.training, share)
    recipe = Recipe(
        optimizer=optimizer_for(c, epoch, kept_weights),
        epochs=1,
        batch_size=settings.batch,
        samples=c.samples,
        kl_weights=KL_SHARES[c.shares],
    )
    trained = fit(
        build(c, share), run.training, x, y, recipe, rng=run.rng, progress=False
    )
    if trained.stopped == "interrupted":
        raise KeyboardInterrupt
    run.training = trained
    run.seconds += time.process_time() - start_time


def load(path: Path, candidate: Candidate, settings: Settings) -> Run:
    """Return the state of a network in training: the stored one, or that before the first epoch.

    Parameters
    ----------
    path : Path
        File of the state; it need not exist.
    candidate, settings : Candidate, Settings
        Those with which the file was written. Networks of one method and `start` begin alike.

    Raises
    ------
    ValueError
        If the file is damaged, or was written with another candidate or other settings.
    """
    if not path.exists():
        estimator = build(candidate)
        seed = settings.seed + candidate.start
        rng = np.random.default_rng([seed, TRAINING_METHODS.index(candidate.method)])
        return Run(start(estimator, rng, optimizer_for(candidate), np.float32), rng)
    stored: Stored = read_state(path, Stored, RUN_FORMAT)
    if (stored.candidate, stored.settings) != (candidate, settings):
        raise ValueError(
            f"{path} was written for another network or with other settings; delete it"
        )
    return stored.run


class Images(NamedTuple):
    """Inputs (N, 784) in float32, pixels / 126, and labels (N,) of the three parts."""

    x: Array
    labels: Array
    x_validation: Array
    labels_validation: Array
    x_test: Array
    labels_test: Array


def prune_weights(candidate: Candidate, theta: Array, share: float) -> Array:
    """Return a copy of theta with weights removed.

    Parameters
    ----------
    candidate : Candidate
        How the network was trained.
    theta : ndarray
        Its parameters.
    share : float
        Share of the weights that is exactly 0 in the result; with BBB in every draw.
    """
    estimator = build(candidate)
    if candidate.method != "BBB":
        return np.where(weights_to_remove(estimator, theta, share), 0, theta)
    return pruning.prune(
        estimator, theta, share, pruning.matrices(estimator.model.layout)
    )


Networks = Mapping[Candidate, Array]  # the theta of each that is averaged over


def probabilities(
    networks: Networks, settings: Settings, x: Array, draws: int
) -> Array:
    """Return class probabilities averaged over networks and over draws of their weights.

    Parameters
    ----------
    networks : mapping
        Parameters of each network by its candidate.
    settings : Settings
        Whose seed is used: every theta of a candidate is given the same noise.
    x : ndarray (N, 784)
        Images.
    draws : int
        Weight vectors of each network trained by BBB or dropout; of the others there is one.

    Returns
    -------
    ndarray (N, 10)
    """
    proba_sum: Any = 0
    for c, theta in networks.items():
        rng = np.random.default_rng([settings.seed + c.start, 100])
        samples = draws if c.method in ("BBB", "dropout") else 1
        predicted = predict_classes(build(c), theta, x, rng=rng, samples=samples)
        proba_sum = proba_sum + predicted.proba
    return np.asarray(proba_sum / len(networks))


def measure(
    images: Images, settings: Settings, runs: Mapping[Candidate, Run]
) -> dict[str, Any]:
    """Return the numbers of a row of the tables, those on the test images included.

    Parameters
    ----------
    images : Images
        All three parts.
    settings : Settings
        Those of `reproduce`.
    runs : mapping
        The trained networks of the row by candidate; predictions of several are averaged.

    Returns
    -------
    dict
        As stored in ``numbers.json``. F, KL and NLL are lists by epoch, in nats per image, of the
        first network. F has the KL at full weight, whatever was minimised; F and KL are None for a
        point estimate and while weights are removed.
    """
    networks = {
        c: prune_weights(c, run.training.theta, c.removed) for c, run in runs.items()
    }
    c, theta = next(iter(networks.items()))
    run = next(iter(runs.values()))
    labels = images.labels_test
    n_images = len(training_images(images, c)[0])
    draws = settings.draws
    validation_proba = probabilities(networks, settings, images.x_validation, draws)
    proba = probabilities(networks, settings, images.x_test, draws)
    is_wrong_by_mean = classes_of_mean(build(c).model, theta, images.x_test) != labels
    validation_error = float(
        np.mean(validation_proba.argmax(1) != images.labels_validation)
    )
    label_proba = np.maximum(
        proba[np.arange(len(labels)), labels], np.finfo(np.float32).tiny
    )
    has_kl = [
        c.method == "BBB" and not share_removed(c, e) for e in range(len(run.errors))
    ]
    nll = [epoch.nll / n_images for epoch in run.training.history]
    kl = [
        epoch.kl / n_images if epoch_has_kl else None
        for epoch, epoch_has_kl in zip(run.training.history, has_kl, strict=True)
    ]
    histogram = None
    if all(has_kl):
        decibels = pruning.decibels(pruning.signal_to_noise_of(build(c), theta))
        histogram = [
            array.tolist()
            for array in np.histogram(decibels[np.isfinite(decibels)], 80)
        ]
    names = Counter(c.name for c in runs)
    chosen = list(names)
    if len(runs) > 1:
        chosen = [f"{n} times ({name})" for name, n in names.items()]
    return {
        "column": c.column,
        "chosen": " and ".join(chosen),
        "epochs": len(run.errors),
        "seconds": sum(run.seconds for run in runs.values()),
        "F": [None if k is None else k + n for k, n in zip(kl, nll, strict=True)],
        "KL": kl,
        "NLL": nll,
        "errors": [None if c.all_images else error for error in run.errors],
        "validation": None if c.all_images else validation_error,
        "test": float(np.mean(proba.argmax(1) != labels)),
        "test, mean network": float(np.mean(is_wrong_by_mean))
        if len(runs) == 1
        else None,
        "test nll": float(-np.log(label_proba, dtype=float).mean()),
        "pruning": None
        if c.removed
        else pruned_test_errors(images, settings, networks),
        "ratios": histogram,
    }


def pruned_test_errors(
    images: Images, settings: Settings, networks: Networks
) -> list[float]:
    """Return the test errors after pruning, one for each of `PRUNED_SHARES`.

    Parameters
    ----------
    images, settings : Images, Settings
        Those of `measure`.
    networks : mapping
        Parameters of each network by its candidate.
    """
    errors = []
    for share in PRUNED_SHARES:
        pruned_networks = {
            c: prune_weights(c, theta, share) for c, theta in networks.items()
        }
        proba = probabilities(
            pruned_networks, settings, images.x_test, settings.pruning_draws
        )
        errors.append(float(np.mean(proba.argmax(1) != images.labels_test)))
    return errors


PRUNED_SHARES = (0.0, 0.5, 0.75, 0.95, 0.98)  # shares of the paper's table
PERCENT_LEFT = [100 * (1.0 - share) for share in PRUNED_SHARES]
COLUMN_LINE_STYLES = dict(zip(STUDY_COLUMNS, (":", "--", "-"), strict=True))
# Test errors (%) in the README of https://github.com/JavierAntoran/Bayesian-Neural-Networks
ANTORAN_TEST_ERRORS = {
    "MAP": 1.58,
    "Bayes by Backprop, Gaussian prior": 2.60,
    "Bayes by Backprop, mixture of Gaussians": 2.38,
    "Bayes by Backprop, Laplace prior": 2.28,
    "Bayes by Backprop, local reparameterisation": 2.61,
    "MC dropout": 1.37,
    "SGLD": 1.76,
}
# of the rows, in their order
ROW_COLOURS = (BLACK, GREY, ORANGE, BLUE, SKY, VERMILLION, GREEN, PURPLE)
Numbers = Mapping[str, Any]


def draw_figure(rows: Numbers) -> Figure:
    """Draw F, KL, NLL and errors by epoch, signal-to-noise ratios, errors by share removed."""
    figure, axes = panels(15.0, 9.0, 2, 3)
    curves = (
        ("F", "KL + NLL (nats per image)"),
        ("KL", "KL(q || prior) (nats per image)"),
        ("NLL", "NLL of training images (nats per image)"),
        ("errors", "validation images classified wrongly (%)"),
    )
    lines = []
    for (name, row), colour in zip(rows.items(), cycle(ROW_COLOURS), strict=False):
        line_style: dict[str, Any] = {
            "color": colour,
            "linestyle": COLUMN_LINE_STYLES[row["column"]],
        }
        for ax, (key, _) in zip(axes.flat, curves, strict=False):
            curve = np.array(row[key], float)
            if key == "errors":
                curve = 100 * curve
            (line,) = ax.plot(
                np.arange(1, len(curve) + 1), curve, label=name, **line_style
            )
        lines.append(line)
        if row["ratios"]:
            count, edges = map(np.array, row["ratios"])
            axes[1, 1].stairs(count / count.sum() / np.diff(edges), edges, **line_style)
        if row["pruning"]:
            axes[1, 2].plot(
                PERCENT_LEFT, 100 * np.array(row["pruning"]), marker="o", **line_style
            )
    for ax, (_, label) in zip(axes.flat, curves, strict=False):
        ax.set_yscale("log")
        plain_numbers(ax.yaxis, minor="235")
        ax.set(xlabel="epoch", ylabel=label)
    axes[1, 1].set(
        xlabel="signal-to-noise ratio 10 log10(|μ| / σ) (dB)", ylabel="density (per dB)"
    )
    axes[1, 2].set(xscale="log", yscale="log")
    plain_numbers(axes[1, 2].xaxis)
    axes[1, 2].set_xticks(PERCENT_LEFT, [f"{curve:.0f}" for curve in PERCENT_LEFT])
    axes[1, 2].invert_xaxis()
    plain_numbers(axes[1, 2].yaxis, minor="235")
    axes[1, 2].set(
        xlabel="weights left (%)", ylabel="test images classified wrongly (%)"
    )
    figure.legend(handles=lines, loc="outside lower center", ncols=4)
    return figure


def lay_out(numbers: Numbers) -> str:
    """Return the tables that are printed: settings, errors, and which claims of the paper hold."""
    rows = numbers["rows"]
    minutes = sum(row["seconds"] for row in rows.values()) / 60

    def errors(row: Numbers) -> str:
        test_error = (
            f"{_percent(row['test'])} +- {100 * _binomial_sd(row['test'], numbers):.2f}"
        )
        percentages = (
            _percent(row["validation"]),
            test_error,
            _percent(row["test, mean network"]),
        )
        kl = "" if row["KL"][-1] is None else f"{row['KL'][-1]:.2f}"
        likelihoods = f"{row['test nll']:.4f} | {row['NLL'][-1]:.4f}"
        return " | ".join([str(row["epochs"]), *percentages, likelihoods, kl])

    def pruned(index: int) -> str:
        errors_by_row = (row["pruning"] for row in rows.values())
        return " | ".join(
            _percent(errors[index]) if errors else "" for errors in errors_by_row
        )

    return text(
        values(
            "MNIST, 784-hidden-hidden-10, ReLU, pixels / 126; images, epochs, weight vectors.",
            "setting",
            numbers["settings"] | {"minutes of processor time": f"{minutes:.1f}"},
        ),
        listed(
            "What was trained; where there is a choice, the best on validation images.",
            "row | column | trained with",
            rows,
            "{0[column]} | {0[chosen]}",
        ),
        listed(
            "Errors +- binomial standard deviation; NLL, KL in nats per image (train: the last "
            "epoch).",
            "row | epochs | validation | test | mean weights | test NLL | train NLL | KL",
            rows,
            errors,
        ),
        listed(
            "Test errors without the weights of lowest |mu| / sigma; of SGD, the smallest.",
            " | ".join(["removed", *rows]),
            [(_percent(share, 0), i) for i, share in enumerate(PRUNED_SHARES)],
            pruned,
        ),
        listed(
            "What others print.",
            "Antoran's repository | test errors (%)",
            ANTORAN_TEST_ERRORS,
            "{:.2f}",
        ),
        claims(
            "A number is reached if it is no more than two binomial standard deviations below.",
            "the paper",
            claims_of_the_paper(numbers),
        ),
    )


def _percent(share: float | None, digits: int = 2) -> str:
    if share is None:
        return ""
    return f"{100 * share:.{digits}f} %"


def _binomial_sd(share: float, numbers: Numbers) -> float:
    return float((share * (1.0 - share) / numbers["settings"]["test"]) ** 0.5)


def claims_of_the_paper(numbers: Numbers) -> list[Claim]:
    """Judge the paper's two test errors, in each column by one Bayesian network.

    It is the network with the fewest errors on the validation images; for the error without most
    weights, among those that were trained without them, if the column has any.
    """
    claims_made = []
    for statement, printed, index in (
        ("test errors of Bayes by Backprop", 1.36, 0),
        ("the same without 98 % of the weights", 1.39, -1),
    ):
        for column in STUDY_COLUMNS:
            bayesian_rows = [
                row
                for row in numbers["rows"].values()
                if row["column"] == column
                and row["KL"][0] is not None
                and row["validation"] is not None
            ]
            dense_rows = [row for row in bayesian_rows if row["ratios"]]
            sparse_rows = [row for row in bayesian_rows if row["ratios"] is None]
            candidate_rows = dense_rows
            if index and sparse_rows:
                candidate_rows = sparse_rows
            if not candidate_rows:
                continue
            row = min(candidate_rows, key=lambda row: row["validation"])
            error = row["test"]
            if index and row["pruning"]:
                error = row["pruning"][index]
            holds = error - printed / 100 <= 2 * _binomial_sd(error, numbers)
            statement_of_column = f"{column}: {statement}"
            claims_made.append(
                Claim(statement_of_column, f"{printed} %", _percent(error), holds)
            )
    return claims_made


PIXEL_DIVISOR = 126  # pixels, 0 to 255, are divided by it, as in the paper


def quick(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for a quick look: a tenth of the images, few epochs."""
    settings = Settings(
        seed, train=5000, validation=2000, test=2000, draws=5, pruning_draws=2
    )
    return {"settings": settings, "candidates": CANDIDATES}


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for the paper's budget."""
    return {"settings": Settings(seed, draws=100), "candidates": PAPER_CANDIDATES}


def prepare(digits: MNIST, settings: Settings) -> Images:
    """Return scaled images: a training, a validation and a test part.

    Parameters
    ----------
    digits : MNIST
        Images with pixels from 0 to 255, and labels.
    settings : Settings
        Sizes of the parts. Training takes the first of the training images, validation the last.
    """
    first_validation = len(digits.train_images) - settings.validation
    scale = np.float32(1.0 / PIXEL_DIVISOR)
    arrays = []
    for x, labels, selection in (
        (digits.train_images, digits.train_labels, slice(settings.train)),
        (digits.train_images, digits.train_labels, slice(first_validation, None)),
        (digits.test_images, digits.test_labels, slice(settings.test)),
    ):
        arrays += [x[selection] * scale, labels[selection].astype(np.intp)]
    return Images._make(arrays)


def training_images(images: Images, candidate: Candidate) -> tuple[Array, Array]:
    """Return the inputs and labels that a candidate is trained on.

    Parameters
    ----------
    images : Images
        All three parts.
    candidate : Candidate
        May train on the validation images, too (`all_images`).

    Returns
    -------
    x, labels : ndarray (N, 784) and (N,)
    """
    if not candidate.all_images:
        return images.x, images.labels
    labels = np.concatenate([images.labels, images.labels_validation])
    return np.concatenate([images.x, images.x_validation]), labels


def train_row(
    paths: Mapping[Candidate, Path],
    images: Images,
    settings: Settings,
) -> dict[Candidate, Run]:
    """Train a row: choose among its candidates, and train the best one to the end.

    Candidates that are `averaged` are all trained to the end.

    Parameters
    ----------
    paths : mapping
        Each candidate's file, which is written after every epoch and from which training continues.
    images, settings : Images, Settings
        Those of `reproduce`.

    Returns
    -------
    dict
        The trained networks by candidate.
    """
    runs = {c: load(path, c, settings) for c, path in paths.items()}

    def train_until(c: Candidate, epochs: int) -> None:
        run = runs[c]
        x, labels = training_images(images, c)
        while len(run.errors) < epochs:
            train_epoch(run, c, settings, x, np.eye(10, dtype=np.float32)[labels])
            predicted = classes_of_mean(
                build(c).model, run.training.theta, images.x_validation
            )
            run.errors.append(float(np.mean(predicted != images.labels_validation)))
            write_state(paths[c], Stored(c, settings, run), RUN_FORMAT)

    if len(runs) > 1 and not next(iter(runs)).averaged:
        for c in runs:
            train_until(c, settings.search)
        best = min(runs, key=lambda c: runs[c].errors[settings.search - 1])
        runs = {best: runs[best]}
    for c in runs:
        train_until(c, c.epochs)
    return runs


def train_and_measure_row(
    paths: Mapping[Candidate, Path], images: Images, settings: Settings
) -> dict[str, Any]:
    """Train a row and return its numbers.

    Parameters
    ----------
    paths, images, settings
        Those of `train_row`.

    Returns
    -------
    dict
        As `measure` returns it.
    """
    return measure(images, settings, train_row(paths, images, settings))


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    settings: Settings | None = None,
    candidates: Sequence[Candidate] = CANDIDATES,
    digits: MNIST | None = None,
    jobs: int = 2,
    progress: bool | None = None,
) -> str:
    """Train, choose, test and prune networks on MNIST, and return the tables.

    Writes ``mnist.png``, ``numbers.json`` and the state of every network after every epoch. The
    same call continues from there, with the same numbers bit for bit on the same machine, and
    returns at once when all is done.

    Parameters
    ----------
    out : Path
        Folder, made if it is missing.
    seed : int
        Of the default settings; `settings` have a seed of their own.
    settings : Settings, optional
        Size of the study.
    candidates : sequence of Candidate
        The networks; those of one row compete.
    digits : MNIST, optional
        Images instead of those of the data folder.
    jobs : int
        Number of processes; no number depends on it.
    progress : bool, optional
        Whether to show a bar, see `bbb_studies.progress.steps`.

    Returns
    -------
    str
        The tables.

    Raises
    ------
    ModuleNotFoundError
        Without joblib, which comes with scikit-learn.
    ValueError
        If `out` holds a run of another seed or other settings, or a damaged file.
    """
    import joblib  # noqa: F401  of the extra `learners`: what is missing is said before any work

    settings = settings or Settings(seed)
    file = out / "numbers.json"
    numbers: dict[str, Any] = {"format": RUN_FORMAT_NAME, "settings": plain(settings)}
    numbers["candidates"] = [
        f"{c.row}: {c.name}, {c.epochs} epochs" for c in candidates
    ]
    if file.exists():
        previous = read_json(file)
        if any(previous.get(key) != value for key, value in numbers.items()):
            raise ValueError(
                f"{out} holds a run with other settings: {previous.get('settings')}; repeat that "
                "call to continue it, or use another folder"
            )
        numbers = previous
    rows = numbers.setdefault("rows", {})
    paths: dict[str, dict[Candidate, Path]] = {}
    for number, c in enumerate(candidates):
        paths.setdefault(c.row, {})[c] = out / f"state-{number}.npz"
    if rows.keys() == paths.keys() and (out / "mnist.png").exists():
        return lay_out(numbers)
    if digits is None:
        digits = data.load()
    images = prepare(digits, settings)
    write(out, {}, numbers)
    remaining = {name: row for name, row in paths.items() if name not in rows}
    measured = in_processes(
        jobs,
        train_and_measure_row,
        [(row, images, settings) for row in remaining.values()],
    )
    with steps(len(remaining), progress) as report:
        for name, row in zip(remaining, counted(measured, report), strict=True):
            rows[name] = row
            write(out, {}, numbers)
    ordered = sorted(
        rows.items(), key=lambda item: STUDY_COLUMNS.index(item[1]["column"])
    )
    numbers["rows"] = dict(ordered)
    write(out, {"mnist": draw_figure(numbers["rows"])}, numbers)
    return lay_out(numbers)
