"""Network + prior + likelihood: the log joint density and its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ..numeric.buffers import Buffers
from ..numeric.layout import Array, Blocks, Layout, Params
from ..numeric.validation import HasMethods, InstanceOf
from ..parts import network
from ..parts.likelihoods import GaussianLikelihood, Likelihood
from ..parts.network import MLP, Tape
from ..parts.priors import GaussianPrior, Prior

__all__ = ["Evaluation", "Joint", "Likelihood", "Model", "Prior"]

PRIOR = HasMethods("GaussianPrior()", "for_network", "log_density")
NETWORK = InstanceOf(MLP)
LIKELIHOOD = HasMethods("GaussianLikelihood()", "targets", "log_density")


class Evaluation(NamedTuple):
    """The log likelihood of one forward pass, and what its backward pass needs."""

    log_likelihood: Array  # (S,)  log P(D|w), summed over the rows
    tape: Tape  # of the network
    residuals: Any  # of the likelihood


class Joint(NamedTuple):
    """Both log densities of one forward pass, and what the backward pass needs."""

    log_prior: Array  # (S,)  log P(w)
    log_likelihood: Array  # (S,)  log P(D|w), summed over the rows
    evaluation: Evaluation
    prior: Any  # what the prior's own backward pass needs


@dataclass(frozen=True)
class Model:
    """log P(w, D) = log P(w) + log P(D|w) of S flat weight vectors at once.

    Parameters
    ----------
    network : MLP
    prior : Prior
    likelihood : Likelihood
        The learned numbers of both, if any, are passed to `forward` as `params`.

    Raises
    ------
    ValueError
        If the network's last width does not fit the likelihood.
    """

    network: MLP
    prior: Prior = GaussianPrior()
    likelihood: Likelihood = GaussianLikelihood()

    def __post_init__(self) -> None:
        NETWORK("network", self.network)
        PRIOR("prior", self.prior)
        LIKELIHOOD("likelihood", self.likelihood)
        self.likelihood.targets(self.network.sizes[-1])
        object.__setattr__(self, "prior", self.prior.for_network(self.network.sizes))

    @property
    def lead(self) -> tuple[int, ...]:
        """The axes of data before those of rows and columns: none."""
        return ()

    @property
    def layout(self) -> Layout:
        """The blocks of one flat weight vector, P numbers."""
        return self.network.layout

    @property
    def outputs(self) -> int:
        """Number of target columns K."""
        return self.likelihood.targets(self.network.sizes[-1])

    def learned(self) -> Blocks:
        """Name the numbers that prior and likelihood learn, in the order of theta."""
        return self.prior.blocks() + self.likelihood.blocks(self.outputs)

    def evaluate(
        self,
        w: Array,
        params: Params,
        x: Array,
        y: Array,
        buffers: Buffers,
        sample_weight: Array | None = None,
    ) -> Evaluation:
        """Evaluate log P(D|w) for weights `w` (S, P) on rows `x`, `y` (B, ...)."""
        f, tape = network.forward(self.network, w, x, buffers)  # (S, B, heads)
        log_likelihood, saved = self.likelihood.log_likelihood(
            params, f, y, sample_weight
        )
        return Evaluation(log_likelihood, tape, saved)

    def forward(
        self,
        w: Array,
        params: Params,
        x: Array,
        y: Array,
        buffers: Buffers,
        sample_weight: Array | None = None,
    ) -> Joint:
        """Evaluate both log densities for weights `w` (S, P) on rows `x`, `y` (B, ...)."""
        found = self.evaluate(w, params, x, y, buffers, sample_weight)
        log_prior, saved = self.prior.log_density(params, w, buffers)
        return Joint(log_prior, found.log_likelihood, found, saved)

    def likelihood_vjp(
        self,
        found: Evaluation,
        d_log_likelihood: Array,
        d_params: Params,
        buffers: Buffers,
    ) -> Array:
        """Pull a cotangent (S,) of the log likelihood back to the weights, (S, P) (K37-K42).

        `d_params` receives the gradient of the likelihood's own numbers.
        """
        d_f = self.likelihood.log_likelihood_vjp(
            found.residuals, d_log_likelihood, d_params
        )
        return network.vjp(self.network, found.tape, d_f, buffers)

    def vjp(
        self,
        joint: Joint,
        d_log_prior: Array,
        d_log_likelihood: Array,
        d_params: Params,
        buffers: Buffers,
    ) -> Array:
        """Pull cotangents (S,) of the two log densities back to the weights, (S, P).

        The likelihood by backpropagation (K37-K42), the prior in closed form (K19). `d_params`
        receives the gradient of the numbers that both learn.
        """
        d_w = self.likelihood_vjp(joint.evaluation, d_log_likelihood, d_params, buffers)
        self.prior.add_vjp(joint.prior, d_log_prior, d_w, d_params)
        return d_w

    def predict(self, w: Array, x: Array, buffers: Buffers | None = None) -> Array:
        """Return the network outputs (S, B, heads) alone; they live in `buffers`."""
        return network.forward(
            self.network, w, x, Buffers() if buffers is None else buffers
        )[0]
