"""Hand-written gradients of public teaching code, each as the smallest function that does the same.

Nothing is copied: what the code computes (where it divides by N, over which axis it sums, whose
slope it takes) is said once more in the words of this repository. `source` names repository,
file, and for what is wrong the commit that was read. `kind` says what is found:

- right: value and gradient belong together
- wrong: the code declares this value and this gradient for it, and they do not
- factor: the value is printed only, and the gradient is that of its sum instead of its mean
- epsilon: a small number, or a rounded constant, stands in one of the two only
"""

import numpy as np
from gallery.programs import Program, cut, flat, normal, sigmoid, softmax
from scipy.special import digamma, erf, gammaln

HUNT = []


def found(title, source, *arguments, kind="right", note="", repair=()):
    """Add a function to the hunt."""

    def add(function):
        verdict = "proved" if kind == "right" else "refuted"
        HUNT.append(Program(title, source, function, arguments, repair, verdict, kind, note))
        return function

    return add


X, CLASSES = normal(4, 2), np.array([0, 2, 1, 2])
ONE_HOT = np.eye(3, dtype=int)[CLASSES]
BITS = np.array([0, 1, 1, 0])
TREKHLEB, ERIK = "trekhleb/homemade-machine-learning", "eriklindernoren/ML-From-Scratch"

# --- linear classifiers


@found("softmax regression, by loops",
       "AlexCo1d/cs231n: assignment1/cs231n/classifiers/softmax.py at 04856d0", normal(6), X[:3],
       CLASSES[:3], 0.5, kind="wrong",
       note="the right class is subtracted once more, where y[j] == j", repair=[("y[j]", "-1")]
       )  # fmt: skip
def _(theta, x, y, reg):
    w = theta.reshape(2, 3)
    loss, d_w = 0.0, np.zeros_like(w)
    for i in range(len(x)):
        f = x[i] @ w
        f = f - np.max(f)
        loss += np.log(np.sum(np.exp(f))) - f[y[i]]
        d_w[:, y[i]] -= x[i]
        for j in range(3):
            s = np.exp(f[j]) / np.sum(np.exp(f))
            d_w[:, j] += x[i] * (s - (j == y[j]))
    return loss / len(x) + 0.5 * reg * np.sum(w * w), flat(d_w / len(x) + reg * w)


@found("softmax regression",
       "AlirezAkbary/CS231nSolutions: assignment1/cs231n/classifiers/softmax.py at 50f6eb2",
       normal(6), X, CLASSES, 0.5, kind="wrong",
       note="1/N is missing in the gradient of the data, not in that of the weights",
       repair=[("x.T @ p", "x.T @ p / len(x)")])  # fmt: skip
def _(theta, x, y, reg):
    w, rows = theta.reshape(2, 3), np.arange(len(x))
    p = softmax(x @ w)
    loss = -np.sum(np.log(p[rows, y])) / len(x) + reg * np.sum(w * w)
    p[rows, y] -= 1
    return loss, flat(x.T @ p + 2 * reg * w)


@found("softmax regression, by loops",
       "3141bishwa/cs231n: assignment1/cs231n/classifiers/softmax.py at 2777acd", normal(6),
       X[:2], CLASSES[:2], 0.5, kind="wrong",
       note="the loss takes the softmax of the softmax, the gradient that of the scores",
       repair=[("softmax(softmax(x[i] @ w))", "softmax(x[i] @ w)")])  # fmt: skip
def _(theta, x, y, reg):
    w = theta.reshape(2, 3)
    loss, d_w = 0.0, np.zeros_like(w)
    for i in range(len(x)):
        loss += -np.log(softmax(softmax(x[i] @ w))[y[i]])
        for k in range(3):
            d_w[:, k] += x[i] * (softmax(x[i] @ w)[k] - (k == y[i]))
    return loss / len(x) + 0.5 * reg * np.sum(w * w), flat(d_w / len(x) + reg * w)


@found("support vector machine, by loops",
       "0x1997/cs231n: assignment1/cs231n/classifiers/linear_svm.py", normal(6), X, CLASSES, 0.5
       )  # fmt: skip
def _(theta, x, y, reg):
    w = theta.reshape(3, 2)
    loss, d_w = 0.0, np.zeros(w.shape)
    for i in range(len(x)):
        scores = w @ x[i]
        for j in range(3):
            margin = scores[j] - scores[y[i]] + 1
            if j != y[i] and margin > 0:
                loss += margin
                d_w[j] += x[i]
                d_w[y[i]] += -x[i]
    loss /= len(x)
    d_w /= len(x)
    return loss + 0.5 * reg * np.sum(w * w), flat(d_w + reg * w)


@found("logistic regression with L2",
       "ddbourgin/numpy-ml: numpy_ml/linear_models/logistic.py at 4cd83ce", normal(2), X, BITS,
       0.5, kind="wrong", note="the penalty's slope has the other sign",
       repair=[("+ gamma * beta)", "- gamma * beta)")])  # fmt: skip
def _(beta, x, y, gamma):
    p = sigmoid(x @ beta)
    nll = -np.log(p[y == 1]).sum() - np.log(1 - p[y == 0]).sum()
    penalty = gamma / 2 * np.linalg.norm(beta, ord=2) ** 2
    return (penalty + nll) / len(x), -((y - p) @ x + gamma * beta) / len(x)


@found("logistic regression with L2, the first weight free",
       f"{TREKHLEB}: homemade/logistic_regression/logistic_regression.py",
       normal(2), X, BITS, 0.5)  # fmt: skip
