"""transforms: from numbers with a range to real numbers and back, with their Jacobians."""

from math import lgamma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import seeds

from bbb_studies.advi import Blockwise, Identity, Log, Logit, Ordered, Softplus
from exactgrad import prove

SIZE = 3
MIXED = Blockwise(
    (
        ("level", (), Identity()),
        ("rate", (2,), Log()),
        ("scale", (), Softplus()),
        ("cuts", (2, 3), Ordered()),
        ("share", (2, 2), Logit(-1.0, 3.0)),
    )
)
ELEMENTWISE = [Identity(), Log(), Softplus(), Logit(), Logit(-5.0, 2.5)]
TRANSFORMS = [*ELEMENTWISE, Ordered(), MIXED]
each_transform = pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: repr(t)[:22])


def real_numbers(transform, seed, width=2.0, lead=()):
    size = MIXED.layout.size if transform == MIXED else SIZE
    return width * np.random.default_rng(seed).standard_normal((*lead, size))


def jacobian(transform, zeta):
    """The K x K derivatives of theta for zeta, column by column, by the complex step."""
    columns = [
        np.imag(transform.inverse(zeta + 1e-30j * unit)) / 1e-30 for unit in np.eye(len(zeta))
    ]
    return np.stack(columns, axis=1)


@pytest.mark.equation("M15")
@each_transform
@given(seed=seeds, width=st.sampled_from([1e-3, 1.0, 5.0]))
def test_there_and_back_is_nothing(transform, seed, width):
    zeta = real_numbers(transform, seed, width, (4,))
    theta = transform.inverse(zeta)
    # where theta is near a bound b its rounding, eps |b|, is large next to its distance from b
    spacing = np.finfo(float).eps * (np.abs(theta).max() + 8.0) * np.exp(np.abs(zeta).max())
    assert np.abs(transform.forward(theta) - zeta).max() <= 20 * spacing
    assert np.allclose(transform.inverse(transform.forward(theta)), theta, rtol=1e-10, atol=1e-12)


@pytest.mark.equation("M15")
@each_transform
@given(seed=seeds)
def test_log_det_is_that_of_the_measured_jacobian(transform, seed):
    zeta = real_numbers(transform, seed)
    sign, measured = np.linalg.slogdet(jacobian(transform, zeta))
    assert sign > 0
    assert abs(measured - transform.log_det(zeta)) <= 1e-12 * max(abs(measured), 1.0)


@pytest.mark.equation("M15")
@each_transform
def test_every_method_takes_any_leading_axes_and_keeps_the_dtype(transform):
    def all_of(zeta):
        return (
            *(transform.inverse(zeta), transform.forward(transform.inverse(zeta))),
            *(transform.log_det_slope(zeta), transform.pull_back(zeta, zeta)),
            transform.log_det(zeta),
        )

    zeta = real_numbers(transform, 3, lead=(2, 5))
    every = all_of(zeta)
    assert [one.shape for one in every] == [zeta.shape] * 4 + [(2, 5)]
    for where in np.ndindex(2, 5):
        for found, alone in zip(every, all_of(zeta[where]), strict=True):
            assert np.allclose(found[where], alone, rtol=1e-13, atol=1e-13)
    assert [one.shape for one in all_of(zeta[:, :0])] == [(2, 0, zeta.shape[-1])] * 4 + [(2, 0)]
    assert {one.dtype for one in all_of(zeta.astype(np.float32))} == {np.dtype("f")}


# --- a density carried over by the Jacobian is a density


def log_gamma_density(theta, shape=2.5, rate=4.0):
    return shape * np.log(rate) - lgamma(shape) + (shape - 1) * np.log(theta) - rate * theta


def log_beta_density(theta, low, high, a=2.0, b=3.5):
    share, rest = (theta - low) / (high - low), (high - theta) / (high - low)
    constant = lgamma(a + b) - lgamma(a) - lgamma(b) - np.log(high - low)
    return constant + (a - 1) * np.log(share) + (b - 1) * np.log(rest)


def mass_on_the_line(transform, log_density):
    """The integral over all real zeta of p(theta) |det J|; the trapezoidal rule is exact here."""
    zeta = np.arange(-25.0, 25.0, 0.01)[:, None]
    logs = log_density(transform.inverse(zeta)[:, 0]) + transform.log_det(zeta)
    return np.exp(logs).sum() * 0.01


DENSITIES = {
    Log(): log_gamma_density,
    Softplus(): log_gamma_density,
    Logit(): lambda theta: log_beta_density(theta, 0.0, 1.0),
    Logit(-5.0, 2.5): lambda theta: log_beta_density(theta, -5.0, 2.5),
}


