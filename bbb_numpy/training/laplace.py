"""Linearised Laplace approximation: a Gaussian around a trained network, made linear there.

After training to MAP the posterior is N(mu, H^-1), with H the precision of the prior plus the
generalised Gauss-Newton curvature sum_n J_n^T Lambda_n J_n (D54): J_n is the Jacobian of the
outputs at row n, by the network's own vjp, Lambda_n the likelihood's `curvature`. Predictions are
those of the linearised network f(x, mu) + J(x) (w - mu), of which this Gaussian is the posterior
(Immer, Korzepa and Bauer 2021): under Gaussian noise a Gaussian, with no sample drawn. In a basis
in which H is diagonal the evidence is a sum over directions, and the scales of prior and noise are
those at which its derivatives are 0 (MacKay 1992; D55).
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
# Largest number of rows of a curvature matrix: with 8000 it has 0.5 GB, and several are needed
MAX_MATRIX_ROWS = 8000
MAX_JACOBIAN_NUMBERS = 4_000_000  # largest number of Jacobian entries in memory
MAX_SCALE_UPDATES = 1000  # largest number of cheap updates of the scales at one mode
# Largest number of alternations between scales and mode where both are exact (D56)
MAX_ALTERNATIONS = 100
# Change of the logarithm of a scale below which alternating scales and mode ends
LOG_SCALE_TOLERANCE = 1e-7
# Smallest factor on the prior's precision: the evidence may prefer an infinitely wide prior
MIN_ALPHA = 1e-12


class Block(NamedTuple):
    """Weights that are correlated with one another: a matrix, stored row by row."""

    begin: int  # index of the first weight of the block in the flat vector
    # number of the layer's inputs, bias included; 1 if the block is treated as one long row
    rows: int
    columns: int  # number of the layer's units; all weights of the block if `rows` is 1

    @property
    def end(self) -> int:
        """Index after the last weight of the block."""
        return self.begin + self.rows * self.columns


@dataclass(frozen=True)
class Laplace(Posterior):
    """A Gaussian around a MAP estimate, by Gauss-Newton curvature (D54).

    Parameters
    ----------
    covariance : {'full', 'kronecker', 'diagonal', 'last-layer'}
        Weights that are correlated. 'full': all of them. 'kronecker': those of the same layer, with
        a Kronecker product of a matrix over inputs and one over units. 'diagonal': none.
        'last-layer': those of the last layer, while all others have no variance; under Gaussian
        noise this is a Bayesian last layer, exact given its features (D56).
    rounds : int
        Number of MAP estimates, >= 1. After each one the learned scales of prior and noise are set
        to the maximum of the evidence (D55).
    """

    covariance: str = "full"
    rounds: int = 8

    def __post_init__(self) -> None:
        check_fields(self, covariance=OneOf(*COVARIANCES), rounds=COUNT)


@dataclass(frozen=True)
class Linearised(GradientEstimator):
    """A network made linear at mu, and the Gaussian posterior of its weights around mu (D54).

    theta holds mu (P,), standard deviations (P,) in a basis, and for each block of correlated
    weights the matrices A and B of that basis: w = mu + A (sd o eps) B^T, with sd o eps in the
    shape of the block.

    Parameters
    ----------
    model : Model
        Its prior must be `GaussianPrior` or `LayerwiseGaussianPrior`, and its likelihood must have
        a `curvature`.
    posterior : Laplace
    objective : callable
        Ignored: training minimises the `MAP` objective.
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
        # raises an error if the likelihood has no curvature
        self.model.likelihood.curvature(params, outputs)
        largest = max((max(block[1:]) for block in self.correlated), default=0)
        if largest > MAX_MATRIX_ROWS:
            raise ValueError(
                f"the curvature would be a matrix of {largest:,} rows; accepted are "
                f"{MAX_MATRIX_ROWS:,} at most. Use Laplace('kronecker'), Laplace('last-layer') or "
                "Laplace('diagonal'), or a smaller network"
            )

    @cached_property
    def correlated(self) -> tuple[Block, ...]:
        """Blocks of correlated weights, in the order of the weights; empty for 'diagonal'."""
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
        """Whether the posterior is that of Bayesian linear regression on fixed features (D56)."""
        gaussian = type(self.model.likelihood) is GaussianLikelihood
        return gaussian and self.posterior.covariance == "last-layer"

    @cached_property
    def layout(self) -> Layout:
        """Blocks of theta: means, standard deviations and their basis, and learned scales.

        The basis of each block of correlated weights is two matrices, such as ``'A0'`` and
        ``'B0'``, with the index of its first weight. The learned scales are those of the prior,
        then those of the likelihood.
        """
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
        """Return the flat parameters theta of the Gaussian posterior around a mode (D54).

        Parameters
        ----------
        mu : ndarray (P,)
            Weights at the mode.
        spectrum : Spectrum
            The curvature at the mode.
        log_alpha : float
            Logarithm of a factor on the precision of the prior.
        log_beta : ndarray (M,)
            Logarithms of factors on the precisions of the noise.
        learned : ndarray
            Learned numbers of prior and likelihood, flat, in the order of `model.learned`.
        """
        # with 'last-layer' the standard deviation of all weights before that layer stays 0
        sd = np.zeros(len(mu))
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
        """Draw standard normal noise for `samples` weight vectors, in pairs eps, -eps (D23).

        With such pairs the sample mean of any function that is linear in w is exact.

        Parameters
        ----------
        rng : numpy.random.Generator
        samples : int
            Number S of weight vectors.
        dtype : dtype
            Dtype of theta.
        out : ndarray (S, P), optional
            Array that is overwritten and returned; by default a new one.
        """
        eps = super().draw_weights(rng, samples, dtype, out)
        np.negative(eps[0 : samples - samples % 2 : 2], out=eps[1::2])
        return eps

    def weights(
        self, theta: Array, eps: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return the weights that the posterior gives for the noise `eps` (D54).

        Parameters
        ----------
        theta : ndarray
            Flat parameters, in the order of `layout`.
        eps : ndarray (S, P)
            Noise from `draw_weights`.
        buffers : Buffers, optional
            Ignored: the result is a new array.

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
        """Return the outputs of the network linearised at mu, f(x, mu) + df/dmu (w - mu) (D54).

        Parameters
        ----------
        theta : ndarray
            Flat parameters, in the order of `layout`.
        w : ndarray (S, P)
            Weights, from `weights`.
        x : ndarray (B, d_in)
            Input rows.
        buffers : Buffers
            Memory of the result and of intermediate arrays.

        Returns
        -------
        ndarray (S, B, heads)
        """
        net = self.model.network
        mu = self.layout.views(theta)["mu"]
        f, tape = network.forward(net, mu[None], x, buffers)
        return f + network.jvp(net, tape, w - mu, buffers)

    def affine(self, theta: Array, x: Array) -> tuple[Array, Array]:
        """Return the outputs at mu, and their derivatives by the standard normal noise (D54).

        With the noise eps the outputs of the linearised network are f + G eps.

        Parameters
        ----------
        theta : ndarray
            Flat parameters, in the order of `layout`.
        x : ndarray (B, d_in)
            Input rows.

        Returns
        -------
        f : ndarray (B, K)
            Outputs at mu.
        G : ndarray (B, K, P)
            Derivatives of the outputs by the noise.
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
    """Return a network's outputs, their Jacobian by the weights, and the forward pass (D54).

    The weights are repeated for each row, so that one backward pass computes the derivatives of one
    output at all rows.

    Parameters
    ----------
    net : MLP
    w : ndarray (P,)
        Flat weights, biases included.
    x : ndarray (B, d_in)
        Input rows.

    Returns
    -------
    f : ndarray (B, K)
        Outputs.
    J : ndarray (B, K, P)
        Derivatives of the outputs by the weights.
    tape : Tape
        Arrays of the forward pass.
    """
    w_of_rows = np.tile(w, (len(x), 1))
    f, tape = network.forward(net, w_of_rows, x[:, None], Buffers())  # (B, 1, K)
    slopes = []
    for unit in np.eye(net.sizes[-1], dtype=f.dtype):
        d_f = unit * np.ones_like(f[..., :1])
        slopes.append(network.vjp(net, tape, d_f, Buffers()))  # backward pass (K37-K42)
    return f[:, 0], np.stack(slopes, axis=1), tape


class Spectrum(NamedTuple):
    """The curvature in a basis in which it is diagonal, in units of the prior's precision (D54).

    M is the number of learned noise scales, or 1; p the number of weights with variance.
    """

    curvature: Array  # (M, p)  curvature along each direction, for each noise scale
    basis: tuple[Array, ...]  # matrices A and B of the first block, of the second, ...
    scale: Array  # (P,)  prior standard deviation of each weight
    squared_norm: Any  # |v|^2, with v the weights mu in units of `scale`
    # (M,)  squared residuals in units of the noise variance, summed over rows
    misfit: Array
    n_rows: Any  # number of rows, or the sum of their weights


def log_evidence(
    log_alpha: Any, log_beta: Array, spectrum: Spectrum
) -> tuple[Any, Any, Array]:
    r"""Return the log evidence up to a constant, and its derivatives by log precisions (D55).

    alpha is a factor on the precision of the prior, beta (M,) are factors on the precisions of the
    noise. With d_k the curvature and :math:`H_{ii} = \sum_k \beta_k d_{ki} + \alpha` the log
    evidence is

    .. math::
        \tfrac12 \Big[ N \sum_k \log\beta_k - \sum_k \beta_k \chi_k^2
            + p \log\alpha - \alpha |v|^2 - \sum_i \log H_{ii} \Big]

    and with :math:`\gamma_k = \sum_i \beta_k d_{ki} / H_{ii}` its derivatives with respect to log
    alpha and log beta_k are :math:`\tfrac12 (\sum_k \gamma_k - \alpha |v|^2)` and
    :math:`\tfrac12 (N - \beta_k \chi_k^2 - \gamma_k)`.

    Parameters
    ----------
    log_alpha : float
        Logarithm of the factor on the precision of the prior.
    log_beta : ndarray (M,)
        Logarithms of the factors on the precisions of the noise.
    spectrum : Spectrum
        Curvature d, misfit chi^2, squared norm |v|^2 and number of rows N at the mode.

    Returns
    -------
    float, float, ndarray (M,)
        The log evidence in nats, its derivative by `log_alpha`, and those by `log_beta`.
    """
    alpha, beta = np.exp(log_alpha), np.exp(log_beta)
    # (p,)  posterior precision along each direction, in units of the prior's
    precision = beta @ spectrum.curvature + alpha
    noise = spectrum.n_rows * np.sum(log_beta) - beta @ spectrum.misfit
    prior = len(precision) * log_alpha - alpha * spectrum.squared_norm
    # (M,)  effective number of directions that the data determine, for each noise scale
    gamma = beta * (spectrum.curvature @ (1 / precision))
    d_alpha = np.sum(gamma) - alpha * spectrum.squared_norm
    d_beta = spectrum.n_rows - beta * spectrum.misfit - gamma
    evidence = (noise + prior - np.sum(np.log(precision))) / 2
    return evidence, d_alpha / 2, d_beta / 2


def best_scales(
    spectrum: Spectrum, prior: bool = True, noise: bool = True
) -> tuple[Any, Array]:
    """Return the log precisions of prior and noise at which the evidence is stationary (D55).

    They are log alpha and log beta of `log_evidence`, at the fixed point of MacKay's alpha =
    gamma / |v|^2 and beta = (N - gamma) / chi^2, the latter written as N / (chi^2 + gamma / beta),
    which is positive even if gamma > N, as an approximate curvature may have it. `log_evidence`
    defines gamma and the misfit chi^2.

    Parameters
    ----------
    spectrum : Spectrum
        The curvature at the mode.
    prior, noise : bool
        Whether alpha is learned, and whether beta is learned; otherwise they stay 1.

    Returns
    -------
    float, ndarray (M,)
        Log alpha, and log beta of each noise scale.
    """
    curvature = spectrum.curvature
    squared_norm = max(spectrum.squared_norm, MIN_ALPHA)
    alpha, beta = np.ones(()), np.ones(len(spectrum.misfit))
    for _ in range(MAX_SCALE_UPDATES):
        previous = np.array([alpha, *beta])
        # effective number of directions that the data determine, over beta
        ratio = curvature @ (1 / (beta @ curvature + alpha))  # gamma / beta
        if prior:
            # MacKay's update of the prior's precision
            alpha = np.maximum(beta @ ratio / squared_norm, MIN_ALPHA)  # D55
        if noise:
            beta = spectrum.n_rows / (spectrum.misfit + ratio)  # noise precision (D55)
        if np.allclose([alpha, *beta], previous, rtol=1e-10, atol=0):
            break
    return np.log(alpha), np.log(beta)


@dataclass
class CurvatureSums:
    """The curvature in units of the prior's precision, summed over rows (D54)."""

    inputs: list[Array]  # for each block, sum of a a^T (rows, rows) of its inputs a
    # for each block, sum of g^T Lambda g (M, columns, columns), with the derivatives g by its units
    # and the curvature Lambda of the negative log likelihood in the outputs
    outputs: list[Array]
    diagonal: Array  # (M, P)  curvature of each weight; 0 if they are correlated
    misfit: Array  # (M,)  squared residuals over the noise variance
    n_rows: float = 0.0  # number of rows, or the sum of their weights


def compute_spectrum(
    estimator: Linearised, mu: Array, learned: Array, rows: Rows
) -> Spectrum:
    """Return the Gauss-Newton curvature at a mode, in the basis where it is diagonal (D54).

    Parameters
    ----------
    estimator : Linearised
    mu : ndarray (P,)
        Weights at the mode.
    learned : ndarray
        Learned numbers of prior and likelihood, flat: logarithms of scales.
    rows : Rows
        Training rows in float64.
    """
    params = _views(estimator.model, learned)
    scale = _prior_sd(estimator.model, params)
    n_outputs = estimator.model.outputs
    if estimator.correlated:
        block = estimator.correlated[0]
        if block.rows == 1 and len(rows.x) * n_outputs < block.columns:
            return _spectrum_by_rows(estimator, mu, params, scale, rows)
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
        # (M, columns)  diagonal of basis^T b basis, for each noise scale
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


def _spectrum_by_rows(
    estimator: Linearised, mu: Array, params: Params, scale: Array, rows: Rows
) -> Spectrum:
    """Return what `compute_spectrum` returns, where N K numbers are fewer than the weights (D69).

    The eigenvalues are those of a matrix of N K rows; along all other directions the curvature
    is 0. `params` are the learned scales by name, and `scale` (P,) the prior's standard deviations.
    """
    (block,) = estimator.correlated
    net = estimator.model.network
    x, y, sample_weight = rows
    if sample_weight is None:
        sample_weight = np.ones(len(x))
    f, slopes, _ = jacobian(net, mu, x)  # outputs (N, K), Jacobian (N, K, P)
    slopes = slopes[..., block.begin :]
    slopes *= scale[block.begin :]
    curvature = estimator.model.likelihood.curvature(params, f[None])[0]  # (N, K, K)
    curvature = curvature * sample_weight[:, None, None]
    eigenvalues, vectors = np.linalg.eigh(curvature)
    # the symmetric root of Lambda, which is diagonal where Lambda is
    root = (vectors * np.sqrt(eigenvalues.clip(0.0))[:, None]) @ vectors.mT
    n_numbers = curvature[..., 0].size  # N K
    weighted = (root @ slopes).reshape(
        n_numbers, -1
    )  # (N K, p)  G = weighted weighted^T
    # an orthonormal basis whose first N K columns span the rows of `weighted`
    basis, triangle = np.linalg.qr(weighted.T, mode="complete")  # (p, p), (p, N K)
    triangle = triangle[:n_numbers]
    _, rotation = np.linalg.eigh(triangle @ triangle.T)
    basis[:, :n_numbers] = basis[:, :n_numbers] @ rotation
    squares = np.square(triangle.T @ rotation).reshape(len(x), -1, n_numbers)
    groups = squares.sum(axis=0)  # (K, N K)  curvature that each output adds
    misfit = np.zeros(1)
    if "log_noise" in params:  # each output has a noise scale of its own
        misfit = np.einsum("nkk,nk->k", curvature, (y - f) ** 2)
    else:
        groups = groups.sum(axis=0, keepdims=True)
    directions = np.zeros((len(groups), basis.shape[1]))  # 0 outside of the span (D69)
    directions[:, :n_numbers] = groups
    return Spectrum(
        directions,
        (np.ones((1, 1)), scale[block.begin :, None] * basis),
        scale,
        float(np.sum(np.square(mu / scale)[block.begin :])),
        misfit,
        float(sample_weight.sum()),
    )


def _sum_curvature(
    estimator: Linearised, mu: Array, params: Params, scale: Array, rows: Rows
) -> CurvatureSums:
    """Return the curvature at the weights `mu`, summed over rows, for each block of weights.

    `params` are the learned scales by name, and `scale` (P,) the prior's standard deviations, in
    whose units the curvature is.
    """
    model = estimator.model
    net = model.network
    blocks = estimator.correlated
    n_outputs = net.sizes[-1]
    noise_per_output = "log_noise" in params  # each output has a noise scale of its own
    groups: Array = np.ones((1, 1, 1, 1))
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
        f, slopes, tape = jacobian(net, mu, x)  # outputs (B, K), Jacobian (B, K, P)
        slopes *= scale
        # second derivatives of the negative log likelihood of each row by the K outputs
        curvature = model.likelihood.curvature(params, f[None])[0]  # (B, K, K)
        curvature = curvature * v[:, None, None]
        weighted = (groups * curvature) @ slopes  # (M, B, K, P)  Lambda times J
        sums.n_rows += float(v.sum())
        if noise_per_output:
            sums.misfit += np.einsum("bkk,bk->k", curvature, (y - f) ** 2)
        if not blocks:
            sums.diagonal += np.sum(slopes * weighted, axis=(1, 2))
        for layer, block in enumerate(blocks):
            a: Array = np.ones((len(x), 1))
            # the inputs of a layer with a column of ones for the bias; a first layer whose inputs
            # contain that column already has one too many, which is cut off
            if block.rows > 1:
                a = np.hstack([tape.inputs[layer][:, 0], a])[:, : block.rows]
            sums.inputs[layer] += (a * v[:, None]).T @ a
            # the derivatives by a layer's biases are those by its units: df/dz
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
    """Alternate between training to MAP and choosing the scales by the evidence (D54, D55).

    Later rounds continue from the weights of the round before, for half of the epochs. After Ctrl-C
    theta is that of the last finished round. If the first round was interrupted, the weights have
    no variance, because the curvature has not been computed, and the log evidence is nan.

    Parameters
    ----------
    estimator : Linearised
    rows : Rows
        Checked rows, in the dtype of theta.
    recipe : Recipe
        Settings with which the first MAP estimate is trained.
    rng : numpy.random.Generator
        Source of initial weights and row orders.
    progress : bool, optional
        Show a progress bar; by default only in a terminal or notebook.
    verbose : int
        Number of epochs from one printed loss to the next; 0 prints nothing.

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
            # after the last round the features no longer change, so that the scales and the last
            # layer can be computed exactly
            exact = estimator.is_conjugate and not rounds_left
            theta, round_evidence = _choose_scales(
                estimator, mu, learned, rows64, exact
            )
            completed = replace(state, theta=theta.astype(dtype))
            evidence = round_evidence
    except KeyboardInterrupt:  # Ctrl-C between two calls of `train`
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
        Learned numbers of prior and likelihood, flat logarithms of scales, which are overwritten.
    rows : Rows
        Training rows in float64.
    exact : bool
        True to alternate between the scales and the last layer's mode until neither changes: both
        are exact given the features (D56). False to compute the scales once.

    Returns
    -------
    ndarray, float
        Flat theta of the posterior at the new scales, and the log evidence in nats.
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
        # the log likelihood without its squared residuals, which `log_evidence` counts
        evidence = evaluation.log_likelihood[0] + 0.5 * spectrum.misfit.sum()  # D55
        evidence += log_evidence(log_alpha, log_beta, spectrum)[0]
        if has_prior_scale:
            views["prior_log_scale"] -= 0.5 * log_alpha
        if has_noise:
            views["log_noise"] -= 0.5 * log_beta
        largest_change = np.abs([log_alpha, *log_beta]).max()
        if not exact or largest_change < LOG_SCALE_TOLERANCE:
            break  # otherwise the mode changes with the scales
    return estimator.pack(mu, spectrum, log_alpha, log_beta, learned), float(evidence)


def _solve_last_layer(
    estimator: Linearised, mu: Array, learned: Array, rows: Rows, spectrum: Spectrum
) -> Array:
    """Return `mu` (P,) with the last layer's weights at their mode, by one Newton step (D56).

    `learned` are the flat learned scales, and `spectrum` the curvature at `mu`.
    """
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
    step = basis @ (basis.T @ gradient / precision)  # covariance times gradient (D56)
    return np.concatenate([mu[:first], mu[first:] - step])


@dataclass(frozen=True)
class Mode(Reparameterised):
    """Estimator of the weights' MAP estimate at fixed scales; theta also holds the noise scale."""

    def fill_gradient(self, batch: Batch) -> tuple[Any, LogDensities]:
        """Write the gradient by the weights into `batch`, and 0 for the likelihood's parameters.

        Return the objective and its terms, as the base class does.
        """
        value_and_terms = super().fill_gradient(batch)
        for name, _ in self.model.learned():
            batch.d_blocks[name].fill(0.0)
        return value_and_terms


def _mode(model: Model, learned: Array) -> Mode:
    """Return the estimator that trains the weights, with the prior's scales fixed at `learned`."""
    prior: Any = model.prior
    scales = np.exp(_views(model, learned).get("prior_log_scale", np.zeros(0))).tolist()
    if isinstance(prior, LayerwiseGaussianPrior) and scales:
        prior = replace(prior, scales=tuple(scales), learn=False)
    elif scales:
        prior = GaussianPrior(*scales)
    return Mode(replace(model, prior=prior), PointMass(INITIAL_SD), MAP())


def _initial_values(model: Model) -> Array:
    """Return the initial learned scales of prior and likelihood, as one flat vector of logs."""
    return np.concatenate(
        [model.prior.init(float), model.likelihood.init(model.outputs, float)]
    )


def _views(model: Model, learned: Array) -> Params:
    """Return views of the learned scales in the flat vector `learned`, by block name."""
    return Layout(model.learned()).views(learned)


def _prior_sd(model: Model, params: Params) -> Array:
    """Return the prior's standard deviation s of each weight (P,).

    It is computed from the derivative of the log density at w = 1, which is -1 / s^2. `params` are
    the learned scales by name.
    """
    w = np.ones((1, model.layout.size))
    slope = np.zeros((1, model.layout.size))
    unused = {name: np.empty_like(block) for name, block in params.items()}
    _, saved = model.prior.log_density(params, w, Buffers())
    model.prior.add_vjp(saved, np.ones(1), slope, unused)
    return np.asarray((-slope[0]) ** -0.5)
