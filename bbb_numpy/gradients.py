"""How the gradient of the objective is estimated (floor 3).

An estimator has four parts: `layout` (what theta holds), `init`, `draw` (the noise), and
`value_and_grad` (deterministic given the noise). Training and gradient checks call the
same `value_and_grad`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layout import Layout
from .model import Model
from .objectives import Objective, free_energy
from .posteriors import MeanField
from .workspace import LogDensities, Workspace

__all__ = ["Reparameterised"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Reparameterised:
    """The report's estimator: differentiate through w = mu + sigma eps (K19-K30).

    Parameters
    ----------
    model : Model
    posterior : MeanField
    objective : callable
        From log densities to a value and cotangents; `free_energy` trains, the single
        terms of `bbb_numpy.objectives` are for gradient checks.
    """

    model: Model
    posterior: MeanField = MeanField()
    objective: Objective = free_energy

    @cached_property
    def layout(self) -> Layout:
        """The blocks of theta: mu (P,), rho (P,), then the likelihood's own numbers."""
        size, model = self.model.layout.size, self.model
        return Layout(self.posterior.blocks(size) + model.likelihood.blocks(model.outputs))

    def coordinate(self, index: int) -> str:
        """Name one number of theta down to the layer, e.g. ``'rho W1[0, 3]'``."""
        name = self.layout.coordinate(index)
        block = name.split("[")[0]
        if block not in dict(self.posterior.blocks(0)):
            return name
        inside = index - self.layout.slices[block].start
        return f"{block} {self.model.layout.coordinate(inside)}"

    def init(self, rng: np.random.Generator, dtype: Any = np.float64) -> Array:
        """Return the starting theta, one flat vector of `dtype`."""
        variational = self.posterior.init(rng, self.model.layout.size, dtype)
        return np.concatenate([variational, self.model.likelihood.init(self.model.outputs, dtype)])

    def draw(
        self,
        rng: np.random.Generator,
        samples: int,
        dtype: Any = np.float64,
        work: Workspace | None = None,
    ) -> Array:
        """Draw the noise (S, P) of one step, one weight sample per row (K1)."""
        size = self.model.layout.size
        out = None if work is None else work.array("eps", (samples, size), dtype)
        return self.posterior.draw(rng, samples, size, dtype, out)

    def weights(self, theta: Array, noise: Array, work: Workspace | None = None) -> Array:
        """Return the weights (S, P) that `theta` makes of `noise` (K3, K4)."""
        blocks = self.layout.views(theta)
        return self.posterior.sample(blocks["mu"], blocks["rho"], noise, work or Workspace()).w

    def log_likelihood(
        self, theta: Array, noise: Array, x: Array, y: Array, work: Workspace
    ) -> Array:
        """Return log P(D|w) (S,) of rows `x`, `y` for the weights that `noise` makes."""
        blocks = self.layout.views(theta)
        w = self.posterior.sample(blocks["mu"], blocks["rho"], noise, work).w
        return self.model.forward(w, blocks, x, y, work).log_likelihood

    def value_and_grad(
        self,
        theta: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float = 1.0,
        work: Workspace | None = None,
    ) -> tuple[Any, Array]:
        r"""Return the objective on one minibatch and its gradient for theta.

        For the report's choices, with :math:`g_w = \partial(-\log P(D|w))/\partial w`:

        .. math::
            \partial F/\partial\mu  &= \pi_i \frac{w}{\sigma_{data}^2} + g_w        && (K21) \\
            \partial F/\partial\rho &= \Big[\pi_i \Big(-\frac1\sigma
                + \frac{w}{\sigma_{data}^2}\epsilon\Big) + g_w \epsilon\Big]
                \frac{1}{1 + e^{-\rho}}                                             && (K30)

        Parameters
        ----------
        theta : ndarray
            Flat, as `layout` names it. Real, or complex for a complex step.
        noise : ndarray (S, P)
            From `draw`.
        x, y : ndarray (B, d_in), (B, K)
            One minibatch; B may be 0.
        kl_weight : float
            This minibatch's share pi_i of the KL term.
        work : Workspace, optional
            Reuses the buffers of the previous call, the returned gradient among them.

        Returns
        -------
        value : scalar
            In nats.
        grad : ndarray
            Shape and dtype of `theta`.
        """
        work = Workspace() if work is None else work
        grad = work.array("grad", theta.shape, theta.dtype)
        blocks = work.views("blocks of theta", theta, self.layout.views)
        d_blocks = work.views("blocks of grad", grad, self.layout.views)

        sample = self.posterior.sample(blocks["mu"], blocks["rho"], noise, work)  # K1-K4
        joint = self.model.forward(sample.w, blocks, x, y, work)  # K31-K36, K11-K16
        log_q = self.posterior.log_density(sample)  # K6-K10
        terms = LogDensities(log_q, joint.log_prior, joint.log_likelihood)
        value, c = self.objective(terms, kl_weight)  # K5, K17, K18
        work.log_densities = terms

        # K21: d_mu  = d_w                              with d_w = pi w / sigma_data^2 + g_w
        # K30: d_rho = (-pi / sigma + d_w eps) s(rho)   the same d_w: one backward pass
        # Over samples these are sums, since the cotangents carry the 1/S of the mean.
        d_w = self.model.vjp(joint, c.prior, c.likelihood, d_blocks, work)  # (S, P)
        self.posterior.pull_back(sample, d_w, c.posterior, d_blocks)
        return value, grad