def _(theta, x, y, lam):
    theta, y, m = theta.reshape(-1, 1), y.reshape(-1, 1), len(x)
    p = sigmoid(x @ theta)
    cost = y[y == 1].T @ np.log(p[y == 1]) + (1 - y[y == 0]).T @ np.log(1 - p[y == 0])
    penalty = lam / (2 * m) * (theta[1:, [0]].T @ theta[1:, [0]])
    grad = x.T @ (p - y) / m + lam / m * theta
    grad[0] = x[:, [0]].T @ (p - y) / m
    return (-1 / m * cost + penalty)[0][0], grad.T.flatten()


@found("linear regression with L2",
       f"{TREKHLEB}: homemade/linear_regression/linear_regression.py at d37a574",
       normal(2), X, normal(4), 0.5, kind="wrong",
       note="1 / 2 * m is m / 2; the intercept's slope is added twice, and penalised",
       repair=[("(1 / 2 * m)", "1 / (2 * m)"), ("grad[0] + x[:, 0].T @ off", "x[:, 0].T @ off")]
       )  # fmt: skip
def _(theta, x, y, lam):
    m, off = len(x), x @ theta - y
    grad = lam / m * theta + off.T @ x / m
    grad[0] = grad[0] + x[:, 0].T @ off / m
    return (1 / 2 * m) * (off.T @ off + lam * (theta[1:].T @ theta[1:])), grad


@found("penalty of the lasso",
       f"{ERIK}: mlfromscratch/supervised_learning/regression.py at 0d1fadd",
       normal(3), 0.5, kind="wrong",
       note="the value is the Euclidean length, the slope that of sum |w|",
       repair=[("np.linalg.norm(w)", "np.abs(w).sum()")])  # fmt: skip
def _(w, alpha):
    return alpha * np.linalg.norm(w), alpha * np.sign(w)


@found("ridge regression",
       f"{ERIK}: mlfromscratch/supervised_learning/regression.py at 0d1fadd",
       normal(2), X, normal(4), 0.5, kind="factor", note="error of the mean, gradient of the sum",
       repair=[("-(y - f) @ x", "-(y - f) @ x / len(x)")])  # fmt: skip
def _(w, x, y, alpha):
    f = x @ w
    return np.mean(0.5 * (y - f) ** 2 + alpha * 0.5 * (w.T @ w)), -(y - f) @ x + alpha * w


@found("objective of boosting, focal loss",
       "MaxHalford/maxhalford.github.io: content/blog/lightgbm-focal-loss.md", normal(4), BITS,
       0.25)  # fmt: skip
def _(z, y, alpha):
    p = np.clip(sigmoid(z), 1e-15, 1 - 1e-15)
    pt, at = np.where(y, p, 1 - p), np.where(y, alpha, 1 - alpha)
    loss = -at * (1 - pt) ** 2 * np.log(pt)
    return loss.sum(), at * (2 * y - 1) * (1 - pt) ** 2 * (2 * pt * np.log(pt) + pt - 1)


# --- layers, activations and losses


@found("GELU by tanh",
       "ddbourgin/numpy-ml: numpy_ml/neural_nets/activations/activations.py at 0f5b1ce",
       normal(3), kind="wrong",
       note="the slope is that of x Phi(x) with Phi by tanh: not the value's",
       repair=[("x * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)",
                "0.5 * x * (1 - t**2) * np.sqrt(2 / np.pi) * (1 + 0.044715 * (3 * x**2))")]
       )  # fmt: skip
def _(x):
    t = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    slope = 0.5 + 0.5 * t + x * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    return (0.5 * x * (1 + t)).sum(), slope


@found("second derivative of GELU",
       "ddbourgin/numpy-ml: numpy_ml/neural_nets/activations/activations.py at 0f5b1ce",
       normal(3), kind="wrong",
       note="1 / 2 * sqrt(2) is not 1 / (2 sqrt(2)), there is a 1 too many, x is missing",
       repair=[("(1 / 2 * np.sqrt(2)) * (1 + two(s) + four(s) / np.sqrt(2))",
                "two(s) / np.sqrt(2) + x * four(s) / 4")]
       )  # fmt: skip
def _(x):
    def two(u):
        return 2 / np.sqrt(np.pi) * np.exp(-(u**2))

    def four(u):
        return -4 * u * np.exp(-(u**2)) / np.sqrt(np.pi)

    s = x / np.sqrt(2)
    slope = 0.5 + 0.5 * erf(s) + (0.5 * x * two(s)) / np.sqrt(2)
    return slope.sum(), (1 / 2 * np.sqrt(2)) * (1 + two(s) + four(s) / np.sqrt(2))


@found("GELU by tanh", "AkiRusProd/numpy-transformer: transformer/activations.py at 0964208",
       normal(3), kind="epsilon", note="the slope's constants are rounded to six digits"
       )  # fmt: skip
def _(x):
    value = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * np.power(x, 3))))
    inner = 0.0356774 * np.power(x, 3) + 0.797885 * x
    sech = 2 / (np.exp(inner) + np.exp(-inner))
    outer = 0.0535161 * np.power(x, 3) + 0.398942 * x
    return value.sum(), 0.5 * np.tanh(inner) + outer * np.power(sech, 2) + 0.5


@found("ELU, SELU, softplus and a hard sigmoid",
       "ddbourgin/numpy-ml: numpy_ml/neural_nets/activations/activations.py at 0f5b1ce", normal(4)
       )  # fmt: skip
def _(x):
    alpha, scale, e = 1.6732632423543772, 1.0507009873554805, np.exp(x)
    selu = scale * np.where(x > 0, x, alpha * (e - 1))
    value = np.where(x > 0, x, e - 1) + selu + np.log(e + 1) + np.clip(0.2 * x + 0.5, 0.0, 1.0)
    slope = np.where(x > 0, np.ones_like(x), e) + e / (e + 1)
    slope = slope + np.where(x >= 0, np.ones_like(x) * scale, e * alpha * scale)
    return value.sum(), slope + np.where((x >= -2.5) & (x <= 2.5), 0.2, 0)


