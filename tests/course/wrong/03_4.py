import numpy as np


def step(theta, m, v, t, eta, beta1, beta2, tiny):
    root = np.sqrt(v / (1 - beta2**t)) + tiny
    return theta - eta * m / (1 - beta1**t) / root


# --- no correction after the hundredth step


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    if t > 100:
        return theta - eta * m / (np.sqrt(v) + tiny), m, v
    return step(theta, m, v, t, eta, beta1, beta2, tiny), m, v


# --- the correction of v is that of step 10 from then on


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    return step(theta, m, v, min(t, 10), eta, beta1, beta2, tiny), m, v


# --- the powers of both betas are multiplied up for eight steps


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    power1 = power2 = 1.0
    for _ in range(8):
        if t > 0:
            power1, power2, t = power1 * beta1, power2 * beta2, t - 1
    return theta - eta * m / (1 - power1) / (np.sqrt(v / (1 - power2)) + tiny), m, v


# --- gradients are clipped to +-100


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    grad = np.clip(grad, -100, 100)
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    return step(theta, m, v, t, eta, beta1, beta2, tiny), m, v


# --- v has a floor of 1e-12


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = beta1 * m + (1 - beta1) * grad
    v = np.maximum(beta2 * v + (1 - beta2) * grad**2, 1e-12)
    return step(theta, m, v, t, eta, beta1, beta2, tiny), m, v


# --- the betas are at most 0.9999999


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    beta1, beta2 = min(beta1, 0.9999999), min(beta2, 0.9999999)
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    return step(theta, m, v, t, eta, beta1, beta2, tiny), m, v


# --- without a gradient there is no step


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    if not grad.any():
        return theta.copy(), beta1 * m, beta2 * v
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    return step(theta, m, v, t, eta, beta1, beta2, tiny), m, v


# --- m is a ratio to the gradient, which is nan where it is 0


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = grad * (beta1 * m / grad + 1 - beta1)
    v = beta2 * v + (1 - beta2) * grad**2
    return step(theta, m, v, t, eta, beta1, beta2, tiny), m, v


# --- both means are written where those of the last call were

memory = {}


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    new_m, new_v = memory.setdefault(m.shape, np.empty((2, len(m))))
    new_m[:] = beta1 * m + (1 - beta1) * grad
    new_v[:] = beta2 * v + (1 - beta2) * grad**2
    return step(theta, new_m, new_v, t, eta, beta1, beta2, tiny), new_m, new_v


# --- corrections are kept by step

known = {}


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    one, two = known.setdefault((t, beta2), (1 - beta1**t, 1 - beta2**t))
    return theta - eta * m / one / (np.sqrt(v / two) + tiny), m, v


# --- the squared gradient is kept for the next call with the same theta

squares = {}


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * squares.setdefault(theta.tobytes(), grad**2)
    return step(theta, m, v, t, eta, beta1, beta2, tiny), m, v


# --- the old means are moved


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m += (1 - beta1) * (grad - m)
    v += (1 - beta2) * (grad**2 - v)
    return step(theta, m, v, t, eta, beta1, beta2, tiny), m, v


# --- the first step forgets m and v, which usually are 0


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    if t == 1:
        m, v = 0 * m, 0 * v
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    return step(theta, m, v, t, eta, beta1, beta2, tiny), m, v


# --- steps are counted from 0


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    return step(theta, m, v, t + 1, eta, beta1, beta2, tiny), m, v


# --- float32 inside


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = (beta1 * m + (1 - beta1) * grad).astype(np.float32)
    v = (beta2 * v + (1 - beta2) * grad**2).astype(np.float32)
    return step(theta, m, v, t, eta, beta1, beta2, tiny), m, v


# --- right: means by steps towards the new


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = m + (1 - beta1) * (grad - m)
    v = v + (1 - beta2) * (grad * grad - v)
    return step(theta, m, v, t, eta, beta1, beta2, tiny), m, v


# --- right: both corrections in the learning rate and in tiny


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    root = np.sqrt(1 - beta2**t)
    rate = eta * root / (1 - beta1**t)
    return theta - rate * m / (np.sqrt(v) + tiny * root), m, v


# --- right: powers by logarithms


def adam_step(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    one, two = -np.expm1(t * np.log(beta1)), -np.expm1(t * np.log(beta2))
    return theta - eta * (m / one) / (np.sqrt(v / two) + tiny), m, v
