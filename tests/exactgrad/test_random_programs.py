"""Random programs with backward passes by rules: right ones are proved, one wrong rule is not."""

import numpy as np
import pytest
from hypothesis import given
from problems import examples, seeds

from bbb_numpy import prove


def _scattered(x, index, g):
    out = np.zeros_like(x)
    np.add.at(out, index, g)
    return out


def _symmetric(x):
    return x @ x.T + np.eye(len(x))


def _cholesky_vjp(lower, g):
    half = np.tril(lower.T @ g)
    half = half - np.diag(np.diag(half)) / 2
    half = np.linalg.solve(lower.T, half) @ np.linalg.inv(lower)
    return half + half.T


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _normalised(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.5)


def _normalised_vjp(g, y, x):
    centred = g - g.mean(-1, keepdims=True) - y * (g * y).mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + 0.5)


def _largest_vjp(g, y, x):  # a row that occurs twice is shared
    return g * (x == y) / (x == y).sum(-1, keepdims=True)


# By names: a function of one array, and its backward rule, from a cotangent, the result and x
RULES = {
    "exp": (np.exp, lambda g, y, x: g * y),
    "tanh": (np.tanh, lambda g, y, x: g * (1 - y * y)),
    "log": (lambda x: np.log1p(x * x), lambda g, y, x: g * 2 * x / (x * x + 1)),
    "root": (lambda x: np.sqrt(x * x + 1), lambda g, y, x: g * x / y),
    "length": (lambda x: np.linalg.norm(x, axis=-1, keepdims=True), lambda g, y, x: g * x / y),
    "square": (np.square, lambda g, y, x: 2 * x * g),
    "power": (lambda x: x**3, lambda g, y, x: 3 * x**2 * g),
    "over": (lambda x: 1 / (2 + x * x), lambda g, y, x: -2 * x * y * y * g),
    "sin": (np.sin, lambda g, y, x: g * np.cos(x)),
    "arctan": (np.arctan, lambda g, y, x: g / (1 + x * x)),
    "absolute": (np.abs, lambda g, y, x: g * np.sign(x)),
    "relu": (lambda x: np.maximum(x, 0), lambda g, y, x: g * (x > 0)),
    "softplus": (lambda x: np.logaddexp(0, x), lambda g, y, x: g / (1 + np.exp(-x))),
    "softmax": (_softmax, lambda g, y, x: y * (g - (g * y).sum(-1, keepdims=True))),
    "normalised": (_normalised, _normalised_vjp),
    "cumsum": (lambda x: np.cumsum(x, -1), lambda g, y, x: np.cumsum(g[..., ::-1], -1)[..., ::-1]),
    "sum": (lambda x: x.sum(-1, keepdims=True), lambda g, y, x: np.broadcast_to(g, x.shape)),
    "mean": (lambda x: x.mean(0, keepdims=True), lambda g, y, x: g / len(x) + 0 * x),
    "max": (lambda x: x.max(-1, keepdims=True), _largest_vjp),
    "transpose": (np.transpose, lambda g, y, x: g.T),
    "roll": (lambda x: np.roll(x, 1, 0), lambda g, y, x: np.roll(g, -1, 0)),
    "sort": (
        lambda x: np.sort(x, -1),
        lambda g, y, x: np.take_along_axis(g, np.argsort(np.argsort(x, -1), -1), -1)),
    "rows": (lambda x: x[[0, -1, 0]], lambda g, y, x: _scattered(x, [0, -1, 0], g)),
    "twice": (lambda x: np.concatenate([x, 2 * x]), lambda g, y, x: g[: len(x)] + 2 * g[len(x) :]),
    "triangle": (lambda x: x - np.tril(x), lambda g, y, x: np.triu(g, 1)),
    "inverse": (
        lambda x: np.linalg.inv(_symmetric(x)), lambda g, y, x: -(y.T @ (g + g.T) @ y.T) @ x),
    "determinant": (
        lambda x: np.linalg.slogdet(_symmetric(x))[1].reshape(1, 1),
        lambda g, y, x: 2 * g * np.linalg.solve(_symmetric(x), x)),
    "cholesky": (
        lambda x: np.linalg.cholesky(_symmetric(x)), lambda g, y, x: _cholesky_vjp(y, g) @ x),
}  # fmt: skip
RULES_OF_TWO = {
    "add": (np.add, lambda g, y, a, b: (g, g)),
    "subtract": (np.subtract, lambda g, y, a, b: (g, -g)),
    "multiply": (np.multiply, lambda g, y, a, b: (g * b, g * a)),
    "divide": (
        lambda a, b: a / (1 + b * b),
        lambda g, y, a, b: (g / (1 + b * b), -2 * b * g * y / (1 + b * b))),
    "where": (
        lambda a, b: np.where(a > b, a, b * b),
        lambda g, y, a, b: (g * (a > b), 2 * b * g * (a <= b))),
    "maximum": (np.maximum, lambda g, y, a, b: (g * (a > b), g * (a <= b))),
    "hypot": (np.hypot, lambda g, y, a, b: (g * a / y, g * b / y)),
    "matmul": (lambda a, b: a @ b.T, lambda g, y, a, b: (g @ b, g.T @ a)),
    "power": (
        lambda a, b: (a * a + 1) ** b,
        lambda g, y, a, b: (2 * a * b * g * y / (a * a + 1), g * y * np.log(a * a + 1))),
    "arctan2": (
        np.arctan2,
        lambda g, y, a, b: (g * b / (a * a + b * b), -g * a / (a * a + b * b))),
}  # fmt: skip
ERRORS = (
    lambda g: -g, lambda g: 2 * g, lambda g: 0 * g, lambda g: g * (1 + 1e-6),
    lambda g: 0 * g + g.mean(), lambda g: g * (np.arange(len(g)) > 0)[:, None],
)  # fmt: skip