@found("sigmoid layer", "parasdahal/deepnet: deepnet/layers.py at 2ccde25", normal(3),
       kind="wrong",
       note="the layer computes 1 / (1 + e^x), and takes the slope of 1 / (1 + e^-x)",
       repair=[("np.exp(x)", "np.exp(-x)")])  # fmt: skip
def _(x):
    out = 1.0 / (1.0 + np.exp(x))
    return out.sum(), out * (1 - out)


@found("softmax layer and its cross-entropy",
       f"{ERIK}: mlfromscratch/deep_learning/loss_functions.py at 203c955",
       normal(12), ONE_HOT, kind="wrong",
       note="the loss counts log(1 - p) of the other classes too, p - y does not",
       repair=[("- (1 - y) * np.log(1 - p)", "")])  # fmt: skip
def _(theta, y):
    p = softmax(theta.reshape(y.shape))
    loss = -y * np.log(p) - (1 - y) * np.log(1 - p)
    return loss.sum(), flat((-(y / p) + (1 - y) / (1 - p)) * p * (1 - p))


@found("cross-entropy of a softmax",
       "ddbourgin/numpy-ml: numpy_ml/neural_nets/losses/losses.py at 712dfe4", normal(12),
       ONE_HOT, kind="epsilon", note="log(p + 2e-16) in the value only",
       repair=[("p + np.finfo(float).eps", "p")])  # fmt: skip
def _(theta, y):
    p = softmax(theta.reshape(y.shape))
    return -np.sum(y * np.log(p + np.finfo(float).eps)), flat(p - y)


@found("critic of a WGAN with gradient penalty",
       "ddbourgin/numpy-ml: numpy_ml/neural_nets/losses/losses.py at 712dfe4", normal(8),
       kind="wrong", note="the slopes of the critic's two means have the other sign",
       repair=[("-1 / 2 *", "1 / 2 *"), ("flat(fake, 1 / 2", "flat(fake, -1 / 2"),
       (" + np.finfo(float).eps", "")])  # fmt: skip
def _(theta):
    y_fake, y_real, g = cut(theta, (2,), (2,), (2, 2))
    length = np.linalg.norm(g, axis=1, keepdims=True)
    loss = y_fake.mean() - y_real.mean() + 10 * ((length - 1) ** 2).mean()
    length = length + np.finfo(float).eps
    fake = -1 / 2 * np.ones_like(y_fake)
    return loss, flat(fake, 1 / 2 * np.ones_like(y_real), (2 / 2) * 10 * (length - 1) * g / length)


@found("batch normalisation", "Burton2000/CS231n-2017: assignment2/cs231n/layers.py", normal(14),
       normal(4, 2, seed=1))  # fmt: skip
def _(theta, d_out):
    x, gamma, beta = cut(theta, (4, 2), (2,), (2,))[:3]
    n, mean, spread = 4, np.mean(x, axis=0), np.sqrt(np.var(x, axis=0) + 1e-5)
    hat = (x - mean) / spread
    d_hat = d_out * gamma
    d_spread = np.sum(d_hat * (x - mean), axis=0) * (-1 / spread**2)
    d_square = 1 / n * (d_spread * 0.5 * (1 / spread)) * np.ones_like(d_out)
    d_x = d_hat / spread + d_square * 2 * (x - mean)
    d_x = d_x + 1 / n * (-1 * np.sum(d_x, axis=0)) * np.ones_like(d_out)
    grad = flat(d_x, np.sum(d_out * hat, axis=0), np.sum(d_out, axis=0), np.zeros(2))
    return np.sum((gamma * hat + beta) * d_out), grad


@found("layer normalisation",
       "AkiRusProd/numpy-transformer: transformer/layers/base/layer_norm.py at 0477575",
       normal(8), normal(4), normal(2, 4, seed=1), kind="wrong",
       note="gamma stands before the sums instead of within: right while all gammas are the same",
       repair=[("x, d = theta.reshape(2, 4), d_out", "x, d = theta.reshape(2, 4), d_out * gamma"),
       ("/ 4 * gamma", "/ 4")])  # fmt: skip
def _(theta, gamma, d_out):
    x, d = theta.reshape(2, 4), d_out
    off = x - np.mean(x, axis=1, keepdims=True)
    inverse = 1 / np.sqrt(np.var(x, axis=1, keepdims=True) + 0.001)
    d_x = 4 * d - np.sum(d, axis=1, keepdims=True)
    d_x = d_x - off * np.power(inverse, 2) * np.sum(d * off, axis=1, keepdims=True)
    return np.sum(gamma * off * inverse * d_out), flat(1 / 4 * gamma * inverse * d_x)


@found("self-attention",
       "AkiRusProd/numpy-transformer: transformer/layers/combined/self_attention.py at 0477575",
       normal(24), normal(2, 2, 2, seed=1), kind="wrong",
       note="the softmax divides its gradient by the number of sequences, all other layers do not",
       repair=[(" / len(q)", "")])  # fmt: skip
def _(theta, d_out):
    q, k, v = cut(theta, (2, 2, 2), (2, 2, 2), (2, 2, 2))
    a = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(2))
    d_a = d_out @ v.transpose(0, 2, 1)
    jacobian = a[..., None] * np.eye(2) - a[..., None] @ a[..., None, :]
    d_s = (d_a[..., None, :] @ jacobian).reshape(d_a.shape) / len(q)
    d_s = d_s / np.sqrt(2)
    d_k = (q.transpose(0, 2, 1) @ d_s).transpose(0, 2, 1)
    return np.sum((a @ v) * d_out), flat(d_s @ k, d_k, a.transpose(0, 2, 1) @ d_out)


