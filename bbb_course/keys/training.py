"""Chapter 3: training."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import formula, given, positive, real, unit


@formula(
    mu=real("P"),
    rho=real("P"),
    d_mu=real("P"),
    d_rho=real("P"),
    eta=positive(),
    returns="new_mu new_rho",
    tags="K43 K44",
    wrong={
        "mu - eta * d_mu": {
            "mu + eta * d_mu": "this climbs: descend against the gradient (K43).",
            "mu - eta * d_rho": "mu is moved by the gradient for rho.",
            "mu - d_mu": "the learning rate is missing.",
        },
        "rho - eta * d_rho": {
            "rho + eta * d_rho": "this climbs: descend against it (K44).",
            "rho - eta * d_mu": "rho is moved by the gradient for mu.",
            "np.log(1 + np.exp(rho)) - eta * d_rho": (
                "sigma is moved; what is stored and moved is rho (K44)."
            ),
            "rho - d_rho": "the learning rate is missing.",
        },
    },
)
def step_of_descent(mu: Any, rho: Any, d_mu: Any, d_rho: Any, eta: Any) -> Any:
    """Return mu and rho after one step of gradient descent.

    Parameters
    ----------
    mu, rho : ndarray (P,)
        Means and raw standard deviations of the weights.
    d_mu, d_rho : ndarray (P,)
        Gradient of the cost for mu and for rho.
    eta : float
        Learning rate.

    Returns
    -------
    new_mu, new_rho : ndarray (P,)
        New arrays; mu and rho stay as they are.
    """
    return mu - eta * d_mu, rho - eta * d_rho


@formula(
    complexity=real(),
    nll=real("B"),
    total=given(8, 4, 16),
    returns="cost",
    tags="K18 D6",
    # usual sizes
    edge_cases=[(89000.0, np.ones(128), 60000), (-2.0, np.ones(1000), 1_000_000)],
    wrong={
        "complexity * len(nll) / total": {
            "complexity": (
                "every minibatch pays the whole complexity: an epoch pays it once per minibatch."
            ),
            "complexity / total": (
                "the share is 1/N: right for one row at a time, too little by the factor B for B "
                "rows."
            ),
            "complexity / len(nll)": (
                "the complexity is divided by the rows of the minibatch; its share is B/N."
            ),
            "complexity / len(nll) / total": (
                "the complexity is divided by the batch and by the data set, as some published "
                "code does: too little by the factor B^2."
            ),
            "complexity * total / len(nll)": "the share is upside down: B/N, not N/B.",
        },
        "np.sum(nll)": {
            "np.mean(nll)": (
                "the likelihood is averaged over rows: then the share would be 1/N, not B/N."
            ),
            "np.sum(nll) * total / len(nll)": (
                "the likelihood is scaled up to all data. With the whole complexity beside it this "
                "estimates F; here an epoch's costs add up to F."
            ),
        },
    },
)
def cost_of_a_minibatch(complexity: Any, nll: Any, total: Any) -> Any:
    """Return the minibatch's own misfit and its share of the complexity.

    Parameters
    ----------
    complexity : float
        Complexity of the whole posterior, in nats.
    nll : ndarray (B,)
        Minus the log likelihood of each row of the minibatch.
    total : int
        Number N of rows of the data set.
    """
    return complexity * len(nll) / total + np.sum(nll)


@formula(
    parts=given(4, 1, 2, 3),
    returns="shares",
    tags="D6 D24",
    # powers beyond 64 bits, and beyond floats
    edge_cases=[(12,), (24,), (64,), (600,), (2000,)],
    wrong={
        " / (1 - 2.0**-parts)": {
            "": (
                "they do not add up to 1: divide by 2^M - 1, the sum of 1, 2, ..., 2^(M - 1)."
            ),
        },
        "2.0**-i": {
            "2.0 ** (i - 1 - parts)": "the order is turned round: the first minibatch pays most.",
            "2.0 ** (1 - i)": (
                "the exponent is M - i with i from 1: each share is twice what it should be."
            ),
        },
        "2.0**-i / (1 - 2.0**-parts)": {"0 * i + 1 / parts": "these are equal shares."},
    },
)
def geometric_shares(parts: Any) -> Any:
    """Blundell et al.'s shares of the complexity."""
    i = np.arange(1, parts + 1)
    return 2.0**-i / (1 - 2.0**-parts)


