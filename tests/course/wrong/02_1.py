import numpy as np

# --- sigma has a floor of 1e-6


def softplus(rho):
    return np.maximum(np.log1p(np.exp(rho)), 1e-6)


# --- rho is clipped to +-100


def softplus(rho):
    return np.log1p(np.exp(np.clip(rho, -100, 100)))


# --- rho is clipped to -15 from below


def softplus(rho):
    return np.log1p(np.exp(np.maximum(rho, -15)))


# --- for rho below -18 sigma is 0


def softplus(rho):
    return np.where(rho < -18, 0.0, np.log1p(np.exp(rho)))


# --- above 10 sigma is rho


def softplus(rho):
    return np.where(rho > 10, rho, np.log1p(np.exp(rho)))


# --- sigma is written where that of the last call was

memory = {}


def softplus(rho):
    return np.log1p(np.exp(rho), out=memory.setdefault(rho.shape, np.empty(rho.shape)))


# --- sigma is kept for the next call with the same first rho

known = {}


def softplus(rho):
    if rho[0] not in known or len(known[rho[0]]) != len(rho):
        known[rho[0]] = np.log1p(np.exp(rho))
    return known[rho[0]].copy()


# --- one rho gives a number in place of an array


def softplus(rho):
    return np.squeeze(np.log1p(np.exp(rho)))


# --- sigma is too large by 1e-6


def softplus(rho):
    return np.log1p(np.exp(rho)) + 1e-6


# --- float32 inside


def softplus(rho):
    return np.log1p(np.exp(rho.astype(np.float32))).astype(float)


# --- right: the logarithm of a sum of exponentials


def softplus(rho):
    return np.logaddexp(0, rho)


# --- right: a line and the rest


def softplus(rho):
    return np.maximum(rho, 0) + np.log(1 + np.exp(-np.abs(rho)))


# --- right: above 37 the rest is below the last digit


def softplus(rho):
    return np.where(rho > 37, rho, np.log1p(np.exp(np.minimum(rho, 37))))


# --- right: an integral of the sigmoid, known for its inverse


def softplus(rho):
    return rho - np.log(1 / (1 + np.exp(-rho)))
