r"""Automatic differentiation variational inference, gradients by hand.

The recipe of Mullachery et al. after Kucukelbir et al. (2017): constrained numbers theta are
mapped to real ones, zeta = T(theta) (M14, M15); q is Gaussian there, of any posterior with an
entropy; noise eta gives zeta = mu + C eta (M16); and the gradient of

.. math:: -\mathrm{ELBO}(\phi) = -E_{N(\eta; 0, I)}\big[\log p(x, T^{-1}(\zeta))
          + \log|\det J_{T^{-1}}(\zeta)|\big] - H[q(\zeta; \phi)]

is that of the sampled mean (M17). By M13 it is KL(q || posterior) less the log evidence.

The maps T are complex-safe, and keep their digits for |zeta| up to 1e4, except where theta itself
has none: e^zeta overflows beyond 709, and a theta within 1e-16 of a bound rounds to that bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, log, prod, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import (
    inverse_softplus,
    sigmoid,
    softplus,
    standard_normal,
)
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.progress import tqdm
from bbb_numpy.training.optimizers import Adam, Cosine, Optimizer

Array = NDArray[Any]
LogDensity = Callable[[Array], tuple[Array, Array]]  # positions (S, K) -> (S,), (S, K)
# It starts with standard deviations of 0.31 around numbers near 0, within a factor 10 of most
# posteriors in real space.
DEFAULT_POSTERIOR = MeanField(0.1, -1.0, 0.01)
DEFAULT_OPTIMIZER = Adam(0.05, schedule=Cosine())


class Transform:
    """A map zeta = T(theta) of arrays (..., K), whose inverse has a triangular Jacobian (M15).

    A density p(theta) is the density p(T^-1(zeta)) e^log_det(zeta) of zeta (M14). Here each
    theta_k comes from its own zeta_k: the Jacobian is diagonal, of entries d theta/d zeta.
    """

    def forward(self, theta: Array) -> Array:
        """Return zeta = T(theta); ValueError for a theta outside its range."""
        raise NotImplementedError

    def inverse(self, zeta: Array) -> Array:
        """Return theta = T^-1(zeta), for every real zeta."""
        raise NotImplementedError

    def _log_slope(self, zeta: Array) -> Array:  # log d theta/d zeta (..., K)
        raise NotImplementedError

    def _slope(self, zeta: Array) -> Array:
        return np.exp(self._log_slope(zeta))

    def log_det(self, zeta: Array) -> Array:
        """Return log |det dT^-1/dzeta| (...): the determinant is the product of the diagonal."""
        return np.add.reduce(self._log_slope(zeta), axis=-1)

    def log_det_slope(self, zeta: Array) -> Array:
        """Return the gradient of `log_det` (..., K)."""
        raise NotImplementedError

    def pull_back(self, zeta: Array, d_theta: Array) -> Array:
        """Return the gradient for zeta (..., K), given the one for theta.

        Parameters
        ----------
        zeta : array (..., K)
            Real numbers at which the Jacobian is taken.
        d_theta : array (..., K)
            Gradient for theta.
        """
        return d_theta * self._slope(zeta)


@dataclass(frozen=True)
class Identity(Transform):
    """Real numbers as they are: theta = zeta (M15)."""

    def forward(self, theta: Array) -> Array:
        """Return theta, which must be finite."""
        return _inside(theta, np.isfinite(theta), "finite")

    def inverse(self, zeta: Array) -> Array:
        """Return zeta."""
        return zeta

    def _log_slope(self, zeta: Array) -> Array:
        return 0.0 * zeta

    def log_det_slope(self, zeta: Array) -> Array:
        """Return 0 (..., K)."""
        return np.zeros_like(zeta)


@dataclass(frozen=True)
class Log(Transform):
    """Positive numbers by their logarithm: theta = e^zeta, of slope e^zeta (M15)."""

    def forward(self, theta: Array) -> Array:
        """Return log theta, for theta > 0."""
        return np.log(
            _inside(theta, (theta > 0) & np.isfinite(theta), "positive and finite")
        )

    def inverse(self, zeta: Array) -> Array:
        """Return e^zeta."""
        return np.exp(zeta)

    def _log_slope(self, zeta: Array) -> Array:
        return zeta

    def log_det_slope(self, zeta: Array) -> Array:
        """Return 1 (..., K)."""
        return np.ones_like(zeta)


@dataclass(frozen=True)
class Softplus(Transform):
    """Positive numbers, as they are when large: log(1 + e^zeta), of slope sig(zeta) (M15)."""

    def forward(self, theta: Array) -> Array:
        """Return log(e^theta - 1), for theta > 0."""
        valid = (theta > 0) & np.isfinite(theta)
        return inverse_softplus(_inside(theta, valid, "positive and finite"))

    def inverse(self, zeta: Array) -> Array:
        """Return log(1 + e^zeta)."""
        return softplus(zeta)

    def _log_slope(self, zeta: Array) -> Array:
        return -softplus(-zeta)  # M15: log sig(zeta), which is not log of 0 far left

    def _slope(self, zeta: Array) -> Array:
        return sigmoid(zeta)

    def log_det_slope(self, zeta: Array) -> Array:
        """Return sig(-zeta) (..., K), without the cancellation of 1 - sig(zeta)."""
        return sigmoid(-zeta)


@dataclass(frozen=True)
class Logit(Transform):
    """Between two bounds: low + (high - low) sig(zeta) (M15).

    The slope is (high - low) sig(zeta) sig(-zeta). Both bounds are finite, and low < high.
    """

    low: float = 0.0
    high: float = 1.0

    @property
    def _width(self) -> float:
        return self.high - self.low

    def forward(self, theta: Array) -> Array:
        """Return log((theta - low) / (high - theta)), for low < theta < high."""
        valid = (theta > self.low) & (theta < self.high)
        theta = _inside(
            theta, valid, f"between {self.low:g} and {self.high:g}, both excluded"
        )
        return np.log(theta - self.low) - np.log(self.high - theta)

    def inverse(self, zeta: Array) -> Array:
        """Return low + (high - low) sig(zeta), counted from the nearer bound."""
        nearer_low = zeta.real < 0
        # The share of the way from the nearer bound, at most a half.
        share = self._width * sigmoid(np.where(nearer_low, zeta, -zeta))
        return np.where(nearer_low, self.low + share, self.high - share)

    def _log_slope(self, zeta: Array) -> Array:
        return log(self._width) - softplus(zeta) - softplus(-zeta)

    def _slope(self, zeta: Array) -> Array:
        return self._width * sigmoid(zeta) * sigmoid(-zeta)

    def log_det_slope(self, zeta: Array) -> Array:
        """Return sig(-zeta) - sig(zeta) (..., K)."""
        return sigmoid(-zeta) - sigmoid(zeta)


@dataclass(frozen=True)
class Ordered(Transform):
    """Increasing vectors: theta_1 = zeta_1 and theta_k = theta_(k-1) + e^zeta_k (M15).

    The Jacobian is lower triangular with diagonal (1, e^zeta_2, ..., e^zeta_K).
    """

    def forward(self, theta: Array) -> Array:
        """Return (theta_1, log(theta_2 - theta_1), ...), for theta_1 < theta_2 < ..."""
        steps = np.diff(theta, axis=-1)
        valid = np.isfinite(theta)
        valid[..., 1:] &= steps > 0
        _inside(theta, valid, "finite and larger than the number before it")
        return np.concatenate([theta[..., :1], np.log(steps)], axis=-1)

    def inverse(self, zeta: Array) -> Array:
        """Return the running sum of (zeta_1, e^zeta_2, ..., e^zeta_K)."""
        return np.cumsum(
            np.concatenate([zeta[..., :1], np.exp(zeta[..., 1:])], axis=-1), axis=-1
        )

    def _log_slope(self, zeta: Array) -> Array:
        return np.concatenate([0.0 * zeta[..., :1], zeta[..., 1:]], axis=-1)

    def log_det_slope(self, zeta: Array) -> Array:
        """Return (0, 1, ..., 1) (..., K)."""
        slope = np.ones_like(zeta)
        slope[..., 0] = 0.0
        return slope

    def pull_back(self, zeta: Array, d_theta: Array) -> Array:
        """Return e^zeta_k (for k = 1: 1) times sum_(j >= k) d_theta_j: theta_j holds step k."""
        d_steps = np.cumsum(d_theta[..., ::-1], axis=-1)[..., ::-1]
        return d_steps * self._slope(zeta)


@dataclass(frozen=True)
class Blockwise(Transform):
    """Named blocks of one flat vector, each with its own transform (M15).

    The Jacobian is block diagonal, so log determinants add. A transform acts along the last axis
    of its block: ``("cuts", (4, 3), Ordered())`` is four increasing vectors.

    Parameters
    ----------
    parts : tuple of (name, shape, transform)
        In the order in which they lie in the flat vector, e.g. ``(("rate", (), Log()),)``.
    """

    parts: tuple[tuple[str, tuple[int, ...], Transform], ...]

    @classmethod
    def real(cls, layout: Layout) -> Blockwise:
        """Return the identity on every block of `layout`, for densities of real numbers."""
        blocks = [
            (name, shape, Identity()) for name, shape in layout.blocks if 0 not in shape
        ]
        return cls(tuple(blocks))

    @cached_property
    def layout(self) -> Layout:
        """Layout of the blocks, the same for theta and zeta."""
        return Layout(tuple((name, shape) for name, shape, _ in self.parts))

    def _each(self, *flat: Array) -> Iterator[tuple[Transform, list[Array]]]:
        """Yield transform and views (..., vectors, length) of each block of the arrays."""
        views = [self.layout.views(np.asarray(x)) for x in flat]
        for name, shape, transform in self.parts:
            length = shape[-1] if shape else 1
            inner = (*flat[0].shape[:-1], prod(shape) // length, length)
            yield transform, [view[name].reshape(inner) for view in views]

    def _join(self, blocks: Iterable[Array]) -> Array:
        merged = [x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1]) for x in blocks]
        return np.concatenate(merged, axis=-1)

    def forward(self, theta: Array) -> Array:
        """Return zeta (..., K)."""
        return self._join(
            transform.forward(block) for transform, (block,) in self._each(theta)
        )

    def inverse(self, zeta: Array) -> Array:
        """Return theta (..., K)."""
        return self._join(
            transform.inverse(block) for transform, (block,) in self._each(zeta)
        )

    def log_det(self, zeta: Array) -> Array:
        """Return the sum of the log determinants of all blocks (...)."""
        logs = [transform.log_det(block) for transform, (block,) in self._each(zeta)]
        return np.add.reduce(np.concatenate(logs, axis=-1), axis=-1)

    def log_det_slope(self, zeta: Array) -> Array:
        """Return the gradient of `log_det` (..., K)."""
        return self._join(
            transform.log_det_slope(block) for transform, (block,) in self._each(zeta)
        )

    def pull_back(self, zeta: Array, d_theta: Array) -> Array:
        """Return the gradient for zeta (..., K)."""
        return self._join(
            transform.pull_back(*pair) for transform, pair in self._each(zeta, d_theta)
        )


def _inside(theta: Array, valid: Array, condition: str) -> Array:
    """Return `theta`, or raise naming its first entry that is not `valid`."""
    if not np.all(valid):
        raise ValueError(f"theta must be {condition}; got {theta[~valid][0]!s}")
    return theta


@dataclass(frozen=True)
class Transformed:
    r"""The log density of zeta = T(theta), from that of theta (M14): a target for samplers too.

    .. math:: \log p(x, \zeta) = \log p(x, T^{-1}(\zeta)) + \log|\det J_{T^{-1}}(\zeta)|

    Parameters
    ----------
    log_joint : callable
        From theta (S, K), all within their ranges, to the log density (S,), which may lack a
        constant, and its gradient (S, K).
    transforms : Transform
        `Blockwise`, or a single transform for all of theta.
    """

    log_joint: LogDensity
    transforms: Transform

    def __call__(self, zeta: Array) -> tuple[Array, Array]:
        """Return the log density (S,) of zeta (S, K), and its gradient (S, K)."""
        theta = self.transforms.inverse(zeta)  # (S, K)
        value, d_theta = self.log_joint(theta)
        value = value + self.transforms.log_det(zeta)  # M14
        slope = self.transforms.pull_back(zeta, d_theta)  # M17: J^T d log p/d theta
        return value, slope + self.transforms.log_det_slope(zeta)


class Estimate(NamedTuple):
    """A Monte Carlo mean and its standard error, in nats."""

    value: float
    standard_error: float


@dataclass(frozen=True)
class ADVI:
    """A log joint over constrained theta, and Gaussians over zeta = T(theta).

    Parameters
    ----------
    log_joint : callable
        From theta (S, K) to log p(x, theta) (S,), constants kept if the ELBO is to bound the log
        evidence, and its gradient for theta (S, K).
    transforms : Blockwise
        Names, shapes and ranges of the K numbers; ``Blockwise.real(target.layout)`` for a
        log joint of real numbers.
    posterior : MeanField or FullRank
        The family of q(zeta; phi), which also says where phi starts.
    """

    log_joint: LogDensity
    transforms: Blockwise
    posterior: MeanField | FullRank = DEFAULT_POSTERIOR

    @property
    def size(self) -> int:
        """Number K of numbers in theta."""
        return self.transforms.layout.size

    @cached_property
    def layout(self) -> Layout:
        """The blocks of phi: 'mu', 'rho', and with full rank 'lower'."""
        return Layout(self.posterior.blocks(self.size))

    @cached_property
    def target(self) -> Transformed:
        """The log joint of x and zeta (M14)."""
        return Transformed(self.log_joint, self.transforms)

    def init(self, rng: np.random.Generator, dtype: Any = np.float64) -> Array:
        """Draw the starting phi.

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws the means.
        dtype : dtype
            Of phi.
        """
        return self.posterior.init(rng, self.size, dtype)

    def draw(
        self, rng: np.random.Generator, samples: int, dtype: Any = np.float64
    ) -> Array:
        """Draw the noise eta ~ N(0, I) (samples, K).

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws the noise.
        samples : int
            Number S of noise vectors.
        dtype : dtype
            Of the noise.
        """
        return standard_normal(
            rng, np.empty((samples, self.posterior.noise_size(self.size)), dtype)
        )

    def standardise(self, phi: Array, zeta: Array) -> Array:
        """Return eta = C^-1 (zeta - mu) (S, K), whose Jacobian has determinant 1/|det C| (M16).

        Parameters
        ----------
        phi : array
            Parameters of q, flat, as `layout` names them.
        zeta : array (S, K)
            Real numbers.
        """
        return self.posterior.from_weights(
            self.layout.views(phi), zeta, Buffers()
        ).eps  # M16

    def log_q(self, phi: Array, zeta: Array) -> Array:
        """Return log q(zeta; phi) (S,): log N(eta; 0, I) - log |det C| (M16).

        Parameters
        ----------
        phi : array
            Parameters of q, flat, as `layout` names them.
        zeta : array (S, K)
            Real numbers.

        Returns
        -------
        array (S,)
            In nats.
        """
        sample: Any = self.posterior.from_weights(
            self.layout.views(phi), zeta, Buffers()
        )
        return self.posterior.log_density(sample)

    def value_and_grad(
        self, phi: Array, eta: Array, buffers: Buffers | None = None
    ) -> tuple[Any, Array]:
        r"""Return the negative ELBO of the S noise vectors, and its gradient for phi (M13, M17).

        .. math:: \nabla_\mu &= -\tfrac1S \sum_s g_s, \qquad
                  g = J_{T^{-1}}^\top \nabla_\theta \log p + \nabla_\zeta \log|\det J_{T^{-1}}| \\
                  \nabla_C &= -\mathrm{tril}\big(\tfrac1S \sum_s g_s \eta_s^\top\big)
                  - \mathrm{diag}(1/C_{kk})

        The entropy is exact, K/2 (1 + log 2 pi) + log |det C| (M4); only the joint is sampled.

        Parameters
        ----------
        phi : ndarray
            Flat, as `layout` names it. Real, or complex for a complex step.
        eta : ndarray (S, K)
            From `draw`.
        buffers : Buffers, optional
            Reuses the buffers of the previous call, the returned gradient among them.

        Returns
        -------
        value : scalar
            In nats.
        grad : ndarray
            Shape and dtype of `phi`.
        """
        buffers = Buffers() if buffers is None else buffers
        grad = buffers.like(phi)
        blocks = self.layout.views(phi)
        d_phi = self.layout.views(grad)
        sample: Any = self.posterior.sample(blocks, eta, buffers)  # zeta = mu + C eta
        log_p, slope = self.target(sample.w)  # (S,), (S, K)
        entropy = self.posterior.entropy(sample.parts).value
        self.posterior.pull_back(sample, slope / -len(eta), None, d_phi)  # M17
        self.posterior.add_entropy_vjp(sample.parts, -1.0, 0.0, d_phi)
        return -np.mean(log_p) - entropy, grad  # M13: -(E log p + H)


@dataclass(frozen=True)
class Approximation:
    """The q that `fit` returns."""

    problem: ADVI
    phi: Array
    history: Array  # (steps,)  the sampled negative ELBO before each step, in nats

    def _zeta(self, rng: np.random.Generator, count: int) -> Array:
        eta = self.problem.draw(rng, count, self.phi.dtype)
        blocks = self.problem.layout.views(self.phi)
        return self.problem.posterior.sample(blocks, eta, Buffers()).w

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Draw theta = T^-1(zeta) from q, each within its range.

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws the noise.
        count : int
            Number of draws.

        Returns
        -------
        array (count, K)
        """
        return self.problem.transforms.inverse(self._zeta(rng, count))

    def named(self, theta: Array) -> dict[str, Array]:
        """Return the blocks of theta (..., K) by name, (..., *shape) each; views."""
        return self.problem.transforms.layout.views(theta)

    def log_density(self, theta: Array) -> Array:
        """Return log q (S,) as a density of theta (S, K): log q(zeta) - log |det J| (M14)."""
        zeta = self.problem.transforms.forward(theta)
        return self.problem.log_q(self.phi, zeta) - self.problem.transforms.log_det(
            zeta
        )

    def elbo(self, rng: np.random.Generator, samples: int = 1000) -> Estimate:
        """Estimate the ELBO as the mean of log p(x, zeta) - log q(zeta), with standard error.

        With q sampled too, unlike in `value_and_grad`, its scatter falls as q nears the
        posterior: where they are equal every sample gives the log evidence.

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws the noise.
        samples : int
            Number S of draws from q.

        Returns
        -------
        Estimate
            In nats.
        """
        zeta = self._zeta(rng, samples)
        log_joint, _ = self.problem.target(zeta)
        log_ratios = log_joint - self.problem.log_q(self.phi, zeta)  # (S,)
        error = float(np.std(log_ratios, ddof=1)) / sqrt(samples)
        return Estimate(float(np.mean(log_ratios)), error)


