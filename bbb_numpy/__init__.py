"""Bayes by Backprop in pure NumPy, every gradient derived by hand and proved.

`plain` is the report on one screen. The folders are floors, each importing from those before it
only: `numeric`, `parts`, `model`, `gradients`, `training`, `sampling`, `evaluation`, `learners`,
`plots`, `cli`. Gradients are proved and checked by `exactgrad`, a package of its own. `bbb_studies`
repeats the sources on this library, and `bbb_course` grades the exercises.
"""

from typing import TYPE_CHECKING, Any

from exactgrad import check_gradient as check
from exactgrad import (
    check_hessian,
    check_hvp,
    check_jacobian,
    check_jvp,
    check_vjp,
    prove,
    prove_hessian,
    prove_hvp,
    prove_jacobian,
    prove_jvp,
    prove_same,
    prove_vjp,
)

from . import registry as _registry
from .gradients.closed_form import ClosedFormKL
from .gradients.flipout import Flipout
from .gradients.importance import DoublyReparameterised, SelfNormalised
from .gradients.local_reparameterisation import LocalReparameterisation
from .gradients.reparameterised import Reparameterised, StickingTheLanding
from .model.joint import Model
from .model.kl_weights import CyclicalWarmUp, LinearWarmUp
from .model.log_joint import LogJoint
from .model.objectives import EUBO, MAP, MLE, FreeEnergy, PACBayes, Renyi
from .parts.counts import NegativeBinomialLikelihood, ZeroInflatedLikelihood
from .parts.discrete import (
    BernoulliLikelihood,
    CategoricalLikelihood,
    PoissonLikelihood,
)
from .parts.full_rank import FullRank
from .parts.hyperpriors import HalfCauchy, HalfNormal, LogNormal
from .parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from .parts.low_rank import LowRank
from .parts.mixture import ScaleMixturePrior
from .parts.network import MLP
from .parts.posteriors import MeanField, PointMass
from .parts.priors import (
    CentredGaussianPrior,
    GaussianPrior,
    LaplacePrior,
    LayerwiseGaussianPrior,
)
from .parts.relevance import ARDPrior
from .parts.student_t import StudentTLikelihood, StudentTPrior
from .registry import register
from .sampling import DrawnWeights, sample
from .sampling.mcmc import HMC, MAMS, MCLMC, NUTS, SGHMC, ChEES, MetropolisHastings
from .training import EarlyStopping, NonFiniteError, Recipe, fit
from .training.optimizers import IVON, SGD, Adam, Constant, Cosine, Momentum, StepDecay
from .version import __version__

if TYPE_CHECKING:
    from .evaluation.arviz_export import to_arviz
    from .evaluation.certificate import certificate
    from .evaluation.convergence import convergence
    from .evaluation.predictive import predict
    from .learners.checkpoint import load, save
    from .learners.classifier import BayesianMLPClassifier
    from .learners.encoder import TableEncoder
    from .learners.ensemble import Ensemble
    from .learners.inference import Sampling
    from .learners.recalibrated import Conformal, Recalibrated
    from .learners.regressor import BayesianMLPRegressor

__all__ = [
    "EUBO",
    "HMC",
    "IVON",
    "MAMS",
    "MAP",
    "MCLMC",
    "MLE",
    "MLP",
    "NUTS",
    "SGD",
    "SGHMC",
    "ARDPrior",
    "Adam",
    "BayesianMLPClassifier",
    "BayesianMLPRegressor",
    "BernoulliLikelihood",
    "CategoricalLikelihood",
    "CentredGaussianPrior",
    "ChEES",
    "ClosedFormKL",
    "Conformal",
    "Constant",
    "Cosine",
    "CyclicalWarmUp",
    "DoublyReparameterised",
    "DrawnWeights",
    "EarlyStopping",
    "Ensemble",
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
    "LogJoint",
    "LogNormal",
    "LowRank",
    "MeanField",
    "MetropolisHastings",
    "Model",
    "Momentum",
    "NegativeBinomialLikelihood",
    "NonFiniteError",
    "PACBayes",
    "PointMass",
    "PoissonLikelihood",
    "Recalibrated",
    "Recipe",
    "Renyi",
    "Reparameterised",
    "Sampling",
    "ScaleMixturePrior",
    "SelfNormalised",
    "StepDecay",
    "StickingTheLanding",
    "StudentTLikelihood",
    "StudentTPrior",
    "TableEncoder",
    "ZeroInflatedLikelihood",
    "__version__",
    "certificate",
    "check",
    "check_hessian",
    "check_hvp",
    "check_jacobian",
    "check_jvp",
    "check_vjp",
    "convergence",
    "fit",
    "load",
    "predict",
    "prove",
    "prove_hessian",
    "prove_hvp",
    "prove_jacobian",
    "prove_jvp",
    "prove_same",
    "prove_vjp",
    "register",
    "sample",
    "save",
    "to_arviz",
]
for _class in _registry.classes(
    *("posterior", "prior", "likelihood", "optimizer", "sampler", "proposal")
):
    # Export each class that the package's modules list in NAMED, without listing it here again
    if _class.__name__ not in __all__:
        globals()[_class.__name__] = _class
        __all__ += [_class.__name__]
LAZY = {
    "Ensemble": "learners.ensemble",
    "Sampling": "learners.inference",
    "certificate": "evaluation.certificate",
    "convergence": "evaluation.convergence",
    "predict": "evaluation.predictive",
    "to_arviz": "evaluation.arviz_export",
    "BayesianMLPClassifier": "learners.classifier",
    "BayesianMLPRegressor": "learners.regressor",
    "Conformal": "learners.recalibrated",
    "Recalibrated": "learners.recalibrated",
    "TableEncoder": "learners.encoder",
    "load": "learners.checkpoint",
    "save": "learners.checkpoint",
}


def __getattr__(name: str) -> Any:
    """Import the learners and their files when first asked for: scikit-learn takes a second."""
    if name in LAZY:
        from importlib import import_module

        return getattr(import_module(f".{LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
