"""numbers: residues are a field, with the rules of derivatives and the laws of exponentials."""

import math
import operator
from decimal import Context, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbb_numpy.exact import numbers
from bbb_numpy.exact.numbers import Laws, Long, Untraceable, exact, still, untangled

POINT = np.array([0.3, -0.7, 1.9])
PRIME = Laws(0).p
DIGITS = 60
MEMORY = 50  # of the tests: fewer exponentials are looked through


def residue(value, tangent=0):
    kind = untangled(0)
    return kind(value % PRIME, tangent % PRIME, float(value))


residues = st.integers(0, PRIME - 1)
operations = st.sampled_from([operator.add, operator.sub, operator.mul, operator.truediv])


@given(operation=operations, a=residues, b=st.integers(1, PRIME - 1))
def test_arithmetic_is_that_of_the_integers_modulo_p(operation, a, b):
    found = operation(residue(a), residue(b)).a
    over = pow(b, PRIME - 2, PRIME) if operation is operator.truediv else b
    by = operator.mul if operation is operator.truediv else operation
    assert found == by(a, over) % PRIME


@given(a=residues, b=st.integers(1, PRIME - 1), da=residues, db=residues)
def test_tangents_obey_the_rules_of_derivatives(a, b, da, db):
    x, y = residue(a, da), residue(b, db)
    assert (x + y).b == (da + db) % PRIME
    assert (x * y).b == (a * db + da * b) % PRIME
    assert (x / y * y).b == da
    assert (y**3).b == 3 * b * b * db % PRIME
    assert (y**-1 * y).a == 1


@given(value=st.floats(-1e6, 1e6), whole=st.integers(-1000, 1000))
def test_constants_are_the_fractions_that_they_are(value, whole):
    kind = untangled(0)
    top, bottom = value.as_integer_ratio()
    assert kind.constant(value).a * bottom % PRIME == top % PRIME
    assert kind.constant(Fraction(whole, 7)).a * 7 % PRIME == whole % PRIME
    assert (residue(5) * np.float64(value)).a == (value * residue(5)).a
    assert (residue(5) + np.bool_(True)).a == 6


@pytest.mark.equation("D44")
def test_exponentials_and_logarithms_obey_their_laws_in_any_order():
    kind = untangled(3)
    x, y = kind.variable(0.5, 1), kind.variable(-1.5, 1)
    assert (x + y).exp().a == (x.exp() * y.exp()).a
    assert (2 * x).exp().a == (x.exp() ** 2).a
    assert (-x).exp().a == (1 / x.exp()).a
    assert (x / 2).exp().a == (x.exp() / (x / 2).exp()).a
    assert x.exp().log().a == x.a
    u, v = kind.variable(2.5, 1), kind.variable(0.5, 1)
    assert (u * v).log().a == (u.log() + v.log()).a
    assert (u / v).log().a == (u.log() - v.log()).a
    assert (u.log() + x).exp().a == (u * x.exp()).a
    assert kind.constant(4.0).log().a == (2 * kind.constant(np.log(2.0))).a
    assert kind.constant(1).log().a == 0
    softplus = (1 + x.exp()).log()
    assert softplus.a == ((1 + (-x).exp()).log() + x).a
    assert x.tanh().a == ((x.exp() - (-x).exp()) / (x.exp() + (-x).exp())).a
    assert x.log1p().a == (1 + x).log().a
    assert x.expm1().a == (x.exp() - 1).a


def test_powers_that_are_not_whole_are_roots_or_exponentials():
    kind = untangled(5)
    x = kind.variable(0.5, 1)
    assert (x**0.5).a == x.sqrt().a
    assert (x**1.5).a == (x.sqrt() ** 3).a
    assert (x**-0.5 * x.sqrt()).a == 1
    assert (x**0.3).a == (0.3 * x.log()).exp().a
    assert (2.0**x).a == (x * kind.constant(2.0).log()).exp().a


@pytest.mark.equation("D44")
def test_erf_is_odd_and_its_slope_is_that_of_the_normal_density():
    kind = untangled(8)
    x = kind.variable(0.5, 3)
    odd = (-x).erf()
    assert x.erf().a == x.erf().a != 0
    assert (x.erf() + odd).a == (x.erf() + odd).b == 0
    assert kind.constant(0.0).erf().a == 0
    assert kind.variable(0.5, 1).erf().a != x.erf().a
    slope = (-(x**2)).exp() * (2 / math.sqrt(math.pi))
    assert x.erf().b == (3 * slope).a
    assert odd.b == (-3 * slope).a
    assert x.erf().v == math.erf(0.5)


@pytest.mark.parametrize("at", [0.0, 1e-30, 0.3, -2.5, 6.0, -11.9, 12.1, -30.0])
def test_erf_of_a_long_number_has_sixty_digits(at):
    with localcontext(Context(DIGITS)), mpmath.workdps(DIGITS + 15):
        found, x = Long.variable(at, 1.0).erf(), mpmath.mpf(at)
        right, slope = mpmath.erf(x), 2 / math.sqrt(math.pi) * mpmath.exp(-x * x)
        bar = 1e-59 * (1 + at * at)  # the rounding of a^2, in e^-a^2
        assert abs(mpmath.mpf(str(found.a)) - right) <= bar * abs(right)
        assert abs(mpmath.mpf(str(found.b)) - slope) <= bar * slope


