"""Powerball, bin 1 against bin 3: the paper's four accuracies, and what they can be (D37).

The paper prints accuracies of 81.23 to 84.93 % for a Bayesian network, a random forest, AdaBoost
and a Gaussian process. The rules of the game say what each of them can reach, and what every
probability and every credible interval should be.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.evaluation.reliability import expected_calibration_error, reliability
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.model.joint import Model
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREY,
    PALE,
    VERMILLION,
    legend_above,
    legend_of_figure,
)
from bbb_numpy.progress import Done, counted, steps, unseen
from bbb_numpy.sampling.mcmc import NUTS
from bbb_numpy.sampling.run import sample
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.data import powerball as data
from bbb_studies.kit import Claim, claims, listed, write

Array = NDArray[Any]
NUMBERS = np.arange(70)  # 0 is no ball; 69 is the largest there ever was
PRINTED = {  # the paper's accuracies on its held-out data; "1 hidden layer, 5 units each" ...
    "NUTS, prior 1": 0.8123,
    "NUTS, 1-5-5-1": 0.8123,  # ... and weights "in the three layers": one layer or two
    "random forest": 0.8296,
    "AdaBoost": 0.8296,
    "Gaussian process": 0.8493,
}


@dataclass(frozen=True)
class Setup:
    """How the classifiers are trained; nothing here was chosen by a test score."""

    hidden: int = 5  # tanh units of a layer, the paper's
    offset: float = 1.0  # the network's input is log(number + offset), standardised
    chains: int = 4  # two at least
    start: float = 0.5  # deviation of the weights with which they begin
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

    probability: Array  # (70,)  P(bin 1 | number), averaged over weights if it has a posterior
    seconds: float
    functions: Array | None = None  # (S, 70)  P(bin 1 | number, w)
    weights: Array | None = None  # (S, P)
    divergent: int = 0


def network(setup: Setup, prior_scale: float, layers: int = 1) -> Model:
    """Return the paper's network, all weights N(0, prior_scale^2) beforehand."""
    net = MLP((1, *[setup.hidden] * layers, 1), "tanh")
    return Model(net, GaussianPrior(prior_scale), BernoulliLikelihood())


def _inputs(numbers: Array, setup: Setup) -> tuple[Array, Array]:
    """Return the transformed training inputs (B, 1), and those of all numbers (70, 1)."""
    rows, table = (np.log(part + setup.offset)[:, None] for part in (numbers, NUMBERS))
    mean, scale = rows.mean(), rows.std()
    return (rows - mean) / scale, (table - mean) / scale


def logit(p: Array) -> Array:
    """Return log(p / (1 - p)), of probabilities within 1e-12 of 0 or 1 that of 1e-12."""
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    return np.log(p) - np.log1p(-p)


def _nuts(
    prior_scale: float, rows: data.Examples, seed: int, setup: Setup, layers: int = 1
) -> Fitted:
    begin, model = perf_counter(), network(setup, prior_scale, layers)
    x, table = _inputs(rows.number, setup)
    shape = (setup.chains, model.layout.size)
    begin_at = setup.start * np.random.default_rng(seed).standard_normal(shape)
    with warnings.catch_warnings():  # divergences are counted and told with the results
        warnings.filterwarnings("ignore", ".*divergent transitions", UserWarning)
        drawn = sample(
            model,
            x,
            rows.label[:, None],
            sampler=NUTS(max_depth=setup.max_depth),
            target_accept=setup.target_accept,
            chains=setup.chains,
            groups=1,
            draws=setup.draws,
            warm_up=setup.warm_up,
            start=begin_at,
            seed=seed,
            progress=False,
        )
    if not drawn.finished:
        raise KeyboardInterrupt
    used = perf_counter() - begin
    p = _functions(model, drawn.flat, table)
    return Fitted(p.mean(axis=0), used, p, drawn.flat, drawn.divergences)


def _functions(model: Model, weights: Array, table: Array) -> Array:
    """Return P(bin 1 | number, w) (S, 70) for every row of the weights (S, P)."""
    outputs = model.predict(np.ascontiguousarray(weights), table)
    return model.likelihood.mean({}, outputs)[..., 0]


