"""relevance: a Student t for each group of weights, whose precision is integrated over (D67)."""

import numpy as np
import pytest
from scipy import integrate, stats
from textbook import ard_groups

from bbb_numpy import MLP, ARDPrior, HeteroscedasticLikelihood, Model
from bbb_numpy.numeric.buffers import Buffers

SIZES = (3, 4, 2)


def prior_of(df=3.0, output_scales=(1.0, 0.1), sizes=SIZES):
    return ARDPrior(1.3, df, output_scales).for_network(sizes)


@pytest.mark.equation("D67")
@pytest.mark.parametrize("sizes", [SIZES, (2, 2), (2, 3, 4, 2)])
def test_it_is_the_multivariate_t_of_each_group(sizes):
    prior = prior_of(sizes=sizes)
    w = np.random.default_rng(0).normal(size=(2, MLP(sizes).layout.size))
    value, _ = prior.log_density({}, w, Buffers())
    expected = np.zeros(2)
    for members, d_in, output in ard_groups(sizes):
        scale = 1.3 / d_in**0.5 * (1.0 if output is None else (1.0, 0.1)[output])
        shape = scale**2 * np.eye(len(members))
        expected += stats.multivariate_t(np.zeros(len(members)), shape, 3.0).logpdf(w[:, members])
    np.testing.assert_allclose(value, expected, rtol=1e-12)


@pytest.mark.equation("D67")
def test_it_is_a_gaussian_whose_gamma_precision_is_integrated_over():
    prior = prior_of(sizes=(1, 2, 1), output_scales=None)
    w = np.zeros((1, MLP((1, 2, 1)).layout.size))
    w[0, :2] = 0.7, -1.1  # the weights of the input
    at_0 = prior.log_density({}, 0.0 * w, Buffers())[0][0]
    gained = prior.log_density({}, w, Buffers())[0][0] - at_0

    def mass(precision, w):
        law = stats.norm(0.0, 1.3 / precision**0.5)
        return stats.gamma(1.5, scale=1 / 1.5).pdf(precision) * law.pdf(w).prod()

    ratio = [integrate.quad(mass, 0, np.inf, args=(weights,))[0] for weights in (w[0, :2], [0, 0])]
    assert gained == pytest.approx(np.log(ratio[0] / ratio[1]), rel=1e-6)


@pytest.mark.equation("D67")
def test_an_input_that_is_not_needed_pays_little_for_the_others():
    # the slope of the weights of an input falls with their own size, not with that of others
    prior = prior_of()
    w = np.zeros((2, MLP(SIZES).layout.size))
    w[:, 0] = 0.1
    w[1, 4:8] = 9.0  # weights of the second input
    slopes = np.zeros_like(w)
    prior.add_vjp(prior.log_density({}, w, Buffers())[1], np.ones(2), slopes, {})
    assert slopes[0, 0] == slopes[1, 0] < 0
    w[1, 1:4] = 9.0  # of the same input
    changed = np.zeros_like(w)
    prior.add_vjp(prior.log_density({}, w, Buffers())[1], np.ones(2), changed, {})
    assert changed[0, 0] < changed[1, 0] < 0


@pytest.mark.equation("D67")
def test_draws_have_its_law():
    prior = prior_of()
    w = prior.draw(np.random.default_rng(0), {}, (4000, MLP(SIZES).layout.size))
    for members, d_in, output in ard_groups(SIZES):
        scale = 1.3 / d_in**0.5 * (1.0 if output is None else (1.0, 0.1)[output])
        squares = (w[:, members] ** 2).mean(axis=1) / scale**2
        # |w|^2 / (n s^2) of a multivariate t has the law F(n, df)
        assert stats.kstest(squares, stats.f(len(members), 3.0).cdf).pvalue > 1e-3
    assert not stats.kstest(squares, stats.f(len(members), 9.0).cdf).pvalue > 1e-3


def test_its_standard_deviation_is_that_of_the_narrowest_group():
    assert prior_of(2.0).sd({}) == np.inf
    assert prior_of(3.0).sd({}) == pytest.approx(1.3 * 0.1 / 2.0 * 3.0**0.5)


def test_it_is_made_for_one_network():
    model = Model(MLP(SIZES), ARDPrior(), HeteroscedasticLikelihood())
    assert model.prior.sizes == SIZES
    with pytest.raises(ValueError, match="was made for a network of sizes"):
        model.prior.for_network((3, 2))
    with pytest.raises(ValueError, match="must know the widths"):
        ARDPrior().log_density({}, np.zeros((1, 3)), Buffers())
    for bad in ({"df": 0.0}, {"scale": -1.0}, {"output_scales": ()}, {"sizes": (3,)},
                {"output_scales": (1.0,), "sizes": SIZES}):  # fmt: skip
        with pytest.raises((TypeError, ValueError)):
            ARDPrior(**bad)
