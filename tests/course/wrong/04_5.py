import numpy as np

# --- k is kept for each number of rows, and kl changes

kept = {}


def bound_to_train_on(nll, kl, rows, price):
    unit = rows * np.log(2)
    if rows not in kept:
        kept[rows] = price / (2 * rows)
    small = np.sqrt(kl / (2 * rows) + kept[rows])
    large = np.sqrt(nll / unit + small**2)
    both = large + small
    return unit * both**2, both / large, both**2 / (large * small) * np.log(2) / 2


# --- a share is at most 1, so that the bound is at most N log 2


def bound_to_train_on(nll, kl, rows, price):
    unit = rows * np.log(2)
    small = np.sqrt((kl + price) / (2 * rows))
    large = np.sqrt(nll / unit + small**2)
    both = large + small
    value = min(unit * both**2, unit)
    return value, both / large, both**2 / (large * small) * np.log(2) / 2


# --- slopes by differences


def bound_to_train_on(nll, kl, rows, price):
    def bound(nll, kl):
        small = np.sqrt((kl + price) / (2 * rows))
        return rows * np.log(2) * (np.sqrt(nll / (rows * np.log(2)) + small**2) + small) ** 2

    d_nll = (bound(nll * (1 + 1e-5), kl) - bound(nll * (1 - 1e-5), kl)) / (2e-5 * nll)
    d_kl = (bound(nll, kl * (1 + 1e-5)) - bound(nll, kl * (1 - 1e-5))) / (2e-5 * kl)
    return bound(nll, kl), d_nll, d_kl


# --- k is at least 1e-8, so that its root has a slope


def bound_to_train_on(nll, kl, rows, price):
    unit = rows * np.log(2)
    small = np.sqrt(max((kl + price) / (2 * rows), 1e-8))
    large = np.sqrt(nll / unit + small**2)
    both = large + small
    return unit * both**2, both / large, both**2 / (large * small) * np.log(2) / 2


# --- the slope for kl shrunk by 3 %


def bound_to_train_on(nll, kl, rows, price):
    unit = rows * np.log(2)
    small = np.sqrt((kl + price) / (2 * rows))
    large = np.sqrt(nll / unit + small**2)
    both = large + small
    return unit * both**2, both / large, 0.97 * both**2 / (large * small) * np.log(2) / 2


# --- log 2 has four digits


def bound_to_train_on(nll, kl, rows, price):
    unit = rows * 0.6931
    small = np.sqrt((kl + price) / (2 * rows))
    large = np.sqrt(nll / unit + small**2)
    both = large + small
    return unit * both**2, both / large, both**2 / (large * small) * 0.6931 / 2


# --- slopes of the bound of a share, not of N log 2 of it


def bound_to_train_on(nll, kl, rows, price):
    unit = rows * np.log(2)
    small = np.sqrt((kl + price) / (2 * rows))
    large = np.sqrt(nll / unit + small**2)
    both = large + small
    return unit * both**2, both / large / unit, both**2 / (large * small) / (2 * rows)


# --- price is not divided


def bound_to_train_on(nll, kl, rows, price):
    unit = rows * np.log(2)
    small = np.sqrt(kl / (2 * rows) + price)
    large = np.sqrt(nll / unit + small**2)
    both = large + small
    return unit * both**2, both / large, both**2 / (large * small) * np.log(2) / 2


# --- right: the square multiplied out, log 2 a constant

LOG_2 = np.log(2)


def bound_to_train_on(nll, kl, rows, price):
    k = (kl + price) / 2  # times N
    r = nll / LOG_2
    root = np.sqrt(k * (r + k))
    d_nll = 1 + k / root
    d_kl = LOG_2 / 2 * (2 + (r + 2 * k) / root)
    return LOG_2 * (r + 2 * k + 2 * root), d_nll, d_kl
