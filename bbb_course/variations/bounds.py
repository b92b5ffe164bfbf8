"""Variations of chapter 8: bounds around the evidence."""

from __future__ import annotations

from typing import Any

from ..exercise import real
from ..variants import Variation
from .changes import changed, in_bits, opposite, per_log_sigma, replaced, transposed

COLUMNS = {
    "eps : ndarray (S, P)": "eps : ndarray (P, S)",
}

AXES: dict[str, Any] = {
    "importance_weighted_bound": [
        [
            in_bits(
                {
                    "Return the two estimates, the lower bound's and the importance-weighted "
                    "bound's.": (
                        "Return the two estimates in bits, the lower bound's and the "
                        "importance-weighted bound's."
                    ),
                    'of the importance-weighted bound."""': (
                        'of the importance-weighted bound in bits."""'
                    ),
                },
                n_blocks=2,
            )
        ],
        [
            Variation(
                asks="Return the lower bound and by how much the other bound is above it.",
                after="(returned[0], returned[1] - returned[0])",
                untrue=("the ELBO again",),
                restated={
                    "this is the free energy; the bound is minus it": (
                        "the free energy stands in the place of the bound, which is minus it"
                    )
                },
                returns="elbo gap",
                statement={
                    "the lower bound's and the importance-weighted bound's.": (
                        "the lower bound's, and the importance-weighted bound's minus it."
                    ),
                    "of the ELBO and of the importance-weighted bound": (
                        "of the ELBO and of what the importance-weighted bound adds"
                    ),
                },
            ),
            opposite(
                "Return minus both bounds, as losses.",
                {
                    "the lower bound's and the importance-weighted bound's.": (
                        "minus the lower bound's and minus the importance-weighted bound's."
                    ),
                    "Return the estimates of": "Return minus the estimates of",
                },
                restated={
                    "this is the ELBO again": "this is minus the ELBO again",
                    "this is the free energy; the bound is minus it": (
                        "this is the lower bound; minus it is asked for"
                    ),
                },
            ),
        ],
    ],
    "renyi_bound": [
        [
            in_bits(
                {
                    "Estimate of the bound, in nats.": "Estimate of the bound, in bits.",
                    "other than 1. Return": "other than 1. In bits, return",
                    "the u add up to 1.": "the u add up to 1 / log 2.",
                },
                n_blocks=2,
            )
        ],
        [
            replaced(
                "alpha",
                "power",
                real(),
                lambda alpha: 1 - alpha,
                "alpha = 1 - power",
                "power = 1 - alpha is given.",
                {
                    "alpha is a number other than 1.": (
                        "power = 1 - alpha is a number other than 0."
                    ),
                    "alpha : float Order of the divergence, not 1.": (
                        "power : float\n        Power of the weights, 1 - alpha, not 0."
                    ),
                },
            )
        ],
        [
            opposite(
                "Return minus the bound and its slope, as a loss.",
                {
                    "the value and the slope u (S,).": "minus this value, and its slope u (S,).",
                    "Estimate of the bound,": "Minus the estimate of the bound,",
                    "Return the bound's estimate and its": (
                        "Return minus the bound's estimate and its"
                    ),
                    "Hint: the u add up": "Hint: the -u add up",
                },
            )
        ],
    ],
    "gradient_of_the_upper_bound": [
        [
            transposed(
                {"eps": real("PS")},
                "Samples are columns: eps is (P, S).",
                {"eps is (S, P), sigma": "eps is (P, S), sigma", **COLUMNS},
            )
        ],
        [
            per_log_sigma(
                {
                    "Return d_mu and d_sigma,": "Return d_mu and d_log_sigma,",
                    "Return the slopes of the upper bound for mu and sigma.": (
                        "Return the slopes of the upper bound for mu and log sigma."
                    ),
                    "d_mu, d_sigma : ndarray (P,) Slopes of the bound for mu and for sigma.": (
                        "d_mu, d_log_sigma : ndarray (P,)\n"
                        "        Slopes of the bound for mu and for log sigma."
                    ),
                }
            )
        ],
        [
            changed(
                "q is Laplace's distribution: w = mu + sigma eps, eps of the density "
                "exp(-|eps|) / 2.",
                {
                    "Hint: the score is that of the last chapter.": (
                        "Hint: the score is not that of the last chapter."
                    ),
                    "Standard normal noise of the samples.": "Laplace noise of the samples.",
                    "Standard deviations of the weights.": "Scales of the weights.",
                },
                {
                    "share @ eps": "share @ np.sign(eps * 1.0)",
                    "eps**2": "abs(eps)",
                },
            )
        ],
    ],
    "doubly_reparameterised": [
        [
            transposed(
                {"eps": real("PS"), "d_w": real("PS")},
                "Samples are columns: d_w and eps are (P, S).",
                {
                    "d_w (S, P) is the slope": "d_w (P, S) is the slope",
                    "eps is (S, P), sigma (P,).": "eps is (P, S), sigma (P,).",
                    "d_w : ndarray (S, P)": "d_w : ndarray (P, S)",
                    **COLUMNS,
                },
            )
        ],
        [
            per_log_sigma(
                {
                    "Return d_mu and d_sigma,": "Return d_mu and d_log_sigma,",
                    "importance-weighted bound for mu and sigma.": (
                        "importance-weighted bound for mu and log sigma."
                    ),
                    "d_mu, d_sigma : ndarray (P,) Slopes of minus the bound for mu and for "
                    "sigma.": (
                        "d_mu, d_log_sigma : ndarray (P,)\n"
                        "        Slopes of minus the bound for mu and for log sigma."
                    ),
                }
            )
        ],
        [
            opposite(
                "Return the slopes of the bound, not of minus the bound.",
                {
                    "(P,) each, of minus the bound.": "(P,) each, of the bound itself.",
                    "Return the slopes of minus the importance-weighted": (
                        "Return the slopes of the importance-weighted"
                    ),
                    "Slopes of minus the bound": "Slopes of the bound",
                },
            )
        ],
    ],
}
