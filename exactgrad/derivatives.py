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
from typing import Any

from .proofs import Proof, prove_reduced, stop_gradient
from .structures import Tree, map_leaves
from .trace.slopes import slope_along

__all__ = [
    "prove_gauss_newton",
    "prove_hessian",
    "prove_hvp",
    "prove_jacobian",
    "prove_jvp",
    "prove_vjp",
]

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
    return prove_reduced("vjp", f, vjp, theta, arguments, options)


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
    return prove_reduced("jvp", f, jvp, theta, arguments, options)


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
    return prove_reduced("jacobian", f, jacobian, theta, arguments, options)


def prove_hvp(
    gradient: Function, hvp: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a hand-written Hessian-vector product (D44).

    Parameters
    ----------
    gradient : callable
        Function of theta and the `arguments` that returns the gradient; a value and its gradient,
        which is then proved first; or the value alone.
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
    return prove_reduced("hvp", gradient, hvp, theta, arguments, options)


def prove_hessian(
    gradient: Function, hessian: Function, theta: Any, *arguments: Any, **options: Any
) -> Proof:
    """Prove or refute a hand-written Hessian (D44).

    Parameters
    ----------
    gradient : callable
        Function of theta and the `arguments` that returns the gradient; a value and its gradient,
        which is then proved first; or the value alone.
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
    return prove_reduced("hessian", gradient, hessian, theta, arguments, options)


def prove_gauss_newton(
    f: Function,
    by_hand: Function,
    theta: Any,
    *arguments: Any,
    loss: Function | None = None,
    product: bool = False,
    **options: Any,
) -> Proof:
    """Prove or refute a hand-written Gauss-Newton matrix J^T H J, or its product with a vector.

    J is the Jacobian of the outputs f(theta), and H the Hessian of the loss by the outputs. For the
    log likelihood of an exponential family by its natural parameters it is the Fisher matrix.

    Parameters
    ----------
    f : callable
        Function of theta and the `arguments` that returns the outputs or residuals: an array, or a
        dict, tuple or list of arrays.
    by_hand : callable
        Function of theta and the `arguments` that returns the matrix, of shape
        ``theta.shape + theta.shape``; a product takes its vector after theta.
    theta : ndarray, or a dict, tuple or list of arrays
        The point, float64; for a matrix it is one array.
    *arguments
        As in `prove_vjp`.
    loss : callable, optional
        Function of the outputs and the `arguments` that returns a number. By default half the sum
        of squares, for which H is the identity.
    product : bool
        Whether `by_hand` returns the product with a vector. By default it returns the matrix.
    **options
        As in `prove_vjp`.

    Returns
    -------
    Proof
        A proof that counts one derivative for each number of the matrix or the product.
    """

    def half_squares(outputs: Any, *_: Any) -> Any:
        flat = Tree.of(outputs, "value").flatten(outputs)
        return (flat * flat).sum() / 2

    def linearised(theta: Any, *arguments: Any) -> Any:
        # the loss of the outputs' tangent plane, whose Hessian by theta is J^T H J
        point = map_leaves(theta, stop_gradient)
        steps = map_leaves(theta, lambda x: x - stop_gradient(x))

        def outputs(theta: Any, *arguments: Any) -> Any:
            values = f(theta, *arguments)
            return Tree.of(values, "value").flatten(values)

        values = f(point, *arguments)
        tree = Tree.of(values, "value")
        plane = tree.flatten(values) + slope_along(outputs, point, steps, *arguments)
        return (loss or half_squares)(tree.unflatten(plane), *arguments)

    shape = "hvp" if product else "hessian"
    return prove_reduced(shape, linearised, by_hand, theta, arguments, options)
