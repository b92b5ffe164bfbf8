"""What every gradient estimator shares: theta, noise and weights, and what it refuses.

An estimator is a frozen dataclass (model, posterior, objective). It adds one method to those here,
`fill_gradient`, with all of its mathematics in it: `value_and_grad` calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..model.joint import Joint, Model
from ..model.objectives import (
    MAP,
    MLE,
    Cotangents,
    FreeEnergy,
    Linear,
    LogDensities,
    Objective,
    PACBayes,
    free_energy,
)
from ..numeric.buffers import Buffers
from ..numeric.deprecation import accept_old_methods
from ..numeric.elementary import standard_normal
from ..numeric.layout import Array, Layout, Params
from ..numeric.validation import Check, HasMethods, InstanceOf, check_fields, short_repr
from ..parts import network
from ..parts.full_rank import FullRank
from ..parts.posteriors import MeanField, PointMass, Posterior

__all__ = ["Batch", "Evaluated", "GradientEstimator", "Step", "is_linear"]

# kinds of dtypes, as NumPy abbreviates them: bool, int, uint, float, complex
REAL_KINDS = "biuf"
NUMBER_KINDS = "biufc"

FIELD_RULES = {
    "model": InstanceOf(Model),
    "posterior": HasMethods(
        "MeanField(), LowRank(), FullRank() or PointMass()", "pull_back"
    ),
    "objective": HasMethods("FreeEnergy(), a function of log densities", "__call__"),
}


class Evaluated(NamedTuple):
    """The objective on one minibatch and its gradient: what `value_and_grad` returns."""

    value: Any  # the objective on one minibatch, in nats
    grad: Array  # shape and dtype of theta
    terms: LogDensities  # the log densities that the value is made of


class Batch(NamedTuple):
    """The arguments of one step, whose shapes have been checked, and a gradient to fill."""

    blocks: Params  # views of theta, by name
    noise: Array  # (S, ...)
    x: Array  # (B, d_in)
    y: Array  # (B, K)
    kl_weight: float  # pi_i, this minibatch's share of the KL term
    sample_weight: Array | None  # (B,)
    grad: Array  # of the shape of theta, uninitialised
    d_blocks: Params  # views of `grad`, by name
    buffers: Buffers


class StepShapes(NamedTuple):
    """The lengths by which the arguments of a step are checked."""

    theta: tuple[int, ...]
    row: tuple[int, ...]  # x without its axis of rows
    shared_noise: int  # numbers for one sample, whatever the rows
    noise_per_row: int


class Step(NamedTuple):
    """The objective of one step, and what its gradient is made of."""

    value: Any  # in nats
    terms: LogDensities
    cotangents: Cotangents  # of the terms
    sample: Any  # of the posterior
    joint: Joint


@dataclass(frozen=True)
class GradientEstimator:
    """The base class of gradient estimators: a model, a posterior and an objective.

    An estimator adds `fill_gradient`, in which all of its mathematics stands.

    Parameters
    ----------
    model : Model
        Network, prior and likelihood.
    posterior : MeanField, LowRank, FullRank or PointMass
        The variational distribution q(w|theta) of the weights.
    objective : callable
        From log densities to a value and cotangents, see `bbb_numpy.model.objectives`.

    Raises
    ------
    ValueError
        If posterior, prior and objective do not go together; the message says why.
    """

    model: Model
    posterior: Posterior = MeanField()
    objective: Objective = free_energy

    # what an estimator needs: a density, an objective linear in log q, KL(q || prior) by formula
    needs: ClassVar[frozenset[str]] = frozenset()
    rules: ClassVar[Mapping[str, Check]] = FIELD_RULES  # the check of each field

    def __post_init__(self) -> None:
        check_fields(self, **self.rules)
        is_point = isinstance(self.posterior, PointMass)
        prior = self.model.prior
        if isinstance(self.objective, MLE | MAP) and not is_point:
            raise ValueError(
                f"{_name(self.objective)} estimates one weight vector: without log q in the "
                "objective every standard deviation shrinks to 0. Use PointMass, or FreeEnergy"
            )
        if is_point and not isinstance(self.objective, MLE | MAP):
            raise ValueError(
                f"a point mass has no density, so {_name(self.objective)} is infinite for it. "
                "Use MLE or MAP, or another posterior"
            )
        if is_point and prior.blocks():
            raise ValueError(
                f"a point estimate cannot learn the numbers of {_name(prior)}: under MAP the "
                "density P(w) grows without bound as weights and prior shrink together, and MLE "
                "has no prior. Fix the prior (learn=False), or use another posterior"
            )
        if isinstance(self.posterior, FullRank):
            self.posterior.check_size(self.model.layout.size)
        name = type(self).__name__
        if "density" in self.needs and is_point:
            raise ValueError(
                f"{name} needs a posterior with a density; use Reparameterised"
            )
        accepted: tuple[type, ...] = (FreeEnergy,)
        if "closed form" in self.needs:
            accepted = (FreeEnergy, PACBayes)
        linear = self.needs & {"linear", "closed form"}
        if linear and not isinstance(self.objective, accepted):
            raise ValueError(
                f"the objective of {name} must be linear in log q, FreeEnergy(); got "
                f"{_name(self.objective)}. Use Reparameterised, which differentiates any objective"
            )
        if isinstance(self.objective, PACBayes):
            self._check_bound()
        if "closed form" in self.needs and not hasattr(prior, "expected_log_density"):
            raise ValueError(
                f"{name} needs KL(q || prior) in closed form, and there is none for a Gaussian q "
                f"and {_name(prior)}. Use GaussianPrior, or Reparameterised, which samples it"
            )

    def _check_bound(self) -> None:
        """Raise an error where PACBayes is no bound on the share of wrong classes (D58)."""
        if "closed form" not in self.needs:
            raise ValueError(
                "PACBayes needs KL(q || prior) in closed form, since that of a sample may be "
                f"negative, and {type(self).__name__} samples it. Use LocalReparameterisation"
            )
        if self.model.likelihood.target_kind != "class":
            raise ValueError(
                "PACBayes needs a likelihood of classes, whose wrong share it bounds; got "
                f"{_name(self.model.likelihood)}. Use CategoricalLikelihood"
            )
        if self.model.prior.blocks():
            raise ValueError(
                "PACBayes needs a prior that does not learn from the rows; use learn=False"
            )

    @cached_property
    def layout(self) -> Layout:
        """The blocks of theta: the posterior's, then the prior's and the likelihood's own."""
        return Layout(
            self.posterior.blocks(self.model.layout.size) + self.model.learned()
        )

    def coordinate(self, index: int) -> str:
        """Return the name of one number of theta, down to the layer: ``'rho W1[0, 3]'``."""
        name = self.layout.coordinate(index)
        block = name.split("[")[0]
        if block not in ("mu", "rho"):
            return name
        inside = index - self.layout.slices[block].start
        return f"{block} {self.model.layout.coordinate(inside)}"

    def init(self, rng: np.random.Generator, dtype: Any = np.float64) -> Array:
        """Return the starting theta, one flat vector.

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws the start of the posterior.
        dtype : dtype
            In which theta, and with it all of training, is computed.
        """
        model = self.model
        variational = self.posterior.init(rng, model.layout.size, dtype)
        prior = model.prior.init(dtype)
        likelihood = model.likelihood.init(model.outputs, dtype)
        return np.concatenate([variational, prior, likelihood])

    @property
    def noise_per_sample(self) -> int:
        """Length of the noise that all rows share, for one weight sample."""
        return self.posterior.noise_size(self.model.layout.size)

    @property
    def noise_per_row(self) -> int:
        """Length of the noise that each row has of its own, for one weight sample."""
        return 0

    def noise_shape(self, samples: int, rows: int = 0) -> tuple[int, int]:
        """Return the shape of the noise of one step.

        Parameters
        ----------
        samples : int
            Number S of weight samples.
        rows : int
            Number of rows of the minibatch; it counts where each row has noise of its own.
        """
        return samples, self.noise_per_sample + rows * self.noise_per_row

    def draw(
        self,
        rng: np.random.Generator,
        samples: int,
        rows: int = 0,
        dtype: Any = np.float64,
    ) -> Array:
        """Draw the noise of one step (K1).

        Parameters
        ----------
        rng : numpy.random.Generator
        samples : int
            Number S of weight samples.
        rows : int
            Number of rows of the minibatch; it counts where each row has noise of its own, as in
            `LocalReparameterisation` and `Flipout`.
        dtype : dtype
            That of theta.

        Returns
        -------
        ndarray
            Of the shape `noise_shape(samples, rows)`.
        """
        noise = np.empty(self.noise_shape(samples, rows), dtype)
        self.fill(rng, noise)
        return noise

    def fill(self, rng: np.random.Generator, noise: Array) -> None:
        """Overwrite the noise of one step with another draw, of N(0, 1) numbers."""
        standard_normal(rng, noise)

    def draw_weights(
        self,
        rng: np.random.Generator,
        samples: int,
        dtype: Any = np.float64,
        out: Array | None = None,
    ) -> Array:
        """Draw the noise of S weight vectors, for predictions (K1).

        Parameters
        ----------
        rng : numpy.random.Generator
        samples : int
            Number S of weight vectors.
        dtype : dtype
            That of theta.
        out : ndarray, optional
            Is overwritten, and returned.

        Returns
        -------
        ndarray (S, numbers of noise of one weight vector)
        """
        if out is None:
            shape = (samples, self.posterior.noise_size(self.model.layout.size))
            out = np.empty(shape, dtype)
        return standard_normal(rng, out)

    def noise_blocks(
        self, rng: np.random.Generator, samples: int, block: int, dtype: Any
    ) -> Iterator[Array]:
        """Yield the noise of many weight vectors, block by block.

        Whole blocks are drawn, each into the memory of the one before: the first weight vectors
        do not depend on how many there are.

        Parameters
        ----------
        rng : numpy.random.Generator
        samples : int
            Number of weight vectors in all.
        block : int
            Number of weight vectors in a block; the last block may be shorter.
        dtype : dtype
            That of theta.
        """
        noise = None
        for first in range(0, samples, block):
            noise = self.draw_weights(rng, block, dtype, noise)
            yield noise[: samples - first]

    def weights(
        self, theta: Array, eps: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return weights drawn from the posterior (K3, K4).

        Parameters
        ----------
        theta : ndarray
            Flat, as `layout` names it.
        eps : ndarray (S, ...)
            Noise from `draw_weights`.
        buffers : Buffers, optional
            Memory for the weights, which the next call with it overwrites.

        Returns
        -------
        ndarray (S, P)
            One flat weight vector for each row of `eps`.
        """
        if buffers is None:
            buffers = Buffers()
        return self.posterior.sample(self.layout.views(theta), eps, buffers).w

    def params(self, theta: Array, eps: Array) -> Params:
        """Return views of the numbers that prior and likelihood learned, by name.

        Parameters
        ----------
        theta : ndarray
        eps : ndarray
            Noise of weight vectors, all of which share these numbers here.
        """
        return self.layout.views(theta)

    def outputs(self, theta: Array, w: Array, x: Array, buffers: Buffers) -> Array:
        """Return the outputs of the network for given weights.

        Parameters
        ----------
        theta : ndarray
            Flat, as `layout` names it.
        w : ndarray (S, P)
            Weights, from `weights`.
        x : ndarray (B, d_in)
        buffers : Buffers
            Memory of the outputs.

        Returns
        -------
        ndarray (S, B, heads)
        """
        return self.model.predict(w, x, buffers)

    def log_likelihood(
        self,
        theta: Array,
        eps: Array,
        x: Array,
        y: Array,
        buffers: Buffers | None = None,
        sample_weight: Array | None = None,
    ) -> Array:
        """Return the log likelihood of rows for weights drawn from the posterior.

        Parameters
        ----------
        theta : ndarray
            Flat, as `layout` names it.
        eps : ndarray (S, ...)
            Noise from `draw_weights`.
        x, y : ndarray (B, d_in), (B, K)
        buffers : Buffers, optional
            Memory that calls share.
        sample_weight : ndarray (B,), optional
            How often each row counts (D45).

        Returns
        -------
        ndarray (S,)
            log P(D|w) in nats, summed over the rows.
        """
        if buffers is None:
            buffers = Buffers()
        w = self.weights(theta, eps, buffers)
        params = self.params(theta, eps)
        evaluation = self.model.evaluate(w, params, x, y, buffers, sample_weight)
        return evaluation.log_likelihood

    def value_and_grad(
        self,
        theta: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float = 1.0,
        buffers: Buffers | None = None,
        sample_weight: Array | None = None,
    ) -> Evaluated:
        """Return the objective on one minibatch and its gradient for theta.

        Parameters
        ----------
        theta : ndarray
            Flat, as `layout` names it. Real, or complex for a complex step.
        noise : ndarray (S, ...)
            From `draw`, for as many rows as `x` has.
        x, y : ndarray (B, d_in), (B, K)
            One minibatch; B may be 0.
        kl_weight : float
            This minibatch's share pi_i of the KL term.
        buffers : Buffers, optional
            Reuses the memory of the previous call, the returned gradient included.
        sample_weight : ndarray (B,), optional
            How often each row counts (D45).

        Returns
        -------
        Evaluated
            `value`, `grad` and `terms`.

        Raises
        ------
        ValueError
            If an argument is no array, or of a shape that no step has.
        TypeError
            If `kl_weight` is no number.
        """
        batch = self.make_batch(theta, noise, x, y, kl_weight, buffers, sample_weight)
        value, terms = self.fill_gradient(batch)
        return Evaluated(value, batch.grad, terms)

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        """Return the objective and its terms, and write its gradient into `batch.d_blocks`."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Step:
        """Return the objective on one minibatch, before the gradient (K1-K18)."""
        sample = self.posterior.sample(
            batch.blocks, batch.noise, batch.buffers
        )  # K1-K4
        # K11-K16, K31-K36
        joint = self.model.forward(
            sample.w, batch.blocks, batch.x, batch.y, batch.buffers, batch.sample_weight
        )
        log_q = self.posterior.log_density(sample)  # K6-K10
        terms = LogDensities(log_q, joint.log_prior, joint.log_likelihood)
        value, cotangents = self.objective(terms, batch.kl_weight)  # K5, K17, K18
        return Step(value, terms, cotangents, sample, joint)

    def make_batch(
        self,
        theta: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float,
        buffers: Buffers | None,
        sample_weight: Array | None,
    ) -> Batch:
        """Return the arguments of one step, after a check of their shapes.

        Parameters
        ----------
        theta, noise, x, y, kl_weight, buffers, sample_weight
            Those of `value_and_grad`. The shape of `y` is for the likelihood to check.

        Raises
        ------
        ValueError
            If an argument is no array, or of a shape that no step has.
        TypeError
            If `kl_weight` is no number.
        """
        shapes = self._step_shapes
        try:
            *lead, rows, d_in = x.shape
            fits = (*lead, d_in) == shapes.row and theta.shape == shapes.theta
            noise_size = shapes.shared_noise + shapes.noise_per_row * rows
            fits = fits and noise.shape == (len(noise), noise_size)
            # text and dates have shapes too; of a complex step all may be complex
            fits = fits and theta.dtype.char in "fdFD"
            kinds = REAL_KINDS if theta.dtype.kind == "f" else NUMBER_KINDS
            fits = fits and noise.dtype.kind in kinds
            fits = fits and x.dtype.kind in kinds and y.dtype.kind in kinds
            if sample_weight is not None:
                fits = fits and sample_weight.shape == (*lead, rows)
                fits = fits and sample_weight.dtype.kind in kinds
        except (AttributeError, TypeError, ValueError):  # no array, or of too few axes
            fits = False
        if not (fits and isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
            arrays = {"theta": theta, "noise": noise, "x": x, "y": y}
            if sample_weight is not None:
                arrays["sample_weight"] = sample_weight
            raise ValueError(self._shape_message(arrays))
        if not _is_number(kl_weight):
            raise TypeError(f"kl_weight must be a number; got {short_repr(kl_weight)}")
        if buffers is None:
            buffers = Buffers()
        grad = buffers.like(theta)
        views = self.layout.views
        blocks, d_blocks = buffers.views(theta, views), buffers.views(grad, views)
        return Batch(
            blocks, noise, x, y, kl_weight, sample_weight, grad, d_blocks, buffers
        )

    @cached_property
    def _step_shapes(self) -> StepShapes:
        return StepShapes(
            (self.layout.size,),
            (*self.model.lead, self.model.network.sizes[0]),
            self.noise_per_sample,
            self.noise_per_row,
        )

    def _shape_message(self, arrays: Mapping[str, Any]) -> str:
        """Return the message that says which arrays a step takes, and which it was given."""
        (size,), (*lead, d_in), shared, per_row = self._step_shapes
        data = "".join(f"{length}, " for length in lead) + "rows"
        noise = f"{shared} + {per_row} rows" if per_row else f"{shared}"
        received = (f"{name}: {short_repr(value)}" for name, value in arrays.items())
        return (
            f"arrays must have shapes theta ({size},), noise (samples, {noise}), x ({data}, "
            f"{d_in}), y ({data}, {self.model.outputs}) and sample_weight ({data}) or None, "
            "and hold numbers, theta floats; got " + ", ".join(received)
        )

    def gates(self, theta: Array, noise: Array, x: Array) -> Array:
        """Return what changes at the kinks of the objective, as one flat bool array.

        It says which ReLU units are on and, for a prior with a kink at 0, which weights are
        positive. Two points with equal gates have no kink between them.

        Parameters
        ----------
        theta, noise, x
            Those of `value_and_grad`.
        """
        w = self.weights(theta, noise)
        gates = network.gates(self.model.network, w, x)
        if self.model.prior.kink:
            gates = np.concatenate([gates, w.ravel() > 0])
        return gates


accept_old_methods(GradientEstimator, {"batch": "make_batch"})


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, an array of numbers, or a number under trace."""
    dtype = getattr(value, "dtype", None)
    return isinstance(value, Real) if dtype is None else dtype.kind in NUMBER_KINDS


def _name(part: Any) -> str:
    return getattr(part, "__name__", type(part).__name__)


def is_linear(objective: Objective) -> bool:
    """Return whether an epoch of minibatches costs, in expectation, what all data cost (D30).

    That is so of objectives that are linear in the log densities; any function that is none of
    the package's own classes is taken to be one.
    """
    own_class = hasattr(objective, "__dataclass_fields__")
    return isinstance(objective, Linear) or not own_class
