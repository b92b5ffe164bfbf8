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
    """How much to compute; less for a quick look."""

    side: int = 81  # quadrature nodes along each weight
    draws: int = 80_000  # of the network's prior
    chains: int = 50  # of annealed importance sampling
    steps: int = 150  # powers between prior and posterior
    sets: int = 3  # regressions drawn from each model


class LabelModel(NamedTuple):
    """A model of labels and its probability of every label vector."""

    model: Model
    x: Array  # (N, d_in)
    probability: Array  # (2^N,)
    error: Array  # (2^N,)  standard error, 0 by quadrature


def all_label_vectors(n_points: int) -> Array:
    """Return all 0-1 vectors (2^N, N) of `n_points` labels."""
    return (np.arange(2**n_points)[:, None] >> np.arange(n_points)) & 1


def count_label_changes(labels: Array) -> Array:
    """Return the number of neighbours with different labels: how complex the data are.

    Parameters
    ----------
    labels : ndarray (M, N)
        Label vectors of N points in the order of x.

    Returns
    -------
    ndarray (M,) of int
    """
    return np.count_nonzero(np.diff(labels, axis=1), axis=1)


LABEL_VECTORS = all_label_vectors(N_POINTS)


def polynomial_features(n_points: int, degree: int) -> Array:
    """Return orthogonal polynomials on a grid, each of mean 0 and mean square 1.

    With the bias, degree N - 1 has as many weights as points, and orthogonal columns: equal
    priors of the weights are then equal and independent priors of all logits.

    Parameters
    ----------
    n_points : int
        Number of points N between -1 and 1.
    degree : int
        The highest degree; the constant is left out.

    Returns
    -------
    ndarray (N, degree)
    """
    t = np.linspace(-1.0, 1.0, n_points)
    columns = np.linalg.qr(np.vander(t, degree + 1, increasing=True))[0]
    return columns[:, 1:] * n_points**0.5


def prior_grid(n_weights: int, n_per_weight: int, scale: float) -> tuple[Array, Array]:
    """Return a grid of weight vectors, and the share of a Gaussian prior that each stands for.

    Sums over it are the trapezoidal rule, exact to rounding for smooth integrands. The sigmoids of
    a wide prior are steep: four digits of the rarest labels take some eighty nodes for each weight.

    Parameters
    ----------
    n_weights : int
        Number of weights P.
    n_per_weight : int
        Number of nodes n along each weight, over 6 standard deviations on either side of 0.
    scale : float
        Standard deviation of the prior.

    Returns
    -------
    weights : ndarray (n^P, P)
    shares : ndarray (n^P,)
        Positive, with sum 1.
    """
    z = np.linspace(-6.0, 6.0, n_per_weight)
    grid = np.stack(np.meshgrid(*[z] * n_weights, indexing="ij"), axis=-1).reshape(
        -1, n_weights
    )
    shares = np.exp(-0.5 * np.sum(grid**2, axis=1))
    return scale * grid, shares / shares.sum()


def label_probabilities(
    model: Model, x: Array, w: Array, shares: Array
) -> tuple[Array, Array]:
    """Return the probability of every label vector under a model, and its standard error.

    P(labels|m) = sum_s share_s prod_i P(label_i|x_i, w_s) (M21). For every w the probabilities of
    all label vectors sum to 1, so for any shares with sum 1 those of the model do, too.

    Parameters
    ----------
    model : Model
        With a Bernoulli likelihood.
    x : ndarray (N, d_in)
        Inputs.
    w : ndarray (S, P)
        Weight vectors.
    shares : ndarray (S,)
        Weight of each in the sum.

    Returns
    -------
    probability, error : ndarray (2^N,)
        In the order of `all_label_vectors`. The error is meaningful if the shares are equal and
        the weights drawn from the prior.
    """
    probability = np.zeros(2 ** len(x))
    mean_square = np.zeros(2 ** len(x))
    buffers = Buffers()
    for first in range(0, len(w), MAX_WEIGHT_VECTORS):
        block = w[first : first + MAX_WEIGHT_VECTORS]
        logits = model.predict(block, x, buffers.rewind())
        p = model.likelihood.mean({}, logits)[..., 0]  # (S, N)
        product: Array = np.ones((len(block), 1))
        # The columns double with every point: label 0 in the lower half, label 1 in the upper.
        for i in range(len(x)):
            product = np.concatenate(
                [product * (1.0 - p[:, i : i + 1]), product * p[:, i : i + 1]], 1
            )
        probability += shares[first : first + MAX_WEIGHT_VECTORS] @ product  # M21
        mean_square += shares[first : first + MAX_WEIGHT_VECTORS] @ product**2
    return probability, np.sqrt(np.maximum(mean_square - probability**2, 0.0) / len(w))


