"""elementary: exact to rounding up to 1e4, in both precisions, and complex-safe."""

from decimal import Decimal, localcontext
from math import lgamma
from statistics import NormalDist

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special

from bbb_numpy.numeric import elementary as numerics

EXTREMES = [-1e4, -800.0, -745.2, -700.0, -104.0, -87.0, -37.0, -30.0, 0.0, 30.0, 710.0, 1e4]
arguments = st.one_of(st.sampled_from(EXTREMES), st.floats(-1e4, 1e4), st.floats(-50.0, 50.0))


def exact(name, x):
    """The textbook formula in 80-digit decimal arithmetic, where nothing overflows."""
    with localcontext() as context:
        context.prec = 80
        context.Emin, context.Emax = -999_999, 999_999
        growth = Decimal(x).exp()
        # log(1 + g) loses g itself when g < 1e-80: there it is g - g^2/2 to 80 digits
        sp = (1 + growth).ln() if growth > Decimal("1e-40") else growth * (1 - growth / 2)
        s = growth / (1 + growth)
        return {
            "softplus": sp,
            "sigmoid": s,
            "log_softplus": sp.ln(),
            "ratio": s / sp,
        }[name]


def ulps(measured, reference, dtype):
    """Distance in units of the last place of the reference (subnormals: of the smallest)."""
    info = np.finfo(dtype)
    unit = max(abs(float(reference)) * float(info.eps), float(info.smallest_subnormal))
    if abs(float(reference)) < float(info.tiny):
        unit = float(info.tiny) * float(info.eps)
    return abs(float(Decimal(float(measured)) - reference)) / unit


@pytest.mark.equation("K3", "K10", "K22", "K23", "K24", "K25", "D7")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", numerics.SoftplusParts._fields)
@given(x=arguments, other=arguments)
@example(x=-37.0, other=-745.2)
@example(x=-37.5, other=40.0)
@example(x=1e4, other=-1e4)
def test_softplus_family_is_exact_to_rounding(name, dtype, x, other):
    # The second entry sends the array through the branches that the first does not need.
    pair = np.array([x, other], dtype)
    parts = numerics.softplus_parts(pair)
    for value, argument in zip(getattr(parts, name), pair, strict=True):
        reference = exact(name, float(argument))
        if name == "log_softplus" and abs(reference) < 1:
            # near sigma = 1 the logarithm is the relative error of sigma itself: absolute ulps
            assert abs(Decimal(float(value)) - reference) <= 4 * Decimal(float(np.finfo(dtype).eps))
        else:
            assert ulps(value, reference, dtype) <= 4


@pytest.mark.equation("D7")
@pytest.mark.parametrize(
    ("dtype", "points"), [(np.float64, [-37.0, -745.2, -1e4]), (np.float32, [-18.0, -104.0, -1e4])]
)
def test_slope_over_sigma_tends_to_one_where_the_naive_form_breaks(dtype, points):
    x = np.array(points, dtype)
    ratio = numerics.softplus_parts(x).ratio
    with np.errstate(all="ignore"):
        naive = (1 / (1 + np.exp(-x))) / np.log(1 + np.exp(x))
    assert np.array_equal(ratio, np.ones_like(x))
    assert not np.isfinite(naive).any()


@pytest.mark.equation("K24", "D7")
@given(x=st.floats(-60.0, 60.0), other=st.floats(-60.0, 60.0))
@example(x=-1.0, other=1.0)
def test_complex_step_through_softplus_gives_the_sigmoid(x, other):
    h = 1e-30
    z = numerics.softplus_parts(np.array([x, other]) + 1j * h)  # of one sign, or of both
    real = numerics.softplus_parts(np.array([x, other]))
    assert np.allclose(z.softplus.imag / h, real.sigmoid, rtol=1e-14, atol=0)
    assert np.allclose(z.log_softplus.imag / h, real.ratio, rtol=1e-14, atol=0)
    slope = real.sigmoid * numerics.sigmoid([-x, -other])  # s' = s (1 - s)
    assert np.allclose(z.sigmoid.imag / h, slope, rtol=1e-14, atol=1e-300)


@pytest.mark.equation("D10")
@given(x=st.floats(-300.0, 300.0))
def test_the_slope_of_tanh_is_exact_where_one_minus_tanh_squared_is_zero(x):
    slope = numerics.sech_squared(np.array([x]))[0]
    with localcontext() as context:
        context.prec = 400
        cosh = (Decimal(x).exp() + Decimal(-x).exp()) / 2
        assert ulps(slope, 1 / cosh**2, np.float64) <= 8


