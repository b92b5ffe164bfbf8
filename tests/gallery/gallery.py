"""Gradients of SciPy, scikit-learn and statsmodels, and textbook likelihoods, with planted errors.

Those of libraries are called as they are; statsmodels' are written once more, by its formulas.
The programs of `hunt` belong to the gallery too: repaired they are right, and what was found in
public code is the error.
"""

import warnings

import numpy as np
from gallery.programs import Program, cut, flat, normal, sigmoid, softmax
from scipy.optimize import rosen, rosen_der, rosen_hess_prod
from scipy.optimize._lsq.least_squares import arctan, cauchy, soft_l1
from scipy.special import digamma, gammaln, ndtr
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model._huber import _huber_loss_and_gradient
from sklearn.manifold._t_sne import _kl_divergence
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.neural_network import MLPRegressor

GALLERY = []


def shown(title, source, *arguments, verdict="proved", note="", plant=()):
    """Add a function to the gallery."""

    def add(function):
        GALLERY.append(Program(title, source, function, arguments, plant, verdict, note=note))
        return function

    return add


X, Y, COUNTS, BITS = normal(4, 2), normal(4, seed=1), np.array([3, 0, 1, 2]), np.array([1, 0, 0, 1])

# --- libraries, as they are


@shown("Rosenbrock's function", "SciPy", normal(4), note="the last slope doubled",
       plant=[("rosen_der(x)", "rosen_der(x) * [1, 1, 1, 2]")])  # fmt: skip
def _(x):
    return rosen(x), rosen_der(x)


@shown("its Hessian times a vector", "SciPy", normal(4), normal(4, seed=1), note="a vector doubled",
       plant=[("prod(x, p)", "prod(x, 2 * p)")])  # fmt: skip
def _(x, p):
    return rosen_der(x) @ p, rosen_hess_prod(x, p)


@shown("three robust losses of least squares", "SciPy", np.abs(normal(3)),
       note="their second derivatives", plant=[("rho[1] for", "rho[-1] for")])  # fmt: skip
def _(z):
    rhos = [np.empty((3, 3)) for _ in range(3)]
    for loss, rho in zip((soft_l1, cauchy, arctan), rhos, strict=True):
        loss(z, rho, cost_only=False)
    return sum(rho[0].sum() for rho in rhos), sum(rho[1] for rho in rhos)


@shown("Huber regression, with its scale", "scikit-learn", np.array([0.3, -0.6, 0.1, 1]), X, 3 * Y,
       note="the slope of the scale has the other sign",
       plant=[("value, grad\n", "value, grad * [1, 1, 1, -1]\n")])  # fmt: skip
def _(w, x, y):
    value, grad = _huber_loss_and_gradient(w, x, y, 1.25, 0.125, np.ones(4))
    return value, grad


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    MLP = MLPRegressor(hidden_layer_sizes=2, activation="tanh", alpha=0.5, solver="lbfgs")
    MLP.fit(X, Y)


@shown("network of tanh, with L2", "scikit-learn", normal(9), X, Y[:, None],
       note="weights are penalised in the value only",
       plant=[("value, grad\n", "value, grad - w * [*[0.125] * 6, 0, 0, 0]\n")])  # fmt: skip
def _(w, x, y):
    MLP._unpack(w)
    grads = [[np.empty_like(one) for one in kind] for kind in (MLP.coefs_, MLP.intercepts_)]
    value, grad = MLP._loss_grad_lbfgs(w, x, y, None, [x, 0, 0], [0, 0], *grads)
    return value, grad


@shown("neighbourhood components", "scikit-learn", normal(4), X, BITS[:, None] == BITS,
       note="the last slope doubled",
       plant=[("value, grad\n", "value, grad * [1, 1, 1, 2]\n")])  # fmt: skip
def _(a, x, alike):
    model = NeighborhoodComponentsAnalysis()
    model.n_iter_ = 1
    value, grad = model._loss_grad_lbfgs(a, x, alike)
    return value, grad


GP = GaussianProcessRegressor().fit(X, Y)


@shown("Gaussian process", "scikit-learn", normal(2), verdict="not traceable",
       note="the kernel keeps its numbers as floats of its own")  # fmt: skip
def _(theta):
    return GP.log_marginal_likelihood(theta, eval_gradient=True)


@shown("t-SNE", "scikit-learn", normal(8), np.full(6, 1 / 6), verdict="not traceable",
       note="distances in compiled code")  # fmt: skip
def _(y, p):
    return _kl_divergence(y, p, 1, 4, 2)


# --- likelihoods


@shown("Logit", "statsmodels", normal(2), X, BITS, note="the sign of a row",
       plant=[("y - 1 / (1 + np.exp(-x @ b))", "q - 1 / (1 + np.exp(-x @ b))")])  # fmt: skip
def _(b, x, y):
    q = 2 * y - 1
    return np.sum(np.log(1 / (1 + np.exp(-q * (x @ b))))), (y - 1 / (1 + np.exp(-x @ b))) @ x


