"""arrays, functions, linear: NumPy's functions on exact numbers, with their derivatives.

The oracle: with sixty digits the numbers are those of NumPy's floats, and their derivatives those
of complex or central differences; in a field the same code runs on residues.
"""

import threading
from decimal import localcontext
from types import BuiltinFunctionType

import numpy as np
import pytest
from scipy import special

from exactgrad import prove, stop_gradient
from exactgrad.fields.digits import N_DIGITS, Digits, context
from exactgrad.fields.finite import Prime, Untraceable
from exactgrad.trace.arrays import UFUNCS, Exact, dual_residues, lift
from exactgrad.trace.copies import Copies
from exactgrad.trace.functions import SPECIAL, function
from exactgrad.trace.slopes import slope_along

RNG = np.random.default_rng(0)
V, W = RNG.uniform(0.2, 0.9, (3, 4)), RNG.uniform(0.2, 0.9, (3, 4))
STEP = 1e-5


def moving(field, v, direction):
    """Floats as exact numbers that move in a direction."""
    b = field.from_floats(direction) if field.is_decimal else np.asarray(direction)[..., None]
    return Exact(field, dual_residues(field, field.variable(v), b), v.copy())


def derivative(f, v, direction):
    """Central differences of fourth order."""
    at = [np.asarray(f(v + k * STEP * direction)) for k in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * STEP)


def agrees(f, v=V):
    """Whether f of exact numbers has NumPy's value and its derivative."""
    direction = np.random.default_rng(1).standard_normal(v.shape)
    with localcontext(context(60)):
        field = Digits(0)
        x = moving(field, v, direction)
        with np.errstate(invalid="ignore"):
            found = Copies().call(field, f, x)
        found = lift(found, field)
        a, b = found.primal[..., 0].astype(float), found.tangent[..., 0].astype(float)
    np.testing.assert_allclose(a, f(v), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.floats, f(v), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(b, derivative(f, v, direction), rtol=1e-7, atol=1e-8)
    field = Prime(0)
    with np.errstate(invalid="ignore"):
        found = Copies().call(field, f, moving(field, v, np.ones(v.shape, int)))
        assert lift(found, field).shape == np.shape(f(v))


ELEMENTARY = ["exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "tanh",
              "sinh", "cosh", "sin", "cos", "tan", "arctan", "arcsinh", "arctanh", "square",
              "reciprocal", "negative", "positive", "absolute", "fabs", "deg2rad"]  # fmt: skip
OF_SCIPY = ["expit", "log_expit", "logit", "entr", "erf", "erfc", "ndtr", "log_ndtr", "gammaln",
            "loggamma", "digamma", "psi"]  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTARY)
def test_numpys_functions_have_their_values_and_slopes(name):
    agrees(getattr(np, name))
    if name not in ("log", "log2", "log10", "sqrt", "log1p", "arctanh"):
        agrees(getattr(np, name), -V)


@pytest.mark.parametrize(("f", "half"), [(np.expm1, 0.5), (np.log1p, -0.5)])
def test_of_the_smallest_numbers_two_terms_are_seen(f, half):
    with localcontext(context(5 * N_DIGITS)):
        x = moving(Digits(0), np.array([1e-70, 1e-50]), np.ones(2))
        assert (abs((f(x) - x) / (x * x) - half).primal < 1e-49).all()
        assert (abs(f(x).tangent - x.tangent - x.primal * x.tangent * int(2 * half)) < 1e-99).all()


@pytest.mark.parametrize("name", OF_SCIPY)
def test_scipys_functions_have_their_values_and_slopes(name):
    agrees(getattr(special, name))


def test_every_ufunc_that_is_known_is_tried_here_or_below():
    here = {*ELEMENTARY, *OF_SCIPY}
    elsewhere = {
        "add", "subtract", "multiply", "divide", "power", "float_power", "conjugate", "maximum",
        "minimum", "fmax", "fmin", "sign", "clip", "less", "less_equal", "greater",
        "greater_equal", "equal", "not_equal", "isfinite", "isnan", "isinf", "signbit", "arcsin",
        "arccos", "arctan2", "hypot", "logaddexp", "xlogy", "xlog1py", "rel_entr", "betaln", "i0e",
        "i1e", "erfinv", "ndtri", "matmul", "vecdot", "floor", "ceil", "trunc", "rint", "remainder",
        "fmod", "floor_divide",
    }  # fmt: skip
    assert set(UFUNCS) == here | elsewhere


