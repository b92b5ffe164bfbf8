"""Variations of chapter 7: estimators of the gradient."""

from __future__ import annotations

from typing import Any

from ..exercise import positive, real
from ..variants import Variation
from .changes import (
    MOVES_BY_SIGMA,
    SIGMOID,
    changed,
    each,
    in_bits,
    per_log_sigma,
    replaced,
    transposed,
)


def _prior_with_mean(mean: int) -> Variation:
    return changed(
        f"The prior of each weight is N({mean}, prior^2).",
        {"with prior mean 0.": f"with prior mean {mean}."},
        {
            "mu**2": f"(mu - {mean}) ** 2",
            ", mu /": f", (mu - {mean}) /",
        },
        restated={
            "E[w^2] is mu^2 + sigma^2": f"E[(w - {mean})^2] is (mu - {mean})^2 + sigma^2"
        },
    )


AXES: dict[str, Any] = {
    "complexity_in_closed_form": [
        each((1, 2, 3), _prior_with_mean),
        [
            changed(
                "sigma is exp(rho), not softplus(rho).",
                {
                    "a number; sigma = softplus(rho).": "a number; sigma = exp(rho).",
                    "standard deviations; sigma = softplus(rho).": (
                        "standard deviations; sigma = exp(rho)."
                    ),
                },
                {
                    "sigma = np.log(1 + np.exp(rho))": "sigma = np.exp(rho)",
                    SIGMOID: " * sigma",
                },
                untrue=("softplus",),
                wrong=MOVES_BY_SIGMA,
            )
        ],
        [in_bits({"in nats.": "in bits."}, n_blocks=3)],
    ],
    "score_function_estimator": [
        [
            transposed(
                {"eps": real("PS")},
                "Samples are columns: eps is (P, S).",
                {
                    "eps is (S, P), h is (S,),": "eps is (P, S), h is (S,),",
                    "eps : ndarray (S, P)": "eps : ndarray (P, S)",
                },
            )
        ],
        [
            per_log_sigma(
                {
                    "Return the estimated slopes for mu and for sigma,": (
                        "Return the estimated slopes for mu and for log sigma,"
                    ),
                    "dE[h]/dmu and dE[h]/dsigma,": "dE[h]/dmu and dE[h]/dlog sigma,",
                    "d_mu, d_sigma : ndarray (P,) Estimated slopes for mu and for sigma.": (
                        "d_mu, d_log_sigma : ndarray (P,)\n"
                        "        Estimated slopes for mu and for log sigma."
                    ),
                }
            )
        ],
    ],
    "sticking_the_landing": [
        [
            transposed(
                {"eps": real("PS"), "d_w": real("PS")},
                "Samples are columns: eps and d_w are (P, S).",
                {
                    "eps and d_w are (S, P);": "eps and d_w are (P, S);",
                    "eps : ndarray (S, P)": "eps : ndarray (P, S)",
                    "d_w : ndarray (S, P)": "d_w : ndarray (P, S)",
                },
            )
        ],
        [
            changed(
                "sigma is exp(rho), not softplus(rho).",
                {
                    "sigma moves with rho by the sigmoid.": "sigma moves with rho by sigma.",
                    "sigma = softplus(rho).": "sigma = exp(rho).",
                },
                {SIGMOID: " * sigma"},
                untrue=("softplus",),
                wrong=MOVES_BY_SIGMA,
            )
        ],
    ],
    "antithetic_noise": [
        [
            changed(
                "Each pair has the middle beside it: the mean is that of three.",
                {
                    "Return the mean over the S pairs of the mean of each pair, (P,).": (
                        "Return the mean over the S samples of the mean of three, (P,): h at the "
                        "noise, at its mirror image, and at mu."
                    ),
                    "each row makes a pair with its mirror image.": (
                        "each row, its mirror image and 0 make three."
                    ),
                },
                {
                    "h(mu - sigma * eps)) / 2": "h(mu - sigma * eps) + h(mu + 0 * eps)) / 3",
                },
                wrong={
                    " / 3": {
                        " / 2": "the sum of three is divided by 2.",
                        "": "1/3 is missing: it is the mean of the three.",
                    },
                    "+ h(mu - sigma * eps)": {
                        "- h(mu - sigma * eps)": (
                            "the difference is the odd part, which is to go; the sum is asked for."
                        ),
                    },
                    "h(mu + 0 * eps)": {
                        "h(0 * eps)": "the middle is mu, without noise; it is not 0."
                    },
                },
            ),
            changed(
                "Return half the difference of each pair, the odd part that cancels in the mean.",
                {
                    "Return the mean over the S pairs of the mean of each pair, (P,).": (
                        "Return the mean over the S pairs of half the difference of each pair, h "
                        "at the noise minus h at its mirror image, (P,)."
                    ),
                    "Return the estimate of E[h(w)], (P,).": "Return the odd part of h(w), (P,).",
                },
                {"h(mu + sigma * eps) + h(": "h(mu + sigma * eps) - h("},
                restated={
                    "it is the mean of the two": "it is half the difference",
                    "the difference is the odd part, which is to go; the sum is asked for": (
                        "the sum is the even part; the difference is asked for"
                    ),
                },
            ),
        ],
        [
            transposed(
                {"eps": real("PS")},
                "Samples are columns: eps is (P, S).",
                {
                    "eps is (S, P).": "eps is (P, S).",
                    "eps : ndarray (S, P) Standard normal noise; each row": (
                        "eps : ndarray (P, S)\n        Standard normal noise; each column"
                    ),
                },
            )
        ],
    ],
    "local_reparameterisation": [
        [
            replaced(
                "sigma",
                "variances",
                positive("IH"),
                lambda sigma: sigma**2.0,
                "sigma = variances**0.5",
                "The variances sigma^2 of the weights are given; of biases, standard deviations.",
                {
                    "mu and sigma (I, H),": "mu and variances = sigma^2 (I, H),",
                    "mu, sigma : ndarray (I, H) Means and standard deviations of": (
                        "mu, variances : ndarray (I, H)\n        Means and variances of"
                    ),
                },
            )
        ],
        [
            transposed(
                {"a": real("IB")},
                "Inputs are columns: a is (I, B).",
                {
                    "Shapes: a is (B, I),": "Shapes: a is (I, B),",
                    "a : ndarray (B, I)": "a : ndarray (I, B)",
                },
            )
        ],
    ],
}
