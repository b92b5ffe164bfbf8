"""S&P 500: is the next day's direction predictable from past prices? (Mullachery et al.; D38).

Walk-forward: every year is forecast by what was known when it began. The paper reports nothing;
here every forecaster is set against the share of rises so far, with errors that respect that the
companies of one day move together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.evaluation import predictive
from bbb_numpy.evaluation.reliability import (
    brier,
    chance_calibration_error,
    clustered_mean,
    expected_calibration_error,
    reliability,
)
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.model.joint import Model
from bbb_numpy.numeric.elementary import sigmoid
from bbb_numpy.numeric.standardisation import moments
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, VERMILLION, finish
from bbb_numpy.progress import Done, counted, steps, unseen
from bbb_numpy.sampling.draws import DrawnWeights
from bbb_numpy.sampling.mcmc import NUTS
from bbb_numpy.sampling.run import sample
from bbb_numpy.training import Recipe
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.comparing import (
    Claim,
    captioned,
    claims,
    learn,
    plus_minus,
    table,
    table_of_columns,
    write,
)
from bbb_studies.data import sp500 as data
from bbb_studies.data.sp500 import Prices, Table

Array = NDArray[Any]
NUTS_NAME, VI_NAME = "network, NUTS", "network, VI"


@dataclass(frozen=True)
class Effort:
    """How much is computed; less for a quick look."""

    hidden: int = 5
    prior_scale: float = 0.5
    chains: int = 4
    warm_up: int = 120
    draws: int = 150
    epochs: int = 80
    samples: int = 300  # of the weights, for predictions of VI


class Task(NamedTuple):
    """What a forecaster is told before a year begins, and what it is asked."""

    x: Array  # (N, d_in)  training inputs, all companies
    y: Array  # (N, 1)
    thinned: NDArray[np.intp]  # rows of them for the networks: every company in turn
    test: Array  # (M, d_in)
    seed: tuple[int, ...]
    effort: Effort


class Forecast(NamedTuple):
    """Probabilities that the next close is higher, and the directions forecast."""

    proba: Array  # (M,)
    up: NDArray[np.bool_]  # (M,)
    note: dict[str, float]


def climatology(task: Task) -> Forecast:
    """State the share of rises so far, for every row."""
    share = float(task.y.mean())
    proba = np.full(len(task.test), share)
    return Forecast(proba, proba > 0.5, {})


def last_value(task: Task) -> Forecast:
    """Say that tomorrow goes as today; the probability is how often that was so."""
    today, tests = task.x[:, 0] > 0, task.test[:, 0] > 0  # the first input is today's return
    after = [float(task.y[today == direction].mean()) for direction in (False, True)]
    return Forecast(np.where(tests, after[1], after[0]), tests, {})


def logistic(task: Task) -> Forecast:
    """Fit a logistic regression to all training rows by Newton's method."""
    mean, scale = moments(task.x, True)
    design = np.column_stack([(task.x - mean) / scale, np.ones(len(task.x))])
    weights = np.zeros(design.shape[1])
    for _ in range(20):
        proba = sigmoid(design @ weights)
        slope = design.T @ (task.y[:, 0] - proba) - 1e-6 * weights
        bend = (design * (proba * (1.0 - proba))[:, None]).T @ design
        step = np.linalg.solve(bend + 1e-6 * np.eye(len(weights)), slope)
        weights += step
        if np.abs(step).max() < 1e-10:
            break
    proba = sigmoid((task.test - mean) / scale @ weights[:-1] + weights[-1])
    return Forecast(proba, proba > 0.5, {})


def _prepared(task: Task) -> tuple[Model, Array, Array, Array]:
    """Return the model, and inputs standardised by the training rows alone."""
    mean, scale = moments(task.x, True)
    net = MLP((task.x.shape[1], task.effort.hidden, 1), "tanh")
    model = Model(net, GaussianPrior(task.effort.prior_scale), BernoulliLikelihood())
    x, y = (task.x[task.thinned] - mean) / scale, task.y[task.thinned]
    return model, x, y, (task.test - mean) / scale


