"""What a prior on the weights means for functions: the Gaussian process of wide networks (D81).

`gp_kernel` is its covariance, `excess_kurtosis` says how far from it a ReLU network is (D82).
"""

from __future__ import annotations

from itertools import pairwise
from math import pi
from typing import Any

import numpy as np

from ..model.joint import Model
from ..numeric.layout import Array
from ..numeric.validation import InstanceOf, Numbers, accepts
from ..parts.activations import ACTIVATIONS
from ..parts.priors import GaussianPrior, LayerwiseGaussianPrior

__all__ = ["excess_kurtosis", "gp_kernel"]

# The trapezoidal rule for N(0, 1), in each of two directions. Its error falls exponentially in the
# ratio of the width of the activation's bend to that of a step.
N_NODES = 121
LARGEST_NODE = 8.5
MAX_BLOCK_SIZE = 4_000_000  # numbers in one array of the rule
LARGEST_INPUT = 1e50  # fourth powers, times widths and scales, are still numbers


@accepts(model=InstanceOf(Model))
def gp_kernel(model: Model, x: Any, others: Any = None) -> Array:
    r"""Return the covariance of the functions that a wide network draws from its prior (D81).

    With growing widths the prior over functions tends to a Gaussian process of mean 0 (Neal 1996;
    Lee et al. 2018; Matthews et al. 2018). Its covariance is computed layer by layer,

    .. math:: k_{l+1}(x, x') = s_{l+1}^2 \big( H_l\, E[h(z) h(z')] + 1 \big),
              \qquad (z, z') \sim N(0, k_l)

    from the scales and widths of `model`. Without a hidden layer and with one it is the covariance
    of `model` itself; with more, a finite width changes it.

    Parameters
    ----------
    model : Model
        Network with a `GaussianPrior` or `LayerwiseGaussianPrior` of fixed scales, whose mean is 0.
        Its likelihood is not used.
    x : array-like (N, d_in)
        Rows, as the network reads them.
    others : array-like (M, d_in), optional
        Other rows; by default the same.

    Returns
    -------
    ndarray (N, M)
        Covariance of each output at a row of `x` and at a row of `others`. Outputs are independent.

    Raises
    ------
    ValueError
        If the prior is another, or its scales are learned.

    Notes
    -----
    ReLU has a closed form; for other activations the expectation is computed by the trapezoidal
    rule, with an error below 0.003 sqrt(E h(z)^2 E h(z')^2) while pre-activations have standard
    deviations below 10.
    It evaluates the activation 14,641 times for each pair of rows and each layer.

    Examples
    --------
    >>> from bbb_numpy import MLP, LayerwiseGaussianPrior, Model
    >>> from bbb_numpy.evaluation.function_space import gp_kernel
    >>> model = Model(MLP((1, 100, 1)), LayerwiseGaussianPrior())
    >>> gp_kernel(model, [[0.0], [1.0]]).round(3)
    array([[0.51 , 0.544],
           [0.544, 1.01 ]])
    """
    scales = _scales(model)
    rows = _inputs(model, "x", x)
    columns = rows
    if others is not None:
        columns = _inputs(model, "others", others)
    kernel = scales[0] ** 2 * (rows @ columns.T + 1)
    variances = [scales[0] ** 2 * (np.sum(z * z, axis=1) + 1) for z in (rows, columns)]
    for scale, n_units in zip(scales[1:], model.network.sizes[1:-1], strict=True):
        products = _expected_products(model.network.activation, kernel, *variances)
        kernel = scale**2 * (n_units * products + 1)  # the recursion (D81)
        variances = [
            scale**2 * (n_units * _expected_squares(model.network.activation, v) + 1)
            for v in variances
        ]
    return kernel


@accepts(model=InstanceOf(Model))
def excess_kurtosis(model: Model, x: Any) -> Array:
    """Return how heavy the tails of a ReLU network's outputs are under its prior (D82).

    It is 0 for a Gaussian, and falls in proportion to depth / width: where it is small, `gp_kernel`
    describes the functions that the network itself draws.

    Parameters
    ----------
    model : Model
        ReLU network with a `GaussianPrior` or `LayerwiseGaussianPrior` of fixed scales, whose mean
        is 0. Its likelihood is not used.
    x : array-like (N, d_in)
        Rows, as the network reads them.

    Returns
    -------
    ndarray (N,)
        E f^4 / (E f^2)^2 - 3 of an output at each row, exactly.

    Raises
    ------
    ValueError
        If the prior is another, its scales are learned, or the activation is not ReLU.

    Examples
    --------
    >>> from bbb_numpy import MLP, LayerwiseGaussianPrior, Model
    >>> from bbb_numpy.evaluation.function_space import excess_kurtosis
    >>> for sizes in [(1, 5, 1), (1, 100, 1), (1, 100, 100, 100, 1)]:
    ...     print(excess_kurtosis(Model(MLP(sizes), LayerwiseGaussianPrior()), [[1.0]]).round(2))
    [2.08]
    [0.15]
    [0.42]
    """
    scales = _scales(model)
    if model.network.activation != "relu":
        raise ValueError(
            f"the activation must be 'relu'; got {model.network.activation!r}"
        )
    rows = _inputs(model, "x", x)
    # of the variance of f given all layers before: its mean and its mean square
    mean = scales[0] ** 2 * (np.sum(rows * rows, axis=1) + 1)
    square = mean**2
    for scale, n_units in zip(scales[1:], model.network.sizes[1:-1], strict=True):
        of_sum = n_units * (n_units + 5) / 4 * square + n_units * mean
        square = scale**4 * (of_sum + 1)  # D82
        mean = scale**2 * (n_units * mean / 2 + 1)
    return 3 * (square / mean**2 - 1)


