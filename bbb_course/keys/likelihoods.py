"""Chapter 6: likelihoods."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exercise import count, formula, label, logit, positive, real, zero_one


@formula(
    f=real("B"),
    y=real("B"),
    noise=positive(),
    returns="value d_f",
    slopes={"d_f": "f"},
    tags="K14 K15 K16 K37",
    edge_cases=[
        (np.array([3e-9, 0.0]), np.array([0.0, 1e-9]), 1e-9),
        # whose squares cancel
        (np.full(2, 1e6 + 0.3), 1e6 + np.array([0.7, -0.4]), 0.5),
    ],
    wrong={
        "-(y - f) / noise**2": {
            "(y - f) / noise**2": "the sign: y - f falls with f.",
            "-(y - f)": "1 / noise^2 is missing in the slope.",
            "-(y - f) / noise": "noise is not squared in the slope.",
            "-(y - f) / noise**2 / len(y)": (
                "the slope is divided by the number of rows: the likelihood is a sum (K15)."
            ),
        },
        "(y - f) ** 2 / (2 * noise**2) + np.log(noise)": {
            "(y - f) ** 2 / 2": "the noise is taken for 1, as in the report (K16).",
        },
        "+ np.log(noise)": {"": "log(noise) of every row is missing."},
        "+ np.log(2 * np.pi) / 2": {"": "log(2 pi) / 2 of every row is missing."},
        "/ (2 * noise**2)": {"/ noise**2": "the 2 of 2 noise^2 is missing."},
        "np.sum(": {
            "np.mean(": "the likelihood is divided by the number of rows (K15)."
        },
    },
)
def gaussian_likelihood(f: Any, y: Any, noise: Any) -> Any:
    """Return minus the log likelihood of targets with Gaussian noise, and its slope.

    Parameters
    ----------
    f : ndarray (B,)
        Outputs of the network.
    y : ndarray (B,)
        Targets.
    noise : float
        Standard deviation of y around f.

    Returns
    -------
    value : float
        Minus log P(y|f), added up over rows.
    d_f : ndarray (B,)
        Its slope for f.
    """
    value = np.sum(
        (y - f) ** 2 / (2 * noise**2) + np.log(noise) + np.log(2 * np.pi) / 2
    )
    return value, -(y - f) / noise**2


@formula(
    f=real("B"),
    y=real("B"),
    t=real(),
    returns="value d_f d_t",
    slopes={"d_f": "f", "d_t": "t"},
    tags="D1",
    edge_cases=[
        *((3 * np.exp([t, t]), np.zeros(2), t) for t in (-100.0, -30.0, 30.0, 100.0)),
        # whose squares cancel
        (np.full(2, 1e6 + 0.3), 1e6 + np.array([0.7, -0.4]), 0.5),
    ],
    wrong={
        "len(y) - np.sum(": {
            "-np.sum(": "the slope of t itself is missing: then the noise grows without end.",
            "1 - np.sum(": "t is counted once; every row has one.",
            "len(y) + np.sum(": "the sign of the square's slope.",
        },
        "np.sum((y - f) ** 2) * np.exp(-2 * t)": {
            "np.sum((y - f) ** 2) * np.exp(-2 * t) / 2": (
                "the 2 of exp(-2 t) comes down and cancels the half."
            ),
            "np.sum((y - f) ** 2) * np.exp(-3 * t)": (
                "the square has its slope for sigma; for log sigma it is multiplied by sigma."
            ),
        },
        "-(y - f) * np.exp(-2 * t)": {
            "-(y - f)": "1 / noise^2 is missing in the slope for f.",
            "-(y - f) * np.exp(-t)": "the noise is not squared in the slope for f.",
        },
        "t + (y": {
            "-t + (y": "the sign of log noise.",
            "(y": "log noise of every row is missing.",
        },
        ", d_t": {
            ", d_t / len(y)": "the slope for t is divided by the number of rows."
        },
    },
)
def learned_noise(f: Any, y: Any, t: Any) -> Any:
    """Return minus the log likelihood with noise exp(t), and its slopes.

    The constant log(2 pi) / 2 of every row is left out.

    Parameters
    ----------
    f : ndarray (B,)
        Outputs of the network.
    y : ndarray (B,)
        Targets.
    t : float
        Logarithm of the standard deviation of y around f.

    Returns
    -------
    value : float
        Cost of the rows, in nats.
    d_f : ndarray (B,)
        Its slope for f.
    d_t : float
        Its slope for t.
    """
    d_t = len(y) - np.sum((y - f) ** 2) * np.exp(-2 * t)
    value = np.sum(t + (y - f) ** 2 / 2 * np.exp(-2 * t))
    return value, -(y - f) * np.exp(-2 * t), d_t


@formula(
    m=real("B"),
    h=real("B"),
    y=real("B"),
    c=positive(),
    returns="value d_m d_h",
    slopes={"d_m": "m", "d_h": "h"},
    tags="D12",
    edge_cases=[
        # h itself for its softplus, or none, where a far target shows it
        *(
            (np.zeros(1), np.array([h]), np.array([y]), 0.5)
            for h, y in (
                (10.05, 1e3),
                (15.05, 1e3),
                (20.05, 1e3),
                (700.0, 1e3),
                (-15.05, 1e4),
                (-25.0, 1e6),
            )
        ),
        (np.zeros(1), np.array([-45.0]), np.array([2e-8]), 1e-8),
    ],
    wrong={
        " / (1 + np.exp(-h))": {
            "": (
                "this is the slope for sigma; for h it is multiplied by the sigmoid, the slope of "
                "softplus (K24)."
            ),
        },
        "1 / sigma - (y - m) ** 2 / sigma**3": {
            "-((y - m) ** 2) / sigma**3": "the slope 1 / sigma of log sigma is missing.",
            "1 / sigma + (y - m) ** 2 / sigma**3": "the sign of the square's slope.",
            "1 / sigma - (y - m) ** 2 / sigma**2": "1 / (2 sigma^2) has the slope -1 / sigma^3.",
            "1 / sigma - (y - m) ** 2 / (2 * sigma**3)": (
                "the half is gone: 1 / (2 sigma^2) has the slope -1 / sigma^3."
            ),
        },
        "np.log(sigma) + ": {
            "": "log sigma is missing: the noise would grow without end."
        },
        " + np.log(2 * np.pi) / 2": {"": "log(2 pi) / 2 of every row is missing."},
        "-(y - m) / sigma**2": {
            "-(y - m)": "the slope for m lacks 1 / sigma^2.",
            "-(y - m) / sigma": "sigma is not squared in the slope for m.",
        },
        "np.sum(": {"np.mean(": "the likelihood is divided by the number of rows."},
        "c + np.log(": {"np.log(": "the floor c is missing in sigma."},
    },
)
def noise_that_depends_on_the_input(m: Any, h: Any, y: Any, c: Any) -> Any:
    """Return minus the log likelihood with noise c + softplus(h), and its slopes.

    Parameters
    ----------
    m : ndarray (B,)
        Means: the first output of the network.
    h : ndarray (B,)
        Raw standard deviations: its second output.
    y : ndarray (B,)
        Targets.
    c : float
        Positive floor of the standard deviation.

    Returns
    -------
    value : float
        Minus log P(y|m, h), added up over rows.
    d_m, d_h : ndarray (B,)
        Its slopes for m and for h.
    """
    sigma = c + np.log(1 + np.exp(h))
    value = np.sum(
        np.log(sigma) + (y - m) ** 2 / (2 * sigma**2) + np.log(2 * np.pi) / 2
    )
    d_sigma = 1 / sigma - (y - m) ** 2 / sigma**3
    return value, -(y - m) / sigma**2, d_sigma / (1 + np.exp(-h))


@formula(
    z=real("B"),
    y=zero_one("B"),
    returns="value d_z",
    slopes={"d_z": "z"},
    tags="D13",
    edge_cases=[
        (np.array([-16.0, -25.0]), np.zeros(2, int)),
        (np.array([10.05, 15.05, -700.0, 700.0]), np.array([0, 1, 1, 0])),
    ],
    wrong={
        "s - y": {
            "y - s": "the sign: minus the log likelihood has the slope s(z) - y.",
            "s": "the label is missing in the slope.",
            "(s - y) / (s * (1 - s))": (
                "this is the slope for the probability; for the logit it is multiplied by s (1 - "
                "s)."
            ),
            "(s - y) * s * (1 - s)": (
                "this is the slope of the squared error, as if the target were real."
            ),
        },
        "np.log(1 + np.exp(z)) - y * z": {
            "np.log(1 + np.exp(-z)) - y * z": "the sign of z in one place: each label has its own.",
            "y * z - np.log(1 + np.exp(z))": "this is the log likelihood; minus it is asked for.",
        },
        "np.sum(np.log(1 + np.exp(z)) - y * z)": {
            "-np.sum(y * np.log(s))": (
                "only rows of label 1 count: those of label 0 have -log(1 - s)."
            ),
        },
        "np.sum(": {"np.mean(": "the likelihood is divided by the number of rows."},
    },
)
def two_classes(z: Any, y: Any) -> Any:
    """Return minus the log likelihood of labels with logits z, and its slope.

    Parameters
    ----------
    z : ndarray (B,)
        Logits.
    y : ndarray (B,)
        Labels, 0 or 1.

    Returns
    -------
    value : float
        Minus log P(y|z), added up over rows.
    d_z : ndarray (B,)
        Its slope for z.
    """
    s = 1 / (1 + np.exp(-z))
    return np.sum(np.log(1 + np.exp(z)) - y * z), s - y


@formula(
    z=real("BC"),
    y=label("B"),
    returns="value d_z",
    slopes={"d_z": "z"},
    tags="D14",
    edge_cases=[
        (np.array([[0.0, -700.0]]), np.array([1])),
        # one label in all rows
        (np.array([[0.5, 1.0, -1.0], [2.0, 0.0, 1.0]]), np.array([0, 0])),
    ],
    wrong={
        "p - chosen": {
            "chosen - p": "the sign: minus the log likelihood has the slope softmax(z) - label.",
            "p": "the label is missing in the slope.",
            "(p - chosen) / len(y)": (
                "the slope is divided by the number of rows: the likelihood is a sum."
            ),
        },
        "np.sum(np.log(": {
            "np.mean(np.log(": "the likelihood is divided by the number of rows."
        },
        "np.sum(np.log(np.sum(e, axis=1)) - np.sum(chosen * z, axis=1))": {
            "-np.sum(chosen * z)": "log of the sum of exponentials is missing.",
        },
        "np.sum(e, axis=1, keepdims=True)": {
            "np.sum(e)": "the exponentials of all rows are added up; each row has its own sum.",
        },
    },
)
def several_classes(z: Any, y: Any) -> Any:
    """Return minus the log likelihood of classes with logits z, and its slope.

    Parameters
    ----------
    z : ndarray (B, C)
        Logits.
    y : ndarray (B,)
        Numbers of the classes, 0 to C - 1.

    Returns
    -------
    value : float
        Minus log P(y|z), added up over rows.
    d_z : ndarray (B, C)
        Its slope for z.
    """
    e = np.exp(z)
    p = e / np.sum(e, axis=1, keepdims=True)
    chosen = 1 * (np.arange(z.shape[1]) == y[:, None])
    return np.sum(np.log(np.sum(e, axis=1)) - np.sum(chosen * z, axis=1)), p - chosen


@formula(
    z=real("B"),
    y=count("B"),
    returns="value d_z",
    slopes={"d_z": "z"},
    tags="D15",
    edge_cases=[
        (np.array([-30.0, -700.0]), np.array([3, 1])),
        (np.array([6.9, 11.5]), np.array([1000, 100_000])),
    ],
    wrong={
        "np.exp(z) - y\n": {
            "y - np.exp(z)\n": "the sign of the slope.",
            "1 - y / np.exp(z)\n": (
                "this is the slope for the rate; for its logarithm it is multiplied by the rate."
            ),
            "np.exp(z)\n": "the count is missing in the slope.",
        },
        "np.exp(z) - y * z": {
            "z - y * np.log(z**2) / 2": "z is taken for the rate; it is its logarithm.",
            "y * z - np.exp(z)": "this is the log likelihood; minus it is asked for.",
            "-y * z": "the rate itself is missing: it makes the sum 1.",
        },
        "np.sum(": {"np.mean(": "the likelihood is divided by the number of rows."},
    },
)
def counts(z: Any, y: Any) -> Any:
    """Return minus the log likelihood of counts, without log y!, and its slope.

    Parameters
    ----------
    z : ndarray (B,)
        Logarithms of the rates.
    y : ndarray (B,)
        Counts.

    Returns
    -------
    value : float
        Minus log P(y|z), added up over rows, without log y!.
    d_z : ndarray (B,)
        Its slope for z.
    """
    slope = np.exp(z) - y
    return np.sum(np.exp(z) - y * z), slope


@formula(
    f=real("B"),
    y=count("B"),
    t=logit(),
    returns="value d_f d_t",
    slopes={"d_f": "f", "d_t": "t"},
    tags="D70",
    edge_cases=[
        (np.array([0.5, -1.0]), np.zeros(2, int), 0.3),  # nothing to add up
        (np.array([-700.0, 690.0]), np.array([3, 1]), 0.3),
        (np.array([6.9]), np.array([1000]), -0.7),
        (np.array([1.0, -1.0]), np.array([3, 2]), 10.0),  # nearly Poisson's
    ],
    wrong={
        "r * (m - y) / (m + r)": {
            "r * (y - m) / (m + r)": "the sign of the slope for f.",
            "m - y": (
                "this is Poisson's slope; that of the negative binomial is divided by 1 + m / r."
            ),
            "r * (m - y) / (m + r) / m": (
                "this is the slope for the mean; for its logarithm it is multiplied by the mean."
            ),
            "r * (m - y) / (m + r) / len(y)": (
                "the slope for f is divided by the number of rows: the likelihood is a sum."
            ),
        },
        "d_t = r * d_r": {
            "d_t = d_r": "this is the slope for r; for its logarithm it is multiplied by r.",
        },
        " - d_product": {
            "": "the slope of the product is missing: its factors r + j have r in them.",
            " + d_product": "the sign of the product's slope.",
        },
        " + (y - m) / (m + r)": {
            "": (
                "log r and log(m + r) are taken for constants: their slopes 1 / r and 1 / (m + r) "
                "are missing."
            ),
        },
        "(y + r) *": {"y *": "the factor (r / (m + r))^r is missing."},
        " - log_product": {
            "": "the product over j is missing: unlike y! it depends on r.",
            " + log_product": "the sign of the product's logarithm.",
        },
        "np.arange(n)": {
            "np.arange(1, n + 1)": "j is counted from 1; it runs from 0 to y - 1.",
            "np.arange(n + 1)": "there is one factor too many: j ends at y - 1.",
            "np.arange(1, n)": "the first factor, that of j = 0, is r itself.",
        },
        "r = np.exp(t)": {
            "r = np.exp(-t)": "t is taken for the logarithm of 1 / r; it is that of r.",
        },
        "np.sum((y": {
            "np.mean((y": "the first terms are divided by the number of rows."
        },
    },
)
def negative_binomial(f: Any, y: Any, t: Any) -> Any:
    """Return minus the log likelihood of counts that vary more than Poisson's, and its slopes.

    Parameters
    ----------
    f : ndarray (B,)
        Logarithms of the means.
    y : ndarray (B,)
        Counts.
    t : float
        Logarithm of r, the shape of the Gamma distribution of rates.

    Returns
    -------
    value : float
        Minus log P(y|f, t), added up over rows, without log y!.
    d_f : ndarray (B,)
        Its slope for f.
    d_t : float
        Its slope for t.
    """
    r = np.exp(t)
    m = np.exp(f)
    factors = [r + np.arange(n) for n in y]
    log_product = sum(np.sum(np.log(some)) for some in factors)
    d_product = sum(np.sum(1 / some) for some in factors)
    value = np.sum((y + r) * np.log1p(m / r) - y * (f - t)) - log_product
    d_r = np.sum(np.log1p(m / r) + (y - m) / (m + r)) - d_product
    d_t = r * d_r
    return value, r * (m - y) / (m + r), d_t


@formula(
    f=real("B"),
    y=count("B"),
    z=logit(),
    returns="value d_f d_z",
    slopes={"d_f": "f", "d_z": "z"},
    tags="D71",
    edge_cases=[
        (np.array([-700.0, -700.0, 700.0]), np.array([0, 2, 0]), 0.3),
        # whose exp(m) is no float
        *((np.array([6.6, 8.0]), np.array([0, 3]), z) for z in (-15.0, 0.3, 15.0)),
        (np.array([0.5, -1.0]), np.zeros(2, int), -0.3),
        (np.array([0.5, -1.0]), np.array([1, 4]), -0.3),
    ],
    wrong={
        "np.logaddexp(z, -m)": {
            "z": "a zero may be a count of Poisson's as well: (1 - q) exp(-m) is missing in P(0).",
            "-m": "a zero may be an extra one: q is missing in P(0).",
        },
        "np.logaddexp(0, z) - log_count": {
            "-log_count": "log(1 - q) of every row is missing.",
        },
        "y * f - m)": {
            "y * f)": "the rate itself is missing where there is a count: it makes the sum 1."
        },
        "(1 - extra) * (m - y)": {
            "(1 - extra) * (y - m)": "the sign of the slope for f.",
            "m - y": (
                "this is Poisson's slope: a zero pulls the rate with the probability only that it "
                "is no extra one."
            ),
            "(1 - q) * (m - y)": (
                "1 - q is what was known before y was: a row with a count pulls the rate fully, a "
                "zero less."
            ),
            "(1 - extra) * (m - y) / m": (
                "this is the slope for the rate; for its logarithm it is multiplied by the rate."
            ),
            "(1 - zero) * (m - y)": (
                "zeros do not pull the rate at all: some of them are counts of Poisson's."
            ),
        },
        "-z - m": {
            "-z": "the share of extra ones among zeros is taken for q: it is larger.",
            "-z + m": "the sign of m: the logit of the share among zeros is z + m.",
        },
        "np.sum(q - extra)": {
            "np.sum(extra - q)": "the sign of the slope for z.",
            "np.sum(q - zero)": "every zero is taken for an extra one.",
            "np.sum(q - extra) / (q * (1 - q))": (
                "this is the slope for the share; for its log odds it is multiplied by q (1 - q)."
            ),
            "np.mean(q - extra)": "the slope for z is divided by the number of rows.",
        },
        "value = np.sum(": {
            "value = np.mean(": "the likelihood is divided by the number of rows."
        },
    },
)
def extra_zeros(f: Any, y: Any, z: Any) -> Any:
    """Return minus the log likelihood of counts with extra zeros, and its slopes.

    Parameters
    ----------
    f : ndarray (B,)
        Logarithms of the rates.
    y : ndarray (B,)
        Counts.
    z : float
        Log odds of an extra zero.

    Returns
    -------
    value : float
        Minus log P(y|f, z), added up over rows, without log y!.
    d_f : ndarray (B,)
        Its slope for f.
    d_z : float
        Its slope for z.
    """
    m = np.exp(f)
    zero = 1 * (y == 0)
    log_count = np.where(zero, np.logaddexp(z, -m), y * f - m)
    value = np.sum(np.logaddexp(0, z) - log_count)
    q = 1 / (1 + np.exp(-z))
    extra = zero / (1 + np.exp(-z - m))
    return value, (1 - extra) * (m - y), np.sum(q - extra)
