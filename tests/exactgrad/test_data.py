"""data: what is right for some data alone is proved for these, and says so."""

import numpy as np
import pytest

from exactgrad import prove, prove_same
from exactgrad.fields.digits import Digits
from exactgrad.verdict.data import CONDITIONS, to_exact

RNG = np.random.default_rng(0)
TWO = np.array([1.2, 0.7])
X, W = RNG.standard_normal((6, 3)), RNG.standard_normal((3, 4))
ONE_HOT = np.eye(4)[[0, 2, 1, 3, 3, 0]]


def softmax_regression(w, x, y):
    z = x @ w
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return -(y * np.log(p)).sum(), x.T @ (p - y)


def weighted(t, w):
    return (w * t**2).sum(), 2 * t * w / w.sum()


def centred(t, x):  # the slope of the mean of x is left out
    return (x @ t).sum() + (t**2).sum(), 2 * t


def of_symmetric(t, a):
    return t @ a @ t, 2 * a @ t


def distances(y, p):
    """t-SNE."""
    apart = ~np.eye(len(y), dtype=bool)
    near = apart / (1 + ((y[:, None] - y[None]) ** 2).sum(axis=2))
    q = near / near.sum()
    pull = ((p - q) * near)[:, :, None] * (y[:, None] - y[None])
    return (p[apart] * np.log(p[apart] / q[apart])).sum(), 4 * pull.sum(axis=1)


def of_correlations(t, c):  # right where both hold
    return t @ c @ t + np.trace(c) * t[0], 2 * c @ t + np.eye(1, len(t))[0] * len(t)


def of_shares(t, b):
    return (b @ t).sum() + (t @ b).sum(), 2 + 0 * t


def of_laplacian(t, a):
    return t @ a @ t + a.sum(axis=0) @ t, 2 * a @ t


def of_three(t, a):  # right where a is symmetric, its diagonal 0 and its sum 1
    return t @ a @ t * a.sum() + np.trace(a) * t[0], 2 * a @ t


def of_weights(t, a):
    return t @ a @ t * a.sum(), 2 * a @ t


SYMMETRIC = X.T @ X
APART = np.abs(X[:3, 0] - X[:3, :1])
STOCHASTIC = np.array([[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
KEPT = {  # a program, its arguments, and the condition that is found
    "softmax regression of one-hot rows": (
        softmax_regression, (W, X[:3], ONE_HOT[:3]), "y.sum(axis=-1) = 1"),
    "softmax regression of probabilities": (
        softmax_regression, (W, X[:3], RNG.dirichlet(np.ones(4), 3)), "y.sum(axis=-1) = 1"),
    "weights that sum to 1": (weighted, (TWO, np.array([0.25, 0.75])), "w.sum() = 1"),
    "weights that sum to 1 but for rounding": (
        weighted, (TWO, np.array([0.3, 0.7])), "w.sum() = 1"),
    "weights in a dict": (
        lambda t, d: weighted(t, d["w"]), (TWO, {"w": np.array([0.3, 0.7])}), "d.sum() = 1"),
    "a symmetric matrix": (of_symmetric, (TWO, SYMMETRIC[:2, :2]), "a = a.T"),
    "centred columns": (
        centred, (TWO, X[:, :2] - X[:, :2].mean(axis=0)), "x.sum(axis=0) = 0"),
    "t-SNE": (distances, (X[:3, :2], APART / APART.sum()),
              "p = p.T and diag(p) = 0 and p.sum() = 1"),
    "shares of pairs": (
        of_three, (X[0], APART / APART.sum()), "a = a.T and diag(a) = 0 and a.sum() = 1"),
    "correlations": (of_correlations, (TWO, np.array([[1.0, 0.3], [0.3, 1.0]])),
                     "c = c.T and diag(c) = 1"),
    "a doubly stochastic matrix": (
        of_shares, (X[0], STOCHASTIC[[1, 0, 2]]), "b.sum(axis=-1) = 1 and b.sum(axis=0) = 1"),
    "a Laplacian": (of_laplacian, (X[0], np.diag([3.0, 3, 3]) - 1),
                    "a = a.T and a.sum(axis=-1) = 0"),
    "a symmetric matrix that sums to 1": (
        of_weights, (X[0], STOCHASTIC / 3), "a = a.T and a.sum() = 1"),
    "no loops": (lambda t, a: (t @ a @ t, (a + a.T) @ t + np.diag(a)),
                 (TWO, np.array([[0, 0.5], [1.5, 0]])), "diag(a) = 0"),
    "large theta": (of_symmetric, (RNG.standard_normal(257), np.eye(257)), "a = a.T"),
}  # fmt: skip


def by_night(*dear):
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in dear)) for name in KEPT]


