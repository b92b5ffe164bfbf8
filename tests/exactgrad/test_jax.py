"""JAX gradients are proved, and wrong ones are refuted at the line of the user's file."""

import contextlib
import cProfile
import io
import re
import subprocess
import sys
import typing
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from exactgrad import Verdict

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax
pl = pytest.importorskip("jax.experimental.pallas")
reader = pytest.importorskip("exactgrad.jax")
pytestmark = pytest.mark.slow


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def positive(*shape):
    return np.abs(normal(*shape)) + 0.5


def spd(x):
    return x @ x.T + 3 * jnp.eye(len(x))


def attention(q, k, v):
    return jax.nn.softmax(q @ k.T / 2, axis=-1) @ v


INDICES = np.array([[0, 2], [1, 1], [0, 2]])
LABELS = np.array([0, 3, 1])

# Functions of one array, by name, each with an array
CASES = {
    "add": (lambda x: x + 2 * x[0], normal(3, 4)),
    "elementary": (lambda x: jnp.exp(x) + jnp.sin(x) * jnp.cos(x) - jnp.tanh(x), normal(3)),
    "hyperbolic": (lambda x: jnp.sinh(x) + jnp.cosh(x) + jnp.arcsinh(x), normal(3)),
    "logs": (lambda x: jnp.log(x) + jnp.log1p(x) + jnp.expm1(x) + jnp.log2(x), positive(3)),
    "roots": (lambda x: jnp.sqrt(x) + lax.rsqrt(x) + jnp.cbrt(x), positive(3)),
    "powers": (lambda x: x**3 + x**-2 + x**1.5 + x ** x[::-1] + jnp.exp2(x), positive(3)),
    "arcs": (lambda x: jnp.arctan(x) + jnp.arcsin(x / 9) + jnp.arccos(x / 9), normal(3)),
    "tan": (jnp.tan, normal(3)),
    "atan2": (lambda x: jnp.arctan2(x[0], x[1]), positive(2, 3)),
    "acosh": (lambda x: jnp.arccosh(x + 1) + jnp.arctanh(x / 9), positive(3)),
    "erf": (lambda x: lax.erf(x) + lax.erfc(x) ** 2, normal(3)),
    "erf_inv": (lambda x: lax.erf_inv(x / 5), normal(3)),
    "lgamma": (lambda x: lax.lgamma(x) + lax.digamma(x), positive(3)),
    "sigmoid": (lambda x: jax.nn.sigmoid(x) * jax.nn.silu(x), normal(3)),
    "activations": (lambda x: jax.nn.gelu(x) + jax.nn.elu(x) + jax.nn.softplus(x), normal(5)),
    "leaky": (lambda x: jax.nn.leaky_relu(x) + jax.nn.relu6(x), normal(5)),
    "abs and sign": (lambda x: jnp.abs(x) * jnp.sign(x - 0.1), normal(5)),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.5), normal(5)),
    "maximum": (lambda x: jnp.maximum(x[0], x[1]) - jnp.minimum(x[0], x[1]), normal(2, 5)),
    "where": (lambda x: jnp.where((x > 0) & ~(x > 1) | (x < -1), x, x * x), normal(6)),
    "select_n": (lambda x: lax.select_n(np.array([0, 2, 1]), x, x * x, x**3), normal(3)),
    "sums": (lambda x: x.sum(0) * x.mean(1, keepdims=True) * x.prod(), positive(3, 4)),
    "extremes": (lambda x: x.max(0) - x.min(1)[:, None] * x.max(), normal(3, 4)),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, axis=-1), normal(3, 4)),
    "softmax": (lambda x: jax.nn.softmax(x) * jax.nn.log_softmax(x, 0), normal(3, 4)),
    "variance": (lambda x: jnp.var(x, 0) + jnp.std(x, 1)[0], normal(3, 4)),
    "cumulative": (lambda x: jnp.cumsum(x, 1) * jnp.cumprod(x, 0), normal(3, 4)),
    "cumulative reverse": (
        lambda x: lax.cumsum(x, 1, True) + lax.cumprod(x, 0, True),
        normal(3, 4),
    ),
    "cumulative extremes": (lambda x: lax.cummax(x, 1) + lax.cummin(x, 0), normal(3, 4)),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1), normal(2, 4)),
    "matmul": (lambda x: x @ x.T @ x, normal(3, 4)),
    "einsum": (lambda x: jnp.einsum("bij,bkj,l->bikl", x, x, x[0, 0]), normal(2, 3, 2)),
    "dot_general": (lambda x: lax.dot_general(x, x, (((2,), (2,)), ((0,), (0,)))), normal(2, 3, 2)),
    "reshapes": (lambda x: x.T.reshape(2, 6)[::-1, 1::2, None].squeeze() ** 2, normal(3, 4)),
    "joins": (lambda x: jnp.concatenate([x, x[:1] * 2]) @ jnp.stack([x[0], x[1]]).T, normal(3, 4)),
    "split": (lambda x: jnp.split(x, 2, 1)[0] * jnp.split(x, 2, 1)[1], normal(3, 4)),
    "pad": (lambda x: lax.pad(x * x, x[0, 0], ((1, 2, 1), (-1, 0, 2))), normal(3, 4)),
    "roll and flip": (lambda x: jnp.roll(x, 1, 0) * jnp.flip(x), normal(3, 4)),
    "tile": (lambda x: jnp.tile(x, (2, 2)) * jnp.repeat(jnp.repeat(x, 2, 0), 2, 1), normal(2, 3)),
    "gather rows": (lambda x: x[np.arange(3), LABELS] * x[LABELS[:3] % 3, 0], normal(3, 4)),
    "take": (lambda x: jnp.take(x, INDICES, axis=1) ** 2, normal(3, 4)),
    "take_along_axis": (lambda x: jnp.take_along_axis(x, INDICES, 1) ** 2, normal(3, 4)),
    "out of bounds": (
        lambda x: jnp.take(x, jnp.array([1, 9]), mode="fill", fill_value=0),
        normal(3),
    ),
    "clipped index": (lambda x: jnp.take(x, jnp.array([1, 9]), mode="clip") ** 2, normal(3)),
    "scatter": (lambda x: jnp.zeros((4, 4)).at[LABELS, 1].set(x[:, 0]) + x[0], normal(3, 4)),
    "scatter into": (lambda x: x.at[1].set(x[0] ** 2) * x, normal(3, 4)),
    "scatter-add": (lambda x: x.at[np.array([0, 0, 2])].add(x * x), normal(3, 4)),
    "scatter-add dropped": (lambda x: x.at[np.array([0, 7])].add(x[:2] ** 2), normal(3, 4)),
    "scatter_mul": (
        lambda x: x.at[np.array([0, 2])].multiply(x[:2], unique_indices=True),
        normal(3, 4),
    ),
    "segment_sum": (lambda x: jax.ops.segment_sum(x * x, np.array([0, 1, 0]), 2), normal(3, 4)),
    "dynamic_slice": (
        lambda x: lax.dynamic_slice(x, (1, jnp.argmax(x[0])), (2, 2)) ** 2,
        normal(3, 4),
    ),
    "dynamic_update": (
        lambda x: lax.dynamic_update_slice(x, x[:2, :2] ** 2, (2, 1)) * x,
        normal(3, 4),
    ),
    "update zeros": (lambda x: lax.dynamic_update_slice(jnp.zeros(5), x * x, (1,)), normal(3)),
    "sort": (lambda x: jnp.sort(x, 0) * jnp.median(x), normal(3, 4)),
    "argsort": (lambda x: x[jnp.argsort(x)] * x, normal(5)),
    "sort pairs": (lambda x: lax.sort((x[0], x[1]), num_keys=1)[1] ** 2, normal(2, 5)),
    "top_k": (lambda x: lax.top_k(x, 2)[0] ** 2, normal(3, 4)),
    "argmax": (lambda x: x[jnp.argmax(x[:, 0])] * x[jnp.argmin(x[:, 1])], normal(3, 4)),
    "conv1d": (lambda x: jnp.convolve(x, x[:3], mode="same"), normal(6)),
    "conv2d": (
        lambda x: lax.conv_general_dilated(
            x[:18].reshape(1, 2, 3, 3),
            x[18:].reshape(2, 2, 2, 2),
            (2, 1),
            ((1, 0), (0, 1)),
            lhs_dilation=(1, 2),
            rhs_dilation=(2, 1),
        ),
        normal(34),
    ),
    "conv groups": (
        lambda x: lax.conv_general_dilated(
            x[:18].reshape(1, 3, 3, 2),
            x[18:].reshape(2, 2, 1, 4),
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=2,
        ),
        normal(34),
    ),
    "conv batch groups": (
        lambda x: lax.conv_general_dilated(
            x[:16].reshape(4, 2, 2), x[16:].reshape(2, 2, 2), (1,), "SAME", batch_group_count=2
        ),
        normal(24),
    ),
    "reshape of other axes": (lambda x: lax.reshape(x, (4, 3), (1, 0)) ** 2, normal(3, 4)),
    "max pool": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), ((0, 0), (1, 1))),
        normal(4, 4),
    ),
    "mean pool": (
        lambda x: lax.reduce_window(x * x, 0.0, lax.add, (2, 2), (2, 2), "SAME"),
        normal(3, 4),
    ),
    "cholesky": (lambda x: jnp.linalg.cholesky(spd(x)), normal(3, 3)),
    "triangular": (
        lambda x: jax.scipy.linalg.solve_triangular(spd(x), x, lower=True),
        normal(3, 3),
    ),
    "triangular unit": (
        lambda x: jax.scipy.linalg.solve_triangular(
            x + 2, x, trans=1, lower=False, unit_diagonal=True
        ),
        normal(3, 3),
    ),
    "cho_solve": (
        lambda x: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(spd(x)), True), x[0]),
        normal(3, 3),
    ),
    "solve": (lambda x: jnp.linalg.solve(x + 3 * jnp.eye(3), x[0]), normal(3, 3)),
    "inv": (lambda x: jnp.linalg.inv(x + 3 * jnp.eye(3)), normal(3, 3)),
    "slogdet": (lambda x: jnp.linalg.slogdet(x + 3 * jnp.eye(3))[1], normal(3, 3)),
    "scan": (lambda x: lax.scan(lambda c, u: (jnp.tanh(c * u), c * c), x[0], x)[1], normal(4, 3)),
    "scan reverse": (
        lambda x: lax.scan(lambda c, u: (c * u, c), x[0], x, reverse=True),
        normal(3, 2),
    ),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * x[i] + x, x), normal(3)),
    "cond": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), normal(3)),
    "switch": (lambda x: lax.switch(2, [jnp.sin, jnp.cos, jnp.exp], x), normal(3)),
    "associative_scan": (lambda x: lax.associative_scan(jnp.multiply, x), positive(5)),
    "map": (lambda x: lax.map(lambda row: row @ row, x), normal(3, 2)),
    "vmap": (lambda x: jax.vmap(lambda a: attention(a, a, a))(x), normal(2, 3, 2)),
    "vmap of index": (lambda x: jax.vmap(lambda row, i: row[i])(x, LABELS) ** 2, normal(3, 4)),
    "vmap of cond": (
        lambda x: jax.vmap(lambda v: lax.cond(v > 0, jnp.sin, jnp.cos, v))(x),
        normal(4),
    ),
    "vmap of scan": (
        lambda x: jax.vmap(lambda r: lax.scan(lambda c, u: (c * u, c), 1.0, r)[0])(x),
        normal(3, 2),
    ),
    "jit": (lambda x: jax.jit(attention)(x, x, x), normal(3, 2)),
    "remat": (lambda x: jax.checkpoint(attention)(x, x, x), normal(3, 2)),
    "attention": (lambda x: attention(*x), normal(3, 3, 2)),
    "dropout": (
        lambda x: jnp.where(jax.random.bernoulli(jax.random.key(1), 0.5, x.shape), x / 0.5, 0.0),
        normal(3, 4),
    ),
    "noise": (lambda x: x * jax.random.normal(jax.random.PRNGKey(0), x.shape), normal(3)),
    "noise in a scan": (
        lambda x: lax.scan(
            lambda c, k: (c * jax.random.uniform(k, c.shape), None),
            x,
            jax.random.split(jax.random.key(0), 2),
        )[0],
        normal(3),
    ),
    "integers": (lambda x: x * ((jnp.arange(3) * 7 // 2) % 3 - (-5 // 2) + (1 << 2)), normal(3)),
    "casts": (
        lambda x: x.astype(jnp.float32) * jnp.array([1, 2, 3]).astype(jnp.float32),
        normal(3),
    ),
    "mask as float": (lambda x: x * (x > 0).astype(x.dtype), normal(5)),
    "isfinite": (lambda x: jnp.where(jnp.isfinite(x), x, 0), normal(3)),
    "barrier": (lambda x: lax.optimization_barrier(x) * x, normal(3)),
    "stop_gradient that is right": (lambda x: x - lax.stop_gradient(x) * 0, normal(3)),
    "float32": (lambda x: jnp.asarray(x, jnp.float32) * np.float32(0.1), normal(3)),
    "shard_map": (
        lambda x: jax.shard_map(
            lambda y: lax.psum(y * y, "i"),
            mesh=jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,)),
            in_specs=jax.sharding.PartitionSpec("i"),
            out_specs=jax.sharding.PartitionSpec(),
        )(x),
        normal(3),
    ),
}


