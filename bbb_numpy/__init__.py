"""Bayes by Backprop in pure NumPy, every gradient derived by hand and checked.

Read in this order, which is also the order of imports: `numerics`, `layout`, `workspace`;
`network`, `posteriors`, `full_rank`, `priors`, `likelihoods`, `discrete`; `model`, `objectives`,
`kl_weights`, `log_joint`; `families`, `gradients`, `closed_form`, `optimizers`, `mcmc`; `training`,
`sampling`, `predictive`;
`names`, `base_learner`, `learners`, `classifier`, `checkpoint`. `gradcheck` stands beside them.
"""

from typing import TYPE_CHECKING, Any

from .closed_form import ClosedFormKL
from .discrete import BernoulliLikelihood, CategoricalLikelihood, PoissonLikelihood
from .flipout import Flipout
from .full_rank import FullRank
from .gradcheck import check
from .gradients import Reparameterised, StickingTheLanding
from .hyperpriors import HalfCauchy, HalfNormal, LogNormal
from .importance import DoublyReparameterised, SelfNormalised
from .kl_weights import CyclicalWarmUp, LinearWarmUp
from .layerwise import LayerwiseGaussianPrior
from .likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from .local_reparameterisation import LocalReparameterisation
from .mcmc import HMC, NUTS, MetropolisHastings
from .mixture import ScaleMixturePrior
from .model import Model
from .network import MLP
from .objectives import EUBO, MAP, MLE, FreeEnergy, Renyi
from .optimizers import SGD, Adam, Constant, Cosine, Momentum, StepDecay
from .posteriors import MeanField, PointMass
from .priors import GaussianPrior, LaplacePrior
from .training import EarlyStopping, NonFiniteError
from .version import __version__

if TYPE_CHECKING:
    from .checkpoint import load, save
    from .classifier import BayesianMLPClassifier
    from .diagnostics import to_arviz
    from .inference import Sampling
    from .learners import BayesianMLPRegressor
    from .sampling import sample

__all__ = [
    "EUBO",
    "HMC",
    "MAP",
    "MLE",
    "MLP",
    "NUTS",
    "SGD",
    "Adam",
    "BayesianMLPClassifier",
    "BayesianMLPRegressor",
    "BernoulliLikelihood",
    "CategoricalLikelihood",
    "ClosedFormKL",
    "Constant",
    "Cosine",
    "CyclicalWarmUp",
    "DoublyReparameterised",
    "EarlyStopping",
    "Flipout",
    "FreeEnergy",
    "FullRank",
    "GaussianLikelihood",
    "GaussianPrior",
    "HalfCauchy",
    "HalfNormal",
    "HeteroscedasticLikelihood",
    "LaplacePrior",
    "LayerwiseGaussianPrior",
    "LinearWarmUp",
    "LocalReparameterisation",
    "LogNormal",
    "MeanField",
    "MetropolisHastings",
    "Model",
    "Momentum",
    "NonFiniteError",
    "PointMass",
    "PoissonLikelihood",
    "Renyi",
    "Reparameterised",
    "Sampling",
    "ScaleMixturePrior",
    "SelfNormalised",
    "StepDecay",
    "StickingTheLanding",
    "__version__",
    "check",
    "load",
    "sample",
    "save",
    "to_arviz",
]
LAZY = {
    "Sampling": "inference",
    "sample": "sampling",
    "to_arviz": "diagnostics",
    "BayesianMLPClassifier": "classifier",
    "BayesianMLPRegressor": "learners",
    "load": "checkpoint",
    "save": "checkpoint",
}


def __getattr__(name: str) -> Any:
    """Import the learners and their files when first asked for: scikit-learn takes a second."""
    if name in LAZY:
        from importlib import import_module

        return getattr(import_module(f".{LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
