"""Variations of chapter 3: training."""

from __future__ import annotations

from typing import Any

from ..exercise import positive, real
from ..variants import Variation
from .changes import changed, each, replaced


def _rate_of_rho(factor: int) -> Variation:
    return Variation(
        asks=f"rho moves with {factor} times the learning rate of mu.",
        before=f"d_rho = {factor} * d_rho",
        wrong={
            f"d_rho = {factor} * d_rho": {
                f"d_rho = d_rho / {factor}": f"rho moves {factor} times faster, not slower.",
            },
        },
        statement={
            "eta is a number, the learning rate.": (
                f"eta is a number, the learning rate of mu; that of rho is {factor} eta."
            ),
            "eta : float Learning rate.": (
                f"eta : float\n        Learning rate of mu; that of rho is {factor} eta."
            ),
        },
    )


def _ratio(base: int) -> Variation:
    return changed(
        f"Each minibatch pays {base} times what the next one pays, not twice.",
        {
            "pi_i = 2^(M - i) / (2^M - 1).": (
                f"pi_i = {base - 1} * {base}^(M - i) / ({base}^M - 1)."
            ),
            "Hint: 1 + 2 + 4 + ... + 2^(M - 1) = 2^M - 1.": (
                f"Hint: 1 + {base} + {base**2} + ... + {base}^(M - 1) = "
                f"({base}^M - 1) / {base - 1}."
            ),
            "and 2^M is then no 64-bit integer; from M = 1024 on it is no float either.": (
                f"and {base}^M is then no 64-bit integer; of a thousand it is no float either."
            ),
        },
        {
            "2.0**-i": f"{base - 1} * {base}.0**-i",
            "(1 - 2.0**-parts)": f"(1 - {base}.0**-parts)",
        },
        untrue=("the order is", "the exponent is"),
        restated={
            "2^M - 1, the sum of 1, 2, ..., 2^(M - 1)": f"1 - {base}^-M, or what it is a part of"
        },
        wrong={
            f"{base - 1} * {base}.0**-i": {
                f"{base - 1} * {base}.0 ** (i - 1 - parts)": (
                    "the order is turned round: the first minibatch pays most."
                ),
                f"{base - 1} * {base}.0 ** (1 - i)": (
                    f"the exponent is M - i with i from 1: each share is {base} times what it "
                    "should be."
                ),
                f"{base}.0**-i": f"the factor {base - 1} is missing: they do not add up to 1.",
            },
        },
    )


def _weight_decay(rate: float) -> Variation:
    return Variation(
        asks=(
            f"The step decays the weights as well: of the new theta {rate} eta theta is "
            "subtracted, with the old theta (AdamW)."
        ),
        after=f"(returned[0] - {rate} * eta * theta, returned[1], returned[2])",
        wrong={
            "theta - eta": {
                f"theta + {rate} * eta * theta - {rate} * theta - eta": (
                    "the decay is not multiplied by the learning rate."
                ),
                f"theta + 2 * {rate} * eta * theta - eta": "the decay has the other sign.",
                f"theta + {rate} * eta * theta - eta": "theta itself does not decay.",
            },
            "new_m = beta1": {
                f"grad = grad + {rate} * theta\n    new_m = beta1": (
                    "the decay is added to the gradient, and averaged with it; AdamW leaves it out "
                    "of the averages."
                ),
            },
        },
        statement={
            "Return the new theta, m and v.": (
                f"Return the new theta, with {rate} eta theta subtracted, m and v."
            ),
            "Parameters after the step.": "Parameters after step and decay.",
        },
    )


