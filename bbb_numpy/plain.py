"""The report on one screen: Bayes by Backprop for regression, each line beside its equation.

Mean field, Gaussian prior, Gaussian noise, ReLU; nothing to choose, no tricks. The fast path
computes the same numbers, and tests hold the two together. The tags on the right are entries of
derivations.md; where the report slips, the code says what the entry corrects.

Shapes: S weight samples, B rows, P weights and biases, K outputs, L layers. Everywhere

    net      widths of the network, (d_in, hidden..., K)
    theta    mu, then rho, of all weights and biases, (2P,)
    prior    standard deviation of the prior, the report's sigma_data
    noise    standard deviation of y around the network's output, 1 in the report

It learns a spring's stretch beyond proportion, x^2 mm, from loads x in [-2, 2] kg. The band is wide
beyond them (figures/band.png), a sixth as wide at 6 kg from SECTION_7. Mean, epistemic, total sd:

>>> rng = np.random.default_rng(0)
>>> x = rng.uniform(-2, 2, (100, 1))
>>> y = x**2 + 0.3 * rng.standard_normal((100, 1))
>>> net, prior, noise = (1, 20, 1), 1.0, 0.3
>>> steps = {"eta": 2e-3, "epochs": 300, "batch_size": 10, "samples": 1, "rng": rng}
>>> theta = fit(net, init(net, rng), x, y, prior, noise, **steps)
>>> np.round(np.hstack(predict(net, theta, np.array([[0], [2], [4], [6]]), noise, 1000, rng)), 2)
array([[ 0.06,  0.04,  0.3 ],
       [ 3.97,  0.24,  0.38],
       [11.04,  0.6 ,  0.67],
       [18.12,  0.98,  1.02]])
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .numeric.elementary import sigmoid, softplus  # log(1+e^rho), 1/(1+e^-rho): D7

Array = NDArray[Any]
Net = tuple[int, ...]
Tape = list[tuple[Array, Array, Array]]
LOG_2PI = np.log(2 * np.pi)
SECTION_7 = -5  # the report's initial rho, with sigma = 0.007: see derivations.md

# The equations stand in a column of their own.
# fmt: off


def unpack(net: Net, w: Array) -> list[tuple[Array, Array]]:
    """Cut flat weights w (S, P) into each layer's W (S, d_in, d_out) and b (S, 1, d_out)."""
    layers: list[tuple[Array, Array]] = []
    for d_in, d_out in pairwise(net):
        W, b, w = np.split(w, [d_in * d_out, d_in * d_out + d_out], axis=1)
        layers.append((W.reshape(-1, d_in, d_out), b.reshape(-1, 1, d_out)))
    return layers


def forward(net: Net, w: Array, x: Array) -> tuple[Array, Tape]:
    """Return the network's outputs (S, B, K) for inputs x (B, d_in), and a tape for `vjp`."""
    a, gate, tape = x, np.ones_like(x), []                           # inputs a_{-1} = x: no ReLU
    for W, b in unpack(net, w):
        tape.append((a, gate, W))                                    # vjp needs a_{l-1}, gate, W_l
        z = a @ W + b                                                # K31, K33, K36  (S, B, d_out)
        gate = z.real > 0                                            # [z > 0]; z is complex in D9
        a = z * gate                                                 # K32, K34, K35: ReLU(z)
    return z, tape                                                   # K36: no ReLU at the end


def vjp(tape: Tape, d_f: Array) -> Array:
    """Return the gradient for the weights (S, P), given d_f (S, B, K), that for the outputs."""
    d_w: list[Array] = []
    delta = d_f                                                      # delta_{L-1}: last layer
    for a, gate, W in reversed(tape):
        d_b = delta.sum(axis=1)                                      # K37, K39, K41: sum over rows
        d_W = a.mT @ delta                                           # K38, K40, K42: gradient of W
        d_w = [d_W.reshape(len(W), -1), d_b, *d_w]                   # flat, in the order of unpack
        delta = (delta @ W.mT) * gate                                # K39, K41: delta_{l-1}
    return np.concatenate(d_w, axis=1)


