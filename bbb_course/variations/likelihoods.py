"""Variations of chapter 6: likelihoods."""

from __future__ import annotations

from typing import Any

from ..exercise import logit, positive
from ..variants import Variation
from .changes import changed, each, opposite, replaced


def _log_likelihood(given: str, *edits: tuple[str, str]) -> Variation:
    """Return the variation that asks for the log likelihood, of P(y|`given`)."""
    return opposite(
        "Return the log likelihood and its slopes, not minus the log likelihood.",
        {
            f"Minus log P(y|{given}), added": f"Log P(y|{given}), added",
            **dict(edits),
        },
    )


def _cooled(temperature: int) -> Variation:
    return Variation(
        asks=f"The logits are z / {temperature}: z is divided by a temperature.",
        before=f"z = z / {temperature}",
        after=f"(returned[0], returned[1] / {temperature})",
        drops_mistakes=True,
        statement={"Logits.": f"Logits, before they are divided by {temperature}."},
    )


def _smoothed(share: float) -> Variation:
    return Variation(
        asks=(
            f"Labels are smoothed: y is replaced by {1 - share} y + {share / 2} in the line that "
            "follows, and in its slope."
        ),
        before=f"y = {1 - share} * y + {share / 2}",
        drops_mistakes=True,
        statement={"Labels, 0 or 1.": "Labels, 0 or 1, before they are smoothed."},
    )


def _learned_with_scale(divisor: int) -> Variation:
    return Variation(
        asks=f"Each row is the mean of {divisor} measurements, of the variance exp(2 t) each.",
        before=f"t = t - np.log({divisor}) / 2",
        drops_mistakes=True,
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


ROBUST = {  # minus the log density of r = (y - f) / noise, and its slope for r
    "Laplace's": (
        "exp(-|r|) / 2",
        "abs(y - f) / noise + np.log(2)",
        "-np.sign(y * 1.0 - f) / noise",
    ),
    "logistic": (
        "exp(-r) / (1 + exp(-r))^2",
        "(y - f) / noise + 2 * np.log(1 + np.exp(-(y - f) / noise))",
        "-(1 - 2 / (1 + np.exp((y - f) / noise))) / noise",
    ),
    "Cauchy's": (
        "1 / (pi (1 + r^2))",
        "np.log(np.pi) + np.log(1 + (y - f) ** 2 / noise**2)",
        "-2 * (y - f) / (noise**2 + (y - f) ** 2)",
    ),
}


def _noise_of(name: str) -> Variation:
    density, value, slope = ROBUST[name]
    return changed(
        f"The noise is {name}: r = (y - f) / noise has the density {density}.",
        {
            "scatter around the function like a Gaussian.": (
                "scatter around the function like a Gaussian. Here they do not: "
                f"r = (y - f) / noise has the density {density}."
            ),
            "The density says so openly,": "A density says openly what is believed,",
        },
        {
            "(y - f) ** 2 / (2 * noise**2) + np.log(noise) + np.log(2 * np.pi) / 2": (
                f"{value} + np.log(noise)"
            ),
            "-(y - f) / noise**2": slope,
        },
        drops_mistakes=True,
    )


AXES: dict[str, Any] = {
    "gaussian_likelihood": [
        each([*ROBUST], _noise_of),
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
                drops_mistakes=True,
            )
        ],
        [
            Variation(
                asks="Return the mean over rows and its slopes, not the sum.",
                after="tuple(block / len(y) for block in returned)",
                drops_mistakes=True,
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
        each((2, 3, 4), _cooled),
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
        each((2, 3, 4), _cooled),
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
                drops_mistakes=True,
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
                drops_mistakes=True,
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
                drops_mistakes=True,
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
                after="(returned[0], returned[1], -returned[2])",
                drops_mistakes=True,
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
                after="(returned[0], returned[1], -returned[2])",
                drops_mistakes=True,
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
