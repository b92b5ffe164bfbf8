"""Contestant: PyTorch eager, as its users write it: autograd and `torch.optim.Adam`.

In two forms, one tensor per weight matrix and bias, the usual one, or two long vectors; and with
each implementation of Adam. The other estimators have the usual form, with the surrogates of the
literature where the gradient is not that of the value; the full-rank factor is one square matrix,
of which ``torch.tril`` takes the strict lower triangle.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, prod
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from .problems import KL_WEIGHT, LEARNING_RATE, Array, Problem, Step

VERSION = torch.__version__
USUAL_VARIANT = "layers loop"  # one tensor per layer and the default Adam
ADAMS: dict[str, dict[str, bool]] = {
    "loop": {"foreach": False, "fused": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}
LOG_2PI = log(2.0 * pi)
Tensors = list[torch.Tensor]
Pair = tuple[torch.Tensor, torch.Tensor]  # value, and the loss whose gradient trains


def contestants(problem: Problem) -> dict[str, Step]:
    """Return one step for each form and each implementation of Adam."""
    return {
        f"PyTorch {form} {adam}": Peer(problem, form=form, adam=adam).step
        for form in ("layers", "flat")
        for adam in ADAMS
    }


def step(case: Problem) -> Step:
    """Return one training step of the case's estimator: draw, forward, backward, Adam."""
    return PEER_CLASSES.get(case.estimator_name, Peer)(case).step


def threads() -> int:
    """Return the number of threads in use."""
    return torch.get_num_threads()


def cut(flat: torch.Tensor, shapes: Sequence[tuple[int, ...]]) -> Tensors:
    """View (..., P) as arrays of these shapes, their last two axes at most, one after the other."""
    parts = torch.split(flat, [prod(shape[-2:]) for shape in shapes], dim=-1)
    lead = flat.shape[:-1]
    return [part.reshape(*lead, *shape[-2:]) for part, shape in zip(parts, shapes, strict=True)]


def outputs(blocks: Tensors, a: torch.Tensor) -> torch.Tensor:
    """Return the network's outputs, (..., B, K) for weights with one axis before, or (B, K)."""
    for layer, (weight, bias) in enumerate(zip(blocks[0::2], blocks[1::2], strict=True)):
        if layer:
            a = functional.relu(a)
        if a.dim() == 2:  # plain matrices are what PyTorch is fastest with
            a = torch.addmm(bias, a, weight)
        else:
            a = torch.baddbmm(bias.unsqueeze(1), a, weight)
    return a


