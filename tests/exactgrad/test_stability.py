"""The inputs at which a function loses digits in floats, and those at which it seems to."""

from __future__ import annotations

import itertools
import math
import re
from decimal import Decimal, localcontext
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from exactgrad import stability
from exactgrad.command import main
from exactgrad.fields.digits import SERIES, context
from exactgrad.floats.cures import CURES, cure_of
from exactgrad.floats.numbers import Format, RealNumbers
from exactgrad.floats.shrinking import shrink

THETA = np.array([0.9, -0.4, 1.3])
ONE = np.array([0.5])
ROOT = Path(__file__).parents[2]
FORMATS = ("float64", "float32")


# --- formulas that lose digits, each with a part of the line and of the cure


def naive_softplus(theta):
    e = np.exp(theta)
    value = np.log(1 + e).sum()
    return value, e / (1 + e)


def naive_logsumexp(theta):
    e = np.exp(theta)
    total = e.sum()
    return np.log(total), e / total


def naive_variance(theta):
    mean = theta.mean()
    value = (theta * theta).mean() - mean**2
    return value, 2 * (theta - mean) / len(theta)


def naive_cross_entropy(theta):
    p = 1 / (1 + np.exp(-theta))
    loss = -np.log(1 - p)
    return loss.sum(), p


def softmax_then_log(theta):
    e = np.exp(theta)
    p = e / e.sum()
    gradient = p.copy()
    gradient[0] -= 1
    return -np.log(p[0]), gradient


def norm(theta):
    r = np.sqrt((theta**2).sum())
    return r, theta / r


FOUND = [
    (naive_softplus, THETA, "np.log(1 + e)", "np.logaddexp(0, theta)"),
    (naive_logsumexp, THETA, "np.log(total)", "m = np.max(theta)"),
    (naive_variance, THETA, "(theta * theta).mean()", "(theta - np.mean(theta)) ** 2"),
    (naive_cross_entropy, THETA, "np.log(1 - p)", "-np.logaddexp(0, theta)"),
    (lambda x: np.exp(x) - 1, ONE, "np.exp(x) - 1", "np.expm1(x)"),
    (lambda x: 1 - np.cos(x), ONE, "1 - np.cos(x)", "2 * np.sin(x / 2) ** 2"),
    (lambda x: np.sqrt(x + 1) - np.sqrt(x), ONE, "np.sqrt(x)", "np.sqrt(x + 1) + np.sqrt(x)"),
    (lambda x, y: np.sqrt(x**2 + y**2), (ONE, 0.4), "np.sqrt", "np.hypot(x, y)"),
]


@pytest.mark.parametrize(("function", "arguments", "code", "cure"), FOUND)
def test_a_formula_that_loses_digits_is_found_at_its_line_with_its_cure(
    function, arguments, code, cure
):
    if not isinstance(arguments, tuple):
        arguments = (arguments,)
    result = stability(function, *arguments, n_inputs=80)
    assert not result
    values = [failure for failure in result.failures if failure.name.startswith("value")]
    assert values
    for failure in values:
        assert code in failure.line
        assert cure in failure.cure
        assert failure.digits_lost > 2


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(("function", "arguments", "code", "cure"), FOUND)
def test_it_is_found_in_both_formats_and_with_each_seed(function, arguments, code, cure, dtype):
    if not isinstance(arguments, tuple):
        arguments = (arguments,)
    for seed in range(3):
        result = stability(function, *arguments, dtype=dtype, seed=seed)
        assert result.worst is not None
        assert cure in result.worst.cure or "derivative" in result.worst.name


def test_softmax_then_log_is_found_where_a_class_is_all_but_certain():
    result = stability(softmax_then_log, np.array([-800.0, 1.0, 2.0]), n_inputs=1)
    cures = {failure.cure for failure in result.failures}
    assert "z - np.log(np.exp(z).sum()) with z = theta - np.max(theta)" in cures


