"""Activations of hidden units and their slopes, by name (K32, K39, D10, D51).

Each function replaces pre-activations z by a(z), in place, and fills `slope`, an array of the same
shape, with a'(z). All are complex-safe, and only ReLU has a kink.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from ..numeric.elementary import erfc, logistic, sech_squared, softplus_parts
from ..numeric.layout import Array

__all__ = ["ACTIVATIONS"]

ROOT_HALF = sqrt(0.5)
ERF_SLOPE = 2.0 / sqrt(pi)  # derivative of erf(x) at x = 0
# Coefficients of the tanh form of GELU, z sigmoid(v) with v = RATE (z + CUBIC z^3)
RATE = sqrt(8.0 / pi)
CUBIC = 0.044715


def relu(z: Array, slope: Array) -> None:
    """Write max(z, 0) into `z`, and its derivative, 0 or 1, into `slope` (K32, K34, K35)."""
    np.greater(z.real, 0, out=slope)  # 0.0 and 1.0 multiply faster than bools
    z *= slope  # K32, K34, K35: a_l = ReLU(z_l) = z_l [z_l > 0]


def tanh(z: Array, slope: Array) -> None:
    """Write tanh(z) into `z`, and its derivative 1 - tanh(z)^2 into `slope` (D10)."""
    sech_squared(z, out=slope)  # D10: tanh'(z) = 1 / cosh(z)^2
    np.tanh(z, out=z)


def sigmoid(z: Array, slope: Array) -> None:
    """Write s(z) = 1 / (1 + e^-z) into `z`, and its derivative s (1 - s) into `slope` (D51)."""
    z[...], slope[...] = logistic(z)


def softplus(z: Array, slope: Array) -> None:
    """Write log(1 + e^z) into `z`, and its derivative, the sigmoid, into `slope` (D51)."""
    parts = softplus_parts(z)
    z[...] = parts.softplus  # the activation log(1 + e^z) (D51)
    slope[...] = parts.sigmoid  # its derivative, the sigmoid (D51)


def silu(z: Array, slope: Array) -> None:
    """Write z sigmoid(z) into `z`, and its derivative into `slope` (D51)."""
    _gate(z, slope, *logistic(z))


def gelu(z: Array, slope: Array) -> None:
    """Write GELU(z) = z Phi(z), Phi the normal CDF, into `z`, its derivative into `slope` (D51).

    Phi(z) = erfc(-z / sqrt 2) / 2 is the cdf of N(0, 1).
    """
    x = z * -ROOT_HALF
    density = np.exp(-x * x) * ERF_SLOPE * (0.5 * ROOT_HALF)  # D51: density phi(z)
    _gate(z, slope, 0.5 * erfc(x), density)


def gelu_tanh(z: Array, slope: Array) -> None:
    """Write the tanh approximation of GELU(z) into `z`, and its derivative into `slope` (D51).

    Here v = 2 sqrt(2/pi) (z + 0.044715 z^3) and s is the sigmoid.
    """
    cubic = CUBIC * z * z
    gate, d_gate = logistic(RATE * z * (1.0 + cubic))
    _gate(z, slope, gate, d_gate * RATE * (1.0 + 3.0 * cubic))


def _gate(z: Array, slope: Array, gate: Array, d_gate: Array) -> None:
    """Write z * gate into `z`, and its derivative gate + z * d_gate into `slope` (D51).

    Parameters
    ----------
    z : ndarray
        Pre-activations of any shape; overwritten.
    slope : ndarray
        Receives the derivative a'(z).
    gate, d_gate : ndarray
        g(z) and its derivative g'(z).
    """
    np.multiply(z, d_gate, out=slope)
    slope += gate  # a' = g(z) + z g'(z) (D51)
    z *= gate


ACTIVATIONS = {
    function.__name__.replace("_", "-"): function
    for function in (relu, tanh, sigmoid, silu, softplus, gelu, gelu_tanh)
}
NAMED = {"activation": ACTIVATIONS}
