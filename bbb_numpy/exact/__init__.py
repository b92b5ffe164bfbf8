"""Proofs of gradients and values in exact arithmetic; imports `gradcheck` alone.

`numbers` are what is computed with, `proofs` what is concluded.
"""

from .numbers import still
from .proofs import Proof, prove, prove_same

__all__ = ["Proof", "prove", "prove_same", "still"]
