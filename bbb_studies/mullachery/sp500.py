"""S&P 500: is the next day's direction predictable from past prices? (Mullachery et al.; D38).

The paper leaves this set unfinished. A *row* is one company on one day t: its inputs use closes up
to day t, its target is whether the close of day t + 1 is higher. `splits` says which rows may
train what: for a test period, those whose target was known before the period begins.

Walk-forward: every year is forecast by what was known when it began. Every forecaster is set
against the share of rises so far, with errors that respect that the companies of one day move
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bbb_numpy.evaluation import predictive
from bbb_numpy.evaluation.reliability import (
    chance_calibration_error,
    expected_calibration_error,
    reliability,
)
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.model.joint import Model
from bbb_numpy.numeric.standardisation import moments
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.calibration import reliability_diagram
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, VERMILLION, finish
from bbb_numpy.sampling.draws import DrawnWeights
from bbb_numpy.training import Recipe
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.comparing import draw, learn
from bbb_studies.data.locate import (
    SETS,
    DamagedDataError,
    increasing_days,
    locate,
    numbers,
    read,
)
from bbb_studies.kit import by_key, clustered_mean, panels, text, values, write
from bbb_studies.progress import ReportWork, counted, ignore_work, steps

Array = NDArray[Any]
Days = NDArray[np.datetime64]
PRICE_FILE: str = SETS["sp500"]["file"]
DAYS_PER_MONTH, DAYS_PER_WEEK = 20, 5  # trading days
N_CLOSES_NEEDED = (
    DAYS_PER_MONTH + 1
)  # closes that the inputs of one day need, that day's included

PRICE_INPUTS = (
    *(f"return {lag} d ago" if lag else "return today" for lag in range(DAYS_PER_WEEK)),
    "return of 20 d",
    "log volatility",
    "market today",
    "market 5 d",
    "market 20 d",
    "log market volatility",
)


class Prices(NamedTuple):
    """Closes of C companies on D trading days."""

    dates: Days  # (D,)  increasing
    symbols: tuple[str, ...]
    close: Array  # (D, C)  USD, adjusted, > 0
    dropped: tuple[str, ...] = ()  # companies left out because a day is missing


class Table(NamedTuple):
    """What is known and what is asked, N = days x companies rows in the order of days."""

    x: Array  # (N, d_in)  the columns of `PRICE_INPUTS`
    y: Array  # (N, 1)  1 if the next close is higher, else 0
    day: NDArray[np.intp]  # (N,)  index of the day t on which the forecast is made
    company: NDArray[np.intp]  # (N,)
    made: Days  # (N,)  date of day t
    known: Days  # (N,)  date of day t + 1, when the target is known


class Split(NamedTuple):
    """Rows that train and rows that test."""

    name: str
    train: NDArray[np.intp]
    test: NDArray[np.intp]


def load(file: str = PRICE_FILE) -> Prices:
    """Read a table of closes: ``date``, then one column for each company.

    Companies that lack a close on any day are left out, and named in `dropped`: that they were
    listed throughout is known only afterwards, so what remains has survived.

    Raises
    ------
    MissingDataError
        If the file is not there; says where to get it.
    DamagedDataError
        If it is no such table, dates do not increase, or a close is not positive.
    """
    header, text = read(locate("sp500", file))
    if len(header) < 2 or header[0] != "date":
        raise DamagedDataError(f"{file} must begin with the line date,SYMBOL,...")
    whole_columns = np.flatnonzero((text != "").all(axis=0))
    symbols = [header[i] for i in whole_columns[1:]]
    dates = increasing_days(file, text[:, 0])
    close = numbers(file, text[:, whole_columns[1:]], symbols)
    if not (close > 0).all():
        raise DamagedDataError(f"{file}: closes must be positive")
    return Prices(
        dates, tuple(symbols), close, tuple(sorted(set(header[1:]) - set(symbols)))
    )


def inputs(close: Array) -> Array:
    """Return the inputs (D - 20, C, d_in) of every day from the 21st on (D38).

    Those of a day use closes (D, C) of that day and before: changing later prices changes no bit
    of them. Returns are logarithmic and in units of the volatility of the past 20 days; the
    market is the mean of all companies. Adjusted closes are scaled down by the dividends and
    splits that follow; ratios of closes, of which all inputs are made, are free of that scale.
    """
    change = np.diff(
        np.log(close), axis=0
    )  # (D-1, C)  D38: row i is known on day i + 1
    market = change.mean(axis=1, keepdims=True)
    returns, own_volatility = _windows(change)
    all_own, all_volatility = _windows(market)
    of_all = [
        all_own[..., -1] / all_volatility,
        all_own[..., -DAYS_PER_WEEK:].sum(axis=-1)
        / (all_volatility * DAYS_PER_WEEK**0.5),
        all_own.sum(axis=-1) / (all_volatility * DAYS_PER_MONTH**0.5),
        np.log(all_volatility),
    ]
    columns = [
        *(returns[..., -1 - lag] / own_volatility for lag in range(DAYS_PER_WEEK)),
        returns.sum(axis=-1) / (own_volatility * DAYS_PER_MONTH**0.5),
        np.log(own_volatility),
        *(np.broadcast_to(column, own_volatility.shape) for column in of_all),
    ]
    return np.stack(columns, axis=-1)


def _windows(change: Array) -> tuple[Array, Array]:
    """Return the last 20 changes of each day (D-20, C, 20), and their root mean square."""
    # A copy, so that every window is summed in the same order, wherever it lies in memory.
    windows = np.ascontiguousarray(sliding_window_view(change, DAYS_PER_MONTH, axis=0))
    return windows, np.sqrt(
        (windows * windows).mean(axis=-1)
    ) + 1e-6  # a price may stand still


def tabulate(prices: Prices) -> Table:
    """Return inputs and targets of all companies on all days that have both (D38)."""
    x = inputs(prices.close)[:-1]  # the last day has no next one
    days, companies = x.shape[:2]
    day = np.arange(N_CLOSES_NEEDED - 1, N_CLOSES_NEEDED - 1 + days)
    y = (prices.close[day + 1] > prices.close[day]).astype(float)
    every, company = np.repeat(day, companies), np.tile(np.arange(companies), days)
    made_on, known_on = prices.dates[every], prices.dates[every + 1]
    return Table(
        x.reshape(len(every), -1), y.reshape(-1, 1), every, company, made_on, known_on
    )


def splits(table: Table, first: int, thin: int = 1) -> Iterator[Split]:
    """Yield one split per calendar year from `first` on: train on the past, test on the year (D38).

    A row belongs to the year in which its target becomes known. It may train if that is before
    the first forecast of the tested year is made, or on that very day, after its close.

    Each company trains once in `thin` days, in turn: companies of one day move together and
    count for little more than a few. All of them are tested.

    ValueError if a year tested has no row, or nothing is known before it.
    """
    year = table.known.astype("datetime64[Y]").astype(int) + 1970
    in_turn = (table.day + table.company) % thin == 0
    if not table.made.size or not year.min() < first <= year.max():
        raise ValueError(
            f"first must be a year after the first of the data and in them; got {first}"
        )
    for tested in range(first, int(year.max()) + 1):
        test = np.flatnonzero(year == tested)
        if not test.size:
            raise ValueError(f"the year {tested} has no rows")
        train = np.flatnonzero((table.known <= table.made[test].min()) & in_turn)
        yield Split(str(tested), train, test)


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
    note: Any = None  # of all years a list


def climatology(task: Task) -> Forecast:
    """State the share of rises so far, for every row."""
    proba = np.full(len(task.test), float(task.y.mean()))
    return Forecast(proba, proba > 0.5)


def last_value(task: Task) -> Forecast:
    """Say that tomorrow goes as today; the probability is how often that was so."""
    today, tests = (
        task.x[:, 0] > 0,
        task.test[:, 0] > 0,
    )  # the first input is today's return
    share_after = [
        float(task.y[today == direction].mean()) for direction in (False, True)
    ]
    return Forecast(np.where(tests, share_after[1], share_after[0]), tests)


def logistic(task: Task) -> Forecast:
    """Fit scikit-learn's logistic regression, all but unpenalised, to all training rows."""
    regression = LogisticRegression(C=1e3, tol=1e-8, max_iter=10_000)
    fitted = make_pipeline(StandardScaler(), regression).fit(task.x, task.y[:, 0])
    proba = fitted.predict_proba(task.test)[:, 1]
    return Forecast(proba, proba > 0.5)


