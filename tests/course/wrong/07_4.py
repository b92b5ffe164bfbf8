import numpy as np

# --- the second order of Taylor's series, which is exact for a cubic alone


def antithetic_noise(h, mu, sigma, eps):
    curvature = h(mu + 1) - 2 * h(mu) + h(mu - 1)
    return h(mu) + curvature / 2 * np.mean((sigma * eps) ** 2, axis=0)


# --- h is taken to be the exercise's example


def antithetic_noise(h, mu, sigma, eps):
    moved = (sigma * eps) ** 2
    return np.mean(mu**3 + 3 * mu * moved + mu**2 + moved, axis=0)


# --- only half of the samples is mirrored, to pay no more


def antithetic_noise(h, mu, sigma, eps):
    half = eps[: (len(eps) + 1) // 2]
    return np.mean((h(mu + sigma * half) + h(mu - sigma * half)) / 2, axis=0)


# --- divided by 2 S - 1


def antithetic_noise(h, mu, sigma, eps):
    both = np.concatenate([h(mu + sigma * eps), h(mu - sigma * eps)])
    return both.sum(axis=0) / (len(both) - 1)


# --- noise beyond four standard deviations is cut off


def antithetic_noise(h, mu, sigma, eps):
    eps = np.clip(eps, -4.0, 4.0)
    return np.mean((h(mu + sigma * eps) + h(mu - sigma * eps)) / 2, axis=0)
