"""Check a hand-written gradient against its own value (D9).

Two oracles for any ``value_and_grad(theta) -> (value, grad)``:

* the **complex step**, ``Im f(theta + ih) / h``, exact to rounding, for functions that only
  use operations which continue to complex numbers (no ``abs``, no ``conj``, no ``max`` of
  complex numbers);
* **central differences** of fourth order, for any function.

Both compute with floats, so their results contain rounding errors. `exactgrad.prove` proves without
rounding that a gradient is right. For each `check_*` there is a `prove_*` with the same arguments.

>>> import numpy as np
>>> def cubic(theta):
...     return (theta**3).sum(), 3 * theta**2
>>> report = check_gradient(cubic, np.array([1.0, -2.0, 0.5]))
>>> report.passed
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arguments import check_callable, positive_number, whole_number
from .deprecation import renamed_arguments, renamed_names, warn_renamed
from .structures import (
    check_returned,
    copy_leaves,
    flatten_arguments,
    reduce_to_gradient,
)

__all__ = [
    "TOLERANCES",
    "Block",
    "Report",
    "check_gradient",
    "check_hessian",
    "check_hvp",
    "check_jacobian",
    "check_jvp",
    "check_vjp",
    "format_table",
]

Array = NDArray[Any]
Function = Callable[..., Any]
ValueAndGrad = Callable[..., tuple[Any, ...]]

# Largest relative error of a derivative that passes by default, for each method
TOLERANCES = {"complex": 1e-12, "central": 1e-6}
__getattr__ = renamed_names(__name__, {"BARS": "TOLERANCES"})
COMPLEX_STEP = 1e-30
# Fourth-order stencil f' = sum_k c_k f(theta + k h) / h. Truncation h^4 f^(5)/30 grows and
# rounding eps f / h falls with h; the best h, about eps^(1/5) = 7e-4 for a function of unit
# scale, depends on the function, so several are tried.
CENTRAL_STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
CENTRAL_STEPS = (2e-2, 5e-3, 1.2e-3, 3e-4, 7.5e-5)
# Relative errors of derivatives are taken of at least this share of the largest derivative
MIN_SCALE_SHARE = 1e-3
IS_NOISY = (
    "value_and_grad must return the same at each call with the same numbers; got another {}: draw "
    "noise outside, or inside by a generator that each call makes from a seed or takes as an "
    "argument (of which every call gets a copy)"
)


class Block(NamedTuple):
    """Result of a check for one named block of theta."""

    name: str
    checked: int  # number of coordinates that were compared
    skipped: int  # number of coordinates that were skipped because of a kink
    error: float  # the largest relative error of the block's derivatives
    worst: str  # name of the coordinate with the largest relative error
    analytic: float  # hand-written derivative of the coordinate `worst`
    numeric: float  # numerical derivative of the coordinate `worst`


@dataclass(frozen=True)
class Report:
    """Result of `check_gradient`.

    A report is true if the check has passed: ``assert check_gradient(f, theta)``.
    """

    blocks: tuple[Block, ...]  # results of the named parts of theta
    method: str  # method of the numerical derivatives: 'complex' or 'central'
    tolerance: float  # the largest relative error that passes

    @property
    def error(self) -> float:
        """The largest relative error of any block; nan if the error of a block is nan."""
        return float(np.max([block.error for block in self.blocks], initial=0.0))

    @property
    def skipped(self) -> float:
        """The share of coordinates, from 0 to 1, that were skipped because of a kink."""
        total = sum(block.checked + block.skipped for block in self.blocks)
        return sum(block.skipped for block in self.blocks) / max(total, 1)

    @property
    def passed(self) -> bool:
        """Whether any coordinate was checked and no relative error exceeds the tolerance."""
        return (
            any(block.checked for block in self.blocks) and self.error <= self.tolerance
        )

    @property
    def worst(self) -> Block:
        """The block with the largest relative error, where nan counts as the largest."""
        return max(self.blocks, key=lambda block: (np.isnan(block.error), block.error))

    @property
    def bar(self) -> float:
        """The tolerance, under its deprecated name."""
        warn_renamed("bar", "tolerance")
        return self.tolerance

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return format_table({"all": self})


@renamed_arguments(most="max_coordinates", bar="tolerance")
def check_gradient(
    value_and_grad: Function,
    theta: Any,
    *arguments: Any,
    method: str = "complex",
    blocks: Mapping[str, slice] | None = None,
    coordinate: Callable[[int], str] | None = None,
    gates: Callable[[Array], Array] | None = None,
    max_coordinates: int | None = None,
    rng: np.random.Generator | int = 0,
    tolerance: float | None = None,
) -> Report:
    """Check the gradient that `value_and_grad` returns against numerical derivatives of its value.

    The relative error of a coordinate with the hand-written derivative g and the numerical
    derivative m is ``|g - m| / max(|g|, |m|, 1e-3 max|m|)``, where ``max|m|`` is the largest of all
    coordinates: derivatives below a thousandth of it have the same absolute tolerance. For central
    differences of a value F with step h and the machine epsilon eps the denominator is also at
    least ``1.5 eps |F| / h / tolerance``: an error that the rounding of F alone can cause (3e-7 at
    F = 1e6 and h = 1e-3) does not fail a check.

    Parameters
    ----------
    value_and_grad : callable
        Function of theta (complex128 for the complex step) and the `arguments` that returns a
        scalar and its gradient; further results are ignored. It must return the same at each call:
        pass its noise as an array or as a random generator among the `arguments`, of which each
        call gets a copy, or draw it inside from a seed.
    theta : ndarray, or a dict, tuple or list of arrays
        The point, float64; the gradient has the same structure.
    *arguments
        Arguments of `value_and_grad` after theta.
    method : {'complex', 'central'}
        Method of the numerical derivatives: the complex step, which is exact to rounding and needs
        a function that works with complex numbers, or central differences, which work with any
        function. By default 'complex'.
    blocks : mapping of str to slice, optional
        Named parts of flat theta, one row each in the report. By default the arrays of theta.
    coordinate : callable, optional
        Function from an index of flat theta to a readable name, used in the report. By default the
        name is a path such as ``W1[0, 2]``.
    gates : callable, optional
        Function of theta that returns an array which changes when a kink is crossed (for a ReLU
        network, which units are on). Steps of central differences that cross a kink are left out; a
        coordinate is skipped, and counted as such, when fewer than two steps remain. The complex
        step never crosses a kink. By default no steps are left out.
    max_coordinates : int, optional
        Largest number of coordinates of each block that are checked; those of a larger block are
        drawn by `rng`. By default all of them.
    rng : numpy.random.Generator or int, optional
        Random generator that draws these coordinates, or its seed. By default 0.
    tolerance : float, optional
        Largest relative error that passes. By default 1e-12 for 'complex' and 1e-6 for 'central'.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        If an argument is out of range, if `value_and_grad` returns anything but a number and a
        gradient of the shape of theta, or if two equal calls return different numbers.
    TypeError
        If an argument has a wrong type, or if `method` is 'complex' and the function does not work
        with complex numbers.
    """
    function, theta, blocks, name_of = flatten_arguments(
        value_and_grad, theta, blocks, coordinate
    )

    def call(theta: Array) -> tuple[Any, ...]:
        returned: tuple[Any, ...] = function(theta, *copy_leaves(arguments))
        return returned

    if not isinstance(method, str) or method not in TOLERANCES:
        raise ValueError(f"method must be one of {sorted(TOLERANCES)}; got {method!r}")
    if tolerance is None:
        tolerance = TOLERANCES[method]
    tolerance = positive_number("tolerance", tolerance)
    if max_coordinates is not None:
        max_coordinates = whole_number("max_coordinates", max_coordinates, minimum=1)
    if gates is not None:
        check_callable("gates", gates)
    if not isinstance(rng, np.random.Generator):
        rng = np.random.default_rng(whole_number("rng", rng))
    returned = call(theta.copy())
    check_returned(returned, theta.shape)
    _refuse_noise(returned, call(theta.copy()))
    grad = np.array(returned[1])

    coordinates = _choose_coordinates(blocks, theta.size, max_coordinates, rng)
    all_indices = np.concatenate([*coordinates.values(), np.zeros(0, int)])
    slopes = _measure_slopes(call, theta, all_indices, method, gates)
    smooth = all_indices[~slopes.kinked[all_indices]]
    floor = MIN_SCALE_SHARE * np.max(np.abs(slopes.numeric[smooth]), initial=0.0)
    rows = []
    for name, indices in coordinates.items():
        smooth = indices[~slopes.kinked[indices]]
        skipped = len(indices) - len(smooth)
        if smooth.size == 0:
            rows.append(Block(name, 0, skipped, 0.0, "-", 0.0, 0.0))
            continue
        bound = np.maximum(slopes.rounding[smooth] / tolerance, floor)
        error = _relative_error(grad[smooth], slopes.numeric[smooth], bound)
        worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
        index = int(smooth[worst])
        name_of_worst = name_of(index)
        analytic = float(grad[index])
        numeric = float(slopes.numeric[index])
        if method == "complex" and not error[worst] <= TOLERANCES["central"]:
            _refuse_unsafe(call, theta, index, analytic, name_of_worst)
        rows.append(
            Block(
                name,
                len(smooth),
                skipped,
                float(error[worst]),
                name_of_worst,
                analytic,
                numeric,
            )
        )
    return Report(tuple(rows), method, tolerance)


def _choose_coordinates(
    blocks: Mapping[str, slice],
    size: int,
    max_coordinates: int | None,
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Return the indices of theta to check, by block: all, or `max_coordinates` drawn by `rng`.

    `blocks` are slices of a flat theta of length `size`.
    """
    coordinates: dict[str, Array] = {}
    for name, block in blocks.items():
        indices = np.arange(size)[block]
        if max_coordinates is not None and indices.size > max_coordinates:
            indices = np.sort(rng.choice(indices, max_coordinates, replace=False))
        coordinates[name] = indices
    return coordinates


