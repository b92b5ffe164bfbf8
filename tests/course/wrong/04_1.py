import numpy as np

# --- the mean of the squares less the square of the mean: all digits cancel for house prices


def mean_and_variances(f, noise):
    n = len(f)
    mean = f.mean(axis=0)
    epistemic = ((f**2).mean(axis=0) - mean**2) * n / (n - 1)
    return mean, epistemic, epistemic + noise**2


# --- divided by S from thirty functions on, where it does not matter any more


def mean_and_variances(f, noise):
    n = len(f)
    mean = f.mean(axis=0)
    epistemic = ((f - mean) ** 2).sum(axis=0) / (n - 1 if n < 30 else n)
    return mean, epistemic, epistemic + noise**2


# --- no variance below a millionth, so that one can divide by it


def mean_and_variances(f, noise):
    epistemic = np.maximum(f.var(axis=0, ddof=1), 1e-6)
    return f.mean(axis=0), epistemic, epistemic + noise**2


# --- arrays of the last call are used again

arrays = {}


def mean_and_variances(f, noise):
    mean, epistemic, total = arrays.setdefault(f.shape, np.empty((3, f.shape[1])))
    f.mean(axis=0, out=mean)
    f.var(axis=0, ddof=1, out=epistemic)
    np.add(epistemic, noise**2, out=total)
    return mean, epistemic, total


# --- the diagonal of the covariance, which is no matrix for one row


def mean_and_variances(f, noise):
    epistemic = np.diag(np.cov(f, rowvar=False))
    return f.mean(axis=0), epistemic, epistemic + noise**2


# --- around the mean of all rows


def mean_and_variances(f, noise):
    epistemic = ((f - f.mean()) ** 2).sum(axis=0) / (len(f) - 1)
    return f.mean(axis=0), epistemic, epistemic + noise**2


# --- float32 inside


def mean_and_variances(f, noise):
    f = f.astype(np.float32)
    epistemic = f.var(axis=0, ddof=1)
    return f.mean(axis=0), epistemic, epistemic + noise**2


# --- f is centered in place


def mean_and_variances(f, noise):
    mean = f.mean(axis=0)
    f -= mean
    epistemic = np.sum(f**2, axis=0) / (len(f) - 1)
    return mean, epistemic, epistemic + noise**2


# --- right: by Welford's recursion


def mean_and_variances(f, noise):
    mean, squares = np.zeros(f.shape[1]), np.zeros(f.shape[1])
    for n, one in enumerate(f, 1):
        off = one - mean
        mean = mean + off / n
        squares = squares + off * (one - mean)
    epistemic = squares / (len(f) - 1)
    return mean, epistemic, epistemic + noise**2


# --- right: half the mean square of all differences of two


def mean_and_variances(f, noise):
    n = len(f)
    epistemic = ((f[:, None] - f[None]) ** 2).sum(axis=(0, 1)) / (2 * n * (n - 1))
    return f.mean(axis=0), epistemic, epistemic + noise**2
