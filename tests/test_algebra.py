"""The helpers of derivations/: what is equal, and what is not."""

import pytest
import sympy
from algebra import (
    assign,
    equal,
    expectation,
    gaussian,
    log_gaussian,
    number,
    off_by,
    positives,
    reals,
    ships,
    sigmoid,
    softplus,
    vanishes,
)
from sympy import Matrix, diff, exp, log, sqrt

x, y = reals("x y")
a, b = positives("a b")


@pytest.mark.parametrize(
    "zero",
    [
        (x + y) ** 2 - x**2 - 2 * x * y - y**2,
        x / (x + y) + y / (x + y) - 1,
        log(a * exp(-x) / b) - log(a) + x + log(b),
        exp(x) / (1 + exp(x)) - sigmoid(x),
        sigmoid(x) + sigmoid(-x) - 1,
        diff(log(softplus(x)), x) - sigmoid(x) / softplus(x),
        softplus(x) - softplus(-x) - x,
        log(sigmoid(x)) + softplus(-x),
        log(gaussian(x, y, a)) - log_gaussian(x, y, a),
    ],
)
def test_what_is_zero_has_the_normal_form_zero_and_twice_its_half_has_not(zero):
    assert vanishes(zero)
    half = next(term for term in sympy.Add.make_args(zero) if term != 0)
    assert not vanishes(zero - 2 * half)  # one term with the other sign


def test_equal_compares_every_entry_and_every_line():
    equal([x + x, y], [2 * x, y], Matrix([2 * x, y]))
    off_by([x, x + y], [x, x], [0, y])
    with pytest.raises(AssertionError):
        equal([x + x, y], [2 * x, y], [2 * x, -y])
    with pytest.raises(AssertionError):
        off_by([x, x], [x, x], [0, 0])


def test_expectations_are_the_moments_of_a_normal_number():
    e, f = reals("e f")
    assert [expectation(e**k, e) for k in range(9)] == [1, 0, 1, 0, 3, 0, 15, 0, 105]
    equal(expectation((x + a * e) ** 2 * f**2 + e * f, e, f), x**2 + a**2)


def test_ships_refuses_a_sign_and_an_error_of_1e_11():
    values = assign(0, [x, y, a])
    line = [x * y, sqrt(a) * x]
    found = number(line, values)
    ships(found, line, values)
    for wrong in (-found, found * (1 + 1e-11), found[::-1]):
        with pytest.raises(AssertionError):
            ships(wrong, line, values)