def _prepared(task: Task) -> tuple[Model, Array, Array, Array]:
    """Return the tanh network, and inputs standardised by the training rows alone."""
    mean, scale = moments(task.x, True)
    net = MLP((task.x.shape[1], task.effort.hidden, 1), "tanh")
    model = Model(net, GaussianPrior(task.effort.prior_scale), BernoulliLikelihood())
    x, y = (task.x[task.thinned] - mean) / scale, task.y[task.thinned]
    return model, x, y, (task.test - mean) / scale


def nuts(task: Task) -> Forecast:
    """Sample the posterior of the network and average its probabilities."""
    (model, x, y, test), effort = _prepared(task), task.effort
    rng = np.random.default_rng([*task.seed, 1])
    draws = draw(
        model,
        x,
        y,
        chains=effort.chains,
        warm_up=effort.warm_up,
        draws=effort.draws,
        seed=rng,
        dtype="float32",
    )
    by_chain = np.stack(
        [
            _proba(
                DrawnWeights(model), draws.positions[:, chain], test, rng, effort.draws
            )
            for chain in range(effort.chains)
        ]
    )  # (chains, M)
    note = {
        "between chains": float(by_chain.std(axis=0, ddof=1).mean()),
        "divergences": float(draws.divergences),
        "gradients": float(draws.stats["gradients"].sum()),
    }
    proba = by_chain.mean(axis=0)
    return Forecast(proba, proba > 0.5, note)


