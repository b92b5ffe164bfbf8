"""Markov chains that draw from the posterior itself.

`run` has `sample` and `sample_target`, which return the `Draws` of `draws`; its `DrawnWeights`
makes predictions of them. Kernels and their warm-up are in `mcmc`, with NumPy alone; `chains` moves
groups of chains, in several processes if there are cores; `resuming` stores a run on disk.
"""

from .draws import DrawnWeights, Draws
from .run import sample, sample_target

__all__ = ["DrawnWeights", "Draws", "sample", "sample_target"]
