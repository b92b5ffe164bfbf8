"""Network + prior + likelihood: the log joint density and its gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..numeric.buffers import Buffers
from ..numeric.layout import Layout
from ..numeric.validation import A, Like
from ..parts import network
from ..parts.likelihoods import GaussianLikelihood
from ..parts.network import MLP, Tape
from ..parts.priors import ExpectedLogPrior, GaussianPrior
from ..parts.weighted import Weighted

__all__ = ["ClosedFormPrior", "Evaluation", "Joint", "Likelihood", "Model", "Prior"]

Array = NDArray[Any]
PRIOR = Like("GaussianPrior()", "for_network", "log_density")
LIKELIHOOD = Like("GaussianLikelihood()", "targets", "log_density")
Blocks = tuple[tuple[str, tuple[int, ...]], ...]


class Prior(Protocol):
    """What a prior has: those of `parts`, or one's own.

    A prior is a frozen dataclass, of which every field has a default and is checked when it is
    made; CONTRIBUTING.md adds one step by step. The contract of its methods:

    - *Arguments are not written to*, `w` and what `log_density` returns least of all: the same
      weights go into the likelihood, and a backward pass may be repeated. The exceptions are
      named below: `add_vjp` adds to `d_w`, and writes every number of `d_params`.
    - *Nothing is left behind*, on the prior or in `buffers`: all that `add_vjp` needs is returned.
      Large arrays are taken from `buffers`, or are new.
    - *One set of learned numbers or S.* A block has its shape (K,), or (S, K), one row for each
      weight vector; `write_gradient` serves both. Every real number is allowed: learn log scale.
    - *The dtype of `w`* is that of all results, float32 too. Python numbers keep it, NumPy's
      float64 numbers do not.
    - *Complex-safe*: for complex `w` and `params` the value continues analytically. Comparisons
      look at ``.real``; no ``abs``, ``conj``, ``max`` of complex numbers; `log1p` is that of
      `numeric.elementary`.
    - *Finite* for finite w, as far as w^2 is.

    Whoever has `expected_log_density` as well, as `ClosedFormPrior`, goes with the estimators that
    need KL(q || prior) in closed form; the others are refused there.
    """

    kink: ClassVar[bool]  # whether log P(w) has a kink at w_j = 0, as Laplace's: see `Family.gates`

    def for_network(self, sizes: tuple[int, ...]) -> Prior:
        """Return the prior for a network of these widths; most return themselves."""

    def blocks(self) -> Blocks:
        """Name the learned blocks: names of which none is a posterior's or a likelihood's.

        One that begins with ``log_`` or ``prior_log_`` holds logarithms of scales.
        """

    def init(self, dtype: Any) -> Array:
        """Return their starting values, one flat vector in the order of `blocks`."""

    def deviation(self, params: dict[str, Array]) -> float:
        """Return the standard deviation of one weight; infinite where it has none."""

    def log_density(
        self, params: dict[str, Array], w: Array, buffers: Buffers
    ) -> tuple[Array, Any]:
        """Return log P(w) (S,) of weights (S, P), constants kept, and what `add_vjp` needs."""

    def add_vjp(
        self,
        saved: Any,
        cotangent: Array,
        d_w: Array,
        d_params: dict[str, Array],
    ) -> None:
        """Add cotangent (S,) times d log P/dw to `d_w`; write the learned blocks' gradient."""

    def draw(
        self, rng: np.random.Generator, params: dict[str, Array], shape: tuple[int, int]
    ) -> Array:
        """Draw weights (S, P), float64."""


class ClosedFormPrior(Prior, Protocol):
    """A prior of which E_q[log P(w)] follows from the mean and variances of q (D18, D19, D39)."""

    @property
    def starts(self) -> tuple[int, ...] | None:
        """Where each group of weights with a scale of its own begins; None: one group."""

    def expected_log_density(
        self, params: dict[str, Array], mean: Array, total_variance: Any, d_params: dict[str, Array]
    ) -> ExpectedLogPrior:
        """Return it for q of mean (P,) and variances summed by group; write d_params."""


