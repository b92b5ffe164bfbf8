import numpy as np

# --- the ratio of deviations is clipped to 1e-10 and 1e10


def kl_of_two_normals(mean, sd, prior_mean, prior):
    ratio = np.clip(prior / sd, 1e-10, 1e10)
    return np.log(ratio) + (sd**2 + (mean - prior_mean) ** 2) / (2 * prior**2) - 0.5


# --- deviations have a floor of 1e-6


def kl_of_two_normals(mean, sd, prior_mean, prior):
    sd, prior = max(sd, 1e-6), max(prior, 1e-6)
    shift = (mean - prior_mean) ** 2
    return np.log(prior / sd) + (sd**2 + shift) / (2 * prior**2) - 0.5


# --- means further apart than 100 count as 100


def kl_of_two_normals(mean, sd, prior_mean, prior):
    shift = min(abs(mean - prior_mean), 100.0)
    return np.log(prior / sd) + (sd**2 + shift**2) / (2 * prior**2) - 0.5


# --- KL is at most 1e12


def kl_of_two_normals(mean, sd, prior_mean, prior):
    shift = (mean - prior_mean) ** 2
    kl = np.log(prior / sd) + (sd**2 + shift) / (2 * prior**2) - 0.5
    return min(kl, 1e12)


# --- equal means are thought to be equal densities


def kl_of_two_normals(mean, sd, prior_mean, prior):
    if mean == prior_mean:
        return 0.0
    shift = (mean - prior_mean) ** 2
    return np.log(prior / sd) + (sd**2 + shift) / (2 * prior**2) - 0.5


# --- the prior has the mean 0, as it usually has


def kl_of_two_normals(mean, sd, prior_mean, prior):
    return np.log(prior / sd) + (sd**2 + mean**2) / (2 * prior**2) - 0.5


# --- what is known of two deviations is kept for their next call

known = {}


def kl_of_two_normals(mean, sd, prior_mean, prior):
    shift = (mean - prior_mean) ** 2
    spread = np.log(prior / sd) + (sd**2 + shift) / (2 * prior**2)
    return known.setdefault((sd, prior), spread) - 0.5


# --- the posterior's deviation alone decides what is kept

by_deviation = {}


def kl_of_two_normals(mean, sd, prior_mean, prior):
    spread = by_deviation.setdefault(sd, np.log(prior / sd) + sd**2 / (2 * prior**2))
    return spread + (mean - prior_mean) ** 2 / (2 * prior**2) - 0.5


# --- a mean of 1000 draws


def kl_of_two_normals(mean, sd, prior_mean, prior):
    w = mean + sd * np.random.default_rng(0).standard_normal(1000)
    log_q = -np.log(sd) - ((w - mean) / sd) ** 2 / 2
    log_p = -np.log(prior) - ((w - prior_mean) / prior) ** 2 / 2
    return np.mean(log_q - log_p)


# --- float32 inside


def kl_of_two_normals(mean, sd, prior_mean, prior):
    mean, sd, prior_mean, prior = np.float32([mean, sd, prior_mean, prior])
    shift = (mean - prior_mean) ** 2
    return np.log(prior / sd) + (sd**2 + shift) / (2 * prior**2) - 0.5


# --- right: cross entropy minus entropy


def kl_of_two_normals(mean, sd, prior_mean, prior):
    entropy = np.log(2 * np.pi * np.e * sd**2) / 2
    square = sd**2 + (mean - prior_mean) ** 2
    return np.log(2 * np.pi * prior**2) / 2 + square / prior**2 / 2 - entropy


# --- right: a KL is never negative, so that its absolute value is the same


def kl_of_two_normals(mean, sd, prior_mean, prior):
    spread, shift = (sd / prior) ** 2, ((mean - prior_mean) / prior) ** 2
    return abs(spread + shift - 1 - np.log(spread)) / 2
