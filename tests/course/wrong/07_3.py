import numpy as np

# --- sigma is kept away from 0 by a floor of 0.1


def sticking_the_landing(sigma, rho, eps, d_w, pi):
    path = d_w - pi * eps / np.maximum(sigma, 0.1)
    return path.mean(axis=0), (path * eps).mean(axis=0) / (1 + np.exp(-rho))


# --- gradients are clipped to +-50


def sticking_the_landing(sigma, rho, eps, d_w, pi):
    path = np.clip(d_w - pi * eps / sigma, -50.0, 50.0)
    return path.mean(axis=0), (path * eps).mean(axis=0) / (1 + np.exp(-rho))


# --- eps is averaged before the product for rho


def sticking_the_landing(sigma, rho, eps, d_w, pi):
    path = (d_w - pi * eps / sigma).mean(axis=0)
    return path, path * eps.mean(axis=0) / (1 + np.exp(-rho))


# --- it works in the array that it was given


def sticking_the_landing(sigma, rho, eps, d_w, pi):
    d_w -= pi * eps / sigma
    return d_w.mean(axis=0), (d_w * eps).mean(axis=0) / (1 + np.exp(-rho))


# --- the derivative of softplus is taken to be that for large rho above 5


def sticking_the_landing(sigma, rho, eps, d_w, pi):
    path = d_w - pi * eps / sigma
    sigmoid = np.where(rho > 5, 1.0, 1 / (1 + np.exp(-rho)))
    return path.mean(axis=0), (path * eps).mean(axis=0) * sigmoid