def nuts(task: Task) -> Forecast:
    """Sample the posterior of a tanh network and average its probabilities."""
    model, x, y, test = _prepared(task)
    effort = task.effort
    rng = np.random.default_rng([*task.seed, 1])
    draws = sample(
        model, x, y, sampler=NUTS(max_depth=6), chains=effort.chains, groups=1,
        warm_up=effort.warm_up, draws=effort.draws, seed=rng, dtype="float32", progress=False,
    )  # fmt: skip
    each = np.stack(
        [
            _proba(DrawnWeights(model), draws.positions[:, chain], test, rng, effort.draws)
            for chain in range(effort.chains)
        ]
    )  # (chains, M)
    note = {
        "between chains": float(each.std(axis=0, ddof=1).mean()) if len(each) > 1 else 0.0,
        "divergences": float(draws.divergences),
        "gradients": float(draws.stats["gradients"].sum()),
    }
    proba = each.mean(axis=0)
    return Forecast(proba, proba > 0.5, note)


def variational(task: Task) -> Forecast:
    """Train a mean-field posterior of the same network on the same rows."""
    model, x, y, test = _prepared(task)
    estimator, rng = (
        ClosedFormKL(model, MeanField(0.1, -3.0)),
        np.random.default_rng([*task.seed, 2]),
    )
    recipe = Recipe(Adam(1e-2, schedule=Cosine()), epochs=task.effort.epochs, batch_size=250)
    theta = learn(estimator, x, y, recipe, rng)
    proba = _proba(estimator, theta, test, rng, task.effort.samples)
    return Forecast(proba, proba > 0.5, {})


def _proba(source: Any, theta: Array, x: Array, rng: np.random.Generator, samples: int) -> Array:
    """Return the predictive probability of a rise (M,), as float64."""
    found = predictive.predict_classes(
        source, np.ascontiguousarray(theta), x, rng=rng, samples=samples
    )
    return np.asarray(found.proba[:, 1], float)


FORECASTERS: dict[str, Callable[[Task], Forecast]] = {
    "climatology": climatology,
    "last value": last_value,
    "logistic regression": logistic,
    VI_NAME: variational,
    NUTS_NAME: nuts,
}


FIRST, THIN = 2012, 5
BASE = "climatology"


class Result(NamedTuple):
    """All forecasts of one forecaster, in the order of the test rows."""

    proba: Array  # (M,)
    up: NDArray[np.bool_]  # (M,)
    notes: list[dict[str, float]]  # of each year
    seconds: float


class Walk(NamedTuple):
    """Forecasts of the same M rows by every forecaster, and what happened."""

    results: dict[str, Result]
    y: Array  # (M,)
    made: NDArray[np.datetime64]  # (M,)  day of the forecast
    year: NDArray[np.int_]  # (M,)


def walk_forward(
    rows: Table,
    *,
    forecasters: Mapping[str, Callable[[Task], Forecast]] = FORECASTERS,
    first: int = FIRST,
    thin: int = THIN,
    effort: Effort | None = None,
    seed: int = 0,
    done: Done = unseen,
) -> Walk:
    """Refit every forecaster each year on all that was known, and forecast the year (D38).

    Parameters
    ----------
    rows : Table
    forecasters : mapping of str to callable
    first : int
        First year forecast.
    thin : int
        Networks train on every company once in `thin` days.
    effort : Effort, optional
    seed : int
        Same seed, same forecasts; those of a year do not depend on what comes after it.
    done : callable
        Is told of every forecast of a year.
    """
    effort = effort or Effort()
    tests: list[NDArray[np.intp]] = []
    found: dict[str, list[Forecast]] = {name: [] for name in forecasters}
    seconds = dict.fromkeys(forecasters, 0.0)
    every = list(data.splits(rows, first))
    for all_of_them, thinned in zip(every, data.splits(rows, first, thin), strict=True):
        train, test = all_of_them.train, all_of_them.test
        task = Task(
            rows.x[train],
            rows.y[train],
            np.searchsorted(train, thinned.train),
            rows.x[test],
            (seed, int(all_of_them.name)),
            effort,
        )
        tests.append(test)
        for name, forecaster in counted(forecasters.items(), done):
            began = perf_counter()
            found[name].append(forecaster(task))
            seconds[name] += perf_counter() - began
    chosen = np.concatenate(tests)
    results = {
        name: Result(
            np.concatenate([one.proba for one in some]),
            np.concatenate([one.up for one in some]),
            [one.note for one in some],
            seconds[name],
        )
        for name, some in found.items()
    }
    year = rows.known[chosen].astype("datetime64[Y]").astype(int) + 1970
    return Walk(results, rows.y[chosen, 0], rows.made[chosen], year)


