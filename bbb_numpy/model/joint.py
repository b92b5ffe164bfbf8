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
    """Log likelihood of one forward pass, and the intermediate results for its backward pass."""

    log_likelihood: Array  # (S,) log P(D|w), summed over the rows
    tape: Tape  # intermediate arrays of the network's forward pass
    residuals: Any  # what the likelihood's backward pass needs


class Joint(NamedTuple):
    """Log prior and log likelihood of one forward pass, with what the backward pass needs."""

    log_prior: Array  # (S,) log P(w)
    log_likelihood: Array  # (S,) log P(D|w), summed over the rows
    evaluation: Evaluation
    prior: Any  # what the prior's backward pass needs


@dataclass(frozen=True)
class Model:
    """Network, prior and likelihood, with log P(w, D) = log P(w) + log P(D|w) of weight vectors.

    Parameters
    ----------
    network : MLP
        From a row of inputs to what the likelihood needs.
    prior : Prior
        P(w). By default a standard normal on every weight.
    likelihood : Likelihood
        P(D|w). By default Gaussian. The numbers that prior and likelihood learn, if any, are
        passed to `forward` as `params`.

    Raises
    ------
    ValueError
        If the network's last width does not fit the likelihood.
    """

    network: MLP
    prior: Prior = GaussianPrior()
    likelihood: Likelihood = GaussianLikelihood()

    def __post_init__(self) -> None:
        """Raise an error unless the parts are valid and fit together; give the prior the sizes."""
        NETWORK("network", self.network)
        PRIOR("prior", self.prior)
        LIKELIHOOD("likelihood", self.likelihood)
        self.likelihood.targets(self.network.sizes[-1])
        object.__setattr__(self, "prior", self.prior.for_network(self.network.sizes))

    @property
    def lead(self) -> tuple[int, ...]:
        """Shape of the leading axes of the data, before rows and columns: () for a single model."""
        return ()

    @property
    def layout(self) -> Layout:
        """Names and shapes of the blocks of one flat weight vector."""
        return self.network.layout

    @property
    def outputs(self) -> int:
        """Number of target columns or classes, K."""
        return self.likelihood.targets(self.network.sizes[-1])

    def learned(self) -> Blocks:
        """Return names and shapes of the learned blocks, the prior's before the likelihood's."""
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
        """Return the log likelihood of each of S weight vectors, and what `likelihood_vjp` needs.

        Parameters
        ----------
        w : ndarray (S, P)
            Flat weight vectors.
        params : dict of str to ndarray
            Learned numbers of the likelihood by block name, (K,) or (S, K) each; others are
            ignored.
        x : ndarray (B, d_in)
            Inputs.
        y : ndarray (B, K)
            Targets.
        buffers : Buffers
            Source of the memory of activations, which its owner reuses.
        sample_weight : ndarray (B,), optional
            Weight of each row's log likelihood; by default all are 1 (D45).
        """
        # f: network outputs (S, B, heads)
        f, tape = network.forward(self.network, w, x, buffers)
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
        """Return log prior and log likelihood of each of S weight vectors, and what `vjp` needs.

        Parameters
        ----------
        w : ndarray (S, P)
            Flat weight vectors.
        params : dict of str to ndarray
            Learned numbers of prior and likelihood by block name: (K,), or (S, K), one row per
            weight vector.
        x : ndarray (B, d_in)
            Inputs.
        y : ndarray (B, K)
            Targets.
        buffers : Buffers
            Source of the memory of activations, which its owner reuses.
        sample_weight : ndarray (B,), optional
            Weight of each row's log likelihood; by default all are 1 (D45).
        """
        evaluation = self.evaluate(w, params, x, y, buffers, sample_weight)
        log_prior, saved = self.prior.log_density(params, w, buffers)
        return Joint(log_prior, evaluation.log_likelihood, evaluation, saved)

    def likelihood_vjp(
        self,
        evaluation: Evaluation,
        d_log_likelihood: Array,
        d_params: Params,
        buffers: Buffers,
    ) -> Array:
        """Return the gradient for the weights, given that for the log likelihoods (K37-K42).

        Parameters
        ----------
        evaluation : Evaluation
            Result of `evaluate`.
        d_log_likelihood : ndarray (S,)
            Derivative of the loss with respect to the log likelihood of each weight vector.
        d_params : dict of str to ndarray
            Gradients for the likelihood's learned blocks by name, each in its block's shape;
            overwritten.
        buffers : Buffers
            Source of the memory of the result, which its owner reuses.

        Returns
        -------
        ndarray (S, P)
            Derivative of the loss with respect to the weights.
        """
        d_f = self.likelihood.log_likelihood_vjp(
            evaluation.residuals, d_log_likelihood, d_params
        )
        return network.vjp(self.network, evaluation.tape, d_f, buffers)

    def vjp(
        self,
        joint: Joint,
        d_log_prior: Array,
        d_log_likelihood: Array,
        d_params: Params,
        buffers: Buffers,
    ) -> Array:
        """Return the gradient for the weights, given the loss's derivatives for both log densities.

        That of the likelihood is computed by backpropagation (K37-K42), that of the prior in
        closed form (K19).

        Parameters
        ----------
        joint : Joint
            Result of `forward`.
        d_log_prior, d_log_likelihood : ndarray (S,)
            Derivatives of the loss with respect to the two log densities of each weight vector.
        d_params : dict of str to ndarray
            Gradients for the learned blocks of prior and likelihood by name, each in its block's
            shape; overwritten.
        buffers : Buffers
            Source of the memory of the result, which its owner reuses.

        Returns
        -------
        ndarray (S, P)
            Derivative of the loss with respect to the weights.
        """
        d_w = self.likelihood_vjp(joint.evaluation, d_log_likelihood, d_params, buffers)
        self.prior.add_vjp(joint.prior, d_log_prior, d_w, d_params)
        return d_w

    def predict(self, w: Array, x: Array, buffers: Buffers | None = None) -> Array:
        """Return the network outputs (S, B, heads) of S weight vectors for B rows of inputs.

        Parameters
        ----------
        w : ndarray (S, P)
            Flat weight vectors.
        x : ndarray (B, d_in)
            Inputs.
        buffers : Buffers, optional
            Source of the memory of the outputs, which the next use of it overwrites; by default new
            memory.

        Returns
        -------
        ndarray (S, B, heads)
        """
        if buffers is None:
            buffers = Buffers()
        return network.forward(self.network, w, x, buffers)[0]