def variational(task: Task) -> Forecast:
    """Train a mean-field posterior of the same network on the same rows."""
    model, x, y, test = _prepared(task)
    estimator = ClosedFormKL(model, MeanField(0.1, -3.0))
    rng = np.random.default_rng([*task.seed, 2])
    recipe = Recipe(
        Adam(1e-2, schedule=Cosine()), epochs=task.effort.epochs, batch_size=250
    )
    theta = learn(estimator, x, y, recipe, rng)
    proba = _proba(estimator, theta, test, rng, task.effort.samples)
    return Forecast(proba, proba > 0.5)


def _proba(
    source: Any, theta: Array, x: Array, rng: np.random.Generator, samples: int
) -> Array:
    """Return the predictive probability of a rise (M,), as float64."""
    theta = np.ascontiguousarray(theta)
    predicted = predictive.predict_classes(source, theta, x, rng=rng, samples=samples)
    return np.asarray(predicted.proba[:, 1], float)


FORECASTERS: dict[str, Callable[[Task], Forecast]] = {
    "climatology": climatology,
    "last value": last_value,
    "logistic regression": logistic,
    VI_NAME: variational,
    NUTS_NAME: nuts,
}


FIRST_YEAR, THINNING_DAYS = 2012, 5
BASELINE_FORECASTER = "climatology"


class Walk(NamedTuple):
    """Forecasts of the same M rows by every forecaster, and what happened."""

    results: dict[str, Forecast]
    y: Array  # (M,)
    made: NDArray[np.datetime64]  # (M,)  day of the forecast
    year: NDArray[np.int_]  # (M,)


def walk_forward(
    rows: Table,
    *,
    forecasters: Mapping[str, Callable[[Task], Forecast]] = FORECASTERS,
    first: int = FIRST_YEAR,
    thin: int = THINNING_DAYS,
    effort: Effort | None = None,
    seed: int = 0,
    report: ReportWork = ignore_work,
) -> Walk:
    """Refit every forecaster each year on all that was known, and forecast the year (D38).

    From the year `first` on; networks train on every company once in `thin` days. Same seed, same
    forecasts; those of a year do not depend on what comes after it. `report` is told of every
    forecast of a year.
    """
    forecasts: dict[str, list[Forecast]] = {name: [] for name in forecasters}
    every, thin_ones = splits(rows, first), splits(rows, first, thin)
    tests = []
    for (tested, train, test), thinned in zip(every, thin_ones, strict=True):
        thinned_rows, key = np.searchsorted(train, thinned.train), (seed, int(tested))
        task = Task(
            rows.x[train],
            rows.y[train],
            thinned_rows,
            rows.x[test],
            key,
            effort or Effort(),
        )
        tests.append(test)
        for name, forecaster in counted(forecasters.items(), report):
            forecasts[name].append(forecaster(task))
    results = {}
    for name, forecasts_of_name in forecasts.items():
        probas, ups, notes = zip(*forecasts_of_name, strict=True)
        results[name] = Forecast(
            np.concatenate(probas), np.concatenate(ups), list(notes)
        )
    chosen = np.concatenate(tests)
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


