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


@pytest.mark.slow
def test_killed_and_interrupted_processes_lose_nothing():
    fuzz.run("kills", 500, 0)
    fuzz.run("interrupts", 0, 0)
    with pytest.raises((ValueError, OSError)):
        fuzz.kill(
            np.random.default_rng(0),
            "print(open('model.npz', 'wb').write(b'half'), flush=True)\nwhile True: pass",
        )
