"""Linearised Laplace: a Gaussian around a trained network, and the network made linear there.

After training to MAP the posterior is N(mu, H^-1), with H the precision of the prior plus the
generalised Gauss-Newton curvature sum_n J_n^T Lambda_n J_n (D54): J_n is the Jacobian of the
outputs at row n, by the network's own vjp, Lambda_n the likelihood's `curvature`. Predictions are
those of the linearised network f(x, mu) + J(x) (w - mu), of which this Gaussian is the posterior
(Immer, Korzepa and Bauer 2021): under Gaussian noise a Gaussian, with no sample drawn. In a basis
in which H is diagonal the evidence is a sum over directions, and its slopes tell the scales of
prior and noise (MacKay 1992; D55).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

import numpy as np

from ..gradients.estimator import Batch, GradientEstimator
from ..gradients.reparameterised import Reparameterised
from ..model.joint import Model
from ..model.objectives import MAP, LogDensities
from ..numeric.buffers import Buffers
from ..numeric.layout import Array, Layout, Params
from ..numeric.validation import COUNT, OneOf, check_fields
from ..parts import network
from ..parts.likelihoods import GaussianLikelihood
from ..parts.network import MLP
from ..parts.posteriors import PointMass, Posterior
from ..parts.priors import GaussianPrior, LayerwiseGaussianPrior
from .loop import start, train
from .recipe import Recipe, Rows
from .state import Training

__all__ = [
    "COVARIANCES",
    "Laplace",
    "Linearised",
    "Spectrum",
    "fit",
    "jacobian",
    "log_evidence",
]

COVARIANCES = ("full", "kronecker", "diagonal", "last-layer")
MOST = 8000  # rows of a matrix: 0.5 GB, of which several are needed
BLOCK_NUMBERS = 4_000_000  # of the Jacobians that are held at a time
SPREAD = 0.3  # of the weights that training starts from
UPDATES = 1000  # of the scales, between two trainings; they cost next to nothing
PASSES = 100  # of scales and mode in turn, where both are exact (D56)
SETTLED = 1e-7  # a change of the logarithm of a scale
TINY = 1e-12


class Block(NamedTuple):
    """Weights that are correlated with one another: from `begin` on, a matrix row by row."""

    begin: int
    rows: int  # inputs of a layer and 1; a single one where all weights are correlated
    columns: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.begin + self.rows * self.columns


@dataclass(frozen=True)
class Laplace(Posterior):
    """A Gaussian around a MAP estimate, by Gauss-Newton curvature (D54).

    Parameters
    ----------
    covariance : {'full', 'kronecker', 'diagonal', 'last-layer'}
        Which weights are correlated: all; those of one layer, as a Kronecker product of inputs and
        units; none; those of the last layer, the others being sure: under Gaussian noise a Bayesian
        last layer, exact given its features (D56).
    rounds : int
        MAP estimates >= 1. After each the scales of prior and noise, of those that are learned,
        become those of the largest evidence (D55).
    """

    covariance: str = "full"
    rounds: int = 8

    def __post_init__(self) -> None:
        check_fields(self, covariance=OneOf(*COVARIANCES), rounds=COUNT)


@dataclass(frozen=True)
class Linearised(GradientEstimator):
    """A network made linear at mu, and the Gaussian posterior of its weights around mu (D54).

    theta holds mu (P,), deviations (P,) in a basis, and for each block of correlated weights the
    matrices A and B of that basis: w = mu + A (deviation o eps) B^T.
    """

    posterior: Laplace = Laplace()

    def __post_init__(self) -> None:
        super().__post_init__()
        prior = self.model.prior
        if not isinstance(prior, GaussianPrior | LayerwiseGaussianPrior):
            raise ValueError(
                "Laplace's approximation needs a prior whose curvature is its precision, "
                f"GaussianPrior or LayerwiseGaussianPrior; got {prior!r}"
            )
        outputs = np.zeros((1, 1, self.model.network.sizes[-1]))
        self.model.likelihood.curvature(
            _views(self.model, _starts(self.model)), outputs
        )
        largest = max((max(block[1:]) for block in self.correlated), default=0)
        if largest > MOST:
            raise ValueError(
                f"the curvature would be a matrix of {largest:,} rows; accepted are {MOST:,}. Use "
                "Laplace('kronecker'), 'last-layer' or 'diagonal', or a smaller network"
            )

    @cached_property
    def correlated(self) -> tuple[Block, ...]:
        """The blocks of correlated weights, in their order."""
        kind, net, layers = self.posterior.covariance, self.model.network, list[Block]()
        for d_in, d_out in pairwise(net.sizes):
            layers.append(Block(layers[-1].end if layers else 0, d_in + 1, d_out))
        if kind in ("full", "last-layer"):
            begin = 0 if kind == "full" else layers[-1].begin
            return (Block(begin, 1, net.layout.size - begin),)
        return tuple(layers) if kind == "kronecker" else ()

    @property
    def is_conjugate(self) -> bool:
        """Whether the posterior is exact given the features: that of Bayesian regression (D56)."""
        gaussian = type(self.model.likelihood) is GaussianLikelihood
        return gaussian and self.posterior.covariance == "last-layer"

    @cached_property
    def layout(self) -> Layout:
        """The blocks of theta: mu, deviations, bases, then the prior's and the likelihood's own."""
        size = self.model.layout.size
        blocks: list[Any] = [("mu", (size,)), ("deviation", (size,))]
        for begin, rows, columns in self.correlated:
            blocks += [(f"A{begin}", (rows, rows)), (f"B{begin}", (columns, columns))]
        return Layout((*blocks, *self.model.learned()))

    def pack(
        self, mu: Array, at: Spectrum, log_alpha: Any, log_beta: Array, learned: Array
    ) -> Array:
        """Return the theta of N(mu, H^-1), with factors on the precisions of H (D54)."""
        deviation = np.zeros(len(mu))  # of what is sure
        precision = np.exp(log_beta) @ at.curvature + np.exp(log_alpha)
        deviation[len(mu) - len(precision) :] = precision**-0.5
        if not at.basis:
            deviation *= at.scale
        return np.concatenate([mu, deviation, *map(np.ravel, at.basis), learned])

    def draw_weights(
        self,
        rng: np.random.Generator,
        samples: int,
        dtype: Any = np.float64,
        out: Any = None,
    ) -> Array:
        """Draw noise (S, P) in pairs eps, -eps: of what is linear in w the mean is exact (D23)."""
        eps = super().draw_weights(rng, samples, dtype, out)
        np.negative(eps[0 : samples - samples % 2 : 2], out=eps[1::2])
        return eps

    def weights(
        self, theta: Array, eps: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return the weights (S, P) that `theta` makes of noise (D54)."""
        blocks = self.layout.views(theta)
        w = eps * blocks["deviation"]
        for block in self.correlated:
            part = w[:, block.begin : block.end]
            left, right = blocks[f"A{block.begin}"], blocks[f"B{block.begin}"]
            turned = left @ part.reshape(-1, block.rows, block.columns) @ right.T
            part[...] = turned.reshape(part.shape)
        w += blocks["mu"]
        return w

    def outputs(self, theta: Array, w: Array, x: Array, buffers: Buffers) -> Array:
        """Return f(x, mu) + J(x) (w - mu) (S, B, heads) (D54)."""
        net, mu = self.model.network, self.layout.views(theta)["mu"]
        f, tape = network.forward(net, mu[None], x, buffers)
        return f + network.jvp(net, tape, w - mu, buffers)

    def affine(self, theta: Array, x: Array) -> tuple[Array, Array]:
        """Return f(x, mu) (B, K) and G (B, K, P): of noise eps the outputs are f + G eps (D54)."""
        blocks = self.layout.views(theta)
        f, slopes, _ = jacobian(self.model.network, blocks["mu"], x)
        for block in self.correlated:
            part = slopes[..., block.begin : block.end]
            left, right = blocks[f"A{block.begin}"], blocks[f"B{block.begin}"]
            turned = left.T @ part.reshape(-1, block.rows, block.columns) @ right
            part[...] = turned.reshape(part.shape)
        return f, slopes * blocks["deviation"]