def measure(walk: Walk) -> dict[str, dict[str, Any]]:
    """Return the scores of every forecaster by name: mean and standard error, clustered by day.

    Gains are over climatology on the same rows, positive where the forecaster is better; losses
    in nats.
    """

    def of(result: Forecast) -> dict[str, Array]:
        return {
            "accuracy": (result.up == walk.y) * 1.0,
            "log_loss": log_loss(result.proba, walk.y),
            "brier": (result.proba - walk.y) ** 2,
        }

    base, out = of(walk.results[BASELINE_FORECASTER]), {}
    for name, result in walk.results.items():
        losses = of(result)
        gained = {key: base[key] - values for key, values in losses.items()}
        gained["accuracy"] *= -1.0
        bins = reliability(result.proba, walk.y, 10, "equal mass")
        scores = {
            key: clustered_mean(losses[key], walk.made)
            for key in ("accuracy", "log_loss")
        }
        scores |= {
            f"{key}_gained": clustered_mean(gains, walk.made)
            for key, gains in gained.items()
        }
        years = {str(year): walk.year == year for year in np.unique(walk.year)}
        out[name] = scores | {
            "years": {  # log loss gained
                year: clustered_mean(gained["log_loss"][chosen], walk.made[chosen])
                for year, chosen in years.items()
            },
            "calibration_error": expected_calibration_error(bins),
            "calibration_error_by_chance": chance_calibration_error(bins),
        }
    return out


def facts(prices: Prices, walk: Walk) -> dict[str, Any]:
    """Return what a table of prices holds, and what of it was forecast.

    The design effect says how many times the variance of a mean is that of independent rows.
    """
    rises, error = clustered_mean(walk.y, walk.made)
    naive = float(np.sqrt(walk.y.var() / len(walk.y)))
    return {
        "companies": len(prices.symbols),
        "dropped": len(prices.dropped),  # not listed on every day
        "days": len(prices.dates),
        "years": (int(walk.year.min()), int(walk.year.max())),
        "rows_tested": len(walk.y),
        "days_tested": len(np.unique(walk.made)),
        "rises": (rises, error),
        "naive_error": naive,  # of the share of rises, were rows independent
        "design_effect": (error / naive) ** 2,
    }


SECOND_FILE, SECOND_FIRST_YEAR = (
    "close_505_2013_2018.csv.gz",
    2015,
)  # a second table, baselines alone
BASELINES = (BASELINE_FORECASTER, "last value", "logistic regression")
GAIN_COLUMNS = ("accuracy_gained", "log_loss_gained", "brier_gained")


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    effort: Effort | None = None,
    progress: bool | None = None,
) -> str:
    """Run everything, write ``forecasts.png`` and ``numbers.json``, return the tables."""
    prices, second = load(), load(SECOND_FILE)
    rows, second_rows = tabulate(prices), tabulate(second)
    baselines = {name: FORECASTERS[name] for name in BASELINES}
    work = len(list(splits(rows, FIRST_YEAR))) * (len(FORECASTERS) + 1)
    work += len(list(splits(second_rows, SECOND_FIRST_YEAR))) * len(baselines)
    with steps(work, progress) as report:
        walk = walk_forward(rows, effort=effort, seed=seed, report=report)
        second_walk = walk_forward(
            second_rows, forecasters=baselines, first=SECOND_FIRST_YEAR, report=report
        )
        leaked = leak(rows, len(prices.symbols), report=report)
    both_periods = {"first": facts(prices, walk), "second": facts(second, second_walk)}
    scores, other_scores = measure(walk), measure(second_walk)
    output = {
        "seed": seed,
        "facts": both_periods,
        "accuracy with a planted leak": leaked,
        "forecasters": scores,
        "forecasters of the second table": other_scores,
    }
    write(out, {"forecasts": _draw(walk, scores)}, output)

    gains, count = (
        " | ".join(["gained", *GAIN_COLUMNS]),
        len(GAIN_COLUMNS) * (len(FORECASTERS) - 1),
    )
    limits = [
        NormalDist().inv_cdf(1.0 - 0.025 / compared) for compared in (count, 1)
    ]  # D38
    return text(
        by_key(
            "S&P 500, next-day direction, refitted every year on all that was known; on the "
            "second table baselines\nalone. +-: standard error, clustered by day; design "
            "effect: its square over that of independent rows.",
            "prices | companies | dropped | days | rows_tested | days_tested | rises | naive_error "
            "| design_effect",
            both_periods,
        ),
        by_key(
            "ECE: expected calibration error in ten bins of equal mass\n(that of right "
            "probabilities by chance, if rows were independent).",
            "forecaster | accuracy | log_loss | calibration_error | calibration_error_by_chance",
            scores,
        ),
        by_key(
            "Gained over climatology on the same rows; nats. Without a real gain one of the "
            f"{count} exceeds\n{limits[0]:.2f} of its standard errors, and one planned ahead "
            f"{limits[1]:.2f}, up or down, with probability 5 % at most.",
            gains,
            scores,
        ),
        _probabilities(walk, leaked),
        by_key("Second table: gained over climatology.", gains, other_scores),
    )


