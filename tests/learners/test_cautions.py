"""cautions: results that are not what they seem are not returned in silence."""

import warnings

import numpy as np
import pytest

from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.learners.cautions import need_finite, warn_of_collapse
from bbb_numpy.model.joint import Model
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.parts.student_t import StudentTPrior
from bbb_numpy.training import Epoch, Training
from bbb_numpy.training.optimizers import Memory

X = np.array([[1.0, -2.0], [3.0, -1e300]])


def test_finite_results_pass():
    need_finite("the prediction", np.zeros((2, 3, 4)), X)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_row_and_its_largest_input_are_named(value):
    found = np.zeros((2, 3))
    found[1, 2] = value
    message = r"prediction overflows float64 at row 1: .*-1e\+300.*mn 1.* If it is ordinary, the fi"
    with pytest.raises(ValueError, match=message):
        need_finite("the prediction", found, X)


def after(prior, learned, kl):
    """A fit that ended at these numbers of the prior, with this KL term."""
    estimator = Reparameterised(Model(MLP((2, 3, 1)), prior))
    theta = estimator.init(np.random.default_rng(0))
    for name, _ in prior.blocks():
        theta[estimator.layout.slices[name]] = learned
    return estimator, Training(theta, Memory(), [Epoch(1.0, kl, 1.0, 0.1, np.nan)])


TAILS = StudentTPrior(0.5, df=2.0, learn=True)
LEARNED, MIXTURE = GaussianPrior(0.5, learn=True), ScaleMixturePrior(0.25, 1.0, 0.1, learn=True)


@pytest.mark.parametrize(
    ("prior", "learned", "kl"),
    [
        (LEARNED, np.log(0.4e-3), 30.0),  # below a thousandth of the start
        (GaussianPrior(1e-5, learn=True), np.log(0.9e-6), 30.0),
        (LEARNED, np.log(0.1), 0.5),  # the posterior is the prior
        (MIXTURE, [-9.0, -9.0, 0.0], 30.0),
        (TAILS, np.log(2.5), 0.5),  # the posterior is the prior, whose deviation was infinite
    ],
)
def test_a_collapsed_prior_is_reported(prior, learned, kl):
    with pytest.warns(UserWarning, match=r"learned prior has collapsed.*Fix the prior"):
        warn_of_collapse(*after(prior, learned, kl))


@pytest.mark.parametrize(
    ("prior", "learned", "kl"),
    [
        (LEARNED, np.log(0.01), 30.0),
        (LEARNED, np.log(2.0), 0.5),  # wider than at the start
        (MIXTURE, MIXTURE.init(float), 30.0),
        (GaussianPrior(1e-9), [], 0.0),  # narrow by choice
        (TAILS, np.log(2.5), 30.0),  # the deviation was infinite
    ],
)
def test_other_priors_are_left_alone(prior, learned, kl):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_collapse(*after(prior, learned, kl))