def test_a_derivative_is_blamed_on_what_it_is_computed_from():
    failures = stability(naive_softplus, THETA, n_inputs=80).failures
    of_derivative = [f for f in failures if f.name.startswith("derivative")]
    assert of_derivative
    assert all("return value, e / (1 + e)" in f.line for f in of_derivative)
    assert all("np.where(theta > 0, 1, e) / (1 + e)" in f.cure for f in of_derivative)


def test_the_gradient_of_a_norm_at_zero_is_found():
    failures = stability(norm, THETA, sizes=(1e-100, 1e100)).failures
    assert [f.name for f in failures] == ["derivative by theta[0]"]
    assert not failures[0].theta.any()
    assert math.isnan(failures[0].computed)
    assert "and 0 at 0" in failures[0].cure


# --- their careful forms, and functions that only seem to lose digits


def careful_softplus(theta):
    e = np.exp(-np.abs(theta))
    return np.logaddexp(0.0, theta).sum(), np.where(theta > 0, 1.0, e) / (1 + e)


def careful_logsumexp(theta):
    m = theta.max()
    e = np.exp(theta - m)
    return np.log(e.sum()) + m, e / e.sum()


def careful_variance(theta):
    centred = theta - theta.mean()
    return (centred**2).mean(), 2 * centred / len(theta)


def log_softmax(theta):
    z = theta - theta.max()
    log_p = z - np.log(np.exp(z).sum())
    gradient = np.exp(log_p)
    gradient[0] -= 1
    return -log_p[0], gradient


def careful_norm(theta):
    size = np.abs(theta).max()
    if size == 0:
        return size, np.zeros_like(theta)
    z = theta / size
    r = np.sqrt((z * z).sum())
    return size * r, z / r


def relu(theta):
    return np.maximum(theta, 0).sum(), (theta > 0) * 1.0


def maximum(theta):
    gradient = np.zeros_like(theta)
    gradient[np.argmax(theta)] = 1.0
    return theta.max(), gradient


def summed_one_by_one(theta):
    total = 0.0
    for x in theta:
        total = total + x
    return total


def ridge(theta, x, y):
    error = x @ theta - y
    return (error**2).mean(), 2 * x.T @ error / len(y)


RNG = np.random.default_rng(0)
RIGHT = [
    (careful_softplus, THETA),
    (careful_logsumexp, THETA),
    (lambda theta: careful_logsumexp(theta)[0], THETA),
    (careful_variance, THETA),
    (log_softmax, THETA),
    (careful_norm, THETA),
    (relu, THETA),
    (maximum, THETA),
    (lambda theta: (np.abs(theta).sum(), np.sign(theta)), THETA),
    (lambda x: np.tan(x), ONE),  # ill conditioned near pi / 2
    (lambda x: np.sin(np.pi * x), ONE),  # and in pi, which is rounded
    (lambda theta: theta[0] - theta[1], THETA),  # ill conditioned where they are near
    (lambda x: np.exp(x), ONE),  # overflows where it should
    (lambda x: np.log(x), ONE),  # has no value for negative numbers
    (lambda x: (np.sqrt(x).sum(), 0.5 / np.sqrt(x)), ONE),  # has an infinite derivative
    (lambda x: np.floor(4 * x) / 4, ONE),  # jumps
    (lambda x: np.abs(x) ** 2.2, ONE),
    (lambda x: x * (3 * (0 * x + 0.1) - 0.3), ONE),  # ill conditioned in its constants
    (lambda z: z - z.max() - np.log(np.exp(z - z.max()).sum()), THETA),
    (lambda x: np.prod(x), THETA),
    (lambda x: np.cumsum(x), THETA),
    (summed_one_by_one, RNG.standard_normal(40)),
    (ridge, RNG.standard_normal(2), RNG.standard_normal((4, 2)), RNG.standard_normal(4)),
]


