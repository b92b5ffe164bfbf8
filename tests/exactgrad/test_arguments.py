"""arguments: what the public functions refuse at their door, in words that say what to give."""

from fractions import Fraction

import numpy as np
import pytest

import exactgrad
from exactgrad import (
    assert_proved,
    check_gradient,
    check_hvp,
    check_jvp,
    check_vjp,
    function,
    gradcheck,
    proofs,
    prove,
    prove_hvp,
    prove_jacobian,
    prove_jvp,
    prove_same,
    prove_vjp,
)

POINT = np.array([0.5, -1.0])


def square(theta, *_):
    return (theta**2).sum(), 2 * theta


def squares(x, *_):
    return x**2


def by_hand(x, u, *_):
    return 2 * x * u


PROOFS = {
    "prove": lambda theta=POINT, **options: prove(square, theta, **options),
    "assert_proved": lambda theta=POINT, **options: assert_proved(square, theta, **options),
    "prove_vjp": lambda theta=POINT, **options: prove_vjp(squares, by_hand, theta, **options),
    "prove_jvp": lambda theta=POINT, **options: prove_jvp(squares, by_hand, theta, **options),
    "prove_jacobian": lambda theta=POINT, **options: prove_jacobian(
        squares, lambda x: np.diag(2 * x), theta, **options
    ),
    "prove_hvp": lambda theta=POINT, **options: prove_hvp(
        lambda x: 2 * x, lambda x, u: 2 * u, theta, **options
    ),
}
CHECKS = {
    "check_gradient": lambda theta=POINT, **options: check_gradient(square, theta, **options),
    "central": lambda theta=POINT, **options: check_gradient(
        square, theta, **{"method": "central"} | options
    ),
    "check_vjp": lambda theta=POINT, **options: check_vjp(squares, by_hand, theta, **options),
    "check_jvp": lambda theta=POINT, **options: check_jvp(squares, by_hand, theta, **options),
    "check_hvp": lambda theta=POINT, **options: check_hvp(
        lambda x: 2 * x, lambda x, u: 2 * u, theta, **options
    ),
}
SAME = {"prove_same": lambda **options: prove_same(squares, squares, POINT, **options)}
NO_NUMBERS = ["3", b"3", None, [1], 1j, object(), np.array([1, 2]), np.datetime64("2020-01-01")]
NO_WHOLE_NUMBERS = [*NO_NUMBERS, -1, 2.5, np.nan, np.inf, True, np.False_, Fraction(3, 2)]
NO_FUNCTIONS = ["f", 3, [1], np.ones(2)]
# The functions that take an option, its name, and what is none of its values
REFUSED = [
    (PROOFS, "n_points", NO_WHOLE_NUMBERS),
    (PROOFS | SAME, "seed", NO_WHOLE_NUMBERS),
    (PROOFS | SAME, "fixed", [None, 2.5, b"x", "nothing", 7, [True], {}, np.array(0)]),
    (CHECKS, "rng", NO_WHOLE_NUMBERS),
    (CHECKS, "max_coordinates", [one for one in NO_WHOLE_NUMBERS if one is not None] + [0]),
    (CHECKS, "tolerance", [*(one for one in NO_NUMBERS if one is not None), -1, 0, np.nan, True]),
    (CHECKS, "method", [None, 3, "forward", ["complex"]]),
    (CHECKS, "gates", NO_FUNCTIONS),
    (PROOFS | CHECKS, "coordinate", NO_FUNCTIONS),
    (PROOFS | CHECKS, "blocks", [3, "x", [slice(2)], {"a": 3}, {"a": slice(9)}]),
]
CASES = [
    pytest.param(calls[name], option, values, id=f"{name}-{option}")
    for calls, option, values in REFUSED
    for name in calls
    if not (name in ("prove_jvp", "check_jvp", "prove_hvp", "check_hvp")
            and option in ("blocks", "coordinate"))  # of an array of one number, that has no name
]  # fmt: skip


@pytest.mark.parametrize(("call", "option", "values"), CASES)
def test_an_option_of_another_kind_or_out_of_range_is_named(call, option, values):
    for value in values:
        with pytest.raises((TypeError, ValueError), match=rf"^{option} must .*; got "):
            call(**{option: value})


@pytest.mark.parametrize(
    ("old", "new", "calls"),
    [
        ("points", "n_points", PROOFS),
        ("most", "max_coordinates", CHECKS),
        ("bar", "tolerance", CHECKS),
    ],
)
def test_the_old_name_of_an_argument_works_with_a_warning(old, new, calls):
    for call in calls.values():
        with pytest.warns(DeprecationWarning, match=f"^{old} is now called {new}"):
            assert str(call(**{old: 1})) == str(call(**{new: 1}))


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (exactgrad, "still", "stop_gradient"),
        (proofs, "still", "stop_gradient"),
        (proofs, "Wrong", "WrongDerivative"),
        (gradcheck, "BARS", "TOLERANCES"),
        (check_gradient(square, POINT), "bar", "tolerance"),
    ],
)
def test_the_old_name_of_what_was_renamed_works_with_a_warning(module, old, new):
    with pytest.warns(DeprecationWarning, match=f"^{old} is now called {new}"):
        assert getattr(module, old) is getattr(module, new)


