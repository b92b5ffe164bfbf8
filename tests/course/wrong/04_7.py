import numpy as np

# --- shares are kept a millionth away from 0 and 1


def step_to_the_certificate(r, R, kl, rows, price):
    r = np.clip(r, 1e-6, 1 - 1e-6)
    divergence = r * np.log(r / R) + (1 - r) * np.log((1 - r) / (1 - R))
    slope = (R - r) / (R * (1 - R))
    return divergence, slope, R - (divergence - (kl + price) / rows) / slope


# --- c is kept for each number of rows, and kl changes

kept = {}


def step_to_the_certificate(r, R, kl, rows, price):
    divergence = r * np.log(r / R) + (1 - r) * np.log((1 - r) / (1 - R))
    slope = (R - r) / (R * (1 - R))
    bound = kept.setdefault(rows, (kl + price) / rows)
    return divergence, slope, R - (divergence - bound) / slope


# --- a promise is at most 1


def step_to_the_certificate(r, R, kl, rows, price):
    divergence = r * np.log(r / R) + (1 - r) * np.log((1 - r) / (1 - R))
    slope = (R - r) / (R * (1 - R))
    return divergence, slope, min(R - (divergence - (kl + price) / rows) / slope, 1.0)


# --- close shares by the square of their difference


def step_to_the_certificate(r, R, kl, rows, price):
    slope = (R - r) / (R * (1 - R))
    if abs(R - r) < 1e-3:
        divergence = (R - r) ** 2 / (2 * r * (1 - r))
    else:
        divergence = r * np.log(r / R) + (1 - r) * np.log((1 - r) / (1 - R))
    return divergence, slope, R - (divergence - (kl + price) / rows) / slope


# --- a divergence of small shares is that of Poisson's law


def step_to_the_certificate(r, R, kl, rows, price):
    if max(r, R) < 1e-4:
        divergence, slope = r * np.log(r / R) + R - r, 1 - r / R
    else:
        divergence = r * np.log(r / R) + (1 - r) * np.log((1 - r) / (1 - R))
        slope = (R - r) / (R * (1 - R))
    return divergence, slope, R - (divergence - (kl + price) / rows) / slope


# --- two steps


def step_to_the_certificate(r, R, kl, rows, price):
    for _ in range(2):
        divergence = r * np.log(r / R) + (1 - r) * np.log((1 - r) / (1 - R))
        slope = (R - r) / (R * (1 - R))
        R = R - (divergence - (kl + price) / rows) / slope
    return divergence, slope, R


# --- only price is divided by N


def step_to_the_certificate(r, R, kl, rows, price):
    divergence = r * np.log(r / R) + (1 - r) * np.log((1 - r) / (1 - R))
    slope = (R - r) / (R * (1 - R))
    return divergence, slope, R - (divergence - kl - price / rows) / slope


# --- no step where R is a certificate already


def step_to_the_certificate(r, R, kl, rows, price):
    divergence = r * np.log(r / R) + (1 - r) * np.log((1 - r) / (1 - R))
    slope = (R - r) / (R * (1 - R))
    bound = (kl + price) / rows
    return divergence, slope, R if divergence >= bound else R - (divergence - bound) / slope


# --- right: the slope of each term, and entropies


def step_to_the_certificate(r, R, kl, rows, price):
    seen = r * np.log(r) + (1 - r) * np.log(1 - r)
    divergence = seen - r * np.log(R) - (1 - r) * np.log(1 - R)
    slope = (1 - r) / (1 - R) - r / R
    off = kl / rows + price / rows - divergence
    return divergence, slope, R + off / slope