@pytest.mark.parametrize("arguments", RIGHT, ids=range(len(RIGHT)))
def test_a_function_that_loses_no_more_than_its_input_is_not_accused(arguments):
    result = stability(*arguments, n_inputs=30)
    assert result, result
    assert result.n_undefined < result.n_inputs / 2 + 5


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("arguments", RIGHT, ids=range(len(RIGHT)))
def test_nor_in_any_format_and_with_any_seed(arguments, dtype):
    for seed in range(4):
        result = stability(*arguments, dtype=dtype, seed=seed)
        assert result, result


@pytest.mark.parametrize("relative", [1e-9, 1e-12])
def test_a_planted_error_is_found_and_its_digits_are_counted(relative):
    result = stability(lambda x: np.logaddexp(0.0, x) * np.float64(1 + relative), ONE, n_inputs=30)
    assert result  # a constant of the function, in exact numbers, too

    def rounded(x):
        # the exact copy has no float32: it keeps all digits
        return np.logaddexp(0.0, x.astype(np.float32) if relative > 1e-10 else x)

    result = stability(rounded, ONE, n_inputs=30)
    assert bool(result) == (relative < 1e-10)
    if not result:
        lost = np.log10(np.finfo(np.float32).eps / np.finfo(float).eps)
        assert lost - 2.5 < result.worst.digits_lost < 16


def test_a_single_wrong_derivative_is_named():
    def function(theta):
        gradient = 3 * theta**2
        gradient[1] = np.expm1(np.log1p(gradient[1])) if abs(theta[1]) < 1 else 0.0 + gradient[1]
        gradient[2] = (1 + gradient[2]) - 1
        return (theta**3).sum(), gradient

    result = stability(function, THETA, floor=0.0, n_inputs=80)
    assert {failure.name for failure in result.failures} == {"derivative by theta[2]"}


def test_a_loss_is_judged_in_absolute_terms_below_its_size_at_theta():
    assert stability(log_softmax, THETA, n_inputs=50)
    assert not stability(log_softmax, THETA, n_inputs=50, floor=0.0)


def test_infinity_is_no_loss_next_to_a_double_root_and_is_one_by_underflow():
    def slope(theta):
        a, b, c = theta
        return 1 / np.sqrt(b * b - a * c)

    double_to_rounding = np.array([0.001, 0.0010000000000000002, 0.0010000000000000005])
    single = np.array([1e-200, 2e-200, 1e-200])
    with np.errstate(divide="ignore"):
        assert np.isinf([slope(double_to_rounding), slope(single)]).all()
    assert stability(slope, double_to_rounding, n_inputs=1)
    assert not stability(slope, single, n_inputs=1)


def test_an_expanded_polynomial_is_found_near_its_root():
    def expanded(x):
        return x**5 - 5 * x**4 + 10 * x**3 - 10 * x**2 + 5 * x - 1

    assert not stability(expanded, ONE, n_inputs=40)
    assert stability(lambda x: (x - 1) ** 5, ONE, n_inputs=40)


def test_decimals_decide_comparisons_where_floats_overflow():
    def at_least_half(x):
        e = np.exp(x)
        return np.maximum(e / (1 + e), 0.5)

    result = stability(at_least_half, ONE, domain=(0, 1e4), n_inputs=40)
    assert math.isnan(result.worst.computed)
    assert result.worst.exact == pytest.approx(1.0)


def test_a_result_that_few_digits_show_as_zero_is_computed_with_more():
    assert stability(lambda x: np.logaddexp(0.0, x), np.array([-400.0]), n_inputs=1)


def test_a_power_that_underflows_is_not_masked():
    result = stability(lambda x: np.log(np.exp(x - 1e5)), ONE, n_inputs=40)
    assert result.worst.computed == -np.inf
    assert result.worst.exact < -700

    def masked(z):
        z = z + np.array([0.0, -np.inf, -1e9])
        e = np.exp(z - z.max())
        return e / e.sum()

    assert stability(masked, THETA, n_inputs=40)


# --- what a result says


