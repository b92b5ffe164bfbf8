import numpy as np

# --- open intervals


def coverage(low, high, y):
    return np.mean((low < y) & (y < high))


# --- half-open intervals


def coverage(low, high, y):
    return np.mean((low <= y) & (y < high))


# --- float32 inside


def coverage(low, high, y):
    low, high, y = (one.astype(np.float32) for one in (low, high, y))
    return np.mean((low <= y) & (y <= high))


# --- a little tolerance at the ends


def coverage(low, high, y):
    return np.mean((low - 1e-6 <= y) & (y <= high + 1e-6))


# --- ends that are the wrong way round are exchanged


def coverage(low, high, y):
    low, high = np.minimum(low, high), np.maximum(low, high)
    return np.mean((low <= y) & (y <= high))


# --- in percent


def coverage(low, high, y):
    return 100 * np.mean((low <= y) & (y <= high))


# --- the mean is rounded to a hundredth


def coverage(low, high, y):
    return np.round(np.mean((low <= y) & (y <= high)), 2)


# --- right: those outside are counted


def coverage(low, high, y):
    return 1 - np.mean((y < low) | (y > high))