class Peer:
    """Parameters, optimizer and rows of one network: the plain estimator, which others change."""

    def __init__(
        self, case: Problem, dtype: Any = np.float32, form: str = "layers", adam: str = "loop"
    ) -> None:
        start = case.start(dtype)
        self.case = case
        self.form = form
        self.dtype = torch.from_numpy(start.theta).dtype
        self.shapes = [shape for _, shape in case.estimator.model.layout.blocks]
        self.x = torch.from_numpy(start.x)
        self.y = torch.from_numpy(start.y)
        self.lead = (case.samples,) if case.samples > 1 else ()  # one sample needs no axis S
        self.parameters = self.make(torch.from_numpy(start.theta))
        self.optimizer = torch.optim.Adam(
            self.parameters, lr=LEARNING_RATE, eps=1e-8, **ADAMS[adam]
        )

    def make(self, theta: torch.Tensor) -> Tensors:
        """Return the tensors to train."""
        self.mu, self.rho = (
            [block.clone().requires_grad_() for block in self.blocks(part)]
            for part in theta.chunk(2)
        )
        return [*self.mu, *self.rho]

    def blocks(self, flat: torch.Tensor) -> Tensors:
        """Cut (..., P) into the tensors that this form keeps."""
        return cut(flat, self.shapes) if self.form == "layers" else [flat]

    def draw(self) -> Any:
        """Draw the noise of one step: here one number for every weight."""
        return [torch.randn((*self.lead, *mu.shape), dtype=self.dtype) for mu in self.mu]

    def noise(self, ours: Array) -> Any:
        """Take the noise that our estimator draws: here (S, P)."""
        return self.blocks(torch.from_numpy(ours).reshape(*self.lead, -1))

    def losses(self, noise: Any) -> Pair:
        """Return the value, and the loss to differentiate: here the free energy, twice."""
        sigma = self.sigma()
        samples = self.case.samples
        w = self.weights(noise, sigma)
        kl = torch.zeros((), dtype=self.dtype)  # with the noise itself for (w - mu) / sigma
        for s, v, e in zip(sigma, w, noise, strict=True):
            kl = kl - s.log().sum() + (v.square().sum() - e.square().sum()) * (0.5 / samples)
        squares = (self.y - self.forward(w)).square().sum()
        nll = squares * (0.5 / samples) + 0.5 * LOG_2PI * self.y.numel()
        return (KL_WEIGHT * kl + nll,) * 2

    def sigma(self) -> Tensors:
        """Return all standard deviations."""
        return [functional.softplus(rho) for rho in self.rho]

    def weights(self, noise: Tensors, sigma: Tensors) -> Tensors:
        """Return mu + sigma eps."""
        return [m + s * e for m, s, e in zip(self.mu, sigma, noise, strict=True)]

    def forward(self, w: Tensors) -> torch.Tensor:
        """Return the outputs (S, B, K), or (B, K) for one sample."""
        blocks = w if self.form == "layers" else cut(w[0], self.shapes)
        return outputs(blocks, self.x.expand(*self.lead, *self.x.shape))

    def log_likelihood(self, f: torch.Tensor) -> torch.Tensor:
        """Return log P(D|w), (S,) or a scalar."""
        return -0.5 * (self.y - f).square().sum((-2, -1)) - 0.5 * LOG_2PI * self.y.numel()

    def flat(self, parts: Tensors) -> torch.Tensor:
        """Sum every tensor but for its axis S, and add them up: (S,) or a scalar."""
        total = torch.zeros((), dtype=self.dtype)
        for part in parts:
            total = total + part.flatten(1 if self.lead else 0).sum(-1)
        return total

    def log_prior(self, w: Tensors) -> torch.Tensor:
        """Return log P(w) for the prior N(0, 1), without its constant."""
        return -0.5 * self.flat([v.square() for v in w])

    def log_q(self, w: Tensors, mu: Tensors, sigma: Tensors) -> torch.Tensor:
        """Return log q(w), the constant left out that `log_prior` leaves out too."""
        squares = [((v - m) / s).square() for v, m, s in zip(w, mu, sigma, strict=True)]
        logs = torch.stack([s.log().sum() for s in sigma]).sum()
        return -0.5 * self.flat(squares) - logs

    def detached(self, w: Tensors, sigma: Tensors) -> torch.Tensor:
        """Return log q(w) with parameters that are not differentiated."""
        return self.log_q(w, [m.detach() for m in self.mu], [s.detach() for s in sigma])

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

    def ordered(self, parts: Tensors) -> Array:
        """Return what belongs to the parameters as one vector, in the order of our theta."""
        return np.asarray(torch.cat([part.reshape(-1) for part in parts]).numpy())

    def theta(self) -> Array:
        """Return the parameters."""
        return self.ordered([p.detach() for p in self.parameters])

    def gradient(self) -> Array:
        """Return the gradient of the last step."""
        return self.ordered([p.grad for p in self.parameters if p.grad is not None])


class Antithetic(Peer):
    """Antithetic noise: in pairs eps, -eps."""

    def draw(self) -> Tensors:
        half = self.case.samples // 2
        drawn = [torch.randn((half, *mu.shape), dtype=self.dtype) for mu in self.mu]
        return [torch.cat([eps, -eps]) for eps in drawn]


class ClosedForm(Peer):
    """Closed-form KL: the divergence by its formula."""

    def losses(self, noise: Tensors) -> Pair:
        sigma = self.sigma()
        log_likelihood = self.log_likelihood(self.forward(self.weights(noise, sigma)))
        return (KL_WEIGHT * self.kl(sigma) - log_likelihood.mean(),) * 2


