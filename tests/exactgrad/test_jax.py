"""JAX gradients are proved, and wrong ones are refuted at the line of the user's file."""

import numpy as np
import pytest

from exactgrad import Verdict

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax
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