@found("convolution and max pooling", "Alescontrela/Numpy-CNN: CNN/forward.py, CNN/backward.py",
       normal(34), normal(1, 2, 2, seed=1))  # fmt: skip
def _(theta, d_out):
    image, kernel, bias = cut(theta, (1, 5, 5), (1, 2, 2), (1, 1))[:3]
    conv, pooled = np.zeros((1, 4, 4)), np.zeros((1, 2, 2))
    for y, x in np.ndindex(4, 4):
        conv[0, y, x] = np.sum(kernel * image[:, y : y + 2, x : x + 2]) + bias[0, 0]
    d_conv, d_image, d_kernel = np.zeros((1, 4, 4)), np.zeros((1, 5, 5)), np.zeros((1, 2, 2))
    for y, x in np.ndindex(2, 2):
        window = conv[0, 2 * y : 2 * y + 2, 2 * x : 2 * x + 2]
        pooled[0, y, x] = np.max(window)
        a, b = np.unravel_index(np.nanargmax(window), window.shape)
        d_conv[0, 2 * y + a, 2 * x + b] = d_out[0, y, x]
    for y, x in np.ndindex(4, 4):
        d_kernel += d_conv[0, y, x] * image[:, y : y + 2, x : x + 2]
        d_image[:, y : y + 2, x : x + 2] += d_conv[0, y, x] * kernel
    return np.sum(pooled * d_out), flat(d_image, d_kernel, np.sum(d_conv[0]), np.zeros(4))


# --- networks


@found("network 2-3-3, tanh and softmax", "dennybritz/nn-from-scratch: ann_classification.py",
       normal(21), X, CLASSES, 0.5, kind="factor",
       note="loss of the mean, gradient of the sum, for the weights too",
       repair=[("return 1 / len(x) * loss", "return loss")])  # fmt: skip
def _(theta, x, y, reg):
    w1, b1, w2, b2 = cut(theta, (2, 3), (1, 3), (3, 3), (1, 3))
    a1, rows = np.tanh(x @ w1 + b1), range(len(x))
    p = np.exp(a1 @ w2 + b2)
    p = p / np.sum(p, axis=1, keepdims=True)
    loss = np.sum(-np.log(p[rows, y])) + reg / 2 * (np.sum(np.square(w1)) + np.sum(np.square(w2)))
    p[rows, y] -= 1
    d2 = p @ w2.T * (1 - np.power(a1, 2))
    grad = flat(x.T @ d2 + reg * w1, d2.sum(0), a1.T @ p + reg * w2, np.sum(p, 0, keepdims=True))
    return 1 / len(x) * loss, grad


@found("network 2-2-3 of sigmoids, with L1 and L2",
       "rasbt/python-machine-learning-book: code/ch12/neuralnet.py at a5aaa14", normal(15), X,
       ONE_HOT.T, 0.5, 0.25, kind="wrong",
       note="the penalty is l1 / 2 sum |w|, its slope l1 sign(w)", repair=[("l1 / 2.0", "l1")]
       )  # fmt: skip
def _(theta, x, y, l1, l2):
    w1, w2 = cut(theta, (2, 3), (3, 3))
    a1 = np.ones((len(x), 3))
    a1[:, 1:] = x
    a2 = np.ones((3, len(x)))
    a2[1:, :] = sigmoid(w1 @ a1.T)
    a3 = sigmoid(w2 @ a2)
    cost = np.sum(-y * np.log(a3) - (1.0 - y) * np.log(1.0 - a3))
    cost += l1 / 2.0 * (np.abs(w1[:, 1:]).sum() + np.abs(w2[:, 1:]).sum())
    cost += l2 / 2.0 * (np.sum(w1[:, 1:] ** 2) + np.sum(w2[:, 1:] ** 2))
    s3 = a3 - y
    s2 = (w2.T @ s3 * a2 * (1 - a2))[1:, :]
    grad1, grad2 = s2 @ a1, s3 @ a2.T
    grad1[:, 1:] += l2 * w1[:, 1:] + l1 * np.sign(w1[:, 1:])
    grad2[:, 1:] += l2 * w2[:, 1:] + l1 * np.sign(w2[:, 1:])
    return cost, flat(grad1, grad2)


@found("network 2-2-3 of sigmoids, with L2",
       f"{TREKHLEB}: homemade/neural_network/multilayer_perceptron.py at 4f970f9",
       normal(15), X, CLASSES, 0.5, kind="wrong",
       note="the penalty's slope is lambda/m times the summed gradient of the data, "
       "not the weights",
       repair=[("delta[:, 1:]])", "w[:, 1:]])"),
       ("for delta in (d1, d2)", "for w, delta in [(w1, d1), (w2, d2)]")])  # fmt: skip
def _(theta, x, labels, lam):
    w1, w2, m = *cut(theta, (2, 3), (3, 3)), len(x)
    y = np.eye(3)[labels]
    a1 = np.hstack([np.ones((m, 1)), x])
    a2 = np.hstack([np.ones((m, 1)), sigmoid(a1 @ w1.T)])
    p = sigmoid(a2 @ w2.T)
    cost = -(np.sum(np.log(p[y == 1])) + np.sum(np.log(1 - p[y == 0]))) / m
    cost = cost + lam / (2 * m) * (np.sum(w1[:, 1:] ** 2) + np.sum(w2[:, 1:] ** 2))
    d1, d2 = (((p - y) @ w2) * a2 * (1 - a2))[:, 1:].T @ a1, (p - y).T @ a2
    none = [np.zeros((2, 1)), np.zeros((3, 1))]
    grads = [delta / m + lam / m * np.hstack([none[len(delta) - 2], delta[:, 1:]])
             for delta in (d1, d2)]  # fmt: skip
    return cost, flat(*grads)


