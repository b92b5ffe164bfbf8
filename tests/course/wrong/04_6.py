import numpy as np

# --- the log evidence is added up over all calls

total = [0.0]


def one_row_more(m, L, phi, y, sigma):
    c = L @ (L.T @ phi)
    spread, miss = sigma**2 + phi @ c, y - phi @ m
    total[0] = total[0] - (np.log(2 * np.pi * spread) + miss**2 / spread) / 2
    return m + c * miss / spread, L @ L.T - np.outer(c, c) / spread, total[0]


# --- C is kept for each phi, and L changes

kept = {}


def one_row_more(m, L, phi, y, sigma):
    c = kept.setdefault(phi.tobytes(), L @ (L.T @ phi))
    spread, miss = sigma**2 + phi @ c, y - phi @ m
    log_p = -(np.log(2 * np.pi * spread) + miss**2 / spread) / 2
    return m + c * miss / spread, L @ L.T - np.outer(c, c) / spread, log_p


# --- the lower half of L alone


def one_row_more(m, L, phi, y, sigma):
    L = np.tril(L)
    c = L @ (L.T @ phi)
    spread, miss = sigma**2 + phi @ c, y - phi @ m
    log_p = -(np.log(2 * np.pi * spread) + miss**2 / spread) / 2
    return m + c * miss / spread, L @ L.T - np.outer(c, c) / spread, log_p


# --- L^T L for L L^T


def one_row_more(m, L, phi, y, sigma):
    C = L.T @ L
    c = C @ phi
    spread, miss = sigma**2 + phi @ c, y - phi @ m
    log_p = -(np.log(2 * np.pi * spread) + miss**2 / spread) / 2
    return m + c * miss / spread, C - np.outer(c, c) / spread, log_p


# --- the noise is at least a thousandth


def one_row_more(m, L, phi, y, sigma):
    c = L @ (L.T @ phi)
    spread, miss = max(sigma**2, 1e-6) + phi @ c, y - phi @ m
    log_p = -(np.log(2 * np.pi * spread) + miss**2 / spread) / 2
    return m + c * miss / spread, L @ L.T - np.outer(c, c) / spread, log_p


# --- the noise is at least a millionth


def one_row_more(m, L, phi, y, sigma):
    c = L @ (L.T @ phi)
    spread, miss = max(sigma, 1e-6) ** 2 + phi @ c, y - phi @ m
    log_p = -(np.log(2 * np.pi * spread) + miss**2 / spread) / 2
    return m + c * miss / spread, L @ L.T - np.outer(c, c) / spread, log_p


# --- log p after the row was seen


def one_row_more(m, L, phi, y, sigma):
    c = L @ (L.T @ phi)
    spread = sigma**2 + phi @ c
    mean, C = m + c * (y - phi @ m) / spread, L @ L.T - np.outer(c, c) / spread
    after = sigma**2 + phi @ C @ phi
    return mean, C, -(np.log(2 * np.pi * after) + (y - phi @ mean) ** 2 / after) / 2


# --- variances only, as if weights were independent


def one_row_more(m, L, phi, y, sigma):
    C = np.diag(np.sum(L**2, axis=1))
    c = C @ phi
    spread, miss = sigma**2 + phi @ c, y - phi @ m
    log_p = -(np.log(2 * np.pi * spread) + miss**2 / spread) / 2
    return m + c * miss / spread, C - np.outer(c, c) / spread, log_p


# --- m is moved in place


def one_row_more(m, L, phi, y, sigma):
    c = L @ (L.T @ phi)
    spread, miss = sigma**2 + phi @ c, y - phi @ m
    log_p = -(np.log(2 * np.pi * spread) + miss**2 / spread) / 2
    m += c * miss / spread
    return m, L @ L.T - np.outer(c, c) / spread, log_p


# --- right: Joseph's form, which stays positive


def one_row_more(m, L, phi, y, sigma):
    C = L @ L.T
    spread, miss = sigma**2 + phi @ C @ phi, y - phi @ m
    gain = C @ phi / spread
    rest = np.eye(len(m)) - np.outer(gain, phi)
    log_p = -np.log(spread) / 2 - np.log(2 * np.pi) / 2 - miss**2 / (2 * spread)
    return m + gain * miss, rest @ C @ rest.T + sigma**2 * np.outer(gain, gain), log_p


# --- right: through the root of the covariance


def one_row_more(m, L, phi, y, sigma):
    u = L.T @ phi
    spread, miss = sigma * sigma + u @ u, y - m @ phi
    inner = np.eye(len(u)) - np.outer(u, u) / spread
    log_p = -0.5 * (np.log(2) + np.log(np.pi) + np.log(spread) + miss * miss / spread)
    return m + L @ u * (miss / spread), L @ inner @ L.T, log_p
