"""sampled_prior: outputs are sampled for the likelihood, a weight vector for the prior."""

import numpy as np
import pytest

from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.model.joint import Model
from bbb_numpy.parts.discrete import CategoricalLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_studies.sampled_prior import LocalSampledPrior
from exactgrad import check_gradient

X = np.random.default_rng(0).standard_normal((2, 1))
Y = np.eye(2)


def estimator(prior, kind=LocalSampledPrior):
    return kind(Model(MLP((1, 2, 2)), prior, CategoricalLikelihood()), MeanField(0.5, -1.0))


@pytest.mark.parametrize("prior", [ScaleMixturePrior(0.5, 1.0, 0.1), ScaleMixturePrior(learn=True)])
def test_the_gradient_is_that_of_the_value(prior):
    family, rng = estimator(prior), np.random.default_rng(1)
    theta, noise = family.init(rng), family.draw(rng, 2, len(X))
    report = check_gradient(lambda at: family.value_and_grad(at, noise, X, Y, 0.3), theta)
    assert report.passed, report


def test_the_cost_is_on_average_that_of_the_closed_form():
    """Under a prior that has one, with the same noise of the outputs."""
    sampled, closed = (
        estimator(GaussianPrior(0.7), kind) for kind in (LocalSampledPrior, LocalReparameterisation)
    )
    rng, samples = np.random.default_rng(2), 2000
    theta, noise = sampled.init(rng), sampled.draw(rng, samples, len(X))
    terms = sampled.value_and_grad(theta, noise, X, Y).terms
    own = closed.value_and_grad(theta, noise[:, sampled.noise_per_sample :], X, Y).terms
    np.testing.assert_allclose(terms.likelihood, own.likelihood, rtol=1e-12)
    kl = terms.posterior - terms.prior
    assert abs(kl.mean() - (own.posterior - own.prior).mean()) < 4 * kl.std() / samples**0.5
