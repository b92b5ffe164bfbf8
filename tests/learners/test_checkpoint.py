"""A saved model comes back bit for bit; a file that is anything else is an error."""

import json
import os
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from small_learners import class_blobs, classifier, fitted_state, regression_rows, regressor

from bbb_numpy import Conformal, Recalibrated
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.learners.checkpoint import CheckpointError, _format, load, save
from bbb_numpy.learners.classifier import BayesianMLPClassifier
from bbb_numpy.learners.inference import Sampling
from bbb_numpy.learners.regressor import BayesianMLPRegressor
from bbb_numpy.model.kl_weights import CyclicalWarmUp, LinearWarmUp, NoWarmUp, geometric_kl_weights
from bbb_numpy.model.objectives import EUBO, FreeEnergy, Renyi
from bbb_numpy.numeric import storing
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.likelihoods import HeteroscedasticLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.posteriors import PointMass
from bbb_numpy.parts.priors import GaussianPrior, LaplacePrior
from bbb_numpy.registry import ESTIMATORS, LIKELIHOODS, OBJECTIVES, PRIORS
from bbb_numpy.sampling.mcmc import HMC
from bbb_numpy.training import EarlyStopping
from bbb_numpy.training.optimizers import IVON, SGD, Adam, Constant, Cosine, Momentum, StepDecay

pytestmark = pytest.mark.brief


def data():
    x = np.random.default_rng(0).normal(size=(10, 2))
    return x, x.sum(axis=1)


@pytest.fixture
def model():
    return BayesianMLPRegressor((3,), epochs=2, random_state=0).fit(*data())


@pytest.fixture
def path(model, tmp_path):
    save(model, tmp_path / "model.npz")
    return tmp_path / "model.npz"


def everything(model):
    """All of a fitted model, the state of a generator in its place."""
    params = model.get_params()
    if isinstance(params["random_state"], np.random.Generator):
        params["random_state"] = params["random_state"].bit_generator.state
    predicted = np.array(model.predict(data()[0], return_std=True))
    return params, model.estimator_, model.theta_.dtype, fitted_state(model), predicted.tolist()


SHORT_NAMES = [
    *({"prior": name} for name in PRIORS),
    *({"likelihood": name} for name in LIKELIHOODS if name != "categorical"),
    *({"inference": name} for name in ("full-rank", "map", "mle")),
    *(
        {"gradient_estimator": n}
        for n in ESTIMATORS
        if n not in ("doubly-reparameterised", "self-normalised")
    ),
    *({"objective": name} for name in OBJECTIVES if name not in ("map", "mle")),
    {"gradient_estimator": "doubly-reparameterised", "objective": "iwae"},
    {"gradient_estimator": "self-normalised", "objective": "eubo"},
]
COUNTS = {"negative-binomial", "poisson", "zero-inflated", "zero-inflated-negative-binomial"}
OBJECTS = [
    {"prior": ScaleMixturePrior(0.3, 2.0, 0.25, learn=True)},
    {"prior": LaplacePrior(0.125), "inference": FullRank(0.5, -3.0, 0.25, 2.0)},
    {"likelihood": HeteroscedasticLikelihood(0.25), "objective": Renyi(-0.5)},
    {"inference": PointMass(0.5)},
    {"objective": EUBO()},
    {"objective": FreeEnergy(0.5), "kl_weights": geometric_kl_weights, "kl_warm_up": NoWarmUp()},
    {"kl_weights": "geometric", "kl_warm_up": LinearWarmUp(0.2), "dtype": "float32"},
    {"kl_warm_up": CyclicalWarmUp(2), "gradient_estimator": LocalReparameterisation},
    {"gradient_estimator": Reparameterised, "optimizer": SGD(1e-5, Constant())},
    {"optimizer": IVON(0.1, trust=2.0, learned=Adam(1e-4)), "inference": "ivon"},
    {"optimizer": Momentum(1e-5, 0.5, Cosine(0.3)), "standardize": False},
    {"optimizer": Adam(1e-5, beta2=0.9, schedule=Cosine(0.5)), "activation": "tanh"},
    {"early_stopping": EarlyStopping(patience=1), "validation_fraction": 0.3},
    {"random_state": np.random.default_rng(3), "hidden_layer_sizes": ()},
]