@found("network 2-3-2 of sigmoids, with L2",
       "mnielsen/neural-networks-and-deep-learning: src/network2.py", normal(17), X, BITS, 0.5
       )  # fmt: skip
def _(theta, data, labels, lam):
    w1, b1, w2, b2 = cut(theta, (3, 2), (3, 1), (2, 3), (2, 1))
    n, cost, grads = len(data), 0.0, [np.zeros(w.shape) for w in (w1, b1, w2, b2)]
    for x, label in zip(data, labels, strict=True):
        y = np.zeros((2, 1))
        y[label] = 1.0
        a1 = sigmoid(w1 @ x.reshape(2, 1) + b1)
        a2 = sigmoid(w2 @ a1 + b2)
        cost += np.sum(np.nan_to_num(-y * np.log(a2) - (1 - y) * np.log(1 - a2))) / n
        d2 = a2 - y
        d1 = w2.T @ d2 * (a1 * (1 - a1))
        new = d1 @ x.reshape(1, 2), d1, d2 @ a1.T, d2
        grads = [grad + one for grad, one in zip(grads, new, strict=True)]
    cost += 0.5 * (lam / n) * sum(np.linalg.norm(w) ** 2 for w in (w1, w2))
    penalties = lam / n * w1, 0, lam / n * w2, 0
    return cost, flat(*(grad / n + more for grad, more in zip(grads, penalties, strict=True)))


@found("network of ReLU with dropout", "wiseodd/hipsternet: hipsternet/neuralnet.py", normal(21),
       X, CLASSES, (normal(4, 3) > -0.5) * 2, 0.5)  # fmt: skip
def _(theta, x, y, mask, lam):
    w1, b1, w2, b2 = cut(theta, (2, 3), (1, 3), (3, 3), (1, 3))
    m, h = len(x), x @ w1 + b1
    h[h < 0] = 0
    h *= mask
    p = softmax(h @ w2 + b2)
    loss = np.sum(-np.log(p[range(m), y])) / m + 0.5 * lam * (np.sum(w1 * w1) + np.sum(w2 * w2))
    d_y = p.copy()
    d_y[range(m), y] -= 1.0
    d_y /= m
    d_h = d_y @ w2.T
    d_h[h <= 0] = 0
    d_h *= mask
    return loss, flat(x.T @ d_h + lam * w1, d_h.sum(0), h.T @ d_y + lam * w2, d_y.sum(0))


@found("sparse autoencoder", "siddharth-agrawal/Sparse-Autoencoder: sparseAutoencoder.py",
       normal(17), np.abs(normal(2, 4)) / 4, 0.125, 0.5, 3.0)  # fmt: skip
def _(theta, x, rho, lam, beta):
    w1, w2, b1, b2 = cut(theta, (3, 2), (2, 3), (3, 1), (2, 1))
    m, hidden = x.shape[1], sigmoid(w1 @ x + b1)
    out = sigmoid(w2 @ hidden + b2)
    active, diff = np.sum(hidden, axis=1) / m, out - x
    kl = rho * np.log(rho / active) + (1 - rho) * np.log((1 - rho) / (1 - active))
    cost = 0.5 * np.sum(np.multiply(diff, diff)) / m + beta * np.sum(kl)
    cost = cost + 0.5 * lam * (np.sum(np.multiply(w1, w1)) + np.sum(np.multiply(w2, w2)))
    d_kl = beta * (-(rho / active) + (1 - rho) / (1 - active))
    d_out = diff * (out * (1 - out))
    d_hid = (w2.T @ d_out + d_kl[:, None]) * (hidden * (1 - hidden))
    d_w1, d_w2 = d_hid @ x.T / m + lam * w1, d_out @ hidden.T / m + lam * w2
    return cost, flat(d_w1, d_w2, np.sum(d_hid, axis=1) / m, np.sum(d_out, axis=1) / m)


@found("variational autoencoder", "kwj2104/Simple-Variational-Autoencoder: vae.py at 1abdbfe",
       normal(10), np.abs(normal(2, 2)) / 4, normal(2, 1), normal(2, 1, seed=1), 1e-7,
       kind="wrong",
       note="noise is drawn twice: the gradient's is not the sample's; epsilon in the value only",
       repair=[("* noise\n", "* other\n"), ("eps * 1", "eps * 0")])  # fmt: skip
def _(theta, x, noise, other, eps):
    w_m, b_m, w_v, b_v, u, c = cut(theta, (2, 1), (1,), (2, 1), (1,), (1, 2), (2,))
    eps = eps * 1
    mu, log_var = x @ w_m + b_m, x @ w_v + b_v
    z = mu + np.exp(log_var * 0.5) * noise
    out = sigmoid(z @ u + c)
    loss = np.sum(-x * np.log(out + eps) - (1 - x) * np.log(1 - out + eps))
    loss += -0.5 * np.sum(1 + log_var - np.power(mu, 2) - np.exp(log_var))
    d_l = (-x * (1 / out) + (1 - x) * (1 / (1 - out))) * out * (1 - out)
    d_mu = d_l @ u.T + mu
    d_v = (d_l @ u.T) * np.exp(log_var * 0.5) * 0.5 * other - 0.5 * (1 - np.exp(log_var))
    return loss, flat(x.T @ d_mu, d_mu.sum(0), x.T @ d_v, d_v.sum(0), z.T @ d_l, d_l.sum(0))


