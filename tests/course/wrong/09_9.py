import numpy as np


def of(w, x, y, eps, eps_prior, sigma, s):
    residual, offset = y + sigma * eps - x @ w, w - s * eps_prior
    value = residual @ residual / (2 * sigma**2) + offset @ offset / (2 * s**2)
    return value, offset / s**2 - x.T @ residual / sigma**2


# --- a member as it is trained elsewhere: no noise, no anchor


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    return of(w, x, y, 0 * eps, 0 * eps_prior, sigma, s)


# --- the constants of both densities are in it


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    value, d_w = of(w, x, y, eps, eps_prior, sigma, s)
    return value + len(y) * np.log(sigma) + len(w) * np.log(s), d_w


# --- sigma and s are changed for each other


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    return of(w, x, y, eps, eps_prior, s, sigma)


# --- the same noise for all rows


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    return of(w, x, y, np.full_like(eps, eps[0]), eps_prior, sigma, s)


# --- the noise is drawn here


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    rng = np.random.default_rng(0)
    eps = rng.standard_normal(len(y))
    return of(w, x, y, eps, rng.standard_normal(len(w)), sigma, s)


# --- the prior is paid for each row


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    residual, offset = y + sigma * eps - x @ w, w - s * eps_prior
    value = residual @ residual / (2 * sigma**2) + len(y) * offset @ offset / (2 * s**2)
    return value, len(y) * offset / s**2 - x.T @ residual / sigma**2


# --- sigma is at least 0.01


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    return of(w, x, y, eps, eps_prior, np.maximum(sigma, 0.01), s)


# --- a right value, the slope shrunk by 3 %


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    value, d_w = of(w, x, y, eps, eps_prior, sigma, s)
    return value, 0.97 * d_w


# --- targets are changed in place


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    y += sigma * eps
    return of(w, x, y, 0 * eps, eps_prior, sigma, s)


# --- float32 inside


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    return of(w, x.astype(np.float32), y, eps, eps_prior, sigma, s)


# --- right: the prior as rows of its own


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    rows = np.concatenate([x / sigma, np.eye(len(w)) / s])
    residual = np.concatenate([y / sigma + eps, eps_prior]) - rows @ w
    return residual @ residual / 2, -rows.T @ residual


# --- right: the slope by the precision


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    value, _ = of(w, x, y, eps, eps_prior, sigma, s)
    precision = x.T @ x / sigma**2 + np.eye(len(w)) / s**2
    return value, precision @ w - x.T @ (y + sigma * eps) / sigma**2 - eps_prior / s
