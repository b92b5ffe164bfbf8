import numpy as np

# --- the constant of all weights is kept for each scale, and their number changes

constants = {}


def gaussian_prior(w, prior):
    if prior not in constants:
        constants[prior] = len(w) * (np.log(prior) + np.log(2 * np.pi) / 2)
    return np.sum(w**2) / (2 * prior**2) + constants[prior], w / prior**2


# --- an array of the last call is used again

slopes = {}


def gaussian_prior(w, prior):
    d_w = slopes.setdefault(w.shape, np.empty(w.shape))
    np.divide(w, prior**2, out=d_w)
    constant = len(w) * (np.log(prior) + np.log(2 * np.pi) / 2)
    return np.sum(w**2) / (2 * prior**2) + constant, d_w


# --- the variance is at least 1e-12


def gaussian_prior(w, prior):
    variance = np.maximum(prior**2, 1e-12)
    constant = len(w) * (np.log(variance) + np.log(2 * np.pi)) / 2
    return np.sum(w**2) / (2 * variance) + constant, w / variance


# --- the constant has seven digits


def gaussian_prior(w, prior):
    constant = len(w) * (np.log(prior) + 0.9189385)
    return np.sum(w**2) / (2 * prior**2) + constant, w / prior**2


# --- right value, slope shrunk by 1 %


def gaussian_prior(w, prior):
    constant = len(w) * (np.log(prior) + np.log(2 * np.pi) / 2)
    return np.sum(w**2) / (2 * prior**2) + constant, 0.99 * w / prior**2


# --- one constant, which is that of one weight


def gaussian_prior(w, prior):
    constant = np.log(prior) + np.log(2 * np.pi) / 2
    return np.sum(w**2) / (2 * prior**2) + constant, w / prior**2


# --- float32 inside


def gaussian_prior(w, prior):
    w = w.astype(np.float32)
    constant = len(w) * (np.log(prior) + np.log(2 * np.pi) / 2)
    return np.sum(w**2) / (2 * prior**2) + constant, w / prior**2


# --- w is scaled in place


def gaussian_prior(w, prior):
    w /= prior
    constant = len(w) * (np.log(prior) + np.log(2 * np.pi) / 2)
    return np.sum(w**2) / 2 + constant, w / prior


# --- right: the precision, and constants of the module

LOG_2_PI = np.log(2 * np.pi)


def gaussian_prior(w, prior):
    precision = 1 / prior**2
    return (precision * w @ w - w.size * (np.log(precision) - LOG_2_PI)) / 2, precision * w


# --- the logarithm of a density, which is 0 in floats 40 standard deviations off


def gaussian_prior(w, prior):
    value = 0.0
    for one in w:
        value = value - np.log(np.exp(-0.5 * (one / prior) ** 2) / np.sqrt(2 * np.pi * prior**2))
    return value, w / prior / prior
