"""Every combination of parts in exact arithmetic: gradients of values, and values of formulas.

What is proved holds for all theta, noise, data and KL weights on the path of one case: its open
gates and its branches of stable formulas. Fixed scales are powers of two: other constants are
rounded, in a value and in its formula perhaps differently.
"""

from dataclasses import replace
from math import log

import numpy as np
import pytest
import textbook
from covering import covering
from problems import CHECKED, PAIRS, VALID

from bbb_numpy import (
    EUBO,
    Flipout,
    FreeEnergy,
    GaussianLikelihood,
    LayerwiseGaussianPrior,
    ScaleMixturePrior,
)
from bbb_numpy.exact import prove, prove_same
from bbb_numpy.gradients.catalogue import LIKELIHOODS, POSTERIORS
from bbb_numpy.gradients.matrix import estimator, problem, prove_case
from bbb_numpy.numeric.elementary import gamma_half_step
from bbb_numpy.parts.priors import LaplacePrior

# inputs, hidden widths, outputs K, samples S, rows B: all different, 1 among them
SHAPES = [(1, (3,), 2, 4, 5), (5, (3,), 1, 2, 4), (2, (1,), 3, 4, 5), (3, (), 2, 4, 1),
          (4, (3, 1), 5, 2, 6)]  # fmt: skip
FAR_LEFT, RIGHT = -40.0, 2.0  # of the branches of softplus; most rho lie between them


def value_of(which):
    """What a value depends on: estimators that sample weights share theirs, antithetic or not."""
    own = which.estimator if which.estimator in ("local-reparameterisation", "flipout") else ""
    return which._replace(estimator=own or which.estimator.startswith("closed-form"))


# of the different values those in which every three parts meet; before a commit every two
DIFFERENT = list({value_of(which): which for which in VALID}.values())
VALUES = covering(DIFFERENT, 2 if CHECKED is PAIRS else 3)


