"""Proofs of gradients and values in exact arithmetic; imports nothing but NumPy."""

from .functions import function
from .proofs import Proof, assert_proved, prove, prove_same, still
from .shapes import prove_hessian, prove_hvp, prove_jacobian, prove_jvp, prove_vjp

__all__ = [
    "Proof",
    "assert_proved",
    "function",
    "prove",
    "prove_hessian",
    "prove_hvp",
    "prove_jacobian",
    "prove_jvp",
    "prove_same",
    "prove_vjp",
    "still",
]
