import numpy as np

# --- the factor is remade from the covariance


def weights_that_hang_together(mu, C, eps):
    lower = np.tril(C)
    return mu + eps @ np.linalg.cholesky(lower @ lower.T + 1e-12 * np.eye(len(mu))).T


# --- jitter on the diagonal


def weights_that_hang_together(mu, C, eps):
    return mu + eps @ (np.tril(C) + 1e-6 * np.eye(len(mu))).T


# --- one vector of noise for all samples


def weights_that_hang_together(mu, C, eps):
    return mu + np.ones((len(eps), 1)) * (np.tril(C) @ eps[0])


# --- the diagonal is made positive


def weights_that_hang_together(mu, C, eps):
    lower = np.tril(C, -1) + np.diag(np.abs(np.diag(C)))
    return mu + eps @ lower.T


# --- squeezed, so that one sample is a vector


def weights_that_hang_together(mu, C, eps):
    return np.squeeze(mu + eps @ np.tril(C).T)


# --- a band of five numbers below the diagonal


def weights_that_hang_together(mu, C, eps):
    return mu + eps @ (np.tril(C) - np.tril(C, -6)).T
