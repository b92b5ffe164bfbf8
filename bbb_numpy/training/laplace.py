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
from .recipe import INITIAL_SD, Recipe, Rows
from .state import Training
from .stopping import row_slices

__all__ = [
    "COVARIANCES",
    "Laplace",
    "Linearised",
    "Spectrum",
    "compute_spectrum",
    "fit",
    "jacobian",
    "log_evidence",
]

COVARIANCES = ("full", "kronecker", "diagonal", "last-layer")
MAX_MATRIX_ROWS = 8000  # a matrix of so many has 0.5 GB, and several are needed
MAX_JACOBIAN_NUMBERS = 4_000_000  # that are held at a time
MAX_SCALE_UPDATES = 1000  # between two trainings; they cost next to nothing
MAX_ALTERNATIONS = 100  # of scales and mode in turn, where both are exact (D56)
LOG_SCALE_TOLERANCE = 1e-7  # a smaller change of the logarithm of a scale ends them
MIN_ALPHA = 1e-12  # where the evidence would have the prior infinitely wide


class Block(NamedTuple):
    """Weights that are correlated with one another: a matrix, stored row by row."""

    begin: int  # index in the flat vector of its first weight
    rows: int  # inputs of the layer plus 1 for the bias; 1 where all weights are correlated
    columns: int

    @property
    def end(self) -> int:
        """Index after its last weight."""
        return self.begin + self.rows * self.columns


@dataclass(frozen=True)
class Laplace(Posterior):
    """A Gaussian around a MAP estimate, by Gauss-Newton curvature (D54).

    Parameters
    ----------
    covariance : {'full', 'kronecker', 'diagonal', 'last-layer'}
        Which weights are correlated. 'full': all of them. 'kronecker': those of one layer, as a
        Kronecker product of inputs and units. 'diagonal': none. 'last-layer': those of the last
        layer, while the others have no variance; under Gaussian noise this is a Bayesian last
        layer, exact given its features (D56).
    rounds : int
        Number of MAP estimates, >= 1. After each one the scales of prior and noise that are learned
        are set to those of the largest evidence (D55).
    """

    covariance: str = "full"
    rounds: int = 8

    def __post_init__(self) -> None:
        check_fields(self, covariance=OneOf(*COVARIANCES), rounds=COUNT)