AXES: dict[str, Any] = {
    "step_of_descent": [
        each((2, 3, 4, 5), _rate_of_rho),
        [
            Variation(
                asks="d_mu and d_rho are the gradient of the lower bound, which is to grow.",
                before="d_mu, d_rho = -d_mu, -d_rho",
                restated={
                    "this climbs: descend against the gradient": (
                        "this descends: the lower bound is to grow"
                    ),
                    "this climbs: descend against it": "this descends: the lower bound is to grow",
                },
                statement={
                    "One step downhill.": "One step uphill.",
                    "The gradient points uphill, so one moves a little against it.": (
                        "The lower bound is minus the free energy, and its gradient points to "
                        "where it grows, so one moves a little along it."
                    ),
                    "one step of gradient descent.": "one step of gradient ascent.",
                    "Gradient of the cost for mu and for rho.": (
                        "Gradient of the lower bound for mu and for rho."
                    ),
                },
            )
        ],
    ],
    "cost_of_a_minibatch": [
        [
            replaced(
                "nll",
                "log_likelihood",
                real("B"),
                lambda nll: -nll,
                "nll = -log_likelihood",
                "The log likelihood of each row is given, not minus it.",
                {
                    "nll is (B,), minus the log likelihood of each row;": (
                        "log_likelihood, of each row, is (B,);"
                    ),
                    "nll : ndarray (B,) Minus the log likelihood of": (
                        "log_likelihood : ndarray (B,)\n        Log likelihood of"
                    ),
                },
            )
        ],
        [
            Variation(
                asks="Return an estimate of the whole free energy: N / B times the cost.",
                after="returned * total / len(nll)",
                untrue=("1/N", "is divided by", "upside down", "scaled up"),
                restated={
                    "every minibatch pays the whole complexity: an epoch pays it once per "
                    "minibatch": "the complexity is multiplied by N / B; in F it counts once"
                },
                wrong={
                    "complexity * len(nll) / total": {
                        "complexity * (len(nll) / total) ** 2": (
                            "only the share B/N of the complexity is paid, as by a minibatch; in F "
                            "it counts once."
                        ),
                    },
                    "np.sum(nll)": {
                        "np.sum(nll) * len(nll) / total": (
                            "the misfit is not scaled up: the minibatch stands for all N rows."
                        ),
                        "np.mean(nll) * len(nll) / total": (
                            "the misfit is the mean over rows; in F it is the sum over all N."
                        ),
                    },
                },
                statement={
                    "Return the cost of the minibatch.": (
                        "Return N / B times the cost of the minibatch, an estimate of the cost of "
                        "all N rows."
                    ),
                    "Return the minibatch's own misfit and its share of the complexity.": (
                        "Return N / B times the misfit of the minibatch and its share."
                    ),
                },
            ),
            Variation(
                asks="Return the cost per row: the cost of the minibatch divided by B.",
                after="returned / len(nll)",
                untrue=("scaled up",),
                restated={
                    "is averaged over rows: then the share would be 1/N, not B/N": (
                        "is divided by B twice"
                    )
                },
                wrong={
                    "complexity * len(nll) / total": {
                        "complexity * len(nll) ** 2 / total": (
                            "the complexity is not divided by B: a row's share is 1/N."
                        ),
                    },
                    "np.sum(nll)": {
                        "np.sum(nll) * len(nll)": "the misfit is not divided by B."
                    },
                },
                statement={
                    "Return the cost of the minibatch.": (
                        "Return the cost of the minibatch divided by its number of rows B."
                    ),
                    "Return the minibatch's own misfit and its share of the complexity.": (
                        "Return the misfit of the minibatch and its share, divided by B."
                    ),
                },
            ),
        ],
    ],
    "geometric_shares": [
        each((3, 4, 5, 10), _ratio),
        [
            Variation(
                asks="Return the shares from the last minibatch to the first.",
                after="returned[::-1]",
                statement={
                    "Return the shares (M,), the first one the largest.": (
                        "Return the shares (M,) from the last minibatch to the first, the last "
                        "one the largest."
                    ),
                    "Return the shares of the complexity, (M,).": (
                        "Return the shares of the complexity, the last minibatch's first, (M,)."
                    ),
                },
            )
        ],
    ],
    "adam_step": [
        each((0.01, 0.1, 0.2, 0.5), _weight_decay),
        [
            changed(
                "The gradient counts once more in the step of theta (Nadam).",
                {
                    "Divide by these factors before use, and": (
                        "Divide by these factors before use, and in the step put\n\n"
                        "    beta1 m / (1 - beta1^t) + (1 - beta1) grad / (1 - beta1^t)\n\n"
                        "in the place of m / (1 - beta1^t). Also"
                    ),
                },
                {
                    "theta - eta * m_hat": (
                        "theta - eta * (beta1 * m_hat + (1 - beta1) * grad / (1 - beta1**t))"
                    )
                },
                untrue=("the factor 1 - beta1",),
                wrong={
                    "beta1 * m + (1 - beta1) * grad": {
                        "beta1 * m + grad": "the factor 1 - beta1 is missing: m is an average.",
                    },
                    "grad / (1 - beta1**t))": {
                        "grad)": "what the gradient counts once more is not corrected.",
                    },
                    "(1 - beta1) * grad / (1": {
                        "grad / (1": "the factor 1 - beta1 is missing where it counts once more.",
                    },
                },
            )
        ],
        [
            Variation(
                asks="grad is the gradient of what is to grow: the step climbs.",
                before="grad, m = -grad, -m",
                after="(returned[0], -returned[1], returned[2])",
                untrue=("the gradient is not squared",),
                restated={"this climbs": "this descends"},
                wrong={
                    "(1 - beta2) * grad**2": {
                        "(1 - beta2) * -grad": "the gradient is not squared in v."
                    },
                },
                statement={
                    "Steps of about the same size for every number.": (
                        "Steps uphill, of about the same size for every number."
                    ),
                    "grad : ndarray (P,) Gradient at theta.": (
                        "grad : ndarray (P,)\n        Gradient at theta of what is to grow."
                    ),
                },
            )
        ],
    ],
    "natural_step": [
        [
            replaced(
                "d_sigma",
                "d_log_sigma",
                real("P"),
                lambda slope: slope,
                "d_sigma = d_log_sigma / sigma",
                "The slope for log sigma is given, dF/dlog sigma = sigma dF/dsigma.",
                {
                    "d_mu and d_sigma (the gradients of F for mu and for sigma) are (P,);": (
                        "d_mu and d_log_sigma (the gradients of F for mu and for log sigma) are "
                        "(P,);"
                    ),
                    "d_mu, d_sigma : ndarray (P,) Gradient of the free energy for mu and for "
                    "sigma.": (
                        "d_mu, d_log_sigma : ndarray (P,)\n"
                        "        Gradient of the free energy for mu and for log sigma."
                    ),
                },
                untrue=("the factor sigma is missing",),
                wrong={
                    "r * sigma * d_sigma": {
                        "r * sigma**2 * d_sigma": (
                            "x is r dF/dlog sigma: the factor sigma is in it already (D61)."
                        ),
                    },
                },
            )
        ],
        [
            replaced(
                "sigma",
                "s",
                positive("P"),
                lambda sigma: sigma**-2.0,
                "sigma = s**-0.5",
                "s = 1 / sigma^2 is given and returned, not sigma.",
                {
                    "Here sigma itself is given and returned.": "s is given and returned.",
                    "Shapes: mu, sigma,": "Shapes: mu, s,",
                    "Return the new mu and sigma.": "Return the new mu and s.",
                    "Return mu and sigma after one step.": "Return mu and s after one step.",
                    "mu, sigma : ndarray (P,) Means and standard deviations of the weights.": (
                        "mu, s : ndarray (P,)\n        Means and precisions of the weights."
                    ),
                    "new_mu, new_sigma : ndarray (P,) Means and standard deviations after": (
                        "new_mu, new_s : ndarray (P,)\n        Means and precisions after"
                    ),
                },
                after="(returned[0], returned[1] ** -2)",
                untrue=("this is the variance",),
                wrong={
                    ", s**-0.5": {
                        ", s**0.5": "this is the variance; s is the precision, one over it.",
                        ", s**0.25": "this is sigma; asked for is s = 1 / sigma^2.",
                    },
                },
                returns="new_mu new_s",
            )
        ],
    ],
}
