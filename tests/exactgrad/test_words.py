"""words: the simple thing that is wrong with a gradient stands in its verdict."""

import numpy as np
import pytest

from exactgrad import prove

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((5, 3)), RNG.standard_normal(5)
AT = RNG.standard_normal(3)


def ridge(change):
    def value_and_grad(theta, x, y, lam):
        off = x @ theta - y
        grad = 2 * x.T @ off / len(x) + lam * theta
        return (off**2).sum() / len(x) + lam * (theta**2).sum() / 2, change(grad, theta, x, lam)

    return value_and_grad


def said(change):
    verdict = str(prove(ridge(change), AT, X, Y, 0.3))
    return [line.strip() for line in verdict.splitlines() if "by hand" not in line][1:]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda grad, *_: -grad, "they are right but for the sign"),
        (lambda grad, *_: grad / 2, "they are 1/2 times what is right"),
        (lambda grad, _, x, __: grad * len(x), "they are 5 (of x.shape[0]) times what is right"),
        (lambda grad, _, x, __: grad / len(x), "they are 1/5 (of x.shape[0]) times what is right"),
        (lambda grad, *_, lam: grad * lam, "they are lam times what is right"),
        (lambda grad, theta, *_: grad * theta, "they are theta times what is right"),
        (lambda grad, theta, *_: grad * np.exp(-theta),
         "they are 1 / exp(theta) times what is right"),
        (lambda grad, theta, *_: grad / (1 + np.exp(-theta)),
         "they are sigmoid(theta) times what is right"),
        (lambda grad, theta, _, lam: grad - lam * theta, "they are too small by lam * theta"),
        (lambda grad, *_, lam: grad + 7 / lam, "they are too large by 7 / lam"),
        (lambda grad, theta, *_: grad - theta, "they are too small by theta"),
        (lambda grad, theta, *_: grad + 2 * theta, "they are too large by 2 * theta"),
        (lambda grad, *_: grad - 0.25, "they are too small by 1/4"),
        (lambda grad, *_: np.where(np.arange(3) == 1, -grad, grad),
         "it is right but for the sign"),
        (lambda grad, *_: grad * np.array([2.0, 1.0, -1.0]),
         "theta[0] to theta[0]: 2 times what is right"),
    ],
)  # fmt: skip
def test_a_factor_or_a_term_is_named(change, words):
    def called(grad, theta, x, lam):
        keyword = change.__code__.co_kwonlyargcount
        return change(grad, theta, x, lam=lam) if keyword else change(grad, theta, x, lam)

    assert said(called)[0] == words


def test_nothing_is_said_of_what_is_not_simple():
    assert not any(line.startswith("they") for line in said(lambda grad, *_: grad**2 + 1))


def test_zeros_by_hand_are_named():
    assert "they are 0 by hand" in str(prove(ridge(lambda grad, *_: 0 * grad), AT, X, Y, 0.3))


@pytest.mark.parametrize(("n", "m"), [(2, 3), (3, 3), (3, 2)])
def test_a_block_that_is_transposed_is_named(n, m):
    x, y = RNG.standard_normal((4, n)), RNG.standard_normal((4, m))

    def linear(theta, x, y):
        off = x @ theta[1:].reshape(n, m) + theta[0] - y
        grad = np.concatenate([[off.sum()], (off.T @ x).ravel()])
        return (off**2).sum() / 2, grad

    verdict = str(prove(linear, RNG.standard_normal(1 + n * m), x, y))
    assert f"they are in another order: transposed, {n} x {m}" in verdict


def test_a_power_of_a_negative_number_is_told_to_want_a_whole_exponent():
    def power(theta, n):
        return (theta**n).sum(), n * theta ** (n - 1)

    at = np.array([-0.5, 2.0])
    assert prove(power, at, 3)
    assert "pass a whole exponent as an integer" in str(prove(power, at, 3.0))
    assert prove(power, at[1:], 3.0, n_points=0)  # of a positive number it may be any