class MeasuredSlopes(NamedTuple):
    """Numerical derivatives of a value by theta (D,); all arrays have shape (D,)."""

    numeric: Array  # numerical derivatives, nan for coordinates that were not checked
    rounding: Array  # absolute error of each derivative from rounding the value
    kinked: Array  # whether the coordinate was skipped because of a kink


def _measure_slopes(
    value_and_grad: ValueAndGrad,
    theta: Array,
    indices: Array,
    method: str,
    gates: Callable[[Array], Array] | None,
) -> MeasuredSlopes:
    """Return numerical derivatives of the value by the coordinates of theta in `indices`.

    `method` is 'complex' or 'central'; steps of 'central' at which `gates` changes are left out.
    """
    numeric = np.full(theta.size, np.nan)
    rounding = np.zeros(theta.size)
    kinked = np.zeros(theta.size, bool)
    for i in indices:
        if method == "complex":
            numeric[i] = _complex_step(value_and_grad, theta, i)
            continue
        steps = _smooth_steps(theta, i, gates)
        kinked[i] = len(steps) < 2
        if not kinked[i]:
            difference = _central_difference(value_and_grad, theta, i, steps)
            numeric[i], rounding[i] = difference
    return MeasuredSlopes(numeric, rounding, kinked)


def _relative_error(analytic: Array, numeric: Array, bound: Array) -> Array:
    """Return relative errors ``|g - m| / max(|g|, |m|, bound)``, 0 where g and m are both 0.

    g are the hand-written derivatives `analytic` and m the numerical ones `numeric`, all (n,).
    """
    scale = np.maximum.reduce([np.abs(analytic), np.abs(numeric), bound])
    with np.errstate(invalid="ignore"):
        error = np.abs(analytic - numeric) / np.where(scale, scale, 1.0)
        return np.where((analytic == 0) & (numeric == 0), 0.0, error)


