"""activations: each is its formula, its slope is that of its value, and neither breaks far out."""

import mpmath
import numpy as np
import pytest
import textbook
from exact_cases import Exact
from hypothesis import given
from hypothesis import strategies as st

from bbb_numpy import MLP
from bbb_numpy.parts.activations import ACTIVATIONS
from bbb_numpy.parts.network import activate
from exactgrad import prove, prove_same

SMOOTH = [name for name in ACTIVATIONS if name != "relu"]
REAL = st.floats(-30.0, 30.0)
EPS = float(np.finfo(float).eps)


class ManyDigits:
    """The functions of `textbook` on numbers of mpmath."""

    exp, log, tanh, erf = mpmath.exp, mpmath.log, mpmath.tanh, mpmath.erf


def activated(name, z):
    """a(z) and a'(z), of a copy."""
    a, slope = z.copy(), np.empty_like(z)
    assert activate(MLP((1, 1), name), a, slope) is slope
    return a, slope


def with_many_digits(name, z):
    """a(z), a'(z) and a''(z) of the textbook formula with 1,100 digits.

    At -30 the 1 + tanh of the tanh form of GELU is 1e-860, and its second difference 1e-960.
    """
    formula = textbook.ACTIVATIONS[name]
    with mpmath.workdps(1100):
        z, step = mpmath.mpf(z), mpmath.mpf("1e-50")
        below, at, above = (formula(ManyDigits, z + k * step) for k in (-1, 0, 1))
        slope, bend = (above - below) / (2 * step), (above - 2 * at + below) / step**2
        return float(at), float(slope), float(bend)


def scalar(name):
    """The sum of activations of theta, and its gradient."""

    def value_and_grad(theta):
        a, slope = activated(name, theta)
        return a.sum(), slope

    return value_and_grad


@pytest.mark.equation("D51", "D10")
@pytest.mark.parametrize("name", SMOOTH)
@given(z=REAL)
def test_values_and_slopes_are_those_of_the_formula_to_rounding(name, z):
    """To eight roundings of the result, and of z: that of z costs a(z) z a'(z), a'(z) z a''(z)."""
    a, slope = (float(one[0]) for one in activated(name, np.array([z])))
    value, right, bend = with_many_digits(name, z)
    assert abs(a - value) <= 8 * EPS * (abs(value) + abs(z * right)) + 1e-300
    assert abs(slope - right) <= 8 * EPS * (abs(right) + abs(z * bend)) + 1e-300


@pytest.mark.equation("D51")
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("theta", [[0.7], [-0.7], [0.7, -0.3, 2.5, -40.0]])
def test_every_slope_is_proved_on_both_sides_of_0(name, theta):
    assert prove(scalar(name), np.array(theta)).proved


@pytest.mark.equation("D51")
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("z", [0.7, -0.7])
def test_every_value_is_proved_to_be_the_textbook_formula(name, z):
    def coded(z):
        return activated(name, z)[0].sum()

    def formula(z):
        return textbook.ACTIVATIONS[name](Exact, z).sum()

    assert prove_same(coded, formula, np.array([z, 2 * z])).proved


@pytest.mark.equation("D51")
def test_the_two_forms_of_gelu_are_up_to_5e_4_apart_in_value_and_9e_4_in_slope():
    z = np.linspace(-10.0, 10.0, 200_001)
    both = [activated(name, z) for name in ("gelu", "gelu-tanh")]
    apart = [np.abs(exact - other) for exact, other in zip(*both, strict=True)]
    assert [one.max() for one in apart] == pytest.approx([4.732e-4, 8.685e-4], rel=1e-3)
    assert [abs(z[one.argmax()]) for one in apart] == pytest.approx([2.699, 2.018], abs=1e-3)


@pytest.mark.equation("D51")
@pytest.mark.parametrize(
    ("name", "least", "at"), [("silu", -0.2785, -1.278), ("gelu", -0.17, -0.752)]
)
def test_gated_units_have_one_minimum(name, least, at):
    z = np.linspace(-10.0, 10.0, 200_001)
    a, slope = activated(name, z)
    assert (a.min(), z[a.argmin()]) == pytest.approx((least, at), abs=1e-3)
    assert np.count_nonzero(np.diff(np.sign(slope[np.abs(z) < 5]))) == 1


LIMITS = {  # far left and far right: value over z or value, and slope
    "relu": (0.0, 0.0, "z", 1.0), "tanh": (-1.0, 0.0, 1.0, 0.0), "sigmoid": (0.0, 0.0, 1.0, 0.0),
    "silu": (0.0, 0.0, "z", 1.0), "softplus": (0.0, 0.0, "z", 1.0), "gelu": (0.0, 0.0, "z", 1.0),
    "gelu-tanh": (0.0, 0.0, "z", 1.0),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("size", [1e3, 1e4, 1e8])
@pytest.mark.parametrize("name", LIMITS)
def test_far_out_values_and_slopes_are_their_limits_without_a_warning(name, size, dtype):
    z = np.array([-size, size], dtype)
    a, slope = activated(name, z)
    assert a.dtype == slope.dtype == dtype
    left, left_slope, right, right_slope = LIMITS[name]
    np.testing.assert_array_equal(a, [left, size if right == "z" else right])
    np.testing.assert_array_equal(slope, [left_slope, right_slope])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_single_precision_gives_the_digits_that_it_has(name):
    z = np.random.default_rng(0).uniform(-8.0, 8.0, (2, 50, 10))
    for single, double in zip(
        activated(name, z.astype(np.float32)), activated(name, z), strict=True
    ):
        assert single.dtype == np.float32
        assert single.shape == double.shape
        assert single == pytest.approx(double, rel=2e-5, abs=2e-6)
