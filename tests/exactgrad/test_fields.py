"""fields and digits: arithmetic without rounding, and the laws of exponentials and roots."""

import math
import random
from decimal import localcontext
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exactgrad.fields import digits
from exactgrad.fields.digits import Digits, context
from exactgrad.fields.finite import (
    CACHE_BLOCK_SIZE,
    IRRATIONAL_FLOATS,
    LOG_2,
    Gauss,
    Prime,
    Towers,
    _discrete_logarithms,
    random_prime,
)

FIELDS = [Prime, Gauss, Towers]
P = Prime(0).p
SIZES = [1, 5, CACHE_BLOCK_SIZE + 7]
residues = st.integers(0, P - 1)
each_field = pytest.mark.parametrize("kind", FIELDS)


def numbers(field, values):
    return np.array(values, np.int64).reshape(-1, 1)


def drawn(field, count):
    """Numbers of every kind: in Gauss the imaginary ones and those of two parts too."""
    a, b = field.draw((count,)), field.root(field.draw((count,)))
    field.n_substituted = 0
    return np.concatenate([a, b, field.add(a, b)])


def upper(field, values):
    """On the lowest level of the towers 2 has no root, and exponentials are random."""
    return values[..., : -field.n_chains] if field.knows_all_laws else values


@given(a=residues, b=st.integers(1, P - 1))
def test_arithmetic_is_that_of_the_integers_modulo_p(a, b):
    field = Prime(0)
    x, y = numbers(field, [a, 0, P - 1]), numbers(field, [b, P - 1, P - 1])
    for found, right in (
        (field.add(x, y), (a + b, P - 1, 2 * P - 2)),
        (field.sub(x, y), (a - b, 1 - P, 0)),
        (field.mul(x, y), (a * b, 0, (P - 1) ** 2)),
        (field.neg(x), (-a, 0, 1 - P)),
        (field.mul(field.inv(y), y), (1, 1, 1)),
    ):
        assert found[:, 0].tolist() == [one % P for one in right]


@each_field
@pytest.mark.parametrize("size", SIZES)
def test_every_number_but_0_has_its_inverse_and_sums_and_products_have_no_order(kind, size):
    field = kind(1)
    a, b, c = (drawn(field, size) for _ in range(3))
    some = np.concatenate([0 * a[:1], a])
    inverses = field.inv(some)
    assert not inverses[0].any()
    assert (field.mul(a, inverses[1:]) == field.one).all()
    assert (field.mul(field.add(a, b), c) == field.add(field.mul(a, c), field.mul(b, c))).all()
    assert not field.add(a, field.neg(a)).any()
    total = field.sum(a, 0)
    assert (field.cumsum(a, 0)[-1] == total).all()
    by_two = field.sum(a[::2], 0), field.sum(a[1::2], 0)
    assert (field.add(*by_two) == total).all()


@each_field
@pytest.mark.parametrize("inner", [1, 40, 2048, 2049, 9000])
def test_products_of_matrices_are_exact_also_of_the_largest_numbers(kind, inner):
    field = kind(2)
    a, b = drawn(field, 2 * inner).reshape(6, inner, -1), drawn(field, inner).reshape(inner, 3, -1)
    a[0], b[:, 0] = (
        field.p - 1 if field.knows_all_laws else field.neg(field.one),
        field.neg(field.one),
    )
    right = field.sum(field.mul(a[:, :, None], b[None]), 1)
    assert (field.matmul(a, b) == right).all()
    whole = field.from_integers(inner) if kind is not Towers else inner % field.p
    assert (field.matmul(a, b)[0, 0] == whole).all()  # (-1)^2, so many times


@each_field
@pytest.mark.parametrize(("n", "k", "m"), [(12, 30, 13), (2, 0, 3)])
def test_products_of_stacked_and_of_empty_matrices_are_sums_of_products(kind, n, k, m):
    field = kind(3)
    a = drawn(field, n * k)[: 2 * n * k].reshape(2, n, k, field.n_channels)
    b = drawn(field, k * m)[: 2 * k * m].reshape(2, k, m, field.n_channels)
    right = field.sum(field.mul(a[..., None, :], b[..., None, :, :, :]), -3)
    found = field.matmul(a, b)
    assert found.shape == right.shape
    assert (found == right).all()


def test_a_logarithm_is_the_exponent_of_a_generator():
    generator, logarithms = _discrete_logarithms(4079)
    assert sorted(pow(generator, k, 4079) for k in range(4078)) == list(range(1, 4079))
    assert all(pow(generator, int(logarithms[n]), 4079) == n for n in range(1, 4079))


