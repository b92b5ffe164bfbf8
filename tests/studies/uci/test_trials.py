"""One trial: its numbers are those of its training part and seed alone, and mean what they say."""

import json
import math
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pytest
from scipy import stats
from uci_trials import TINY, dask, toy, without_time

from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.learners import regressor
from bbb_numpy.learners.regressor import BayesianMLPRegressor as Learner
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import MAP
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import PointMass
from bbb_studies.data.uci import UCI_NAMES
from bbb_studies.uci import trials
from bbb_studies.uci.methods import METHODS, Fit, Settings
from bbb_studies.uci.running import run
from bbb_studies.uci.trials import SPACES, Scaled, Trial, measure, score

# chains as short as these diverge, and say so
pytestmark = [dask, pytest.mark.filterwarnings("ignore:.*divergent transitions:UserWarning")]
KINDS = ("mean-field", "map", "ensemble", "laplace", "hmc", "default")
each_kind = pytest.mark.parametrize("method", KINDS)


def toys(patch, data=None):
    """Give every trial the same small set."""
    patch.setattr(trials, "_data", lambda name, splits: toy() if data is None else data)


@pytest.fixture
def small(monkeypatch):
    toys(monkeypatch)


def trial(method="map", split=0, name="boston", **changed):
    return Trial(name, method, split, replace(TINY, **changed))


def fitted(monkeypatch, method, data):
    """Return all that a trial makes of `data` up to the scores of the test part, bit for bit."""
    found = {}

    def only_training(fit, scaled, x, y, of, brief=False):
        found["theta"] = [theta.tobytes() for theta in fit.thetas]
        found["fit"] = (fit.bound, fit.notes)
        found["scaled"] = [part.tobytes() for part in scaled]
        return score(fit, scaled, x, y, of, brief) if brief else ({}, {})

    with monkeypatch.context() as patch:
        toys(patch, data)
        patch.setattr(trials, "score", only_training)
        found["record"] = without_time(measure(trial(method)))
    return found


@pytest.fixture(autouse=True)
def brief_learner(monkeypatch):
    """The default learner trains for 20 epochs, whatever they leave of it."""
    monkeypatch.setattr(regressor, "BayesianMLPRegressor", partial(Learner, epochs=20))


@each_kind
def test_rows_of_the_test_part_cannot_influence_a_fit(monkeypatch, method):
    data, as_it_is = toy(), fitted(monkeypatch, method, toy())
    x, y = data.x.copy(), data.y.copy()
    x[data.test_rows[0]] = y[data.test_rows[0]] = np.nan  # whatever meets them is nan, too
    assert fitted(monkeypatch, method, data._replace(x=x, y=y)) == as_it_is


def test_seeds_differ_between_sets_methods_splits_and_runs():
    todo = [
        one for seed in (0, 1) for one in trials.trials(UCI_NAMES, tuple(METHODS), None, seed=seed)
    ]
    assert len({one.seed for one in todo}) == len(todo) == 2 * len(METHODS) * 120
    assert trial("hmc").seed == trial("hmc", units=5).seed  # settings but the seed leave it


@each_kind
def test_a_record_is_finite_json_with_all_that_was_agreed(small, method, tmp_path, threads):
    one = trial(method, 3)
    (record,) = run([one], tmp_path, threads, measure, progress=False).records
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    names = {"key", "set", "method", "split", "settings", "status", "error", "seed", "chosen"}
    assert set(record) == names | {"metrics", "notes", "rows", "seconds", "versions"}
    assert (
        record
        | {
            **{"set": "boston", "method": method, "split": 3, "key": f"boston/{method}/03"},
            **{
                "settings": asdict(one.settings),
                "seed": one.seed,
                "rows": {"train": 54, "test": 6},
            },
        }
        == record
    )
    metrics, notes = record["metrics"], record["notes"]
    assert set(metrics) == {"rmse", "nll", "crps", "pit", "coverage"}
    assert (len(metrics["pit"]), sum(metrics["pit"])) == (20, 6)
    assert len(metrics["coverage"]) == 19
    assert metrics["coverage"] == sorted(metrics["coverage"])  # wider intervals hold more
    assert {"noise", "epistemic", "train_rmse", "train_nll"} <= set(notes)
    mixed = {f"{what}_{space}" for what in ("r_hat", "ess") for space in SPACES}
    assert mixed & set(notes) == (mixed if method == "hmc" else set())  # of samplers alone
    assert notes["samples"] >= {"map": 1, "laplace": 1, "ensemble": TINY.members}.get(
        method, TINY.samples
    )
    assert set(record["seconds"]) == {"wall", "cpu"}
    assert set(record["versions"]) == {"bbb_numpy", "numpy", "python", "blas"}


# Scores of fits whose predictive distribution is known

ONES = Scaled(np.zeros(2), np.ones(2), np.zeros(1), np.ones(1))
UNITS = Scaled(np.array([1.0, -2.0]), np.array([2.0, 0.5]), np.array([7.0]), np.array([3.0]))
LINEAR = Model(MLP((2, 1)), likelihood=GaussianLikelihood(0.3, learn=True))


def known(*components):
    """Return an equal mixture of N(w x + b, s^2), of components (w, w, b, s)."""
    source = Reparameterised(LINEAR, PointMass(), MAP())
    thetas = tuple(np.array([*weights, math.log(noise)]) for *weights, noise in components)
    return Fit((source,) * len(thetas), thetas)