@pytest.mark.parametrize("params", [*SHORT_NAMES, *OBJECTS])
def test_a_saved_model_predicts_and_goes_on_bit_identically(tmp_path, params):
    x, y = data()
    if params.get("likelihood") in COUNTS:
        y = np.floor(np.abs(y))
    if params.get("likelihood") == "bernoulli":
        y = y > 0
    options = {"epochs": 2, "samples": 2, "batch_size": 10, "random_state": 0, "predict_samples": 5}
    model = BayesianMLPRegressor(**{"hidden_layer_sizes": (3,)} | options | params).fit(x, y)
    save(model, tmp_path / "m")
    twin = load(tmp_path / "m")
    assert type(twin.estimator_) is type(model.estimator_)
    assert everything(twin) == everything(model)
    assert everything(twin.partial_fit(x, y)) == everything(model.partial_fit(x, y))
    np.testing.assert_array_equal(*(one.fit(x, y).theta_ for one in (model, twin)))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes", "maybe"], object),
        np.array([3, -1, 2], np.int16),
        np.array([2**64 - 1, 1], np.uint64),
        np.array([3.0, -1.0, 2.0], np.float32),
    ],
    ids=lambda labels: labels.dtype.name,
)
def test_a_classifier_and_its_labels_come_back(tmp_path, labels):
    x, y = data()[0], labels[np.arange(10) % len(labels)]
    model = BayesianMLPClassifier((3,), epochs=2, random_state=0, predict_samples=5).fit(x, y)
    save(model, tmp_path / "m")
    twin = load(tmp_path / "m")
    assert type(twin) is BayesianMLPClassifier
    assert twin.classes_.dtype == model.classes_.dtype
    assert [type(c) for c in twin.classes_] == [type(c) for c in model.classes_]
    for one in (model, twin):
        one.partial_fit(x, y)
    np.testing.assert_array_equal(twin.theta_, model.theta_)
    np.testing.assert_array_equal(twin.predict_proba(x), model.predict_proba(x))
    np.testing.assert_array_equal(twin.predict(x), model.predict(x))


def test_truth_values_come_back_and_dates_do_not(tmp_path):
    x, y = data()
    weights = {False: 1.0, True: 2.5}
    model = BayesianMLPClassifier((3,), epochs=1, class_weight=weights).fit(x, y > 0)
    save(model, tmp_path / "m")
    assert load(tmp_path / "m").classes_.tolist() == [False, True]
    assert load(tmp_path / "m").class_weight == weights
    dates = np.where(y > 0, np.datetime64("2020"), np.datetime64("2021"))
    with pytest.raises(CheckpointError, match=r"classes_ = an array .* cannot be saved"):
        save(model.set_params(class_weight=None).fit(x, dates), tmp_path / "m")


def test_arguments_set_after_fit_and_names_are_kept_beside_the_fitted_model(model, tmp_path):
    x, y = data()
    model.fit(pd.DataFrame(x, columns=["a", "ü"]), y)
    model.set_params(prior=GaussianPrior(9.0), hidden_layer_sizes=7)
    save(model, tmp_path / "m")
    twin = load(tmp_path / "m")
    assert list(twin.feature_names_in_) == ["a", "ü"]
    assert twin.feature_names_in_.dtype == object
    assert twin.prior == GaussianPrior(9.0)
    assert twin.hidden_layer_sizes == 7
    frame = pd.DataFrame(x, columns=["a", "ü"])
    np.testing.assert_array_equal(twin.predict(frame), model.predict(frame))


def test_a_path_of_this_machine_does_not_travel_with_a_model(model, tmp_path, monkeypatch):
    """Nor is that of an earlier version's file taken: its `fit` would write there."""
    brief = Sampling("hmc", chains=2, checkpoint=tmp_path / "run")
    model.set_params(inference=brief)
    save(model, tmp_path / "m")
    assert str(tmp_path).encode() not in (tmp_path / "m").read_bytes()
    assert load(tmp_path / "m").inference == replace(brief, checkpoint=None)
    monkeypatch.setattr(storing, "_stored_fields", lambda cls: cls.__match_args__)
    save(model, tmp_path / "earlier")
    assert load(tmp_path / "earlier").inference == replace(brief, checkpoint=str(tmp_path / "run"))
    monkeypatch.undo()
    assert load(tmp_path / "earlier").inference == replace(brief, checkpoint=None)


def test_every_path_among_the_fields_that_files_hold_stays_on_its_machine():
    paths = [
        (kind, one)
        for kind in filter(is_dataclass, _format().known)
        for one in fields(kind)
        if "Path" in str(one.type)
    ]
    assert [(kind, one.name) for kind, one in paths] == [(Sampling, "checkpoint")]
    assert all(one.metadata["local"] for _, one in paths)


def test_a_file_that_names_a_deprecated_class_still_loads(model, tmp_path):
    with pytest.warns(FutureWarning):
        model.set_params(optimizer=Adam(1e-5, schedule=StepDecay(2, 0.5)))
    save(model.fit(*data()), tmp_path / "m")
    with pytest.warns(FutureWarning, match="StepDecay is deprecated"):
        twin = load(tmp_path / "m")
    assert twin.optimizer == model.optimizer
    np.testing.assert_array_equal(
        twin.partial_fit(*data()).theta_, model.partial_fit(*data()).theta_
    )


