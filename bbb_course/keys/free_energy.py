"""Chapter 2: the free energy and its gradient by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import formula, positive, real


@formula(
    rho=real("P"),
    returns="sigma",
    tags="K3 D7",
    wrong={
        "np.log(1 + np.exp(rho))": {
            "np.exp(rho)": (
                "exp is taken for softplus: positive as well, but it grows without bound where "
                "softplus is nearly rho."
            ),
            "np.log(1 + np.exp(-rho))": "the sign of rho: sigma must grow with rho.",
            "1 / (1 + np.exp(-rho))": (
                "the sigmoid is taken for softplus, whose derivative it is (K24)."
            ),
            "np.log(1 + np.exp(rho)) ** 2": "this is the variance sigma^2; asked for is sigma.",
            "rho": "rho itself is taken for sigma; it may be negative.",
            "np.log(1 + rho**2)": "a square stands in place of the exponential.",
        },
    },
)
def softplus(rho: Any) -> Any:
    """Return the standard deviation of a weight."""
    return np.log(1 + np.exp(rho))


@formula(
    mu=real("P"),
    rho=real("P"),
    eps=real("SP"),
    returns="w",
    tags="K1 K4",
    wrong={
        "sigma * eps": {
            "rho * eps": "rho is used as the standard deviation; sigma = softplus(rho) is (K3).",
            "sigma**2 * eps": (
                "the noise is multiplied by the variance; multiply by the standard deviation."
            ),
            "eps": "sigma is missing: every weight would have standard deviation 1.",
            "sigma * np.repeat(eps[:1], len(eps), axis=0)": (
                "one row of noise is used for all samples: each sample has its own (K1)."
            ),
            "sigma * eps[:, :1]": (
                "one number is used for all weights of a sample: each weight has its own (K1)."
            ),
        },
        "mu + sigma": {
            "mu - sigma": (
                "the sign of the noise: the weights are distributed as they should, but these are "
                "not the weights of this eps, and every gradient for rho will have another sign."
            ),
            "sigma": "mu is missing.",
        },
    },
)
def from_noise_to_weights(mu: Any, rho: Any, eps: Any) -> Any:
    """Return S samples of the weights.

    Parameters
    ----------
    mu : ndarray (P,)
        Means of the weights.
    rho : ndarray (P,)
        Raw standard deviations; sigma = softplus(rho).
    eps : ndarray (S, P)
        Standard normal noise.
    """
    sigma = np.log(1 + np.exp(rho))
    return mu + sigma * eps


@formula(
    sigma=positive("P"),
    eps=real("SP"),
    returns="log_q",
    tags="K6 K7 K8 K9 K10",
    # whose densities' product is no float
    edge_cases=[(np.full(400, 0.01), np.ones((1, 400)))],
    wrong={
        "-np.log(sigma)": {
            "np.log(sigma)": "the sign of log sigma: a wide density is a low one (K7).",
        },
        "- eps**2 / 2": {
            "+ eps**2 / 2": "the sign of eps^2 / 2: a density falls outwards.",
            "- eps**2": "the half of eps^2 / 2 is missing (K10).",
            "- eps**2 / (2 * sigma**2)": (
                "(w - mu)^2 / sigma^2 is eps^2: sigma is divided by twice."
            ),
        },
        "- np.log(2 * np.pi) / 2": {
            "": (
                "the constant log(2 pi) / 2 of every weight is missing. The report drops it too "
                "(K9), and may: it cancels against the prior's. Here it was asked for."
            ),
            "- np.log(2 * np.pi)": "log of the square root of 2 pi is half of log 2 pi.",
        },
        ", axis=1)": {
            ")[None].repeat(2)": (
                "samples are added up as well: each has a log density of its own, (S,)."
            ),
        },
        "np.sum(": {
            "np.mean(": (
                "the mean over weights stands where a sum belongs: densities of independent "
                "weights multiply. Some published code divides its KL by the number of weights in "
                "this way."
            ),
        },
    },
)
def log_posterior_of_the_noise(sigma: Any, eps: Any) -> Any:
    """Return log q(w) of each sample, in terms of its noise.

    Parameters
    ----------
    sigma : ndarray (P,)
        Standard deviations of the weights.
    eps : ndarray (S, P)
        Standard normal noise from which the weights were computed.
    """
    return np.sum(-np.log(sigma) - eps**2 / 2 - np.log(2 * np.pi) / 2, axis=1)


@formula(
    log_q=real("S"),
    log_prior=real("S"),
    log_likelihood=real("SB"),
    pi=positive(),
    returns="value",
    tags="K5 K17 K18 D6",
    edge_cases=[  # densities whose ratio, and likelihoods whose product, are no floats
        (np.array([800.0, 0.0]), np.array([-900.0, 0.0]), np.full((2, 300), -3.0), 0.5),
    ],
    wrong={
        "- np.sum(log_likelihood, axis=1)": {
            "+ np.sum(log_likelihood, axis=1)": (
                "the sign of the likelihood: F falls when the data become more probable (K5)."
            ),
            "- pi * np.sum(log_likelihood, axis=1)": (
                "the likelihood is multiplied by pi as well; only the complexity is shared (K18). "
                "With pi = 1/n this is the likelihood divided by n."
            ),
        },
        "log_q - log_prior": {
            "log_q + log_prior": "the sign of the prior: the complexity is log q - log P (K5).",
            "log_prior - log_q": (
                "the complexity has the other sign: this rewards a posterior far from the prior."
            ),
        },
        "pi * (log_q - log_prior)": {
            "(log_q - log_prior)": (
                "the share pi is missing: an epoch would pay the complexity once per minibatch "
                "(D6)."
            ),
            "(pi * log_q - log_prior)": (
                "the share pi multiplies log q alone; put brackets around the difference."
            ),
        },
        "np.sum(log_likelihood, axis=1)": {
            "np.mean(log_likelihood, axis=1)": (
                "the likelihood is divided by the number of rows: then the complexity weighs B "
                "times too much."
            ),
        },
        "np.mean(": {
            "np.sum(": (
                "the sum over samples stands where the mean belongs: F is an expectation, and 1/S "
                "is missing (K5, as printed)."
            ),
        },
    },
)
def free_energy(log_q: Any, log_prior: Any, log_likelihood: Any, pi: Any) -> Any:
    """Return the free energy of a minibatch, in nats.

    Parameters
    ----------
    log_q : ndarray (S,)
        Log density of q at each weight sample.
    log_prior : ndarray (S,)
        Log density of the prior at each weight sample.
    log_likelihood : ndarray (S, B)
        Log likelihood of each row under each sample.
    pi : float
        Share of the complexity that this minibatch pays.
    """
    return np.mean(pi * (log_q - log_prior) - np.sum(log_likelihood, axis=1))


@formula(
    mu=real("P"),
    rho=real("P"),
    eps=real("SP"),
    x=real("BP"),
    y=real("B"),
    prior=positive(),
    noise=positive(),
    pi=positive(),
    returns="value d_mu d_rho",
    slopes={"d_mu": "mu", "d_rho": "rho"},
    tags="K18 K19 K20 K21 K22 K23 K24 K25 K26 K27 K28 K29 K30",
    wrong={
        "sigma = np.log(1 + np.exp(rho))": {
            "sigma = np.exp(rho)": "sigma is exp(rho) here; asked for is softplus(rho) (K3).",
        },
        "d_w.mean(axis=0)": {
            "(d_w + pi * eps / sigma).mean(axis=0)": (
                "right but for + eps / sigma: the score is counted twice. Along w = mu + sigma eps "
                "the density log q does not move with mu (K10); its direct and its indirect slope "
                "cancel."
            ),
        },
        "(-pi / sigma + d_w * eps)": {
            "(-pi / sigma + d_w * eps + pi * (eps**2 - 1) / sigma)": (
                "right but for + (eps^2 - 1) / sigma: the score is counted twice (K10)."
            ),
            "(-pi / sigma + d_w * eps + pi * eps / sigma)": (
                "right but for + eps / sigma in rho: the score, of mu even, is counted twice (K10)."
            ),
            "(pi / sigma + d_w * eps)": (
                "the sign of 1 / sigma: -log sigma has the slope -1 / sigma (K25)."
            ),
            "(-pi / sigma + d_w * eps.mean(axis=0))": (
                "eps is averaged before the product: the mean of d_w eps over samples is not the "
                "product of the two means (K28)."
            ),
            "(-pi / sigma + d_w)": "eps is missing: w moves with sigma by eps (K28).",
            "(d_w * eps)": "the slope of -log sigma is missing: the entropy's (K25).",
            "(-1 / sigma + d_w * eps)": (
                "1 / sigma belongs to the complexity: it is multiplied by the share pi, too (K30)."
            ),
            "(-pi / sigma + d_w * eps[::-1])": (
                "the gradient uses other noise than the weights did: eps of another sample, as a "
                "published program does. Its mean lacks the data (K28)."
            ),
        },
        ".mean(axis=0) / (1 + np.exp(-rho))": {
            ".mean(axis=0)": (
                "softplus without its derivative: sigma moves with rho by the sigmoid (K24)."
            ),
            ".mean(axis=0) * sigma": (
                "softplus' is taken for sigma, as if sigma were exp(rho); it is the sigmoid (K24)."
            ),
            ".mean(axis=0) / (1 + np.exp(rho))": "the sign of rho in the sigmoid (K24).",
        },
        "pi * w / prior**2": {
            "pi * w": "the prior's scale is forgotten in its slope w / prior^2 (K21).",
            "pi * w / prior": "the prior's slope is w / prior^2: prior is not squared (K21).",
            "w / prior**2": "the prior's slope belongs to the complexity: multiply it by pi (K18).",
        },
        "- r @ x / noise**2": {
            "- pi * r @ x / noise**2": (
                "the likelihood is multiplied by pi: with pi = 1/n, the likelihood is divided by "
                "n. Only the complexity is shared (K18)."
            ),
            "- r @ x / len(x) / noise**2": "the likelihood is divided by the number of rows (K18).",
            "+ r @ x / noise**2": "the sign of the likelihood's slope, -(y - f) x / noise^2 (K37).",
            "- r @ x": (
                "the slope of the likelihood lacks 1 / noise^2: unit variance, as in the report "
                "(K16)."
            ),
        },
        "-np.log(sigma) + np.log(prior)": {
            "-np.log(sigma) - np.log(prior)": (
                "the sign of log(prior), as printed in K18: -log P(w) has + log(prior). The "
                "gradient does not see it."
            ),
            "-np.log(sigma)": (
                "log(prior) is missing. The gradient does not see it; comparisons of priors do."
            ),
            "np.log(sigma) + np.log(prior)": "the sign of log sigma: log q has -log sigma (K10).",
        },
        "np.log(noise) + LOG_2PI / 2": {
            "LOG_2PI / 2": "log(noise) of every row is missing (K15).",
            "np.log(noise)": (
                "log(2 pi) / 2 of every row is missing: the likelihood's constant is the only one "
                "that does not cancel (K16)."
            ),
        },
        "np.mean(pi * complexity + nll)": {
            "np.mean(complexity + nll)": "the complexity is not multiplied by its share pi (K18).",
            "np.mean(pi * (complexity + nll))": (
                "the likelihood is multiplied by pi as well: with pi = 1/n it is divided by n "
                "(K18)."
            ),
            "np.sum(pi * complexity + nll)": (
                "the samples are added up; their mean is asked for (K5)."
            ),
        },
        "nll = np.sum(": {
            "nll = np.mean(": "the likelihood is divided by the number of rows (K18).",
        },
        "w = mu + sigma * eps": {
            "w = mu + sigma**2 * eps": (
                "the noise of the weights is multiplied by the variance; multiply by sigma (K4)."
            ),
        },
    },
)
def value_and_gradient(
    mu: Any, rho: Any, eps: Any, x: Any, y: Any, prior: Any, noise: Any, pi: Any
) -> Any:
    """Return the free energy of Bayesian linear regression, and its gradient.

    Parameters
    ----------
    mu : ndarray (P,)
        Means of the weights.
    rho : ndarray (P,)
        Raw standard deviations; sigma = softplus(rho).
    eps : ndarray (S, P)
        Standard normal noise of S weight samples.
    x : ndarray (B, P)
        Inputs, a row for each datum.
    y : ndarray (B,)
        Targets.
    prior : float
        Standard deviation of the weights under the prior.
    noise : float
        Standard deviation of y around w . x.
    pi : float
        Share of the complexity that this minibatch pays.

    Returns
    -------
    value : float
        Free energy of the minibatch, in nats.
    d_mu, d_rho : ndarray (P,)
        Its slopes for mu and for rho.
    """
    LOG_2PI = np.log(2 * np.pi)
    sigma = np.log(1 + np.exp(rho))
    w = mu + sigma * eps
    r = y - w @ x.T
    complexity = np.sum(
        -np.log(sigma) + np.log(prior) - eps**2 / 2 + w**2 / (2 * prior**2), axis=1
    )
    nll = np.sum(r**2 / (2 * noise**2) + np.log(noise) + LOG_2PI / 2, axis=1)
    d_w = pi * w / prior**2 - r @ x / noise**2
    d_mu = d_w.mean(axis=0)
    d_rho = (-pi / sigma + d_w * eps).mean(axis=0) / (1 + np.exp(-rho))
    return np.mean(pi * complexity + nll), d_mu, d_rho


@formula(
    x=real("BI"),
    W0=real("IH"),
    b0=real("H"),
    W1=real("HK"),
    b1=real("K"),
    y=real("BK"),
    returns="value d_W0 d_b0 d_W1 d_b1",
    slopes={"d_W0": "W0", "d_b0": "b0", "d_W1": "W1", "d_b1": "b1"},
    tags="K31 K32 K36 K37 K38 K39 K40 K41 K42",
    sizes={"B": 2, "I": 2, "H": 2, "K": 2},
    edge_cases=[  # units at 0, which are off
        (
            np.array([[0.0, 0.0], [1.0, 1.0]]),
            np.array([[1.0, -1.0], [2.0, 1.0]]),
            np.zeros(2),
            np.array([[1.0, 2.0], [-1.0, 3.0]]),
            np.ones(2),
            np.zeros((2, 2)),
        ),
    ],
    wrong={
        "delta1 @ W1.T": {
            "delta1 * W1": (
                "K40's factors elementwise: delta times W1, entry by entry. With square matrices "
                "it has the right shape and wrong values; the product of matrices is delta @ W1.T."
            ),
            "delta1 @ W1": (
                "W1 is not transposed: backwards one goes from outputs to hidden units (K39)."
            ),
        },
        ".T) * (z0 > 0)": {
            ".T)": "ReLU without its derivative: units that are off pass no slope (K39).",
            ".T) * a0": (
                "the gate is multiplied by the activation; ReLU's slope is 1 where z > 0 (K39)."
            ),
        },
        "x.T @ delta0": {
            "x.T * delta0": (
                "the input times delta, entry by entry: the rows of the minibatch must be added "
                "up, x.T @ delta (K42)."
            ),
            "x * delta0": (
                "the input times delta, entry by entry and row by row: add up the rows, x.T @ "
                "delta."
            ),
            "delta0.T @ x": "it is transposed: W0 maps inputs to hidden units.",
        },
        "a0.T @ delta1": {
            "a0 * delta1": (
                "the activation times delta, entry by entry and row by row: add up the rows, a.T @ "
                "delta."
            ),
            "a0.T * delta1": (
                "the activation times delta, entry by entry: the rows must be added up, a.T @ "
                "delta (K38)."
            ),
            "z0.T @ delta1": "z stands where the activation belongs: W1 multiplies ReLU(z) (K38).",
            "delta1.T @ a0": "it is transposed: W1 maps hidden units to outputs.",
        },
        "delta1.sum(axis=0)": {
            "delta1.sum(axis=1)": (
                "the sum runs over outputs; a bias meets every row, so rows are added up (K37)."
            ),
            "delta1.mean(axis=0)": "the mean over rows stands where their sum belongs (K37).",
        },
        "delta0.sum(axis=0)": {
            "delta0.sum(axis=1)": (
                "the sum runs over units; a bias meets every row, so rows are added up (K41)."
            ),
            "delta0.mean(axis=0)": "the mean over rows stands where their sum belongs (K41).",
        },
        "delta1 = f - y": {
            "delta1 = y - f": (
                "the sign of the first delta: -(y - f). Everything behind it has the other sign "
                "(K37)."
            ),
        },
        "z0 = x @ W0 + b0": {
            "z0 = x @ W0": "b0 is left out of the forward pass: units open elsewhere (K31).",
        },
        "f = a0 @ W1 + b1": {
            "f = a0 @ W1": "b1 is left out of the forward pass (K36).",
            "f = np.maximum(a0 @ W1 + b1, 0)": "there is a ReLU at the output: K36 has none.",
        },
        "np.sum((y - f) ** 2) / 2": {
            "np.sum((y - f) ** 2)": "the half is missing (K16).",
            "np.mean((y - f) ** 2) / 2": (
                "the mean over rows and outputs stands where the sum belongs (K16)."
            ),
        },
    },
)
def backward_pass(x: Any, W0: Any, b0: Any, W1: Any, b1: Any, y: Any) -> Any:
    """Return half the sum of squares of a network with one hidden layer, and slopes."""
    z0 = x @ W0 + b0
    a0 = z0 * (z0 > 0)
    f = a0 @ W1 + b1
    delta1 = f - y
    delta0 = (delta1 @ W1.T) * (z0 > 0)
    return (
        np.sum((y - f) ** 2) / 2,
        x.T @ delta0,
        delta0.sum(axis=0),
        a0.T @ delta1,
        delta1.sum(axis=0),
    )