M = RNG.standard_normal((4, 4)) + 3 * np.eye(4)


def running(x):
    """Sums kept in a list, and a swap: what += leaves as it was."""
    s, sums = 0 * x[0, 0], []
    for v in x[0]:
        s += v
        sums.append(s)
    y = x[1].copy()
    old = y[0]
    y[0] = y[1]
    y[1] = old
    return np.array(sums) * y


def through_views(x):
    """What is written through views arrives."""
    y = x * 2
    np.split(y, 2, axis=1)[1][...] += 1
    np.expand_dims(y, 0)[0, 0] *= 3
    np.flip(y, 0)[0, 0] = x[1, 1]
    return y


def put_in_order(x):
    out = np.zeros_like(x)
    np.put_along_axis(out, np.argsort(-x, axis=1), x**2, 1)
    return out


def sorted_in_place(x):
    y = x * x
    y.sort()
    return y


PROGRAMS = {
    "arithmetic": lambda x: (x + 2) * (3 - x) / (x * x + 1) - x,
    "powers": lambda x: x**3 + x**-2 + x**0.5 + x**1.5 + x**0.3 + 2.0**x + x**W,
    "broadcasting": lambda x: x[:, None] * x[None] + W[0],
    "gates": lambda x: x * (W > 0.5) + np.where(x > 0.5, x, 2 * x),
    "extremes": lambda x: np.maximum(x, 0.55) + np.minimum(x, W) + np.clip(x, 0.3, 0.8),
    "largest": lambda x: np.max(x) + x.max(axis=1) + np.min(x, axis=1) + np.ptp(x),
    "rounded": lambda x: np.floor(9 * x) * x + np.ceil(9 * x) / x + np.trunc(-9 * x) * x**2
    + np.rint(9 * x) * x + np.round(x, 1) * x + (10 * x).round()
    + np.fix(-4 * x) * np.sign(x - 0.5),
    "rounded down to tens": lambda x: np.round(900 * x, -2) * x,
    "remainders": lambda x: (9 * x) % 1 + np.remainder(-x, W) + np.fmod(-x, 0.13) + x // W * x,
    "a table that is interpolated": lambda x: np.arange(10.0)[(9 * x).astype(int)] ** 2
    + (9 * x - np.floor(9 * x)) * (2 * (9 * x).astype(int) + 1),
    "accumulated": lambda x: np.maximum.accumulate(x, axis=1) * np.minimum.accumulate(x)
    + np.logaddexp.accumulate(x, axis=-1) + np.cumprod(x, 0),
    "the largest three": lambda x: np.take_along_axis(
        x, np.argpartition(-x, 2, axis=1)[:, :3], 1) ** 2 + np.sort(x)[:, ::-1][:, :3],
    "put along an axis": lambda x: put_in_order(x) * np.arange(4.0),
    "sorted in place": lambda x: sorted_in_place(x) * np.arange(4.0),
    "bins": lambda x: x ** np.searchsorted([0.31, 0.52], x) + x * np.digitize(x, [0.7, 0.4])
    + x * np.searchsorted(np.sort(x[0]), W, sorter=np.arange(4)),
    "sorted": lambda x: np.sort(x, axis=0) * np.arange(3.0)[:, None]
    + x.ravel()[np.argsort(x.ravel())][0],
    "sums": lambda x: x.sum() + x.sum(axis=0) + x.mean(axis=0) + np.add.reduce(x)
    + np.sum(x, where=W > 0.5),
    "moments": lambda x: np.var(x, axis=0) + x.std(axis=0, ddof=1)
    + np.average(x, axis=0, weights=W[:, 0]),
    "products": lambda x: np.prod(x) + np.prod(x, axis=0) + np.cumprod(x, axis=0)[-1],
    "running sums": lambda x: np.cumsum(x, axis=1) + np.cumsum(x)[-1] + np.diff(x, axis=1).sum(),
    "matrices": lambda x: x @ M + x.dot(M) + np.matmul(x, M) + np.dot(W, M),
    "vectors": lambda x: x[0] @ x[1] + np.vdot(x, x) + np.inner(x[0], W[0]) + np.vecdot(x, W).sum(),
    "outer": lambda x: np.outer(x[0], x[1]) + np.multiply.outer(x[0], x[2])
    + np.kron(x[:2, :2], x[:2, :2]),
    "tensors": lambda x: np.tensordot(x, M, 1) + np.einsum("ij,jk->ik", x, M),
    "sums of letters": lambda x: np.einsum("ij,ij->i", x, x).sum()
    + np.einsum("ij,kj,k->i", x, x, x[:, 0]),
    "ellipsis": lambda x: np.einsum("...p,...p->...", x, W) + np.einsum("ii->i", x[:, :3])[0],
    "trace": lambda x: np.trace(x) + np.diagonal(x).sum() + np.diag(x[0])[1, 1] + np.tril(x).sum(),
    "shapes": lambda x: x.reshape(4, 3).T + x.ravel().reshape(3, 4) + np.squeeze(x[None]),
    "moves": lambda x: np.flip(x, 0) + np.roll(x, 1, axis=1) + np.repeat(x[:1], 3, axis=0)
    + np.tile(x[:, :1], 4),
    "joins": lambda x: np.concatenate([x, W]).sum(0) + np.stack([x, x]).sum((0, 1))
    + np.vstack([x, x])[3]
    + np.hstack([x, x])[0, :4] + np.column_stack([x[:, 0], x[:, 1]])[0, 1]
    + np.r_[x[0, 0], x[0]][1:],
    "columns first": lambda x: x.reshape(4, 3, order="F").T + x.ravel("F").reshape(3, 4)
    + np.reshape(x, (2, 6), order="F")[0, 5] + x.flatten("F")[7],
    "more numbers": lambda x: np.pad(x, 1)[1:-1, 1:-1] + np.pad(x, ((1, 1), (0, 0)), "edge")[:3]
    + np.insert(x, 1, 2.5, axis=0)[:3] + np.append(x, W, axis=0)[2:5],
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2)).sum((0, 1))
    + np.meshgrid(x[0], W[:, 0])[1][0, 0] + np.dstack([x, W])[:2, :2, 1],
    "choices": lambda x: np.select([W > 0.6, x > 0.5], [x * x, 3 * x], 1.0) + np.nan_to_num(x),
    "other norms": lambda x: np.linalg.norm(x, 1, axis=0) + np.linalg.norm(x[0], np.inf)
    + np.cross(x[:, :3], W[:, :3]).sum(),
    "odd roots and sinc": lambda x: np.cbrt(-x) + np.sinc(x) + np.prod(x, axis=(0, 1)),
    "numbers are no views": lambda x: running(x),
    "views of views": lambda x: through_views(x),
    "all in order": lambda x: np.sort(x, axis=None) * np.arange(12.0) + np.sum(x, dtype=float),
    "splits": lambda x: np.split(x, 2, axis=1)[1] + np.array_split(x, 2)[1][0, 0],
    "made inside": lambda x: written(x),
    "in place": lambda x: in_place(x),
    "added at": lambda x: added_at(x),
    "lists": lambda x: np.array([x[0, 0], 2.0, x[1, 1] * x[0, 1]]) + np.asarray([[x[0, 0]] * 3]),
    "inverse": lambda x: np.linalg.inv(x[:, :3] @ x[:, :3].T + np.eye(3)),
    "solve": lambda x: np.linalg.solve(M + x.T @ x, x.T),
    "determinants": lambda x: np.linalg.det(x.T @ x + M) + np.linalg.slogdet(x.T @ x
    + np.eye(4))[1],
    "cholesky": lambda x: np.linalg.cholesky(x.T @ x + np.eye(4)),
    "norms": lambda x: np.linalg.norm(x) + np.linalg.norm(x, axis=1).sum(),
    "powers of matrices": lambda x: np.linalg.matrix_power(x[:, :3], 3)
    + np.linalg.pinv(x.T @ W[:, :3]).sum(),
    "stacks": lambda x: np.linalg.inv(x[:, None, :3] * x[:, :3, None] + np.eye(3)),
    "angles": lambda x: np.arctan2(x, W) + np.arctan2(-x, -W) + np.arcsin(x) + np.arccos(x)
    + np.hypot(x, W),
    "logarithms of sums": lambda x: np.logaddexp(x, W) + special.logsumexp(x)
    + special.logsumexp(x, axis=0),
    "softmax": lambda x: special.softmax(x, axis=1) + special.log_softmax(x, axis=0),
    "entropies": lambda x: special.xlogy(x, x) + special.xlog1py(x, x) + special.rel_entr(x, W),
    "polygammas": lambda x: special.polygamma(1, x) + special.polygamma(2, x)
    + special.betaln(x, W),
    "ravelled": lambda x: np.take(x, [0, 5]) + x.flat[2]
    + np.take_along_axis(x, np.zeros((3, 1), int), 1)[0],
    "views": lambda x: np.moveaxis(x[None], 0, -1)[..., 0] + np.swapaxes(x, 0, 1).T
    + np.atleast_2d(x[0]),
}  # fmt: skip


