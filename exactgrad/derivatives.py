"""Prove Jacobians, Hessians and their products with vectors, each as a gradient (D44).

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
        Function of theta and the `arguments` that returns an array, or a dict, tuple or list of
        arrays.
    vjp : callable
        Function of theta, a cotangent u and the `arguments` that returns the gradient of the sum of
        ``u * f(theta)``. The cotangent has the structure of what f returns, the gradient that of
        theta.
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
        If an argument has a wrong type or is out of range, or if the arrays that f and vjp return
        do not have matching shapes.
    """
    return _proved("vjp", f, vjp, theta, arguments, options)


def prove_jvp(
    f: Function, jvp: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a hand-written Jacobian-vector product, a directional derivative (D44).

    Parameters
    ----------
    f : callable
        Function of theta and the `arguments` that returns an array, or a dict, tuple or list of
        arrays.
    jvp : callable
        Function of theta, a tangent and the `arguments` that returns the derivative of f along the
        tangent, which has the structure of theta.
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
        Function of theta and the `arguments` that returns one array.
    jacobian : callable
        Function of theta and the `arguments` that returns the derivatives: an array whose shape is
        that of f's array followed by that of theta or, for a theta of several arrays, a structure
        of such arrays.
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
        Function of theta and the `arguments` that returns the gradient, or a value and its
        gradient, which is then proved first. A function that returns the value alone will not do.
    hvp : callable
        Function of theta, a vector v and the `arguments` that returns the Hessian times v. Both v
        and the product have the structure of theta.
    theta : ndarray, or a dict, tuple or list of arrays
        The point, float64.
    *arguments, **options
        As in `prove_jvp`.

    Returns
    -------
    Proof
        The proof of `hvp`, which counts one derivative for each number of theta; or the failed
        proof of `gradient`, if that returns a value whose gradient is not proved.
    """
    return _proved("hvp", gradient, hvp, theta, arguments, options)


def prove_hessian(
    gradient: Function, hessian: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a hand-written Hessian (D44).

    Parameters
    ----------
    gradient : callable
        Function of theta and the `arguments` that returns the gradient, or a value and its
        gradient, which is then proved first.
    hessian : callable
        Function of theta and the `arguments` that returns the second derivatives, with the shape
        ``theta.shape + theta.shape``.
    theta : ndarray
        The point, one float64 array.
    *arguments, **options
        As in `prove_vjp`.

    Returns
    -------
    Proof
        The proof of `hessian`, which counts one derivative for each number of the Hessian; or the
        failed proof of `gradient`, if that returns a value whose gradient is not proved.
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
    """Return the proof that `by_hand` is the derivative of f; `wrong` names each wrong derivative.

    `shape` says what `by_hand` returns: 'vjp', 'jvp', 'jacobian', 'hvp' or 'hessian'. `options` are
    keyword arguments of `prove`.
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