def jacobian(net: MLP, w: Array, x: Array) -> tuple[Array, Array, network.Tape]:
    """Return outputs (B, K), their Jacobian (B, K, P) at weights `w` (P,), and the tape (D54).

    Each row is a sample with weights of its own, so that one backward pass has the slopes of one
    output at all rows.
    """
    # (B, 1, K)
    f, tape = network.forward(net, np.tile(w, (len(x), 1)), x[:, None], Buffers())
    units, ones = np.eye(net.sizes[-1], dtype=f.dtype), np.ones_like(f[..., :1])
    slopes = [
        network.vjp(net, tape, unit * ones, Buffers()) for unit in units
    ]  # K37-K42
    return f[:, 0], np.stack(slopes, axis=1), tape


class Spectrum(NamedTuple):
    """The curvature in a basis in which it is diagonal, in units of the prior's precision (D54)."""

    # (M, p): of each direction, by each scale of the noise that is learned, or 1
    curvature: Array
    basis: tuple[Array, ...]  # A and B of each block, one after the other
    scale: Array  # (P,) the prior's deviations
    squares: Any  # of mu in units of the prior's deviation
    # (M,) squared residuals in units of the noise's variance, summed over rows
    misfit: Array
    rows: Any  # their number, or the sum of their weights


def log_evidence(
    log_alpha: Any, log_beta: Array, at: Spectrum
) -> tuple[Any, Any, Array]:
    r"""Return the log evidence, but for a constant, and its two slopes (D55).

    As a function of factors alpha on the precision of the prior and beta (M,) on those of the
    noise. With d_m the curvature and :math:`s = \sum_m \beta_m d_m + \alpha` it is

    .. math::
        \tfrac12 \Big[ N \sum_m \log\beta_m - \sum_m \beta_m E_m
            + p \log\alpha - \alpha |v|^2 - \sum_i \log s_i \Big]

    and with :math:`\gamma_m = \sum_i \beta_m d_{mi} / s_i` its slopes for log alpha and log beta
    are :math:`\tfrac12 (\sum_m \gamma_m - \alpha |v|^2)` and
    :math:`\tfrac12 (N - \beta_m E_m - \gamma_m)`.
    """
    alpha, beta = np.exp(log_alpha), np.exp(log_beta)
    total = beta @ at.curvature + alpha  # (p,)
    noise = at.rows * np.sum(log_beta) - beta @ at.misfit
    prior = len(total) * log_alpha - alpha * at.squares
    # (M,): directions that the data determine
    gamma = beta * (at.curvature @ (1 / total))
    d_alpha = np.sum(gamma) - alpha * at.squares
    d_beta = at.rows - beta * at.misfit - gamma
    return (noise + prior - np.sum(np.log(total))) / 2, d_alpha / 2, d_beta / 2


