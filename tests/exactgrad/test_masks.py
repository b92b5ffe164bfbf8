"""A constant beyond what exp can hold, such as -1e9, masks an exponent; nothing else counts as 0.

The oracle of a right program is its twin with -inf. Wrong programs come first: whatever they hide
behind a large constant is refuted, or not proved.
"""

import time

import numpy as np
import pytest
from scipy import special

from exactgrad import prove, prove_same, stop_gradient

N_TOKENS = 4
RNG = np.random.default_rng(0)
TOKENS = RNG.standard_normal((3, N_TOKENS, 3))
UPSTREAM = RNG.standard_normal((N_TOKENS, 3))
LOWER = np.tri(N_TOKENS, dtype=bool)
TWO = np.array([0.7, -0.4])
COUNTS = "count as minus infinity in exponents"


# --- programs that would be fooled, or would fool


def written_over(t):
    scores = np.full(2, -1e30)
    view = scores[:1]
    view[...] = t[:1]
    scores[1:] = t[1:]
    return np.exp(scores).sum(), 2 * np.exp(t)


def softmax_beside(linear, d_linear):
    """A masked softmax whose mask's number is a weight too, with a gradient of that term."""

    def value_and_grad(t):
        e = np.exp(np.where([True, False], t, -1e9))
        return e.sum() + linear(t), np.array([1, 0]) * e + d_linear(t)

    return value_and_grad


def all_masked(mask):
    """The softmax of a row that is masked everywhere, with the gradient of a softmax."""

    def value_and_grad(t, u):
        s = mask(t)
        p = np.exp(s - s.max())
        p = p / p.sum()
        return (u * p).sum(), p * (u - (u * p).sum())

    return value_and_grad