def label_models(rng: np.random.Generator, budget: Budget) -> dict[str, LabelModel]:
    """Return the four models of labels, evaluated on all label vectors.

    Parameters
    ----------
    rng : numpy.random.Generator
        Of the weights of the network.
    budget : Budget
        Number of quadrature nodes and of draws.

    Returns
    -------
    dict of LabelModel
        By name.
    """
    prior = GaussianPrior(LOGISTIC_PRIOR_SCALE)
    likelihood = BernoulliLikelihood()
    models = {}
    for name, degree in (("line", 1), ("parabola", 2), ("degree 7", N_POINTS - 1)):
        model = Model(MLP((degree, 1)), prior, likelihood)
        x = polynomial_features(N_POINTS, degree)
        if degree < 3:
            w, shares = prior_grid(degree + 1, budget.side, LOGISTIC_PRIOR_SCALE)
            probability, _ = label_probabilities(model, x, w, shares)
        else:  # independent logits, symmetric about 0: every label is a fair coin (M21)
            probability = np.full(2**N_POINTS, 0.5**N_POINTS)
        models[name] = LabelModel(model, x, probability, np.zeros_like(probability))
    model = Model(MLP((1, 20, 20, 1), "tanh"), prior, likelihood)
    x = polynomial_features(N_POINTS, 1)
    w = model.prior.draw(rng, {}, (budget.draws, model.layout.size))
    shares = np.full(budget.draws, 1.0 / budget.draws)
    probability, error = label_probabilities(model, x, w, shares)
    models["network"] = LabelModel(model, x, probability, error)
    return models


def regression_models() -> dict[str, Model]:
    """Return a line, a small and a large network with the same prior and noise."""
    prior = GaussianPrior(REGRESSION_PRIOR_SCALE)
    likelihood = GaussianLikelihood(REGRESSION_NOISE_SCALE)
    sizes = {
        "line": (1, 1),
        "small network": (1, 3, 1),
        "large network": (1, 20, 20, 1),
    }
    return {
        name: Model(MLP(size, "tanh"), prior, likelihood)
        for name, size in sizes.items()
    }


class LogEvidence(NamedTuple):
    """A log evidence in nats and its standard error."""

    log_evidence: float
    error: float
    lower: float  # mean log weight: on average below the log evidence


class Measured(NamedTuple):
    """A regression data set, and its log evidence under every model."""

    source: str  # name of the model from which it was drawn
    y: Array  # (N, 1)
    found: dict[str, LogEvidence]  # by model

    @property
    def factor(self) -> BayesFactor:
        """The Bayes factor of the model that made the data against the best of the others."""
        rival_evidences = (
            evidence for name, evidence in self.found.items() if name != self.source
        )
        return bayes_factor(
            self.found[self.source],
            max(rival_evidences, key=lambda evidence: evidence.log_evidence),
        )


def divergences(models: Mapping[str, LabelModel]) -> dict[str, dict[str, float]]:
    """Return KL(m || m') in nats: what m' loses on average on data from m (M21)."""
    return {
        name: {
            other_name: float(
                np.sum(
                    model.probability
                    * np.log(model.probability / other_model.probability)
                )
            )
            for other_name, other_model in models.items()
        }
        for name, model in models.items()
    }


