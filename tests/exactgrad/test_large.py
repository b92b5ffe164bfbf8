"""wrong: what is wrong with a large theta is located by a recurrence, or named by its block."""

import time

import numpy as np
import pytest

from bbb_numpy import plain
from exactgrad import prove
from exactgrad.fields.finite import LARGE_THETA, Prime
from exactgrad.verdict.errors import _fraction

RNG = np.random.default_rng(0)
SIZE = 150
THETA = RNG.standard_normal(2 * SIZE)
BLOCKS = {"mu": slice(0, SIZE), "rho": slice(SIZE, 2 * SIZE)}


def right(theta):
    mu, rho = theta[:SIZE], theta[SIZE:]
    return (mu**2 * rho).sum(), np.concatenate([2 * mu * rho, mu**2])


def changed(change):
    def wrong(theta):
        value, grad = right(theta)
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
    return prove(function, THETA, blocks=BLOCKS, **options)


def test_a_network_of_more_numbers_than_decimals_are_computed_for_is_proved_or_refuted():
    net, rng = (6, 20, 2), np.random.default_rng(0)
    theta = plain.init(net, rng)
    half = theta.size // 2
    noise, x, y = (rng.standard_normal(shape) for shape in ((1, half), (4, 6), (4, 2)))

    def network(theta, *at):
        return plain.value_and_grad(net, theta, *at)

    def doubled(theta, *at):
        value, grad = network(theta, *at)
        return value, grad * np.where(np.arange(theta.size) < half, 1, 2)

    at = noise, x, y, 0.7, 0.3, 0.25
    assert theta.size > 256
    assert str(prove(network, theta, *at, n_points=0)).startswith(f"proved: all {theta.size} deriv")
    assert prove(doubled, theta, *at).verdict == "refuted"


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


def test_what_is_wrong_in_no_block_is_refuted_too():
    wrong = changed(lambda theta, grad: grad + (np.arange(theta.size) > SIZE))
    (one,) = prove(wrong, THETA, blocks={"mu": slice(SIZE)}).wrong
    assert (one.name, one.size) == ("theta", THETA.size)


def test_a_block_that_is_wrong_otherwise_is_named():
    (one,) = proved(block(lambda theta: 1 + theta[SIZE:] ** 2)).wrong
    assert (one.name, one.factor) == ("rho", None)
    assert float(one.by_hand / one.right) != pytest.approx(1, rel=0.1)


def test_a_block_that_is_wrong_by_less_than_floats_show_is_refuted_by_decimals():
    (one,) = proved(block(lambda theta: 1 + 1e-12)).wrong
    assert (one.name, one.size) == ("rho", SIZE)
    assert float(one.by_hand / one.right - 1) == pytest.approx(1e-12, rel=1e-3)


MANY = RNG.standard_normal(LARGE_THETA + 1)  # of which no decimals are computed


def test_of_very_many_what_floats_cannot_see_is_not_called_refuted():
    proof = prove(lambda theta: ((theta**2).sum(), 2 * theta * (1 + 1e-13)), MANY)
    assert proof.verdict == "not proved"
    assert "as far as floats can tell" in proof.reason
    assert proof.wrong == ()
    assert prove(lambda theta: ((theta**2).sum(), 2.001 * theta), MANY).verdict == "refuted"


@pytest.mark.parametrize("size", [1, 2.0**-16])
@pytest.mark.parametrize(("theta", "what"), [(MANY[:300], "gradient"), (MANY, "slope")])
def test_a_function_that_is_another_one_for_floats_is_not_proved(theta, what, size):
    def recognises(theta):
        factor = 2 if type(theta) is not np.ndarray else 3
        return size * ((theta**2).sum() + 2.0**20), size * factor * theta

    proof = prove(recognises, theta)
    assert proof.verdict == "not proved"
    assert f"with floats the {what} is " in proof.reason


def test_the_sign_of_a_root_is_seen_at_a_large_theta_too():
    proof = prove(lambda t: (np.sqrt(t * t).sum(), np.ones_like(t)), MANY[:300])
    assert proof.verdict == "refuted"


@pytest.mark.parametrize("seed", range(3))
def test_a_root_whose_sign_is_right_at_some_points_makes_no_coordinate_wrong(seed):
    def program(t):
        return np.sqrt(t[0] ** 2 + 2 * t[0] + 1) + (t**2).sum(), 2 * t + (np.arange(t.size) == 0)

    assert "by an identity" in prove(program, np.abs(MANY[:300]), seed=seed, n_points=0).reason


def test_numbers_have_their_roots_also_where_theta_is_too_large_for_towers():
    def lengths(t):
        square = t @ t + np.arange(1.0, 9.0)
        root = np.sqrt(square)  # of eight random numbers: modulo a prime hardly all have one
        return root.sum(), t * (root / square).sum()

    assert prove(lengths, MANY, n_points=0)


def test_roots_that_a_field_has_not_make_no_block_wrong():
    def one_block_off(t):  # the roots of the other block are right
        return np.sqrt(t * t + 1).sum(), np.r_[2 * t[:200], t[200:]] / np.sqrt(t * t + 1)

    blocks = {"a": slice(200), "b": slice(200, 400)}
    assert [one.name for one in prove(one_block_off, MANY[:400], blocks=blocks).wrong] == ["a"]


def test_what_has_no_value_in_floats_is_not_proved():
    proof = prove(lambda theta: (np.log(theta).sum(), 1 / theta), -np.ones(300))
    assert (proof.verdict, "there is no value" in proof.reason) == ("not proved", True)


def test_errors_of_three_coordinates_are_not_taken_for_those_of_two():
    proof = proved(entries({1: 2.0, 5: 3.0, SIZE + 2: -1.0}))
    assert [one.name for one in proof.wrong] == ["mu", "rho"]


def test_two_entries_that_are_exchanged_are_named():
    def exchanged(theta, grad):
        grad[[1, 5]] = grad[[5, 1]]
        return grad

    assert [one.name for one in proved(changed(exchanged)).wrong] == ["mu[1]", "mu[5]"]


def test_small_fractions_are_read_from_their_residues():
    p = Prime(0).p
    for n, d in ((2, 1), (-1, 1), (-3, 4), (1, 999)):
        assert _fraction(n * pow(d, -1, p) % p, p) == pytest.approx(n / d)
    assert _fraction(123456789012345, p) is None


def test_what_is_refuted_of_a_very_large_theta_is_told_at_once():
    theta = np.linspace(0.1, 1, 100_000)

    def square(t):
        return (t**2).sum(), 2 * t * (1 + (np.arange(100_000) == 80_000))

    before = time.process_time()
    assert "theta[80000]: by hand" in str(prove(square, theta))
    assert time.process_time() - before < 6
