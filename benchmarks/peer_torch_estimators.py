"""Contestant: every estimator in PyTorch, as a user of PyTorch writes it.

One tensor per weight matrix and bias, gradients by autograd, the default Adam; the surrogates of
the literature where the gradient is not that of the value. The full-rank factor is one square
matrix, of which ``torch.tril`` takes the strict lower triangle.
"""

from __future__ import annotations

from math import log, pi, prod
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from .cases import Case
from .problems import KL_WEIGHT, LEARNING_RATE, Array, Step

VERSION = torch.__version__
LOG_2PI = log(2.0 * pi)
Tensors = list[torch.Tensor]
Pair = tuple[torch.Tensor, torch.Tensor]  # value, and the loss whose gradient trains


def step(case: Case) -> Step:
    """Return one training step: draw, forward, backward, Adam."""
    return PEERS.get(case.kind, Sampled)(case).step


class Peer:
    """Parameters, optimizer and rows of one network; subclasses have `draw`, `noise`, `losses`."""

    def __init__(self, case: Case, dtype: Any = np.float32) -> None:
        start = case.start(dtype)
        self.case, self.dtype = case, torch.from_numpy(start.theta).dtype
        model = case.estimator.model
        self.shapes = [shape for _, shape in model.layout.blocks]
        self.x, self.y = torch.from_numpy(start.x), torch.from_numpy(start.y)
        # One sample needs no axis S, and plain matrices are what PyTorch is fastest with.
        self.lead = (case.samples,) if case.samples > 1 else ()
        self.parameters = self.make(torch.from_numpy(start.theta))
        self.optimizer = torch.optim.Adam(self.parameters, lr=LEARNING_RATE, eps=1e-8)

    def make(self, theta: torch.Tensor) -> Tensors:
        """Return the tensors to train."""
        mu, rho = theta.chunk(2)
        self.mu, self.rho = (
            [block.clone().requires_grad_() for block in self.cut(part)] for part in (mu, rho)
        )
        return [*self.mu, *self.rho]

    def cut(self, flat: torch.Tensor) -> Tensors:
        """View (..., P) as W0, b0, W1, b1, ..."""
        parts = torch.split(flat, [prod(shape) for shape in self.shapes], dim=-1)
        return [
            part.reshape(*flat.shape[:-1], *shape)
            for part, shape in zip(parts, self.shapes, strict=True)
        ]

    def draw(self) -> Any:
        """Draw the noise of one step."""
        raise NotImplementedError

    def noise(self, ours: Array) -> Any:
        """Take the noise that our estimator draws."""
        raise NotImplementedError

    def losses(self, noise: Any) -> Pair:
        """Return the value, and the loss to differentiate."""
        raise NotImplementedError

    def sigma(self) -> Tensors:
        """Return all deviations."""
        return [functional.softplus(rho) for rho in self.rho]

    def forward(self, w: Tensors) -> torch.Tensor:
        """Return the outputs (S, B, K), or (B, K) for one sample."""
        a = self.x.expand(*self.lead, *self.x.shape)
        for layer, (weight, bias) in enumerate(zip(w[0::2], w[1::2], strict=True)):
            if layer:
                a = functional.relu(a)
            if self.lead:
                a = torch.baddbmm(bias.unsqueeze(1), a, weight)
            else:
                a = torch.addmm(bias, a, weight)
        return a

    def log_likelihood(self, f: torch.Tensor) -> torch.Tensor:
        """Return log P(D|w), (S,) or a scalar."""
        return -0.5 * (self.y - f).square().sum((-2, -1)) - 0.5 * LOG_2PI * self.y.numel()

    def kl(self, sigma: Tensors) -> torch.Tensor:
        """Return KL(q || N(0, 1)) in closed form."""
        total = torch.zeros((), dtype=self.dtype)
        for m, s in zip(self.mu, sigma, strict=True):
            total = total + 0.5 * (m.square() + s.square() - 1.0).sum() - s.log().sum()
        return total

    def advance(self, noise: Any) -> torch.Tensor:
        """Take one Adam step with this noise and return the value before it."""
        self.optimizer.zero_grad(set_to_none=True)
        value, loss = self.losses(noise)
        torch.autograd.backward(loss)
        self.optimizer.step()
        return value

    def step(self) -> None:
        """Take one training step."""
        self.advance(self.draw())

    def gradient(self) -> Array:
        """Return the gradient of the last step in the order of our theta."""
        return np.asarray(torch.cat([grad.reshape(-1) for grad in self.gradients()]).numpy())

    def gradients(self) -> Tensors:
        """Return the gradient of every parameter."""
        return [p.grad for p in self.parameters if p.grad is not None]