def _scales(model: Model) -> tuple[float, ...]:
    """Return the standard deviation of the weights of each layer; raise ValueError without one."""
    prior: Any = model.prior
    if type(prior) not in (GaussianPrior, LayerwiseGaussianPrior) or prior.learn:
        raise ValueError(
            "the prior must be a GaussianPrior or LayerwiseGaussianPrior with fixed scales; "
            f"got {prior}"
        )
    if isinstance(prior, LayerwiseGaussianPrior):
        assert prior.scales is not None  # a Model has given it the widths
        return prior.scales
    return (prior.scale,) * len([*pairwise(model.network.sizes)])


def _inputs(model: Model, name: str, value: Any) -> Array:
    """Return rows of inputs in float64; raise ValueError for other shapes, nan and huge numbers.

    Parameters
    ----------
    model : Model
        Model that reads the rows.
    name : str
        Name of the argument, for the error.
    value : array-like (N, d_in)
        Rows.
    """
    shape = (None, model.network.sizes[0])
    check = Numbers(shape, low=-LARGEST_INPUT, high=LARGEST_INPUT)
    return check(name, value).astype(float)


def _expected_squares(activation: str, variances: Array) -> Array:
    """Return E h(z)^2 (N,) for z ~ N(0, variances)."""
    if activation == "relu":
        return variances / 2
    nodes, weights = _nodes()
    return _activated(activation, np.sqrt(variances)[:, None] * nodes) ** 2 @ weights


def _expected_products(
    activation: str, kernel: Array, row_variances: Array, column_variances: Array
) -> Array:
    """Return E h(z) h(z') (N, M) for zero-mean Gaussians z and z'.

    Parameters
    ----------
    activation : str
        Name of h.
    kernel : ndarray (N, M)
        Covariances of z and z'.
    row_variances : ndarray (N,)
        Variances of z.
    column_variances : ndarray (M,)
        Variances of z'.
    """
    row_sd = np.sqrt(row_variances)[:, None]
    column_sd = np.sqrt(column_variances)
    # rounding may leave [-1, 1]
    correlation = np.clip(kernel / (row_sd * column_sd), -1.0, 1.0)
    if activation == "relu":
        angle = np.arccos(correlation)
        shape = (
            np.sin(angle) + (pi - angle) * correlation
        )  # pi times the next one (D83)
        return row_sd * column_sd * shape / (2 * pi)  # the arc-cosine kernel (D81)
    n_rows = max(1, MAX_BLOCK_SIZE // (N_NODES * max(1, kernel.shape[1])))
    products = np.empty(kernel.shape)
    for first in range(0, len(kernel), n_rows):
        block = slice(first, first + n_rows)
        products[block] = _integrate(
            activation, correlation[block], row_sd[block], column_sd
        )
    return products


def _integrate(
    activation: str, correlation: Array, row_sd: Array, column_sd: Array
) -> Array:
    """Return E h(z) h(z') (N, M) by the trapezoidal rule.

    Parameters
    ----------
    activation : str
        Name of h.
    correlation : ndarray (N, M)
        Correlations of z and z'.
    row_sd : ndarray (N, 1)
        Standard deviations of z.
    column_sd : ndarray (M,)
        Standard deviations of z'.
    """
    nodes, weights = _nodes()
    of_rows = _activated(activation, row_sd * nodes)  # (N, Q)
    rest = np.sqrt(1 - correlation**2)[..., None] * nodes
    products = np.zeros(correlation.shape)
    for q, (node, weight) in enumerate(zip(nodes, weights, strict=True)):
        z = column_sd[:, None] * (correlation[..., None] * node + rest)  # (N, M, Q)
        of_columns = _activated(activation, z) @ weights
        products += weight * of_rows[:, q : q + 1] * of_columns
    return products


def _nodes() -> tuple[Array, Array]:
    """Return nodes and weights (Q,) of the trapezoidal rule for N(0, 1)."""
    nodes = np.linspace(-LARGEST_NODE, LARGEST_NODE, N_NODES)
    weights = np.exp(-0.5 * nodes * nodes)
    return nodes, weights / np.sum(weights)


def _activated(activation: str, z: Array) -> Array:
    """Return the activation of `z`, which is not changed."""
    values = z.copy()
    ACTIVATIONS[activation](values, np.empty_like(values))
    return values
