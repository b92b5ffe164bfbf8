import numpy as np


def forward(x, W0, b0, W1, b1):
    z0 = x @ W0 + b0
    return z0, np.maximum(z0, 0), np.maximum(z0, 0) @ W1 + b1


def backward(x, W1, a0, gate, delta):
    delta0 = (delta @ W1.T) * gate
    return x.T @ delta0, delta0.sum(axis=0), a0.T @ delta, delta.sum(axis=0)


# --- the slope of ReLU at 0 is 1


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, f = forward(x, W0, b0, W1, b1)
    return np.sum((y - f) ** 2) / 2, *backward(x, W1, a0, z0 >= 0, f - y)


# --- the slope of ReLU at 0 is 1/2


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, f = forward(x, W0, b0, W1, b1)
    return np.sum((y - f) ** 2) / 2, *backward(x, W1, a0, np.heaviside(z0, 0.5), f - y)


# --- the gate is a / z, which is nan at 0


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, f = forward(x, W0, b0, W1, b1)
    return np.sum((y - f) ** 2) / 2, *backward(x, W1, a0, a0 / z0, f - y)


# --- the first delta is clipped to +-1e8


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, f = forward(x, W0, b0, W1, b1)
    delta = np.clip(f - y, -1e8, 1e8)
    return np.sum((y - f) ** 2) / 2, *backward(x, W1, a0, z0 > 0, delta)


# --- a unit that is on by less than 1e-6 is off


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, f = forward(x, W0, b0, W1, b1)
    return np.sum((y - f) ** 2) / 2, *backward(x, W1, a0, z0 > 1e-6, f - y)


# --- units of the first layer saturate at 10000


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, _ = forward(x, W0, b0, W1, b1)
    a0 = np.minimum(a0, 1e4)
    f = a0 @ W1 + b1
    return np.sum((y - f) ** 2) / 2, *backward(x, W1, a0, (z0 > 0) & (z0 < 1e4), f - y)


# --- slopes for biases keep the axis of the rows


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, f = forward(x, W0, b0, W1, b1)
    d_W0, d_b0, d_W1, d_b1 = backward(x, W1, a0, z0 > 0, f - y)
    return np.sum((y - f) ** 2) / 2, d_W0, d_b0[None], d_W1, d_b1[None]


# --- slopes are written where those of the last call were

memory = {}


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, f = forward(x, W0, b0, W1, b1)
    key = (W0.shape, W1.shape)
    kept = memory.setdefault(key, tuple(np.empty(one.shape) for one in (W0, b0, W1, b1)))
    for one, new in zip(kept, backward(x, W1, a0, z0 > 0, f - y), strict=True):
        one[:] = new
    return np.sum((y - f) ** 2) / 2, *kept


# --- hidden units are kept for the next call with the same inputs

known = {}


def backward_pass(x, W0, b0, W1, b1, y):
    z0 = known.setdefault((x.tobytes(), W0.shape), x @ W0 + b0)
    a0 = np.maximum(z0, 0)
    f = a0 @ W1 + b1
    return np.sum((y - f) ** 2) / 2, *backward(x, W1, a0, z0 > 0, f - y)


# --- units that were off at the last call with these sizes stay off

dead = {}


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, f = forward(x, W0, b0, W1, b1)
    gate = dead.setdefault(z0.shape, z0 > 0) & (z0 > 0)
    return np.sum((y - f) ** 2) / 2, *backward(x, W1, a0, gate, f - y)


# --- targets of one row are subtracted from all rows


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, f = forward(x, W0, b0, W1, b1)
    return np.sum((y[:1] - f) ** 2) / 2, *backward(x, W1, a0, z0 > 0, f - y[:1])


# --- the value is right, all slopes are means over rows


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, f = forward(x, W0, b0, W1, b1)
    return np.sum((y - f) ** 2) / 2, *backward(x, W1, a0, z0 > 0, (f - y) / len(y))


# --- float32 inside


def backward_pass(x, W0, b0, W1, b1, y):
    z0, a0, f = forward(x.astype(np.float32), W0, b0, W1, b1)
    f = f.astype(np.float32)
    return np.sum((y - f) ** 2) / 2, *backward(x, W1, a0, z0 > 0, f - y)


# --- right: the gate is a sign


def backward_pass(x, W0, b0, W1, b1, y):
    _, a0, f = forward(x, W0, b0, W1, b1)
    return np.sum((y - f) ** 2) / 2, *backward(x, W1, a0, np.sign(a0), f - y)


# --- right: row by row


def backward_pass(x, W0, b0, W1, b1, y):
    value, total = 0.0, [0 * one for one in (W0, b0, W1, b1)]
    for inputs, targets in zip(x, y, strict=True):
        z0 = inputs @ W0 + b0
        a0 = np.where(z0 > 0, z0, 0.0)
        delta = a0 @ W1 + b1 - targets
        back = np.where(z0 > 0, W1 @ delta, 0.0)
        value = value + delta @ delta / 2
        new = np.outer(inputs, back), back, np.outer(a0, delta), delta
        total = [old + one for old, one in zip(total, new, strict=True)]
    return value, *total


# --- right: a bias is a weight of an input that is 1


def backward_pass(x, W0, b0, W1, b1, y):
    ones = np.ones((len(x), 1))
    inputs = np.hstack([x, ones])
    z0 = inputs @ np.vstack([W0, b0])
    hidden = np.hstack([z0 * (z0 > 0), ones])
    delta = hidden @ np.vstack([W1, b1]) - y
    second = hidden.T @ delta
    first = inputs.T @ ((delta @ W1.T) * (z0 > 0))
    return np.sum(delta**2) / 2, first[:-1], first[-1], second[:-1], second[-1]
