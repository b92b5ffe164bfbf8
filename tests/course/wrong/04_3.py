import numpy as np

# --- the second moment is kept for each mu, and sigma may change

moments = {}


def mean_of_functions(mu, sigma, x):
    if mu not in moments:
        moments[mu] = mu**2 + sigma**2
    return moments[mu] * x**2, mu**2 * x**2


# --- arrays of the last call are used again

arrays = {}


def mean_of_functions(mu, sigma, x):
    mean, at_the_mean = arrays.setdefault(x.shape, np.empty((2, *x.shape)))
    np.multiply(x**2, mu**2 + sigma**2, out=mean)
    np.multiply(x**2, mu**2, out=at_the_mean)
    return mean, at_the_mean


# --- sigma is at least a thousandth


def mean_of_functions(mu, sigma, x):
    return (mu**2 + max(sigma, 1e-3) ** 2) * x**2, (mu * x) ** 2


# --- sigma is at least a millionth


def mean_of_functions(mu, sigma, x):
    sigma = max(sigma, 1e-6)
    return (mu**2 + sigma**2) * x**2, (mu * x) ** 2


# --- the variance of f is added, not of w


def mean_of_functions(mu, sigma, x):
    at_the_mean = (mu * x) ** 2
    return at_the_mean + 2 * (sigma * x) ** 4 + 4 * (mu * sigma * x**2) ** 2, at_the_mean


# --- weights are drawn


def mean_of_functions(mu, sigma, x):
    w = mu + sigma * np.random.default_rng(0).standard_normal(10_000)
    return np.mean((w[:, None] * x) ** 2, axis=0), (mu * x) ** 2


# --- the variance is not multiplied by x^2, which is 1 for x = 1


def mean_of_functions(mu, sigma, x):
    at_the_mean = (mu * x) ** 2
    return at_the_mean + sigma**2, at_the_mean


# --- float32 inside


def mean_of_functions(mu, sigma, x):
    squares = x.astype(np.float32) ** 2
    return (mu**2 + sigma**2) * squares, mu**2 * squares


# --- right: two weights, one standard deviation from the mean


def mean_of_functions(mu, sigma, x):
    above, below = ((mu + sigma) * x) ** 2, ((mu - sigma) * x) ** 2
    return (above + below) / 2, (mu * x) ** 2


# --- right: Gauss and Hermite's three nodes


def mean_of_functions(mu, sigma, x):
    nodes, shares = np.polynomial.hermite_e.hermegauss(3)
    w = mu + sigma * nodes
    return shares @ (w[:, None] * x) ** 2 / np.sqrt(2 * np.pi), (mu * x) ** 2
