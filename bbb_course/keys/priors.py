"""Chapter 5: priors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import formula, given, logit, positive, real


@formula(
    w=real("P"),
    prior=positive(),
    returns="value d_w",
    slopes={"d_w": "w"},
    tags="K11 K12 K13 K21",
    edge_cases=[(scale * np.array([3.0, -1.0]), scale) for scale in (1e-9, 1e9)],
    wrong={
        "np.log(prior) +": {
            "-np.log(prior) +": (
                "the sign of log(prior), as printed in K18: minus a log density has + log(prior)."
            ),
            "": "log(prior) of every weight is missing.",
            "np.log(prior) / len(w) +": "log(prior) is counted once; every weight has one.",
        },
        "+ np.log(2 * np.pi) / 2": {"": "log(2 pi) / 2 of every weight is missing."},
        "/ (2 * prior**2)": {
            "/ (2 * prior)": "prior is not squared in the value.",
            "/ prior**2": "the 2 of 2 prior^2 is missing.",
        },
        ", w / prior**2": {
            ", w / prior**0": "the prior's scale is forgotten in the slope (K21).",
            ", w / prior": "prior is not squared in the slope (K21).",
        },
        "np.sum(": {"np.mean(": "the mean over weights stands where the sum belongs."},
    },
)
def gaussian_prior(w: Any, prior: Any) -> Any:
    """Return minus the log density of N(0, prior^2), and its slope.

    Parameters
    ----------
    w : ndarray (P,)
        Weights.
    prior : float
        Standard deviation.

    Returns
    -------
    value : float
        Minus log P(w), added up over weights.
    d_w : ndarray (P,)
        Its slope for w.
    """
    value = np.sum(np.log(prior) + w**2 / (2 * prior**2) + np.log(2 * np.pi) / 2)
    return value, w / prior**2


@formula(
    w=real("P"),
    b=positive(),
    returns="value d_w",
    slopes={"d_w": "w"},
    tags="D16",
    edge_cases=[
        (np.array([1e-7, -3e-9]), 1.0),  # as near to the peak as can be
        *((scale * np.array([3.0, -1.0]), scale) for scale in (1e-9, 1e9)),
    ],
    wrong={
        "np.log(2 * b)": {
            "np.log(b)": "the 2 of 2 b is missing: the density has two sides.",
            "-np.log(2 * b)": "the sign of log(2 b).",
        },
        "abs(w) / b": {
            "w / b": "the sign of w counts: the density is that of |w|.",
            "w**2 / b": "this is the square; Laplace has the absolute value.",
        },
        "np.sign(w * 1.0) / b": {
            "1 / b + 0 * w": "the slope changes its sign where w does.",
            "np.sign(w * 1.0)": "1 / b is missing in the slope.",
            "w / b": "the slope of |w| is the sign of w, not w.",
        },
    },
)
def laplace_prior(w: Any, b: Any) -> Any:
    """Return minus the log density of Laplace's distribution, and its slope.

    Parameters
    ----------
    w : ndarray (P,)
        Weights, none of them 0.
    b : float
        Scale of the distribution.

    Returns
    -------
    value : float
        Minus log P(w), added up over weights.
    d_w : ndarray (P,)
        Its slope for w.
    """
    return np.sum(np.log(2 * b) + abs(w) / b), np.sign(w * 1.0) / b


@formula(
    w=real("P"),
    a=logit(),
    s1=positive(),
    s2=positive(),
    returns="value d_w",
    slopes={"d_w": "w"},
    tags="R4 R5",
    edge_cases=[
        # the paper's scales: components change places at some multiple of the narrow one
        *(
            (np.array([k * np.exp(-6.0)]), 0.0, 1.0, np.exp(-6.0))
            for k in (1.0, 3.0, 4.5, 6.5, 9.0)
        ),
        *((scale * np.array([3.0]), -1.0, scale, 2 * scale) for scale in (1e-9, 1e9)),
        (np.array([5.0]), -600.0, 1.0, 0.1),
        (np.array([30.0]), -40.0, 1.0, 0.1),
        *((np.array([0.2]), a, 1.0, 0.1) for a in (1e-7, -1e-4)),
    ],
    wrong={
        "wide * w / s1**2 + (1 - wide) * w / s2**2": {
            **dict.fromkeys(
                [
                    "first * w / s1**2 + second * w / s2**2",
                    "(first * w / s1**2 + second * w / s2**2) / np.sqrt(2 * np.pi)",
                ],
                "this is the slope of the density; that of its logarithm is divided by the "
                "density, first + second (R5).",
            ),
            "pi * w / s1**2 + (1 - pi) * w / s2**2": (
                "the components are weighted by pi; in the slope they are weighted by their "
                "responsibilities at w (R5)."
            ),
            "(1 - wide) * w / s1**2 + wide * w / s2**2": "the responsibilities are exchanged (R5).",
            "wide * w / s1 + (1 - wide) * w / s2": (
                "the standard deviations are not squared in the slope (R5)."
            ),
        },
        "(2 * s1**2)) / s1\n": {
            "(2 * s1**2))\n": (
                "1 / s1 of the first density is missing: the components would not be densities "
                "(R4)."
            ),
        },
        "-np.sum(np.log(first + second) - np.log(2 * np.pi) / 2)": {
            "-np.sum(np.log(first + second))": "log(2 pi) / 2 of every weight is missing.",
            "-np.sum(pi * np.log(first / pi) + (1 - pi) * np.log(second / (1 - pi)) "
            "- np.log(2 * np.pi) / 2)": (
                "logarithms are mixed; the densities are, and then one takes the logarithm (R4)."
            ),
        },
        "pi = 1 / (1 + np.exp(-a))": {
            "pi = 1 / (1 + np.exp(a))": "the sign of a, or the two components, are exchanged.",
            "pi = a": "a is the logit of the share: the sigmoid is missing (R4).",
        },
    },
)
def scale_mixture_prior(w: Any, a: Any, s1: Any, s2: Any) -> Any:
    """Return minus the log density of two Gaussians mixed, and its slope.

    Parameters
    ----------
    w : ndarray (P,)
        Weights.
    a : float
        Logit of the wide component's share.
    s1 : float
        Standard deviation of the wide component.
    s2 : float
        Standard deviation of the narrow component.

    Returns
    -------
    value : float
        Minus log P(w), added up over weights.
    d_w : ndarray (P,)
        Its slope for w.
    """
    pi = 1 / (1 + np.exp(-a))
    first = pi * np.exp(-(w**2) / (2 * s1**2)) / s1
    second = (1 - pi) * np.exp(-(w**2) / (2 * s2**2)) / s2
    wide = first / (first + second)
    value = -np.sum(np.log(first + second) - np.log(2 * np.pi) / 2)
    return value, wide * w / s1**2 + (1 - wide) * w / s2**2


@formula(
    w=real("P"),
    t=real(),
    returns="value d_w d_t",
    slopes={"d_w": "w", "d_t": "t"},
    tags="D17",
    edge_cases=[
        (np.array([3.0, -1.0]) * np.exp(t), t) for t in (-100.0, -30.0, 30.0, 100.0)
    ],
    wrong={
        "len(w) - np.sum(w**2)": {
            "-np.sum(w**2)": (
                "the slope of log(prior) is missing: then the scale grows without end."
            ),
            "1 - np.sum(w**2)": "log(prior) is counted once; every weight has one.",
            "-len(w) - np.sum(w**2)": "the sign of the slope of log(prior).",
            "len(w) + np.sum(w**2)": (
                "the sign of the square's slope: a wider prior makes w^2 / s^2 smaller."
            ),
        },
        "np.sum(w**2) * np.exp(-2 * t)\n": {
            "np.sum(w**2) * np.exp(-3 * t)\n": (
                "the square has its slope for s; for log s it is multiplied by s."
            ),
        },
        "t + w**2": {
            "-t + w**2": "the sign of log s: minus a log density has + log s."
        },
        ", w * np.exp(-2 * t)": {
            ", w * np.exp(-t)": "the slope is w / s^2: the square is missing.",
            ", w * np.exp(0)": "the prior's scale is forgotten in the slope for w.",
        },
    },
)
def learned_prior_scale(w: Any, t: Any) -> Any:
    """Return minus the log density of N(0, exp(2 t)), and its slopes.

    The constant log(2 pi) / 2 of every weight is left out.

    Parameters
    ----------
    w : ndarray (P,)
        Weights.
    t : float
        Logarithm of the prior's standard deviation.

    Returns
    -------
    value : float
        Cost of the weights, in nats.
    d_w : ndarray (P,)
        Its slope for w.
    d_t : float
        Its slope for t.
    """
    d_t = len(w) - np.sum(w**2) * np.exp(-2 * t)
    return np.sum(t + w**2 / 2 * np.exp(-2 * t)), w * np.exp(-2 * t), d_t


@formula(
    x=real("I"),
    z=real("I"),
    s0=positive(),
    s1=positive(),
    H=given(4, 1, 2, 50),
    returns="covariance correlation",
    tags="D81",
    edge_cases=[
        (np.array([0.3, 0.1]), np.array([0.3, 0.1]), 1.0, 0.5, 4),
        (np.array([0.1, 0.7]), np.array([0.1, 0.7]), 0.7, 0.5, 4),
        (np.zeros(2), np.zeros(2), 1.0, 1.0, 1),
        (np.array([1e6, -2e6]), np.array([-1e6, 2e6]), 1.0, 1.0, 3),
        (np.array([1e-3, 0.0]), np.array([1e3, 0.0]), 1e-3, 1e3, 50),
    ],
    wrong={
        "(x @ x + 1)": {"(x @ x)": "the bias of the first layer is missing at x."},
        "(x @ z + 1)": {
            "(x @ z)": "the bias of the first layer is the same at both inputs: it adds s0^2."
        },
        "np.sin(t) + (np.pi - t) * c": {
            "np.sin(t) + t * c": (
                "pi - t is the angle in which both units are on; t, the rest, is 0 at equal inputs."
            ),
            "(np.pi - t) * c": (
                "the sine is missing: at t = pi / 2, where z is independent, nothing is left."
            ),
            "np.pi - t": (
                "(pi - t) / (2 pi) is the probability that both are on, not their mean product."
            ),
        },
        "/ (2 * np.pi)": {
            "/ np.pi": "a half is missing: at equal inputs ReLU keeps half of the mean square.",
        },
        "s1**2 * (H * product + 1)": {
            "s1**2 * (product + 1)": "f adds up H units, and their covariances.",
            "s1**2 * H * product": "the bias of the last layer is missing: it adds s1^2.",
            "s1**2 * (H**2 * product + 1)": (
                "units have weights of their own: of H^2 products the mean is 0 but for H."
            ),
            "s1 * (H * product + 1)": "a covariance has the square of the scale.",
        },
        "covariance / (deviation_x * deviation_z)": {
            "c": "this is the correlation before the units, not that of f.",
            "covariance / (scale_x * scale_z)": (
                "the covariance of f is divided by the standard deviations of f, not by those of "
                "the pre-activations."
            ),
        },
    },
)
def covariance_of_functions(x: Any, z: Any, s0: Any, s1: Any, H: Any) -> Any:
    """Return covariance and correlation of a network's outputs at two inputs under its prior.

    Parameters
    ----------
    x, z : ndarray (I,)
        Two inputs.
    s0, s1 : float
        Standard deviations of weights and biases of the first and of the last layer.
    H : int
        Number of hidden units, ReLU.

    Returns
    -------
    covariance, correlation : float
        Covariance and correlation of f(x) and f(z).
    """
    scale_x = s0 * (x @ x + 1) ** 0.5
    scale_z = s0 * (z @ z + 1) ** 0.5
    c = np.clip(s0**2 * (x @ z + 1) / (scale_x * scale_z), -1, 1)
    t = np.arccos(c)
    product = scale_x * scale_z * (np.sin(t) + (np.pi - t) * c) / (2 * np.pi)
    covariance = s1**2 * (H * product + 1)
    deviation_x = s1 * (H * scale_x**2 / 2 + 1) ** 0.5
    deviation_z = s1 * (H * scale_z**2 / 2 + 1) ** 0.5
    return covariance, covariance / (deviation_x * deviation_z)