@shown("Probit", "statsmodels", normal(2), X, BITS, note="the density at z, without the sign of y",
       plant=[("(q * density", "(density")])  # fmt: skip
def _(b, x, y):
    q = 2 * y - 1
    z = q * (x @ b)
    density = 1 / np.sqrt(2 * np.pi) * np.exp(-(z**2) / 2)
    return np.sum(np.log(ndtr(z))), (q * density / ndtr(z)) @ x


@shown("Poisson", "statsmodels", normal(2), X, COUNTS, note="the mean without its exponential",
       plant=[("y - np.exp(x @ b)", "y - x @ b")])  # fmt: skip
def _(b, x, y):
    return np.sum(-np.exp(x @ b) + y * (x @ b) - gammaln(y + 1)), (y - np.exp(x @ b)) @ x


@shown("NegativeBinomial", "statsmodels", np.array([0.3, -0.2, 0.7]), X[:2], COUNTS[:2],
       note="1 / alpha without its slope", plant=[("-(1 / alpha**2)", "1 / alpha")])  # fmt: skip
def _(theta, x, y):
    alpha, mu = theta[-1], np.exp(x @ theta[:-1])
    size = 1 / alpha
    p = size / (size + mu)
    value = gammaln(size + y) - gammaln(y + 1) - gammaln(size)
    value = value + size * np.log(p) + y * np.log(1 - p)
    by_size = digamma(y + size) - digamma(size) + np.log(p) - (y - mu) / (size + mu)
    by_beta = (size * (y - mu) / (mu + size)) @ x
    return value.sum(), flat(by_beta, by_size.sum() * -(1 / alpha**2))


@shown("gamma regression, with its shape", "textbook", normal(3), X, np.abs(Y),
       note="a 1 is missing for the shape", plant=[(" + 1 - digamma", " - digamma")])  # fmt: skip
def _(theta, x, y):
    k, mu = np.exp(theta[-1]), np.exp(x @ theta[:-1])
    value = k * np.log(k / mu) - gammaln(k) + (k - 1) * np.log(y) - k * y / mu
    by_k = np.log(k / mu) + 1 - digamma(k) + np.log(y) - y / mu
    return value.sum(), flat(k * (y / mu - 1) @ x, k * by_k.sum())


@shown("Gaussian process, by Cholesky", "textbook", normal(3) / 2, X[:2], Y[:2],
       note="half of the trace",
       plant=[("0.5 * np.trace", "0.25 * np.trace")])  # fmt: skip
def _(theta, x, y):
    scale, width, noise = np.exp(2 * theta)
    squares = ((x[:, None] - x[None]) ** 2).sum(-1)
    k = scale * np.exp(-squares / (2 * width))
    root = np.linalg.cholesky(k + noise * np.eye(2))
    a = np.linalg.solve(root.T, np.linalg.solve(root, y))
    inverse = np.linalg.inv(root).T @ np.linalg.inv(root)
    value = 0.5 * y @ a + np.log(np.diag(root)).sum() + np.log(2 * np.pi)
    slopes = 2 * k, k * squares / width, 2 * noise * np.eye(2)
    return value, np.array([0.5 * np.trace(inverse @ d) - 0.5 * a @ d @ a for d in slopes])


@shown("Kalman filter of a local level", "textbook", normal(2) / 2, Y,
       note="the gain held still", plant=[("d_gain = (d_p", "d_gain = 0 * (d_p")])  # fmt: skip
def _(theta, y):
    (q, r), level, p, value = np.exp(theta), 0.0, 1.0, 0.0
    d_level, d_p, grad = np.zeros(2), np.zeros(2), np.zeros(2)
    for one in y:
        p, d_p = p + q, d_p + q * np.array([1, 0])
        s, d_s, off = p + r, d_p + r * np.array([0, 1]), one - level
        value += 0.5 * (np.log(2 * np.pi * s) + off**2 / s)
        grad += 0.5 * (d_s / s - 2 * off * d_level / s - off**2 * d_s / s**2)
        gain = p / s
        d_gain = (d_p - gain * d_s) / s
        level, d_level = level + gain * off, d_level + d_gain * off - gain * d_level
        p, d_p = (1 - gain) * p, (1 - gain) * d_p - d_gain * p
    return value, grad


@shown("hidden Markov model, forward and backward", "textbook", normal(10), [0, 2, 1, 2],
       note="rows of the transitions are not normalised in the gradient",
       plant=[("- move * pairs.sum(1, keepdims=True)", "")])  # fmt: skip
def _(theta, seen):
    move, emit = (softmax(part) for part in cut(theta, (2, 2), (2, 3)))
    alpha, beta = [emit[:, seen[0]] / 2], [np.ones(2)]
    for t in range(1, 4):
        alpha.append(alpha[-1] @ move * emit[:, seen[t]])
        beta.insert(0, move @ (emit[:, seen[4 - t]] * beta[0]))
    total, pairs, states = alpha[-1].sum(), np.zeros((2, 2)), np.zeros((2, 3))
    for t in range(4):
        states[:, seen[t]] += alpha[t] * beta[t] / total
        if t:
            pairs += np.outer(alpha[t - 1], emit[:, seen[t]] * beta[t]) * move / total
    by_move = pairs - move * pairs.sum(1, keepdims=True)
    return np.log(total), flat(by_move, states - emit * states.sum(1, keepdims=True))


