"""Draws from the posterior itself.

`mcmc`: kernels and their warm-up, NumPy alone. `chains`: groups of chains, and the processes that
move them. `resuming`: a run on disk. `run`: one call to sample. `draws`: what it leaves, and how
predictions are made of it.
"""

from .draws import DrawnWeights, Draws
from .run import sample, sample_target

__all__ = ["DrawnWeights", "Draws", "sample", "sample_target"]
