"""Proofs of gradients and values in exact arithmetic; imports `gradcheck` alone."""

from .functions import function
from .proofs import Proof, prove, prove_same, still

__all__ = ["Proof", "function", "prove", "prove_same", "still"]