WRONG = {  # function, data, verdict
    "a small number": (
        lambda t: (1e300 * np.exp(t - 800).sum(), 2e300 * np.exp(t - 800)), "refuted"),
    "a constant below the size of masks": (
        lambda t: (np.exp(t - 9999).sum(), 2 * np.exp(t - 9999)), "refuted"),
    "a constant that was large before it was scaled": (
        lambda t: (np.exp((t - 2e4) / 25).sum(), 2 * np.exp((t - 2e4) / 25)), "refuted"),
    "small data": (lambda t, d: (np.exp(t - d).sum(), 2 * np.exp(t - d)), "refuted", 2e4),
    "small theta": (
        lambda t, d: (np.exp(t - d * t**0).sum(), 2 * np.exp(t - d)), "refuted", 2e4),
    "a large number beside an unmasked one": (
        lambda t, d: (np.exp(t + d - 2e4).sum(), 2 * np.exp(t + d - 2e4)), "refuted", 1.9e4),
    "a steep well": (
        lambda t: (np.exp(-1e9 * (t[0] - t[1]) ** 2),
                   -1e9 * (t[0] - t[1]) * np.exp(-1e9 * (t[0] - t[1]) ** 2) * np.array([1, -1])),
        "refuted"),
    "a steep well at distance 1": (
        lambda t: (np.exp(-1e9 * (t[0] - t[1] - 0.1)),
                   np.exp(-1e9 * (t[0] - t[1] - 0.1)) * np.array([1, -1])), "refuted"),
    "a rate times data": (
        lambda t, d: ((t * np.exp(-1e9 * d)).sum(), 2 * np.exp(-1e9 * d) + 0 * t), "refuted", 0.5),
    "data over a constant": (
        lambda t, d: ((t * np.exp(-d / 1e-9)).sum(), 2 * np.exp(-d / 1e-9) + 0 * t), "refuted",
        0.5),
    "a difference of masks": (
        lambda t: (np.exp((t[0] - 1e9) - (t[1] - 1e9)),
                   2 * np.exp(t[0] - t[1]) * np.array([1, -1])), "refuted"),
    "there and back": (lambda t: (np.exp(t - 1e9 + 1e9).sum(), 2 * np.exp(t)), "refuted"),
    "a mask that is written over": (written_over, "refuted"),
    "a mask that is multiplied by 0": (
        lambda t: (np.exp((t - 1e9) * 0 + t).sum(), 2 * np.exp(t)), "refuted"),
    "a mask that theta scales": (
        lambda t: (np.exp(np.where([True, False], t, -1e9) * t[1] ** 2).sum(),
                   np.array([1, 1]) * np.exp(t * t[1] ** 2)), "refuted"),
    "a weight of the mask's size": (
        softmax_beside(lambda t: 1e9 * (t[0] - t[1]), lambda t: 1e9 * np.array([1, -2])),
        "refuted"),
    "a penalty of the mask's size": (
        softmax_beside(lambda t: 1e9 * (t**2).sum(), lambda t: 1e9 * t), "refuted"),
    "a constant that is added, and its gradient": (
        softmax_beside(lambda t: (t - 1e9).sum(), lambda t: np.array([1, 0])), "refuted"),
    "the masked score itself": (
        softmax_beside(lambda t: np.where([True, False], t, -1e9).sum(), lambda t: np.ones(2)),
        "refuted"),
    "log of a masked exponential": (
        lambda t: (np.log(np.exp(t - 1e9)).sum(), 0 * t), "not traceable"),
    "a quotient of masked ones": (
        lambda t: (np.exp(t[0] - 1e9) / np.exp(t[1] - 1e9), 0 * t), "not traceable"),
    "a row with -1e30 everywhere": (
        all_masked(lambda t: t - 1e30), "not traceable", np.array([0.3, 0.9])),
    "a row with finfo.min everywhere": (
        all_masked(lambda t: t + np.finfo(float).min), "not traceable", np.array([0.3, 0.9])),
    "a row of -1e9": (
        all_masked(lambda t: np.where([False, False], t, -1e9)), "refuted", np.array([0.3, 0.9])),
    "a softmax whose mask is soft": (
        lambda t, m: (np.exp(t - 1e9 * m).sum(), np.array([1, 2]) * np.exp(t - 1e9 * m)), "refuted",
        np.array([0.5, 1e-9])),
    "a mask that is not in the gradient": (
        lambda t: (np.exp(np.where([True, False], t, -1e9)).sum(), np.exp(t)), "refuted"),
    "a sigmoid that is not masked": (
        lambda t: (special.expit(t - 800).sum(), 2 * special.expit(t - 800)), "refuted"),
    "infinity by overflow": (
        lambda t: (np.exp(-1e300 * np.exp(t + 9)).sum(), 0 * t), "not proved"),
}  # fmt: skip


# quotients and sums of exponentials that are all 0 in floats, of which some are masked
ALL_ZERO = {
    "a share": (lambda t: np.exp(t[0] - 1e4) / np.exp(t - [1e4, 9999]).sum(), lambda t: 0 * t),
    "a logarithm": (lambda t: np.log(np.exp(t - [1e4, 9999]).sum()), lambda t: np.array([0, 1])),
    "a share after a shift": (
        lambda t: np.exp(t[0] - 1e4 + 3e3) / np.exp(t - [1e4, 9999] + 3e3).sum(), lambda t: 0 * t),
    "a share by select": (
        lambda t: np.where(np.exp(t - [1e4, 9999]).sum() > 0,
                           np.exp(t[0] - 1e4) / np.exp(t - [1e4, 9999]).sum(), 0.0),
        lambda t: 0 * t),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL_ZERO)
def test_nothing_is_proved_of_what_is_left_where_everything_underflows(name):
    value, gradient = ALL_ZERO[name]
    with np.errstate(invalid="ignore", divide="ignore"):
        proof = prove(lambda t: (value(t), gradient(t)), TWO)
        assert proof.verdict == "not traceable"
        assert not prove_same(value, lambda t: 0 * t.sum(), TWO)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_gradient_is_not_hidden_by_a_large_constant(name):
    function, verdict, *data = WRONG[name]
    proof = prove(function, TWO, *data)
    assert proof.verdict == verdict
    assert COUNTS not in proof.reason


