"""refutations: none of a right gradient, quick ones of wrong gradients, and the line they name."""

import ast
import inspect
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gallery.hunt import HUNT
from gallery.programs import changed

import exactgrad.verdict.errors
import exactgrad.verdict.evidence
from exactgrad import prove
from exactgrad.fields.digits import Digits
from exactgrad.fields.floats import Floats
from exactgrad.trace.arrays import lift
from exactgrad.verdict.runs import run

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(0)
normal = RNG.standard_normal
FAR = np.array([800.0, 820.0])
NAMED = re.compile(r"look at line (\d+) of ")


def zero(t):
    """0, by an identity that no field knows."""
    return np.sin(2 * t) - 2 * np.sin(t) * np.cos(t)


def nearly_singular(t):
    inverse = np.linalg.inv(np.array([[1.0, 1 + 1e-14], [1.0, 1.0]]))
    return (inverse @ (t + zero(t))).sum(), inverse.sum(axis=0)


# right gradients whose slopes differ in the field, where floats alone would say that they differ
RIGHT = {
    "an identity": lambda t: ((zero(t) + t**2).sum(), 2 * t),
    "an identity, scaled": lambda t: ((1e12 * zero(t) + t**2).sum(), 2 * t),
    "an identity, scaled beyond its digits": lambda t: ((1e17 * zero(t) + t**2).sum(), 2 * t),
    "absorbed": lambda t: (((zero(t) + t + 1e20) - 1e20).sum(), np.ones(2)),
    "absorbed, in an exponent": lambda t: (
        np.exp((zero(t) + t / 900 + 1e20) - 1e20).sum(),
        np.exp(t / 900) / 900,
    ),
    "noise in tanh": lambda t: (np.tanh(1e25 * zero(t)).sum() + (t**2).sum(), 2 * t),
    "noise in arctan": lambda t: (np.arctan(1e25 * zero(t)).sum() + (t**2).sum(), 2 * t),
    "noise in a bell": lambda t: ((t * np.exp(-((1e25 * zero(t)) ** 2))).sum(), np.ones(2)),
    "a root of an underflow": lambda t: (
        (1e140 * np.sqrt(np.exp(-t)) * 1e40).sum(),
        -0.5e140 * np.exp(-t / 2) * 1e40,
    ),
    "a power of an underflow": lambda t: (
        (1e30 * np.exp(-t) ** 0.05).sum(),
        -0.05e30 * np.exp(-0.05 * t),
    ),
    "a logarithm of an underflow": lambda t: (np.log(np.exp(-t)).sum(), -np.ones(2)),
    "a product that cancels": lambda t: (
        np.array([1e17, 1.0, -1e17]) @ np.concatenate([t[:1] + zero(t[:1]), t[1:], t[:1]]),
        np.array([0.0, 1.0]),
    ),
    "a sum that cancels": lambda t: (
        np.concatenate([1e17 * (t[:1] + zero(t[:1])), t[1:], -1e17 * t[:1]]).sum(),
        np.array([0.0, 1.0]),
    ),
    "a matrix that is nearly singular": nearly_singular,
    "a divisor that is nearly 0": lambda t: ((1e-15 / (zero(t) + 1e-15) * t).sum(), np.ones(2)),
    "rounded constants": lambda t: (
        (np.log(0.7) * t).sum() + zero(t).sum(),
        0 * t + np.log(7) - np.log(10),
    ),
    "rounding": lambda t: ((t**2).sum(), 2 * t * (1 + 2**-51)),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("theta", [normal(2), FAR], ids=["near", "far"])
def test_a_right_gradient_is_not_refuted_by_what_floats_lose(name, theta):
    with np.errstate(all="ignore"):
        assert prove(RIGHT[name], theta, n_points=0).verdict != "refuted"


@pytest.mark.parametrize(
    "scale", [1.0, 1e-3, 1e-8, 1e-13], ids=["clear", "small", "tiny", "last digits"]
)
def test_a_wrong_gradient_is_refuted_at_every_size_of_the_error(scale):
    def wrong(t):
        return (np.exp(t) * t).sum(), np.exp(t) * (1 + t) + scale * np.array([0, 1.0])

    proof = prove(wrong, np.array([0.3, -0.4]))
    assert proof.verdict == "refuted"
    (error,) = proof.wrong
    assert error.name == "theta[1]"
    assert float(error.excess) == pytest.approx(scale, rel=1e-2)


# --- the numbers


def test_floats_differ_by_what_rounding_can_do():
    field = Floats(0)
    t = lift(0.0, field)
    t = type(t)(field, np.ones((2, 4)), 1.0)
    exact = t * 0.1
    lost = (t * 1e15 + 0.1) - 1e15
    assert 0 < np.ptp(exact.primal) < 1e-15
    assert np.ptp(lost.primal) > 0.1
    np.exp(exact)
    assert field.is_reliable
    np.exp(lost)
    assert not field.is_reliable


def layer(factor, size=64):
    def network(theta, x, y):
        w, v = theta[:-size].reshape(-1, size), theta[-size:]
        h = np.tanh(x @ w)
        off = h @ v - y
        d_f = factor * off / len(y)
        d_z = d_f[:, None] * v * (1 - h**2)
        return (off**2).mean(), np.concatenate([(x.T @ d_z).ravel(), h.T @ d_f])

    rng = np.random.default_rng(1)
    return network, rng.standard_normal(4 * size), rng.standard_normal((5, 3)), np.ones(5)


@pytest.fixture
def runs(monkeypatch):
    """The names of the fields in which the function has run."""
    fields = []

    def counted(problem, theta, field, *arguments):
        fields.append(type(field).__name__)
        return run(problem, theta, field, *arguments)

    for module in (exactgrad.verdict.runs, exactgrad.verdict.errors, exactgrad.verdict.evidence):
        monkeypatch.setattr(module, "run", counted)
    return fields


def test_a_verdict_takes_three_runs_and_the_wrong_derivatives_few_decimals(runs):
    network, *arguments = layer(4)
    proof = prove(network, *arguments)
    assert proof.verdict == "refuted"
    assert runs == ["Prime", "Floats", "Floats"]
    assert len(proof.wrong) == 256
    assert len(runs) == 3 + 2 + 256 // 64 + 256 // 16 + 1
    assert runs.count("Digits") == 1


def test_what_is_printed_of_many_derivatives_is_what_decimals_say():
    network, theta, x, y = layer(4)
    proof = prove(network, theta, x, y)
    right = prove(layer(2)[0], theta, x, y)
    assert right.proved
    exact = layer(2)[0](theta, x, y)[1]
    for error, derivative in zip(proof.wrong, exact, strict=True):
        assert math.isclose(float(error.right), derivative, rel_tol=1e-9)
        n_digits = len(error.right.as_tuple().digits)
        assert n_digits <= 15
        unit = 10.0 ** (error.right.adjusted() + 1 - n_digits)
        assert abs(float(error.right) - derivative) <= 1.5 * unit
    assert "they are 2 times what is right" in str(proof)


def test_decimals_are_taken_where_few_derivatives_are_wrong(runs):
    def wrong(theta):
        return (theta**3).sum(), 3 * theta**2 + (np.arange(200) == 7)

    (error,) = prove(wrong, normal(200)).wrong
    assert error.name == "theta[7]"
    assert abs(float(error.excess) - 1) < 1e-30
    assert runs.count("Digits") <= 5
    assert isinstance(Digits(0).one[0], type(error.right))


# --- the line, in real errors of public code: what repairs them was written before the search


def statement_of(source, line):
    """The lines of the smallest statement at a line of a source."""
    spans = [
        range(node.lineno, node.end_lineno + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef)
    ]
    return min((span for span in spans if line in span), key=len)


def value_of(function, arguments):
    return float(function(*arguments)[0])


@pytest.mark.slow
def test_the_line_of_most_real_errors_is_named():
    named = []
    for program in HUNT:
        if program.verdict != "refuted" or not program.change:
            continue
        value = value_of(program.function, program.arguments)
        if value_of(program.changed, program.arguments) != pytest.approx(value, rel=1e-9):
            continue  # the repair is in the value
        wrong = changed(program.function)
        source = "".join(inspect.getsourcelines(wrong)[0])
        lines = [source[: source.index(old)].count("\n") + 1 for old, _ in program.change]
        match = NAMED.search(str(prove(wrong, *program.arguments)))
        spans = [statement_of(source, line) for line in lines]
        named.append(bool(match) and any(int(match[1]) in span for span in spans))
    assert len(named) == 14
    assert sum(named) >= 12


@pytest.mark.slow
def test_the_line_of_most_changes_of_the_gallery_is_named():
    command = [sys.executable, "-m", "benchmarks.lines", "--users", "--count", "50"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    n_changed, n_named = map(
        int, re.search(r"changed: (\d+) mutants, named (\d+)", printed).groups()
    )
    assert n_named >= 0.85 * n_changed
    assert n_changed >= 30