def leak(rows: Table, companies: int, **options: Any) -> float:
    """Return the accuracy of logistic regression whose inputs are one day too new: a planted error.

    Its inputs of day t are those of day t + 1, which contain the change that is to be forecast.
    """
    wrong = rows._replace(x=np.concatenate([rows.x[companies:], rows.x[-companies:]]))
    walk = walk_forward(wrong, forecasters={"leak": logistic}, **options)
    return float((walk.results["leak"].up == walk.y).mean())


def log_loss(proba: Array, y: Array) -> Array:
    """Return -log of the probability stated for what happened (M,), in nats."""
    return -np.log(np.where(y == 1, proba, 1.0 - proba))


class Scores(NamedTuple):
    """What is said of one forecaster; pairs are mean and standard error, clustered by day.

    Gains are over climatology on the same rows, positive where the forecaster is better.
    """

    accuracy: tuple[float, float]
    log_loss: tuple[float, float]  # nats
    brier: tuple[float, float]
    accuracy_gained: tuple[float, float]
    log_loss_gained: tuple[float, float]
    brier_gained: tuple[float, float]
    years: dict[str, tuple[float, float]]  # log loss gained
    calibration_error: float
    calibration_error_by_chance: float
    spread_of_the_probabilities: float
    seconds: float

    @property
    def gains(self) -> dict[str, tuple[float, float]]:
        """All gains over climatology."""
        return {
            "accuracy": self.accuracy_gained,
            "log loss": self.log_loss_gained,
            "Brier": self.brier_gained,
        }


def measure(walk: Walk) -> dict[str, Scores]:
    """Return the scores of every forecaster."""
    base = walk.results[BASE]
    right_base, loss_base = base.up == walk.y, log_loss(base.proba, walk.y)
    out = {}
    for name, result in walk.results.items():
        right = (result.up == walk.y).astype(float)
        loss, squares = log_loss(result.proba, walk.y), brier(result.proba, walk.y)
        gained = loss_base - loss
        bins = reliability(result.proba, walk.y, 10, "equal mass")
        years = {}
        for year in np.unique(walk.year):
            chosen = walk.year == year
            years[str(year)] = clustered_mean(gained[chosen], walk.made[chosen])
        out[name] = Scores(
            accuracy=clustered_mean(right, walk.made),
            log_loss=clustered_mean(loss, walk.made),
            brier=clustered_mean(squares, walk.made),
            accuracy_gained=clustered_mean(right - right_base, walk.made),
            log_loss_gained=clustered_mean(gained, walk.made),
            brier_gained=clustered_mean(brier(base.proba, walk.y) - squares, walk.made),
            years=years,
            calibration_error=expected_calibration_error(bins),
            calibration_error_by_chance=chance_calibration_error(bins),
            spread_of_the_probabilities=float(result.proba.std()),
            seconds=result.seconds,
        )
    return out


def design_effect(walk: Walk) -> float:
    """Return how many times the variance of a mean is that of independent rows."""
    _, error = clustered_mean(walk.y, walk.made)
    return float(error**2 * len(walk.y) / walk.y.var())