def test_a_product_of_matrices_is_that_of_pythons_integers():
    field, draw = Prime(5), random.Random(0)
    a, b = ([[draw.randrange(field.p) for _ in range(n)] for _ in range(m)]
            for m, n in ((3, 50), (50, 2)))  # fmt: skip
    found = field.matmul(*(np.array(m, np.int64)[..., None] for m in (a, b)))[..., 0]
    right = [[sum(x * y for x, y in zip(row, column, strict=True)) % field.p
              for column in zip(*b, strict=True)] for row in a]  # fmt: skip
    assert found.tolist() == right


@pytest.mark.equation("D44")
def test_each_proof_has_a_prime_of_its_own():
    primes = [random_prime(random.Random(seed)) for seed in range(50)]
    assert len(set(primes)) == 50
    for p in primes:
        assert 2**49 < p < 2**50
        assert p % 8 == 7
        assert all(pow(a, p - 1, p) == 1 for a in range(41, 60))


# --- constants


ratios = st.builds(lambda m, n: m / n, st.integers(-(10**5), 10**5), st.integers(1, 10**6))


@example(value=1e-6, whole=0).via("the last of the small fractions")
@example(value=1 / 1000001, whole=0).via("the first that is none")
@example(value=1000.1, whole=0).via("too large for two to be told apart")
@given(value=st.floats(-1e9, 1e9) | ratios, whole=st.integers(-(2**62), 2**62))
def test_constants_are_the_fractions_that_they_are_or_are_rounded_from(value, whole):
    field = Prime(0)
    if abs(value) not in IRRATIONAL_FLOATS and abs(value) != np.finfo(float).tiny:
        small = Fraction(value).limit_denominator(10**6)
        stands_for = small if float(small) == value and abs(value) < 1000 else Fraction(value)
        top, bottom = stands_for.as_integer_ratio()
        for found in (field.from_floats(np.array(value)), field.from_floats(np.full(40, value))[3]):
            assert int(found[0]) * bottom % P == top % P
    assert int(field.from_integers(whole)[0]) == whole % P
    assert int(field.from_fraction(Fraction(whole, 7))[0]) * 7 % P == whole % P


@each_field
def test_floats_near_pi_and_roots_of_2_stand_for_them(kind):
    field = kind(4)

    def constant(x):
        return field.from_floats(np.array(float(x)))

    pi = constant(math.pi)
    assert (field.mul(constant(math.sqrt(math.pi)), constant(math.sqrt(math.pi))) == pi).all()
    two_pi = field.mul(constant(2), pi)
    squared = field.power(constant(math.sqrt(2 * math.pi)), 2)
    assert (upper(field, squared) == upper(field, two_pi)).all()
    one = field.mul(constant(1 / math.sqrt(2)), constant(math.sqrt(2)))
    assert (upper(field, one) == 1).all() or field.n_channels == 2
    assert (constant(2 * math.sqrt(2 / math.pi)) == constant(math.sqrt(8 / math.pi))).all()
    assert (constant(-1 / math.sqrt(2 * math.pi)) == field.neg(constant(0.3989422804014327))).all()
    assert (constant(0.5 * math.pi) == field.mul(constant(0.5), pi)).all()
    assert (constant(3.0) != pi).any()


@each_field
def test_what_is_no_number_is_0_and_infinity_one_of_which_nothing_is_known(kind):
    field, tiny = kind(5), np.finfo(float).tiny
    assert not field.from_floats(np.array([np.nan, tiny, -tiny])).any()
    far, near = field.from_floats(np.array([np.inf, -np.inf]))
    assert far.any()
    assert (near == field.neg(far)).all()
    many = field.from_floats(np.array([np.inf, np.nan, -np.inf] * 20))
    assert (many == [far, 0 * far, near] * 20).all()


@each_field
def test_powers_of_two_do_not_vanish(kind):
    field = kind(5)
    powers = {field.from_floats(np.array(2.0**e)).tobytes() for e in range(-300, 300)}
    assert len(powers) == 600


# --- exponentials, logarithms, roots


