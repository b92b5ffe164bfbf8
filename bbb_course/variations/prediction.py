"""Variations of chapter 4: prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import positive, real, unit
from ..variants import Variation
from .changes import changed, in_bits, opposite, replaced, transposed

PRICE_OF_DELTA = "price = np.log(2 * np.sqrt(rows) / delta)"


SPREAD_IS_ADDED = {
    "the noise is a standard deviation: square it before it is added to a variance": (
        "the standard deviation of the noise is added to a variance"
    )
}


def _power(
    function: str, mean: str, at_the_mean: str, hint: str, wrong: dict[str, str]
) -> Variation:
    return changed(
        f"The function is f(x) = {function}.",
        {
            "Take the simplest nonlinear function, f(x) = (w x)^2,": (
                f"Take a nonlinear function, f(x) = {function},"
            ),
            "mean weight; the difference is a variance. Of what?": f"mean weight. {hint}",
            "Return E[(w x)^2] and (mu x)^2, (B,) each.": (
                f"Return E[{function}], and {function} at w = mu, (B,) each."
            ),
            "Mean of (w x)^2 over w.": f"Mean of {function} over w.",
            '(w x)^2 at w = mu. """': f'{function} at w = mu.\n    """',
        },
        {
            "(mu**2 + sigma**2) * x**2, mu**2 * x**2": f"{mean}, {at_the_mean}",
        },
        wrong={f"{mean},": {f"{new},": says for new, says in wrong.items()}},
    )


AXES: dict[str, Any] = {
    "mean_and_variances": [
        [
            transposed(
                {"f": real("BS")},
                "f is (B, S), one column for each function.",
                {
                    "f is (S, B), one row for each function;": (
                        "f is (B, S), one column for each function;"
                    ),
                    "f : ndarray (S, B)": "f : ndarray (B, S)",
                },
            )
        ],
        [
            replaced(
                "noise",
                "noise_precision",
                positive(),
                lambda noise: noise**-2.0,
                "noise = noise_precision**-0.5",
                "The noise is given by its precision, one over its variance.",
                {
                    "noise is a standard deviation, a number.": (
                        "noise_precision, one over the variance of y around f, is a number."
                    ),
                    "noise : float Standard deviation of": (
                        "noise_precision : float\n        One over the variance of"
                    ),
                },
                restated=SPREAD_IS_ADDED,
                wrong={
                    "epistemic + noise**2": {
                        "epistemic + noise**-2": (
                            "the precision is added; the variance of the noise is one over it."
                        ),
                    },
                },
            ),
            replaced(
                "noise",
                "noise_variance",
                positive(),
                lambda noise: noise**2.0,
                "noise = noise_variance**0.5",
                "The noise is given by its variance.",
                {
                    "noise is a standard deviation, a number.": (
                        "noise_variance, the variance of y around f, is a number."
                    ),
                    "noise : float Standard deviation of": (
                        "noise_variance : float\n        Variance of"
                    ),
                },
                restated=SPREAD_IS_ADDED,
            ),
        ],
        [
            Variation(
                asks="Return standard deviations in the place of variances.",
                after="(returned[0], returned[1] ** 0.5, returned[2] ** 0.5)",
                statement={
                    "the epistemic variance (B,), and the total variance (B,).": (
                        "the epistemic standard deviation (B,), and the total one (B,)."
                    ),
                    "Return mean, epistemic and total variance of": (
                        "Return mean, epistemic and total standard deviation of"
                    ),
                    "Mean of f, variance of f, and variance of a new y.": (
                        "Mean of f, and standard deviations of f and of a new y."
                    ),
                },
            )
        ],
    ],
    "log_predictive_density": [
        [
            opposite(
                "Return minus the logarithm, a loss.",
                {
                    "under each function. Return (B,).": (
                        "under each function. Return minus log P(y | D), (B,)."
                    ),
                    "Return the log of the mean density of each row,": (
                        "Return minus the log of the mean density of each row,"
                    ),
                },
                n_blocks=1,
                restated={
                    "this is too small": "this is too large",
                    "this is the negative log density, a loss; the log density is asked for": (
                        "this is the log density; minus it, a loss, is asked for"
                    ),
                },
            )
        ],
        [in_bits({"of each row, (B,).": "of each row in bits, (B,)."})],
        [
            transposed(
                {"log_density": real("BS")},
                "log_density is (B, S), a row for each target.",
                {
                    "log_density is (S, B), the log density": (
                        "log_density is (B, S), the log density"
                    )
                },
            )
        ],
    ],
    "mean_of_functions": [
        [
            _power(
                "(w x)^3",
                "(mu**3 + 3 * mu * sigma**2) * x**3",
                "mu**3 * x**3",
                "E[(w - mu)^3] is 0.",
                {
                    "mu**3 * x**3": (
                        "this is the prediction of the mean weight; E[w^3] has 3 mu sigma^2 as "
                        "well."
                    ),
                    "(mu**3 + mu * sigma**2) * x**3": (
                        "mu sigma^2 counts three times in the cube of mu + sigma eps."
                    ),
                    "(mu**3 + 3 * mu * sigma) * x**3": (
                        "sigma is a standard deviation: E[w^3] = mu^3 + 3 mu sigma^2."
                    ),
                    "(mu**3 + 3 * mu * sigma**2 + sigma**3) * x**3": (
                        "E[eps^3] is 0: there is no sigma^3."
                    ),
                    "(mu**2 + sigma**2) ** 1.5 * x**3": (
                        "this is E[w^2] to the power 3/2; it is above 0 where mu is 0."
                    ),
                    "(mu + sigma) ** 3 * x**3": "this is w^3 at w = mu + sigma.",
                },
            ),
            _power(
                "(w x)^4",
                "(mu**4 + 6 * mu**2 * sigma**2 + 3 * sigma**4) * x**4",
                "mu**4 * x**4",
                "E[(w - mu)^3] is 0, and E[(w - mu)^4] is 3 sigma^4.",
                {
                    "mu**4 * x**4": (
                        "this is the prediction of the mean weight; E[w^4] has terms of sigma."
                    ),
                    "(mu**4 + 6 * mu**2 * sigma**2 + sigma**4) * x**4": (
                        "E[eps^4] is 3: sigma^4 counts three times."
                    ),
                    "(mu**4 + 6 * mu**2 * sigma**2) * x**4": (
                        "3 sigma^4 is missing: E[eps^4] is not 0."
                    ),
                    "(mu**2 + sigma**2) ** 2 * x**4": (
                        "this is the square of E[w^2]; the mean of the squares is larger."
                    ),
                    "(mu**4 + 6 * mu**2 * sigma**2 + 3 * sigma**2) * x**4": (
                        "E[(w - mu)^4] is 3 sigma^4: the square of the variance."
                    ),
                    "(mu + sigma) ** 4 * x**4": "this is w^4 at w = mu + sigma.",
                },
            ),
            _power(
                "exp(w x)",
                "np.exp(mu * x + sigma**2 * x**2 / 2)",
                "np.exp(mu * x)",
                "E[exp(eps)] of a standard normal eps is exp(1/2).",
                {
                    "np.exp(mu * x)": (
                        "this is the prediction of the mean weight; E[exp(w x)] has sigma^2 as "
                        "well."
                    ),
                    "np.exp(mu * x + sigma**2 * x**2)": (
                        "the half of sigma^2 x^2 / 2 is missing."
                    ),
                    "np.exp(mu * x + sigma**2 * x / 2)": (
                        "x is not squared beside sigma^2: w x has the variance sigma^2 x^2."
                    ),
                    "np.exp(mu * x - sigma**2 * x**2 / 2)": (
                        "the sign of sigma^2: by Jensen's inequality the mean is the larger one."
                    ),
                    "np.exp(mu * x + sigma * x / 2)": (
                        "sigma x is not squared: w x has the variance sigma^2 x^2."
                    ),
                    "np.exp(mu * x + sigma * x)": "this is exp(w x) at w = mu + sigma.",
                },
            ),
        ],
        [
            replaced(
                "sigma",
                "variance",
                positive(),
                lambda sigma: sigma**2.0,
                "sigma = variance**0.5",
                "The variance of w is given, not its standard deviation.",
                {
                    "with w from N(mu, sigma^2).": "with w from N(mu, variance).",
                    "mu and sigma are numbers,": "mu and variance are numbers,",
                    "mu, sigma : float Mean and standard deviation of w.": (
                        "mu, variance : float\n        Mean and variance of w."
                    ),
                },
            )
        ],
    ],
    "entropy_of_a_class": [
        [
            in_bits(
                {
                    "The entropy -sum_c p_c log p_c, in nats,": (
                        "The entropy -sum_c p_c log_2 p_c, in bits,"
                    ),
                    "epistemic entropy in nats.": "epistemic entropy in bits.",
                },
                n_blocks=3,
                restated={
                    "these are bits; the book counts in nats": "it is divided by log 2 twice"
                },
            ),
            changed(
                "The entropy is the quadratic one, 1 - sum_c p_c^2.",
                {
                    "The entropy -sum_c p_c log p_c, in nats,": (
                        "The quadratic entropy 1 - sum_c p_c^2"
                    ),
                    "epistemic entropy in nats.": "epistemic quadratic entropy.",
                },
                {
                    "total = -np.sum(mean * np.log(mean))": "total = 1 - np.sum(mean**2)",
                    "aleatoric = -np.mean(np.sum(p * np.log(p), axis=1))": (
                        "aleatoric = 1 - np.mean(np.sum(p**2, axis=1))"
                    ),
                },
                untrue=("entropies", "the sign of the entropy", "bits"),
                wrong={
                    "total = 1 - np.sum(mean**2)": {
                        "total = 1 - np.mean(np.sum(p**2, axis=1))": (
                            "this is the mean of the entropies; total is the entropy of the mean."
                        ),
                        "total = np.sum(mean**2) - 1": "the sign of the entropy.",
                        "total = np.sum(mean**2)": "these are the squares; subtract them from 1.",
                    },
                    "aleatoric = 1 - np.mean(np.sum(p**2, axis=1))": {
                        "aleatoric = 1 - np.sum(mean**2)": (
                            "this is the entropy of the mean; aleatoric is the mean of the "
                            "entropies."
                        ),
                        "aleatoric = np.mean(np.sum(p**2, axis=1))": (
                            "this is the mean sum of squares; subtract it from 1."
                        ),
                    },
                },
            ),
        ],
        [
            replaced(
                "p",
                "z",
                real("SC"),
                np.log,
                "p = np.exp(z) / np.sum(np.exp(z), axis=1, keepdims=True)",
                "Logits z are given: p_c is exp(z_c) divided by the sum of all exp(z).",
                {
                    "Shapes: p is (S, C), the probabilities of C classes under each of S "
                    "functions.": (
                        "Shapes: z is (S, C), the logits of C classes under each of S functions."
                    )
                },
            )
        ],
    ],
    "bound_to_train_on": [
        [
            Variation(
                asks="Return B itself and its slopes, not N log 2 B.",
                after="tuple(block / (rows * np.log(2)) for block in returned)",
                untrue=("log 2 is missing",),
                restated={
                    "the free energy, 1.": "the free energy, 1 / (N log 2) here."
                },
                statement={
                    "are the slopes of N log 2 B.": "are the slopes of B.",
                    "Return N log 2 B, and its slopes for nll and for kl. Hint": (
                        "Return B, and its slopes for nll and for kl.\n\nHint"
                    ),
                    "Hint: the slope for nll would be 1 if there were no k.": (
                        "Hint: the slope for nll would be 1 / (N log 2) if there were no k."
                    ),
                    "Return N log 2 B, and its slopes for nll and for kl. Parameters": (
                        "Return B, and its slopes for nll and for kl.\n\n    Parameters"
                    ),
                    "value : float N log 2 B.": "value : float\n        B.",
                },
            )
        ],
        [
            replaced(
                "price",
                "delta",
                unit(),
                lambda price: 0.05,
                PRICE_OF_DELTA,
                "delta is given, from which the price of certainty follows.",
                {
                    "price : float Price of certainty, log(2 sqrt(N) / delta).": (
                        "delta : float\n        Probability that the bound does not hold."
                    ),
                    "all four, rows = N among them,": "all four, rows = N and delta among them,",
                },
            )
        ],
    ],
    "one_row_more": [
        [
            changed(
                "The factor stands the other way round: C = L^T L.",
                {
                    "C = L L^T, with L (P, P).": "C = L^T L, with L (P, P).",
                    "Factor of their covariance, C = L L^T.": (
                        "Factor of their covariance, C = L^T L."
                    ),
                },
                {"C = L @ L.T": "C = L.T @ L"},
            )
        ],
        [
            replaced(
                "sigma",
                "precision",
                positive(),
                lambda sigma: sigma**-2.0,
                "sigma = precision**-0.5",
                "The noise is given by its precision, 1 / sigma^2.",
                {
                    "y and sigma numbers.": "y and precision = 1 / sigma^2 numbers.",
                    "sigma : float Standard deviation of y around": (
                        "precision : float\n        One over the variance of y around"
                    ),
                },
            )
        ],
        [
            Variation(
                asks="Return minus the log density of y.",
                after="(returned[0], returned[1], -returned[2])",
                statement={
                    "and the log density of y that was predicted before it was seen:": (
                        "and minus the log density of y that was predicted before it was seen:"
                    ),
                    "over all rows is the log evidence.": (
                        "over all rows is minus the log evidence."
                    ),
                    "log_p : float Log density": (
                        "minus_log_p : float\n        Minus the log density"
                    ),
                    "and log p of its y before.": "and minus log p of its y before.",
                },
                returns="mean covariance minus_log_p",
            )
        ],
    ],
    "step_to_the_certificate": [
        [
            replaced(
                "price",
                "delta",
                unit(),
                lambda price: 0.05,
                PRICE_OF_DELTA,
                "delta is given, from which the price of certainty follows.",
                {
                    "price : float Price of certainty, log(2 sqrt(N) / delta).": (
                        "delta : float\n        Probability that the bound does not hold."
                    ),
                    "all five, rows = N among them,": "all five, rows = N and delta among them,",
                },
            )
        ],
        [
            Variation(
                asks="kl(r || R) and its slope are in bits, c and the step as they were.",
                wrong={
                    "R - (divergence - bound) / slope": {
                        "R - (divergence / np.log(2) - bound) / slope * np.log(2)": (
                            "the step takes kl(r || R) in bits and c in nats."
                        ),
                    },
                },
                after="(returned[0] / np.log(2), returned[1] / np.log(2), returned[2])",
                statement={
                    "Return kl(r || R), its slope for R, and the R after one step.": (
                        "Return kl(r || R) / log 2, its slope for R / log 2, and the R after one "
                        "step."
                    ),
                    "divergence : float kl(r || R).": (
                        "divergence : float\n        kl(r || R) in bits."
                    ),
                    "slope : float Its slope for R.": (
                        "slope : float\n        Its slope for R, in bits."
                    ),
                },
            )
        ],
    ],
    "what_dropout_believes": [
        [
            replaced(
                "p",
                "keep",
                unit(),
                lambda p: 1 - p,
                "p = 1 - keep",
                "The probability that an input stays is given, keep = 1 - p.",
                {
                    "numbers. Return the mean of f": (
                        "numbers; keep = 1 - p is given. Return the mean of f"
                    ),
                    "(its bias, never left out), p": "(its bias, never left out), keep",
                    "p : float Probability that an input is left out.": (
                        "keep : float\n        Probability that an input stays."
                    ),
                },
            )
        ],
        [
            changed(
                "Inputs that stay are not divided by 1 - p.",
                {
                    "and those that stay are divided by 1 - p:": (
                        "and those that stay are taken as they are:"
                    ),
                    "m_j a_j v_j / (1 - p),": "m_j a_j v_j,",
                },
                {
                    "b + np.sum(a * v)": "b + (1 - p) * np.sum(a * v)",
                    "p / (1 - p) * np.sum": "p * (1 - p) * np.sum",
                },
                untrue=(
                    "what stays is",
                    "the bias",
                    "undoes it",
                    "division",
                    "once",
                    "kept",
                ),
                wrong={
                    "b + (1 - p) * np.sum(a * v)": {
                        "(1 - p) * (b + np.sum(a * v))": "the bias is never left out.",
                        "b + p * np.sum(a * v)": (
                            "p is the share left out, not the mean of a mask, 1 - p."
                        ),
                    },
                    "p * (1 - p) * np.sum((a * v) ** 2)": {
                        "p / (1 - p) * np.sum((a * v) ** 2)": (
                            "nothing is divided: a mask has the variance p (1 - p)."
                        ),
                        "p * np.sum((a * v) ** 2)": (
                            "a mask has the variance p (1 - p): 1 - p is missing."
                        ),
                        "(1 - p) * np.sum((a * v) ** 2)": (
                            "a mask has the variance p (1 - p): p is missing."
                        ),
                    },
                },
            )
        ],
        [
            replaced(
                "noise",
                "noise_variance",
                positive(),
                lambda noise: noise**2.0,
                "noise = noise_variance**0.5",
                "The variance of the noise is given, not its standard deviation.",
                {
                    "and noise (the standard deviation of y around f)": (
                        "and noise_variance (the variance of y around f)"
                    ),
                    "noise : float Standard deviation of y": (
                        "noise_variance : float\n        Variance of y"
                    ),
                },
                restated={
                    "the noise is a standard deviation: square it": (
                        "the standard deviation of the noise is added to a variance"
                    )
                },
            )
        ],
    ],
}
