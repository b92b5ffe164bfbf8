"""The prover under its former name: `exactgrad` is what it is called now.

``python -m bbb_numpy.exact`` is ``exactgrad``.
"""

from exactgrad import (
    Proof,
    assert_proved,
    function,
    prove,
    prove_hessian,
    prove_hvp,
    prove_jacobian,
    prove_jvp,
    prove_same,
    prove_vjp,
    stop_gradient,
)
from exactgrad import stop_gradient as still

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
    "stop_gradient",
]

if __name__ == "__main__":
    import sys

    from exactgrad.command import main

    sys.exit(main())