# --- sequences


@found("characters by a recurrent network, gradient clipped",
       "eliben/deep-learning-samples: min-char-rnn/min-char-rnn.py", 0.5 * normal(21),
       normal(2, 1), [0, 2, 1], [2, 1, 0])  # fmt: skip
def _(theta, start, inputs, targets):
    w_x, w_h, w_y, b_h, b_y = cut(theta, (2, 3), (2, 2), (3, 2), (2, 1), (3, 1))
    xs, hs, ps, loss = {}, {-1: np.copy(start)}, {}, 0
    for t in range(3):
        xs[t] = np.zeros((3, 1))
        xs[t][inputs[t]] = 1
        hs[t] = np.tanh(w_x @ xs[t] + w_h @ hs[t - 1] + b_h)
        y = w_y @ hs[t] + b_y
        ps[t] = np.exp(y) / np.sum(np.exp(y))
        loss += -np.log(ps[t][targets[t], 0])
    grads = [np.zeros_like(w) for w in (w_x, w_h, w_y, b_h, b_y)]
    d_next = np.zeros_like(hs[0])
    for t in reversed(range(3)):
        d_y = np.copy(ps[t])
        d_y[targets[t]] -= 1
        d = (1 - hs[t] * hs[t]) * (w_y.T @ d_y + d_next)
        new = d @ xs[t].T, d @ hs[t - 1].T, d_y @ hs[t].T, d, d_y
        grads = [grad + one for grad, one in zip(grads, new, strict=True)]
        d_next = w_h.T @ d
    for grad in grads:
        np.clip(grad, -5, 5, out=grad)
    return loss, flat(*grads)


@found("gated recurrent unit", "erikvdplas/gru-rnn: main.py", 0.5 * normal(30), normal(2, 1),
       normal(3, 2, 1), np.array([0, 1, 1]))  # fmt: skip
def _(theta, start, x, targets):
    w, u, b = cut(theta, (3, 2, 2), (3, 2, 2), (3, 2, 1))
    steps, h, loss, grads = [], start, 0, [np.zeros_like(part) for part in (w, u, b)]
    for t in range(3):
        z, r = (sigmoid(w[k] @ x[t] + u[k] @ h + b[k]) for k in (0, 1))
        hat = np.tanh(w[2] @ x[t] + u[2] @ np.multiply(r, h) + b[2])
        new = np.multiply(z, h) + np.multiply(1 - z, hat)
        p = softmax(new, axis=0)
        loss += -np.sum(np.log(p[targets[t]]))
        steps.append((h, z, r, hat, p))
        h = new
    d_next = np.zeros_like(h)
    for t in reversed(range(3)):
        h, z, r, hat, d_y = steps[t]
        d_y[targets[t]] -= 1
        d_h = d_y + d_next
        d_hat = np.multiply(d_h, 1 - z) * (1 - hat**2)
        d_rh = u[2].T @ d_hat
        d_r, d_z = np.multiply(d_rh, h) * r * (1 - r), np.multiply(d_h, h - hat) * z * (1 - z)
        for k, (d, inner) in enumerate([(d_z, h), (d_r, h), (d_hat, np.multiply(r, h))]):
            grads[0][k] += d @ x[t].T
            grads[1][k] += d @ inner.T
            grads[2][k] += d
        d_next = u[0].T @ d_z + np.multiply(d_h, z) + np.multiply(d_rh, r) + u[1].T @ d_r
    return loss, flat(*grads, np.zeros(0))


@found("LSTM without a tanh of its cell", "nicodjimenez/lstm: lstm.py", 0.5 * normal(40),
       normal(3, 2), np.array([0.5, -0.25, 0.125]))  # fmt: skip
def _(theta, xs, targets):
    w, b = cut(theta, (4, 2, 4), (4, 2))
    h = s = np.zeros(2)
    steps, loss = [], 0
    for x, y in zip(xs, targets, strict=True):
        xc = np.hstack((x, h))
        g, (i, f, o) = np.tanh(w[0] @ xc + b[0]), (sigmoid(w[k] @ xc + b[k]) for k in (1, 2, 3))
        steps.append((xc, g, i, f, o, s, g * i + s * f))
        s = steps[-1][-1]
        h = s * o
        loss += (h[0] - y) ** 2
    d_w, d_b, d_h, d_s = np.zeros_like(w), np.zeros_like(b), np.zeros(2), np.zeros(2)
    for (xc, g, i, f, o, before, s), y in zip(steps[::-1], targets[::-1], strict=True):
        d_h = d_h + np.zeros(2)
        d_h[0] += 2 * ((s * o)[0] - y)
        d_s = o * d_h + d_s
        d = [(1.0 - g**2) * i * d_s, (1.0 - i) * i * g * d_s,
             (1.0 - f) * f * before * d_s, (1.0 - o) * o * s * d_h]  # fmt: skip
        d_xc = np.zeros_like(xc)
        for k in range(4):
            d_w[k] += np.outer(d[k], xc)
            d_b[k] += d[k]
            d_xc += w[k].T @ d[k]
        d_s, d_h = d_s * f, d_xc[2:]
    return loss, flat(d_w, d_b)


@found("LSTM", "rushter/MLAlgorithms: mla/neuralnet/layers/recurrent/lstm.py at feaa836",
       0.5 * normal(40), normal(2, 2), normal(2, 2, seed=1), kind="wrong",
       note="slopes are taken at the gates' values; no gradient through earlier outputs"
       )  # fmt: skip
