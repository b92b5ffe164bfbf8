"""Parts keep their digits where predictions are confident and right, or scales are far."""

from pathlib import Path

import mpmath
import numpy as np
import pytest
from parts.part_programs import draw_theta, part_programs, table

from bbb_numpy import BernoulliLikelihood, CategoricalLikelihood
from bbb_numpy.numeric.elementary import gamma_half_step
from bbb_numpy.parts.hyperpriors import HalfNormal
from exactgrad import stability

LOGITS = np.array([1e-9, 0.5, 3.0, 40.0, 700.0])


def row(likelihood, f, y):
    """Return the log likelihood of one row and its gradient, by vjp."""
    value, saved = likelihood.log_density({}, np.array([[f]]), np.array([y]))
    return value[0, 0], likelihood.vjp(saved, np.ones(1), {})[0, 0]


@pytest.mark.equation("D13")
@pytest.mark.parametrize("logit", [*LOGITS, *-LOGITS])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_a_confident_answer_to_a_question_keeps_its_digits(logit, y):
    sign = 2 * y - 1
    value, slope = row(BernoulliLikelihood(), [logit], [y])
    assert value == pytest.approx(-np.logaddexp(0, -sign * logit), rel=1e-14, abs=0)
    assert slope == pytest.approx(sign * np.exp(-np.logaddexp(0, sign * logit)), rel=1e-12, abs=0)


@pytest.mark.equation("D14")
@pytest.mark.parametrize("gap", LOGITS)
@pytest.mark.parametrize("label", [0, 1])
def test_a_confident_class_keeps_its_digits(gap, label):
    gaps = [0.0, -gap]
    value, slope = row(CategoricalLikelihood(), gaps, np.eye(2)[label])
    log_p = [-np.log1p(np.exp(-gap)), -gap - np.log1p(np.exp(-gap))]
    assert value == pytest.approx(log_p[label], rel=1e-14, abs=0)
    of_other = np.exp(log_p[1 - label])
    expected = of_other * np.array([1, -1]) * (1 if label == 0 else -1)
    assert slope == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.equation("D14")
def test_equal_logits_share_the_likelihood():
    value, slope = row(CategoricalLikelihood(), [2.0, 2.0, -1e3], [0.25, 0.25, 0.5])
    assert value == pytest.approx(-0.5 * np.log(2.0) - 0.5 * (1002 + np.log(2.0)), rel=1e-14)
    assert slope == pytest.approx([-0.25, -0.25, 0.5], rel=1e-14)


@pytest.mark.equation("D32")
@pytest.mark.parametrize("u", [1e-12, -1e-7, 0.5, -3.0])
def test_the_slope_of_a_half_normal_keeps_its_digits_at_its_scale(u):
    assert HalfNormal().slope(np.array([[u]]), None)[0, 0] == pytest.approx(
        -np.expm1(2 * u), rel=1e-14, abs=0
    )


@pytest.mark.equation("D41")
@pytest.mark.parametrize("nu", [1e-3, 1.0, 4.0, 90.0, 99.0, 1e4, 1e6, 9e8])
def test_the_constant_of_students_t_keeps_its_digits_for_many_degrees_of_freedom(nu):
    with mpmath.workdps(60):
        half = mpmath.mpf(nu) / 2
        right = mpmath.loggamma(half + 0.5) - mpmath.loggamma(half) - mpmath.log(half) / 2
    assert gamma_half_step(nu).value == pytest.approx(float(right), rel=1e-13, abs=0)


PROGRAMS = part_programs()
N_INPUTS = {"float64": 8, "float32": 4}  # before a commit; a hundred in the long tier


def losses(key, dtype, n_inputs):
    """Return what `stability` says where a part loses more than two digits in its ranges."""
    program = PROGRAMS[key]
    rng = np.random.default_rng(len(str(key)))
    found = []
    for _ in range(n_inputs):
        theta = draw_theta(rng, program.blocks, key[1].partition(",")[0], dtype)
        result = stability(
            program.function, theta, *program.data, dtype=dtype, floor=0.0, n_inputs=1
        )
        found += [] if result else [f"{theta.tolist()}: {result}"]
    return found


@pytest.mark.parametrize("dtype", N_INPUTS)
@pytest.mark.parametrize("key", PROGRAMS, ids=", ".join)
def test_a_part_is_stable_in_the_ranges_that_it_states(key, dtype):
    assert losses(key, dtype, N_INPUTS[dtype]) == []


@pytest.mark.slow
@pytest.mark.parametrize("dtype", N_INPUTS)
@pytest.mark.parametrize("key", PROGRAMS, ids=", ".join)
def test_a_part_is_stable_at_a_hundred_inputs_in_its_ranges(key, dtype):
    assert losses(key, dtype, 100) == []


def test_the_page_of_the_parts_states_these_ranges():
    page = Path(__file__).parents[2] / "docs" / "parts.md"
    assert table() in page.read_text("utf-8"), table()