def best_scales(
    at: Spectrum, prior: bool = True, noise: bool = True
) -> tuple[Any, Array]:
    """Return log alpha and log beta (M,) at which the slopes of `log_evidence` are 0 (D55).

    MacKay's alpha = gamma / |v|^2 and beta = (N - gamma) / E, the latter as N / (E + gamma / beta),
    which is positive also where an approximate curvature has gamma > N. What is not learned,
    `prior` or `noise`, stays 1.
    """
    alpha, beta = np.ones(()), np.ones(len(at.misfit))
    for _ in range(UPDATES):
        before = np.array([alpha, *beta])
        ratio = at.curvature @ (1 / (beta @ at.curvature + alpha))  # gamma / beta
        if prior:
            alpha = np.maximum(beta @ ratio / max(at.squares, TINY), TINY)  # D55
        if noise:
            beta = at.rows / (at.misfit + ratio)  # D55
        if np.allclose([alpha, *beta], before, rtol=1e-10, atol=0):
            break
    return np.log(alpha), np.log(beta)


def spectrum(source: Linearised, mu: Array, learned: Array, rows: Rows) -> Spectrum:
    """Return the curvature at weights `mu` (P,) and scales `learned`, in its basis (D54)."""
    model, net, blocks = source.model, source.model.network, source.correlated
    params, outputs = _views(model, learned), net.sizes[-1]
    own = "log_noise" in params  # each output has noise of its own
    groups = np.eye(outputs)[:, None, :, None] if own else np.ones((1, 1, 1, 1))
    scale, misfit = _deviations(model, params), np.zeros(len(groups))
    inner = [np.zeros((block.rows, block.rows)) for block in blocks]
    outer = [np.zeros((len(groups), block.columns, block.columns)) for block in blocks]
    diagonal, total = np.zeros((len(groups), len(mu))), 0.0
    step = max(1, BLOCK_NUMBERS // (outputs * len(mu)))
    for begin in range(0, len(rows.x), step):
        x, y, v = rows.at(np.arange(begin, min(begin + step, len(rows.x))))
        v = np.ones(len(x)) if v is None else v
        f, slopes, tape = jacobian(net, mu, x)  # (B, K), (B, K, P)
        slopes *= scale
        # (B, K, K)
        curvature = model.likelihood.curvature(params, f[None])[0] * v[:, None, None]
        weighted = (groups * curvature) @ slopes  # (M, B, K, P)  Lambda J
        total += float(v.sum())
        if own:
            misfit += np.einsum("bkk,bk->k", curvature, (y - f) ** 2)
        if not blocks:
            diagonal += np.sum(slopes * weighted, axis=(1, 2))
        for layer, block in enumerate(blocks):
            a: Array = np.ones((len(x), 1))
            # [a 1]; where the first layer's bias is a weight it is that already
            if block.rows > 1:
                a = np.hstack([tape.inputs[layer][:, 0], a])[:, : block.rows]
            inner[layer] += (a * v[:, None]).T @ a
            # of a layer its biases: df/dz
            units = slice(block.end - block.columns, block.end)
            g = slopes[..., units].reshape(-1, block.columns)
            outer[layer] += g.T @ weighted[..., units].reshape(len(groups), *g.shape)
    if not blocks:
        return Spectrum(
            diagonal, (), scale, float(np.sum(np.square(mu / scale))), misfit, total
        )
    found, basis = list[Array](), list[Array]()
    for block, a, b in zip(blocks, inner, outer, strict=True):
        (of_a, left), (_, right) = (
            np.linalg.eigh(a / total),
            np.linalg.eigh(b.sum(axis=0)),
        )
        # (M, columns): the diagonal of right^T B right
        of_b = np.sum((b @ right) * right, axis=1)
        found.append((of_a[:, None] * of_b[:, None, :]).reshape(len(groups), -1))
        basis += [left, scale[block.begin :][: block.columns, None] * right]
    squares = float(np.sum(np.square(mu / scale)[blocks[0].begin :]))
    curvature = np.concatenate(found, axis=1).clip(min=0.0)
    return Spectrum(curvature, tuple(basis), scale, squares, misfit, total)


def fit(
    source: Linearised,
    rows: Rows,
    recipe: Recipe,
    rng: np.random.Generator,
    progress: bool | None = None,
    verbose: int = 0,
) -> tuple[Training, float]:
    """Train to MAP and choose the scales by the evidence, in turn (D54, D55).

    Returns theta and its history, and the log evidence in nats. Later rounds go on from the weights
    of the one before, for half as many epochs. After Ctrl-C, which `Training.stopped` tells, theta
    is that of the last whole round; in the first one the weights are sure, as the mode has no
    curvature yet, and the log evidence is nan.
    """
    model, learned = source.model, _starts(source.model)
    size, held = model.layout.size, Layout(model.prior.blocks()).size
    weights = None if rows.sample_weight is None else rows.sample_weight.astype(float)
    exact = Rows(rows.x.astype(float), rows.y.astype(float), weights)
    state = start(_mode(model, learned), rng, recipe.optimizer, rows.x.dtype)
    epochs, whole, evidence = recipe.epochs, None, nan
    try:
        for left in range(source.posterior.rounds)[::-1]:
            state.theta[size:] = learned[held:]
            state.optimizer_state = recipe.optimizer.init(state.theta)
            state = train(
                _mode(model, learned), state, rows, recipe, rng, None, progress, verbose
            )
            if state.stopped == "interrupted":
                break
            recipe = replace(recipe, epochs=-(-epochs // 2))
            mu = state.theta[:size].astype(float)
            # given the features, which stay now
            exactly = source.is_conjugate and not left
            theta, found = _scaled(source, mu, learned, exact, exactly)
            whole, evidence = replace(state, theta=theta.astype(rows.x.dtype)), found
    except KeyboardInterrupt:  # while the curvature is taken
        state.stopped = "interrupted"
    if whole is None:
        sure = np.zeros(source.layout.size - size - len(learned))
        whole = replace(
            state, theta=np.concatenate([state.theta[:size], sure, learned])
        )
        whole.theta = whole.theta.astype(rows.x.dtype)
    return replace(whole, stopped=state.stopped), evidence


def _scaled(
    source: Linearised, mu: Array, learned: Array, rows: Rows, exactly: bool
) -> tuple[Array, float]:
    """Choose the scales, in `learned`, by the evidence at a mode; return theta and log evidence.

    `exactly` is in turn with the last layer's mode, which is exact given the features (D56).
    """
    model, views = source.model, _views(source.model, learned)
    has_prior_scale, has_noise = "prior_log_scale" in views, "log_noise" in views
    for _ in range(PASSES):
        at = spectrum(source, mu, learned, rows)
        if exactly:
            mu = _last_layer_at_its_mode(source, mu, learned, rows, at)
            at = spectrum(source, mu, learned, rows)
        log_alpha, log_beta = best_scales(at, has_prior_scale, has_noise)
        fitted = model.evaluate(
            mu[None], views, rows.x, rows.y, Buffers(), rows.sample_weight
        )
        evidence = fitted.log_likelihood[0] + 0.5 * at.misfit.sum()  # D55
        evidence += log_evidence(log_alpha, log_beta, at)[0]
        if has_prior_scale:
            views["prior_log_scale"] -= 0.5 * log_alpha
        if has_noise:
            views["log_noise"] -= 0.5 * log_beta
        if not exactly or np.abs([log_alpha, *log_beta]).max() < SETTLED:
            break  # else the mode is another at these scales
    return source.pack(mu, at, log_alpha, log_beta, learned), float(evidence)


def _last_layer_at_its_mode(
    source: Linearised, mu: Array, learned: Array, rows: Rows, at: Spectrum
) -> Array:
    """Return `mu` with the last layer where its gradient is 0: by one Newton step (D56)."""
    held = Layout(source.model.prior.blocks()).size
    theta = np.concatenate([mu, learned[held:]])  # as of `Mode`: no scales of the prior
    at_mu = _mode(source.model, learned).value_and_grad(
        theta, np.zeros((1, 0)), rows.x, rows.y, sample_weight=rows.sample_weight
    )
    own, basis = slice(source.correlated[0].begin, len(mu)), at.basis[1]
    step = basis @ (
        basis.T @ at_mu.grad[own] / (at.curvature.sum(axis=0) + 1.0)
    )  # D56: C grad
    return np.concatenate([mu[: own.start], mu[own] - step])


@dataclass(frozen=True)
class Mode(Reparameterised):
    """The MAP estimate at given scales: the noise's, which is in theta, stays as it is."""

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        """Write the gradient for the weights, and 0 for what the likelihood learns."""
        found = super().fill_gradient(batch)
        for name, _ in self.model.learned():
            batch.d_blocks[name].fill(0.0)
        return found


def _mode(model: Model, learned: Array) -> Mode:
    """Return what trains the weights; a point mass takes the prior's scales as numbers."""
    prior: Any = model.prior
    scales = np.exp(_views(model, learned).get("prior_log_scale", np.zeros(0))).tolist()
    if isinstance(prior, LayerwiseGaussianPrior) and scales:
        prior = replace(prior, scales=tuple(scales), learn=False)
    elif scales:
        prior = GaussianPrior(*scales)
    return Mode(replace(model, prior=prior), PointMass(SPREAD), MAP())


def _starts(model: Model) -> Array:
    """Return what prior and likelihood learn, as they start."""
    return np.concatenate(
        [model.prior.init(float), model.likelihood.init(model.outputs, float)]
    )


def _views(model: Model, learned: Array) -> Params:
    return Layout(model.learned()).views(learned)


def _deviations(model: Model, params: Params) -> Array:
    """Return the prior's standard deviation of each weight (P,): its slope at w = 1 is -1 / s^2."""
    ones, slope = np.ones((1, model.layout.size)), np.zeros((1, model.layout.size))
    unused = {name: np.empty_like(block) for name, block in params.items()}
    _, saved = model.prior.log_density(params, ones, Buffers())
    model.prior.add_vjp(saved, np.ones(1), slope, unused)
    return np.asarray((-slope[0]) ** -0.5)
