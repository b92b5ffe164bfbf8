"""make fuzz: a short run finds nothing, and a defect of every kind is found."""

import sys

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("its limits are those of Linux", allow_module_level=True)

from benchmarks import fuzz


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", fuzz.STRATEGIES)
def test_a_short_run_finds_no_defect(kind):
    fuzz.run(kind, 100, 0)


def test_all_that_the_package_exports_is_called():
    called = fuzz.public()
    assert {"bbb.prove", "bbb.sample", "regressor.fit", "calibration.pit"} <= set(called)
    assert "*hidden_layer_sizes" in called["bbb.BayesianMLPRegressor"]
    done = [text for text in called if fuzz.call(fuzz.usual(text)) == "done"]
    assert len(done) > 50


def endless(**_):
    while True:
        pass


def warns(**_):
    code = compile("np.float64(1) / np.float64(0)", "bbb_numpy/planted.py", "exec")
    exec(code, {"np": np, "__name__": "bbb_numpy.planted"})


@pytest.mark.parametrize(
    ("function", "error"),
    [(lambda x: [][x], IndexError), (endless, fuzz.Hang), (warns, RuntimeWarning)],
)
def test_a_defect_is_found(function, error, monkeypatch):
    monkeypatch.setattr(fuzz, "SECONDS", 1)
    monkeypatch.setattr(fuzz, "REFUSALS", (TypeError, ValueError))
    with pytest.raises(error):
        fuzz.call("f(x=0)", {**fuzz.names(), "f": function})


def test_a_learner_that_a_failed_call_has_changed_is_found(monkeypatch):
    def spoil(self, x):
        self.x_mean_ = self.x_mean_ + 1.0
        raise ValueError("x")

    monkeypatch.setattr(type(fuzz.names()["regressor"]), "spoil", spoil, raising=False)
    with pytest.raises(AssertionError, match="the learner has changed"):
        fuzz.call("regressor.spoil(x=0)")


def test_a_model_that_is_read_as_another_is_found(monkeypatch):
    whole, _ = fuzz.saved()
    assert fuzz.read(whole) == "done"
    monkeypatch.setattr(fuzz.bbb_numpy, "load", lambda path: fuzz.names()["classifier"])
    with pytest.raises(AssertionError, match="another model"):
        fuzz.read(whole)


@pytest.mark.long
def test_killed_and_interrupted_processes_lose_nothing():
    fuzz.run("kills", 500, 0)
    fuzz.run("interrupts", 0, 0)
    with pytest.raises((ValueError, OSError)):
        fuzz.kill(
            np.random.default_rng(0),
            "print(open('model.npz', 'wb').write(b'half'), flush=True)\nwhile True: pass",
        )