@dataclass(frozen=True)
class Linearised(GradientEstimator):
    """A network made linear at mu, and the Gaussian posterior of its weights around mu (D54).

    theta holds mu (P,), standard deviations (P,) in a basis, and for each block of correlated
    weights the matrices A and B of that basis: w = mu + A (sd o eps) B^T.

    Parameters
    ----------
    model : Model
        Its prior must be `GaussianPrior` or `LayerwiseGaussianPrior`, and its likelihood have a
        `curvature`.
    posterior : Laplace
    objective : callable
        Is not used: training descends the `MAP` objective.
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
        params = _views(self.model, _initial_values(self.model))
        self.model.likelihood.curvature(params, outputs)  # raises where there is none
        largest = max((max(block[1:]) for block in self.correlated), default=0)
        if largest > MAX_MATRIX_ROWS:
            raise ValueError(
                f"the curvature would be a matrix of {largest:,} rows; accepted are "
                f"{MAX_MATRIX_ROWS:,}. Use Laplace('kronecker'), 'last-layer' or 'diagonal', or a "
                "smaller network"
            )

    @cached_property
    def correlated(self) -> tuple[Block, ...]:
        """The blocks of correlated weights, in the order of the weights."""
        covariance = self.posterior.covariance
        net = self.model.network
        layers: list[Block] = []
        first = 0
        for d_in, d_out in pairwise(net.sizes):
            layers.append(Block(first, d_in + 1, d_out))
            first = layers[-1].end
        if covariance == "full":
            return (Block(0, 1, net.layout.size),)
        if covariance == "last-layer":
            first = layers[-1].begin
            return (Block(first, 1, net.layout.size - first),)
        return tuple(layers) if covariance == "kronecker" else ()

    @property
    def is_conjugate(self) -> bool:
        """Whether the posterior is exact given the features: that of Bayesian regression (D56)."""
        gaussian = type(self.model.likelihood) is GaussianLikelihood
        return gaussian and self.posterior.covariance == "last-layer"

    @cached_property
    def layout(self) -> Layout:
        """The blocks of theta: mu, sd, bases, then the prior's and the likelihood's own."""
        size = self.model.layout.size
        blocks: list[Any] = [("mu", (size,)), ("sd", (size,))]
        for first, rows, columns in self.correlated:
            blocks += [(f"A{first}", (rows, rows)), (f"B{first}", (columns, columns))]
        return Layout((*blocks, *self.model.learned()))

    def pack(
        self,
        mu: Array,
        spectrum: Spectrum,
        log_alpha: Any,
        log_beta: Array,
        learned: Array,
    ) -> Array:
        """Return the theta of N(mu, H^-1) (D54).

        Parameters
        ----------
        mu : ndarray (P,)
            The mode.
        spectrum : Spectrum
            The curvature there.
        log_alpha : float
            Logarithm of a factor on the precision of the prior.
        log_beta : ndarray (M,)
            Logarithms of factors on the precisions of the noise.
        learned : ndarray
            What prior and likelihood learned, in the order of `model.learned`.
        """
        sd = np.zeros(len(mu))  # of weights before the last layer it stays 0
        precision = np.exp(log_beta) @ spectrum.curvature + np.exp(log_alpha)
        sd[len(mu) - len(precision) :] = precision**-0.5
        if not spectrum.basis:
            sd *= spectrum.scale
        return np.concatenate([mu, sd, *map(np.ravel, spectrum.basis), learned])

    def draw_weights(
        self,
        rng: np.random.Generator,
        samples: int,
        dtype: Any = np.float64,
        out: Any = None,
    ) -> Array:
        """Draw noise (S, P) in pairs eps, -eps: the mean of what is linear in w is exact (D23).

        Parameters
        ----------
        rng : numpy.random.Generator
        samples : int
            Number S of weight vectors.
        dtype : dtype
            That of theta.
        out : ndarray (S, P), optional
            Is overwritten, and returned.
        """
        eps = super().draw_weights(rng, samples, dtype, out)
        np.negative(eps[0 : samples - samples % 2 : 2], out=eps[1::2])
        return eps

    def weights(
        self, theta: Array, eps: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return weights drawn from the posterior (D54).

        Parameters
        ----------
        theta : ndarray
            Flat, as `layout` names it.
        eps : ndarray (S, P)
            Noise from `draw_weights`.
        buffers : Buffers, optional
            Is not used.

        Returns
        -------
        ndarray (S, P)
        """
        blocks = self.layout.views(theta)
        w = eps * blocks["sd"]
        for block in self.correlated:
            a, b = blocks[f"A{block.begin}"], blocks[f"B{block.begin}"]
            w_block = w[:, block.begin : block.end]
            rotated = a @ w_block.reshape(-1, block.rows, block.columns) @ b.T
            w_block[...] = rotated.reshape(w_block.shape)
        w += blocks["mu"]
        return w

    def outputs(self, theta: Array, w: Array, x: Array, buffers: Buffers) -> Array:
        """Return the outputs of the linearised network, f(x, mu) + J(x) (w - mu) (D54).

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
        net = self.model.network
        mu = self.layout.views(theta)["mu"]
        f, tape = network.forward(net, mu[None], x, buffers)
        return f + network.jvp(net, tape, w - mu, buffers)

    def affine(self, theta: Array, x: Array) -> tuple[Array, Array]:
        """Return the outputs as an affine function of the noise: f and G of f + G eps (D54).

        Parameters
        ----------
        theta : ndarray
            Flat, as `layout` names it.
        x : ndarray (B, d_in)

        Returns
        -------
        ndarray (B, K), ndarray (B, K, P)
        """
        blocks = self.layout.views(theta)
        f, slopes, _ = jacobian(self.model.network, blocks["mu"], x)
        for block in self.correlated:
            a, b = blocks[f"A{block.begin}"], blocks[f"B{block.begin}"]
            block_slopes = slopes[..., block.begin : block.end]
            rotated = a.T @ block_slopes.reshape(-1, block.rows, block.columns) @ b
            block_slopes[...] = rotated.reshape(block_slopes.shape)
        return f, slopes * blocks["sd"]


def jacobian(net: MLP, w: Array, x: Array) -> tuple[Array, Array, network.Tape]:
    """Return the outputs of a network, their Jacobian for the weights, and the tape (D54).

    Each row is a sample with weights of its own, so that one backward pass has the slopes of one
    output at all rows.

    Parameters
    ----------
    net : MLP
    w : ndarray (P,)
        Flat weights.
    x : ndarray (B, d_in)

    Returns
    -------
    ndarray (B, K), ndarray (B, K, P), Tape
    """
    w_of_rows = np.tile(w, (len(x), 1))
    f, tape = network.forward(net, w_of_rows, x[:, None], Buffers())  # (B, 1, K)
    slopes = []
    for unit in np.eye(net.sizes[-1], dtype=f.dtype):
        d_f = unit * np.ones_like(f[..., :1])
        slopes.append(network.vjp(net, tape, d_f, Buffers()))  # K37-K42
    return f[:, 0], np.stack(slopes, axis=1), tape


class Spectrum(NamedTuple):
    """The curvature in a basis in which it is diagonal, in units of the prior's precision (D54).

    M is the number of noise scales that are learned, or 1; p the number of weights with variance.
    """

    curvature: Array  # (M, p): of each direction, for each scale of the noise
    basis: tuple[Array, ...]  # A and B of each block, one after the other
    scale: Array  # (P,) the prior's standard deviations
    squared_norm: Any  # |v|^2 of mu in units of the prior's standard deviations
    misfit: Array  # (M,) squared residuals in units of the noise's variance, summed over rows
    n_rows: Any  # the number of rows, or the sum of their weights


def log_evidence(
    log_alpha: Any, log_beta: Array, spectrum: Spectrum
) -> tuple[Any, Any, Array]:
    r"""Return the log evidence up to a constant, and its derivatives for the log scales (D55).

    As a function of factors alpha on the precision of the prior and beta (M,) on those of the
    noise. With d_m the curvature and :math:`s = \sum_m \beta_m d_m + \alpha` it is

    .. math::
        \tfrac12 \Big[ N \sum_m \log\beta_m - \sum_m \beta_m E_m
            + p \log\alpha - \alpha |v|^2 - \sum_i \log s_i \Big]

    and with :math:`\gamma_m = \sum_i \beta_m d_{mi} / s_i` its slopes for log alpha and log beta
    are :math:`\tfrac12 (\sum_m \gamma_m - \alpha |v|^2)` and
    :math:`\tfrac12 (N - \beta_m E_m - \gamma_m)`.

    Parameters
    ----------
    log_alpha : float
    log_beta : ndarray (M,)
    spectrum : Spectrum

    Returns
    -------
    float, float, ndarray (M,)
        The log evidence in nats, and its derivatives for `log_alpha` and `log_beta`.
    """
    alpha, beta = np.exp(log_alpha), np.exp(log_beta)
    precision = beta @ spectrum.curvature + alpha  # (p,)
    noise = spectrum.n_rows * np.sum(log_beta) - beta @ spectrum.misfit
    prior = len(precision) * log_alpha - alpha * spectrum.squared_norm
    # (M,): number of directions that the data determine
    gamma = beta * (spectrum.curvature @ (1 / precision))
    d_alpha = np.sum(gamma) - alpha * spectrum.squared_norm
    d_beta = spectrum.n_rows - beta * spectrum.misfit - gamma
    evidence = (noise + prior - np.sum(np.log(precision))) / 2
    return evidence, d_alpha / 2, d_beta / 2


def best_scales(
    spectrum: Spectrum, prior: bool = True, noise: bool = True
) -> tuple[Any, Array]:
    """Return log alpha and log beta (M,) at which the slopes of `log_evidence` are 0 (D55).

    MacKay's alpha = gamma / |v|^2 and beta = (N - gamma) / E, the latter as N / (E + gamma / beta),
    which is positive also where an approximate curvature has gamma > N.

    Parameters
    ----------
    spectrum : Spectrum
    prior, noise : bool
        Whether alpha, and beta, are learned; else they stay 1.

    Returns
    -------
    float, ndarray (M,)
    """
    curvature = spectrum.curvature
    squared_norm = max(spectrum.squared_norm, MIN_ALPHA)
    alpha, beta = np.ones(()), np.ones(len(spectrum.misfit))
    for _ in range(MAX_SCALE_UPDATES):
        previous = np.array([alpha, *beta])
        ratio = curvature @ (1 / (beta @ curvature + alpha))  # gamma / beta
        if prior:
            alpha = np.maximum(beta @ ratio / squared_norm, MIN_ALPHA)  # D55
        if noise:
            beta = spectrum.n_rows / (spectrum.misfit + ratio)  # D55
        if np.allclose([alpha, *beta], previous, rtol=1e-10, atol=0):
            break
    return np.log(alpha), np.log(beta)


@dataclass
class CurvatureSums:
    """The curvature in units of the prior's precision, summed over rows (D54)."""

    inputs: list[Array]  # of each block, sum of a a^T
    outputs: list[Array]  # of each block, (M, columns, columns): sum of g^T Lambda g
    diagonal: Array  # (M, P), where no weights are correlated
    misfit: Array  # (M,) squared residuals over the noise variance
    n_rows: float = 0.0  # or the sum of their weights