# --- others


@shown("GELU", "textbook", normal(3), note="the slope of the density is missing",
       plant=[("+ x * np.exp", "+ np.exp")])  # fmt: skip
def _(x):
    return (x * ndtr(x)).sum(), ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


@shown("price of a call by Black and Scholes, and its Greeks", "textbook",
       np.array([1.1, 0.9, 0.02, 0.3, 1.5]), note="vega without the root of time",
       plant=[("s * density * np.sqrt(t)", "s * density")])  # fmt: skip
def _(theta):
    s, k, r, v, t = theta
    d1 = (np.log(s / k) + (r + v**2 / 2) * t) / (v * np.sqrt(t))
    d2, discount = d1 - v * np.sqrt(t), np.exp(-r * t)
    density = np.exp(-(d1**2) / 2) / np.sqrt(2 * np.pi)
    by_time = s * density * v / (2 * np.sqrt(t)) + r * k * discount * ndtr(d2)
    greeks = ndtr(d1), -discount * ndtr(d2), k * t * discount * ndtr(d2), s * density * np.sqrt(t)
    return s * ndtr(d1) - k * discount * ndtr(d2), np.array([*greeks, by_time])


@shown("bundle adjustment: a camera's rotation and place, and a point", "textbook", normal(9) / 2,
       np.array([0.25, -0.5]), note="the rotation's slope by its first term alone",
       plant=[(" + cross(cross(w) @ (np.eye(3)[i] - turn[:, i]))", "")])  # fmt: skip
def _(theta, pixel):
    def cross(v):
        return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])

    w, shift, point = cut(theta, (3,), (3,), (3,))
    square = w @ w
    angle = np.sqrt(square)
    turn = np.eye(3) + np.sin(angle) / angle * cross(w)
    turn = turn + (1 - np.cos(angle)) / square * (cross(w) @ cross(w))
    seen = turn @ point + shift
    off = seen[:2] / (4 + seen[2]) - pixel
    d = flat(off, -(off @ seen[:2]) / (4 + seen[2])) / (4 + seen[2])
    slopes = [(w[i] * cross(w) + cross(cross(w) @ (np.eye(3)[i] - turn[:, i]))) @ turn / square
              for i in range(3)]  # fmt: skip
    return 0.5 * off @ off, flat(np.array([d @ slope @ point for slope in slopes]), d, turn.T @ d)


@shown("convolution by im2col", "textbook", normal(20), normal(3, 3, seed=1),
       note="kernel turned round",
       plant=[("kernel.ravel()))", "kernel.ravel()[::-1]))")])  # fmt: skip
def _(theta, d_out):
    image, kernel = cut(theta, (4, 4), (2, 2))
    corner = 4 * np.arange(3)[:, None] + np.arange(3)
    places = corner.reshape(-1, 1) + np.array([0, 1, 4, 5])
    columns = image.ravel()[places]
    d_image = np.zeros(16)
    np.add.at(d_image, places, np.outer(d_out, kernel.ravel()))
    value = np.sum((columns @ kernel.ravel()).reshape(3, 3) * d_out)
    return value, flat(d_image, d_out.ravel() @ columns)


@shown("LSTM", "textbook", 0.5 * normal(40), normal(2, 2), normal(2, 2, seed=1),
       note="no gradient through earlier outputs",
       plant=[("d_h = sum(", "d_h = 0 * sum(")])  # fmt: skip
def _(theta, xs, d_out):
    w, u, b = cut(theta, (4, 2, 2), (4, 2, 2), (4, 2))
    h = c = np.zeros(2)
    steps, value = [], 0
    for x, d in zip(xs, d_out, strict=True):
        i, f, o = (sigmoid(x @ w[k] + h @ u[k] + b[k]) for k in (0, 1, 2))
        g = np.tanh(x @ w[3] + h @ u[3] + b[3])
        steps.append((x, h, c, i, f, o, g, c * f + i * g, d))
        c = c * f + i * g
        h = o * np.tanh(c)
        value += np.sum(h * d)
    d_w, d_u, d_b, d_h, d_c = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b), 0, 0
    for x, h, before, i, f, o, g, c, d in steps[::-1]:
        d_h = d_h + d
        d_c = d_c + d_h * o * (1 - np.tanh(c) ** 2)
        gates = [d_c * g * i * (1 - i), d_c * before * f * (1 - f),
                 d_h * np.tanh(c) * o * (1 - o), d_c * i * (1 - g**2)]  # fmt: skip
        for k, gate in enumerate(gates):
            d_w[k] += np.outer(x, gate)
            d_u[k] += np.outer(h, gate)
            d_b[k] += gate
        d_h = sum(u[k] @ gate for k, gate in enumerate(gates))
        d_c = d_c * f
    return value, flat(d_w, d_u, d_b)
