import numpy as np

# --- weights are clipped to e^+-20 before they are averaged


def importance_weighted_bound(log_weights):
    return log_weights.mean(), np.log(np.mean(np.exp(np.clip(log_weights, -20, 20))))


# --- the logarithm's argument has a floor of 1e-10


def importance_weighted_bound(log_weights):
    return log_weights.mean(), np.log(np.maximum(np.mean(np.exp(log_weights)), 1e-10))


# --- the median in place of the mean


def importance_weighted_bound(log_weights):
    return np.median(log_weights), np.log(np.mean(np.exp(log_weights)))


# --- the mean of the logarithms and half of their variance, the second order of the bound


def importance_weighted_bound(log_weights):
    elbo = log_weights.mean()
    return elbo, elbo + log_weights.var() / 2


# --- the largest weight is taken out, and not put back


def importance_weighted_bound(log_weights):
    return log_weights.mean(), np.log(np.mean(np.exp(log_weights - log_weights.max())))
