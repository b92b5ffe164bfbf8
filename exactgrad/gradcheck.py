"""Check a hand-written gradient against its own value (D9).

Two oracles for any ``value_and_grad(theta) -> (value, grad)``:

* the **complex step**, ``Im f(theta + ih) / h``, exact to rounding, for functions that only
  use operations which continue to complex numbers (no ``abs``, no ``conj``, no ``max`` of
  complex numbers);
* **central differences** of fourth order, for any function.

Both compute with floats, and see what rounding does. That a gradient is the right one is proved,
without rounding, by `exactgrad.prove`, and each `check_*` has its `prove_*`, which is called alike.

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
    checked_arguments,
    copy_leaves,
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

# the largest relative errors that pass by default
TOLERANCES = {"complex": 1e-12, "central": 1e-6}
__getattr__ = renamed_names(__name__, {"BARS": "TOLERANCES"})
COMPLEX_STEP = 1e-30
# Fourth-order stencil f' = sum_k c_k f(theta + k h) / h. Truncation h^4 f^(5)/30 grows and
# rounding eps f / h falls with h; the best h, about eps^(1/5) = 7e-4 for a function of unit
# scale, depends on the function, so several are tried.
CENTRAL_STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
CENTRAL_STEPS = (2e-2, 5e-3, 1.2e-3, 3e-4, 7.5e-5)
FLOOR = 1e-3
NOISE = (
    "value_and_grad must return the same at each call with the same numbers; got another {}: draw "
    "noise outside, or inside by a generator that each call makes from a seed or takes as an "
    "argument (of which every call gets a copy)"
)


class Block(NamedTuple):
    """What the check found in one named block of theta."""

    name: str
    checked: int
    skipped: int  # coordinates whose difference would straddle a kink
    error: float  # the largest relative error
    worst: str  # the coordinate that has it
    analytic: float  # its hand-written derivative
    numeric: float  # its measured derivative


@dataclass(frozen=True)
class Report:
    """Result of `check_gradient`.

    Its truth value is whether it passes: ``assert check_gradient(f, theta)``.
    """

    blocks: tuple[Block, ...]
    method: str  # complex or central
    tolerance: float  # the largest relative error that passes

    @property
    def error(self) -> float:
        """The largest relative error of all blocks; nan if any derivative is nan."""
        return float(np.max([block.error for block in self.blocks], initial=0.0))

    @property
    def skipped(self) -> float:
        """Share of the coordinates that were skipped at kinks."""
        total = sum(block.checked + block.skipped for block in self.blocks)
        return sum(block.skipped for block in self.blocks) / max(total, 1)

    @property
    def passed(self) -> bool:
        """Whether something was checked and every error is at most the tolerance."""
        return (
            any(block.checked for block in self.blocks) and self.error <= self.tolerance
        )

    @property
    def worst(self) -> Block:
        """The block with the largest error."""
        return max(self.blocks, key=lambda block: (np.isnan(block.error), block.error))

    @property
    def bar(self) -> float:
        """The tolerance, under its former name."""
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
    """Compare the gradient that `value_and_grad` returns with its own value.

    The relative error of a coordinate with hand-written derivative g and measured m is
    ``|g - m| / max(|g|, |m|, 1e-3 max|m|)``: a coordinate a thousand times smaller than the largest
    is held to the same absolute error as one at that size, not to a tighter one. For central
    differences of a value F with step h the denominator is also at least
    ``1.5 eps |F| / h / tolerance``:
    what the rounding of F alone can do (at F = 1e6 and h = 1e-3, 3e-7) does not fail a check.

    Parameters
    ----------
    value_and_grad : callable
        From theta (for the complex step, of complex128) and the `arguments` to a scalar and a
        gradient; what comes after these two is not looked at. Its noise is to be fixed: an array,
        a generator among the `arguments`, of which each call gets a copy, or one made inside from a
        seed.
    theta : ndarray, or a dict, tuple or list of arrays
        The point, float64; the gradient has the same structure.
    *arguments
        What `value_and_grad` takes after theta.
    method : {'complex', 'central'}
    blocks : mapping of str to slice, optional
        Named parts of flat theta, one row each in the report. Default: its arrays.
    coordinate : callable, optional
        From a flat index to a readable name, for the worst coordinate.
    gates : callable, optional
        From theta to an array that changes when a kink is crossed (for a ReLU network, which
        units are on). Steps that cross one are left out; a coordinate is skipped, and counted,
        when fewer than two steps remain. The complex step never crosses one.
    max_coordinates : int, optional
        Largest number of coordinates of each block that are checked; those of a larger block are
        drawn by `rng`. By default all of them.
    rng : numpy.random.Generator or int, optional
        Default 0.
    tolerance : float, optional
        Largest relative error that passes. By default 1e-12 for 'complex' and 1e-6 for 'central'.

    Returns
    -------
    Report

    Raises
    ------
    ValueError, TypeError
        For an argument, or something returned, of another kind or out of range, which is named; a
        TypeError, too, if the complex step is asked of a function that is not complex-safe.
    """
    function, theta, blocks, name_of = checked_arguments(
        value_and_grad, theta, blocks, coordinate
    )

    def both(theta: Array) -> tuple[Any, ...]:
        returned: tuple[Any, ...] = function(theta, *copy_leaves(arguments))
        return returned

    if not isinstance(method, str) or method not in TOLERANCES:
        raise ValueError(f"method must be one of {sorted(TOLERANCES)}; got {method!r}")
    if tolerance is None:
        tolerance = TOLERANCES[method]
    tolerance = positive_number("tolerance", tolerance)
    if max_coordinates is not None:
        max_coordinates = whole_number("max_coordinates", max_coordinates, least=1)
    if gates is not None:
        check_callable("gates", gates)
    if not isinstance(rng, np.random.Generator):
        rng = np.random.default_rng(whole_number("rng", rng))
    returned = both(theta.copy())
    check_returned(returned, theta.shape)
    _refuse_noise(returned, both(theta.copy()))
    grad = np.array(returned[1])

    chosen: dict[str, Array] = {}
    for name, where in blocks.items():
        inside = np.arange(theta.size)[where]
        if max_coordinates is not None and inside.size > max_coordinates:
            inside = np.sort(rng.choice(inside, max_coordinates, replace=False))
        chosen[name] = inside
    numeric = np.full(theta.size, np.nan)  # and of a coordinate that is skipped
    # what rounding alone can do to a difference of values
    rounding = np.zeros(theta.size)
    kinked = np.zeros(theta.size, bool)
    seen = np.concatenate([*chosen.values(), np.zeros(0, int)])
    for i in seen:
        if method == "complex":
            numeric[i] = _complex_step(both, theta, i)
        else:
            steps = _smooth_steps(theta, i, gates)
            kinked[i] = len(steps) < 2
            if not kinked[i]:
                numeric[i], rounding[i] = _central_difference(both, theta, i, steps)

    floor = FLOOR * np.max(np.abs(numeric[seen][~kinked[seen]]), initial=0.0)
    rows = []
    for name, inside in chosen.items():
        kept = inside[~kinked[inside]]
        if kept.size == 0:
            rows.append(Block(name, 0, len(inside), 0.0, "-", 0.0, 0.0))
            continue
        g, n = grad[kept], numeric[kept]
        scale = np.maximum.reduce([np.abs(g), np.abs(n), rounding[kept] / tolerance])
        scale = np.maximum(scale, floor)
        with np.errstate(invalid="ignore"):
            error = np.where(
                (g == 0) & (n == 0), 0.0, np.abs(g - n) / np.where(scale, scale, 1.0)
            )
        at = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
        place = name_of(int(kept[at]))
        if method == "complex" and not error[at] <= TOLERANCES["central"]:
            _refuse_unsafe(both, theta, int(kept[at]), float(g[at]), place)
        found = place, float(g[at]), float(n[at])
        rows.append(
            Block(name, len(kept), len(inside) - len(kept), float(error[at]), *found)
        )
    return Report(tuple(rows), method, tolerance)


# --- derivatives of other shapes: functions and theta as in the proof of the same name


def check_vjp(
    f: Function, vjp: Function, theta: Any, *arguments: Any, **options: Any
) -> Report:
    """Check a product of a vector and a Jacobian, with a random vector.

    Parameters
    ----------
    f, vjp, theta, *arguments
        As in `exactgrad.prove_vjp`.
    **options
        As in `check_gradient`.

    Returns
    -------
    Report
    """
    return _checked("vjp", f, vjp, theta, arguments, options)


def check_jvp(
    f: Function, jvp: Function, theta: Any, *arguments: Any, **options: Any
) -> Report:
    """Check a derivative along a random direction: `exactgrad.prove_jvp` in floats.

    The report has a row for each number of f that is wrong.
    """
    return _checked("jvp", f, jvp, theta, arguments, options)


def check_jacobian(
    f: Function, jacobian: Function, theta: Any, *arguments: Any, **options: Any
) -> Report:
    """Check a whole Jacobian: `exactgrad.prove_jacobian` in floats, options of `check_gradient`."""
    return _checked("jacobian", f, jacobian, theta, arguments, options)


def check_hvp(
    gradient: Function, hvp: Function, theta: Any, *arguments: Any, **options: Any
) -> Report:
    """Check a product of a Hessian and a vector: `exactgrad.prove_hvp` in floats.

    The report is that of `gradient`, if it returns a value too and is wrong.
    """
    return _checked("hvp", gradient, hvp, theta, arguments, options)


def check_hessian(
    gradient: Function, hessian: Function, theta: Any, *arguments: Any, **options: Any
) -> Report:
    """Check a whole Hessian: as `exactgrad.prove_hessian`, with the options of `check_gradient`.

    The report is that of `gradient`, if it returns a value too and is wrong.
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
    """Return the report, with a row for each number of f whose derivatives are wrong."""
    ask = partial(check_gradient, **options)
    report, _, each = reduce_to_gradient(shape, f, by_hand, theta, arguments, ask)
    rows = [block._replace(name=name) for name, one in each() for block in one.blocks]
    return replace(report, blocks=tuple(rows) or report.blocks)


