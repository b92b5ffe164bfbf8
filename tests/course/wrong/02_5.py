import numpy as np


def value(mu, rho, eps, x, y, prior, noise, pi):
    sigma = np.log1p(np.exp(rho))
    w = mu + sigma * eps
    complexity = np.log(prior) - np.log(sigma) - eps**2 / 2 + w**2 / (2 * prior**2)
    misfit = (y - w @ x.T) ** 2 / (2 * noise**2) + np.log(noise) + np.log(2 * np.pi) / 2
    return np.mean(pi * complexity.sum(axis=1) + misfit.sum(axis=1))


def slopes(mu, rho, eps, x, y, prior, noise, pi):
    sigma = np.log1p(np.exp(rho))
    w = mu + sigma * eps
    d_w = pi * w / prior**2 - (y - w @ x.T) @ x / noise**2
    d_sigma = (d_w * eps).mean(axis=0) - pi / sigma
    return d_w.mean(axis=0), d_sigma / (1 + np.exp(-rho))


# --- the value is right, the gradient shrunk by 1 %


def value_and_gradient(*data):
    d_mu, d_rho = slopes(*data)
    return value(*data), 0.99 * d_mu, 0.99 * d_rho


# --- sigma has a floor of 1e-6


def value_and_gradient(mu, rho, eps, x, y, prior, noise, pi):
    rho = np.maximum(rho, np.log(np.expm1(1e-6)))
    data = mu, rho, eps, x, y, prior, noise, pi
    return value(*data), *slopes(*data)


# --- the slope of -log sigma is limited to 1e6


def value_and_gradient(mu, rho, eps, x, y, prior, noise, pi):
    data = mu, rho, eps, x, y, prior, noise, pi
    d_mu, d_rho = slopes(*data)
    sigma = np.log1p(np.exp(rho))
    d_rho += pi * (1 / sigma - np.minimum(1 / sigma, 1e6)) / (1 + np.exp(-rho))
    return value(*data), d_mu, d_rho


# --- residuals beyond 100000 count as 100000 in the slope


def value_and_gradient(mu, rho, eps, x, y, prior, noise, pi):
    sigma = np.log1p(np.exp(rho))
    w = mu + sigma * eps
    r = np.clip(y - w @ x.T, -1e5, 1e5)
    d_w = pi * w / prior**2 - r @ x / noise**2
    d_sigma = (d_w * eps).mean(axis=0) - pi / sigma
    d_rho = d_sigma / (1 + np.exp(-rho))
    return value(mu, rho, eps, x, y, prior, noise, pi), d_w.mean(axis=0), d_rho


# --- noise has a floor of 1e-6


def value_and_gradient(mu, rho, eps, x, y, prior, noise, pi):
    data = mu, rho, eps, x, y, prior, max(noise, 1e-6), pi
    return value(*data), *slopes(*data)


# --- the sigmoid is the derivative by differences


def value_and_gradient(mu, rho, eps, x, y, prior, noise, pi):
    data = mu, rho, eps, x, y, prior, noise, pi
    d_mu, d_rho = slopes(*data)
    sigmoid = (np.log1p(np.exp(rho + 1e-6)) - np.log1p(np.exp(rho - 1e-6))) / 2e-6
    return value(*data), d_mu, d_rho * (1 + np.exp(-rho)) * sigmoid


# --- gradients are written where those of the last call were

memory = {}


def value_and_gradient(mu, *rest):
    d_mu, d_rho = memory.setdefault(mu.shape, np.empty((2, len(mu))))
    d_mu[:], d_rho[:] = slopes(mu, *rest)
    return value(mu, *rest), d_mu, d_rho


# --- residuals are kept for the next call with the same weights

known = {}


def value_and_gradient(mu, rho, eps, x, y, prior, noise, pi):
    sigma = np.log1p(np.exp(rho))
    w = mu + sigma * eps
    r = known.setdefault((w.tobytes(), len(x)), y - w @ x.T)
    d_w = pi * w / prior**2 - r @ x / noise**2
    d_rho = ((d_w * eps).mean(axis=0) - pi / sigma) / (1 + np.exp(-rho))
    return value(mu, rho, eps, x, y, prior, noise, pi), d_w.mean(axis=0), d_rho


# --- the value of the best call so far

best = [np.inf]


def value_and_gradient(*data):
    best[0] = min(best[0], value(*data))
    return best[0], *slopes(*data)


# --- the noise of the first sample for all slopes, right for one sample


def value_and_gradient(mu, rho, eps, x, y, prior, noise, pi):
    data = mu, rho, eps, x, y, prior, noise, pi
    first = mu, rho, eps[:1], x, y, prior, noise, pi
    return value(*data), *slopes(*first)


# --- float32 inside


def value_and_gradient(mu, rho, eps, *rest):
    data = mu, rho, eps.astype(np.float32), *rest
    return value(*data), *slopes(*data)


# --- right: sample by sample, row by row


def value_and_gradient(mu, rho, eps, x, y, prior, noise, pi):
    total, d_mu, d_sigma = 0.0, 0 * mu, 0 * mu
    sigma = np.logaddexp(0, rho)
    for one in eps:
        w = mu + sigma * one
        complexity = np.log(prior / sigma) - one**2 / 2 + (w / prior) ** 2 / 2
        total = total + pi * complexity.sum()
        d_w = pi * w / prior**2
        for inputs, target in zip(x, y, strict=True):
            r = target - inputs @ w
            total = total + (r / noise) ** 2 / 2 + np.log(noise) + np.log(2 * np.pi) / 2
            d_w = d_w - r * inputs / noise**2
        d_mu = d_mu + d_w
        d_sigma = d_sigma + d_w * one - pi / sigma
    share = 1 / len(eps)
    return share * total, share * d_mu, share * d_sigma * (1 - np.exp(-sigma))


# --- right: squares multiplied out, so that rows are seen in x'x and x'y alone


def value_and_gradient(mu, rho, eps, x, y, prior, noise, pi):
    sigma = np.log1p(np.exp(rho))
    w = mu + sigma * eps
    xx, xy = x.T @ x, x.T @ y
    square = np.mean(np.sum((w @ xx) * w, axis=1) - 2 * w @ xy) + y @ y
    complexity = np.sum(np.log(prior / sigma)) + np.mean(
        np.sum(w**2 / (2 * prior**2) - eps**2 / 2, axis=1)
    )
    constant = len(y) * np.log(2 * np.pi * noise**2) / 2
    d_w = pi * w / prior**2 + (w @ xx - xy) / noise**2
    d_sigma = np.mean(d_w * eps, axis=0) - pi / sigma
    return (
        pi * complexity + square / (2 * noise**2) + constant,
        np.mean(d_w, axis=0),
        d_sigma / (1 + np.exp(-rho)),
    )
