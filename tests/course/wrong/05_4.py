import numpy as np

# --- the scale is at least a millionth


def learned_prior_scale(w, t):
    t = np.maximum(t, np.log(1e-6))
    precision = np.exp(-2 * t)
    squares = np.sum(w**2) * precision
    return len(w) * t + squares / 2, precision * w, len(w) - squares


# --- t is clipped to +-20


def learned_prior_scale(w, t):
    precision = np.exp(-2 * np.clip(t, -20, 20))
    squares = np.sum(w**2) * precision
    return len(w) * t + squares / 2, precision * w, len(w) - squares


# --- the precision is kept for each w, and t changes

kept = {}


def learned_prior_scale(w, t):
    precision = kept.setdefault(w.tobytes(), np.exp(-2 * t))
    squares = np.sum(w**2) * precision
    return len(w) * t + squares / 2, precision * w, len(w) - squares


# --- the sum of all t is kept for each t, and the number of weights changes

sums = {}


def learned_prior_scale(w, t):
    precision = np.exp(-2 * t)
    squares = np.sum(w**2) * precision
    return sums.setdefault(t, len(w) * t) + squares / 2, precision * w, len(w) - squares


# --- an array of the last call is used again

slopes = {}


def learned_prior_scale(w, t):
    precision = np.exp(-2 * t)
    squares = np.sum(w**2) * precision
    d_w = np.multiply(w, precision, out=slopes.setdefault(w.shape, np.empty(w.shape)))
    return len(w) * t + squares / 2, d_w, len(w) - squares


# --- right value, the slope for t shrunk by 3 %


def learned_prior_scale(w, t):
    precision = np.exp(-2 * t)
    squares = np.sum(w**2) * precision
    return len(w) * t + squares / 2, precision * w, 0.97 * (len(w) - squares)


# --- the slope for t is 0, as at the optimum


def learned_prior_scale(w, t):
    precision = np.exp(-2 * t)
    return len(w) * t + np.sum(w**2) * precision / 2, precision * w, 0.0


# --- t is the logarithm of the variance


def learned_prior_scale(w, t):
    precision = np.exp(-t)
    squares = np.sum(w**2) * precision
    return len(w) * t / 2 + squares / 2, precision * w, (len(w) - squares) / 2


# --- float32 inside


def learned_prior_scale(w, t):
    precision = np.exp(np.float32(-2 * t))
    squares = np.sum(w**2) * precision
    return len(w) * t + squares / 2, precision * w, len(w) - squares


# --- right: the scale itself


def learned_prior_scale(w, t):
    s = np.exp(t)
    z = w / s
    return len(w) * np.log(s) + z @ z / 2, z / s, np.sum(1 - z**2)
