"""Chapter 8: bounds around the evidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import formula, positive, real


@formula(
    log_weights=real("S"),
    returns="elbo iwae",
    tags="K5 D25 R3",
    sizes={"S": 4},
    edge_cases=[(np.array([-40.0, -38.0]),)],
    wrong={
        "np.log(np.mean(np.exp(log_weights)))": {
            "np.log(np.sum(np.exp(log_weights)))": (
                "log S is missing: the weights are averaged before the logarithm."
            ),
            "np.mean(log_weights)": (
                "this is the ELBO again: the logarithm stands outside the mean."
            ),
            "np.mean(np.exp(log_weights))": (
                "the logarithm is missing: the evidence is estimated, not its logarithm."
            ),
        },
        "np.mean(log_weights), ": {
            "np.sum(log_weights), ": "1/S is missing.",
            "-np.mean(log_weights), ": "this is the free energy; the bound is minus it.",
        },
    },
)
def importance_weighted_bound(log_weights: Any) -> Any:
    """Return the estimates of the ELBO and of the importance-weighted bound."""
    return np.mean(log_weights), np.log(np.mean(np.exp(log_weights)))


@formula(
    log_weights=real("S"),
    alpha=positive(),
    returns="value u",
    slopes={"u": "log_weights"},
    tags="D25",
    sizes={"S": 4},
    edge_cases=[(np.array([0.0, 2.0]), alpha) for alpha in (0.96, 0.99, 1.01, 1.04)],
    wrong={
        "np.log(np.mean(e)) / (1 - alpha)": {
            "np.log(np.sum(e)) / (1 - alpha)": "log S is missing: the powers are averaged.",
            "np.log(np.mean(e)) / (alpha - 1)": (
                "the sign of 1 - alpha: this is the divergence's factor, not the bound's."
            ),
            "np.log(np.mean(e))": "1 / (1 - alpha) is missing.",
        },
        "e / np.sum(e)": {
            "np.exp(log_weights) / np.sum(np.exp(log_weights))": (
                "the weights of the gradient are those of alpha = 0: they have the power 1 - alpha."
            ),
            "e / np.sum(e) * (1 - alpha)": (
                "the factor 1 - alpha cancels against 1 / (1 - alpha)."
            ),
            "e / np.mean(e)": "they are divided by the mean, not by the sum: S times too large.",
        },
        "(1 - alpha) * log_weights": {
            "alpha * log_weights": "the power is 1 - alpha, not alpha."
        },
    },
)
def renyi_bound(log_weights: Any, alpha: Any) -> Any:
    """Return the Renyi bound's estimate, and its slope for the log weights.

    Parameters
    ----------
    log_weights : ndarray (S,)
        Log importance weights, log P(w, D) - log q(w).
    alpha : float
        Order of the divergence, not 1.

    Returns
    -------
    value : float
        Estimate of the bound, in nats.
    u : ndarray (S,)
        Its slope for log_weights.
    """
    e = np.exp((1 - alpha) * log_weights)
    return np.log(np.mean(e)) / (1 - alpha), e / np.sum(e)


@formula(
    log_weights=real("S"),
    eps=real("SP"),
    sigma=positive("P"),
    returns="d_mu d_sigma",
    tags="G1 G4 G7 G8",
    sizes={"S": 4},
    wrong={
        "share / np.sum(share)": {
            "share": (
                "the weights are not divided by their sum, a step that Algorithm 1 lacks (G7)."
            ),
            "np.ones_like(share) / len(share)": (
                "all samples count alike: this has mean 0 and learns nothing (G1)."
            ),
        },
        "-(share @ eps) / sigma": {
            "(share @ eps) / sigma": (
                "the sign: the bound falls when log q rises where the posterior is (G4)."
            ),
            "0 * (share @ eps)": (
                "log q is differentiated through the samples: they are held fixed here (G8)."
            ),
            "-(share @ eps)": "1 / sigma is missing in d_mu.",
        },
        "(share @ (1 - eps**2)) / sigma": {
            "(share @ (eps**2 - 1)) / sigma": "the sign of the slope for sigma.",
            "1 / sigma + 0 * (share @ eps)": (
                "log q is differentiated through the samples: sigma would shrink to 0 (G8)."
            ),
            "share @ (1 - eps**2)": "1 / sigma is missing in d_sigma.",
        },
    },
)
def gradient_of_the_upper_bound(log_weights: Any, eps: Any, sigma: Any) -> Any:
    """Return the gradient of the evidence upper bound by self-normalised weights.

    Parameters
    ----------
    log_weights : ndarray (S,)
        Log importance weights, log P(w, D) - log q(w).
    eps : ndarray (S, P)
        Standard normal noise of the samples.
    sigma : ndarray (P,)
        Standard deviations of the weights.

    Returns
    -------
    d_mu, d_sigma : ndarray (P,)
        Slopes of the bound for mu and for sigma.
    """
    share = np.exp(log_weights)
    share = share / np.sum(share)
    return -(share @ eps) / sigma, (share @ (1 - eps**2)) / sigma


@formula(
    log_weights=real("S"),
    d_w=real("SP"),
    eps=real("SP"),
    sigma=positive("P"),
    returns="d_mu d_sigma",
    tags="D26",
    sizes={"S": 4},
    wrong={
        "share**2 @ path": {
            "share @ path": (
                "the weights are not squared: sticking the landing inside the bound is biased "
                "(D26)."
            ),
        },
        "share**2 @ (path * eps)": {
            "share @ (path * eps)": "the weights are not squared: this is biased (D26).",
            "(share**2 @ path) * np.mean(eps, axis=0)": (
                "eps is averaged before the product: the sum over samples of path times eps is "
                "not the product of a sum and a mean."
            ),
            "share**2 @ path": "eps is missing: w moves with sigma by eps.",
        },
        "path = d_w - eps / sigma": {
            "path = d_w": "log q's path through w, -eps / sigma, is missing (D20).",
            "path = d_w + eps / sigma": "the sign of eps / sigma: d log q / d w = -eps / sigma.",
        },
    },
)
def doubly_reparameterised(log_weights: Any, d_w: Any, eps: Any, sigma: Any) -> Any:
    """Return the doubly reparameterised gradient of minus the importance-weighted bound.

    Parameters
    ----------
    log_weights : ndarray (S,)
        Log importance weights, log P(w, D) - log q(w).
    d_w : ndarray (S, P)
        Slope for the weights of minus the log joint density.
    eps : ndarray (S, P)
        Standard normal noise of the samples.
    sigma : ndarray (P,)
        Standard deviations of the weights.

    Returns
    -------
    d_mu, d_sigma : ndarray (P,)
        Slopes of minus the bound for mu and for sigma.
    """
    share = np.exp(log_weights) / np.sum(np.exp(log_weights))
    path = d_w - eps / sigma
    return share**2 @ path, share**2 @ (path * eps)
