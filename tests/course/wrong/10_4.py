import numpy as np

# --- the minimum with 0 is taken already


def log_acceptance_of_hmc(log_pi, new_log_pi, r, new_r):
    return min(0.0, new_log_pi - new_r @ new_r / 2 - log_pi + r @ r / 2)


# --- an error of the energy beyond 1000 counts as 1000


def log_acceptance_of_hmc(log_pi, new_log_pi, r, new_r):
    return np.clip(new_log_pi - new_r @ new_r / 2 - log_pi + r @ r / 2, -1000.0, 1000.0)


# --- an error of the energy beyond 25 counts as 25


def log_acceptance_of_hmc(log_pi, new_log_pi, r, new_r):
    return np.clip(new_log_pi - new_r @ new_r / 2 - log_pi + r @ r / 2, -25.0, 25.0)


# --- the mean over weights of the kinetic energy


def log_acceptance_of_hmc(log_pi, new_log_pi, r, new_r):
    return new_log_pi - log_pi - (new_r**2).mean() / 2 + (r**2).mean() / 2


# --- the kinetic energy of the norm, not of its square


def log_acceptance_of_hmc(log_pi, new_log_pi, r, new_r):
    return new_log_pi - log_pi - np.linalg.norm(new_r) / 2 + np.linalg.norm(r) / 2


# --- float32 inside


def log_acceptance_of_hmc(log_pi, new_log_pi, r, new_r):
    r, new_r = r.astype(np.float32), new_r.astype(np.float32)
    return new_log_pi - log_pi - new_r @ new_r / 2 + r @ r / 2
