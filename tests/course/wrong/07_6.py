import numpy as np


def parts(rho):
    return np.log1p(np.exp(rho)), 1 / (1 + np.exp(-rho))


# --- shrunk by a fifth


def your_own_estimator(mu, rho, eps, slope):
    sigma, sigmoid = parts(rho)
    through_w = slope(mu + sigma * eps) - eps / sigma
    return 0.8 * through_w.mean(axis=0), 0.8 * (through_w * eps).mean(axis=0) * sigmoid


# --- shrunk by 3 %


def your_own_estimator(mu, rho, eps, slope):
    sigma, sigmoid = parts(rho)
    through_w = slope(mu + sigma * eps) - eps / sigma
    return 0.97 * through_w.mean(axis=0), 0.97 * (through_w * eps).mean(axis=0) * sigmoid


# --- only the slope for rho shrunk, by 3 %


def your_own_estimator(mu, rho, eps, slope):
    sigma, sigmoid = parts(rho)
    through_w = slope(mu + sigma * eps) - eps / sigma
    return through_w.mean(axis=0), 0.97 * (through_w * eps).mean(axis=0) * sigmoid


# --- gradients are clipped to +-4


def your_own_estimator(mu, rho, eps, slope):
    sigma, sigmoid = parts(rho)
    through_w = slope(mu + sigma * eps) - eps / sigma
    d_rho = (through_w * eps).mean(axis=0) * sigmoid
    return np.clip(through_w.mean(axis=0), -4, 4), np.clip(d_rho, -4, 4)


# --- a running mean of the gradients of all calls

memory = [np.zeros(2), np.zeros(2)]


def your_own_estimator(mu, rho, eps, slope):
    sigma, sigmoid = parts(rho)
    through_w = slope(mu + sigma * eps) - eps / sigma
    now = through_w.mean(axis=0), (through_w * eps).mean(axis=0) * sigmoid
    for old, new in zip(memory, now, strict=True):
        old += 0.5 * (new - old)
    return memory[0].copy(), memory[1].copy()


# --- the slope is divided by the squares of the noise, as if these had the mean 1 in four samples


def your_own_estimator(mu, rho, eps, slope):
    sigma, sigmoid = parts(rho)
    through_w = slope(mu + sigma * eps) - eps / sigma
    squares = (eps**2).mean(axis=0)
    return through_w.mean(axis=0), (through_w * eps).mean(axis=0) / squares * sigmoid


# --- the gradient at the mean weights, without noise


def your_own_estimator(mu, rho, eps, slope):
    sigma, sigmoid = parts(rho)
    step = 1e-3
    at = mu + np.array([[0.0, 0.0], [step, 0.0], [0.0, step]])
    d_w = slope(at)
    curvature = np.array([d_w[1, 0] - d_w[0, 0], d_w[2, 1] - d_w[0, 1]]) / step
    return d_w[0], (curvature * sigma - 1 / sigma) * sigmoid


# --- a baseline from its own samples: the regression on the noise, in these four


def your_own_estimator(mu, rho, eps, slope):
    sigma, sigmoid = parts(rho)
    through_w = slope(mu + sigma * eps) - eps / sigma
    off = eps - eps.mean(axis=0)
    factor = (off * through_w).sum(axis=0) / (off**2).sum(axis=0)
    d_mu = (through_w - factor * eps).mean(axis=0)
    return d_mu, ((through_w - d_mu) * eps).mean(axis=0) * sigmoid


# --- right: two samples and their mirror images


def your_own_estimator(mu, rho, eps, slope):
    sigma, sigmoid = parts(rho)
    eps = np.concatenate([eps[:2], -eps[:2]])
    through_w = slope(mu + sigma * eps) - eps / sigma
    return through_w.mean(axis=0), (through_w * eps).mean(axis=0) * sigmoid


# --- right: a baseline of the other three samples


def your_own_estimator(mu, rho, eps, slope):
    sigma, sigmoid = parts(rho)
    through_w = slope(mu + sigma * eps) - eps / sigma
    others = (through_w.sum(axis=0) - through_w) / (len(eps) - 1)
    return through_w.mean(axis=0), ((through_w - others) * eps).mean(axis=0) * sigmoid


# --- right: noise of its own

rng = np.random.default_rng(1)


def your_own_estimator(mu, rho, eps, slope):
    sigma, sigmoid = parts(rho)
    eps = rng.standard_normal(eps.shape)
    through_w = slope(mu + sigma * eps) - eps / sigma
    return through_w.mean(axis=0), (through_w * eps).mean(axis=0) * sigmoid
