"""Data sets: the toy problems of the sources, a radio field over a plane, and real data.

`kebude`, `krasser`, `path_loss` are made up. `uci`, `powerball`, `income_tax`, `sp500`, `mnist`,
`mushroom` are read from files, which `locate` finds or downloads.
"""

from .kebude import Toy, cubic, cubic_curve, sine, sine_curve
from .krasser import one_period, ten_sine
from .path_loss import Building, Scene

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