@pytest.mark.equation("D10")
@given(x=st.floats(-300.0, 300.0))
def test_complex_step_through_the_slope_of_tanh_gives_its_second_derivative(x):
    stepped, real = (numerics.sech_squared(np.array([at]))[0] for at in (x + 1e-30j, x))
    assert stepped.real == pytest.approx(real, rel=1e-14, abs=0)
    second = -2 * np.tanh(x) * real
    assert stepped.imag / 1e-30 == pytest.approx(second, rel=1e-13, abs=1e-15 * real)


@pytest.mark.equation("D51")
@given(x=st.floats(-7.0, 26.0), other=st.floats(-7.0, 26.0))
@example(x=0.0, other=2 * np.pi)
@example(x=6.2831, other=6.2832)
def test_erfc_is_exact_to_the_rounding_of_the_square(x, other):
    at = np.array([x, other])
    with mpmath.workdps(30):
        right = np.array([float(mpmath.erfc(mpmath.mpf(one))) for one in (x, other)])
    assert np.all(np.abs(numerics.erfc(at) - right) <= 5e-16 * (1 + 2 * at**2) * right)
    single = at.astype(np.float32)
    found, right = numerics.erfc(single), special.erfc(single.astype(float))
    assert found.dtype == np.float32
    assert np.all(np.abs(found - right) <= 3e-7 * (1 + 2 * at**2) * right + 1e-45)


@pytest.mark.equation("D51")
@given(x=st.floats(-20.0, 20.0))
def test_complex_step_through_erfc_gives_the_normal_density(x):
    stepped = numerics.erfc(np.array([x + 1e-30j]))[0]
    slope = -2 / np.sqrt(np.pi) * np.exp(-x * x)
    assert stepped.imag / 1e-30 == pytest.approx(slope, rel=1e-14 * (1 + x * x), abs=1e-200)


@pytest.mark.equation("D51", "K24")
@given(x=arguments, other=arguments)
def test_the_logistic_function_and_its_slope_are_exact_to_rounding(x, other):
    s, slope = numerics.logistic(np.array([x, other]))
    for at, value, rate in zip((x, other), s, slope, strict=True):
        assert ulps(value, exact("sigmoid", at), np.float64) <= 4
        assert ulps(rate, exact("sigmoid", at) * exact("sigmoid", -at), np.float64) <= 8


def test_softplus_and_sigmoid_take_plain_numbers_and_keep_shape_and_dtype():
    assert numerics.softplus(0) == pytest.approx(np.log(2.0), rel=1e-15)
    assert numerics.sigmoid([0, 0]).tolist() == [0.5, 0.5]
    assert numerics.softplus([0, 1]).dtype == np.float64
    assert numerics.softplus(np.zeros(2, np.clongdouble)).dtype == np.complex128
    x = np.zeros((2, 3), np.float32)
    assert numerics.softplus(x).dtype == np.float32
    assert numerics.softplus(x).shape == (2, 3)
    assert numerics.softplus_parts(np.zeros(0)).ratio.size == 0


@given(x=st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=6))
@example(x=[0.0, 1e4])
def test_logsumexp_and_log_softmax_are_those_of_scipy(x):
    assert numerics.logsumexp(np.array(x)) == pytest.approx(special.logsumexp(x), rel=1e-14)
    found = numerics.log_softmax(np.array(x))
    np.testing.assert_allclose(found, special.log_softmax(x), rtol=1e-13, atol=1e-15)


def test_logsumexp_of_impossible_events_is_minus_infinity_not_nan():
    assert numerics.logsumexp(np.array([-np.inf, -np.inf])) == -np.inf
    assert numerics.logsumexp(np.array([[0.0, -np.inf]]), axis=1).tolist() == [0.0]


def test_complex_step_through_log_softmax_gives_one_minus_the_probability():
    x = np.array([0.3, -1.2, 2.0], complex)
    x[1] += 1e-30j
    p = np.exp(numerics.log_softmax(x.real))
    expected = np.array([0.0, 1.0, 0.0]) - p[1]
    assert np.allclose(numerics.log_softmax(x).imag / 1e-30, expected, rtol=1e-14)


@pytest.mark.parametrize("size", [1023, 1024, 100_001])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_numbers_fill_any_array_and_repeat_with_the_generator(dtype, size):
    first = numerics.standard_normal(np.random.default_rng(1), np.full((1, size), np.nan, dtype))
    again = numerics.standard_normal(np.random.default_rng(1), np.empty((1, size), dtype))
    assert first.dtype == dtype
    assert np.isfinite(first).all()
    assert np.array_equal(first, again)
    assert len(np.unique(first)) > 0.99 * size


