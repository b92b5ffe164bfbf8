"""Prove vector products with Jacobians and Hessians, and whole ones, each as a gradient (D44).

>>> import numpy as np
>>> def square(x):
...     return x**2
>>> def backward(x, upstream):
...     return 2 * x * upstream
>>> print(prove_vjp(square, backward, np.ones((2, 2))))
proved: all 4 derivatives are exact
>>> def jacobian(x):
...     return np.diag([2, -2] * x)
>>> print(prove_jacobian(square, jacobian, np.array([1.5, 0.5])))
refuted: 1 of 4 derivatives is wrong
  value[1] by theta[1]: by hand -1, right 1, too small by 2
  it is right but for the sign
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
    """Prove or refute a hand-written vector-Jacobian product, such as a backward pass (D44).

    Parameters
    ----------
    f : callable
        From theta and the `arguments` to an array, or a dict, tuple or list of arrays.
    vjp : callable
        From theta, a cotangent as what f returns, and the `arguments` to the gradient of the sum of
        their products, of the structure of theta.
    theta : ndarray, or a dict, tuple or list of arrays
        The point, float64: it chooses the path of comparisons.
    *arguments
        Data, noise and constants, of which floats and arrays of floats are exact numbers too: the
        proof is for all their values on the same path.
    **options
        `blocks`, `coordinate`, `n_points`, `seed` and `fixed`: as in `prove`.

    Returns
    -------
    Proof
        A proof that counts one derivative for each number of theta.

    Raises
    ------
    TypeError, ValueError
        For an argument of another kind or out of range, and if f and vjp return arrays of shapes
        that do not fit.
    """
    return _proved("vjp", f, vjp, theta, arguments, options)


def prove_jvp(
    f: Function, jvp: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a hand-written Jacobian-vector product, a directional derivative (D44).

    Parameters
    ----------
    f : callable
        From theta and the `arguments` to an array, or a dict, tuple or list of arrays.
    jvp : callable
        From theta, a tangent of the structure of theta, and the `arguments` to the derivative of f
        along the tangent.
    theta : ndarray, or a dict, tuple or list of arrays
        The point, float64. Other thetas that are tried lie along the tangent.
    *arguments, **options
        As in `prove_vjp`; `blocks` and `coordinate`, names of numbers of theta, are not used.

    Returns
    -------
    Proof
        A proof that counts one derivative for each number that f returns.
    """
    return _proved("jvp", f, jvp, theta, arguments, options)


def prove_jacobian(
    f: Function, jacobian: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a hand-written Jacobian (D44).

    Parameters
    ----------
    f : callable
        From theta and the `arguments` to one array.
    jacobian : callable
        From the same to the derivatives, of the shape of f's array and that of theta behind it; for
        a theta of several arrays a structure of as many.
    theta : ndarray, or a dict, tuple or list of arrays
        The point, float64.
    *arguments, **options
        As in `prove_vjp`.

    Returns
    -------
    Proof
        A proof that counts one derivative for each number of the Jacobian.
    """
    return _proved("jacobian", f, jacobian, theta, arguments, options)


def prove_hvp(
    gradient: Function, hvp: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a hand-written Hessian-vector product (D44).

    Parameters
    ----------
    gradient : callable
        From theta and the `arguments` to the gradient, or to a value and its gradient, which is
        proved first. Of a value alone there is no proof: write its gradient.
    hvp : callable
        From theta, a vector of the structure of theta, and the `arguments` to the product.
    theta : ndarray, or a dict, tuple or list of arrays
        The point, float64.
    *arguments, **options
        As in `prove_jvp`.

    Returns
    -------
    Proof
        A proof that counts one derivative for each number of theta; the proof of `gradient`, if
        that is wrong.
    """
    return _proved("hvp", gradient, hvp, theta, arguments, options)


def prove_hessian(
    gradient: Function, hessian: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a hand-written Hessian (D44).

    Parameters
    ----------
    gradient : callable
        From theta and the `arguments` to the gradient, or to a value and its gradient, which is
        proved first.
    hessian : callable
        From theta and the `arguments` to the second derivatives, of theta's shape twice.
    theta : ndarray
        The point, one float64 array.
    *arguments, **options
        As in `prove_vjp`.

    Returns
    -------
    Proof
        A proof that counts one derivative for each number of the Hessian; the proof of `gradient`,
        if that is wrong.
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
    """Return the proof; if it is refuted, with the names of all derivatives that are wrong.

    `shape` is 'vjp', 'jvp', 'jacobian', 'hvp' or 'hessian'; `options` are those of `prove`.
    """
    ask = partial(prove, **options)
    reduced = reduce_to_gradient(shape, f, by_hand, theta, arguments, ask)
    proof: Proof = reduced.answer
    is_product = shape in ("jvp", "hvp")

    def wrong() -> tuple[WrongDerivative, ...]:
        errors = []
        for row, row_proof in reduced.wrong_rows():
            for error in row_proof.wrong:
                name = row if is_product else f"{row} by {error.name}"
                errors.append(error._replace(name=name))
        return tuple(errors) or proof.wrong

    return with_fields(proof, coordinates=reduced.n_derivatives, wrong=wrong)