class Facts(NamedTuple):
    """What a table of prices holds, and what of it was forecast."""

    companies: int
    dropped: int  # not listed on every day
    days: int
    years: tuple[int, int]
    rows_tested: int
    days_tested: int
    rises: float
    design_effect: float
    naive_error: float  # of the share of rises, were rows independent


def facts(prices: Prices, walk: Walk) -> Facts:
    """Return the facts of a table and its forecasts."""
    return Facts(
        companies=len(prices.symbols),
        dropped=len(prices.dropped),
        days=len(prices.dates),
        years=(int(walk.year.min()), int(walk.year.max())),
        rows_tested=len(walk.y),
        days_tested=len(np.unique(walk.made)),
        rises=float(walk.y.mean()),
        design_effect=design_effect(walk),
        naive_error=float(np.sqrt(walk.y.var() / len(walk.y))),
    )


STYLES = {
    "last value": (GREY, "D", ":"),
    "logistic regression": (GREEN, "^", "-."),
    VI_NAME: (VERMILLION, "s", "--"),
    NUTS_NAME: (BLUE, "o", "-"),
}


def draw_figure(walk: Walk, scores: Mapping[str, Scores]) -> Figure:
    """Draw gains by year, gains added up over days, and the reliability of the network."""
    figure = Figure(figsize=(15.0, 4.8), layout="constrained")
    a, b, c = figure.subplots(1, 3)
    shown = {name: style for name, style in STYLES.items() if name in scores}
    for place, (name, (colour, marker, style)) in enumerate(shown.items()):
        years = scores[name].years
        mean, error = 1e3 * np.array(list(years.values())).T
        at = np.array([int(year) for year in years]) + 0.12 * (place - 0.5 * (len(shown) - 1))
        a.errorbar(
            at, mean, yerr=1.96 * error, fmt=marker, color=colour, markersize=6, capsize=3,
            label=name,
        )  # fmt: skip
        days, order = np.unique(walk.made, return_inverse=True)
        gained = log_loss(walk.results[BASE].proba, walk.y)
        gained = gained - log_loss(walk.results[name].proba, walk.y)
        per_day = np.bincount(order, gained) / np.bincount(order)
        b.plot(days, per_day.cumsum(), linestyle=style, color=colour, linewidth=1.6, label=name)
        if name == NUTS_NAME:
            cone = 1.96 * per_day.std() * np.sqrt(np.arange(1, len(days) + 1))
            b.fill_between(
                days, -cone, cone, color=GREY, alpha=0.18, linewidth=0,
                label="95 % of chance, NUTS",
            )  # fmt: skip
    a.axhline(0.0, color=BLACK, linewidth=1.0)
    a.set_xticks(sorted({int(year) for year in walk.year}))
    b.axhline(0.0, color=BLACK, linewidth=1.0)
    lowest, highest = 1.0, 0.0
    for name in (VI_NAME, NUTS_NAME):
        colour, marker, style = STYLES[name]
        proba = walk.results[name].proba
        bins = reliability(proba, walk.y, 10, "equal mass")
        inside = np.clip(np.searchsorted(bins.low, proba, side="right") - 1, 0, len(bins.low) - 1)
        found = [
            clustered_mean(walk.y[inside == k], walk.made[inside == k])
            for k in range(len(bins.low))
        ]
        error = 1.96 * np.array([one[1] for one in found])
        c.errorbar(
            bins.stated, bins.seen, yerr=error, marker=marker, linestyle=style, color=colour,
            markersize=6, capsize=3, linewidth=1.2, label=name,
        )  # fmt: skip
        lowest = min(lowest, bins.stated[0], (bins.seen - error).min())
        highest = max(highest, bins.stated[-1], (bins.seen + error).max())
    c.plot(
        [lowest, highest], [lowest, highest], "--", color=BLACK, linewidth=1.0, label="calibrated"
    )
    c.axhline(walk.y.mean(), color=GREY, linestyle=":", linewidth=1.4, label="share of rises")
    clustered = "(95 %, clustered by day)"
    by_year = f"year forecast\n(a) against climatology {clustered}"
    finish(a, by_year, "log loss gained (1e-3 nats per forecast)", 2)
    added = "log loss gained, daily means added up (nats)"
    finish(b, "day of the forecast\n(b) the same, added up", added, 2)
    stated = "stated probability of a rise\n(c) reliability, ten bins of equal mass"
    finish(c, stated, f"share of rises {clustered}", 2)
    return figure


