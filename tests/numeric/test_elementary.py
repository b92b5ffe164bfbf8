"""elementary: exact to rounding up to 1e4, in both precisions, and complex-safe."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special

from bbb_numpy.numeric import elementary as numerics

EXTREMES = [-1e4, -800.0, -745.2, -700.0, -104.0, -87.0, -37.0, -30.0, 0.0, 30.0, 710.0, 1e4]
ANY = st.one_of(st.sampled_from(EXTREMES), st.floats(-1e4, 1e4), st.floats(-50.0, 50.0))
POSITIVE = st.floats(-30.0, 4.0).map(lambda exponent: 10.0**exponent)
DEGREES = st.one_of(st.floats(-3.0, 9.0).map(lambda exponent: 10.0**exponent), st.integers(1, 60))
COUNTS = st.one_of(st.integers(0, 200), st.integers(0, 10**7), st.floats(0, 1e15))


# --- against formulas with 80 digits, where nothing overflows


def parts(name):
    return lambda x: getattr(numerics.softplus_parts(x), name)


def mp_sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def mp_softplus(x):
    return mpmath.log1p(mpmath.exp(x))


def mp_half_step(nu):
    return mpmath.loggamma((nu + 1) / 2) - mpmath.loggamma(nu / 2) - mpmath.log(nu / 2) / 2


def mp_half_step_slope(nu):
    return nu / 2 * (mpmath.digamma((nu + 1) / 2) - mpmath.digamma(nu / 2)) - mpmath.mpf(1) / 2


def relative(ulps):
    return lambda x, right: ulps * abs(right)


def beside_1(ulps):
    """Where the value is a logarithm near 0, an error beside 1."""
    return lambda x, right: ulps * max(1, abs(right))


# the function, its formula, the arguments, and the largest error in units of rounding
EXACT = {
    "softplus": (parts("softplus"), mp_softplus, ANY, relative(4)),
    "sigmoid": (parts("sigmoid"), mp_sigmoid, ANY, relative(4)),
    "log softplus": (
        parts("log_softplus"), lambda x: mpmath.log(mp_softplus(x)), ANY, beside_1(4)),
    "ratio": (parts("ratio"), lambda x: mp_sigmoid(x) / mp_softplus(x), ANY, relative(4)),
    "logistic": (lambda x: numerics.logistic(x)[0], mp_sigmoid, ANY, relative(4)),
    "slope of it": (
        lambda x: numerics.logistic(x)[1], lambda x: mp_sigmoid(x) * mp_sigmoid(-x),
        ANY, relative(8)),
    "sech squared": (numerics.sech_squared, lambda x: mpmath.sech(x) ** 2, ANY, relative(8)),
    "inverse softplus": (
        numerics.inverse_softplus, lambda y: mpmath.log(mpmath.expm1(y)), POSITIVE, beside_1(4)),
    "erfc": (  # but for the rounding of the square
        numerics.erfc, mpmath.erfc, st.floats(-7.0, 26.0),
        lambda x, right: 2.5 * (1 + 2 * x * x) * abs(right)),
    "log factorial": (
        numerics.log_factorial, lambda y: mpmath.loggamma(y + 1), COUNTS, beside_1(90)),
    "half step": (
        lambda x: numerics.gamma_half_step(x).value, mp_half_step, DEGREES, beside_1(10)),
    "its slope": (
        lambda x: numerics.gamma_half_step(x).slope, mp_half_step_slope, DEGREES, relative(10)),
}  # fmt: skip


@pytest.mark.equation("K3", "K10", "K22", "K23", "K24", "K25", "D7", "D10", "D31", "D41", "D51")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EXACT)
@given(data=st.data())
def test_each_function_is_exact_to_rounding(name, dtype, data):
    # The second entry sends the array through the branches that the first does not need.
    function, formula, arguments, bar = EXACT[name]
    pair = np.array([data.draw(arguments), data.draw(arguments)], dtype)
    for value, argument in zip(function(pair), pair, strict=True):
        with mpmath.workdps(80):
            x = mpmath.mpf(float(argument))
            right = formula(x)
            info = np.finfo(value.dtype)
            error = abs(mpmath.mpf(float(value)) - right)
            assert error <= max(bar(x, right), 4 * float(info.tiny)) * float(info.eps)


@pytest.mark.equation("D7")
def test_the_series_of_log1p_has_the_digits_of_float32(monkeypatch):
    """From subnormal numbers to 1; softplus keeps its four units of rounding with it."""
    e = np.exp(np.linspace(-103.0, 0.0, 20_001)).astype(np.float32)
    e[:3] = 0.0, 1e-45, 1.0
    scratch = np.empty_like(e), np.empty_like(e)
    series = numerics._log1p_series(e, np.empty_like(e), scratch)
    exact = np.log1p(e.astype(float))
    assert (np.abs(series - exact) <= 3e-7 * exact + 3e-45).all()
    assert np.isnan(numerics._log1p_series(np.full(1, np.nan, "f"), e[:1], (e[1:2], e[2:3])))
    monkeypatch.setattr(numerics, "HAS_VECTOR_LOG1P", False)
    x = np.linspace(-110.0, 110.0, 20_001).astype(np.float32)
    ours = numerics.softplus_parts(x)
    exact = np.logaddexp(0.0, x.astype(float))
    tiny = np.finfo(np.float32).tiny
    assert (np.abs(ours.softplus - exact) <= 4 * 2.0**-23 * np.maximum(exact, tiny)).all()
    np.testing.assert_allclose(ours.log_softplus, np.log(exact), rtol=5e-7, atol=5e-7)
    np.testing.assert_allclose(ours.ratio, special.expit(x.astype(float)) / exact, rtol=1e-6)


@pytest.mark.parametrize("pair", [(-37.0, -745.2), (-37.5, 40.0), (1e4, -1e4)])
def test_at_the_edges_of_the_branches_too(pair):
    x = np.array(pair)
    with mpmath.workdps(80):
        sigma = [mp_softplus(mpmath.mpf(one)) for one in pair]
        right = np.array([[float(s), float(mpmath.log(s))] for s in sigma]).T
    found = numerics.softplus_parts(x)
    np.testing.assert_allclose([found.softplus, found.log_softplus], right, rtol=1e-15)
    assert np.isfinite(numerics.log_factorial(np.array([[1e300]])))
    assert numerics.erfc(np.array([9.3])) == pytest.approx(special.erfc([9.3]), rel=1e-13, abs=0)


@pytest.mark.equation("D31", "D41")
def test_both_series_have_their_bernoulli_numbers():
    # most digits of the last ones are below the rounding of any value
    bernoulli = special.bernoulli(14)
    terms = [bernoulli[2 * j] / (2 * j * (2 * j - 1)) for j in range(7, 0, -1)]
    assert pytest.approx(terms[1:], rel=1e-14) == numerics.STIRLING_SERIES
    halved = [term * (1 - 4**j) for j, term in zip(range(7, 0, -1), terms, strict=True)]
    assert pytest.approx(halved, rel=1e-14) == numerics.HALF_STEP_SERIES


# --- the complex step

# a function, its slope, from where to where, and the relative error
SLOPES = {
    "softplus": (numerics.softplus, numerics.sigmoid, -60, 60, 1e-14),
    "log softplus": (parts("log_softplus"), parts("ratio"), -60, 60, 1e-14),
    "sigmoid": (
        numerics.sigmoid, lambda x: numerics.sigmoid(x) * numerics.sigmoid(-x), -60, 60, 1e-14),
    "logistic": (
        lambda x: numerics.logistic(x)[0], lambda x: numerics.logistic(x)[1], -60, 60, 1e-14),
    "sech squared": (
        numerics.sech_squared, lambda x: -2 * np.tanh(x) * numerics.sech_squared(x),
        -300, 300, lambda x: 1e-13 + 1e-15 / np.maximum(np.abs(x), 1e-300)),
    "erfc": (
        numerics.erfc, lambda x: -2 / np.sqrt(np.pi) * np.exp(-x * x),
        -20, 20, lambda x: 1e-14 * (1 + x * x)),
    "log1p": (numerics.log1p, lambda x: 1 / (1 + x), -0.5, 10, 1e-14),
    "half step": (
        lambda x: numerics.gamma_half_step(x).value,
        lambda x: numerics.gamma_half_step(x).slope / x, 1e-3, 10, 1e-12),
    "log softmax": (
        lambda x: numerics.log_softmax(np.stack([x, 0 * x + 0.3], 1))[:, 0],
        lambda x: numerics.sigmoid(0.3 - x), -3, 3, 1e-13),
}  # fmt: skip


@pytest.mark.equation("K24", "D7", "D10", "D41", "D51")
@pytest.mark.parametrize("name", SLOPES)
@given(share=st.floats(0, 1), other=st.floats(0, 1))
@example(share=0.49, other=0.51)
@example(share=0.5, other=0.51)
def test_a_complex_step_through_each_function_gives_its_slope(name, share, other):
    function, slope, low, high, bar = SLOPES[name]
    x = low + (high - low) * np.array([share, other])  # of one sign, or of both
    stepped, expected = function(x + 1e-30j), slope(x)
    np.testing.assert_allclose(stepped.real, function(x), rtol=1e-13, atol=1e-15)
    error = np.abs(stepped.imag / 1e-30 - expected)
    assert (error <= (bar(x) if callable(bar) else bar) * np.abs(expected) + 1e-200).all()


@given(x=st.floats(-0.5, 10.0), y=st.floats(-1.0, 1.0))
def test_log1p_of_a_complex_number_keeps_the_digits_of_small_ones(x, y):
    z = np.array([1e-12 * complex(x, y), complex(x, y)])
    found = numerics.log1p(z)
    # log(1 + z) = z - z^2 / 2 to 36 digits for the first; polar form by hand for the second
    assert found[0] == pytest.approx(z[0] - z[0] ** 2 / 2, rel=1e-14, abs=1e-300)
    assert found[1] == pytest.approx(np.log(1 + z[1]), rel=1e-13, abs=1e-15)


# --- shapes, dtypes and limits


def test_plain_numbers_are_taken_and_shape_and_dtype_kept():
    assert numerics.softplus(0) == pytest.approx(np.log(2.0), rel=1e-15)
    assert numerics.sigmoid([0, 0]).tolist() == [0.5, 0.5]
    assert numerics.softplus([0, 1]).dtype == np.float64
    assert numerics.softplus(np.zeros(2, np.clongdouble)).dtype == np.complex128
    found = numerics.softplus(np.zeros((2, 3), np.float32))
    assert (found.dtype, found.shape) == (np.float32, (2, 3))
    assert numerics.softplus_parts(np.zeros(0)).ratio.size == 0
    assert numerics.gamma_half_step(np.ones(2, np.float32)).value.dtype == np.float32


@given(x=st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=6))
@example(x=[0.0, 1e4])
@example(x=[9999.3, 9999.1])
def test_logsumexp_and_log_softmax_are_those_of_scipy(x):
    rows = np.array([x, np.sin(x), x])
    assert numerics.logsumexp(rows) == pytest.approx(special.logsumexp(rows, axis=1), rel=1e-14)
    expected = special.log_softmax(rows, axis=1)
    for found in (numerics.log_softmax(rows), numerics.log_softmax(rows.T, 0).T):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("x", [-742.7, -744.9, -746.0, -4343.0])
def test_a_complex_step_where_softplus_is_subnormal_warns_of_nothing(x):
    parts = numerics.softplus_parts(np.array([x + 1e-31j, 424.0]))
    assert parts.ratio[0] == 1.0
    assert parts.log_softplus[0] == x + 1e-31j


def test_logsumexp_of_impossible_events_is_minus_infinity_not_nan():
    assert numerics.logsumexp(np.array([-np.inf, -np.inf])) == -np.inf
    assert numerics.logsumexp(np.array([[0.0, -np.inf]]), axis=1).tolist() == [0.0]


# --- sums


def test_inner_products_take_no_conjugate_and_make_one_number_of_each_row():
    a, b = np.array([[1.0 + 2.0j, 3.0]]), np.array([[2.0, 1.0j]])
    assert np.allclose(numerics.inner(a, b), [(1 + 2j) * 2 + 3j])
    assert np.allclose([numerics.inner(a.real, b), numerics.inner(b, a.real)], 2 + 3j)
    assert np.allclose(numerics.sums_of_squares(a), [(1 + 2j) ** 2 + 9])
    assert numerics.inner(np.ones((2, 3, 4)), np.ones((2, 3, 4))).tolist() == [[4.0] * 3] * 2
    assert numerics.inner(np.ones((2, 0)), np.ones((2, 0))).tolist() == [0.0, 0.0]
    assert numerics.inner(a[:, :1], a[:, :1]).tolist() == [(1 + 2j) ** 2]  # one column: a product
    column = np.arange(6.0).reshape(2, 3, 1)
    assert numerics.inner(column, column).tolist() == [[0.0, 1.0, 4.0], [9.0, 16.0, 25.0]]
    assert not np.shares_memory(numerics.inner(column, column), column)


@pytest.mark.parametrize("size", [3, numerics.CACHE_BLOCK, 2 * numerics.CACHE_BLOCK + 1])
@pytest.mark.parametrize("factor", [-2.0, np.array([[[0.5]], [[3.0]]])])
def test_a_multiple_of_an_array_is_added_whatever_the_size_of_the_blocks(size, factor):
    into, array = np.random.default_rng(0).standard_normal((2, 2, 1, size))
    expected = into + factor * array
    numerics.add_scaled(into, array, factor)
    np.testing.assert_array_equal(into, expected)


@pytest.mark.equation("D33")
def test_the_gradient_of_shared_numbers_is_a_sum_over_samples_that_of_own_numbers_is_not():
    cotangent, slopes = np.array([2.0, -1.0]), np.array([[1.0, 3.0, 5.0], [4.0, 7.0, 2.0]])
    shared, own = np.full(3, np.nan), np.full((2, 3), np.nan)
    numerics.write_gradient(shared, cotangent, slopes)
    numerics.write_gradient(own, cotangent, slopes)
    assert shared.tolist() == [-2.0, -1.0, 8.0]
    assert own.tolist() == [[2.0, 6.0, 10.0], [-4.0, -7.0, -2.0]]
    rows, each = cotangent[:, None] * [1.0, 3.0, 0.5], np.stack([slopes, slopes, 4 * slopes], 1)
    for into in (shared, own):  # S = 2 samples of three rows: 1 + 3 + 2 = 6 times the same
        expected = 6 * into
        numerics.write_gradient(into, rows, each)
        assert into.tolist() == expected.tolist()


@pytest.mark.parametrize("units", [(1e-9, 1e-9), (1e9, 1e9), (1e-9, 1e9), (0.0, 0.0)])
def test_a_covariance_is_symmetric_or_not_whatever_its_units(units):
    """Rounding of small correlations is none of its business, half of a correlation is."""
    scale = np.outer(units, units)
    assert numerics.symmetric(scale * np.array([[1.0, 1e-8], [3e-8, 1.0]]))
    for gap in (0.5, 2e-5):
        skew = scale * np.array([[1.0, 0.1 + gap], [0.1, 1.0]])
        assert numerics.symmetric(skew) == (not skew.any())


# --- normal numbers


@pytest.mark.parametrize("size", [1023, 1024, 100_001])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_numbers_fill_any_array_and_repeat_with_the_generator(dtype, size):
    first = numerics.standard_normal(np.random.default_rng(1), np.full((1, size), np.nan, dtype))
    again = numerics.standard_normal(np.random.default_rng(1), np.empty((1, size), dtype))
    assert np.isfinite(first).all()
    assert np.array_equal(first, again)
    assert len(np.unique(first)) > 0.99 * size


@pytest.mark.equation("K1", "D11")
@pytest.mark.parametrize(
    "half", [numerics.CACHE_BLOCK - 1, numerics.CACHE_BLOCK, numerics.CACHE_BLOCK + 1]
)
def test_every_pair_of_independent_uniform_numbers_is_transformed(half):
    z = numerics.standard_normal(np.random.default_rng(1), np.empty(2 * half, np.float32))
    u, v = np.split(np.random.default_rng(1).random(2 * half, np.float32).astype(float), 2)
    radius = np.sqrt(-2 * np.log(1 - u))
    expected = np.concatenate([radius * np.sin(2 * np.pi * v), radius * np.cos(2 * np.pi * v)])
    assert np.abs(z - expected).max() < 1e-5


def test_a_uniform_number_of_zero_gives_a_finite_normal_number():
    class Zeros:
        def random(self, dtype, out):
            out.fill(0.0)

    assert not numerics.standard_normal(Zeros(), np.empty(2048, np.float32)).any()


@pytest.mark.equation("D11")
def test_the_last_of_an_odd_count_is_normal_too():
    seeds, empty = range(400), np.empty(1025, np.float32)
    last = [numerics.standard_normal(np.random.default_rng(seed), empty)[-1] for seed in seeds]
    assert abs(np.mean(last)) < 4 / np.sqrt(400)
    assert abs(np.var(last) - 1) < 4 * np.sqrt(2 / 400)
