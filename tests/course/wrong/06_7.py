import numpy as np


def of(f, y, t, n_factors=None):
    m, r = np.exp(f), np.exp(t)
    j = np.arange(np.max(y) if n_factors is None else n_factors)
    used = j < y[:, None]
    log_product = np.sum(np.where(used, np.log(r + j), 0))
    d_product = np.sum(np.where(used, 1 / (r + j), 0))
    value = np.sum((y + r) * np.log1p(m / r) - y * (f - t)) - log_product
    d_r = np.sum(np.log1p(m / r) + (y - m) / (m + r)) - d_product
    return value, r * (m - y) / (m + r), r * d_r


# --- the product has 100 factors at most


def negative_binomial(f, y, t):
    return of(f, y, t, n_factors=100)


# --- Poisson's likelihood for r above 10,000


def negative_binomial(f, y, t):
    if t > np.log(1e4):
        return np.sum(np.exp(f) - y * f), np.exp(f) - y, 0 * t
    return of(f, y, t)


# --- means are at least 1e-8


def negative_binomial(f, y, t):
    return of(np.log(np.maximum(np.exp(f), 1e-8)), y, t)


# --- r is kept between 0.001 and 1000


def negative_binomial(f, y, t):
    return of(f, y, np.log(np.clip(np.exp(t), 1e-3, 1e3)))


# --- the factor (r / (m + r))^r by its limit exp(-m)


def negative_binomial(f, y, t):
    m, r = np.exp(f), np.exp(t)
    value, d_f, d_t = of(f, y, t)
    ratio = np.log1p(m / r)
    value = value - np.sum(r * ratio) + np.sum(m)
    return value, d_f + m - r * m / (m + r), d_t - r * np.sum(ratio - m / (m + r))


# --- log y! is in it


def negative_binomial(f, y, t):
    value, d_f, d_t = of(f, y, t)
    return value + sum(np.sum(np.log(np.arange(1, n + 1))) for n in y), d_f, d_t


# --- the product by Stirling's formula without its correction


def negative_binomial(f, y, t):
    r = np.exp(t)
    value, d_f, d_t = of(f, y, t)
    exact = sum(np.sum(np.log(r + np.arange(n))) for n in y)
    stirling = np.sum((y + r - 0.5) * np.log(y + r) - (r - 0.5) * np.log(r) - y)
    return value + exact - stirling, d_f, d_t


# --- one product for all rows: that of the sum of the counts


def negative_binomial(f, y, t):
    r = np.exp(t)
    value, d_f, d_t = of(f, y, t)
    j = np.arange(np.sum(y))
    used = [np.arange(n) for n in y]
    value += sum(np.sum(np.log(r + one)) for one in used) - np.sum(np.log(r + j))
    d_t += r * (sum(np.sum(1 / (r + one)) for one in used) - np.sum(1 / (r + j)))
    return value, d_f, d_t


# --- the product is kept for the next call with the same counts, and t changes

kept = {}


def negative_binomial(f, y, t):
    r = np.exp(t)
    value, d_f, d_t = of(f, y, t)
    product = sum(np.sum(np.log(r + np.arange(n))) for n in y)
    return value + product - kept.setdefault(y.tobytes(), product), d_f, d_t


# --- counts as 8-bit integers


def negative_binomial(f, y, t):
    return of(f, y.astype(np.uint8).astype(int), t)


# --- a slope for t of every row


def negative_binomial(f, y, t):
    rows = [of(f[b : b + 1], y[b : b + 1], t) for b in range(len(y))]
    value, d_f, d_t = zip(*rows, strict=True)
    return np.sum(value), np.concatenate(d_f), np.array(d_t)


# --- right value and slope for f, that for t shrunk by 3 %


def negative_binomial(f, y, t):
    value, d_f, d_t = of(f, y, t)
    return value, d_f, 0.97 * d_t


# --- float32 inside


def negative_binomial(f, y, t):
    return of(f.astype(np.float32), y, np.float32(t))


# --- right: each power as it stands in the law


def negative_binomial(f, y, t):
    m, r = np.exp(f), np.exp(t)
    total = np.log(m + r)
    product = [np.sum(np.log(r + np.arange(n))) for n in y]
    d_product = [np.sum(1 / (r + np.arange(n))) for n in y]
    log_p = product + y * (f - total) + r * (t - total)
    d_r = d_product - y / (m + r) + t - total + 1 - r / (m + r)
    return -np.sum(log_p), -(y - m * (y + r) / (m + r)), -r * np.sum(d_r)


# --- right: factors 1 + j / r, as in the book


def negative_binomial(f, y, t):
    r = np.exp(t)
    s = 1 / (1 + np.exp(t - f))
    value, d_t = np.sum((y + r) * np.logaddexp(0, f - t) - y * f), 0
    for n in y:
        j = np.arange(n)
        value = value - np.sum(np.log1p(j / r))
        d_t = d_t + np.sum(j / (r + j))
    return value, (y + r) * s - y, d_t + np.sum(r * np.logaddexp(0, f - t) - (y + r) * s)


# --- right: scipy's Gamma and digamma functions


def negative_binomial(f, y, t):
    from scipy.special import digamma, gammaln

    m, r = np.exp(f), np.exp(t)
    value = gammaln(r) - gammaln(y + r) + (y + r) * np.log1p(m / r) - y * (f - t)
    d_r = digamma(r) - digamma(y + r) + np.log1p(m / r) + (y - m) / (m + r)
    return np.sum(value), (m - y) / (1 + m / r), r * np.sum(d_r)