def test_the_printed_input_can_be_pasted_and_fails_again():
    for dtype in (*FORMATS, "float16"):
        result = stability(naive_logsumexp, THETA, dtype=dtype, n_inputs=30)
        text = str(result.worst).splitlines()[0].removeprefix("at ")
        theta = eval(text, {"np": np})
        assert theta.dtype == dtype
        with np.errstate(all="ignore"):
            value = naive_logsumexp(theta)[0]
        assert not np.isfinite(value)
        assert len(np.unique(theta)) <= 2


@pytest.mark.slow
def test_the_range_of_sizes_ends_where_the_exponential_overflows():
    low, high = stability(naive_softplus, THETA).stable_range
    assert low < 1e-300
    assert 600 < high < 710


def test_structures_of_theta_and_data_are_printed():
    def function(theta, scale):
        return np.log(1 + np.exp(theta["w"] * scale)).sum()

    result = stability(function, {"w": THETA, "b": ONE}, 1.0, n_inputs=60)
    assert result.worst.data == (1.0,)
    assert str(result.worst).startswith("at {'w': np.array([")


def test_the_simplest_input_is_still_in_the_domain():
    theta = np.array([709.85])  # fails, and so does 710
    result = stability(naive_softplus, theta, domain=(0.0, 709.9), n_inputs=1)
    assert result.worst.theta.tolist() == [709.85]


def test_the_same_seed_gives_the_same_result():
    first, second, other = (
        stability(naive_variance, THETA, n_inputs=20, seed=seed) for seed in (1, 1, 2)
    )
    assert str(first) == str(second) != str(other)


def test_inputs_stay_in_the_domain_and_fixed_data_keep_their_values():
    seen = []

    def function(theta, scale, weights, counts):
        if isinstance(theta.sum(), np.floating):
            seen.append((theta.copy(), scale, weights.copy(), counts.copy()))
        return (theta * scale * weights * counts).sum()

    weights = np.array([0.0, 0.5, 1.0])
    counts = np.array([1, 2, 3])
    data = (2.0, weights, counts)
    assert stability(function, THETA, *data, fixed="scale", domain=(-2, 3), sizes=(0.1, 3))
    thetas = np.array([theta for theta, *_ in seen])
    assert len(np.unique(thetas, axis=0)) > 100
    assert thetas.min() >= -2
    sizes = np.abs(thetas[thetas != 0])
    assert (sizes.min() >= 0.1) & (sizes.max() <= 3)
    assert {scale for _, scale, *_ in seen} == {2.0}
    assert all((w == weights).all() and (c == counts).all() for *_, w, c in seen)


# --- functions that cannot be judged


def test_a_function_that_is_not_traceable_says_so():
    result = stability(lambda x: float(x[0]) ** 2, ONE)
    assert not result
    assert "not traceable" in result.reason
    assert "float" in str(result)


def test_a_function_with_a_state_says_so():
    rng = np.random.default_rng(0)
    result = stability(lambda x: x.sum() + rng.standard_normal(), ONE)
    assert "different numbers for the same input" in str(result)


def test_a_function_without_a_value_says_so():
    result = stability(lambda x: np.log(-1 - np.abs(x)), ONE, n_inputs=20)
    assert not result
    assert "no value in exact numbers" in str(result)


def test_a_theta_at_which_the_loss_has_overflown_is_no_measure():
    result = stability(naive_softplus, 1000 * np.abs(THETA), n_inputs=10)
    assert result.stable_range is None
    assert result.worst.computed == np.inf
    failures = stability(naive_cross_entropy, np.array([40.0, 0.3, -0.2]), n_inputs=40).failures
    assert any(np.isfinite(failure.computed) for failure in failures)


def test_a_function_in_c_and_a_partial_one_are_judged():
    assert stability(np.log1p, ONE, n_inputs=40)
    failure = stability(partial(naive_softplus), THETA, n_inputs=40).worst
    assert "np.log(1 + e)" in failure.line

    class Wrapped:
        def __call__(self, x):
            return np.exp(np.log1p(x)) - 1

    assert not stability(Wrapped(), ONE, n_inputs=80, domain=(-0.5, 1.0))


