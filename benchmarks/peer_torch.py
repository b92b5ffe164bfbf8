"""Contestant: PyTorch eager, the same step written as a user of PyTorch writes it.

Two forms, each with the three implementations of ``torch.optim.Adam``: one tensor per
weight matrix and bias, the usual form; and mu and rho as one flat vector each, which
needs fewer calls. `step_time` times all six and takes the fastest, and reports the usual
form beside it.
"""

from __future__ import annotations

from math import log, pi, prod
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from .problems import KL_WEIGHT, LEARNING_RATE, Array, Problem, Step

VERSION = torch.__version__
USUAL = "layers loop"  # the form of tutorials, with the Adam that PyTorch picks on a CPU
ADAMS: dict[str, dict[str, Any]] = {
    "loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


def contestants(problem: Problem) -> dict[str, Step]:
    """Return one step for each form and each implementation of Adam."""
    return {
        f"PyTorch {form} {adam}": Peer(problem, form, adam).step
        for form in ("layers", "flat")
        for adam in ADAMS
    }


def threads() -> int:
    """Return how many threads PyTorch uses."""
    return torch.get_num_threads()


class Peer:
    """Parameters, optimizer and rows of one network."""

    def __init__(
        self, problem: Problem, form: str = "flat", adam: str = "loop", dtype: Any = np.float32
    ) -> None:
        start = problem.start(dtype)
        self.problem, self.form = problem, form
        self.shapes = [shape for _, shape in problem.estimator.model.layout.blocks]
        self.x, self.y = torch.from_numpy(start.x), torch.from_numpy(start.y)
        # One sample needs no axis S, and plain matrices are what PyTorch is fastest with.
        self.lead = (problem.samples,) if problem.samples > 1 else ()
        mu, rho = torch.from_numpy(start.theta).chunk(2)
        self.mu, self.rho = (
            [block.clone().requires_grad_() for block in self.blocks(part)] for part in (mu, rho)
        )
        self.optimizer = torch.optim.Adam(
            [*self.mu, *self.rho], lr=LEARNING_RATE, eps=1e-8, **ADAMS[adam]
        )

    def blocks(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Cut (..., P) into the tensors that this form keeps."""
        return self.cut(flat) if self.form == "layers" else [flat]

    def cut(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """View (..., P) as W0, b0, W1, b1, ..."""
        parts = torch.split(flat, [prod(shape) for shape in self.shapes], dim=-1)
        return [
            part.view(*flat.shape[:-1], *shape)
            for part, shape in zip(parts, self.shapes, strict=True)
        ]

    def draw(self) -> list[torch.Tensor]:
        """Draw the noise of one step."""
        return [torch.randn(*self.lead, *mu.shape, dtype=mu.dtype) for mu in self.mu]

    def noise(self, eps: Array) -> list[torch.Tensor]:
        """Take given noise (S, P) instead of drawing it."""
        return self.blocks(torch.from_numpy(eps).view(*self.lead, -1))

    def loss(self, noise: list[torch.Tensor]) -> torch.Tensor:
        """Return the free energy of the minibatch."""
        samples, rows = self.problem.samples, self.problem.rows
        sigma = [functional.softplus(rho) for rho in self.rho]
        w = [m + s * e for m, s, e in zip(self.mu, sigma, noise, strict=True)]
        kl: Any = 0.0  # log q - log P; their constants cancel for a prior N(0, 1)
        for s, v, e in zip(sigma, w, noise, strict=True):
            kl = kl - s.log().sum() + (v.square().sum() - e.square().sum()) * (0.5 / samples)
        blocks = w if self.form == "layers" else self.cut(w[0])
        a = self.x.expand(*self.lead, *self.x.shape)
        for layer, (weight, bias) in enumerate(zip(blocks[0::2], blocks[1::2], strict=True)):
            if layer:
                a = functional.relu(a)
            if self.lead:
                a = torch.baddbmm(bias.unsqueeze(1), a, weight)  # (S, B, width)
            else:
                a = torch.addmm(bias, a, weight)  # (B, width)
        squares = (self.y - a).square().sum()
        constant = 0.5 * log(2.0 * pi) * rows * self.problem.sizes[-1]
        return KL_WEIGHT * kl + squares * (0.5 / samples) + constant

    def advance(self, noise: list[torch.Tensor]) -> torch.Tensor:
        """Take one Adam step with this noise and return the loss before it."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(noise)
        torch.autograd.backward(loss)
        self.optimizer.step()
        return loss

    def step(self) -> None:
        """Take one training step."""
        self.advance(self.draw())

    def theta(self) -> Array:
        """Return the parameters as one vector (2 P,), mu then rho."""
        flat = torch.cat([p.detach().reshape(-1) for p in (*self.mu, *self.rho)])
        return np.asarray(flat.numpy())

    def gradient(self) -> Array:
        """Return the gradient of the last step as one vector (2 P,)."""
        grads = [p.grad.reshape(-1) for p in (*self.mu, *self.rho) if p.grad is not None]
        return np.asarray(torch.cat(grads).numpy())
