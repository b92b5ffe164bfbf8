"""Defaults of the learners' arguments, by task."""

from __future__ import annotations

from typing import Any

from ..model.kl_weights import LinearWarmUp, NoWarmUp, proportional_kl_weights
from ..parts.likelihoods import GaussianLikelihood
from ..parts.priors import GaussianPrior
from ..training.optimizers import Adam, Cosine

__all__ = [
    "CLASSIFICATION",
    "DEFAULTS",
    "REGRESSION",
    "SCHEDULED_ARGUMENTS",
    "TRAINING_ARGUMENTS",
]

# Defaults of the arguments, by task; those of `epochs`, `batch_size` and `samples` are in the table
# `SCHEDULES`. They were chosen on splits of four of the tables of benchmarks/tables.py. A small
# initial noise scale, and a KL term whose weight rises slowly, let the network fit before the prior
# prunes units that are not in use yet. The initial sigma is above the report's 0.0067, so that few
# steps are enough for it to grow where data are few.
REGRESSION: dict[str, Any] = {
    "hidden_layer_sizes": (20,),
    "prior": GaussianPrior(0.5),
    "likelihood": GaussianLikelihood(0.1, learn=True),
    "kl_weights": proportional_kl_weights,
    "kl_warm_up": LinearWarmUp(0.5),  # used if training starts from scratch
    "optimizer": Adam(learning_rate=1e-2, schedule=Cosine()),
    "predict_samples": 100,
}
CLASSIFICATION = REGRESSION | {
    "hidden_layer_sizes": (50,),
    "prior": GaussianPrior(1.5),
    "likelihood": None,  # chosen by the number of classes
    "kl_warm_up": NoWarmUp(),
    "predict_samples": 500,
}
DEFAULTS = {"regression": REGRESSION, "classification": CLASSIFICATION}

# arguments whose defaults are in the table `training.schedules.SCHEDULES`
SCHEDULED_ARGUMENTS = ("epochs", "batch_size", "samples")
# arguments of a learner that training uses and sampling does not
TRAINING_ARGUMENTS = (
    "gradient_estimator",
    "objective",
    "kl_weights",
    "kl_warm_up",
    "optimizer",
    "epochs",
    "samples",
    "early_stopping",
    "validation_fraction",
    "warm_start",
)
