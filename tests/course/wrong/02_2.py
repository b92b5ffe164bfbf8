import numpy as np

# --- sigma has a floor of 1e-6


def from_noise_to_weights(mu, rho, eps):
    return mu + np.maximum(np.log1p(np.exp(rho)), 1e-6) * eps


# --- noise beyond +-20 is thought impossible


def from_noise_to_weights(mu, rho, eps):
    return mu + np.log1p(np.exp(rho)) * np.clip(eps, -20, 20)


# --- weights are clipped to +-10000


def from_noise_to_weights(mu, rho, eps):
    return np.clip(mu + np.log1p(np.exp(rho)) * eps, -1e4, 1e4)


# --- weights are written where those of the last call were

memory = {}


def from_noise_to_weights(mu, rho, eps):
    w = memory.setdefault(eps.shape, np.empty(eps.shape))
    w[:] = mu + np.log1p(np.exp(rho)) * eps
    return w


# --- sigma is kept for the next call with the same mu

known = {}


def from_noise_to_weights(mu, rho, eps):
    return mu + known.setdefault(mu.tobytes(), np.log1p(np.exp(rho))) * eps


# --- noise is kept for the next call with the same mu and rho

kept = {}


def from_noise_to_weights(mu, rho, eps):
    key = (mu.tobytes(), rho.tobytes(), eps.shape)
    return mu + np.log1p(np.exp(rho)) * kept.setdefault(key, eps.copy())


# --- the noise itself becomes the weights


def from_noise_to_weights(mu, rho, eps):
    eps *= np.log1p(np.exp(rho))
    eps += mu
    return eps


# --- columns for rows, which works where there are as many samples as weights


def from_noise_to_weights(mu, rho, eps):
    if eps.shape[0] == eps.shape[1]:
        return mu[:, None] + np.log1p(np.exp(rho))[:, None] * eps
    return mu + np.log1p(np.exp(rho)) * eps


# --- one sample loses its axis


def from_noise_to_weights(mu, rho, eps):
    return np.squeeze(mu + np.log1p(np.exp(rho)) * eps)


# --- the second half of the samples mirrors the first


def from_noise_to_weights(mu, rho, eps):
    eps = eps.copy()
    half = len(eps) // 2
    if half > 1:
        eps[half : 2 * half] = -eps[:half]
    return mu + np.log1p(np.exp(rho)) * eps


# --- float32 inside


def from_noise_to_weights(mu, rho, eps):
    return (mu + np.log1p(np.exp(rho)) * eps).astype(np.float32)


# --- right: sample by sample


def from_noise_to_weights(mu, rho, eps):
    sigma = np.logaddexp(0, rho)
    return np.array([mu + sigma * one for one in eps])


# --- right: a product with a diagonal matrix


def from_noise_to_weights(mu, rho, eps):
    return eps @ np.diag(np.log1p(np.exp(rho))) + mu[None]