def test_the_float_is_that_of_the_function():
    kind = untangled(6)
    zero, below = kind.variable(0.0, 1), kind.variable(-1.0, 1)
    assert (zero.sqrt().v, zero.log().v, zero.exp().v) == (0.0, -math.inf, 1.0)
    assert math.isnan(below.sqrt().v)
    assert math.isnan(below.log().v)
    assert kind.variable(800.0, 1).exp().v == math.inf


def test_comparisons_are_those_of_the_floats_and_a_tie_has_none():
    kind = untangled(7)
    x = kind.variable(0.5, 1)
    assert -math.inf < x < math.inf
    assert not x > math.inf
    assert x > 0.25
    assert x != math.nan
    for tied in (0.5, kind.variable(0.5, 1)):
        with pytest.raises(Untraceable, match="a kink or a tie"):
            x > tied  # noqa: B015
    assert (bool(x), bool(kind.constant(0))) == (True, False)


def test_exact_numbers_are_real():
    x = untangled(0).variable(0.5, 1)
    assert (x.imag.a, x.imag.b) == (0, 0)
    assert x.conjugate() is x.real is x


def test_different_numbers_have_different_exponentials():
    kind = untangled(4)
    drawn = [kind.variable(0.1, 1) for _ in range(50)]
    assert len({x.exp().a for x in drawn} | {x.log().a for x in drawn}) == 100


def test_what_is_frozen_keeps_its_value_and_loses_its_tangent():
    (moving,) = exact((POINT,), untangled(0), moving=True)
    frozen = still(moving)
    assert [x.a for x in frozen] == [x.a for x in moving]
    assert [x.b for x in frozen] == [0, 0, 0]
    assert any(x.b for x in moving)
    np.testing.assert_array_equal(still(POINT), POINT)


@pytest.mark.equation("D44")
def test_what_was_found_by_a_law_is_remembered_when_the_law_is_forgotten(monkeypatch):
    monkeypatch.setattr(numbers, "MEMORY", MEMORY)
    laws = Laws(0)
    t, s = laws.random(), laws.random()
    by_law = laws.exp(t) * laws.exp(s) % PRIME
    assert laws.exp((t + s) % PRIME) == by_law
    laws.exps.pop(t)
    for _ in range(2 * MEMORY):
        laws.exp(laws.random())
    assert laws.exp((t + s) % PRIME) == by_law


def product(*exponentials):
    return math.prod(exponentials) % PRIME


def test_the_exponentials_of_0_and_of_multiples_of_log_2_are_known():
    assert Laws(0).exp(0) == 1
    assert Laws(0).log(1) == 0
    assert Laws(0).exp(1) != 1
    logs = {power: untangled(0).constant(power * math.log(2)).a for power in (-3, -2, -1, 1, 2, 3)}
    for power, log in logs.items():
        assert Laws(0).exp(log) == pow(2, power, PRIME)
        assert Laws(0).log(pow(2, power, PRIME)) == log
    assert Laws(0).exp((logs[1] + logs[2]) % PRIME) == 8
    with pytest.raises(Untraceable, match="the logarithm of 0"):
        Laws(0).log(0)


@pytest.mark.equation("D44")
def test_sums_of_two_and_of_three_are_found_and_then_sums_of_these():
    laws = Laws(0)
    t = [laws.random() for _ in range(6)]
    e = [laws.exp(one) for one in t]
    assert laws.exp((t[0] + t[1]) % PRIME) == product(e[0], e[1])
    assert laws.exp((t[0] - t[1]) % PRIME) == product(e[0], pow(e[1], -1, PRIME))
    first, second = sum(t[:2], t[5]) % PRIME, sum(t[2:4], t[5]) % PRIME
    assert laws.exp(first) == product(e[0], e[1], e[5])
    assert laws.exp(second) == product(e[2], e[3], e[5])
    laws.exp(laws.random())
    assert laws.exp((first + second) % PRIME) == product(laws.exp(first), laws.exp(second))


@pytest.mark.equation("D44")
def test_a_number_long_ago_is_found_beside_a_recent_one_and_by_itself(monkeypatch):
    monkeypatch.setattr(numbers, "MEMORY", MEMORY)
    laws = Laws(0)
    old = laws.random()
    power = laws.exp(old)
    for _ in range(2 * MEMORY):
        laws.exp(laws.random())
    new = laws.random()
    e, over = laws.exp(new), pow(laws.exp(new), -1, PRIME)
    laws.exp(laws.random())
    assert laws.exp(2 * old % PRIME) == product(power, power)
    assert laws.exp((old - new) % PRIME) == product(power, over)
    assert laws.log(product(power, power, e)) == (2 * old + new) % PRIME
    log_2 = untangled(0).constant(math.log(2)).a
    assert laws.exp((old + log_2) % PRIME) == product(power, 2)
    laws = Laws(0)
    old = laws.log(power)
    for _ in range(2 * MEMORY):
        laws.exp(laws.random())
    new = laws.random()
    over = pow(laws.exp(new), -1, PRIME)
    assert laws.log(product(power, over)) == (old - new) % PRIME
    assert laws.log(product(power, 2)) == (old + log_2) % PRIME


def test_the_root_of_a_square_is_a_root():
    laws = Laws(0)
    for _ in range(20):
        square = laws.random() ** 2 % PRIME
        assert laws.sqrt(square) ** 2 % PRIME == square