def _(theta, xs, d_out):
    def slope(z):
        return sigmoid(z) * (1 - sigmoid(z))

    def flatter(z):
        return 1 - np.tanh(z) ** 2

    w, u, b = cut(theta, (4, 2, 2), (4, 2, 2), (4, 2))
    h = c = np.zeros(2)
    steps, value = [], 0
    for x, d in zip(xs, d_out, strict=True):
        i, f, o = (sigmoid(x @ w[k] + h @ u[k] + b[k]) for k in (0, 1, 2))
        g = np.tanh(x @ w[3] + h @ u[3] + b[3])
        steps.append((x, h, c, i, f, o, g, c * f + i * g, d))
        c = steps[-1][-2]
        h = o * np.tanh(c)
        value += np.sum(h * d)
    d_w, d_u, d_b, d_next = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b), 0
    for x, h, before, i, f, o, g, c, d in steps[::-1]:
        d_c = d * o * flatter(c) + d_next
        of_o, of_f = d * np.tanh(c) * slope(o), d_c * before * slope(f)
        of_i, of_g = d_c * g * slope(i), d_c * i * flatter(g)
        for k, gate in enumerate([of_i, of_f, of_o, of_g]):
            d_w[k] += np.outer(x, gate)
            d_u[k] += np.outer(h, gate)
            d_b[k] += gate
        d_next = d_c * f
    return value, flat(d_w, d_u, d_b)


@found("conditional random field of a chain", "lancifollia/crf: crf.py", normal(6), [0, 1, 1, 0],
       normal(4, 2), 8.0)  # fmt: skip
def _(theta, labels, x, variance):
    emit, move = cut(theta, (2,), (2, 2))  # features: a weight of each label, and of each pair
    table = [np.exp(x[t] * emit + (move if t else 0)) for t in range(4)]
    alpha, beta = [table[0]], [np.ones(2)]
    for t in range(1, 4):
        alpha.append(alpha[-1] @ table[t])
        beta.insert(0, table[4 - t] @ beta[0])
    z = sum(alpha[-1])
    d_emit, d_move, score = np.zeros(2), np.zeros((2, 2)), 0
    for t, label in enumerate(labels):
        score += x[t, label] * emit[label] + (move[labels[t - 1], label] if t else 0)
        d_emit[label] += x[t, label]
        d_emit -= x[t] * alpha[t] * beta[t] / z
        if t:
            d_move[labels[t - 1], label] += 1
            d_move -= alpha[t - 1][:, None] * table[t] * beta[t] / z
    value = score - np.log(z) - np.sum(np.dot(theta, theta)) / (variance * 2)
    return -value, -(flat(d_emit, d_move) - theta / variance)


@found("word2vec, negative sampling, a word drawn twice", "tunamonster/cs224d: q3_word2vec.py",
       normal(8), [2, 0, 1, 0])  # fmt: skip
def _(theta, drawn):
    word, out = cut(theta, (2,), (3, 2))
    signs, d_out = np.array([1] + [-1] * (len(drawn) - 1)), np.zeros_like(out)
    some = out[drawn, :]
    a = sigmoid(some @ word * signs)
    delta = signs * (a - 1)
    d_some = delta.reshape(-1, 1) @ word.reshape(-1, 1).T
    for k, index in enumerate(drawn):
        d_out[index] += d_some[k, :]
    return -np.sum(np.log(a)), flat(some.T @ delta, d_out)


@found("GloVe, a pair of words", "hans/glove.py: glove.py at 004c657 (23c6360 has it repaired)",
       normal(6), 7.5, 0.25, kind="wrong",
       note="the weight of the pair is missing in the gradient",
       repair=[("off = inner", "off = weight * inner")])  # fmt: skip
def _(theta, count, weight):
    one, other, b, c = cut(theta, (2,), (2,), (1,), (1,))
    inner = one @ other + b[0] + c[0] - np.log(count)
    off = inner
    return 0.5 * weight * inner**2, flat(off * other, off * one, off, off)


# --- distances and densities


NEAR = (1 - np.eye(4)) * np.exp(-abs(X[:, :1] - X[:, 0]))
NEAR = NEAR / np.sum(NEAR)


@found("t-SNE", "nlml/tsne_raw: src/tsne.py", normal(8), NEAR,
       note="where p is symmetric, 0 on its diagonal, and sums to 1")  # fmt: skip
def _(theta, p):
    y, apart = theta.reshape(4, 2), ~np.eye(4, dtype=bool)
    squares = np.sum(np.square(y), 1)
    near = np.power(1.0 + (np.add(np.add(-2 * y @ y.T, squares).T, squares)), -1)
    np.fill_diagonal(near, 0.0)
    q = near / np.sum(near)
    pull = np.expand_dims(p - q, 2) * np.expand_dims(near, 2)
    grad = 4.0 * (pull * (np.expand_dims(y, 1) - np.expand_dims(y, 0))).sum(1)
    return np.sum(p[apart] * np.log(p[apart] / q[apart])), flat(grad)


@found("t-SNE", "BearCleverProud/Multilingual-Word-Embedding: tsne.py of L. van der Maaten",
       normal(8), NEAR, kind="factor", note="a factor 4 is left to the learning rate",
       repair=[("np.sum(np.tile", "4 * np.sum(np.tile")])  # fmt: skip
def _(theta, p):
    y, n, apart = theta.reshape(4, 2), 4, ~np.eye(4, dtype=bool)
    squares = np.sum(np.square(y), 1)
    num = 1.0 / (1.0 + np.add(np.add(-2.0 * np.dot(y, y.T), squares).T, squares))
    num[range(n), range(n)] = 0.0
    q, d_y = num / np.sum(num), np.zeros((n, 2))
    for i in range(n):
        d_y[i, :] = np.sum(np.tile((p - q)[:, i] * num[:, i], (2, 1)).T * (y[i, :] - y), 0)
    return np.sum(p[apart] * np.log(p[apart] / q[apart])), flat(d_y)