def fit(
    problem: ADVI,
    *,
    rng: np.random.Generator,
    steps: int = 2000,
    samples: int = 10,
    optimizer: Optimizer = DEFAULT_OPTIMIZER,
    start: Array | None = None,
    progress: bool | None = None,
) -> Approximation:
    """Maximise the ELBO over phi by stochastic gradient steps.

    Parameters
    ----------
    problem : ADVI
    rng : numpy.random.Generator
        The only source of randomness: first the start, then the noise of each step.
    steps, samples : int
        Updates, and noise vectors S of each; >= 1.
    optimizer : SGD, Momentum or Adam
        Its schedule runs once over all steps. Default: Adam(0.05) with half a cosine to 0.
    start : ndarray, optional
        phi, for example of ``posterior.pack(...)``; by default ``problem.init(rng)``.
    progress : bool, optional
        Show a progress bar; by default only in a terminal or notebook.

    Raises FloatingPointError when the ELBO or its gradient is nan or infinite.
    """
    phi = (
        problem.init(rng)
        if start is None
        else np.array(start, np.result_type(start, np.float32))
    )
    state = optimizer.init(phi)
    buffers = Buffers()
    history = []
    with (
        np.errstate(over="ignore", invalid="ignore", divide="ignore"),
        tqdm(total=steps, progress=progress) as bar,
    ):
        for step in range(steps):
            eta = problem.draw(rng, samples, phi.dtype)
            value, grad = problem.value_and_grad(phi, eta, buffers.rewind())
            if not (isfinite(value) and np.isfinite(grad).all()):
                raise FloatingPointError(
                    f"the negative ELBO is {value} in step {step} (counted from 0), or its "
                    "gradient is not finite: log_joint is not finite at some theta within the "
                    "ranges, or the steps are too long: lower the learning rate, or take more "
                    "samples"
                )
            history.append(float(value))
            optimizer.update(phi, grad, state, optimizer.schedule(step, steps))
            bar.set_postfix_str(f"ELBO {-float(value):.5g}", refresh=False)
            bar.update()
    return Approximation(problem, phi, np.array(history))
