"""Hand-written backward passes of public JAX code, each right and with one mistake.

The code is new, its formulas are those of the source named. A program is what `exactgrad.jax.prove`
takes: a scalar function of theta (an array or a tuple of arrays) and data, which calls a function
with rules of its own. The weights that multiply its result stand for whatever follows it. Some are
a pair of a forward and a backward pass with its inputs, for `exactgrad.jax.prove_vjp`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from gallery.frameworks import passes
from gallery.programs import normal
from jax import lax
from jax.experimental import pallas as pl
from jax.lax import stop_gradient

JAX = []
shown = passes(JAX)


def custom(forward, backward):
    """Return the function whose forward pass also returns what its backward pass needs."""
    function = jax.custom_vjp(lambda *inputs: forward(*inputs)[0])
    function.defvjp(forward, backward)
    return function


def custom_jvp(value, jvp):
    """Return the function with a rule from primals and tangents to a value and a tangent."""
    function = jax.custom_jvp(value)
    function.defjvp(jvp)
    return function


def one_hot(labels, n_classes):
    return np.eye(n_classes)[labels]


# --- losses and softmax


@shown(
    "softmax",
    "jax-ml/jax: jax/_src/nn/functions.py of 0.10.2",
    "y = exp(x) / sum exp(x)",
    ("keepdims=True) * y", "keepdims=True)"),
    "a factor y forgotten",
)
def softmax():
    def softmax(x):
        unnormalized = jnp.exp(x - stop_gradient(x.max(-1, keepdims=True)))
        return unnormalized / unnormalized.sum(-1, keepdims=True)

    def jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        y = f(x)
        y_dot = y * x_dot - (y * x_dot).sum(-1, keepdims=True) * y
        return y, y_dot

    f = custom_jvp(softmax, jvp)
    return lambda x, weights: (f(x) * weights).sum(), normal(3, 4), normal(3, 4, seed=1)


@shown(
    "logaddexp",
    "jax-ml/jax: jax/_src/lax/other.py of 0.10.2",
    "y = log(exp(a) + exp(b))",
    ("b_dot * jnp.exp(b - y)", "b_dot * jnp.exp(a - y)"),
    "a in place of b",
)
def logaddexp():
    def logaddexp(a, b):
        return jnp.maximum(a, b) + jnp.log1p(jnp.exp(-jnp.abs(a - b)))

    def jvp(primals, tangents):
        (a, b), (a_dot, b_dot) = primals, tangents
        y = f(a, b)
        y_dot = a_dot * jnp.exp(a - y) + b_dot * jnp.exp(b - y)
        return y, y_dot

    f = custom_jvp(logaddexp, jvp)
    return lambda ab, weights: (f(*ab) * weights).sum(), normal(2, 5), normal(5, seed=1)


@shown(
    "logsumexp of a semiring, safe at -inf",
    "google-research/last: last/semirings.py at 358286c3",
    "y = log sum exp(x)",
    ("d_y[..., None] / z * e", "d_y[..., None] * e"),
    "not divided by the sum",
)
def semiring_logsumexp():
    def forward(x):
        c = x.max(-1, keepdims=True)
        c = jnp.where(jnp.isfinite(c), c, 0)
        e = jnp.exp(x - c)
        z = e.sum(-1, keepdims=True)
        return (c + jnp.log(z))[..., 0], (e, z)

    def backward(residuals, d_y):
        e, z = residuals
        z = jnp.where(z != 0, z, 1)
        d_x = d_y[..., None] / z * e
        return (d_x,)

    logsumexp = custom(forward, backward)
    return lambda x, weights: (logsumexp(x) * weights).sum(), normal(3, 4), normal(3, seed=1)


@shown(
    "cross entropy with z-loss",
    "google-research/t5x: t5x/losses.py at 08058ed5",
    "y = log z - logit of the label + c (log z)^2, z = sum exp(logits)",
    ("1 + 2 * c * log_z", "1 + c * log_z"),
    "factor 2 of the square forgotten",
    verdict="proved for these data",  # targets that sum to 1
)
def cross_entropy_with_z_loss():
    def forward(logits, targets, c):
        shifted = logits - logits.max(-1, keepdims=True)
        e = jnp.exp(shifted)
        total = e.sum(-1, keepdims=True)
        log_softmax = shifted - jnp.log(total)
        log_z = (jnp.log(total) + logits.max(-1, keepdims=True))[..., 0]
        loss = -(targets * log_softmax).sum(-1) + c * log_z**2
        return loss, (targets, c, e, total, log_softmax, log_z)

    def backward(residuals, d_loss):
        targets, c, e, total, log_softmax, log_z = residuals
        factor = 1 + 2 * c * log_z
        d_logits = d_loss[..., None] * (factor[..., None] * e / total - targets)
        return d_logits, -d_loss[..., None] * log_softmax, jnp.zeros_like(c)

    loss = custom(forward, backward)

    def mean_loss(w, x, targets, c):
        return loss(x @ w, targets, c).mean()

    return mean_loss, normal(2, 4), normal(5, 2), one_hot([0, 3, 1, 1, 2], 4), np.array(0.25)


@shown(
    "log softmax with weights",
    "google-deepmind/optax: optax/losses/_classification.py of 0.2.8",
    "y = w log softmax(x), 0 where w is",
    (
        "weights * (x_dot * p).sum(-1, keepdims=True)",
        "(weights * x_dot * p).sum(-1, keepdims=True)",
    ),
    "the weights within the sum over classes",
)
def weighted_log_softmax():
    def value(x, weights):
        return jnp.where(weights != 0, weights * jax.nn.log_softmax(x), 0)

    def jvp(primals, tangents):
        (x, weights), (x_dot, weights_dot) = primals, tangents
        p = jax.nn.softmax(x)
        y_dot = weights * x_dot + weights_dot * jax.nn.log_softmax(x)
        y_dot = y_dot - weights * (x_dot * p).sum(-1, keepdims=True)
        return f(x, weights), y_dot

    f = custom_jvp(value, jvp)
    labels = np.abs(normal(3, 4, seed=1))
    return lambda x, weights: -f(x, weights).sum(), normal(3, 4), labels


@shown(
    "linear layer and cross entropy in blocks of the vocabulary",
    "marin-community/marin: lib/levanter/src/levanter/kernels/pallas/"
    "fused_cross_entropy_loss/xla.py at 07baf6b6",
    "y = log sum exp(logits) - logit of the label, logits = 2 tanh(x W / 2)",
    ("(p - hit) * (1 - t**2)", "(p - hit)"),
    "the derivative of the soft cap forgotten",
)
def cross_entropy_in_blocks():
    def blocks(w):
        return w.reshape(w.shape[0], 2, -1).transpose(1, 0, 2)

    def forward(x, w, labels):
        def step(lse, block):
            logits = 2 * jnp.tanh(x @ block / 2)
            return jnp.logaddexp(lse, jax.nn.logsumexp(logits, axis=-1)), None

        lse, _ = lax.scan(step, jnp.full(len(x), -1e30), blocks(w))
        at_label = 2 * jnp.tanh((x * w[:, labels].T).sum(-1) / 2)
        return lse - at_label, (x, w, labels, lse)

    def backward(residuals, d_y):
        x, w, labels, lse = residuals

        def step(d_x, inputs):
            start, block = inputs
            t = jnp.tanh(x @ block / 2)
            p = jnp.exp(2 * t - lse[:, None])
            hit = labels[:, None] == start + np.arange(block.shape[1])
            d_logits = d_y[:, None] * (p - hit) * (1 - t**2)
            return d_x + d_logits @ block.T, x.T @ d_logits

        starts = np.arange(0, w.shape[1], w.shape[1] // 2)
        d_x, d_blocks = lax.scan(step, jnp.zeros_like(x), (starts, blocks(w)))
        d_w = d_blocks.transpose(1, 0, 2).reshape(w.shape)
        return d_x, d_w, None

    loss = custom(forward, backward)
    theta = normal(3, 2), normal(2, 4)
    labels = np.array([0, 3, 2])
    return lambda theta, weights: (loss(*theta, labels) * weights).sum(), theta, normal(3)


# --- normalization


@shown(
    "layer norm",
    "jax-ml/jax: jax/experimental/pallas/ops/gpu/layer_norm.py at 103fac80",
    "y = (x - mean) / sqrt(var + eps) * weight + bias",
    (
        "n * (w_d_y * n).mean(-1, keepdims=True) + w_d_y.mean(-1, keepdims=True)",
        "n * (w_d_y * n).mean(-1, keepdims=True)",
    ),
    "the path through the mean forgotten",
)
def layer_norm():
    def forward(x, weight, bias):
        mean = x.mean(-1, keepdims=True)
        rstd = 1 / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
        return (x - mean) * rstd * weight + bias, (x, weight, mean, rstd)

    def backward(residuals, d_y):
        x, weight, mean, rstd = residuals
        n = (x - mean) * rstd
        w_d_y = weight * d_y
        through = n * (w_d_y * n).mean(-1, keepdims=True) + w_d_y.mean(-1, keepdims=True)
        d_x = (w_d_y - through) * rstd
        return d_x, (d_y * n).sum(0), d_y.sum(0)

    norm = custom(forward, backward)
    theta = normal(4, 3), normal(3), normal(3, seed=1)
    return lambda theta, weights: (norm(*theta) * weights).sum(), theta, normal(4, 3, seed=2)


@shown(
    "RMS norm",
    "jax-ml/jax: jax/experimental/pallas/ops/gpu/rms_norm.py of 0.10.2",
    "y = x / sqrt(mean x^2 + eps) * weight",
    ("(w_d_y * n).mean(-1, keepdims=True)", "(w_d_y * n).sum(-1, keepdims=True)"),
    "a sum in place of a mean",
)
def rms_norm():
    def forward(x, weight):
        rstd = lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        return x * rstd * weight, (x, weight, rstd)

    def backward(residuals, d_y):
        x, weight, rstd = residuals
        n = x * rstd
        w_d_y = weight * d_y
        through = n * (w_d_y * n).mean(-1, keepdims=True)
        return rstd * (w_d_y - through), (d_y * n).sum(0)

    norm = custom(forward, backward)
    return (
        lambda theta, weights: (norm(*theta) * weights).sum(),
        (normal(3, 4), normal(4)),
        normal(3, 4, seed=2),
    )


# --- attention


@shown(
    "attention in blocks of keys",
    "lucidrains/flash-attention-jax: flash_attention_jax/flash_attention.py at 069f44d1",
    "y = softmax(q k' / sqrt(d)) v",
    ("p * scale * (d_p - d_dot)", "p * (d_p - d_dot)"),
    "the scale of the scores forgotten",
)
def attention_in_blocks():
    def blocks(x):
        return x.reshape(2, -1, x.shape[1])

    def forward(q, k, v):
        scale = 1 / np.sqrt(q.shape[1])

        def step(carry, block):
            o, row_sum, row_max = carry
            k_block, v_block = block
            s = q * scale @ k_block.T
            new_max = jnp.maximum(row_max, s.max(-1, keepdims=True))
            p = jnp.exp(s - new_max)
            shrink = jnp.exp(row_max - new_max) * row_sum
            new_sum = shrink + p.sum(-1, keepdims=True)
            o = (shrink * o + p @ v_block) / new_sum
            return (o, new_sum, new_max), None

        start = jnp.zeros_like(q), jnp.zeros((len(q), 1)), jnp.full((len(q), 1), -1e6)
        (o, row_sum, row_max), _ = lax.scan(step, start, (blocks(k), blocks(v)))
        return o, (q, k, v, o, jnp.log(row_sum) + row_max)

    def backward(residuals, d_o):
        q, k, v, o, lse = residuals
        scale = 1 / np.sqrt(q.shape[1])
        d_dot = (d_o * o).sum(-1, keepdims=True)

        def step(d_q, block):
            k_block, v_block = block
            p = jnp.exp(q * scale @ k_block.T - lse)
            d_v = p.T @ d_o
            d_p = d_o @ v_block.T
            d_s = p * scale * (d_p - d_dot)
            return d_q + d_s @ k_block, (d_s.T @ q, d_v)

        d_q, (d_k, d_v) = lax.scan(step, jnp.zeros_like(q), (blocks(k), blocks(v)))
        return d_q, d_k.reshape(k.shape), d_v.reshape(v.shape)

    attention = custom(forward, backward)
    theta = normal(3, 4), normal(4, 4), normal(4, 4, seed=1)
    return lambda theta, weights: (attention(*theta) * weights).sum(), theta, normal(3, 4, seed=2)


@shown(
    "attention, causal by a mask of large negative numbers",
    "jax-ml/jax: jax/experimental/pallas/ops/gpu/attention.py of 0.10.2",
    "y = softmax(q k' / sqrt(d), where j <= i) v",
    ("jnp.where(mask, jnp.exp(s - lse), 0)", "jnp.exp(s - lse)"),
    "no mask in the backward pass",
)
def causal_attention():
    mask = np.tril(np.ones((3, 3), bool))
    scale = 0.5

    def forward(q, k, v):
        s = jnp.where(mask, q @ k.T * scale, -1e30)
        row_max = s.max(-1, keepdims=True)
        p = jnp.exp(s - row_max)
        total = p.sum(-1, keepdims=True)
        o = p @ v / total
        return o, (q, k, v, o, row_max + jnp.log(total))

    def backward(residuals, d_o):
        q, k, v, o, lse = residuals
        s = q @ k.T * scale
        p = jnp.where(mask, jnp.exp(s - lse), 0)
        d_v = p.T @ d_o
        d_p = d_o @ v.T
        d_s = p * (d_p - (d_o * o).sum(-1, keepdims=True)) * scale
        return d_s @ k, d_s.T @ q, d_v

    attention = custom(forward, backward)
    theta = normal(3, 4), normal(3, 4, seed=3), normal(3, 4, seed=1)
    return lambda theta, weights: (attention(*theta) * weights).sum(), theta, normal(3, 4, seed=2)


# --- recurrences


@shown(
    "linear recurrence, scanned backwards",
    "google-deepmind/recurrentgemma: recurrentgemma/jax/pallas.py at 56dfbcfc",
    "h[t] = a[t] h[t-1] + x[t]",
    ("jnp.concatenate([h0[None], h[:-1]])", "h"),
    "the state after the step in place of that before",
)
def linear_recurrence():
    def forward(x, a, h0):
        def step(h, inputs):
            x_t, a_t = inputs
            h = a_t * h + x_t
            return h, h

        _, h = lax.scan(step, h0, (x, a))
        return h, (h, a, h0)

    def backward(residuals, d_h):
        h, a, h0 = residuals

        def step(carried, inputs):
            d_h_t, a_t = inputs
            d_x_t = d_h_t + carried
            return a_t * d_x_t, d_x_t

        d_h0, d_x = lax.scan(step, jnp.zeros_like(h0), (d_h, a), reverse=True)
        before = jnp.concatenate([h0[None], h[:-1]])
        return d_x, d_x * before, d_h0

    scan = custom(forward, backward)
    theta = normal(5, 2), normal(5, 2, seed=1), normal(2)
    return lambda theta, weights: (scan(*theta) * weights).sum(), theta, normal(5, 2, seed=2)


@shown(
    "log partition of a lattice, by forward and backward",
    "google-research/last: last/lattices.py at 02f4fc3a",
    "y = log sum over paths of exp(emissions + transitions)",
    ("emissions[1:] + beta[1:]", "beta[1:]"),
    "the emission forgotten in the pair marginals",
)
def lattice():
    def forward(emissions, transitions):
        def step(alpha, emission):
            alpha = jax.nn.logsumexp(alpha[:, None] + transitions, axis=0) + emission
            return alpha, alpha

        last, alphas = lax.scan(step, emissions[0], emissions[1:])
        alpha = jnp.concatenate([emissions[:1], alphas])
        log_z = jax.nn.logsumexp(last)
        return log_z, (emissions, transitions, alpha, log_z)

    def backward(residuals, d_y):
        emissions, transitions, alpha, log_z = residuals

        def step(beta, emission):
            beta = jax.nn.logsumexp(transitions + emission + beta, axis=1)
            return beta, beta

        last = jnp.zeros_like(emissions[0])
        _, betas = lax.scan(step, last, emissions[1:], reverse=True)
        beta = jnp.concatenate([betas, last[None]])
        d_emissions = d_y * jnp.exp(alpha + beta - log_z)
        arriving = emissions[1:] + beta[1:]
        pairs = alpha[:-1, :, None] + transitions + arriving[:, None, :] - log_z
        return d_emissions, d_y * jnp.exp(pairs).sum(0)

    log_partition = custom(forward, backward)
    return (
        lambda theta, path: log_partition(*theta) - (theta[0] * path).sum(),
        (normal(4, 3), normal(3, 3)),
        one_hot([0, 2, 1, 1], 3),
    )


@shown(
    "reversible residual layers",
    "google/trax: trax/layers/reversible.py at 3160dec9",
    "y1 = x1 + f(x2), y2 = x2 + g(y1)",
    ("vjp_f = jax.vjp(f, x2, w_f)", "vjp_f = jax.vjp(f, y2, w_f)"),
    "taken at the output in place of the input",
)
def reversible_layers():
    def f(x, w):
        return jnp.tanh(x @ w)

    def g(x, w):
        return jnp.sin(x @ w)

    def forward(x1, x2, w_f, w_g):
        y1 = x1 + f(x2, w_f)
        y2 = x2 + g(y1, w_g)
        return (y1, y2), (y1, y2, w_f, w_g)

    def backward(residuals, d_y):
        y1, y2, w_f, w_g = residuals
        d_y1, d_y2 = d_y
        g_y1, vjp_g = jax.vjp(g, y1, w_g)
        x2 = y2 - g_y1
        through_g, d_w_g = vjp_g(d_y2)
        d_x1 = d_y1 + through_g
        _, vjp_f = jax.vjp(f, x2, w_f)
        through_f, d_w_f = vjp_f(d_x1)
        return d_x1, d_y2 + through_f, d_w_f, d_w_g

    weights = normal(2, 2), normal(2, 2, seed=1)
    return (forward, backward), normal(3, 2), normal(3, 2, seed=1), *weights


# --- linear algebra and implicit differentiation


@shown(
    "ridge regression by the implicit function theorem",
    "google/jaxopt: jaxopt/_src/implicit_diff.py at 02226b66",
    "w = (X'X + p I)^-1 X'y",
    ("-u @ w", "u @ w"),
    "sign of the derivative for the penalty",
)
def ridge():
    def forward(x, y, penalty):
        a = x.T @ x + penalty * jnp.eye(x.shape[1])
        w = jnp.linalg.solve(a, x.T @ y)
        return w, (x, y, a, w)

    def backward(residuals, d_w):
        x, y, a, w = residuals
        u = jnp.linalg.solve(a, d_w)
        error = y - x @ w
        d_x = error[:, None] * u - (x @ u)[:, None] * w
        d_penalty = -u @ w
        return d_x, x @ u, d_penalty

    ridge = custom(forward, backward)
    theta = normal(5, 2), normal(5), np.array(0.5)
    return lambda theta, x, y: ((x @ ridge(*theta) - y) ** 2).mean(), theta, normal(4, 2), normal(4)


@shown(
    "fixed point of Newton's square root",
    "jax-ml/jax: docs/notebooks/Custom_derivative_rules_for_Python_code.md at ce92e479",
    "x = (x + a / x) / 2",
    ("jax.vjp(update, a, x)", "jax.vjp(update, a, a)"),
    "the vjp at the start in place of the fixed point",
)
def newton_root():
    def update(a, x):
        return (x + a / x) / 2

    def forward(a):
        x = jnp.sqrt(a)  # what the iteration converges to
        return x, (a, x)

    def backward(residuals, d_x):
        a, x = residuals
        _, vjp = jax.vjp(update, a, x)
        u = d_x
        for _ in range(3):  # u = d_x + u (derivative of the update by x)
            u = d_x + vjp(u)[1]
        return (vjp(u)[0],)

    root = custom(forward, backward)
    return lambda a, weights: (root(a) * weights).sum(), np.abs(normal(4)), normal(4, seed=1)


@shown(
    "log determinant of a 2 x 2 matrix",
    "jax-ml/jax: jax/_src/numpy/linalg.py of 0.10.2",
    "y = log |a d - b c|",
    ("- b_dot * c - c_dot * b", "- b_dot * b - c_dot * c"),
    "the entries off the diagonal exchanged",
)
def log_determinant():
    def value(m):
        return jnp.log(jnp.abs(m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]))

    def jvp(primals, tangents):
        ((a, b), (c, d)), ((a_dot, b_dot), (c_dot, d_dot)) = primals[0], tangents[0]
        det = a * d - b * c
        det_dot = a_dot * d - b_dot * c - c_dot * b + d_dot * a
        return logdet(primals[0]), det_dot / det

    logdet = custom_jvp(value, jvp)
    return lambda m, s: logdet(m @ s) - (m * s).sum(), normal(2, 2), normal(2, 2, seed=1)


@shown(
    "pseudo-inverse",
    "jax-ml/jax: jax/_src/numpy/linalg.py of 0.10.2",
    "p = (a'a)^-1 a' for a of full column rank",
    (" + p @ p.T @ a_dot.T @ (jnp.eye(len(a)) - a @ p)", ""),
    "the term outside the range forgotten",
)
def pseudo_inverse():
    def value(a):
        return jnp.linalg.solve(a.T @ a, a.T)

    def jvp(primals, tangents):
        (a,), (a_dot,) = primals, tangents
        p = pinv(a)
        p_dot = -p @ a_dot @ p + p @ p.T @ a_dot.T @ (jnp.eye(len(a)) - a @ p)
        return p, p_dot

    pinv = custom_jvp(value, jvp)
    return lambda a, weights: (pinv(a) * weights).sum(), normal(4, 2), normal(2, 4)


@shown(
    "square root of a matrix, by a Sylvester equation",
    "ott-jax/ott: ott/math/matrix_square_root.py at 425fc0e4",
    "s s = x (2 x 2: s = (x + sqrt(det) I) / sqrt(tr + 2 sqrt(det)))",
    ("jnp.kron(s.T, eye) + jnp.kron(eye, s)", "jnp.kron(s, eye) + jnp.kron(eye, s)"),
    "s in place of its transpose",
)
def matrix_square_root():
    eye = np.eye(2)

    def forward(x):
        root_det = jnp.sqrt(x[0, 0] * x[1, 1] - x[0, 1] * x[1, 0])
        s = (x + root_det * eye) / jnp.sqrt(x[0, 0] + x[1, 1] + 2 * root_det)
        return s, s

    def backward(s, d_s):
        sylvester = jnp.kron(s.T, eye) + jnp.kron(eye, s)
        d_x = jnp.linalg.solve(sylvester, d_s.ravel()).reshape(2, 2)
        return (d_x,)

    sqrtm = custom(forward, backward)
    return (
        lambda x, weights: (sqrtm(x) * weights).sum(),
        np.array([[2.0, 0.3], [0.7, 1.5]]),
        normal(2, 2),
    )


# --- functions of one variable, and projections


@shown(
    "log of the normal distribution function",
    "jax-ml/jax: jax/_src/scipy/special.py of 0.10.2",
    "y = log Phi(x)",
    ("jnp.exp(-x * x / 2 - y) / np.sqrt(2 * np.pi)", "jnp.exp(-x * x / 2 - y)"),
    "the normalizing constant forgotten",
)
def log_normal_cdf():
    def value(x):
        return jnp.log(jax.scipy.special.erfc(-x / np.sqrt(2)) / 2)

    def jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        y = log_ndtr(x)
        return y, x_dot * jnp.exp(-x * x / 2 - y) / np.sqrt(2 * np.pi)

    log_ndtr = custom_jvp(value, jvp)
    return (
        lambda w, x, sign: -log_ndtr(sign * (x @ w)).sum(),
        normal(3),
        normal(4, 3),
        np.array([1.0, -1, 1, 1]),
    )


@shown(
    "log(1 - exp(-x))",
    "jax-ml/jax: jax/_src/nn/functions.py of 0.10.2",
    "y = log(1 - exp(-x))",
    ("x_dot / jnp.expm1(x)", "x_dot / -jnp.expm1(-x)"),
    "exp(-x) in place of exp(x)",
)
def log1mexp():
    def value(x):
        return jnp.where(x > 0.7, jnp.log1p(-jnp.exp(-x)), jnp.log(-jnp.expm1(-x)))

    def jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return log1mexp(x), x_dot / jnp.expm1(x)

    log1mexp = custom_jvp(value, jvp)
    return lambda x, weights: (log1mexp(x) * weights).sum(), np.array([0.2, 0.5, 1.5]), normal(3)


@shown(
    "x log y",
    "jax-ml/jax: jax/_src/scipy/special.py of 0.10.2",
    "y = x log y, 0 for x = 0",
    ("x_dot * jnp.log(y) + y_dot * x / y", "x_dot * jnp.log(y) + y_dot / y"),
    "a factor x forgotten",
)
def xlogy():
    def value(x, y):
        return jnp.where(x == 0, 0, x * jnp.log(jnp.where(x == 0, 1, y)))

    def jvp(primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        return xlogy(x, y), x_dot * jnp.log(y) + y_dot * x / y

    xlogy = custom_jvp(value, jvp)

    def divergence(logits, q):
        p = jax.nn.softmax(logits)
        return (xlogy(p, p) - xlogy(p, q)).sum()

    return divergence, normal(4), np.array([0.1, 0.2, 0.3, 0.4])


@shown(
    "power, 1 for the exponent 0",
    "google-deepmind/distrax: distrax/_src/utils/math.py at 0b590e96",
    "y = x^p",
    ("power(x, p - 1) * x_dot", "power(x, p) * x_dot"),
    "the exponent not lowered",
)
def power():
    def value(x, p):
        return jnp.where(p == 0, 1, jnp.power(x, p))

    def jvp(primals, tangents):
        (x, p), (x_dot, p_dot) = primals, tangents
        y = power(x, p)
        return y, p * power(x, p - 1) * x_dot + y * jnp.log(x) * p_dot

    power = custom_jvp(value, jvp)
    theta = np.array([0.5, 1.2, 2.0]), np.array([0.7, -1.3, 2.5])
    return lambda theta, weights: (power(*theta) * weights).sum(), theta, normal(3)


@shown(
    "angle of a vector",
    "google/neural-tangents: neural_tangents/_src/stax/elementwise.py at 1fad74ff",
    "y = arctan2(x1, x2)",
    (
        "x1_dot * (x2 / square) - x2_dot * (x1 / square)",
        "x1_dot * (x1 / square) - x2_dot * (x2 / square)",
    ),
    "the two arguments exchanged",
)
def arctan2():
    def jvp(primals, tangents):
        (x1, x2), (x1_dot, x2_dot) = primals, tangents
        square = jnp.maximum(x1**2 + x2**2, 1e-30)
        return arctan2(x1, x2), x1_dot * (x2 / square) - x2_dot * (x1 / square)

    arctan2 = custom_jvp(jnp.arctan2, jvp)
    return lambda x, weights: (arctan2(x[0], x[1]) * weights).sum(), normal(2, 4), normal(4)


@shown(
    "square root with a bounded derivative",
    "google-deepmind/recurrentgemma: recurrentgemma/jax/layers.py at 2a3dde4b",
    "y = sqrt(x), slope at most 1000",
    ("d_y / (2 * ", "d_y / (1 * "),
    "a factor 2 forgotten",
)
def bounded_square_root():
    def forward(x):
        return jnp.sqrt(x), x

    def backward(x, d_y):
        d_x = d_y / (2 * jnp.sqrt(jnp.maximum(x, 1 / (4 * 1000**2))))
        return (d_x,)

    root = custom(forward, backward)

    def gated(theta, x):
        a = jax.nn.sigmoid(theta)
        return (root(1 - a**2) * x).sum()

    return gated, normal(4), normal(4, seed=1)


@shown(
    "projection onto the simplex (sparsemax)",
    "google/jaxopt: jaxopt/projection.py at a050de3f",
    "p = argmin |p - x| on the simplex",
    ("(support * x_dot).sum() / support.sum()", "(support * x_dot).mean()"),
    "a mean over all in place of the support",
)
def simplex_projection():
    def value(x):
        u = jnp.sort(x)[::-1]
        above = jnp.cumsum(u) - 1
        n = (u - above / (np.arange(len(x)) + 1) > 0).sum()
        return jax.nn.relu(x - above[n - 1] / n)

    def jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        p = project(x)
        support = p > 0
        mean = (support * x_dot).sum() / support.sum()
        return p, support * (x_dot - mean)

    project = custom_jvp(value, jvp)
    return (
        lambda x, weights: (project(x) * weights).sum(),
        np.array([0.4, -1.1, 0.6, 0.1, -0.8]),
        normal(5),
    )


@shown(
    "log sum of weighted exponentials",
    "ott-jax/ott: ott/math/utils.py at 425fc0e4",
    "y = log sum b exp(x)",
    ("b * e * x_dot", "e * x_dot"),
    "the weights forgotten",
)
def weighted_logsumexp():
    def value(x, b):
        c = stop_gradient(x.max(-1, keepdims=True))
        return (c + jnp.log((b * jnp.exp(x - c)).sum(-1, keepdims=True)))[..., 0]

    def jvp(primals, tangents):
        (x, b), (x_dot, b_dot) = primals, tangents
        y = logsumexp(x, b)
        e = jnp.exp(x - y[..., None])
        y_dot = (b * e * x_dot).sum(-1) + (b_dot * e).sum(-1)
        return y, y_dot

    logsumexp = custom_jvp(value, jvp)
    theta = normal(3, 4), np.abs(normal(3, 4, seed=1))
    return lambda theta, weights: (logsumexp(*theta) * weights).sum(), theta, normal(3)


@shown(
    "Cholesky factor",
    "jax-ml/jax: jax/_src/lax/linalg.py of 0.10.2",
    "L L' = S",
    ("jnp.tril(inner) / (1 + jnp.eye(len(s)))", "jnp.tril(inner)"),
    "the diagonal not halved",
)
def cholesky():
    def jvp(primals, tangents):
        (s,), (s_dot,) = primals, tangents
        factor = cholesky(s)
        inner = jnp.linalg.solve(factor, jnp.linalg.solve(factor, s_dot).T)
        half = jnp.tril(inner) / (1 + jnp.eye(len(s)))
        return factor, factor @ half

    cholesky = custom_jvp(jnp.linalg.cholesky, jvp)

    def negative_log_density(x, y):
        factor = cholesky(x @ x.T + jnp.eye(len(x)))
        z = jnp.linalg.solve(factor, y)
        return (z**2).sum() / 2 + jnp.log(jnp.diag(factor)).sum()

    return negative_log_density, normal(3, 2), normal(3)


@shown(
    "largest score, and where it is (Viterbi's step)",
    "google-research/last: last/semirings.py at 358286c3",
    "y = max x",
    ("x.argmax(-1)", "x.argmin(-1)"),
    "the index of the smallest",
)
def viterbi():
    def forward(x):
        return x.max(-1), (x.argmax(-1), x.shape[-1])

    def backward(residuals, d_y):
        index, width = residuals
        d_x = d_y[..., None] * jax.nn.one_hot(index, width, dtype=d_y.dtype)
        return (d_x,)

    best = custom(forward, backward)

    def viterbi(theta):
        emissions, transitions = theta
        score = emissions[0]
        for emission in emissions[1:]:
            score = best((score[:, None] + transitions).T) + emission
        return best(score)

    return viterbi, (normal(4, 3), normal(3, 3))


@shown(
    "relu6",
    "jax-ml/jax: jax/_src/nn/functions.py of 0.10.2",
    "y = min(max(x, 0), 6)",
    ("(x > 0) & (x < 6)", "x > 0"),
    "no slope of 0 above 6",
)
def relu6():
    def jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return relu6(x), jnp.where((x > 0) & (x < 6), x_dot, 0)

    relu6 = custom_jvp(lambda x: jnp.minimum(jnp.maximum(x, 0), 6.0), jvp)
    theta, x = normal(2, 3), 5 * normal(4, 2)
    return lambda w, x, weights: (relu6(x @ w) ** 2 * weights).sum(), theta, x, normal(4, 3)


@shown(
    "product of a sparse matrix and a vector",
    "jax-ml/jax: jax/experimental/sparse/coo.py of 0.10.2",
    "y[i] = sum of data[k] v[column[k]] over k with row[k] = i",
    ("d_y[row] * v[column]", "d_y[column] * v[row]"),
    "rows and columns exchanged",
)
def sparse_product():
    row, column = np.array([0, 0, 1, 2, 2, 3]), np.array([1, 3, 0, 2, 3, 1])

    def forward(data, v):
        return jnp.zeros(4).at[row].add(data * v[column]), (data, v)

    def backward(residuals, d_y):
        data, v = residuals
        d_data = d_y[row] * v[column]
        d_v = jax.ops.segment_sum(data * d_y[row], column, num_segments=4)
        return d_data, d_v

    return (forward, backward), normal(6), normal(4)


@shown(
    "difference of log gamma functions",
    "tensorflow/probability: tensorflow_probability/python/math/special.py at 36ce254f",
    "z = log gamma(y) - log gamma(x + y)",
    ("jax.lax.digamma(y) + d_x", "jax.lax.digamma(y)"),
    "a path forgotten",
)
def log_gamma_difference():
    def forward(x, y):
        return lax.lgamma(y) - lax.lgamma(x + y), (x, y)

    def backward(residuals, d_z):
        x, y = residuals
        d_x = -jax.lax.digamma(x + y)
        d_y = jax.lax.digamma(y) + d_x
        return d_x * d_z, d_y * d_z

    return (forward, backward), np.array([0.5, 1.5, 2.0]), np.array([2.5, 0.7, 9.0])


@shown(
    "square root above a tolerance",
    "google/neural-tangents: neural_tangents/_src/stax/elementwise.py at 1fad74ff",
    "y = sqrt(max(x, tol))",
    ("jnp.where(x > tol, x_dot / (2 * y), 0)", "x_dot / (2 * y)"),
    "no slope of 0 below the tolerance",
)
def square_root_above():
    tol = 0.25

    def jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        y = root(x)
        return y, jnp.where(x > tol, x_dot / (2 * y), 0)

    root = custom_jvp(lambda x: jnp.sqrt(jnp.maximum(x, tol)), jvp)
    theta = np.array([0.1, 0.5, 2.0, -0.3])
    return lambda x, weights: (root(x) * weights).sum(), theta, normal(4)


# --- kernels of Pallas


@shown(
    "softmax, a kernel for each row",
    "jax-ml/jax: jax/experimental/pallas/ops/gpu/softmax.py of 0.10.2",
    "y = exp(x) / sum exp(x)",
    ("y_ref[...] * (d_y - (d_y * y_ref[...]).sum())", "d_y - (d_y * y_ref[...]).sum()"),
    "a factor y forgotten",
)
def softmax_kernel():
    def call(kernel, n_rows, n_columns):
        block = pl.BlockSpec((1, n_columns), lambda i: (i, 0))
        shape = jax.ShapeDtypeStruct((n_rows, n_columns), jnp.result_type(float))
        return pl.pallas_call(kernel, out_shape=shape, grid=(n_rows,), out_specs=block,
                              in_specs=[block] * 2, interpret=True)  # fmt: skip

    def forward_kernel(x_ref, _, y_ref):
        e = jnp.exp(x_ref[...] - x_ref[...].max())
        y_ref[...] = e / e.sum()

    def backward_kernel(y_ref, d_y_ref, d_x_ref):
        d_y = d_y_ref[...]
        d_x_ref[...] = y_ref[...] * (d_y - (d_y * y_ref[...]).sum())

    def forward(x):
        y = call(forward_kernel, *x.shape)(x, x)
        return y, y

    def backward(y, d_y):
        return (call(backward_kernel, *y.shape)(y, d_y),)

    softmax = custom(forward, backward)
    return lambda x, weights: (softmax(x) * weights).sum(), normal(3, 4), normal(3, 4, seed=1)


# --- meant not to be the gradient


@shown(
    "gradient reversal",
    "google-deepmind/optax: optax/_src/utils.py of 0.2.8, a negative scale",
    "y = x",
    ("-0.5 * d_y", "d_y"),
    "the cotangent is reversed, so that the layer below maximises",
    verdict="refuted",
    reason="-1/2",
)
def gradient_reversal():
    def forward(x):
        return x, None

    def backward(_, d_y):
        d_x = -0.5 * d_y
        return (d_x,)

    reverse = custom(forward, backward)
    return (
        lambda w, x, weights: (jnp.tanh(reverse(x @ w)) * weights).sum(),
        normal(2, 3),
        normal(4, 2),
        normal(4, 3),
    )


@shown(
    "scaled gradient",
    "google-deepmind/optax: optax/_src/utils.py of 0.2.8",
    "y = x",
    ("0.25 * d_y", "d_y"),
    "the cotangent is scaled",
    verdict="refuted",
    reason="1/4",
)
def scaled_gradient():
    def forward(x):
        return x, None

    def backward(_, d_y):
        d_x = 0.25 * d_y
        return (d_x,)

    scaled = custom(forward, backward)
    return (
        lambda w, x, weights: (jnp.tanh(scaled(x @ w)) * weights).sum(),
        normal(2, 3),
        normal(4, 2),
        normal(4, 3),
    )


@shown(
    "clipped gradient",
    "jax-ml/jax: docs/notebooks/Custom_derivative_rules_for_Python_code.md at ce92e479",
    "y = x",
    ("jnp.clip(d_y, -0.5, 0.5)", "d_y"),
    "the cotangent is clipped",
    verdict="refuted",
    reason="jnp.clip",
)
def clipped_gradient():
    def forward(x):
        return x, None

    def backward(_, d_y):
        d_x = jnp.clip(d_y, -0.5, 0.5)
        return (d_x,)

    clipped = custom(forward, backward)
    return (
        lambda x, weights: (jnp.sin(clipped(x)) * weights).sum(),
        normal(4),
        2 * normal(4, seed=1),
    )


@shown(
    "sign of the gradient",
    "google/flax: flax/linen/transforms.py of 0.12.8, an example",
    "y = x w",
    ("jnp.sign(x.T @ d_y)", "x.T @ d_y"),
    "the gradient of the weights is replaced by its signs",
    verdict="refuted",
    reason="jnp.sign",
)
def sign_of_gradient():
    def forward(x, w):
        return x @ w, (x, w)

    def backward(residuals, d_y):
        x, w = residuals
        d_w = jnp.sign(x.T @ d_y)
        return d_y @ w.T, d_w

    linear = custom(forward, backward)
    return (
        lambda w, x, y: ((linear(x, w) - y) ** 2).mean(),
        normal(2, 3),
        normal(4, 2),
        normal(4, 3),
    )


@shown(
    "rounding, straight through",
    "google/flax: flax/linen/fp8_ops.py at 02913030",
    "y = s round(x / s)",
    ("d_x = d_y", "d_x = jnp.zeros_like(d_y)"),
    "the slope of a staircase, 0, is taken to be 1",
    verdict="refuted",
    reason="what is rounded has derivative 0",
)
def straight_through_rounding():
    def forward(x):
        return jnp.round(x / 0.25) * 0.25, None

    def backward(_, d_y):
        d_x = d_y
        return (d_x,)

    quantize = custom(forward, backward)
    return lambda w, x, y: ((x @ quantize(w) - y) ** 2).mean(), normal(3), normal(4, 3), normal(4)


@shown(
    "nearest code of a codebook, straight through",
    "google-deepmind/dm-haiku: haiku/_src/nets/vqvae.py at 0f293413",
    "y = the code nearest to x",
    ("x + stop_gradient(nearest - x)", "nearest"),
    "the slope of a step function, 0, is taken to be 1",
    verdict="refuted",
    reason="stop_gradient",
)
def straight_through_codebook():
    codes = normal(3, 2, seed=1)

    def quantize(x):
        distances = ((x[:, None] - codes) ** 2).sum(-1)
        nearest = jax.nn.one_hot(distances.argmin(-1), 3) @ codes
        quantized = x + stop_gradient(nearest - x)
        return quantized

    return lambda x, y: ((quantize(x) - y) ** 2).sum(), normal(4, 2), normal(4, 2, seed=2)


@shown(
    "TD(lambda) with constant targets",
    "google-deepmind/rlax: rlax/_src/value_learning.py at 0ecdabd2",
    "y = sum (target[t] - v[t])^2 / 2, target[t] = r + g ((1 - l) v[t+1] + l target[t+1])",
    ("td = stop_gradient(targets) - v[:-1]", "td = targets - v[:-1]"),
    "the targets depend on the values too: a semi-gradient",
    verdict="refuted",
    reason="stop_gradient",
)
def td_lambda():
    def loss(w, features, rewards):
        v = features @ w

        def step(following, inputs):
            reward, v_next = inputs
            target = reward + 0.75 * (0.5 * v_next + 0.5 * following)
            return target, target

        _, targets = lax.scan(step, v[-1], (rewards, v[1:]), reverse=True)
        td = stop_gradient(targets) - v[:-1]
        return (td**2).sum() / 2

    return loss, normal(3), normal(5, 3), normal(4)


@shown(
    "expectation by the score function",
    "netket/netket: netket/jax/_expect.py at 05245663",
    "y = mean of f over draws",
    ("centred * log_p + local", "local"),
    "an estimate of the gradient of the expectation, not the gradient of the mean over draws",
    verdict="refuted",
)
def score_function():
    def forward(theta, draws):
        local = (draws @ theta) ** 2
        return local.mean(), (theta, draws, local - local.mean())

    def backward(residuals, d_y):
        theta, draws, centred = residuals

        def surrogate(theta):
            log_p = -((draws - theta) ** 2).sum(-1) / 2
            local = (draws @ theta) ** 2
            return (centred * log_p + local).mean()

        return d_y * jax.grad(surrogate)(theta), None

    expect = custom(forward, backward)
    return lambda theta, draws: expect(theta, draws), normal(2), normal(5, 2)


@shown(
    "adjoint of an ODE, solved backwards",
    "jax-ml/jax: jax/experimental/ode.py of 0.10.2",
    "y(t + h) = y(t) + h tanh(y(t) w), in 3 steps",
    ("y = y - h * f(y, w)", "y = trajectory.pop()"),
    "the state is integrated backwards, which is not where it came from",
    verdict="refuted",
)
def continuous_adjoint():
    h = 0.25

    def f(y, w):
        return jnp.tanh(y @ w)

    def forward(y, w):
        trajectory = [y]
        for _ in range(3):
            trajectory.append(trajectory[-1] + h * f(trajectory[-1], w))
        return trajectory[-1], (trajectory, w)

    def backward(residuals, d_y):
        trajectory, w = residuals
        y, d_w = trajectory.pop(), 0
        for _ in range(3):
            y = y - h * f(y, w)
            _, vjp = jax.vjp(f, y, w)
            by_y, by_w = vjp(h * d_y)
            d_y, d_w = d_y + by_y, d_w + by_w
        return d_y, d_w

    odeint = custom(forward, backward)
    return lambda theta, y: ((odeint(*theta) - y) ** 2).sum(), (normal(2), normal(2, 2)), normal(2)


@shown(
    "cost of optimal transport, with the plan as its gradient",
    "ott-jax/ott: ott/solvers/linear/sinkhorn.py at 0e861a06",
    "y = a . u + b . v after 2 iterations of Sinkhorn",
    (
        "d_cost = d_y * plan.reshape(cost.shape)",
        "(d_cost,) = jax.vjp(lambda cost: value(cost)[0], cost)[1](d_y)",
    ),
    "true at the fixed point only, which 2 iterations do not reach",
    verdict="refuted",
)
def transport_by_envelope():
    a, b = np.full(3, 1 / 3), np.array([0.25, 0.75])

    def value(cost):
        u, v = jnp.zeros(3), jnp.zeros(2)
        for _ in range(2):
            u = jnp.log(a) - jax.nn.logsumexp(v - cost, axis=1)
            v = jnp.log(b) - jax.nn.logsumexp(u[:, None] - cost, axis=0)
        return a @ u + b @ v, jnp.exp(u[:, None] + v - cost)

    def forward(cost):
        y, plan = value(cost)
        return y, (cost, plan)

    def backward(residuals, d_y):
        cost, plan = residuals
        d_cost = d_y * plan.reshape(cost.shape)
        return (d_cost,)

    transport = custom(forward, backward)
    return lambda cost: transport(cost) ** 2, np.abs(normal(3, 2))


@shown(
    "linear layer with a normalized weight gradient",
    "hrbigelow/transformer-aiayn: tests/custom_vjp.py at 148993bc",
    "y = x w",
    ("(by_row / (x**2).sum(-1)[:, None, None]).sum(0)", "by_row.sum(0)"),
    "the contribution of each row is divided by the row's square",
    verdict="refuted",
    reason="by_row",
)
def normalized_weight_gradient():
    def forward(x, w):
        return x @ w, (x, w)

    def backward(residuals, d_y):
        x, w = residuals
        by_row = x[:, :, None] * d_y[:, None, :]
        d_w = (by_row / (x**2).sum(-1)[:, None, None]).sum(0)
        return d_y @ w.T, d_w

    linear = custom(forward, backward)
    return (
        lambda w, x, y: ((linear(x, w) - y) ** 2).mean(),
        normal(2, 3),
        normal(4, 2),
        normal(4, 3),
    )


# --- bugs


@shown(
    "arc sine whose rule returns the arc cosine",
    "google/brax: brax/math.py at 16304037, corrected by pull request 484",
    "y = arcsin(x)",
    ("y = jnp.pi / 2 - arcsin(x)", "y = arcsin(x)"),
    "the rule's value is arccos(x), so that what follows is differentiated elsewhere",
    verdict="refuted",
)
def arcsin_with_arccos():
    def jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        y = jnp.pi / 2 - arcsin(x)
        y_dot = x_dot / jnp.sqrt(1 - jnp.clip(x, -1 + 1e-7, 1 - 1e-7) ** 2)
        return y, y_dot

    arcsin = custom_jvp(jnp.arcsin, jvp)
    return lambda x, y: ((arcsin(x) - y) ** 2).sum(), np.array([0.3, -0.6, 0.1]), normal(3)


@shown(
    "example of custom_jvp in the documentation",
    "jax-ml/jax: issue 3213, corrected by pull request 3219",
    "z = sin(x) y",
    ("- jnp.sin(x) * y_dot", "+ jnp.sin(x) * y_dot"),
    "sign of the derivative for y",
    verdict="refuted",
    reason="right but for the sign",
)
def documentation_example():
    def jvp(primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        z_dot = jnp.cos(x) * x_dot * y - jnp.sin(x) * y_dot
        return f(x, y), z_dot

    f = custom_jvp(lambda x, y: jnp.sin(x) * y, jvp)
    return (
        lambda y, x, weights: (f(x, y) * weights).sum(),
        normal(3),
        normal(3, seed=1),
        normal(3, seed=2),
    )


@shown(
    "attention whose bias gets no gradient",
    "jax-ml/jax: issue 27184, pull request 23807 (cuDNN, batches of more than one)",
    "y = softmax(q k' / sqrt(d) + bias) v",
    ("jnp.zeros_like(bias)", "d_s.sum(0)"),
    "zeros are returned for the bias",
    verdict="refuted",
    reason="they are 0 by hand",
)
def bias_without_gradient():
    def forward(q, k, v, bias):
        p = jax.nn.softmax(q @ k.swapaxes(1, 2) / 2 + bias, axis=-1)
        return p @ v, (q, k, v, bias, p)

    def backward(residuals, d_o):
        q, k, v, bias, p = residuals
        d_p = d_o @ v.swapaxes(1, 2)
        d_s = p * (d_p - (d_p * p).sum(-1, keepdims=True))
        d_q = d_s @ k / 2
        d_k = d_s.swapaxes(1, 2) @ q / 2
        d_bias = jnp.zeros_like(bias)
        return d_q, d_k, p.swapaxes(1, 2) @ d_o, d_bias

    attention = custom(forward, backward)
    q, k, v = normal(3, 2, 2, 4)
    return (
        lambda theta, weights: (attention(*theta) * weights).sum(),
        (q, k, v, normal(2, 2)),
        normal(2, 2, 4),
    )


@shown(
    "attention in blocks with a small number in the sums",
    "lucidrains/flash-attention-jax: flash_attention_jax/flash_attention.py at 069f44d1",
    "y = softmax(q k' / sqrt(d)) v",
    ("+ 1e-10", ""),
    "1e-10 is added to sums of exp(s - max s), but the backward pass takes max s for constant",
    verdict="refuted",
)
def attention_with_epsilon():
    def forward(q, k, v):
        s = q @ k.T / 2
        row_max = s.max(-1, keepdims=True)
        p = jnp.exp(s - row_max)
        row_sum = p.sum(-1, keepdims=True) + 1e-10
        o = p @ v / row_sum
        return o, (q, k, v, o, jnp.log(row_sum) + row_max)

    def backward(residuals, d_o):
        q, k, v, o, lse = residuals
        p = jnp.exp(q @ k.T / 2 - lse)
        d_v = p.T @ d_o
        d_p = d_o @ v.T
        d_s = p / 2 * (d_p - (d_o * o).sum(-1, keepdims=True))
        return d_s @ k, d_s.T @ q, d_v

    attention = custom(forward, backward)
    theta = normal(3, 4), normal(3, 4, seed=3), normal(3, 4, seed=1)
    return lambda theta, weights: (attention(*theta) * weights).sum(), theta, normal(3, 4, seed=2)