# Calibrations around a learner

CALIBRATIONS = {
    "intervals": Conformal(regressor(), 0.8, random_state=0),
    "intervals in sds": Conformal(regressor(), 0.7, "sd", held_out=0.4, random_state=3),
    "factor": Recalibrated(
        BayesianMLPRegressor(
            (3,), inference=Sampling("sgld", chains=2, draws=5, warm_up=5, start="prior", cores=1)
        ),
        random_state=0,
    ),
    "sets": Conformal(classifier(), random_state=0),
    "temperature": Recalibrated(classifier(epochs=40), random_state=0),
    "intervals of a factor": Conformal(
        Recalibrated(regressor(), random_state=1), 0.6, random_state=0
    ),
}


def outcomes(model, x):
    """All that a calibration says of rows, and how it came to it."""
    methods = ("predict", "predict_proba", "predict_interval", "predict_set")
    predictions = {name: getattr(model, name)(x) for name in methods if hasattr(model, name)}
    numbers = [name for name in model.fitted_names if hasattr(model, name)]
    numbers.remove("estimator_")
    fitted = {name: np.asarray(getattr(model, name)) for name in numbers}
    return {"params": np.array(repr(model.get_params())), **predictions, **fitted}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of fits and chains as short as these
@pytest.mark.parametrize(
    ("is_held_out", "outputs"), [(True, None), (False, 2)], ids=["fit", "calibrate"]
)
@pytest.mark.parametrize("name", CALIBRATIONS)
def test_a_calibration_comes_back_bit_for_bit(name, is_held_out, outputs, tmp_path):
    model = clone(CALIBRATIONS[name])
    x, y = regression_rows(outputs=outputs)
    if name in ("sets", "temperature"):
        x, codes = class_blobs(3)
        y = np.array(["a", "b", "c"])[codes]
    if not is_held_out:
        model.estimator.fit(x, y)
    (model.fit if is_held_out else model.calibrate)(x, y)
    save(model, tmp_path / "m")
    twin = load(tmp_path / "m")
    assert type(twin) is type(model)
    assert_same_outcomes(twin, model, x)
    # what was one learner is one again, so that both go on alike
    assert (twin.estimator_ is twin.estimator) == (not is_held_out)
    if not is_held_out:
        assert_same_outcomes(twin.calibrate(x[:30], y[:30]), model.calibrate(x[:30], y[:30]), x)


def assert_same_outcomes(twin, model, x):
    expected = outcomes(model, x)
    found = outcomes(twin, x)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        np.testing.assert_array_equal(found[key], values, strict=True)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("bound_", np.zeros(2), r"bound_ must have shape \(\)"),
        ("bound_", np.nan, "bound_ holds nan"),
        ("bound_", None, "bound_ must"),
        ("coverage_", 1.5, "coverage_ must be > 0 and < 1"),
        ("conformity_score_", "cqr", "conformity_score_ must be one of 'interval'"),
        ("n_calibration_rows_", 0, "n_calibration_rows_ must be a whole number >= 1"),
        ("estimator_", BayesianMLPRegressor(), "not fitted"),
        ("temperature_", 2.0, "temperature_ is no attribute of Conformal"),
    ],
)
def test_a_calibration_with_which_nothing_can_be_predicted_is_refused(
    name, value, message, model, tmp_path, monkeypatch
):
    wrapper = Conformal(model, 0.5).calibrate(*data())
    monkeypatch.setattr(Conformal, "fitted_names", (*Conformal.fitted_names, "temperature_"))
    setattr(wrapper, name, value)
    save(wrapper, tmp_path / "m")
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=f"m is damaged or not written.*{message}"):
        load(tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "value"),
    [("sd_factor_", np.ones(2)), ("sd_factor_", np.zeros(1)), ("temperature_", -1.0)],
)
def test_a_factor_or_temperature_that_is_none_is_refused(name, value, tmp_path):
    rows = class_blobs(3) if name == "temperature_" else regression_rows()
    learner = classifier() if name == "temperature_" else regressor()
    wrapper = Recalibrated(learner.fit(*rows)).calibrate(*rows)
    setattr(wrapper, name, value)
    save(wrapper, tmp_path / "m")
    with pytest.raises(CheckpointError, match=name):
        load(tmp_path / "m")