def rows(count=7):
    rng = np.random.default_rng(2)
    return rng.standard_normal((count, 2)), 7.0 + 3.0 * rng.standard_normal((count, 1))


def by_hand(fit, scaled, x, y):
    """Return RMSE and NLL in the target's own units, component by component."""
    inputs = np.hstack([(x - scaled.x_mean) / scaled.x_scale, np.ones((len(x), 1))])
    means = [scaled.y_mean + scaled.y_scale * inputs @ theta[:3] for theta in fit.thetas]
    noises = [math.exp(theta[3]) * scaled.y_scale for theta in fit.thetas]
    densities = [stats.norm.pdf(y[:, 0], m, s) for m, s in zip(means, noises, strict=True)]
    off = np.mean(means, axis=0) - y[:, 0]
    return math.sqrt(np.mean(off**2)), -np.mean(np.log(np.mean(densities, axis=0)))


ONE = (0.5, -1.0, 0.2, 0.7)
OTHER = (-0.8, 0.3, 0.5, 1.1)


@pytest.mark.equation("D5")
@pytest.mark.parametrize(("scaled", "parts"), [(ONES, (ONE,)), (UNITS, (ONE, OTHER))])
def test_rmse_and_nll_are_those_computed_by_hand(parts, scaled):
    x, y = rows()
    metrics, notes = score(known(*parts), scaled, x, y, trial())
    rmse, nll = by_hand(known(*parts), scaled, x, y)
    assert metrics["rmse"] == pytest.approx(rmse, rel=1e-12)
    assert metrics["nll"] == pytest.approx(nll, rel=1e-12)
    assert notes["samples"] == len(parts)
    brief, nothing = score(known(*parts), scaled, x, y, trial(), brief=True)
    assert (brief, nothing) == ({"rmse": metrics["rmse"], "nll": metrics["nll"]}, {})


@pytest.mark.equation("D4")
def test_notes_split_the_variance_and_score_one_gaussian_and_the_mean_function():
    x, y = rows()
    _, notes = score(known(ONE, OTHER), UNITS, x, y, trial())
    inputs = np.hstack([(x - UNITS.x_mean) / UNITS.x_scale, np.ones((7, 1))])
    means = 7.0 + 3.0 * inputs @ np.array([ONE[:3], OTHER[:3]]).T  # (N, 2)
    noise = 9.0 * (0.7**2 + 1.1**2) / 2
    middle, between = means.mean(axis=1), ((means[:, 0] - means[:, 1]) / 2) ** 2
    assert notes["noise"] == pytest.approx(math.sqrt(noise), rel=1e-12)
    assert notes["epistemic"] == pytest.approx(math.sqrt(between.mean()), rel=1e-12)
    for name, variance in (("nll_gaussian", noise + between), ("nll_plug_in", noise + 0 * between)):
        rows_ = 0.5 * (np.log(2 * np.pi * variance) + (y[:, 0] - middle) ** 2 / variance)
        assert notes[name] == pytest.approx(rows_.mean(), rel=1e-12)


@pytest.mark.parametrize(("unit", "shift"), [(0.01, -40.0), (1000.0, 0.0)])
def test_another_unit_of_the_target_adds_its_log_to_nll_and_multiplies_rmse(unit, shift):
    x, y = rows()
    there = Scaled(UNITS.x_mean, UNITS.x_scale, shift + unit * UNITS.y_mean, unit * UNITS.y_scale)
    fit = known(ONE, OTHER)
    metrics, notes = score(fit, UNITS, x, y, trial())
    moved, other = score(fit, there, x, shift + unit * y, trial())
    close = partial(pytest.approx, rel=1e-9)
    assert moved["nll"] == close(metrics["nll"] + math.log(unit))
    assert {name: moved[name] for name in ("rmse", "crps")} == close(
        {name: unit * metrics[name] for name in ("rmse", "crps")}
    )
    assert (moved["pit"], moved["coverage"]) == (metrics["pit"], metrics["coverage"])
    assert other["noise"] == close(unit * notes["noise"])
    assert other["epistemic"] == close(unit * notes["epistemic"])
    for name in ("nll_gaussian", "nll_plug_in"):
        assert other[name] == close(notes[name] + math.log(unit))


# Which trials there are


def test_without_a_number_there_are_the_published_splits_and_more_go_on():
    def count(splits):
        found = trials.trials(UCI_NAMES, ("map",), splits)
        return {name: sum(one.set == name for one in found) for name in UCI_NAMES}

    published = {**dict.fromkeys(UCI_NAMES, 20), "protein": 5}
    assert count(20) == published
    assert count(None) == {**published, "power": 5, "kin8nm": 5, "naval": 5}
    assert count(3) == dict.fromkeys(UCI_NAMES, 3)
    assert count(7) == {**dict.fromkeys(UCI_NAMES, 7), "protein": 5}
    assert count(50) == dict.fromkeys(UCI_NAMES, 50)
    assert trials.trials(("boston",), ("map",), 50)[:20] == trials.trials(("boston",), ("map",), 20)


def test_protein_has_the_hundred_units_of_the_literature_unless_told_otherwise():
    assert {name for name in UCI_NAMES if trials.settings_for(name).units == 100} == {"protein"}
    assert {trials.settings_for(name) for name in UCI_NAMES if name != "protein"} == {Settings()}
    assert trials.settings_for("protein", units=50).units == 50
    assert trials.settings_for("boston").batch_size == 32