def _vi(prior_scale: float, rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    begin, rng = perf_counter(), np.random.default_rng(seed)
    x, table = _inputs(rows.number, setup)
    estimator = ClosedFormKL(network(setup, prior_scale), MeanField(0.5, -3.0))
    optimizer = Adam(setup.learning_rate, schedule=Cosine())
    trained = fit(
        estimator,
        start(estimator, rng, optimizer),
        x,
        rows.label[:, None],
        Recipe(optimizer=optimizer, epochs=setup.epochs, batch_size=len(x), samples=setup.samples),
        rng=rng,
        progress=False,
    )
    if trained.stopped == "interrupted":
        raise KeyboardInterrupt
    used = perf_counter() - begin
    eps = estimator.draw_weights(rng, setup.functions)
    weights = estimator.weights(trained.theta, eps)
    p = _functions(estimator.model, weights, table)
    return Fitted(p.mean(axis=0), used, p, weights)


def _forest(rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    from sklearn.ensemble import RandomForestClassifier

    return _sklearn(RandomForestClassifier(10, max_depth=5, random_state=seed), rows)


def _boosted(rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    from sklearn.ensemble import AdaBoostClassifier

    return _sklearn(AdaBoostClassifier(random_state=seed), rows)


def _process(rows: data.Examples, seed: int, setup: Setup) -> Fitted:
    """Fit a Gaussian process to all rows, its kernel found on a few whole draws of them.

    The marginal likelihood of all rows costs a second or more for each of some twenty steps.
    """
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    begin = perf_counter()
    some = np.random.default_rng(seed).permutation(np.unique(rows.draw))[: setup.process_draws]
    few = np.isin(rows.draw, some)
    x = rows.number[:, None] / NUMBERS.std()
    first = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(x[few], rows.label[few])
    whole = GaussianProcessClassifier(first.kernel_, optimizer=None).fit(x, rows.label)
    p = whole.predict_proba(NUMBERS[:, None] / NUMBERS.std())[:, 1]
    return Fitted(p, perf_counter() - begin)


def _sklearn(learner: Any, rows: data.Examples) -> Fitted:
    begin = perf_counter()
    learner.fit(rows.number[:, None], rows.label)
    return Fitted(learner.predict_proba(NUMBERS[:, None])[:, 1], perf_counter() - begin)


METHODS: dict[str, Callable[[data.Examples, int, Setup], Fitted]] = {
    "NUTS, prior 1": partial(_nuts, 1.0),
    "NUTS, prior 4": partial(_nuts, 4.0),
    "VI, prior 1": partial(_vi, 1.0),
    "VI, prior 4": partial(_vi, 4.0),
    "NUTS, 1-5-5-1": partial(_nuts, 1.0, layers=2),
    "random forest": _forest,
    "AdaBoost": _boosted,
    "Gaussian process": _process,
}
COST = dict(zip(METHODS, (120, 120, 20, 20, 150, 1, 3, 24), strict=True))  # of a fit
BAYESIAN = tuple(METHODS)[:4]  # 1-5-1: judged by their functions, too


class Position(NamedTuple):
    """The numbers at one position of all draws, and how the rules spread them."""

    name: str
    seen: NDArray[np.int_]  # (L,)
    mass: Array  # (N + 1,)  P(number), over the rules of these draws

    @property
    def mean(self) -> float:
        """The mean number by the rules."""
        return float(self.mass @ np.arange(len(self.mass)))

    @property
    def error(self) -> float:
        """The standard error of the mean that was seen, by the rules."""
        return float(np.sqrt(dispersion(self.mass) * self.mean / len(self.seen)))


def dispersion(mass: Array) -> float:
    """Return the variance of a number over its mean: 1 of a Poisson distribution."""
    number = np.arange(len(mass))
    mean = mass @ number
    return float(mass @ (number - mean) ** 2 / mean)


def positions(draws: data.Draws, seed: int = 0) -> list[Position]:
    """Return all positions: two unsorted ones, the five bins, and the Powerball if there is one.

    The order in which balls came is lost. As they are drawn without replacement all orders of a
    draw are equally likely, so that one at random has the distribution of the true one.
    """
    unsorted = np.random.default_rng(seed).permuted(draws.white, axis=1)
    rows: list[tuple[str, Any, Any, Callable[[int], Array]]] = [
        (f"unsorted, position {place}", unsorted[:, place - 1], draws.balls, _flat)
        for place in data.PLACES
    ]
    for place in range(1, data.WHITE + 1):
        mass = partial(data.mass_of_place, place=place)
        rows.append((f"sorted, bin {place}", draws.white[:, place - 1], draws.balls, mass))
    if draws.red is not None:
        rows.append(("Powerball", draws.red, data.urn(draws.days, data.REDS), _flat))
    return [Position(name, seen, _mixed(urns, mass)) for name, seen, urns, mass in rows]


def _flat(balls: int) -> Array:
    return np.append(0.0, np.full(balls, 1.0 / balls))


def _mixed(urns: NDArray[np.int_], mass: Callable[[int], Array]) -> Array:
    total = np.zeros(urns.max() + 1)
    for balls, count in zip(*np.unique(urns, return_counts=True), strict=True):
        total[: balls + 1] += count / len(urns) * mass(int(balls))
    return total


RULE = "exact rule"
CLIP = 1e-6  # log loss takes probabilities of 0 and 1 as this far from them


class Interval(NamedTuple):
    """A mean and its standard error, or for what has no noise the deviation between fits."""

    mean: float
    error: float


class Scores(NamedTuple):
    """What cross-validation says of one classifier."""

    accuracy: Interval
    above_rule: Interval  # accuracy minus that of the exact rule on the same balls
    log_loss: Interval  # nats
    true_accuracy: Interval  # expected under the rules, by their probabilities
    true_log_loss: Interval
    rmse: Interval  # of P(bin 1 | number) against the exact one, over the balls drawn
    calibration_error: float  # of the held-out probabilities, first repeat
    wrong: tuple[float, float]  # of the bin-3 balls those called bin 1; the other way round
    seconds: float  # per fit
    divergent: int  # transitions in all fits


def per_draw(scores: Array, draw: Array) -> Interval:
    """Return the mean of held-out scores (M,), and its standard error over whole draws.

    All scores of one draw, its two balls in every repeat, are averaged first: only draws are
    independent, so the error is the deviation of these averages over sqrt(draws). It is that of
    new draws for given classifiers; how these vary with their training rows is measured apart,
    without noise, by `under_the_rules`. `draw` (M,) says to which draw each belongs.
    """
    of = np.bincount(draw, scores) / np.bincount(draw)
    return Interval(float(of.mean()), float(of.std(ddof=1) / np.sqrt(len(of))))


def folds(draws: int, count: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield `count` parts of the draws, at random and of equal size: whole draws are held out."""
    yield from np.array_split(rng.permutation(draws), count)


def _take(rows: data.Examples, keep: Array) -> data.Examples:
    return data.Examples._make(part[keep] for part in rows)


def _log_losses(p: Array, label: Array) -> Array:
    p = np.clip(p, CLIP, 1.0 - CLIP)
    return -np.log(np.where(label == 1, p, 1.0 - p))


def under_the_rules(p: Array, exact: data.Exact) -> dict[str, float]:
    """Return expected accuracy, log loss and RMSE of probabilities (70,) under the rules.

    No held-out rows are needed, so there is no noise of them.
    """
    mass = np.zeros((2, len(NUMBERS)))
    mass[:, : exact.mass.shape[1]] = exact.mass
    total, right = mass.sum(axis=0), np.zeros(len(NUMBERS))
    right[: exact.mass.shape[1]] = np.nan_to_num(exact.probability)
    return {
        "accuracy": float(np.where(p > 0.5, mass[1], mass[0]).sum()),
        "log loss": float(
            sum(part @ _log_losses(p, np.full(p.shape, j)) for j, part in enumerate(mass))
        ),
        "rmse": float(np.sqrt(total @ (p - right) ** 2)),
    }


def cross_validate(
    rows: data.Examples,
    exact: data.Exact,
    setup: Setup,
    seed: int,
    count: int,
    repeats: int,
    done: Done = unseen,
) -> dict[str, Scores]:
    """Judge all classifiers and the exact rule by repeated cross-validation over whole draws.

    There are `count` folds, and the draws are shuffled and parted anew `repeats` times.
    """
    rng = np.random.default_rng(seed)
    rule = np.pad(np.nan_to_num(exact.probability), (0, len(NUMBERS) - exact.mass.shape[1]))
    fits: dict[str, list[Fitted]] = {name: [] for name in (*METHODS, RULE)}
    parts = []
    for repeat in range(repeats):
        for fold, part in enumerate(folds(int(rows.draw.max()) + 1, count, rng)):
            parts.append(np.isin(rows.draw, part))
            for name in METHODS:
                given = _take(rows, ~parts[-1])
                fits[name].append(METHODS[name](given, seed + 1000 * repeat + fold, setup))
                done(COST.get(name, 1))
            fits[RULE].append(Fitted(rule, 0.0))
    held = {
        name: np.concatenate(
            [fit.probability[rows.number[out]] for fit, out in zip(some, parts, strict=True)]
        )
        for name, some in fits.items()
    }
    label, draw = (
        np.concatenate([column[out] for out in parts]) for column in (rows.label, rows.draw)
    )
    best = (held[RULE] > 0.5) == (label == 1)
    return {
        name: _summary(fits[name], held[name], label, draw, best, exact, repeats)
        for name in (*METHODS, RULE)
    }


def _summary(
    fits: Sequence[Fitted],
    p: Array,
    label: Array,
    draw: Array,
    best: Array,
    exact: data.Exact,
    repeats: int,
) -> Scores:
    each = len(label) // repeats  # of the first repeat, every ball once
    first, table = p > 0.5, reliability(p[:each], label[:each])
    right = (first == (label == 1)).astype(float)
    under = [under_the_rules(fit.probability, exact) for fit in fits]
    of = {
        key: Interval(
            float(np.mean([row[key] for row in under])),
            float(np.std([row[key] for row in under], ddof=1 if len(under) > 1 else 0)),
        )
        for key in under[0]
    }
    return Scores(
        per_draw(right, draw),
        per_draw(right - best, draw),
        per_draw(_log_losses(p, label), draw),
        of["accuracy"],
        of["log loss"],
        of["rmse"],
        expected_calibration_error(table),
        (float(first[label == 0].mean()), float((~first)[label == 1].mean())),
        float(np.mean([fit.seconds for fit in fits])),
        sum(fit.divergent for fit in fits),
    )


LEVEL = 0.95  # of credible intervals


def intervals(functions: Array, level: float) -> tuple[Array, Array]:
    """Return the ends of the central credible intervals of probabilities (S, 70), (70,) each."""
    low, high = np.quantile(functions, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    return low, high


def undecided(exact: data.Exact) -> NDArray[np.int_]:
    """Return the numbers that either bin can hold: elsewhere it is 0 or 1, or no ball."""
    p = exact.probability
    return np.flatnonzero((p > 0) & (p < 1))


def play(shares: Mapping[int, float], draws: int, rng: np.random.Generator) -> data.Examples:
    """Play the game: the rules one after the other, each for its share of the draws."""
    ends = np.round(np.cumsum([0.0, *shares.values()]) * draws).astype(int)
    balls = np.repeat(list(shares), np.diff(ends))
    white = np.sort(
        [rng.choice(np.arange(1, urn + 1), data.WHITE, replace=False) for urn in balls], axis=1
    )
    days = np.datetime64("2000-01-01") + np.arange(draws)
    return data.examples(data.Draws(days, white, balls))


BALL = "number of the ball"
P_BIN_1 = "P(bin 1 | number)"


def draw_frequencies(rows: data.Examples, exact: data.Exact) -> Figure:
    """Draw how often each number came in the two bins, and how often it should have."""
    figure = Figure(figsize=(8.6, 4.0), layout="constrained")
    ax = figure.subplots()
    count = len(rows.number) // 2
    for label, place, colour, style, mark in (
        (1, 1, BLUE, "-", "o"),
        (0, 3, VERMILLION, "--", "s"),
    ):
        seen = np.bincount(rows.number[rows.label == label], minlength=len(NUMBERS))
        ax.plot(NUMBERS[1:], seen[1:], mark, color=colour, ms=4.5, label=f"bin {place}, seen")
        wanted = 2 * count * exact.mass[label]
        ax.plot(
            np.arange(1, len(wanted)), wanted[1:], style, color=colour, label=f"bin {place}, exact"
        )
    ax.axvline(exact.limit + 0.5, color=GREY, lw=1.0, ls=":", label="best boundary")
    ax.set(xlim=(0, 70), xlabel=BALL, ylabel=f"draws (of {count})")
    ax.set_ylim(bottom=0)
    legend_above(ax, 5)
    return figure


def draw_boundaries(full: Mapping[str, Fitted], exact: data.Exact) -> Figure:
    """Draw the probabilities of every classifier, and shade where it says bin 1."""
    figure = Figure(figsize=(13.0, 8.4), layout="constrained")
    panels = _draw_panels(figure, list(full))
    for ax, fitted in zip(panels, full.values(), strict=False):
        p = fitted.probability
        says = np.where(p > 0.5, 2.0, -1.0)
        ax.stairs(says, np.arange(71) - 0.5, baseline=-1, fill=True, color=PALE, label="says bin 1")
        ax.plot(exact.probability, color=BLACK, lw=1.1, ls="--", label="exact")
        ax.step(NUMBERS, p, where="mid", color=BLUE, lw=1.6, label="classifier")
        ax.axvline(exact.limit + 0.5, color=GREY, lw=1.0, ls=":", label="best boundary")
    panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center", frameon=False)
    panels[0].set(xlim=(-0.5, 69.5), ylim=(-0.03, 1.03))
    figure.supxlabel(BALL)
    figure.supylabel(P_BIN_1)
    return figure


def draw_uncertainty(full: Mapping[str, Fitted], exact: data.Exact) -> Figure:
    """Draw a credible interval at every number, marked right or wrong.

    Left: probabilities, as in the paper. Right: their logits, where the ends can be seen.
    """
    figure = Figure(figsize=(13.0, 3.1 * len(full)), layout="constrained")
    panels = figure.subplots(len(full), 2, sharex=True, squeeze=False)
    where, truth = undecided(exact), exact.probability
    for (name, fitted), (left, right) in zip(full.items(), panels, strict=True):
        assert fitted.functions is not None  # as of every network
        low, high = intervals(fitted.functions, 0.95)
        holds = (low[where] <= truth[where]) & (truth[where] <= high[where])
        others = np.setdiff1d(NUMBERS, where)
        for ax, turn in ((left, np.asarray), (right, logit)):
            for some, colour, mark, size, label in (
                (where[holds], BLUE, "o", 4.0, "95 % interval, right"),
                (where[~holds], VERMILLION, "X", 6.0, "95 % interval, wrong"),
                (others, GREY, "d", 4.5, "no truth, or one of 0 or 1"),
            ):
                middle = turn(np.median(fitted.functions, axis=0)[some])
                ends = [middle - turn(low[some]), turn(high[some]) - middle]
                ax.errorbar(
                    some, middle, ends, fmt=mark, color=colour, ms=size, lw=1.3, label=label
                )
            ax.plot(where, turn(truth[where]), color=BLACK, lw=1.2, label="exact", zorder=5)
        left.set(ylim=(-0.03, 1.03), ylabel=f"{name}\n{P_BIN_1}")
        right.set(ylabel="its logit")
    panels[-1, 0].set(xlim=(-1, 70), xlabel=BALL)
    panels[-1, 1].set(xlabel=BALL)
    legend_of_figure(figure, panels[0, 0], 4)
    return figure


def draw_confusion(scores: Mapping[str, Scores]) -> Figure:
    """Draw the confusion matrix of every classifier, held out, in per cent of each bin."""
    figure = Figure(figsize=(9.0, 8.4), layout="constrained")
    for ax, found in zip(_draw_panels(figure, list(scores)), scores.values(), strict=False):
        third, first = found.wrong
        shares = 100 * np.array([[1 - first, first], [third, 1 - third]])
        ax.imshow(shares, cmap="Blues", vmin=0, vmax=100)
        for (row, column), share in np.ndenumerate(shares):
            colour = "white" if share > 55 else BLACK
            ax.text(column, row, f"{share:.1f} %", ha="center", va="center", color=colour)
        ax.set(xticks=[0, 1], yticks=[0, 1], xticklabels=["bin 1", "bin 3"])
        ax.set_yticklabels(["bin 1", "bin 3"])
    figure.supxlabel("called")
    figure.supylabel("is")
    return figure


def draw_buckets(draws: data.Draws) -> Figure:
    """Draw how often each number came: at two unsorted positions, in six sorted buckets."""
    figure = Figure(figsize=(13.0, 5.6), layout="constrained")
    panels = figure.subplots(2, 4, sharex=True, sharey=True).T.ravel()
    for ax, one in zip(panels, positions(draws), strict=True):
        number, seen = np.arange(1, len(one.mass)), np.bincount(one.seen, minlength=len(one.mass))
        ax.plot(number, seen[1:], ".", color=BLUE, ms=4.5, label="seen")
        ax.plot(number, len(one.seen) * one.mass[1:], color=BLACK, lw=1.2, label="by the rules")
        ax.set_title(one.name, fontsize="medium")
    panels[0].set(xlim=(0, 70))
    panels[0].set_ylim(bottom=0)
    figure.supxlabel("number")
    figure.supylabel(f"draws (of {len(draws.days)})")
    legend_of_figure(figure, panels[0], 2)
    return figure


def draw_weights(full: Mapping[str, Fitted], setup: Setup) -> Figure:
    """Draw the density of every weight by itself: one chain, all chains, VI, and the prior.

    Units can be exchanged, and the signs around one turned, without changing the function. So by
    the exact posterior the weights of a block are alike, which a chain in one mode, and VI, deny.
    """
    figure = Figure(figsize=(13.0, 8.4), layout="constrained")
    shown = (  # how many chains are left out between two draws
        ("NUTS, prior 1", "one chain", setup.chains, 1),
        ("NUTS, prior 1", "all chains", 1, 1),
        ("VI, prior 1", "", 1, 1),
        ("NUTS, 1-5-5-1", "one chain", setup.chains, 2),
    )
    for ax, (name, which, every, layers) in zip(figure.subplots(4, 1), shown, strict=True):
        layout = network(setup, 1.0, layers).layout
        drawn = np.asarray(full[name].weights)[::every]
        parts = ax.violinplot(drawn, np.arange(drawn.shape[1]), showextrema=False, widths=0.9)
        for body in parts["bodies"]:
            body.set(facecolor=BLUE if name.startswith("VI") else VERMILLION, alpha=0.8)
        ax.plot(drawn.mean(axis=0), "_", color=BLACK, ms=6)
        ends = np.array([place.stop for place in layout.slices.values()]) - 0.5
        for line in ends[:-1]:
            ax.axvline(line, color=GREY, lw=0.8)
        middles = [(p.start + p.stop - 1) / 2 for p in layout.slices.values()]
        ax.set_xticks(middles, list(layout.slices))
        ax.axhspan(-1.96, 1.96, color=PALE, zorder=0)
        ax.set(xlim=(-0.6, drawn.shape[1] - 0.4), ylim=(-5, 5), ylabel=f"{name}\n{which}")
    figure.supylabel("value of the weight (95 % of the prior shaded)")
    return figure


def _draw_panels(figure: Figure, names: Sequence[str]) -> list[Axes]:
    """Return the panels of a 3 x 3 grid with shared axes, titled; those without a name are empty.

    Panels above an empty one show their numbers.
    """
    panels = list(figure.subplots(3, 3, sharex=True, sharey=True).ravel())
    for ax, name in zip(panels, names, strict=False):
        ax.set_title(name, fontsize="medium")
    for ax in panels[len(names) :]:
        ax.set_axis_off()
    for ax in panels[len(names) - 3 : 6]:
        ax.tick_params(labelbottom=True)
    return panels


SHOWN = (0, 1, 3, 5, 10, 14, 17, 18, 20, 25, 30, 40, 50, 60, 69)  # of the numbers
CONFUSION = (0.26, 0.068)  # the paper's: bin-3 balls called bin 1, and the other way round

UNTIL = "2017-12-31"  # the last day before the paper
LONGER = 8  # times the work of a fit is that of NUTS on all rows
OFFSETS = (1.0, 0.1, 0.001)  # added to the number before the logarithm
NETWORK, UNITS = BAYESIAN[0], Setup().hidden


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for twice the folds."""
    return {"seed": seed, "repeats": 2}


def fit_all(rows: data.Examples, seed: int, setup: Setup, done: Done = unseen) -> dict[str, Fitted]:
    """Train every classifier on all rows, with longer chains and paths of NUTS."""
    longer = replace(
        setup, warm_up=3 * setup.warm_up, draws=4 * setup.draws, max_depth=setup.max_depth + 1
    )
    fits = {}
    for name in METHODS:
        fits[name] = METHODS[name](rows, seed, longer)
        done(COST[name] * (LONGER if name.startswith("NUTS") else 1))
    return fits


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

    Shorter chains in `setup`; `folds` and `repeats` of the cross-validation. Without scikit-learn,
    whose classifiers are compared: ModuleNotFoundError.
    """
    setup = setup or Setup()
    draws = data.load(UNTIL)
    rows, shares = data.examples(draws), data.rules(draws)
    exact = data.exact(shares)
    work = sum(COST[name] * (LONGER if name.startswith("NUTS") else 1) for name in METHODS)
    work += folds * repeats * sum(COST.values()) + len(OFFSETS) * COST[NETWORK]
    with steps(work, progress) as done:
        fits = fit_all(rows, seed, setup, done)
        scores = cross_validate(rows, exact, setup, seed, folds, repeats, done)
        zero = {  # what P(bin 1 | 0) owes to the offset
            offset: METHODS[NETWORK](rows, seed, replace(setup, offset=offset))
            for offset in counted(OFFSETS, done, COST[NETWORK])
        }
    pictures = {
        "data": draw_frequencies(rows, exact),
        "buckets": draw_buckets(draws),
        "boundaries": draw_boundaries(fits, exact),
        "uncertainty": draw_uncertainty({name: fits[name] for name in BAYESIAN[:3]}, exact),
        "confusion": draw_confusion(scores),
        "weights": draw_weights(fits, setup),
    }
    sizes = {"seed": seed, "folds": folds, "repeats": repeats}
    numbers = {
        "ceiling": exact.accuracy,
        "least log loss": exact.log_loss,
        "exact": exact.probability,
        "printed": PRINTED,
        "scores": scores,
        "all draws": {name: _for_file(one) for name, one in fits.items()},
        "zero": {offset: _for_file(one) for offset, one in zero.items()},
    }
    write(out, pictures, {**sizes, "setup": setup, **numbers})
    return lay_out(draws, exact, scores, fits, zero, setup, sizes)


def _for_file(one: Fitted) -> dict[str, Any]:
    """Return the numbers of a fit; of draws of weights their standard deviations and intervals."""
    kept = {**one._asdict(), "functions": None, "weights": None}
    if one.functions is not None and one.weights is not None:
        low, high = intervals(one.functions, LEVEL)
        kept |= {"low": low, "high": high, "weights": one.weights.std(axis=0)}
    return kept


def lay_out(
    draws: data.Draws,
    exact: data.Exact,
    scores: Mapping[str, Scores],
    full: Mapping[str, Fitted],
    zero: Mapping[float, Fitted],
    setup: Setup,
    sizes: Mapping[str, int],
) -> str:
    """Return every number that is printed, and which claims of the paper hold."""
    asked = {f"{NETWORK}, log(v + {offset:g})": fitted for offset, fitted in zero.items()}
    asked |= {f"{name}, log(v + {setup.offset:g}), long": full[name] for name in BAYESIAN}
    wide = widths(full[NETWORK], setup.chains)[0]
    return "\n\n".join(
        [
            listed(
                "Where the numbers lie (unsorted: a random order, the file has sorted draws), and "
                "by the rules.\nOf a Poisson distribution the variance over the mean is 1.",
                "numbers",
                ((one.name, one) for one in positions(draws)),
                {
                    "mean": lambda one: f"{one.seen.mean():.2f}",
                    "by the rules": "{0.mean:.2f}",
                    "s.e. off": lambda one: f"{(one.seen.mean() - one.mean) / one.error:+.1f}",
                    "variance / mean": lambda one: f"{one.seen.var() / one.seen.mean():.1f}",
                    "of the rules": lambda one: f"{dispersion(one.mass):.1f}",
                },
            ),
            _game(draws, exact, sizes),
            _accuracy(scores, exact.accuracy),
            listed(
                "Log loss in nats, probabilities kept 1e-6 from 0 and 1; RMSE of P(bin 1 | "
                "number) over the balls as they\ncome; ECE: expected calibration error in ten "
                "bins, of the exact rule by chance alone.",
                "probabilities",
                scores.items(),
                {
                    "log loss held out": "{0.log_loss.mean:.4f} ({0.log_loss.error:.4f})",
                    "under the rules": "{0.true_log_loss.mean:.4f} ({0.true_log_loss.error:.4f})",
                    "RMSE of p": "{0.rmse.mean:.4f} ({0.rmse.error:.4f})",
                    "ECE": "{0.calibration_error:.4f}",
                },
            ),
            _numbers(full, exact),
            _zero(asked),
            _widths(full, setup.chains),
            claims(
                "In brackets standard errors; s.e.: what is printed from held-out draws.",
                "the paper",
                claims_of_the_paper(exact, scores, asked, wide),
            ),
        ]
    )


def _percent(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f}"


def _interval(part: Interval, digits: int = 2) -> str:
    return f"{_percent(part.mean, digits)} ({_percent(part.error, digits)})"


def _game(draws: data.Draws, exact: data.Exact, sizes: Mapping[str, int]) -> str:
    count = len(draws.days)
    rows = {
        "draws, two balls of each": f"{count}",
        "first": f"{draws.days[0]}",
        "last": f"{draws.days[-1]}",
    }
    for balls, share in exact.shares.items():
        rule = data.exact(balls)
        rows |= {
            f"{balls} balls: share of the draws, %": _percent(share, 1),
            f"{balls} balls: ceiling of accuracy, %": _percent(rule.accuracy),
            f"{balls} balls: bin 1 up to": f"{rule.limit}",
        }
    rows |= {
        "not told which: ceiling of accuracy, %": _percent(exact.accuracy),
        "not told which: bin 1 up to": f"{exact.limit}",
        "not told which: least log loss, nats": f"{exact.log_loss:.4f}",
        "luck of the perfect classifier, points": _percent(exact.draw_deviation / count**0.5),
        "numbers that either bin can hold": f"{len(undecided(exact))}",
        "folds of the cross-validation": f"{sizes['folds']}",
        "repeats of the cross-validation": f"{sizes['repeats']}",
    }
    caption = "Powerball: is a ball w1 (bin 1) or w3 (bin 3) of its draw? In brackets standard "
    return listed(f"{caption}errors.", "the game", rows.items(), {"value": str})


def _accuracy(scores: Mapping[str, Scores], ceiling: float) -> str:
    return listed(
        "Accuracy (%) held out by cross-validation over whole draws (standard error over draws); "
        "less the exact\nrule's on the same balls; below the ceiling in standard errors; in the "
        "long run (deviation between fits).",
        "accuracy, %",
        ((name, (name, s)) for name, s in scores.items()),
        {
            "printed": lambda one: _percent(PRINTED[one[0]]) if one[0] in PRINTED else "-",
            "held out": lambda one: _interval(one[1].accuracy),
            "above rule": lambda one: "-" if one[0] == RULE else _interval(one[1].above_rule),
            "below ceiling": lambda one: (
                f"{(ceiling - one[1].accuracy.mean) / one[1].accuracy.error:.1f}"
            ),
            "under the rules": lambda one: _interval(one[1].true_accuracy, 3),
            "s/fit": "{0[1].seconds:.2f}",
        },
    )


def functions_of(fitted: Fitted) -> NDArray[Any]:
    """Return the functions that every network has."""
    assert fitted.functions is not None
    return fitted.functions


def _numbers(full: Mapping[str, Fitted], exact: data.Exact) -> str:
    truth = dict(enumerate(exact.probability))
    columns: dict[str, Callable[[int], str]] = {
        "exact": lambda v: "no ball" if np.isnan(truth.get(v, np.nan)) else f"{truth[v]:.4f}"
    }
    for name in BAYESIAN[:3]:
        found, ends = full[name].probability, intervals(functions_of(full[name]), LEVEL)

        def shown(v: int, found: Array = found, ends: tuple[Array, Array] = ends) -> str:
            low, high, right = ends[0][v], ends[1][v], truth.get(v, np.nan)
            mark = "right" if low <= right <= high else "WRONG"
            mark = mark if 0 < right < 1 else "-"  # nan, too: no network says exactly 0 or 1
            return f"{found[v]:.3f} [{low:.3f}, {high:.3f}] {mark:>5}"

        columns[name] = shown
    caption = "P(bin 1 | number) from all draws, with 95 % credible intervals, each marked."
    return listed(caption, "number", ((f"{v}", v) for v in SHOWN), columns)


def _zero(asked: Mapping[str, Fitted]) -> str:
    def largest(fitted: Fitted) -> str:
        deviation = functions_of(fitted).std(axis=0)[1:]
        return f"{deviation.max():.4f} at {1 + np.argmax(deviation)}"

    def ends(fitted: Fitted) -> str:
        return "{:.4f} to {:.4f}".format(*intervals(functions_of(fitted)[:, 0], LEVEL))

    return listed(
        "P(bin 1 | 0), with 95 % credible interval and deviation; 'bin 3': functions that say so "
        "at 0; long: all draws.",
        "number 0",
        asked.items(),
        {
            "P(bin 1)": "{0.probability[0]:.4f}",
            "95 %": ends,
            "deviation": lambda fitted: f"{functions_of(fitted)[:, 0].std():.4f}",
            "largest, 1-69": largest,
            "of logit": lambda fitted: f"{logit(functions_of(fitted)[:, 0]).std():.2f}",
            "bin 3, %": lambda fitted: _percent((functions_of(fitted)[:, 0] < 0.5).mean()),
        },
    )


def widths(fitted: Fitted, chains: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the deviation of every weight (P,): in the first chain, and over all of them."""
    assert fitted.weights is not None  # as of every network
    return fitted.weights[::chains].std(axis=0), fitted.weights.std(axis=0)


def _widths(full: Mapping[str, Fitted], chains: int) -> str:
    rows = {}
    for name, fitted in full.items():
        if name.startswith("NUTS"):
            rows[f"{name}, one chain"], rows[f"{name}, all chains"] = widths(fitted, chains)
        elif fitted.weights is not None:
            rows[name] = fitted.weights.std(axis=0)
    return listed(
        "Deviations of single weights. Units can be exchanged: by the exact posterior all weights "
        "of a block\nare equally wide, one chain need not have gone round.",
        "weights",
        rows.items(),
        {
            "narrowest": lambda of: f"{of.min():.2f}",
            "widest": lambda of: f"{of.max():.2f}",
            "of W0": lambda of: f"{of[:UNITS].min():.2f} to {of[:UNITS].max():.2f}",
        },
    )


def claims_of_the_paper(
    exact: data.Exact, scores: Mapping[str, Scores], asked: Mapping[str, Fitted], wide: NDArray[Any]
) -> list[Claim]:
    """Judge the printed accuracies, the printed confusion, the sentences about 0 and the weights.

    `asked` are the networks that are asked for number 0, `wide` the deviations of single weights.
    """
    found = []
    for name, printed in PRINTED.items():
        here = scores[name].accuracy
        off = abs(here.mean - printed) / here.error
        found.append(Claim(f"accuracy of {name}, %", _percent(printed), _interval(here), off))
    best, ceiling, network = max(PRINTED.values()), exact.accuracy, PRINTED[NETWORK]
    implied = 1.0 - sum(CONFUSION) / 2.0  # with as many balls of either bin, as there are
    share = (1.0 - network - CONFUSION[1]) / (CONFUSION[0] - CONFUSION[1])
    first, third = (2.0 * np.cumsum(exact.mass[label]) for label in (1, 0))
    cut = int(np.argmin(np.abs(third - CONFUSION[0])))
    shares, of_cut = (
        f"{_percent(one, 1)} and {_percent(other, 1)}"
        for one, other in (CONFUSION, (third[cut], 1.0 - first[cut]))
    )
    deviations = [functions_of(fitted).std(axis=0) for fitted in asked.values()]
    ratios = np.array([d[0] / d[1:].max() for d in deviations])
    more, networks = int((ratios > 1).sum()), len(ratios)
    spread = [dispersion(2.0 * exact.mass[label]) for label in (1, 0)]  # a bin each
    above, same = _percent(best - ceiling), _percent(network) == _percent(implied)
    rows = [
        (f"false positives and negatives, %; here bin 1 up to {cut}", shares, of_cut,
         cut == exact.limit),
        ("uncertainty at 0", "'extremely high'", f"largest in {more} of {networks} networks",
         more == networks),
        ("weights, by their deviations", "'very narrow', 'wide'",
         f"{wide.min():.2f} to {wide.max():.2f}", bool(wide.max() > 2.0 * wide.min())),
        ("bins 1 and 3", "'Poisson-like'", "variance / mean {:.1f}, {:.1f}".format(*spread),
         max(spread) < 2.0),
    ]  # fmt: skip
    inputs = wide[:UNITS].max() / wide[:UNITS].min()
    ours = [
        ("input weights of units, widest over narrowest", "1", f"{inputs:.2f}", inputs < 1.2),
        ("the best printed accuracy, points above the ceiling", "<= 0", above, best <= ceiling),
        ("the network's accuracy by its confusion, %", _percent(network), _percent(implied), same),
        ("for that: held-out balls in bin 3, %", "50", _percent(share, 0), abs(share - 0.5) < 0.01),
    ]
    return [*found, *(Claim(*row) for row in rows), *(Claim(*row, True) for row in ours)]
