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
BALL_NUMBERS = np.arange(70)  # 0 is no ball; 69 is the largest there ever was
# The paper's accuracies on its held-out data. It says "1 hidden layer, 5 units each" and speaks
# of weights "in the three layers": its network has one hidden layer or two.
PRINTED_ACCURACIES = {
    "NUTS, prior 1": 0.8123,
    "NUTS, 1-5-5-1": 0.8123,
    "random forest": 0.8296,
    "AdaBoost": 0.8296,
    "Gaussian process": 0.8493,
}
PRINTED_CONFUSION = (
    0.26,
    0.068,
)  # the paper's: bin-3 balls called bin 1, and the other way round
LAST_DAY = "2017-12-31"  # the last day before the paper
EXACT_RULE = "exact rule"
PROBABILITY_CLIP = 1e-6  # log loss takes probabilities of 0 and 1 as this far from them


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

    probability: (
        Array  # (70,)  P(bin 1 | number), averaged over weights if it has a posterior
    )
    functions: Array = np.empty(
        (0, 70)
    )  # (S, 70)  P(bin 1 | number, w); S = 0: no network
    weights: Array = np.empty((0, 0))  # (S, P)
    divergent: int = 0


FitClassifier = Callable[[data.Examples, int, Setup], Fitted]


def network(setup: Setup, prior_scale: float, layers: int = 1) -> Model:
    """Return the paper's network, all weights N(0, prior_scale^2) beforehand."""
    net = MLP((1, *[setup.hidden] * layers, 1), "tanh")
    return Model(net, GaussianPrior(prior_scale), BernoulliLikelihood())


def _inputs(numbers: Array, setup: Setup) -> tuple[Array, Array]:
    """Return the transformed training inputs (B, 1), and those of all numbers (70, 1)."""
    rows, every = (
        np.log(part + setup.offset)[:, None] for part in (numbers, BALL_NUMBERS)
    )
    return (rows - rows.mean()) / rows.std(), (every - rows.mean()) / rows.std()


def _network(model: Model, weights: Array, every: Array, divergent: int = 0) -> Fitted:
    """Return P(bin 1 | number, w) at `every` number for each row of the weights (S, P)."""
    outputs = model.predict(np.ascontiguousarray(weights), every)
    p = model.likelihood.mean({}, outputs)[..., 0]
    return Fitted(p.mean(axis=0), p, weights, divergent)