EXACT = {  # the same constants where they mask nothing
    "a weight": lambda t: (1e30 * (t[0] - t[1]), 1e30 * np.array([1, -1])),
    "a penalty": lambda t: (1e9 * ((t - 3e5) ** 2).sum(), 2e9 * (t - 3e5)),
    "a unit": lambda t: (np.exp(t * 1e9 / 1e9 - 1).sum(), np.exp(t - 1)),
    "a small number": lambda t: (1e300 * np.exp(t - 800).sum(), 1e300 * np.exp(t - 800)),
    "a steep well": lambda t: (np.exp(-1e9 * t**2).sum(), -2e9 * t * np.exp(-1e9 * t**2)),
    "there and back": lambda t: (np.exp(t - 1e5 + 1e5).sum(), np.exp(t)),
    "a difference": lambda t: (np.exp((t - 2e4) - (t.sum() - 2e4)).sum(),
                               np.exp(t - t.sum()) - np.exp(t - t.sum()).sum()),
    "bounds": lambda t: (np.exp(np.clip(t, -1e9, 1e9)).sum(), np.exp(t)),
    "a row with 1e4 everywhere": lambda t: all_masked(lambda s: s - 1e4)(t, np.array([0.5, 2])),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_a_large_constant_that_masks_nothing_is_exact(name):
    proof = prove(EXACT[name], TWO)
    assert proof.verdict == "proved"
    assert COUNTS not in proof.reason


# --- causal attention, in the spellings of programs


def by_where(constant):
    return lambda s: np.where(LOWER, s, constant)


def written_into_full(s):
    out = np.full(s.shape, -1e30)
    out[LOWER] = s[LOWER]
    return out


def filled(s):
    out = s.copy()
    out[~LOWER] = np.finfo(s.dtype).min
    return out


MASKS = {
    "where -1e9": by_where(-1e9),
    "where -1e30": by_where(-1e30),
    "where -1e4": by_where(-1e4),
    "where -1e4, scaled": lambda s: np.where(LOWER, s, -1e4) / 4 * 2,
    "where -10**9": by_where(-(10**9)),
    "finfo(float64).min": by_where(np.finfo(np.float64).min),
    "finfo(float32).min": by_where(np.finfo(np.float32).min),
    "added": lambda s: s + (1 - LOWER.astype(int)) * -1e9,
    "added, float mask": lambda s: s + (1.0 - np.tri(N_TOKENS)) * -10000.0,
    "subtracted": lambda s: s - 1e30 * (1 - np.tri(N_TOKENS)),
    "a matrix of masks": lambda s: s + np.triu(np.full(s.shape, -1e9), 1),
    "written into full": written_into_full,
    "masked_fill": filled,
    "a distance": lambda s: -(np.where(LOWER, 0, 1e9) - s),
    "scaled": lambda s: np.where(LOWER, s, -1e9) / 4 * 2,
}


def attention(mask, factor=1):
    """Causal attention; with a `factor` other than 1 the gradient by the scores is wrong."""

    def value_and_grad(theta, upstream):
        q, k, v = theta
        scores = mask(q @ k.T)
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p = p / p.sum(axis=1, keepdims=True)
        dp = upstream @ v.T
        ds = p * (dp - (p * dp).sum(axis=1, keepdims=True)) * factor
        grad = np.stack([ds @ k, ds.T @ q, p.T @ upstream])
        return (upstream * (p @ v)).sum(), grad

    return value_and_grad


@pytest.mark.parametrize("name", MASKS)
def test_a_masked_attention_is_proved_as_with_infinity_and_its_wrong_twin_refuted(name):
    factor = 0.5 if name.endswith("scaled") else 1
    proof = prove(attention(MASKS[name], factor), TOKENS, UPSTREAM)
    assert proof.verdict == "proved"
    assert COUNTS in str(proof)
    start = time.process_time()
    assert prove(attention(MASKS[name], 1.5), TOKENS, UPSTREAM).verdict == "refuted"
    assert time.process_time() - start < 5


def test_minus_infinity_itself_is_not_mentioned():
    proof = prove(attention(by_where(-np.inf)), TOKENS, UPSTREAM)
    assert proof.verdict == "proved"
    assert COUNTS not in str(proof)


def test_the_verdict_names_the_largest_mask():
    def two_masks(t):
        e = np.exp(np.array([t[0], t[1] - 1e30, -2.5e5]))
        return e.sum(), e[:2]

    assert str(prove(two_masks, TWO)) == (
        f"proved: all 2 derivatives are exact; constants of -250000 and below {COUNTS}"
    )


def with_data(t, keep):
    p = np.exp(t + (1 - keep) * -1e9)
    value = np.log(p.sum())
    return value, p / p.sum()


def test_masks_that_are_data_may_be_floats_integers_or_bools():
    for keep in (np.array([1.0, 0.0]), np.array([1, 0])):
        proof = prove(with_data, TWO, keep)
        assert proof.verdict == "proved"
        assert COUNTS in proof.reason

    def added(t, mask):
        p = np.exp(t + mask)
        return np.log(p.sum()), p / p.sum()

    mask = np.array([0.0, -1e9])
    assert prove(added, TWO, mask).reason == ""  # data are free, and no constants
    assert COUNTS in prove(added, TWO, mask, fixed="mask").reason


def flash_attention(start, window=None, wrong=False):
    """Attention of one query block by block: running maximum, sum and mean, from `start` on."""

    def value_and_grad(theta, upstream):
        q, keys, values = theta[0, 0], theta[1], theta[2]
        m, total, mean = start, 0.0, np.zeros(3)
        for k in range(0, 4, 2):
            s = keys[k : k + 2] @ q
            if window is not None:
                s = np.where(window[k : k + 2], s, -1e9)
            m_new = np.maximum(m, s.max())
            p = np.exp(s - m_new)
            decay = np.exp(m - m_new)
            total = decay * total + p.sum()
            mean = decay * mean + p @ values[k : k + 2]
            m = m_new
        mean = mean / total
        s = keys @ q
        if window is not None:
            s = np.where(window, s, -1e9)
        p = np.exp(s - m) / total
        dp = values @ upstream
        ds = p * (dp - (0 if wrong else mean @ upstream))
        grad = np.zeros_like(theta)
        grad[0, 0] = ds @ keys
        grad[1] = ds[:, None] * q
        grad[2] = p[:, None] * upstream
        return mean @ upstream, grad

    return value_and_grad


@pytest.mark.parametrize("start", [-1e9, -1e30, np.finfo(float).min, -np.inf])
@pytest.mark.parametrize("window", [None, np.arange(4) >= 2])
def test_a_running_maximum_may_start_at_a_mask(start, window):
    if start == -np.inf and window is not None:
        start = -1e30
    assert prove(flash_attention(start, window), TOKENS, UPSTREAM[0])
    proof = prove(flash_attention(start, window, wrong=True), TOKENS, UPSTREAM[0])
    assert proof.verdict == "refuted"


def test_a_masked_sigmoid_and_a_masked_logaddexp_are_0():
    def gate(t):
        p = special.expit(np.where([True, False], t, -1e9))
        return p.sum(), p * (1 - p)

    def soft_maximum(t):
        return np.logaddexp(t[0], t[1] - 1e9), np.array([1, 0])

    for function in (gate, soft_maximum):
        assert COUNTS in prove(function, TWO).reason


def test_a_mask_in_two_functions_that_are_the_same_is_mentioned():
    def masked(t):
        return np.exp(np.where([True, False], t, -1e9)).sum()

    proof = prove_same(masked, lambda t: np.exp(t[0]), TWO)
    assert proof.verdict == "proved"
    assert COUNTS in proof.reason
    assert prove_same(masked, lambda t: np.exp(t).sum(), TWO).verdict == "refuted"


def test_a_constant_copy_is_still_a_mask():
    def masked(t):
        e = np.exp(stop_gradient(np.where([True, False], t, -1e9)) + t)
        return e.sum(), e

    assert COUNTS in prove(masked, TWO).reason
