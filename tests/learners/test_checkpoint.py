"""A saved model comes back bit for bit; a file that is anything else is refused by name."""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from bbb_numpy.gradients.catalogue import ESTIMATORS, LIKELIHOODS, OBJECTIVES, PRIORS
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.learners import checkpoint
from bbb_numpy.learners.checkpoint import CheckpointError, load, save
from bbb_numpy.learners.classifier import BayesianMLPClassifier
from bbb_numpy.learners.regressor import BayesianMLPRegressor
from bbb_numpy.model.kl_weights import CyclicalWarmUp, LinearWarmUp, NoWarmUp, geometric_kl_weights
from bbb_numpy.model.objectives import EUBO, FreeEnergy, Renyi
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.parts.priors import GaussianPrior, LaplacePrior
from bbb_numpy.training import EarlyStopping
from bbb_numpy.training.optimizers import SGD, Adam, Constant, Cosine, Momentum, StepDecay

SCHEDULE = st.one_of(
    st.just(Constant()),
    st.builds(Cosine, final=st.floats(0, 0.9)),
    st.builds(StepDecay, every=st.integers(1, 5), factor=st.floats(0.1, 0.9)),
)
RATE = st.floats(1e-6, 1e-4)
OPTIMIZER = st.one_of(
    st.none(),
    st.builds(SGD, learning_rate=RATE, schedule=SCHEDULE),
    st.builds(Momentum, learning_rate=RATE, momentum=st.floats(0, 0.9), schedule=SCHEDULE),
    st.builds(Adam, learning_rate=RATE, beta2=st.floats(0.9, 0.999), schedule=SCHEDULE),
)
MODEL = st.fixed_dictionaries(
    {
        "hidden_layer_sizes": st.lists(st.integers(1, 4), max_size=2).map(tuple),
        "activation": st.sampled_from(["relu", "tanh"]),
        "prior": st.none() | st.builds(GaussianPrior, scale=st.floats(0.01, 10)),
        "likelihood": st.none()
        | st.builds(GaussianLikelihood, scale=st.floats(0.1, 10), learn=st.booleans()),
        "inference": st.just("mean-field") | st.builds(MeanField, rho_offset=st.floats(-8, 0)),
        "estimator": st.sampled_from([None, "flipout", LocalReparameterisation, Reparameterised]),
        "objective": st.none() | st.builds(FreeEnergy, beta=st.floats(0, 2)),
        "kl_weights": st.sampled_from([None, "geometric", geometric_kl_weights]),
        "warm_up": st.sampled_from(
            [None, "none", NoWarmUp(), LinearWarmUp(0.2), CyclicalWarmUp(2)]
        ),
        "optimizer": OPTIMIZER,
        "epochs": st.integers(1, 3),
        "batch_size": st.integers(1, 9),
        "samples": st.integers(1, 3),
        "predict_samples": st.integers(1, 5),
        "standardize": st.booleans(),
        "early_stopping": st.none() | st.builds(EarlyStopping, patience=st.integers(1, 3)),
        "validation_fraction": st.sampled_from([0.0, 0.3]),
        "dtype": st.sampled_from(["float32", "float64"]),
        "random_state": st.integers(0, 2**32 - 1) | st.just(np.random.default_rng(3)),
    }
)


def data(outputs=None):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(10, 2))
    return x, (x.sum(axis=1) if outputs is None else x @ rng.normal(size=(2, outputs)))


@pytest.fixture
def model():
    return BayesianMLPRegressor((3,), epochs=2, random_state=0).fit(*data())


@pytest.fixture
def path(model, tmp_path):
    save(model, tmp_path / "model.npz")
    return tmp_path / "model.npz"


def parameters(model):
    """The constructor's arguments, a generator as its state."""
    given = model.get_params()
    seed = given["random_state"]
    if isinstance(seed, np.random.Generator):
        given["random_state"] = seed.bit_generator.state
    return given


