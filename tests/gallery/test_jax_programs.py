"""Backward passes of public JAX code: the right ones are proved, the wrong ones refuted."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from gallery import jax_programs  # noqa: E402
from gallery.jax_programs import JAX  # noqa: E402

pytestmark = pytest.mark.slow

TOLERANCE = 1e-9  # relative to the largest derivative
INVISIBLE = {"attention_with_epsilon"}  # a difference of 1e-11


def passes():
    return pytest.mark.parametrize("backward_pass", JAX, ids=lambda item: item.build.__name__)


def derivatives(loss, theta, *data):
    """Return the derivatives of the loss by all numbers of theta, one after the other."""
    slopes = jax.tree.leaves(jax.grad(loss)(theta, *data))
    return np.concatenate([np.ravel(slope) for slope in slopes])


@passes()
def test_the_right_pass_is_what_autodiff_computes_and_the_wrong_one_is_not(
    backward_pass, monkeypatch
):
    with jax.enable_x64(True):
        right, wrong = (derivatives(*backward_pass.make(wrong)) for wrong in (False, True))
        # without rules of their own, functions are differentiated as they are written
        monkeypatch.setattr(jax_programs, "custom", lambda f, _: lambda *inputs: f(*inputs)[0])
        monkeypatch.setattr(jax_programs, "custom_jvp", lambda value, _: value)
        truth = derivatives(*backward_pass.make())
        truth_of_wrong = derivatives(*backward_pass.make(wrong=True))
    size = np.abs(truth).max() + 1e-300
    np.testing.assert_allclose(right, truth, rtol=0, atol=TOLERANCE * size)
    is_seen = np.abs(wrong - truth_of_wrong).max() > TOLERANCE * size
    assert is_seen == (backward_pass.build.__name__ not in INVISIBLE)


def test_there_are_enough_passes_of_named_sources():
    assert len(JAX) >= 40
    assert sum(item.verdict != "refuted" for item in JAX) >= 24
    assert all("/" in item.source.partition(": ")[0] for item in JAX)
