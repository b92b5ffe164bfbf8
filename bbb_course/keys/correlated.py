"""Chapter 9: correlated posteriors and ADVI."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import formula, positive, real, unit


@formula(
    mu=real("P"),
    C=real("PP"),
    eps=real("SP"),
    returns="w",
    tags="M1",
    wrong={
        "eps @ np.tril(C).T": {
            "eps @ np.tril(C)": (
                "C is not transposed: rows of eps are vectors, and w = mu + C eps for each."
            ),
            "eps @ C.T": (
                "what stands above the diagonal of C counts: only its lower triangle is there."
            ),
            "eps @ (np.tril(C) @ np.tril(C).T)": (
                "eps is multiplied by the covariance C C^T; its factor C is enough."
            ),
            "eps * np.diag(C)": "only the diagonal is used: mean field.",
            "eps @ np.tril(C, -1).T": "the diagonal of C is left out.",
        },
    },
)
def weights_that_hang_together(mu: Any, C: Any, eps: Any) -> Any:
    """Return S samples of N(mu, C C^T).

    Parameters
    ----------
    mu : ndarray (P,)
        Means of the weights.
    C : ndarray (P, P)
        Factor of the covariance; above its diagonal it does not count.
    eps : ndarray (S, P)
        Standard normal noise, a sample in each row.

    Returns
    -------
    w : ndarray (S, P)
        Weights, a sample in each row.
    """
    return mu + eps @ np.tril(C).T


@formula(
    C=real("PP"),
    rho=real("P"),
    d_w=real("SP"),
    eps=real("SP"),
    returns="d_C d_rho",
    tags="M3",
    edge_cases=[(np.zeros((2, 2)), np.zeros(2), np.ones((1, 2)), np.ones((1, 2)))],
    wrong={
        "np.tril(outer, -1)": {
            "outer - np.diag(np.diag(outer))": (
                "there are slopes above the diagonal, where C has no numbers: as printed in the "
                "paper (M3)."
            ),
            "outer": (
                "it is not cut: what stands above the diagonal is no parameter (M3), and the "
                "diagonal's slopes are those of d_rho."
            ),
            "np.tril(outer)": (
                "the diagonal is there as well: its slopes are those of d_rho, through softplus."
            ),
        },
        "d_w.T @ eps / len(eps)": {
            "eps.T @ d_w / len(eps)": "it is transposed: row i belongs to w_i, column j to eps_j.",
            "d_w.T @ eps": "the mean over samples is a sum here.",
            "np.outer(np.mean(d_w, axis=0), np.mean(eps, axis=0))": (
                "d_w and eps are averaged before the product: the mean of products is not the "
                "product of means."
            ),
        },
        "np.diag(outer) - 1 / diagonal": {
            "np.diag(outer)": "the entropy's slope -1 / C_kk is missing (M4).",
            "np.diag(outer) + 1 / diagonal": "the sign of 1 / C_kk: F holds minus the entropy.",
            "np.diag(outer) - 1 / len(eps) / diagonal": (
                "the entropy is divided by the number of samples."
            ),
        },
        " / (1 + np.exp(-rho))": {
            "": "softplus without its derivative: C_kk = softplus(rho_k) (K24).",
        },
    },
)
def gradient_for_the_factor(C: Any, rho: Any, d_w: Any, eps: Any) -> Any:
    """Return slopes for the strict lower triangle of C and for the raw diagonal.

    Parameters
    ----------
    C : ndarray (P, P)
        Factor of the covariance, used below its diagonal only.
    rho : ndarray (P,)
        Raw diagonal; C_kk = softplus(rho_k).
    d_w : ndarray (S, P)
        Slope for the weights of everything but log q.
    eps : ndarray (S, P)
        Standard normal noise of S weight samples.

    Returns
    -------
    d_C : ndarray (P, P)
        Slopes below the diagonal, zeros elsewhere.
    d_rho : ndarray (P,)
        Slopes for rho.
    """
    diagonal = np.log(1 + np.exp(rho))
    outer = d_w.T @ eps / len(eps)
    return np.tril(outer, -1), (np.diag(outer) - 1 / diagonal) / (1 + np.exp(-rho))


@formula(
    diagonal=positive("P"),
    below=real("P"),
    returns="entropy",
    tags="M4 M16",
    wrong={
        "np.sum(np.log(diagonal))": {
            "2 * np.sum(np.log(diagonal))": (
                "this is log det of the covariance; half of it is log det C."
            ),
            "-np.sum(np.log(diagonal))": "the sign: a wider distribution has more entropy.",
            "np.sum(np.log(diagonal)) + np.sum(np.log(1 + below**2)) / 2": (
                "numbers below the diagonal do not change the determinant."
            ),
        },
        "(1 + np.log(2 * np.pi))": {
            "np.log(2 * np.pi)": "E[eps^2] / 2 = 1/2 of every weight is missing.",
        },
        "len(diagonal) / 2 * (1 + np.log(2 * np.pi))": {
            "(1 + np.log(2 * np.pi)) / 2": "the constant is counted once; every weight has one.",
        },
        "np.sum(np.log(diagonal)) + len(diagonal) / 2 * (1 + np.log(2 * np.pi))": {
            "-np.sum(np.log(diagonal)) - len(diagonal) / 2 * (1 + np.log(2 * np.pi))": (
                "this is E[log q], which the paper calls the entropy; it is minus the entropy (M4)."
            ),
        },
    },
)
def entropy_of_full_rank(diagonal: Any, below: Any) -> Any:
    """Return the entropy of N(mu, C C^T), in nats.

    Parameters
    ----------
    diagonal : ndarray (P,)
        Diagonal of C, positive.
    below : ndarray (P,)
        Some numbers of C below its diagonal.
    """
    return np.sum(np.log(diagonal)) + len(diagonal) / 2 * (1 + np.log(2 * np.pi))


@formula(
    zeta=real("P"),
    a=positive(),
    b=positive(),
    returns="value d_zeta",
    slopes={"d_zeta": "zeta"},
    tags="M14 M15 M17",
    wrong={
        "a * zeta -": {
            "(a - 1) * zeta -": (
                "the Jacobian is missing: this is the posterior under another prior (M14). Value "
                "and gradient agree, so no gradient check sees it."
            ),
            "(a - 2) * zeta -": (
                "the sign of the Jacobian: log |d theta / d zeta| = + zeta."
            ),
        },
        "slope = a -": {
            "slope = a - 1 -": "the slope of the Jacobian, 1, is missing.",
        },
        "a - b * np.exp(zeta)\n": {
            "(a - 1) / np.exp(zeta) - b\n": (
                "this is the slope for theta: multiply by d theta / d zeta and add the Jacobian's."
            ),
            "a - b + 0 * zeta\n": "the chain rule: theta = exp(zeta) moves with zeta by exp(zeta).",
        },
    },
)
def log_joint_in_real_coordinates(zeta: Any, a: Any, b: Any) -> Any:
    """Return the log density of zeta = log theta, theta of a Gamma, and its slope.

    Parameters
    ----------
    zeta : ndarray (P,)
        Logarithms of theta.
    a, b : float
        Shape and rate of the Gamma density of theta.

    Returns
    -------
    value : float
        Log density of zeta, added up over P, without its constant.
    d_zeta : ndarray (P,)
        Its slope for zeta.
    """
    slope = a - b * np.exp(zeta)
    return np.sum(a * zeta - b * np.exp(zeta)), slope


@formula(
    r=unit(),
    returns="reverse inclusive gap",
    tags="D28 D8",
    wrong={
        "1 - r**2, ": {
            "1 + 0 * r, ": (
                "this is the marginal variance, which the inclusive divergence finds; the reverse "
                "one finds 1 over the diagonal of the precision."
            ),
            "1 / (1 - r**2), ": "this is the precision's diagonal itself.",
            "(1 - r**2) ** 0.5, ": "this is the standard deviation; asked for is the variance.",
        },
        "1 + 0 * r, ": {
            "1 - r**2, ": "the inclusive divergence matches the marginal variances."
        },
        "-np.log(1 - r**2) / 2": {
            "np.log(1 - r**2) / 2": "the sign: a divergence is positive.",
            "-np.log(1 - r**2)": "the half is missing.",
            "-np.log(1 - r) / 2": "r is not squared.",
        },
    },
)
def price_of_mean_field(r: Any) -> Any:
    """Variances by reverse and inclusive KL for correlation r, and the gap."""
    return 1 - r**2, 1 + 0 * r, -np.log(1 - r**2) / 2


@formula(
    log_alpha=real(),
    log_beta=real(),
    d=positive("P"),
    squares=positive(),
    misfit=positive(),
    rows=positive(),
    returns="value d_log_alpha d_log_beta",
    slopes={"d_log_alpha": "log_alpha", "d_log_beta": "log_beta"},
    tags="D54 D55",
    wrong={
        "gamma = np.sum(beta * d / (beta * d + alpha))": {
            "gamma = float(len(d))": (
                "all weights are counted; gamma counts those that the data determine, d beta / "
                "(d beta + alpha) of each."
            ),
            "gamma = np.sum(alpha / (beta * d + alpha))": (
                "this counts the weights that the prior determines: len(d) - gamma."
            ),
        },
        " - np.sum(np.log(beta * d + alpha))": {
            "": (
                "log |H| is missing: the joint density at the mode is left, which grows as long "
                "as the weights fit better. The evidence integrates over them."
            ),
            " + np.sum(np.log(beta * d + alpha))": (
                "the sign of log |H|: a narrow posterior has little volume."
            ),
        },
        "len(d) * log_alpha": {
            "log_alpha": "the prior has a constant for every weight, len(d) times log alpha.",
        },
        "(gamma - alpha * squares)": {
            "(gamma - squares)": "alpha is missing: the slope is for its logarithm, alpha |w|^2.",
        },
        "(rows - beta * misfit - gamma)": {
            "(rows - beta * misfit)": (
                "gamma is missing: this ends at E / N, the noise of maximum likelihood, which is "
                "too small by what the weights have fitted of it."
            ),
        },
    },
)
def evidence_and_its_slopes(
    log_alpha: Any, log_beta: Any, d: Any, squares: Any, misfit: Any, rows: Any
) -> Any:
    """Return the log evidence around a mode but for a constant, and its slopes.

    Parameters
    ----------
    log_alpha : float
        Log precision of the prior.
    log_beta : float
        Log precision of the noise.
    d : ndarray (P,)
        Curvatures of the squared errors in their P directions.
    squares : float
        Squared length |w|^2 of the weights at the mode.
    misfit : float
        Sum E of squared residuals at the mode.
    rows : float
        Number N of rows.

    Returns
    -------
    value : float
        Log evidence, in nats.
    d_log_alpha, d_log_beta : float
        Its slopes for log alpha and for log beta.
    """
    alpha = np.exp(log_alpha)
    beta = np.exp(log_beta)
    gamma = np.sum(beta * d / (beta * d + alpha))
    value = rows * log_beta - beta * misfit + len(d) * log_alpha - alpha * squares
    volume = value - np.sum(np.log(beta * d + alpha))
    return volume / 2, (gamma - alpha * squares) / 2, (rows - beta * misfit - gamma) / 2


@formula(
    a=real("P"),
    v=real("P"),
    returns="log_q d_a d_v",
    slopes={"d_a": "a", "d_v": "v"},
    tags="D59",
    wrong={
        "np.log(m) +": {
            "": "log(1 + |v|^2), the volume, is missing.",
            "2 * np.log(m) +": (
                "the determinant of a covariance is a squared volume: its logarithm is halved."
            ),
        },
        "- c**2 * m)": {
            "- c**2)": "(v . a)^2 / m is c^2 m: c has been divided by m twice.",
            "+ c**2 * m)": (
                "the sign: weights that move together as v says are likelier, not less likely."
            ),
        },
        "c * v - a,": {
            "-a,": "this is the slope for independent weights.",
        },
        "c * (a - c * v) - v / m": {
            "c * a - v / m": "m moves with v as well, in the last term too: - c^2 v.",
            "c * (a - c * v)": "the slope of the volume, -v / m, is missing.",
        },
    },
)
def density_of_low_rank(a: Any, v: Any) -> Any:
    """Return the log density of N(0, I + v v^T) but for a constant, and its slopes.

    Parameters
    ----------
    a : ndarray (P,)
        Weights, in units of their standard deviations.
    v : ndarray (P,)
        Loadings of the noise that all weights see.

    Returns
    -------
    log_q : float
        Log density of a.
    d_a, d_v : ndarray (P,)
        Its slopes for a and for v.
    """
    m = 1 + v @ v
    c = v @ a / m
    value = -(np.log(m) + a @ a - c**2 * m) / 2
    return value, c * v - a, c * (a - c * v) - v / m


@formula(
    path=real("TP"),
    diagonal_noise=real("P"),
    low_rank_noise=real("T"),
    returns="mean variance draw",
    tags="D80",
    wrong={
        "mean = np.sum(path, axis=0) / len(path)": {
            "mean = path[-1]": "this is where the path ends; its mean is what SWAG predicts with.",
        },
        "deviations = path - mean": {
            "deviations = path": "the mean is not subtracted: second moments are no variances.",
        },
        "np.sum(deviations**2, axis=0) / (len(path) - 1)": {
            "np.sum(deviations**2, axis=0) / len(path)": (
                "squares are divided by T; of a sample of T the variance is divided by T - 1."
            ),
            "np.sum(deviations**2, axis=0) / (len(path) - 1) / 2": (
                "a half too many: the halves of the covariance add as much to a variance each, and "
                "noise is multiplied by the root of one."
            ),
            "3 * np.sum(deviations**2, axis=0) / (len(path) - 1) / 2": (
                "the half of the low rank is counted whole."
            ),
        },
        "(variance / 2) ** 0.5 * diagonal_noise": {
            "variance**0.5 * diagonal_noise": (
                "the root of 1/2 is missing before the diagonal half."
            ),
            "variance / 2 * diagonal_noise": (
                "noise is multiplied by a standard deviation, not a variance."
            ),
        },
        "low_rank_noise @ deviations / (2 * (len(path) - 1)) ** 0.5": {
            "low_rank_noise @ deviations / (len(path) - 1) ** 0.5": (
                "the root of 1/2 is missing before the half of low rank."
            ),
            "low_rank_noise @ deviations / (2 * len(path)) ** 0.5": (
                "its covariance is divided by T - 1, not T."
            ),
            "low_rank_noise @ deviations / 2**0.5": (
                "it grows with T: the root of T - 1 is missing."
            ),
            "np.sum(low_rank_noise) * np.sum(deviations, axis=0)": (
                "each snapshot has a number of its own; deviations add up to 0 over the path."
            ),
        },
    },
)
def swag(path: Any, diagonal_noise: Any, low_rank_noise: Any) -> Any:
    """Return mean and variances of a path, and one draw of the Gaussian made of it.

    Parameters
    ----------
    path : ndarray (T, P)
        Weights after each of T epochs.
    diagonal_noise : ndarray (P,)
        Standard normal noise of the diagonal half.
    low_rank_noise : ndarray (T,)
        Standard normal noise of the half of low rank.

    Returns
    -------
    mean, variance, draw : ndarray (P,)
        Mean and variances of the weights, and the draw.
    """
    mean = np.sum(path, axis=0) / len(path)
    deviations = path - mean
    variance = np.sum(deviations**2, axis=0) / (len(path) - 1)
    spread = low_rank_noise @ deviations / (2 * (len(path) - 1)) ** 0.5
    return mean, variance, mean + (variance / 2) ** 0.5 * diagonal_noise + spread


@formula(
    w=real("I"),
    x=real("BI"),
    y=real("B"),
    eps=real("B"),
    eps_prior=real("I"),
    sigma=positive(),
    s=positive(),
    returns="value d_w",
    slopes={"d_w": "w"},
    tags="D78",
    edge_cases=[
        (  # a row that says nothing of the second weight
            np.array([0.5, -1.0]),
            np.array([[2.0, 0.0]]),
            np.array([1.0]),
            np.array([0.5]),
            np.array([1.0, -2.0]),
            0.5,
            2.0,
        ),
    ],
    wrong={
        "y + sigma * eps": {
            "y": "the targets have no noise of their own: the member's spread is too small.",
            "y + eps": "the noise of the targets has the standard deviation sigma.",
            "y + sigma**2 * eps": "noise is multiplied by a standard deviation, not a variance.",
            "sigma * eps": "the noise is added to the targets; it does not replace them.",
        },
        "anchor = s * eps_prior": {
            "anchor = 0 * eps_prior": (
                "the weights are drawn to 0: directions without data have no spread."
            ),
            "anchor = eps_prior": "the anchor is a draw of the prior: s times the noise.",
            "anchor = s**2 * eps_prior": (
                "the anchor is s times the noise: s is a standard deviation."
            ),
        },
        "np.sum(residual**2) / (2 * sigma**2)": {
            "np.mean(residual**2) / (2 * sigma**2)": (
                "the value is divided by the number of rows: the likelihood is a sum."
            ),
            "np.sum(residual**2) / sigma**2": "a half is missing before the squared residuals.",
            "np.sum(residual**2) / 2": (
                "the squared residuals are divided by sigma^2: without it the prior weighs too "
                "much or too little."
            ),
        },
        "np.sum(offset**2) / (2 * s**2)": {
            "np.sum(offset**2) / s**2": "a half is missing before the prior's squares.",
            "np.sum(offset**2) / 2": "the prior's squares are divided by s^2.",
        },
        "offset / s**2 - x.T @ residual / sigma**2": {
            "offset / s**2 + x.T @ residual / sigma**2": "the sign of the data's slope.",
            "-x.T @ residual / sigma**2": "the prior's slope is missing.",
            "offset / s**2 - x.T @ residual": "the data's slope is divided by sigma^2.",
            "offset - x.T @ residual / sigma**2": "the prior's slope is divided by s^2.",
        },
    },
)
def anchored_member(
    w: Any, x: Any, y: Any, eps: Any, eps_prior: Any, sigma: Any, s: Any
) -> Any:
    """Return the cost of an anchored member and its slope.

    Parameters
    ----------
    w : ndarray (I,)
        Weights of the member while it is trained.
    x : ndarray (B, I)
        Rows.
    y : ndarray (B,)
        Targets.
    eps : ndarray (B,)
        Standard normal noise of the targets.
    eps_prior : ndarray (I,)
        Standard normal noise of the prior.
    sigma : float
        Standard deviation of y around x w.
    s : float
        Standard deviation of the prior.

    Returns
    -------
    value : float
        Cost of w.
    d_w : ndarray (I,)
        Its slope for w.
    """
    targets = y + sigma * eps
    anchor = s * eps_prior
    residual = targets - x @ w
    offset = w - anchor
    value = np.sum(residual**2) / (2 * sigma**2) + np.sum(offset**2) / (2 * s**2)
    d_w = offset / s**2 - x.T @ residual / sigma**2
    return value, d_w
