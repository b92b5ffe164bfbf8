"""functions: the laws that a proof may use, each beside a wrong one that it must not use."""

from functools import partial

import numpy as np
import pytest
from scipy import special as sp

from exactgrad import prove, prove_same
from exactgrad.fields.finite import Gauss, Prime
from exactgrad.trace.arrays import lift
from exactgrad.verdict.data import to_exact

S, T = 0.7, 1.3

# name: a form, the same in another form, and what is not the same
LAWS = {
    "sums": (lambda s, t: np.exp(s + t), lambda s, t: np.exp(s) * np.exp(t),
             lambda s, t: np.exp(s) + np.exp(t)),
    "thirds": (lambda s, t: np.exp(t / 3) ** 3, lambda s, t: np.exp(t), lambda s, t: np.exp(t / 3)),
    "products": (lambda s, t: np.log(s * t * t), lambda s, t: np.log(s) + 2 * np.log(t),
                 lambda s, t: np.log(s) * np.log(t) ** 2),
    "inverse": (lambda s, t: np.exp(np.log(s) - np.log(t)), lambda s, t: s / t, lambda s, t: s - t),
    "a multiple of a logarithm": (
        lambda s, t: np.exp((t * np.log(s) - t * np.log(s + 1)) / t), lambda s, t: s / (s + 1),
        lambda s, t: np.exp(t * np.log(s) - t * np.log(s + 1))),
    "of exp": (lambda s, t: np.log(np.exp(s) * t), lambda s, t: s + np.log(t), lambda s, t: s * t),
    "powers": (lambda s, t: s**t * s**0.25, lambda s, t: s ** (t + 0.25),
               lambda s, t: s ** (t / 4)),
    "sums and products": (lambda s, t: np.exp(s + t) * np.log(s * t),
                          lambda s, t: np.exp(s) * np.exp(t) * (np.log(s) + np.log(t)),
                          lambda s, t: (np.exp(s) + np.exp(t)) * np.log(s * t)),
    "bases": (lambda s, t: np.exp2(s) * np.log2(8 * t), lambda s, t: 2**s * (3 + np.log2(t)),
              lambda s, t: 2**s * (2 + np.log2(t))),
    "roots": (lambda s, t: np.sqrt(s) * np.sqrt(s) * t, lambda s, t: s * t,
              lambda s, t: -s * t),
    "roots of squares": (lambda s, t: np.sqrt((s - t) ** 2), lambda s, t: t - s,
                         lambda s, t: s - t),
    "cube roots": (lambda s, t: np.cbrt(s - t) ** 3, lambda s, t: s - t, lambda s, t: t - s),
    "hypotenuse": (lambda s, t: np.hypot(s, t) ** 2, lambda s, t: s * s + t * t,
                   lambda s, t: (s + t) ** 2),
    "circle": (lambda s, t: s * np.sin(t) ** 2, lambda s, t: s - s * np.cos(t) ** 2,
               lambda s, t: s - s * np.cos(t)),
    "sine": (lambda s, t: np.sin(s - t), lambda s, t: -np.sin(t - s), lambda s, t: np.sin(t - s)),
    "cosine": (lambda s, t: np.cos(s - t), lambda s, t: np.cos(t - s),
               lambda s, t: -np.cos(t - s)),
    "tangent": (lambda s, t: np.tan(s) * np.cos(s), lambda s, t: np.sin(s), lambda s, t: np.cos(s)),
    "arctan": (lambda s, t: np.arctan(s - t), lambda s, t: -np.arctan(t - s),
               lambda s, t: np.arctan(t - s)),
    "arcsin": (lambda s, t: np.arcsin(s / 2 - t / 2), lambda s, t: -np.arcsin(t / 2 - s / 2),
               lambda s, t: np.arccos(s / 2 - t / 2)),
    "half turn": (lambda s, t: np.arctan2(s, -t), lambda s, t: np.pi - np.arctan(s / t),
                  lambda s, t: np.pi + np.arctan(s / t)),
    "hyperbolas": (lambda s, t: t * np.cosh(s) ** 2, lambda s, t: t * (1 + np.sinh(s) ** 2),
                   lambda s, t: t * (1 - np.sinh(s) ** 2)),
    "tanh": (lambda s, t: np.tanh(s), lambda s, t: 2 * sp.expit(2 * s) - 1,
             lambda s, t: 2 * sp.expit(s) - 1),
    "logistic": (lambda s, t: sp.expit(-s) * t, lambda s, t: t - t * sp.expit(s),
                 lambda s, t: -t * sp.expit(s)),
    "softplus": (lambda s, t: np.log1p(np.exp(s)), lambda s, t: s + np.log1p(np.exp(-s)),
                 lambda s, t: np.log1p(np.exp(-s))),
    "logit": (lambda s, t: sp.logit(sp.expit(s)), lambda s, t: s, lambda s, t: -s),
    "log_expit": (lambda s, t: sp.log_expit(s), lambda s, t: s + sp.log_expit(-s),
                  lambda s, t: -sp.log_expit(-s)),
    "logaddexp": (lambda s, t: np.logaddexp(s, t), lambda s, t: s + np.log1p(np.exp(t - s)),
                  lambda s, t: t + np.log1p(np.exp(t - s))),
    "softmax": (lambda s, t: sp.softmax(np.array([s, t]))[0], lambda s, t: sp.expit(s - t),
                lambda s, t: sp.expit(t - s)),
    "logsumexp": (lambda s, t: sp.logsumexp(np.array([s, t])),
                  lambda s, t: t - sp.log_softmax(np.array([s, t]))[1],
                  lambda s, t: t - sp.log_softmax(np.array([s, t]))[0]),
    "erf": (lambda s, t: sp.erf(s - t), lambda s, t: -sp.erf(t - s), lambda s, t: sp.erf(t - s)),
    "erfc": (lambda s, t: sp.erfc(s) * t, lambda s, t: t - t * sp.erf(s),
             lambda s, t: t * sp.erfc(-s)),
    "normal": (lambda s, t: sp.ndtr(-s) * t, lambda s, t: t - t * sp.ndtr(s),
               lambda s, t: -t * sp.ndtr(s)),
    "normal and erf": (lambda s, t: sp.ndtr(s), lambda s, t: sp.erfc(-s / np.sqrt(2)) / 2,
                       lambda s, t: sp.erfc(s / np.sqrt(2)) / 2),
    "log of normal": (lambda s, t: np.exp(sp.log_ndtr(s)), lambda s, t: sp.ndtr(s),
                      lambda s, t: sp.ndtr(-s)),
    "entropy": (lambda s, t: sp.entr(s) + sp.rel_entr(s, t), lambda s, t: -sp.xlogy(s, t),
                lambda s, t: sp.xlogy(s, t)),
    "xlog1py": (lambda s, t: sp.xlog1py(s, t), lambda s, t: sp.xlogy(s, 1 + t),
                lambda s, t: sp.xlogy(s, t)),
    "beta": (lambda s, t: sp.betaln(s, t), lambda s, t: sp.betaln(t, s),
             lambda s, t: sp.betaln(s, s + t)),
    "gamma": (lambda s, t: sp.betaln(s, t) + sp.gammaln(s + t),
              lambda s, t: sp.loggamma(s) + sp.gammaln(t),
              lambda s, t: sp.gammaln(t) - sp.gammaln(s)),
    "digamma": (lambda s, t: sp.psi(s), lambda s, t: sp.polygamma(0, s),
                lambda s, t: sp.polygamma(1, s)),
}  # fmt: skip