def compute_spectrum(
    estimator: Linearised, mu: Array, learned: Array, rows: Rows
) -> Spectrum:
    """Return the curvature at a mode, in the basis in which it is diagonal (D54).

    Parameters
    ----------
    estimator : Linearised
    mu : ndarray (P,)
        Weights.
    learned : ndarray
        What prior and likelihood learned: logarithms of scales.
    rows : Rows
        In float64.
    """
    params = _views(estimator.model, learned)
    scale = _prior_sd(estimator.model, params)
    sums = _sum_curvature(estimator, mu, params, scale, rows)
    v_squared = np.square(mu / scale)
    if not estimator.correlated:
        squared_norm = float(np.sum(v_squared))
        return Spectrum(
            sums.diagonal, (), scale, squared_norm, sums.misfit, sums.n_rows
        )
    curvatures: list[Array] = []
    basis: list[Array] = []
    for block, a, b in zip(
        estimator.correlated, sums.inputs, sums.outputs, strict=True
    ):
        input_eigenvalues, input_basis = np.linalg.eigh(a / sums.n_rows)
        _, output_basis = np.linalg.eigh(b.sum(axis=0))
        # (M, columns): the diagonal of basis^T B basis
        output_curvature = np.sum((b @ output_basis) * output_basis, axis=1)
        curvature = input_eigenvalues[:, None] * output_curvature[:, None, :]
        curvatures.append(curvature.reshape(len(sums.misfit), -1))
        output_scale = scale[block.begin :][: block.columns, None]
        basis += [input_basis, output_scale * output_basis]
    squared_norm = float(np.sum(v_squared[estimator.correlated[0].begin :]))
    curvature = np.concatenate(curvatures, axis=1).clip(min=0.0)
    return Spectrum(
        curvature, tuple(basis), scale, squared_norm, sums.misfit, sums.n_rows
    )


