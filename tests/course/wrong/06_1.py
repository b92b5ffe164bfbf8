import numpy as np

# --- the constant of all rows is kept for each noise, and their number changes

constants = {}


def gaussian_likelihood(f, y, noise):
    if noise not in constants:
        constants[noise] = len(y) * (np.log(noise) + np.log(2 * np.pi) / 2)
    return np.sum((y - f) ** 2) / (2 * noise**2) + constants[noise], (f - y) / noise**2


# --- the sum of squares is kept for each y, and f changes

squares = {}


def gaussian_likelihood(f, y, noise):
    total = squares.setdefault(y.tobytes(), np.sum((y - f) ** 2))
    constant = len(y) * (np.log(noise) + np.log(2 * np.pi) / 2)
    return total / (2 * noise**2) + constant, (f - y) / noise**2


# --- an array of the last call is used again

slopes = {}


def gaussian_likelihood(f, y, noise):
    error = np.subtract(f, y, out=slopes.setdefault(y.shape, np.empty(y.shape)))
    constant = len(y) * (np.log(noise) + np.log(2 * np.pi) / 2)
    value = error @ error / (2 * noise**2) + constant
    error /= noise**2
    return value, error


# --- the noise is at least a millionth


def gaussian_likelihood(f, y, noise):
    noise = max(noise, 1e-6)
    constant = len(y) * (np.log(noise) + np.log(2 * np.pi) / 2)
    return np.sum((y - f) ** 2) / (2 * noise**2) + constant, (f - y) / noise**2


# --- squares multiplied out: all digits cancel for targets far from 0


def gaussian_likelihood(f, y, noise):
    squares = y @ y - 2 * y @ f + f @ f
    constant = len(y) * (np.log(noise) + np.log(2 * np.pi) / 2)
    return squares / (2 * noise**2) + constant, (f - y) / noise**2


# --- right value, slope shrunk by 1 %


def gaussian_likelihood(f, y, noise):
    constant = len(y) * (np.log(noise) + np.log(2 * np.pi) / 2)
    return np.sum((y - f) ** 2) / (2 * noise**2) + constant, 0.99 * (f - y) / noise**2


# --- residuals beyond ten standard deviations are clipped


def gaussian_likelihood(f, y, noise):
    z = np.clip((f - y) / noise, -10, 10)
    constant = len(y) * (np.log(noise) + np.log(2 * np.pi) / 2)
    return z @ z / 2 + constant, z / noise


# --- float32 inside


def gaussian_likelihood(f, y, noise):
    error = (f - y).astype(np.float32)
    constant = len(y) * (np.log(noise) + np.log(2 * np.pi) / 2)
    return error @ error / (2 * noise**2) + constant, error / noise**2


# --- the targets as a column


def gaussian_likelihood(f, y, noise):
    error = f - y[:, None]
    constant = len(y) * (np.log(noise) + np.log(2 * np.pi) / 2)
    return np.sum(error**2) / (2 * noise**2) + constant, error.sum(axis=0) / noise**2


# --- f is subtracted in place


def gaussian_likelihood(f, y, noise):
    f -= y
    constant = len(y) * (np.log(noise) + np.log(2 * np.pi) / 2)
    return f @ f / (2 * noise**2) + constant, f / noise**2


# --- right: the logarithm of each density


def gaussian_likelihood(f, y, noise):
    z = (y - f) / noise
    log_density = -0.5 * z**2 - 0.5 * np.log(2 * np.pi * noise**2)
    return -log_density.sum(), -z / noise


# --- right: scipy's normal law


def gaussian_likelihood(f, y, noise):
    from scipy.stats import norm

    return -norm.logpdf(y, f, noise).sum(), (f - y) / noise**2
