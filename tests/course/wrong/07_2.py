import numpy as np

# --- a baseline that sees its own sample


def score_function_estimator(mu, sigma, eps, h):
    h = (h - h.mean())[:, None]
    return (h * eps / sigma).mean(axis=0), (h * (eps**2 - 1) / sigma).mean(axis=0)


# --- divided by S - 1, as a sample's variance is


def score_function_estimator(mu, sigma, eps, h):
    n = max(len(eps) - 1, 1)
    return h @ eps / sigma / n, h @ (eps**2 - 1) / sigma / n


# --- sigma is kept away from 0 by a floor of 0.05


def score_function_estimator(mu, sigma, eps, h):
    sigma = np.maximum(sigma, 0.05)
    h = h[:, None]
    return (h * eps / sigma).mean(axis=0), (h * (eps**2 - 1) / sigma).mean(axis=0)


# --- large values of h are clipped to tame the variance


def score_function_estimator(mu, sigma, eps, h):
    h = np.clip(h, -10.0, 10.0)[:, None]
    return (h * eps / sigma).mean(axis=0), (h * (eps**2 - 1) / sigma).mean(axis=0)


# --- squeezed, so that one sample gives another shape


def score_function_estimator(mu, sigma, eps, h):
    noise, scores = np.squeeze(eps), np.squeeze(h)
    d_mu = scores @ noise / len(eps) / sigma
    return d_mu, (scores @ (noise**2 - 1)) / len(eps) / sigma
