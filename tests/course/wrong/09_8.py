import numpy as np

# --- only the last twenty snapshots make the half of low rank, as in published code


def swag(path, own, shared):
    mean = path.mean(axis=0)
    off = path - mean
    variance = (off**2).sum(axis=0) / (len(path) - 1)
    spread = shared[-20:] @ off[-20:] / np.sqrt(2 * (len(off[-20:]) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * own + spread


# --- variances have a floor of 0.001


def swag(path, own, shared):
    mean = path.mean(axis=0)
    off = path - mean
    variance = np.maximum((off**2).sum(axis=0) / (len(path) - 1), 1e-3)
    spread = shared @ off / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * own + spread


# --- differences from the running mean, as they were during training


def swag(path, own, shared):
    mean = path.mean(axis=0)
    running = np.cumsum(path, axis=0) / np.arange(1, len(path) + 1)[:, None]
    off = path - running
    variance = ((path - mean) ** 2).sum(axis=0) / (len(path) - 1)
    spread = shared @ off / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * own + spread


# --- one number of noise for both halves


def swag(path, own, shared):
    mean = path.mean(axis=0)
    off = path - mean
    variance = (off**2).sum(axis=0) / (len(path) - 1)
    spread = own[0] * off.sum(axis=0) / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * own + spread


# --- the path is brought to its mean in place


def swag(path, own, shared):
    mean = path.mean(axis=0)
    path -= mean
    variance = (path**2).sum(axis=0) / (len(path) - 1)
    spread = shared @ path / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * own + spread


# --- the mean of all weights in place of each weight's


def swag(path, own, shared):
    mean = path.mean(axis=0)
    off = path - path.mean()
    variance = (off**2).sum(axis=0) / (len(path) - 1)
    spread = shared @ off / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * own + spread


# --- right: variances from the mean of the squares


def swag(path, own, shared):
    n, mean = len(path), path.mean(axis=0)
    variance = np.maximum((path**2).mean(axis=0) - mean**2, 0) * n / (n - 1)
    spread = (path - mean).T @ shared / np.sqrt(2 * (n - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * own + spread
