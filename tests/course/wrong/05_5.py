import numpy as np


def of(x, z, s0, s1, H, bias=1):
    scales = s0 * np.sqrt(x @ x + 1), s0 * np.sqrt(z @ z + 1)
    root = scales[0] * scales[1]
    c = np.clip(s0**2 * (x @ z + 1) / root, -1, 1)
    t = np.arccos(c)
    product = root * (np.sin(t) + (np.pi - t) * c) / (2 * np.pi)
    covariance = s1**2 * (H * product + bias)
    variances = [s1**2 * (H * scale**2 / 2 + bias) for scale in scales]
    return covariance, covariance / np.sqrt(variances[0] * variances[1])


# --- a correlation of equal inputs that rounding makes greater than 1


def covariance_of_functions(x, z, s0, s1, H):
    scales = s0 * np.sqrt(x @ x + 1), s0 * np.sqrt(z @ z + 1)
    t = np.arccos(s0**2 * (x @ z + 1) / (scales[0] * scales[1]) * (1 + 1e-15))
    product = scales[0] * scales[1] * (np.sin(t) + (np.pi - t) * np.cos(t)) / (2 * np.pi)
    return s1**2 * (H * product + 1), of(x, z, s0, s1, H)[1]


# --- biases have no prior in either layer


def covariance_of_functions(x, z, s0, s1, H):
    return of(x, z, s0, s1, H, bias=0)


# --- the limit: s1 is divided by the root of H once more


def covariance_of_functions(x, z, s0, s1, H):
    return of(x, z, s0, s1 / np.sqrt(H), H)


# --- units that are linear


def covariance_of_functions(x, z, s0, s1, H):
    k = s0**2 * (np.stack([x, z]) @ np.stack([x, z]).T + 1)
    k = s1**2 * (H * k + 1)
    return k[0, 1], k[0, 1] / np.sqrt(k[0, 0] * k[1, 1])


# --- by a hundred thousand draws


def covariance_of_functions(x, z, s0, s1, H):
    rng = np.random.default_rng(0)
    rows = np.stack([np.append(x, 1), np.append(z, 1)])
    f = np.zeros((20_000, 2))
    for _ in range(H):
        a = np.maximum(s0 * rng.standard_normal((20_000, rows.shape[1])) @ rows.T, 0)
        f += s1 * rng.standard_normal((20_000, 1)) * a
    f += s1 * rng.standard_normal((20_000, 1))
    k = np.cov(f.T)
    return k[0, 1], k[0, 1] / np.sqrt(k[0, 0] * k[1, 1])


# --- correlations are kept 1e-3 away from 1


def covariance_of_functions(x, z, s0, s1, H):
    scales = s0 * np.sqrt(x @ x + 1), s0 * np.sqrt(z @ z + 1)
    root = scales[0] * scales[1]
    t = np.arccos(np.clip(s0**2 * (x @ z + 1) / root, -0.999, 0.999))
    product = root * (np.sin(t) + (np.pi - t) * np.cos(t)) / (2 * np.pi)
    covariance = s1**2 * (H * product + 1)
    variances = [s1**2 * (H * scale**2 / 2 + 1) for scale in scales]
    return covariance, covariance / np.sqrt(variances[0] * variances[1])


# --- the right covariance, the correlation as an angle in degrees


def covariance_of_functions(x, z, s0, s1, H):
    covariance, c = of(x, z, s0, s1, H)
    return covariance, np.degrees(np.arccos(np.clip(c, -1, 1)))


# --- float32 inside


def covariance_of_functions(x, z, s0, s1, H):
    return of(x.astype(np.float32), z.astype(np.float32), s0, s1, H)


# --- right: the angle by its tangent


def covariance_of_functions(x, z, s0, s1, H):
    a, b = np.append(x, 1), np.append(z, 1)
    a_unit, b_unit = a / np.linalg.norm(a), b / np.linalg.norm(b)
    t = 2 * np.arctan2(np.linalg.norm(a_unit - b_unit), np.linalg.norm(a_unit + b_unit))
    root = s0**2 * np.linalg.norm(a) * np.linalg.norm(b)
    product = root * (np.sin(t) + (np.pi - t) * np.cos(t)) / (2 * np.pi)
    covariance = s1**2 * (H * product + 1)
    variances = [s1**2 * (H * s0**2 * (each @ each) / 2 + 1) for each in (a, b)]
    return covariance, covariance / np.sqrt(variances[0] * variances[1])


# --- right: s1 cancels in the correlation


def covariance_of_functions(x, z, s0, s1, H):
    return of(x, z, s0, s1, H)[0], of(x, z, s0, 1, H)[1]
