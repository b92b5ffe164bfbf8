"""Variations of chapter 5: priors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import positive, real, unit
from ..variants import Variation
from .changes import changed, each, opposite, replaced


def _gaussian_with_mean(mean: int) -> Variation:
    return changed(
        f"The prior is N({mean}, prior^2).",
        {
            "every weight is believed to be N(0, prior^2).": (
                f"every weight is believed to be N({mean}, prior^2)."
            ),
            "a force towards 0 that grows": f"a force towards {mean} that grows",
        },
        {
            "w**2": f"(w - {mean}) ** 2",
            ", w / prior": f", (w - {mean}) / prior",
        },
    )


def _laplace_with_peak(peak: int) -> Variation:
    return changed(
        f"The peak is at {peak}, not at 0.",
        {
            "has the density exp(-|w| / b) / (2 b): a peak at 0,": (
                f"has here the density exp(-|w - {peak}| / b) / (2 b): a peak at {peak},"
            ),
            "A small weight is pulled to 0 as hard as a large one, so small ones vanish and large "
            "ones survive.": f"A weight near {peak} is pulled as hard as one far away.",
            "w is (P,), none of them 0;": f"w is (P,), none of them {peak};",
            "Weights, none of them 0.": f"Weights, none of them {peak}.",
        },
        {
            "abs(w) / b": f"abs(w - {peak}) / b",
            "np.sign(w * 1.0)": f"np.sign(w - {peak}.0)",
        },
        untrue=("the sign of w counts", "this is the square", "the slope of |w|"),
        restated={"where w does": f"where w - {peak} does"},
        wrong={
            f"abs(w - {peak}) / b": {
                f"(w - {peak}) / b": (
                    f"the sign of w - {peak} counts: the density is that of |w - {peak}|."
                ),
                f"(w - {peak}) ** 2 / b": "this is the square; Laplace has the absolute value.",
                f"(abs(w) - {peak}) / b": f"{peak} is subtracted first: |w - {peak}|.",
            },
            f"np.sign(w - {peak}.0) / b": {
                f"(w - {peak}) / b": (
                    f"the slope of |w - {peak}| is the sign of w - {peak}, not w - {peak}."
                ),
            },
        },
    )


def _learned_with_mean(mean: int) -> Variation:
    return changed(
        f"The mean of the prior is {mean}, not 0.",
        {
            "w_j^2 exp": f"(w_j - {mean})^2 exp",
            "s^2 is the mean of w^2.": f"s^2 is the mean of (w - {mean})^2.",
        },
        {
            "np.sum(w**2)": f"np.sum((w - {mean}) ** 2)",
            "t + w**2": f"t + (w - {mean}) ** 2",
            ", w * np": f", (w - {mean}) * np",
        },
        restated={
            "makes w^2 / s^2": f"makes (w - {mean})^2 / s^2",
            "is w / s^2": f"is (w - {mean}) / s^2",
        },
    )


def _log_density(*edits: tuple[str, str], n_blocks: int = 2) -> Variation:
    return opposite(
        "Return the log density and its slope, not minus the log density.",
        {
            "Return minus log P(w) and its slope for w.": "Return log P(w) and its slope for w.",
            "Minus log P(w), added up over weights.": "Log P(w), added up over weights.",
            **dict(edits),
        },
        n_blocks=n_blocks,
    )


DENSITY_S_SLOPE = (
    "this is the slope of the density; that of its logarithm is divided by the density, first + "
    "second (R5)."
)


def _halves(sign: str) -> dict[str, dict[str, str]]:
    """Return the mistakes that forget a half where log s is half of t, but for its sign."""
    log_s = f"log s is {sign}t / 2"
    return {
        "len(w) - ": {
            "2 * len(w) - ": f"{log_s}: it has the slope {sign}1/2 for each weight."
        },
        "- np.sum(": {"- 2 * np.sum(": f"{log_s}: the half of the squares stays."},
    }


AXES: dict[str, Any] = {
    "gaussian_prior": [
        [
            replaced(
                "prior",
                "precision",
                positive(),
                lambda prior: prior**-2.0,
                "prior = precision**-0.5",
                "The prior is given by its precision, one over its variance.",
                {
                    "prior is a standard deviation, a number.": (
                        "precision is a number, 1 / prior^2."
                    ),
                    "prior : float Standard deviation.": (
                        "precision : float\n        One over the variance."
                    ),
                },
            ),
            replaced(
                "prior",
                "variance",
                positive(),
                lambda prior: prior**2.0,
                "prior = variance**0.5",
                "The prior is given by its variance.",
                {
                    "prior is a standard deviation, a number.": "variance is a number, prior^2.",
                    "prior : float Standard deviation.": "variance : float\n        prior^2.",
                },
            ),
        ],
        [
            *each((1, 2, 3), _gaussian_with_mean),
            changed(
                "The prior is Cauchy's, with the density 1 / (pi prior (1 + w^2 / prior^2)).",
                {
                    "The prior that pulls like a spring.": "A prior that lets large weights go.",
                    "every weight is believed to be N(0, prior^2).": (
                        "every weight is believed to have Cauchy's distribution of the scale "
                        "`prior`, of the density 1 / (pi prior (1 + w^2 / prior^2))."
                    ),
                    "a force towards 0 that grows with the distance.": (
                        "a force towards 0 that fades where the distance is large."
                    ),
                },
                {
                    "w**2 / (2 * prior**2)": "np.log(1 + w**2 / prior**2)",
                    "np.log(2 * np.pi) / 2": "np.log(np.pi)",
                    ", w / prior**2": ", 2 * w / (prior**2 + w**2)",
                },
                untrue=("in the slope",),
                restated={"log(2 pi) / 2": "log pi"},
                wrong={
                    "w**2 / prior**2": {
                        "w**2 / prior": "prior is not squared in the value.",
                        "w**2": "the prior's scale is forgotten beside w^2.",
                    },
                    ", 2 * w / (prior**2 + w**2)": {
                        ", 2 * w / prior**2 / (1 + w**2)": (
                            "the prior's scale is forgotten below: 1 + w^2 / prior^2 divides."
                        ),
                        ", w / (prior**2 + w**2)": "the 2 is missing: w^2 has the slope 2 w.",
                        ", 2 * w / (1 + w**2 / prior**2)": (
                            "the chain rule: w^2 / prior^2 has the slope 2 w / prior^2."
                        ),
                        ", 1 / (1 + w**2 / prior**2) + 0 * w": (
                            "the chain rule: the slope of w^2 / prior^2 is missing."
                        ),
                        ", w / prior**2": "this is the slope of a Gaussian prior (K21).",
                    },
                },
            ),
        ],
        [
            _log_density(
                (
                    "Return the value, one number, and its slope d_w (P,).",
                    "Return the log density, one number, and its slope d_w (P,).",
                ),
            )
        ],
    ],
    "laplace_prior": [
        [
            replaced(
                "b",
                "rate",
                positive(),
                lambda b: 1 / b,
                "b = 1 / rate",
                "The rate is given, one over the scale b.",
                {
                    "b is a number.": "rate = 1 / b is a number.",
                    "b : float Scale of the distribution.": (
                        "rate : float\n        One over the scale of the distribution."
                    ),
                },
            )
        ],
        each((1, 2, 3), _laplace_with_peak),
        [
            _log_density(
                (
                    "Return minus the log density, one number with its constant, and its slope",
                    "Return the log density, one number with its constant, and its slope",
                ),
            )
        ],
    ],
    "scale_mixture_prior": [
        [
            replaced(
                "a",
                "share",
                unit(),
                lambda a: 1 / (1 + np.exp(-a)),
                "pi = share",
                "The share pi of the wide component is given, not its logit.",
                {
                    "N(w; 0, s2^2), pi = 1 / (1 + exp(-a)).": "N(w; 0, s2^2),    pi = share.",
                    "w is (P,), a, s1 and s2 are numbers.": (
                        "w is (P,), share, s1 and s2 are numbers."
                    ),
                    "a : float Logit of the wide component's share.": (
                        "share : float\n        Share of the wide component."
                    ),
                },
                edits={"    pi = 1 / (1 + np.exp(-a))\n": ""},
            )
        ],
        [
            changed(
                "Both components are Laplace's, exp(-|w| / s) / (2 s), not Gaussian.",
                {
                    "Two Gaussians around 0 say so,": "Two Laplace distributions around 0 say so,",
                    "a wide one of standard deviation s1 with": "a wide one of scale s1 with",
                    "and a narrow one of standard deviation s2 with": (
                        "and a narrow one of scale s2 with"
                    ),
                    "P(w) = pi N(w; 0, s1^2) + (1 - pi) N(w; 0, s2^2),": (
                        "P(w) = pi exp(-|w| / s1) / (2 s1) + (1 - pi) exp(-|w| / s2) / (2 s2),"
                    ),
                    "the mean of the two springs' forces, w / s1^2 and w / s2^2.": (
                        "the mean of the two forces, sign(w) / s1 and sign(w) / s2."
                    ),
                    "Standard deviation of the wide component.": "Scale of the wide component.",
                    "Standard deviation of the narrow component.": "Scale of the narrow component.",
                },
                {
                    "np.exp(-(w**2) / (2 * s1**2)) / s1": "np.exp(-abs(w) / s1) / s1",
                    "np.exp(-(w**2) / (2 * s2**2)) / s2": "np.exp(-abs(w) / s2) / s2",
                    "np.log(2 * np.pi) / 2": "np.log(2)",
                    "wide * w / s1**2 + (1 - wide) * w / s2**2": (
                        "np.sign(w * 1.0) * (wide / s1 + (1 - wide) / s2)"
                    ),
                },
                untrue=("slope", "responsibilities"),
                restated={"log(2 pi) / 2": "log 2"},
                wrong={
                    "(wide / s1 + (1 - wide) / s2)": {
                        "(first / s1 + second / s2)": DENSITY_S_SLOPE,
                        "(first / s1 + second / s2) / 2": DENSITY_S_SLOPE,
                        "(pi / s1 + (1 - pi) / s2)": (
                            "the components are weighted by pi; in the slope they are weighted by "
                            "their responsibilities at w (R5)."
                        ),
                        "((1 - wide) / s1 + wide / s2)": "the responsibilities are exchanged (R5).",
                        "(wide / s1**2 + (1 - wide) / s2**2)": (
                            "the scales are squared: |w| / s has the slope sign(w) / s."
                        ),
                    },
                    "np.exp(-abs(w) / s1) / s1": {
                        "np.exp(-abs(w) / s1)": (
                            "1 / s1 of the first density is missing: the components would not be "
                            "densities (R4)."
                        ),
                    },
                    "np.sign(w * 1.0) * (wide / s1 + (1 - wide) / s2)": {
                        "wide * w / s1**2 + (1 - wide) * w / s2**2": (
                            "these are the forces of Gaussians, w / s^2; Laplace's are sign(w) / s."
                        ),
                    },
                    "np.sign(w * 1.0) * ": {
                        "": "the slope changes its sign where w does."
                    },
                },
            )
        ],
        [
            _log_density(
                (
                    "Return minus the sum of log P over the weights, and",
                    "Return the sum of log P over the weights, and",
                ),
                (
                    "The slope of minus log P(w) is the mean",
                    "The slope of log P(w) is minus the mean",
                ),
            )
        ],
    ],
    "learned_prior_scale": [
        each((1, 2, 3), _learned_with_mean),
        [
            replaced(
                "t",
                "t",
                real(),
                lambda t: 2 * t,
                "t = t / 2",
                "t is the logarithm of the prior's variance.",
                {
                    "t = log s is free.": "t = log s^2 is free.",
                    "sum_j [t + ": "sum_j [t / 2 + ",
                    "exp(-2 t) / 2].": "exp(-t) / 2].",
                    "Logarithm of the prior's standard deviation.": (
                        "Logarithm of the prior's variance."
                    ),
                },
                after="(returned[0], returned[1], returned[2] / 2)",
                wrong=_halves(""),
            ),
            replaced(
                "t",
                "t",
                real(),
                lambda t: -2 * t,
                "t = -t / 2",
                "t is the logarithm of the prior's precision.",
                {
                    "t = log s is free.": "t = -log s^2 is free.",
                    "sum_j [t + ": "sum_j [-t / 2 + ",
                    "exp(-2 t) / 2].": "exp(t) / 2].",
                    "Logarithm of the prior's standard deviation.": (
                        "Logarithm of the prior's precision."
                    ),
                },
                after="(returned[0], returned[1], -returned[2] / 2)",
                wrong=_halves("-"),
            ),
        ],
    ],
    "covariance_of_functions": [
        [
            changed(
                "The weights of the last layer have the variance s1^2 / H, its bias s1^2.",
                {
                    "in its first layer and N(0, s1^2) in its last.": (
                        "in its first layer, and in its last the weights N(0, s1^2 / H) and the "
                        "bias N(0, s1^2)."
                    ),
                    "Standard deviations of weights and biases of the first and of the last "
                    "layer.": (
                        "Standard deviations of weights and biases of the first layer, and of the "
                        "last bias."
                    ),
                },
                {
                    "H * product + 1": "product + 1",
                    "H * scale_x**2 / 2": "scale_x**2 / 2",
                    "H * scale_z**2 / 2": "scale_z**2 / 2",
                },
                untrue=(
                    "f adds up H units",
                    "the bias of the last layer",
                    "units have weights",
                ),
                wrong={
                    "s1**2 * (product + 1)": {
                        "s1**2 * product": "the bias of the last layer is missing: it adds s1^2.",
                        "s1**2 * (product / H + 1)": (
                            "f adds up H units: each has 1 / H of the variance, and H cancels."
                        ),
                        "s1**2 * (product + 1 / H)": "the bias has the variance s1^2, all of it.",
                    },
                },
            )
        ],
        [
            replaced(
                "s0",
                "v0",
                positive(),
                lambda s0: s0**2.0,
                "s0 = v0**0.5",
                "The variance v0 = s0^2 of the first layer is given.",
                {
                    "s0, s1 and H are numbers.": "v0 = s0^2, s1 and H are numbers.",
                    "s0, s1 : float": "v0, s1 : float",
                    "Standard deviations of weights and biases of the first": (
                        "v0 is s0^2; s0 and s1 are the standard deviations\n        "
                        "of weights and biases of the first"
                    ),
                },
            )
        ],
    ],
}
