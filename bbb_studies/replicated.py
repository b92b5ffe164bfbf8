"""R problems of one shape, e.g. the splits of a data set, as a single problem.

Replicates have the same network, posterior, objective and number of rows; the rows themselves,
the starting points and the scales of the prior are their own. Their weight vectors side by side
are one long vector, of which the posterior is one mean field, and the objective a sum over
replicates (D40). So `Reparameterised` and the update rules train it as they are: a
`ReplicatedModel` only views the weights (S, R P) as S R networks, each with the rows of its
replicate, and the calls that a small network spends most of its time in are made once for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Evaluation, Joint, Model, Prior
from bbb_numpy.model.objectives import Linear
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts import network
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.posteriors import GaussianSample, MeanField, PointMass, PointSample
from bbb_numpy.parts.priors import GaussianPrior

__all__ = ["ReplicatedModel", "replicated"]

Array = NDArray[Any]
Blocks = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class ReplicatedModel(Model):
    """R models of one shape as one, of weights (S, R P): log densities (S, R), one per replicate.

    Row s R + r of the weights, viewed as (S R, P), is sample s of replicate r. Data are
    (R, B, ...), the learned numbers of prior and likelihood (R, K).

    Network and likelihood are those of every replicate. `priors` has the prior of each, of which
    `prior` is the first. Either all are equal, or they differ in numbers that they could learn but
    do not, such as the scale of a `GaussianPrior`.
    """

    priors: tuple[Prior, ...] = (GaussianPrior(),)

    @property
    def replicates(self) -> int:
        """Number R of replicates."""
        return len(self.priors)

    @property
    def lead(self) -> tuple[int, ...]:
        """The axes of data before those of rows and columns: R."""
        return (self.replicates,)

    @property
    def _differ(self) -> bool:
        return any(prior != self.priors[0] for prior in self.priors)

    @cached_property
    def _rowwise_prior(self) -> Prior:
        """The prior of a row; rows with different numbers need the formulas of learned ones."""
        return _freed(self.prior) if self._differ else self.prior

    @cached_property
    def _held(self) -> dict[str, Array]:
        """The numbers (R, K) that the priors do not learn and do not share."""
        if not self._differ:
            return {}
        free = [_freed(prior) for prior in self.priors]
        return Layout(free[0].blocks()).views(
            np.stack([hyperprior.init(np.float64) for hyperprior in free])
        )

    @property
    def layout(self) -> Layout:
        """The blocks of all replicates, one after the other: R P numbers."""
        return Layout(
            tuple(
                (f"replicate {r} {name}", shape)
                for r in range(self.replicates)
                for name, shape in self.network.layout.blocks
            )
        )

    def learned(self) -> Blocks:
        """Name the numbers that prior and likelihood learn, (R, ...) each."""
        return self._learned

    @cached_property
    def _learned(self) -> Blocks:
        return tuple(
            (name, (self.replicates, *shape)) for name, shape in super().learned()
        )

    def _networks(self, w: Array) -> Array:
        """View weights (S, R P) as (S R, P)."""
        return w.reshape(-1, self.network.layout.size)  # D40

    def _params(
        self, w: Array, params: dict[str, Array], buffers: Buffers
    ) -> dict[str, Array]:
        """Repeat the numbers (R, K) of prior and likelihood for every sample: (S R, K)."""
        out: dict[str, Array] = {}
        for name, numbers in (
            {name: params[name] for name, _ in self._learned} | self._held
        ).items():
            exact = w.dtype.kind == "O"  # beside exact numbers fixed ones stay floats
            per_sample = buffers.array(
                (len(w), *numbers.shape), numbers.dtype if exact else w.dtype
            )
            per_sample[...] = numbers
            out[name] = per_sample.reshape(-1, numbers.shape[-1])
        return out

    def evaluate(
        self,
        w: Array,
        params: dict[str, Array],
        x: Array,
        y: Array,
        buffers: Buffers,
        sample_weight: Array | None = None,
    ) -> Evaluation:
        """Evaluate log P(D|w) (S, R) for weights (S, R P) on rows (R, B, ...).

        Parameters
        ----------
        w : array (S, R P)
            Weights of all replicates, side by side.
        params : dict of str to array
            Learned numbers of prior and likelihood, (R, K) each.
        x : array (R, B, d_in)
            Inputs.
        y : array (R, B, K)
            Targets.
        buffers : Buffers
            Where intermediate arrays lie.
        sample_weight : array (R, B), optional
            Weights of the rows.
        """
        return self._evaluate(
            w, self._params(w, params, buffers), x, y, buffers, sample_weight
        )

    def _evaluate(
        self,
        w: Array,
        params: dict[str, Array],
        x: Array,
        y: Array,
        buffers: Buffers,
        v: Array | None,
    ) -> Evaluation:
        flat = buffers.views(w, self._networks)
        x = _repeated(x, len(w))
        y = _repeated(y, len(w))
        v = None if v is None else _repeated(v, len(w))
        evaluation = super().evaluate(flat, params, x, y, buffers, v)
        return evaluation._replace(
            log_likelihood=evaluation.log_likelihood.reshape(len(w), -1)
        )

    def forward(
        self,
        w: Array,
        params: dict[str, Array],
        x: Array,
        y: Array,
        buffers: Buffers,
        sample_weight: Array | None = None,
    ) -> Joint:
        """Evaluate both log densities (S, R) for weights (S, R P) on rows (R, B, ...).

        Parameters
        ----------
        w : array (S, R P)
            Weights of all replicates, side by side.
        params : dict of str to array
            Learned numbers of prior and likelihood, (R, K) each.
        x : array (R, B, d_in)
            Inputs.
        y : array (R, B, K)
            Targets.
        buffers : Buffers
            Where intermediate arrays lie.
        sample_weight : array (R, B), optional
            Weights of the rows.
        """
        params_by_sample = self._params(w, params, buffers)
        evaluation = self._evaluate(w, params_by_sample, x, y, buffers, sample_weight)
        log_prior, saved = self._rowwise_prior.log_density(
            params_by_sample, evaluation.tape.w, buffers
        )
        return Joint(
            log_prior.reshape(len(w), -1), evaluation.log_likelihood, evaluation, saved
        )

    def likelihood_vjp(
        self,
        evaluation: Evaluation,
        d_log_likelihood: Array,
        d_params: dict[str, Array],
        buffers: Buffers,
    ) -> Array:
        """Return the gradient for the weights, given a cotangent of the log likelihoods.

        Parameters
        ----------
        evaluation : Evaluation
            From `evaluate`.
        d_log_likelihood : array (S,)
            The cotangent, the same for all replicates.
        d_params : dict of str to array
            Written: the gradients for the likelihood's numbers.
        buffers : Buffers
            Where intermediate arrays lie.

        Returns
        -------
        array (S, R P)
        """
        samples = len(d_log_likelihood)
        count = self.replicates
        dtype = evaluation.tape.w.dtype
        slopes = {
            name: buffers.array((samples * count, *shape), dtype)
            for name, shape in self.likelihood.blocks(self.outputs)
        }
        # With the cotangent 1, `slopes` are those of each sample, still to be summed over S: as
        # in `write_gradient` by a product, so that the sum is the one of a replicate alone.
        unit_cotangents = np.ones(samples * count, d_log_likelihood.dtype)
        d_f = self.likelihood.log_likelihood_vjp(
            evaluation.residuals, unit_cotangents, slopes
        )
        d_f *= np.repeat(d_log_likelihood, count)[:, None, None]
        for name, slope in slopes.items():
            by_replicate = slope.reshape(samples, count, -1).swapaxes(0, 1)  # (R, S, K)
            d_params[name][...] = d_log_likelihood @ np.ascontiguousarray(by_replicate)
        return network.vjp(self.network, evaluation.tape, d_f, buffers).reshape(
            samples, -1
        )

    def vjp(
        self,
        joint: Joint,
        d_log_prior: Array,
        d_log_likelihood: Array,
        d_params: dict[str, Array],
        buffers: Buffers,
    ) -> Array:
        """Return the gradient for the weights, given cotangents of both log densities.

        Parameters
        ----------
        joint : Joint
            From `forward`.
        d_log_prior : array (S,)
            Cotangent of the log prior, the same for all replicates.
        d_log_likelihood : array (S,)
            Cotangent of the log likelihood, the same for all replicates.
        d_params : dict of str to array
            Written: the gradients for the learned numbers.
        buffers : Buffers
            Where intermediate arrays lie.

        Returns
        -------
        array (S, R P)
        """
        samples = len(d_log_prior)
        dtype = joint.evaluation.tape.w.dtype
        d_w = self.likelihood_vjp(joint.evaluation, d_log_likelihood, d_params, buffers)
        slopes = {
            name: buffers.array((samples * self.replicates, *shape), dtype)
            for name, shape in self._rowwise_prior.blocks()
        }
        cotangent = np.repeat(d_log_prior, self.replicates)
        self._rowwise_prior.add_vjp(joint.prior, cotangent, self._networks(d_w), slopes)
        for name, _ in self.prior.blocks():
            np.add.reduce(
                slopes[name].reshape(samples, *d_params[name].shape), out=d_params[name]
            )
        return d_w


def _repeated(rows: Array, samples: int) -> Array:
    """Repeat rows (R, B, ...) for every sample: (S R, B, ...)."""
    if samples == 1:
        return rows
    every = np.broadcast_to(rows, (samples, *rows.shape))
    return every.reshape(samples * len(rows), *rows.shape[1:])


def _freed(prior: Any) -> Prior:
    """Return the prior that learns the numbers which `prior` holds fixed."""
    return cast(Prior, replace(prior, learn=True))


@dataclass(frozen=True)
class _MeanFields(MeanField):
    """R mean fields side by side, with one log density each."""

    replicates: int = field(kw_only=True)

    def log_density(self, sample: GaussianSample) -> Array:
        """Return log q of each sample and replicate (S, R)."""
        samples = len(sample.eps)
        count = self.replicates
        log_sigma = sample.parts.log_softplus.reshape(count, -1).T  # (P, R)
        eps = sample.eps.reshape(samples, count, -1)
        parts = sample.parts._replace(log_softplus=log_sigma)
        return super().log_density(sample._replace(eps=eps, parts=parts))


@dataclass(frozen=True)
class _PointMasses(PointMass):
    """R point masses side by side."""

    replicates: int = field(kw_only=True)

    def log_density(self, sample: PointSample) -> Array:
        """Return 0 for each sample and replicate (S, R)."""
        return np.zeros((len(sample.w), self.replicates), sample.w.dtype)


def replicated(estimators: Sequence[Reparameterised]) -> Reparameterised:
    """Return one estimator for R problems at once, of which the value is (R,).

    Its theta holds each block of the R thetas side by side: all mu, all rho, and so on.

    Parameters
    ----------
    estimators : sequence of Reparameterised
        Equal but for the numbers of their priors. Posterior `MeanField` or `PointMass`,
        objective `FreeEnergy`, `MLE` or `MAP`, likelihood `GaussianLikelihood`.

    Raises ValueError if they differ in more.
    """
    first = estimators[0]
    priors = tuple(estimator.model.prior for estimator in estimators)
    # The objective of several replicates is then the sum of theirs.
    is_linear_objective = isinstance(first.objective, Linear)
    # This likelihood accepts targets (R, B, K).
    is_gaussian = isinstance(first.model.likelihood, GaussianLikelihood)
    with_equal_priors = (
        replace(estimator, model=replace(estimator.model, prior=priors[0]))
        for estimator in estimators
    )
    learn = any(getattr(prior, "learn", True) for prior in priors)
    priors_agree = len({*map(type, priors)}) == 1 and not (learn and len({*priors}) > 1)
    if not (
        is_linear_objective
        and is_gaussian
        and priors_agree
        and all(estimator == first for estimator in with_equal_priors)
    ):
        raise ValueError(
            "replicates must have the objective FreeEnergy, MLE or MAP and a GaussianLikelihood, "
            "and be equal but for the scales of priors of one kind with learn=False: train others "
            f"one at a time; got {estimators}"
        )
    posterior: Any = first.posterior
    # Posteriors that factorise over replicates.
    joint_posteriors = {MeanField: _MeanFields, PointMass: _PointMasses}[
        type(posterior)
    ]
    model = ReplicatedModel(
        first.model.network, priors[0], first.model.likelihood, priors
    )
    return replace(
        first,
        model=model,
        posterior=joint_posteriors(**vars(posterior), replicates=len(priors)),
    )
