"""Variations of chapter 6: likelihoods."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from ..exercise import logit, positive
from ..variants import Variation
from .changes import changed, each, opposite, replaced

MINUS_IS_NOT_ASKED = {
    "this is the log likelihood; minus it is asked for": (
        "this is minus the log likelihood; the log likelihood is asked for"
    )
}
DIVIDED_TWICE = {
    "is divided by the number of rows": "is divided by the number of rows twice"
}


def _log_likelihood(given: str, *edits: tuple[str, str]) -> Variation:
    """Return the variation that asks for the log likelihood, of P(y|`given`)."""
    return opposite(
        "Return the log likelihood and its slopes, not minus the log likelihood.",
        {
            f"Minus log P(y|{given}), added": f"Log P(y|{given}), added",
            **dict(edits),
        },
        restated=MINUS_IS_NOT_ASKED,
    )


def _cooled(temperature: int, slope: str) -> Variation:
    return Variation(
        asks=f"The logits are z / {temperature}: z is divided by a temperature.",
        before=f"z = z / {temperature}",
        after=f"(returned[0], returned[1] / {temperature})",
        untrue=("for the probability",),
        restated={
            "has the slope": f"has for z / {temperature} the slope",
            "(z) - ": f"(z / {temperature}) - ",
        },
        wrong={
            slope: {
                f"{temperature} * ({slope})": (
                    f"the chain rule: z / {temperature} moves with z by 1 / {temperature}."
                ),
                f"{temperature}**2 * ({slope})": (
                    f"the slope is multiplied by {temperature}; z / {temperature} moves with z by "
                    f"1 / {temperature}."
                ),
            },
        },
        statement={"Logits.": f"Logits, before they are divided by {temperature}."},
    )


def _smoothed(share: float) -> Variation:
    return Variation(
        asks=(
            f"Labels are smoothed: y is replaced by {1 - share} y + {share / 2} in the line that "
            "follows, and in its slope."
        ),
        before=f"y = {1 - share} * y + {share / 2}",
        restated={
            "only rows of label 1 count: those of label 0 have": (
                "only label 1 counts: the share of label 0 has"
            )
        },
        wrong={
            f"y = {1 - share} * y + {share / 2}": {
                f"y = {1 - share} * y": f"{share / 2} is missing: label 0 is smoothed, too.",
                f"y = {1 - share} * y + {share}": (
                    f"the {share} is shared by the two labels: {share / 2} for each."
                ),
            },
        },
        statement={"Labels, 0 or 1.": "Labels, 0 or 1, before they are smoothed."},
    )


def _learned_with_scale(divisor: int) -> Variation:
    return Variation(
        asks=f"Each row is the mean of {divisor} measurements, of the variance exp(2 t) each.",
        before=f"t = t - np.log({divisor}) / 2",
        wrong={
            f"t - np.log({divisor}) / 2": {
                f"t - np.log({divisor})": (
                    f"the variance is divided by {divisor}, the standard deviation by its root."
                ),
                f"t + np.log({divisor}) / 2": "the sign: a mean varies less than one measurement.",
            },
        },
        statement={
            "the cost of B rows is": (
                f"the cost of B rows of the variance exp(2 T) = exp(2 t) / {divisor} is"
            ),
            "At the optimum the noise is the root": "At the optimum exp(T) is the root",
            "sum_b [t +": "sum_b [T +",
            "exp(-2 t) / 2].": "exp(-2 T) / 2].",
            "Logarithm of the standard deviation of y around f.": (
                "Logarithm of the standard deviation of one measurement."
            ),
        },
    )


class Noise(NamedTuple):
    """A law of r = (y - f) / noise.

    Attributes
    ----------
    density : str
    value : str
        Minus the log density of r, without the constant.
    constant : str
        What is added to it in the place of log(2 pi) / 2, with its sign.
    slope : str
        Its slope for f.
    wrong : mapping of str to str
        Known mistakes of the slope.
    restated : mapping of str to str
        Words of the sentences about the book's mistakes, and others in their place.
    """

    density: str
    value: str
    constant: str
    slope: str
    wrong: Mapping[str, str]
    restated: Mapping[str, str]


NOISES = {
    "Laplace's": Noise(
        "exp(-|r|) / 2",
        "abs(y - f) / noise",
        "+ np.log(2)",
        "-np.sign(y * 1.0 - f) / noise",
        {
            "-np.sign(y * 1.0 - f)": "1 / noise is missing in the slope.",
            "-np.sign(y * 1.0 - f) / noise**2": "noise is squared in the slope of |r|.",
            "-(y - f) / noise": "the slope of |r| is the sign of r, not r.",
        },
        {"log(2 pi) / 2": "log 2"},
    ),
    "logistic": Noise(
        "exp(-r) / (1 + exp(-r))^2",
        "(y - f) / noise + 2 * np.log(1 + np.exp(-(y - f) / noise))",
        "",
        "-(1 - 2 / (1 + np.exp((y - f) / noise))) / noise",
        {
            "-(1 - 2 / (1 + np.exp((y - f) / noise)))": "1 / noise is missing in the slope.",
            "-(1 - 1 / (1 + np.exp((y - f) / noise))) / noise": (
                "1 + exp(-r) is squared: its logarithm's slope counts twice."
            ),
        },
        {},
    ),
    "Cauchy's": Noise(
        "1 / (pi (1 + r^2))",
        "np.log(1 + (y - f) ** 2 / noise**2)",
        "+ np.log(np.pi)",
        "-2 * (y - f) / (noise**2 + (y - f) ** 2)",
        {
            "-(y - f) / (noise**2 + (y - f) ** 2)": "the 2 is missing: r^2 has the slope 2 r.",
            **dict.fromkeys(
                [
                    "-2 * (y - f) / (1 + (y - f) ** 2 / noise**2)",
                    "-2 * (y - f) / noise / (1 + (y - f) ** 2 / noise**2)",
                ],
                "the chain rule: r^2 has the slope -2 (y - f) / noise^2 for f.",
            ),
        },
        {"log(2 pi) / 2": "log pi"},
    ),
}


def _noise_of(name: str) -> Variation:
    noise = NOISES[name]
    constant = "+ np.log(2 * np.pi) / 2"
    return changed(
        f"The noise is {name}: r = (y - f) / noise has the density {noise.density}.",
        {
            "scatter around the function like a Gaussian.": (
                "scatter around the function like a Gaussian. Here they do not: "
                f"r = (y - f) / noise has the density {noise.density}."
            ),
            "The density says so openly,": "A density says openly what is believed,",
        },
        {
            "(y - f) ** 2 / (2 * noise**2)": noise.value,
            constant: noise.constant,
            "-(y - f) / noise**2": noise.slope,
        },
        untrue=("the sign: y - f", "in the slope", "the slope is", "is taken for 1"),
        restated=noise.restated,
        wrong={
            "2 * np.log(1": {
                "np.log(1": "1 + exp(-r) is squared: its logarithm counts twice."
            },
            f"value, {noise.slope}": {
                f"value, -({noise.slope})": "the sign: y - f falls with f.",
                f"value, ({noise.slope}) / len(y)": (
                    "the slope is divided by the number of rows: the likelihood is a sum (K15)."
                ),
                **{f"value, {slope}": says for slope, says in noise.wrong.items()},
            },
        },
    )


AXES: dict[str, Any] = {
    "gaussian_likelihood": [
        each([*NOISES], _noise_of),
        [
            replaced(
                "noise",
                "precision",
                positive(),
                lambda noise: noise**-2.0,
                "noise = precision**-0.5",
                "precision = 1 / noise^2 is given.",
                {
                    "noise is a standard deviation, a number.": (
                        "precision is a number, 1 / noise^2."
                    ),
                    "noise : float Standard deviation of y around f.": (
                        "precision : float\n        One over the square of the width of y around f."
                    ),
                },
            )
        ],
        [
            _log_likelihood(
                "f",
                (
                    "Return minus the log likelihood, summed",
                    "Return the log likelihood, summed",
                ),
                (
                    "Return minus log P(y|f) and its slope",
                    "Return log P(y|f) and its slope",
                ),
            )
        ],
    ],
    "learned_noise": [
        each((2, 3, 4), _learned_with_scale),
        [
            opposite(
                "Return minus the cost, the log likelihood.",
                {
                    "Return the value, d_f (B,), and d_t, one number.": (
                        "Return minus this cost, d_f (B,), and d_t, one number."
                    ),
                    "Cost of the rows, in nats.": "Minus the cost of the rows, in nats.",
                },
            )
        ],
    ],
    "noise_that_depends_on_the_input": [
        [
            changed(
                "sigma is c + exp(h), not c + softplus(h).",
                {"sigma = c + log(1 + exp(h)),": "sigma = c + exp(h),"},
                {
                    "np.log(1 + np.exp(h))": "np.exp(h)",
                    " / (1 + np.exp(-h))": " * np.exp(h)",
                },
                restated={
                    "the sigmoid, the slope of softplus (K24)": "exp(h), its slope"
                },
                wrong={
                    "c + np.exp(h)": {"np.exp(h)": "the floor c is missing in sigma."},
                    "d_sigma * np.exp(h)": {
                        "d_sigma * sigma": "sigma is c + exp(h); its slope, exp(h), has no floor.",
                        "d_sigma / (1 + np.exp(-h))": (
                            "the sigmoid is the slope of softplus; that of exp(h) is exp(h)."
                        ),
                    },
                },
            )
        ],
        [
            Variation(
                asks="Return the mean over rows and its slopes, not the sum.",
                after="tuple(block / len(y) for block in returned)",
                restated=DIVIDED_TWICE,
                statement={
                    "sum_b [log sigma_b": "(1/B) sum_b [log sigma_b",
                    "Minus log P(y|m, h), added up over rows.": (
                        "Minus log P(y|m, h), the mean over rows."
                    ),
                },
            ),
            _log_likelihood(
                "m, h",
                (
                    "Return the value, d_m (B,) and d_h (B,).",
                    "Return minus this sum, d_m (B,) and d_h (B,).",
                ),
            ),
        ],
    ],
    "two_classes": [
        each((2, 3, 4), partial(_cooled, slope="s - y")),
        each((0.1, 0.2), _smoothed),
        [
            _log_likelihood(
                "z",
                (
                    "Return the sum over rows, and",
                    "Return minus the sum over rows, and",
                ),
                (
                    "Return minus log P(y|z) and its slope",
                    "Return log P(y|z) and its slope",
                ),
            )
        ],
    ],
    "several_classes": [
        each((2, 3, 4), partial(_cooled, slope="p - chosen")),
        [
            _log_likelihood(
                "z",
                (
                    "Return the sum over rows, and",
                    "Return minus the sum over rows, and",
                ),
                (
                    "Return minus log P(y|z) and its slope",
                    "Return log P(y|z) and its slope",
                ),
            ),
            Variation(
                asks="Return the mean over rows and its slope, not the sum.",
                after="tuple(block / len(y) for block in returned)",
                restated={": the likelihood is a sum": "", **DIVIDED_TWICE},
                statement={
                    "Return the sum over rows, and": "Return the mean over rows, and",
                    "Minus log P(y|z), added up over rows.": (
                        "Minus log P(y|z), the mean over rows."
                    ),
                },
            ),
        ],
    ],
    "counts": [
        [
            changed(
                "The rate is softplus(z), not exp(z).",
                {
                    "so the network's output z is its logarithm.": (
                        "so the network's output z is put through softplus: the rate is "
                        "log(1 + exp(z))."
                    ),
                    "Logarithms of the rates.": "Raw rates; the rate is softplus(z).",
                },
                {
                    "slope = np.exp(z) - y": (
                        "rate = np.log(1 + np.exp(z))\n"
                        "    slope = (1 - y / rate) / (1 + np.exp(-z))"
                    ),
                    "np.exp(z) - y * z)": "rate - y * np.log(rate))",
                },
                wrong={
                    "(1 - y / rate) / (1 + np.exp(-z))": {
                        "(y / rate - 1) / (1 + np.exp(-z))": "the sign of the slope.",
                        "1 - y / rate": (
                            "this is the slope for the rate; for z it is multiplied by the "
                            "sigmoid, the slope of softplus (K24)."
                        ),
                        "1 / (1 + np.exp(-z))": "the count is missing in the slope.",
                        "rate - y": (
                            "this would be the slope if z were the logarithm of the rate."
                        ),
                        "(rate - y) / (1 + np.exp(-z))": (
                            "the slope for the logarithm of the rate is multiplied by the slope "
                            "of softplus; it is divided by the rate first."
                        ),
                    },
                    "rate - y * np.log(rate)": {
                        "y * np.log(rate) - rate": (
                            "this is the log likelihood; minus it is asked for."
                        ),
                        "-y * np.log(rate)": "the rate itself is missing: it makes the sum 1.",
                        "rate - y * z": "z is taken for the logarithm of the rate, softplus(z).",
                        "rate - y * rate": "the logarithm of the rate is missing.",
                    },
                },
            ),
            changed(
                "Counts are geometric: P(y) = m^y / (1 + m)^(y + 1), of the mean m = exp(z).",
                {
                    "Poisson's law has one number, the rate, and gives the count y the probability "
                    "exp(-rate) rate^y / y!. A rate is positive, so": (
                        "The geometric law has one number, the mean m, and gives the count y the "
                        "probability m^y / (1 + m)^(y + 1). A mean is positive, so"
                    ),
                    "summed over rows and without log y!, which nothing here depends on;": (
                        "summed over rows;"
                    ),
                    "Return minus log P(y|z), without log y!,": "Return minus log P(y|z),",
                    "Minus log P(y|z), added up over rows, without log y!.": (
                        "Minus log P(y|z), added up over rows."
                    ),
                    "Logarithms of the rates.": "Logarithms of the means.",
                },
                {
                    "slope = np.exp(z) - y": "slope = (y + 1) / (1 + np.exp(-z)) - y",
                    "np.exp(z) - y * z)": "(y + 1) * np.log(1 + np.exp(z)) - y * z)",
                },
                wrong={
                    "(y + 1) / (1 + np.exp(-z)) - y": {
                        "y - (y + 1) / (1 + np.exp(-z))": "the sign of the slope.",
                        "(y + 1) / (1 + np.exp(-z))": "the count is missing in the slope.",
                        "y / (1 + np.exp(-z)) - y": "the exponent of 1 + m is y + 1, not y.",
                        "(y + 1) / (1 + np.exp(z)) - y": "the sign of z in the sigmoid (K24).",
                    },
                    "(y + 1) * np.log(1 + np.exp(z)) - y * z": {
                        "y * np.log(1 + np.exp(z)) - y * z": (
                            "the exponent of 1 + m is y + 1, not y."
                        ),
                        "y * z - (y + 1) * np.log(1 + np.exp(z))": (
                            "this is the log likelihood; minus it is asked for."
                        ),
                        "(y + 1) * np.log(1 + np.exp(z))": "m^y is missing: -y z.",
                    },
                },
            ),
        ],
        [
            opposite(
                "Return the log likelihood and its slope, not minus the log likelihood.",
                {
                    "Return minus the log likelihood,": "Return the log likelihood,",
                    "Return minus log P(y|z),": "Return log P(y|z),",
                    "Minus log P(y|z), added": "Log P(y|z), added",
                },
                restated=MINUS_IS_NOT_ASKED,
            )
        ],
    ],
    "negative_binomial": [
        [
            replaced(
                "t",
                "t",
                logit(),
                lambda t: -t,
                "t = -t",
                "t is the logarithm of 1 / r, the variance of the Gamma variable.",
                {
                    "for all rows at once, t is its logarithm.": (
                        "for all rows at once, t is the logarithm of 1 / r."
                    ),
                    "Logarithm of r, the shape": "Logarithm of 1 / r, r the shape",
                },
                restated={
                    "logarithm of 1 / r; it is that of r": "logarithm of r; it is that of 1 / r"
                },
                after="(returned[0], returned[1], -returned[2])",
            )
        ],
        [
            _log_likelihood(
                "f, t",
                ("Return minus the log likelihood,", "Return the log likelihood,"),
                ("Return minus log P(y|f, t),", "Return log P(y|f, t),"),
            )
        ],
    ],
    "extra_zeros": [
        [
            replaced(
                "z",
                "z",
                logit(),
                lambda z: -z,
                "z = -z",
                "z is the log odds of a row that is not of this kind, of 1 - q.",
                {
                    "The share is learned by its log odds z: q = exp(z) / (1 + exp(z)).": (
                        "The share of the others is learned by its log odds z: "
                        "1 - q = exp(z) / (1 + exp(z))."
                    ),
                    "Log odds of an extra zero.": "Log odds of a count of Poisson's.",
                },
                restated={"zeros is z + m": "zeros is m - z"},
                after="(returned[0], returned[1], -returned[2])",
            )
        ],
        [
            _log_likelihood(
                "f, z",
                ("Return minus the log likelihood,", "Return the log likelihood,"),
                ("Return minus log P(y|f, z),", "Return log P(y|f, z),"),
            )
        ],
    ],
}
