"""Bayes by Backprop in pure NumPy, every gradient derived by hand and checked.

Read in this order, which is also the order of imports: `numerics`, `layout`, `workspace`;
`network`, `posteriors`, `priors`, `likelihoods`; `model`, `objectives`; `gradients`,
`optimizers`; `training`, `predictive`; `learners`. `gradcheck` stands beside them.
"""

from .gradcheck import check
from .gradients import Reparameterised
from .likelihoods import GaussianLikelihood
from .model import Model
from .network import MLP
from .optimizers import SGD, Adam, Constant, Cosine, Momentum, StepDecay
from .posteriors import MeanField
from .priors import GaussianPrior
from .training import EarlyStopping, NonFiniteError
from .version import __version__

__all__ = [
    "MLP",
    "SGD",
    "Adam",
    "Constant",
    "Cosine",
    "EarlyStopping",
    "GaussianLikelihood",
    "GaussianPrior",
    "MeanField",
    "Model",
    "Momentum",
    "NonFiniteError",
    "Reparameterised",
    "StepDecay",
    "__version__",
    "check",
]
