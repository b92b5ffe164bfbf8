"""Chapter 7: estimators of the gradient and their variance."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import formula, given, positive, real
from ..variance import Estimator

REVERSED = (
    "this is the KL from the prior to q; asked for is that from q to the prior, "
    "E_q[log(q / P)]."
)
BASELINE_SEES_ITS_SAMPLE = (
    "the mean of h is subtracted, and h of the same sample is in it: this baseline moves with the "
    "score, and shrinks the gradient by 1/S in the mean. One of the other samples would not."
)
AVERAGED_NOISE = (
    "eps is averaged before the product: the mean over samples of path times eps is not the "
    "product of the two means."
)


@formula(
    mu=real("P"),
    rho=real("P"),
    prior=positive(),
    returns="value d_mu d_rho",
    slopes={"d_mu": "mu", "d_rho": "rho"},
    tags="D18",
    wrong={
        "sigma / prior**2 - 1 / sigma": {
            "sigma / prior**2": "the slope of -log sigma is missing: sigma would shrink to 0.",
            "sigma / prior**2 + 1 / sigma": (
                "the sign of 1 / sigma: -log sigma has the slope -1 / sigma."
            ),
            "1 / prior**2 - 1 / sigma": "sigma is missing: sigma^2 / 2 has the slope sigma.",
            "1 / sigma - (prior**2 + mu**2) / sigma**3": REVERSED,
        },
        " / (1 + np.exp(-rho))": {
            "": "softplus without its derivative: multiply by the sigmoid (K24).",
        },
        ", mu / prior**2,": {
            ", mu / prior**0,": "the prior's scale is forgotten in the slope for mu.",
            ", mu / sigma**2,": REVERSED,
        },
        "np.log(prior / sigma) + (sigma**2 + mu**2) / (2 * prior**2)": {
            "np.log(sigma / prior) + (prior**2 + mu**2) / (2 * sigma**2)": REVERSED,
        },
        "(sigma**2 + mu**2) / (2 * prior**2)": {
            "mu**2 / (2 * prior**2)": "E[w^2] is mu^2 + sigma^2: sigma^2 is missing.",
        },
        "np.log(prior / sigma)": {
            "np.log(sigma / prior)": "the fraction is upside down."
        },
        " - 0.5": {"": "the -1/2 of every weight is missing."},
        "np.sum(np.log": {
            "np.mean(np.log": (
                "the KL is divided by the number of weights, as some published code does: they are "
                "independent, and their divergences add up."
            ),
        },
    },
)
def complexity_in_closed_form(mu: Any, rho: Any, prior: Any) -> Any:
    """Return KL(q || P) of a mean-field Gaussian and the prior, and its gradient.

    Parameters
    ----------
    mu : ndarray (P,)
        Means of the weights.
    rho : ndarray (P,)
        Raw standard deviations; sigma = softplus(rho).
    prior : float
        Standard deviation of the weights under the prior.

    Returns
    -------
    value : float
        KL(q || P), in nats.
    d_mu, d_rho : ndarray (P,)
        Its slopes for mu and for rho.
    """
    sigma = np.log(1 + np.exp(rho))
    value = np.sum(np.log(prior / sigma) + (sigma**2 + mu**2) / (2 * prior**2) - 0.5)
    return value, mu / prior**2, (sigma / prior**2 - 1 / sigma) / (1 + np.exp(-rho))


@formula(
    mu=real("P"),
    sigma=positive("P"),
    eps=real("SP"),
    h=real("S"),
    returns="d_mu d_sigma",
    tags="W4 W5 D20 D26",
    wrong={
        "h[:, None] * eps / sigma,": {
            "h[:, None] * eps,": (
                "1 / sigma is missing: d log q / d mu = (w - mu) / sigma^2 = eps / sigma."
            ),
            "-h[:, None] * eps / sigma,": "the sign: this is d log q / d w.",
        },
        "np.mean(h[:, None] * eps": {
            "np.mean((h - np.mean(h))[:, None] * eps": BASELINE_SEES_ITS_SAMPLE
        },
        "np.mean(h[:, None] * (eps": {
            "np.mean((h - np.mean(h))[:, None] * (eps": BASELINE_SEES_ITS_SAMPLE
        },
        "(eps**2 - 1) / sigma": {
            "eps**2 / sigma": "the -1 of the normalising constant 1 / sigma is missing.",
            "(1 - eps**2) / sigma": "the sign of the score for sigma.",
            "(eps**2 - 1)": "1 / sigma is missing in the score for sigma.",
            "-1 / sigma + 0 * eps": (
                "this is the total derivative along w = mu + sigma eps; the score holds w fixed."
            ),
        },
    },
)
def score_function_estimator(mu: Any, sigma: Any, eps: Any, h: Any) -> Any:
    """Return estimates of the gradient of E[h(w)], from values of h alone.

    Parameters
    ----------
    mu, sigma : ndarray (P,)
        Means and standard deviations of the weights.
    eps : ndarray (S, P)
        Standard normal noise of S weight samples.
    h : ndarray (S,)
        Values of h at the samples.

    Returns
    -------
    d_mu, d_sigma : ndarray (P,)
        Estimated slopes for mu and for sigma.
    """
    return (
        np.mean(h[:, None] * eps / sigma, axis=0),
        np.mean(h[:, None] * (eps**2 - 1) / sigma, axis=0),
    )


@formula(
    sigma=positive("P"),
    rho=real("P"),
    eps=real("SP"),
    d_w=real("SP"),
    pi=positive(),
    returns="d_mu d_rho",
    tags="D20 W4 W5",
    wrong={
        "d_w - pi * eps / sigma": {
            "d_w": (
                "log q's slope is missing altogether: its path through w, -eps / sigma, stays; "
                "only the direct part is left out."
            ),
            "d_w + pi * eps / sigma": "the sign: d log q / d w = -eps / sigma.",
            "d_w - eps / sigma": "the share pi of log q is missing.",
            "d_w - pi * eps / sigma**2": (
                "-(w - mu) / sigma^2 is -eps / sigma: sigma is divided by twice."
            ),
        },
        "path * eps, axis=0)": {
            "path * eps - pi / sigma, axis=0)": (
                "-pi / sigma is there as well: then log q is counted in two forms."
            ),
            "path * np.mean(eps, axis=0), axis=0)": AVERAGED_NOISE,
            "path, axis=0)": "eps is missing: w moves with sigma by eps.",
        },
        " / (1 + np.exp(-rho))": {
            "": "softplus without its derivative: multiply by the sigmoid (K24).",
        },
    },
)
def sticking_the_landing(sigma: Any, rho: Any, eps: Any, d_w: Any, pi: Any) -> Any:
    """Return the gradient without the direct part of log q.

    Parameters
    ----------
    sigma : ndarray (P,)
        Standard deviations of the weights.
    rho : ndarray (P,)
        Raw standard deviations; sigma = softplus(rho).
    eps : ndarray (S, P)
        Standard normal noise of S weight samples.
    d_w : ndarray (S, P)
        Slope for the weights of everything but log q.
    pi : float
        Share of the complexity that this minibatch pays.

    Returns
    -------
    d_mu, d_rho : ndarray (P,)
        Estimated slopes for mu and for rho.
    """
    path = d_w - pi * eps / sigma
    return np.mean(path, axis=0), np.mean(path * eps, axis=0) / (1 + np.exp(-rho))


def cube(w: Any) -> Any:
    """Return w^3 + w^2: an odd and an even part."""
    return w**3 + w**2


def power_of_five(w: Any) -> Any:
    """Return w^5 / 8 - w^4 + w, which no series of second order holds."""
    return w**5 / 8 - w**4 + w


@formula(
    h=given(cube, power_of_five),
    mu=real("P"),
    sigma=positive("P"),
    eps=real("SP"),
    returns="estimate",
    tags="D23",
    wrong={
        "mu - sigma * eps": {
            "mu + sigma * eps": "the second half is the first one again.",
            "-mu - sigma * eps": "the mean is mirrored as well: only the noise changes its sign.",
        },
        " / 2": {"": "1/2 is missing: it is the mean of the two."},
        "h(mu - sigma * eps))": {
            "-h(mu - sigma * eps))": (
                "the difference is the odd part, which is to go; the sum is asked for."
            ),
        },
    },
)
def antithetic_noise(h: Any, mu: Any, sigma: Any, eps: Any) -> Any:
    """Return the mean of h over samples and their mirror images.

    Parameters
    ----------
    h : callable
        Function of an array of weights, entry by entry.
    mu, sigma : ndarray (P,)
        Means and standard deviations of the weights.
    eps : ndarray (S, P)
        Standard normal noise; each row makes a pair with its mirror image.
    """
    return np.mean((h(mu + sigma * eps) + h(mu - sigma * eps)) / 2, axis=0)


@formula(
    a=real("BI"),
    mu=real("IH"),
    sigma=positive("IH"),
    mu_b=real("H"),
    sigma_b=positive("H"),
    zeta=real("BH"),
    returns="z",
    tags="D21",
    sizes={"B": 2, "I": 2, "H": 2},
    wrong={
        "a**2 @ sigma**2 + sigma_b**2": {
            "a**2 @ sigma**2 + sigma_b": (
                "sigma_b is not squared: sqrt(x^2 sigma^2 + sigma_b), as in published code."
            ),
            "a**2 @ sigma + sigma_b**2": (
                "sigma is not squared: variances add up, not standard deviations."
            ),
            "a**2 @ sigma + sigma_b": (
                "no sigma is squared: variances add up, not standard deviations."
            ),
            "abs(a) @ sigma**2 + sigma_b**2": (
                "the inputs are not squared: the variance of a w is a^2 sigma^2."
            ),
            "(a @ sigma) ** 2 + sigma_b**2": (
                "standard deviations are added before squaring: independent weights add variances."
            ),
            **dict.fromkeys(
                [
                    "(abs(a) @ sigma + sigma_b) ** 2",
                    "(a @ sigma + sigma_b) ** 2",
                    "((a**2 @ sigma**2) ** 0.5 + sigma_b) ** 2",
                ],
                "standard deviations are added; of independent numbers the variances add up.",
            ),
            "a**2 @ sigma**2": "the bias is as uncertain as the weights: sigma_b^2 is missing.",
        },
        "a @ mu + mu_b": {"a @ mu": "the mean of the bias, mu_b, is left out."},
        "variance**0.5 * zeta": {
            "variance * zeta": "the root is missing: noise has a standard deviation.",
            "variance**0.5 * zeta[:1]": "all rows share one noise; here every row has its own.",
        },
    },
)
def local_reparameterisation(
    a: Any, mu: Any, sigma: Any, mu_b: Any, sigma_b: Any, zeta: Any
) -> Any:
    """Return pre-activations of a layer, drawn instead of its weights.

    Parameters
    ----------
    a : ndarray (B, I)
        Inputs of the layer.
    mu, sigma : ndarray (I, H)
        Means and standard deviations of its weights.
    mu_b, sigma_b : ndarray (H,)
        Means and standard deviations of its biases.
    zeta : ndarray (B, H)
        Standard normal noise.
    """
    variance = a**2 @ sigma**2 + sigma_b**2
    return a @ mu + mu_b + variance**0.5 * zeta


your_own_estimator = Estimator(name="your_own_estimator", tags=("D20", "D23"))