def scalar(f):
    """Return the sum of the numbers that f returns, each with another weight."""

    def value(x):
        leaves = jax.tree_util.tree_leaves(f(x))
        weights = [jnp.cos(jnp.arange(leaf.size) + 1.0).reshape(leaf.shape) for leaf in leaves]
        return sum((w * leaf).sum() for w, leaf in zip(weights, leaves, strict=True))

    return value


def too_large(f):
    """Return f with a backward rule whose result is too large by a millionth."""
    g = jax.custom_vjp(f)

    def backward(pull, cotangent):
        (dx,) = pull(cotangent)
        return (dx * (1 + 2**-20),)

    g.defvjp(lambda x: jax.vjp(f, x), backward)
    return g


@pytest.mark.parametrize("name", CASES)
def test_a_function_is_computed_as_by_jax_and_its_gradient_proved_or_refuted(name):
    f, x = CASES[name]
    with jax.enable_x64(True):
        expected = jax.tree_util.tree_leaves(f(jnp.asarray(x)))
    got = reader.Reader().to_numpy(reader._trace(f, x))(x)
    for a, b in zip(got, expected, strict=True):
        # the numbers of a float32 program are not rounded
        rounding = {"rtol": 1e-12, "atol": 1e-14} if b.dtype == float else {"rtol": 1e-6}
        np.testing.assert_allclose(a, b, **rounding)
    proof = reader.prove(scalar(f), x)
    assert proof, str(proof)
    wrong = reader.prove(scalar(too_large(f)), x)
    assert wrong.verdict is Verdict.REFUTED, str(wrong)


