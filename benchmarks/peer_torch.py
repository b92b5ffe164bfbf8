"""Contestant: PyTorch eager, as its users write it: autograd and `torch.optim.Adam`.

In two forms, one tensor per weight matrix and bias, the usual one, or two long vectors; and with
each implementation of Adam. The other estimators have the usual form, with the surrogates of the
literature where the gradient is not that of the value; the full-rank factor is one square matrix,
of which ``torch.tril`` takes the strict lower triangle. `Trials` are whole trainings.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, prod
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from bbb_numpy import Reparameterised
from bbb_numpy.training.stopping import minibatches

from .problems import KL_WEIGHT, LEARNING_RATE, Array, Problem, Step

VERSION = torch.__version__
USUAL = "layers loop"  # one tensor per layer and the default Adam
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
        f"PyTorch {form} {adam}": Sampled(problem, form=form, adam=adam).step
        for form in ("layers", "flat")
        for adam in ADAMS
    }


def step(case: Problem) -> Step:
    """Return one training step of the case's estimator: draw, forward, backward, Adam."""
    return PEERS.get(case.kind, Sampled)(case).step


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


def complexity(sigma: Tensors, w: Tensors, noise: Tensors, samples: int) -> torch.Tensor:
    """Return the mean of log q - log P for N(0, 1), with the noise itself for (w - mu) / sigma."""
    kl = torch.zeros((), dtype=noise[0].dtype)
    for s, v, e in zip(sigma, w, noise, strict=True):
        kl = kl - s.log().sum() + (v.square().sum() - e.square().sum()) * (0.5 / samples)
    return kl


class Peer:
    """Parameters, optimizer and rows of one network; subclasses have `draw`, `noise`, `losses`."""

    def __init__(
        self, case: Problem, dtype: Any = np.float32, form: str = "layers", adam: str = "loop"
    ) -> None:
        start = case.start(dtype)
        self.case, self.form, self.dtype = case, form, torch.from_numpy(start.theta).dtype
        self.shapes = [shape for _, shape in case.estimator.model.layout.blocks]
        self.x, self.y = torch.from_numpy(start.x), torch.from_numpy(start.y)
        self.lead = (case.samples,) if case.samples > 1 else ()  # one sample needs no axis S
        self.parameters = self.make(torch.from_numpy(start.theta))
        self.optimizer = torch.optim.Adam(
            self.parameters, lr=LEARNING_RATE, eps=1e-8, **ADAMS[adam]
        )

    def make(self, theta: torch.Tensor) -> Tensors:
        """Return the tensors to train."""
        mu, rho = theta.chunk(2, dim=-1)
        self.mu, self.rho = (
            [block.clone().requires_grad_() for block in self.blocks(part)] for part in (mu, rho)
        )
        return [*self.mu, *self.rho]

    def blocks(self, flat: torch.Tensor) -> Tensors:
        """Cut (..., P) into the tensors that this form keeps."""
        return cut(flat, self.shapes) if self.form == "layers" else [flat]

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
        """Return all standard deviations."""
        return [functional.softplus(rho) for rho in self.rho]

    def forward(self, w: Tensors) -> torch.Tensor:
        """Return the outputs (S, B, K), or (B, K) for one sample."""
        blocks = w if self.form == "layers" else cut(w[0], self.shapes)
        return outputs(blocks, self.x.expand(*self.lead, *self.x.shape))

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

    def ordered(self, parts: Tensors) -> Array:
        """Return what belongs to the parameters as one vector, in the order of our theta."""
        return np.asarray(torch.cat([part.reshape(-1) for part in parts]).numpy())

    def theta(self) -> Array:
        """Return the parameters."""
        return self.ordered([p.detach() for p in self.parameters])

    def gradient(self) -> Array:
        """Return the gradient of the last step."""
        return self.ordered([p.grad for p in self.parameters if p.grad is not None])


class Sampled(Peer):
    """Weights drawn once per sample: log q and log P by their densities."""

    def draw(self) -> Tensors:
        """Draw one number for every weight."""
        return [torch.randn((*self.lead, *mu.shape), dtype=self.dtype) for mu in self.mu]

    def noise(self, ours: Array) -> Tensors:
        """Cut (S, P)."""
        return self.blocks(torch.from_numpy(ours).reshape(*self.lead, -1))

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

    def detached(self, w: Tensors, sigma: Tensors) -> torch.Tensor:
        """Return log q(w) with parameters that are not differentiated."""
        return self.log_q(w, [m.detach() for m in self.mu], [s.detach() for s in sigma])

    def log_prior(self, w: Tensors) -> torch.Tensor:
        """Return log P(w) for the prior N(0, 1)."""
        return -0.5 * self.flat([v.square() for v in w])

    def weights(self, noise: Tensors, sigma: Tensors) -> Tensors:
        """Return mu + sigma eps."""
        return [m + s * e for m, s, e in zip(self.mu, sigma, noise, strict=True)]

    def losses(self, noise: Tensors) -> Pair:
        """Return the free energy, twice."""
        sigma, samples = self.sigma(), self.case.samples
        w = self.weights(noise, sigma)
        squares = (self.y - self.forward(w)).square().sum()
        nll = squares * (0.5 / samples) + 0.5 * LOG_2PI * self.y.numel()
        return (KL_WEIGHT * complexity(sigma, w, noise, samples) + nll,) * 2


