import numpy as np


def of(features, factor, noise_scale):
    return np.log1p(np.sum((features @ factor / noise_scale) ** 2, axis=1)) / 2


# --- right: log(1 + ratio), whose digits cancel where little is told


def information_gain(features, factor, noise_scale):
    ratio = np.sum((features @ factor) ** 2, axis=1) / noise_scale**2
    return 0.5 * np.log(1 + ratio)


# --- the covariance is that of all weights by themselves


def information_gain(features, factor, noise_scale):
    variance = features**2 @ np.sum(factor**2, axis=1)
    return 0.5 * np.log1p(variance / noise_scale**2)


# --- the fall of the variance of the mean, not of the entropy


def information_gain(features, factor, noise_scale):
    variance = np.sum((features @ factor) ** 2, axis=1)
    return variance**2 / (variance + noise_scale**2)


# --- all rows together


def information_gain(features, factor, noise_scale):
    ratio = features @ factor / noise_scale
    total = np.linalg.slogdet(np.eye(len(features)) + ratio @ ratio.T)[1]
    return 0.5 * total * np.ones(len(features))


# --- each row after those before it


def information_gain(features, factor, noise_scale):
    gains = []
    for phi in features:
        v = factor.T @ phi
        gains.append(0.5 * np.log1p(v @ v / noise_scale**2))
        factor = factor @ np.linalg.cholesky(
            np.linalg.inv(np.eye(len(v)) + np.outer(v, v) / noise_scale**2)
        )
    return np.array(gains)


# --- in bits


def information_gain(features, factor, noise_scale):
    return of(features, factor, noise_scale) / np.log(2)


# --- noise has a floor of 1e-3


def information_gain(features, factor, noise_scale):
    return of(features, factor, max(noise_scale, 1e-3))


# --- variances are at most 1e6


def information_gain(features, factor, noise_scale):
    variance = np.minimum(np.sum((features @ factor) ** 2, axis=1), 1e6)
    return 0.5 * np.log1p(variance / noise_scale**2)


# --- the covariance is kept for the next call with a factor of this shape

kept = {}


def information_gain(features, factor, noise_scale):
    return of(features, kept.setdefault(factor.shape, factor.copy()), noise_scale)


# --- features divided by the noise in place


def information_gain(features, factor, noise_scale):
    features /= noise_scale
    return of(features, factor, 1.0)


# --- float32 inside


def information_gain(features, factor, noise_scale):
    return of(features.astype(np.float32), factor.astype(np.float32), np.float32(noise_scale))


# --- right: the noise in the features


def information_gain(features, factor, noise_scale):
    scaled = features / noise_scale
    return 0.5 * np.log1p(np.einsum("bi,ij,kj,bk->b", scaled, factor, factor, scaled))


# --- right: one row after the other


def information_gain(features, factor, noise_scale):
    gains = []
    for phi in features:
        v = factor.T @ phi
        gains.append(np.log1p(v @ v / noise_scale**2) / 2)
    return np.array(gains)


# --- right: as hyperbolic sine, log(1 + r) = 2 asinh(r / (2 sqrt(1 + r)))


def information_gain(features, factor, noise_scale):
    r = np.sum((features @ factor) ** 2, axis=1) / noise_scale**2
    return np.arcsinh(r / (2 * np.sqrt(1 + r)))