# --- what a user sees


@jax.custom_vjp
def softmax(z):
    return jax.nn.softmax(z)


def softmax_forward(z):
    p = jax.nn.softmax(z)
    return p, p


def softmax_backward(p, d_p):
    inner = (p * d_p).sum(-1, keepdims=True)
    d_z = p * (d_p - 2 * inner)
    return (d_z,)


softmax.defvjp(softmax_forward, softmax_backward)


def classify(theta, x, labels):
    z = x @ theta["weights"] + theta["bias"]
    p = softmax(z)
    return -jnp.log(p[np.arange(len(labels)), labels]).mean()


THETA = {"bias": normal(3), "weights": normal(2, 3, seed=1)}


def test_a_product_along_an_axis_whose_derivative_reshapes_in_another_order_is_proved():
    x, weights = normal(2, 3), normal(2, seed=1)
    assert reader.prove(lambda x, w: (w * jnp.prod(x, axis=1)).sum(), x, weights)


def test_a_refutation_names_parameters_and_the_line_of_a_backward_rule():
    proof = str(reader.prove(classify, THETA, normal(4, 2), np.array([0, 2, 1, 2])))
    assert proof.startswith("refuted: 9 of 9 derivatives are wrong")
    assert "theta.weights[1, 2]: by hand" in proof
    assert "of test_jax.py, `" in proof
    assert any(line in proof for line in ("`inner = (p * d_p)", "`d_z = p * (d_p"))


