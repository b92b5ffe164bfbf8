import numpy as np

# --- p is kept a millionth away from 1


def what_dropout_believes(a, v, b, p, noise):
    p = min(p, 1 - 1e-6)
    epistemic = p / (1 - p) * np.sum((a * v) ** 2)
    return b + a @ v, epistemic, epistemic + noise**2


# --- p is at least a millionth


def what_dropout_believes(a, v, b, p, noise):
    p = max(p, 1e-6)
    epistemic = p / (1 - p) * np.sum((a * v) ** 2)
    return b + a @ v, epistemic, epistemic + noise**2


# --- the variance is kept for each p, and the inputs change

kept = {}


def what_dropout_believes(a, v, b, p, noise):
    epistemic = kept.setdefault(p, p / (1 - p) * np.sum((a * v) ** 2))
    return b + a @ v, epistemic, epistemic + noise**2


# --- the mean square less the square of the mean: all digits cancel beside a large bias


def what_dropout_believes(a, v, b, p, noise):
    terms = a * v
    mean = b + np.sum(terms)
    square = mean**2 - np.sum(terms**2) + np.sum(terms**2) / (1 - p)  # of different masks, and one
    epistemic = square - mean**2
    return mean, epistemic, epistemic + noise**2


# --- the bias is left out like an input


def what_dropout_believes(a, v, b, p, noise):
    epistemic = p / (1 - p) * (np.sum((a * v) ** 2) + b**2)
    return b + a @ v, epistemic, epistemic + noise**2


# --- the noise is divided by 1 - p, too


def what_dropout_believes(a, v, b, p, noise):
    epistemic = p / (1 - p) * np.sum((a * v) ** 2)
    return b + a @ v, epistemic, epistemic + (noise / (1 - p)) ** 2


# --- float32 inside


def what_dropout_believes(a, v, b, p, noise):
    terms = (a * v).astype(np.float32)
    epistemic = p / (1 - p) * np.sum(terms**2)
    return b + np.sum(terms), epistemic, epistemic + noise**2


# --- right: the variance of each mask


def what_dropout_believes(a, v, b, p, noise):
    scaled = a * v / (1 - p)
    keep = 1 - p
    epistemic = keep * (1 - keep) * scaled @ scaled
    return b + keep * scaled.sum(), epistemic, epistemic + noise * noise
