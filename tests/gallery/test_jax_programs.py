"""Backward passes of public JAX code: the right ones are proved, the wrong ones refuted."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from gallery import jax_programs  # noqa: E402
from gallery.frameworks import mutated_builders, proof_of  # noqa: E402
from gallery.jax_programs import JAX  # noqa: E402
from gallery.page import DOCS, result_of, source  # noqa: E402
from jax.flatten_util import ravel_pytree  # noqa: E402

import exactgrad.jax  # noqa: E402

pytestmark = pytest.mark.slow

TOLERANCE = 1e-9  # relative to the largest derivative
LEAST_LINES = 24  # the page says how many; one or two depend on what JAX has traced before
BACKWARD_NAMES = "backward", "jvp", "backward_kernel"
INVISIBLE = {"attention_with_epsilon"}  # a difference of 1e-11


def passes():
    return pytest.mark.parametrize("backward_pass", JAX, ids=lambda item: item.build.__name__)


def as_loss(program, *inputs):
    """Return a function and its arguments, theta first; of a pair a weighted sum of its outputs."""
    if not isinstance(program, tuple):
        return program, *inputs
    function = jax_programs.custom(*program)

    def loss(inputs):
        outputs, _ = ravel_pytree(function(*inputs))
        return outputs @ np.arange(1, outputs.size + 1)

    return loss, inputs


def derivatives(loss, theta, *data):
    """Return the derivatives of the loss by all numbers of theta, one after the other."""
    return np.asarray(ravel_pytree(jax.grad(loss)(theta, *data))[0])


def forward_derivatives(loss, theta, *data):
    """Return the same by forward mode, which JAX has for kernels too."""
    flat, unravel = ravel_pytree(theta)

    @jax.jit
    def slope(unit):
        return jax.jvp(lambda flat: loss(unravel(flat), *data), (flat,), (unit,))[1]

    return np.asarray([slope(unit) for unit in np.eye(flat.size)])


@passes()
def test_the_right_pass_is_what_autodiff_computes_and_the_wrong_one_is_not(
    backward_pass, monkeypatch
):
    with jax.enable_x64(True):
        right, wrong = (
            derivatives(*as_loss(*backward_pass.make(wrong))) for wrong in (False, True)
        )
        # without rules of their own, functions are differentiated as they are written
        monkeypatch.setattr(jax_programs, "custom", lambda f, _: lambda *inputs: f(*inputs)[0])
        monkeypatch.setattr(jax_programs, "custom_jvp", lambda value, _: value)
        monkeypatch.setattr(jax_programs, "stop_gradient", lambda x: x)
        truth = forward_derivatives(*as_loss(*backward_pass.make()))
        truth_of_wrong = forward_derivatives(*as_loss(*backward_pass.make(wrong=True)))
    size = np.abs(truth).max() + 1e-300
    np.testing.assert_allclose(right, truth, rtol=0, atol=TOLERANCE * size)
    is_seen = np.abs(wrong - truth_of_wrong).max() > TOLERANCE * size
    assert is_seen == (backward_pass.build.__name__ not in INVISIBLE)


@passes()
def test_the_right_pass_is_proved(backward_pass):
    proof = proof_of(backward_pass, exactgrad.jax)
    expected = backward_pass.verdict
    assert proof.verdict == ("proved" if expected == "refuted" else expected), proof


@passes()
def test_the_wrong_pass_is_refuted_for_a_reason(backward_pass):
    proof = proof_of(backward_pass, exactgrad.jax, wrong=True)
    assert proof.verdict == "refuted", proof
    assert backward_pass.reason in str(proof)


@passes()
def test_a_random_change_of_a_rule_that_changes_numbers_is_refuted(backward_pass):
    with jax.enable_x64(True):
        truth = derivatives(*as_loss(*backward_pass.make()))
    for build in mutated_builders(backward_pass, BACKWARD_NAMES):
        try:
            with jax.enable_x64(True):
                program, *inputs = build()
                changed = derivatives(*as_loss(program, *inputs))
        except Exception:
            continue  # a change that JAX itself refuses, such as one of a shape
        error = np.abs(changed - truth).max() / (np.abs(truth).max() + 1e-300)
        if not 1e-8 < error < np.inf:
            continue
        is_pair = isinstance(program, tuple)
        parts = program if is_pair else (program,)
        prover = exactgrad.jax.prove_vjp if is_pair else exactgrad.jax.prove
        assert prover(*parts, *inputs).verdict == "refuted"
        break


def test_the_line_that_is_named_is_the_changed_one_in_most():
    lines = [result_of(item, exactgrad.jax, True).line == item.wrong_line for item in JAX]
    assert sum(lines) >= LEAST_LINES


def test_the_page_has_a_row_for_each_pass():
    text = (DOCS / "jax-gallery.md").read_text("utf-8")
    rows = {tuple(line.split(" | ")[:2]) for line in text.splitlines()}
    assert all((f"| {item.title}", source(item)) in rows for item in JAX)


def test_there_are_enough_passes_of_named_sources():
    assert len(JAX) >= 40
    assert sum(item.verdict != "refuted" for item in JAX) >= 24
    assert all("/" in item.source.partition(": ")[0] for item in JAX)