def test_jax_keeps_its_configuration_and_a_single_precision_program_is_proved():
    before = jax.config.jax_enable_x64
    theta = {name: value.astype(np.float32) for name, value in THETA.items()}
    x = jnp.asarray(normal(4, 2), jnp.float32)

    def loss(theta, x, labels):
        z = x @ theta["weights"].astype(jnp.float32) + theta["bias"]
        return jax.nn.logsumexp(z, axis=1).sum() - z[np.arange(4), labels].sum()

    proof = reader.prove(loss, theta, x, jnp.array([0, 2, 1, 2]))
    assert proof
    assert proof.coordinates == 9
    assert jax.config.jax_enable_x64 == before
    assert jnp.ones(2).dtype == (jnp.float64 if before else jnp.float32)


class Layer(typing.NamedTuple):
    weights: typing.Any
    name: str
    rate: float


def test_arguments_are_pytrees_and_what_is_no_float_is_constant():
    def loss(layers, key, active):
        total = 0.0
        for layer in layers:
            noise = jax.random.normal(key, layer.weights.shape)
            total += layer.rate * jnp.sum(jnp.tanh(layer.weights) * noise) * active
        return total

    layers = [Layer(normal(2), "a", 0.5), Layer(normal(3, seed=1), "b", 2.0)]
    proof = reader.prove(loss, layers, jax.random.key(0), True)
    assert proof
    assert proof.coordinates == 7


def test_flax_and_equinox_modules_are_proved():
    flax = pytest.importorskip("flax.linen")
    model = flax.Dense(2)
    x = normal(4, 3)
    parameters = model.init(jax.random.key(0), x)
    assert reader.prove(lambda p, x: (model.apply(p, x) ** 2).sum(), parameters, x)
    equinox = pytest.importorskip("equinox")
    mlp = equinox.nn.MLP(2, 1, 3, 2, key=jax.random.key(0))
    assert reader.prove(lambda mlp, x: (jax.vmap(mlp)(x) ** 2).sum(), mlp, normal(4, 2))


def test_a_backward_pass_may_return_a_list():
    forward = lambda x: (x**2, x)  # noqa: E731
    assert reader.prove_vjp(forward, lambda x, d: [2 * x * d], normal(3))
    of_list = lambda x: (x[0] ** 2, x)  # noqa: E731
    assert reader.prove_vjp(of_list, lambda x, d: [2 * x[0] * d], [normal(3)])
    wrong = reader.prove_vjp(forward, lambda x, d: [x * d], normal(3))
    assert wrong.verdict is Verdict.REFUTED


def test_complex_numbers_are_not_traceable_and_warn_nobody():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proof = reader.prove(lambda x: (jnp.abs(jnp.fft.fft(x)) ** 2).sum(), normal(3))
    assert proof.verdict is Verdict.NOT_TRACEABLE


def test_an_operation_without_a_rule_is_named_with_the_line_of_the_user():
    def f(x):
        return jnp.sum(jnp.linalg.svd(x, compute_uv=False))

    proof = reader.prove(f, normal(3, 2))
    assert proof.verdict is Verdict.NOT_TRACEABLE
    assert "svd" in proof.reason
    assert "`return jnp.sum(jnp.linalg.svd(x, compute_uv=False))`" in proof.reason
    assert "exactgrad.jax.rule" in proof.reason


def test_a_rule_that_a_user_adds_is_used_and_gets_the_parameters_that_it_names(monkeypatch):
    monkeypatch.setattr(reader, "USER_RULES", {})

    def zeta(x, q):
        """Return a function that has the derivative of the zeta function by neither argument."""
        out = np.zeros(x.shape)
        out[...] = x * q
        return out

    reader.rule("zeta", zeta)
    reader.rule("cumsum", lambda x, axis: np.cumsum(x, axis) * 3)
    with pytest.raises(TypeError, match="numpy_function"):
        reader.rule("sin", 3)

    def f(x):
        return jnp.cumsum(x * x).sum()

    wrong = jax.custom_vjp(f)
    wrong.defvjp(lambda x: (f(x), x), lambda x, d: (3 * d * 2 * x * jnp.arange(3, 0, -1.0),))
    assert reader.prove(wrong, normal(3)), "by a cumulative sum that is 3 times too large"


# --- pairs, and two functions


def attention_forward(q, k, v):
    a = jax.nn.softmax(q @ k.T / 2, axis=-1)
    return a @ v, (q, k, v, a)


def attention_backward(residuals, d_o, scale=0.5, inner=1):
    q, k, v, a = residuals
    d_a = d_o @ v.T
    d_s = a * (d_a - inner * (d_a * a).sum(-1, keepdims=True))
    return d_s @ k * scale, d_s.T @ q * scale, a.T @ d_o


def test_a_backward_pass_alone_is_proved_or_refuted():
    inputs = normal(3, 2), normal(4, 2, seed=1), normal(4, 3, seed=2)
    proof = reader.prove_vjp(attention_forward, attention_backward, *inputs)
    assert proof
    assert proof.coordinates == 6 + 8 + 12
    wrong = reader.prove_vjp(attention_forward, partial(attention_backward, scale=1), *inputs)
    assert str(wrong).startswith("refuted: 14 of 26")
    assert "k[3, 1]: by hand" in str(wrong)
    assert "they are 2 times what is right" in str(wrong)


