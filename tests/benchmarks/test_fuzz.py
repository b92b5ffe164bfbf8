"""make fuzz: a short run finds nothing, and planted defects of every kind are found."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("its limits are those of Linux", allow_module_level=True)

import bbb_numpy
from bbb_numpy.cli import main as command
from benchmarks.fuzz import calls, children, files, verdicts

Entry, Call = calls.Entry, calls.Call


@pytest.fixture(scope="module")
def known():
    return verdicts.names_()


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def judged(known, text, names=("x",), **planted):
    """Return the defect of a call whose arguments of these names were changed."""
    return defect(text, names, {**known, **planted})


def defect(text, names, known):
    given = (dict.fromkeys(names, "0"),)
    one = Call(Entry(text.replace("{", "{{").replace("}", "}}"), ({},)), given, ())
    one = one._replace(changed=tuple((0, name) for name in names))
    return verdicts.judged(one, known).defect


def test_a_short_run_finds_no_defect(known):
    found = [verdicts.call(1000, trial) for trial in range(150)]
    assert [one for one in found if "defect" in one] == []
    assert len({one["what"] for one in found}) >= 3


def test_damaged_models_and_tables_find_no_defect(known):
    found = [files.model(1000, trial) for trial in range(40)]
    found += [files.table(1000, trial) for trial in range(5)]
    assert [one for one in found if "defect" in one] == []
    assert sum(one["what"] == "refused" for one in found) > 20


def test_a_trial_is_repeated_by_its_number(known):
    rngs = [np.random.default_rng([3, 5]) for _ in range(2)]
    assert str(calls.drawn(rngs[0])) == str(calls.drawn(rngs[1]))
    assert str(calls.drawn(rngs[0])) != str(calls.drawn(np.random.default_rng([3, 6])))


def test_all_that_the_package_exports_is_called_or_left_out_with_a_reason():
    text = " ".join(entry.text for entry in calls.CATALOGUE)
    exported = {name for name in bbb_numpy.__all__ if callable(getattr(bbb_numpy, name))}
    called = {name for name in exported if f"{name}(" in text}
    assert exported - called == set(calls.LEFT_OUT)


def refused(entry, known):
    """Return the defects of one call for which each of its arguments in turn was an object()."""
    found = []
    for name in entry.usual[0]:
        one = Call(entry, ({**entry.usual[0], name: "object()"},), ((0, name),))
        verdict = verdicts.judged(one, known)
        if verdict.defect or verdict.result == "done":
            found.append((str(one), *verdict))
    return found


def test_every_argument_of_every_function_refuses_what_it_cannot_use_by_name(known):
    functions = [
        entry for entry in calls.CATALOGUE if entry.text.count("{}") == 1 and entry.usual[0]
    ]
    defects = [one for entry in functions for one in refused(entry, known)]
    assert len(functions) > 100
    assert defects == []


def test_an_argument_that_is_not_checked_is_found(known):
    planted = {**known, "planted": lambda x: len(x), "ignored": lambda x: 0}
    for name in ("planted", "ignored"):
        assert refused(Entry(f"{name}({{}})", ({"x": "[1]"},)), planted)


def bare(x):
    return [][x]


def leak(x):
    return np.float64(1.0) / np.float64(x)


def endless(x):
    raise children.Overtime


@pytest.mark.parametrize(
    ("planted", "wanted"),
    [
        (bare, "bare IndexError"),
        (endless, "hang"),
        (lambda x: {"deep": [np.array([np.nan])]}, "nan without a warning"),
    ],
)
def test_a_planted_defect_is_found(known, planted, wanted):
    assert judged(known, "planted(0)", planted=planted).startswith(wanted)


def test_a_message_without_the_name_of_the_argument_is_found(known):
    text = "check(square, np.ones(3), most=0)"
    assert judged(known, text, ("most",)) == ""
    assert "names no argument" in judged(known, text, ("rng",))


def test_a_warning_that_leaks_from_the_package_is_found(known, monkeypatch):
    filename = os.path.join(verdicts.PACKAGE, "planted.py")
    code = compile("def leak(): return np.float64(1) / np.float64(0)", filename, "exec")
    planted = {"np": np}
    exec(code, planted)
    assert judged(known, "leak()", leak=planted["leak"]).startswith("RuntimeWarning")


def test_memory_beyond_the_bound_is_found(known, monkeypatch):
    monkeypatch.setattr(verdicts, "GROWN", 100 << 20)
    assert judged(known, "np.ones(1 << 25)") == "memory"  # too large for what malloc has kept


def test_a_learner_that_a_failed_call_has_changed_is_found(known):
    def spoil(learner, fails):
        learner.x_mean_ = learner.x_mean_ + 1.0
        if fails:
            return learner.predict("x")
        return 0

    assert judged(known, "spoil(fitted('trained'), True)", ("X",), spoil=spoil).startswith(
        "changed state"
    )
    assert judged(known, "spoil(fitted('trained'), False)", ("X",), spoil=spoil) == ""


def test_a_child_that_dies_is_noted_and_the_others_go_on(monkeypatch, tmp_path):
    """The child is a Python that notes trials 0 and 2, and is killed in trial 1."""
    code = (
        "import json, os, sys; first, count, notes = int(sys.argv[1]), 3, open(sys.argv[2], 'a')\n"
        "for i in range(first, count):\n"
        "    if i == 1: os.kill(os.getpid(), 9)\n"
        "    print(json.dumps({'trial': i, 'what': 'done'}), file=notes, flush=True)\n"
    )
    begun = children.subprocess.Popen

    def child(words, **how):
        *_, first, _, _, notes = words
        return begun([sys.executable, "-c", code, first, notes], **how)

    monkeypatch.setattr(children, "subprocess", SimpleNamespace(Popen=child, DEVNULL=-3))
    found = {one["trial"]: one for one in children.run_all("calls", 0, 3, 1)}
    assert sorted(found) == [0, 1, 2]
    assert found[1]["defect"] == "crash, status -9"
    assert "defect" not in found[0] | found[2]


@pytest.mark.parametrize(
    ("planted", "wanted"),
    [
        (RecursionError("deep"), "RecursionError from load"),
        (KeyError("theta"), "KeyError from load"),
    ],
)
def test_a_loader_that_fails_otherwise_is_found(known, monkeypatch, planted, wanted):
    def load(path):
        raise planted

    monkeypatch.setitem(known, "load", load)
    assert files.model(0, 0)["defect"] == wanted


def test_a_command_that_raises_is_found(known, monkeypatch):
    def main(argv):
        raise IndexError("list index out of range")

    monkeypatch.setattr(command, "main", main)
    assert files.table(0, 0)["defect"] == "an exception"


# Calls that were once answered badly, one or more of each kind, and the argument that they name
NAMED = [
    ("BayesianMLPRegressor(dtype='1_0').fit(X, y)", "dtype"),
    ("BayesianMLPRegressor((2**40,)).fit(X, y)", "sizes"),
    ("BayesianMLPRegressor(kl_warm_up=EUBO()).fit(X, y)", "kl_warm_up"),
    ("BayesianMLPRegressor(kl_weights=lambda sizes: 'x').fit(X, y)", "kl_weights"),
    ("BayesianMLPRegressor(epochs=np.timedelta64(3, 'D')).fit(X, y)", "epochs"),
    ("BayesianMLPRegressor().fit(X, pd.array([1, pd.NA] * 6, 'Int64'))", "y .*at row 1"),
    ("fitted('trained').fit(X, pd.Categorical(['a', 'b'] * 6))", "y"),
    ("fitted('trained').predict(X, return_std=X)", "return_std"),
    ("fitted('counts').log_predictive_density(X, 10**400)", "y"),
    ("fitted('counts').partial_fit(X, [[1, 2], [3]])", "y"),
    ("fitted('two').fit(X, np)", "y"),
    ("BayesianMLPClassifier().partial_fit(X, labels, classes=np)", "classes"),
    ("BayesianMLPClassifier().partial_fit(X, labels, classes=['a', 'b'])", "label"),
    ("BayesianMLPClassifier().fit(X, np.zeros((2, 2, 2)))", "y"),
    ("load(0)", "path"),
    ("save(fitted('trained'), 1)", "path"),
    ("Reparameterised('x')", "model"),
    ("Reparameterised(model, posterior=MeanField)", "posterior"),
    ("Reparameterised(model, objective=5)", "objective"),
    ("Model(5)", "network"),
    ("Model(MLP((2, 1)), prior=GaussianPrior)", "prior"),
    ("Layout(5)", "blocks"),
    ("LogJoint(5, X, Y)", "model"),
    ("LogJoint(model, X.tolist(), Y)", "x"),
    ("LogJoint(model, X[:0], Y)", "x"),
    ("joint.draw_prior(rng, 'x')", "chains"),
    ("draws.block(5)", "name"),
    ("sample(model, X, [[1, 2], [3]])", "y"),
    ("sample_target(bell, [[1, 2], [3]])", "start"),
    ("sample_target(bell, np.zeros((2, 3)), progress=X)", "progress"),
    ("mcmc.GaussianWalk(metric=X)", "metric"),
    ("mcmc.Independent(5, bell)", "draw"),
    ("mcmc.DiagonalMetric(np.array([1, 'a'], object))", "variance"),
    ("mcmc.DenseMetric([[1, 2], [3]])", "covariance"),
    ("annealing.evidence(5)", "joint"),
    ("annealing.evidence(joint, kernel=HMC)", "kernel"),
    ("annealing.equalised(np.ones(2), [1.0], 3)", "schedule"),
    ("annealing.powers(5, kind=X)", "kind"),
    ("training.start(q, 0, Adam())", "rng"),
    ("training.start(q, rng, Adam)", "optimizer"),
    ("training.fit(q, 5, X, Y, rng=rng)", "training"),
    ("training.fit(q, state, X, Y, rng=rng, validation=5)", "validation"),
    ("Recipe(optimizer=Adam)", "optimizer"),
    ("Recipe(early_stopping=5)", "early_stopping"),
    ("fit_replicates(5, [], [], [], rngs=[])", "estimators"),
    ("advi.fit(5, rng=rng)", "problem"),
    ("transforms.Blockwise(5)", "parts"),
    ("kl_weights.proportional_kl_weights([])", "batch_sizes"),
    ("to_arviz(draws, x='x')", "x"),
    ("to_arviz(draws, seed={})", "seed"),
    ("convergence.convergence(draws, weights=X)", "weights"),
    ("calibration.count_pit('x', counts, rng)", "rates"),
    ("calibration.pit(means[0, 0], scales, Y)", "means"),
    ("calibration.kolmogorov([np.nan])", "pits"),
    ("calibration.crps_gaussian(y, np.ones(3), y)", "scale"),
    ("model_checks.predicted(5, draws.flat, rng)", "joint"),
    ("model_checks.posterior_check(joint, draws.flat, rng, {'a': 5})", "quantities"),
    ("model_checks.in_words('x')", "log_factor"),
    ("model_checks.bayes_factor(5, evidence)", "first"),
    ("predictive.predict(q, theta, X, rng=0)", "rng"),
    ("predictive.predict(q, theta[:3], X, rng=rng)", "theta"),
    ("predictive.predict(q, theta, 3, rng=rng)", "x"),
    ("predictive.mixture(5, theta, X, rng=rng)", "estimator"),
    ("pruning.signal_to_noise(y, [1.0, 2.0])", "deviation"),
    ("pruning.decibels([-1.0])", "ratio"),
    ("pruning.prune(q, theta[:3], 0.5)", "theta"),
    ("pruning.sweep(q, theta, lambda t: None)", "score"),
    ("reliability.wilson(3, 1e308)", "trials"),
    ("reliability.brier(['a'], [1])", "proba"),
    ("reliability.clustered_mean(y, [[1, 2], [3]])", "groups"),
    ("reliability.reliability([0.5], [1], binning=X)", "binning"),
    ("data.cubic(0)", "rng"),
    ("data.cubic(rng, rows=2**62)", "rows"),
    ("data.cubic(rng, noise=1e308)", "noise"),
    ("data.sine_curve(1e308)", "x"),
    ("path_loss.walls(5, X)", "scene"),
    ("path_loss.walls(scene, X, transmitter=5)", "transmitter"),
    ("path_loss.grid(scene, 'x')", "cells"),
    ("path_loss.Scene(buildings=X)", "buildings"),
    ("uci.published_splits('iris')", "name"),
    ("uci.load(X)", "name"),
    ("locate.find('boston', 5)", "file"),
    ("powerball.exact('x')", "shares"),
    ("powerball.load(until=5)", "until"),
    ("sp500.inputs('x')", "close"),
    ("income_tax.folds(5)", "place"),
    ("mnist.read_idx('x', 1)", "path"),
    ("fits.fit('x', 5)", "x"),
    ("fits.loss('x')", "history"),
    ("fits.deviations(y, {'a': -y})", "curves"),
    ("calibration_plots.pit_histogram([0.5], bins='x')", "bins"),
    ("calibration_plots.coverage_curve(5)", "found"),
    ("calibration_plots.reliability_diagram({})", "tables"),
    ("weights.densities_of_draws(np.ones((0, 2)), [0.0])", "draws"),
    ("weights.ratios(y, ax=5)", "ax"),
    ("check(Adam, np.ones(3))", "value_and_grad"),
    ("check(square, [[1, 2], [3]])", "theta"),
]


@pytest.mark.parametrize(("text", "name"), NAMED)
def test_a_wrong_argument_is_named(known, text, name):
    if text.startswith("powerball.load"):
        pytest.importorskip("pandas")
        known["locate"].locate("powerball", "powerball_2010_2020.csv")
    with pytest.raises((TypeError, ValueError, KeyError), match=rf"\b{name}"):
        eval(text, known)


@pytest.mark.parametrize(
    ("made", "field"),
    [
        ("StepDecay(2.0)", "every"),
        ("EarlyStopping(3.0)", "patience"),
        ("HMC(max_steps=9.0)", "max_steps"),
        ("NUTS(max_depth=9.0)", "max_depth"),
        ("CyclicalWarmUp(2.0)", "cycles"),
        ("Recipe(epochs=2.0)", "epochs"),
        ("transforms.Ordered(3.0)", "size"),
    ],
)
def test_a_whole_number_that_was_given_as_a_float_is_kept_as_one(known, made, field):
    assert type(getattr(eval(made, known), field)) is int


@pytest.mark.long
@pytest.mark.parametrize(
    ("trial", "module", "old", "new", "wanted"),
    [
        pytest.param(
            2,
            "numeric/files.py",
            "    file = _begun(path)\n",
            '    file = path.open("wb")\n    yield file; file.close(); return\n',
            "model.npz after a kill",
            id="a model is written in its place",
        ),
        pytest.param(
            2,
            "numeric/files.py",
            "    _clear(path)\n",
            "",
            "left over",
            id="what a killed process had begun stays",
        ),
        pytest.param(
            1,
            "sampling/resuming.py",
            "        return found.run._replace(",
            "        return found.run._replace(rng=np.random.default_rng(9), ",
            "once more ends elsewhere",
            id="a resumed run forgets its generator",
        ),
    ],
)
def test_a_planted_loss_is_found_after_kills(trial, module, old, new, wanted, tmp_path):
    root = Path(bbb_numpy.__file__).parents[1]
    package = tmp_path / "bbb_numpy"
    shutil.copytree(root / "bbb_numpy", package)
    source = (package / module).read_text()
    assert source.count(old) == 1
    (package / module).write_text(source.replace(old, new))
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(root)])}
    words = [sys.executable, "-m", "benchmarks.fuzz", "--kinds", "kills", "--only", str(trial)]
    found = [
        subprocess.run(
            [*words, "--seed", str(seed)],
            cwd=tmp_path, env={**os.environ, **path}, text=True, capture_output=True, check=False,
        )
        for seed in range(6)
    ]  # fmt: skip
    assert any(one.returncode == 1 and wanted in one.stdout for one in found)
