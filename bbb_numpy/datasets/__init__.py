"""Data sets (floor 5): the toy problems of the sources, and a radio field over a plane.

Real data are in `powerball`, `income_tax`, `sp500` and `uci`; `folder` finds their files.
"""

from .krasser import one_period, ten_sine
from .path_loss import Building, Scene
from .toy import Toy, cubic, cubic_curve, sine, sine_curve

__all__ = [
    "Building",
    "Scene",
    "Toy",
    "cubic",
    "cubic_curve",
    "one_period",
    "sine",
    "sine_curve",
    "ten_sine",
]
