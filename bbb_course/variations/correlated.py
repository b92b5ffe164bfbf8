"""Variations of chapter 9: correlated posteriors and ADVI."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import positive, real
from ..variants import Variation
from .changes import SIGMOID, changed, each, in_bits, opposite, replaced, transposed

JACOBIAN_IS_MISSING = (
    "the Jacobian is missing: this is the posterior under another prior (M14). Value and gradient "
    "agree, so no gradient check sees it."
)
SLOPE_FOR_THETA = (
    "this is the slope for theta: multiply by d theta / d zeta and add the Jacobian's."
)


def _wider(scale: int) -> Variation:
    return changed(
        f"The noises of their own have the variance {scale}: the covariance is {scale} I + v v^T.",
        {
            "all standard normal. Their covariance is I + v v^T. But for a constant": (
                f"h standard normal, and e of the variance {scale}. Their covariance is "
                f"{scale} I + v v^T. But for a constant"
            ),
            "log q = -1/2 log(1 + |v|^2) - 1/2 [|a|^2 - (v . a)^2 / (1 + |v|^2)]": (
                f"log q = -1/2 log(1 + |v|^2 / {scale})\n"
                f"            - 1/2 [|a|^2 - (v . a)^2 / ({scale} + |v|^2)] / {scale}"
            ),
            "c = v . a / (1 + |v|^2)": f"c = v . a / ({scale} + |v|^2)",
        },
        {
            "m = 1 + v @ v": f"m = {scale} + v @ v",
            "np.log(m)": f"np.log(m / {scale})",
            "a @ a - c**2 * m": f"(a @ a - c**2 * m) / {scale}",
            "c * v - a,": f"(c * v - a) / {scale},",
            "(a - c * v)": f"(a - c * v) / {scale}",
        },
        untrue=("independent weights", "m moves with v"),
        restated={"log(1 + |v|^2)": f"log(1 + |v|^2 / {scale})"},
        wrong={
            f"np.log(m / {scale})": {
                "np.log(m)": f"the volume is log(1 + |v|^2 / {scale}): v is divided, too.",
            },
            f"(c * v - a) / {scale},": {
                f"-a / {scale},": "this is the slope for independent weights.",
                "c * v - a,": f"the slope for a is not divided by the variance {scale}.",
            },
            f"c * (a - c * v) / {scale}": {
                f"c * a / {scale}": "m moves with v as well, in the last term too: - c^2 v.",
                "c * (a - c * v)": (
                    f"the first part of the slope for v is not divided by {scale}."
                ),
            },
        },
    )


def _anchor_with_mean(mean: int) -> Variation:
    return changed(
        f"The prior of each weight has the mean {mean}, not 0.",
        {
            "a draw of the prior, s eps':": f"a draw of the prior, {mean} + s eps':",
            "|w - s eps'|^2": f"|w - {mean} - s eps'|^2",
        },
        {"anchor =": f"anchor = {mean} +"},
        restated={"drawn to 0": f"drawn to {mean}"},
        wrong={
            f"{mean} + s * eps_prior": {
                f"s * ({mean} + eps_prior)": "s multiplies the noise, not the mean of the prior.",
            },
        },
    )


AXES: dict[str, Any] = {
    "weights_that_hang_together": [
        [
            changed(
                "C is upper triangular: what stands below its diagonal does not count.",
                {
                    "C is lower triangular; whatever stands above its diagonal does not count.": (
                        "C is upper triangular; whatever stands below its diagonal does not count."
                    ),
                    "above its diagonal it does not count.": (
                        "below its diagonal it does not count."
                    ),
                },
                {"np.tril(C": "np.triu(C"},
                untrue=("the diagonal of C is left out",),
                restated={
                    "above the diagonal of C counts: only its lower": (
                        "below the diagonal of C counts: only its upper"
                    )
                },
                wrong={
                    "np.triu(C).T": {
                        "np.triu(C, 1).T": "the diagonal of C is left out."
                    },
                },
            ),
            changed(
                "The diagonal of C does not count either: it is 1.",
                {
                    "whatever stands above its diagonal does not count.": (
                        "whatever stands on or above its diagonal does not count: the diagonal is "
                        "1, and 0 is above it."
                    ),
                    "above its diagonal it does not count.": (
                        "its diagonal is 1 and what is above 0, whatever stands there."
                    ),
                },
                {"eps @ np.tril(C)": "eps + eps @ np.tril(C, -1)"},
                untrue=("above the diagonal", "covariance", "only the diagonal"),
                wrong={
                    "np.tril(C, -1).T": {
                        "(C - np.diag(np.diag(C))).T": (
                            "what stands above the diagonal of C counts: only its lower triangle "
                            "is there."
                        ),
                    },
                    "eps + eps @ np.tril(C, -1).T": {
                        "eps": "what stands below the diagonal is left out: mean field.",
                    },
                },
            ),
        ],
        [
            transposed(
                {"eps": real("PS")},
                "Samples are columns: eps and what you return are (P, S).",
                {
                    "eps is (S, P) with one sample in each row. Return w (S, P).": (
                        "eps is (P, S) with one sample in each column. Return w (P, S)."
                    ),
                    "Hint: mind that samples are rows.": "Hint: mind that samples are columns.",
                    "samples of N(mu, C C^T), (S, P).": "samples of N(mu, C C^T), (P, S).",
                    "eps : ndarray (S, P) Standard normal noise, a sample in each row.": (
                        "eps : ndarray (P, S)\n"
                        "        Standard normal noise, a sample in each column."
                    ),
                    "w : ndarray (S, P) Weights, a sample in each row.": (
                        "w : ndarray (P, S)\n        Weights, a sample in each column."
                    ),
                },
                after="returned.T",
                restated={
                    "C is not transposed: rows of eps are": "C is transposed: columns of eps are",
                },
            )
        ],
    ],
    "gradient_for_the_factor": [
        [
            changed(
                "The diagonal of C is exp(rho), not softplus(rho).",
                {
                    "C_kk = softplus(rho_k), and it is": "C_kk = exp(rho_k), and it is",
                    "Raw diagonal; C_kk = softplus(rho_k).": "Raw diagonal; C_kk = exp(rho_k).",
                },
                {
                    "np.log(1 + np.exp(rho))": "np.exp(rho)",
                    SIGMOID: " * diagonal",
                },
                untrue=("softplus without",),
                restated={", through softplus": ""},
                wrong={
                    " * diagonal": {
                        "": "the chain rule: C_kk = exp(rho_k) moves with rho_k by itself.",
                        SIGMOID: "the sigmoid is the slope of softplus; that of exp is exp(rho).",
                    },
                },
            )
        ],
        [
            transposed(
                {"d_w": real("PS"), "eps": real("PS")},
                "Samples are columns: d_w and eps are (P, S).",
                {
                    "d_w and eps are (S, P),": "d_w and eps are (P, S),",
                    "d_w : ndarray (S, P)": "d_w : ndarray (P, S)",
                    "eps : ndarray (S, P)": "eps : ndarray (P, S)",
                },
            )
        ],
    ],
    "entropy_of_full_rank": [
        [
            replaced(
                "diagonal",
                "rho",
                real("P"),
                np.log,
                "diagonal = np.exp(rho)",
                "The diagonal is given by its logarithms rho.",
                {
                    "Shapes: diagonal is (P,), positive;": "Shapes: rho is (P,), log C_kk;",
                    "diagonal : ndarray (P,) Diagonal of C, positive.": (
                        "rho : ndarray (P,)\n        Logarithms of the diagonal of C."
                    ),
                },
            ),
            replaced(
                "diagonal",
                "precisions",
                positive("P"),
                lambda diagonal: diagonal**-2.0,
                "diagonal = precisions**-0.5",
                "The diagonal is given by one over its squares, the precisions.",
                {
                    "Shapes: diagonal is (P,), positive;": "Shapes: precisions is (P,), C_kk^-2;",
                    "diagonal : ndarray (P,) Diagonal of C, positive.": (
                        "precisions : ndarray (P,)\n"
                        "        One over the squares of the diagonal of C."
                    ),
                },
            ),
        ],
        [
            in_bits(
                {
                    "Return the entropy in nats, with its constants.": (
                        "Return the entropy in bits, with its constants."
                    ),
                    "N(mu, C C^T) in nats.": "N(mu, C C^T) in bits.",
                }
            )
        ],
    ],
    "log_joint_in_real_coordinates": [
        [
            changed(
                "theta is an inverse Gamma variable: its log density is "
                "-(a + 1) log theta - b / theta.",
                {
                    "(a - 1) log theta - b theta.": "-(a + 1) log theta - b / theta.",
                    "Shape and rate of the Gamma density of theta.": (
                        "Shape and scale of the inverse Gamma density of theta."
                    ),
                },
                {
                    "slope = a - b * np.exp(zeta)": "slope = -a + b * np.exp(-zeta)",
                    "np.sum(a * zeta - b * np.exp(zeta))": "np.sum(-a * zeta - b * np.exp(-zeta))",
                },
                untrue=("Jacobian", "the chain rule"),
                wrong={
                    "-a * zeta -": {
                        "-(a + 1) * zeta -": JACOBIAN_IS_MISSING,
                        "-(a + 2) * zeta -": "the sign of the Jacobian: its logarithm is + zeta.",
                    },
                    "-a + b * np.exp(-zeta)": {
                        "-a - 1 + b * np.exp(-zeta)": "the slope of the Jacobian, 1, is missing.",
                        "-a - b * np.exp(-zeta)": "the sign: -exp(-zeta) grows with zeta.",
                        "-(a + 1) * np.exp(-zeta) + b * np.exp(-2 * zeta)": SLOPE_FOR_THETA,
                    },
                },
            ),
            changed(
                "theta has the log density (a - 1) log theta - b theta^2.",
                {
                    "(a - 1) log theta - b theta.": "(a - 1) log theta - b theta^2.",
                    "Shape and rate of the Gamma density of theta.": (
                        "Numbers in the density of theta."
                    ),
                },
                {
                    "slope = a - b * np.exp(zeta)": "slope = a - 2 * b * np.exp(2 * zeta)",
                    "np.sum(a * zeta - b * np.exp(zeta))": (
                        "np.sum(a * zeta - b * np.exp(2 * zeta))"
                    ),
                },
                wrong={
                    "a - 2 * b * np.exp(2 * zeta)": {
                        "a - b * np.exp(2 * zeta)": "the chain rule: exp(2 zeta) has a factor 2.",
                        "(a - 1) * np.exp(-zeta) - 2 * b * np.exp(zeta)": SLOPE_FOR_THETA,
                        "a - 2 * b * np.exp(zeta)": (
                            "the chain rule: theta = exp(zeta) moves with zeta by exp(zeta)."
                        ),
                    },
                },
            ),
        ],
        [
            opposite(
                "Return minus the log density and its slope.",
                {
                    "Return the log density in zeta,": "Return minus the log density in zeta,",
                    "Return the log density of zeta and its slope.": (
                        "Return minus the log density of zeta and its slope."
                    ),
                    "value : float Log density of": (
                        "value : float\n        Minus the log density of"
                    ),
                },
            )
        ],
    ],
    "price_of_mean_field": [
        [
            Variation(
                asks="Return standard deviations in the place of the two variances.",
                after="(returned[0] ** 0.5, returned[1] ** 0.5, returned[2])",
                untrue=("this is the standard deviation",),
                restated={
                    "this is the marginal variance": "this is the marginal standard deviation",
                    "this is the precision's diagonal itself": (
                        "this is the root of the precision's diagonal"
                    ),
                },
                statement={
                    "Return the variance by the reverse divergence, that by": (
                        "Return the standard deviation by the reverse divergence, that by"
                    ),
                    "Return variance by reverse KL,": "Return standard deviation by reverse KL,",
                },
            )
        ],
        [
            Variation(
                asks="Return the divergence that is left in bits.",
                after="(returned[0], returned[1], returned[2] / np.log(2))",
                statement={
                    "that is left, in nats.": "that is left, in bits.",
                    "and the gap in nats.": "and the gap in bits.",
                },
            )
        ],
    ],
    "evidence_and_its_slopes": [
        [
            Variation(
                asks="log_beta is the logarithm of the noise's variance, not of its precision.",
                before="log_beta = -log_beta",
                after="(returned[0], returned[1], -returned[2])",
                statement={
                    "Shapes: log_alpha, log_beta,": (
                        "Here log_beta is -log beta, the logarithm of a variance.\n\n"
                        "Shapes: log_alpha, log_beta,"
                    ),
                    "and its slopes for log alpha and for log beta. Hint": (
                        "and its slopes for log_alpha and for log_beta.\n\nHint"
                    ),
                    "Log precision of the noise.": "Log variance of the noise, -log beta.",
                    "and its slopes for log alpha and log beta.": (
                        "and its slopes for log_alpha and log_beta."
                    ),
                    "Its slopes for log alpha and for log beta.": (
                        "Its slopes for log_alpha and for log_beta."
                    ),
                },
            )
        ],
        [
            opposite(
                "Return minus the log evidence and its slopes.",
                {
                    "d is (P,). Return the log evidence,": (
                        "d is (P,). Return minus the log evidence,"
                    ),
                    "Log evidence, in nats.": "Minus the log evidence, in nats.",
                },
            )
        ],
    ],
    "density_of_low_rank": [
        each((2, 3, 4), _wider),
        [
            opposite(
                "Return minus log q and its slopes.",
                {
                    "Return log q, and its slopes": "Return minus log q, and its slopes",
                    "Return log q but for a constant,": "Return minus log q but for a constant,",
                    "log_q : float Log density of a.": (
                        "minus_log_q : float\n        Minus the log density of a."
                    ),
                },
            )
        ],
    ],
    "swag": [
        [
            Variation(
                asks="Return standard deviations in the place of variances.",
                after="(returned[0], returned[1] ** 0.5, returned[2])",
                returns="mean sd draw",
                statement={
                    "mean, variance, draw : ndarray (P,)": "mean, sd, draw : ndarray (P,)",
                    "the variances (P,) of single weights,": (
                        "the standard deviations (P,) of single weights,"
                    ),
                    "Return mean, variances, and": "Return mean, standard deviations, and",
                    "Mean and variances of the weights,": (
                        "Mean and standard deviations of the weights,"
                    ),
                },
            )
        ],
        [
            transposed(
                {"path": real("PT")},
                "path is (P, T), a column after each epoch.",
                {
                    "Shapes: path (T, P),": "Shapes: path (P, T),",
                    "path : ndarray (T, P)": "path : ndarray (P, T)",
                },
            )
        ],
    ],
    "anchored_member": [
        [
            replaced(
                "s",
                "precision",
                positive(),
                lambda s: s**-2.0,
                "s = precision**-0.5",
                "The prior is given by its precision, 1 / s^2.",
                {
                    "sigma and s are numbers.": "sigma and precision = 1 / s^2 are numbers.",
                    "s : float Standard deviation of the prior.": (
                        "precision : float\n        One over the variance of the prior."
                    ),
                },
            )
        ],
        each((1, 2, 3), _anchor_with_mean),
    ],
}
