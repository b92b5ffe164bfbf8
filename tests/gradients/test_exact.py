"""Every combination of parts in exact arithmetic: gradients of values, and values of formulas.

What is proved holds for all theta, noise, data and KL weights on the path of one case: its open
gates and its branches of stable formulas. Fixed scales are powers of two: other constants are
rounded, in a value and in its formula perhaps differently.
"""

import pytest
from covering import covering
from exact_cases import FAR_LEFT, numbered_case, prove_gradient, prove_value
from problems import CHECKED, PAIRS, VALID

from bbb_numpy import GaussianLikelihood
from bbb_numpy.exact import prove, prove_same
from bbb_numpy.gradients.catalogue import LIKELIHOODS, POSTERIORS
from bbb_numpy.gradients.matrix import prove_case
from bbb_numpy.parts.priors import LaplacePrior


def value_of(which):
    """What a value depends on: estimators that sample weights share theirs, antithetic or not."""
    own = which.estimator if which.estimator in ("local-reparameterisation", "flipout") else ""
    return which._replace(estimator=own or which.estimator.startswith("closed-form"))


# of the different values those in which every three parts meet; before a commit every two
DIFFERENT = list({value_of(which): which for which in VALID}.values())
VALUES = covering(DIFFERENT, 2 if CHECKED is PAIRS else 3)


def case_of(which, far_left):
    """The case of its number among all that are valid."""
    return numbered_case(VALID.index(which), which, far_left)


# --- gradients


def unproved_gradients(combinations):
    """What is not proved, by name: the first three."""
    found = {}
    for which in combinations:
        if len(found) == 3:
            break
        proof = prove_gradient(VALID.index(which), which)
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


def unproved_values(combinations):
    found = {}
    for which in combinations:
        if len(found) == 3:
            break
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
    few = [which for which in PAIRS if which.prior == "laplace"][::4] + PAIRS[::20]
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
