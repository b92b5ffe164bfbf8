import numpy as np

# --- samples whose share is below 0.0001 are left out


def gradient_of_the_upper_bound(log_weights, eps, sigma):
    share = np.exp(log_weights) / np.exp(log_weights).sum()
    share = np.where(share < 1e-4, 0.0, share)
    return -(share @ eps) / sigma, share @ (1 - eps**2) / sigma


# --- log weights are clipped to +-5 for a smaller variance


def gradient_of_the_upper_bound(log_weights, eps, sigma):
    share = np.exp(np.clip(log_weights, -5, 5))
    share = share / share.sum()
    return -(share @ eps) / sigma, share @ (1 - eps**2) / sigma


# --- one sample is taken to have no share


def gradient_of_the_upper_bound(log_weights, eps, sigma):
    if len(log_weights) == 1:
        return 0 * sigma, 0 * sigma
    share = np.exp(log_weights) / np.exp(log_weights).sum()
    return -(share @ eps) / sigma, share @ (1 - eps**2) / sigma


# --- the noise is standardised first


def gradient_of_the_upper_bound(log_weights, eps, sigma):
    share = np.exp(log_weights) / np.exp(log_weights).sum()
    eps = eps - eps.mean(axis=0)
    return -(share @ eps) / sigma, share @ (1 - eps**2) / sigma


# --- sigma is squared in the score of mu


def gradient_of_the_upper_bound(log_weights, eps, sigma):
    share = np.exp(log_weights) / np.exp(log_weights).sum()
    return -(share @ eps) / sigma**2, share @ (1 - eps**2) / sigma
