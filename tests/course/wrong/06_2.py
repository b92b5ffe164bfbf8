import numpy as np

# --- the noise is at least a millionth


def learned_noise(f, y, t):
    t = np.maximum(t, np.log(1e-6))
    precision = np.exp(-2 * t)
    squares = precision * np.sum((f - y) ** 2)
    return len(y) * t + squares / 2, precision * (f - y), len(y) - squares


# --- t is clipped to +-15 in the exponential


def learned_noise(f, y, t):
    precision = np.exp(-2 * np.clip(t, -15, 15))
    squares = precision * np.sum((f - y) ** 2)
    return len(y) * t + squares / 2, precision * (f - y), len(y) - squares


# --- the sum of squares is kept for each y, and f changes

kept = {}


def learned_noise(f, y, t):
    total = kept.setdefault(y.tobytes(), np.sum((f - y) ** 2))
    squares = np.exp(-2 * t) * total
    return len(y) * t + squares / 2, np.exp(-2 * t) * (f - y), len(y) - squares


# --- an array of the last call is used again

slopes = {}


def learned_noise(f, y, t):
    error = np.subtract(f, y, out=slopes.setdefault(y.shape, np.empty(y.shape)))
    squares = np.exp(-2 * t) * np.sum(error**2)
    error *= np.exp(-2 * t)
    return len(y) * t + squares / 2, error, len(y) - squares


# --- squares multiplied out: all digits cancel for targets far from 0


def learned_noise(f, y, t):
    squares = np.exp(-2 * t) * (f @ f - 2 * f @ y + y @ y)
    return len(y) * t + squares / 2, np.exp(-2 * t) * (f - y), len(y) - squares


# --- the slope for t is 0, as at the optimum


def learned_noise(f, y, t):
    squares = np.exp(-2 * t) * np.sum((f - y) ** 2)
    return len(y) * t + squares / 2, np.exp(-2 * t) * (f - y), 0.0


# --- t is the logarithm of the variance


def learned_noise(f, y, t):
    squares = np.exp(-t) * np.sum((f - y) ** 2)
    return (len(y) * t + squares) / 2, np.exp(-t) * (f - y), (len(y) - squares) / 2


# --- right value, the slope for t shrunk by 3 %


def learned_noise(f, y, t):
    squares = np.exp(-2 * t) * np.sum((f - y) ** 2)
    return len(y) * t + squares / 2, np.exp(-2 * t) * (f - y), 0.97 * (len(y) - squares)


# --- float32 inside


def learned_noise(f, y, t):
    error = (f - y).astype(np.float32)
    squares = np.exp(-2 * t) * np.sum(error**2)
    return len(y) * t + squares / 2, np.exp(-2 * t) * error, len(y) - squares


# --- right: standardised residuals


def learned_noise(f, y, t):
    z = (y - f) * np.exp(-t)
    return np.sum(t + z**2 / 2), -z * np.exp(-t), np.sum(1 - z**2)
