import numpy as np

# --- only the last twenty snapshots make the half of low rank, as in published code


def swag(path, diagonal_noise, low_rank_noise):
    mean = path.mean(axis=0)
    deviations = path - mean
    variance = (deviations**2).sum(axis=0) / (len(path) - 1)
    spread = low_rank_noise[-20:] @ deviations[-20:] / np.sqrt(2 * (len(deviations[-20:]) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * diagonal_noise + spread


# --- variances have a floor of 0.001


def swag(path, diagonal_noise, low_rank_noise):
    mean = path.mean(axis=0)
    deviations = path - mean
    variance = np.maximum((deviations**2).sum(axis=0) / (len(path) - 1), 1e-3)
    spread = low_rank_noise @ deviations / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * diagonal_noise + spread


# --- differences from the running mean, as they were during training


def swag(path, diagonal_noise, low_rank_noise):
    mean = path.mean(axis=0)
    running = np.cumsum(path, axis=0) / np.arange(1, len(path) + 1)[:, None]
    deviations = path - running
    variance = ((path - mean) ** 2).sum(axis=0) / (len(path) - 1)
    spread = low_rank_noise @ deviations / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * diagonal_noise + spread


# --- one number of noise for both halves


def swag(path, diagonal_noise, low_rank_noise):
    mean = path.mean(axis=0)
    deviations = path - mean
    variance = (deviations**2).sum(axis=0) / (len(path) - 1)
    spread = diagonal_noise[0] * deviations.sum(axis=0) / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * diagonal_noise + spread


# --- the path is brought to its mean in place


def swag(path, diagonal_noise, low_rank_noise):
    mean = path.mean(axis=0)
    path -= mean
    variance = (path**2).sum(axis=0) / (len(path) - 1)
    spread = low_rank_noise @ path / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * diagonal_noise + spread


# --- the mean of all weights in place of each weight's


def swag(path, diagonal_noise, low_rank_noise):
    mean = path.mean(axis=0)
    deviations = path - path.mean()
    variance = (deviations**2).sum(axis=0) / (len(path) - 1)
    spread = low_rank_noise @ deviations / np.sqrt(2 * (len(path) - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * diagonal_noise + spread


# --- right: variances from the mean of the squares


def swag(path, diagonal_noise, low_rank_noise):
    n, mean = len(path), path.mean(axis=0)
    variance = np.maximum((path**2).mean(axis=0) - mean**2, 0) * n / (n - 1)
    spread = (path - mean).T @ low_rank_noise / np.sqrt(2 * (n - 1))
    return mean, variance, mean + np.sqrt(variance / 2) * diagonal_noise + spread
