"""Bayes by Backprop in pure NumPy, every gradient derived by hand and checked.

Read in this order, which is also the order of imports: `numerics`, `layout`, `workspace`;
`network`, `posteriors`, `priors`, `likelihoods`; `model`, `objectives`; `gradients`,
`optimizers`; `training`, `predictive`; `learners`, `checkpoint`. `gradcheck` stands beside
them.
"""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from .checkpoint import load, save
    from .learners import BayesianMLPRegressor

__all__ = [
    "MLP",
    "SGD",
    "Adam",
    "BayesianMLPRegressor",
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
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    """Import the learner and its files when first asked for: scikit-learn takes a second."""
    if name == "BayesianMLPRegressor":
        from .learners import BayesianMLPRegressor

        return BayesianMLPRegressor
    if name in ("load", "save"):
        from . import checkpoint

        return getattr(checkpoint, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