@pytest.mark.equation("D44")
@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_known_and_one_that_looks_like_it_is_refuted(name):
    one, same, other = LAWS[name]
    assert prove_same(one, same, S, T).verdict == "proved"
    assert prove_same(one, other, S, T).verdict == "refuted"


HALF_ROOT = np.sqrt(np.pi) / 2

# A value and its slope, by their own argument and by -t: there is no series that would decide
WITHOUT_SERIES = {
    "erfinv": lambda t: (
        t * sp.erfinv(-t), -sp.erfinv(t) - t * HALF_ROOT * np.exp(sp.erfinv(t) ** 2)),
    "ndtri": lambda t: (sp.ndtri(t), np.sqrt(2 * np.pi) * np.exp(sp.ndtri(t) ** 2 / 2)),
    "i0e": lambda t: (sp.i0e(-t), sp.i1e(t) - np.sign(t) * sp.i0e(t)),
    "i1e": lambda t: (-sp.i1e(-t), sp.i0e(t) - (np.sign(t) + 1 / t) * sp.i1e(t)),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT_SERIES)
def test_functions_of_which_there_are_no_digits_have_their_slopes(name):
    def value_and_grad(t, factor=1):
        value, slope = WITHOUT_SERIES[name](t)
        return value.sum(), factor * slope

    assert prove(value_and_grad, np.array([0.3, 0.8]))
    assert prove(value_and_grad, np.array([0.3, 0.8]), 2).verdict == "refuted"


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (lambda s, t: np.sin(s + t), lambda s, t: np.sin(s) * np.cos(t) + np.cos(s) * np.sin(t)),
        (lambda s, t: sp.gammaln(s + 1), lambda s, t: sp.gammaln(s) + np.log(s)),
    ],
)
def test_a_law_that_no_field_knows_is_neither_proved_nor_refuted(one, same):
    assert prove_same(one, same, S, T).verdict == "not proved"


