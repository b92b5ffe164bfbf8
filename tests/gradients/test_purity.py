"""purity: whatever the buffers held before, models and estimators give the same bits (contract 6).

The parts alone are in `tests/parts/test_purity.py`, what is checked of each in `purity.CHECKS`.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import JOINTS, PAIRS, examples, seeds, small_cases
from purity import Pass, bits, blank, faults, sealed, soil

from bbb_numpy.combinations import build_estimator, draw_case
from bbb_numpy.gradients.reparameterised import Frozen
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.numeric.buffers import Buffers
from bbb_studies.replicated import ReplicatedModel

DTYPES = st.sampled_from([np.float32, np.float64])


def cast(case, dtype):
    """The same problem in another dtype."""
    arrays = (np.asarray(a, dtype) for a in (case.theta, case.noise, case.x, case.y))
    return case._replace(**dict(zip(("theta", "noise", "x", "y"), arrays, strict=True)))


# --- models


def model_pass(model, w, params, x, y, seed=0):
    """Both log densities, and both ways back."""
    c_prior, c_likelihood = np.random.default_rng(seed).standard_normal((2, len(w))).astype(w.dtype)

    def forward(buffers):
        evaluation = model.evaluate(w, params, x, y, buffers)
        joint = model.forward(w, params, x, y, buffers)
        if isinstance(model, ReplicatedModel):  # which only trains
            return evaluation, joint
        return evaluation, joint, model.predict(w, x, buffers)

    def backward(saved, buffers):
        alone, d_params = blank(params), blank(params)
        d_alone = model.likelihood_vjp(saved[0], c_likelihood, alone, buffers)
        d_both = model.vjp(saved[1], c_prior, c_likelihood, d_params, buffers)
        return d_alone, alone, d_both, d_params

    return Pass((w, params, x, y, c_prior, c_likelihood), forward, backward)


def joint_pass(which, seed, samples=2, rows=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    case = cast(draw_case(build_estimator(which), rng, samples, rows), dtype)
    model, params = case.estimator.model, case.estimator.layout.views(case.theta)
    params = {name: params[name] for name, _ in model.learned()}
    w = (0.5 * rng.standard_normal((samples, model.layout.size))).astype(dtype)
    return model_pass(model, w, params, case.x, case.y, seed)


@pytest.mark.parametrize("which", JOINTS, ids=lambda which: f"{which.prior} / {which.likelihood}")
@examples(5)
@given(data=st.data())
def test_every_model_is_pure(which, data):
    drawn = st.tuples(seeds, st.integers(1, 3), st.integers(0, 3), DTYPES)
    another = data.draw(st.sampled_from(JOINTS))
    assert (
        faults(joint_pass(which, *data.draw(drawn)), joint_pass(another, *data.draw(drawn))) == {}
    )


# --- estimators: forward and backward in one call


def estimator_pass(case):
    """All that an estimator computes; complex theta too, as a complex step has it."""
    built, at = case.estimator, (case.noise, case.x, case.y, case.kl_weight)
    eps = built.draw_weights(np.random.default_rng(0), 2, case.theta.real.dtype)

    def forward(buffers):
        results = (
            built.value_and_grad(case.theta, *at, buffers),
            built.log_likelihood(case.theta, eps, case.x, case.y, buffers),
            built.weights(case.theta, eps, buffers),
        )
        if isinstance(built, Frozen):
            results += (built.surrogate(case.theta, case.theta, *at),)
        return results

    return Pass((case.theta, *at, eps), forward)


@examples(150, derandomize=True, database=None)
@given(data=st.data(), pair=st.tuples(st.sampled_from(PAIRS), st.sampled_from(PAIRS)))
def test_every_estimator_is_pure_beside_every_other(data, pair):
    passes = []
    for which in pair:
        case, dtype = data.draw(small_cases(which)), data.draw(DTYPES)
        case = cast(case, dtype)
        if dtype == np.float64 and data.draw(st.booleans()):
            case = case._replace(theta=case.theta + 1e-30j)
        passes.append(estimator_pass(case))
    assert faults(*passes) == {}


@pytest.mark.parametrize("which", PAIRS, ids=str)
def test_every_number_of_the_gradient_is_written_and_nothing_that_is_passed_in(which):
    case, buffers = draw_case(build_estimator(which), np.random.default_rng(1)), Buffers()
    expected = bits(case.estimator.value_and_grad(*case[1:6]))
    with sealed(case[1:5]):
        assert bits(case.estimator.value_and_grad(*case[1:6], buffers)) == expected
        memory = list(buffers._arrays)
        assert bits(case.estimator.value_and_grad(*case[1:6], soil(buffers))) == expected
    # the second turn has found the memory of the first, and no more
    assert [id(array) for array in buffers._arrays] == [id(array) for array in memory]


# --- the target of the samplers, which owns its buffers


@pytest.mark.equation("D33")
@pytest.mark.parametrize("which", JOINTS, ids=lambda which: f"{which.prior} / {which.likelihood}")
def test_the_log_joint_gives_the_same_bits_whatever_was_asked_before(which):
    rng = np.random.default_rng(0)
    case = draw_case(build_estimator(which), rng, rows=4)
    repeated = (np.tile(part, (3, 1)) for part in (case.x, case.y))  # with weights, once each
    for x, y in ((case.x, case.y), tuple(repeated)):
        target = LogJoint(case.estimator.model, x, y)
        positions = [
            0.5 * rng.standard_normal((chains, target.layout.size)) for chains in (3, 1, 3)
        ]
        positions += [positions[0].astype(complex) + 1e-30j, positions[1].astype(np.float32)]
        expected = [bits(replace(target)(position)) for position in positions]
        with sealed((x, y, positions)):
            first = [target(position) for position in positions]
            for _ in range(2):
                reversed_results = [target(position) for position in reversed(positions)][::-1]
                assert [bits(found) for found in reversed_results] == expected
            assert [bits(found) for found in first] == expected  # fresh arrays, so they stay