def assert_same(one, other):
    x = data()[0]
    assert parameters(one) == parameters(other)
    assert one.estimator_ == other.estimator_
    assert one.theta_.dtype == other.theta_.dtype
    np.testing.assert_array_equal(one.theta_, other.theta_)
    np.testing.assert_array_equal(np.array(one.history_), np.array(other.history_))
    assert one.training_.optimizer_state.steps == other.training_.optimizer_state.steps
    assert one.rng_.bit_generator.state == other.rng_.bit_generator.state
    np.testing.assert_array_equal(
        one.predict(x, return_std=True), other.predict(x, return_std=True)
    )


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(params=MODEL, outputs=st.sampled_from([None, 1, 3]))
def test_saved_models_predict_and_go_on_bit_identically(tmp_path, params, outputs):
    x, y = data(outputs)
    model = BayesianMLPRegressor(**params).fit(x, y)
    save(model, tmp_path / "model.npz")
    twin = load(tmp_path / "model.npz")
    assert_same(twin, model)
    for one in (model, twin):
        one.partial_fit(x, y, epochs=2)
    assert_same(twin, model)
    assert twin.predict(x).shape == y.shape
    again = [one.fit(x, y).theta_ for one in (model, twin)]
    np.testing.assert_array_equal(*again)


SHORT_NAMES = [
    *({"prior": name} for name in PRIORS),
    *({"likelihood": name} for name in LIKELIHOODS if name != "categorical"),
    *({"inference": name} for name in ("full-rank", "map", "mle")),
    *(
        {"estimator": n}
        for n in ESTIMATORS
        if n not in ("doubly-reparameterised", "self-normalised")
    ),
    *({"objective": name} for name in OBJECTIVES if name not in ("map", "mle")),
    {"estimator": "doubly-reparameterised", "objective": "iwae"},
    {"estimator": "self-normalised", "objective": "eubo"},
]
OBJECTS = [
    {"prior": ScaleMixturePrior(0.3, 2.0, 0.25, learn=True)},
    {"prior": LaplacePrior(0.125), "inference": FullRank(0.5, -3.0, 0.25, 2.0)},
    {"likelihood": HeteroscedasticLikelihood(0.25), "objective": Renyi(-0.5)},
    {"inference": PointMass(0.5)},
    {"objective": EUBO()},
]


@pytest.mark.parametrize("params", [*SHORT_NAMES, *OBJECTS], ids=str)
def test_every_part_of_a_model_comes_back(tmp_path, params):
    x, y = data()
    if params.get("likelihood") == "poisson":
        y = np.floor(np.abs(y))
    if params.get("likelihood") == "bernoulli":
        y = y > 0
    options = {"epochs": 2, "samples": 2, "batch_size": 10, "random_state": 0, "predict_samples": 5}
    model = BayesianMLPRegressor((3,), **options, **params).fit(x, y)
    save(model, tmp_path / "m")
    twin = load(tmp_path / "m")
    assert type(twin.estimator_) is type(model.estimator_)
    assert_same(twin, model)
    assert_same(twin.partial_fit(x, y), model.partial_fit(x, y))


def test_every_name_is_among_those_checked():
    given = [item for params in SHORT_NAMES for item in params.items()]
    trained = set(OBJECTIVES) - {"map", "mle"}  # which `inference` names
    for name, table in {"prior": PRIORS, "estimator": ESTIMATORS, "objective": trained}.items():
        assert {short for argument, short in given if argument == name} == set(table)


