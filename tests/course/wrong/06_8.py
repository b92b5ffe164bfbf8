import numpy as np


def of(f, y, z):
    m, q = np.exp(f), 1 / (1 + np.exp(-z))
    log_p = np.where(y == 0, np.logaddexp(z, -m), y * f - m)
    extra = (y == 0) / (1 + np.exp(-z - m))
    value = np.sum(np.logaddexp(0, z) - log_p)
    return value, (1 - extra) * (m - y), np.sum(q - extra)


# --- log(1 + exp(z + m)), which overflows where the rate is large


def extra_zeros(f, y, z):
    m, q = np.exp(f), 1 / (1 + np.exp(-z))
    log_p = np.where(y == 0, np.log(1 + np.exp(z + m)), y * f) - m
    extra = (y == 0) / (1 + np.exp(-z - m))
    return np.sum(np.log(1 + np.exp(z)) - log_p), (1 - extra) * (m - y), np.sum(q - extra)


# --- the share among zeros as exp(z + m) / (1 + exp(z + m)), which is nan there


def extra_zeros(f, y, z):
    m, q = np.exp(f), 1 / (1 + np.exp(-z))
    odds = np.exp(z + m)
    extra = np.where(y == 0, odds / (1 + odds), 0)
    return of(f, y, z)[0], (1 - extra) * (m - y), np.sum(q - extra)


# --- f is at most 6


def extra_zeros(f, y, z):
    return of(np.minimum(f, 6.0), y, z)


# --- f is at least -10


def extra_zeros(f, y, z):
    return of(np.maximum(f, -10.0), y, z)


# --- the share is kept 1e-3 away from 0 and 1


def extra_zeros(f, y, z):
    return of(f, y, np.clip(z, np.log(1e-3 / 0.999), np.log(0.999 / 1e-3)))


# --- zeros at rates above 5 are all taken for extra ones


def extra_zeros(f, y, z):
    m, q = np.exp(f), 1 / (1 + np.exp(-z))
    share = np.where(m > 5, 1.0, 1 / (1 + np.exp(-z - m)))
    extra = np.where(y == 0, share, 0)
    return of(f, y, z)[0], (1 - extra) * (m - y), np.sum(q - extra)


# --- a hurdle: all zeros are extra ones, and a count is Poisson's that is none


def extra_zeros(f, y, z):
    m, q = np.exp(f), 1 / (1 + np.exp(-z))
    zero = y == 0
    cost = np.where(zero, -z, m - y * f + np.log(-np.expm1(-m)))
    d_f = np.where(zero, 0, m - y + m / np.expm1(m))
    return np.sum(np.logaddexp(0, z) + cost), d_f, np.sum(q - zero)


# --- 1e-12 is added to what is below a logarithm


def extra_zeros(f, y, z):
    m, q = np.exp(f), 1 / (1 + np.exp(-z))
    p = np.where(y == 0, q + (1 - q) * np.exp(-m), (1 - q) * np.exp(y * f - m))
    return -np.sum(np.log(p + 1e-12)), *of(f, y, z)[1:]


# --- whether a zero is there is asked once for all rows


def extra_zeros(f, y, z):
    m, q = np.exp(f), 1 / (1 + np.exp(-z))
    if not np.any(y == 0):
        return of(f, y, z)
    extra = 1 / (1 + np.exp(-z - m))
    return of(f, y, z)[0], (1 - extra) * (m - y), np.sum(q - extra)


# --- which rows are zeros is kept for the next call with as many

kept = {}


def extra_zeros(f, y, z):
    m, q = np.exp(f), 1 / (1 + np.exp(-z))
    zero = kept.setdefault(len(y), y == 0)
    log_p = np.where(zero, np.logaddexp(z, -m), y * f - m)
    extra = zero / (1 + np.exp(-z - m))
    value = np.sum(np.logaddexp(0, z) - log_p)
    return value, (1 - extra) * (m - y), np.sum(q - extra)


# --- log(1 - q) is paid by counts only, not by zeros


def extra_zeros(f, y, z):
    value, d_f, d_z = of(f, y, z)
    zeros = np.sum(y == 0)
    return value - zeros * np.logaddexp(0, z), d_f, d_z - zeros / (1 + np.exp(-z))


# --- right value and slope for f, that for z shrunk by 3 %


def extra_zeros(f, y, z):
    value, d_f, d_z = of(f, y, z)
    return value, d_f, 0.97 * d_z


# --- float32 inside


def extra_zeros(f, y, z):
    return of(f.astype(np.float32), y, np.float32(z))


# --- right: the larger of z and -m is taken out


def extra_zeros(f, y, z):
    m, q = np.exp(f), 1 / (1 + np.exp(-z))
    larger = np.maximum(z, -m)
    of_zero = larger + np.log(np.exp(z - larger) + np.exp(-m - larger))
    log_p = np.where(y == 0, of_zero, y * f - m)
    extra = np.where(y == 0, np.exp(z - of_zero), 0)
    value = len(y) * np.log(1 + np.exp(z)) - np.sum(log_p)
    return value, m - y - extra * m, len(y) * q - np.sum(extra)


# --- right: zeros and counts in two parts


def extra_zeros(f, y, z):
    m, rest = np.exp(f), 1 / (1 + np.exp(z))
    zero = y == 0
    p = np.exp(-m[zero])
    of_zero = (1 - rest) + rest * p
    d_f = m - y
    d_f[zero] = rest * p * m[zero] / of_zero
    value = -np.sum(np.log(of_zero)) - np.sum((y * f - m)[~zero] + np.log(rest))
    return value, d_f, np.sum(~zero) * (1 - rest) - np.sum((1 - rest) * rest * (1 - p) / of_zero)


# --- right: scipy's Poisson law


def extra_zeros(f, y, z):
    from scipy.special import expit, gammaln, log_expit
    from scipy.stats import poisson

    m, zero = np.exp(f), y == 0
    log_p = poisson.logpmf(y, m) + gammaln(y + 1) + log_expit(-z)
    log_p = np.where(zero, np.logaddexp(log_p, log_expit(z)), log_p)
    extra = zero * expit(z + m)
    return -np.sum(log_p), zero * expit(-z - m) * m + ~zero * (m - y), np.sum(expit(z) - extra)
