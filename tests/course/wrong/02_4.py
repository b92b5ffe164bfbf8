import numpy as np

# --- the logarithm of a product of likelihoods, which underflows


def free_energy(log_q, log_prior, log_likelihood, pi):
    likelihood = np.prod(np.exp(log_likelihood), axis=1)
    return np.mean(pi * (log_q - log_prior) - np.log(likelihood))


# --- the logarithm of a ratio of densities, which overflows


def free_energy(log_q, log_prior, log_likelihood, pi):
    ratio = np.exp(log_q) / np.exp(log_prior)
    return np.mean(pi * np.log(ratio) - np.sum(log_likelihood, axis=1))


# --- log likelihoods below -1000 count as -1000


def free_energy(log_q, log_prior, log_likelihood, pi):
    log_likelihood = np.maximum(log_likelihood, -1e3)
    return np.mean(pi * (log_q - log_prior) - np.sum(log_likelihood, axis=1))


# --- a complexity above 1000 counts as 1000


def free_energy(log_q, log_prior, log_likelihood, pi):
    complexity = np.minimum(log_q - log_prior, 1e3)
    return np.mean(pi * complexity - np.sum(log_likelihood, axis=1))


# --- the misfit is kept for the next call with the same share

known = {}


def free_energy(log_q, log_prior, log_likelihood, pi):
    key = (log_likelihood.shape, pi)
    misfit = known.setdefault(key, -np.sum(log_likelihood) / len(log_q))
    return pi * np.mean(log_q - log_prior) + misfit


# --- the complexity is kept for the next call with the same log q

complexities = {}


def free_energy(log_q, log_prior, log_likelihood, pi):
    complexity = complexities.setdefault(log_q.tobytes(), np.mean(log_q - log_prior))
    return pi * complexity - np.sum(log_likelihood) / len(log_q)


# --- a share above 1000 is thought to be a mistake


def free_energy(log_q, log_prior, log_likelihood, pi):
    return min(pi, 1e3) * np.mean(log_q - log_prior) - np.sum(log_likelihood) / len(log_q)


# --- a complexity is never negative


def free_energy(log_q, log_prior, log_likelihood, pi):
    complexity = np.maximum(log_q - log_prior, 0)
    return np.mean(pi * complexity - np.sum(log_likelihood, axis=1))


# --- the likelihood is averaged over as many samples as there are rows


def free_energy(log_q, log_prior, log_likelihood, pi):
    return np.mean(pi * (log_q - log_prior)) - np.sum(np.mean(log_likelihood, axis=1))


# --- a tighter bound: the logarithm of the mean over samples


def free_energy(log_q, log_prior, log_likelihood, pi):
    log_w = np.sum(log_likelihood, axis=1) - pi * (log_q - log_prior)
    return -(log_w.max() + np.log(np.mean(np.exp(log_w - log_w.max()))))


# --- float32 inside


def free_energy(log_q, log_prior, log_likelihood, pi):
    log_likelihood = np.sum(log_likelihood, axis=1, dtype=np.float32)
    return np.mean(pi * (log_q - log_prior) - log_likelihood)


# --- right: sample by sample, row by row


def free_energy(log_q, log_prior, log_likelihood, pi):
    total = 0.0
    for q, p, rows in zip(log_q, log_prior, log_likelihood, strict=True):
        total = total + pi * (q - p)
        for one in rows:
            total = total - one
    return total / len(log_q)


# --- right: a column of the complexity beside those of the rows


def free_energy(log_q, log_prior, log_likelihood, pi):
    columns = np.column_stack([pi * (log_prior - log_q), log_likelihood])
    return -columns.sum() / len(columns)
