"""Programs as people write them by hand: each is proved, and with an error planted refuted."""

import numpy as np
import pytest
from numpy.lib import stride_tricks
from numpy.lib.stride_tricks import as_strided

from exactgrad import prove

RNG = np.random.default_rng(0)
# How a program may come by the windows of images x (N, C, H, W), of a shape (N, C, h, w, i, j)
WINDOWS = {
    "by the name of the module": lambda x, shape: np.lib.stride_tricks.as_strided(
        x, shape, x.strides + x.strides[2:]
    ),
    "by an imported module": lambda x, shape: stride_tricks.as_strided(
        x, shape=shape, strides=(*x.strides, x.strides[2], x.itemsize)
    ),
    "by an imported function": lambda x, shape: as_strided(
        x, shape, (*x.strides, *x.strides[-2:]), writeable=False
    ),
    "by sliding windows": lambda x, shape: stride_tricks.sliding_window_view(
        x, shape[-2:], axis=(2, 3)
    ),
}


def convolution(windows_of, planted=""):
    """Return value and gradient of half the squares of a convolution, by im2col and col2im."""

    def value_and_grad(theta):
        x, w, b = theta["x"], theta["w"], theta["b"]
        (n, c, height, width), (_, _, i, j) = x.shape, w.shape
        h, v = height - i + 1, width - j + 1
        windows = windows_of(x, (n, c, h, v, i, j))
        y = np.einsum("nchwij,kcij->nkhw", windows, w) + b[:, None, None]
        d_windows = np.einsum("nkhw,kcij->nchwij", y, w)
        d_x = np.zeros_like(x)
        for p in range(i):
            for q in range(j):
                if planted == "windows that overlap are not added":
                    d_x[:, :, p : p + h, q : q + v] = d_windows[..., p, q]
                else:
                    d_x[:, :, p : p + h, q : q + v] += d_windows[..., p, q]
        d_w = np.einsum("nkhw,nchwij->kcij", y, windows)
        if planted == "a kernel that is turned":
            d_w = d_w[:, :, ::-1, ::-1]
        return (y**2).sum() / 2, {"x": d_x, "w": d_w, "b": y.sum((0, 2, 3))}

    return value_and_grad


