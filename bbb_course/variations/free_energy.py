"""Variations of chapter 2: the free energy and its gradient by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..exercise import positive, real
from ..variants import Variation
from .changes import (
    MOVES_BY_SIGMA,
    SIGMOID,
    changed,
    each,
    opposite,
    replaced,
    transposed,
)

SOFTPLUS = "np.log(1 + np.exp(rho))"
CONSTANT_IS_MISSING = (
    "the constant log(2 pi) / 2 of every weight is missing. The report drops it too (K9), and "
    "may: it cancels against the prior's. Here it was asked for."
)


def _sharper(factor: int) -> Variation:
    return Variation(
        asks=f"Its bend is sharper: sigma = log(1 + exp({factor} rho)) / {factor}.",
        before=f"rho = {factor} * rho",
        after=f"returned / {factor}",
        untrue=("this is the variance",),
        wrong={
            SOFTPLUS: {
                f"{factor} / (1 + np.exp(-rho))": (
                    f"this is sigma's slope, the sigmoid of {factor} rho (K24)."
                ),
                f"{SOFTPLUS} * {factor}": f"sigma is not divided by {factor}.",
                f"{SOFTPLUS} ** 2 / {factor}": "this is the variance sigma^2; asked for is sigma.",
            }
        },
        statement={
            "sigma = log(1 + exp(rho)).": f"sigma = log(1 + exp({factor} rho)) / {factor}.",
            "for very negative rho nearly exp(rho),": (
                f"for very negative rho nearly exp({factor} rho) / {factor},"
            ),
        },
    )


def _tempered(temperature: int) -> Variation:
    return Variation(
        asks=f"The complexity is multiplied by the temperature {temperature}, beside its share pi.",
        edits={"(log_q - log_prior)": f"({temperature} * (log_q - log_prior))"},
        untrue=("log q alone",),
        wrong={
            f"pi * ({temperature} * (log_q - log_prior))": {
                f"{temperature} * (pi * log_q - log_prior)": (
                    "the share pi multiplies log q alone; put brackets around the difference."
                ),
                f"pi / {temperature} * (log_q - log_prior)": (
                    f"the complexity is divided by {temperature}; it is multiplied by it."
                ),
                f"pi * ({temperature} * log_q - log_prior)": (
                    "the temperature multiplies log q alone; put brackets around the difference."
                ),
            },
        },
        statement={
            "It is minus the evidence's lower bound.": (
                "At the temperature 1 it is minus the evidence's lower bound."
            ),
            "and the misfit -log P(D|w),": (
                f"multiplied here by the temperature {temperature}, and the misfit -log P(D|w),"
            ),
            "pi : float Share of the complexity that": (
                "pi : float\n"
                f"        Share of the complexity, beside its factor {temperature}, that"
            ),
        },
    )


def _prior_with_mean(mean: int) -> Variation:
    return changed(
        f"The prior of each weight is N({mean}, prior^2).",
        {
            "w^2 / (2 prior^2)]": f"(w - {mean})^2 / (2 prior^2)]",
            "Standard deviation of the weights under the prior.": (
                f"Standard deviation of the weights under the prior, whose mean is {mean}."
            ),
        },
        {
            "w**2 / (2 * prior**2)": f"(w - {mean}) ** 2 / (2 * prior**2)",
            "w / prior**2": f"(w - {mean}) / prior**2",
        },
        untrue=("w / prior^2",),
        wrong={
            f"pi * (w - {mean}) / prior**2": {
                "pi * w / prior**2": (
                    f"the prior's mean is missing in its slope (w - {mean}) / prior^2."
                ),
                f"pi * (w - {mean})": (
                    f"the prior's scale is forgotten in its slope (w - {mean}) / prior^2 (K21)."
                ),
                f"pi * (w - {mean}) / prior": (
                    f"the prior's slope is (w - {mean}) / prior^2: prior is not squared (K21)."
                ),
            },
        },
    )


def _activation(
    asks: str, formula: str, value: str, slope: str, wrong: Mapping[str, str]
) -> Variation:
    return changed(
        asks,
        {
            "a0 = ReLU(z0),": f"a0 = {formula},",
            "ReLU passes it on where its input is positive.": (
                "the activation passes it on times its derivative."
            ),
        },
        {
            "a0 = z0 * (z0 > 0)": f"a0 = {value}",
            ".T) * (z0 > 0)": f".T) * {slope}",
        },
        restated={
            "ReLU without its derivative: units that are off pass no slope": (
                "the activation's derivative is missing behind W1"
            ),
            "the gate is multiplied by the activation; ReLU's slope is 1 where z > 0": (
                "the activation itself stands where its derivative belongs"
            ),
            "ReLU(z)": "the activation of z",
            ": units open elsewhere": "",
        },
        wrong={
            f".T) * {slope}": {
                ".T) * (z0 > 0)": "this is ReLU's derivative; the activation is another (K39).",
                **{f".T) * {other}": says for other, says in wrong.items()},
            },
        },
    )


def _leaky(slope: float) -> Variation:
    return _activation(
        f"The activation is a leaky ReLU: z for z > 0, and {slope} z elsewhere.",
        f"max(z0, {slope} z0)",
        f"np.where(z0 > 0, z0, {slope} * z0)",
        f"np.where(z0 > 0, 1.0, {slope})",
        {
            f"np.where(z0 > 0, 1.0, -{slope})": "the sign of the slope where a unit is off (K39)."
        },
    )


AXES: dict[str, Any] = {
    "softplus": [
        each((2, 3, 4, 5), _sharper),
        [
            Variation(
                asks="Return the variance, sigma^2.",
                after="returned**2",
                untrue=("this is",),
                statement={
                    "one number for each weight; so is sigma.": (
                        "one number for each weight; so is what you return, sigma^2."
                    ),
                    "Return sigma (P,).": "Return sigma^2 (P,).",
                },
            ),
        ],
    ],
    "from_noise_to_weights": [
        [
            changed(
                "sigma is exp(rho), not softplus(rho).",
                {
                    "w = mu + sigma eps, sigma = softplus(rho).": (
                        "w = mu + sigma eps,    sigma = exp(rho)."
                    ),
                    "standard deviations; sigma = softplus(rho).": (
                        "standard deviations; sigma = exp(rho)."
                    ),
                },
                {SOFTPLUS: "np.exp(rho)"},
                restated={"softplus(rho) is (K3)": "exp(rho) is"},
            ),
            changed(
                "rho is the logarithm of the variance: sigma^2 = exp(rho).",
                {
                    "w = mu + sigma eps, sigma = softplus(rho).": (
                        "w = mu + sigma eps,    sigma^2 = exp(rho)."
                    ),
                    "Raw standard deviations; sigma = softplus(rho).": (
                        "Logarithms of the variances; sigma^2 = exp(rho)."
                    ),
                },
                {SOFTPLUS: "np.exp(rho / 2)"},
                restated={"softplus(rho) is (K3)": "exp(rho / 2) is"},
            ),
        ],
        [
            transposed(
                {"eps": real("PS")},
                "Samples are columns: eps and what you return are (P, S).",
                {
                    "eps is (S, P): S samples of all weights,": (
                        "eps is (P, S): S samples of all weights,"
                    ),
                    "all others. Return w (S, P).": "all others. Return w (P, S).",
                    "samples of the weights, (S, P).": "samples of the weights, (P, S).",
                    "eps : ndarray (S, P)": "eps : ndarray (P, S)",
                },
                after="returned.T",
            )
        ],
    ],
    "log_posterior_of_the_noise": [
        [
            changed(
                "q is Laplace's distribution: eps has the density exp(-|eps|) / 2.",
                {
                    "the log density of N(mu, sigma^2) at w.": (
                        "the log density at w of Laplace's distribution, of which "
                        "(w - mu) / sigma has the density exp(-|eps|) / 2."
                    ),
                    "with the constant log(2 pi) / 2 of every weight.": (
                        "with the constant log 2 of every weight."
                    ),
                    "Standard deviations of the weights.": "Scales of the weights.",
                    "Standard normal noise": "Noise of the density exp(-abs(eps)) / 2",
                },
                {"eps**2 / 2": "abs(eps)", "np.log(2 * np.pi) / 2": "np.log(2)"},
                untrue=("half of", "twice"),
                restated={
                    "eps^2 / 2": "|eps|",
                    CONSTANT_IS_MISSING: "the constant log 2 of every weight is missing.",
                },
                wrong={
                    "- abs(eps)": {
                        "- abs(eps) / sigma": (
                            "|w - mu| / sigma is |eps|: sigma is divided by twice."
                        ),
                        "- eps**2 / 2": "the exponent is Gauss's; Laplace's is |eps|.",
                    },
                },
            ),
            changed(
                "q is logistic: eps has the density exp(-eps) / (1 + exp(-eps))^2.",
                {
                    "the log density of N(mu, sigma^2) at w.": (
                        "the log density at w of the logistic distribution, of which "
                        "(w - mu) / sigma has the density exp(-eps) / (1 + exp(-eps))^2."
                    ),
                    ", with the constant log(2 pi) / 2 of every weight.": ".",
                    "Standard deviations of the weights.": "Scales of the weights.",
                    "Standard normal noise": "Logistic noise",
                },
                {
                    "eps**2 / 2": "eps",
                    "np.log(2 * np.pi) / 2": "2 * np.log(1 + np.exp(-eps))",
                },
                untrue=("half of", "twice", "the constant", "the sign of eps^2"),
                wrong={
                    "- 2 * np.log(1 + np.exp(-eps))": {
                        "- np.log(1 + np.exp(-eps))": (
                            "1 + exp(-eps) is squared: its logarithm counts twice."
                        ),
                        "+ 2 * np.log(1 + np.exp(-eps))": (
                            "the sign of the logarithm: 1 + exp(-eps) is divided by."
                        ),
                    },
                },
            ),
            replaced(
                "sigma",
                "precision",
                positive("P"),
                lambda sigma: sigma**-2.0,
                "sigma = precision**-0.5",
                "Precisions, 1 / sigma^2, are given in the place of standard deviations.",
                {
                    "Shapes: sigma is (P,),": "Shapes: precision is (P,),",
                    "sigma : ndarray (P,) Standard deviations of the weights.": (
                        "precision : ndarray (P,)\n        Precisions of the weights, 1 / sigma^2."
                    ),
                },
            ),
        ],
        [
            transposed(
                {"eps": real("PS")},
                "Samples are columns: eps is (P, S).",
                {
                    "eps is (S, P). Return": "eps is (P, S). Return",
                    "eps : ndarray (S, P)": "eps : ndarray (P, S)",
                },
            )
        ],
        [
            opposite(
                "Return minus the log density.",
                {
                    "Return log q of each sample,": "Return minus log q of each sample,",
                    "Return log q(w) of every sample,": "Return minus log q(w) of every sample,",
                },
                n_blocks=1,
            )
        ],
    ],
    "free_energy": [
        [
            transposed(
                {"log_likelihood": real("BS")},
                "log_likelihood is (B, S), a row for each datum.",
                {
                    "log_likelihood is (S, B), one per sample and row;": (
                        "log_likelihood is (B, S), one per row and sample;"
                    ),
                    "log_likelihood : ndarray (S, B)": "log_likelihood : ndarray (B, S)",
                },
            ),
            replaced(
                "log_likelihood",
                "nll",
                real("SB"),
                lambda value: -value,
                "log_likelihood = -nll",
                "nll, minus the log likelihood, is given.",
                {
                    "log_likelihood is (S, B), one per sample and row;": (
                        "nll, -log P(y|w), is (S, B), one per sample and row;"
                    ),
                    "log_likelihood : ndarray (S, B) Log likelihood": (
                        "nll : ndarray (S, B)\n        Minus the log likelihood"
                    ),
                },
            ),
        ],
        [
            opposite(
                "Return the evidence's lower bound, minus the free energy.",
                {
                    "Return the cost of the minibatch, one number.": (
                        "Return minus the cost of the minibatch, its part of the lower bound."
                    ),
                    "Return the free energy of a minibatch.": (
                        "Return minus the free energy of a minibatch."
                    ),
                },
                n_blocks=1,
            )
        ],
        each((2, 3, 4, 5), _tempered),
    ],
    "value_and_gradient": [
        [
            changed(
                "sigma is exp(rho), not softplus(rho).",
                {
                    "sigma = softplus(rho), w = mu + sigma eps,": (
                        "sigma = exp(rho),  w = mu + sigma eps,"
                    ),
                    "sigma moves with rho by the sigmoid.": "sigma moves with rho by sigma.",
                    "standard deviations; sigma = softplus(rho).": (
                        "standard deviations; sigma = exp(rho)."
                    ),
                },
                {f"sigma = {SOFTPLUS}": "sigma = np.exp(rho)", SIGMOID: " * sigma"},
                untrue=("softplus", "sigmoid"),
                wrong=MOVES_BY_SIGMA,
            )
        ],
        [
            changed(
                "The prior is Laplace's: exp(-|w| / prior) / (2 prior) is its density.",
                {
                    "w^2 / (2 prior^2)]": "|w| / prior + log 2 - log(2 pi) / 2]",
                    "prior : float Standard deviation of the weights under the prior.": (
                        "prior : float\n        Scale of the weights under the prior."
                    ),
                },
                {
                    "w**2 / (2 * prior**2)": "abs(w) / prior + np.log(2) - LOG_2PI / 2",
                    "w / prior**2": "np.sign(w * 1.0) / prior",
                },
                untrue=("w / prior^2",),
                wrong={
                    "pi * np.sign(w * 1.0) / prior": {
                        "pi * np.sign(w * 1.0)": (
                            "the prior's scale is forgotten in its slope sign(w) / prior."
                        ),
                        "pi * np.sign(w * 1.0) / prior**2": (
                            "the prior's slope is sign(w) / prior: prior is not squared."
                        ),
                        "pi * w / prior": "the slope of |w| is the sign of w, not w.",
                        "pi * w / prior**2": "this is the slope of a Gaussian prior (K21).",
                    },
                    "+ np.log(2) - LOG_2PI / 2": {
                        "- LOG_2PI / 2": "the prior's constant log 2 is missing.",
                        "": (
                            "the constants log 2 of the prior and log(2 pi) / 2 of q are missing: "
                            "they do not cancel."
                        ),
                    },
                },
            ),
            *each((1, 2, 3), _prior_with_mean),
        ],
        [
            changed(
                "The noise is Laplace's: exp(-|y - w . x| / noise) / (2 noise) is its density.",
                {
                    "(y - w . x)^2 / (2 noise^2) + log(noise) + log(2 pi) / 2]": (
                        "|y - w . x| / noise + log(noise) + log 2]"
                    ),
                    "noise : float Standard deviation of y around w . x.": (
                        "noise : float\n        Scale of y around w . x."
                    ),
                },
                {
                    "r**2 / (2 * noise**2)": "abs(r) / noise",
                    "+ LOG_2PI / 2": "+ np.log(2)",
                    "r @ x": "np.sign(r * 1.0) @ x",
                    "/ noise**2": "/ noise",
                },
                untrue=("every row is missing",),
                restated={
                    "-(y - f) x / noise^2 (K37)": "-sign(y - f) x / noise",
                    "lacks 1 / noise^2: unit variance, as in the report (K16)": "lacks 1 / noise",
                },
                wrong={
                    "np.log(noise) + np.log(2)": {
                        "np.log(2)": "log(noise) of every row is missing (K15).",
                        "np.log(noise)": "log 2 of every row is missing.",
                    },
                    "- np.sign(r * 1.0) @ x / noise": {
                        "- np.sign(r * 1.0) @ x / noise**2": (
                            "the likelihood's slope is -sign(y - f) x / noise: it is not squared."
                        ),
                        "- r @ x / noise**2": "this is the slope of Gaussian noise (K37).",
                    },
                },
            )
        ],
    ],
    "backward_pass": [
        [
            *each((0.05, 0.1, 0.2), _leaky),
            _activation(
                "The activation is tanh.",
                "tanh(z0)",
                "np.tanh(z0)",
                "(1 - a0**2)",
                {
                    "(1 - z0**2)": "a stands in tanh's derivative, 1 - a^2, not z (K39).",
                    "(1 + a0**2)": "the sign: tanh has the derivative 1 - a^2 (K39).",
                    "(a0 * (1 - a0))": "this is the sigmoid's derivative; tanh's is 1 - a^2.",
                },
            ),
            _activation(
                "The activation is the square of ReLU.",
                "ReLU(z0)^2",
                "(z0 * (z0 > 0)) ** 2",
                "(2 * z0 * (z0 > 0))",
                {
                    "(z0 * (z0 > 0))": "the 2 is missing: z^2 has the slope 2 z (K39).",
                    "(2 * z0)": "units that are off pass no slope: z > 0 is missing (K39).",
                },
            ),
            _activation(
                "The activation is softplus.",
                "log(1 + exp(z0))",
                "np.log(1 + np.exp(z0))",
                "(1 / (1 + np.exp(-z0)))",
                {"(1 / (1 + np.exp(z0)))": "the sign of z in the sigmoid (K24)."},
            ),
        ],
        [
            Variation(
                asks="The value is the mean over rows, not their sum.",
                after="tuple(block / len(x) for block in returned)",
                untrue=("the mean over rows",),
                wrong={
                    "np.sum((y - f) ** 2) / 2": {
                        "np.mean((y - f) ** 2) * len(x) / 2": (
                            "the mean over rows and outputs: outputs are added up (K16)."
                        )
                    },
                },
                statement={
                    "value = sum over rows and outputs of (y - f)^2 / 2.": (
                        "value = mean over rows of the sum over outputs of (y - f)^2 / 2."
                    ),
                    "Half the sum of squared errors over rows and outputs.": (
                        "Half the sum over outputs of squared errors, in the mean over rows."
                    ),
                    "Return half the sum of squares and its slopes": (
                        "Return half the mean sum of squares and its slopes"
                    ),
                    "Start with delta = -(y - f) at the outputs and walk": (
                        "Start at the outputs and walk"
                    ),
                },
            )
        ],
    ],
}
