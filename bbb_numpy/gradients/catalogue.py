"""All parts by their short names, as the learners and the command line take them.

A table for each kind of part; every entry can also be made by hand with other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

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
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood, PoissonLikelihood
from ..parts.full_rank import FullRank
from ..parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from ..parts.mixture import ScaleMixturePrior
from ..parts.posteriors import MeanField, PointMass
from ..parts.priors import GaussianPrior, LaplacePrior, LayerwiseGaussianPrior
from .closed_form import ClosedFormKL
from .flipout import Flipout
from .importance import DoublyReparameterised, SelfNormalised
from .local_reparameterisation import LocalReparameterisation
from .reparameterised import Reparameterised, StickingTheLanding

__all__ = [
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


POSTERIORS: dict[str, Any] = {
    "mean-field": MeanField(rho_offset=-4.0),
    "full-rank": FullRank(rho_offset=-4.0, unit=0.01),
    "point": PointMass(),
}
PRIORS: dict[str, Any] = {
    "gaussian": GaussianPrior(0.5),
    "gaussian-learned": GaussianPrior(0.5, learn=True),
    "layerwise": LayerwiseGaussianPrior(),
    "layerwise-learned": LayerwiseGaussianPrior(learn=True),
    "laplace": LaplacePrior(0.35),
    "mixture": ScaleMixturePrior(0.25, 1.0, 0.1),
    "mixture-learned": ScaleMixturePrior(0.25, 1.0, 0.1, learn=True),
}
LIKELIHOODS: dict[str, Any] = {
    "gaussian": GaussianLikelihood(0.1),
    "gaussian-learned": GaussianLikelihood(0.1, learn=True),
    "heteroscedastic": HeteroscedasticLikelihood(),
    "bernoulli": BernoulliLikelihood(),
    "categorical": CategoricalLikelihood(),
    "poisson": PoissonLikelihood(),
}
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
    if name not in table:
        raise ValueError(f"{argument} must be one of {', '.join(table)}; got {name!r}")
    return table[name]


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
