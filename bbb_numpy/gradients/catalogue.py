"""All parts by their short names, as the learners and the command line take them.

A table for each kind of part; every entry can also be made by hand with other numbers. Learners,
files, command line, matrix and tests take a part from here, and `bbb_numpy` exports its class.
A new one comes from its module, which lists it in a table NAMED (CONTRIBUTING.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

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
from ..model.objectives import EUBO, MAP, MLE, FreeEnergy, Renyi
from ..numeric.validation import OneOf
from ..parts.activations import ACTIVATIONS
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood, PoissonLikelihood
from ..parts.full_rank import FullRank
from ..parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood, Likelihood
from ..parts.mixture import ScaleMixturePrior
from ..parts.posteriors import MeanField, PointMass, Posterior
from ..parts.priors import GaussianPrior, LaplacePrior, LayerwiseGaussianPrior, Prior
from ..parts.student_t import StudentTLikelihood, StudentTPrior
from .closed_form import ClosedFormKL
from .flipout import Flipout
from .importance import DoublyReparameterised, SelfNormalised
from .local_reparameterisation import LocalReparameterisation
from .reparameterised import Reparameterised, StickingTheLanding

__all__ = [
    "ACTIVATIONS",
    "CHECKED_LIKELIHOODS",
    "CHECKED_POSTERIORS",
    "CHECKED_PRIORS",
    "ESTIMATORS",
    "KL_WEIGHTS",
    "LIKELIHOODS",
    "OBJECTIVES",
    "POSTERIORS",
    "PRIORS",
    "WARM_UPS",
    "Estimator",
    "kinds",
    "named",
]


class Entry(NamedTuple):
    """A part by its short name."""

    part: Any  # with the numbers that learners and command line start from
    checked: Any  # with those that gradient checks and tests start from


# To be checked: wide posteriors, priors and noise of about unit size. The log densities and their
# slopes are then of the size of the gradient, which a check to 1e-12 needs where exponentials of
# them enter and samples cancel (Renyi, EUBO, antithetic noise).
_POSTERIORS = {
    "mean-field": Entry(MeanField(rho_offset=-4.0), MeanField(0.3, -0.5, 0.5)),
    "full-rank": Entry(FullRank(rho_offset=-4.0, unit=0.01), FullRank(0.3, -0.5, 0.5)),
    "point": Entry(PointMass(), PointMass(0.3)),
}
_PRIORS = {
    "gaussian": Entry(GaussianPrior(0.5), GaussianPrior(0.5)),
    "gaussian-learned": Entry(GaussianPrior(0.5, learn=True), GaussianPrior(0.5, learn=True)),
    "layerwise": Entry(LayerwiseGaussianPrior(), LayerwiseGaussianPrior()),
    "layerwise-learned": Entry(
        LayerwiseGaussianPrior(learn=True), LayerwiseGaussianPrior(learn=True)
    ),
    "laplace": Entry(LaplacePrior(0.35), LaplacePrior(0.25)),
    "student-t": Entry(StudentTPrior(0.35, 4.0), StudentTPrior(0.5, 4.0)),
    "student-t-learned": Entry(
        StudentTPrior(0.35, 4.0, learn=True), StudentTPrior(0.5, 4.0, learn=True)
    ),
    "mixture": Entry(ScaleMixturePrior(), ScaleMixturePrior(0.25, 1.0, 0.25)),
    "mixture-learned": Entry(
        ScaleMixturePrior(learn=True), ScaleMixturePrior(0.25, 1.0, 0.25, learn=True)
    ),
}
_LIKELIHOODS = {
    "gaussian": Entry(GaussianLikelihood(0.1), GaussianLikelihood(0.5)),
    "gaussian-learned": Entry(
        GaussianLikelihood(0.1, learn=True), GaussianLikelihood(0.5, learn=True)
    ),
    "student-t": Entry(StudentTLikelihood(0.1, 4.0), StudentTLikelihood(0.5, 4.0)),
    "student-t-learned": Entry(
        StudentTLikelihood(0.1, 4.0, learn=True), StudentTLikelihood(0.5, 4.0, learn=True)
    ),
    "heteroscedastic": Entry(HeteroscedasticLikelihood(), HeteroscedasticLikelihood()),
    "bernoulli": Entry(BernoulliLikelihood(), BernoulliLikelihood()),
    "categorical": Entry(CategoricalLikelihood(), CategoricalLikelihood()),
    "poisson": Entry(PoissonLikelihood(), PoissonLikelihood()),
}


def _found(kind: type) -> dict[str, Entry]:
    """Return the parts of one kind that modules of `parts` list in a table NAMED of their own."""
    modules = [
        import_module(f"{parts.__name__}.{one.name}") for one in iter_modules(parts.__path__)
    ]
    named = [pair for module in modules for pair in getattr(module, "NAMED", {}).items()]
    return {name: Entry(*pair) for name, pair in named if isinstance(pair[0], kind)}


for _entries, _kind in ((_POSTERIORS, Posterior), (_PRIORS, Prior), (_LIKELIHOODS, Likelihood)):
    _entries |= _found(_kind)
POSTERIORS: dict[str, Any] = {name: entry.part for name, entry in _POSTERIORS.items()}
PRIORS: dict[str, Any] = {name: entry.part for name, entry in _PRIORS.items()}
LIKELIHOODS: dict[str, Any] = {name: entry.part for name, entry in _LIKELIHOODS.items()}
CHECKED_POSTERIORS: dict[str, Any] = {name: one.checked for name, one in _POSTERIORS.items()}
CHECKED_PRIORS: dict[str, Any] = {name: one.checked for name, one in _PRIORS.items()}
CHECKED_LIKELIHOODS: dict[str, Any] = {name: one.checked for name, one in _LIKELIHOODS.items()}
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


Estimator = (
    Reparameterised
    | StickingTheLanding
    | DoublyReparameterised
    | SelfNormalised
    | ClosedFormKL
    | LocalReparameterisation
    | Flipout
)
