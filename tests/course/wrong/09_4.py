import numpy as np

# --- zeta is clipped to +-5 before it is exponentiated


def log_joint_in_real_coordinates(zeta, a, b):
    theta = np.exp(np.clip(zeta, -5, 5))
    return np.sum(a * zeta - b * theta), a - b * theta


# --- theta has a floor of 0.001


def log_joint_in_real_coordinates(zeta, a, b):
    theta = np.maximum(np.exp(zeta), 1e-3)
    return np.sum(a * np.log(theta) - b * theta), a - b * theta


# --- the Jacobian once, not for each of the P


def log_joint_in_real_coordinates(zeta, a, b):
    theta = np.exp(zeta)
    return np.sum((a - 1) * zeta - b * theta) + zeta[0], a - b * theta


# --- the value is right, its slope lacks the Jacobian's for a below 1


def log_joint_in_real_coordinates(zeta, a, b):
    theta = np.exp(zeta)
    return np.sum(a * zeta - b * theta), (a if a > 1 else a - 1) - b * theta


# --- the normalising constant of an exponential density


def log_joint_in_real_coordinates(zeta, a, b):
    theta = np.exp(zeta)
    return np.sum(a * zeta - b * theta + np.log(b)), a - b * theta