def written(x):
    out, square = np.zeros(x.shape), np.empty((3, 4))
    out[0] = x[1]
    out[1:, ::2] = 2 * x[1:, ::2]
    square[...] = np.eye(3)[:, :1] * x + np.ones((3, 4)) + np.full((3, 4), 0.5)
    square += np.zeros_like(x) + np.ones_like(x)
    like = np.empty_like(x)
    np.multiply(x, 2, out=like)
    np.copyto(like, 1.5, where=W > 0.5)
    return out + square + like


def in_place(x):
    y = x.copy()
    y *= 2
    y += x
    y -= 1
    y /= x
    part = y[1]
    part[...] = x[0]  # a view: y has it too
    y[W > 0.7] = 0
    np.exp(y, out=y)
    return y


def added_at(x):
    out = np.zeros(3)
    np.add.at(out, [0, 1, 0, 2], x[0])
    np.subtract.at(out, [0, 0], x[1, :2])
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_their_values_and_slopes(name):
    agrees(PROGRAMS[name])


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda x: np.einsum("ij->j", x, order="F"), "order"),
        (lambda x: np.sum(x, dtype=int), "dtype"),
        (lambda x: np.add.outer(x, x, signature="dd->d"), "signature"),
        (lambda x: np.linalg.norm(x, 2, axis=(0, 1)), "svd"),
        (lambda x: np.convolve(x[0], x[1]), "array of floats"),
        (lambda x: np.linalg.eigh(x[:, :3]), "eigh"),
        (lambda x: np.floor(V) + np.floor(x + 1 - x.floats), "kink or a tie"),
        (lambda x: np.rint(x + 0.5 - x.floats), "kink or a tie"),
        (lambda x: np.round(x + 0.35 - x.floats, 1), "kink or a tie"),
        (lambda x: (x + 2 - x.floats).astype(int), "kink or a tie"),
        (lambda x: np.searchsorted(np.sort(V[0]), x), "kink or a tie"),
        (lambda x: np.digitize(x, np.sort(V[0])[::-1]), "kink or a tie"),
        (lambda x: np.floor(x * np.inf), "kink or a tie"),
        (lambda x: x.astype(bool), "bool"),
        (lambda x: float(x[0, 0]), "float"),
        (lambda x: [1, 2, 3][x[0, 0]], "float"),
        (lambda x: np.arange(3)[x[0, 0]], "float|index"),
        (lambda x: np.linspace(0, 1, 3) > np.zeros(3, dtype=complex) + x[0, 0], "no exact form"),
        (lambda x: np.frompyfunc(abs, 1, 1)(x), "abs"),
        (lambda x: x.reshape(-1, order="K"), "order"),
        (lambda x: x.view(int), "viewed as"),
        (lambda x: np.vectorize(lambda v: 0 if v < V[0, 0] + 1e-9 else v)(x), "otypes"),
        (lambda x: np.vectorize(lambda v: v, otypes=[int])(x), "otypes"),
        (lambda x: np.vectorize(np.sum, signature="(n)->()")(x), "signature"),
        (lambda x: np.asarray(x, dtype=int), "int"),
        (lambda x: np.zeros(3, dtype=int).__setitem__(0, x[0, 0]), "float"),
        (lambda x: x > np.nan * x, "nan"),
        (lambda x: x > x + 0.0 * x if False else x > V, "kink or a tie"),
        (lambda x: np.max(np.stack([x, V])), "kink or a tie"),
        (lambda x: np.sort(np.stack([V - 1, x, V]), axis=0), "kink or a tie"),
        (lambda x: np.nan_to_num(x, copy=False), "copy=True"),
        (lambda x: np.lib.stride_tricks.as_strided(x, (5,), (24,)), "outside of its array"),
        (lambda x: np.lib.stride_tricks.as_strided(np.exp(x.T), (2, 2)), "ascontiguousarray"),
        (lambda x: np.nan_to_num(x * np.inf), "finite numbers"),
    ],
)
def test_what_is_not_known_is_refused(f, said):
    field = Prime(0)
    with pytest.raises((Untraceable, TypeError), match=said):
        Copies().call(field, f, moving(field, V, np.ones(V.shape, int)))


