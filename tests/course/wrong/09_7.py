import numpy as np

# --- one weight has no partner, so that v is left out


def density_of_low_rank(a, v):
    v = v if len(v) > 1 else 0 * v
    m = 1 + v @ v
    c = v @ a / m
    return -(np.log(m) + a @ a - c**2 * m) / 2, c * v - a, c * (a - c * v) - v / m


# --- an |v|^2 above 30 is taken for 30


def density_of_low_rank(a, v):
    m = 1 + min(v @ v, 30.0)
    c = v @ a / m
    return -(np.log(m) + a @ a - c**2 * m) / 2, c * v - a, c * (a - c * v) - v / m


# --- the slope for v with m fixed in c


def density_of_low_rank(a, v):
    m = 1 + v @ v
    c = v @ a / m
    return -(np.log(m) + a @ a - c**2 * m) / 2, c * v - a, c * a - v / m - c**2 * v / 2


# --- the slope for a is that of the independent weights and half of the common cause


def density_of_low_rank(a, v):
    m = 1 + v @ v
    c = v @ a / m
    return -(np.log(m) + a @ a - c**2 * m) / 2, c * v / 2 - a, c * (a - c * v) - v / m


# --- a is clipped to +-6


def density_of_low_rank(a, v):
    a = np.clip(a, -6, 6)
    m = 1 + v @ v
    c = v @ a / m
    return -(np.log(m) + a @ a - c**2 * m) / 2, c * v - a, c * (a - c * v) - v / m


# --- right: by the matrix, in P^3 steps


def density_of_low_rank(a, v):
    covariance = np.eye(len(v)) + np.outer(v, v)
    x, y = np.linalg.solve(covariance, a), np.linalg.solve(covariance, v)
    value = -(np.linalg.slogdet(covariance)[1] + a @ x) / 2
    return value, -x, x * (x @ v) - y