@formula(
    theta=real("P"),
    m=real("P"),
    v=positive("P"),
    grad=real("P"),
    t=given(4, 1, 2),
    eta=positive(),
    beta1=unit(),
    beta2=unit(),
    tiny=positive(),
    returns="new_theta new_m new_v",
    tags="D3",
    edge_cases=[  # late steps, no gradient, averages of the last gradient alone
        (np.ones(1), np.ones(1), np.ones(1), np.ones(1), 1000, 0.5, 0.9, 0.999, 1e-8),
        (
            np.ones(1),
            np.ones(1),
            np.ones(1),
            np.ones(1),
            10_000,
            0.5,
            0.999,
            0.9999,
            1e-8,
        ),
        (np.ones(1), np.ones(1), np.ones(1), np.zeros(1), 2, 0.5, 0.9, 0.999, 1e-8),
        (np.ones(1), np.ones(1), np.ones(1), np.full(1, 2.0), 2, 0.5, 0.0, 0.0, 1e-8),
    ],
    wrong={
        "new_m / (1 - beta1**t)": {
            "new_m": "m is not corrected: it began at 0 and is too small by 1 - beta1^t at first.",
        },
        "new_v / (1 - beta2**t)": {
            "new_v": "v is not corrected: it began at 0 and is too small by 1 - beta2^t at first.",
            "new_v / (1 - beta2)": (
                "v is divided by 1 - beta2 at every step; the correction is 1 - beta2^t."
            ),
        },
        "v_hat**0.5 + tiny": {
            "(v_hat + tiny) ** 0.5": "tiny stands under the root: it is added to the root.",
            "v_hat + tiny": "the root of v is missing.",
        },
        "(1 - beta2) * grad**2": {
            "(1 - beta2) * grad": "the gradient is not squared in v.",
            "(1 - beta2) * new_m**2": "v averages the squared gradient, not the square of m.",
        },
        "(1 - beta1) * grad": {
            "grad": "the factor 1 - beta1 is missing: m is an average."
        },
        "theta - eta": {"theta + eta": "this climbs."},
        ", new_m, new_v": {
            ", m_hat, v_hat": (
                "the corrected average is returned, and the next step would correct it once more: "
                "the uncorrected one is kept."
            ),
        },
    },
)
def adam_step(
    theta: Any,
    m: Any,
    v: Any,
    grad: Any,
    t: Any,
    eta: Any,
    beta1: Any,
    beta2: Any,
    tiny: Any,
) -> Any:
    """Return theta, m and v after step t of Adam.

    Parameters
    ----------
    theta : ndarray (P,)
        Parameters before the step.
    m, v : ndarray (P,)
        Running means of the gradient and of its square, not corrected.
    grad : ndarray (P,)
        Gradient at theta.
    t : int
        Number of this step, from 1.
    eta : float
        Learning rate.
    beta1, beta2 : float
        Decay rates of m and of v, between 0 and 1.
    tiny : float
        Positive number that keeps the divisor from being 0.

    Returns
    -------
    new_theta : ndarray (P,)
        Parameters after the step.
    new_m, new_v : ndarray (P,)
        Running means after the step, not corrected.
    """
    new_m = beta1 * m + (1 - beta1) * grad
    new_v = beta2 * v + (1 - beta2) * grad**2
    m_hat = new_m / (1 - beta1**t)
    v_hat = new_v / (1 - beta2**t)
    return theta - eta * m_hat / (v_hat**0.5 + tiny), new_m, new_v


@formula(
    mu=real("P"),
    sigma=positive("P"),
    d_mu=real("P"),
    d_sigma=real("P"),
    eta=positive(),
    r=unit(),
    returns="new_mu new_sigma",
    tags="D61 D62",
    # no curvature
    edge_cases=[(np.ones(1), np.full(1, 2.0), np.ones(1), np.zeros(1), 0.5, 0.5)],
    wrong={
        "r * sigma * d_sigma": {
            "r * d_sigma": "x is r sigma dF/dsigma; the factor sigma is missing (D61).",
            "-r * sigma * d_sigma": "the sign of x: a curvature above s makes s larger.",
        },
        "(1 + (1 + x) ** 2) / 2": {
            "(1 + x)": "without x^2 / 2, s is negative for x < -1, and noise gets there (D62).",
            "(1 + (1 + x) ** 2)": "the factor 1/2 is missing: for x = 0 the precision stays.",
        },
        "d_mu / s": {
            "d_mu": "this is plain descent: the natural gradient divides by the precision.",
            "d_mu * sigma**2": "mu is moved with the old precision, and the new one is its scale.",
            "d_mu / s**0.5": "the root belongs to Adam; here the precision itself divides.",
        },
        "s**-0.5": {
            "1 / s": "this is the variance; sigma is its root.",
        },
    },
)
def natural_step(mu: Any, sigma: Any, d_mu: Any, d_sigma: Any, eta: Any, r: Any) -> Any:
    """Return mu and sigma after one step of IVON.

    Parameters
    ----------
    mu, sigma : ndarray (P,)
        Means and standard deviations of the weights.
    d_mu, d_sigma : ndarray (P,)
        Gradient of the free energy for mu and for sigma.
    eta : float
        Step size of mu.
    r : float
        Step size of the precision, between 0 and 1.

    Returns
    -------
    new_mu, new_sigma : ndarray (P,)
        Means and standard deviations after the step.
    """
    x = r * sigma * d_sigma
    s = (1 + (1 + x) ** 2) / 2 / sigma**2
    return mu - eta * d_mu / s, s**-0.5