@pytest.mark.equation("D44")
@pytest.mark.parametrize("name", by_night("t-SNE", "softmax regression of probabilities"))
def test_what_is_right_where_data_keep_a_condition_is_proved_there(name):
    program, at, condition = KEPT[name]
    proof = prove(program, *at, n_points=0)
    assert proof.verdict == "proved for these data"
    assert proof.proved
    assert str(proof).startswith(
        f"proved where {condition}: all {at[0].size} derivatives are exact"
    )
    assert "with other " in proof.reason


def test_the_line_says_where_it_would_be_wrong():
    assert str(prove(weighted, TWO, np.array([0.25, 0.75]))) == (
        "proved where w.sum() = 1: all 2 derivatives are exact; "
        "with other w 2 of 2 are wrong: theta[0], theta[1]"
    )
    proof = prove(lambda t, w: ((w * t).sum(), w * [1, w[0] + w[1]]), TWO, np.array([0.25, 0.75]))
    assert proof.reason == "with other w 1 of 2 are wrong: theta[1]"
    four, five = (prove(weighted, np.arange(1.0, n + 1), np.full(n, 1 / n)) for n in (4, 5))
    assert four.reason.endswith("4 of 4 are wrong: theta[0], theta[1], theta[2], theta[3]")
    assert five.reason.endswith("5 of 5 are wrong: theta[0], theta[1], theta[2], theta[3], ...")


COINCIDENCES = {  # right for these numbers, which keep no condition that makes it right
    "ones, with another power": (lambda t, x: ((x * t).sum(), x * x), (TWO, np.ones(2))),
    "labels that are 0 and 1": (
        lambda t, y: ((y * t).sum(), y * y), (TWO, np.array([0.0, 1.0]))),
    "a scale of 1 that is left out": (
        lambda t, s: (s * (t**2).sum(), 2 * t), (TWO, 1.0)),
    "a symmetric matrix whose square it is": (
        lambda t, a: (t @ a @ t, 2 * a @ a @ t), (TWO, np.eye(2))),
}  # fmt: skip


@pytest.mark.parametrize("name", COINCIDENCES)
def test_a_coincidence_of_the_data_is_not_proved_unless_they_are_said_to_be_fixed(name):
    program, at = COINCIDENCES[name]
    proof = prove(program, *at)
    argument = program.__code__.co_varnames[1]
    assert proof.verdict == "not proved"
    assert f"all 2 derivatives are exact for these {argument} alone; with other" in proof.reason
    assert f"Say fixed=('{argument}',) if that is meant" in proof.reason
    for fixed in ((argument,), argument, (0,)):
        meant = prove(program, *at, fixed=fixed)
        assert meant.verdict == "proved for these data"
        assert str(meant) == f"proved for these {argument}: all 2 derivatives are exact"


def test_only_the_data_that_matter_are_named():
    found = prove(lambda t, x, s: (s * (x * t).sum(), s * x * x), TWO, np.ones(2), 0.7)
    assert "for these x alone" in found.reason
    both = prove(lambda t, x, s: (s * (x * t).sum(), s * s * x * x), TWO, np.ones(2), 1.0)
    assert "for these x and s alone" in both.reason
    assert "fixed=('x', 's')" in both.reason


def test_a_wrong_gradient_is_wrong_for_fixed_data_too():
    assert prove(weighted, TWO, TWO, fixed="w").verdict == "refuted"
    wrong = prove(lambda w, x, y: softmax_regression(w, x, y * 1.5), W, X, ONE_HOT)
    assert wrong.verdict == "refuted"


