"""Sagar's Algorithm 1 and Equation 5 *as printed*, to show how they fail: never use them.

What should be used is `importance.SelfNormalised` with `objectives.EUBO`. The estimators here
differ from it in one printed line each; training is the package's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.family import Evaluated
from bbb_numpy.gradients.importance import SelfNormalised
from bbb_numpy.model.objectives import LogDensities, log_weights
from bbb_numpy.numeric.buffers import Buffers

__all__ = ["Equation5", "ThroughTheSamples", "printed_weights", "shifted_weights"]

Array = NDArray[Any]


def printed_weights(log_w: Array) -> Array:
    """Return exp(log w + min log w), normalised: the line that the algorithm prints (G7)."""
    return shifted_weights(log_w, float(log_w.min()))


def shifted_weights(log_w: Array, shift: float) -> Array:
    """Return exp(log w + shift) over its sum; the shift changes nothing but overflow (G7)."""
    with np.errstate(over="ignore", invalid="ignore"):
        w = np.exp(log_w + shift)
        return w / w.sum()


@dataclass(frozen=True)
class ThroughTheSamples(SelfNormalised):
    """Algorithm 1's gradient read literally: log q(g(eps)) differentiated through g (G8).

    The weights are the corrected ones. The data cancel: d_mu = 0 and d_rho = s(rho) / sigma.
    """

    def value_and_grad(
        self,
        theta: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float = 1.0,
        buffers: Buffers | None = None,
    ) -> Evaluated:
        """Return the estimate of the upper bound and -sum w^ d log q(g(eps)), total derivatives."""
        buffers, blocks, grad, d_blocks = self.unpacked(theta, noise, x, y, buffers)
        sample = self.posterior.sample(blocks, noise, buffers)
        joint = self.model.forward(sample.w, blocks, x, y, buffers)
        log_q = self.posterior.log_density(sample)
        terms = LogDensities(log_q, joint.log_prior, joint.log_likelihood)
        value, c = self.objective(terms, kl_weight)
        nothing = np.zeros_like(sample.w)
        self.posterior.pull_back(sample, nothing, c.posterior, d_blocks)
        return Evaluated(value, grad, terms)


@dataclass(frozen=True)
class Equation5(SelfNormalised):
    """The reparameterised gradient of the upper bound (G5), as printed or corrected.

    Parameters
    ----------
    corrected : bool
        Multiply both gradients by (log w + 1), not the first alone.
    """

    corrected: bool = False

    def value_and_grad(
        self,
        theta: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float = 1.0,
        buffers: Buffers | None = None,
    ) -> Evaluated:
        """Return the estimate of the upper bound and the gradient that Equation 5 gives."""
        buffers, blocks, grad, d_blocks = self.unpacked(theta, noise, x, y, buffers)
        sample = self.posterior.sample(blocks, noise, buffers)
        joint = self.model.forward(sample.w, blocks, x, y, buffers)
        log_q = self.posterior.log_density(sample)
        terms = LogDensities(log_q, joint.log_prior, joint.log_likelihood)
        value, c = self.objective(terms, kl_weight)
        factor = log_weights(terms, kl_weight) + 1.0  # (S,)
        d_w = self.model.vjp(joint, -c.prior * factor, -c.likelihood * factor, d_blocks, buffers)
        d_log_q = c.posterior * factor if self.corrected else c.posterior  # G5
        self.posterior.pull_back(sample, d_w, d_log_q, d_blocks)
        return Evaluated(value, grad, terms)
