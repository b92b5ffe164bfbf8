"""A saved model comes back bit for bit; a file that is anything else is refused by name."""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bbb_numpy import checkpoint
from bbb_numpy.checkpoint import CheckpointError, load, save
from bbb_numpy.learners import BayesianMLPRegressor
from bbb_numpy.likelihoods import GaussianLikelihood
from bbb_numpy.optimizers import SGD, Adam, Constant, Cosine, Momentum, StepDecay
from bbb_numpy.posteriors import MeanField
from bbb_numpy.priors import GaussianPrior
from bbb_numpy.training import EarlyStopping
from bbb_numpy.validation import NotFittedError

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
        "posterior": st.none() | st.builds(MeanField, rho_offset=st.floats(-8, 0)),
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
    with pytest.raises(TypeError, match="model must be a BayesianMLPRegressor; got dict"):
        save({}, tmp_path / "m")


class OwnPrior(GaussianPrior):
    pass


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("prior", OwnPrior(), CheckpointError),
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
GAUSSIAN = {"class": "GaussianPrior", "arguments": {"scale": 1.0}}
CHANGES = [
    (put("format", value="other"), "format must be"),
    (drop("format"), "format must be"),
    (put("version", value=2), "version 2 is not supported"),
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
        "prior: GaussianPrior: missing ['scale'], unknown ['width']",
    ),
    (put("model", "prior", value=GAUSSIAN | {"arguments": {"scale": "1"}}), "scale has the wrong"),
    (put("model", "prior", value=GAUSSIAN | {"arguments": {"scale": True}}), "scale has the wrong"),
    (put("model", "prior", value=GAUSSIAN | {"arguments": {"scale": -1.0}}), "must be positive"),
    (put("model", "prior", value=GAUSSIAN | {"arguments": {"scale": NAN}}), "must be positive"),
    (put("model", "prior", value=GAUSSIAN | {"arguments": 3}), "must be a table"),
    (put("model", "prior", value=None), "model: prior must be a GaussianPrior"),
    (put("model", "posterior", value=GAUSSIAN), "model: posterior must be a MeanField"),
    (drop("model", "network"), "model: missing ['network']"),
    (put("model", "network", "arguments", "sizes", value=[2, 0, 1]), "network: MLP: sizes"),
    (put("model", "network", "arguments", "sizes", value=[2, 3.5, 1]), "sizes has the wrong type"),
    (put("model", "network", "arguments", "sizes", value=[2, 4, 1]), "theta must have shape"),
    (put("model", "network", "arguments", "sizes", value=[3, 3, 1]), "must be the ends of sizes"),
    (put("model", "network", "arguments", "activation", value="x"), "activation must be one of"),
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
    (pickled, "cannot be read"),
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
