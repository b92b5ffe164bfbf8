"""target="log": a fit of log y whose every prediction is in units of y."""

import pickle
import re

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import r2_score
from small_learners import regression_rows, regressor

import bbb_numpy
from bbb_numpy import GaussianLikelihood
from bbb_numpy.evaluation.scoring import log_density_scorer
from bbb_numpy.learners.inference import Sampling
from bbb_numpy.learners.target_scale import choose_target

X, F = regression_rows()
Y = np.exp(F)
LOG_Y = np.log(Y)  # in the digits of a float what the learner computes
CHAINS = Sampling("hmc", chains=2, draws=12, warm_up=12, start="prior")


def pair(**params):
    """Return a fit of y on the log scale, and one of log y."""
    y = params.pop("y", Y)
    with np.errstate(all="ignore"):
        return (
            regressor(target="log", **params).fit(X, y),
            regressor(**params).fit(X, np.log(y)),
        )


KINDS = [
    {},
    {"likelihood": "heteroscedastic"},
    {"likelihood": "student-t-learned"},
    {"standardize": False},
    {"y": np.exp(np.column_stack([LOG_Y, -2.0 * LOG_Y]))},
    {"inference": "laplace", "epochs": 20, "kl_warm_up": None},
    {"inference": CHAINS, "epochs": None, "kl_warm_up": None},
]
NAMES = ["gaussian", "heteroscedastic", "student-t", "raw", "two outputs", "laplace", "hmc"]
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*divergent transitions"),
]


@pytest.mark.equation("D73")
@pytest.mark.parametrize("params", KINDS, ids=NAMES)
def test_it_is_the_fit_of_log_y_in_units_of_y(params):
    ours, of_logs = pair(**params)
    y = params.get("y", Y)
    assert np.array_equal(ours.theta_, of_logs.theta_)
    assert np.allclose(ours.predict_interval(X), np.exp(of_logs.predict_interval(X)))
    assert np.allclose(ours.sample_y(X, 7), np.exp(of_logs.sample_y(X, 7)))
    slope = np.log(y).reshape(len(y), -1).sum(axis=1)
    density = ours.log_predictive_density(X, y)
    assert np.allclose(density, of_logs.log_predictive_density(X, np.log(y)) - slope)
    reports = ours.fit_report_, of_logs.fit_report_
    for name in ("log_density", "baseline_density", "required_density"):
        values = [getattr(report, name) for report in reports]
        assert values[0] == pytest.approx(values[1] - slope.mean())
    assert ours.target_ == "log"


def test_mean_standard_deviations_and_score_are_those_of_y():
    ours, of_logs = pair(likelihood=GaussianLikelihood(0.3))
    p = ours.predict_distribution(X)
    f = of_logs.sample_functions(X, ours.predict_samples)
    laws = stats.lognorm(s=of_logs.noise_scale_, scale=np.exp(f))
    assert np.allclose(ours.predict(X), laws.mean().mean(axis=1))
    assert np.allclose(p.aleatoric**2, laws.var().mean(axis=1))
    assert np.allclose(p.epistemic, laws.mean().std(axis=1, ddof=1))
    mean, total = ours.predict(X, return_std=True)
    _, cov = ours.predict(X, return_cov=True)
    assert np.allclose(np.sqrt(np.diag(cov)), total)
    assert np.allclose(total, p.total)
    assert ours.score(X, Y) == r2_score(Y, mean)
    assert ours.noise_scale_ == of_logs.noise_scale_
    assert "of log y" in ours._facts()["noise"]


def test_a_mean_is_above_the_median_and_no_quantile_is_negative():
    ours, _ = pair()
    assert (ours.predict(X) > ours.predict_quantiles(X, 0.5)).all()
    ends = ours.predict_quantiles(X, [0.0, 1e-9, 1.0])
    assert (ends[:, 0] == 0).all()
    assert (ends[:, 1] > 0).all()
    assert np.isinf(ends[:, 2]).all()


def test_the_evidence_is_of_y_in_its_own_units_and_counts_weights():
    weights = np.where(np.arange(len(X)) % 2, 2.0, 1.0)
    settings = {"inference": "laplace", "epochs": 20, "kl_warm_up": None}
    ours = regressor(target="log", **settings).fit(X, Y, weights)
    of_logs = regressor(**settings).fit(X, LOG_Y, weights)
    assert ours.log_evidence_ == pytest.approx(of_logs.log_evidence_ - weights @ LOG_Y)
    ours, of_logs = pair(**settings)
    assert ours.log_evidence_ == pytest.approx(of_logs.log_evidence_ - LOG_Y.sum())


