"""All parts by their short names, as the learners and the command line take them.

A table for each kind of part; every entry can also be made by hand with other numbers. Learners,
files, command line, matrix and tests take a part from here, and `bbb_numpy` exports its class.
A new one comes from its module, which lists it in a table NAMED (CONTRIBUTING.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from .. import parts
from ..model.kl_weights import (
    CyclicalWarmUp,
    LinearWarmUp,
    NoWarmUp,
    Shares,
    WarmUp,
    geometric_kl_weights,
    proportional_kl_weights,
)
from ..model.objectives import EUBO, MAP, MLE, FreeEnergy, PACBayes, Renyi
from ..numeric.validation import OneOf
from ..parts import activations
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood, PoissonLikelihood
from ..parts.full_rank import FullRank
from ..parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood, Likelihood
from ..parts.mixture import ScaleMixturePrior
from ..parts.posteriors import MeanField, PointMass, Posterior
from ..parts.priors import GaussianPrior, LaplacePrior, LayerwiseGaussianPrior, Prior
from ..parts.student_t import StudentTLikelihood, StudentTPrior
from .closed_form import ClosedFormKL
from .family import Family
from .flipout import Flipout
from .importance import DoublyReparameterised, SelfNormalised
from .local_reparameterisation import LocalReparameterisation
from .reparameterised import Reparameterised, StickingTheLanding

Parts = dict[str, Any]
Estimator = Family


def _named(kind: type, pairs: dict[str, tuple[Any, Any]]) -> tuple[Parts, Parts]:
    """Return by name the parts that learners and command line start from, and those to check.

    Modules of `parts` list more in a table NAMED of their own. What can learn is there twice.
    """
    for one in iter_modules(parts.__path__):
        more = getattr(import_module(f"{parts.__name__}.{one.name}"), "NAMED", {})
        pairs |= {name: pair for name, pair in more.items() if isinstance(pair[0], kind)}
    usual, checked = {}, {}
    for name, pair in pairs.items():
        usual[name], checked[name] = pair
        if hasattr(pair[0], "learn"):
            learned = f"{name}-learned"
            usual[learned], checked[learned] = (replace(part, learn=True) for part in pair)
    return usual, checked


# To be checked: wide posteriors, priors and noise of about unit size. The log densities and their
# slopes are then of the size of the gradient, which a check to 1e-12 needs where exponentials of
# them enter and samples cancel (Renyi, EUBO, antithetic noise).
POSTERIORS, CHECKED_POSTERIORS = _named(
    Posterior,
    {
        "mean-field": (MeanField(rho_offset=-4.0), MeanField(0.3, -0.5, 0.5)),
        "full-rank": (FullRank(rho_offset=-4.0, unit=0.01), FullRank(0.3, -0.5, 0.5)),
        "point": (PointMass(), PointMass(0.3)),
    },
)
PRIORS, CHECKED_PRIORS = _named(
    Prior,
    {
        "gaussian": (GaussianPrior(0.5), GaussianPrior(0.5)),
        "layerwise": (LayerwiseGaussianPrior(), LayerwiseGaussianPrior()),
        "laplace": (LaplacePrior(0.35), LaplacePrior(0.25)),
        "student-t": (StudentTPrior(0.35, 4.0), StudentTPrior(0.5, 4.0)),
        "mixture": (ScaleMixturePrior(), ScaleMixturePrior(0.25, 1.0, 0.25)),
    },
)
LIKELIHOODS, CHECKED_LIKELIHOODS = _named(
    Likelihood,
    {
        "gaussian": (GaussianLikelihood(0.1), GaussianLikelihood(0.5)),
        "student-t": (StudentTLikelihood(0.1, 4.0), StudentTLikelihood(0.5, 4.0)),
        "heteroscedastic": (HeteroscedasticLikelihood(), HeteroscedasticLikelihood()),
        "bernoulli": (BernoulliLikelihood(), BernoulliLikelihood()),
        "categorical": (CategoricalLikelihood(), CategoricalLikelihood()),
        "poisson": (PoissonLikelihood(), PoissonLikelihood()),
    },
)
ACTIVATIONS = activations.ACTIVATIONS
ESTIMATORS: dict[str, Callable[..., Any]] = {
    "reparameterised": Reparameterised,
    "antithetic": partial(Reparameterised, antithetic=True),
    "closed-form-kl": ClosedFormKL,
    "closed-form-kl-antithetic": partial(ClosedFormKL, antithetic=True),
    "sticking-the-landing": StickingTheLanding,
    "local-reparameterisation": LocalReparameterisation,
    "flipout": Flipout,
    "doubly-reparameterised": DoublyReparameterised,
    "self-normalised": SelfNormalised,
}
OBJECTIVES: dict[str, Any] = {
    "elbo": FreeEnergy(),
    "tempered-elbo": FreeEnergy(0.1),
    "iwae": Renyi(0.0),
    "renyi": Renyi(0.5),
    "eubo": EUBO(),
    "mle": MLE(),
    "map": MAP(),
}
# A bound needs the number of its rows, which no name says: it is checked, and made by hand
CHECKED_OBJECTIVES = OBJECTIVES | {"pac-bayes": PACBayes(64, 0.25)}
KL_WEIGHTS: dict[str, Shares] = {
    "proportional": proportional_kl_weights,
    "geometric": geometric_kl_weights,
}
WARM_UPS: dict[str, WarmUp] = {
    "none": NoWarmUp(),
    "linear": LinearWarmUp(),
    "cyclical": CyclicalWarmUp(),
}


def named(argument: str, name: str, table: Mapping[str, Any]) -> Any:
    """Return the entry of `table`, or raise ValueError with the names that there are."""
    return table[OneOf(*table)(argument, name)]


def kinds(table: Mapping[str, Any]) -> tuple[type, ...]:
    """Return the classes of which the entries of `table` are, each once, in their order."""
    return tuple(dict.fromkeys(type(entry) for entry in table.values()))