class Likelihood(Protocol):
    """What a likelihood has: those of `likelihoods`, `student_t` and `discrete`, or one's own.

    A frozen dataclass, of which every field has a default and is checked when it is made. Its
    methods obey what `Prior` says of arguments, learned numbers, dtypes and complex numbers, with
    the outputs `f` in the place of `w`; `vjp` returns a new array. `log_density` and `vjp` look at
    each row alone, so that minibatches add up.
    """

    @property
    def target_kind(self) -> str:
        """'real', which learners standardise; 'count'; 'class' (or 0 and 1)."""

    @property
    def heavy_tails(self) -> bool:
        """Whether the variance may be infinite though all else is finite."""

    def heads(self, targets: int) -> int:
        """Return how many network outputs `targets` target columns need."""

    def targets(self, heads: int) -> int:
        """Return how many target columns K belong to `heads` network outputs."""

    def check_targets(self, y: Array, dtype: Any) -> None:
        """Raise ValueError unless `y` (B, K) can be targets."""

    def blocks(self, outputs: int) -> Blocks:
        """Name the learned blocks for K = `outputs`, as `Prior.blocks`."""

    def init(self, outputs: int, dtype: Any) -> Array:
        """Return their starting values, one flat vector in the order of `blocks`."""

    def log_density(self, params: dict[str, Array], f: Array, y: Array) -> tuple[Array, Any]:
        """Return log P(y|x, w) (S, B) of every row, constants kept, and what `vjp` needs.

        Raises ValueError if `y` (B, K) and `f` (S, B, heads) do not fit.
        """

    def vjp(self, saved: Any, cotangent: Array, d_params: dict[str, Array]) -> Array:
        """Pull a cotangent back to the outputs (S, B, heads) and the learned blocks.

        It is (S,), of the sum over rows, or (S, B), one for each row (D45).
        """

    def mean(self, params: dict[str, Array], f: Array) -> Array:
        """Return E[y|x, w] (S, B, K); `f` itself may be returned."""

    def variance(self, params: dict[str, Array], f: Array) -> Array:
        """Return Var[y|x, w], broadcastable to (S, B, K); infinite where there is none."""

    def draw(self, rng: np.random.Generator, params: dict[str, Array], f: Array) -> Array:
        """Draw targets (S, B, K) of the dtype of `f`."""


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
        A(MLP)("network", self.network)
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

    def weighted(self) -> Model:
        """Return the model of rows with weights, the last column of their targets (D45)."""
        return replace(self, likelihood=Weighted(self.likelihood))

    def learned(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Name the numbers that prior and likelihood learn, in the order of theta."""
        return self.prior.blocks() + self.likelihood.blocks(self.outputs)

    def evaluate(
        self, w: Array, params: dict[str, Array], x: Array, y: Array, buffers: Buffers
    ) -> Evaluation:
        """Evaluate log P(D|w) for weights `w` (S, P) on rows `x`, `y` (B, ...)."""
        f, tape = network.forward(self.network, w, x, buffers)  # (S, B, heads)
        rowwise, residuals = self.likelihood.log_density(params, f, y)  # (S, B)
        return Evaluation(np.add.reduce(rowwise, axis=1), tape, residuals)

    def forward(
        self, w: Array, params: dict[str, Array], x: Array, y: Array, buffers: Buffers
    ) -> Joint:
        """Evaluate both log densities for weights `w` (S, P) on rows `x`, `y` (B, ...)."""
        found = self.evaluate(w, params, x, y, buffers)
        log_prior, saved = self.prior.log_density(params, w, buffers)
        return Joint(log_prior, found.log_likelihood, found, saved)

    def likelihood_vjp(
        self,
        found: Evaluation,
        d_log_likelihood: Array,
        d_params: dict[str, Array],
        buffers: Buffers,
    ) -> Array:
        """Pull a cotangent (S,) of the log likelihood back to the weights (K37-K42).

        Returns
        -------
        d_w : ndarray (S, P)
            `d_params` receives the gradient of the likelihood's own numbers.
        """
        d_f = self.likelihood.vjp(found.residuals, d_log_likelihood, d_params)
        return network.vjp(self.network, found.tape, d_f, buffers)

    def vjp(
        self,
        joint: Joint,
        d_log_prior: Array,
        d_log_likelihood: Array,
        d_params: dict[str, Array],
        buffers: Buffers,
    ) -> Array:
        """Pull cotangents (S,) of the two log densities back to the weights.

        Returns
        -------
        d_w : ndarray (S, P)
            The likelihood by backpropagation (K37-K42), the prior in closed form (K19).
            `d_params` receives the gradient of the numbers that both learn.
        """
        d_w = self.likelihood_vjp(joint.evaluation, d_log_likelihood, d_params, buffers)
        self.prior.add_vjp(joint.prior, d_log_prior, d_w, d_params)
        return d_w

    def predict(self, w: Array, x: Array, buffers: Buffers | None = None) -> Array:
        """Return the network outputs (S, B, heads) alone; they live in `buffers`."""
        return network.forward(self.network, w, x, Buffers() if buffers is None else buffers)[0]