# --- Jacobians, Hessians and their products: each check_* takes the arguments of its prove_*


def check_vjp(
    f: Function, vjp: Function, theta: Any, *arguments: Any, **options: Any
) -> Report:
    """Check a hand-written vector-Jacobian product numerically, at a random cotangent.

    Parameters
    ----------
    f : callable
        Function of theta and the `arguments` that returns an array or a structure of arrays.
    vjp : callable
        Function of theta, a cotangent and the `arguments` that returns the product, with the
        structure of theta.
    theta, *arguments
        As in `exactgrad.prove_vjp`.
    **options
        Keyword arguments of `check_gradient`, such as ``method="central"``.

    Returns
    -------
    Report
        A report with one row for each block of theta.
    """
    return _checked("vjp", f, vjp, theta, arguments, options)


def check_jvp(
    f: Function, jvp: Function, theta: Any, *arguments: Any, **options: Any
) -> Report:
    """Check a hand-written Jacobian-vector product numerically, at a random tangent.

    Parameters
    ----------
    f : callable
        Function of theta and the `arguments` that returns an array or a structure of arrays.
    jvp : callable
        Function of theta, a tangent and the `arguments` that returns the product, with the
        structure of what f returns.
    theta, *arguments
        As in `exactgrad.prove_jvp`.
    **options
        Keyword arguments of `check_gradient`, such as ``method="central"``.

    Returns
    -------
    Report
        A report with a row for each number that f returns whose derivative is wrong; if none is, a
        single row.
    """
    return _checked("jvp", f, jvp, theta, arguments, options)


