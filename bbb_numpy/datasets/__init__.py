"""Data sets (floor 5): the report's two toy problems."""

from .toy import Toy, cubic, cubic_curve, sine, sine_curve

__all__ = ["Toy", "cubic", "cubic_curve", "sine", "sine_curve"]
