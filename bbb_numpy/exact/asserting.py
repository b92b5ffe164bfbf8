"""A proof as an assertion, for tests; the fixture of pytest is in `bbb_numpy_pytest`."""

from __future__ import annotations

from typing import Any

from .proofs import Array, Proof, ValueAndGrad, prove

__all__ = ["assert_proved"]


def assert_proved(
    value_and_grad: ValueAndGrad, theta: Array, *arguments: Any, **options: Any
) -> Proof:
    """Raise AssertionError with the verdict unless `prove`, of these arguments, says *proved*.

    Returns
    -------
    Proof
        For a look at the paths that were taken.
    """
    __tracebackhide__ = True
    proof = prove(value_and_grad, theta, *arguments, **options)
    if not proof:
        raise AssertionError(str(proof))
    return proof