IMAGES = {
    "x": RNG.standard_normal((2, 1, 3, 4)),
    "w": RNG.standard_normal((2, 1, 2, 2)),
    "b": RNG.standard_normal(2),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_convolution_by_windows_of_the_images_is_proved(name):
    assert prove(convolution(WINDOWS[name]), IMAGES)


@pytest.mark.parametrize(
    "planted", ["windows that overlap are not added", "a kernel that is turned"]
)
def test_a_wrong_gradient_of_a_convolution_by_windows_is_refuted(planted):
    program = convolution(WINDOWS["by an imported function"], planted)
    assert prove(program, IMAGES).verdict == "refuted"


def test_numpys_own_function_takes_floats_during_a_proof():
    data = np.arange(4.0)

    def moving_averages(t):
        pairs = as_strided(data.copy(), (3, 2), (8, 8)).sum(1)
        return pairs @ t, pairs

    assert prove(moving_averages, np.ones(3))


# --- soft dynamic time warping, of Cuturi and Blondel (2017), algorithms 1 and 2


def shifted_soft_minimum(costs, gamma):
    largest = np.max(-costs / gamma)
    return -gamma * (np.log(np.sum(np.exp(-costs / gamma - largest))) + largest)


def soft_minimum(costs, gamma):
    return -gamma * np.log(np.sum(np.exp(-costs / gamma)))


def soft_dtw(soft_minimum, planted=""):
    """Return value and gradient of the discrepancy of two series, by x."""

    def value_and_grad(x, y, gamma):
        m, n = len(x), len(y)
        d, r, e = (np.zeros((m + 2, n + 2)) for _ in range(3))
        d[1:-1, 1:-1] = ((x[:, None] - y) ** 2).sum(-1)
        r[0, 1:] = r[1:, 0] = np.inf
        for i in range(1, m + 1):
            for j in range(1, n + 1):
                before = np.array([r[i - 1, j - 1], r[i - 1, j], r[i, j - 1]])
                r[i, j] = d[i, j] + soft_minimum(before, gamma)
        value = r[m, n]
        r[:, -1] = r[-1] = np.inf if planted == "a border of the other sign" else -np.inf
        r[-1, -1], e[-1, -1] = value, 1
        for j in range(n, 0, -1):
            for i in range(m, 0, -1):
                down, right, both = (
                    np.exp((r[p, q] - r[i, j] - d[p, q]) / gamma)
                    for p, q in ((i + 1, j), (i, j + 1), (i + 1, j + 1))
                )
                if planted == "two steps exchanged":
                    down, right = right, down
                if planted == "no step along the diagonal":
                    both = 0 * both
                if planted == "the cost of the cell itself":
                    down = np.exp((r[i + 1, j] - r[i, j] - d[i, j]) / gamma)
                if planted == "no temperature":
                    down = np.exp(r[i + 1, j] - r[i, j] - d[i + 1, j])
                e[i, j] = e[i + 1, j] * down + e[i, j + 1] * right + e[i + 1, j + 1] * both
        return value, 2 * (e[1:-1, 1:-1, None] * (x[:, None] - y)).sum(1)

    return value_and_grad


def dtw(planted=""):
    """Return value and gradient of dynamic time warping, along the path of the hard minima."""

    def value_and_grad(x, y):
        m, n = len(x), len(y)
        r, steps = np.full((m + 1, n + 1), np.inf), {}
        r[0, 0] = 0
        for i in range(1, m + 1):
            for j in range(1, n + 1):
                before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
                steps[i, j] = before[int(np.argmin(np.array([r[at] for at in before])))]
                r[i, j] = (x[i - 1] - y[j - 1]) ** 2 + r[steps[i, j]]
        d_x, at = np.zeros(m), (m, n)
        while at in steps:
            i, j = at
            d_x[i - 1] += 2 * (x[i - 1] - y[j - 1])
            at = (i - 1, j - 1) if planted == "the diagonal alone" else steps[at]
        if planted == "the border counts":
            d_x += np.exp(-r[0, 1:2])
        return r[m, n], d_x + (1 / r[0, 1] if planted == "one over the border" else 0)

    return value_and_grad


STEPS = np.array([0.3, 1.1, -0.4, 0.9]), np.array([0.2, 1.3, 1.0, -0.7, 0.6])


def test_dynamic_time_warping_is_proved_and_by_another_path_refuted():
    assert prove(dtw(), *STEPS)
    assert prove(dtw("the diagonal alone"), *STEPS).verdict == "refuted"


def test_the_infinite_border_of_a_table_may_stand_in_a_gradient_where_it_is_0():
    assert prove(dtw("the border counts"), *STEPS)  # e^-inf
    assert not prove(dtw("one over the border"), *STEPS)  # right in the limit, which is not known


SERIES = RNG.standard_normal((4, 2)), RNG.standard_normal((3, 2)), 0.3


@pytest.mark.parametrize("minimum", [shifted_soft_minimum, soft_minimum])
def test_soft_dynamic_time_warping_is_proved(minimum):
    assert prove(soft_dtw(minimum), *SERIES, n_points=2)


@pytest.mark.slow
@pytest.mark.parametrize("minimum", [shifted_soft_minimum, soft_minimum])
def test_soft_dynamic_time_warping_of_longer_series_is_proved(minimum):
    series = RNG.standard_normal((9, 2)), RNG.standard_normal((8, 2)), 0.3
    assert prove(soft_dtw(minimum), *series)


@pytest.mark.parametrize(
    ("planted", "verdict"),
    [
        ("two steps exchanged", "refuted"),
        ("a border of the other sign", "not proved"),
        *(
            pytest.param(planted, "refuted", marks=pytest.mark.slow)
            for planted in (
                "no step along the diagonal",
                "the cost of the cell itself",
                "no temperature",
            )
        ),
    ],
)
def test_a_wrong_gradient_of_soft_dynamic_time_warping_is_not_proved(planted, verdict):
    assert prove(soft_dtw(soft_minimum, planted), *SERIES).verdict == verdict