def test_fixed_data_are_exact_numbers_whose_floats_may_be_compared():
    def of_labels(t, y):
        return (t * (y == 1)).sum(), (y == 1) * np.log(np.exp(y)) / y.clip(0.5, 1)

    assert "data are compared" in prove(of_labels, TWO, np.array([0.0, 1.0])).reason
    assert prove(of_labels, TWO, np.array([0.0, 1.0]), fixed="y")


@pytest.mark.parametrize("name", ["shares of pairs", "correlations", "a Laplacian"])
def test_where_data_keep_one_condition_of_two_it_is_wrong(name):
    program, (theta, a), _ = KEPT[name]
    rows, columns = np.triu_indices(len(a), 1)
    turned, larger = a.copy(), a + 0.5
    turned[rows, columns] *= 1.5
    for other in (turned, larger):
        assert prove(program, theta, other).verdict != "proved for these data"


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda one: one.text)
def test_a_condition_that_is_imposed_is_kept_by_numbers_and_slopes(condition):
    v = RNG.standard_normal((4, 4))
    assert not condition.holds(v)
    x = to_exact(v, Digits(0), moving=True)
    condition.impose(x)
    numbers, slopes = x.floats, x.tangent[..., 0].astype(float)
    assert condition.holds(numbers)
    assert condition.holds(numbers + slopes)
    assert np.count_nonzero(slopes) >= 12  # it binds no more than it says
    again = to_exact(numbers, Digits(1), condition)
    np.testing.assert_allclose(again.floats, numbers, atol=1e-14)


def test_the_order_of_data_is_a_path_and_no_condition():
    """Cox's partial likelihood, with risk sets by comparison and in the gradient by order."""

    def cox(b, x, times, died):
        e = np.exp(x @ b)
        at_risk = (times >= times[:, None]) @ e
        later, weighted = (np.cumsum(z[::-1], axis=0)[::-1] for z in (e, e[:, None] * x))
        value = (died * (x @ b - np.log(at_risk))).sum()
        return value, died @ x - (died / later) @ weighted

    times, died = np.array([0.3, 0.8, 1.1, 1.9, 2.5, 3.1]), np.array([1, 0, 1, 1, 0, 1])
    assert "on this path of 36 comparisons" in str(prove(cox, TWO, X[:, :2], times, died))
    assert prove(cox, TWO, X[:, :2], times[::-1].copy(), died).verdict == "refuted"


def test_conditions_are_found_for_values_too():
    def entropy(w, y):
        return -(y * np.log(np.exp(w) / np.exp(w).sum())).sum()

    def shifted(w, y):
        return np.log(np.exp(w).sum()) - (y * w).sum()

    same = prove_same(entropy, shifted, X[0], np.array([0.5, 0.25, 0.25]))
    assert str(same) == (
        "proved where y.sum() = 1: the two values are the same; with other y they are not"
    )
    assert prove_same(entropy, shifted, X[0], X[1]).verdict == "refuted"
    half = prove_same(entropy, lambda w, y: shifted(w, y / 2), X[0], np.array([0.5, 0.25, 0.25]))
    assert half.verdict == "refuted"


def test_fixed_data_do_not_move_in_values():
    same = prove_same(lambda x, y: x + y * y, lambda x, y: x + y, TWO, np.ones(2), fixed="y")
    assert str(same) == "proved for these y: the two values are the same"
    assert not prove_same(lambda x, y: x + y * y, lambda x, y: x + y, TWO, np.ones(2))


def test_the_zeros_of_a_mask_stay_where_they_would_lie_on_a_kink():
    def masked(t, m):
        return np.maximum(t * m, 0).sum(), m * (t * m > 0)

    def wrong(t, m):
        return np.maximum(t * m, 0).sum(), m * (t > 0) / 2

    at = np.ones(2), np.array([0.0, 2.0])
    assert str(prove(masked, *at)).startswith("proved where the zeros of m stay 0")
    assert prove(wrong, *at).verdict == "refuted"

    def beside(t, m, y):
        value, grad = masked(t, m)
        return value + (y * t).sum(), grad + y * y

    found = prove(beside, *at, np.array([0.0, 1.0]), fixed="y")
    assert str(found).startswith("proved for these y where the zeros of m stay 0")