def test_what_the_function_raises_at_theta_is_raised():
    def function(x):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        stability(function, ONE)


def test_an_error_in_floats_alone_is_a_failure():
    def function(x):
        e = np.exp(x)
        if np.isinf(e).any():
            raise OverflowError("exp")
        return np.log(1 + e)

    result = stability(function, ONE, domain=(1.0, 2000.0), n_inputs=40)
    assert math.isnan(result.worst.computed)
    assert result.worst.exact > 700


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int64"}, "dtype must be one of"),
        ({"n_inputs": 0}, "n_inputs must be"),
        ({"max_loss": -1.0}, "max_loss must be"),
        ({"fixed": "nobody"}, "fixed must hold"),
    ],
)
def test_a_wrong_argument_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        stability(naive_softplus, THETA, **options)


def test_nothing_returned_is_named():
    with pytest.raises(ValueError, match="must return a value"):
        stability(lambda x: None, ONE)


# --- its parts


@pytest.mark.parametrize("formula", CURES)
def test_each_formula_is_recognised_and_none_before_it_takes_its_place(formula, tmp_path):
    path = tmp_path / "formula.py"
    letters = {name: name.lower() for name in "XYABC"}
    code = formula
    for letter, name in letters.items():
        code = code.replace(letter, name)
    path.write_text(f"def f(x, y, a, b, c):\n    value = {code}\n    return value\n")
    expected = CURES[formula]
    for letter, name in letters.items():
        expected = expected.replace(letter, name)
    assert cure_of(str(path), 2, -1) == expected.replace("((x))", "(x)")


def value_of(code, names):
    """Return the value of a formula or a cure; what a cure says in words is left out."""
    code, _, definition = code.partition(" with ")
    functions = {"erf": math.erf, "erfc": math.erfc, "neg": np.negative}
    names = {**vars(np), **functions, "np": np, "expit": lambda x: 1 / (1 + np.exp(-x)), **names}
    names["softmax"] = lambda x: np.exp(x) / np.exp(x).sum()
    if definition and "=" in definition:
        name, _, value = definition.partition(" = ")
        names[name] = eval(re.split(", and", value)[0], names)
    return eval(re.split(", and| near 0|, or| where", code)[0].rstrip(","), names)


@pytest.mark.parametrize("formula", CURES)
def test_each_cure_is_the_same_function(formula):
    cure = CURES[formula]
    rng = np.random.default_rng(1)
    for _ in range(4):
        x, y, a, c = rng.uniform([0.2, 0.6, 0.1, 0.1], [0.5, 0.9, 0.3, 0.3])
        if "near 0" in cure:
            x = 1e-3 * x
        if re.search("sum|mean|softmax", formula):
            x = rng.uniform(0.2, 0.5, 4)
        if formula.startswith("sum(X ** 2) - "):
            y = 4  # the number of terms
        if "1 / (X - 1)" in formula:
            x = x + 2
        names = {"X": x, "Y": y, "A": a, "B": -2 * y, "C": c}
        if "2 * A" in formula:  # both roots, by the sign of B
            names["B"] = 2 * y * (-1 if formula.startswith("(-B +") else 1)
            cure = "q / A with" + cure.split(" with")[-1]
        expected = value_of(formula, names)
        assert value_of(cure, names) == pytest.approx(expected, rel=1e-6), (formula, names)


def test_a_formula_over_several_lines_is_followed_backwards(tmp_path):
    path = tmp_path / "formula.py"
    path.write_text(
        "def f(x):\n    e = np.exp(x)\n    total = e[1:].sum() + 0\n    d = 1.0 + e\n"
        "    return np.log(d), e.sum()\n"
    )
    assert cure_of(str(path), 5, 0) == "np.logaddexp(0, x)"
    assert cure_of(str(path), 5, 1) == ""
    assert cure_of(str(path), 3, -1) == ""