class Sampled(Peer):
    """Weights drawn once per sample: log q and log P by their densities."""

    def draw(self) -> Tensors:
        """Draw one number for every weight."""
        shapes = [(*self.lead, *mu.shape) for mu in self.mu]
        return [torch.randn(shape, dtype=self.dtype) for shape in shapes]

    def noise(self, ours: Array) -> Tensors:
        """Cut (S, P)."""
        return self.cut(torch.from_numpy(ours).reshape(*self.lead, -1))

    def flat(self, parts: Tensors) -> torch.Tensor:
        """Sum every tensor but for its axis S, and add them up: (S,) or a scalar."""
        total = torch.zeros((), dtype=self.dtype)
        for part in parts:
            total = total + part.flatten(1 if self.lead else 0).sum(-1)
        return total

    def log_q(self, w: Tensors, mu: Tensors, sigma: Tensors) -> torch.Tensor:
        """Return log q(w), the constant left out that `log_prior` leaves out too."""
        squares = [((v - m) / s).square() for v, m, s in zip(w, mu, sigma, strict=True)]
        logs = torch.stack([s.log().sum() for s in sigma]).sum()
        return -0.5 * self.flat(squares) - logs

    def log_prior(self, w: Tensors) -> torch.Tensor:
        """Return log P(w) for the prior N(0, 1)."""
        return -0.5 * self.flat([v.square() for v in w])

    def weights(self, noise: Tensors, sigma: Tensors) -> Tensors:
        """Return mu + sigma eps."""
        return [m + s * e for m, s, e in zip(self.mu, sigma, noise, strict=True)]

    def losses(self, noise: Tensors) -> Pair:
        """Return the free energy, twice."""
        sigma = self.sigma()
        w = self.weights(noise, sigma)
        # (w - mu) / sigma is the noise itself
        log_q = -0.5 * self.flat([e.square() for e in noise])
        log_q = log_q - torch.stack([s.log().sum() for s in sigma]).sum()
        terms = KL_WEIGHT * (log_q - self.log_prior(w)) - self.log_likelihood(self.forward(w))
        return (terms.mean(),) * 2