def _probabilities(walk: Walk, leaked: float) -> str:
    repeat, sampled = walk.results["last value"], walk.results[NUTS_NAME]
    gap = np.abs(sampled.proba - walk.results[VI_NAME].proba).mean()
    chains = np.mean([note["between chains"] for note in sampled.note])
    rows = {
        "last value, after a rise": f"{repeat.proba[repeat.up].mean():.3f}",
        "last value, after a fall": f"{repeat.proba[~repeat.up].mean():.3f}",
        "NUTS less VI, mean size": f"{gap:.3f}",
        "NUTS, sd between chains": f"{chains:.4f}",
        "NUTS, divergences": f"{sum(note['divergences'] for note in sampled.note):.0f}",
        "accuracy of logistic regression, inputs one day too new, %": f"{100 * leaked:.1f}",
    }
    return values(
        "Stated probabilities of a rise, and a planted leak.", "probabilities", rows
    )


FORECASTER_STYLES = {
    "last value": (GREY, "D", ":"),
    "logistic regression": (GREEN, "^", "-."),
    VI_NAME: (VERMILLION, "s", "--"),
    NUTS_NAME: (BLUE, "o", "-"),
}


def _draw(walk: Walk, scores: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw gains by year, gains added up over days, and the reliability of the network."""
    figure, (a, b, c) = panels(15.0, 4.8, 1, 3)
    days, order = np.unique(walk.made, return_inverse=True)
    base, names = (
        log_loss(walk.results[BASELINE_FORECASTER].proba, walk.y),
        [*FORECASTER_STYLES],
    )
    for index, (name, (colour, marker, line)) in enumerate(FORECASTER_STYLES.items()):
        years = scores[name]["years"]
        mean, error = 1e3 * np.array(list(years.values())).T
        at = np.array([int(year) for year in years]) + 0.12 * (
            index - 0.5 * (len(names) - 1)
        )
        marker_style = {"fmt": marker, "color": colour, "markersize": 6, "capsize": 3}
        a.errorbar(at, mean, yerr=1.96 * error, label=name, **marker_style)
        gained = base - log_loss(walk.results[name].proba, walk.y)
        per_day = np.bincount(order, gained) / np.bincount(order)
        b.plot(
            days,
            per_day.cumsum(),
            linestyle=line,
            color=colour,
            linewidth=1.6,
            label=name,
        )
    cone = (
        1.96 * per_day.std() * np.sqrt(np.arange(1, len(days) + 1))
    )  # of the last, NUTS
    chance = "95 % of chance, NUTS"
    b.fill_between(days, -cone, cone, color=GREY, alpha=0.18, linewidth=0, label=chance)
    a.set_xticks(sorted({int(year) for year in walk.year}))
    for ax in (a, b):
        ax.axhline(0.0, color=BLACK, linewidth=1.0)
    tables = {
        name: reliability(walk.results[name].proba, walk.y, 10, "equal mass")
        for name in (NUTS_NAME, VI_NAME)  # the colours of (a) and (b)
    }
    reliability_diagram(tables, ax=c)
    c.set_xlabel(
        "stated probability of a rise\n(c) reliability (95 %, were rows independent)"
    )
    clustered = "(95 %, clustered by day)"
    by_year = f"year forecast\n(a) against climatology {clustered}"
    finish(a, by_year, "log loss gained (1e-3 nats per forecast)", 2)
    added = "log loss gained, daily means added up (nats)"
    finish(b, "day of the forecast\n(b) the same, added up", added, 2)
    return figure
