"""Markov chain Monte Carlo from the posterior of a network's weights.

`run` has `sample` and `sample_target`, which return the class `Draws` of the module `draws`; the
class `DrawnWeights` of that module makes predictions from them. `mcmc` holds the kernels and their
warm-up; `chains` advances groups of chains, in several processes if there are cores; `resuming`
stores a run on disk.
"""

from .draws import DrawnWeights, Draws
from .run import sample, sample_target

__all__ = ["DrawnWeights", "Draws", "sample", "sample_target"]