LABELS = {
    "text": np.array(["no", "yes", "maybe"]),
    "object": np.array(["no", "yes", "maybe"], object),
    "int": np.array([3, -1, 2], np.int16),
    "unsigned": np.array([2**64 - 1, 1, 2], np.uint64),
    "float": np.array([3.0, -1.0, 2.0], np.float32),
    "numbers in object": np.array([3, -1, 2], object),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_a_classifier_and_its_labels_come_back(tmp_path, labels, classes):
    x, y = data()[0], labels[np.arange(10) % classes]
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
    model = BayesianMLPClassifier((3,), epochs=1).fit(x, y > 0)
    save(model, tmp_path / "m")
    assert load(tmp_path / "m").classes_.tolist() == [False, True]
    dates = np.where(y > 0, np.datetime64("2020"), np.datetime64("2021"))
    with pytest.raises(CheckpointError, match="classes_ of type date cannot be saved"):
        save(model.fit(x, dates), tmp_path / "m")


# What version 0.1 has written, with its predictions and those after one more partial_fit
VERSION_1 = Path(__file__).parent / "version_1.npz"
PREDICTED = [-0.3864949092409365, -0.3812811674097021, -0.3828053583658654]
GONE_ON = [-0.37489048504020495, -0.3668180140250912, -0.37067874148120505]


def test_files_of_version_1_predict_and_go_on_as_they_did():
    x, y = data()
    model = load(VERSION_1)
    np.testing.assert_allclose(model.predict(x, return_std=True)[0][:3], PREDICTED, rtol=1e-12)
    model.partial_fit(x, y)
    np.testing.assert_allclose(model.predict(x, return_std=True)[0][:3], GONE_ON, rtol=1e-12)
    assert model.prior == GaussianPrior(0.5)  # defaults of that time, whatever they are now
    assert (model.estimator, model.warm_up) == ("reparameterised", "none")
    assert model.optimizer == Adam(1e-2, schedule=Cosine())


# A classifier in a file of version 2, with its predictions and those after one more partial_fit
VERSION_2 = Path(__file__).parent / "version_2.npz"
PROBABLE = [0.3421134204635263, 0.3100676902879933, 0.34781888924848037]
THEN = [0.3399381376712626, 0.31394929096687535, 0.346112571361862]


def test_files_of_version_2_predict_and_go_on_as_they_did():
    x, labels = data()[0], np.array(["no", "yes", "maybe"])[np.arange(10) % 3]
    model = load(VERSION_2)
    np.testing.assert_allclose(model.predict_proba(x)[0], PROBABLE, rtol=1e-12)
    model.partial_fit(x, labels)
    np.testing.assert_allclose(model.predict_proba(x)[0], THEN, rtol=1e-12)
    assert (model.inference, model.estimator, model.warm_up) == (None, "flipout", "linear")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(version=3), "header: missing ['draws']"),
        (lambda h, a: h.update(parameters=[1]), "parameters must be a table"),
        (lambda h, a: h["parameters"].update(inference="nuts"), "those of version 2"),
        (lambda h, a: h.update(draws={}), "header: missing [], unknown ['draws']"),
    ],
)
def test_changed_files_of_version_2_are_refused_too(tmp_path, change, message):
    (tmp_path / "m.npz").write_bytes(VERSION_2.read_bytes())
    rewrite(tmp_path / "m.npz", change)
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path / "m.npz")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(version=2), "version 2 is not supported"),
        (lambda h, a: h.update(more=1), "header: missing [], unknown ['more']"),
        (lambda h, a: h.update(model=3), "model must be a table"),
        (lambda h, a: h.update(parameters=[1]), "parameters must be a table"),
        (lambda h, a: h["parameters"].pop("epochs"), "parameters: missing ['epochs']"),
        (lambda h, a: h["model"].pop("prior"), "model: missing ['prior']"),
        (lambda h, a: h["model"].update(objective=1), "model: missing [], unknown ['objective']"),
    ],
)
def test_changed_files_of_version_1_are_refused_too(tmp_path, change, message):
    (tmp_path / "m").write_bytes(VERSION_1.read_bytes())
    (tmp_path / "m").rename(tmp_path / "m.npz")  # np.savez would append the ending
    rewrite(tmp_path / "m.npz", lambda header, arrays: None)
    load(tmp_path / "m.npz")
    rewrite(tmp_path / "m.npz", change)
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path / "m.npz")
    assert message in str(caught.value)


def test_feature_names_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    x, y = data()
    model = BayesianMLPRegressor((3,), epochs=1).fit(pandas.DataFrame(x, columns=["a", "ü"]), y)
    save(model, tmp_path / "m")
    assert list(load(tmp_path / "m").feature_names_in_) == ["a", "ü"]
    assert load(tmp_path / "m").feature_names_in_.dtype == object


