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
DAYS_PER_MONTH = 20  # trading days
DAYS_PER_WEEK = 5
# Closes that the inputs of one day need, that day's included
N_CLOSES_NEEDED = DAYS_PER_MONTH + 1

PRICE_INPUTS = (
    "return today",
    *(f"return {lag} d ago" for lag in range(1, DAYS_PER_WEEK)),
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
    """Inputs and targets: a row for each day and company, N in all, in the order of days."""

    x: Array  # (N, d_in)  the columns of `PRICE_INPUTS`
    y: Array  # (N, 1)  1 if the next close is higher, else 0
    day: NDArray[np.intp]  # (N,)  index of the day t on which the forecast is made
    company: NDArray[np.intp]  # (N,)
    forecast_date: Days  # (N,)  date of day t
    target_date: Days  # (N,)  date of day t + 1, when the target is known


class Split(NamedTuple):
    """Indices of the rows that train and of those that test."""

    name: str  # the year tested
    train: NDArray[np.intp]
    test: NDArray[np.intp]


def load(file: str = PRICE_FILE) -> Prices:
    """Read a table of closes: ``date``, then one column for each company.

    Companies that lack a close on any day are left out, and named in `dropped`. Those that remain
    were listed throughout, which nobody could know in advance: the table has survivorship bias.

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
    # (D-1, C)  row i is known on day i + 1
    log_change = np.diff(np.log(close), axis=0)  # D38
    market = log_change.mean(axis=1, keepdims=True)
    returns, own_volatility = _windows(log_change)
    market_returns, market_volatility = _windows(market)
    market_columns = [
        market_returns[..., -1] / market_volatility,
        market_returns[..., -DAYS_PER_WEEK:].sum(axis=-1)
        / (market_volatility * DAYS_PER_WEEK**0.5),
        market_returns.sum(axis=-1) / (market_volatility * DAYS_PER_MONTH**0.5),
        np.log(market_volatility),
    ]
    columns = [
        *(returns[..., -1 - lag] / own_volatility for lag in range(DAYS_PER_WEEK)),
        returns.sum(axis=-1) / (own_volatility * DAYS_PER_MONTH**0.5),
        np.log(own_volatility),
        *(np.broadcast_to(column, own_volatility.shape) for column in market_columns),
    ]
    return np.stack(columns, axis=-1)


def _windows(change: Array) -> tuple[Array, Array]:
    """Return the last 20 changes of each day (D-20, C, 20), and their root mean square."""
    # A copy, so that every window is summed in the same order, wherever it lies in memory.
    windows = np.ascontiguousarray(sliding_window_view(change, DAYS_PER_MONTH, axis=0))
    volatility = np.sqrt((windows * windows).mean(axis=-1))
    return windows, volatility + 1e-6  # of a constant price the volatility is 0


def tabulate(prices: Prices) -> Table:
    """Return inputs and targets of all companies on all days that have both (D38)."""
    x = inputs(prices.close)[:-1]  # the last day has no next one
    days, companies = x.shape[:2]
    day = np.arange(N_CLOSES_NEEDED - 1, N_CLOSES_NEEDED - 1 + days)
    y = (prices.close[day + 1] > prices.close[day]).astype(float)
    row_day = np.repeat(day, companies)
    return Table(
        x=x.reshape(len(row_day), -1),
        y=y.reshape(-1, 1),
        day=row_day,
        company=np.tile(np.arange(companies), days),
        forecast_date=prices.dates[row_day],
        target_date=prices.dates[row_day + 1],
    )


def splits(table: Table, first_year: int, thinning: int = 1) -> Iterator[Split]:
    """Yield a split for each calendar year: train on the past, test on the year (D38).

    A row belongs to the year in which its target becomes known. It may train if that is before
    the first forecast of the tested year is made, or on that very day, after its close.

    Parameters
    ----------
    table : Table
        As returned by `tabulate`.
    first_year : int
        The first year that is tested.
    thinning : int
        Each company trains once in so many days, in turn: companies of one day move together, so
        that all of them teach little more than a few. All of them are tested.

    Yields
    ------
    Split
        Indices of training and test rows.

    Raises
    ------
    ValueError
        If a year to be tested has no rows, or nothing is known before it.
    """
    year = table.target_date.astype("datetime64[Y]").astype(int) + 1970
    is_in_turn = (table.day + table.company) % thinning == 0
    if not table.forecast_date.size or not year.min() < first_year <= year.max():
        raise ValueError(
            "first_year must be a year of the data, and not the first of them; "
            f"got {first_year}"
        )
    for tested_year in range(first_year, int(year.max()) + 1):
        test = np.flatnonzero(year == tested_year)
        if not test.size:
            raise ValueError(f"the year {tested_year} has no rows")
        train = np.flatnonzero(
            (table.target_date <= table.forecast_date[test].min()) & is_in_turn
        )
        yield Split(str(tested_year), train, test)


NUTS_FORECASTER = "network, NUTS"
VI_FORECASTER = "network, VI"


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
    """What a forecaster knows before a year begins, and the rows that it is to forecast."""

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
    """Forecast the share of rises so far, for every row."""
    proba = np.full(len(task.test), float(task.y.mean()))
    return Forecast(proba, proba > 0.5)


def last_value(task: Task) -> Forecast:
    """Forecast today's direction; the probability is the share of rises after such days."""
    today = task.x[:, 0] > 0  # the first input is today's return
    test_today = task.test[:, 0] > 0
    share_after = [
        float(task.y[today == direction].mean()) for direction in (False, True)
    ]
    return Forecast(np.where(test_today, share_after[1], share_after[0]), test_today)


def logistic(task: Task) -> Forecast:
    """Forecast by scikit-learn's logistic regression, nearly unpenalised, on all training rows."""
    regression = LogisticRegression(C=1e3, tol=1e-8, max_iter=10_000)
    fitted = make_pipeline(StandardScaler(), regression).fit(task.x, task.y[:, 0])
    proba = fitted.predict_proba(task.test)[:, 1]
    return Forecast(proba, proba > 0.5)


def _prepared(task: Task) -> tuple[Model, Array, Array, Array]:
    """Return the tanh network, and inputs standardised by the training rows alone."""
    mean, scale = moments(task.x, True)
    net = MLP((task.x.shape[1], task.effort.hidden, 1), "tanh")
    model = Model(net, GaussianPrior(task.effort.prior_scale), BernoulliLikelihood())
    x = (task.x[task.thinned] - mean) / scale
    y = task.y[task.thinned]
    return model, x, y, (task.test - mean) / scale


def nuts(task: Task) -> Forecast:
    """Forecast by the network's posterior, sampled by NUTS: the average of its probabilities."""
    model, x, y, test = _prepared(task)
    effort = task.effort
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
    source = DrawnWeights(model)
    proba_of_chains = [
        _proba(source, draws.positions[:, chain], test, rng, effort.draws)
        for chain in range(effort.chains)
    ]
    by_chain = np.stack(proba_of_chains)  # (chains, M)
    note = {
        "between chains": float(by_chain.std(axis=0, ddof=1).mean()),
        "divergences": float(draws.divergences),
        "gradients": float(draws.stats["gradients"].sum()),
    }
    proba = by_chain.mean(axis=0)
    return Forecast(proba, proba > 0.5, note)


def variational(task: Task) -> Forecast:
    """Forecast by a mean-field posterior of the same network, trained on the same rows."""
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
    VI_FORECASTER: variational,
    NUTS_FORECASTER: nuts,
}


