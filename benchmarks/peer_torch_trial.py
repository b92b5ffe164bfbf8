"""Contestant: PyTorch eager, a whole training of one network, or of R networks at once.

The step of `peer_torch` with rows that change, the share pi of each minibatch and a learned noise.
With R networks every parameter has R as its first axis: all of them are one batched product.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from bbb_numpy import Reparameterised
from bbb_numpy.training.stopping import minibatches

from .peer_torch import ADAMS, VERSION
from .problems import Array

__all__ = ["VERSION", "Trials", "one_thread"]


def one_thread() -> None:
    """Make PyTorch use one thread."""
    torch.set_num_threads(1)


class Trials:
    """R trainings of one shape: mean field, prior N(0, 1), Gaussian noise that is learned.

    Parameters
    ----------
    estimator : Reparameterised
        Of each of them; says widths and blocks.
    thetas : sequence of ndarray (2 P + 1,)
        Where each begins: mu, rho, log_noise.
    xs, ys : ndarray (R, N, d_in), (R, N, 1)
    samples, batch_size : int
    learning_rate : float
    form, adam : str
        'layers' for one tensor per weight matrix and bias, the usual form, or 'flat' for two long
        vectors; and which implementation of Adam.
    """

    def __init__(
        self,
        estimator: Reparameterised,
        thetas: Sequence[Array],
        xs: Array,
        ys: Array,
        samples: int,
        batch_size: int,
        learning_rate: float,
        form: str = "layers",
        adam: str = "loop",
    ) -> None:
        self.layout, self.form, self.samples = estimator.model.layout, form, samples
        self.x, self.y = torch.from_numpy(xs), torch.from_numpy(ys)
        self.batches = minibatches(xs.shape[1], batch_size)
        size = self.layout.size
        start = torch.from_numpy(np.stack(thetas))  # (R, 2 P + 1)
        self.mu = self.blocks(start[:, :size])
        self.rho = self.blocks(start[:, size : 2 * size])
        self.log_noise = start[:, 2 * size :].clone().requires_grad_()  # (R, 1)
        self.optimizer = torch.optim.Adam(
            [*self.mu, *self.rho, self.log_noise], lr=learning_rate, eps=1e-8, **ADAMS[adam]
        )

    @property
    def replicates(self) -> int:
        """Their number R."""
        return len(self.x)

    def blocks(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Cut (R, P) into the parameters that this form keeps."""
        parts = self.cut(flat) if self.form == "layers" else [flat]
        return [part.clone().requires_grad_() for part in parts]

    def cut(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """View (..., P) as W0, b0, W1, b1, ..."""
        return [
            flat[..., where].reshape(*flat.shape[:-1], *shape)
            for where, (_, shape) in zip(
                self.layout.slices.values(), self.layout.blocks, strict=True
            )
        ]

    def draw(self) -> list[torch.Tensor]:
        """Draw the noise of one step, (S, R, ...) for each parameter."""
        return [torch.randn(self.samples, *mu.shape, dtype=mu.dtype) for mu in self.mu]

    def noise(self, eps: Array) -> list[torch.Tensor]:
        """Take given noise (S, R, P) instead of drawing it."""
        flat = torch.from_numpy(eps)
        return self.cut(flat) if self.form == "layers" else [flat]

    def loss(
        self, noise: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor, share: float
    ) -> torch.Tensor:
        """Return the free energy of a minibatch (R, B, ...), summed over the R networks."""
        sigma = [functional.softplus(rho) for rho in self.rho]
        w = [m + s * e for m, s, e in zip(self.mu, sigma, noise, strict=True)]  # (S, R, ...)
        kl: Any = 0.0  # log q - log P; their constants cancel for a prior N(0, 1)
        for s, v, e in zip(sigma, w, noise, strict=True):
            kl = kl - s.log().sum() + (v.square().sum() - e.square().sum()) * (0.5 / self.samples)
        blocks = w if self.form == "layers" else self.cut(w[0])
        blocks = [block.flatten(0, 1) for block in blocks]  # (S R, ...): one batched product
        a = x.expand(self.samples, *x.shape).flatten(0, 1)  # (S R, B, d_in)
        one = len(a) == 1  # plain matrices are what PyTorch is fastest with
        if one:
            blocks, a = [block[0] for block in blocks], a[0]
        for layer, (weight, bias) in enumerate(zip(blocks[0::2], blocks[1::2], strict=True)):
            if layer:
                a = functional.relu(a)
            # (B, width), or (S R, B, width)
            a = torch.addmm(bias, a, weight) if one else torch.baddbmm(bias[:, None], a, weight)
        residual = y - a.view(self.samples, *y.shape)  # (S, R, B, 1)
        squares = residual.square().sum(dim=(0, 2)) * (0.5 / self.samples)  # (R, 1)
        rows = y.shape[1]
        nll = (torch.exp(-2.0 * self.log_noise) * squares + rows * self.log_noise).sum()
        constant = 0.5 * log(2.0 * pi) * rows * self.replicates
        loss: torch.Tensor = share * kl + nll + constant
        return loss

    def advance(
        self, noise: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor, share: float
    ) -> torch.Tensor:
        """Take one Adam step with this noise and return the loss before it."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(noise, x, y, share)
        torch.autograd.backward(loss)
        self.optimizer.step()
        return loss

    def fit(self, epochs: int) -> None:
        """Train: a new row order for every network in every epoch, minibatch after minibatch."""
        rows, index = self.x.shape[1], torch.arange(self.replicates)[:, None]
        for _ in range(epochs):
            order = torch.stack([torch.randperm(rows) for _ in range(self.replicates)])
            x, y = self.x[index, order], self.y[index, order]
            for batch in self.batches:
                share = (batch.stop - batch.start) / rows
                self.advance(self.draw(), x[:, batch], y[:, batch], share)

    def thetas(self) -> Array:
        """Return the parameters (R, 2 P + 1), in the order of ours."""
        parts = [part.detach().flatten(1) for part in (*self.mu, *self.rho, self.log_noise)]
        return np.asarray(torch.cat(parts, dim=1).numpy())