def test_entries_of_an_argument_are_different_numbers(tmp_path):
    path = tmp_path / "formula.py"
    path.write_text(
        "def f(t):\n    d = t[0] * t[3] - t[1] * t[2]\n    r = np.sqrt(t[0] ** 2 + t[1] * t[1])\n"
    )
    assert cure_of(str(path), 2, -1) == ""
    assert cure_of(str(path), 3, -1) == "np.hypot(t[0], t[1])"


def test_shrinking_keeps_what_fails():
    from exactgrad.floats.numbers import Point

    theta = np.array([3.14159, -0.0, 7.77, 123.456])
    small = shrink(Point(theta, ()), (), lambda point: point.theta[3] > 100.5, 60)
    assert small.theta.tolist() == [0.0, 0.0, 0.0, 120.0]


def test_a_result_is_judged_by_its_own_size():
    limits = Format.of("float32")
    exact = np.array([1.0, 1.0, 1e38, 3e38, 0.0, np.nan])
    results = np.array([1.1, 1.0001, np.nan, np.inf, 1e-38, 1.0])
    is_far = limits.is_far(results, exact, 1e-3)
    assert is_far.tolist() == [True, False, False, False, False, True]
    lost = limits.digits_lost(np.array([1.1, np.inf]), np.ones(2), 1e-5 * np.ones(2))
    assert lost == pytest.approx([4.0, -np.log10(limits.eps)])


def test_the_error_function_has_as_many_digits_as_are_asked_for():
    with localcontext(context(400)):
        assert float(1 - SERIES["erf"](Decimal(20))) == pytest.approx(
            math.erfc(20), rel=1e-12, abs=0
        )


def test_neighbours_differ_in_the_last_place_and_in_opposite_directions():
    limits = Format.of("float64")
    theta = np.array([1.0, 3.0, -5.0, 0.0])
    changes = []
    for seed in range(8):
        numbers = RealNumbers(limits, seed).variable(theta)[..., 0]
        exact = RealNumbers().variable(theta)[..., 0]
        changes.append([float(change) for change in numbers - exact])
    changes = np.array(changes)
    assert changes[0::2] == pytest.approx(-changes[1::2])
    assert (np.abs(changes) <= limits.eps * np.abs(theta) + 2 * limits.tiny).all()
    assert (changes != 0).all()
    signs = np.sign(changes)
    for i, j in itertools.combinations(range(4), 2):
        assert len({*(signs[:, i] * signs[:, j]).tolist()}) == 2


def test_the_command_says_where_digits_are_lost(tmp_path, capsys):
    path = tmp_path / "losses.py"
    path.write_text(
        "import numpy as np\n\n\ndef softplus(x):\n    return np.log(1 + np.exp(x)).sum()\n\n\n"
        "def careful(x):\n    return np.logaddexp(0, x).sum()\n"
    )
    assert main(["--floats", f"{path}::softplus", "--theta", "2"]) == 1
    assert "line 5 of losses.py" in capsys.readouterr().out
    command = ["--floats", f"{path}::careful", "--theta", "2", "--dtype", "float32"]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("stable: float32")


@pytest.mark.slow
def test_the_page_prints_what_it_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "stability.md").read_text("utf-8")
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL).groups()
    Path("softplus.py").write_text(code)
    exec(compile(code, "softplus.py", "exec"), {"__name__": "softplus"})
    assert capsys.readouterr().out == shown
    command = re.search(r"```sh\nexactgrad (.*?)\n", page)[1]
    assert main(command.split()) == 1


def test_floats_that_raise_for_the_caller_do_not_stop_stability():
    with np.errstate(all="raise"):
        result = stability(lambda theta: np.log(1 + np.exp(theta)).sum(), np.array([0.9, -0.4]))
        assert set(np.geterr().values()) == {"raise"}
    assert result.failures
