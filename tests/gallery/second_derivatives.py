"""Second derivatives by hand, each proved as it is and refuted with a mistake that is easily made.

Each is a function without arguments that returns the proof; its source is changed by one mistake.
"""

from dataclasses import dataclass

import numpy as np
from gallery.programs import changed, cut, flat, normal, sigmoid, softmax

from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts import network
from bbb_numpy.parts.discrete import CategoricalLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.training.laplace import jacobian
from exactgrad import prove, prove_gauss_newton

SECOND_DERIVATIVES = []
X = normal(4, 3)
BITS = np.array([1, 0, 0, 1])
LABELS = np.array([2, 0, 1, 1])


@dataclass(frozen=True)
class SecondDerivative:
    """A proof of a second derivative, with a mistake that makes it a refutation.

    Attributes
    ----------
    title : str
        What is proved.
    call : str
        The call that proves it, in short, for the table of docs/prove.md.
    ask : callable
        Returns the proof.
    change : tuple of two str
        Text that stands once in the source of `ask`, and the mistake that replaces it.
    mistake : str
        The mistake in words.
    """

    title: str
    call: str
    ask: object
    change: tuple
    mistake: str

    def ask_with_mistake(self):
        """Return the proof of the changed function."""
        return changed(self.ask, self.change)()


def shown(title, call, mistake, old, new):
    """Add a proof to the gallery."""

    def add(ask):
        SECOND_DERIVATIVES.append(SecondDerivative(title, call, ask, (old, new), mistake))
        return ask

    return add


@shown("Hessian of logistic regression", "prove(f, w, x, y, order=2)",
       "the slope of the sigmoid without its second factor", "p * (1 - p)", "p")  # fmt: skip
def logistic_regression():
    def value_gradient_hessian(w, x, y):
        z = x @ w
        p = sigmoid(z)
        value = (np.log1p(np.exp(z)) - y * z).sum()
        return value, x.T @ (p - y), (x.T * (p * (1 - p))) @ x

    return prove(value_gradient_hessian, normal(3), X, BITS, order=2)


@shown("Hessian of softmax cross-entropy, from the value alone", "prove(f, w, x, labels, order=2)",
       "the diagonal of diag(p) - p p^T alone",
       "- p[:, :, None] * p[:, None]", "")  # fmt: skip
def cross_entropy():
    def value_and_hessian(w, x, labels):
        p = softmax(x @ w)
        curvature = p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None]
        hessian = np.einsum("ni,nkl,nj->ikjl", x, curvature, x)
        return -np.log(p[np.arange(4), labels]).sum(), hessian

    return prove(value_and_hessian, normal(3, 3), X, LABELS, order=2)


@shown("Hessian of a Poisson GLM with exposures", "prove(f, w, x, counts, exposures, order=2)",
       "the exposures forgotten in the curvature",
       "(x.T * mean)", "(x.T * np.exp(x @ w))")  # fmt: skip
def poisson_regression():
    def value_gradient_hessian(w, x, counts, exposures):
        mean = exposures * np.exp(x @ w)
        value = (mean - counts * np.log(mean)).sum()
        return value, x.T @ (mean - counts), (x.T * mean) @ x

    exposures = np.array([1.5, 0.7, 2.1, 0.3])
    counts = np.array([3, 0, 1, 2])
    return prove(value_gradient_hessian, normal(3), X, counts, exposures, order=2)


@shown("Gauss-Newton vector product of an MLP", "prove_gauss_newton(outputs, product, w, x, ...)",
       "the slope of tanh is missing on the way forward",
       "d_h = (1 - h**2) * ", "d_h = ")  # fmt: skip
def mlp_gauss_newton_product():
    def outputs(theta, x, labels):
        return np.tanh(x @ theta["w"]) @ theta["v"]

    def loss(z, x, labels):
        return -np.log(softmax(z)[np.arange(4), labels]).sum()

    def product(theta, vector, x, labels):
        h = np.tanh(x @ theta["w"])
        d_h = (1 - h**2) * (x @ vector["w"])
        d_z = d_h @ theta["v"] + h @ vector["v"]
        p = softmax(h @ theta["v"])
        upstream = p * (d_z - (p * d_z).sum(axis=1, keepdims=True))
        h_grad = (1 - h**2) * (upstream @ theta["v"].T)
        return {"w": x.T @ h_grad, "v": h.T @ upstream}

    theta = {"w": normal(3, 2), "v": normal(2, 3)}
    return prove_gauss_newton(outputs, product, theta, X, LABELS, loss=loss, product=True)


@shown("precision of this library's Laplace approximation",
       "prove_gauss_newton(outputs, matrix, w, x, ...)", "the prior's precision is added twice",
       "+ np.eye(w.size)", "+ 2 * np.eye(w.size)")  # fmt: skip
