import numpy as np

# --- r is clipped to 0.99


def price_of_mean_field(r):
    r = min(r, 0.99)
    return 1 - r**2, 1.0, -np.log(1 - r**2) / 2


# --- small correlations are taken for none


def price_of_mean_field(r):
    if r < 0.01:
        return 1.0, 1.0, 0.0
    return 1 - r**2, 1.0, -np.log(1 - r**2) / 2


# --- the gap by the first terms of its series


def price_of_mean_field(r):
    return 1 - r**2, 1.0, r**2 / 2 + r**4 / 4 + r**6 / 6 + r**8 / 8


# --- the gap has a limit of 3 nats


def price_of_mean_field(r):
    return 1 - r**2, 1.0, min(-np.log(1 - r**2) / 2, 3.0)


# --- the gap of one weight of the two


def price_of_mean_field(r):
    return 1 - r**2, 1.0, -np.log(1 - r**2) / 4


# --- right: by the inverse of the matrix


def price_of_mean_field(r):
    precision = np.linalg.inv(np.array([[1, r], [r, 1]]))
    return 1 / precision[0, 0], 1.0, -np.log((1 - r) * (1 + r)) / 2
