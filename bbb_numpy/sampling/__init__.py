"""Draws from the posterior itself.

`mcmc`: kernels and their warm-up, NumPy alone. `annealing`: the evidence (M20). `run`: one call to
sample. `draws`: what it leaves, and how predictions are made of it. `resuming`: a run on disk.
"""

from .draws import DrawnWeights, Draws
from .run import sample, sample_target

__all__ = ["DrawnWeights", "Draws", "sample", "sample_target"]
