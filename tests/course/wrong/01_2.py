import numpy as np

# --- results are stored in arrays like x, whose numbers may be whole


def posterior_predictive(mean, variance, x, noise):
    prediction, total = np.empty_like(x), np.empty_like(x)
    prediction[:] = mean * x
    total[:] = x**2 * variance + noise**2
    return prediction, total


# --- the variance has a floor of 1e-10


def posterior_predictive(mean, variance, x, noise):
    return mean * x, np.maximum(x**2 * variance + noise**2, 1e-10)


# --- forces beyond 100 are taken for 100


def posterior_predictive(mean, variance, x, noise):
    x = np.clip(x, -100, 100)
    return mean * x, x**2 * variance + noise**2


# --- both results are written where those of the last call were

memory = {}


def posterior_predictive(mean, variance, x, noise):
    prediction, total = memory.setdefault(x.shape, (np.empty(len(x)), np.empty(len(x))))
    prediction[:] = mean * x
    total[:] = x**2 * variance + noise**2
    return prediction, total


# --- the uncertain part is kept for the next call with the same x

known = {}


def posterior_predictive(mean, variance, x, noise):
    if x.tobytes() not in known:
        known[x.tobytes()] = x**2 * variance
    return mean * x, known[x.tobytes()] + noise**2


# --- a noise so small that it is probably forgotten counts as 0.001


def posterior_predictive(mean, variance, x, noise):
    noise = noise if noise > 1e-6 else 0.001
    return mean * x, x**2 * variance + noise**2


# --- one variance for all new targets, right where all forces are equal


def posterior_predictive(mean, variance, x, noise):
    return mean * x, np.full_like(x, np.mean(x**2) * variance + noise**2)


# --- float32 inside


def posterior_predictive(mean, variance, x, noise):
    x = x.astype(np.float32)
    return mean * x, x**2 * variance + noise**2


# --- right: the diagonal of the covariance of all new targets


def posterior_predictive(mean, variance, x, noise):
    covariance = variance * np.outer(x, x) + noise**2 * np.eye(len(x))
    return mean * x, np.diag(covariance)


# --- right: a row at a time


def posterior_predictive(mean, variance, x, noise):
    rows = [(mean * force, force * variance * force + noise * noise) for force in x]
    return np.array([one for one, _ in rows]), np.array([one for _, one in rows])