SECOND, SECOND_FIRST = "close_505_2013_2018.csv.gz", 2015  # a second table, baselines alone
BASELINES = (BASE, "last value", "logistic regression")
SCORES = ("accuracy", "log loss", "Brier")


def reproduce(
    out: Path, seed: int = 0, *, effort: Effort | None = None, progress: bool | None = None
) -> str:
    """Run everything, write ``forecasts.png`` and ``numbers.json``, return the tables."""
    prices, second = data.load(), data.load(SECOND)
    rows, others = data.rows(prices), data.rows(second)
    baselines = {name: FORECASTERS[name] for name in BASELINES}
    work = len(list(data.splits(rows, FIRST))) * (len(FORECASTERS) + 1)
    work += len(list(data.splits(others, SECOND_FIRST))) * len(baselines)
    with steps(work, progress) as done:
        walk = walk_forward(rows, effort=effort, seed=seed, done=done)
        other = walk_forward(others, forecasters=baselines, first=SECOND_FIRST, done=done)
        leaked = leak(rows, len(prices.symbols), done=done)
    both = {"first": facts(prices, walk), "second": facts(second, other)}
    scores, other_scores = measure(walk), measure(other)
    found = {
        "seed": seed,
        "facts": both["first"],
        "accuracy with a planted leak": leaked,
        "forecasters": scores,
        "second table": both["second"],
        "its forecasters": other_scores,
    }
    write(out, {"forecasts": draw_figure(walk, scores)}, found)
    return _tables(both, walk, scores, leaked, other_scores)


def _tables(
    prices: Mapping[str, Facts],
    walk: Walk,
    scores: Mapping[str, Scores],
    leaked: float,
    second: Mapping[str, Scores],
) -> str:
    parts = {
        "S&P 500, next-day direction, refitted every year on all that was known; on the second "
        "table baselines\nalone. +-: standard error, clustered by day; design effect: its square "
        "over that of independent rows.": _prices(prices),
        "Gained: over climatology on the same rows; ECE: expected calibration error in ten bins "
        "of equal mass\n(that of right probabilities by chance, if rows were independent).": (
            _scores(scores)
        ),
        "Gained, in standard errors; without a real gain one number of the table exceeds 'of all' "
        "and one\nplanned ahead 'of one', up or down, with probability 5 % at most.": (
            _ratios(scores)
        ),
        "Stated probabilities of a rise, and a planted leak.": _probabilities(walk, leaked),
        "Second table: gained over climatology.": _gains(second),
    }
    judged = claims(
        "The paper names the task and prints nothing; here: scores with a gain beyond 'of all'.",
        "the paper",
        claims_of_the_paper(scores),
    )
    return f"{captioned(parts)}\n\n{judged}"


def _prices(prices: Mapping[str, Facts]) -> str:
    every = prices.values()
    errors = [f.naive_error * f.design_effect**0.5 for f in every]
    columns = {
        "prices": list(prices),
        "companies": [f"{f.companies}" for f in every],
        "left out": [f"{f.dropped}" for f in every],
        "days": [f"{f.days}" for f in every],
        "forecast": [f"{f.years[0]} to {f.years[1]}" for f in every],
        "rows": [f"{f.rows_tested}" for f in every],
        "on days": [f"{f.days_tested}" for f in every],
        "rises, %": [
            plus_minus(f.rises, error, 2, 100) for f, error in zip(every, errors, strict=True)
        ],
        "if independent": [f"{100 * f.naive_error:.2f}" for f in every],
        "design effect": [f"{f.design_effect:.1f}" for f in every],
        "worth rows": [f"{f.rows_tested / f.design_effect:.0f}" for f in every],
    }
    return table_of_columns(columns)