def value_and_grad(
    net: Net, theta: Array, eps: Array, x: Array, y: Array, prior: float, noise: float, pi: float
) -> tuple[Any, Array]:
    """Return the free energy of a minibatch in nats, and its gradient for theta (2P,).

    The minibatch is x (B, d_in), y (B, K); pi is its share of the KL term, 1/n in the report.
    `prior` is the standard deviation of each weight under the prior, N(0, prior^2); `noise` that
    of y around the outputs. With standard normal eps (S, P) given, F is a plain function of theta.
    """
    mu, rho = np.split(theta, 2)                                     # K2: parameters of q  (P,)
    sigma = softplus(rho)                                            # K3: q's standard deviations
    w = mu + sigma * eps                                             # K4: w drawn from q  (S, P)
    f, tape = forward(net, w, x)                                     # K31-K36  (S, B, K)

    log_q = -np.log(sigma) - eps**2 / 2                              # K10: log q(w)  (S, P)
    log_prior = -np.log(prior) - w**2 / (2 * prior**2)               # K13: log P(w)  (S, P)
    nll = (y - f)**2 / (2 * noise**2) + np.log(noise) + LOG_2PI / 2  # K15: -log P(y|w)  (S, B, K)
    kl = np.sum(log_q - log_prior, axis=1)                           # K9: log 2 pi cancels  (S,)
    value = np.mean(pi * kl + np.sum(nll, axis=(1, 2)))              # K5, K18: free energy, nats

    g_w = vjp(tape, -(y - f) / noise**2)                             # K37-K42: backward  (S, P)
    d_w = pi * w / prior**2 + g_w                                    # K21: dF/dw  (S, P)
    d_mu = d_w.mean(axis=0)                                          # K20: dw/dmu = 1  (P,)
    d_rho = (-pi / sigma + d_w * eps).mean(axis=0) * sigmoid(rho)    # K30: dF/drho  (P,)
    return value, np.concatenate([d_mu, d_rho])


def init(net: Net, rng: np.random.Generator, rho: float = -2) -> Array:
    """Draw the first theta: mu ~ N(0, 0.1^2), rho within 0.01 of `rho`; -2 is sigma = 0.13."""
    size = sum((d_in + 1) * d_out for d_in, d_out in pairwise(net))
    return np.concatenate([rng.normal(0, 0.1, size), rng.uniform(-0.01, 0.01, size) + rho])


def update(theta: Array, grad: Array, eta: float) -> Array:
    """Return theta after one step of gradient descent with learning rate eta."""
    return theta - eta * grad                                        # K43, K44: descent


def fit(
    net: Net, theta: Array, x: Array, y: Array, prior: float, noise: float,
    eta: float, epochs: int, batch_size: int, samples: int, rng: np.random.Generator
) -> Array:
    """Return theta after gradient descent on the free energy of shuffled minibatches.

    `prior` is the standard deviation of each weight under the prior, `noise` that of y around the
    network's outputs, eta the learning rate, and `samples` the number S of weight draws per step.
    """
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for rows in np.split(order, range(batch_size, len(x), batch_size)):
            eps = rng.standard_normal((samples, theta.size // 2))    # K1: standard normal  (S, P)
            pi = len(rows) / len(x)                                  # D6: these add up to 1
            _, grad = value_and_grad(net, theta, eps, x[rows], y[rows], prior, noise, pi)
            theta = update(theta, grad, eta)
    return theta


def predict(
    net: Net, theta: Array, x: Array, noise: float, samples: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return mean, epistemic and total standard deviation of new targets at x, (B, K) each.

    `noise` is the standard deviation of y around the outputs; the epistemic one is that of the
    outputs of `samples` networks drawn from q, and the total one contains both, in units of y.
    """
    mu, rho = np.split(theta, 2)                                     # K2: parameters of q
    eps = rng.standard_normal((samples, mu.size))                    # K1: standard normal  (S, P)
    f, _ = forward(net, mu + softplus(rho) * eps, x)                 # K3, K4, K31-K36  (S, B, K)
    epistemic = f.std(axis=0, ddof=1)                                # D4: between functions
    total = np.sqrt(epistemic**2 + noise**2)                         # D4: and the noise of y
    return f.mean(axis=0), epistemic, total