def random_steps(rng, most=6):
    """Up to so many operations: names, and the places of arguments among the results so far."""
    steps = []
    for made in range(2, int(rng.integers(3, most + 3))):
        place = made - 1 if rng.random() < 0.7 else int(rng.integers(made))
        if rng.random() < 0.6:
            steps.append((RULES[rng.choice(list(RULES))], [place]))
        else:
            pair = RULES_OF_TWO[rng.choice(list(RULES_OF_TWO))]
            steps.append((pair, [place, int(rng.integers(made))]))
    return steps


def program(steps, wrong=(), error=None):
    """A weighted sum of all results and its gradient; at the place `wrong` with an error."""

    def value_and_grad(theta):
        made = [theta["a"], theta["b"]]
        for (f, _), places in steps:
            made.append(f(*(made[k] for k in places)))
        weights = [np.arange(1.0, one.size + 1).reshape(one.shape) / 8 for one in made]
        grads = [w + 0 * one for w, one in zip(weights, made, strict=True)]
        for k in range(len(made) - 1, 1, -1):
            (_, back), places = steps[k - 2]
            cotangents = back(grads[k], made[k], *(made[j] for j in places))
            pair = cotangents if isinstance(cotangents, tuple) else (cotangents,)
            for i, (j, g) in enumerate(zip(places, pair, strict=True)):
                spread = tuple(m for m, n in enumerate(made[j].shape) if n < g.shape[m])
                g = g.sum(axis=spread, keepdims=True) if spread else g
                grads[j] = grads[j] + (error(g) if wrong == (k, i) else g)
        value = sum((w * one).sum() for w, one in zip(weights, made, strict=True))
        return value, {"a": grads[0], "b": grads[1]}

    return value_and_grad


def flat(gradient):
    return np.concatenate([gradient["a"].ravel(), gradient["b"].ravel()])


@pytest.mark.equation("D44")
@pytest.mark.parametrize(("most", "points"), [(2, 1), pytest.param(6, 8, marks=pytest.mark.slow)])
@examples(20)
@given(seed=seeds)
def test_a_right_program_is_never_refuted_and_a_wrong_one_never_proved(seed, most, points):
    rng = np.random.default_rng(seed)
    steps = random_steps(rng, most)
    theta = {"a": rng.standard_normal((3, 2)), "b": rng.standard_normal((3, 2))}
    try:
        with np.errstate(all="ignore"):  # there may be no derivative
            _, right = program(steps)(theta)
    except (ValueError, np.linalg.LinAlgError):  # shapes that do not go together
        return
    if not np.abs(flat(right)).max() < 1e8:
        return
    proof = prove(program(steps), theta, n_points=points)
    # equal numbers may be compared, or numbers that are equal but for rounding
    assert proof or "kink" in proof.reason or "with floats" in proof.reason, proof
    k = int(rng.integers(len(steps)))
    wrong = program(
        steps, (k + 2, int(rng.integers(len(steps[k][1])))), ERRORS[rng.integers(len(ERRORS))]
    )
    off = np.abs(flat(wrong(theta)[1]) - flat(right)).max()
    if off > 1e-9 * np.abs(flat(right)).max():
        found = prove(wrong, theta, n_points=points)
        assert found.verdict == "refuted" or (not found and not proof), found
