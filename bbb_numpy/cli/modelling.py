"""The learner that the options of a command describe."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from ..gradients.catalogue import ACTIVATIONS, ESTIMATORS, LIKELIHOODS, OBJECTIVES, PRIORS
from ..learners.inference import INFERENCES, SAMPLED, STARTS, Sampling
from ..parts.priors import GaussianPrior
from ..sampling.run import METRICS
from ..training.optimizers import Adam, Cosine
from .options import above_zero, at_least_one, at_least_zero

__all__ = ["LIKELIHOODS_OF", "add_model_options", "learner"]

TRAINING = ("epochs", "batch_size", "samples", "learning_rate")
SAMPLING = (
    "chains",
    "draws",
    "warm_up",
    "thin",
    "metric",
    "target_accept",
    "start",
    "cores",
    "checkpoint",
)
PARTS = ("estimator", "objective")
LIKELIHOODS_OF = {
    task: [name for name, one in LIKELIHOODS.items() if one.target_kind == kind]
    for task, kind in (("regression", "real"), ("classification", "class"), ("counts", "count"))
}


def learner(args: argparse.Namespace, task: str) -> Any:
    """Return the learner of a task, not yet fitted.

    Raises
    ------
    ImportError
        Without scikit-learn; says what to install.
    ValueError
        For options that do not go together.
    """
    from ..learners.classifier import BayesianMLPClassifier
    from ..learners.regressor import BayesianMLPRegressor

    if args.prior and args.prior_scale is not None:
        raise ValueError("--prior and --prior-scale exclude each other; leave one out")
    likelihood = args.likelihood
    if likelihood is not None and likelihood not in LIKELIHOODS_OF[task]:
        raise ValueError(
            f"--likelihood {likelihood} is not for {task}; accepted are "
            f"{', '.join(LIKELIHOODS_OF[task])}"
        )
    if task == "counts" and likelihood is None:
        likelihood = "poisson"
    inference = _inference(args)
    train = {name: getattr(args, name) for name in ("epochs", "samples")}
    train["batch_size"] = 32 if args.batch_size is None else args.batch_size
    optimizer = None
    if not isinstance(inference, Sampling):
        rate = 1e-2 if args.learning_rate is None else args.learning_rate
        optimizer = Adam(rate, schedule=Cosine())
    kind: Any = BayesianMLPClassifier if task == "classification" else BayesianMLPRegressor
    return kind(
        None if args.hidden is None else tuple(args.hidden),
        activation=args.activation,
        prior=args.prior if args.prior_scale is None else GaussianPrior(args.prior_scale),
        likelihood=likelihood,
        inference=inference,
        gradient_estimator=args.estimator,
        objective=args.objective,
        optimizer=optimizer,
        **train,
        random_state=args.seed,
    )


def _inference(args: argparse.Namespace) -> str | Sampling:
    """Return the learner's `inference`, with the settings of a sampler."""
    settings = {
        name: getattr(args, name) for name in SAMPLING if getattr(args, name, None) is not None
    }
    if args.inference not in SAMPLED:
        if settings:
            raise ValueError(
                f"{_options(settings)} belong to a sampler: add --inference nuts or hmc, or leave "
                "them out"
            )
        return str(args.inference)
    unused = [name for name in (*TRAINING, *PARTS) if getattr(args, name) is not None]
    if unused:
        raise ValueError(
            f"--inference {args.inference} draws from the posterior and trains nothing; leave "
            f"{_options(unused)} out"
        )
    return Sampling(args.inference, **settings)


def _options(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def add_model_options(parser: argparse.ArgumentParser, checkpoint: bool = True) -> None:
    """Add the options of network, training, sampling and parts."""
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--hidden", type=at_least_one, nargs="*", help="hidden widths (20; for classes 50)"
    )
    group.add_argument("--activation", choices=ACTIVATIONS, default="relu")
    group.add_argument("--epochs", type=at_least_one, help="(1000; for classes 100)")
    group.add_argument("--batch-size", type=at_least_one, help="(32)")
    group.add_argument(
        "--samples", type=at_least_one, help="weight samples per step (1; for classes 4)"
    )
    group.add_argument("--learning-rate", type=above_zero, help="(0.01)")
    group.add_argument(
        "--inference",
        choices=list(INFERENCES),
        default="mean-field",
        help="trained, or sampled: hmc, nuts, mams, mclmc (mclmc is biased a little)",
    )
    group.add_argument("--chains", type=at_least_one, help="of hmc and nuts, side by side (4)")
    group.add_argument(
        "--draws", type=at_least_one, help="of hmc and nuts, to keep of each chain (500)"
    )
    group.add_argument(
        "--warm-up",
        type=at_least_zero,
        help="of hmc and nuts, draws before those (4000 for hmc and chees, else 500)",
    )
    group.add_argument("--thin", type=at_least_one, help="of hmc and nuts, steps per kept draw (1)")
    group.add_argument("--metric", choices=METRICS, help="of hmc and nuts (diagonal)")
    group.add_argument("--target-accept", type=above_zero, help="of hmc and nuts, < 1 (0.8)")
    group.add_argument("--start", choices=STARTS, help="of the chains of hmc and nuts (prior)")
    group.add_argument(
        "--cores", type=at_least_one, help="for hmc and nuts, with the same draws (all)"
    )
    if checkpoint:
        group.add_argument("--checkpoint", help="of hmc and nuts, folder from which to go on")
    group.add_argument(
        "--prior-scale", type=above_zero, help="of a Gaussian prior (0.5; for classes 1.5)"
    )
    for name, table in (
        ("prior", PRIORS),
        ("likelihood", LIKELIHOODS),
        ("estimator", ESTIMATORS),
        ("objective", OBJECTIVES),
    ):
        group.add_argument(f"--{name}", choices=list(table), help="(that of the Python class)")
    group.add_argument("--seed", type=at_least_zero, default=0)