FIRST_YEAR = 2012  # that is tested
THINNING_DAYS = 5  # the networks train on each company once in so many days
BASELINE_FORECASTER = "climatology"


class Walk(NamedTuple):
    """Forecasts of the same M rows by every forecaster, and what happened."""

    results: dict[str, Forecast]
    y: Array  # (M,)
    forecast_date: NDArray[np.datetime64]  # (M,)  day of the forecast
    year: NDArray[np.int_]  # (M,)


def walk_forward(
    rows: Table,
    *,
    forecasters: Mapping[str, Callable[[Task], Forecast]] = FORECASTERS,
    first_year: int = FIRST_YEAR,
    thinning: int = THINNING_DAYS,
    effort: Effort | None = None,
    seed: int = 0,
    report: ReportWork = ignore_work,
) -> Walk:
    """Refit every forecaster each year on all that was known, and forecast the year (D38).

    Forecasts of a year do not depend on what comes after it.

    Parameters
    ----------
    rows : Table
        As returned by `tabulate`.
    forecasters : mapping
        Functions of a `Task` by name.
    first_year : int
        The first year that is forecast.
    thinning : int
        The networks train on each company once in so many days.
    effort : Effort, optional
        How much to compute.
    seed : int
        Same seed, same forecasts.
    report : callable
        Is called with 1 after each forecaster of each year.

    Returns
    -------
    Walk
        Forecasts and targets of all years.
    """
    forecasts: dict[str, list[Forecast]] = {name: [] for name in forecasters}
    full_splits = splits(rows, first_year)
    thinned_splits = splits(rows, first_year, thinning)
    tests = []
    for (year_name, train, test), thinned in zip(
        full_splits, thinned_splits, strict=True
    ):
        task = Task(
            x=rows.x[train],
            y=rows.y[train],
            thinned=np.searchsorted(train, thinned.train),
            test=rows.x[test],
            seed=(seed, int(year_name)),
            effort=effort or Effort(),
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
    tested_rows = np.concatenate(tests)
    year = rows.target_date[tested_rows].astype("datetime64[Y]").astype(int) + 1970
    return Walk(results, rows.y[tested_rows, 0], rows.forecast_date[tested_rows], year)


def leaked_accuracy(rows: Table, companies: int, **options: Any) -> float:
    """Return the accuracy of logistic regression with a planted leak: inputs one day too new.

    Its inputs of day t are those of day t + 1, which contain the change that is to be forecast.

    Parameters
    ----------
    rows : Table
        As returned by `tabulate`.
    companies : int
        Number of companies, and so of rows of one day.
    **options
        Of `walk_forward`.
    """
    leaking_rows = rows._replace(
        x=np.concatenate([rows.x[companies:], rows.x[-companies:]])
    )
    walk = walk_forward(leaking_rows, forecasters={"leak": logistic}, **options)
    return float((walk.results["leak"].up == walk.y).mean())


def log_loss(proba: Array, y: Array) -> Array:
    """Return minus the log of the probability that was stated for what happened, in nats.

    Parameters
    ----------
    proba : ndarray (M,)
        Probability of a rise.
    y : ndarray (M,)
        1 for a rise, else 0.

    Returns
    -------
    ndarray (M,)
    """
    return -np.log(np.where(y == 1, proba, 1.0 - proba))


def measure(walk: Walk) -> dict[str, dict[str, Any]]:
    """Return the scores of every forecaster by name: mean and standard error, clustered by day.

    Gains are over climatology on the same rows, positive where the forecaster is better. Log
    losses are in nats.
    """

    def scores_of(result: Forecast) -> dict[str, Array]:
        return {
            "accuracy": (result.up == walk.y) * 1.0,
            "log_loss": log_loss(result.proba, walk.y),
            "brier": (result.proba - walk.y) ** 2,
        }

    baseline = scores_of(walk.results[BASELINE_FORECASTER])
    scores_by_name = {}
    for name, result in walk.results.items():
        row_scores = scores_of(result)
        gained = {key: baseline[key] - values for key, values in row_scores.items()}
        gained["accuracy"] *= -1.0
        bins = reliability(result.proba, walk.y, 10, "equal mass")
        scores = {
            key: clustered_mean(row_scores[key], walk.forecast_date)
            for key in ("accuracy", "log_loss")
        }
        scores |= {
            f"{key}_gained": clustered_mean(gains, walk.forecast_date)
            for key, gains in gained.items()
        }
        log_loss_gained = gained["log_loss"]
        years = {str(year): walk.year == year for year in np.unique(walk.year)}
        scores_by_name[name] = scores | {
            "years": {  # log loss gained
                year: clustered_mean(
                    log_loss_gained[in_year], walk.forecast_date[in_year]
                )
                for year, in_year in years.items()
            },
            "calibration_error": expected_calibration_error(bins),
            "calibration_error_by_chance": chance_calibration_error(bins),
        }
    return scores_by_name


def describe_data(prices: Prices, walk: Walk) -> dict[str, Any]:
    """Return the size of a table of prices, and of the part of it that was forecast.

    Parameters
    ----------
    prices : Prices
        The table.
    walk : Walk
        Its forecasts.

    Returns
    -------
    dict
        ``rises`` is their share with its standard error, clustered by day. ``design_effect`` says
        how many times the variance of a mean is that of independent rows.
    """
    rises, error = clustered_mean(walk.y, walk.forecast_date)
    naive = float(np.sqrt(walk.y.var() / len(walk.y)))
    return {
        "companies": len(prices.symbols),
        "dropped": len(prices.dropped),  # not listed on every day
        "days": len(prices.dates),
        "years": (int(walk.year.min()), int(walk.year.max())),
        "rows_tested": len(walk.y),
        "days_tested": len(np.unique(walk.forecast_date)),
        "rises": (rises, error),
        "naive_error": naive,  # of the share of rises, were rows independent
        "design_effect": (error / naive) ** 2,
    }


# A second table of prices, on which only the baselines are tested
SECOND_FILE = "close_505_2013_2018.csv.gz"
SECOND_FIRST_YEAR = 2015
BASELINES = (BASELINE_FORECASTER, "last value", "logistic regression")
GAIN_COLUMNS = ("accuracy_gained", "log_loss_gained", "brier_gained")


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    effort: Effort | None = None,
    progress: bool | None = None,
) -> str:
    """Forecast the S&P 500 year by year, and return the tables.

    Writes ``forecasts.png`` and ``numbers.json``.

    Parameters
    ----------
    out : Path
        Folder of the files.
    seed : int
        Of the networks.
    effort : Effort, optional
        How much to compute.
    progress : bool, optional
        Whether to show a bar, see `bbb_studies.progress.steps`.

    Returns
    -------
    str
        The tables.
    """
    prices = load()
    second_prices = load(SECOND_FILE)
    rows = tabulate(prices)
    second_rows = tabulate(second_prices)
    baselines = {name: FORECASTERS[name] for name in BASELINES}
    work = len(list(splits(rows, FIRST_YEAR))) * (len(FORECASTERS) + 1)
    work += len(list(splits(second_rows, SECOND_FIRST_YEAR))) * len(baselines)
    with steps(work, progress) as report:
        walk = walk_forward(rows, effort=effort, seed=seed, report=report)
        second_walk = walk_forward(
            second_rows,
            forecasters=baselines,
            first_year=SECOND_FIRST_YEAR,
            report=report,
        )
        accuracy_with_leak = leaked_accuracy(rows, len(prices.symbols), report=report)
    facts = {
        "first": describe_data(prices, walk),
        "second": describe_data(second_prices, second_walk),
    }
    scores = measure(walk)
    second_scores = measure(second_walk)
    output = {
        "seed": seed,
        "facts": facts,
        "accuracy with a planted leak": accuracy_with_leak,
        "forecasters": scores,
        "forecasters of the second table": second_scores,
    }
    write(out, {"forecasts": _draw(walk, scores)}, output)

    gain_heads = " | ".join(["gained", *GAIN_COLUMNS])
    n_comparisons = len(GAIN_COLUMNS) * (len(FORECASTERS) - 1)
    z_of_many = NormalDist().inv_cdf(1.0 - 0.025 / n_comparisons)  # D38
    z_of_one = NormalDist().inv_cdf(1.0 - 0.025)
    return text(
        by_key(
            "S&P 500, next-day direction, refitted every year on all that was known; on the "
            "second table baselines\nalone. +-: standard error, clustered by day; design "
            "effect: its square over that of independent rows.",
            "prices | companies | dropped | days | rows_tested | days_tested | rises | naive_error "
            "| design_effect",
            facts,
        ),
        by_key(
            "ECE: expected calibration error in ten bins of equal mass\n(that of right "
            "probabilities by chance, if rows were independent).",
            "forecaster | accuracy | log_loss | calibration_error | calibration_error_by_chance",
            scores,
        ),
        by_key(
            "Gained over climatology on the same rows; nats. Without a real gain one of the "
            f"{n_comparisons} exceeds\n{z_of_many:.2f} of its standard errors, and one planned "
            f"ahead {z_of_one:.2f}, up or down, with probability 5 % at most.",
            gain_heads,
            scores,
        ),
        _probabilities(walk, accuracy_with_leak),
        by_key("Second table: gained over climatology.", gain_heads, second_scores),
    )


