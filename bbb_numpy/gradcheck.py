"""Checks of gradients in floats under their former name: they stand in `exactgrad` now."""

from exactgrad.gradcheck import TOLERANCES as BARS
from exactgrad.gradcheck import (
    Block,
    Report,
    check_hessian,
    check_hvp,
    check_jacobian,
    check_jvp,
    check_vjp,
    format_table,
)
from exactgrad.gradcheck import check_gradient as check

__all__ = [
    "BARS",
    "Block",
    "Report",
    "check",
    "check_hessian",
    "check_hvp",
    "check_jacobian",
    "check_jvp",
    "check_vjp",
    "format_table",
]
