"""make fuzz: a short run finds nothing, and a defect of every kind is found."""

import sys
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("its limits are those of Linux", allow_module_level=True)

from benchmarks import fuzz, fuzz_proofs, fuzz_settings
from exactgrad import Proof


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", fuzz.STRATEGIES)
def test_a_short_run_finds_no_defect(kind):
    fuzz.run(kind, 15 if kind == "proofs" else 100, 0)


def test_all_that_the_package_exports_is_called():
    called = fuzz.public_calls()
    assert {"bbb.prove", "bbb.sample", "regressor.fit", "calibration.pit"} <= set(called)
    assert "*hidden_layer_sizes" in called["bbb.BayesianMLPRegressor"]
    done = [text for text in called if fuzz.try_call(fuzz.valid_call(text)) == "done"]
    assert len(done) > 50


@dataclass(frozen=True)
class Loose:
    """A part that stores what it is given."""

    scale: float = 1.0

    def __post_init__(self):
        if not self.scale > 0:
            raise ValueError(f"it must be a number > 0; got {self.scale!r}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("np.uint8(3)", "is stored, and not"),
        ("np.float16(0.5)", "is stored, and not"),
        ("np.array(2.0)", "is stored, and not"),
        ("True", "is stored, and not"),
        ("0", "refused without its name"),
        ("'3'", "refused without its name|text is accepted|not supported"),
    ],
)
def test_a_part_that_stores_what_it_is_given_or_does_not_name_what_it_refuses_is_found(
    text, said, monkeypatch
):
    monkeypatch.setattr(fuzz_settings, "parts", lambda: {"Loose": Loose()})
    monkeypatch.setattr(fuzz_settings, "fields", lambda: {("Loose", "scale"): float})
    with pytest.raises(AssertionError, match=said):
        fuzz.try_setting(("Loose", "scale", text))


def test_all_settings_of_the_registry_are_tried():
    tried = fuzz_settings.fields()
    assert {("StudentTPrior", "df"), ("SGHMC", "friction"), ("Adam", "clip"), ("MLP", "sizes"),
            ("LayerwiseGaussianPrior", "scales"), ("LogJoint", "power"),
            ("BayesianMLPRegressor", "prior__scale")} <= set(tried)  # fmt: skip
    assert {
        fuzz.try_setting((*one, "2.0" if kind is float else "2")) for one, kind in tried.items()
    }


RIGHT = fuzz_proofs.Program("right", (), "prove", 0)


@pytest.mark.parametrize(
    ("verdict", "program"),
    [("refuted", RIGHT), ("proved", RIGHT._replace(body="wrong"))],
)
def test_a_prover_that_is_wrong_is_found(verdict, program, monkeypatch):
    monkeypatch.setattr("exactgrad.prove", lambda *_: Proof(verdict, 2), raising=False)
    with pytest.raises(AssertionError, match=r"a (right|wrong) gradient"):
        fuzz.try_proof(program)


def test_a_prover_that_raises_where_a_program_is_right_is_found(monkeypatch):
    monkeypatch.setattr("exactgrad.prove", lambda: None, raising=False)  # takes no arguments
    with pytest.raises(AssertionError, match="it raises"):
        fuzz.try_proof(RIGHT)


def test_a_prover_that_leaves_something_behind_is_found(monkeypatch):
    victim = ModuleType("victim")
    monkeypatch.setitem(sys.modules, "victim", victim)
    victim.zeros = np.zeros

    def replaces(f, theta):
        victim.zeros = f
        raise KeyboardInterrupt

    monkeypatch.setattr("exactgrad.prove", replaces, raising=False)
    with pytest.raises(AssertionError, match=r"other objects: \[\('victim', 'zeros'\)\]"):
        fuzz.try_proof(RIGHT)


def test_a_proof_is_interrupted_at_the_line_that_is_asked_for():
    verdicts = {fuzz.try_proof(RIGHT._replace(interrupt_line=line)) for line in (1, 30, 10**9)}
    assert verdicts == {"None", "proved"}


@pytest.mark.slow
def test_killed_and_interrupted_processes_lose_nothing():
    fuzz.run("kills", 500, 0)
    fuzz.run("interrupts", 0, 0)
    with pytest.raises((ValueError, OSError)):
        fuzz.kill(
            np.random.default_rng(0),
            "print(open('model.npz', 'wb').write(b'half'), flush=True)\nwhile True: pass",
        )