class Antithetic(Sampled):
    """Noise in pairs."""

    def draw(self) -> Tensors:
        """Draw half of the noise and mirror it."""
        half = self.case.samples // 2
        drawn = [torch.randn((half, *mu.shape), dtype=self.dtype) for mu in self.mu]
        return [torch.cat([eps, -eps]) for eps in drawn]


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
        log_q = self.detached(w, sigma)
        terms = KL_WEIGHT * (log_q - self.log_prior(w)) - self.log_likelihood(self.forward(w))
        return (terms.mean(),) * 2


class Doubly(Sampled):
    """IWAE: detached log q, and the self-normalised weights squared."""

    def losses(self, noise: Tensors) -> Pair:
        """Return the bound, and the surrogate."""
        sigma = self.sigma()
        w = self.weights(noise, sigma)
        log_q = self.detached(w, sigma)
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
        shapes = [(self.case.rows, width) for width in self.case.sizes[1:]]
        return cut(torch.from_numpy(ours).reshape(*self.lead, -1), shapes)

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
        eps = self.blocks(flat[:, :size].reshape(*self.lead, -1))
        return eps, cut(flat[:, size:].reshape(*self.lead, -1), shapes)

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
        f = self.forward(self.blocks(w if self.lead else w[0]))
        terms = KL_WEIGHT * (log_q - log_prior) - self.log_likelihood(f)
        return (terms.mean(),) * 2

    def ordered(self, parts: Tensors) -> Array:
        """Return mean, diagonal, and the strict lower triangle, row by row."""
        mean, diagonal, square = parts
        return super().ordered([mean, diagonal, square[self.strict[0], self.strict[1]]])


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


class Trials(Sampled):
    """R trainings of one shape: mean field, prior N(0, 1), Gaussian noise that is learned.

    Every parameter has R as its first axis: all networks are one batched product. They begin at
    `thetas`, (2 P + 1,) each: mu, rho, log_noise; rows are (R, N, d_in) and (R, N, 1).
    """

    def __init__(
        self,
        estimator: Reparameterised,
        thetas: Sequence[Array],
        rows: tuple[Array, Array],
        samples: int,
        batch_size: int,
        learning_rate: float,
        form: str = "layers",
        adam: str = "loop",
    ) -> None:
        self.form, self.samples = form, samples
        self.shapes = [shape for _, shape in estimator.model.layout.blocks]
        self.x, self.y = map(torch.from_numpy, rows)
        self.batches = minibatches(self.x.shape[1], batch_size)
        start = torch.from_numpy(np.stack(thetas))  # (R, 2 P + 1)
        self.dtype, self.lead = start.dtype, (samples,)
        self.log_noise = start[:, -1:].clone().requires_grad_()  # (R, 1)
        self.parameters = [*self.make(start[:, :-1]), self.log_noise]
        self.optimizer = torch.optim.Adam(
            self.parameters, lr=learning_rate, eps=1e-8, **ADAMS[adam]
        )

    def noise(self, ours: Array) -> Tensors:
        """Cut (S, R, P)."""
        return self.blocks(torch.from_numpy(ours))

    def batch(self, x: torch.Tensor, y: torch.Tensor, share: float) -> None:
        """Set the minibatch (R, B, ...) of the next step, and its share of the complexity."""
        self.now = x, y, share

    def losses(self, noise: Tensors) -> Pair:
        """Return the free energy of the minibatch, summed over the R networks, twice."""
        x, y, share = self.now
        sigma = self.sigma()
        w = self.weights(noise, sigma)  # (S, R, ...)
        blocks = w if self.form == "layers" else cut(w[0], self.shapes)
        blocks = [block.flatten(0, 1) for block in blocks]  # (S R, ...): one batched product
        a = x.expand(self.samples, *x.shape).flatten(0, 1)  # (S R, B, d_in)
        if len(a) == 1:
            blocks, a = [block[0] for block in blocks], a[0]
        residual = y - outputs(blocks, a).view(self.samples, *y.shape)  # (S, R, B, 1)
        squares = residual.square().sum(dim=(0, 2)) * (0.5 / self.samples)  # (R, 1)
        rows = y.shape[1]
        nll = (torch.exp(-2.0 * self.log_noise) * squares + rows * self.log_noise).sum()
        constant = 0.5 * LOG_2PI * rows * len(y)
        return (share * complexity(sigma, w, noise, self.samples) + nll + constant,) * 2

    def fit(self, epochs: int) -> None:
        """Train: a new row order for every network in every epoch, minibatch after minibatch."""
        count, rows = self.x.shape[:2]
        for _ in range(epochs):
            order = torch.stack([torch.randperm(rows) for _ in range(count)])
            x, y = (part[torch.arange(count)[:, None], order] for part in (self.x, self.y))
            for batch in self.batches:
                self.batch(x[:, batch], y[:, batch], (batch.stop - batch.start) / rows)
                self.step()

    def ordered(self, parts: Tensors) -> Array:
        """Return the same of each network, (R, 2 P + 1)."""
        return np.asarray(torch.cat([part.flatten(1) for part in parts], dim=1).numpy())