def measure(
    rng: np.random.Generator, budget: Budget, report: ReportWork = ignore_work
) -> list[Measured]:
    """Draw regression data sets from every model, and compute the log evidence of all models.

    Parameters
    ----------
    rng : numpy.random.Generator
        Of data sets and annealing.
    budget : Budget
        Number of data sets, chains and powers.
    report : callable
        Is called with 1 after each data set.

    Returns
    -------
    list of Measured
        In the order of the models that the data were drawn from.
    """
    models = regression_models()
    x = np.linspace(-2.0, 2.0, N_REGRESSION_ROWS)[:, None]
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


def _draw_razor(
    models: Mapping[str, LabelModel], measured: Sequence[Measured]
) -> Figure:
    """Draw (a) P(D|m) of all label vectors, (b) by complexity, (c) evidence of regressions."""
    figure = Figure(figsize=(13.0, 9.0), layout="constrained")
    upper_figure, lower_figure = figure.subfigures(2, 1, height_ratios=(1.15, 1.0))  # type: ignore[misc]
    complexity_ax, regression_ax = lower_figure.subplots(1, 2, width_ratios=(1.0, 1.35))
    _draw_labels(upper_figure.subplots(), complexity_ax, models)
    _draw_regressions(regression_ax, measured)
    return figure


def _draw_labels(
    probability_ax: Axes, complexity_ax: Axes, models: Mapping[str, LabelModel]
) -> None:
    complexity = count_label_changes(LABEL_VECTORS)
    complexities = np.arange(N_POINTS)
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
            probability_ax.step(
                np.arange(len(order)),
                model.probability[order],
                where="mid",
                **line_style,
            )
        mass = np.bincount(complexity, model.probability)
        complexity_ax.plot(
            complexities, mass, marker=marker, markersize=5.5, **line_style
        )
    starts = np.searchsorted(complexity[order], complexities).tolist()
    _draw_groups(probability_ax, starts, len(order), [str(c) for c in complexities])
    probability_ax.set(yscale="log", xlim=(-1, len(order)), ylabel="evidence P(D|m)")
    probability_ax.set_xlabel(
        f"all {len(order)} label vectors of {N_POINTS} points, by the number of label changes "
        "(simple data left, complex data right)\n(a) Occam's razor: each curve sums to 1"
    )
    legend_above(probability_ax, 3)
    complexity_ax.set_xlabel(
        "label changes in the data set\n(b) where each model spends its probability"
    )
    complexity_ax.set_ylabel("total probability of such data")
    complexity_ax.set_ylim(bottom=0)
    complexity_ax.legend(frameon=False, loc="upper right")


def _draw_groups(
    ax: Axes, starts: Sequence[int], n_vectors: int, names: Sequence[str]
) -> None:
    """Draw a line between groups of the positions 0 to `n_vectors`, and name each group."""
    for start in starts[1:]:
        ax.axvline(start - 0.5, color="#D0D0D0", lw=0.8, zorder=0)
    ends = [*starts[1:], n_vectors]
    ax.set_xticks([(a + b - 1) / 2 for a, b in zip(starts, ends, strict=True)], names)
    ax.tick_params(axis="x", length=0)


