import numpy as np

# --- what is refused goes to a neighbour, not to the state itself


def transition_matrix(p, q):
    ratio = p * q.T / (p[:, None] * q)
    kernel = q * np.minimum(1, ratio)
    np.fill_diagonal(kernel, 0)
    rest = 1 - kernel.sum(axis=1)
    for i in range(len(p)):
        kernel[i, (i + 1) % len(p)] += rest[i]
    return kernel


# --- rows are divided by their sums in place of what is refused


def transition_matrix(p, q):
    kernel = q * np.minimum(1, p * q.T / (p[:, None] * q))
    return kernel / kernel.sum(axis=1, keepdims=True)


# --- the matrix is filled in place of the proposal


def transition_matrix(p, q):
    ratio = p * q.T / (p[:, None] * q)
    q *= np.minimum(1, ratio)
    np.fill_diagonal(q, 0)
    np.fill_diagonal(q, 1 - q.sum(axis=1))
    return q


# --- one state has nowhere to go


def transition_matrix(p, q):
    if len(p) == 1:
        return np.zeros((1, 1))
    kernel = q * np.minimum(1, p * q.T / (p[:, None] * q))
    np.fill_diagonal(kernel, 0)
    np.fill_diagonal(kernel, 1 - kernel.sum(axis=1))
    return kernel


# --- accepted at least once in a hundred


def transition_matrix(p, q):
    kernel = q * np.clip(p * q.T / (p[:, None] * q), 0.01, 1)
    np.fill_diagonal(kernel, 0)
    np.fill_diagonal(kernel, 1 - kernel.sum(axis=1))
    return kernel