def test_arguments_set_after_fit_are_kept_beside_the_fitted_model(model, tmp_path):
    model.set_params(prior=GaussianPrior(9.0), hidden_layer_sizes=7)
    save(model, tmp_path / "m")
    twin = load(tmp_path / "m")
    assert twin.prior == GaussianPrior(9.0)
    assert twin.hidden_layer_sizes == (7,)
    np.testing.assert_array_equal(twin.predict(data()[0]), model.predict(data()[0]))


def test_the_file_is_plain_arrays_and_one_json_header(path):
    with np.load(path, allow_pickle=False) as file:
        header = json.loads(file["header"].tobytes())
        assert all(file[name].dtype.kind in "fu" for name in file.files)
    assert (header["format"], header["version"]) == (checkpoint.FORMAT, checkpoint.VERSION)


# What cannot be saved


def test_unfitted_models_are_not_saved(tmp_path):
    with pytest.raises(NotFittedError, match="nothing to save; call fit first"):
        save(BayesianMLPRegressor(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match=r"model must be a BayesianMLPRegressor or .*; got dict"):
        save({}, tmp_path / "m")


class OwnPrior(GaussianPrior):
    pass


class OwnEstimator(Reparameterised):
    pass


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("prior", OwnPrior(), CheckpointError),
        ("estimator", OwnEstimator, CheckpointError),
        ("kl_weights", lambda sizes: np.full(len(sizes), 1 / len(sizes)), CheckpointError),
        ("warm_up", lambda epoch, epochs: 1.0, CheckpointError),
        ("optimizer", Adam(schedule=lambda epoch, epochs: 1.0), CheckpointError),
        ("random_state", np.random.RandomState(0), CheckpointError),
        ("random_state", np.random.Generator(np.random.SFC64(0)), CheckpointError),
        ("batch_size", 0, ValueError),
    ],
)
def test_what_cannot_be_stored_is_named_and_no_file_is_touched(model, path, name, value, kind):
    before = path.read_bytes()
    with pytest.raises(kind, match=name):
        save(model.set_params(**{name: value}), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("failing", ["savez", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_save_leaves_the_older_file(model, path, monkeypatch, failing, error):
    before = path.read_bytes()

    def fail(*args, **kwargs):
        if failing == "savez":
            args[0].write(b"half of it")
        raise error

    monkeypatch.setattr(np if failing == "savez" else os, failing, fail)
    with pytest.raises(type(error)):
        save(model, path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_missing_places_are_the_systems_own_errors(model, tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.npz")
    with pytest.raises(FileNotFoundError):
        save(model, tmp_path / "absent" / "m.npz")
    with pytest.raises(OSError, match="irectory"):
        load(tmp_path)


def test_saving_over_a_link_replaces_what_it_points_to(model, path):
    link = path.with_name("link")
    link.symlink_to(path)
    save(model.partial_fit(*data()), link)
    assert link.is_symlink()
    assert load(path).n_iter_ == 3


# What cannot be loaded


def rewrite(path, change):
    """Save again after `change(header, arrays)`."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(arrays.pop("header").tobytes())
    change(header, arrays)
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)


def put(*keys, value):
    def change(header, arrays):
        inner = header
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return change


def drop(*keys):
    def change(header, arrays):
        inner = header
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]

    return change


def array(name, make):
    def change(header, arrays):
        arrays[name] = make(arrays[name])

    return change


def without(name):
    return lambda header, arrays: arrays.pop(name)


def extra(header, arrays):
    arrays["weights"] = np.zeros(3)


def with_(index, value):
    def make(a):
        a = a.copy()
        a.flat[index] = value
        return a

    return make


NAN, INF = float("nan"), float("inf")
GAUSSIAN = {"class": "GaussianPrior", "arguments": {"scale": 1.0, "learn": False}}


def gaussian(**arguments):
    return GAUSSIAN | {"arguments": GAUSSIAN["arguments"] | arguments}


CHANGES = [
    (put("format", value="other"), "format must be"),
    (drop("format"), "format must be"),
    (put("version", value=4), "version 4 is not supported"),
    (put("version", value="1"), "version '1' is not supported"),
    (put("version", value=True), "version True is not supported"),
    (drop("version"), "version None is not supported"),
    (drop("parameters"), "header: missing ['parameters']"),
    (put("more", value=1), "header: missing [], unknown ['more']"),
    (drop("parameters", "epochs"), "parameters: missing ['epochs']"),
    (put("parameters", "momentum", value=1), "parameters: missing [], unknown ['momentum']"),
    (put("parameters", "epochs", value=0), "parameters: epochs"),
    (put("parameters", "epochs", value="9"), "parameters: epochs"),
    (put("parameters", "prior", value=3), "parameters: prior"),
    (put("parameters", "random_state", value="x"), "random_state"),
    (put("parameters", "dtype", value="float16"), "parameters: dtype"),
    (put("parameters", "prior", value={"class": "eval", "arguments": {}}), "unknown class 'eval'"),
    (put("parameters", "prior", value={"class": ["eval"], "arguments": {}}), "unknown class"),
    (put("parameters", "prior", value={"class": "GaussianPrior"}), "prior: missing ['arguments']"),
    (
        put("parameters", "prior", value={"class": "GaussianPrior", "arguments": {"width": 1}}),
        "prior: GaussianPrior: missing ['learn', 'scale'], unknown ['width']",
    ),
    (put("model", "prior", value=gaussian(scale="1")), "scale has the wrong"),
    (put("model", "prior", value=gaussian(scale=True)), "scale has the wrong"),
    (put("model", "prior", value=gaussian(scale=-1.0)), "must be positive"),
    (put("model", "prior", value=gaussian(scale=NAN)), "must be positive"),
    (put("model", "prior", value=GAUSSIAN | {"arguments": 3}), "must be a table"),
    (put("model", "prior", value=None), "model: prior must be a GaussianPrior or"),
    (put("model", "posterior", value=GAUSSIAN), "model: posterior must be a MeanField or"),
    (drop("model", "network"), "model: missing ['network']"),
    (put("model", "network", "arguments", "sizes", value=[2, 0, 1]), "network: MLP: sizes"),
    (put("model", "network", "arguments", "sizes", value=[2, 3.5, 1]), "sizes has the wrong type"),
    (put("model", "network", "arguments", "sizes", value=[2, 4, 1]), "theta must have shape"),
    (put("model", "network", "arguments", "sizes", value=[3, 3, 1]), "must be the ends of sizes"),
    (put("model", "network", "arguments", "activation", value="x"), "activation must be one of"),
    (put("model", "prior", value=gaussian(learn=1)), "learn has the wrong type"),
    (put("learner", value="MLPRegressor"), "learner must be"),
    (put("learner", value=["BayesianMLPRegressor"]), "learner must be"),
    (put("learner", value="BayesianMLPClassifier"), "likelihood"),
    (put("parameters", "estimator", value="flip"), "parameters: estimator must be one of"),
    (
        put("parameters", "kl_weights", value={"class": "named", "arguments": {"name": "eval"}}),
        "unkn",
    ),
    (put("parameters", "kl_weights", value={"class": "named", "arguments": {"name": []}}), "unkno"),
    (put("parameters", "warm_up", value=3), "parameters: warm_up"),
    (put("model", "estimator", value="eval"), "model: unknown estimator 'eval'"),
    (put("model", "estimator", value="geometric_kl_weights"), "model: unknown estimator"),
    (put("model", "estimator", value=None), "model: unknown estimator None"),
    (put("model", "estimator", value="SelfNormalised"), "SelfNormalised"),
    (put("model", "antithetic", value=1), "model: antithetic must be"),
    (put("model", "objective", value=GAUSSIAN), "model: objective must be a FreeEnergy or"),
    (put("model", "objective", value={"class": "MLE", "arguments": {}}), "model: MLE"),
    (put("fitted", value=[1]), "fitted must be a table"),
    (drop("fitted", "rng_"), "fitted: missing ['rng_']"),
    (put("fitted", "rng_", value=None), "rng_ must be a generator"),
    (put("fitted", "rng_", "arguments", "bit_generator", value="os"), "rng_: not the state"),
    (put("fitted", "rng_", "arguments", "state", value={"state": 1}), "rng_: not the state"),
    (put("fitted", "rng_", "arguments", "state", "state", value=-1), "rng_: not the state"),
    (put("fitted", "rng_", "arguments", "has_uint32", value=0.5), "rng_: not the state"),
    (put("fitted", "rng_", "arguments", value=None), "rng_: not the state"),
    (put("fitted", "predict_seed_", value=-1), "predict_seed_ must be a whole number"),
    (put("fitted", "predict_seed_", value=2**64), "predict_seed_ must be a whole number"),
    (put("fitted", "steps", value=1.0), "steps must be a whole number"),
    (put("fitted", "stopped", value="tired"), "stopped must be one of"),
    (put("fitted", "stopped", value=[]), "stopped must be one of"),
    (put("fitted", "y_ndim_", value=3), "y_ndim_ 3"),
    (put("fitted", "n_outputs_", value=2), "must be the ends of sizes"),
    (put("fitted", "feature_names_in_", value=["a"]), "feature_names_in_ must be 2 texts"),
    (put("fitted", "feature_names_in_", value=["a", 1]), "feature_names_in_ must be 2 texts"),
    (put("fitted", "feature_names_in_", value="ab"), "feature_names_in_ must be 2 texts"),
    (without("theta"), "theta is missing"),
    (without("history"), "history is missing"),
    (without("x_scale"), "x_scale is missing"),
    (without("optimizer.m"), "memory ['v'], which no optimizer keeps"),
    (extra, "unknown entries ['weights']"),
    (array("theta", lambda a: a[:-1]), "theta must have shape (27,); got (26,)"),
    (array("theta", lambda a: a[None]), "theta must have shape (27,); got (1, 27)"),
    (array("theta", lambda a: a.astype(int)), "theta must have dtype"),
    (array("theta", lambda a: a.astype(">f8")), "theta must have dtype"),
    (array("theta", lambda a: a.astype(complex)), "theta must have dtype"),
    (array("theta", lambda a: a.astype("U9")), "theta must have dtype"),
    (array("theta", with_(3, NAN)), "theta holds nan or infinity"),
    (array("optimizer.v", with_(3, -1.0)), "optimizer.v holds mean squares"),
    (array("optimizer.m", with_(3, INF)), "optimizer.m holds nan or infinity"),
    (array("optimizer.m", lambda a: a.astype(np.float32)), "optimizer.m must have dtype float64"),
    (array("history", with_(0, NAN)), "history: objective must be finite"),
    (array("history", lambda a: a[:, :4]), "history must have shape"),
    (array("x_mean", with_(0, INF)), "x_mean holds nan or infinity"),
    (array("x_scale", with_(0, 0.0)), "x_scale must be positive"),
    (array("y_scale", with_(0, -1.0)), "y_scale must be positive"),
    (array("y_mean", lambda a: np.zeros(2)), "y_mean must have shape (1,); got (2,)"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=[message for _, message in CHANGES])
def test_every_changed_field_is_found_and_named(path, change, message):
    rewrite(path, lambda header, arrays: None)
    load(path)  # rewriting alone is harmless
    rewrite(path, change)
    with pytest.raises(CheckpointError) as caught:
        load(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


@pytest.fixture
def classifier_path(tmp_path):
    x = data()[0]
    labels = np.array(["b", "a", "c"])[np.arange(10) % 3]
    save(BayesianMLPClassifier((3,), epochs=1, random_state=0).fit(x, labels), tmp_path / "c.npz")
    return tmp_path / "c.npz"


def classes(dtype, values):
    return put("fitted", "classes_", value={"dtype": dtype, "values": values})


BERNOULLI = {"class": "BernoulliLikelihood", "arguments": {}}
CLASSIFIER_CHANGES = [
    (put("learner", value="BayesianMLPRegressor"), "missing"),
    (put("model", "likelihood", value=GAUSSIAN), "model: likelihood must be a"),
    (put("model", "likelihood", value=BERNOULLI), "3 classes_ do not fit sizes"),
    (put("fitted", "classes_", value=["a", "b", "c"]), "classes_ must be a table"),
    (drop("fitted", "classes_", "dtype"), "classes_: missing ['dtype']"),
    (classes("<U1", ["a", "b"]), "2 classes_ do not fit sizes"),
    (classes("<U1", ["a", "c", "b"]), "sorted labels"),
    (classes("<U1", ["a", "a", "b"]), "sorted labels"),
    (classes("<U1", ["a", "b", "cd"]), "sorted labels"),
    (classes("<U1", ["a", "b", 3]), "labels of one type"),
    (classes("<U1", [["a"], ["b"], ["c"]]), "labels of one type"),
    (classes("<U1", "abc"), "labels of one type"),
    (classes("<U1", [0, 1, 2]), "sorted labels"),
    (classes("|i1", [0, 1, 200]), "classes_"),
    (classes("<f8", [0.0, 1.0, NAN]), "sorted labels"),
    (classes("<M8[D]", ["a", "b", "c"]), "classes_ cannot be of type"),
    (classes("|V1", ["a", "b", "c"]), "classes_"),
    (classes("eval", ["a", "b", "c"]), "classes_ cannot be of type 'eval'"),
    (classes(3, ["a", "b", "c"]), "classes_ cannot be of type 3"),
]


@pytest.mark.parametrize(("change", "message"), CLASSIFIER_CHANGES)
def test_every_changed_field_of_a_classifier_is_found_and_named(classifier_path, change, message):
    rewrite(classifier_path, lambda header, arrays: None)
    load(classifier_path)
    rewrite(classifier_path, change)
    with pytest.raises(CheckpointError) as caught:
        load(classifier_path)
    assert message in str(caught.value)


def pickled(path):
    np.savez(path, header=np.array([{"format": checkpoint.FORMAT}], object))


def single(path):
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))


def foreign(path):
    np.savez(path, theta=np.zeros(3))


def text_in_zip(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header", "hello")


def not_json(path):
    np.savez(path, header=np.frombuffer(b"{", np.uint8))


def not_text(path):
    np.savez(path, header=np.frombuffer(b"\xff\xfe", np.uint8))


def json_list(path):
    np.savez(path, header=np.frombuffer(b"[1]", np.uint8))


def doubled(path):
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(path, "a") as file,
    ):
        file.writestr("theta.npy", b"")


FILES = [
    (lambda path: path.write_bytes(b""), "cannot be read"),
    (lambda path: path.write_text("x,y\n1,2\n"), "cannot be read"),
    (lambda path: path.write_bytes(b"PK\x03\x04 and then nothing"), "cannot be read"),
    (pickled, r"cannot be read.*objects, not plain arrays\)$"),
    (single, "single .npy array"),
    (foreign, "has no header"),
    (text_in_zip, "has no header"),
    (not_json, "header is not JSON"),
    (not_text, "header is not JSON"),
    (json_list, "format must be"),
    (doubled, "two entries of the same name"),
]


@pytest.mark.parametrize(("write", "message"), FILES)
def test_foreign_files_are_refused(path, write, message):
    write(path)
    with pytest.raises(CheckpointError, match=message):
        load(path)


def test_a_file_cut_anywhere_is_refused(path):
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="cannot be read"):
            load(path)


def test_a_flipped_bit_is_refused_or_harmless(path, model):
    whole = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.choice(len(whole), 200, replace=False):
        damaged = whole.copy()
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            twin = load(path)
        except CheckpointError:
            refused += 1
        else:  # a byte of the archive's own bookkeeping
            np.testing.assert_array_equal(twin.theta_, model.theta_)
    assert refused > 100


def test_loading_reads_any_path_like(path, model):
    for place in (path, str(path), Path(os.path.relpath(path))):
        np.testing.assert_array_equal(load(place).theta_, model.theta_)
