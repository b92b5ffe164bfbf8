import numpy as np

# --- h itself above 10


def noise_that_depends_on_the_input(m, h, y, c):
    sigma = c + np.where(h > 10, h, np.log1p(np.exp(h)))
    z = (y - m) / sigma
    value = np.sum(np.log(sigma) + z**2 / 2 + np.log(2 * np.pi) / 2)
    return value, -z / sigma, (1 - z**2) / sigma / (1 + np.exp(-h))


# --- h itself above 20, with the slope 1, as a library for single precision does


def noise_that_depends_on_the_input(m, h, y, c):
    sigma = c + np.where(h > 20, h, np.log1p(np.exp(h)))
    z = (y - m) / sigma
    value = np.sum(np.log(sigma) + z**2 / 2 + np.log(2 * np.pi) / 2)
    d_softplus = np.where(h > 20, 1.0, 1 / (1 + np.exp(-h)))
    return value, -z / sigma, (1 - z**2) / sigma * d_softplus


# --- h is at least -15


def noise_that_depends_on_the_input(m, h, y, c):
    h = np.maximum(h, -15.0)
    sigma = c + np.log1p(np.exp(h))
    z = (y - m) / sigma
    value = np.sum(np.log(sigma) + z**2 / 2 + np.log(2 * np.pi) / 2)
    return value, -z / sigma, (1 - z**2) / sigma / (1 + np.exp(-h))


# --- below -20 nothing but the floor


def noise_that_depends_on_the_input(m, h, y, c):
    softplus = np.where(h < -20, 0.0, np.log1p(np.exp(h)))
    sigma = c + softplus
    z = (y - m) / sigma
    value = np.sum(np.log(sigma) + z**2 / 2 + np.log(2 * np.pi) / 2)
    return value, -z / sigma, (1 - z**2) / sigma * (1 - np.exp(-softplus))


# --- the floor is at least a millionth


def noise_that_depends_on_the_input(m, h, y, c):
    sigma = max(c, 1e-6) + np.log1p(np.exp(h))
    z = (y - m) / sigma
    value = np.sum(np.log(sigma) + z**2 / 2 + np.log(2 * np.pi) / 2)
    return value, -z / sigma, (1 - z**2) / sigma / (1 + np.exp(-h))


# --- sigma is kept for each h, and c changes

kept = {}


def noise_that_depends_on_the_input(m, h, y, c):
    sigma = kept.setdefault(h.tobytes(), c + np.log1p(np.exp(h)))
    z = (y - m) / sigma
    value = np.sum(np.log(sigma) + z**2 / 2 + np.log(2 * np.pi) / 2)
    return value, -z / sigma, (1 - z**2) / sigma / (1 + np.exp(-h))


# --- the floor is the larger of the two


def noise_that_depends_on_the_input(m, h, y, c):
    sigma = np.maximum(c, np.log1p(np.exp(h)))
    z = (y - m) / sigma
    value = np.sum(np.log(sigma) + z**2 / 2 + np.log(2 * np.pi) / 2)
    return value, -z / sigma, (1 - z**2) / sigma / (1 + np.exp(-h))


# --- one sigma for all rows, from the mean of h


def noise_that_depends_on_the_input(m, h, y, c):
    h = np.full(len(h), h.mean())
    sigma = c + np.log1p(np.exp(h))
    z = (y - m) / sigma
    value = np.sum(np.log(sigma) + z**2 / 2 + np.log(2 * np.pi) / 2)
    return value, -z / sigma, (1 - z**2) / sigma / (1 + np.exp(-h))


# --- the slope of softplus as if there were no floor: 1 - exp(-sigma)


def noise_that_depends_on_the_input(m, h, y, c):
    sigma = c + np.log1p(np.exp(h))
    z = (y - m) / sigma
    value = np.sum(np.log(sigma) + z**2 / 2 + np.log(2 * np.pi) / 2)
    return value, -z / sigma, (1 - z**2) / sigma * (1 - np.exp(-sigma))


# --- right value, the slope for h shrunk by 3 %


def noise_that_depends_on_the_input(m, h, y, c):
    sigma = c + np.log1p(np.exp(h))
    z = (y - m) / sigma
    value = np.sum(np.log(sigma) + z**2 / 2 + np.log(2 * np.pi) / 2)
    return value, -z / sigma, 0.97 * (1 - z**2) / sigma / (1 + np.exp(-h))


# --- float32 inside


def noise_that_depends_on_the_input(m, h, y, c):
    sigma = c + np.log1p(np.exp(h.astype(np.float32)))
    z = (y - m) / sigma
    value = np.sum(np.log(sigma) + z**2 / 2 + np.log(2 * np.pi) / 2)
    return value, -z / sigma, (1 - z**2) / sigma / (1 + np.exp(-h))


# --- right: a softplus that does not overflow, and its slope from it


def noise_that_depends_on_the_input(m, h, y, c):
    softplus = np.maximum(h, 0) + np.log1p(np.exp(-abs(h)))
    sigma = c + softplus
    value = np.sum(np.log(sigma) + ((m - y) / sigma) ** 2 / 2) + len(y) * np.log(2 * np.pi) / 2
    d_sigma = (sigma**2 - (y - m) ** 2) / sigma**3
    return value, (m - y) / sigma**2, d_sigma * -np.expm1(-softplus)


# --- right: logaddexp


def noise_that_depends_on_the_input(m, h, y, c):
    sigma = c + np.logaddexp(0, h)
    z = (y - m) / sigma
    value = np.sum(z**2 + np.log(2 * np.pi * sigma**2)) / 2
    return value, -z / sigma, (1 - z**2) / sigma * np.exp(h - np.logaddexp(0, h))
