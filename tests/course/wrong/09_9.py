import numpy as np


def of(w, x, y, eps, eps_prior, sigma, s):
    targets, anchor = y + sigma * eps, s * eps_prior
    residual, offset = targets - x @ w, w - anchor
    value = residual @ residual / (2 * sigma**2) + offset @ offset / (2 * s**2)
    d_w = offset / s**2 - x.T @ residual / sigma**2
    precision = x.T @ x / sigma**2 + np.eye(len(w)) / s**2
    return value, d_w, np.linalg.solve(precision, x.T @ targets / sigma**2 + anchor / s**2)


# --- the minimum of the likelihood alone, by least squares


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    value, d_w, _ = of(w, x, y, eps, eps_prior, sigma, s)
    return value, d_w, np.linalg.lstsq(x, y + sigma * eps, rcond=None)[0]


# --- one step of descent in place of the minimum


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    value, d_w, _ = of(w, x, y, eps, eps_prior, sigma, s)
    return value, d_w, w - 0.01 * d_w


# --- the posterior mean: neither noise is in the minimum


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    value, d_w, _ = of(w, x, y, eps, eps_prior, sigma, s)
    return value, d_w, of(w, x, y, 0 * eps, 0 * eps_prior, sigma, s)[2]


# --- 1e-6 is added to the precision, so that it can be inverted


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    value, d_w, _ = of(w, x, y, eps, eps_prior, sigma, s)
    precision = x.T @ x / sigma**2 + np.eye(len(w)) * (1 / s**2 + 1e-6)
    right = x.T @ (y + sigma * eps) / sigma**2 + eps_prior / s
    return value, d_w, np.linalg.solve(precision, right)


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


# --- right value and minimum, the slope shrunk by 3 %


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    value, d_w, minimum = of(w, x, y, eps, eps_prior, sigma, s)
    return value, 0.97 * d_w, minimum


# --- targets are changed in place


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    y += sigma * eps
    return of(w, x, y, 0 * eps, eps_prior, sigma, s)


# --- float32 inside


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    x = x.astype(np.float32)
    return of(w, x, y, eps, eps_prior, sigma, s)


# --- right: a Newton step from w, wherever w is


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    value, d_w, _ = of(w, x, y, eps, eps_prior, sigma, s)
    precision = x.T @ x / sigma**2 + np.eye(len(w)) / s**2
    return value, d_w, w - np.linalg.solve(precision, d_w)


# --- right: the prior as rows of its own


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    rows = np.concatenate([x / sigma, np.eye(len(w)) / s])
    targets = np.concatenate([y / sigma + eps, eps_prior])
    residual = targets - rows @ w
    minimum = np.linalg.solve(rows.T @ rows, rows.T @ targets)
    return residual @ residual / 2, -rows.T @ residual, minimum


# --- right: by the inverse


def anchored_member(w, x, y, eps, eps_prior, sigma, s):
    value, d_w, _ = of(w, x, y, eps, eps_prior, sigma, s)
    covariance = np.linalg.inv(x.T @ x / sigma**2 + np.eye(len(w)) / s**2)
    return value, d_w, covariance @ (x.T @ (y + sigma * eps) / sigma**2 + eps_prior / s)
