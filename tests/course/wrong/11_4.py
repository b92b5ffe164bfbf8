import numpy as np

# --- coverage of the 90 % and of the 50 % intervals


def check_calibration(draws, y):
    for level in (0.5, 0.9):
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        error = np.sqrt(level * (1 - level) / len(y))
        if abs(np.mean((low <= y) & (y <= high)) - level) > 4 * error:
            return False
    return True


# --- mean and spread of standardised targets


def check_calibration(draws, y):
    z = (y - draws.mean(axis=0)) / draws.std(axis=0)
    return bool(abs(z.mean()) < 0.2 and abs(z.std() - 1) < 0.2)


# --- mean and spread of the ranks


def check_calibration(draws, y):
    rank = np.mean(draws < y, axis=0)
    return bool(abs(rank.mean() - 0.5) < 0.05 and abs(rank.std() - 12**-0.5) < 0.04)


# --- mean of the ranks, and coverage of the 90 % intervals


def check_calibration(draws, y):
    rank = np.mean(draws < y, axis=0)
    inside = np.mean((rank > 0.05) & (rank < 0.95))
    return bool(abs(rank.mean() - 0.5) < 0.05 and abs(inside - 0.9) < 0.05)


# --- distance from the middle rank, both sides alike


def check_calibration(draws, y):
    away = np.abs(np.mean(draws < y, axis=0) - 0.5)
    found = np.histogram(away, bins=10, range=(0, 0.5))[0]
    return bool(np.sum((found - len(y) / 10) ** 2) / (len(y) / 10) < 30)


# --- all draws of all rows against all targets


def check_calibration(draws, y):
    steps = np.linspace(0.05, 0.95, 19)
    return bool(np.abs(np.quantile(draws, steps) - np.quantile(y, steps)).max() < 1.0)


# --- ranks by Kolmogorov and Smirnov's distance, with twice the usual limit


def check_calibration(draws, y):
    rank = np.sort(np.mean(draws < y, axis=0))
    even = (np.arange(len(y)) + 0.5) / len(y)
    return bool(np.abs(rank - even).max() * np.sqrt(len(y)) < 3.0)
