"""An independent oracle: automatic differentiation of a loss written from the equations alone.

HIPS autograd when it is installed (it is in the `test` extra), PyTorch when that is.
"""

import numpy as np
import pytest
import textbook
from hypothesis import given
from hypothesis import strategies as st
from problems import VALID, examples, seeds

from bbb_numpy.combinations import Case, build_estimator, draw_case
from bbb_numpy.parts.activations import ACTIVATIONS
from bbb_numpy.registry import LIKELIHOODS, PRIORS

SAMPLED = [which for which in VALID if which.estimator in ("reparameterised", "antithetic")]


@st.composite
def family_cases(draw, **parts):
    """A problem of any combination with these parts that differentiates through sampled weights."""
    combinations = [
        w for w in SAMPLED if all(getattr(w, part) == name for part, name in parts.items())
    ]
    which = draw(st.sampled_from(combinations))
    built = build_estimator(which, 2, draw(st.sampled_from([(), (3,), (2, 2)])), 2, draw(NAMES))
    rng, rows = np.random.default_rng(draw(seeds)), draw(st.integers(1, 3))
    return draw_case(
        built, rng, draw(st.sampled_from([2, 4])), rows, draw(st.sampled_from([1.0, 0.7]))
    )


NAMES = st.sampled_from(list(ACTIVATIONS))


def agree(problem, value, grad):
    if isinstance(problem, Case):
        ours, our_grad, _ = problem.estimator.value_and_grad(*problem[1:6])
    else:
        ours, our_grad, _ = problem.value_and_grad(problem.theta)
    assert ours == pytest.approx(value, rel=1e-11, abs=1e-9)
    assert np.abs(our_grad - grad).max() <= 1e-9 * (1e-6 + np.abs(grad).max())


def by_autograd(loss, case):
    autograd = pytest.importorskip("autograd", reason="HIPS autograd is not installed")
    import autograd.numpy as anp
    from autograd.scipy.special import erf as erf_of_scipy
    from autograd.scipy.special import gammaln

    class Autograd:
        """The functions that the textbook loss uses."""

        exp, log, abs, tanh = anp.exp, anp.log, anp.abs, anp.tanh
        erf = staticmethod(erf_of_scipy)

        @staticmethod
        def rising(y, r):
            return gammaln(y + r) - gammaln(r) - y * anp.log(r)

        @staticmethod
        def half_step(nu):
            return gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * anp.log(nu / 2)

    with np.errstate(over="ignore"):  # of cosh^2 in its slope of tanh
        return autograd.value_and_grad(lambda theta: loss(Autograd, theta, case))(case.theta)


@pytest.mark.equation("R4-R8", "D16", "D17", "D39", "D41", "D42")
@pytest.mark.parametrize("prior", PRIORS)
@examples(15)
@given(data=st.data())
def test_autograd_gives_the_same_for_every_prior(prior, data):
    case = data.draw(family_cases(prior=prior))
    agree(case, *by_autograd(textbook.loss, case))


@pytest.mark.equation("D1", "D12-D15", "D31", "D41", "D43")
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@examples(15)
@given(data=st.data())
def test_autograd_gives_the_same_for_every_likelihood(likelihood, data):
    case = data.draw(family_cases(likelihood=likelihood))
    agree(case, *by_autograd(textbook.loss, case))


@pytest.mark.equation("M1", "M2", "M3", "D24", "D25", "D30", "R1", "R3", "W1", "W2", "K21", "K30")
@pytest.mark.parametrize(("posterior", "objective"), sorted({(w[0], w[4]) for w in SAMPLED}))
@examples(15)
@given(data=st.data())
def test_autograd_gives_the_same_for_every_posterior_and_objective(posterior, objective, data):
    case = data.draw(family_cases(posterior=posterior, objective=objective))
    agree(case, *by_autograd(textbook.loss, case))