class Sticking(Peer):
    """Sticking the landing: log q with detached parameters."""

    def losses(self, noise: Tensors) -> Pair:
        sigma = self.sigma()
        w = self.weights(noise, sigma)
        log_q = self.detached(w, sigma)
        terms = KL_WEIGHT * (log_q - self.log_prior(w)) - self.log_likelihood(self.forward(w))
        return (terms.mean(),) * 2


class Doubly(Peer):
    """IWAE: detached log q, and the self-normalised weights squared."""

    def losses(self, noise: Tensors) -> Pair:
        sigma = self.sigma()
        w = self.weights(noise, sigma)
        log_q = self.detached(w, sigma)
        logs = self.log_prior(w) - log_q + self.log_likelihood(self.forward(w)) / KL_WEIGHT
        share = torch.softmax(logs.detach(), 0)
        bound = -KL_WEIGHT * (torch.logsumexp(logs.detach(), 0) - log(self.case.samples))
        return bound, -KL_WEIGHT * (share.square() * logs).sum()


class SelfNormalised(Peer):
    """EUBO: samples and weights held fixed, log q differentiated by its parameters alone."""

    def losses(self, noise: Tensors) -> Pair:
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
        widths = self.case.sizes[1:]
        rows = self.case.rows
        return [torch.randn((*self.lead, rows, width), dtype=self.dtype) for width in widths]

    def noise(self, ours: Array) -> Tensors:
        shapes = [(self.case.rows, width) for width in self.case.sizes[1:]]
        return cut(torch.from_numpy(ours).reshape(*self.lead, -1), shapes)

    def losses(self, noise: Tensors) -> Pair:
        sigma = self.sigma()
        a = self.x
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
        eps = [torch.randn((*self.lead, *mu.shape), dtype=self.dtype) for mu in self.mu]
        signs = [
            torch.empty(shape, dtype=self.dtype).uniform_(-1, 1).sign() for shape in self.signs()
        ]
        return eps, signs

    def noise(self, ours: Array) -> tuple[Tensors, Tensors]:
        flat = torch.from_numpy(ours)
        shapes = self.signs()
        size = sum(prod(shape) for shape in self.shapes)
        eps = self.blocks(flat[:, :size].reshape(*self.lead, -1))
        return eps, cut(flat[:, size:].reshape(*self.lead, -1), shapes)

    def losses(self, noise: tuple[Tensors, Tensors]) -> Pair:
        sigma = self.sigma()
        a = self.x
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
    """Full rank: a Gaussian with a Cholesky factor."""

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
        return torch.randn((self.case.samples, self.case.weights), dtype=self.dtype)

    def noise(self, ours: Array) -> torch.Tensor:
        return torch.from_numpy(ours)

    def losses(self, noise: torch.Tensor) -> Pair:
        diagonal = functional.softplus(self.diagonal)
        factor = torch.tril(self.square, -1) + torch.diag(diagonal)
        w = self.mean + noise @ factor.T
        log_q = -0.5 * noise.square().sum(-1) - diagonal.log().sum()
        log_prior = -0.5 * w.square().sum(-1)
        f = self.forward(self.blocks(w if self.lead else w[0]))
        terms = KL_WEIGHT * (log_q - log_prior) - self.log_likelihood(f)
        return (terms.mean(),) * 2

    def ordered(self, parts: Tensors) -> Array:
        """Return mean, diagonal, and the strict lower triangle, row by row."""
        mean, diagonal, square = parts
        return super().ordered([mean, diagonal, square[self.strict[0], self.strict[1]]])


PEER_CLASSES: dict[str, type[Peer]] = {
    "antithetic": Antithetic,
    "closed-form KL": ClosedForm,
    "sticking the landing": Sticking,
    "local reparameterisation": Local,
    "Flipout": Flipped,
    "doubly reparameterised": Doubly,
    "self-normalised": SelfNormalised,
    "full rank": Full,
}