@pytest.mark.equation("K1", "D11")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_numbers_have_the_distribution_of_n_0_1(dtype):
    count = 2_000_000
    z = numerics.standard_normal(np.random.default_rng(2), np.empty(count, dtype)).astype(float)
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs((z**power).mean() - moment) < 4 * np.sqrt(variance / count)
    # Kolmogorov and Smirnov: sqrt(N) times the largest gap of the distribution functions
    # exceeds 1.95 with probability 1e-3
    grid = np.linspace(-4.5, 4.5, 901)
    normal = np.array([NormalDist().cdf(point) for point in grid])
    gap = np.abs(np.searchsorted(np.sort(z), grid) / count - normal).max()
    assert np.sqrt(count) * gap < 1.95
    for bound in (3.0, 4.0, 4.5):
        expected = 2 * NormalDist().cdf(-bound) * count
        assert abs((np.abs(z) > bound).sum() - expected) < 4 * np.sqrt(expected)


@pytest.mark.equation("D11")
def test_the_cosine_and_the_sine_half_are_independent():
    z = numerics.standard_normal(np.random.default_rng(3), np.empty(1_000_000, np.float32))
    a, b = z[:500_000].astype(float), z[500_000:].astype(float)
    for f, g in ((a, b), (a**2, b**2), (a, b**2), (np.abs(a) > 2, np.abs(b) > 2)):
        correlation = np.corrcoef(f, g)[0, 1]
        assert abs(correlation) < 4 / np.sqrt(len(a))
    neighbours = np.corrcoef(z[:-1], z[1:])[0, 1]
    assert abs(neighbours) < 4 / np.sqrt(len(z))


def test_sums_of_squares_takes_no_conjugate():
    a = np.array([[1.0 + 2.0j, 3.0], [0.0, 1.0j]])
    assert np.allclose(numerics.sums_of_squares(a), [(1 + 2j) ** 2 + 9, -1])
    assert numerics.sums_of_squares(np.ones((3, 0))).tolist() == [0, 0, 0]


@pytest.mark.equation("D31")
@given(y=st.one_of(st.integers(0, 10**7), st.integers(0, 200), st.floats(0, 1e15)))
@example(y=0)
@example(y=1)
@example(y=2)
def test_log_factorial_is_log_gamma_of_one_more(y):
    found = numerics.log_factorial(np.array([y]))[0]
    # log 0! = log 1! = 0 exactly in theory: there the error is absolute
    assert found == pytest.approx(lgamma(y + 1), rel=1e-13, abs=2e-14)


@pytest.mark.equation("D31")
def test_log_factorials_of_whole_numbers_are_sums_of_logarithms():
    counts = np.arange(400).reshape(20, 20)
    expected = np.cumsum(np.log(np.maximum(counts, 1))).reshape(20, 20)
    assert np.allclose(numerics.log_factorial(counts), expected, rtol=1e-13, atol=2e-14)
    assert np.isfinite(numerics.log_factorial(np.array([1e300])))
    assert numerics.log_factorial(np.zeros(0)).size == 0


@pytest.mark.equation("D31")
def test_stirlings_series_has_its_bernoulli_numbers():
    # most digits of the last ones are below the rounding of any value from z = 9 on
    bernoulli = special.bernoulli(12)
    expected = [bernoulli[2 * j] / (2 * j * (2 * j - 1)) for j in range(6, 0, -1)]
    assert pytest.approx(expected, rel=1e-14) == numerics.STIRLING_SERIES


@pytest.mark.equation("K3")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(exponent=st.floats(-30, 4))
def test_inverse_softplus_gives_the_x_whose_softplus_it_was(dtype, exponent):
    y = np.array([10.0**exponent], dtype)
    x = numerics.inverse_softplus(y)
    assert x.dtype == dtype
    assert numerics.softplus(x)[0] == pytest.approx(
        float(y[0]), rel=1e2 * float(np.finfo(dtype).eps)
    )


def test_inverse_softplus_neither_overflows_nor_cancels():
    assert numerics.inverse_softplus([1e4, 710.0]).tolist() == [1e4, 710.0]
    assert numerics.inverse_softplus(1e-300) == pytest.approx(-300 * np.log(10), rel=1e-14)
    assert numerics.inverse_softplus([np.log(2.0)]) == pytest.approx(0.0, abs=1e-15)


@given(x=st.floats(-0.5, 10.0), y=st.floats(-1.0, 1.0))
def test_log1p_of_a_complex_number_keeps_the_digits_of_small_ones(x, y):
    z = np.array([1e-12 * complex(x, y), complex(x, y)])
    found = numerics.log1p(z)
    # log(1 + z) = z - z^2 / 2 to 36 digits for the first; polar form by hand for the second
    assert found[0] == pytest.approx(z[0] - z[0] ** 2 / 2, rel=1e-14, abs=1e-300)
    assert found[1] == pytest.approx(np.log(1 + z[1]), rel=1e-13, abs=1e-15)
    stepped = numerics.log1p(np.array([x + 1e-30j]))
    assert stepped[0].imag / 1e-30 == pytest.approx(1 / (1 + x), rel=1e-14)