class Antithetic(Sampled):
    """Noise in pairs."""

    def draw(self) -> Tensors:
        """Draw half of the noise and mirror it."""
        half = [
            torch.randn((self.case.samples // 2, *mu.shape), dtype=self.dtype) for mu in self.mu
        ]
        return [torch.cat([eps, -eps]) for eps in half]


class ClosedForm(Sampled):
    """The KL divergence by its formula."""

    def losses(self, noise: Tensors) -> Pair:
        """Return the free energy, twice."""
        sigma = self.sigma()
        log_likelihood = self.log_likelihood(self.forward(self.weights(noise, sigma)))
        return (KL_WEIGHT * self.kl(sigma) - log_likelihood.mean(),) * 2


class Sticking(Sampled):
    """log q with detached parameters."""

    def losses(self, noise: Tensors) -> Pair:
        """Return the free energy, twice."""
        sigma = self.sigma()
        w = self.weights(noise, sigma)
        log_q = self.log_q(w, [m.detach() for m in self.mu], [s.detach() for s in sigma])
        terms = KL_WEIGHT * (log_q - self.log_prior(w)) - self.log_likelihood(self.forward(w))
        return (terms.mean(),) * 2


class Doubly(Sampled):
    """IWAE: detached log q, and the self-normalised weights squared."""

    def losses(self, noise: Tensors) -> Pair:
        """Return the bound, and the surrogate."""
        sigma = self.sigma()
        w = self.weights(noise, sigma)
        log_q = self.log_q(w, [m.detach() for m in self.mu], [s.detach() for s in sigma])
        logs = self.log_prior(w) - log_q + self.log_likelihood(self.forward(w)) / KL_WEIGHT
        share = torch.softmax(logs.detach(), 0)
        bound = -KL_WEIGHT * (torch.logsumexp(logs.detach(), 0) - log(self.case.samples))
        return bound, -KL_WEIGHT * (share.square() * logs).sum()


class SelfNormalised(Sampled):
    """EUBO: samples and weights held fixed, log q differentiated by its parameters alone."""

    def losses(self, noise: Tensors) -> Pair:
        """Return the EUBO, and the surrogate."""
        with torch.no_grad():
            w = self.weights(noise, self.sigma())
            log_joint = self.log_prior(w) + self.log_likelihood(self.forward(w)) / KL_WEIGHT
        log_q = self.log_q(w, self.mu, self.sigma())
        logs = log_joint - log_q.detach()
        share = torch.softmax(logs, 0)
        return KL_WEIGHT * (share @ logs), -KL_WEIGHT * (share @ log_q)


class Local(Peer):
    """Local reparameterisation: each layer's outputs are sampled."""

    def draw(self) -> Tensors:
        """Draw one number for every output of every layer and row."""
        widths, rows = self.case.sizes[1:], self.case.rows
        return [torch.randn((*self.lead, rows, width), dtype=self.dtype) for width in widths]

    def noise(self, ours: Array) -> Tensors:
        """Cut (S, rows * widths)."""
        widths, rows = self.case.sizes[1:], self.case.rows
        sizes = [rows * width for width in widths]
        parts = torch.split(torch.from_numpy(ours), sizes, dim=-1)
        shapes = [(*self.lead, rows, width) for width in widths]
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def losses(self, noise: Tensors) -> Pair:
        """Return the free energy, twice."""
        sigma, a = self.sigma(), self.x
        for layer, zeta in enumerate(noise):
            mean, bias = self.mu[2 * layer : 2 * layer + 2]
            spread, bias_spread = (s.square() for s in sigma[2 * layer : 2 * layer + 2])
            if layer:
                a = functional.relu(a)
            a = a @ mean + bias + (a.square() @ spread + bias_spread).sqrt() * zeta
        return (KL_WEIGHT * self.kl(sigma) - self.log_likelihood(a).mean(),) * 2


class Flipped(Peer):
    """Flipout: one perturbation of the weights, random signs for every row."""

    def signs(self) -> list[tuple[int, ...]]:
        """Return the shapes of the signs of inputs, outputs and bias, layer by layer."""
        shapes = []
        for d_in, d_out in zip(self.case.sizes[:-1], self.case.sizes[1:], strict=True):
            shapes += [(*self.lead, self.case.rows, width) for width in (d_in, d_out, d_out)]
        return shapes

    def draw(self) -> tuple[Tensors, Tensors]:
        """Draw the perturbation and the signs."""
        eps = [torch.randn((*self.lead, *mu.shape), dtype=self.dtype) for mu in self.mu]
        signs = [
            torch.empty(shape, dtype=self.dtype).uniform_(-1, 1).sign() for shape in self.signs()
        ]
        return eps, signs

    def noise(self, ours: Array) -> tuple[Tensors, Tensors]:
        """Cut (S, P + signs)."""
        flat, shapes = torch.from_numpy(ours), self.signs()
        size = sum(prod(shape) for shape in self.shapes)
        eps = self.cut(flat[:, :size].reshape(*self.lead, -1))
        parts = torch.split(flat[:, size:], [prod(shape[-2:]) for shape in shapes], dim=-1)
        return eps, [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def losses(self, noise: tuple[Tensors, Tensors]) -> Pair:
        """Return the free energy, twice."""
        sigma, a = self.sigma(), self.x
        push = [s * e for s, e in zip(sigma, noise[0], strict=True)]
        for layer in range(len(self.case.sizes) - 1):
            mean, bias = self.mu[2 * layer : 2 * layer + 2]
            shift, shift_b = push[2 * layer : 2 * layer + 2]
            r, s, t = noise[1][3 * layer : 3 * layer + 3]
            if layer:
                a = functional.relu(a)
            a = a @ mean + bias + ((a * r) @ shift) * s + t * shift_b.unsqueeze(-2)
        return (KL_WEIGHT * self.kl(sigma) - self.log_likelihood(a).mean(),) * 2


class Full(Peer):
    """A Gaussian with a Cholesky factor."""

    def make(self, theta: torch.Tensor) -> Tensors:
        """Return mu, the raw diagonal, and a square matrix for the strict lower triangle."""
        size = self.case.weights
        mean, diagonal, lower = torch.split(theta, [size, size, len(theta) - 2 * size])
        square = torch.zeros((size, size), dtype=theta.dtype)
        self.strict = torch.tril_indices(size, size, -1)
        square[self.strict[0], self.strict[1]] = lower
        self.mean, self.diagonal = mean.clone(), diagonal.clone()
        self.square = square
        return [p.requires_grad_() for p in (self.mean, self.diagonal, self.square)]

    def draw(self) -> torch.Tensor:
        """Draw one number for every weight."""
        return torch.randn((self.case.samples, self.case.weights), dtype=self.dtype)

    def noise(self, ours: Array) -> torch.Tensor:
        """Take (S, P) as it is."""
        return torch.from_numpy(ours)

    def losses(self, noise: torch.Tensor) -> Pair:
        """Return the free energy, twice."""
        diagonal = functional.softplus(self.diagonal)
        factor = torch.tril(self.square, -1) + torch.diag(diagonal)
        w = self.mean + noise @ factor.T
        log_q = -0.5 * noise.square().sum(-1) - diagonal.log().sum()
        log_prior = -0.5 * w.square().sum(-1)
        f = self.forward(self.cut(w if self.lead else w[0]))
        terms = KL_WEIGHT * (log_q - log_prior) - self.log_likelihood(f)
        return (terms.mean(),) * 2

    def gradient(self) -> Array:
        """Return the gradient of the last step in the order of our theta."""
        mean, diagonal, square = self.gradients()
        lower = square[self.strict[0], self.strict[1]]
        return np.asarray(torch.cat([mean, diagonal, lower]).numpy())


PEERS: dict[str, type[Peer]] = {
    "antithetic": Antithetic,
    "closed-form KL": ClosedForm,
    "sticking the landing": Sticking,
    "local reparameterisation": Local,
    "Flipout": Flipped,
    "doubly reparameterised": Doubly,
    "self-normalised": SelfNormalised,
    "full rank": Full,
}
