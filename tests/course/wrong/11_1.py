import numpy as np

# --- one draw has no pairs


def crps_of_draws(draws, y):
    n = len(draws)
    if n == 1:
        return 0.0
    return np.abs(draws - y).mean() - np.abs(draws[:, None] - draws).sum() / (2 * n * n)


# --- each draw with the next one only


def crps_of_draws(draws, y):
    return np.abs(draws - y).mean() - np.abs(draws - np.roll(draws, 1)).mean() / 2


# --- at most ten draws are paired, to save memory


def crps_of_draws(draws, y):
    some = draws[:10]
    return np.abs(draws - y).mean() - np.abs(some[:, None] - some).mean() / 2


# --- each pair once


def crps_of_draws(draws, y):
    n = len(draws)
    pairs = sum(abs(draws[i] - draws[j]) for i in range(n) for j in range(i))
    return np.abs(draws - y).mean() - pairs / (2 * n * n)


# --- draws are rounded to be compared


def crps_of_draws(draws, y):
    draws = np.round(draws, 6)
    return np.abs(draws - y).mean() - np.abs(draws[:, None] - draws).mean() / 2


# --- draws are sorted in place


def crps_of_draws(draws, y):
    draws.sort()
    n = len(draws)
    rank = 2 * np.arange(1, n + 1) - n - 1
    return np.abs(draws - y).mean() - rank @ draws / n**2


# --- outliers beyond ten are left out


def crps_of_draws(draws, y):
    draws = np.clip(draws, -10, 10)
    return np.abs(draws - y).mean() - np.abs(draws[:, None] - draws).mean() / 2


# --- right: by ranks


def crps_of_draws(draws, y):
    n = len(draws)
    rank = 2 * np.arange(1, n + 1) - n - 1
    return np.abs(draws - y).mean() - rank @ np.sort(draws) / n**2