def test_inner_products_take_no_conjugate_and_make_one_number_of_each_row():
    a, b = np.array([[1.0 + 2.0j, 3.0]]), np.array([[2.0, 1.0j]])
    assert np.allclose(numerics.inner(a, b), [(1 + 2j) * 2 + 3j])
    assert np.allclose(numerics.inner(a.real, b), [2 + 3j])
    assert numerics.inner(np.ones((2, 3, 4)), np.ones((2, 3, 4))).tolist() == [[4.0] * 3] * 2
    assert numerics.inner(np.ones((2, 0)), np.ones((2, 0))).tolist() == [0.0, 0.0]
    assert numerics.inner(a[:, :1], a[:, :1]).tolist() == [(1 + 2j) ** 2]  # one column: a product
    column = np.arange(6.0).reshape(2, 3, 1)
    assert numerics.inner(column, column).tolist() == [[0.0, 1.0, 4.0], [9.0, 16.0, 25.0]]
    assert not np.shares_memory(numerics.inner(column, column), column)


@pytest.mark.parametrize("size", [3, numerics.BLOCK, 2 * numerics.BLOCK + 1])
@pytest.mark.parametrize("factor", [-2.0, np.array([[0.5], [3.0]])])
def test_a_multiple_of_an_array_is_added_whatever_the_size_of_the_blocks(size, factor):
    into, array = np.random.default_rng(0).standard_normal((2, 2, size))
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


@pytest.mark.equation("D11")
@pytest.mark.parametrize("half", [numerics.BLOCK - 1, numerics.BLOCK, numerics.BLOCK + 1])
def test_every_pair_is_transformed_whatever_the_size_of_the_blocks(half):
    z = numerics.standard_normal(np.random.default_rng(1), np.empty(2 * half, np.float32))
    u, v = np.split(np.random.default_rng(1).random(2 * half, np.float32).astype(float), 2)
    radius = np.sqrt(-2 * np.log(1 - u))
    expected = np.concatenate([radius * np.sin(2 * np.pi * v), radius * np.cos(2 * np.pi * v)])
    assert np.abs(z - expected).max() < 1e-5


def exact_half_step(nu):
    """g(nu) and nu g'(nu) in 60 digits."""
    with mpmath.workdps(60):
        half = mpmath.mpf(nu) / 2
        value = mpmath.loggamma(half + 0.5) - mpmath.loggamma(half) - mpmath.log(half) / 2
        slope = half * (mpmath.digamma(half + 0.5) - mpmath.digamma(half)) - 0.5
        return float(value), float(slope)


@pytest.mark.equation("D41")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_half_step_of_log_gamma_is_exact_beside_the_log_density_at_0_that_it_is_part_of(dtype):
    degrees = np.array([1e-3, 0.7, *range(1, 60), 99, 1000, 1001, 1e6, 1e9], dtype)
    found = numerics.gamma_half_step(degrees)
    values, slopes = np.transpose([exact_half_step(float(nu)) for nu in degrees])
    eps = np.finfo(dtype).eps
    assert found.value.dtype == found.slope.dtype == dtype
    assert (np.abs(found.value - values) <= 10 * eps * np.maximum(1, np.abs(values))).all()
    assert np.abs(found.slope / slopes - 1).max() <= 10 * eps


@pytest.mark.equation("D41")
@given(nu=st.floats(1e-3, 10.0))
def test_complex_step_through_the_half_step_of_log_gamma_gives_its_slope(nu):
    stepped = numerics.gamma_half_step(np.array(nu + 1e-30j)).value
    slope = numerics.gamma_half_step(nu).slope
    assert slope == pytest.approx(nu * stepped.imag / 1e-30, rel=1e-12)


@pytest.mark.equation("D41")
def test_the_series_of_the_half_step_has_its_bernoulli_numbers():
    # most digits of the last ones are below the rounding of any value from nu = 20 on
    bernoulli = special.bernoulli(14)
    expected = [bernoulli[2 * j] * (1 - 4**j) / (2 * j * (2 * j - 1)) for j in range(7, 0, -1)]
    assert pytest.approx(expected, rel=1e-14) == numerics.HALF_STEP_SERIES


@pytest.mark.parametrize("units", [(1e-9, 1e-9), (1e9, 1e9), (1e-9, 1e9), (0.0, 0.0)])
def test_a_covariance_is_symmetric_or_not_whatever_its_units(units):
    """Rounding of small correlations is none of its business, half of a correlation is."""
    scale = np.outer(units, units)
    assert numerics.symmetric(scale * np.array([[1.0, 1e-8], [3e-8, 1.0]]))
    for gap in (0.5, 2e-5):
        skew = scale * np.array([[1.0, 0.1 + gap], [0.1, 1.0]])
        assert numerics.symmetric(skew) == (not skew.any())