def test_residuals_are_part_of_the_proof():
    def forward(x):
        return jnp.sin(x), jnp.sin(x)

    def backward(sin, d):
        return d * jnp.sqrt(1 - sin**2)

    inside = np.array([0.3, -0.4])
    assert reader.prove_vjp(forward, backward, inside).verdict is not Verdict.REFUTED
    outside = np.array([2.5, 2.0])  # where the cosine is negative
    assert reader.prove_vjp(forward, backward, outside).verdict is not Verdict.PROVED
    assert reader.prove_vjp(forward, lambda sin, d: d * sin, inside).verdict is Verdict.REFUTED


def test_integers_none_and_structures_in_a_pair():
    def forward(params, index, scale):
        out = {"rows": params["table"][index] * scale, "index": index + 1}
        return out, (params["table"], index, scale)

    def backward(residuals, d):
        table, index, scale = residuals
        d_table = jnp.zeros_like(table).at[index].add(d["rows"] * scale)
        return {"table": d_table, "unused": None}, None, (d["rows"] * table[index]).sum()

    params = {"table": normal(4, 2), "unused": normal(2)}
    index = np.array([1, 1, 3])
    proof = reader.prove_vjp(forward, backward, params, index, 0.7)
    assert proof
    assert proof.coordinates == 11
    overwritten = lambda r, d: (  # noqa: E731
        {"table": jnp.zeros_like(r[0]).at[r[1]].set(d["rows"] * r[2]), "unused": None},
        None,
        (d["rows"] * r[0][r[1]]).sum(),
    )
    wrong = reader.prove_vjp(forward, overwritten, params, index, 0.7)
    assert wrong.verdict is Verdict.REFUTED
    assert wrong.coordinates == 11
    with pytest.raises(ValueError, match="uple"):
        reader.prove_vjp(forward, lambda r, d: (None, None), params, index, 0.7)


def flash_attention(q, k, v, forgotten=0.0):
    """Return attention, computed in blocks of two keys."""
    highest = jnp.full((len(q), 1), -1e30)
    total = jnp.zeros((len(q), 1))
    out = jnp.zeros_like(q)
    for j in range(0, len(k), 2):
        s = q @ k[j : j + 2].T / 2
        now = jnp.maximum(highest, s.max(1, keepdims=True))
        p = jnp.exp(s - now)
        shrink = jnp.exp(highest - now) + forgotten
        total = total * shrink + p.sum(1, keepdims=True)
        out = out * shrink + p @ v[j : j + 2]
        highest = now
    return out / total


def test_two_functions_have_the_same_values_and_gradients():
    inputs = normal(3, 2), normal(4, 2, seed=1), normal(4, 2, seed=2)
    proof = reader.prove_same(flash_attention, attention, *inputs)
    assert proof
    assert proof.coordinates == 6 + 6 + 8 + 8
    wrong = reader.prove_same(partial(flash_attention, forgotten=1e-9), attention, *inputs)
    assert wrong.verdict is Verdict.REFUTED


def test_all_that_functions_return_is_compared_with_its_structure_and_shapes():
    x = normal(3)
    right = lambda x: (jnp.exp(x), jnp.argmax(x), x > 0)  # noqa: E731
    assert reader.prove_same(right, lambda x: [jnp.exp(x), x.argmax(), x > 0], x)
    for wrong in (
        lambda x: (jnp.exp(x), jnp.argmin(x), x > 0),
        lambda x: (jnp.exp(x), jnp.argmax(x), x < 0),
    ):
        assert reader.prove_same(right, wrong, x).verdict is Verdict.REFUTED
    assert reader.prove_same(lambda x: 1.0, lambda x: 2.0, x).verdict is Verdict.REFUTED
    for wrong in (jnp.sum, lambda x: x[None], lambda x: (x, x), lambda x: {"a": x}):
        with pytest.raises(ValueError, match="same structure and shapes"):
            reader.prove_same(lambda x: x, wrong, x)
    with pytest.raises(ValueError, match="inputs must hold"):
        reader.prove_same(lambda i: i, lambda i: i, jnp.arange(3))


def test_equal_values_do_not_hide_other_gradients():
    def held(x):
        return x * lax.stop_gradient(x)

    wrong = reader.prove_same(held, lambda x: x * x, normal(3))
    assert wrong.verdict is Verdict.REFUTED
    assert "gradient by x" in str(wrong)
    assert reader.prove_same(lambda x: x * x, lambda x: x**2, normal(3))


# --- attacks


def custom(value, forward, backward):
    f = jax.custom_vjp(value)
    f.defvjp(forward, backward)
    return f


def square(backward, value=lambda x: x * x):
    return custom(value, lambda x: (x * x, x), backward)


def verdict(f, *arguments):
    return reader.prove(lambda x: f(x).sum(), *arguments).verdict


def test_a_forward_rule_with_another_value_is_refuted():
    right = square(lambda x, d: (2 * x * d,))
    assert verdict(right, normal(3)) is Verdict.PROVED
    shifted = square(lambda x, d: (2 * x * d,), lambda x: x * x + 1e-9)
    proof = reader.prove(lambda x: shifted(x).sum(), normal(3))
    assert proof.verdict is Verdict.REFUTED
    assert "the forward rule of a custom derivative returns another value" in str(proof)
    other = square(lambda x, d: (2 * x * d,), lambda x: x**3)
    assert verdict(other, normal(3)) is Verdict.REFUTED


