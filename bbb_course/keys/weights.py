"""Chapter 1: why a distribution over weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import formula, positive, real, zero_one


@formula(
    x=real("N"),
    y=real("N"),
    prior=positive(),
    noise=positive(),
    returns="mean variance",
    tags="D8",
    edge_cases=[  # no force, forces that are whole numbers, no measurement yet
        (np.zeros(2), np.array([1.0, 2.0]), 2.0, 0.5),
        (np.array([1, 2]), np.array([0.5, 0.25]), 1.0, 0.5),
        (np.zeros(0), np.zeros(0), 2.0, 0.5),
    ],
    wrong={
        "precision = 1 / prior**2 + (x @ x) / noise**2": {
            "precision = (x @ x) / noise**2": (
                "the prior is missing: this is least squares, to which one adds 1/prior^2."
            ),
            "precision = 1 / prior + (x @ x) / noise": (
                "standard deviations stand where variances belong: square prior and noise."
            ),
            "precision = prior**2 + (x @ x) * noise**2": (
                "variances are added where precisions belong: what adds up is 1 / variance."
            ),
            "precision = 1 / prior**2 + (x @ x)": (
                "the data are counted with noise 1: divide x.x by noise^2."
            ),
        },
        "(x @ y) / noise**2 / precision": {
            "(x @ y) / precision": "the linear term is x.y / noise^2: the noise is missing in it.",
        },
        "1 / precision": {
            "precision": "this is the precision; the variance is one over it.",
            "1 / precision**0.5": "this is the standard deviation; asked for is the variance.",
        },
    },
)
def completing_the_square(x: Any, y: Any, prior: Any, noise: Any) -> Any:
    """Return mean and variance of the posterior of w, of y = w x + noise.

    Parameters
    ----------
    x : ndarray (N,)
        Forces.
    y : ndarray (N,)
        Stretches that were measured.
    prior : float
        Standard deviation of w before the measurements.
    noise : float
        Standard deviation of a measurement.

    Returns
    -------
    mean, variance : float
        Of the posterior of w.
    """
    precision = 1 / prior**2 + (x @ x) / noise**2
    return (x @ y) / noise**2 / precision, 1 / precision


@formula(
    mean=real(),
    variance=positive(),
    x=real("N"),
    noise=positive(),
    returns="prediction total",
    tags="D8 D4",
    edge_cases=[(1.5, 0.5, np.array([1, 2]), 0.5)],  # forces that are whole numbers
    wrong={
        "x**2 * variance + noise**2": {
            "x**2 * variance": (
                "the noise of the new y is missing: this is the epistemic part alone."
            ),
            "variance + noise**2 + 0 * x": (
                "the uncertain slope is multiplied by x, so its variance by x^2."
            ),
            "abs(x) * variance + noise**2": (
                "x is not squared: the variance of x w is x^2 times that of w."
            ),
            "(x * variance**0.5 + noise) ** 2": (
                "standard deviations are added; of independent numbers the variances add up."
            ),
            "x**2 * variance + noise": (
                "the noise is a standard deviation: square it before it is added to a variance."
            ),
            "(abs(x) * variance**0.5 + noise) ** 2": (
                "standard deviations are added; of independent numbers the variances add up."
            ),
        },
    },
)
def posterior_predictive(mean: Any, variance: Any, x: Any, noise: Any) -> Any:
    """Return mean and variance of new targets.

    Parameters
    ----------
    mean, variance : float
        Of the posterior of w.
    x : ndarray (N,)
        New forces.
    noise : float
        Standard deviation of a measurement.

    Returns
    -------
    prediction : ndarray (N,)
        Mean of the new y.
    total : ndarray (N,)
        Variance of the new y.
    """
    return mean * x, x**2 * variance + noise**2


@formula(
    y=real(),
    x=real(),
    prior=positive(),
    noise=positive(),
    returns="log_evidence",
    tags="D8 M20",
    edge_cases=[(2.0, 0.0, 1.0, 0.5)],  # no force
    wrong={
        "x**2 * prior**2 + noise**2": {
            "noise**2": "the prior's spread is missing: this is the likelihood at w = 0.",
            **dict.fromkeys(
                ["(x * prior + noise) ** 2", "(abs(x) * prior + noise) ** 2"],
                "standard deviations are added; of independent numbers the variances add up.",
            ),
            "prior**2 + noise**2": (
                "the weight reaches y multiplied by x: its variance counts x^2 times."
            ),
        },
        "- np.log(2 * np.pi * variance) / 2": {
            "- np.log(2 * np.pi * variance)": "log of a square root is half the logarithm.",
            "- np.log(variance) / 2": (
                "the constant log(2 pi) / 2 is missing; evidences are compared between models, so "
                "constants count."
            ),
            "+ np.log(2 * np.pi * variance) / 2": (
                "the sign of the logarithm: a wider distribution has a lower density."
            ),
        },
    },
)
def evidence_of_one_datum(y: Any, x: Any, prior: Any, noise: Any) -> Any:
    """Return the log density of y when w is integrated out.

    Parameters
    ----------
    y : float
        Stretch that was measured.
    x : float
        Force.
    prior : float
        Standard deviation of w before the measurement.
    noise : float
        Standard deviation of the measurement.
    """
    variance = x**2 * prior**2 + noise**2
    return -(y**2) / (2 * variance) - np.log(2 * np.pi * variance) / 2


@formula(
    alpha=positive(),
    beta=positive(),
    flips=zero_one("N"),
    returns="heads tails",
    tags="M18 M19",
    edge_cases=[  # no flip, one side alone, more heads than a byte counts
        (1.0, 2.0, np.zeros(0, int)),
        (1.0, 2.0, np.ones(3, int)),
        (1.0, 2.0, np.zeros(3, int)),
        (1.0, 2.0, np.minimum(np.arange(600) % 4, 1)),
    ],
    wrong={
        "beta + len(flips) - np.sum(flips)": {
            "beta + len(flips)": "all flips are added to beta; tails are n minus heads.",
            "beta + np.sum(flips)": "heads are added to beta; tails belong there.",
            "beta + len(flips) - np.sum(flips) - 1": (
                "this is the printed table of pseudo-counts, beta - 1 tails; the posterior's "
                "parameter is beta + tails."
            ),
        },
        "alpha + np.sum(flips)": {
            "alpha + np.sum(flips) - 1": (
                "this is the printed table of pseudo-counts, alpha - 1 heads; the posterior's "
                "parameter is alpha + heads."
            ),
            "np.sum(flips)": "the prior's alpha is forgotten.",
        },
    },
)
def conjugate_coin(alpha: Any, beta: Any, flips: Any) -> Any:
    """Parameters of the Beta posterior of a coin."""
    return alpha + np.sum(flips), beta + len(flips) - np.sum(flips)


@formula(
    mean=real(),
    sd=positive(),
    prior_mean=real(),
    prior=positive(),
    returns="kl",
    tags="D18",
    # equal means, equal deviations
    edge_cases=[(0.5, 2.0, 0.5, 1.0), (0.5, 2.0, -0.5, 2.0)],
    wrong={
        "np.log(prior / sd)": {
            "np.log(sd / prior)": (
                "the logarithm's fraction is upside down: KL must be large where q is narrow."
            ),
        },
        "- 0.5": {"": "the -1/2 is missing: KL of a density with itself must be 0."},
        "sd**2 + (mean - prior_mean) ** 2": {
            "(mean - prior_mean) ** 2": (
                "E[(w - m)^2] is the squared distance of the means and the variance of q."
            ),
        },
        "/ (2 * prior**2)": {
            "/ (2 * sd**2)": (
                "the square is divided by q's variance: the density inside log p is the prior's."
            ),
            "/ prior**2": "the 2 of 2 prior^2 is missing.",
        },
        "np.log(prior / sd) + (sd**2 + (mean - prior_mean) ** 2) / (2 * prior**2)": {
            "np.log(sd / prior) + (prior**2 + (mean - prior_mean) ** 2) / (2 * sd**2)": (
                "this is KL(p || q), the other way round."
            ),
        },
    },
)
def kl_of_two_normals(mean: Any, sd: Any, prior_mean: Any, prior: Any) -> Any:
    """Return KL(q || p) of two normal distributions, in nats.

    Parameters
    ----------
    mean : float
        Mean of q.
    sd : float
        Standard deviation of q.
    prior_mean : float
        Mean of p.
    prior : float
        Standard deviation of p.
    """
    return (
        np.log(prior / sd) + (sd**2 + (mean - prior_mean) ** 2) / (2 * prior**2) - 0.5
    )
