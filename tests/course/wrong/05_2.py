import numpy as np

# --- the peak is rounded off within 1e-4


def laplace_prior(w, b):
    size = np.where(abs(w) < 1e-4, w**2 / 2e-4 + 5e-5, abs(w))
    d_w = np.where(abs(w) < 1e-4, w / 1e-4, np.sign(w))
    return np.sum(size) / b + len(w) * np.log(2 * b), d_w / b


# --- weights below a millionth count as 0


def laplace_prior(w, b):
    d_w = np.where(abs(w) < 1e-6, 0.0, np.sign(w)) / b
    return np.sum(abs(w)) / b + len(w) * np.log(2 * b), d_w


# --- the constant is kept for each b, and the number of weights changes

constants = {}


def laplace_prior(w, b):
    constant = constants.setdefault(b, len(w) * np.log(2 * b))
    return np.sum(abs(w)) / b + constant, np.sign(w) / b


# --- an array of the last call is used again

slopes = {}


def laplace_prior(w, b):
    d_w = slopes.setdefault(w.shape, np.empty(w.shape))
    np.sign(w, out=d_w)
    d_w /= b
    return np.sum(abs(w)) / b + len(w) * np.log(2 * b), d_w


# --- b is at least a millionth


def laplace_prior(w, b):
    b = max(b, 1e-6)
    return np.sum(abs(w)) / b + len(w) * np.log(2 * b), np.sign(w) / b


# --- b is a standard deviation, 2^0.5 times the b of the density


def laplace_prior(w, b):
    b = b / 2**0.5
    return np.sum(abs(w)) / b + len(w) * np.log(2 * b), np.sign(w) / b


# --- one sign, of the sum


def laplace_prior(w, b):
    return np.sum(abs(w)) / b + len(w) * np.log(2 * b), np.sign(np.sum(w)) / b + 0 * w


# --- one constant, which is that of one weight


def laplace_prior(w, b):
    return np.sum(abs(w)) / b + np.log(2 * b), np.sign(w) / b


# --- the sign as an 8-bit integer, divided after it is rounded


def laplace_prior(w, b):
    return np.sum(abs(w)) / b + len(w) * np.log(2 * b), (np.sign(w) / b).astype(np.int8)


# --- right: w over its size


def laplace_prior(w, b):
    size = np.sqrt(w**2)
    return np.sum(size / b + np.log(b)) + len(w) * np.log(2), w / (size * b)


# --- right: the larger of w and -w


def laplace_prior(w, b):
    size = np.maximum(w, -w)
    return size.sum() / b + np.log(2 * b) * w.size, (1.0 * (w > 0) - 1.0 * (w < 0)) / b
