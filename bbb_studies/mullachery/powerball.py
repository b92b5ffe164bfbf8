"""Powerball, bin 1 against bin 3: the paper's four accuracies, and what they can be (D37).

The paper prints accuracies of 81.23 to 84.93 % for a Bayesian network, a random forest, AdaBoost
and a Gaussian process. The rules of the game say what each of them can reach, and what every
probability and every credible interval should be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import special
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import ConfusionMatrixDisplay

from bbb_numpy.evaluation.reliability import expected_calibration_error, reliability
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.model.joint import Model
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots import style
from bbb_numpy.plots.style import BLACK, BLUE, GREY, PALE, VERMILLION
from bbb_numpy.training import Recipe
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.comparing import draw, learn
from bbb_studies.data import powerball as data
from bbb_studies.kit import (
    Claim,
    Estimate,
    by_key,
    claims,
    clustered_mean,
    listed,
    panels,
    plus_minus,
    text,
    write,
)
from bbb_studies.progress import ReportWork, counted, ignore_work, steps

Array = NDArray[Any]
BALL_NUMBERS = np.arange(70)  # 0 is no ball; the largest number of the game has been 69
# The paper's accuracies on its held-out data. It says "1 hidden layer, 5 units each" and speaks
# of weights "in the three layers": its network has one hidden layer or two.
PRINTED_ACCURACIES = {
    "NUTS, prior 1": 0.8123,
    "NUTS, 1-5-5-1": 0.8123,
    "random forest": 0.8296,
    "AdaBoost": 0.8296,
    "Gaussian process": 0.8493,
}
# Shares printed by the paper: of bin-3 balls called bin 1, and of bin-1 balls called bin 3
PRINTED_CONFUSION = (0.26, 0.068)
LAST_DAY = "2017-12-31"  # the last day before the paper
EXACT_RULE = "exact rule"
PROBABILITY_CLIP = (
    1e-6  # for the log loss probabilities are at least so far from 0 and 1
)


@dataclass(frozen=True)
class Setup:
    """How the classifiers are trained; nothing here was chosen by a test score."""

    hidden: int = 5  # tanh units of a layer, the paper's
    offset: float = 1.0  # the network's input is log(number + offset), standardised
    chains: int = 4  # two at least
    start: float = 0.5  # standard deviation of the weights with which they begin
    warm_up: int = 200
    draws: int = 200  # of each chain
    max_depth: int = 6
    target_accept: float = 0.9
    epochs: int = 1500  # of VI, all rows in one batch
    learning_rate: float = 0.02
    samples: int = 4  # of the weights per step of VI
    functions: int = 2000  # drawn from VI's posterior
    process_draws: int = 200  # by which the Gaussian process chooses its kernel


class Fitted(NamedTuple):
    """A classifier after training."""

    # (70,)  P(bin 1 | number), averaged over weights if it has a posterior
    probability: Array
    # (S, 70)  P(bin 1 | number, w); S = 0 if the classifier has no posterior
    functions: Array = np.empty((0, 70))
    weights: Array = np.empty((0, 0))  # (S, P)
    divergent: int = 0  # number of divergent transitions


FitClassifier = Callable[[data.Examples, int, Setup], Fitted]


def network(setup: Setup, prior_scale: float, n_layers: int = 1) -> Model:
    """Return the paper's network with a Gaussian prior.

    Parameters
    ----------
    setup : Setup
        Whose number of hidden units is used.
    prior_scale : float
        Standard deviation of all weights.
    n_layers : int
        Number of hidden layers: the paper says one or two.
    """
    net = MLP((1, *[setup.hidden] * n_layers, 1), "tanh")
    return Model(net, GaussianPrior(prior_scale), BernoulliLikelihood())


def _inputs(numbers: Array, setup: Setup) -> tuple[Array, Array]:
    """Return the transformed training inputs (B, 1), and those of all numbers (70, 1)."""
    x = np.log(numbers + setup.offset)[:, None]
    x_all = np.log(BALL_NUMBERS + setup.offset)[:, None]
    return (x - x.mean()) / x.std(), (x_all - x.mean()) / x.std()


def _network(model: Model, weights: Array, x_all: Array, divergent: int = 0) -> Fitted:
    """Return P(bin 1 | number, w) at all numbers for each row of the weights (S, P)."""
    outputs = model.predict(np.ascontiguousarray(weights), x_all)
    p = model.likelihood.mean({}, outputs)[..., 0]
    return Fitted(p.mean(axis=0), p, weights, divergent)


def _nuts(
    prior_scale: float, rows: data.Examples, seed: int, setup: Setup, n_layers: int = 1
) -> Fitted:
    model = network(setup, prior_scale, n_layers)
    x, x_all = _inputs(rows.number, setup)
    shape = (setup.chains, model.layout.size)
    draws = draw(
        model,
        x,
        rows.label[:, None],
        max_depth=setup.max_depth,
        target_accept=setup.target_accept,
        chains=setup.chains,
        draws=setup.draws,
        warm_up=setup.warm_up,
        start=setup.start * np.random.default_rng(seed).standard_normal(shape),
        seed=seed,
    )
    return _network(model, draws.flat, x_all, draws.divergences)


def _vi(prior_scale: float, rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    rng = np.random.default_rng(seed)
    x, x_all = _inputs(rows.number, setup)
    estimator = ClosedFormKL(network(setup, prior_scale), MeanField(0.5, -3.0))
    optimizer = Adam(setup.learning_rate, schedule=Cosine())
    recipe = Recipe(optimizer, setup.epochs, batch_size=len(x), samples=setup.samples)
    theta = learn(estimator, x, rows.label[:, None], recipe, rng)
    weights = estimator.weights(theta, estimator.draw_weights(rng, setup.functions))
    return _network(estimator.model, weights, x_all)


def _trees(
    make: Callable[[int], Any], rows: data.Examples, seed: int, setup: Setup
) -> Fitted:
    learner = make(seed).fit(rows.number[:, None], rows.label)
    return Fitted(learner.predict_proba(BALL_NUMBERS[:, None])[:, 1])


def _process(rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    """Fit a Gaussian process to all rows, with the kernel that fits some whole draws of them.

    The search for the kernel takes some twenty evaluations of the marginal likelihood, which with
    all rows cost a second or more each.
    """
    chosen_draws = np.random.default_rng(seed).permutation(np.unique(rows.draw))[
        : setup.process_draws
    ]
    is_chosen = np.isin(rows.draw, chosen_draws)
    x = rows.number[:, None] / BALL_NUMBERS.std()
    kernel_fit = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(
        x[is_chosen], rows.label[is_chosen]
    )
    classifier = GaussianProcessClassifier(kernel_fit.kernel_, optimizer=None).fit(
        x, rows.label
    )
    return Fitted(
        classifier.predict_proba(BALL_NUMBERS[:, None] / BALL_NUMBERS.std())[:, 1]
    )


CLASSIFIERS: dict[str, FitClassifier] = {
    "NUTS, prior 1": partial(_nuts, 1.0),
    "NUTS, prior 4": partial(_nuts, 4.0),
    "VI, prior 1": partial(_vi, 1.0),
    "VI, prior 4": partial(_vi, 4.0),
    "NUTS, 1-5-5-1": partial(_nuts, 1.0, n_layers=2),
    "random forest": partial(
        _trees, lambda seed: RandomForestClassifier(10, max_depth=5, random_state=seed)
    ),
    "AdaBoost": partial(_trees, lambda seed: AdaBoostClassifier(random_state=seed)),
    "Gaussian process": _process,
}
BAYESIAN_NETWORKS = tuple(CLASSIFIERS)[:4]  # 1-5-1: judged by their functions, too
PAPER_NETWORK = BAYESIAN_NETWORKS[0]


def dispersion(mass: Array) -> float:
    """Return the variance of a number over its mean, which is 1 for a Poisson distribution."""
    number = np.arange(len(mass))
    mean = mass @ number
    return float(mass @ (number - mean) ** 2 / mean)


def positions(draws: data.Draws, seed: int = 0) -> dict[str, tuple[Any, Array]]:
    """Return the numbers drawn at every position, and their distribution by the rules.

    Positions are two of the unsorted balls, five bins of the sorted ones, and the Powerball. The
    order in which balls were drawn is lost. As they are drawn without replacement all orders are
    equally likely, and a random order has the distribution of the true one.

    Parameters
    ----------
    draws : Draws
        L draws of the game.
    seed : int
        Of the random order.

    Returns
    -------
    dict
        By position: the numbers (L,), and P(number) (N + 1,) for the numbers 0 to N.
    """

    def flat(balls: int) -> Array:
        return np.append(0.0, np.full(balls, 1.0 / balls))

    def mixed(urns: Any, mass: Callable[[int], Array]) -> Array:
        mixture = np.zeros(urns.max() + 1)
        for balls, count in zip(*np.unique(urns, return_counts=True), strict=True):
            mixture[: balls + 1] += count / len(urns) * mass(int(balls))
        return mixture

    unsorted = np.random.default_rng(seed).permuted(draws.white, axis=1)
    by_position: dict[str, tuple[Any, Array]] = {}
    for rank in data.LABEL_RANKS:
        mass = mixed(draws.balls, flat)
        by_position[f"unsorted, position {rank}"] = unsorted[:, rank - 1], mass
    for rank in range(1, data.N_WHITE_BALLS + 1):
        mass = mixed(draws.balls, partial(data.mass_of_place, rank=rank))
        by_position[f"sorted, bin {rank}"] = draws.white[:, rank - 1], mass
    return by_position | {
        "Powerball": (
            draws.red,
            mixed(data.urn(draws.days, data.POWERBALL_RULES), flat),
        )
    }


def _log_losses(p: Array, label: Array) -> Array:
    p = np.clip(p, PROBABILITY_CLIP, 1.0 - PROBABILITY_CLIP)
    return -np.log(np.where(label == 1, p, 1.0 - p))


def _padded(values: Array) -> Array:
    """Return `values` for all 70 numbers, 0 where no ball can be."""
    return np.pad(np.nan_to_num(values), (0, len(BALL_NUMBERS) - len(values)))


def expected_scores(p: Array, exact: data.Exact) -> dict[str, float]:
    """Return the expected scores of a classifier under the rules of the game.

    They need no held-out rows and so have no sampling noise.

    Parameters
    ----------
    p : ndarray (70,)
        P(bin 1 | number) as the classifier states it.
    exact : Exact
        What the rules say.

    Returns
    -------
    dict
        ``accuracy``, ``log loss`` in nats, and the ``rmse`` of `p` over the balls as they come.
    """
    mass_bin_3, mass_bin_1 = (_padded(mass) for mass in exact.mass)
    losses = mass_bin_3 @ _log_losses(p, np.zeros(70)) + mass_bin_1 @ _log_losses(
        p, np.ones(70)
    )
    squared_errors = (p - _padded(exact.probability)) ** 2
    return {
        "accuracy": float(np.where(p > 0.5, mass_bin_1, mass_bin_3).sum()),
        "log loss": float(losses),
        "rmse": float(np.sqrt((mass_bin_3 + mass_bin_1) @ squared_errors)),
    }


def cross_validate(
    rows: data.Examples,
    exact: data.Exact,
    setup: Setup,
    seed: int,
    n_folds: int,
    repeats: int,
    report: ReportWork = ignore_work,
) -> dict[str, dict[str, Any]]:
    """Judge all classifiers and the exact rule by repeated cross-validation over whole draws.

    Parameters
    ----------
    rows : Examples
        Balls with their labels.
    exact : Exact
        What the rules of the game say.
    setup : Setup
        How the classifiers are trained.
    seed : int
        Of the folds and the classifiers.
    n_folds, repeats : int
        The draws are shuffled and split into `n_folds` folds `repeats` times.
    report : callable
        Is called with 1 after each classifier of each fold.

    Returns
    -------
    dict of dict
        By classifier. Held-out scores have standard errors over draws. ``true_accuracy``,
        ``true_log_loss`` and ``rmse``, that of P(bin 1 | number) over the balls as they come, are
        expectations under the rules, without noise: mean and standard deviation between fits.
        ``wrong``: of the bin-3 balls the share called bin 1, and the other way round.
        ``divergent``: transitions in all fits.
    """
    rng = np.random.default_rng(seed)
    n_draws = int(rows.draw.max()) + 1
    test_draws = [
        fold
        for _ in range(repeats)
        for fold in np.array_split(rng.permutation(n_draws), n_folds)
    ]
    test_masks = [np.isin(rows.draw, fold) for fold in test_draws]
    fits: dict[str, list[Fitted]] = {name: [] for name in CLASSIFIERS}
    for fit_index, is_test in enumerate(test_masks):
        training = data.Examples._make(column[~is_test] for column in rows)
        repeat, fold_index = divmod(fit_index, n_folds)
        for name, fit_classifier in counted(CLASSIFIERS.items(), report):
            fitted = fit_classifier(training, seed + 1000 * repeat + fold_index, setup)
            fits[name].append(fitted)
    fits[EXACT_RULE] = [Fitted(_padded(exact.probability))] * len(test_masks)
    label = np.concatenate([rows.label[is_test] for is_test in test_masks])
    draw_of_ball = np.concatenate([rows.draw[is_test] for is_test in test_masks])

    def over_draws(ball_scores: Array) -> Estimate:
        """Return mean and error of new draws: the balls of one draw are dependent."""
        return Estimate(*clustered_mean(ball_scores, draw_of_ball))

    n_of_repeat = len(label) // repeats  # in the first repeat every ball is tested once
    scores: dict[str, dict[str, Any]] = {}
    rule_is_right: Any = 0.0
    for name in (EXACT_RULE, *CLASSIFIERS):
        fits_of_method = fits[name]
        p = np.concatenate(
            [
                fitted.probability[rows.number[is_test]]
                for fitted, is_test in zip(fits_of_method, test_masks, strict=True)
            ]
        )
        calls_bin_1 = p > 0.5
        is_right = (calls_bin_1 == (label == 1)).astype(float)
        if name == EXACT_RULE:
            rule_is_right = is_right
        expected = [
            expected_scores(fitted.probability, exact) for fitted in fits_of_method
        ]
        columns = (np.array([row[key] for row in expected]) for key in expected[0])
        accuracy, log_loss, rmse = (
            Estimate(float(c.mean()), float(c.std(ddof=min(1, len(c) - 1))))
            for c in columns
        )
        bins = reliability(p[:n_of_repeat], label[:n_of_repeat])
        scores[name] = {
            "accuracy": over_draws(is_right),
            "above_rule": over_draws(is_right - rule_is_right),
            "log_loss": over_draws(_log_losses(p, label)),  # nats
            "true_accuracy": accuracy,
            "true_log_loss": log_loss,
            "rmse": rmse,
            "calibration_error": expected_calibration_error(bins),
            "wrong": (
                float(calls_bin_1[label == 0].mean()),
                float((~calls_bin_1)[label == 1].mean()),
            ),
            "divergent": sum(fitted.divergent for fitted in fits_of_method),
        }
    return {name: scores[name] for name in (*CLASSIFIERS, EXACT_RULE)}


def intervals(functions: Array) -> tuple[Array, Array]:
    """Return the ends, (...) each, of the central 95 % intervals of S draws (S, ...)."""
    low, high = np.quantile(functions, [0.025, 0.975], axis=0)
    return low, high


def _undecided(exact: data.Exact) -> NDArray[np.int_]:
    """Return the numbers that either bin can hold: there 0 < P(bin 1 | number) < 1."""
    return np.flatnonzero((exact.probability > 0) & (exact.probability < 1))


def _logit(p: Array) -> Array:
    return np.asarray(special.logit(np.clip(p, 1e-12, 1.0 - 1e-12)))


BALL_LABEL = "number of the ball"
P_BIN_1 = "P(bin 1 | number)"
PERCENT_LIMITS = {"vmin": 0, "vmax": 100}  # per cent


def _nine(
    names: Sequence[str], x_label: str, y_label: str
) -> tuple[Figure, list[Axes]]:
    """Return 3 x 3 panels with shared axes, titled; those without a name are empty."""
    figure, grid = panels(
        9.0 if x_label == "called" else 13.0, 8.4, 3, 3, sharex=True, sharey=True
    )
    axes = list(grid.ravel())
    for ax, name in zip(axes, names, strict=False):
        ax.set_title(name, fontsize="medium")
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    for ax in axes[len(names) - 3 : 6]:  # above an empty one
        ax.tick_params(labelbottom=True)
    figure.supxlabel(x_label)
    figure.supylabel(y_label)
    return figure, axes


def _draw_boundaries(full: Mapping[str, Fitted], exact: data.Exact) -> Figure:
    """Draw the probabilities of every classifier, and shade where it says bin 1."""
    figure, axes = _nine(list(full), BALL_LABEL, P_BIN_1)
    for ax, fitted in zip(axes, full.values(), strict=False):
        p = fitted.probability
        predicted = np.where(p > 0.5, 2.0, -1.0)
        ax.stairs(
            predicted,
            np.arange(71) - 0.5,
            baseline=-1,
            fill=True,
            color=PALE,
            label="says bin 1",
        )
        ax.plot(exact.probability, color=BLACK, lw=1.1, ls="--", label="exact")
        ax.step(BALL_NUMBERS, p, where="mid", color=BLUE, lw=1.6, label="classifier")
        ax.axvline(exact.limit + 0.5, color=GREY, lw=1.0, ls=":", label="best boundary")
    axes[-1].legend(*axes[0].get_legend_handles_labels(), loc="center", frameon=False)
    axes[0].set(xlim=(-0.5, 69.5), ylim=(-0.03, 1.03))
    return figure


def _draw_uncertainty(full: Mapping[str, Fitted], exact: data.Exact) -> Figure:
    """Draw a credible interval at every number, marked right or wrong.

    Left: probabilities, as in the paper. Right: their logits, where the ends can be seen.
    """
    figure, axes = panels(
        13.0, 3.1 * len(full), len(full), 2, sharex=True, squeeze=False
    )
    undecided, truth = _undecided(exact), exact.probability
    for (name, fitted), (probability_ax, logit_ax) in zip(
        full.items(), axes, strict=True
    ):
        low, high = intervals(fitted.functions)
        holds = (low[undecided] <= truth[undecided]) & (
            truth[undecided] <= high[undecided]
        )
        groups = (
            (undecided[holds], BLUE, "o", 4.0, "95 % interval, right"),
            (undecided[~holds], VERMILLION, "X", 6.0, "95 % interval, wrong"),
            (
                np.setdiff1d(BALL_NUMBERS, undecided),
                GREY,
                "d",
                4.5,
                "no truth, or one of 0 or 1",
            ),
        )
        for ax, transform in ((probability_ax, np.asarray), (logit_ax, _logit)):
            for group, colour, marker, size, label in groups:
                middle = transform(np.median(fitted.functions, axis=0)[group])
                ends = [middle - transform(low[group]), transform(high[group]) - middle]
                marker_style = {
                    "fmt": marker,
                    "color": colour,
                    "ms": size,
                    "lw": 1.3,
                    "label": label,
                }
                ax.errorbar(group, middle, ends, **marker_style)
            ax.plot(
                undecided,
                transform(truth[undecided]),
                color=BLACK,
                lw=1.2,
                label="exact",
                zorder=5,
            )
        probability_ax.set(ylim=(-0.03, 1.03), ylabel=f"{name}\n{P_BIN_1}")
        logit_ax.set(ylabel="its logit")
    axes[-1, 0].set(xlim=(-1, 70), xlabel=BALL_LABEL)
    axes[-1, 1].set(xlabel=BALL_LABEL)
    style.legend_of_figure(figure, axes[0, 0], 4)
    return figure


def _draw_confusion(scores: Mapping[str, Any]) -> Figure:
    """Draw the confusion matrix of every classifier, held out, in per cent of each bin."""
    figure, axes = _nine(list(scores), "called", "is (per cent)")
    for ax, score in zip(axes, scores.values(), strict=False):
        bin_3_called_1, bin_1_called_3 = score["wrong"]
        shares = 100 * np.array(
            [[1 - bin_1_called_3, bin_1_called_3], [bin_3_called_1, 1 - bin_3_called_1]]
        )
        display = ConfusionMatrixDisplay(shares, display_labels=["bin 1", "bin 3"])
        display.plot(
            ax=ax,
            cmap="Blues",
            values_format=".1f",
            colorbar=False,
            im_kw=PERCENT_LIMITS,
        )
        ax.set(xlabel="", ylabel="")
    return figure


def _draw_buckets(draws: data.Draws) -> Figure:
    """Draw how often each number came: at two unsorted positions, in six sorted buckets."""
    figure, axes = panels(13.0, 5.6, 2, 4, sharex=True, sharey=True)
    for ax, (name, (numbers, mass)) in zip(
        axes.T.ravel(), positions(draws).items(), strict=True
    ):
        number = np.arange(1, len(mass))
        counts = np.bincount(numbers, minlength=len(mass))
        ax.plot(number, counts[1:], ".", color=BLUE, ms=4.5, label="seen")
        ax.plot(
            number, len(numbers) * mass[1:], color=BLACK, lw=1.2, label="by the rules"
        )
        ax.set_title(name, fontsize="medium")
    axes[0, 0].set(xlim=(0, 70))
    axes[0, 0].set_ylim(bottom=0)
    figure.supxlabel("number")
    figure.supylabel(f"draws (of {len(draws.days)})")
    style.legend_of_figure(figure, axes[0, 0], 2)
    return figure


def _draw_weights(full: Mapping[str, Fitted], setup: Setup) -> Figure:
    """Draw the marginal density of every weight: one chain, all chains, VI, and the prior.

    The function stays the same if two hidden units are exchanged, or if all weights of one change
    their signs. So in the exact posterior all weights of a block have the same marginal; in a chain
    that stays in one mode, and in VI, they do not.
    """
    figure, axes = panels(13.0, 8.4, 4, 1)
    # Every draw, or, by a stride of the number of chains, those of the first chain
    panels_of_weights = (
        ("NUTS, prior 1", "one chain", setup.chains, 1),
        ("NUTS, prior 1", "all chains", 1, 1),
        ("VI, prior 1", "", 1, 1),
        ("NUTS, 1-5-5-1", "one chain", setup.chains, 2),
    )
    for ax, (name, chains_label, stride, n_layers) in zip(
        axes, panels_of_weights, strict=True
    ):
        blocks = network(setup, 1.0, n_layers).layout.slices
        weights = full[name].weights[::stride]
        violins = ax.violinplot(
            weights, np.arange(weights.shape[1]), showextrema=False, widths=0.9
        )
        colour = BLUE if name.startswith("VI") else VERMILLION
        for body in violins["bodies"]:
            body.set(facecolor=colour, alpha=0.8)
        ax.plot(weights.mean(axis=0), "_", color=BLACK, ms=6)
        for block in list(blocks.values())[:-1]:
            ax.axvline(block.stop - 0.5, color=GREY, lw=0.8)
        ax.set_xticks(
            [(b.start + b.stop - 1) / 2 for b in blocks.values()], list(blocks)
        )
        ax.axhspan(-1.96, 1.96, color=PALE, zorder=0)
        ax.set(
            xlim=(-0.6, weights.shape[1] - 0.4),
            ylim=(-5, 5),
            ylabel=f"{name}\n{chains_label}",
        )
    figure.supylabel("value of the weight (95 % of the prior shaded)")
    return figure


INPUT_OFFSETS = (1.0, 0.1, 0.001)  # added to the number before the logarithm


def quick(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for a quick look: short chains, few folds."""
    setup = Setup(
        chains=2,
        warm_up=50,
        draws=50,
        max_depth=4,
        epochs=300,
        functions=300,
        process_draws=30,
    )
    return {"seed": seed, "setup": setup, "folds": 2}


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for twice the folds."""
    return {"seed": seed, "repeats": 2}


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    setup: Setup | None = None,
    folds: int = 5,
    repeats: int = 1,
    progress: bool | None = None,
) -> str:
    """Compare classifiers with the exact rule of Powerball, and return the tables.

    Writes five pictures and ``numbers.json``.

    Parameters
    ----------
    out : Path
        Folder of the files.
    seed : int
        Of the folds and the classifiers.
    setup : Setup, optional
        How the classifiers are trained.
    folds, repeats : int
        Number of folds, and of times that the cross-validation is repeated with other folds.
    progress : bool, optional
        Whether to show a bar, see `bbb_studies.progress.steps`.

    Returns
    -------
    str
        The tables.
    """
    setup = setup or Setup()
    draws = data.load(LAST_DAY)
    rows = data.examples(draws)
    exact = data.exact(data.rules(draws))
    longer = replace(
        setup,
        warm_up=3 * setup.warm_up,
        draws=4 * setup.draws,
        max_depth=setup.max_depth + 1,
    )
    work = (1 + folds * repeats) * len(CLASSIFIERS) + len(INPUT_OFFSETS)
    with steps(work, progress) as report:
        fits = {
            name: fit_classifier(rows, seed, longer)
            for name, fit_classifier in counted(CLASSIFIERS.items(), report)
        }
        scores = cross_validate(rows, exact, setup, seed, folds, repeats, report)
        # P(bin 1 | 0) depends on the offset, which the paper does not name.
        fit_network = CLASSIFIERS[PAPER_NETWORK]
        fits_by_offset = {
            offset: fit_network(rows, seed, replace(setup, offset=offset))
            for offset in counted(INPUT_OFFSETS, report)
        }
    pictures = {
        "buckets": _draw_buckets(draws),
        "boundaries": _draw_boundaries(fits, exact),
        "uncertainty": _draw_uncertainty(
            {name: fits[name] for name in BAYESIAN_NETWORKS[:3]}, exact
        ),
        "confusion": _draw_confusion(scores),
        "weights": _draw_weights(fits, setup),
    }
    sizes = {"seed": seed, "folds": folds, "repeats": repeats}
    numbers = {
        "ceiling": exact.accuracy,
        "least log loss": exact.log_loss,
        "exact": exact.probability,
        "printed": PRINTED_ACCURACIES,
        "scores": scores,
        "all draws": {name: _for_file(fitted) for name, fitted in fits.items()},
        "zero": {
            offset: _for_file(fitted) for offset, fitted in fits_by_offset.items()
        },
    }
    write(out, pictures, {**sizes, "setup": setup, **numbers})
    fits_at_zero = {
        f"{PAPER_NETWORK}, log(v + {offset:g})": fitted
        for offset, fitted in fits_by_offset.items()
    }
    fits_at_zero |= {
        f"{name}, log(v + {setup.offset:g}), long": fits[name]
        for name in BAYESIAN_NETWORKS
    }
    first_chain = fits[PAPER_NETWORK].weights[:: setup.chains]
    weight_sds = first_chain.std(axis=0)
    claims_made = claims_of_the_paper(
        exact, scores, fits_at_zero, weight_sds, setup.hidden
    )
    return _tables(draws, exact, scores, fits_at_zero, claims_made)


def _for_file(fitted: Fitted) -> dict[str, Any]:
    """Return what ``numbers.json`` says of a fit: of draws, standard deviations and intervals."""
    numbers = {**fitted._asdict(), "functions": None, "weights": None}
    if len(fitted.functions):
        low, high = intervals(fitted.functions)
        numbers |= {"low": low, "high": high, "weights": fitted.weights.std(axis=0)}
    return numbers


def _percent(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f}"


def _two_percentages(first: float, second: float) -> str:
    return f"{_percent(first, 1)} and {_percent(second, 1)}"


def _tables(
    draws: data.Draws,
    exact: data.Exact,
    scores: Mapping[str, Mapping[str, Any]],
    fits_at_zero: Mapping[str, Fitted],
    claims_made: Sequence[Claim],
) -> str:
    rules = {f"{balls} balls": data.exact(balls) for balls in exact.shares}
    luck_sd = exact.draw_deviation / len(draws.days) ** 0.5

    def zero(fitted: Fitted) -> str:
        at_zero = fitted.functions[:, 0]
        sd = fitted.functions.std(axis=0)
        low, high = intervals(at_zero)
        share_bin_3 = _percent((at_zero < 0.5).mean())
        cells = f"{fitted.probability[0]:.4f} | {low:.4f} to {high:.4f} | {sd[0]:.4f}"
        largest = f"{sd[1:].max():.4f} at {1 + np.argmax(sd[1:])}"
        return f"{cells} | {largest} | {_logit(at_zero).std():.2f} | {share_bin_3}"

    def ceiling(rule: data.Exact) -> str:
        share = sum(exact.shares[balls] for balls in rule.shares)
        accuracy = _percent(rule.accuracy)
        return f"{share:.1%} | {accuracy} | {rule.limit} | {rule.log_loss:.4f}"

    return text(
        f"Powerball: is a ball w1 (bin 1) or w3 (bin 3) of its draw? {len(draws.days)} draws, two "
        f"balls of each,\n{draws.days[0]} to {draws.days[-1]}. Luck of the perfect classifier: "
        f"{_percent(luck_sd)} points.",
        listed(
            "The ceiling of accuracy, by calling bin 1 up to a number; the least log loss, nats.",
            "rules | share of the draws | ceiling, % | bin 1 up to | log loss",
            rules | {"not told which": exact},
            ceiling,
        ),
        by_key(
            "Accuracy held out by cross-validation over whole draws +- standard error over draws; "
            "less the exact\nrule's on the same balls; in the long run, +- standard deviation "
            "between fits.",
            "accuracy | accuracy | above_rule | true_accuracy",
            scores,
        ),
        by_key(
            "Log loss in nats, probabilities kept 1e-6 from 0 and 1; RMSE of P(bin 1 | "
            "number) over the balls as they\ncome; expected calibration error in ten "
            "bins, of the exact rule by chance alone.",
            "probabilities | log_loss | true_log_loss | rmse | calibration_error",
            scores,
        ),
        listed(
            "P(bin 1 | 0), with 95 % credible interval and standard deviation (sd); 'bin 3': "
            "functions that say so at 0;\nlong: all draws.",
            "number 0 | P(bin 1) | 95 % | sd | largest, 1-69 | of logit | bin 3, %",
            fits_at_zero,
            zero,
        ),
        claims(
            "+- a standard error; s.e.: what is printed from held-out draws.",
            "the paper",
            claims_made,
        ),
    )


def claims_of_the_paper(
    exact: data.Exact,
    scores: Mapping[str, Mapping[str, Any]],
    fits_at_zero: Mapping[str, Fitted],
    weight_sds: Array,
    units: int,
) -> list[Claim]:
    """Judge the printed accuracies, the printed confusion, the sentences about 0 and the weights.

    Parameters
    ----------
    exact : Exact
        What the rules of the game say.
    scores : mapping
        As returned by `cross_validate`.
    fits_at_zero : mapping
        Networks whose uncertainty at number 0 is judged, by name.
    weight_sds : ndarray (P,)
        Standard deviation of each weight of the paper's network, its input weights first.
    units : int
        Number of hidden units, and so of input weights.
    """
    claims_of_accuracy = []
    for name, printed in PRINTED_ACCURACIES.items():
        accuracy = scores[name]["accuracy"]
        z = abs(accuracy.mean - printed) / accuracy.error
        statement = f"accuracy of {name}, %"
        claims_of_accuracy.append(
            Claim(statement, _percent(printed), plus_minus(accuracy, 2, 100), z)
        )
    best_printed = max(PRINTED_ACCURACIES.values())
    ceiling = exact.accuracy
    network_accuracy = PRINTED_ACCURACIES[PAPER_NETWORK]
    bin_3_called_1, bin_1_called_3 = PRINTED_CONFUSION
    # Half of the balls are of either bin.
    implied_accuracy = 1.0 - sum(PRINTED_CONFUSION) / 2.0
    share_bin_3 = (1.0 - network_accuracy - bin_1_called_3) / (
        bin_3_called_1 - bin_1_called_3
    )
    bin_1_up_to = 2.0 * np.cumsum(exact.mass[1])
    bin_3_up_to = 2.0 * np.cumsum(exact.mass[0])
    cut = int(np.argmin(np.abs(bin_3_up_to - bin_3_called_1)))
    shares = _two_percentages(bin_3_called_1, bin_1_called_3)
    shares_of_cut = _two_percentages(bin_3_up_to[cut], 1.0 - bin_1_up_to[cut])
    sds = [fitted.functions.std(axis=0) for fitted in fits_at_zero.values()]
    n_largest_at_zero = sum(int(sd[0] > sd[1:].max()) for sd in sds)
    n_networks = len(sds)
    dispersions = [dispersion(2.0 * exact.mass[label]) for label in (1, 0)]
    above_ceiling = _percent(best_printed - ceiling)
    is_consistent = _percent(network_accuracy) == _percent(implied_accuracy)
    input_ratio = weight_sds[:units].max() / weight_sds[:units].min()
    return [
        *claims_of_accuracy,
        Claim(
            f"false positives and negatives, %; here bin 1 up to {cut}",
            shares,
            shares_of_cut,
            cut == exact.limit,
        ),
        Claim(
            "uncertainty at 0",
            "'extremely high'",
            f"largest in {n_largest_at_zero} of {n_networks} networks",
            n_largest_at_zero == n_networks,
        ),
        Claim(
            "weights, by their standard deviations",
            "'very narrow', 'wide'",
            f"{weight_sds.min():.2f} to {weight_sds.max():.2f}",
            bool(weight_sds.max() > 2.0 * weight_sds.min()),
        ),
        Claim(
            "bins 1 and 3",
            "'Poisson-like'",
            "variance / mean {:.1f}, {:.1f}".format(*dispersions),
            max(dispersions) < 2.0,
        ),
        Claim(
            "input weights of units, widest over narrowest",
            "1",
            f"{input_ratio:.2f}",
            input_ratio < 1.2,
            True,
        ),
        Claim(
            "the best printed accuracy, points above the ceiling",
            "<= 0",
            above_ceiling,
            best_printed <= ceiling,
            True,
        ),
        Claim(
            "the network's accuracy by its confusion, %",
            _percent(network_accuracy),
            _percent(implied_accuracy),
            is_consistent,
            True,
        ),
        Claim(
            "for that: held-out balls in bin 3, %",
            "50",
            _percent(share_bin_3, 0),
            abs(share_bin_3 - 0.5) < 0.01,
            True,
        ),
    ]
