"""fit_report: a fit that has failed says so, and what to do; one that has not is silent."""

import re
import sys
import warnings
from dataclasses import replace
from math import isnan, nan
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning

from bbb_numpy import (
    SGD,
    Adam,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    Cosine,
    FreeEnergy,
    GaussianLikelihood,
    GaussianPrior,
    LaplacePrior,
    Sampling,
    StudentTLikelihood,
    load,
    save,
)
from bbb_numpy.cli.main import main
from bbb_numpy.evaluation.convergence import function_r_hats
from bbb_numpy.learners import diagnosis
from bbb_numpy.learners.fit_report import CHECKS, FitReport, failed_checks
from bbb_numpy.learners.rows import TrainingData
from bbb_numpy.numeric.old_names import OLD_NAMES
from bbb_numpy.training import EarlyStopping
from bbb_numpy.training.recipe import Rows

ROWS = 64  # two batches
X = np.random.default_rng(0).uniform(-3, 3, (ROWS, 1))
Y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(ROWS)
CLASSES = (Y > 0).astype(int)
COUNTS = np.random.default_rng(2).poisson(np.exp(1 + X[:, 0] / 2))


def put(array, row, value):
    array = np.array(array, float)
    array[row] = value
    return array


def regressor(**params):
    return BayesianMLPRegressor(**{"random_state": 0, "inference": "mean-field"} | params)


def classifier(**params):
    return BayesianMLPClassifier(**{"random_state": 0, "inference": "mean-field"} | params)


