"""Chapter 4: prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exercise import formula, positive, real, shares, unit

Array = NDArray[Any]


def _log_mean_cases(*cases: Array) -> list[tuple[Array, Array]]:
    """Return each log_density (S, B) with the logarithms of its mean densities."""
    return [
        (
            case,
            case.max(axis=0) + np.log(np.mean(np.exp(case - case.max(axis=0)), axis=0)),
        )
        for case in cases
    ]


@formula(
    f=real("SB"),
    noise=positive(),
    returns="mean epistemic total",
    tags="D4 R10",
    sizes={"S": 4},
    edge_cases=[
        (1e6 + np.array([[0.1], [-0.3], [0.7]]), 0.5),  # prices, whose squares cancel
        *((size * np.array([[1.0], [-1.0]]), size) for size in (1e-9, 1e-4)),
    ],
    wrong={
        "(len(f) - 1)": {
            "len(f)": (
                "the squares are divided by S; of a sample of S functions the variance is divided "
                "by S - 1."
            ),
        },
        "epistemic + noise**2": {
            "2500 * epistemic": (
                "the epistemic standard deviation is multiplied by fifty, as in a published "
                "figure, and the noise is missing."
            ),
            "epistemic": (
                "the noise of y is missing in the total: a band of the mean is drawn as a band of "
                "y."
            ),
            "epistemic + noise": (
                "the noise is a standard deviation: square it before it is added to a variance."
            ),
            "(epistemic**0.5 + noise) ** 2": (
                "standard deviations are added; the variances of independent numbers add up."
            ),
            "epistemic + noise**2 / len(f)": (
                "the noise is divided by S: it does not shrink when more functions are drawn."
            ),
        },
        "np.sum((f - mean) ** 2, axis=0)": {
            "np.sum(f**2, axis=0)": "the mean is not subtracted before squaring.",
        },
    },
)
def mean_and_variances(f: Any, noise: Any) -> Any:
    """Return mean, epistemic and total variance of the predictive distribution.

    Parameters
    ----------
    f : ndarray (S, B)
        Values of S functions at B inputs.
    noise : float
        Standard deviation of y around f.

    Returns
    -------
    mean, epistemic, total : ndarray (B,)
        Mean of f, variance of f, and variance of a new y.
    """
    mean = np.sum(f, axis=0) / len(f)
    epistemic = np.sum((f - mean) ** 2, axis=0) / (len(f) - 1)
    return mean, epistemic, epistemic + noise**2


@formula(
    log_density=real("SB"),
    returns="log_predictive",
    tags="D5",
    floor=1.0,
    wrong={
        "np.log(np.mean(np.exp(log_density), axis=0))": {
            "np.mean(log_density, axis=0)": (
                "this is the mean of the logarithms; the density is averaged first. By Jensen's "
                "inequality this is too small."
            ),
        },
        "np.mean(": {
            "np.sum(": "1/S is missing: the densities are added up, not averaged."
        },
        "np.log(np.mean(": {
            "(np.mean(": "the logarithm is missing.",
            "-np.log(np.mean(": (
                "this is the negative log density, a loss; the log density is asked for."
            ),
        },
        "axis=0))": {
            "axis=0)).sum().repeat(log_density.shape[1])": (
                "rows are added up; each row has a log density of its own."
            ),
        },
    },
    extremes=_log_mean_cases(
        *(np.full((2, 1), height) for height in (-1000.0, -20_000.0, 20_000.0)),
        np.array([[-740.0], [-745.0]]),  # a density that has lost digits, and is not 0
        # whichever is the largest: the first, the last, one that mean and median are far from
        *(
            np.array([row]).T
            for row in ([800.0, 0.0], [0.0, 800.0], [0.0, 0.0, 800.0], [800.0, -1000.0])
        ),
        # rows of very different height, each by its own largest
        np.array([[-1000.0, 0.0], [-1000.0, 0.0]]),
        np.array([[-1000.0, 700.0, 1.0], [-2000.0, 800.0, 2.0], [-1500.0, 750.0, 3.0]]),
    ),
)
def log_predictive_density(log_density: Any) -> Any:
    """Log of the mean density over samples."""
    return np.log(np.mean(np.exp(log_density), axis=0))


@formula(
    mu=real(),
    sigma=positive(),
    x=real("B"),
    returns="mean at_the_mean",
    tags="R9",
    edge_cases=[(0.0, 1e-9, np.array([3e9, -2e9]))],
    wrong={
        "(mu**2 + sigma**2) * x**2": {
            "mu**2 * x**2": (
                "this is the prediction of the mean weight; E[w^2] has sigma^2 as well."
            ),
            "sigma**2 * x**2": "mu^2 is missing in E[w^2].",
            "(mu**2 + sigma) * x**2": "sigma is a standard deviation: E[w^2] = mu^2 + sigma^2.",
            "(mu + sigma) ** 2 * x**2": "this is w^2 at w = mu + sigma.",
        },
    },
)
def mean_of_functions(mu: Any, sigma: Any, x: Any) -> Any:
    """Return the mean of (w x)^2 over w, and (w x)^2 at the mean of w.

    Parameters
    ----------
    mu, sigma : float
        Mean and standard deviation of w.
    x : ndarray (B,)
        Inputs.

    Returns
    -------
    mean : ndarray (B,)
        Mean of (w x)^2 over w.
    at_the_mean : ndarray (B,)
        (w x)^2 at w = mu.
    """
    return (mu**2 + sigma**2) * x**2, mu**2 * x**2


@formula(
    p=shares("SC"),
    returns="total aleatoric epistemic",
    tags="D29",
    edge_cases=[(np.array([[1e-8, 1 - 1e-8], [2e-8, 1 - 2e-8]]),)],
    wrong={
        "aleatoric = -np.mean(np.sum(p * np.log(p), axis=1))": {
            "aleatoric = -np.sum(mean * np.log(mean))": (
                "this is the entropy of the mean; aleatoric is the mean of the entropies."
            ),
        },
        "total = -np.sum(mean * np.log(mean))": {
            "total = -np.mean(np.sum(p * np.log(p), axis=1))": (
                "this is the mean of the entropies; total is the entropy of the mean."
            ),
            "total = np.sum(mean * np.log(mean))": "the sign of the entropy.",
            "total = -np.sum(mean * np.log(mean) / np.log(2))": (
                "these are bits; the book counts in nats."
            ),
        },
        "total - aleatoric": {
            "aleatoric - total": "the sign: the entropy of the mean is the larger one.",
            "total + aleatoric": "the parts add up to the total: epistemic is the difference.",
        },
    },
)
def entropy_of_a_class(p: Any) -> Any:
    """Entropy of the predicted class, split."""
    mean = np.mean(p, axis=0)
    total = -np.sum(mean * np.log(mean))
    aleatoric = -np.mean(np.sum(p * np.log(p), axis=1))
    return total, aleatoric, total - aleatoric


@formula(
    nll=positive(),
    kl=positive(),
    rows=positive(),
    price=positive(),
    returns="value d_nll d_kl",
    slopes={"d_nll": "nll", "d_kl": "kl"},
    tags="D57 D58",
    # many rows: r and k are small
    edge_cases=[(5.0, 1e-3, 1e9, 10.0), (5.0, 1e-3, 1e13, 15.0)],
    wrong={
        "(kl + price) / (2 * rows)": {
            "kl / (2 * rows)": (
                "the price of certainty, log(2 sqrt(N) / delta), is missing: rows mislead even "
                "where q is the prior."
            ),
            "(kl + price) / rows": "k is half of what bounds the kl of two shares: 2 N below.",
        },
        "nll / unit + small**2": {
            "nll / unit": (
                "k is missing under the first root, sqrt(r + k): this promises too much."
            ),
        },
        "unit * (large + small) ** 2": {
            "rows * (large + small) ** 2": "log 2 is missing: r is counted in bits, nll in nats.",
            "unit * (large**2 + small**2)": (
                "the square of a sum has a product in it, 2 sqrt(r + k) sqrt(k)."
            ),
        },
        "(large + small) / large,": {
            "1 + 0 * nll,": (
                "the slope for nll is taken as that of the free energy, 1. It is larger: with r "
                "the root of r + k grows, too."
            ),
        },
        "(large + small) ** 2 / (large * small) * np.log(2) / 2": {
            "(large + small) / large": (
                "KL is weighed as in the free energy, like the NLL. The bound weighs it more, "
                "log(2) / 2 (1 + sqrt(1 + r / k)) times."
            ),
            "(large + small) / small * np.log(2) / 2": (
                "KL enters under both roots, and only the slope of sqrt(k) is here; that of "
                "sqrt(r + k) is missing."
            ),
        },
    },
)
def bound_to_train_on(nll: Any, kl: Any, rows: Any, price: Any) -> Any:
    """Return the PAC-Bayes-quadratic bound in nats, and its slopes.

    Parameters
    ----------
    nll : float
        Mean over q of -log P(D|w), in nats.
    kl : float
        KL(q || prior), in nats.
    rows : float
        Number N of rows.
    price : float
        Price of certainty, log(2 sqrt(N) / delta).

    Returns
    -------
    value : float
        N log 2 B.
    d_nll, d_kl : float
        Its slopes for nll and for kl.
    """
    unit = rows * np.log(2)
    small = np.sqrt((kl + price) / (2 * rows))
    large = np.sqrt(nll / unit + small**2)
    return (
        unit * (large + small) ** 2,
        (large + small) / large,
        (large + small) ** 2 / (large * small) * np.log(2) / 2,
    )


@formula(
    m=real("P"),
    L=real("PP"),
    phi=real("P"),
    y=real(),
    sigma=positive(),
    returns="mean covariance log_p",
    tags="D56",
    edge_cases=[(np.zeros(1), np.full((1, 1), 1e-9), np.ones(1), 3e-9, 1e-9)],
    wrong={
        "sigma**2 + phi @ column": {
            "sigma**2": "what the weights do not know is missing in the variance of y.",
            "phi @ column": "the noise is missing: one row would be believed as if it had none.",
        },
        "y - phi @ m": {
            "y": "the mean moves by what the prediction missed, not by y itself.",
        },
        "C - np.outer(gain, column)": {
            "C + np.outer(gain, column)": "a row that was seen cannot make weights less sure.",
            "C - np.outer(gain, gain)": "one of the two factors is C phi, not divided by anything.",
        },
        "np.log(2 * np.pi * variance)": {
            "np.log(2 * np.pi * sigma**2)": (
                "the density of y is that with the variance of the weights too, not of the noise."
            ),
        },
    },
)
def one_row_more(m: Any, L: Any, phi: Any, y: Any, sigma: Any) -> Any:
    """Return the posterior after one more row, and the log density that was predicted.

    Parameters
    ----------
    m : ndarray (P,)
        Mean of the weights of the last layer.
    L : ndarray (P, P)
        Factor of their covariance, C = L L^T.
    phi : ndarray (P,)
        Features of the further row.
    y : float
        Its target.
    sigma : float
        Standard deviation of y around phi^T w.

    Returns
    -------
    mean : ndarray (P,)
        Mean after the row.
    covariance : ndarray (P, P)
        Covariance after the row.
    log_p : float
        Log density of y before the row was seen.
    """
    C = L @ L.T
    column = C @ phi
    variance = sigma**2 + phi @ column
    gain = column / variance
    residual = y - phi @ m
    log_p = -(np.log(2 * np.pi * variance) + residual**2 / variance) / 2
    return m + gain * residual, C - np.outer(gain, column), log_p


@formula(
    r=unit(),
    R=unit(),
    kl=positive(),
    rows=positive(),
    price=positive(),
    returns="divergence slope new_R",
    slopes={"slope": "R"},
    tags="D57",
    edge_cases=[  # small shares, and one that is nearly 1
        (1e-9, 1e-8, 1.0, 1e9, 5.0),
        (2e-5, 8e-5, 1.0, 1e5, 5.0),
        (0.25, 1 - 2.0**-30, 1.0, 4.0, 5.0),
        (0.25, 0.5, 1e-10, 1.0, 2e-10),
    ],
    wrong={
        "r * np.log(r / R) + (1 - r) * np.log((1 - r) / (1 - R))": {
            "R * np.log(R / r) + (1 - R) * np.log((1 - R) / (1 - r))": (
                "this is kl(R || r): the divergence is of the share that was seen from the other."
            ),
            "r * np.log(r / R)": "who is right counts, too: (1 - r) log((1 - r) / (1 - R)).",
        },
        "(R - r) / (R * (1 - R))": {
            "(r - R) / (R * (1 - R))": (
                "the sign: kl(r || R) grows with R above r, so that R falls where it is above c."
            ),
            "-r / R": "the slope of the second term, (1 - r) / (1 - R), is missing.",
            "np.log(R * (1 - r) / (r * (1 - R)))": (
                "this is the slope of kl(R || r), of the other order."
            ),
        },
        "(kl + price) / rows": {
            "kl / rows": (
                "the price of certainty, log(2 sqrt(N) / delta), is missing: rows mislead even "
                "where q is the prior."
            ),
            "(kl + price) / (2 * rows)": (
                "the 2 belongs to the bound of D58, which has no kl(r || R) to invert."
            ),
            "(kl + price)": "kl and price are of all rows; c is of one: divide by N.",
        },
        "R - (divergence - bound) / slope": {
            "R - (divergence - bound) * slope": "Newton's step divides by the slope.",
            "R - divergence / slope": "this solves kl(r || R) = 0, which is at R = r, not = c.",
            "r + (bound / 2) ** 0.5": (
                "this is Pinsker's bound, R <= r + sqrt(c / 2): valid, and looser where r is small."
            ),
        },
    },
)
def step_to_the_certificate(r: Any, R: Any, kl: Any, rows: Any, price: Any) -> Any:
    """Return kl(r || R), its slope, and R after one step of Newton's method.

    Parameters
    ----------
    r : float
        Share of the rows that is wrong, between 0 and 1.
    R : float
        Share from which the step starts, between 0 and 1.
    kl : float
        KL(q || prior), in nats.
    rows : float
        Number N of rows.
    price : float
        Price of certainty, log(2 sqrt(N) / delta).

    Returns
    -------
    divergence : float
        kl(r || R).
    slope : float
        Its slope for R.
    new_R : float
        R after the step.
    """
    divergence = r * np.log(r / R) + (1 - r) * np.log((1 - r) / (1 - R))
    slope = (R - r) / (R * (1 - R))
    bound = (kl + price) / rows
    return divergence, slope, R - (divergence - bound) / slope


@formula(
    a=real("H"),
    v=real("H"),
    b=real(),
    p=unit(),
    noise=positive(),
    returns="mean epistemic total",
    tags="D79",
    edge_cases=[  # hardly any left out, hardly any kept, a bias beside which squares cancel
        (np.full(2, 1e3), np.full(2, 1e3), 0.5, 2.0**-30, 0.5),
        (np.ones(2), np.ones(2), 0.5, 1 - 2.0**-30, 0.5),
        (np.full(2, 1e-9), np.ones(2), 0.5, 0.5, 1e-9),
        (np.array([1.0, 2.0]), np.array([0.5, -1.0]), 1e6, 0.25, 0.5),
    ],
    wrong={
        "b + np.sum(a * v)": {
            "b + (1 - p) * np.sum(a * v)": (
                "what stays is divided by 1 - p, so that the mean is that of the whole layer."
            ),
            "(1 - p) * (b + np.sum(a * v))": "the bias is never left out, and nothing divided.",
            "b + np.sum(a * v) / (1 - p)": "a mask has the mean 1 - p; 1 / (1 - p) undoes it.",
        },
        "p / (1 - p) * np.sum((a * v) ** 2)": {
            "p * (1 - p) * np.sum((a * v) ** 2)": (
                "this is without the division by 1 - p, whose square divides the variance."
            ),
            "p * np.sum((a * v) ** 2)": (
                "1 - p divides once only: the variance p (1 - p) is divided by its square."
            ),
            "(1 - p) / p * np.sum((a * v) ** 2)": "p is the share left out, not the share kept.",
            "p / (1 - p) * np.sum(a * v) ** 2": (
                "the sum is squared: this is one mask for all inputs. With masks of their own "
                "variances add up."
            ),
            "p / (1 - p) * np.sum(v**2)": "an input of size a_j moves f by a_j v_j, not by v_j.",
        },
        "epistemic + noise**2": {
            "epistemic + noise": "the noise is a standard deviation: square it.",
            "(epistemic**0.5 + noise) ** 2": (
                "standard deviations are added; of independent numbers the variances add up."
            ),
            "epistemic": "the noise of y is missing: a band of f is drawn as a band of y.",
        },
    },
)
def what_dropout_believes(a: Any, v: Any, b: Any, p: Any, noise: Any) -> Any:
    """Return mean, epistemic and total variance of an output over all masks.

    Parameters
    ----------
    a : ndarray (H,)
        Inputs of the layer.
    v : ndarray (H,)
        Weights of the layer.
    b : float
        Bias of the layer.
    p : float
        Probability that an input is left out.
    noise : float
        Standard deviation of y around f.

    Returns
    -------
    mean, epistemic, total : float
        Mean of f, variance of f, and variance of y.
    """
    epistemic = p / (1 - p) * np.sum((a * v) ** 2)
    return b + np.sum(a * v), epistemic, epistemic + noise**2
