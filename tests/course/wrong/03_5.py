import numpy as np

# --- precisions are clipped to 1e-10 and 1e10


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = r * sigma * d_sigma
    s = np.clip((1 + (1 + x) ** 2) / (2 * sigma**2), 1e-10, 1e10)
    return mu - eta * d_mu / s, s**-0.5


# --- sigma has a floor of 1e-6


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    sigma = np.maximum(sigma, 1e-6)
    x = r * sigma * d_sigma
    s = (1 + (1 + x) ** 2) / (2 * sigma**2)
    return mu - eta * d_mu / s, s**-0.5


# --- x is clipped to +-1e8


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = np.clip(r * sigma * d_sigma, -1e8, 1e8)
    s = (1 + (1 + x) ** 2) / (2 * sigma**2)
    return mu - eta * d_mu / s, s**-0.5


# --- gradients for mu are clipped to +-100


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = r * sigma * d_sigma
    s = (1 + (1 + x) ** 2) / (2 * sigma**2)
    return mu - eta * np.clip(d_mu, -100, 100) / s, s**-0.5


# --- first order in r, which is right for small steps


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = r * sigma * d_sigma
    s = (1 + x) / sigma**2
    s = np.where(np.abs(x) < 0.01, s, (1 + (1 + x) ** 2) / (2 * sigma**2))
    return mu - eta * d_mu / s, s**-0.5


# --- first order in r for a very small x


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = r * sigma * d_sigma
    s = np.where(np.abs(x) < 1e-3, 1 + x, (1 + (1 + x) ** 2) / 2) / sigma**2
    return mu - eta * d_mu / s, s**-0.5


# --- a curvature by a ratio, which is nan where d_sigma is 0


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = r * sigma * d_sigma
    s = (1 + x * (1 + x / 2) * (d_sigma / d_sigma)) / sigma**2
    return mu - eta * d_mu / s, s**-0.5


# --- mu moves with the old precision in the first call

calls = [0]


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    calls[0] += 1
    x = r * sigma * d_sigma
    s = (1 + (1 + x) ** 2) / (2 * sigma**2)
    scale = sigma**2 if calls[0] == 1 else 1 / s
    return mu - eta * d_mu * scale, s**-0.5


# --- results are written where those of the last call were

memory = {}


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = r * sigma * d_sigma
    s = (1 + (1 + x) ** 2) / (2 * sigma**2)
    new_mu, new_sigma = memory.setdefault(mu.shape, np.empty((2, len(mu))))
    new_mu[:], new_sigma[:] = mu - eta * d_mu / s, s**-0.5
    return new_mu, new_sigma


# --- the new precision is kept for the next call with the same sigma and gradient

known = {}


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = r * sigma * d_sigma
    key = sigma.tobytes() + d_sigma.tobytes()
    s = known.setdefault(key, (1 + (1 + x) ** 2) / (2 * sigma**2))
    return mu - eta * d_mu / s, s**-0.5


# --- the old sigma is moved


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = r * sigma * d_sigma
    sigma *= np.sqrt(2 / (1 + (1 + x) ** 2))
    return mu - eta * d_mu * sigma**2, sigma


# --- one weight gives numbers in place of arrays


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = r * sigma * d_sigma
    s = (1 + (1 + x) ** 2) / (2 * sigma**2)
    return np.squeeze(mu - eta * d_mu / s), np.squeeze(s**-0.5)


# --- an exponential step, which is positive as well


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    s = np.exp(r * sigma * d_sigma) / sigma**2
    return mu - eta * d_mu / s, s**-0.5


# --- float32 inside


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = np.float32(r) * sigma.astype(np.float32) * d_sigma.astype(np.float32)
    s = (1 + (1 + x) ** 2) / (2 * sigma**2)
    return mu - eta * d_mu / s, s**-0.5


# --- right: first order in r where the rest is below the last digits


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    x = r * sigma * d_sigma
    s = np.where(np.abs(x) < 1e-7, 1 + x, (1 + (1 + x) ** 2) / 2) / sigma**2
    return mu - eta * d_mu / s, s**-0.5


# --- right: variances in place of precisions


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    y = 1 + r * sigma * d_sigma
    variance = 2 * sigma**2 / (1 + y**2)
    return mu - eta * variance * d_mu, np.sqrt(variance)


# --- right: the curvature itself


def natural_step(mu, sigma, d_mu, d_sigma, eta, r):
    s = 1 / sigma**2
    h = s + s * sigma * d_sigma
    s_new = s + r * (h - s) + r**2 * (h - s) ** 2 / (2 * s)
    return mu - eta * d_mu / s_new, 1 / np.sqrt(s_new)
