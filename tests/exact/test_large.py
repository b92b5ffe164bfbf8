"""wrong: what is wrong with a large theta is located by a recurrence, or named by its block."""

import numpy as np
import pytest

from bbb_numpy import plain
from bbb_numpy.exact import prove
from bbb_numpy.exact.fields import Prime
from bbb_numpy.exact.wrong import _fraction, _recurrence

RNG = np.random.default_rng(0)
NET = (6, 20, 2)
THETA = plain.init(NET, RNG)
SIZE = THETA.size // 2
AT = (RNG.standard_normal((1, SIZE)), RNG.standard_normal((4, 6)), RNG.standard_normal((4, 2)),
      0.7, 0.3, 0.25)  # fmt: skip
BLOCKS = {"mu": slice(0, SIZE), "rho": slice(SIZE, 2 * SIZE)}


def right(theta, *at):
    return plain.value_and_grad(NET, theta, *at)


def changed(change):
    def wrong(theta, *at):
        value, grad = right(theta, *at)
        return value, change(theta, grad.copy())

    return wrong


def entries(factors):
    def change(theta, grad):
        for place, factor in factors.items():
            grad[place] = factor * grad[place]
        return grad

    return changed(change)


def block(factor):
    def change(theta, grad):
        grad[SIZE:] = grad[SIZE:] * factor(theta)
        return grad

    return changed(change)


def proved(function, **options):
    return prove(function, THETA, *AT, blocks=BLOCKS, **options)


def test_a_network_of_more_numbers_than_decimals_are_computed_for_is_proved():
    assert THETA.size > 256
    assert proved(right)
    assert str(proved(right, points=0)).startswith(f"proved: all {THETA.size} derivatives are ex")


@pytest.mark.parametrize("factors", [{SIZE + 7: 1.001}, {3: 2.0, SIZE + 100: -1.0}, {0: 1 + 1e-13}])
def test_single_wrong_coordinates_are_named_with_their_amounts(factors):
    proof = proved(entries(factors))
    assert proof.verdict == "refuted"
    names = [f"mu[{j}]" if j < SIZE else f"rho[{j - SIZE}]" for j in factors]
    assert [one.name for one in proof.wrong] == names
    for one, factor in zip(proof.wrong, factors.values(), strict=True):
        assert float(one.by_hand / one.right) == pytest.approx(factor, rel=1e-15)


def test_a_block_that_is_wrong_by_a_factor_is_named_with_it():
    proof = proved(block(lambda theta: 2.0))
    assert proof.verdict == "refuted"
    (one,) = proof.wrong
    assert (one.name, one.size, one.factor) == ("rho", SIZE, 2)
    assert f"rho: 2 times the right one, in all {SIZE}" in str(proof)
    assert proved(block(lambda theta: -0.75)).wrong[0].factor == -3 / 4


def test_a_block_that_is_wrong_otherwise_is_named():
    (one,) = proved(block(lambda theta: 1 / plain.sigmoid(theta[SIZE:]))).wrong
    assert (one.name, one.factor) == ("rho", None)
    assert one.by_hand != pytest.approx(one.right, rel=0.1)


def test_what_floats_cannot_see_is_not_called_refuted():
    proof = proved(block(lambda theta: 1 + 1e-9))
    assert proof.verdict == "not proved"
    assert "as far as floats can tell" in proof.reason


def test_a_function_that_is_another_one_for_floats_is_not_proved():
    def recognises(theta):
        return (theta**2).sum(), (2 if type(theta) is not np.ndarray else 3) * theta

    proof = prove(recognises, RNG.standard_normal(300))
    assert proof.verdict == "not proved"
    assert "along a random direction the slope of floats is" in proof.reason


def test_what_has_no_value_in_floats_is_not_proved():
    proof = prove(lambda theta: (np.log(theta).sum(), 1 / theta), -np.ones(300))
    assert (proof.verdict, "there is no value" in proof.reason) == ("not proved", True)


@pytest.mark.parametrize("wrong", [1, 2, 3])
def test_the_shortest_recurrence_has_the_wrong_coordinates_as_its_roots(wrong):
    field = Prime(0)
    rng = np.random.default_rng(wrong)
    roots, errors = (rng.integers(1, field.p, wrong).tolist() for _ in range(2))
    terms = [sum(e * pow(r, k, field.p) for e, r in zip(errors, roots, strict=True)) % field.p
             for k in range(2 * wrong)]  # fmt: skip
    found = _recurrence(terms, field.p)
    assert len(found) == wrong + 1
    for r in roots:
        assert sum(c * pow(r, wrong - k, field.p) for k, c in enumerate(found)) % field.p == 0


def test_small_fractions_are_read_from_their_residues():
    p = Prime(0).p
    for n, d in ((2, 1), (-1, 1), (-3, 4), (1, 999)):
        assert _fraction(n * pow(d, -1, p) % p, p) == pytest.approx(n / d)
    assert _fraction(123456789012345, p) is None
