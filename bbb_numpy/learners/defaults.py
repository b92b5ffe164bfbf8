"""Defaults of the learners' arguments, by task, and the inference that suits a table's rows.

`STRATEGIES` is the table of what ``inference=None`` stands for, with the reason of each row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from ..model.kl_weights import LinearWarmUp, NoWarmUp, proportional_kl_weights
from ..parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from ..parts.priors import GaussianPrior
from ..parts.relevance import ARDPrior
from ..training.optimizers import Adam, Cosine

__all__ = [
    "CLASSIFICATION",
    "DEFAULTS",
    "REGRESSION",
    "SCHEDULED_ARGUMENTS",
    "STRATEGIES",
    "TRAINED",
    "TRAINING_ARGUMENTS",
    "Strategy",
    "strategy_for",
    "strategy_table",
]

# Defaults of the arguments, by task; those of `epochs`, `batch_size` and `samples` are in the table
# `SCHEDULES`. They were chosen on splits of four of the tables of benchmarks/tables.py. A small
# initial noise scale, and a KL term whose weight rises slowly, let the network fit before the prior
# prunes units that are not in use yet. The initial sigma is above the report's 0.0067, so that few
# steps are enough for it to grow where data are few.
REGRESSION: dict[str, Any] = {
    "hidden_layer_sizes": (20,),
    "activation": "relu",
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

# A learner with one of these arguments trains its posterior
ONLY_TRAINED = (*TRAINING_ARGUMENTS, "batch_size")
# Largest number of rows times weights, for one gradient of one chain, for which chains are the
# default: those of four chains then take about twenty seconds on one core
MAX_PRODUCTS = 1_000_000
# Number of rows below which an ensemble is no default: a member's step has as many
MIN_MEMBER_ROWS = 256
TABLES_PAGE = "benchmarks/README.md#learners-as-they-come"


@dataclass(frozen=True)
class Strategy:
    """A row of `STRATEGIES`: what a learner with ``inference=None`` does for a table.

    Parameters
    ----------
    name : str
        Name of the inference: 'chains', 'ensemble' or 'mean-field'.
    parts : mapping
        Parts and numbers that replace those of the task where the user has given none.
    reason : str
        Reason for the row.
    measured : str
        Page with the measurements.
    """

    name: str
    parts: Mapping[str, Any]
    reason: str
    measured: str = TABLES_PAGE


# Scale of the network output for the noise, beside 1 for the mean
NOISE_HEAD_SCALE = 0.1
CHAINS: dict[str, Any] = {
    "hidden_layer_sizes": (20,),
    "activation": "tanh",
    "prior": ARDPrior(),
}
MEMBERS = {"hidden_layer_sizes": (32, 32), "activation": "silu"}
NOISE: dict[str, Any] = {"likelihood": HeteroscedasticLikelihood(scale=0.5, learn=True)}
TRAINED = Strategy("mean-field", {}, "an argument was given that only training has")
# Strategy of tables with few rows and many weights
WIDE = Strategy(
    "mean-field", {}, "members of few rows learn them by heart in their many steps"
)
# Strategies by task: that of tables whose gradients are cheap, and that of others
STRATEGIES = {
    "regression": (
        Strategy(
            "chains",
            CHAINS | NOISE,
            "draws from the exact posterior",
        ),
        Strategy("ensemble", MEMBERS | NOISE, "chains would take minutes"),
    ),
    "classification": (
        Strategy("chains", CHAINS, "draws from the exact posterior"),
        Strategy("ensemble", MEMBERS, "chains would take minutes"),
    ),
}


def strategy_for(
    task: str, params: Mapping[str, Any], n_rows: int, n_inputs: int
) -> Strategy:
    """Return the strategy of a learner whose argument `inference` is None.

    It depends on nothing but the arguments and the shape of the table, so that the same program
    has the same result on every machine.

    Parameters
    ----------
    task : {'regression', 'classification'}
        Task of the learner.
    params : mapping
        Arguments of the constructor by name, as the user has given them.
    n_rows, n_inputs : int
        Numbers of training rows and of columns of X.
    """
    if any(params[name] for name in ONLY_TRAINED):
        return TRAINED
    chains, ensemble = STRATEGIES[task]
    products = n_products(params["hidden_layer_sizes"], n_rows, n_inputs)
    if products <= MAX_PRODUCTS:
        return chains
    return ensemble if n_rows >= MIN_MEMBER_ROWS else WIDE


def n_products(hidden_layer_sizes: Any, n_rows: int, n_inputs: int) -> int:
    """Return rows times weights, by which the time of a gradient is judged.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or None
        The learner's argument, which need not be valid: then it counts as the default.
    n_rows, n_inputs : int
        Numbers of training rows and of columns of X.
    """
    sizes = np.atleast_1d(np.asarray(hidden_layer_sizes, dtype=object))
    if not all(isinstance(size, Integral) for size in sizes.flat):
        sizes = np.array(CHAINS["hidden_layer_sizes"])
    widths = (n_inputs, *map(int, sizes.flat), 1)
    return n_rows * sum(d_in * d_out for d_in, d_out in pairwise(widths))


DEFAULTS_CAPTION = """\
*Defaults*. What a learner with ``inference=None`` does, by rows x weights: the product of the
number of rows and that of the weights of a network with `hidden_layer_sizes`, by default (20,).
Chains are `Sampling` with HMC: four, started at the members of an ensemble, with a number of
gradients that falls with rows x weights, in one process. An ensemble is `Ensemble`: five
mean-field posteriors; below 256 rows it is 'mean-field'. Parts that are given are kept; an
argument that only training has means 'mean-field'. Nothing depends on the machine, so that the
same seed gives the same model."""


def strategy_table(markdown: bool) -> str:
    """Return `STRATEGIES` as a table for users, a line for each row.

    Parameters
    ----------
    markdown : bool
        True for a Markdown table, False for a simple table of reStructuredText with its caption.
    """
    header = ["Task", "Rows x weights", "Inference", "Units", "Activation", "Why"]
    limits = (f"<= {MAX_PRODUCTS:,}", "any")
    lines = [
        [
            task,
            limit,
            strategy.name,
            str(strategy.parts["hidden_layer_sizes"]),
            strategy.parts["activation"],
            strategy.reason,
        ]
        for task, strategies in STRATEGIES.items()
        for limit, strategy in zip(limits, strategies, strict=True)
    ]
    if markdown:
        body = [header, ["---"] * len(header), *lines]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in body)
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    border = "  ".join("=" * width for width in widths)
    text = [
        "  ".join(map(str.ljust, cells, widths)).rstrip() for cells in [header, *lines]
    ]
    return "\n".join([DEFAULTS_CAPTION, "", border, text[0], border, *text[1:], border])
