import numpy as np

# --- rho is clipped to +-5 for safety


def complexity_in_closed_form(mu, rho, prior):
    rho = np.clip(rho, -5.0, 5.0)
    sigma = np.log1p(np.exp(rho))
    value = np.sum(np.log(prior / sigma) + (sigma**2 + mu**2) / (2 * prior**2) - 0.5)
    return value, mu / prior**2, (sigma / prior**2 - 1 / sigma) / (1 + np.exp(-rho))


# --- sigma has a floor of 0.001


def complexity_in_closed_form(mu, rho, prior):
    sigma = np.maximum(np.log1p(np.exp(rho)), 1e-3)
    value = np.sum(np.log(prior / sigma) + (sigma**2 + mu**2) / (2 * prior**2) - 0.5)
    return value, mu / prior**2, (sigma / prior**2 - 1 / sigma) / (1 + np.exp(-rho))


# --- slopes are squeezed, so that one weight has a number in place of an array


def complexity_in_closed_form(mu, rho, prior):
    sigma = np.log1p(np.exp(rho))
    value = np.sum(np.log(prior / sigma) + (sigma**2 + mu**2) / (2 * prior**2) - 0.5)
    d_rho = (sigma / prior**2 - 1 / sigma) / (1 + np.exp(-rho))
    return value, np.squeeze(mu / prior**2), np.squeeze(d_rho)


# --- the value is right, the slope for rho too small by 1 %


def complexity_in_closed_form(mu, rho, prior):
    sigma = np.log1p(np.exp(rho))
    value = np.sum(np.log(prior / sigma) + (sigma**2 + mu**2) / (2 * prior**2) - 0.5)
    return value, mu / prior**2, 0.99 * (sigma / prior**2 - 1 / sigma) / (1 + np.exp(-rho))


# --- float32 inside


def complexity_in_closed_form(mu, rho, prior):
    mu, rho = mu.astype(np.float32), rho.astype(np.float32)
    sigma = np.log1p(np.exp(rho))
    value = np.sum(np.log(prior / sigma) + (sigma**2 + mu**2) / (2 * prior**2) - 0.5)
    return value, mu / prior**2, (sigma / prior**2 - 1 / sigma) / (1 + np.exp(-rho))


# --- right: a derivative of softplus that cancels a little for small rho


def complexity_in_closed_form(mu, rho, prior):
    sigma = np.logaddexp(0, rho)
    value = np.sum((sigma / prior) ** 2 + (mu / prior) ** 2 - 1 - 2 * np.log(sigma / prior)) / 2
    return value, mu / prior / prior, (1 - np.exp(-sigma)) * (sigma / prior**2 - 1 / sigma)
