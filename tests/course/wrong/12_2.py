import numpy as np

# --- a shift by the mean


def normalised_weights(log_weights):
    share = np.exp(log_weights - log_weights.mean())
    return share / share.sum()


# --- a shift by the median


def normalised_weights(log_weights):
    share = np.exp(log_weights - np.median(log_weights))
    return share / share.sum()


# --- a shift by the smallest


def normalised_weights(log_weights):
    share = np.exp(log_weights - log_weights.min())
    return share / share.sum()


# --- a shift by the first


def normalised_weights(log_weights):
    share = np.exp(log_weights - log_weights[0])
    return share / share.sum()


# --- log weights are clipped to 100 below the largest


def normalised_weights(log_weights):
    share = np.exp(np.maximum(log_weights - log_weights.max(), -100.0))
    return share / share.sum()


# --- shares below 1e-16 are set to 0


def normalised_weights(log_weights):
    share = np.exp(log_weights - log_weights.max())
    share = share / share.sum()
    return np.where(share < 1e-16, 0.0, share)


# --- log weights are clipped to +-700


def normalised_weights(log_weights):
    share = np.exp(np.clip(log_weights, -700, 700))
    return share / share.sum()


# --- a sum of 0 gives equal shares


def normalised_weights(log_weights):
    share = np.exp(np.minimum(log_weights, 700.0))
    if share.sum() == 0:
        return np.full(len(share), 1 / len(share))
    return share / share.sum()


# --- right: the logarithm of the sum, shifted by the largest, is subtracted


def normalised_weights(log_weights):
    top = log_weights.max()
    return np.exp(log_weights - top - np.log(np.exp(log_weights - top).sum()))