THETAS = {
    "text": "abc",
    "texts": ["a", "b"],
    "bytes": b"12",
    "dates": np.arange(2).astype("M8[D]"),
    "times": np.arange(2).astype("m8[D]"),
    "a mask": np.array([True, False]),
    "whole numbers": np.array([1, 2]),
    "single precision": np.ones(2, np.float32),
    "objects": np.array([1.0, None], object),
    "fractions": [Fraction(1, 2)],
    "fields": np.zeros(2, "f8, i4"),
    "nothing": None,
    "a set": {1.0, 2.0},
    "a function": np.sin,
    "text in a dict": {"a": {"b": "x"}},
    "a masked array": np.ma.masked_array([1.0, 2.0], [False, True]),
    "a masked array in a dict": {"a": np.ma.masked_array([1.0, 2.0], [False, True])},
}


@pytest.mark.parametrize("name", THETAS)
@pytest.mark.parametrize("call", [*PROOFS.values(), *CHECKS.values()])
def test_a_theta_that_is_no_array_of_floats_is_named(call, name):
    with pytest.raises(ValueError, match=r"must be (a float64 array|an array).*; got .*: \w+"):
        call(THETAS[name])


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("call", [*PROOFS.values(), *CHECKS.values()])
def test_a_theta_of_no_numbers_or_of_a_matrix_is_refused(call):
    for empty in (np.zeros(0), {}, [np.zeros((2, 0))]):
        with pytest.raises(ValueError, match="theta must hold at least one number"):
            call(empty)
    with pytest.raises(ValueError, match=r"got a matrix: give np\.asarray\(theta\)"):
        call(np.asmatrix(POINT))


def test_masked_data_are_refused_by_proofs_which_would_not_see_the_mask():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    for call in (
        lambda: prove(square, POINT, {"x": masked}),
        lambda: prove_same(squares, squares, POINT, masked),
        lambda: prove_vjp(squares, lambda x, u, *_: 2 * x * u, POINT, masked),
    ):
        with pytest.raises(ValueError, match="must be an array without a mask"):
            call()


@pytest.mark.parametrize("how", [prove, check_gradient])
def test_a_function_that_returns_text_or_dates_is_told(how):
    for value, grad in (("x", POINT), (np.datetime64("2020-01-01"), POINT), (1.0, np.array("ab"))):
        with pytest.raises(ValueError, match=r"must return \(value, grad\).*; got text or dates"):
            how(lambda theta, value=value, grad=grad: (value, grad), POINT)


def test_an_unknown_function_of_numpy_has_a_name_and_a_derivative():
    with pytest.raises(TypeError, match="name must be text"):
        function(np.sin, np.cos)
    with pytest.raises(TypeError, match="derivative must be a function; got 3"):
        function("j0", 3)
    with pytest.raises(TypeError, match="floats must be a function"):
        function("j0", np.cos, "x")


# --- functions that draw


def drawn(theta, rng):
    eps = rng.standard_normal(2)
    return ((theta * eps) ** 2).sum(), 2 * theta * eps * eps


DRAWING = {
    "a generator": (drawn, np.random.default_rng(0)),
    "a generator in a dict": (
        lambda theta, given: drawn(theta, given["rng"]), {"rng": np.random.default_rng(0)}),
    "a legacy generator": (drawn, np.random.RandomState(0)),
    "a bit generator": (
        lambda theta, bits: drawn(theta, np.random.Generator(bits)), np.random.PCG64(0)),
    "a sequence of seeds": (
        lambda theta, seeds: drawn(theta, np.random.default_rng(seeds.spawn(1)[0])),
        np.random.SeedSequence(0)),
    "a seed": (lambda theta, seed: drawn(theta, np.random.default_rng(seed)), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWING)
@pytest.mark.parametrize("method", ["complex", "central"])
def test_a_function_that_draws_by_what_it_is_given_or_makes_is_checked(name, method):
    program, given = DRAWING[name]
    assert check_gradient(program, POINT, given, method=method)
    assert not check_gradient(
        lambda theta, given: (program(theta, given)[0], theta), POINT, given, method=method
    )


@pytest.mark.parametrize("name", DRAWING)
def test_a_function_that_draws_by_what_it_is_given_or_makes_is_proved(name):
    assert prove(DRAWING[name][0], POINT, DRAWING[name][1])


def test_noise_that_is_another_at_each_call_is_told_and_no_gradient_is_called_wrong_for_it():
    rng = np.random.default_rng(0)
    for program in (
        lambda theta: drawn(theta, rng),
        lambda theta: drawn(theta, np.random.default_rng()),
        lambda theta: (theta @ theta, 2 * theta + rng.standard_normal(2)),
    ):
        with pytest.raises(ValueError, match=r"must return the same at each call.*; got .*: draw"):
            check_gradient(program, POINT)