@pytest.mark.equation("M14", "M15")
@pytest.mark.parametrize("transform", DENSITIES, ids=repr)
def test_with_the_jacobian_the_density_of_zeta_has_mass_one(transform):
    assert abs(mass_on_the_line(transform, DENSITIES[transform]) - 1) < 1e-8


@pytest.mark.equation("M14", "M15")
def test_two_normal_numbers_in_order_have_mass_one_on_the_plane():
    first, step = np.meshgrid(np.arange(-9, 9, 0.05), np.arange(-30, 4, 0.05), indexing="ij")
    zeta = np.stack([first, step], axis=-1)
    theta = Ordered().inverse(zeta)
    # both orders of two independent N(0, 1) numbers fall on the same increasing pair
    logs = np.log(2.0) - np.log(2 * np.pi) - 0.5 * (theta**2).sum(axis=-1)
    mass = np.exp(logs + Ordered().log_det(zeta)).sum() * 0.05**2
    assert abs(mass - 1) < 1e-8


# --- far out


@pytest.mark.equation("M15")
@pytest.mark.parametrize("transform", [Softplus(), Logit(), Logit(-5.0, 2.5)], ids=repr)
@pytest.mark.parametrize("far", [40.0, 800.0, 1e4])
def test_far_out_nothing_overflows_and_slopes_have_their_limits(transform, far):
    zeta = np.array([[-far], [far]])
    with np.errstate(all="raise", under="ignore"):
        theta = transform.inverse(zeta)
        log_det, slope = transform.log_det(zeta), transform.log_det_slope(zeta)
        pulled = transform.pull_back(zeta, np.ones_like(zeta))
    assert np.isfinite([*theta, *slope, *pulled]).all()
    constant = np.log(transform.high - transform.low) if isinstance(transform, Logit) else 0.0
    right = -far if isinstance(transform, Logit) else 0.0
    assert np.allclose(log_det, [constant - far, constant * (right != 0) + right], rtol=1e-12)
    assert np.allclose(slope[:, 0], [1.0, np.sign(right)], atol=1e-15)
    if isinstance(transform, Logit):
        assert transform.low <= theta[0, 0] < theta[1, 0] <= transform.high


@pytest.mark.equation("M15")
def test_small_numbers_keep_their_digits_near_the_lower_bound_and_the_upper_one_at_zero():
    zeta = np.array([-200.0])
    assert np.isclose(Logit().inverse(zeta)[0], np.exp(-200.0), rtol=1e-12)
    assert np.isclose(Logit(-1.0, 0.0).inverse(-zeta)[0], -np.exp(-200.0), rtol=1e-12)
    assert np.isclose(Softplus().inverse(zeta)[0], np.exp(-200.0), rtol=1e-12)
    assert np.isclose(Softplus().forward(np.exp(zeta))[0], -200.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("transform", "theta", "said"),
    [
        (Log(), [1.0, 0.0], "positive and finite; got 0.0"),
        (Softplus(), [[2.0, 1.0], [-3.0, 1.0]], "positive and finite; got -3.0"),
        (Log(), [np.inf], "got inf"),
        (Softplus(), [np.nan], "got nan"),
        (Identity(), [np.nan], "finite; got nan"),
        (Logit(), [0.5, 1.0], "between 0 and 1, both excluded; got 1.0"),
        (Logit(2.0, 3.0), [2.5, 2.0], "between 2 and 3, both excluded; got 2.0"),
        (Ordered(), [0.0, 1.0, 1.0], "larger than the number before it; got 1.0"),
        (Ordered(), [0.0, np.nan, 1.0], "got nan"),
        (Blockwise((("p", (), Logit()), ("r", (2,), Log()))), [0.5, 1.0, -1.0], "got -1.0"),
    ],
)
def test_numbers_out_of_range_are_refused_and_named(transform, theta, said):
    with pytest.raises(ValueError, match=said):
        transform.forward(np.array(theta))


@pytest.mark.equation("M14", "M15", "M17")
@pytest.mark.parametrize("seed", range(5))
def test_the_maps_and_their_jacobians_are_proved(seed):
    zeta = real_numbers(MIXED, seed)
    assert prove(lambda z: (MIXED.log_det(z), MIXED.log_det_slope(z)), zeta).proved

    def pulled_back(zeta, weights):  # of a function that is linear in theta: every column of J
        return (weights * MIXED.inverse(zeta)).sum(), MIXED.pull_back(zeta, weights)

    assert prove(pulled_back, zeta, np.random.default_rng(seed).standard_normal(len(zeta))).proved