def test_the_gradient_that_goes_straight_through_a_rounded_number_is_refuted_unless_it_says_so():
    def rounded(x):
        return (np.round(9 * x) ** 2).sum(), 18 * np.round(9 * x)

    def through(x):
        y = 9 * x + stop_gradient(np.round(9 * x) - 9 * x)
        return (y**2).sum(), 18 * y

    assert prove(rounded, V).verdict == "refuted"
    words = "they are not 0, but what is rounded has derivative 0 wherever it does not jump"
    assert words in str(prove(rounded, V))
    signs = prove(lambda x: (np.sign(x - 0.5).sum(), np.ones(V.shape)), V)
    assert words in str(signs)
    assert words not in str(prove(lambda x: (V.sum(), np.ones(V.shape)), V))
    assert prove(through, V).verdict == "proved"


def test_numbers_of_two_proofs_are_not_mixed():
    one, other = (moving(Prime(seed), V, np.ones(V.shape, int)) for seed in (0, 1))
    with pytest.raises(Untraceable, match="an earlier call"):
        one + other


def test_memory_that_was_not_written_proves_nothing():
    unwritten = Copies().call(Prime(0), lambda: np.empty(3))
    assert type(unwritten) is Exact
    assert np.isnan(unwritten.floats).all()
    assert unwritten.primal.any()


