import numpy as np

# --- the diagonal has a floor of 0.001 in the entropy


def gradient_for_the_factor(C, rho, d_w, eps):
    outer = d_w.T @ eps / len(eps)
    diagonal = np.maximum(np.log1p(np.exp(rho)), 1e-3)
    return np.tril(outer, -1), (np.diag(outer) - 1 / diagonal) / (1 + np.exp(-rho))


# --- a covariance, with the means taken off


def gradient_for_the_factor(C, rho, d_w, eps):
    outer = (d_w - d_w.mean(axis=0)).T @ (eps - eps.mean(axis=0)) / len(eps)
    diagonal = np.log1p(np.exp(rho))
    return np.tril(outer, -1), (np.diag(outer) - 1 / diagonal) / (1 + np.exp(-rho))


# --- slopes only where C has numbers other than 0


def gradient_for_the_factor(C, rho, d_w, eps):
    outer = d_w.T @ eps / len(eps)
    diagonal = np.log1p(np.exp(rho))
    below = np.where(np.tril(C, -1) != 0, outer, 0.0)
    return below, (np.diag(outer) - 1 / diagonal) / (1 + np.exp(-rho))


# --- the slopes of the entropy are averaged over the weights


def gradient_for_the_factor(C, rho, d_w, eps):
    outer = d_w.T @ eps / len(eps)
    diagonal = np.log1p(np.exp(rho))
    d_rho = (np.diag(outer) - 1 / diagonal / len(rho)) / (1 + np.exp(-rho))
    return np.tril(outer, -1), d_rho


# --- rho is clipped to +-5


def gradient_for_the_factor(C, rho, d_w, eps):
    rho = np.clip(rho, -5, 5)
    outer = d_w.T @ eps / len(eps)
    diagonal = np.log1p(np.exp(rho))
    return np.tril(outer, -1), (np.diag(outer) - 1 / diagonal) / (1 + np.exp(-rho))