def check_jacobian(
    f: Function, jacobian: Function, theta: Any, *arguments: Any, **options: Any
) -> Report:
    """Check a hand-written Jacobian numerically.

    Parameters
    ----------
    f : callable
        Function of theta and the `arguments` that returns one array.
    jacobian : callable
        Function of theta and the `arguments` that returns the Jacobian, with the shape of f's array
        followed by that of theta.
    theta, *arguments
        As in `exactgrad.prove_jacobian`.
    **options
        Keyword arguments of `check_gradient`, such as ``method="central"``.

    Returns
    -------
    Report
        A report with rows for each number that f returns whose derivatives are wrong; if none are,
        with one row for each block of theta.
    """
    return _checked("jacobian", f, jacobian, theta, arguments, options)


def check_hvp(
    gradient: Function, hvp: Function, theta: Any, *arguments: Any, **options: Any
) -> Report:
    """Check a hand-written Hessian-vector product numerically, at a random vector.

    Parameters
    ----------
    gradient : callable
        Function of theta and the `arguments` that returns the gradient, or a value and its
        gradient, which is then checked first.
    hvp : callable
        Function of theta, a vector and the `arguments` that returns the product, with the structure
        of theta.
    theta, *arguments
        As in `exactgrad.prove_hvp`.
    **options
        Keyword arguments of `check_gradient`, such as ``method="central"``.

    Returns
    -------
    Report
        The report on `hvp`; or that on `gradient`, if it returns a value whose gradient is wrong.
    """
    return _checked("hvp", gradient, hvp, theta, arguments, options)


def check_hessian(
    gradient: Function, hessian: Function, theta: Any, *arguments: Any, **options: Any
) -> Report:
    """Check a hand-written Hessian numerically.

    Parameters
    ----------
    gradient : callable
        Function of theta and the `arguments` that returns the gradient, or a value and its
        gradient, which is then checked first.
    hessian : callable
        Function of theta and the `arguments` that returns the second derivatives, with the shape
        ``theta.shape + theta.shape``.
    theta, *arguments
        As in `exactgrad.prove_hessian`.
    **options
        Keyword arguments of `check_gradient`, such as ``method="central"``.

    Returns
    -------
    Report
        The report on `hessian`; or that on `gradient`, if it returns a value whose gradient is
        wrong.
    """
    return _checked("hessian", gradient, hessian, theta, arguments, options)