def _draw_regressions(ax: Axes, measured: Sequence[Measured]) -> None:
    names = list(measured[0].found)
    lowest = -5.0
    best_of_sets = [
        max(f.log_evidence for f in regression.found.values())
        for regression in measured
    ]
    for shift, name in zip((-0.18, 0.0, 0.18), names, strict=True):
        colour, _, marker = MODEL_STYLES[name]
        values = [
            regression.found[name].log_evidence - best_log_evidence
            for regression, best_log_evidence in zip(
                measured, best_of_sets, strict=True
            )
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
    """Compute the evidence of simple and complex models, and return the tables.

    Writes ``occam.png`` and ``occam.json``.

    Parameters
    ----------
    out : Path
        Folder of the files.
    seed : int
        Of all draws.
    budget : Budget, optional
        How much to compute.
    progress : bool, optional
        Whether to show a bar, see `bbb_studies.progress.steps`.

    Returns
    -------
    str
        The tables.
    """
    budget = budget or Budget()
    label_seed, _, regression_seed = np.random.SeedSequence(seed).spawn(3)
    label_rng = np.random.default_rng(label_seed)
    regression_rng = np.random.default_rng(regression_seed)
    with steps(3 * budget.sets, progress) as report:
        models = label_models(label_rng, budget)
        regressions = measure(regression_rng, budget, report)
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
    models: Mapping[str, LabelModel], measured: Sequence[Measured], budget: Budget
) -> str:
    is_simple = count_label_changes(LABEL_VECTORS) <= 1
    sizes, means = _by_changes(models)
    rows = zip(sizes, best_models(means), *means.values(), strict=True)

    def evidences(regression: Measured) -> str:
        verdict = (
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
        return (
            f"{regression.found['line'].log_evidence:.1f} | {by_annealing} | {verdict}"
        )

    def label_row(label_model: LabelModel) -> str:
        excess = label_model.probability.sum() - 1.0
        error = np.max(label_model.error / label_model.probability)
        on_simple = label_model.probability[is_simple].sum()
        n_weights = label_model.model.layout.size
        return f"{n_weights} | {excess:.0e} | {100 * error:.0f} | {100 * on_simple:.0f}"

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
            f"P of the {is_simple.sum()} simple D, %",
            models,
            label_row,
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
            ((regression.source, regression) for regression in measured),
            evidences,
        ),
        claims(
            "Figure 6 as drawn by hand, and the numbers of (a); the last line: (b).",
            "the paper",
            claims_of_the_paper(models, measured),
        ),
    )


def _by_changes(
    models: Mapping[str, LabelModel],
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Return how many label vectors have each number of changes, and their mean probability."""
    complexity = count_label_changes(LABEL_VECTORS)
    sizes = np.bincount(complexity)
    return sizes, {
        n: np.bincount(complexity, m.probability) / sizes for n, m in models.items()
    }


def best_models(means: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return the model with the largest evidence for each number of label changes.

    Among `EXACT_MODELS`, whose evidence has no Monte Carlo error.
    """
    best = np.argmax([means[name] for name in EXACT_MODELS], axis=0)
    return [EXACT_MODELS[which] for which in best]


def claims_of_the_paper(
    models: Mapping[str, LabelModel], measured: Sequence[Measured]
) -> list[Claim]:
    """Judge Figure 6 and its caption by the evidence of all label vectors (M21), and (b).

    Parameters
    ----------
    models : mapping
        As returned by `label_models`.
    measured : sequence of Measured
        As returned by `measure`.
    """
    sum_error = max(abs(model.probability.sum() - 1.0) for model in models.values())
    best_by_changes = best_models(_by_changes(models)[1])
    simple = best_by_changes[0]
    complex_ = best_by_changes[-1]
    middle = "parabola" if "parabola" in best_by_changes[1:-1] else "none"
    least_lost = min(
        kl for m, row in divergences(models).items() for o, kl in row.items() if o != m
    )
    n_wins = sum(regression.factor.log > 0 for regression in measured)
    n_sets = len(measured)
    return [
        Claim(
            "probability that a model has",
            "'a total of 1'",
            f"off by {sum_error:.0e}",
            sum_error < 1e-12,
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
            f"{least_lost:.3f}",
            least_lost > 0,
            True,
        ),
        Claim(
            "the model that made the data wins: sets",
            f"{n_sets}",
            f"{n_wins}",
            n_wins == n_sets,
            True,
        ),
    ]