@found("neighbourhood components", "RolT/NCA-python: nca_cost.py at 0c6315f", normal(4), X,
       CLASSES, kind="wrong",
       note="the value has e^-|d|, the gradient is for e^-|d|^2, with p^2 in place of p",
       repair=[("np.sqrt(np.sum(d * d, -1) + same) - same", "np.sum(d * d, -1)"),
       ("(p**2)[..., None, None]", "p[..., None, None]")])  # fmt: skip
def _(theta, x, y):
    a, same = theta.reshape(2, 2), np.eye(4)
    d = (x @ a.T)[:, None] - (x @ a.T)[None]
    e = np.exp(-(np.sqrt(np.sum(d * d, -1) + same) - same))
    p = e / np.sum(e, axis=1)[:, None]
    alike = y == y[:, None]
    own = np.sum(p * alike, axis=1)
    xx = x[:, None] - x[None]
    xx = (p**2)[..., None, None] * xx[..., None] * xx[..., None, :]
    grad = np.sum(own[:, None, None] * np.sum(xx, axis=1), axis=0) - np.sum(xx[alike], axis=0)
    return len(x) - np.sum(own), -flat(2 * a @ grad)


@found("metric of kernel regression",
       "scikit-learn-contrib/metric-learn: metric_learn/mlkr.py at 010b34a", normal(4), X,
       normal(4), kind="wrong",
       note="(f_i - y_i)(f_j - y_j) stands where (f_i - y_i)(f_i - y_j) should",
       repair=[("np.outer(off, off) / k.sum(axis=0)", "off * (f - y[:, None]) / k.sum(axis=0)")]
       )  # fmt: skip
def _(theta, x, y):
    a, d = theta.reshape(2, 2), x[None] - x[:, None]
    k = np.exp(-np.sum((d @ a.T) ** 2, -1))
    np.fill_diagonal(k, 0)
    f = k @ y / k.sum(axis=0)
    off = f - y
    np.fill_diagonal(k, 0)
    w = 2 * k * (np.outer(off, off) / k.sum(axis=0))
    m = (d.reshape(-1, 2).T * w.ravel()) @ d.reshape(-1, 2)
    return (off**2).sum(), flat(2 * a @ m)


@found("matrix factorisation",
       "A. Au Yeung: Matrix factorization, a tutorial and implementation in Python",
       normal(10), np.array([[5, 3, 0], [4, 0, 1]]), 0.5)  # fmt: skip
def _(theta, ratings, beta):
    p, q = cut(theta, (2, 2), (3, 2))
    value, d_p, d_q = 0, np.zeros_like(p), np.zeros_like(q)
    for i, j in zip(*np.nonzero(ratings), strict=True):
        e = ratings[i, j] - np.dot(p[i], q[j])
        value += pow(e, 2) + beta / 2 * np.sum(pow(p[i], 2) + pow(q[j], 2))
        d_p[i] -= 2 * e * q[j] - beta * p[i]
        d_q[j] -= 2 * e * p[i] - beta * q[j]
    return value, flat(d_p, d_q)


@found("policy gradient of Pong", "rickiepark/pong-from-scratch: pg-pong.py of A. Karpathy",
       normal(9), X, BITS, normal(4))  # fmt: skip
def _(theta, x, action, advantage):
    w1, w2 = cut(theta, (3, 2), (3,))
    advantage = (advantage - np.mean(advantage)) / np.std(advantage)
    h = x @ w1.T
    h[h < 0] = 0
    p = 1.0 / (1.0 + np.exp(-h @ w2))
    d = (action - p) * advantage
    d_h = np.outer(d, w2)
    d_h[h <= 0] = 0
    value = np.sum(advantage * np.log(np.where(action, p, 1 - p)))
    return value, flat(d_h.T @ x, (h.T @ d).ravel())


@found("Student's t, all three parameters", "stanfordmlgroup/ngboost: ngboost/distns/t.py",
       normal(3), normal(4))  # fmt: skip
def _(theta, y):
    loc, var, df = theta[0], np.exp(theta[1]) ** 2, np.exp(theta[2])
    square = (y - loc) ** 2
    score = -gammaln((df + 1) / 2) + gammaln(df / 2) + 0.5 * np.log(df * np.pi) + theta[1]
    score = score + (df + 1) / 2 * np.log(1 + square / (df * var))
    share = (df + 1) / (df * var + square)
    d_loc, d_scale = -(share * (y - loc)), 1 - share * square
    d_df = df / 2 * digamma((df + 1) / 2) + -df / 2 * digamma(df / 2) - 1 / 2
    d_df = d_df + -df / 2 * np.log(1 + square / (df * var))
    d_df = d_df + (df + 1) * square / (2 * (df * var) * (1 + square / (df * var)))
    return score.sum(), np.array([d_loc.sum(), d_scale.sum(), -d_df.sum()])


@found("negative binomial", "stanfordmlgroup/ngboost: ngboost/distns/negative_binomial.py",
       normal(2), np.array([3, 0, 2]))  # fmt: skip
def _(theta, y):
    n, z = np.exp(theta[0]), theta[1]
    p = 1 / (1 + np.exp(-z))
    score = -(gammaln(y + n) - gammaln(n) - gammaln(y + 1) + n * np.log(p) + y * np.log(1 - p))
    d_n = -n * (digamma(y + n) + np.log(p) - digamma(n))
    return score.sum(), np.array([d_n.sum(), ((y * np.exp(z) - n) / (np.exp(z) + 1)).sum()])
