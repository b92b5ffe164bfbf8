import numpy as np

# --- rho itself above 20, as a library for single precision does


def stable_softplus(rho):
    return np.where(rho > 20, rho, np.log1p(np.exp(rho)))


# --- exp(rho) below -20


def stable_softplus(rho):
    return np.where(rho < -20, np.exp(rho), np.maximum(rho, 0) + np.log1p(np.exp(-np.abs(rho))))


# --- the largest rho of all is taken out


def stable_softplus(rho):
    top = np.maximum(rho.max(), 0.0)
    inside = np.exp(rho - top)
    if top == 0:
        return np.log1p(inside)
    return np.where(rho < 0, np.log1p(np.exp(rho)), top + np.log(np.exp(-top) + inside))


# --- all weights by the branch of the largest


def stable_softplus(rho):
    if rho.max() > 30:
        return np.maximum(rho, 0.0)
    return np.log1p(np.exp(rho))


# --- log without 1p between -30 and 30


def stable_softplus(rho):
    middle = np.log(1 + np.exp(np.clip(rho, -30, 30)))
    return np.where(rho > 30, rho, np.where(rho < -30, np.exp(rho), middle))


# --- exp(rho) below -9 with its second term


def stable_softplus(rho):
    small = np.exp(rho) - np.exp(2 * rho) / 2
    full = np.maximum(rho, 0) + np.log1p(np.exp(-np.abs(rho)))
    return np.where(rho < -9, small, full)


# --- the root of the square for |rho|


def stable_softplus(rho):
    size = np.sqrt(rho**2 + 1e-12)
    return (rho + size) / 2 + np.log1p(np.exp(-size))


# --- float32 inside


def stable_softplus(rho):
    rho = rho.astype(np.float32)
    return np.maximum(rho, 0) + np.log1p(np.exp(-np.abs(rho))).astype(float)


# --- right: above 36 the small part is less than rho's last digit


def stable_softplus(rho):
    low = np.minimum(rho, 36.0)
    return np.where(rho > 36, rho, np.log1p(np.exp(low)))


# --- right: logaddexp is stable


def stable_softplus(rho):
    return np.logaddexp(0, rho)
