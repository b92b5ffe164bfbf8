"""The fit report tells when counts refute their likelihood, and names one that suits them."""

import contextlib
import io
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bbb_numpy import Adam, BayesianMLPRegressor, Cosine, GaussianPrior, load, save
from bbb_numpy.learners import fit_measures

pytestmark = pytest.mark.brief
PAGE = (Path(__file__).parents[2] / "docs" / "counts.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
ROWS = 300
QUICK = {
    "inference": "map",
    "prior": GaussianPrior(5.0),
    "optimizer": Adam(0.1, schedule=Cosine()),
    "epochs": 120,
    "batch_size": ROWS,
    "progress": False,
}


def counts(seed=0, dispersion=0.0, zeros=0.0, factor=1.0, rows=ROWS):
    """Draw inputs and counts of a rate that depends on them, which vary as is asked."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, 2))
    rate = factor * np.exp(1.5 + x @ [0.8, -0.4])
    if dispersion:
        rate = rate * rng.gamma(1 / dispersion, dispersion, rows)
    return x, rng.poisson(rate) * (rng.random(rows) >= zeros)


def report_of(x, y, likelihood="poisson", **params):
    model = BayesianMLPRegressor((), likelihood=likelihood, random_state=0, **QUICK | params)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(x, y)
    report = model.fit_report_
    messages = [str(each.message) for each in caught if each.category is ConvergenceWarning]
    assert messages == ([report.message] if report.message else [])
    return report


@pytest.mark.parametrize(
    ("planted", "likelihood", "advice"),
    [
        ({"dispersion": 0.5}, "poisson", "negative-binomial"),
        ({"zeros": 0.3}, "poisson", "zero-inflated"),
        ({"zeros": 0.3, "dispersion": 0.5}, "zero-inflated", "zero-inflated-negative-binomial"),
    ],
)
def test_planted_spread_is_seen_and_its_cure_passes(planted, likelihood, advice):
    x, y = counts(**planted)
    report = report_of(x, y, likelihood)
    assert report.dispersion > report.largest_dispersion
    assert "the counts vary more than the likelihood allows" in report.message
    assert f"; use likelihood={advice!r}" in report.message
    cured = report_of(x, y, advice)
    assert cured.passed, cured.message
    assert cured.log_density > report.log_density + 0.05


def test_extra_zeros_are_told_from_rates_that_vary():
    report = report_of(*counts(zeros=0.3))
    assert report.zero_share > report.largest_zero_share
    assert report.zero_share > report.dispersed_zero_share + 0.1
    assert "% of the counts are 0, more than the" in report.message
    varying = report_of(*counts(dispersion=0.5))
    assert abs(varying.zero_share - varying.dispersed_zero_share) < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_the_page_on_counts_prints_what_it_shows(number):
    code, shown = EXAMPLES[number]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        exec(compile(code, "docs/counts.md", "exec"), {})
    number = re.compile(r"\d+\.?\d*")
    assert number.sub("#", printed.getvalue()) == number.sub("#", shown)
    numbers = (list(map(float, number.findall(text))) for text in (printed.getvalue(), shown))
    assert np.allclose(*numbers, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("factor", [0.05, 1.0, 10.0])
def test_poisson_counts_are_left_alone(factor):
    failed = [report_of(*counts(seed, factor=factor)).findings for seed in range(8)]
    assert sum(map(bool, failed)) <= 1  # three standard deviations of a skewed statistic


def test_a_fit_that_misses_the_means_is_not_blamed_on_the_counts():
    x, y = counts()
    for epochs in (1, 15):
        report = report_of(x, y, epochs=epochs, optimizer=Adam(0.03))
        assert not report.passed
        assert report.dispersion > report.largest_dispersion
        assert "likelihood=" not in report.message


def test_the_numbers_are_printed_kept_and_only_of_counts(tmp_path):
    x, y = counts()
    model = BayesianMLPRegressor((), likelihood="poisson", random_state=0, **QUICK).fit(x, y)
    save(model, tmp_path / "counts.npz")
    report = load(tmp_path / "counts.npz").fit_report_
    assert str(report) == str(model.fit_report_)
    assert "share of zeros among the counts" in str(report)
    real = BayesianMLPRegressor((), random_state=0, **QUICK).fit(x, x[:, 0])
    assert np.isnan(real.fit_report_.dispersion)
    assert "zeros" not in str(real.fit_report_)


def test_exposures_are_no_spread():
    x, y = counts()
    exposure = np.random.default_rng(1).uniform(0.1, 20.0, ROWS)
    rng = np.random.default_rng(2)
    y = rng.poisson(exposure * np.exp(0.5 + x @ [0.8, -0.4]))
    model = BayesianMLPRegressor((), likelihood="poisson", random_state=0, **QUICK)
    model.fit(x, y, exposure=exposure)
    assert model.fit_report_.passed
    assert model.fit_report_.dispersion < 1.3


@pytest.mark.parametrize("name", ["negative-binomial", "zero-inflated"])
def test_the_baseline_of_a_learned_likelihood_has_its_own_best_numbers(name):
    from bbb_numpy.registry import LIKELIHOODS

    _, y = counts(dispersion=0.5, zeros=0.2)
    y = y[:, None].astype(float)
    density, n_parameters = fit_measures.baseline_log_density(LIKELIHOODS[name], y, y)
    poisson, _ = fit_measures.baseline_log_density(LIKELIHOODS["poisson"], y, y)
    assert n_parameters == 2
    assert density.mean() > poisson.mean() + 0.3
    # constant exposures change nothing
    exposed, _ = fit_measures.baseline_log_density(LIKELIHOODS[name], y, y, 3.0, 3.0)
    assert np.allclose(exposed, density, atol=1e-4)
