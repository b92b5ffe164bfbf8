import numpy as np

# --- the logarithm of a product of deviations, which underflows for many weights


def log_posterior_of_the_noise(sigma, eps):
    constant = np.log(np.prod(sigma)) + len(sigma) * np.log(2 * np.pi) / 2
    return -np.sum(eps**2, axis=1) / 2 - constant


# --- the logarithm of a product of densities, which underflows


def log_posterior_of_the_noise(sigma, eps):
    density = np.exp(-(eps**2) / 2) / (np.sqrt(2 * np.pi) * sigma)
    return np.log(np.prod(density, axis=1))


# --- the determinant of the covariance, which underflows for many weights


def log_posterior_of_the_noise(sigma, eps):
    log_det = np.log(np.linalg.det(np.diag(2 * np.pi * sigma**2)))
    return -np.sum(eps**2, axis=1) / 2 - log_det / 2


# --- sigma has a floor of 1e-8 under the logarithm


def log_posterior_of_the_noise(sigma, eps):
    log_sigma = np.log(np.maximum(sigma, 1e-8))
    return np.sum(-log_sigma - eps**2 / 2 - np.log(2 * np.pi) / 2, axis=1)


# --- sigma is a little larger under the logarithm


def log_posterior_of_the_noise(sigma, eps):
    return np.sum(-np.log(sigma + 1e-12) - eps**2 / 2 - np.log(2 * np.pi) / 2, axis=1)


# --- a log density below -1e6 counts as -1e6


def log_posterior_of_the_noise(sigma, eps):
    log_q = np.sum(-np.log(sigma) - eps**2 / 2 - np.log(2 * np.pi) / 2, axis=1)
    return np.maximum(log_q, -1e6)


# --- a noise beyond +-100 counts as 100


def log_posterior_of_the_noise(sigma, eps):
    square = np.minimum(eps**2, 100**2)
    return np.sum(-np.log(sigma) - square / 2 - np.log(2 * np.pi) / 2, axis=1)


# --- the sum of log sigma is kept for the next call with the same noise

known = {}


def log_posterior_of_the_noise(sigma, eps):
    constant = np.sum(np.log(sigma) + np.log(2 * np.pi) / 2)
    return -np.sum(eps**2, axis=1) / 2 - known.setdefault(eps.tobytes(), constant)


# --- the wrong axis where there are as many samples as weights


def log_posterior_of_the_noise(sigma, eps):
    axis = 1 if eps.shape[0] != eps.shape[1] else 0
    return np.sum(-np.log(sigma) - eps**2 / 2 - np.log(2 * np.pi) / 2, axis=axis)


# --- two pi with six digits


def log_posterior_of_the_noise(sigma, eps):
    return np.sum(-np.log(sigma) - eps**2 / 2 - 0.918939, axis=1)


# --- float32 inside


def log_posterior_of_the_noise(sigma, eps):
    sigma, eps = sigma.astype(np.float32), eps.astype(np.float32)
    return np.sum(-np.log(sigma) - eps**2 / 2 - np.log(2 * np.pi) / 2, axis=1)


# --- right: through the weights, at a mean of 0


def log_posterior_of_the_noise(sigma, eps):
    w = sigma * eps
    return -np.sum((w / sigma) ** 2 + np.log(2 * np.pi * sigma**2), axis=1) / 2


# --- right: a product of matrices for the squares


def log_posterior_of_the_noise(sigma, eps):
    constant = np.log(sigma).sum() + len(sigma) * 0.5 * np.log(2 * np.pi)
    return -0.5 * np.einsum("sp,sp->s", eps, eps) - constant
