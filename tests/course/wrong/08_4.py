import numpy as np

# --- log weights are clipped to +-5 for a smaller variance


def doubly_reparameterised(log_weights, d_w, eps, sigma):
    share = np.exp(np.clip(log_weights, -5, 5))
    share = share / share.sum()
    path = d_w - eps / sigma
    return share**2 @ path, share**2 @ (path * eps)


# --- the squares of the shares are made to add up to 1


def doubly_reparameterised(log_weights, d_w, eps, sigma):
    share = np.exp(2 * log_weights) / np.exp(2 * log_weights).sum()
    path = d_w - eps / sigma
    return share @ path, share @ (path * eps)


# --- squared shares for mu alone


def doubly_reparameterised(log_weights, d_w, eps, sigma):
    share = np.exp(log_weights) / np.exp(log_weights).sum()
    path = d_w - eps / sigma
    return share**2 @ path, share @ (path * eps)


# --- the path is clipped to +-20


def doubly_reparameterised(log_weights, d_w, eps, sigma):
    share = np.exp(log_weights) / np.exp(log_weights).sum()
    path = np.clip(d_w - eps / sigma, -20, 20)
    return share**2 @ path, share**2 @ (path * eps)


# --- float32 inside


def doubly_reparameterised(log_weights, d_w, eps, sigma):
    share = np.exp(log_weights.astype(np.float32))
    share = share / share.sum()
    path = d_w - eps / sigma
    return share**2 @ path, share**2 @ (path * eps)