def test_a_calibration_of_no_learner_or_not_calibrated_is_not_saved(model, tmp_path):
    x, y = data()
    line = Conformal(LinearRegression(), 0.5, "absolute").fit(x, y)
    with pytest.raises(TypeError, match=r"model.estimator must be a Bayes.*; got LinearRegression"):
        save(line, tmp_path / "m")
    line.estimator = BayesianMLPRegressor()
    with pytest.raises(TypeError, match=r"model.estimator_ must be"):
        save(line, tmp_path / "m")
    with pytest.raises(NotFittedError, match="nothing to save"):
        save(Conformal(model), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# What cannot be saved


def test_unfitted_models_are_not_saved(tmp_path):
    with pytest.raises(NotFittedError, match="nothing to save; call fit first"):
        save(BayesianMLPRegressor(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match=r"model must be a BayesianMLPRegressor or .*; got dict"):
        save({}, tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prior", type("Own", (GaussianPrior,), {})()),
        ("gradient_estimator", type("Own", (Reparameterised,), {})),
        ("inference", Sampling(type("Own", (HMC,), {})())),
        ("kl_weights", lambda sizes: np.full(len(sizes), 1 / len(sizes))),
        ("kl_warm_up", lambda epoch, epochs: 1.0),
        ("optimizer", Adam(schedule=lambda epoch, epochs: 1.0)),
        ("random_state", np.random.RandomState(0)),
        ("random_state", np.random.Generator(np.random.SFC64(0))),
    ],
)
def test_what_cannot_be_stored_is_named_and_no_file_is_touched(model, path, name, value):
    old_content = path.read_bytes()
    with pytest.raises(CheckpointError, match=name):
        save(model.set_params(**{name: value}), path)
    assert path.read_bytes() == old_content
    assert os.listdir(path.parent) == [path.name]


def test_missing_places_are_the_systems_own_errors(model, tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.npz")
    with pytest.raises(FileNotFoundError):
        save(model, tmp_path / "absent" / "m.npz")
    with pytest.raises(OSError, match="irectory"):
        load(tmp_path)


# What cannot be loaded


def changed(path, change):
    """Write the header again after `change`."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(arrays.pop("header").tobytes())
    change(header)
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)


class Runs:
    """What would run code if it were unpickled."""

    def __reduce__(self):
        return exec, ("raise SystemExit('executed')",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(format="other"), "format must be 'bbb_numpy.learner', version 2; got"),
        (lambda h: h.update(version=1), "got 'bbb_numpy.learner', version 1, written by bbb_numpy"),
        (lambda h: h.pop("content"), "is damaged or not written.*: KeyError: .content."),
        (lambda h: h["content"].update(learner="eval"), "eval"),
        (lambda h: h["content"].update(parameters={"dict": [["momentum", 1]]}), "momentum"),
        (
            lambda h: h["content"].update(parameters={"os": {"name": "x"}}),
            "holds 'os', which is no registered class",
        ),
        (
            lambda h: h["content"].update(fitted={"geometric_kl_weights": [5]}),
            "is damaged or not written.*",
        ),
        (
            lambda h: h["content"].update(fitted={"GaussianPrior": {"scale": -1.0}}),
            "scale of the prior must be positive",
        ),
    ],
)
def test_a_file_that_says_something_else_is_refused(path, change, message):
    changed(path, lambda header: None)
    load(path)  # writing again alone is harmless
    changed(path, change)
    with pytest.raises(CheckpointError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("name", ["x_mean_", "x_scale_", "y_mean_", "y_scale_", "training_.theta"])
@pytest.mark.parametrize("array", [np.zeros(0), np.full(3, np.nan), np.array(["x"])])
def test_arrays_with_which_nothing_can_be_predicted_are_refused(path, name, array):
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{**arrays, f"fitted.{name}": array})
    with pytest.raises(CheckpointError, match=r"is damaged or not written.*: ") as caught:
        load(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("x,y\n1,2\n"),
        lambda path: np.savez(path, theta=np.zeros(3)),
        lambda path: np.savez(path, header=np.array([Runs()])),
        lambda path: np.savez(path, header=np.frombuffer(b"{", np.uint8)),
        lambda path: np.savez(path, header=np.frombuffer(b"[" * 100_000, np.uint8)),
    ],
)
def test_foreign_files_are_refused_and_nothing_is_executed(path, write):
    write(path)
    with pytest.raises(CheckpointError, match=r"is damaged or not written.*: "):
        load(path)


def test_a_flipped_bit_is_refused_or_harmless(path, model):
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    refused = 0
    for index in rng.choice(len(content), 100, replace=False):
        damaged = content.copy()
        damaged[index] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            twin = load(path)
        except CheckpointError:
            refused += 1
        else:  # a byte of the archive's own bookkeeping
            np.testing.assert_array_equal(twin.theta_, model.theta_)
    assert refused > 50