def test_it_goes_on_is_saved_and_copied(tmp_path):
    ours = regressor(target="log").partial_fit(X, Y).partial_fit(X, Y)
    of_logs = regressor().partial_fit(X, LOG_Y).partial_fit(X, LOG_Y)
    assert np.array_equal(ours.theta_, of_logs.theta_)
    warm = regressor(target="log", warm_start=True).fit(X, Y).fit(X, Y)
    twice = regressor(warm_start=True).fit(X, LOG_Y).fit(X, LOG_Y)
    assert np.array_equal(warm.theta_, twice.theta_)
    bbb_numpy.save(warm, tmp_path / "log.npz")
    copies = bbb_numpy.load(tmp_path / "log.npz"), pickle.loads(pickle.dumps(warm))
    for copy in copies:
        assert np.array_equal(copy.predict(X), warm.predict(X))
    warm.fit(X, Y)
    for copy in copies:
        assert np.array_equal(copy.fit(X, Y).theta_, warm.theta_)
    assert clone(warm).target == "log"


@pytest.mark.parametrize(("first", "then"), [("log", "identity"), ("identity", "log")])
def test_another_scale_is_another_model(first, then):
    model = regressor(target=first).partial_fit(X, Y)
    before = model.predict(X)
    model.set_params(target=then)
    assert np.array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="target, inference, dtype"):
        model.partial_fit(X, Y)
    assert np.array_equal(model.predict(X), before)


def test_what_it_cannot_model_is_said():
    with pytest.raises(ValueError, match=r"needs y > 0.*got 0 at row 3"):
        regressor(target="log").fit(X, np.where(np.arange(len(X)) == 3, 0.0, Y))
    model = regressor(target="log").partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"got -1 at row 0"):
        model.partial_fit(X, -np.ones(len(X)))
    with pytest.raises(ValueError, match=re.escape("got likelihood='poisson'")):
        regressor(target="log", likelihood="poisson").fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="'target' parameter"):
        regressor(target="sqrt").fit(X, Y)