def test_a_forward_rule_with_another_value_on_another_path_is_refuted():
    def forward(x):
        return jnp.where(x > 0, x * x, x * x + 1), x

    f = custom(lambda x: x * x, forward, lambda x, d: (2 * x * d,))
    for theta in (np.array([0.5, 0.2]), np.array([-0.5, -0.2]), np.array([0.5, -0.2])):
        assert verdict(f, theta) is Verdict.REFUTED


def test_a_gradient_that_is_right_at_this_theta_only_is_refuted():
    here = normal(3)
    assert verdict(square(lambda x, d: (2 * here * d,)), here) is not Verdict.PROVED
    assert verdict(square(lambda x, d: ((x + here) * d,)), here) is not Verdict.PROVED


def test_a_gradient_that_is_right_on_one_branch_only_is_refuted():
    def backward(x, d):
        return (lax.cond(x.sum() > 0, lambda x: 2 * x, lambda x: 3 * x, x) * d,)

    for theta in (np.array([0.5, 0.2]), np.array([-0.5, -0.2])):
        assert verdict(square(backward), theta) is Verdict.REFUTED

    def by_value(x, d):
        return (jnp.where(x > 0, 2 * x, 3 * x) * d,)

    assert verdict(square(by_value), np.array([0.5, 0.2])) is Verdict.REFUTED


@pytest.mark.parametrize(
    ("step", "scale", "expected"),
    [(0, 0.0, Verdict.PROVED), *((step, 1e-6, Verdict.REFUTED) for step in range(3))],
)
def test_a_gradient_that_is_wrong_in_one_round_of_a_scan_is_refuted(step, scale, expected):
    def forward(x):
        out, states = lax.scan(lambda c, u: (c * u, c), 1.0, x)
        return out, (x, states)

    def backward(residuals, d):
        x, states = residuals

        def back(d, row):
            u, c, i = row
            return d * u, d * c * jnp.where(i == step, 1 + scale, 1.0)

        return (lax.scan(back, d, (x, states, jnp.arange(3)), reverse=True)[1],)

    product = custom(lambda x: forward(x)[0], forward, backward)
    assert reader.prove(product, normal(3)).verdict is expected


@pytest.mark.parametrize(
    ("factor", "expected"), [(2, Verdict.PROVED), (2.0000001, Verdict.REFUTED)]
)
def test_a_custom_jvp_with_a_wrong_tangent_is_refuted(factor, expected):
    f = jax.custom_jvp(lambda x: x * x)
    f.defjvp(lambda primals, tangents: (f(*primals), factor * primals[0] * tangents[0]))
    assert verdict(f, normal(3)) is expected


def test_a_residual_that_is_wrong_but_multiplied_by_zero_does_no_harm():
    f = custom(
        lambda x: x * x,
        lambda x: (x * x, (x, jnp.exp(x))),
        lambda r, d: ((2 * r[0] + 0 * r[1]) * d,),
    )
    assert verdict(f, normal(3)) is Verdict.PROVED


def test_state_outside_of_the_program_is_no_way_out():
    calls = []

    def backward(x, d):
        calls.append(1)
        return (d * x * (2 if len(calls) == 1 else 3),)

    first = verdict(square(backward), normal(3))
    calls.clear()
    assert first is Verdict.PROVED  # the program that was traced, which JAX would run
    calls.append(1)
    assert verdict(square(backward), normal(3)) is Verdict.REFUTED


def test_closures_and_constants_are_part_of_the_program():
    table = jnp.asarray(normal(3))
    scale = np.float32(0.1)
    f = custom(
        lambda x: x * table * scale,
        lambda x: (x * table * scale, None),
        lambda _, d: (d * table * scale,),
    )
    assert verdict(f, normal(3)) is Verdict.PROVED
    g = custom(
        lambda x: x * table * scale,
        lambda x: (x * table * scale, None),
        lambda _, d: (d * table * 0.10000001,),
    )
    assert verdict(g, normal(3)) is Verdict.REFUTED


def test_a_loop_that_runs_until_it_has_converged_is_proved_on_its_path():
    def root(a):
        return lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-2, lambda x: (x + a / x) / 2, a)

    def implicit(factor):
        def newton(a):
            for _ in range(4):
                a = (a + 2.0 / a) / 2
            return a

        return newton if factor else root

    f = custom(root, lambda a: (root(a), a), lambda a, d: (d * 0.5,))
    assert reader.prove(f, np.array(2.3)).verdict is Verdict.REFUTED
    assert reader.prove(implicit(1), np.array(2.3))


def test_straight_through_estimators_are_refuted_and_say_why():
    def rounded(x):
        return (x + lax.stop_gradient(jnp.round(x) - x)) ** 2

    proof = reader.prove(lambda x: rounded(x).sum(), normal(3))
    assert proof.verdict is Verdict.REFUTED
    assert "it is the gradient if what jax.lax.stop_gradient holds constant is" in str(proof)
    assert "`return (x + lax.stop_gradient(jnp.round(x) - x)) ** 2`" in str(proof)
    by_rule = custom(lambda x: jnp.round(x), lambda x: (jnp.round(x), None), lambda _, d: (d,))
    assert verdict(by_rule, normal(3)) is Verdict.REFUTED
    wrong_too = custom(rounded, lambda x: (rounded(x), x), lambda x, d: (3 * d * jnp.round(x),))
    assert "stop_gradient" not in str(reader.prove(lambda x: wrong_too(x).sum(), normal(3)))


