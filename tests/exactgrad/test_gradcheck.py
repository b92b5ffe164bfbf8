"""gradcheck: the tester tested. It passes what is right, names what is wrong, hides nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactgrad.gradcheck import TOLERANCES, check_gradient, format_table

METHODS = sorted(TOLERANCES)


def smooth(theta):
    """A function with gradients of very different sizes."""
    value = (np.sin(theta) * np.exp(theta)).sum() + theta[0] * theta[-1] ** 2
    grad = (np.sin(theta) + np.cos(theta)) * np.exp(theta)
    grad[0] += theta[-1] ** 2
    grad[-1] += 2 * theta[0] * theta[-1]
    return value, grad


points = st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=6).map(np.array)


@pytest.mark.equation("D9")
@pytest.mark.parametrize("method", METHODS)
@given(theta=points)
def test_a_right_gradient_passes(method, theta):
    report = check_gradient(smooth, theta, method=method)
    assert report.passed, str(report)
    assert report.skipped == 0


@pytest.mark.equation("D9")
@pytest.mark.parametrize("method", METHODS)
@given(theta=points, at=st.integers(0, 5), error=st.sampled_from([1e-4, 1.0, -1.0]))
def test_one_wrong_coordinate_fails_and_is_named(method, theta, at, error):
    at %= len(theta)

    def wrong(point):
        value, grad = smooth(point)
        grad[at] += error * (1 + np.abs(grad).max())
        return value, grad

    report = check_gradient(wrong, theta, method=method)
    assert not report.passed
    assert report.worst.worst == f"theta[{at}]"


@pytest.mark.equation("D9")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_the_error_does_not_depend_on_the_unit_of_the_value(method, unit):
    def wrong(theta, unit=1.0):
        value, grad = smooth(theta)
        grad[1] *= 1.001
        return unit * value, unit * grad

    theta = np.array([0.7, -1.2, 0.3])
    here = check_gradient(wrong, theta, method=method)
    there = check_gradient(lambda theta: wrong(theta, unit), theta, method=method)
    assert not there.passed
    assert there.error == pytest.approx(here.error, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_gradient_that_is_not_a_number_fails(method, bad):
    def wrong(theta):
        return (theta**2).sum(), np.where(np.arange(2) == 0, bad, 2 * theta)

    report = check_gradient(wrong, np.array([1.0, 2.0]), method=method)
    assert not report.passed
    assert report.worst.worst == "theta[0]"


def test_blocks_are_reported_one_by_one_and_coordinates_by_name():
    def wrong(theta):
        return (theta**2).sum(), np.array([2.0, 2.0, 2.5])

    report = check_gradient(
        wrong,
        np.ones(3),
        blocks={"a": slice(0, 1), "b": slice(1, 3)},
        coordinate=lambda index: f"number {index}",
    )
    assert [block.name for block in report.blocks] == ["a", "b"]
    assert report.blocks[0].error == 0
    assert report.blocks[1].worst == "number 2"
    assert report.blocks[1].analytic == 2.5
    assert report.blocks[1].numeric == pytest.approx(2.0)
    assert "above 1e-12" in format_table({"loss": report})


@pytest.mark.equation("D9")
@pytest.mark.parametrize("kink", [1e-7, -1e-7])
def test_a_coordinate_on_a_kink_is_skipped_and_counted_and_one_beside_it_is_not(kink):
    def relu(theta):
        return np.maximum(theta, 0).sum(), (theta > 0).astype(float)

    theta = np.array([1.0, kink, -0.5, 1e-3])
    report = check_gradient(relu, theta, method="central", gates=lambda point: point > 0)
    assert report.passed
    assert report.blocks[0].skipped == 1
    assert report.blocks[0].checked == 3
    assert report.skipped == 0.25
    blind = check_gradient(relu, theta, method="central")
    assert not blind.passed
    assert blind.worst.worst == "theta[1]"


def test_a_report_in_which_everything_was_skipped_does_not_pass():
    calls = iter(range(10_000))
    report = check_gradient(
        smooth, np.ones(2), method="central", gates=lambda point: np.array([next(calls)])
    )
    assert report.skipped == 1.0
    assert not report.passed


def huber(theta):
    small = np.abs(theta) < 1  # looks at the size of complex numbers: not complex-safe
    value = np.where(small, 0.5 * theta * theta, np.abs(theta) - 0.5).sum()
    return value, np.where(small, theta, np.sign(theta))


def test_a_function_that_is_complex_safe_only_in_part_is_not_called_wrong():
    theta = np.array([0.3, 2.0])
    with pytest.raises(TypeError, match=r"at theta\[1\] central differences confirm"):
        check_gradient(huber, theta)
    assert check_gradient(huber, theta, method="central").passed

    def wrong(theta):
        value, grad = huber(theta)
        return value, 1.1 * grad

    assert not check_gradient(wrong, theta).passed
    assert not check_gradient(wrong, theta, method="central").passed


def test_what_comes_after_value_and_gradient_is_not_looked_at():
    def more(theta):
        return (theta**3).sum(), 3 * theta**2, "terms"

    theta = np.array([1.0, -2.0, 0.5])
    assert check_gradient(more, theta) == check_gradient(lambda theta: more(theta)[:2], theta)


@pytest.mark.equation("D9")
def test_rounding_of_a_large_value_does_not_fail_a_right_gradient_and_does_not_hide_a_wrong_one():
    def large(theta):
        return 1e9 + (theta**2).sum(), 2 * theta

    def wrong(theta):
        return 1e9 + (theta**2).sum(), 2.1 * theta

    theta = np.array([3.0, 1.0])
    assert check_gradient(large, theta, method="central").passed
    assert not check_gradient(wrong, theta, method="central").passed


@pytest.mark.parametrize(("by", "passed"), [(0.0, True), (5e-12, False)])
def test_a_small_derivative_is_judged_by_its_own_size(by, passed):
    def large_and_small(theta):
        return theta[0] + 0.01 * theta[1], np.array([1.0, 0.01 * (1 + by)])

    assert check_gradient(large_and_small, np.ones(2)).passed == passed


def test_no_coordinate_is_drawn_twice():
    moved = set()

    def squares(theta):
        moved.update(np.flatnonzero(np.imag(theta)).tolist())
        return (theta**2).sum(), 2 * theta

    check_gradient(squares, np.ones(50), method="complex", max_coordinates=40)
    assert len(moved) == 40


@pytest.mark.parametrize("method", METHODS)
def test_a_sample_of_coordinates_is_drawn_from_each_whole_block(method):
    blocks = {"a": slice(0, 20), "b": slice(20, 50)}
    found = [
        check_gradient(wrong_at(49), np.ones(50), method=method, blocks=blocks, max_coordinates=7,
              rng=np.random.default_rng(seed))
        for seed in range(20)
    ]  # fmt: skip
    assert {block.checked for report in found for block in report.blocks} == {7}
    assert 0 < sum(report.passed for report in found) < 20


def wrong_at(*places, by=1.0):
    """The gradient of the sum of squares, wrong at the places given."""

    def squares(theta):
        grad = 2 * theta
        grad[list(places)] += by
        return (theta**2).sum(), grad

    return squares


def test_the_steps_grow_with_the_coordinate():
    assert check_gradient(wrong_at(by=0.0), np.array([1e12, -3e12]), method="central").passed


@pytest.mark.parametrize("place", [0, 3])
def test_a_derivative_that_is_nan_is_the_worst_and_is_flagged(place):
    blocks = {"a": slice(0, 2), "b": slice(2, 4)}
    report = check_gradient(wrong_at(place, by=np.nan), np.ones(4), blocks=blocks)
    assert np.isnan(report.error)
    assert report.worst.name == ("a" if place == 0 else "b")
    assert str(report).count("<- above") == 1


def test_a_skipped_coordinate_does_not_shift_the_names_of_those_behind_it():
    def relu(theta):
        return np.maximum(theta, 0).sum(), np.array([0.0, 1.0, 3.0])

    theta = np.array([1e-7, 1.0, 2.0])
    report = check_gradient(relu, theta, method="central", gates=lambda point: point > 0)
    assert report.blocks[0].skipped == 1
    assert report.worst.worst == "theta[2]"


def test_the_bar_can_be_set():
    assert not check_gradient(wrong_at(0, by=1e-3), np.ones(2)).passed
    assert check_gradient(wrong_at(0, by=1e-3), np.ones(2), tolerance=1e-2).passed
    assert not check_gradient(wrong_at(0, by=1e-3), np.ones(2), method="central").passed
    assert check_gradient(wrong_at(0, by=1e-3), np.ones(2), method="central", tolerance=1e-2).passed


SQUARE = (lambda theta: ((theta**2).sum(), 2 * theta)), np.ones(3)


def returning(value, grad):
    return lambda theta: (value, grad)


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "message"),
    [
        ((5, np.ones(2)), {}, TypeError, "value_and_grad must be a function; got 5"),
        ((smooth, np.ones(2, int)), {}, ValueError, "float64 array; got dtype int64"),
        ((smooth, np.ones(2, np.float32)), {}, ValueError, "dtype float32"),
        ((smooth, np.array([0.0, np.nan])), {}, ValueError, "nan or infinity"),
        ((lambda theta: 3.0, np.ones(2)), {}, ValueError, r"must return \(value, grad\)"),
        ((returning(np.ones(2), np.ones(2)), np.ones(2)), {}, ValueError, "a single number"),
        (
            (returning(1.0, np.ones(3)), np.ones(2)),
            {},
            ValueError,
            r"shape \(2,\) of theta; got \(3,",
        ),
        (
            (lambda theta: (np.abs(theta).sum(), np.sign(theta.real)), np.array([1.0, -2.0])),
            {},
            TypeError,
            "not complex-safe.*method='central'",
        ),
        (SQUARE, {"method": "forward"}, ValueError, r"\['central', 'complex'\]; got 'forward'"),
        (SQUARE, {"blocks": {"a": 5}}, ValueError, "slices of theta, which has size 3; got 'a': 5"),
        (SQUARE, {"blocks": {"a": slice(0, 9)}}, ValueError, "blocks must map names to slices"),
    ],
)
def test_every_argument_of_another_kind_is_named(arguments, options, kind, message):
    with pytest.raises(kind, match=message):
        check_gradient(*arguments, **options)