@each_field
@pytest.mark.equation("D44")
def test_the_laws_that_every_field_knows(kind):
    field = kind(6)
    t, u = drawn(field, 30), field.variable(np.zeros(30))
    e = field.exp(t)
    inverse = field.exp(field.neg(t))
    assert (upper(field, field.mul(e, inverse)) == 1).all() or field.n_channels == 2
    logarithm, note = field.log(u)
    assert (upper(field, field.exp(logarithm, note)) == upper(field, u)).all()
    zero = 0 * field.one
    assert (field.exp(zero[None])[0] == field.one).all()
    assert not upper(field, field.log(field.one[None])[0]).any()
    for k in (-3, -2, -1, 1, 2, 3):
        log_2, power = (field.from_floats(np.array([x])) for x in (k * LOG_2, 2.0**k))
        assert (upper(field, field.exp(log_2)) == upper(field, power)).all()
    assert len({one.tobytes() for one in e}) == len(t)
    assert field.exp(t[:0]).shape == (0, field.n_channels)
    assert field.n_channels != 2 or not field.exp(field.draw((9,)))[:, 1].any()  # real of real ones


def test_a_sum_of_logarithms_is_remembered_by_its_note():
    field = Prime(7)
    u, v = field.variable(np.zeros(5)), field.variable(np.zeros(5))
    (s, one), (t, other) = field.log(u), field.log(v)
    product = field.mul(u, v)
    assert (field.exp(field.add(s, t), field.add_log_terms(one, other)) == product).all()
    over = field.exp(field.sub(s, t), field.add_log_terms(one, field.negate_log_terms(other)))
    assert (field.mul(over, v) == u).all()


@each_field
def test_multiples_of_logarithms_are_remembered_with_their_factor(kind):
    field = kind(7)
    (u, v), c = (field.variable(np.zeros(5)) for _ in range(2)), field.draw((5,))
    (s, one), (t, other) = field.log(u), field.log(v)
    multiple, less = field.mul(c, s), field.neg(field.mul(c, t))
    both = field.add_log_terms(
        field.scale_log_terms(one, c), field.scale_log_terms(other, field.neg(c))
    )
    over_c = field.inv(c)
    quotient = field.exp(
        field.mul(field.add(multiple, less), over_c), field.scale_log_terms(both, over_c)
    )
    assert (upper(field, field.mul(quotient, v)) == upper(field, u)).all()
    # of a sum of different multiples, that of factor 1; of another factor, nothing
    for note in (
        field.add_log_terms(field.scale_log_terms(one, c), other),
        field.add_log_terms(other, field.scale_log_terms(one, c)),
    ):
        assert (note == other).all()
    e = field.exp(multiple, field.scale_log_terms(one, c))
    assert (e == field.exp(multiple)).all()


@pytest.mark.equation("D44")
def test_towers_know_all_laws_of_exponentials_and_logarithms():
    field = Towers(8)
    s, t = field.draw((20,)), field.draw((20,))
    u, v = field.variable(np.zeros(20)), field.variable(np.zeros(20))
    below = slice(field.n_chains, None)

    def same(a, b, levels=slice(0, -field.n_chains)):
        return (a[..., levels] == b[..., levels]).all()

    assert same(field.exp(field.add(s, t)), field.mul(field.exp(s), field.exp(t)))
    assert same(field.exp(field.mul(field.from_integers(5), s)), field.power(field.exp(s), 5))
    logs = field.add(field.log(u)[0], field.log(v)[0])
    assert same(field.log(field.mul(u, v))[0], logs, below)
    assert same(field.log(field.exp(s))[0], s, below)
    assert not field.n_substituted
    assert same(field.log(field.neg(u))[0], field.log(u)[0], below)
    assert field.n_substituted == 1


def test_the_root_of_a_square_is_a_root_and_gauss_has_those_of_all_arguments():
    for kind in FIELDS:
        field = kind(9)
        u = field.variable(np.zeros(100))
        r = field.sqrt(u)
        assert (field.mul(r, r) == u).all()
        assert (field.n_roots, field.n_substituted) == (1, 0)
    field = Gauss(9)
    u = field.draw((200,))
    r = field.sqrt(u)
    assert (field.mul(r, r) == u).all()
    assert not field.n_substituted
    assert r[:, 1].any()
    field.sqrt(field.add(u, r))
    assert field.n_substituted == 1
    field = Prime(9)
    u = field.draw((200,))
    r = field.sqrt(u)
    exists = (field.mul(r, r) == u).all(axis=1)
    assert 60 < exists.sum() < 140
    assert field.n_substituted == 1


def test_what_is_0_by_chance_in_towers_is_a_flaw():
    for function in (Towers.inv, Towers.log):
        field = Towers(9)
        u = field.variable(np.zeros(5))
        u[4] = 0
        function(field, u)
        assert not field.n_substituted
        u[3, 7] = 0
        function(field, u)
        assert field.n_substituted == 1


