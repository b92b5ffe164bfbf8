import numpy as np

# --- the least-squares slope, shrunk, which is nan where no force is pulled with


def completing_the_square(x, y, prior, noise):
    slope = (x @ y) / (x @ x)
    share = prior**2 / (prior**2 + noise**2 / (x @ x))
    return share * slope, share * noise**2 / (x @ x)


# --- a prior wider than 1000 is taken for none


def completing_the_square(x, y, prior, noise):
    precision = (x @ x) / noise**2
    if prior < 1000:
        precision += 1 / prior**2
    return (x @ y) / noise**2 / precision, 1 / precision


# --- noise has a floor of 1e-6


def completing_the_square(x, y, prior, noise):
    noise = max(noise, 1e-6)
    precision = 1 / prior**2 + (x @ x) / noise**2
    return (x @ y) / noise**2 / precision, 1 / precision


# --- products are stored in an array like x, whose numbers may be whole


def completing_the_square(x, y, prior, noise):
    product = np.empty_like(x)
    product[:] = x * y
    precision = 1 / prior**2 + (x @ x) / noise**2
    return np.sum(product) / noise**2 / precision, 1 / precision


# --- means over the measurements, of which there may be none yet


def completing_the_square(x, y, prior, noise):
    precision = 1 / prior**2 + len(x) * np.mean(x**2) / noise**2
    return len(x) * np.mean(x * y) / noise**2 / precision, 1 / precision


# --- what is known of x is kept by its first force

known = {}


def completing_the_square(x, y, prior, noise):
    key = (len(x), *x[:1])
    if key not in known:
        known[key] = x @ x
    precision = 1 / prior**2 + known[key] / noise**2
    return (x @ y) / noise**2 / precision, 1 / precision


# --- the precision of the data is kept for the next call with the same x and y

last = {}


def completing_the_square(x, y, prior, noise):
    key = x.tobytes() + y.tobytes()
    if key not in last:
        last[key] = (x @ x) / noise**2, (x @ y) / noise**2
    data, linear = last[key]
    return linear / (1 / prior**2 + data), 1 / (1 / prior**2 + data)


# --- measurements of earlier calls are counted, too

total = np.zeros(2)


def completing_the_square(x, y, prior, noise):
    total[:] += (x @ x) / noise**2, (x @ y) / noise**2
    precision = 1 / prior**2 + total[0]
    return total[1] / precision, 1 / precision


# --- the variance is too small by 1 %


def completing_the_square(x, y, prior, noise):
    precision = 1 / prior**2 + (x @ x) / noise**2
    return (x @ y) / noise**2 / precision, 0.99 / precision


# --- four measurements, as in the example


def completing_the_square(x, y, prior, noise):
    precision = 1 / prior**2 + 4 * np.mean(x**2) / noise**2
    return 4 * np.mean(x * y) / noise**2 / precision, 1 / precision


# --- float32 inside


def completing_the_square(x, y, prior, noise):
    x, y = x.astype(np.float32), y.astype(np.float32)
    precision = 1 / prior**2 + (x @ x) / noise**2
    return (x @ y) / noise**2 / precision, 1 / precision


# --- right: one measurement after the other


def completing_the_square(x, y, prior, noise):
    mean, variance = 0.0, prior**2
    for force, length in zip(x, y, strict=True):
        gain = variance * force / (noise**2 + variance * force**2)
        mean = mean + gain * (length - mean * force)
        variance = variance * noise**2 / (noise**2 + variance * force**2)
    return mean, variance


# --- right: the prior's variance less what the data take from it, which cancels in wide priors


def completing_the_square(x, y, prior, noise):
    gain = prior**2 * x / (noise**2 + prior**2 * (x @ x))
    return gain @ y, prior**2 - prior**2 * (gain @ x)


# --- right: least squares with the prior as one more measurement


def completing_the_square(x, y, prior, noise):
    rows = np.append(x / noise, 1 / prior)
    targets = np.append(y / noise, 0.0)
    return (rows @ targets) / (rows @ rows), 1 / (rows @ rows)
