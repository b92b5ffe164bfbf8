"""Cases of every combination of parts for the exact proofs, and the proof of a value.

What is proved holds for all theta, noise, data and KL weights on the path of one case: its open
gates and its branches of stable formulas. Fixed scales are powers of two: other constants are
rounded, in a value and in its formula perhaps differently.
"""

from dataclasses import replace
from math import log

import numpy as np
import textbook

from bbb_numpy import EUBO, Flipout, FreeEnergy, LayerwiseGaussianPrior, ScaleMixturePrior
from bbb_numpy.combinations import build_estimator, draw_case, prove_case
from bbb_numpy.numeric.elementary import gamma_half_step, rising_factorial
from bbb_numpy.parts.activations import ACTIVATIONS
from exactgrad import prove_same

# inputs, hidden widths, outputs K, samples S, rows B: in the first all different, 1 everywhere
CASE_SHAPES = [(1, (3,), 2, 4, 5), (4, (3,), 1, 2, 3), (2, (1,), 3, 4, 2), (3, (), 2, 4, 1),
          (3, (2, 1), 4, 2, 2)]  # fmt: skip
FAR_LEFT, RIGHT = -40.0, 2.0  # of the branches of softplus; most rho lie between them


def numbered_case(number, which, far_left):
    """Return a case: the number chooses shape and activation, S = 1 now and then."""
    inputs, hidden, outputs, samples, rows = CASE_SHAPES[number % 5]
    built = build_estimator(which, inputs, hidden, outputs, list(ACTIVATIONS)[number // 5 % 7])
    if number % 11 == 0 and "antithetic" not in which.estimator:
        samples = 1
    rng = np.random.default_rng(number)
    case = draw_case(built, rng, samples, rows, kl_weight=0.75)
    blocks = built.layout.views(case.theta)
    if "rho" in blocks:
        blocks["rho"][:2] = far_left, RIGHT
    noise = case.noise
    if isinstance(built.objective, EUBO):
        noise = 0.05 * noise  # so that no sample's share is 0 as a float, which is another path
    if isinstance(built, Flipout):
        noise = noise + 0.1 * rng.standard_normal(noise.shape)  # signs are numbers like others
    return case._replace(noise=noise)


def prove_gradient(number, which):
    """Prove that the gradient of a combination is that of its value."""
    # Far left log softplus(x) = x and its slope 1 to rounding only: not where log q is a weight
    far_left = -4.0 if which.estimator == "self-normalised" else FAR_LEFT
    return prove_case(numbered_case(number, which, far_left), number)


class Exact(textbook.Numpy):
    """The functions of `textbook` for exact numbers; constants stay floats."""

    @staticmethod
    def log(x):
        return log(x) if isinstance(x, float) else np.log(x)

    @staticmethod
    def rising(y, r):
        """Return the difference of log Gammas by the shipped function: its series is of floats."""
        return rising_factorial(y, r).value

    @staticmethod
    def half_step(nu):
        """Return the step of log Gamma by the shipped function: its series is one of floats."""
        return gamma_half_step(nu).value


def with_binary_constants(built):
    """Return the estimator with constants of which logarithms and products are exact."""
    prior = built.model.prior
    if isinstance(prior, ScaleMixturePrior) and not prior.learn:
        built = replace(built, model=replace(built.model, prior=ScaleMixturePrior(0.5, 1.0, 0.25)))
    if isinstance(prior, LayerwiseGaussianPrior) and not prior.learn:
        unit_prior = LayerwiseGaussianPrior((1.0,) * len(prior.counts))
        built = replace(built, model=replace(built.model, prior=unit_prior))
    if isinstance(built.objective, FreeEnergy) and built.objective.beta != 1.0:
        built = replace(built, objective=FreeEnergy(0.125))
    return built


def prove_value(case, seed=0):
    """Prove that the value of a case is its textbook formula."""
    case = case._replace(estimator=with_binary_constants(case.estimator))
    real = case.estimator.model.likelihood.target_kind == "real"
    y = case.y if real else case.y.astype(int)

    def coded(theta, noise, x, y=y):
        return case.estimator.value_and_grad(theta, noise, x, y, case.kl_weight).value

    def formula(theta, noise, x, y=y):
        return textbook.loss(Exact, theta, case._replace(noise=noise, x=x, y=y))

    targets = (y,) if real else ()
    return prove_same(coded, formula, case.theta, case.noise, case.x, *targets, seed=seed)


def is_sum(which):
    """Whether the value of a combination has a textbook formula that can be proved.

    A bound takes a root of the KL, and an ARDPrior roots in its constants, which are rounded: the
    map of the one is proved to be the textbook's in tests/model/test_objectives.py, the value of
    the other is tested in tests/parts/test_relevance.py.
    """
    return which.objective != "pac-bayes" and which.prior != "ard"


def proved_value(number, which):
    """Whether the value of a combination is proved, where it can be."""
    case = numbered_case(number, which, far_left=-4.0)
    return not is_sum(which) or prove_value(case, number).proved
