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
from ..numeric.deprecation import accept_old_members
from ..numeric.elementary import standard_normal
from ..numeric.layout import Array, Layout, Params
from ..numeric.validation import Check, HasMethods, InstanceOf, check_fields, short_repr
from ..parts import network
from ..parts.full_rank import FullRank
from ..parts.posteriors import MeanField, PointMass, Posterior

__all__ = ["Batch", "Evaluated", "GradientEstimator", "Step", "is_linear"]

# Values of `dtype.kind` for real numbers (bool, int, unsigned, float), and with complex ones
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
    """Objective on one minibatch and its gradient, as `value_and_grad` returns them."""

    value: Any  # objective on one minibatch, in nats
    grad: Array  # gradient, of the shape and dtype of theta
    terms: LogDensities  # log densities from which the value was computed


class Batch(NamedTuple):
    """Checked arguments of one step, and memory for its gradient."""

    blocks: Params  # views of the blocks of theta, by name
    noise: Array  # (S, ...) noise of S weight samples
    x: Array  # (B, d_in) inputs
    y: Array  # (B, K) targets
    kl_weight: float  # pi_i, this minibatch's share of the KL term
    sample_weight: Array | None  # (B,) weight of each row, or None for ones
    grad: Array  # memory for the gradient, of the shape of theta
    d_blocks: Params  # views of `grad`, by name
    buffers: Buffers


class StepShapes(NamedTuple):
    """Lengths by which the arguments of a step are checked."""

    theta: tuple[int, ...]  # shape of theta
    row: tuple[int, ...]  # shape of x without its axis of rows
    shared_noise: int  # noise values of a sample that all rows share
    noise_per_row: int  # noise values that each row adds to a sample


class Step(NamedTuple):
    """Objective of one step, with the quantities that its gradient is computed from."""

    value: Any  # objective in nats
    terms: LogDensities
    cotangents: Cotangents  # derivatives of the objective with respect to the terms
    sample: Any  # weights drawn from the posterior
    joint: Joint  # log prior and log likelihood, with their intermediate results