def test_makers_are_numpys_again_after_a_proof_and_in_other_threads():
    seen = []

    def makers():
        other = threading.Thread(target=lambda: seen.append(type(np.zeros(2))))
        other.start()
        other.join()
        assert type(np.zeros(2, int)) is np.ndarray
        return np.zeros(2), lambda: np.zeros(2)

    made, later = Copies().call(Prime(0), makers)
    assert seen == [np.ndarray]
    assert type(made) is Exact
    assert type(later()) is np.ndarray


def test_compiled_code_finds_numpys_makers_during_a_proof():
    def drawn():
        return np.random.default_rng(0).standard_normal(3), np.zeros(3)

    assert [*map(type, Copies().call(Prime(0), drawn))] == [np.ndarray, Exact]


@pytest.mark.parametrize(
    "chooses",
    [
        lambda t: np.allclose(t, 1, atol=1),
        lambda t: np.argmax(t) == 1,
        lambda t: np.argsort(t)[0] == 0,
        lambda t: not np.signbit(t)[0],
        lambda t: np.searchsorted(np.zeros(1), t[0]) == 1,
        lambda t: "-" not in str(t),
        lambda t: "-" not in f"{t[0]:.2f}",
    ],
)
def test_a_branch_on_floats_is_a_path(chooses):
    def wrong(t):
        return (t * t).sum(), 2 * t if chooses(t) else 3 * t

    assert prove(wrong, np.array([0.3, 1.2])).verdict != "proved"


