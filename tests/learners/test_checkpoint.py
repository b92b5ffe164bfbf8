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

pytestmark = pytest.mark.brief

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
        "gradient_estimator": st.sampled_from(
            [None, "flipout", LocalReparameterisation, Reparameterised]
        ),
        "objective": st.none() | st.builds(FreeEnergy, beta=st.floats(0, 2)),
        "kl_weights": st.sampled_from([None, "geometric", geometric_kl_weights]),
        "kl_warm_up": st.sampled_from(
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
        {"gradient_estimator": n}
        for n in ESTIMATORS
        if n not in ("doubly-reparameterised", "self-normalised")
    ),
    *({"objective": name} for name in OBJECTIVES if name not in ("map", "mle")),
    {"gradient_estimator": "doubly-reparameterised", "objective": "iwae"},
    {"gradient_estimator": "self-normalised", "objective": "eubo"},
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
    for name, table in {
        "prior": PRIORS,
        "gradient_estimator": ESTIMATORS,
        "objective": trained,
    }.items():
        assert {short for argument, short in given if argument == name} == set(table)


LABELS = {
    "text": np.array(["no", "yes", "maybe"]),
    "object": np.array(["no", "yes", "maybe"], object),
    "int": np.array([3, -1, 2], np.int16),
    "unsigned": np.array([2**64 - 1, 1, 2], np.uint64),
    "float": np.array([3.0, -1.0, 2.0], np.float32),
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
    with pytest.raises(CheckpointError, match=r"classes_ of dtype datetime64\[Y\] cannot be saved"):
        save(model.fit(x, dates), tmp_path / "m")


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
    assert twin.hidden_layer_sizes == 7
    np.testing.assert_array_equal(twin.predict(data()[0]), model.predict(data()[0]))


def test_the_file_is_plain_arrays_and_one_json_header(path):
    with np.load(path, allow_pickle=False) as file:
        header = json.loads(file["header"].tobytes())
        assert all(file[name].dtype.kind in "fu" for name in file.files)
    form = checkpoint.FORMAT
    assert (header["format"], header["version"]) == (form.name, form.version)


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
        ("gradient_estimator", OwnEstimator, CheckpointError),
        ("kl_weights", lambda sizes: np.full(len(sizes), 1 / len(sizes)), CheckpointError),
        ("kl_warm_up", lambda epoch, epochs: 1.0, CheckpointError),
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


def inside(header, place):
    """The table at a place such as ``fitted.rng_``, below the labels that say what it is."""
    table = header["content"]
    for key in filter(None, place.split(".")):
        table = table[key]
        while isinstance(table, dict) and len(table) == 1:
            [table] = table.values()
    return table


def put(place, **values):
    return lambda header, arrays: inside(header, place).update(values)


def drop(place, name):
    return lambda header, arrays: inside(header, place).pop(name)


def at_top(**values):
    return lambda header, arrays: header.update(values)


def array(name, make):
    """Change an array, and what the header says of its dtype."""

    def change(header, arrays):
        place, _, last = f"fitted.{name}".rpartition(".")
        arrays[f"fitted.{name}"] = new = make(arrays[f"fitted.{name}"])
        if "array" in inside(header, place)[last]:
            inside(header, place)[last] = {"array": new.dtype.str}

    return change


def without(name):
    return lambda header, arrays: arrays.pop(f"fitted.{name}")


def extra(header, arrays):
    arrays["weights"] = np.zeros(3)


def relabelled(header, arrays):
    inside(header, "fitted.training_")["theta"] = {"array": "<f4"}


def without_memory(header, arrays):
    del inside(header, f"fitted.{MEMORY}")["m"]
    del arrays["fitted.training_.optimizer_state.arrays.m"]


def with_(index, value):
    def make(a):
        a = a.copy()
        a.flat[index] = value
        return a

    return make


NAN, INF = float("nan"), float("inf")
ESTIMATOR, PARTS = "fitted.estimator_", "fitted.estimator_.model"
THETA, MEMORY = "training_.theta", "training_.optimizer_state.arrays"


def gaussian(**arguments):
    return {"GaussianPrior": {"scale": 1.0, "learn": False} | arguments}


def adam(**arguments):
    return {"Adam": {**vars(Adam()), "schedule": {"Constant": {}}} | arguments}


def estimator(kind, **changes):
    """Another kind of estimator of the same parts."""

    def change(header, arrays):
        parts = inside(header, ESTIMATOR)
        parts.pop("antithetic", None)
        inside(header, "fitted")["estimator_"] = {kind: parts | changes}

    return change


CHANGES = [
    (at_top(format="other"), "format must be"),
    (lambda h, a: h.pop("format"), "format must be"),
    (at_top(version=2), "version 2 is not supported, this package reads version 1; the file was"),
    (at_top(version="1"), "version '1' is not supported"),
    (at_top(version=True), "version True is not supported"),
    (lambda h, a: h.pop("version"), "version None is not supported"),
    (lambda h, a: h.pop("content"), "header: missing ['content']"),
    (at_top(more=1), "header: missing [], unknown ['more']"),
    (at_top(content=[1]), "content must be a table of names"),
    (drop("", "parameters"), "content: missing ['parameters']"),
    (put("", parameters=3), "parameters must be of type dict"),
    (drop("parameters", "epochs"), "parameters: missing ['epochs']"),
    (put("parameters", momentum=1), "parameters: missing [], unknown ['momentum']"),
    (put("parameters", epochs=0), "parameters: epochs"),
    (put("parameters", epochs=10**12), "epochs must be a whole number >= 1 and <= 1000000000"),
    (put("parameters", predict_samples=2**63), "parameters: predict_samples must be"),
    (put("parameters", predict_samples=10**12), "parameters: predict_samples must be"),
    (at_top(written_by=[]), "written_by must be of type str; got []"),
    (put("fitted.rng_", has_uint32=-1), "rng_: not the state"),
    (put("fitted.rng_", has_uint32=False), "rng_: not the state"),
    (put("parameters", prior=3), "parameters: prior"),
    (put("parameters", random_state="x"), "random_state"),
    (put("parameters", dtype="float16"), "parameters: dtype"),
    (put("parameters", prior={"eval": {}}), "parameters.prior: unknown class 'eval'"),
    (
        put("parameters", prior={"GaussianPrior": {"width": 1}}),
        "prior: GaussianPrior: missing ['learn', 'scale'], unknown ['width']",
    ),
    (put("parameters", prior={"name": "GaussianPrior"}), "parameters: prior"),
    (put("parameters", gradient_estimator="flip"), "parameters: gradient_estimator must be one of"),
    (put("parameters", kl_weights={"name": "eval"}), "kl_weights: unknown name 'eval'"),
    (put("parameters", kl_warm_up=3), "parameters: kl_warm_up"),
    (put("parameters", kl_warm_up={"Constant": {}}), "parameters.kl_warm_up must be a NoWarmUp or"),
    (put("parameters", optimizer=adam(schedule={"MAP": {}})), "optimizer.schedule must be a Const"),
    (put(PARTS, prior=gaussian(scale="1")), "prior.scale must be of type float; got '1'"),
    (put(PARTS, prior=gaussian(scale=-1.0)), "must be positive"),
    (put(PARTS, prior=gaussian(scale={"float": "nan"})), "must be positive"),
    (put(PARTS, prior=None), "fitted.estimator_.model.prior must be of type Prior"),
    (put(ESTIMATOR, posterior=gaussian()), "fitted.estimator_.posterior must be of type Posterior"),
    (put(ESTIMATOR, objective={"NoWarmUp": {}}), "estimator_.objective must be a FreeEnergy or"),
    (put(ESTIMATOR, objective={"MLE": {}}), "fitted.estimator_: Reparameterised: MLE"),
    (drop(PARTS, "network"), "fitted.estimator_.model: Model: missing ['network']"),
    (put(f"{PARTS}.network", sizes=[2, 0, 1]), "network: MLP: sizes"),
    (put(f"{PARTS}.network", sizes=[2, 3.5, 1]), "network.sizes must be of type tuple[int, ...]"),
    (put(f"{PARTS}.network", sizes=[2, 4, 1]), f"fitted.{THETA} must have shape"),
    (put(f"{PARTS}.network", sizes=[3, 3, 1]), "must be the ends of sizes"),
    (estimator("SelfNormalised"), "fitted.estimator_: SelfNormalised: "),
    (put("fitted", estimator_=gaussian()), "fitted.estimator_ must be of type"),
    (put("", learner="MLPRegressor"), "learner must be"),
    (put("", learner="BayesianMLPClassifier"), "parameters: missing ['class_weight']"),
    (drop("fitted", "y_ndim_"), "fitted: missing ['y_ndim_']"),
    (drop("fitted", "rng_"), "fitted: missing ['rng_']"),
    (put("fitted", __class__=3), "fitted: missing [], unknown ['__class__']"),
    (put("fitted", rng_=None), "fitted.rng_ must be of type Generator"),
    (put("fitted.rng_", bit_generator="os"), "rng_: not the state"),
    (put("fitted.rng_", state={"state": 1}), "rng_: not the state"),
    (put("fitted.rng_.state", state=-1), "rng_: not the state"),
    (put("fitted.rng_", has_uint32=0.5), "rng_: not the state"),
    (put("fitted", predict_seed_=-1), "fitted.predict_seed_ must be a whole number"),
    (put("fitted", predict_seed_=2**64), "fitted.predict_seed_ must be a whole number"),
    (put("fitted", y_ndim_=3), "y_ndim_ 3"),
    (put("fitted", n_outputs_=2), "must be the ends of sizes"),
    (put("fitted", feature_names_in_={"objects": ["a"]}), "feature_names_in_ must be 2 texts"),
    (put("fitted", feature_names_in_={"objects": ["a", 1]}), "feature_names_in_ must be 2 texts"),
    (put("fitted.training_.optimizer_state", steps=1.0), "optimizer_state.steps must be of type"),
    (put("fitted.training_.optimizer_state", steps=-1), "optimizer_state.steps must be a whole"),
    (put("fitted.training_", stopped="tired"), "training_.stopped must be of type typing.Literal"),
    (put("fitted.training_", history={"rows": "Model"}), "Model has fields that are no numbers"),
    (put("fitted.training_", history={"rows": "Cosine"}), "history must have shape (None, 1)"),
    (without(THETA), "fitted.training_.theta is missing"),
    (without("training_.history"), "fitted.training_.history is missing"),
    (without_memory, "memory of ['v'], which no optimizer keeps"),
    (extra, "unknown entries ['weights']"),
    (array(THETA, lambda a: a[:-1]), "theta must have shape (27,); got (26,)"),
    (array(THETA, lambda a: a[None]), "theta must have shape (27,); got (1, 27)"),
    (array(THETA, lambda a: a.astype(int)), "theta must have dtype"),
    (array(THETA, lambda a: a.astype(">f8")), "theta must have dtype"),
    (array(THETA, lambda a: a.astype(complex)), "theta must have dtype"),
    (array(THETA, lambda a: a.astype("U9")), "theta must have dtype"),
    (relabelled, "theta must have dtype '<f4'; got '<f8'"),
    (array(THETA, with_(3, NAN)), "theta holds nan or infinity"),
    (array(f"{MEMORY}.v", with_(3, -1.0)), "arrays.v holds mean squares"),
    (array(f"{MEMORY}.m", with_(3, INF)), "arrays.m holds nan or infinity"),
    (array(f"{MEMORY}.m", lambda a: a.astype(np.float32)), "arrays.m must have dtype float64"),
    (array("training_.history", with_(0, NAN)), "history: objective must be finite"),
    (array("training_.history", lambda a: a[:, :4]), "history must have shape (None, 5)"),
    (array("training_.history", lambda a: a.astype("f4")), "history must have dtype '<f8'"),
    (array("x_mean_", with_(0, INF)), "x_mean_ holds nan or infinity"),
    (array("x_scale_", with_(0, 0.0)), "x_scale_ must be positive"),
    (array("y_scale_", with_(0, -1.0)), "y_scale_ must be positive"),
    (array("y_mean_", lambda a: np.zeros(2)), "y_mean_ must have shape (1,); got (2,)"),
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


def classes(values):
    """Other labels: an array, or what the header says of them."""

    def change(header, arrays):
        del arrays["fitted.classes_"]
        if isinstance(values, np.ndarray):
            arrays["fitted.classes_"] = values
        kept = {"array": values.dtype.str} if isinstance(values, np.ndarray) else values
        inside(header, "fitted")["classes_"] = kept

    return change


NO_TEXT = np.full(3, 0x7FFFFFFF, np.uint32).view("U1")
CLASSIFIER_CHANGES = [
    (put("", learner="BayesianMLPRegressor"), "missing"),
    (put(PARTS, likelihood=gaussian()), "model.likelihood must be of type Likelihood"),
    (put(PARTS, likelihood={"PoissonLikelihood": {}}), "model.likelihood must be a Bernoulli"),
    (put(PARTS, likelihood={"BernoulliLikelihood": {}}), "classes_ of shape (3,) do not fit"),
    (classes(["a", "b", "c"]), "fitted.classes_ must be of type"),
    (classes(np.array(["a", "b"])), "classes_ of shape (2,) do not fit sizes"),
    (classes(np.array([["a", "b", "c"]])), "classes_ of shape (1, 3) do not fit sizes"),
    (classes(np.array(["a", "c", "b"])), "sorted labels"),
    (classes(np.array(["a", "a", "b"])), "sorted labels"),
    (classes(NO_TEXT), "classes_ is no text"),
    (classes({"objects": ["a", "b", 3]}), "labels of one type"),
    (classes({"objects": [0, 2, 1]}), "sorted labels"),
    (classes(np.array([0.0, 1.0, NAN])), "sorted labels"),
    (classes(np.array(["a", "b", "c"], "S1")), "classes_ must have dtype"),
    (classes(np.arange(3).astype("M8[D]")), "classes_ must have dtype"),
    (classes(np.array(["a", "b", "c"]).view("V4")), "classes_ must have dtype"),
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
    np.savez(path, header=np.array([{"format": checkpoint.FORMAT.name}], object))


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


def nested(path):
    np.savez(path, header=np.frombuffer(b"[" * 100_000 + b"]" * 100_000, np.uint8))


def doubled(path):
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(path, "a") as file,
    ):
        file.writestr("fitted.training_.theta.npy", b"")


FILES = [
    (lambda path: path.write_bytes(b""), "cannot be read"),
    (lambda path: path.write_text("x,y\n1,2\n"), "cannot be read"),
    (lambda path: path.write_bytes(b"PK\x03\x04 and then nothing"), "cannot be read"),
    (pickled, r"cannot be read.*Object arrays cannot be loaded when allow_pickle=False\)$"),
    (single, "cannot be read"),
    (foreign, "has no header"),
    (text_in_zip, "header must be an array of bytes"),
    (not_json, "header is not JSON"),
    (not_text, "header is not JSON"),
    (json_list, "format must be"),
    (nested, "header is not JSON: maximum recursion depth exceeded"),
    (doubled, "cannot be read|must have dtype"),
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
