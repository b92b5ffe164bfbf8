"""Proofs of derivatives of other shapes than a gradient: each is asked as one by `trees` (D44).

>>> import numpy as np
>>> def square(x):
...     return x**2
>>> def backward(x, upstream):
...     return 2 * x * upstream
>>> print(prove_vjp(square, backward, np.ones((2, 2))))
proved: all 4 derivatives are exact
>>> def jacobian(x):
...     return np.diag([2, 3] * x)
>>> print(prove_jacobian(square, jacobian, np.array([1.5, 0.5])))
refuted: 1 of 4 derivatives is wrong
  value[1] by theta[1]: by hand 1.5, right 1, too large by 0.5
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .proofs import Proof, WrongDerivative, prove, with_fields
from .structures import reduce_to_gradient

__all__ = ["prove_hessian", "prove_hvp", "prove_jacobian", "prove_jvp", "prove_vjp"]

Function = Callable[..., Any]


def prove_vjp(
    f: Function, vjp: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a product of a vector and a Jacobian: a layer's backward pass (D44).

    Parameters
    ----------
    f : callable
        From theta and the `arguments` to an array, or a dict, tuple or list of arrays.
    vjp : callable
        From theta, a cotangent as what f returns, and the `arguments` to the gradient of the sum of
        their products, of the structure of theta.
    theta : ndarray, or a dict, tuple or list of arrays
    *arguments
        As in `prove`.
    **options
        blocks, coordinate, points, seed, fixed: as in `prove`.

    Returns
    -------
    Proof
    """
    return _proved("vjp", f, vjp, theta, arguments, options)


def prove_jvp(
    f: Function, jvp: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a product of a Jacobian and a vector, a derivative along a direction (D44).

    Parameters
    ----------
    f, theta, *arguments, **options
        As in `prove_vjp`. Other thetas that are tried lie along the tangent.
    jvp : callable
        From theta, a tangent of the structure of theta, and the `arguments` to the derivative of f
        along the tangent.

    Returns
    -------
    Proof
        Of as many derivatives as f returns numbers.
    """
    return _proved("jvp", f, jvp, theta, arguments, options)


def prove_jacobian(
    f: Function, jacobian: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a whole Jacobian (D44).

    Parameters
    ----------
    f, theta, *arguments, **options
        As in `prove_vjp`, but f returns one array.
    jacobian : callable
        From the same to the derivatives, of the shape of f's array and that of theta behind it; for
        a theta of several arrays a structure of as many.
    """
    return _proved("jacobian", f, jacobian, theta, arguments, options)


def prove_hvp(
    gradient: Function, hvp: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a product of a Hessian and a vector (D44).

    Parameters
    ----------
    gradient : callable
        From theta and the `arguments` to the gradient, or to a value and its gradient, which is
        proved first. Of a value alone there is no proof: write its gradient.
    hvp : callable
        From theta, a vector of the structure of theta, and the `arguments` to the product.
    theta, *arguments, **options
        As in `prove_vjp`.

    Returns
    -------
    Proof
        Of `gradient`, if that is wrong.
    """
    return _proved("hvp", gradient, hvp, theta, arguments, options)


def prove_hessian(
    gradient: Function, hessian: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a whole Hessian (D44).

    Parameters
    ----------
    gradient, *arguments, **options
        As in `prove_hvp`; the proof is that of `gradient`, if that is wrong.
    theta : ndarray
        One array.
    hessian : callable
        From theta and the `arguments` to the second derivatives, of theta's shape twice.
    """
    return _proved("hessian", gradient, hessian, theta, arguments, options)


def _proved(
    shape: str,
    f: Function,
    by_hand: Function,
    theta: Any,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> Proof:
    """Return the proof; where it is refuted, with all that is wrong by its name."""
    ask = partial(prove, **options)
    proof, count, each = reduce_to_gradient(shape, f, by_hand, theta, arguments, ask)
    by = "{0}" if shape in ("jvp", "hvp") else "{0} by {1}"

    def wrong() -> tuple[WrongDerivative, ...]:
        named = tuple(
            one._replace(name=by.format(name, one.name))
            for name, row in each()
            for one in row.wrong
        )
        return named or proof.wrong

    return with_fields(proof, coordinates=count, wrong=wrong)
