"""An independent oracle: automatic differentiation of a loss written from the equations alone.

HIPS autograd when it is installed (it is in the `test` extra), PyTorch when that is.
"""

import numpy as np
import pytest
import textbook
from hypothesis import given
from hypothesis import strategies as st
from problems import VALID, examples, problems, seeds

from bbb_numpy.gradients.catalogue import LIKELIHOODS, PRIORS
from bbb_numpy.gradients.matrix import Case, estimator, problem
from bbb_numpy.parts.activations import ACTIVATIONS

EVERYTHING = ("K5", "K17", "K18", "K21", "K30", "K42", "D1")


def textbook_free_energy(np_like, theta, problem):
    """F of K5, densities as printed in textbooks, layer by layer, one sample at a time."""
    estimator, eps, x, y, pi = (
        problem.estimator, problem.noise, problem.x, problem.y, problem.kl_weight,
    )  # fmt: skip
    prior, likelihood = estimator.model.prior.scale, estimator.model.likelihood
    size = eps.shape[1]
    mu, rho, rest = theta[:size], theta[size : 2 * size], theta[2 * size :]
    log_noise = rest if likelihood.learn else np.log(likelihood.scale)
    noise = np_like.exp(rest) if likelihood.learn else likelihood.scale
    sigma = np_like.log(1 + np_like.exp(rho))
    total = 0.0
    for e in eps:
        w = mu + sigma * e
        a = textbook.outputs(np_like, w, x, estimator.model.network)
        log_q = (-np_like.log(sigma) - 0.5 * ((w - mu) / sigma) ** 2).sum()
        log_prior = (-np.log(prior) - 0.5 * (w / prior) ** 2).sum()
        log_likelihood = (-0.5 * np.log(2 * np.pi) - log_noise - 0.5 * ((y - a) / noise) ** 2).sum()
        total = total + pi * (log_q - log_prior) - log_likelihood
    return total / len(eps)


cases = problems(rho=st.sampled_from([-5.0, -1.0, 1.0]), rows=st.integers(1, 5))
SAMPLED = [which for which in VALID if which.estimator in ("reparameterised", "antithetic")]


@st.composite
def family_cases(draw, **parts):
    """A problem of any combination with these parts that differentiates through sampled weights."""
    own = [w for w in SAMPLED if all(getattr(w, part) == name for part, name in parts.items())]
    which = draw(st.sampled_from(own))
    built = estimator(which, 2, draw(st.sampled_from([(), (3,), (2, 2)])), 2, draw(NAMES))
    rng, rows = np.random.default_rng(draw(seeds)), draw(st.integers(1, 3))
    return problem(
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
        def half_step(nu):
            return gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * anp.log(nu / 2)

    with np.errstate(over="ignore"):  # of cosh^2 in its slope of tanh
        return autograd.value_and_grad(lambda theta: loss(Autograd, theta, case))(case.theta)


def by_pytorch(loss, case):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    class Torch:
        """The functions of NumPy's interface that the textbook loss uses."""

        exp, log = staticmethod(torch.exp), staticmethod(torch.log)
        tanh, erf = staticmethod(torch.tanh), staticmethod(torch.erf)

    tensors = case._replace(
        noise=torch.as_tensor(case.noise), x=torch.as_tensor(case.x), y=torch.as_tensor(case.y)
    )
    theta = torch.tensor(case.theta, requires_grad=True)
    value = loss(Torch, theta, tensors)
    value.backward()
    return value.item(), theta.grad.numpy()


@pytest.mark.equation(*EVERYTHING)
@examples(60)
@given(problem=cases)
def test_autograd_gives_the_same_value_and_gradient(problem):
    agree(problem, *by_autograd(textbook_free_energy, problem))


@pytest.mark.equation(*EVERYTHING)
@examples(60)
@given(problem=cases)
def test_pytorch_gives_the_same_value_and_gradient(problem):
    agree(problem, *by_pytorch(textbook_free_energy, problem))


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
