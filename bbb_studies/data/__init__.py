"""Data sets: the toy problems of the sources, a radio field over a plane, and real data.

`toys` and `path_loss` are made up. `uci`, `powerball`, `income_tax`, `sp500`, `mnist`, `mushroom`
are read from files, which `locate` finds or downloads.
"""

from .path_loss import Building, Scene
from .toys import Toy, cubic, cubic_curve, one_period, sine, sine_curve, ten_sine

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
