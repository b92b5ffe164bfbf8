"""Forecasts of next-day directions use the past alone, and are judged by errors that are right."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic_data import prices

from bbb_studies.data.locate import DamagedDataError, MissingDataError
from bbb_studies.mullachery import sp500
from bbb_studies.mullachery.sp500 import (
    FORECASTERS,
    N_CLOSES_NEEDED,
    NUTS_FORECASTER,
    PRICE_INPUTS,
    Effort,
    inputs,
    splits,
    tabulate,
)

QUICK = Effort(hidden=2, chains=2, warm_up=6, draws=5, epochs=2, samples=10)


def with_another_future(prices, day, seed=99):
    """The same prices up to and including `day`, others afterwards."""
    close = prices.close.copy()
    rng = np.random.default_rng(seed)
    close[day + 1 :] *= np.exp(rng.normal(0.5, 0.3, close[day + 1 :].shape))
    return prices._replace(close=close)


@pytest.mark.equation("D38")
@pytest.mark.parametrize("companies", [1, 4, 20])
def test_inputs_of_a_day_do_not_change_by_one_bit_with_later_prices(companies):
    given = prices(companies=companies)
    known = inputs(given.close)
    for day in (N_CLOSES_NEEDED - 1, N_CLOSES_NEEDED, 57, 63, 64, 311, 698):
        kept = day - (N_CLOSES_NEEDED - 1) + 1
        changed = inputs(with_another_future(given, day).close)
        assert (changed[:kept] == known[:kept]).all()
        assert (inputs(given.close[: day + 1])[:kept] == known[:kept]).all()
        if len(known) > kept:
            assert (changed[kept:] != known[kept:]).any(), "the change of the future shows"


@pytest.mark.equation("D38")
def test_inputs_are_what_their_names_say():
    given = prices(days=40, companies=3)
    change = np.diff(np.log(given.close), axis=0)
    found = inputs(given.close)
    assert found.shape == (40 - 20, 3, len(PRICE_INPUTS))
    day, company = 33, 1
    past = change[day - 20 : day]  # ends with the change from day - 1 to day
    volatility = np.sqrt(np.mean(past[:, company] ** 2))
    market = past.mean(axis=1)
    all_volatility = np.sqrt(np.mean(market**2))
    expected = [
        *(past[-1 - lag, company] / volatility for lag in range(5)),
        past[:, company].sum() / volatility / 20**0.5,
        np.log(volatility),
        market[-1] / all_volatility,
        market[-5:].sum() / all_volatility / 5**0.5,
        market.sum() / all_volatility / 20**0.5,
        np.log(all_volatility),
    ]
    assert found[day - 20, company] == pytest.approx(expected, rel=1e-3)
    adjusted = inputs(given.close * [1000.0, 0.5, 3.0])
    assert adjusted == pytest.approx(found, rel=1e-6, abs=1e-9), "later dividends drop out"


@pytest.mark.equation("D38")
def test_the_target_of_a_row_is_the_next_day_and_no_other():
    given = prices(days=60)
    table = tabulate(given)
    assert len(table.y) == (60 - N_CLOSES_NEEDED) * 4
    for i in (0, 7, 101, len(table.y) - 1):
        day, company = table.day[i], table.company[i]
        assert table.y[i, 0] == (given.close[day + 1, company] > given.close[day, company])
        assert table.forecast_date[i] == given.dates[day]
        assert table.target_date[i] == given.dates[day + 1]
        assert (table.x[i] == inputs(given.close)[day - N_CLOSES_NEEDED + 1, company]).all()
    flat = tabulate(given._replace(close=np.full((60, 4), 7.0)))
    assert (flat.y == 0).all(), "no rise if the price stands still"
    assert np.isfinite(flat.x).all()


@pytest.mark.equation("D38")
def test_what_trains_was_known_when_the_year_began():
    table = tabulate(prices())
    found = list(splits(table, 2011))
    assert [split.name for split in found] == ["2011", "2012"]
    for split in found:
        assert table.target_date[split.train].max() == table.forecast_date[split.test].min()
        assert (table.target_date[split.train] <= table.forecast_date[split.test].min()).all()
        years = table.target_date[split.test].astype("datetime64[Y]")
        assert (years == np.datetime64(split.name)).all()
        # all rows before the first tested day train: none is lost, none is used twice
        assert len(split.train) == split.test.min()
    thin = next(iter(splits(table, 2012, 4)))
    assert np.isin(thin.train, found[1].train).all()
    assert len(thin.train) == pytest.approx(len(found[1].train) / 4, abs=2)
    assert (np.bincount(table.company[thin.train]) >= len(thin.train) // 4 - 1).all()
    assert (thin.test == found[1].test).all()


@pytest.mark.equation("D38")
@pytest.mark.parametrize("name", list(FORECASTERS))
def test_forecasts_of_a_year_do_not_change_by_one_bit_with_later_prices(name):
    given = prices()
    table = tabulate(given)
    options = {"forecasters": {name: FORECASTERS[name]}, "first_year": 2011, "effort": QUICK}
    walk = sp500.walk_forward(table, **options)
    for day in (350, 521, 600):  # within 2011, at the turn of the year, within 2012
        other = tabulate(with_another_future(given, day))
        again = sp500.walk_forward(other, **options)
        past = walk.forecast_date <= given.dates[day]
        assert past.any()
        assert (walk.results[name].proba[past] == again.results[name].proba[past]).all()
        assert (walk.results[name].up[past] == again.results[name].up[past]).all()


@pytest.mark.parametrize(
    "name", ["logistic regression", pytest.param(NUTS_FORECASTER, marks=pytest.mark.slow)]
)
def test_what_can_be_predicted_is_found(name):
    """The other control: with real momentum in the prices every model gains over climatology.

    The next change is normal with a mean of 0.8 times the last: its sign is that of the last in
    1/2 + arcsin(0.8) / pi = 0.795 of the cases. On other prices gains were 12 to 19 of their
    errors.
    """
    table = tabulate(prices(days=800, momentum=0.8))
    effort = replace(QUICK, hidden=3, chains=2, warm_up=40, draws=30, epochs=40, samples=60)
    walk = sp500.walk_forward(
        table, first_year=2012, effort=effort,
        forecasters={"climatology": sp500.climatology, name: FORECASTERS[name]},
    )  # fmt: skip
    gained = sp500.measure(walk)[name]
    assert gained["log_loss_gained"][0] > 4 * gained["log_loss_gained"][1]
    accuracy, error = gained["accuracy"]
    assert 0.65 < accuracy < 0.5 + np.arcsin(0.8) / np.pi + 4 * error


def test_damaged_tables_and_impossible_years_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("BBB_NUMPY_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"skfolio.*one column per company"):
        sp500.load()
    (tmp_path / "sp500").mkdir()
    path = tmp_path / "sp500" / sp500.PRICE_FILE

    def load(text):
        path.write_text(text)
        return sp500.load()

    good = load("date,A,B,C\n2010-01-04,1,2,\n2010-01-05,1.5,2,3\n")
    assert (good.symbols, good.dropped) == (("A", "B"), ("C",)), "left out, visibly"
    assert good.close.tolist() == [[1.0, 2.0], [1.5, 2.0]]
    for text, message in (
        ("day,A\n2010-01-04,1\n", "must begin with the line date,SYMBOL"),
        ("date,A\n2010-01-05,1\n2010-01-04,1\n", "dates must increase"),
        ("date,A\n2010-01-05,0\n", "closes must be positive"),
        ("date,A\nyesterday,1\n", "dates must be like 2010-01-04"),
        ("date,A\n2010-01-05,one\n", "finite number"),
    ):
        with pytest.raises(DamagedDataError, match=message):
            load(text)
    with pytest.raises(ValueError, match="first_year must be a year of the data"):
        list(splits(tabulate(prices(days=60)), 2010))
