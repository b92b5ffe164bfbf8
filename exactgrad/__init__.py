"""Prove or refute hand-written gradients of NumPy functions in exact arithmetic.

>>> import numpy as np
>>> from exactgrad import prove
>>> print(prove(lambda x: ((x**3).sum(), 3 * x**2), np.array([0.5, -1.5])))
proved: all 2 derivatives are exact
>>> print(prove(lambda x: ((x**3).sum(), 2 * x**2), np.array([0.5, -1.5])))
refuted: 2 of 2 derivatives are wrong
  theta[0]: by hand 0.5, right 0.75, too small by 0.25
  theta[1]: by hand 4.5, right 6.75, too small by 2.25
  they are 2/3 times what is right

A proof passes through these folders: `trace` runs the function on exact numbers of the `fields`,
`verdict` compares the gradient with the derivative of the value, and `blame` looks for the line
that makes a gradient wrong. `floats` finds the inputs for which a function loses digits in floating
point (`stability`). The functions that users call are in `proofs`; `derivatives` has those
for Jacobians, Hessians and their products with vectors; `structures` flattens dicts and lists of
arrays; `gradcheck` compares gradients with numerical derivatives, in floats. The package needs
NumPy only; `jax` and `torch`, which prove the `programs` that these frameworks trace, need them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .deprecation import warn_renamed

if TYPE_CHECKING:
    from .derivatives import (
        prove_gauss_newton,
        prove_hessian,
        prove_hvp,
        prove_jacobian,
        prove_jvp,
        prove_vjp,
    )
    from .floats.stability import Failure, Stability, stability
    from .gradcheck import (
        check_gradient,
        check_hessian,
        check_hvp,
        check_jacobian,
        check_jvp,
        check_vjp,
    )
    from .proofs import Proof, Verdict, assert_proved, prove, prove_same, stop_gradient
    from .trace.functions import function

__all__ = [
    "Failure",
    "Proof",
    "Stability",
    "Verdict",
    "assert_proved",
    "check_gradient",
    "check_hessian",
    "check_hvp",
    "check_jacobian",
    "check_jvp",
    "check_vjp",
    "function",
    "prove",
    "prove_gauss_newton",
    "prove_hessian",
    "prove_hvp",
    "prove_jacobian",
    "prove_jvp",
    "prove_same",
    "prove_vjp",
    "stability",
    "stop_gradient",
]

_MODULES = {
    "derivatives": (
        "prove_gauss_newton",
        "prove_hessian",
        "prove_hvp",
        "prove_jacobian",
        "prove_jvp",
        "prove_vjp",
    ),
    "floats.stability": ("Failure", "Stability", "stability"),
    "gradcheck": (
        "check_gradient",
        "check_hessian",
        "check_hvp",
        "check_jacobian",
        "check_jvp",
        "check_vjp",
    ),
    "proofs": (
        "Proof",
        "Verdict",
        "assert_proved",
        "prove",
        "prove_same",
        "stop_gradient",
    ),
    "trace.functions": ("function",),
}


def __getattr__(name: str) -> Any:
    """Return the public object called `name`, importing its module at the first access.

    The modules import NumPy. pytest imports this package for its plugin, before a test session has
    set the number of threads of BLAS, which NumPy reads when it is imported.
    """
    if name == "still":
        warn_renamed(name, "stop_gradient")
        name = "stop_gradient"
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
