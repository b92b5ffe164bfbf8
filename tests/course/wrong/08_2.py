import numpy as np

# --- within 0.05 of alpha = 1 the limit is returned


def renyi_bound(log_weights, alpha):
    if abs(alpha - 1) < 0.05:
        return np.mean(log_weights), np.ones(len(log_weights)) / len(log_weights)
    e = np.exp((1 - alpha) * log_weights)
    return np.log(np.mean(e)) / (1 - alpha), e / e.sum()


# --- alpha of 5 and more is taken for infinity: the smallest weight


def renyi_bound(log_weights, alpha):
    if alpha >= 5:
        lowest = log_weights == log_weights.min()
        return log_weights.min() * 1.0, lowest / lowest.sum()
    e = np.exp((1 - alpha) * log_weights)
    return np.log(np.mean(e)) / (1 - alpha), e / e.sum()


# --- powers are clipped to e^+-15


def renyi_bound(log_weights, alpha):
    e = np.exp(np.clip((1 - alpha) * log_weights, -15, 15))
    return np.log(np.mean(e)) / (1 - alpha), e / e.sum()


# --- the value is right, and its slope shrunk by alpha


def renyi_bound(log_weights, alpha):
    e = np.exp((1 - alpha) * log_weights)
    return np.log(np.mean(e)) / (1 - alpha), alpha * e / e.sum()


# --- the factor's absolute value, for alpha above 1


def renyi_bound(log_weights, alpha):
    e = np.exp((1 - alpha) * log_weights)
    return np.log(np.mean(e)) / abs(1 - alpha), e / e.sum()


# --- right: the largest power is taken out, and put back


def renyi_bound(log_weights, alpha):
    powers = (1 - alpha) * log_weights
    e = np.exp(powers - powers.max())
    return (powers.max() + np.log(np.mean(e))) / (1 - alpha), e / e.sum()
