import numpy as np

# --- the diagonal has a floor of 0.01


def entropy_of_full_rank(diagonal, below):
    per_weight = np.log(np.maximum(diagonal, 0.01)) + (1 + np.log(2 * np.pi)) / 2
    return per_weight.sum()


# --- the constant of three weights


def entropy_of_full_rank(diagonal, below):
    return np.log(diagonal).sum() + 4.256815599614018


# --- bits, not nats


def entropy_of_full_rank(diagonal, below):
    return (np.log2(diagonal) + (1 + np.log2(2 * np.pi)) / 2).sum()


# --- the mean over weights


def entropy_of_full_rank(diagonal, below):
    return (np.log(diagonal) + (1 + np.log(2 * np.pi)) / 2).mean()


# --- the determinant is taken with a floor of 1e-6


def entropy_of_full_rank(diagonal, below):
    determinant = np.maximum(np.prod(diagonal), 1e-6)
    return np.log(determinant) + len(diagonal) * (1 + np.log(2 * np.pi)) / 2