@pytest.mark.parametrize("target", ["log", "auto"])
def test_later_targets_that_no_logarithm_has_are_impossible_and_scored(target):
    model = regressor(target=target, warm_start=True).fit(X, Y)
    y = np.where(np.arange(len(X)) % 3, Y, [0.0, -1e300] * (len(X) // 2))
    density = model.log_predictive_density(X, y)
    assert np.array_equal(density, np.where(y > 0, model.log_predictive_density(X, Y), -np.inf))
    assert (model.log_predictive_density(X, -Y.astype(int)) == -np.inf).all()
    assert log_density_scorer(model, X, y) == -np.inf
    y = np.maximum(y, 0.0)
    assert model.score(X, y) == r2_score(y, model.predict(X))
    two = regressor(target="log").fit(X, np.column_stack([Y, Y]))
    density = two.log_predictive_density(X, np.column_stack([Y, y]))
    assert np.array_equal(np.isneginf(density), y == 0)


def test_student_t_noise_has_a_median_and_no_standard_deviation():
    model, of_logs = pair(likelihood="student-t-learned")
    mean, sd = model.predict(X, return_std=True)
    f = of_logs.sample_functions(X, model.predict_samples)
    assert np.allclose(mean, np.exp(f).mean(axis=1))
    assert np.isinf(sd).all()


def test_a_report_of_a_failed_fit_speaks_of_log_y():
    rng = np.random.default_rng(0)
    model = regressor(target="log", epochs=1, likelihood=GaussianLikelihood(0.01))
    with pytest.warns(match="the log-normal with mean and variance of log y"):
        model.fit(X, np.exp(rng.standard_normal(len(X))))
    assert model.fit_report_.target_kind == "log"


def straight_lines(rows=200):
    """Return inputs, a line in them, and noise."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((rows, 2))
    return x, x @ [0.5, -0.3], rng.standard_normal(rows)


def box_cox(x, y):
    """Log density that a line for log y gains over one for y, in nats of all rows."""
    design = np.column_stack([np.ones(len(x)), x])

    def density(t):
        residual = t - design @ np.linalg.lstsq(design, t, rcond=None)[0]
        return stats.norm(0, residual.std()).logpdf(residual).sum()

    return density(np.log(y)) - np.log(y).sum() - density(y)


@pytest.mark.equation("D73")
@pytest.mark.parametrize("spread", [0.05, 0.15, 0.2, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("on_logs", [True, False])
def test_auto_takes_the_logarithm_where_a_line_for_it_is_more_probable_by_a_margin(spread, on_logs):
    x, f, noise = straight_lines()
    y = np.exp(f + spread * noise) if on_logs else 20.0 + 3.0 * f + 5 * spread * noise
    assert (y > 0).all()
    wins = box_cox(x, y) > max(5.0, 0.05 * len(x))
    assert choose_target(x, y[:, None]) == ("log" if wins else "identity")


def test_auto_decides_on_outputs_together_and_not_by_units():
    x, f, noise = straight_lines()
    y = np.exp(f + 0.5 * noise)
    for unit in (1e-200, 1.0, 1e200):
        assert choose_target(x, unit * y[:, None]) == "log"
        assert choose_target(x, np.column_stack([unit * y, np.full(len(y), unit)])) == "log"
        assert choose_target(x, np.full((len(y), 1), unit)) == "identity"
    assert choose_target(x, np.column_stack([y, f])) == "identity"
    few = np.exp(0.4 * stats.norm.ppf((np.arange(40) + 0.5) / 40))[:, None]
    assert 0.05 < box_cox(np.zeros((40, 0)), few[:, 0]) / 40 < 5.0 / 40
    assert choose_target(np.zeros((40, 1)), few) == "identity"  # 5 nats in all
    assert choose_target(np.zeros((600, 1)), np.tile(few, (15, 1))) == "log"
    many = np.tile(x, (100, 1)), np.tile(y[:, None], (100, 1))
    assert choose_target(*many) == "log"


@pytest.mark.equation("D73")
def test_auto_does_not_rule_out_what_few_rows_cannot_know():
    """Of rows above 0, N in a row, the next is at or below 0 once in N + 2 times."""
    x, f, noise = straight_lines(38)
    y = np.exp(f + noise)[:, None]
    assert choose_target(x, y) == "log"
    assert choose_target(x[:37], y[:37]) == "identity"
    assert box_cox(x[:37], y[:37, 0]) > 5.0
    rng = np.random.default_rng(0)
    share = rng.uniform(size=400_000)  # of rows at or below 0
    above = rng.uniform(size=(6, len(share))) > share
    seen = above[:5].all(axis=0)
    later = ~above[5, seen]
    assert abs(later.mean() - 1 / 7) < 4 * later.std() / np.sqrt(len(later))


def test_auto_is_the_fit_that_it_names():
    for y, name in ((Y, "log"), (F, "identity")):
        model = regressor(target="auto", warm_start=True).fit(X, y)
        named = regressor(target=name, warm_start=True).fit(X, y)
        assert model.target_ == name
        assert np.array_equal(model.theta_, named.theta_)
        again = np.exp(F / 100 + 5)  # of which a new fit might decide otherwise
        assert np.array_equal(model.fit(X, again).theta_, named.fit(X, again).theta_)
        assert model.target_ == name
    counts = regressor(target="auto", likelihood="poisson").fit(X, np.round(Y) + 1)
    assert counts.target_ == "identity"


@pytest.mark.equation("D45")
def test_auto_leaves_rows_of_weight_0_out():
    y = np.where(np.arange(len(X)) == 3, -1.0, Y)
    weights = (y > 0).astype(float)
    assert regressor(target="auto").fit(X, Y).target_ == "log"
    model = regressor(target="auto").fit(X, y, weights)
    assert model.target_ == "log"
    without = regressor(target="auto").fit(X[y > 0], y[y > 0])
    assert np.allclose(model.predict(X), without.predict(X))
    with pytest.raises(ValueError, match=r"got -1 at row 3"):
        regressor(target="log").fit(X, y, weights)


def test_scikit_learn_is_told_that_targets_must_be_positive():
    told = [regressor(target=t).__sklearn_tags__().target_tags.positive_only
            for t in ("identity", "log", "auto")]  # fmt: skip
    assert told == [False, True, False]