def put(into, values):
    into = into.copy()
    into[0, ::2] = values[1, :2]
    return into


GATE = np.array([[True, False, True], [False, False, True]])

# From two matrices: what is made of their logarithms, and what e to the power of it is
KEPT = {
    "sums": (lambda s, t: np.log(s) + np.log(t) + 2, lambda s, t: s * t * np.exp(lift(2, s.field))),
    "differences": (lambda s, t: t - np.log(s) - np.log(t), lambda s, t: np.exp(t) / s / t),
    "turned": (lambda s, t: -(np.log(s) - t), lambda s, t: np.exp(t) / s),
    "broadcast": (lambda s, t: np.log(s)[:, None] + np.log(t), lambda s, t: s[:, None] * t),
    "gated": (lambda s, t: np.log(s) * GATE, lambda s, t: np.where(GATE, s, 1)),
    "chosen": (lambda s, t: np.where(GATE, np.log(s), t),
               lambda s, t: np.where(GATE, s, np.exp(t))),
    "the other way": (lambda s, t: np.where(GATE, s, np.log(t)),
                      lambda s, t: np.where(GATE, np.exp(s), t)),
    "written": (lambda s, t: put(s, np.log(t)), lambda s, t: put(np.exp(s), t)),
    "overwritten": (lambda s, t: put(np.log(s), t), lambda s, t: put(s, np.exp(t))),
    "both": (lambda s, t: put(np.log(s), np.log(t)), put),
    "moved": (lambda s, t: np.log(s).T.reshape(2, 3)[:, ::-1][0, 1], lambda s, t: s[1, 0]),
    "joined": (lambda s, t: np.concatenate([np.log(s), t]),
               lambda s, t: np.concatenate([s, np.exp(t)])),
    "still": (lambda s, t: np.log(s).stop_gradient() - t,
              lambda s, t: s.stop_gradient() / np.exp(t)),
    "again": (lambda s, t: np.log(np.exp(np.log(s) + np.log(t))) - np.log(t), lambda s, t: s),
}  # fmt: skip


@pytest.mark.parametrize("kind", [Prime, Gauss])
@pytest.mark.parametrize("name", KEPT)
def test_a_logarithm_is_remembered_wherever_it_goes(name, kind):
    logarithm, power = KEPT[name]
    s, t = to_exact((np.ones((2, 3)), np.ones((2, 3))), kind(0), moving=True)
    found, right = np.exp(logarithm(s, t)), power(s, t)
    assert (found.residues == right.residues).all()


def variance_of_rows(theta, x, y):
    """The example of D44: a root for each row in the value, none in the gradient."""
    v = theta[0] ** 2 + theta[1] ** 2 * x**2
    s = np.sqrt(v)
    slope = 0.5 / v - 0.5 * (y / v) ** 2
    gradient = 2 * theta * np.stack([slope.sum(), (x**2 * slope).sum()])
    return np.sum(np.log(s) + 0.5 * (y / s) ** 2), gradient


@pytest.mark.equation("D44")
def test_three_roots_that_have_to_be_roots_need_a_root_of_minus_one(monkeypatch):
    theta, x, y = np.array([0.5, 0.8]), np.array([-1.0, 0.3, 1.5]), np.array([0.9, 0.6, 1.1])
    proved = partial(prove, variance_of_rows, theta, n_points=0)
    assert proved(x, y).verdict == "proved"
    monkeypatch.setattr(Gauss, "root", Prime.root)
    assert proved(x, y).verdict == "not proved"
    assert proved(x[:2], y[:2]).verdict == "proved", "by the small primes"


def test_log1p_is_as_much_a_logarithm_as_log():
    def softplus(x):
        value = np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))
        return value.sum(), np.exp(x - value)

    assert prove(softplus, np.array([-0.5, 0.7, 0.8, -0.9, 1.1])).verdict == "proved"