def messages_of_fit(model, x, y):
    """Fit, and return the messages of all convergence warnings."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        model.fit(x, y)
    records = [record for record in records if issubclass(record.category, ConvergenceWarning)]
    # the line that called fit
    assert all(Path(record.filename) == Path(__file__) for record in records)
    return [str(record.message) for record in records]


# --- fits that fail

RAW = {"standardize": False}
UNITS, RATE, EPOCHS = "standardize=True", "with a learning rate of 1", "1 epoch with"
FAILURES = {
    "y of size 1e12, not standardised": (X, 1e12 * Y, RAW, UNITS),
    "y far from 0, not standardised": (X, 1e3 + Y, RAW, UNITS),
    "y of size 10, not standardised": (X, 20 * Y, RAW, UNITS),
    "X of size 1e12, not standardised": (1e12 * X, Y, RAW, UNITS),
    "Adam(1)": (X, Y, {"optimizer": Adam(1.0)}, RATE),
    "Adam(10), cosine": (X, Y, {"optimizer": Adam(10.0, schedule=Cosine())}, RATE),
    "Adam(1e-8)": (X, Y, {"optimizer": Adam(1e-8)}, RATE),
    "one epoch": (X, Y, {"epochs": 1}, EPOCHS),
    "one row": (X[:1], Y[:1], {}, "too few rows"),
    "an outlier of 100 in y": (X, put(Y, 3, 100.0), {}, "student-t-learned"),
    "an outlier of 1e3 in X": (put(X, (3, 0), 1e3), Y, {}, "outliers in X"),
    "fixed noise of 1 %": (X, Y, {"likelihood": GaussianLikelihood(0.01)}, "gaussian-learned"),
    "500 units": (X, Y, {"hidden_layer_sizes": (500,), "epochs": 1000}, "1501 weights"),
    "counts after one epoch": (X, COUNTS, {"likelihood": "poisson", "epochs": 1}, EPOCHS),
    "classes after one epoch": (X, CLASSES, {"epochs": 1}, EPOCHS),
    "classes, Adam(100)": (X, CLASSES, {"optimizer": Adam(100.0)}, RATE),
    "classes, X of size 1e12": (1e12 * X, CLASSES, RAW, UNITS),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_fit_says_so_with_cause_and_remedy(name):
    x, y, params, cause = FAILURES[name]
    model = (classifier if y is CLASSES else regressor)(**{"epochs": 400} | params)
    [message] = messages_of_fit(model, x, y)
    assert cause in message.split("Likely cause: ")[1]
    assert message == model.fit_report_.message
    assert not model.fit_report_.passed
    assert "1 epochs" not in message


RNG = np.random.default_rng(5)
X3 = RNG.standard_normal((120, 3))
Y3 = np.sin(X3[:, 0]) + 0.5 * X3[:, 1] + 0.3 * RNG.standard_normal(120)
NOISE = np.random.default_rng(4).standard_normal(4 * ROWS)
OUTLIER_Y, OUTLIER_X = put(Y, 3, 100.0), put(X, (3, 0), 1e3)
USUAL = {"optimizer": Adam(1e-2, schedule=Cosine())}
LEARNED = GaussianPrior(0.5, learn=True)
SHORT = Sampling("mh", chains=2, draws=5, warm_up=0, start="prior")
STOPS = {"validation_fraction": 0.2}
FEW = {"epochs": 400}
WIDE = {"hidden_layer_sizes": (500,), "epochs": 1000}
LESS = (np.delete(X, 3, 0), np.delete(Y, 3))
# rows and arguments of a fit that fails; what its message says; rows and arguments that follow it
REMEDIES = {
    "standardize": ((X, 1e12 * Y), FEW | RAW, "use standardize=True", (), {"standardize": True}),
    "smaller steps": ((X, Y), FEW | {"optimizer": Adam(1.0)}, "use optimizer=Adam(0.01", (),
                      USUAL),
    "larger steps": ((X, Y), FEW | {"optimizer": Adam(1e-8)}, "use optimizer=Adam(0.01", (),
                     USUAL | {"epochs": 1000}),
    "no SGD": ((X, Y), FEW | {"optimizer": SGD(1e-6)}, "use optimizer=Adam(0.01", (),
               USUAL | {"epochs": 1000}),
    "one epoch": ((X, Y), {"epochs": 1}, "such as epochs=1000", (), {"epochs": 1000}),
    "30 epochs": ((X3, Y3), {"epochs": 30}, "such as epochs=1000", (),
                  {"epochs": 1000}),
    "10 epochs of counts": ((X, COUNTS), {"epochs": 10, "likelihood": "poisson"},
                            "such as epochs=1000", (), {"epochs": 1000}),
    "patience": ((X, Y), STOPS | {"early_stopping": EarlyStopping(2)},
                 "use EarlyStopping(patience=50)", (), {"early_stopping": EarlyStopping(50)}),
    "no outlier in y": ((X, OUTLIER_Y), FEW, "leave out those rows", LESS, {}),
    "heavy tails": ((X, OUTLIER_Y), FEW, "use likelihood='student-t-learned'", (),
                    {"likelihood": "student-t-learned"}),
    "no outlier in X": ((OUTLIER_X, Y), FEW, "leave out those rows", LESS, {}),
    "transformed": ((OUTLIER_X, Y), FEW, "or transform the column",
                    (np.arcsinh(OUTLIER_X), Y), {}),
    "learned noise": ((X, Y), FEW | {"likelihood": GaussianLikelihood(0.01)},
                      "as likelihood='gaussian-learned'", (), {"likelihood": "gaussian-learned"}),
    "learned tails": ((X, Y), FEW | {"likelihood": StudentTLikelihood(0.01)},
                      "as likelihood='student-t-learned'", (), {"likelihood": "student-t-learned"}),
    "elbo": ((X, Y), {"objective": FreeEnergy(beta=100.0)}, "use objective='elbo'", (),
             {"objective": "elbo"}),
    "fixed prior": ((NOISE[:-ROWS].reshape(-1, 3), NOISE[-ROWS:]), {"prior": LEARNED},
                    "fix it (learn=False)", (), {"prior": GaussianPrior(0.5)}),
    "longer warm-up": ((X, Y), {"inference": SHORT}, "use a longer warm_up", (),
                       {"inference": replace(SHORT, warm_up=4000)}),
    "hmc": ((X, Y), {"inference": SHORT}, "or 'hmc'", (),
            {"inference": Sampling("hmc", chains=2, draws=20, warm_up=50)}),
    "fewer units": ((X, Y), WIDE, "fewer units, such as hidden_layer_sizes=(20,)", (),
                    {"hidden_layer_sizes": (20,)}),
    "map": ((X, Y), WIDE, "or inference='map'", (), {"inference": "map"}),
    "narrower prior": ((X, Y), WIDE, "a prior about 0.35 times as wide", (),
                       {"prior": GaussianPrior(0.5 * 0.35)}),
    "more rows": ((X, Y), WIDE, "more rows", (np.repeat(X, 8, 0), np.repeat(Y, 8)),
                  {"epochs": 300}),
}  # fmt: skip
LONG = {"fewer units", "map", "narrower prior", "more rows", "longer warm-up", "hmc", "30 epochs"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in REMEDIES]
)
def test_a_fit_that_follows_the_advice_passes(name):
    rows, params, advice, other_rows, changes = REMEDIES[name]
    [message] = messages_of_fit(regressor(**params), *rows)
    assert advice in message.split("Likely cause: ")[1]
    assert messages_of_fit(regressor(**params | changes), *(other_rows or rows)) == []


TAILS = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(3).standard_t(2, ROWS)
GIVEN = {"student-t": "student-t-learned", GaussianLikelihood(0.1): "gaussian-learned"}


@pytest.mark.parametrize("likelihood", GIVEN)
def test_noise_that_is_given_too_small_is_seen_by_its_intervals(likelihood):
    """Its intervals hold few of the rows that it was trained on; learned noise holds enough."""
    model = regressor(likelihood=likelihood, epochs=300)
    [message] = messages_of_fit(model, X, TAILS)
    low, high = model.predict_interval(X, 0.9).T
    share = np.mean((low <= TAILS) & (high >= TAILS))
    coverage = model.fit_report_.interval_coverage
    assert coverage == pytest.approx(share, abs=2 / ROWS)
    assert share < 0.7
    assert f"the 90 % intervals hold {100 * coverage:.0f} % of the train" in message
    assert f"learn it, as likelihood='{GIVEN[likelihood]}'" in message
    learned = regressor(likelihood=GIVEN[likelihood])
    assert messages_of_fit(learned, X, TAILS) == []
    low, high = learned.predict_interval(X, 0.9).T
    assert np.mean((low <= TAILS) & (high >= TAILS)) > 0.85


def test_noise_that_is_given_rightly_is_silent():
    model = regressor(likelihood=GaussianLikelihood(0.5))
    assert messages_of_fit(model, X, Y) == []
    assert model.fit_report_.interval_coverage > 0.85
    assert isnan(
        regressor(epochs=400).fit(X, Y).fit_report_.interval_coverage
    )  # learned: not looked at


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_without_arviz_the_report_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    model = regressor(inference=Sampling("hmc", chains=2, draws=8, warm_up=5, start="prior"))
    report = model.fit(X, Y).fit_report_
    assert isnan(report.r_hat)
    assert "R-hat of the predictions: not measured: R-hat, effective" in str(report)
    assert "pip install 'bbb-numpy[diagnostics]'" in str(report)


@pytest.mark.parametrize("epochs", [2, 5, 30])
def test_training_that_was_too_short_is_called_so_and_nothing_else_is(epochs):
    """With a cosine the last epochs are flat however few there are."""
    [message] = messages_of_fit(regressor(epochs=epochs), X3, Y3)
    [cause] = message.split("Likely cause: ")[1:]
    assert cause.startswith(f"{epochs} epochs with a learning rate of 0.01, ")
    assert cause.endswith("train for more, such as epochs=1000")
    assert "Adam" not in cause  # it is the default


def test_a_posterior_that_keeps_to_its_prior_is_not_told_to_train_longer():
    """The loss still falls a little after 1000 epochs, but 4000 are worse."""
    model = regressor(hidden_layer_sizes=(500,), prior=GaussianPrior(0.25))
    [message] = messages_of_fit(model, X, Y)
    assert "a posterior that keeps to its prior" in message
    assert "epochs" not in message


def test_where_no_cause_is_seen_none_is_named(monkeypatch):
    monkeypatch.setattr(diagnosis, "likely_causes", lambda evidence: [])
    [message] = messages_of_fit(regressor(epochs=1), X, Y)
    assert "Likely cause" not in message
    assert "No cause was found in units, outliers, noise, prior and training; try" in message


def test_training_that_ends_while_the_loss_falls_steeply_says_so_though_it_is_good_already():
    model = regressor(epochs=100, batch_size=16, optimizer=Adam(1e-2))  # no schedule at its end
    [message] = messages_of_fit(model, X, Y)
    report = model.fit_report_
    assert report.log_density > report.baseline_density + 0.2
    assert message.startswith("the loss was still falling steeply")
    assert "100 epochs with" in message


def test_draws_that_never_left_their_start_are_named():
    sampling = Sampling("mh", chains=2, draws=5, warm_up=0, start="prior")
    [message] = messages_of_fit(regressor(inference=sampling), X, Y)
    assert "worse than ignoring X" in message
    assert "chains that have not converged (their log density: R-hat" in message
    assert "use a longer warm_up, more draws or 'hmc'" in message
    sampling = Sampling("hmc", chains=2, draws=80, warm_up=60, start="prior")
    model = regressor(hidden_layer_sizes=(), inference=sampling)
    assert not messages_of_fit(model, X, X[:, 0] + 0.1 * Y)
    report = model.fit_report_
    assert report.log_density > report.baseline_density
    assert all(map(isnan, (report.loss_slope, report.kl)))
    assert 0.9 < report.r_hat < 1.1
    assert report.share_unmixed == 0.0


def test_the_report_of_chains_says_how_far_they_agree():
    pytest.importorskip("arviz")
    model = regressor(inference=Sampling("hmc", chains=2, draws=8, warm_up=30, start="prior"))
    report, draws = model.fit(X, Y).fit_report_, model.draws_
    rows = (X - model.x_mean_) / model.x_scale_
    expected = function_r_hats(draws, rows[np.linspace(0, ROWS - 1, 50).astype(int)])
    assert report.r_hat == expected.max() > 1.1
    assert report.share_unmixed == np.mean(expected > 1.1)
    line = f"R-hat of the predictions, .* {report.r_hat:.4g}  at most 1.1"
    assert re.search(line, str(report))
    of_one_chain = regressor(inference=replace(model.inference, chains=1)).fit(X, Y).fit_report_
    assert isnan(of_one_chain.r_hat)


NARROW = {
    "a sine, which no line describes": (X, Y, {}),
    "two layers": (X, Y, {"hidden_layer_sizes": (20, 20)}),
    "Laplace": (X, Y, {"prior": LaplacePrior(1e-3)}),
    "no hidden layer": (X, X[:, 0] + Y, {"hidden_layer_sizes": ()}),
    "counts": (X, COUNTS, {"likelihood": "poisson"}),
    "classes": (X, CLASSES, {}),
    "a point": (X, Y, {"inference": "map"}),
}


@pytest.mark.parametrize("name", NARROW)
def test_a_prior_too_narrow_for_y_is_named_and_the_width_that_is_told_mends_it(name):
    x, y, params = NARROW[name]
    params = {"prior": GaussianPrior(1e-3), "epochs": 400} | params
    make = classifier if name == "classes" else regressor
    [message] = messages_of_fit(make(**params), x, y)
    [cause] = message.split("Likely cause: ")[1:]
    assert cause.startswith("a prior that is too narrow: under it functions vary from")
    for wrong in ("epochs", "narrower", "collapsed"):
        assert wrong not in cause
    times = float(re.search(r"about ([\d.e+]+) times as wide", cause)[1])
    wider = replace(params["prior"], scale=times * params["prior"].scale)
    model = make(**params | {"prior": wider, "epochs": max(params["epochs"], 300)})
    assert messages_of_fit(model, x, y) == []
    assert model.fit_report_.log_density > model.fit_report_.baseline_density + 0.1


@pytest.mark.parametrize(("sd", "beyond"), [(1e-3, True), (0.046, True), (0.047, False)])
def test_a_prior_is_out_of_reach_when_all_rows_together_cannot_pay_for_it(sd, beyond):
    """100 rows gain at most log 10 each, and r times as large a function costs r^2 / 2."""
    assert replace(GOOD, prior_function_sd=sd).out_of_reach == beyond


# --- fits that do not


def toys():
    rng = np.random.default_rng(7)
    for rows in (3, 10, ROWS):
        x = rng.uniform(-3, 3, (rows, 1))
        noise = rng.standard_normal(rows)
        yield f"sine {rows}", regressor(), x, np.sin(2 * x[:, 0]) + 0.1 * noise
        yield f"nothing but noise {rows}", regressor(), rng.standard_normal((rows, 3)), noise
        if rows >= 5:
            counts = regressor(likelihood="poisson")
            yield f"counts {rows}", counts, x, rng.poisson(np.exp(1 + x[:, 0] / 2))
            yield f"counts without signal {rows}", counts, x, rng.poisson(4.0, rows)
            x4 = rng.standard_normal((rows, 4))
            yield f"classes without signal {rows}", classifier(), x4, np.arange(rows) % 3
    yield "constant y", regressor(), x, np.full(rows, 3.0)
    yield "constant column", regressor(), np.c_[x, np.ones(rows)], noise
    yield "one-hot columns", regressor(), np.eye(rows)[:, :30], noise
    yield "map", regressor(inference="map"), X, Y
    yield "mle", regressor(inference="mle"), X, Y
    yield "linnerud", regressor(), *datasets.load_linnerud(return_X_y=True)
    yield "friedman", regressor(), *datasets.make_friedman1(64, random_state=0)
    yield "iris", classifier(), *datasets.load_iris(return_X_y=True)
    yield "wine", classifier(), *datasets.load_wine(return_X_y=True)
    yield "moons", classifier(), *datasets.make_moons(100, noise=0.2, random_state=0)


TOYS = {name: rest for name, *rest in toys()}


# What these say is said by others of less or of as many rows
AT_NIGHT = {"sine 10", "nothing but noise 10", "counts 10", "counts without signal 10", "mle"}
AT_NIGHT |= {"classes without signal 10", "constant column", "friedman", "wine", "moons"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in AT_NIGHT)) for name in TOYS],
)
def test_the_defaults_are_silent_on_toys(name):
    model, x, y = TOYS[name]
    assert messages_of_fit(model, x, y) == []
    assert model.fit_report_.passed
    assert model.fit_report_.message == ""


# --- what is measured


def test_the_density_is_that_of_the_training_rows_and_the_base_knows_no_x():
    model = regressor(epochs=400).fit(X, 5 * Y)
    report = model.fit_report_
    density = model.log_predictive_density(X, 5 * Y).mean()
    assert report.log_density == pytest.approx(density, rel=1e-12)
    base = stats.norm(5 * Y.mean(), 5 * Y.std()).logpdf(5 * Y).mean()
    assert report.baseline_density == pytest.approx(base, rel=1e-12)
    assert report.required_density == pytest.approx(
        base - 6 / ROWS
    )  # 5 nats, and half of its 2 numbers
    assert (report.n_rows, report.largest_x) == (ROWS, np.abs((X - X.mean()) / X.std()).max())


def test_many_rows_cost_no_more_and_an_outlier_among_those_not_looked_at_is_found():
    x = np.random.default_rng(0).standard_normal((20_000, 1))
    assert not messages_of_fit(regressor(epochs=10, batch_size=200), x, x[:, 0])
    x[1, 0] = 1e9
    model = regressor(epochs=10, batch_size=200)
    assert "outliers in X" in messages_of_fit(model, x, np.sin(np.arange(20_000)))[0]
    assert model.fit_report_.n_rows == 20_000


@pytest.mark.parametrize("rows", [1, 40])
def test_measuring_changes_no_bit(monkeypatch, rows):
    def fitted():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = regressor(epochs=3, random_state=np.random.default_rng(0))
            return model.fit(X[:rows], Y[:rows]).partial_fit(X[:rows], Y[:rows], 2)

    measured = fitted()
    monkeypatch.setattr("bbb_numpy.learners.base.diagnose_fit", lambda *_: GOOD)
    blind = fitted()
    np.testing.assert_array_equal(measured.theta_, blind.theta_)
    np.testing.assert_array_equal(measured.predict(X, True), blind.predict(X, True))
    assert measured.rng_.bit_generator.state == blind.rng_.bit_generator.state


def test_stopping_early_is_no_fault_and_after_ctrl_c_nothing_is_measured(monkeypatch):
    params = {"early_stopping": EarlyStopping(20), "validation_fraction": 0.2, "kl_warm_up": "none"}
    model = regressor(optimizer=Adam(3e-2), **params)
    assert messages_of_fit(model, X, Y) == []
    assert model.training_.stopped == "early stopping"
    assert isnan(model.fit_report_.loss_slope)

    def stop(factor, epochs):
        if factor > 2:
            raise KeyboardInterrupt
        return 1.0

    with pytest.warns(UserWarning, match="interrupted by user") as warned:
        model = regressor(optimizer=Adam(1e-2, schedule=stop)).fit(X, Y)
    assert len(warned) == 1
    assert not hasattr(model, "fit_report_")


# --- where it is kept and shown

GOOD = FitReport(
    n_rows=100,
    log_density=0.0,
    baseline_density=-1.0,
    required_density=-1.06,
    linear_density=nan,
    loss_slope=0.0,
    loss_slope_error=0.01,
    kl=50.0,
    initial_prior_sd=0.5,
    final_prior_sd=0.4,
    largest_x=2.0,
    largest_y=2.0,
    bulk_sd_x=0.9,
    bulk_sd_y=0.9,
    n_epochs=10,
    target_kind="real",
)


FEW_ROWS_ARE_FAR = "the fit is no better than ignoring X, and a few rows"
COLLAPSED = "the learned prior has collapsed"


@pytest.mark.parametrize(
    ("measured", "finding"),
    [
        ({}, None),
        ({"log_density": -1.05}, None),
        ({"log_density": -1.07}, "the fit is worse than ignoring X"),
        ({"log_density": -np.inf}, "the fit is worse than ignoring X"),
        ({"log_density": -0.99, "linear_density": -0.9}, None),
        ({"log_density": -0.99, "linear_density": -0.8}, "the fit is no better than ignoring X"),
        ({"loss_slope": -1.1}, "the loss was still falling steeply"),
        ({"loss_slope": -1.1, "loss_slope_error": 0.4}, None),
        ({"loss_slope": -0.9}, None),  # slower than the 1 nat that it has gained
        ({"loss_slope": -0.9, "log_density": -0.5}, "the loss was still falling steeply"),
        ({"loss_slope": -0.04, "loss_slope_error": 0.0, "log_density": -1.0}, None),
        ({"bulk_sd_y": 0.01}, None),
        (
            {"bulk_sd_y": 0.09, "linear_density": -1.0},
            FEW_ROWS_ARE_FAR,
        ),
        (
            {"bulk_sd_x": 0.09, "linear_density": -1.0},
            FEW_ROWS_ARE_FAR,
        ),
        ({"bulk_sd_x": 0.11, "linear_density": -1.0}, None),
        ({"final_prior_sd": 0.49e-3}, COLLAPSED),
        ({"initial_prior_sd": 1e-5, "final_prior_sd": 0.9e-6}, COLLAPSED),
        (
            {"final_prior_sd": 0.1, "kl": 0.5},
            COLLAPSED,
        ),  # it is the posterior
        (
            {"initial_prior_sd": np.inf, "final_prior_sd": 2.5, "kl": 0.5},
            COLLAPSED,
        ),
        ({"initial_prior_sd": np.inf, "final_prior_sd": 2.5}, None),
        ({"final_prior_sd": 2.0, "kl": 0.5}, None),  # wider than at the start
        ({"initial_prior_sd": nan, "final_prior_sd": nan, "kl": 0.0}, None),  # it learns nothing
        ({"n_rows": 1}, "there is one row"),
        ({"interval_coverage": 0.79}, "the 90 % intervals hold 79 % of the training rows"),
        ({"interval_coverage": 0.81}, None),
        ({"interval_coverage": 0.79, "n_rows": 60}, None),  # by chance
    ],
)
def test_each_finding_has_a_threshold_of_its_own(measured, finding):
    messages = failed_checks(replace(GOOD, **measured))
    assert len(messages) == (finding is not None)
    assert all(message.startswith(finding) for message in messages.values())


def test_it_reads_as_a_table_with_a_verdict():
    lines = str(GOOD).splitlines()
    assert lines[0].split() == ["measured", "threshold"]
    assert re.fullmatch(r"rows to train on +100  at least 2", lines[1])
    assert re.fullmatch(r"log density of the training rows, .* 0  at least -1.06", lines[2])
    assert re.fullmatch(r"largest magnitude of y, .* 2  at least 0.1 and at most 10", lines[-2])
    assert str(GOOD).endswith("nothing is wrong on these rows")
    bad = replace(GOOD, findings=("it is bad", "and late"), causes=("haste; wait",))
    assert str(bad).endswith("it is bad; and late. Likely cause: haste; wait")
    assert "straight line" not in str(bad)


def test_every_number_is_printed_with_a_label_and_every_threshold_has_a_reason():
    """A number that is added to the report without an entry of `CHECKS` fails here."""
    printed = {check.measure for check in CHECKS}
    derived = {"linear_advantage", "loss_fall", "prior_cost"}
    within = {"required_density", "linear_density", "loss_slope", "loss_slope_error",
              "path_slope_error", "largest_dispersion", "largest_zero_share"}  # fmt: skip
    numbers = {name for name, value in vars(GOOD).items() if isinstance(value, int | float)}
    assert printed - derived == numbers - within
    for check in CHECKS:
        has_threshold = check.at_least is not None or check.at_most is not None
        assert bool(check.reason) == has_threshold
        assert len(check.label) <= 66
        assert not check.name or check.message(replace(GOOD, loss_slope=-2.0))


PAGE = (Path(__file__).parents[2] / "docs" / "fit-report.md").read_text("utf-8")


def test_the_page_names_every_number_that_has_a_threshold():
    text = PAGE.replace("X, or of y", "X")
    for check in CHECKS:
        label = check.label.split(", ")[0].replace(" y", " X")
        assert not check.reason or label in text.replace(" y", " X"), check.label


@pytest.mark.slow
def test_the_example_of_the_page_prints_what_it_shows(capsys):
    code, expected = re.search(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL
    ).groups()
    exec(compile(code, "docs/fit-report.md", "exec"), {})
    printed = capsys.readouterr().out
    number = re.compile(r" +-?\d+\.?\d*")
    assert number.sub(" #", printed) == number.sub(" #", expected)
    numbers = [np.array(number.findall(text), float) for text in (printed, expected)]
    np.testing.assert_allclose(*numbers, rtol=0.1)


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.fields["FitReport"].items())
def test_a_field_can_be_read_by_its_old_name_for_one_release(old, new):
    with pytest.warns(DeprecationWarning, match=f"{old} of FitReport is now called {new}"):
        value = getattr(GOOD, old)
    assert repr(value) == repr(getattr(GOOD, new))
    with pytest.raises(AttributeError, match="no attribute 'basis'"):
        GOOD.basis  # noqa: B018


@pytest.mark.brief
def test_it_comes_back_from_a_file_and_partial_fit_removes_it(tmp_path):
    model = regressor(epochs=2).fit(X, Y)
    save(model, tmp_path / "m.npz")
    twin = load(tmp_path / "m.npz")
    assert repr(twin.fit_report_) == repr(model.fit_report_)  # nan, too
    model.partial_fit(X, Y)
    assert not hasattr(model, "fit_report_")
    save(model, tmp_path / "m.npz")
    assert not hasattr(load(tmp_path / "m.npz"), "fit_report_")


def test_the_command_line_prints_the_likely_cause_and_stores_the_model(tmp_path, capsys):
    rows = "\n".join(f"{a:g},{b:g}" for a, b in zip(X[:, 0], Y, strict=True))
    (tmp_path / "data.csv").write_text(f"x,y\n{rows}\n")
    call = ["fit", str(tmp_path / "data.csv"), "--target", "y", "--epochs", "1"]
    assert main([*call, "--model", str(tmp_path / "m.npz")]) == 0
    printed = capsys.readouterr()
    assert not printed.err  # each finding is told once, not as a warning, too
    *_, last = re.findall("look at +(.*)", printed.out)
    assert last.startswith("1 epoch with a learning rate of 0.01, in which a weight moves")
    assert last.endswith("train for more, such as epochs=1000")
    report = load(tmp_path / "m.npz").fit_report_
    assert not report.passed
    assert main([*call, "--model", str(tmp_path / "m.npz"), "--held-out", "0"]) == 0
    findings = re.findall("look at +(.*)", capsys.readouterr().out)
    assert findings == [*report.causes, *report.findings][:3]


def test_a_fit_is_judged_on_rows_as_often_as_their_weights_ask_for():
    rows = Rows(np.arange(4.0)[:, None], np.arange(4.0)[:, None])
    assert TrainingData(rows, None, {}).resample_by_weight() is rows
    weights = np.array([0.6, 0.0, 2.4, 1.0])
    twice = TrainingData(rows._replace(sample_weight=weights), None, {}).resample_by_weight()
    assert twice.x[:, 0].tolist() == [0.0, 2.0, 2.0, 3.0]
    assert (twice.y == twice.x).all()
