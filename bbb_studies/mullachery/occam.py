"""Occam's razor at work, in real numbers: Figure 6 of Mullachery et al. (M20, M21).

(a) Labels: eight points on a line have 256 label vectors. For three logistic models, a straight
line, a parabola and a polynomial of degree 7, and for a network, the evidence of *all* of them:
each model has probability one to spend.
(b) Regression: a line, a small and a large network, each judged by annealed importance sampling
on data drawn from each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.model.joint import Model
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.style import BLACK, BLUE, GREY, VERMILLION, legend_above
from bbb_studies import linear_gaussian
from bbb_studies.annealing import BayesFactor, bayes_factor, evidence, in_words
from bbb_studies.kit import Claim, by_key, claims, listed, plus_minus, text, write
from bbb_studies.progress import ReportWork, ignore_work, steps

Array = NDArray[Any]
N_POINTS = 8  # labels of one data set
LOGISTIC_PRIOR_SCALE = 5.0  # standard deviation of every weight, logistic models
N_REGRESSION_ROWS = 15
REGRESSION_NOISE_SCALE = 0.3  # standard deviation of y around the function
REGRESSION_PRIOR_SCALE = 1.5  # standard deviation of every weight
MAX_WEIGHT_VECTORS = 20_000  # weight vectors in one pass


class Budget(NamedTuple):
    """How much to compute."""

    side: int = 81  # quadrature nodes along each weight
    draws: int = 80_000  # of the network's prior
    chains: int = 50  # of annealed importance sampling
    steps: int = 150
    sets: int = 3  # regressions drawn from each model


class Labelled(NamedTuple):
    """A model of labels and its probability of every label vector."""

    model: Model
    x: Array  # (N, d_in)
    probability: Array  # (2^N,)
    error: Array  # (2^N,)  standard error, 0 by quadrature


def all_labels(points: int) -> Array:
    """Return all 0-1 vectors (2^N, N)."""
    return (np.arange(2**points)[:, None] >> np.arange(points)) & 1


def changes(labels: Array) -> Array:
    """Count the places (2^N,) at which neighbouring labels differ: how complex the data are."""
    return np.count_nonzero(np.diff(labels, axis=1), axis=1)


LABEL_VECTORS = all_labels(N_POINTS)


def features(points: int, degree: int) -> Array:
    """Return orthogonal polynomials (N, degree) on a grid, each of mean 0 and mean square 1.

    With the bias, degree N - 1 has as many weights as points, and orthogonal columns: equal
    priors of the weights are then equal and independent priors of all logits.
    """
    t = np.linspace(-1.0, 1.0, points)
    columns = np.linalg.qr(np.vander(t, degree + 1, increasing=True))[0]
    return columns[:, 1:] * points**0.5


def nodes(weights: int, side: int, scale: float) -> tuple[Array, Array]:
    """Return a grid of weight vectors (side^P, P), and the share (side^P,) of the prior of each.

    The trapezoidal rule, exact to rounding for smooth integrands; the sigmoids of a wide prior
    are steep, so that it takes some eighty nodes a side for four digits of the rarest labels.
    """
    z = np.linspace(-6.0, 6.0, side)
    grid = np.stack(np.meshgrid(*[z] * weights, indexing="ij"), axis=-1).reshape(
        -1, weights
    )
    shares = np.exp(-0.5 * np.sum(grid**2, axis=1))
    return scale * grid, shares / shares.sum()


def sum_over_weights(
    model: Model, x: Array, w: Array, shares: Array
) -> tuple[Array, Array]:
    """Return P(labels|m) = sum_s share_s prod_i P(label_i|x_i, w_s), all label vectors (M21).

    Every w spends exactly 1 on all of them, so any shares that sum to 1 do. With it a standard
    error (2^N,), which holds if the shares are equal and the weights drawn from the prior.
    """
    total, squares, buffers = np.zeros(2 ** len(x)), np.zeros(2 ** len(x)), Buffers()
    for first in range(0, len(w), MAX_WEIGHT_VECTORS):
        block = w[first : first + MAX_WEIGHT_VECTORS]
        p = model.likelihood.mean({}, model.predict(block, x, buffers.rewind()))[
            ..., 0
        ]  # (S, N)
        product: Array = np.ones((len(block), 1))
        for i in range(
            len(x)
        ):  # doubles with every point, the newest label in the upper half
            product = np.concatenate(
                [product * (1.0 - p[:, i : i + 1]), product * p[:, i : i + 1]], 1
            )
        total += shares[first : first + MAX_WEIGHT_VECTORS] @ product  # M21
        squares += shares[first : first + MAX_WEIGHT_VECTORS] @ product**2
    return total, np.sqrt(np.maximum(squares - total**2, 0.0) / len(w))


def label_models(rng: np.random.Generator, budget: Budget) -> dict[str, Labelled]:
    """Return the four models of labels, evaluated on all label vectors."""
    prior, likelihood = GaussianPrior(LOGISTIC_PRIOR_SCALE), BernoulliLikelihood()
    models = {}
    for name, degree in (("line", 1), ("parabola", 2), ("degree 7", N_POINTS - 1)):
        model, x = (
            Model(MLP((degree, 1)), prior, likelihood),
            features(N_POINTS, degree),
        )
        if degree < 3:
            w, shares = nodes(degree + 1, budget.side, LOGISTIC_PRIOR_SCALE)
            probability, _ = sum_over_weights(model, x, w, shares)
        else:  # independent logits, symmetric about 0: every label is a fair coin (M21)
            probability = np.full(2**N_POINTS, 0.5**N_POINTS)
        models[name] = Labelled(model, x, probability, np.zeros_like(probability))
    model, x = (
        Model(MLP((1, 20, 20, 1), "tanh"), prior, likelihood),
        features(N_POINTS, 1),
    )
    w = model.prior.draw(rng, {}, (budget.draws, model.layout.size))
    shares = np.full(budget.draws, 1.0 / budget.draws)
    models["network"] = Labelled(model, x, *sum_over_weights(model, x, w, shares))
    return models


def regression_models() -> dict[str, Model]:
    """Return a line, a small and a large network with the same prior and noise."""
    prior, noise = (
        GaussianPrior(REGRESSION_PRIOR_SCALE),
        GaussianLikelihood(REGRESSION_NOISE_SCALE),
    )
    sizes = {
        "line": (1, 1),
        "small network": (1, 3, 1),
        "large network": (1, 20, 20, 1),
    }
    return {
        name: Model(MLP(size, "tanh"), prior, noise) for name, size in sizes.items()
    }


class LogEvidence(NamedTuple):
    """A log evidence in nats and its standard error."""

    log_evidence: float
    error: float
    lower: float  # mean log weight, below on average


class Measured(NamedTuple):
    """A data set, what every model says of it, and its source against the best other model."""

    source: str
    y: Array  # (N, 1)
    found: dict[str, LogEvidence]

    @property
    def factor(self) -> BayesFactor:
        """The Bayes factor of the model that made the data against the best of the others."""
        rivals = (
            evidence for name, evidence in self.found.items() if name != self.source
        )
        return bayes_factor(
            self.found[self.source],
            max(rivals, key=lambda evidence: evidence.log_evidence),
        )


def divergences(models: Mapping[str, Labelled]) -> dict[str, dict[str, float]]:
    """Return KL(m || m') in nats: what m' loses on average on data from m (M21)."""
    return {
        m: {
            other_name: float(
                np.sum(
                    model.probability
                    * np.log(model.probability / other_model.probability)
                )
            )
            for other_name, other_model in models.items()
        }
        for m, model in models.items()
    }


def measure(
    rng: np.random.Generator, budget: Budget, report: ReportWork = ignore_work
) -> list[Measured]:
    """Draw regressions from every model, and find every model's evidence of each."""
    models, x = regression_models(), np.linspace(-2.0, 2.0, N_REGRESSION_ROWS)[:, None]
    regressions = []
    for source, model in models.items():
        for _ in range(budget.sets):
            w = model.prior.draw(rng, {}, (1, model.layout.size))
            y = model.likelihood.draw(rng, {}, model.predict(w, x))[0]
            line = linear_gaussian.exact(
                linear_gaussian.Regression(models["line"], x, y)
            )
            row = {"line": LogEvidence(line.log_evidence, 0.0, line.log_evidence)}
            for name in ("small network", "large network"):
                run = evidence(
                    LogJoint(models[name], x, y),
                    chains=budget.chains,
                    steps=budget.steps,
                    pilot_chains=max(budget.chains // 2, 10),
                    seed=rng,
                )
                row[name] = LogEvidence(run.log_evidence, run.error, run.lower)
            regressions.append(Measured(source, y, row))
            report(1)
    return regressions


MODEL_STYLES = {
    "line": (BLUE, "-", "o"),
    "parabola": (VERMILLION, "-", "s"),
    "degree 7": (BLACK, "--", "^"),
    "network": (GREY, ":", "D"),
    "small network": (VERMILLION, "-", "s"),
    "large network": (BLACK, "--", "^"),
}
MODEL_TITLES = {
    "line": "simple: straight line",
    "parabola": "in between: parabola",
    "degree 7": "complex: degree 7",
    "network": "network 1-20-20-1",
}


def _draw_razor(models: Mapping[str, Labelled], measured: Sequence[Measured]) -> Figure:
    """Draw (a) P(D|m) of all label vectors, (b) by complexity, (c) evidence of regressions."""
    figure = Figure(figsize=(13.0, 9.0), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1.15, 1.0))  # type: ignore[misc]
    left_ax, right = below.subplots(1, 2, width_ratios=(1.0, 1.35))
    _draw_labels(above.subplots(), left_ax, models)
    _draw_regressions(right, measured)
    return figure


def _draw_labels(top: Axes, left_ax: Axes, models: Mapping[str, Labelled]) -> None:
    complexity, complexities = changes(LABEL_VECTORS), np.arange(N_POINTS)
    order = np.lexsort((-models["parabola"].probability, complexity))
    for name, model in models.items():
        colour, line, marker = MODEL_STYLES[name]
        line_style: Any = {
            "color": colour,
            "linestyle": line,
            "lw": 1.6,
            "label": MODEL_TITLES[name],
        }
        if name != "network":
            top.step(
                np.arange(len(order)),
                model.probability[order],
                where="mid",
                **line_style,
            )
        mass = np.bincount(complexity, model.probability)
        left_ax.plot(complexities, mass, marker=marker, markersize=5.5, **line_style)
    starts = np.searchsorted(complexity[order], complexities).tolist()
    _draw_groups(top, starts, len(order), [str(c) for c in complexities])
    top.set(yscale="log", xlim=(-1, len(order)), ylabel="evidence P(D|m)")
    top.set_xlabel(
        f"all {len(order)} label vectors of {N_POINTS} points, by the number of label changes "
        "(simple data left, complex data right)\n(a) Occam's razor: each curve sums to 1"
    )
    legend_above(top, 3)
    left_ax.set_xlabel(
        "label changes in the data set\n(b) where each model spends its probability"
    )
    left_ax.set_ylabel("total probability of such data")
    left_ax.set_ylim(bottom=0)
    left_ax.legend(frameon=False, loc="upper right")


def _draw_groups(
    ax: Axes, starts: Sequence[int], n_vectors: int, names: Sequence[str]
) -> None:
    """Part the places 0 to `n_vectors` where groups start, and name each group at its middle."""
    for start in starts[1:]:
        ax.axvline(start - 0.5, color="#D0D0D0", lw=0.8, zorder=0)
    ends = [*starts[1:], n_vectors]
    ax.set_xticks([(a + b - 1) / 2 for a, b in zip(starts, ends, strict=True)], names)
    ax.tick_params(axis="x", length=0)


def _draw_regressions(ax: Axes, measured: Sequence[Measured]) -> None:
    names, lowest = list(measured[0].found), -5.0
    best = [
        max(f.log_evidence for f in regression.found.values())
        for regression in measured
    ]
    for shift, name in zip((-0.18, 0.0, 0.18), names, strict=True):
        colour, _, marker = MODEL_STYLES[name]
        values = [
            regression.found[name].log_evidence - b
            for regression, b in zip(measured, best, strict=True)
        ]
        errors = [2.0 * regression.found[name].error for regression in measured]
        lowest = min(lowest, *values)
        ax.errorbar(
            np.arange(len(values)) + shift,
            values,
            errors,
            color=colour,
            marker=marker,
            markersize=7,
            linestyle="none",
            capsize=2,
            label=name,
        )
    ticks = [0, -2, -5, -10, -20, -50, -100, -200, -500, -1000]
    ax.set_yscale("symlog", linthresh=5.0)
    ax.set_yticks(ticks, [str(t).replace("-", "−") for t in ticks])
    ax.set_ylim(1.6 * lowest, 1.5)
    ax.axhline(0.0, color=GREY, lw=0.7, zorder=0)
    sources = [regression.source for regression in measured]
    firsts = [sources.index(name) for name in names]
    _draw_groups(ax, firsts, len(sources), [f"from the {name}" for name in names])
    ax.set_ylabel("log P(D|m) − that of the best\n(nats, ± 2 s.e.)")
    ax.set_xlabel("data sets\n(c) regressions: every model on data drawn from each")
    legend_above(ax, 3)


EXACT_MODELS = ("line", "parabola", "degree 7")  # models of labels without Monte Carlo


def quick(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for a quick look: one data set of each model."""
    return {
        "seed": seed,
        "budget": Budget(41, draws=20_000, chains=20, steps=60, sets=1),
    }


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    budget: Budget | None = None,
    progress: bool | None = None,
) -> str:
    """Compute, write ``occam.png`` and ``occam.json`` into `out`, return the tables."""
    budget = budget or Budget()
    first, _, third = (
        np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)
    )
    with steps(3 * budget.sets, progress) as report:
        models = label_models(first, budget)
        regressions = measure(third, budget, report)
    numbers = {
        "labels": {
            m: {"probability": x.probability, "error": x.error}
            for m, x in models.items()
        },
        "divergences": divergences(models),
        "regressions": regressions,
    }
    write(out, {"occam": _draw_razor(models, regressions)}, numbers, "occam")
    return _tables(models, regressions, budget)


def _tables(
    models: Mapping[str, Labelled], measured: Sequence[Measured], budget: Budget
) -> str:
    simple = changes(LABEL_VECTORS) <= 1
    sizes, means = _by_changes(models)
    rows = zip(sizes, winners(means), *means.values(), strict=True)

    def evidences(regression: Measured) -> str:
        words = (
            in_words(regression.factor.log)
            .split(",")[0]
            .removeprefix("not worth more than a ")
        )
        nets = [
            plus_minus(regression.found[name][:2], 1)
            for name in ("small network", "large network")
        ]
        by_annealing = " | ".join(
            [*nets, f"{regression.factor.log:+.1f} +- {regression.factor.error:.1f}"]
        )
        return f"{regression.found['line'].log_evidence:.1f} | {by_annealing} | {words}"

    def spent(m: Labelled) -> str:
        off, error = m.probability.sum() - 1.0, np.max(m.error / m.probability)
        on_simple = m.probability[simple].sum()
        return f"{m.model.layout.size} | {off:.0e} | {100 * error:.0f} | {100 * on_simple:.0f}"

    return text(
        f"Occam's razor. (a) models of labels: {N_POINTS} points, {2**N_POINTS} label vectors, "
        f"logistic weights N(0, {LOGISTIC_PRIOR_SCALE:g}^2).\n"
        f"(b) of regressions: {N_REGRESSION_ROWS} rows, noise {REGRESSION_NOISE_SCALE:g}, "
        f"weights N(0, {REGRESSION_PRIOR_SCALE:g}^2); annealing of {budget.chains} chains, "
        f"{budget.steps} powers.",
        listed(
            "(a) P(D|m) of one data set, on average, by the label changes along the line.",
            " | ".join(["changes", "sets", *means, "best but the network"]),
            ((f"{count}", row) for count, row in enumerate(rows)),
            lambda row: " | ".join(
                [f"{row[0]}", *(f"{p:.2e}" for p in row[2:]), row[1]]
            ),
        ),
        listed(
            "Line, parabola: quadrature; degree 7: 2^-8; network 1-20-20-1: prior draws. "
            "Simple: at most one change.",
            "model | weights | sum over all D, less 1 | largest s.e., % | "
            f"P of the {simple.sum()} simple D, %",
            models,
            spent,
        ),
        by_key(
            "On data from the model of the row, the model of the column loses on average "
            "(KL, nats).",
            " | ".join(["data from", *models]),
            divergences(models),
        ),
        listed(
            "(b) log P(D|m), nats +- standard error: line 1-1 exactly, networks 1-3-1 and "
            "1-20-20-1 by annealing;\nlog B: the model that made the data against the best "
            "other; < 0: for the other.",
            "data from | line | small network | large network | log B | evidence",
            ((one.source, one) for one in measured),
            evidences,
        ),
        claims(
            "Figure 6 as drawn by hand, and the numbers of (a); the last line: (b).",
            "the paper",
            claims_of_the_paper(models, measured),
        ),
    )


def _by_changes(
    models: Mapping[str, Labelled],
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Return how many label vectors have each number of changes, and their mean probability."""
    complexity, sizes = changes(LABEL_VECTORS), np.bincount(changes(LABEL_VECTORS))
    return sizes, {
        n: np.bincount(complexity, m.probability) / sizes for n, m in models.items()
    }


def winners(means: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return for each number of changes the model, of those found exactly, of most evidence."""
    best = np.argmax([means[name] for name in EXACT_MODELS], axis=0)
    return [EXACT_MODELS[which] for which in best]


def claims_of_the_paper(
    models: Mapping[str, Labelled], measured: Sequence[Measured]
) -> list[Claim]:
    """Judge Figure 6 and its sentence by the evidence of all label vectors (M21), and (b)."""
    off = max(abs(model.probability.sum() - 1.0) for model in models.values())
    best = winners(_by_changes(models)[1])
    simple, complex_ = best[0], best[-1]
    middle = "parabola" if "parabola" in best[1:-1] else "none"
    lost = min(
        kl for m, row in divergences(models).items() for o, kl in row.items() if o != m
    )
    wins, sets = (
        sum(regression.factor.log > 0 for regression in measured),
        len(measured),
    )
    return [
        Claim(
            "probability that a model has",
            "'a total of 1'",
            f"off by {off:.0e}",
            off < 1e-12,
        ),
        Claim(
            "on simple data wins (here the line)",
            "the simple",
            simple,
            simple == "line",
        ),
        Claim("in between (the parabola)", "the correct", middle, middle == "parabola"),
        Claim(
            "on spread data (degree 7)", "the complex", complex_, complex_ == "degree 7"
        ),
        Claim(
            "the least that is lost on data of another",
            "> 0",
            f"{lost:.3f}",
            lost > 0,
            True,
        ),
        Claim(
            "the model that made the data wins: sets",
            f"{sets}",
            f"{wins}",
            wins == sets,
            True,
        ),
    ]