def test_the_root_of_a_remembered_square_is_the_positive_one():
    field = Prime(10)
    t, v = field.draw((6,)), np.array([0.5, -0.5, 1.0, -2.0, 0.0, np.nan])
    square = field.mul(t, t)
    field.record_square(square, t, v)
    u = np.concatenate([square, field.variable(np.zeros(40))])
    r = field.sqrt(u)
    assert (field.mul(r, r) == u).all()
    right = np.where(v[:, None] > 0, t, field.neg(t))
    assert (r[:4] == right[:4]).all()
    assert field.path[-1].tolist() == [True, False, True, False]


@each_field
def test_odd_functions_are_odd_and_the_circle_is_one(kind):
    field = kind(11)
    t = drawn(field, 50)
    odd, minus = field.opaque("f", t, odd=True), field.opaque("f", field.neg(t), odd=True)
    assert not field.add(odd, minus).any()
    assert (field.opaque("g", t, odd=False) == field.opaque("g", field.neg(t), odd=False)).all()
    assert (field.opaque("h", t) != field.opaque("h", field.neg(t))).any()
    assert not field.opaque("f", 0 * t, odd=True).any()
    (c, s), (d, r) = field.cos_and_sin(t), field.cos_and_sin(field.neg(t))
    assert (field.add(field.mul(c, c), field.mul(s, s)) == field.one).all()
    assert (c == d).all()
    assert not field.add(s, r).any()
    none, zero = field.cos_and_sin(0 * t)
    assert (none == field.one).all()
    assert not zero.any()


# --- sixty digits

SERIES = {
    "sin": (digits._sin, mpmath.sin, (-40.0, -1.0, 1e-30, 0.3, 7e15)),
    "cos": (digits._cos, mpmath.cos, (-40.0, -1.0, 1e-30, 0.3, 7e15)),
    "arctan": (digits.SERIES["arctan"], mpmath.atan, (-1e9, -1.0, 1e-30, 0.3, 1.0)),
    "erf": (digits.SERIES["erf"], mpmath.erf, (-30.0, -2.5, 1e-30, 0.3, 6.0, 11.9, 12.1)),
    "gammaln": (digits.SERIES["gammaln"], mpmath.loggamma, (1e-3, 0.5, 7.25, 123.0)),
    **{
        name: (digits.SERIES[name], partial(mpmath.polygamma, n), (1e-3, 0.5, 7.25, 123.0))
        for n, name in enumerate(["digamma", "polygamma 1", "polygamma 2", "polygamma 3"])
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SERIES)
def test_series_have_fifty_five_digits(name):
    ours, right, points = SERIES[name]
    with localcontext(context(60)), mpmath.workdps(80):
        for x in points:
            found = mpmath.mpf(str(ours(digits.Decimal(x))))
            expected = right(mpmath.mpf(x))
            assert abs(found - expected) <= 1e-55 * max(abs(expected), 1e-2), x
        for x in (np.inf, -np.inf, np.nan):
            assert ours(digits.Decimal(x)).is_nan()


def test_decimals_of_floats_are_the_floats_or_what_they_stand_for():
    with localcontext(context(60)), mpmath.workdps(60):
        field = Digits(0)
        values = np.array([1 / 3, 1 / math.e, math.pi, 1 / math.sqrt(2 * math.pi)])
        assert 0 < digits.Decimal(-1e9).exp() < digits.Decimal(1e9).exp() < np.inf
        third, other, pi, root = field.from_floats(values)[:, 0]
        assert third * 3 == 1 - digits.Decimal(10) ** -60
        assert other == digits.Decimal(1 / math.e)
        assert abs(mpmath.mpf(str(pi)) - mpmath.pi) < 1e-57
        assert abs(mpmath.mpf(str(root)) - 1 / mpmath.sqrt(2 * mpmath.pi)) < 1e-57
        assert field.from_floats(np.array(np.nan))[0].is_nan()
        few = [0.5, 2.0**-40]  # digits
        shaken = Digits(0, rounding_seed=3).from_floats(np.array([1 / math.e, 2 / math.e, *few]))[
            :, 0
        ]
        assert abs(abs(shaken[0] / other - 1) * 2**53 - 1) < 1e-30
        assert abs(shaken[1] - 2 * shaken[0]) < 1e-58
        assert shaken[2:].tolist() == few
        assert min(field.draw((9,))) < 0 < max(field.draw((9,)))


def test_an_exponential_is_computed_anew_where_more_digits_are_asked_for():
    with localcontext(context(60)) as at:
        field, x = Digits(0), np.array([digits.Decimal("1e-30")])
        field.exp(x)
        at.prec = 100
        assert abs((field.exp(x)[0] - 1) / x[0] - 1 - x[0] / 2) < 1e-58
