import numpy as np

# --- a tolerance of 0.05


def check_a_sampler(kernel, p):
    if (kernel < 0).any() or not np.allclose(kernel.sum(axis=1), 1):
        return False
    return np.allclose(np.linalg.matrix_power(kernel, 100_000), p, atol=0.05)


# --- four states only


def check_a_sampler(kernel, p):
    if (kernel < 0).any() or not np.allclose(kernel.sum(axis=1), 1):
        return False
    far = np.linalg.matrix_power(kernel, 100_000)
    return all(abs(far[i, j] - p[j]) < 1e-6 for i in range(4) for j in range(4))


# --- p stays, and every step is possible


def check_a_sampler(kernel, p):
    if not np.allclose(kernel.sum(axis=1), 1):
        return False
    return bool(np.allclose(p @ kernel, p) and (kernel > 0).all())


# --- p stays, and every state can be reached in two steps


def check_a_sampler(kernel, p):
    if (kernel < 0).any() or not np.allclose(kernel.sum(axis=1), 1):
        return False
    return bool(np.allclose(p @ kernel, p) and (kernel @ kernel > 0).all())


# --- p stays, every state is reached, and some step stays


def check_a_sampler(kernel, p):
    if (kernel < 0).any() or not np.allclose(kernel.sum(axis=1), 1):
        return False
    reached = np.linalg.matrix_power(np.eye(len(p)) + kernel, len(p)) > 0
    return bool(np.allclose(p @ kernel, p) and reached.all() and np.diag(kernel).any())


# --- it runs the chain ten thousand steps and counts


def check_a_sampler(kernel, p):
    rng = np.random.default_rng(0)
    if (kernel < 0).any():
        return False
    counts, state = np.zeros(len(p)), 0
    sums = np.cumsum(kernel, axis=1)
    for u in rng.random(10_000):
        state = min(int(np.searchsorted(sums[state], u)), len(p) - 1)
        counts[state] += 1
    return bool(np.abs(counts / counts.sum() - p).max() < 0.05)


# --- a thousand steps from the first state


def check_a_sampler(kernel, p):
    if (kernel < 0).any() or not np.allclose(kernel.sum(axis=1), 1):
        return False
    return np.allclose(np.linalg.matrix_power(kernel, 1000)[0], p, atol=1e-6)


# --- rows and negative numbers are not looked at


def check_a_sampler(kernel, p):
    return np.allclose(np.linalg.matrix_power(kernel, 100_000), p, atol=1e-6)


# --- right: the first row is enough, as p has no zeros


def check_a_sampler(kernel, p):
    if (kernel < -1e-12).any() or not np.allclose(kernel.sum(axis=1), 1):
        return False
    return np.allclose(np.linalg.matrix_power(kernel, 100_000)[0], p, atol=1e-6)
