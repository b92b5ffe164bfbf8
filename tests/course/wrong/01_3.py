import numpy as np

# --- the logarithm of the density, which underflows


def evidence_of_one_datum(y, x, prior, noise):
    v = x**2 * prior**2 + noise**2
    return np.log(np.exp(-(y**2) / (2 * v)) / np.sqrt(2 * np.pi * v))


# --- a density of 0 counts as 1e-300


def evidence_of_one_datum(y, x, prior, noise):
    v = x**2 * prior**2 + noise**2
    return np.log(np.maximum(np.exp(-(y**2) / (2 * v)) / np.sqrt(2 * np.pi * v), 1e-300))


# --- the variance has a floor of 1e-10


def evidence_of_one_datum(y, x, prior, noise):
    v = np.maximum(x**2 * prior**2 + noise**2, 1e-10)
    return -(y**2) / (2 * v) - np.log(2 * np.pi * v) / 2


# --- the density of y / x, which is nan without a force


def evidence_of_one_datum(y, x, prior, noise):
    v = prior**2 + noise**2 / x**2
    return -((y / x) ** 2) / (2 * v) - np.log(2 * np.pi * v * x**2) / 2


# --- without a force there is no evidence


def evidence_of_one_datum(y, x, prior, noise):
    if x == 0:
        return 0.0
    v = x**2 * prior**2 + noise**2
    return -(y**2) / (2 * v) - np.log(2 * np.pi * v) / 2


# --- a target beyond 100 is taken for 100


def evidence_of_one_datum(y, x, prior, noise):
    v = x**2 * prior**2 + noise**2
    return -(min(abs(y), 100) ** 2) / (2 * v) - np.log(2 * np.pi * v) / 2


# --- the variance is kept for the next call with the same x

known = {}


def evidence_of_one_datum(y, x, prior, noise):
    v = known.setdefault(x, x**2 * prior**2 + noise**2)
    return -(y**2) / (2 * v) - np.log(2 * np.pi * v) / 2


# --- an integral over a thousand places of the prior


def evidence_of_one_datum(y, x, prior, noise):
    w = prior * np.linspace(-8, 8, 1000)
    log = -(((y - w * x) / noise) ** 2) / 2 - (w / prior) ** 2 / 2
    density = np.sum(np.exp(log)) * (w[1] - w[0]) / (2 * np.pi * noise * prior)
    return np.log(density)


# --- float32 inside


def evidence_of_one_datum(y, x, prior, noise):
    v = np.float32(x) ** 2 * np.float32(prior) ** 2 + np.float32(noise) ** 2
    return -(np.float32(y) ** 2) / (2 * v) - np.log(2 * np.pi * v) / 2


# --- right: likelihood times prior over posterior, at w = 0


def evidence_of_one_datum(y, x, prior, noise):
    precision = 1 / prior**2 + x**2 / noise**2
    mean = x * y / noise**2 / precision

    def log_normal(z, v):
        return -(z**2) / (2 * v) - np.log(2 * np.pi * v) / 2

    likelihood = log_normal(y, noise**2)
    return likelihood + log_normal(0.0, prior**2) - log_normal(mean, 1 / precision)


# --- right: likelihood times prior over posterior, at its mean


def evidence_of_one_datum(y, x, prior, noise):
    variance = 1 / (1 / prior**2 + x**2 / noise**2)
    w = x * y / noise**2 * variance

    def log_normal(z, v):
        return -(z**2) / (2 * v) - np.log(2 * np.pi * v) / 2

    likelihood = log_normal(y - x * w, noise**2)
    return likelihood + log_normal(w, prior**2) - log_normal(0.0, variance)


# --- right: the logarithms of standard deviations


def evidence_of_one_datum(y, x, prior, noise):
    scale = np.hypot(x * prior, noise)
    return -0.5 * (y / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)
