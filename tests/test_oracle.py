"""An independent oracle: automatic differentiation of a loss written from the equations alone.

HIPS autograd when it is installed (it is in the `test` extra), PyTorch when that is.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import problems

EVERYTHING = ("K5", "K17", "K18", "K21", "K30", "K42", "D1")


def textbook_free_energy(np_like, theta, problem):
    """F of K5, densities as printed in textbooks, layer by layer, one sample at a time."""
    estimator, eps, x, y, pi = (
        problem.estimator, problem.noise, problem.x, problem.y, problem.kl_weight,
    )  # fmt: skip
    sizes, activation = estimator.model.network.sizes, estimator.model.network.activation
    prior, likelihood = estimator.model.prior.scale, estimator.model.likelihood
    size = eps.shape[1]
    mu, rho, rest = theta[:size], theta[size : 2 * size], theta[2 * size :]
    log_noise = rest if likelihood.learn else np.log(likelihood.scale)
    noise = np_like.exp(rest) if likelihood.learn else likelihood.scale
    sigma = np_like.log(1 + np_like.exp(rho))
    total = 0.0
    for e in eps:
        w, a, at = mu + sigma * e, x, 0
        for layer, (d_in, d_out) in enumerate(pairwise(sizes)):
            weight = w[at : at + d_in * d_out].reshape((d_in, d_out))
            at += d_in * d_out
            z = a @ weight + w[at : at + d_out]
            at += d_out
            if layer == len(sizes) - 2:
                a = z
            elif activation == "relu":
                a = z * (z > 0)
            else:
                a = np_like.tanh(z)
        log_q = (-np_like.log(sigma) - 0.5 * ((w - mu) / sigma) ** 2).sum()
        log_prior = (-np.log(prior) - 0.5 * (w / prior) ** 2).sum()
        log_likelihood = (-0.5 * np.log(2 * np.pi) - log_noise - 0.5 * ((y - a) / noise) ** 2).sum()
        total = total + pi * (log_q - log_prior) - log_likelihood
    return total / len(eps)


cases = problems(rho=st.sampled_from([-5.0, -1.0, 1.0]), rows=st.integers(1, 5))


def agree(problem, value, grad):
    ours, our_grad = problem.value_and_grad(problem.theta)
    assert ours == pytest.approx(value, rel=1e-11, abs=1e-9)
    assert np.abs(our_grad - grad).max() <= 1e-9 * (1e-6 + np.abs(grad).max())


@pytest.mark.equation(*EVERYTHING)
@settings(max_examples=60)
@given(problem=cases)
def test_autograd_gives_the_same_value_and_gradient(problem):
    autograd = pytest.importorskip("autograd", reason="HIPS autograd is not installed")
    import autograd.numpy as anp

    def loss(theta):
        return textbook_free_energy(anp, theta, problem)

    value, grad = autograd.value_and_grad(loss)(problem.theta)
    agree(problem, value, grad)


@pytest.mark.equation(*EVERYTHING)
@settings(max_examples=60)
@given(problem=cases)
def test_pytorch_gives_the_same_value_and_gradient(problem):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    class Torch:
        """The four functions of NumPy's interface that the textbook loss uses."""

        exp, log = staticmethod(torch.exp), staticmethod(torch.log)
        tanh = staticmethod(torch.tanh)

    tensors = problem._replace(
        noise=torch.as_tensor(problem.noise),
        x=torch.as_tensor(problem.x),
        y=torch.as_tensor(problem.y),
    )
    theta = torch.tensor(problem.theta, requires_grad=True)
    value = textbook_free_energy(Torch, theta, tensors)
    value.backward()
    agree(problem, value.item(), theta.grad.numpy())
