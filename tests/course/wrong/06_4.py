import numpy as np

# --- z is at least -15


def two_classes(z, y):
    z = np.maximum(z, -15.0)
    return np.sum(np.log1p(np.exp(z)) - y * z), 1 / (1 + np.exp(-z)) - y


# --- what a label 1 costs is at most log(1e7)


def two_classes(z, y):
    s = 1 / (1 + np.exp(-z))
    value = np.where(y == 1, -np.log(np.maximum(s, 1e-7)), np.log1p(np.exp(z)))
    return np.sum(value), s - y


# --- probabilities are kept 1e-15 away from 0 and 1


def two_classes(z, y):
    s = np.clip(1 / (1 + np.exp(-z)), 1e-15, 1 - 1e-15)
    return -np.sum(y * np.log(s) + (1 - y) * np.log(1 - s)), s - y


# --- z itself above 10


def two_classes(z, y):
    softplus = np.where(z > 10, z, np.log1p(np.exp(z)))
    return np.sum(softplus - y * z), 1 / (1 + np.exp(-z)) - y


# --- the sum over rows is kept for each y, and z changes

kept = {}


def two_classes(z, y):
    label = kept.setdefault(y.tobytes(), y @ z)
    return np.sum(np.log1p(np.exp(z))) - label, 1 / (1 + np.exp(-z)) - y


# --- an array of the last call is used again

slopes = {}


def two_classes(z, y):
    s = np.exp(-z, out=slopes.setdefault(z.shape, np.empty(z.shape)))
    s += 1
    np.divide(1, s, out=s)
    s -= y
    return np.sum(np.log1p(np.exp(z)) - y * z), s


# --- balanced weights of the classes


def two_classes(z, y):
    share = y.mean()
    weight = np.where(y == 1, 1 / max(share, 0.25), 1 / max(1 - share, 0.25)) / 2
    s = 1 / (1 + np.exp(-z))
    return np.sum(weight * (np.log1p(np.exp(z)) - y * z)), weight * (s - y)


# --- labels -1 and 1


def two_classes(z, y):
    return np.sum(np.log1p(np.exp(-y * z))), -y / (1 + np.exp(y * z))


# --- right value, slope shrunk by 3 %


def two_classes(z, y):
    return np.sum(np.log1p(np.exp(z)) - y * z), 0.97 * (1 / (1 + np.exp(-z)) - y)


# --- float32 inside


def two_classes(z, y):
    s = 1 / (1 + np.exp(-z.astype(np.float32)))
    return np.sum(np.log1p(np.exp(z)) - y * z), s - y


# --- right: the larger of z and 0, and labels chosen


def two_classes(z, y):
    signed = np.where(y == 1, -z, z)
    value = np.maximum(signed, 0) + np.log1p(np.exp(-abs(signed)))
    return value.sum(), 1 / (1 + np.exp(-z)) - y


# --- right: a class of logits 0 and z


def two_classes(z, y):
    return np.sum(np.logaddexp(0, z)) - z @ y, (1 + np.tanh(z / 2)) / 2 - y


# --- right: logarithms of both probabilities, each from its own exponential


def two_classes(z, y):
    yes, no = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(z))
    return -np.sum(y * np.log(yes) + (1 - y) * np.log(no)), (1 - y) * yes - y * no