def test_jax_is_not_imported_with_the_package():
    code = "import exactgrad, sys; exactgrad.prove; print({'jax', 'torch'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# --- kernels of Pallas


def block(rows, columns):
    return pl.BlockSpec((rows, columns), lambda i: (i, 0))


def whole(rows, columns):
    return pl.BlockSpec((rows, columns), lambda i: (0, 0))


def softmax_kernel(x, row_sums_of=jnp.exp):
    def kernel(x_ref, out_ref):
        z = x_ref[...] - x_ref[...].max(-1, keepdims=True)
        out_ref[...] = jnp.exp(z) / row_sums_of(z).sum(-1, keepdims=True)

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    specs = block(2, x.shape[1])
    return pl.pallas_call(
        kernel, shape, grid=(len(x) // 2,), in_specs=[specs], out_specs=specs, interpret=True
    )(x)


def test_a_softmax_of_pallas_is_proved_and_a_wrong_one_is_refuted():
    def backward(p, d, inner=1):
        return p * (d - inner * (p * d).sum(-1, keepdims=True))

    def forward(x):
        p = softmax_kernel(x)
        return p, p

    x = normal(4, 3)
    assert reader.prove_vjp(forward, backward, x)
    wrong = reader.prove_vjp(forward, partial(backward, inner=2), x)
    assert wrong.verdict is Verdict.REFUTED
    by_kernel = custom(lambda x: softmax_kernel(x), forward, lambda p, d: (backward(p, d),))
    assert reader.prove_same(by_kernel, jax.nn.softmax, x)
    other = partial(softmax_kernel, row_sums_of=lambda z: jnp.exp(z[:, 1:]))
    wrong_kernel = custom(
        lambda x: other(x), lambda x: (other(x), other(x)), lambda p, d: (backward(p, d),)
    )
    assert reader.prove_same(wrong_kernel, jax.nn.softmax, x).verdict is Verdict.REFUTED


def attention_kernels(scale_of_backward=0.5, scale_of_forward=0.5, n_blocks=2):
    """Return attention with a kernel for the forward and one for the backward pass, over rows."""

    def forward(q, k, v):
        def kernel(q_ref, k_ref, v_ref, out_ref, log_sum_ref):
            s = q_ref[...] @ k_ref[...].T * scale_of_forward
            highest = s.max(-1, keepdims=True)
            p = jnp.exp(s - highest)
            total = p.sum(-1, keepdims=True)
            out_ref[...] = p @ v_ref[...] / total
            log_sum_ref[...] = highest + jnp.log(total)

        rows = len(q) // n_blocks
        out, log_sum = pl.pallas_call(
            kernel,
            (
                jax.ShapeDtypeStruct((len(q), v.shape[1]), v.dtype),
                jax.ShapeDtypeStruct((len(q), 1), v.dtype),
            ),
            grid=(n_blocks,),
            in_specs=[block(rows, q.shape[1]), whole(*k.shape), whole(*v.shape)],
            out_specs=(block(rows, v.shape[1]), block(rows, 1)),
            interpret=True,
        )(q, k, v)
        return out, (q, k, v, out, log_sum)

    def backward(residuals, d_out):
        q, k, v, out, log_sum = residuals

        def kernel(q_ref, k_ref, v_ref, out_ref, log_sum_ref, d_ref, d_q_ref, d_k_ref, d_v_ref):
            @pl.when(pl.program_id(0) == 0)
            def _():
                d_k_ref[...] = jnp.zeros_like(d_k_ref)
                d_v_ref[...] = jnp.zeros_like(d_v_ref)

            p = jnp.exp(q_ref[...] @ k_ref[...].T * scale_of_forward - log_sum_ref[...])
            d_p = d_ref[...] @ v_ref[...].T
            inner = (d_ref[...] * out_ref[...]).sum(-1, keepdims=True)
            d_s = p * (d_p - inner) * scale_of_backward
            d_q_ref[...] = d_s @ k_ref[...]
            d_k_ref[...] += d_s.T @ q_ref[...]
            d_v_ref[...] += p.T @ d_ref[...]

        rows = len(q) // n_blocks
        return tuple(
            pl.pallas_call(
                kernel,
                tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (q, k, v)),
                grid=(n_blocks,),
                in_specs=[
                    block(rows, q.shape[1]),
                    whole(*k.shape),
                    whole(*v.shape),
                    block(rows, v.shape[1]),
                    block(rows, 1),
                    block(rows, v.shape[1]),
                ],
                out_specs=(block(rows, q.shape[1]), whole(*k.shape), whole(*v.shape)),
                interpret=True,
            )(q, k, v, out, log_sum, d_out)
        )

    return forward, backward


def test_attention_with_two_kernels_of_pallas_is_proved_and_a_mistake_in_each_is_refuted():
    inputs = normal(4, 2), normal(3, 2, seed=1), normal(3, 2, seed=2)
    forward, backward = attention_kernels()
    assert reader.prove_vjp(forward, backward, *inputs)
    by_kernels = custom(lambda *x: forward(*x)[0], forward, backward)
    assert reader.prove_same(by_kernels, attention, *inputs)
    wrong = reader.prove_vjp(*attention_kernels(scale_of_backward=1), *inputs)
    assert str(wrong).startswith("refuted: 14 of 20")
    assert "test_jax.py, `" in str(wrong)
    forward, backward = attention_kernels(scale_of_forward=0.25, scale_of_backward=0.25)
    other = custom(lambda *x: forward(*x)[0], forward, backward)
    assert reader.prove_vjp(forward, backward, *inputs)
    assert reader.prove_same(other, attention, *inputs).verdict is Verdict.REFUTED