def _scores(scores: Mapping[str, Scores]) -> str:
    every = scores.values()
    columns = {
        "forecaster": list(scores),
        "accuracy %": [plus_minus(*s.accuracy, 2, 100) for s in every],
        "log loss": [f"{s.log_loss[0]:.4f}" for s in every],
        "ECE": [f"{s.calibration_error:.3f} ({s.calibration_error_by_chance:.3f})" for s in every],
    }
    return f"{table_of_columns(columns)}\n\n{_gains(scores)}"


def _gains(scores: Mapping[str, Scores]) -> str:
    rows = [
        [
            name,
            plus_minus(*one.accuracy_gained, 2, 100),
            plus_minus(*one.log_loss_gained, 2, 1e3),
            plus_minus(*one.brier_gained, 2, 1e3),
        ]
        for name, one in scores.items()
        if name != BASE
    ]
    return table(["gained", "accuracy %", "log loss 1e-3 nats", "Brier 1e-3"], rows)


def _in_errors(scores: Mapping[str, Scores]) -> dict[str, dict[str, float]]:
    """Return all gains over climatology, in their standard errors."""
    return {
        name: {score: gain / error for score, (gain, error) in one.gains.items()}
        for name, one in scores.items()
        if name != BASE
    }


def _limit(comparisons: int) -> float:
    """Return the size that one of so many exceeds by chance with probability 5 % (D38)."""
    return NormalDist().inv_cdf(1.0 - 0.025 / comparisons)


def _ratios(scores: Mapping[str, Scores]) -> str:
    found = _in_errors(scores)
    count = len(SCORES) * len(found)
    rows = [[name, *(f"{ratio:+.1f}" for ratio in row.values())] for name, row in found.items()]
    rows += [
        [f"limit of all {count}", *(f"{_limit(count):.2f}" for _ in SCORES)],
        ["limit of one", *(f"{_limit(1):.2f}" for _ in SCORES)],
    ]
    return table(["gained, s.e.", *SCORES], rows)


def _probabilities(walk: Walk, leaked: float) -> str:
    repeat, sampled = walk.results["last value"], walk.results[NUTS_NAME]
    gap = np.abs(sampled.proba - walk.results[VI_NAME].proba).mean()
    chains = np.mean([note["between chains"] for note in sampled.notes])
    divergences = sum(note["divergences"] for note in sampled.notes)
    rows = [
        ("last value, after a rise", f"{repeat.proba[repeat.up].mean():.3f}"),
        ("last value, after a fall", f"{repeat.proba[~repeat.up].mean():.3f}"),
        ("NUTS, mean", f"{sampled.proba.mean():.3f}"),
        ("NUTS, deviation between rows", f"{sampled.proba.std():.3f}"),
        ("NUTS less VI, mean size", f"{gap:.3f}"),
        ("NUTS, deviation between chains", f"{chains:.4f}"),
        ("NUTS, divergences", f"{divergences:.0f}"),
        ("networks train on each company once in days", f"{THIN}"),
        ("accuracy of logistic regression, inputs one day too new, %", f"{100 * leaked:.1f}"),
    ]
    return table(("probabilities", "value"), rows)


def claims_of_the_paper(scores: Mapping[str, Scores]) -> list[Claim]:
    """Judge by forecaster whether the direction can be told better than by climatology."""
    found = _in_errors(scores)
    limit = _limit(len(SCORES) * len(found))
    beyond = {
        name: [score for score, ratio in row.items() if ratio > limit]
        for name, row in found.items()
    }
    return [
        Claim(
            f"{name} beats climatology", "some score", ", ".join(some) or "none", bool(some), True
        )
        for name, some in beyond.items()
    ]