def _nuts(
    prior_scale: float, rows: data.Examples, seed: int, setup: Setup, layers: int = 1
) -> Fitted:
    model, (x, every) = network(setup, prior_scale, layers), _inputs(rows.number, setup)
    shape = (setup.chains, model.layout.size)
    drawn = draw(
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
    return _network(model, drawn.flat, every, drawn.divergences)


def _vi(prior_scale: float, rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    rng, (x, every) = np.random.default_rng(seed), _inputs(rows.number, setup)
    estimator = ClosedFormKL(network(setup, prior_scale), MeanField(0.5, -3.0))
    optimizer = Adam(setup.learning_rate, schedule=Cosine())
    recipe = Recipe(optimizer, setup.epochs, batch_size=len(x), samples=setup.samples)
    theta = learn(estimator, x, rows.label[:, None], recipe, rng)
    weights = estimator.weights(theta, estimator.draw_weights(rng, setup.functions))
    return _network(estimator.model, weights, every)


def _trees(
    make: Callable[[int], Any], rows: data.Examples, seed: int, setup: Setup
) -> Fitted:
    learner = make(seed).fit(rows.number[:, None], rows.label)
    return Fitted(learner.predict_proba(BALL_NUMBERS[:, None])[:, 1])


def _process(rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    """Fit a Gaussian process to all rows, its kernel found on a few whole draws of them.

    The marginal likelihood of all rows costs a second or more for each of some twenty steps.
    """
    chosen_draws = np.random.default_rng(seed).permutation(np.unique(rows.draw))[
        : setup.process_draws
    ]
    is_chosen = np.isin(rows.draw, chosen_draws)
    x = rows.number[:, None] / BALL_NUMBERS.std()
    first = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(
        x[is_chosen], rows.label[is_chosen]
    )
    classifier = GaussianProcessClassifier(first.kernel_, optimizer=None).fit(
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
    "NUTS, 1-5-5-1": partial(_nuts, 1.0, layers=2),
    "random forest": partial(
        _trees, lambda seed: RandomForestClassifier(10, max_depth=5, random_state=seed)
    ),
    "AdaBoost": partial(_trees, lambda seed: AdaBoostClassifier(random_state=seed)),
    "Gaussian process": _process,
}
BAYESIAN_NETWORKS = tuple(CLASSIFIERS)[:4]  # 1-5-1: judged by their functions, too
PAPER_NETWORK = BAYESIAN_NETWORKS[0]


def dispersion(mass: Array) -> float:
    """Return the variance of a number over its mean: 1 of a Poisson distribution."""
    number = np.arange(len(mass))
    mean = mass @ number
    return float(mass @ (number - mean) ** 2 / mean)


def positions(draws: data.Draws, seed: int = 0) -> dict[str, tuple[Any, Array]]:
    """Return the numbers (L,) at every position of all draws, and P(number) (N + 1,) by the rules.

    Two unsorted positions, five bins, and the Powerball. The order in which balls came is lost.
    As they are drawn without replacement all orders of a draw are equally likely, so that one at
    random has the distribution of the true one.
    """

    def flat(balls: int) -> Array:
        return np.append(0.0, np.full(balls, 1.0 / balls))

    def mixed(urns: Any, mass: Callable[[int], Array]) -> Array:
        total = np.zeros(urns.max() + 1)
        for balls, count in zip(*np.unique(urns, return_counts=True), strict=True):
            total[: balls + 1] += count / len(urns) * mass(int(balls))
        return total

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


def _padded(part: Array) -> Array:
    """Return `part` for all 70 numbers, 0 where no ball can be."""
    return np.pad(np.nan_to_num(part), (0, len(BALL_NUMBERS) - len(part)))


def under_the_rules(p: Array, exact: data.Exact) -> dict[str, float]:
    """Return expected accuracy, log loss and RMSE of probabilities (70,) under the rules.

    No held-out rows are needed, so there is no noise of them.
    """
    third, first = (_padded(mass) for mass in exact.mass)
    losses = third @ _log_losses(p, np.zeros(70)) + first @ _log_losses(p, np.ones(70))
    return {
        "accuracy": float(np.where(p > 0.5, first, third).sum()),
        "log loss": float(losses),
        "rmse": float(np.sqrt((third + first) @ (p - _padded(exact.probability)) ** 2)),
    }


def cross_validate(
    rows: data.Examples,
    exact: data.Exact,
    setup: Setup,
    seed: int,
    count: int,
    repeats: int,
    report: ReportWork = ignore_work,
) -> dict[str, dict[str, Any]]:
    """Judge all classifiers and the exact rule by repeated cross-validation over whole draws.

    There are `count` folds, and the draws are shuffled and parted anew `repeats` times. Scores
    held out have standard errors over draws; the ``true`` ones, and the error ``rmse`` of
    P(bin 1 | number) over the balls drawn, are those under the rules, without noise: mean and
    standard deviation between fits. ``wrong``: of the bin-3 balls those called bin 1, and the
    other way round.
    """
    rng, draws = np.random.default_rng(seed), int(rows.draw.max()) + 1
    parts = [
        fold
        for _ in range(repeats)
        for fold in np.array_split(rng.permutation(draws), count)
    ]
    sides = [np.isin(rows.draw, fold) for fold in parts]
    fits: dict[str, list[Fitted]] = {name: [] for name in CLASSIFIERS}
    for i, is_test in enumerate(sides):
        training = data.Examples._make(column[~is_test] for column in rows)
        for name, method in counted(CLASSIFIERS.items(), report):
            fits[name].append(
                method(training, seed + 1000 * (i // count) + i % count, setup)
            )
    fits[EXACT_RULE] = [Fitted(_padded(exact.probability))] * len(sides)
    label, of = (
        np.concatenate([column[is_test] for is_test in sides])
        for column in (rows.label, rows.draw)
    )

    def over_draws(scores: Array) -> Estimate:
        """Return mean and error of new draws: the balls of one draw are dependent."""
        return Estimate(*clustered_mean(scores, of))

    n_of_repeat, found, best = (
        len(label) // repeats,
        {},
        0.0,
    )  # of the first repeat, every ball once
    for name in (EXACT_RULE, *CLASSIFIERS):
        fits_of_method = fits[name]
        p = np.concatenate(
            [
                fitted.probability[rows.number[is_test]]
                for fitted, is_test in zip(fits_of_method, sides, strict=True)
            ]
        )
        first = p > 0.5
        right = (first == (label == 1)).astype(float)
        best = right if name == EXACT_RULE else best
        under = [
            under_the_rules(fitted.probability, exact) for fitted in fits_of_method
        ]
        columns = (np.array([row[key] for row in under]) for key in under[0])
        true = [
            Estimate(float(c.mean()), float(c.std(ddof=min(1, len(c) - 1))))
            for c in columns
        ]
        found[name] = {
            "accuracy": over_draws(right),
            "above_rule": over_draws(right - best),
            "log_loss": over_draws(_log_losses(p, label)),  # nats
            **dict(zip(("true_accuracy", "true_log_loss", "rmse"), true, strict=True)),
            "calibration_error": expected_calibration_error(
                reliability(p[:n_of_repeat], label[:n_of_repeat])
            ),
            "wrong": (
                float(first[label == 0].mean()),
                float((~first)[label == 1].mean()),
            ),
            "divergent": sum(
                fitted.divergent for fitted in fits_of_method
            ),  # transitions in all fits
        }
    return {name: found[name] for name in (*CLASSIFIERS, EXACT_RULE)}


def intervals(functions: Array) -> tuple[Array, Array]:
    """Return the ends of the central 95 % intervals of probabilities (S, ...), (...) each."""
    low, high = np.quantile(functions, [0.025, 0.975], axis=0)
    return low, high


def _undecided(exact: data.Exact) -> NDArray[np.int_]:
    """Return the numbers that either bin can hold: elsewhere it is 0 or 1, or no ball."""
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
    where, truth = _undecided(exact), exact.probability
    for (name, fitted), (left_ax, right) in zip(full.items(), axes, strict=True):
        low, high = intervals(fitted.functions)
        holds = (low[where] <= truth[where]) & (truth[where] <= high[where])
        groups = (
            (where[holds], BLUE, "o", 4.0, "95 % interval, right"),
            (where[~holds], VERMILLION, "X", 6.0, "95 % interval, wrong"),
            (
                np.setdiff1d(BALL_NUMBERS, where),
                GREY,
                "d",
                4.5,
                "no truth, or one of 0 or 1",
            ),
        )
        for ax, transform in ((left_ax, np.asarray), (right, _logit)):
            for group, colour, mark, size, label in groups:
                middle = transform(np.median(fitted.functions, axis=0)[group])
                ends = [middle - transform(low[group]), transform(high[group]) - middle]
                marker_style = {
                    "fmt": mark,
                    "color": colour,
                    "ms": size,
                    "lw": 1.3,
                    "label": label,
                }
                ax.errorbar(group, middle, ends, **marker_style)
            ax.plot(
                where,
                transform(truth[where]),
                color=BLACK,
                lw=1.2,
                label="exact",
                zorder=5,
            )
        left_ax.set(ylim=(-0.03, 1.03), ylabel=f"{name}\n{P_BIN_1}")
        right.set(ylabel="its logit")
    axes[-1, 0].set(xlim=(-1, 70), xlabel=BALL_LABEL)
    axes[-1, 1].set(xlabel=BALL_LABEL)
    style.legend_of_figure(figure, axes[0, 0], 4)
    return figure


def _draw_confusion(scores: Mapping[str, Any]) -> Figure:
    """Draw the confusion matrix of every classifier, held out, in per cent of each bin."""
    figure, axes = _nine(list(scores), "called", "is (per cent)")
    for ax, score in zip(axes, scores.values(), strict=False):
        third, first = score["wrong"]
        shares = 100 * np.array([[1 - first, first], [third, 1 - third]])
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
        number, times = (
            np.arange(1, len(mass)),
            np.bincount(numbers, minlength=len(mass)),
        )
        ax.plot(number, times[1:], ".", color=BLUE, ms=4.5, label="seen")
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
    """Draw the density of every weight by itself: one chain, all chains, VI, and the prior.

    Units can be exchanged, and the signs around one turned, without changing the function. So by
    the exact posterior the weights of a block are alike, which a chain in one mode, and VI, deny.
    """
    figure, axes = panels(13.0, 8.4, 4, 1)
    shown = (  # how many chains are left out between two draws
        ("NUTS, prior 1", "one chain", setup.chains, 1),
        ("NUTS, prior 1", "all chains", 1, 1),
        ("VI, prior 1", "", 1, 1),
        ("NUTS, 1-5-5-1", "one chain", setup.chains, 2),
    )
    for ax, (name, which, every, layers) in zip(axes, shown, strict=True):
        blocks = network(setup, 1.0, layers).layout.slices
        drawn = full[name].weights[::every]
        parts = ax.violinplot(
            drawn, np.arange(drawn.shape[1]), showextrema=False, widths=0.9
        )
        for body in parts["bodies"]:
            body.set(facecolor=BLUE if name.startswith("VI") else VERMILLION, alpha=0.8)
        ax.plot(drawn.mean(axis=0), "_", color=BLACK, ms=6)
        for block in list(blocks.values())[:-1]:
            ax.axvline(block.stop - 0.5, color=GREY, lw=0.8)
        ax.set_xticks(
            [(b.start + b.stop - 1) / 2 for b in blocks.values()], list(blocks)
        )
        ax.axhspan(-1.96, 1.96, color=PALE, zorder=0)
        ax.set(
            xlim=(-0.6, drawn.shape[1] - 0.4), ylim=(-5, 5), ylabel=f"{name}\n{which}"
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
    """Run everything, write pictures and ``numbers.json`` into `out`, return the tables.

    Shorter chains in `setup`; `folds` and `repeats` of the cross-validation.
    """
    setup = setup or Setup()
    draws = data.load(LAST_DAY)
    rows, exact = data.examples(draws), data.exact(data.rules(draws))
    longer = replace(
        setup,
        warm_up=3 * setup.warm_up,
        draws=4 * setup.draws,
        max_depth=setup.max_depth + 1,
    )
    with steps(
        (1 + folds * repeats) * len(CLASSIFIERS) + len(INPUT_OFFSETS), progress
    ) as report:
        fits = {
            name: method(rows, seed, longer)
            for name, method in counted(CLASSIFIERS.items(), report)
        }
        scores = cross_validate(rows, exact, setup, seed, folds, repeats, report)
        zero = {  # what P(bin 1 | 0) owes to the offset
            offset: CLASSIFIERS[PAPER_NETWORK](
                rows, seed, replace(setup, offset=offset)
            )
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
        "all draws": {name: _for_file(one) for name, one in fits.items()},
        "zero": {offset: _for_file(one) for offset, one in zero.items()},
    }
    write(out, pictures, {**sizes, "setup": setup, **numbers})
    fits_at_zero = {
        f"{PAPER_NETWORK}, log(v + {offset:g})": fitted
        for offset, fitted in zero.items()
    }
    fits_at_zero |= {
        f"{name}, log(v + {setup.offset:g}), long": fits[name]
        for name in BAYESIAN_NETWORKS
    }
    wide = fits[PAPER_NETWORK].weights[:: setup.chains].std(axis=0)  # of one chain
    claims_made = claims_of_the_paper(exact, scores, fits_at_zero, wide, setup.hidden)
    return _tables(draws, exact, scores, fits_at_zero, claims_made)


def _for_file(fitted: Fitted) -> dict[str, Any]:
    """Return the numbers of a fit; of draws of weights their standard deviations and intervals."""
    numbers = {**fitted._asdict(), "functions": None, "weights": None}
    if len(fitted.functions):
        low, high = intervals(fitted.functions)
        numbers |= {"low": low, "high": high, "weights": fitted.weights.std(axis=0)}
    return numbers


def _percent(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f}"


def _tables(
    draws: data.Draws,
    exact: data.Exact,
    scores: Mapping[str, Mapping[str, Any]],
    fits_at_zero: Mapping[str, Fitted],
    claims_made: Sequence[Claim],
) -> str:
    rules = {f"{balls} balls": data.exact(balls) for balls in exact.shares}
    luck = exact.draw_deviation / len(draws.days) ** 0.5

    def zero(fitted: Fitted) -> str:
        at, sd = fitted.functions[:, 0], fitted.functions.std(axis=0)
        low, high = intervals(at)
        cells = f"{fitted.probability[0]:.4f} | {low:.4f} to {high:.4f} | {sd[0]:.4f}"
        largest = f"{sd[1:].max():.4f} at {1 + np.argmax(sd[1:])}"
        return f"{cells} | {largest} | {_logit(at).std():.2f} | {_percent((at < 0.5).mean())}"

    return text(
        f"Powerball: is a ball w1 (bin 1) or w3 (bin 3) of its draw? {len(draws.days)} draws, two "
        f"balls of each,\n{draws.days[0]} to {draws.days[-1]}. Luck of the perfect classifier: "
        f"{_percent(luck)} points.",
        listed(
            "The ceiling of accuracy, by calling bin 1 up to a number; the least log loss, nats.",
            "rules | share of the draws | ceiling, % | bin 1 up to | log loss",
            rules | {"not told which": exact},
            lambda one: (
                f"{sum(exact.shares[balls] for balls in one.shares):.1%} | {_percent(one.accuracy)}"
                f" | {one.limit} | {one.log_loss:.4f}"
            ),
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
    wide: Array,
    units: int,
) -> list[Claim]:
    """Judge the printed accuracies, the printed confusion, the sentences about 0 and the weights.

    `fits_at_zero` are the networks that predict at number 0, `wide` the standard deviations of
    single weights, those of `units` inputs first.
    """
    claims_of_accuracy = []
    for name, printed in PRINTED_ACCURACIES.items():
        accuracy = scores[name]["accuracy"]
        off = abs(accuracy.mean - printed) / accuracy.error
        statement = f"accuracy of {name}, %"
        claims_of_accuracy.append(
            Claim(statement, _percent(printed), plus_minus(accuracy, 2, 100), off)
        )
    best, ceiling, network = (
        max(PRINTED_ACCURACIES.values()),
        exact.accuracy,
        PRINTED_ACCURACIES[PAPER_NETWORK],
    )
    implied = (
        1.0 - sum(PRINTED_CONFUSION) / 2.0
    )  # with as many balls of either bin, as there are
    share = (1.0 - network - PRINTED_CONFUSION[1]) / (
        PRINTED_CONFUSION[0] - PRINTED_CONFUSION[1]
    )
    first, third = (2.0 * np.cumsum(exact.mass[label]) for label in (1, 0))
    cut = int(np.argmin(np.abs(third - PRINTED_CONFUSION[0])))
    shares, of_cut = (
        f"{_percent(first_share, 1)} and {_percent(second_share, 1)}"
        for first_share, second_share in (
            PRINTED_CONFUSION,
            (third[cut], 1.0 - first[cut]),
        )
    )
    sds = [fitted.functions.std(axis=0) for fitted in fits_at_zero.values()]
    n_largest_at_zero, networks = sum(int(sd[0] > sd[1:].max()) for sd in sds), len(sds)
    spread = [dispersion(2.0 * exact.mass[label]) for label in (1, 0)]  # a bin each
    above, same = _percent(best - ceiling), _percent(network) == _percent(implied)
    inputs = wide[:units].max() / wide[:units].min()
    return [
        *claims_of_accuracy,
        Claim(
            f"false positives and negatives, %; here bin 1 up to {cut}",
            shares,
            of_cut,
            cut == exact.limit,
        ),
        Claim(
            "uncertainty at 0",
            "'extremely high'",
            f"largest in {n_largest_at_zero} of {networks} networks",
            n_largest_at_zero == networks,
        ),
        Claim(
            "weights, by their standard deviations",
            "'very narrow', 'wide'",
            f"{wide.min():.2f} to {wide.max():.2f}",
            bool(wide.max() > 2.0 * wide.min()),
        ),
        Claim(
            "bins 1 and 3",
            "'Poisson-like'",
            "variance / mean {:.1f}, {:.1f}".format(*spread),
            max(spread) < 2.0,
        ),
        Claim(
            "input weights of units, widest over narrowest",
            "1",
            f"{inputs:.2f}",
            inputs < 1.2,
            True,
        ),
        Claim(
            "the best printed accuracy, points above the ceiling",
            "<= 0",
            above,
            best <= ceiling,
            True,
        ),
        Claim(
            "the network's accuracy by its confusion, %",
            _percent(network),
            _percent(implied),
            same,
            True,
        ),
        Claim(
            "for that: held-out balls in bin 3, %",
            "50",
            _percent(share, 0),
            abs(share - 0.5) < 0.01,
            True,
        ),
    ]