def laplace_precision():
    net = MLP((3, 2, 3), "tanh")

    def outputs(w, x, labels):
        f, _ = network.forward(net, w[None], x[None], Buffers())
        return {"f": f[0], "w": w}

    def loss(values, x, labels):
        p = softmax(values["f"])
        return -np.log(p[np.arange(4), labels]).sum() + (values["w"] ** 2).sum() / 2

    def precision(w, x, labels):
        f, slopes, _ = jacobian(net, w, x)
        curvature = CategoricalLikelihood().curvature({}, f[None])[0]
        return np.einsum("bkp,bkl,blq->pq", slopes, curvature, slopes) + np.eye(w.size)

    return prove_gauss_newton(outputs, precision, normal(17), X, LABELS, loss=loss)


@shown("Kronecker factors of one layer (K-FAC) for one row",
       "prove_gauss_newton(layer, factors, w, a, ...)", "the factors in the wrong order",
       "ij,kl->ikjl", "ij,kl->iklj")  # fmt: skip
def kronecker_factors():
    def layer(w, a, label):
        return a @ w

    def loss(z, a, label):
        return -np.log(softmax(z)[label])

    def factors(w, a, label):
        p = softmax(a @ w)
        inputs = np.outer(a, a)
        outputs = np.diag(p) - np.outer(p, p)
        return np.einsum("ij,kl->ikjl", inputs, outputs)

    return prove_gauss_newton(layer, factors, normal(3, 3), normal(3), 1, loss=loss)


@shown("Newton's matrix for Rosenbrock's function", "prove(f, t, order=2)",
       "the Gauss-Newton part of the diagonal alone", "1200 * t[:-1] ** 2 - 400 * t[1:]",
       "800 * t[:-1] ** 2")  # fmt: skip
def rosenbrock():
    def value_gradient_hessian(t):
        rest = t[1:] - t[:-1] ** 2
        gradient = np.zeros_like(t)
        gradient[:-1] = -2 * (1 - t[:-1]) - 400 * t[:-1] * rest
        gradient[1:] += 200 * rest
        diagonal = np.zeros_like(t)
        diagonal[:-1] = 2 + 1200 * t[:-1] ** 2 - 400 * t[1:]
        diagonal[1:] += 200
        hessian = np.diag(diagonal) + np.diag(-400 * t[:-1], 1) + np.diag(-400 * t[:-1], -1)
        return ((1 - t[:-1]) ** 2 + 100 * rest**2).sum(), gradient, hessian

    return prove(value_gradient_hessian, normal(4), order=2)


@shown("Hessian-vector product by Pearlmutter's R-operator", "prove(f, theta, v, x, y, order=2)",
       "R of the slope of tanh is forgotten",
       " - 2 * h * r_h * (error[:, None] * w)", "")  # fmt: skip
def r_operator():
    def value_gradient_product(theta, vector, x, y):
        u, w = cut(theta, (3, 2), (2,))
        r_u, r_w = cut(vector, (3, 2), (2,))
        h = np.tanh(x @ u)
        error = h @ w - y
        h_grad = error[:, None] * w * (1 - h**2)
        gradient = flat(x.T @ h_grad, h.T @ error)
        r_h = (1 - h**2) * (x @ r_u)
        r_error = r_h @ w + h @ r_w
        r_upstream = r_error[:, None] * w + error[:, None] * r_w
        r_h_grad = r_upstream * (1 - h**2) - 2 * h * r_h * (error[:, None] * w)
        product = flat(x.T @ r_h_grad, r_h.T @ error + h.T @ r_error)
        return (error**2).sum() / 2, gradient, product

    return prove(value_gradient_product, normal(8), normal(8, seed=1), X, normal(4), order=2)


@shown("Hessian of Cox's partial likelihood", "prove(f, w, x, events, order=2)",
       "second moments about 0, not about the mean of the risk set",
       " - mean[:, :, None] * mean[:, None]", "")  # fmt: skip
def cox():
    def value_gradient_hessian(w, x, events):  # rows in descending order of time
        risk = np.exp(x @ w)
        total = np.cumsum(risk)
        mean = np.cumsum(risk[:, None] * x, axis=0) / total[:, None]
        squares = np.cumsum(risk[:, None, None] * x[:, :, None] * x[:, None], axis=0)
        spread = squares / total[:, None, None] - mean[:, :, None] * mean[:, None]
        value = (events * (np.log(total) - x @ w)).sum()
        gradient = events @ (mean - x)
        return value, gradient, (events[:, None, None] * spread).sum(axis=0)

    return prove(value_gradient_hessian, normal(3), X, BITS, order=2)


@shown("Hessian of a log determinant, from the value alone", "prove(f, a, order=2)",
       "the inverse is not transposed", "jk,li->ijkl", "kj,il->ijkl")  # fmt: skip
def log_determinant():
    def value_and_hessian(a):
        inverse = np.linalg.inv(a)
        return np.linalg.slogdet(a)[1], -np.einsum("jk,li->ijkl", inverse, inverse)

    return prove(value_and_hessian, normal(3, 3) + 3 * np.eye(3), order=2)