def _checked(
    shape: str,
    f: Function,
    by_hand: Function,
    theta: Any,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> Report:
    """Return the report on `by_hand`, a derivative of f; a failed one has a row per wrong output.

    `shape` says what `by_hand` returns: 'vjp', 'jvp', 'jacobian', 'hvp' or 'hessian'. `options` are
    keyword arguments of `check_gradient`.
    """
    ask = partial(check_gradient, **options)
    reduced = reduce_to_gradient(shape, f, by_hand, theta, arguments, ask)
    report: Report = reduced.answer
    rows = [
        block._replace(name=name)
        for name, row_report in reduced.wrong_rows()
        for block in row_report.blocks
    ]
    return replace(report, blocks=tuple(rows) or report.blocks)


def _refuse_noise(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    """Raise ValueError if two equal calls returned different values or gradients.

    `first` and `second` are the results of both calls: a value, a gradient and any others.
    """
    pairs = zip(("value", "gradient"), first, second, strict=False)
    for name, numbers, repeated in pairs:
        size = np.max(np.abs(numbers), initial=0.0, where=np.isfinite(numbers))
        if not np.allclose(numbers, repeated, 1e-9, 1e-9 * size, equal_nan=True):
            raise ValueError(IS_NOISY.format(name))


def _complex_step(value_and_grad: ValueAndGrad, theta: Array, i: int) -> float:
    """Return the complex-step derivative Im f(theta + ih) / h by coordinate i of theta (D,)."""
    shifted = theta.astype(complex)
    shifted[i] += 1j * COMPLEX_STEP
    value = value_and_grad(shifted)[0]
    if not np.iscomplexobj(value):
        raise TypeError(
            "the value is real for complex theta, so the function is not complex-safe "
            "(np.abs, .real, a cast to float?); use method='central'"
        )
    return float(np.imag(value)) / COMPLEX_STEP  # Im f(theta + ih) / h (D9)


def _refuse_unsafe(
    value_and_grad: ValueAndGrad, theta: Array, i: int, grad: float, name: str
) -> None:
    """Raise TypeError if central differences confirm a derivative that the complex step does not.

    `grad` is the hand-written derivative by coordinate i of theta, and `name` that coordinate's
    name in the error. The function is then at fault: it does not work with complex numbers.
    """
    if not np.isfinite(grad):
        return
    central, rounding = _central_difference(
        value_and_grad, theta, i, _smooth_steps(theta, i, None)
    )
    if (
        abs(central - grad)
        <= TOLERANCES["central"] * max(abs(grad), abs(central)) + rounding
    ):
        raise TypeError(
            f"at {name} central differences confirm the gradient and the complex step does not: "
            "the function is not complex-safe there (a comparison, np.abs, .conj(), np.vdot of "
            "complex numbers?); use method='central'"
        )


def _shifted(theta: Array, i: int, by: float) -> Array:
    """Return a copy of the vector theta (D,) with the number `by` added to coordinate i."""
    out = theta.copy()
    out[i] += by
    return out


def _smooth_steps(
    theta: Array, i: int, gates: Callable[[Array], Array] | None
) -> list[float]:
    """Return the steps of central differences by coordinate i that cross no kink, largest first.

    A step crosses a kink if it changes what `gates` returns. If `gates` is None all are returned.
    """
    steps = [h * max(1.0, abs(theta[i])) for h in CENTRAL_STEPS]
    if gates is None:
        return steps
    own_side = gates(theta)

    def is_smooth(h: float) -> bool:
        sides = (gates(_shifted(theta, i, k * h)) for k in (-2, 2))
        return all(np.array_equal(side, own_side) for side in sides)

    return list(filter(is_smooth, steps))


def _central_difference(
    value_and_grad: ValueAndGrad, theta: Array, i: int, steps: Sequence[float]
) -> tuple[float, float]:
    """Return the fourth-order central difference by coordinate i, and its rounding error.

    Of `steps` the one is used whose estimate differs least from that of the step before it. The
    rounding error, 1.5 eps |F| / h, is what rounding the values F alone can cause (D9).
    """
    estimates = []
    largest = []
    coefficients = [c for _, c in CENTRAL_STENCIL]
    for h in steps:
        points = (_shifted(theta, i, k * h) for k, _ in CENTRAL_STENCIL)
        values = [float(value_and_grad(point)[0]) for point in points]
        terms = zip(coefficients, values, strict=True)
        estimates.append(sum(c * value for c, value in terms) / h)
        largest.append(max(map(abs, values)))
    best = int(np.argmin(np.abs(np.diff(estimates)))) + 1
    rounding = 1.5 * np.finfo(float).eps * largest[best] / steps[best]
    return estimates[best], rounding


def format_table(reports: Mapping[str, Report] | Sequence[tuple[str, Report]]) -> str:
    """Return reports as a table of text, with one line for each block of each report.

    Parameters
    ----------
    reports : mapping of str to Report, or sequence of (str, Report)
        Reports with their titles, such as the terms of a loss; a sequence may repeat a title.

    Returns
    -------
    str
        The table with its head; errors above the tolerance are marked.
    """
    pairs = list(reports.items()) if isinstance(reports, Mapping) else list(reports)
    head = (
        f"{'term':<12} {'method':<8} {'block':<10} {'checked':>7} {'skipped':>7} "
        f"{'rel. error':>10}  {'worst coordinate':<18} {'by hand':>15} {'measured':>15}"
    )
    lines = [head, "-" * len(head)]
    for title, report in pairs:
        for block in report.blocks:
            line = (
                f"{title:<12} {report.method:<8} {block.name:<10} {block.checked:>7} "
                f"{block.skipped:>7} {block.error:>10.1e}  {block.worst:<18} "
                f"{block.analytic:>15.8g} {block.numeric:>15.8g}"
            )
            if not block.error <= report.tolerance:
                line += f"  <- above {report.tolerance:g}"
            lines.append(line)
    return "\n".join(lines)