def test_what_a_kernel_does_not_write_is_no_number():
    def kernel(x_ref, out_ref):
        out_ref[:2] = x_ref[:2] * 2

    def unwritten(x):
        return pl.pallas_call(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x)

    proof = reader.prove_vjp(lambda x: (unwritten(x), None), lambda _, d: 2 * d, normal(3))
    assert not proof
    compiled = pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), float))
    with pytest.raises(ValueError, match="interpret=True"):
        reader.prove_vjp(lambda x: (compiled(x), None), lambda _, d: 2 * d, normal(3))


def test_the_page_prints_what_it_shows(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text("utf-8")
    example = r"```python\n(import jax\n.*?)```\n\n```text\n(.*?)```"
    code, shown = re.search(example, page, re.DOTALL).groups()
    file = tmp_path / "rms_norm.py"
    file.write_text(code)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, str(file), "exec"), {"__name__": "page"})
    assert output.getvalue() == shown


def test_lines_are_those_of_this_call_though_jax_keeps_the_trace_of_an_earlier_one():
    def first(x):
        return jnp.linalg.cholesky(spd(x)).sum()

    def second(x):
        return jnp.linalg.cholesky(spd(x)).sum()

    def lines_of(f):
        program = reader.Reader()
        program.to_numpy(reader._trace(jax.grad(f), normal(3, 3)))
        return {line for file, line in program.lines if file == __file__}

    start = first.__code__.co_firstlineno
    assert start + 1 in lines_of(first)
    assert start + 1 not in lines_of(second)
    assert start + 4 in lines_of(second)


def test_a_profiler_goes_on():
    profiler = cProfile.Profile()
    profiler.enable()
    assert verdict(square(lambda x, d: (2 * x * d,)), normal(3)) is Verdict.PROVED
    assert sys.getprofile() is not None or sys.version_info >= (3, 12)
    profiler.disable()
    assert verdict(square(lambda x, d: (3 * x * d,)), normal(3)) is Verdict.REFUTED
    assert sys.getprofile() is None


FLOATS = {"float32": jnp.float32, "float16": jnp.float16, "bfloat16": jnp.bfloat16}


@pytest.mark.parametrize("name", FLOATS)
def test_a_constant_of_few_digits_is_the_decimal_that_one_writes_for_it(name):
    constants = jnp.asarray([0.1, 0.7, 2**-12], FLOATS[name])
    written = np.array([0.1, 0.7, 2**-12])
    x = normal(3)
    assert reader.prove_same(lambda x: constants * x, lambda x: written * x, x)
    assert not reader.prove_same(lambda x: constants * x, lambda x: 1.0001 * written * x, x)


def test_a_number_of_float32_is_the_decimal_that_one_writes_for_it():
    x = normal(3)
    assert reader.prove_same(lambda x: jnp.float32(0.1) * x, lambda x: 0.1 * x, x)
    assert reader.prove_same(lambda x: jnp.float32(2**-20) * x, lambda x: x / 2**20, x)
    same = reader.prove_same(lambda x: jnp.float32(0.1) * x, lambda x: 0.10000001 * x, x)
    assert same.verdict is Verdict.REFUTED


def test_options_that_have_no_meaning_here_are_refused():
    with pytest.raises(TypeError, match=r"got order: .*exactgrad\.prove\(\.\.\., order=2\)"):
        reader.prove(jnp.sum, normal(2), order=2)
    with pytest.raises(TypeError, match="got fixed: leave it out"):
        reader.prove_vjp(lambda x: (x, x), lambda x, u: u, normal(2), fixed="x")
    assert reader.prove(jnp.sum, normal(2), n_points=2, seed=1, fixed=())


def test_masked_arrays_and_matrices_are_refused():
    masked = np.ma.masked_array(normal(2), [True, False])
    with pytest.raises(ValueError, match="x must be an array without a mask"):
        reader.prove(lambda x: jnp.sum(x), masked)
    with pytest.raises(ValueError, match="y must be an array; got a matrix"):
        reader.prove(lambda x, y: jnp.sum(x) * jnp.sum(y), normal(2), np.eye(2).view(np.matrix))


def test_a_root_by_a_power_is_a_root_also_where_jax_computes_its_exponent():
    proof = reader.prove(lambda x: jnp.sum(jnp.abs(x) ** 0.5), normal(3))
    assert proof.verdict is Verdict.PROVED

    @jax.custom_jvp
    def power(x, y):
        return jnp.sum(x**y)

    @power.defjvp
    def _(primals, tangents):
        x, y = primals
        return power(x, y), jnp.sum(y * x ** (y - 1) * tangents[0])  # nothing by y

    x = positive(2)
    half = np.array(0.5)
    assert reader.prove(lambda both: power(*both), (x, half)).verdict is Verdict.REFUTED
    assert reader.prove(power, x, half)
    plain = reader.prove_same(lambda x, y: x**y, lambda x, y: jnp.sqrt(x), x, half)
    assert plain.verdict is Verdict.REFUTED  # for other y it is no root


def test_the_remedy_for_an_operation_without_a_rule_is_a_rule():
    def linalg(x):
        return jnp.sum(lax.igamma(2.0, x))  # linalg

    proof = reader.prove(linalg, positive(2))
    assert str(proof).endswith("Give the operation a rule: exactgrad.jax.rule")
    assert "elimination" not in str(proof)
