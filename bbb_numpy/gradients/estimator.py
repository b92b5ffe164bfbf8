"""What every gradient estimator shares: theta, noise, weights; and what it refuses.

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
from ..numeric.elementary import standard_normal
from ..numeric.layout import Array, Layout, Params
from ..numeric.validation import Check, HasMethods, InstanceOf, check_fields, short_repr
from ..parts import network
from ..parts.full_rank import FullRank
from ..parts.posteriors import MeanField, PointMass, Posterior

__all__ = ["Batch", "Evaluated", "GradientEstimator", "Step", "is_linear"]

REAL_KINDS, NUMBER_KINDS = "biuf", "biufc"
PARTS = {
    "model": InstanceOf(Model),
    "posterior": HasMethods(
        "MeanField(), LowRank(), FullRank() or PointMass()", "pull_back"
    ),
    "objective": HasMethods("FreeEnergy(), a function of log densities", "__call__"),
}


class Evaluated(NamedTuple):
    """What `value_and_grad` returns."""

    value: Any  # the objective on one minibatch, in nats
    grad: Array  # shape and dtype of theta
    terms: LogDensities  # the log densities that the value is made of


class Batch(NamedTuple):
    """The arguments of one step, and a gradient to fill."""

    blocks: Params  # of theta
    noise: Array
    x: Array
    y: Array
    kl_weight: float
    sample_weight: Array | None
    grad: Array  # uninitialised
    d_blocks: Params  # the blocks of the gradient
    buffers: Buffers


class Step(NamedTuple):
    """The objective of one step, and what its gradient is made of."""

    value: Any
    terms: LogDensities
    cotangents: Cotangents  # of the terms
    sample: Any  # of the posterior
    joint: Joint


@dataclass(frozen=True)
class GradientEstimator:
    """A model, a posterior and an objective: everything but the gradient.

    Parameters
    ----------
    model : Model
    posterior : MeanField, LowRank, FullRank or PointMass
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
    rules: ClassVar[Mapping[str, Check]] = PARTS  # the check of each field

    def __post_init__(self) -> None:
        check_fields(self, **self.rules)
        point, prior = isinstance(self.posterior, PointMass), self.model.prior
        if isinstance(self.objective, MLE | MAP) and not point:
            raise ValueError(
                f"{_name(self.objective)} estimates one weight vector: without log q in the "
                "objective every deviation shrinks to 0. Use PointMass, or FreeEnergy"
            )
        if point and not isinstance(self.objective, MLE | MAP):
            raise ValueError(
                f"a point mass has no density, so {_name(self.objective)} is infinite for it. "
                "Use MLE or MAP, or another posterior"
            )
        if point and prior.blocks():
            raise ValueError(
                f"a point estimate cannot learn the numbers of {_name(prior)}: under MAP the "
                "density P(w) grows without bound as weights and prior shrink together, and MLE "
                "has no prior. Fix the prior (learn=False), or use a posterior with deviations"
            )
        if isinstance(self.posterior, FullRank):
            self.posterior.check_size(self.model.layout.size)
        name = type(self).__name__
        if "density" in self.needs and point:
            raise ValueError(
                f"{name} needs a posterior with a density; use Reparameterised"
            )
        of_kl = "closed form" in self.needs and isinstance(self.objective, PACBayes)
        if self.needs & {"linear", "closed form"} and not (
            of_kl or isinstance(self.objective, FreeEnergy)
        ):
            raise ValueError(
                f"{name} needs for its objective one that is linear in log q, FreeEnergy; got "
                f"{_name(self.objective)}. Use Reparameterised, which differentiates any of them"
            )
        if isinstance(self.objective, PACBayes):
            self._check_bound()
        if "closed form" in self.needs and not hasattr(prior, "expected_log_density"):
            raise ValueError(
                f"{name} needs KL(q || prior) in closed form, and there is none for a Gaussian q "
                f"and {_name(prior)}. Use GaussianPrior, or Reparameterised, which samples it"
            )

    def _check_bound(self) -> None:
        """Refuse what makes no bound on the share of wrong classes of classes to come (D58)."""
        if "closed form" not in self.needs:
            raise ValueError(
                "PACBayes needs KL(q || prior) in closed form, since that of a sample may be "
                f"negative, and {type(self).__name__} samples it. Use LocalReparameterisation"
            )
        if self.model.likelihood.target_kind != "class":
            raise ValueError(
                "PACBayes bounds the share of wrong classes, of which there are none with "
                f"{_name(self.model.likelihood)}. Use CategoricalLikelihood"
            )
        if self.model.prior.blocks():
            raise ValueError(
                "PACBayes bounds nothing where the prior learns from the rows. Use learn=False"
            )

    @cached_property
    def layout(self) -> Layout:
        """The blocks of theta: the posterior's, then the prior's and the likelihood's own."""
        return Layout(
            self.posterior.blocks(self.model.layout.size) + self.model.learned()
        )

    def coordinate(self, index: int) -> str:
        """Name one number of theta down to the layer, e.g. ``'rho W1[0, 3]'``."""
        name = self.layout.coordinate(index)
        block = name.split("[")[0]
        if block not in ("mu", "rho"):
            return name
        inside = index - self.layout.slices[block].start
        return f"{block} {self.model.layout.coordinate(inside)}"

    def init(self, rng: np.random.Generator, dtype: Any = np.float64) -> Array:
        """Return the starting theta, one flat vector of `dtype`."""
        model = self.model
        variational = self.posterior.init(rng, model.layout.size, dtype)
        prior, likelihood = (
            model.prior.init(dtype),
            model.likelihood.init(model.outputs, dtype),
        )
        return np.concatenate([variational, prior, likelihood])

    @property
    def noise_per_sample(self) -> int:
        """How many numbers of noise all rows share, for one sample: those of a weight vector."""
        return self.posterior.noise_size(self.model.layout.size)

    @property
    def noise_per_row(self) -> int:
        """How many numbers of noise each row of a minibatch has of its own, for one sample."""
        return 0

    def noise_shape(self, samples: int, rows: int = 0) -> tuple[int, int]:
        """Return the shape of the noise of one step: S samples, on `rows` rows."""
        return samples, self.noise_per_sample + rows * self.noise_per_row

    def draw(
        self,
        rng: np.random.Generator,
        samples: int,
        rows: int = 0,
        dtype: Any = np.float64,
    ) -> Array:
        """Draw the noise of one step, of `noise_shape` (K1).

        It needs the number of rows where an estimator gives each row noise of its own.
        """
        noise = np.empty(self.noise_shape(samples, rows), dtype)
        self.fill(rng, noise)
        return noise

    def fill(self, rng: np.random.Generator, noise: Array) -> None:
        """Overwrite the noise of one step with another draw: N(0, 1) numbers."""
        standard_normal(rng, noise)

    def draw_weights(
        self,
        rng: np.random.Generator,
        samples: int,
        dtype: Any = np.float64,
        out: Array | None = None,
    ) -> Array:
        """Draw the noise (S, P) of S weight vectors, for predictions (K1)."""
        shape = (samples, self.posterior.noise_size(self.model.layout.size))
        return standard_normal(rng, np.empty(shape, dtype) if out is None else out)

    def noise_blocks(
        self, rng: np.random.Generator, samples: int, block: int, dtype: Any
    ) -> Iterator[Array]:
        """Yield the noise of `samples` weight vectors, at most `block` at a time.

        Whole blocks are drawn, each into the memory of the one before: the first weight vectors
        do not depend on how many are asked for.
        """
        noise = None
        for begin in range(0, samples, block):
            noise = self.draw_weights(rng, block, dtype, noise)
            yield noise[: samples - begin]

    def weights(
        self, theta: Array, eps: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return the weights (S, P) that `theta` makes of noise from `draw_weights` (K3, K4)."""
        buffers = Buffers() if buffers is None else buffers
        return self.posterior.sample(self.layout.views(theta), eps, buffers).w

    def params(self, theta: Array, eps: Array) -> Params:
        """View the numbers that prior and likelihood learned: one set, whatever the weights."""
        return self.layout.views(theta)

    def outputs(self, theta: Array, w: Array, x: Array, buffers: Buffers) -> Array:
        """Return the network's outputs (S, B, heads) at rows `x`, by which it predicts."""
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
        """Return log P(D|w) (S,) of rows `x`, `y` for the weights that `eps` makes."""
        buffers = Buffers() if buffers is None else buffers
        w, params = self.weights(theta, eps, buffers), self.params(theta, eps)
        return self.model.evaluate(
            w, params, x, y, buffers, sample_weight
        ).log_likelihood

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

        Raises
        ------
        ValueError
            If an argument is no array, or of a shape that no step has.
        """
        at = self.batch(theta, noise, x, y, kl_weight, buffers, sample_weight)
        value, terms = self.fill_gradient(at)
        return Evaluated(value, at.grad, terms)

    def fill_gradient(self, at: Batch) -> tuple[Any, LogDensities]:
        """Return the objective and its terms, and write its gradient into `at.d_blocks`."""
        raise NotImplementedError

    def forward(self, at: Batch) -> Step:
        """Return the objective on one minibatch, before the gradient (K1-K18)."""
        sample = self.posterior.sample(at.blocks, at.noise, at.buffers)  # K1-K4
        # K11-K16, K31-K36
        joint = self.model.forward(
            sample.w, at.blocks, at.x, at.y, at.buffers, at.sample_weight
        )
        log_q = self.posterior.log_density(sample)  # K6-K10
        terms = LogDensities(log_q, joint.log_prior, joint.log_likelihood)
        value, cotangents = self.objective(terms, at.kl_weight)  # K5, K17, K18
        return Step(value, terms, cotangents, sample, joint)

    def batch(
        self,
        theta: Array,
        noise: Array,
        x: Array,
        y: Array,
        kl_weight: float,
        buffers: Buffers | None,
        sample_weight: Array | None,
    ) -> Batch:
        """Check the shapes of the arguments of one step; the likelihood looks at y."""
        lengths, width, shared, own = self._lengths
        try:
            *lead, rows, d_in = x.shape
            fits = (*lead, d_in) == width and theta.shape == lengths
            fits = fits and noise.shape == (len(noise), shared + own * rows)
            fits = fits and (
                sample_weight is None or sample_weight.shape == (*lead, rows)
            )
            # text and dates have shapes too; of a complex step all may be complex
            fits = fits and theta.dtype.char in "fdFD"
            kinds = REAL_KINDS if theta.dtype.kind == "f" else NUMBER_KINDS
            given = (
                (noise, x, y) if sample_weight is None else (noise, x, y, sample_weight)
            )
            fits = fits and all(one.dtype.kind in kinds for one in given)
        except (AttributeError, TypeError, ValueError):  # lists; a number; fewer axes
            fits = False
        if not (fits and isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
            raise ValueError(self._of_what_shape(theta, noise, x, y, sample_weight))
        if not _is_number(kl_weight):
            raise TypeError(f"kl_weight must be a number; got {short_repr(kl_weight)}")
        buffers = Buffers() if buffers is None else buffers
        grad, views = buffers.like(theta), self.layout.views
        blocks, d_blocks = buffers.views(theta, views), buffers.views(grad, views)
        return Batch(
            blocks, noise, x, y, kl_weight, sample_weight, grad, d_blocks, buffers
        )

    @cached_property
    def _lengths(self) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
        """The shape of theta, that of x without its rows, and lengths of noise: the step's own."""
        width = (*self.model.lead, self.model.network.sizes[0])
        return (self.layout.size,), width, self.noise_per_sample, self.noise_per_row

    def _of_what_shape(self, *given: Any) -> str:
        """Say which arrays a step takes, and what came."""
        (size,), (*lead, d_in), shared, own = self._lengths
        data = "".join(f"{length}, " for length in lead) + "rows"
        noise = f"{shared} + {own} rows" if own else f"{shared}"
        came = zip(("theta", "noise", "x", "y", "sample_weight"), given, strict=True)
        return (
            f"arrays must have shapes theta ({size},), noise (samples, {noise}), x ({data}, "
            f"{d_in}), y ({data}, {self.model.outputs}) and sample_weight ({data}) or None, "
            "and hold numbers, theta floats; got "
            + ", ".join(
                f"{name}: {short_repr(value)}"
                for name, value in came
                if value is not None
            )
        )

    def gates(self, theta: Array, noise: Array, x: Array) -> Array:
        """Return what changes at the kinks of the objective, one flat bool array.

        Which ReLU units are on and, for a prior with a kink at 0, the signs of the weights.
        """
        w = self.weights(theta, noise)
        on = network.gates(self.model.network, w, x)
        signs = w.ravel() > 0 if self.model.prior.kink else np.zeros(0, bool)
        return np.concatenate([on, signs])


def _is_number(value: Any) -> bool:
    """Whether a value is a number, or an array or a traced number of one."""
    dtype = getattr(value, "dtype", None)
    return isinstance(value, Real) if dtype is None else dtype.kind in NUMBER_KINDS


def _name(part: Any) -> str:
    return getattr(part, "__name__", type(part).__name__)


def is_linear(objective: Objective) -> bool:
    """Whether the minibatch costs of an epoch are unbiased for the cost of all data (D30)."""
    return isinstance(objective, Linear) or not hasattr(
        objective, "__dataclass_fields__"
    )