def test_what_is_written_into_a_view_of_a_view_arrives():
    x = moving(Prime(0), V, np.ones(V.shape, int))
    np.moveaxis(x, 0, 1)[0, 2] = 1.0
    assert x.floats[2, 0] == 1.0
    np.split(x.T, 2)[0][0, 0] = 1.0
    assert x.floats[0, 0] == 1.0
    for view in (np.diagonal(x), x.T.flat):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1.0


def test_makers_that_were_imported_by_name_are_exchanged_too():
    scope = {}
    exec("from numpy import zeros\ndef f(x):\n y = zeros(2)\n y[0] = x[0, 0]\n return y", scope)
    field = Prime(0)
    found = Copies().call(field, scope["f"], moving(field, V, np.ones(V.shape, int)))
    assert found.primal[0] == field.from_floats(np.array(0.0))[0] or found.has_tangent
    assert isinstance(scope["zeros"], BuiltinFunctionType)  # np itself would be exchanged as well


def test_a_function_that_a_user_adds_has_its_derivative():
    function("j0", lambda x: -special.j1(x))
    function("j1", lambda x: special.j0(x) - special.j1(x) / x)
    try:
        with localcontext(context(60)):
            field = Prime(0)
            x = moving(field, V, np.full(V.shape, 3))
            found = special.j0(x * x)
        expected = field.mul(
            field.mul(field.from_integers(6), x.primal), field.neg(special.j1(x * x).primal)
        )
        assert (found.tangent == expected).all()
        np.testing.assert_allclose(found.floats, special.j0(V * V))
    finally:
        for name in ("j0", "j1"):
            del UFUNCS[name], SPECIAL[name]


def test_what_moves_in_a_view_moves_in_its_whole():
    field = Prime(0)
    whole = lift(np.zeros((3, 4)), field).copy()
    part = whole[1]
    assert not whole.has_tangent
    part[...] = moving(field, V, np.ones(V.shape, int))[0]
    assert whole.has_tangent
    assert (whole.tangent[1] == 1).all()
    assert not whole.tangent[0].any()


# --- second derivatives, of dual numbers


def slope_with_slope(f, v, u, d):
    """Return the derivative of f along u, and the derivative of that along d, in decimals."""
    with localcontext(context(60)):
        field = Digits(0)
        with np.errstate(invalid="ignore"):
            slope = Copies().call(field, lambda x: slope_along(f, x, u), moving(field, v, d))
        return slope.primal[..., 0].astype(float), slope.tangent[..., 0].astype(float)


def second_agrees(f, v=V):
    """Whether the slope of f along u is its derivative, and has the derivative of differences."""
    rng = np.random.default_rng(2)
    u, d = rng.standard_normal((2, *v.shape))
    slope, second = slope_with_slope(f, v, u, d)
    with localcontext(context(60)):
        field = Digits(0)
        with np.errstate(invalid="ignore"):
            first_order = Copies().call(field, f, moving(field, v, u))
    np.testing.assert_allclose(slope, first_order.tangent[..., 0].astype(float), rtol=1e-14)
    ahead, behind = (slope_with_slope(f, v + step * d, u, d)[0] for step in (STEP, -STEP))
    size = np.abs(second).max() + 1
    np.testing.assert_allclose(second, (ahead - behind) / (2 * STEP), rtol=1e-6, atol=1e-7 * size)


@pytest.mark.parametrize("name", ELEMENTARY)
def test_numpys_functions_have_their_second_derivatives(name):
    second_agrees(getattr(np, name), V[:1])


@pytest.mark.parametrize("name", OF_SCIPY)
def test_scipys_functions_have_their_second_derivatives(name):
    second_agrees(getattr(special, name), V[:1])


SMOOTH = ["arithmetic", "powers", "extremes", "sorted", "rounded", "remainders", "accumulated"]


@pytest.mark.parametrize("name", SMOOTH)
def test_programs_have_their_second_derivatives(name):
    second_agrees(PROGRAMS[name])