def _refuse_noise(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    """Raise ValueError if two calls with the same numbers return different ones."""
    for what, one, other in zip(("value", "gradient"), first, second, strict=False):
        size = np.max(np.abs(one), initial=0.0, where=np.isfinite(one))
        if not np.allclose(one, other, 1e-9, 1e-9 * size, equal_nan=True):
            raise ValueError(NOISE.format(what))


def _complex_step(value_and_grad: ValueAndGrad, theta: Array, i: int) -> float:
    """Im f(theta + ih) / h: no difference is taken, so nothing cancels."""
    shifted = theta.astype(complex)
    shifted[i] += 1j * COMPLEX_STEP
    value = value_and_grad(shifted)[0]
    if not np.iscomplexobj(value):
        raise TypeError(
            "the value is real for complex theta, so the function is not complex-safe "
            "(np.abs, .real, a cast to float?); use method='central'"
        )
    return float(np.imag(value)) / COMPLEX_STEP  # D9


def _refuse_unsafe(
    value_and_grad: ValueAndGrad, theta: Array, i: int, grad: float, place: str
) -> None:
    """Raise if differences confirm the gradient that the complex step refutes."""
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
            f"at {place} central differences confirm the gradient and the complex step does not: "
            "the function is not complex-safe there (a comparison, np.abs, .conj(), np.vdot of "
            "complex numbers?); use method='central'"
        )


