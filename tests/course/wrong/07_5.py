import numpy as np

# --- a column of ones as long as the inputs are many, not as the rows


def local_reparameterisation(a, mu, sigma, mu_b, sigma_b, zeta):
    inputs = np.column_stack([a * a, np.ones(len(mu))])
    variances = np.vstack([sigma**2, sigma_b**2])
    return a @ mu + mu_b + zeta * np.sqrt(inputs @ variances)


# --- the variance has a floor of 0.01


def local_reparameterisation(a, mu, sigma, mu_b, sigma_b, zeta):
    variance = np.maximum(a**2 @ sigma**2 + sigma_b**2, 0.01)
    return a @ mu + mu_b + np.sqrt(variance) * zeta


# --- the bias is added along the rows


def local_reparameterisation(a, mu, sigma, mu_b, sigma_b, zeta):
    return a @ mu + mu_b[:, None] + np.sqrt(a**2 @ sigma**2 + sigma_b**2) * zeta


# --- rows with a large input are scaled down before they are squared


def local_reparameterisation(a, mu, sigma, mu_b, sigma_b, zeta):
    b = a / np.maximum(np.abs(a).max(axis=1, keepdims=True), 5.0) * 5.0
    return a @ mu + mu_b + np.sqrt(b**2 @ sigma**2 + sigma_b**2) * zeta


# --- loops as far as the units where the inputs are meant


def local_reparameterisation(a, mu, sigma, mu_b, sigma_b, zeta):
    variance = 0 * zeta + sigma_b**2
    for i in range(mu.shape[1]):
        variance = variance + a[:, i : i + 1] ** 2 * sigma[i] ** 2
    return a @ mu + mu_b + np.sqrt(variance) * zeta