def case_of(which, far_left):
    """A case of a combination: its number chooses shape and activation, S = 1 now and then."""
    number = VALID.index(which)
    inputs, hidden, outputs, samples, rows = SHAPES[number % 5]
    built = estimator(which, inputs, hidden, outputs, ("relu", "tanh")[number // 5 % 2])
    if number % 11 == 0 and "antithetic" not in which.estimator:
        samples = 1
    rng = np.random.default_rng(number)
    case = problem(built, rng, samples, rows, kl_weight=0.75)
    blocks = built.layout.views(case.theta)
    if "rho" in blocks:
        blocks["rho"][:2] = far_left, RIGHT
    noise = case.noise
    if isinstance(built.objective, EUBO):
        noise = 0.1 * noise  # so that no sample's share is 0 as a float, which is another path
    if isinstance(built, Flipout):
        noise = noise + 0.1 * rng.standard_normal(noise.shape)  # signs are numbers like others
    return case._replace(noise=noise)


# --- gradients


def unproved_gradients(combinations):
    """What is not proved, by name."""
    found = {}
    for which in combinations:
        # There log softplus(x) = x and its slope 1 to rounding: see the test below
        far_left = -4.0 if which.estimator == "self-normalised" else FAR_LEFT
        proof = prove_case(case_of(which, far_left), VALID.index(which))
        if not proof.proved:
            found[str(which)] = str(proof)
    return found


@pytest.mark.equation("D44")
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_every_gradient_is_that_of_its_value_exactly(posterior, likelihood):
    own = [w for w in CHECKED if (w.posterior, w.likelihood) == (posterior, likelihood)]
    assert own
    assert unproved_gradients(own) == {}


def test_far_left_the_slope_of_q_at_fixed_weights_is_rounded_and_not_called_proved():
    which = next(which for which in VALID if which.estimator == "self-normalised")
    proof = prove_case(case_of(which, FAR_LEFT))
    assert proof.verdict == "not proved"
    assert "rounding of a float constant" in proof.reason


# --- values


class Exact:
    """The functions of `textbook` for exact numbers; constants stay floats."""

    exp, abs, tanh, sqrt = np.exp, np.abs, np.tanh, np.sqrt

    @staticmethod
    def log(x):
        return log(x) if isinstance(x, float) else np.log(x)

    @staticmethod
    def half_step(nu):
        """By the shipped function's name: its series is one of floats."""
        return gamma_half_step(nu).value


def with_binary_constants(built):
    """The estimator with constants of which logarithms and products are exact."""
    prior = built.model.prior
    if isinstance(prior, ScaleMixturePrior) and not prior.learn:
        built = replace(built, model=replace(built.model, prior=ScaleMixturePrior(0.5, 1.0, 0.25)))
    if isinstance(prior, LayerwiseGaussianPrior) and not prior.learn:
        ones = LayerwiseGaussianPrior((1.0,) * len(prior.counts))
        built = replace(built, model=replace(built.model, prior=ones))
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


def unproved_values(combinations):
    found = {}
    for which in combinations:
        proof = prove_value(case_of(which, far_left=-4.0), VALID.index(which))
        if not proof.proved:
            found[str(which)] = str(proof)
    return found


@pytest.mark.equation("D44", "K5", "K17", "K18")
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_every_value_is_the_textbook_formula_exactly(likelihood):
    own = [which for which in VALUES if which.likelihood == likelihood]
    assert own
    assert unproved_values(own) == {}


def test_the_values_proved_are_few_and_of_every_kind():
    assert set(VALUES) <= set(VALID)
    assert len(VALUES) < len(VALID) / 4
    assert {value_of(which).estimator for which in VALUES} == {
        True, False, "local-reparameterisation", "flipout",
    }  # fmt: skip


# --- planted errors


def refuted(which):
    return prove_case(case_of(which, far_left=-4.0)).verdict == "refuted"


def test_a_wrong_slope_of_one_prior_is_refuted_wherever_it_is_used(monkeypatch):
    right = LaplacePrior.add_vjp

    def off(self, saved, cotangent, *arguments):
        right(self, saved, cotangent * (1 + 2.0**-40), *arguments)  # one part in 10^12

    monkeypatch.setattr(LaplacePrior, "add_vjp", off)
    few = [which for which in PAIRS if which.prior == "laplace"] + PAIRS[::10]
    # MLE has no prior, and the gradient of the EUBO does not go through the weights
    felt = {w for w in few if w.prior == "laplace" and w.objective not in ("mle", "eubo")}
    assert felt
    assert {which for which in few if refuted(which)} == felt


@pytest.mark.parametrize("share", [2.0**-43, -1e-3])
@pytest.mark.parametrize("posterior", ["mean-field", "full-rank"])
def test_an_error_in_one_derivative_is_refuted_and_named_with_its_amount(posterior, share):
    which = next(which for which in VALID if which.posterior == posterior)
    case = case_of(which, far_left=-4.0)

    def value_and_grad(theta, *arguments):
        value, grad, _ = case.estimator.value_and_grad(theta, *arguments)
        grad = grad.copy()
        grad[3] = grad[3] * (1 + share)
        return value, grad

    proof = prove(value_and_grad, *case[1:6], coordinate=case.estimator.coordinate)
    assert proof.verdict == "refuted"
    (one,) = proof.wrong
    assert one.name == case.estimator.coordinate(3)
    assert float(one.by_hand / one.right - 1) == pytest.approx(share, rel=1e-12)


def half(right):
    """The same method, of which the first result is half as large."""

    def wrong(self, *arguments):
        first, *rest = right(self, *arguments)
        return (0.5 * first, *rest)

    return wrong


@pytest.mark.parametrize("part", [LaplacePrior, GaussianLikelihood])
def test_a_wrong_density_with_its_own_right_gradient_is_no_proof_of_the_formula(monkeypatch, part):
    which = next(w for w in VALID if (w.prior, w.likelihood) == ("laplace", "gaussian"))
    case = case_of(which, far_left=-4.0)
    assert prove_value(case).proved
    monkeypatch.setattr(part, "log_density", half(part.log_density))
    assert prove_value(case).verdict == "refuted"


def test_a_formula_without_its_constant_is_refuted_by_the_constant():
    case = case_of(VALID[0], far_left=-4.0)

    def value(theta):
        return case.estimator.value_and_grad(theta, *case[2:6]).value

    proof = prove_same(value, lambda theta: value(theta) + 0.5, case.theta)
    assert proof.verdict == "refuted"
    assert float(proof.wrong[0].right - proof.wrong[0].by_hand) == 0.5