def _probabilities(walk: Walk, accuracy_with_leak: float) -> str:
    last_value = walk.results["last value"]
    sampled = walk.results[NUTS_FORECASTER]
    leak_key = "accuracy of logistic regression, inputs one day too new, %"
    gap = np.abs(sampled.proba - walk.results[VI_FORECASTER].proba).mean()
    chains = np.mean([note["between chains"] for note in sampled.note])
    rows = {
        "last value, after a rise": f"{last_value.proba[last_value.up].mean():.3f}",
        "last value, after a fall": f"{last_value.proba[~last_value.up].mean():.3f}",
        "NUTS less VI, mean size": f"{gap:.3f}",
        "NUTS, sd between chains": f"{chains:.4f}",
        "NUTS, divergences": f"{sum(note['divergences'] for note in sampled.note):.0f}",
        leak_key: f"{100 * accuracy_with_leak:.1f}",
    }
    return values(
        "Stated probabilities of a rise, and a planted leak.", "probabilities", rows
    )


FORECASTER_STYLES = {
    "last value": (GREY, "D", ":"),
    "logistic regression": (GREEN, "^", "-."),
    VI_FORECASTER: (VERMILLION, "s", "--"),
    NUTS_FORECASTER: (BLUE, "o", "-"),
}


def _draw(walk: Walk, scores: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw gains by year, gains added up over days, and the reliability of the network."""
    figure, (years_ax, days_ax, reliability_ax) = panels(15.0, 4.8, 1, 3)
    days, day_of_row = np.unique(walk.forecast_date, return_inverse=True)
    baseline_loss = log_loss(walk.results[BASELINE_FORECASTER].proba, walk.y)
    middle = 0.5 * (len(FORECASTER_STYLES) - 1)
    for index, (name, (colour, marker, line)) in enumerate(FORECASTER_STYLES.items()):
        years = scores[name]["years"]
        mean, error = 1e3 * np.array(list(years.values())).T
        x = np.array([int(year) for year in years]) + 0.12 * (index - middle)
        marker_style = {"fmt": marker, "color": colour, "markersize": 6, "capsize": 3}
        years_ax.errorbar(x, mean, yerr=1.96 * error, label=name, **marker_style)
        gained = baseline_loss - log_loss(walk.results[name].proba, walk.y)
        per_day = np.bincount(day_of_row, gained) / np.bincount(day_of_row)
        days_ax.plot(
            days,
            per_day.cumsum(),
            linestyle=line,
            color=colour,
            linewidth=1.6,
            label=name,
        )
    # per_day is that of the last forecaster, NUTS
    chance_band = 1.96 * per_day.std() * np.sqrt(np.arange(1, len(days) + 1))
    chance_label = "95 % of chance, NUTS"
    days_ax.fill_between(
        days,
        -chance_band,
        chance_band,
        color=GREY,
        alpha=0.18,
        linewidth=0,
        label=chance_label,
    )
    years_ax.set_xticks(sorted({int(year) for year in walk.year}))
    for ax in (years_ax, days_ax):
        ax.axhline(0.0, color=BLACK, linewidth=1.0)
    tables = {
        name: reliability(walk.results[name].proba, walk.y, 10, "equal mass")
        for name in (NUTS_FORECASTER, VI_FORECASTER)  # the colours of (a) and (b)
    }
    reliability_diagram(tables, ax=reliability_ax)
    reliability_ax.set_xlabel(
        "stated probability of a rise\n(c) reliability (95 %, were rows independent)"
    )
    clustered = "(95 %, clustered by day)"
    by_year = f"year forecast\n(a) against climatology {clustered}"
    finish(years_ax, by_year, "log loss gained (1e-3 nats per forecast)", 2)
    added = "log loss gained, daily means added up (nats)"
    finish(days_ax, "day of the forecast\n(b) the same, added up", added, 2)
    return figure
