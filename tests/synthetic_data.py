"""Synthetic data of the studies: prices, income tax, draws, digits; and a mark for real data."""

import os

import numpy as np
import pytest

from bbb_studies.data import powerball
from bbb_studies.data.locate import ENVIRONMENT
from bbb_studies.data.mnist import MNIST
from bbb_studies.mullachery import income_tax, sp500

needs_data = pytest.mark.skipif(
    not os.environ.get(ENVIRONMENT), reason=f"{ENVIRONMENT} is not set: no data sets"
)


def prices(seed=0, days=700, companies=4, momentum=0.0, start="2010-01-04"):
    """Return random walks that share a market; with momentum a change carries over to the next."""
    rng = np.random.default_rng(seed)
    change = 0.006 * rng.standard_normal((days, 1)) + 0.01 * rng.standard_normal((days, companies))
    for day in range(1, days):
        change[day] += momentum * change[day - 1]
    dates = np.busday_offset(np.datetime64(start), np.arange(days), roll="forward")
    symbols = tuple(f"C{i}" for i in range(companies))
    return sp500.Prices(dates, symbols, 50.0 * np.exp(change.cumsum(axis=0)))


def cells(seed=0, n_places=30):
    """Return tax that depends on income, and scatters more in small cells."""
    rng = np.random.default_rng(seed)
    place_codes = np.repeat([f"05{k:03d}" for k in range(n_places)], 6)
    income_class = np.tile(range(6), n_places)
    returns = rng.choice([20.0, 40.0, 100.0, 400.0, 1500.0], 6 * n_places)
    log_income = rng.normal(0, 0.08, 6 * n_places)
    x = rng.uniform(0, 1, (6 * n_places, len(income_tax.TAX_INPUTS)))
    x[:, 0], x[:, -6], x[:, -5:] = log_income, np.log(returns), np.eye(6)[income_class, 1:]
    y = 1.3 * (log_income + income_tax.LOG_TYPICAL_INCOME[income_class]) - np.log(30)
    y += rng.normal(0, 0.6 / returns**0.5)
    return income_tax.Cells(x, y[:, None], place_codes, income_class, returns, {"no income": 0})


def draws(count, seed=0):
    """Return lottery draws, three quarters by the old rules and then a quarter by the new ones."""
    rng = np.random.default_rng(seed)
    balls = np.repeat([59, 69], [3 * count // 4, count // 4])
    white = np.array([np.sort(rng.choice(urn, 5, replace=False)) + 1 for urn in balls])
    days = np.datetime64("2014-01-01") + 4 * np.arange(count)
    red = rng.integers(1, 27, count)
    return powerball.Draws(days, white, balls, red)


def digits(rows, ink, noise, test=200, seed=0):
    """Return images, each one of ten patterns of 784 pixels in noise, and their labels."""
    rng = np.random.default_rng(seed)
    patterns = rng.random((10, 784)) < 0.2

    def images_and_labels(rows):
        labels = rng.integers(0, 10, rows).astype(np.uint8)
        images = ink * patterns[labels] + rng.normal(0, noise, (rows, 784))
        return np.clip(images, 0, 255).astype(np.uint8), labels

    return MNIST(*images_and_labels(rows), *images_and_labels(test))