def _shifted(theta: Array, i: int, by: float) -> Array:
    out = theta.copy()
    out[i] += by
    return out


def _smooth_steps(
    theta: Array, i: int, gates: Callable[[Array], Array] | None
) -> list[float]:
    """Return the steps whose stencil lies on one side of every kink, largest first."""
    steps = [h * max(1.0, abs(theta[i])) for h in CENTRAL_STEPS]
    if gates is None:
        return steps
    here = gates(theta)

    def smooth(h: float) -> bool:
        return all(
            np.array_equal(gates(_shifted(theta, i, k * h)), here) for k in (-2, 2)
        )

    return list(filter(smooth, steps))


def _central_difference(
    value_and_grad: ValueAndGrad, theta: Array, i: int, steps: Sequence[float]
) -> tuple[float, float]:
    """Fourth-order central difference, at the step where it depends least on the step.

    Also returns what the rounding of the values alone can do to it, 1.5 eps |F| / h (D9).
    """
    estimates, largest = [], []
    for h in steps:
        values = [
            float(value_and_grad(_shifted(theta, i, k * h))[0])
            for k, _ in CENTRAL_STENCIL
        ]
        estimates.append(
            sum(
                c * value for value, (_, c) in zip(values, CENTRAL_STENCIL, strict=True)
            )
            / h
        )
        largest.append(max(map(abs, values)))
    best = int(np.argmin(np.abs(np.diff(estimates)))) + 1
    return estimates[best], 1.5 * np.finfo(float).eps * largest[best] / steps[best]


def format_table(reports: Mapping[str, Report] | Sequence[tuple[str, Report]]) -> str:
    """Lay out reports by their titles (such as terms of the loss) as text, one line per block."""
    pairs = list(reports.items()) if isinstance(reports, Mapping) else list(reports)
    head = (
        f"{'term':<12} {'method':<8} {'block':<10} {'checked':>7} {'skipped':>7} "
        f"{'rel. error':>10}  {'worst coordinate':<18} {'by hand':>15} {'measured':>15}"
    )
    lines = [head, "-" * len(head)]
    for title, report in pairs:
        for b in report.blocks:
            flag = (
                ""
                if b.error <= report.tolerance
                else f"  <- above {report.tolerance:g}"
            )
            lines.append(
                f"{title:<12} {report.method:<8} {b.name:<10} {b.checked:>7} {b.skipped:>7} "
                f"{b.error:>10.1e}  {b.worst:<18} {b.analytic:>15.8g} {b.numeric:>15.8g}{flag}"
            )
    return "\n".join(lines)
