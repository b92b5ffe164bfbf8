import numpy as np

# --- z is at least -20


def counts(z, y):
    z = np.maximum(z, -20.0)
    return np.sum(np.exp(z) - y * z), np.exp(z) - y


# --- z is at most 50


def counts(z, y):
    z = np.minimum(z, 50.0)
    return np.sum(np.exp(z) - y * z), np.exp(z) - y


# --- counts as 8-bit integers


def counts(z, y):
    y = y.astype(np.uint8)
    return np.sum(np.exp(z) - y * z), np.exp(z) - y


# --- counts above 100 are taken for wrong


def counts(z, y):
    y = np.minimum(y, 100)
    return np.sum(np.exp(z) - y * z), np.exp(z) - y


# --- rates are at least 1e-8


def counts(z, y):
    rate = np.maximum(np.exp(z), 1e-8)
    return np.sum(rate - y * np.log(rate)), rate - y


# --- the sum with y is kept for each y, and z changes

kept = {}


def counts(z, y):
    return np.sum(np.exp(z)) - kept.setdefault(y.tobytes(), y @ z), np.exp(z) - y


# --- an array of the last call is used again

slopes = {}


def counts(z, y):
    rate = np.exp(z, out=slopes.setdefault(z.shape, np.empty(z.shape)))
    value = np.sum(rate - y * z)
    rate -= y
    return value, rate


# --- log y! by Stirling's formula is subtracted, which is 0 for counts 0 and 1


def counts(z, y):
    large = np.maximum(y, 2)
    factorial = np.where(y > 1, large * np.log(large) - large, 0.0)
    return np.sum(np.exp(z) - y * z + factorial), np.exp(z) - y


# --- rows without a count are left out


def counts(z, y):
    seen = y > 0
    return np.sum(seen * (np.exp(z) - y * z)), seen * (np.exp(z) - y)


# --- right value, slope shrunk by 3 %


def counts(z, y):
    return np.sum(np.exp(z) - y * z), 0.97 * (np.exp(z) - y)


# --- the slope as integers


def counts(z, y):
    slope = -y
    slope += np.exp(z).astype(y.dtype)
    return np.sum(np.exp(z) - y * z), slope


# --- float32 inside


def counts(z, y):
    rate = np.exp(z.astype(np.float32))
    return np.sum(rate - y * z), rate - y


# --- right: y times the logarithm of the rate where there is one


def counts(z, y):
    rate = np.exp(z)
    seen = np.where(y > 0, y * np.log(rate), 0.0)
    return rate.sum() - seen.sum(), rate - y


# --- right: scipy's Poisson law without its constant


def counts(z, y):
    from scipy.special import gammaln
    from scipy.stats import poisson

    rate = np.exp(z)
    return -np.sum(poisson.logpmf(y, rate) + gammaln(y + 1)), rate - y