def _sum_curvature(
    estimator: Linearised, mu: Array, params: Params, scale: Array, rows: Rows
) -> CurvatureSums:
    """Return the curvature summed over rows, which are taken block by block."""
    model = estimator.model
    net = model.network
    blocks = estimator.correlated
    n_outputs = net.sizes[-1]
    noise_per_output = "log_noise" in params  # each output has a noise scale of its own
    groups = np.ones((1, 1, 1, 1))
    if noise_per_output:
        groups = np.eye(n_outputs)[:, None, :, None]
    n_groups = len(groups)
    sums = CurvatureSums(
        [np.zeros((block.rows, block.rows)) for block in blocks],
        [np.zeros((n_groups, block.columns, block.columns)) for block in blocks],
        np.zeros((n_groups, len(mu))),
        np.zeros(n_groups),
    )
    n_rows_at_once = max(1, MAX_JACOBIAN_NUMBERS // (n_outputs * len(mu)))
    for batch in row_slices(len(rows.x), n_rows_at_once):
        x, y, v = rows.at(batch)
        if v is None:
            v = np.ones(len(x))
        f, slopes, tape = jacobian(net, mu, x)  # (B, K), (B, K, P)
        slopes *= scale
        curvature = model.likelihood.curvature(params, f[None])[0]  # (B, K, K)
        curvature = curvature * v[:, None, None]
        weighted = (groups * curvature) @ slopes  # (M, B, K, P)  Lambda J
        sums.n_rows += float(v.sum())
        if noise_per_output:
            sums.misfit += np.einsum("bkk,bk->k", curvature, (y - f) ** 2)
        if not blocks:
            sums.diagonal += np.sum(slopes * weighted, axis=(1, 2))
        for layer, block in enumerate(blocks):
            a: Array = np.ones((len(x), 1))
            # [a 1]; where the first layer's bias is a weight it is that already
            if block.rows > 1:
                a = np.hstack([tape.inputs[layer][:, 0], a])[:, : block.rows]
            sums.inputs[layer] += (a * v[:, None]).T @ a
            # the slopes for the biases of a layer are those for its units: df/dz
            units = slice(block.end - block.columns, block.end)
            g = slopes[..., units].reshape(-1, block.columns)
            weighted_g = weighted[..., units].reshape(n_groups, *g.shape)
            sums.outputs[layer] += g.T @ weighted_g
    return sums


def fit(
    estimator: Linearised,
    rows: Rows,
    recipe: Recipe,
    rng: np.random.Generator,
    progress: bool | None = None,
    verbose: int = 0,
) -> tuple[Training, float]:
    """Train to MAP and choose the scales by the evidence, in turn (D54, D55).

    Later rounds go on from the weights of the round before, for half of the epochs. After Ctrl-C
    theta is that of the last whole round; in the first round the weights then have no variance, as
    the mode has no curvature yet, and the log evidence is nan.

    Parameters
    ----------
    estimator : Linearised
    rows : Rows
        Checked, in the dtype of theta.
    recipe : Recipe
        How the first MAP estimate is trained.
    rng : numpy.random.Generator
    progress : bool, optional
        Show a progress bar; by default only in a terminal or notebook.
    verbose : int
        Print the loss after every so many epochs; 0 never does.

    Returns
    -------
    Training
        theta and its history; `stopped` is 'interrupted' after Ctrl-C.
    float
        The log evidence in nats.
    """
    model = estimator.model
    learned = _initial_values(estimator.model)
    n_weights = model.layout.size
    n_prior_scales = Layout(model.prior.blocks()).size
    dtype = rows.x.dtype
    weights = rows.sample_weight
    if weights is not None:
        weights = weights.astype(float)
    rows64 = Rows(rows.x.astype(float), rows.y.astype(float), weights)
    state = start(_mode(model, learned), rng, recipe.optimizer, dtype)
    half_the_epochs = -(-recipe.epochs // 2)
    completed = None
    evidence = nan
    try:
        for rounds_left in range(estimator.posterior.rounds)[::-1]:
            state.theta[n_weights:] = learned[n_prior_scales:]
            state.optimizer_state = recipe.optimizer.init(state.theta)
            mode = _mode(model, learned)
            state = train(mode, state, rows, recipe, rng, None, progress, verbose)
            if state.stopped == "interrupted":
                break
            recipe = replace(recipe, epochs=half_the_epochs)
            mu = state.theta[:n_weights].astype(float)
            # the features, given which the last layer is exact, no longer change
            exact = estimator.is_conjugate and not rounds_left
            theta, round_evidence = _choose_scales(
                estimator, mu, learned, rows64, exact
            )
            completed = replace(state, theta=theta.astype(dtype))
            evidence = round_evidence
    except KeyboardInterrupt:  # while the curvature is computed
        state.stopped = "interrupted"
    if completed is None:
        no_variance = np.zeros(estimator.layout.size - n_weights - len(learned))
        theta = np.concatenate([state.theta[:n_weights], no_variance, learned])
        completed = replace(state, theta=theta.astype(dtype))
    return replace(completed, stopped=state.stopped), evidence


def _choose_scales(
    estimator: Linearised, mu: Array, learned: Array, rows: Rows, exact: bool
) -> tuple[Array, float]:
    """Choose the learned scales by the evidence at a mode; return theta and the log evidence.

    Parameters
    ----------
    estimator : Linearised
    mu : ndarray (P,)
        Weights at the mode.
    learned : ndarray
        Learned numbers of prior and likelihood, logarithms of scales; they are overwritten.
    rows : Rows
        Data of training.
    exact : bool
        Whether scales and the last layer's mode are computed in turn until they no longer change:
        both are exact given the features (D56). Otherwise the scales are computed once.

    Returns
    -------
    ndarray, float
        Theta of the posterior at the new scales, and the log evidence in nats.
    """
    model = estimator.model
    views = _views(estimator.model, learned)
    has_prior_scale = "prior_log_scale" in views
    has_noise = "log_noise" in views
    for _ in range(MAX_ALTERNATIONS):
        spectrum = compute_spectrum(estimator, mu, learned, rows)
        if exact:
            mu = _solve_last_layer(estimator, mu, learned, rows, spectrum)
            spectrum = compute_spectrum(estimator, mu, learned, rows)
        log_alpha, log_beta = best_scales(spectrum, has_prior_scale, has_noise)
        evaluation = model.evaluate(
            mu[None], views, rows.x, rows.y, Buffers(), rows.sample_weight
        )
        evidence = evaluation.log_likelihood[0] + 0.5 * spectrum.misfit.sum()  # D55
        evidence += log_evidence(log_alpha, log_beta, spectrum)[0]
        if has_prior_scale:
            views["prior_log_scale"] -= 0.5 * log_alpha
        if has_noise:
            views["log_noise"] -= 0.5 * log_beta
        largest_change = np.abs([log_alpha, *log_beta]).max()
        if not exact or largest_change < LOG_SCALE_TOLERANCE:
            break  # else the mode is another at these scales
    return estimator.pack(mu, spectrum, log_alpha, log_beta, learned), float(evidence)


def _solve_last_layer(
    estimator: Linearised, mu: Array, learned: Array, rows: Rows, spectrum: Spectrum
) -> Array:
    """Return `mu` with the last layer where its gradient is 0: by one Newton step (D56)."""
    n_prior_scales = Layout(estimator.model.prior.blocks()).size
    # the prior's scales are fixed numbers in `Mode`, so that its theta has none
    theta = np.concatenate([mu, learned[n_prior_scales:]])
    noise = np.zeros((1, 0))
    evaluated = _mode(estimator.model, learned).value_and_grad(
        theta, noise, rows.x, rows.y, sample_weight=rows.sample_weight
    )
    first = estimator.correlated[0].begin
    basis = spectrum.basis[1]
    gradient = evaluated.grad[first : len(mu)]
    precision = spectrum.curvature.sum(axis=0) + 1.0
    step = basis @ (basis.T @ gradient / precision)  # D56: C grad
    return np.concatenate([mu[:first], mu[first:] - step])


@dataclass(frozen=True)
class Mode(Reparameterised):
    """The MAP estimate at given scales: that of the noise, which is in theta, stays as it is."""

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        """Write the gradient for the weights, and 0 for what the likelihood learns."""
        value_and_terms = super().fill_gradient(batch)
        for name, _ in self.model.learned():
            batch.d_blocks[name].fill(0.0)
        return value_and_terms


def _mode(model: Model, learned: Array) -> Mode:
    """Return the estimator that trains the weights; the prior's scales are fixed numbers in it."""
    prior: Any = model.prior
    scales = np.exp(_views(model, learned).get("prior_log_scale", np.zeros(0))).tolist()
    if isinstance(prior, LayerwiseGaussianPrior) and scales:
        prior = replace(prior, scales=tuple(scales), learn=False)
    elif scales:
        prior = GaussianPrior(*scales)
    return Mode(replace(model, prior=prior), PointMass(INITIAL_SD), MAP())


def _initial_values(model: Model) -> Array:
    """Return the initial values of what prior and likelihood learn."""
    return np.concatenate(
        [model.prior.init(float), model.likelihood.init(model.outputs, float)]
    )


def _views(model: Model, learned: Array) -> Params:
    return Layout(model.learned()).views(learned)


def _prior_sd(model: Model, params: Params) -> Array:
    """Return the prior's standard deviation of each weight (P,): its slope at w = 1 is -1 / s^2."""
    w = np.ones((1, model.layout.size))
    slope = np.zeros((1, model.layout.size))
    unused = {name: np.empty_like(block) for name, block in params.items()}
    _, saved = model.prior.log_density(params, w, Buffers())
    model.prior.add_vjp(saved, np.ones(1), slope, unused)
    return np.asarray((-slope[0]) ** -0.5)