@dataclass(frozen=True)
class GradientEstimator:
    """Base class of gradient estimators, which have a model, a posterior and an objective.

    An estimator defines `fill_gradient`, which contains all of its mathematics.

    Parameters
    ----------
    model : Model
        Network, prior and likelihood.
    posterior : MeanField, LowRank, FullRank or PointMass
        The variational distribution q(w|theta) of the weights.
    objective : callable
        Function of log densities that returns a value and its derivatives, see
        `bbb_numpy.model.objectives`.

    Raises
    ------
    ValueError
        If posterior, prior and objective do not go together; the message says why.
    """

    model: Model
    posterior: Posterior = MeanField()
    objective: Objective = free_energy

    # Requirements of an estimator: 'density' (of q), 'linear' (an objective linear in log q) and
    # 'closed form' (KL(q || prior) by a formula)
    needs: ClassVar[frozenset[str]] = frozenset()
    rules: ClassVar[Mapping[str, Check]] = FIELD_RULES  # check of each field

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid and go together."""
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
                f"the objective of {name} must be linear in log q, which FreeEnergy() is; got "
                f"{_name(self.objective)}. Use Reparameterised, which differentiates any "
                "objective"
            )
        if isinstance(self.objective, PACBayes):
            self._check_bound()
        if "closed form" in self.needs and not hasattr(prior, "expected_log_density"):
            raise ValueError(
                f"{name} needs KL(q || prior) in closed form, and there is none for a Gaussian q "
                f"and {_name(prior)}. Use GaussianPrior, or Reparameterised, which samples the KL"
            )

    def _check_bound(self) -> None:
        """Raise ValueError if the PAC-Bayes bound does not hold for this estimator (D58)."""
        if "closed form" not in self.needs:
            raise ValueError(
                "PACBayes needs KL(q || prior) in closed form, since its estimate from a "
                f"sample may be negative; got {type(self).__name__}, which samples it. Use "
                "LocalReparameterisation"
            )
        if self.model.likelihood.target_kind != "class":
            raise ValueError(
                "PACBayes needs a likelihood of classes, as it bounds the share of wrong "
                f"classes; got {_name(self.model.likelihood)}. Use CategoricalLikelihood"
            )
        if self.model.prior.blocks():
            raise ValueError(
                "PACBayes needs a prior that does not learn from the rows; use learn=False"
            )

    @cached_property
    def layout(self) -> Layout:
        """Blocks of theta: those of the posterior, then those that prior and likelihood learn."""
        return Layout(
            self.posterior.blocks(self.model.layout.size) + self.model.learned()
        )

    def coordinate(self, index: int) -> str:
        """Return the name of the parameter at `index` of theta, such as ``'rho W1[0, 3]'``."""
        name = self.layout.coordinate(index)
        block = name.split("[")[0]
        if block not in ("mu", "rho"):
            return name
        inside = index - self.layout.slices[block].start
        return f"{block} {self.model.layout.coordinate(inside)}"

    def init(self, rng: np.random.Generator, dtype: Any = np.float64) -> Array:
        """Return the initial parameters theta, one flat vector with the blocks of `layout`.

        Parameters
        ----------
        rng : numpy.random.Generator
            Generator that draws the start of the posterior.
        dtype : dtype
            Dtype of theta, in which all of training is computed.
        """
        model = self.model
        variational = self.posterior.init(rng, model.layout.size, dtype)
        prior = model.prior.init(dtype)
        likelihood = model.likelihood.init(model.outputs, dtype)
        return np.concatenate([variational, prior, likelihood])

    @property
    def noise_per_sample(self) -> int:
        """Number of noise values in each weight sample that all rows share."""
        return self.posterior.noise_size(self.model.layout.size)

    @property
    def noise_per_row(self) -> int:
        """Number of noise values that each row adds to a weight sample; 0 in this class."""
        return 0

    def noise_shape(self, samples: int, rows: int = 0) -> tuple[int, int]:
        """Return the shape of the noise of one training step: (samples, values per sample).

        Parameters
        ----------
        samples : int
            Number S of weight samples.
        rows : int
            Number of rows of the minibatch; it matters if each row has noise of its own.
        """
        return samples, self.noise_per_sample + rows * self.noise_per_row

    def draw(
        self,
        rng: np.random.Generator,
        samples: int,
        rows: int = 0,
        dtype: Any = np.float64,
    ) -> Array:
        """Draw the random numbers from which one training step computes its weights (K1).

        Parameters
        ----------
        rng : numpy.random.Generator
        samples : int
            Number S of weight samples.
        rows : int
            Number of rows of the minibatch; it matters if each row has noise of its own, as in
            `LocalReparameterisation` and `Flipout`.
        dtype : dtype
            Dtype of the noise, which must be that of theta.

        Returns
        -------
        ndarray
            Noise of the shape `noise_shape(samples, rows)`.
        """
        noise = np.empty(self.noise_shape(samples, rows), dtype)
        self.fill(rng, noise)
        return noise

    def fill(self, rng: np.random.Generator, noise: Array) -> None:
        """Overwrite `noise`, that of one training step, with new N(0, 1) numbers."""
        standard_normal(rng, noise)

    def draw_weights(
        self,
        rng: np.random.Generator,
        samples: int,
        dtype: Any = np.float64,
        out: Array | None = None,
    ) -> Array:
        """Draw the standard normal noise of `samples` weight vectors, for predictions (K1).

        Parameters
        ----------
        rng : numpy.random.Generator
        samples : int
            Number S of weight vectors.
        dtype : dtype
            Dtype of the noise, which must be that of theta.
        out : ndarray, optional
            Array that is overwritten and returned; by default a new one.

        Returns
        -------
        ndarray (S, Q)
            Noise, one row of Q = `posterior.noise_size` numbers per weight vector.
        """
        if out is None:
            shape = (samples, self.posterior.noise_size(self.model.layout.size))
            out = np.empty(shape, dtype)
        return standard_normal(rng, out)

    def noise_blocks(
        self, rng: np.random.Generator, samples: int, block: int, dtype: Any
    ) -> Iterator[Array]:
        """Yield the noise of `samples` weight vectors in blocks, each in the memory of the last.

        Blocks are always drawn whole, so that the first weight vectors do not depend on the number
        of weight vectors.

        Parameters
        ----------
        rng : numpy.random.Generator
        samples : int
            Number of weight vectors in all.
        block : int
            Number of weight vectors in a block; the last block may be shorter.
        dtype : dtype
            Dtype of the noise, which must be that of theta.
        """
        noise = None
        for first in range(0, samples, block):
            noise = self.draw_weights(rng, block, dtype, noise)
            yield noise[: samples - first]

    def weights(
        self, theta: Array, eps: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return the weights that the posterior at `theta` gives for the noise `eps` (K3, K4).

        Parameters
        ----------
        theta : ndarray
            Flat vector with the blocks of `layout`.
        eps : ndarray (S, ...)
            Noise from `draw_weights`.
        buffers : Buffers, optional
            Source of the memory of the weights, which the next use of it overwrites; by default new
            memory.

        Returns
        -------
        ndarray (S, P)
            One flat weight vector for each row of `eps`.
        """
        if buffers is None:
            buffers = Buffers()
        return self.posterior.sample(self.layout.views(theta), eps, buffers).w

    def params(self, theta: Array, eps: Array) -> Params:
        """Return views of the learned parameters of prior and likelihood, by block name.

        Parameters
        ----------
        theta : ndarray
            Flat vector with the blocks of `layout`.
        eps : ndarray
            Noise of weight vectors; not used here, where all weight vectors share these numbers.
        """
        return self.layout.views(theta)

    def outputs(self, theta: Array, w: Array, x: Array, buffers: Buffers) -> Array:
        """Return the outputs of the network with weights `w` at the inputs `x`.

        Parameters
        ----------
        theta : ndarray
            Flat vector with the blocks of `layout`.
        w : ndarray (S, P)
            Weights, from `weights`.
        x : ndarray (B, d_in)
            Inputs.
        buffers : Buffers
            Source of the memory of the outputs, which its owner reuses.

        Returns
        -------
        ndarray (S, B, heads)
            Outputs, with `Likelihood.heads` columns.
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
        """Return the log likelihood of all rows, in nats, for each weight vector of the posterior.

        Parameters
        ----------
        theta : ndarray
            Flat vector with the blocks of `layout`.
        eps : ndarray (S, ...)
            Noise from `draw_weights`.
        x : ndarray (B, d_in)
            Inputs.
        y : ndarray (B, K)
            Targets.
        buffers : Buffers, optional
            Source of memory, which the next use of it overwrites; by default new memory.
        sample_weight : ndarray (B,), optional
            Weight of each row's log likelihood; by default all are 1 (D45).

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
            Flat vector with the blocks of `layout`; real, or complex for a complex step.
        noise : ndarray (S, ...)
            Noise from `draw`, called with as many rows as `x` has.
        x : ndarray (B, d_in)
            Inputs of one minibatch; B may be 0.
        y : ndarray (B, K)
            Targets of the minibatch.
        kl_weight : float
            This minibatch's share pi_i of the KL term.
        buffers : Buffers, optional
            Source of memory. Reused in the next call, after `rewind`, it overwrites the returned
            gradient; by default new memory.
        sample_weight : ndarray (B,), optional
            Weight of each row's log likelihood; by default all are 1 (D45).

        Returns
        -------
        Evaluated
            The objective `value` in nats, its gradient `grad` and the log densities `terms`.

        Raises
        ------
        ValueError
            If an argument is not an array, or its shape does not fit theta, network or rows.
        TypeError
            If `kl_weight` is not a number.
        """
        batch = self.make_batch(theta, noise, x, y, kl_weight, buffers, sample_weight)
        value, terms = self.fill_gradient(batch)
        return Evaluated(value, batch.grad, terms)

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        """Return the objective and its log densities; write the gradient into `batch.d_blocks`.

        Parameters
        ----------
        batch : Batch
            Arguments of the step, and memory for the gradient.

        Returns
        -------
        value : float
            The objective on the minibatch, in nats.
        terms : LogDensities
            Log densities from which it was computed, (S,) each.
        """
        raise NotImplementedError

    def forward(self, batch: Batch) -> Step:
        """Return the objective on a minibatch, and what its gradient is computed from (K1-K18).

        Parameters
        ----------
        batch : Batch
            Arguments of the step.
        """
        sample = self.posterior.sample(
            batch.blocks, batch.noise, batch.buffers
        )  # weights drawn from q, with what log q needs (K1-K4)
        # log prior, and log likelihood by a forward pass (K11-K16, K31-K36)
        joint = self.model.forward(
            sample.w, batch.blocks, batch.x, batch.y, batch.buffers, batch.sample_weight
        )
        log_q = self.posterior.log_density(sample)  # log q(w), by sample (K6-K10)
        terms = LogDensities(log_q, joint.log_prior, joint.log_likelihood)
        # objective in nats, and its derivatives with respect to the log densities
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
        """Check the shapes of the arguments of one step, and return them as a `Batch`.

        Parameters
        ----------
        theta, noise, x, y, kl_weight, buffers, sample_weight
            Those of `value_and_grad`. The likelihood checks the shape of `y`.

        Raises
        ------
        ValueError
            If an argument is not an array, or its shape does not fit theta, network or rows.
        TypeError
            If `kl_weight` is not a number.
        """
        shapes = self._step_shapes
        try:
            *lead, rows, d_in = x.shape
            fits = (*lead, d_in) == shapes.row and theta.shape == shapes.theta
            noise_size = shapes.shared_noise + shapes.noise_per_row * rows
            fits = fits and noise.shape == (len(noise), noise_size)
            # Text and dates have shapes too, so dtypes are checked. In a complex step, where theta
            # is complex, the other arrays may be complex as well
            fits = fits and theta.dtype.char in "fdFD"
            kinds = REAL_KINDS if theta.dtype.kind == "f" else NUMBER_KINDS
            fits = fits and noise.dtype.kind in kinds
            fits = fits and x.dtype.kind in kinds and y.dtype.kind in kinds
            if sample_weight is not None:
                fits = fits and sample_weight.shape == (*lead, rows)
                fits = fits and sample_weight.dtype.kind in kinds
        except (AttributeError, TypeError, ValueError):  # not an array, or too few axes
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
        """Shapes and lengths that `make_batch` requires of its arguments."""
        return StepShapes(
            (self.layout.size,),
            (*self.model.lead, self.model.network.n_columns),
            self.noise_per_sample,
            self.noise_per_row,
        )

    def _shape_message(self, arrays: Mapping[str, Any]) -> str:
        """Return an error message with the shapes that a step takes and those in `arrays`."""
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
        """Return a flat bool array that says on which side of each kink of the objective theta is.

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


accept_old_members(GradientEstimator, {"batch": "make_batch"})


def _is_number(value: Any) -> bool:
    """Return whether `value` is a real number, or has a dtype of real or complex numbers."""
    dtype = getattr(value, "dtype", None)
    return isinstance(value, Real) if dtype is None else dtype.kind in NUMBER_KINDS


def _name(part: Any) -> str:
    """Return the name of a function or class, or of the class of an object, for messages."""
    return getattr(part, "__name__", type(part).__name__)


def is_linear(objective: Objective) -> bool:
    """Return whether the minibatch objectives of an epoch sum to that of all rows (D30).

    That holds in expectation, for objectives that are linear in the log densities. A function that
    is not one of the package's own classes is assumed to be linear.
    """
    own_class = hasattr(objective, "__dataclass_fields__")
    return isinstance(objective, Linear) or not own_class
