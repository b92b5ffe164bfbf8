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
from .problem import LIKELIHOODS_OF

__all__ = ["add_model_options", "learner"]

PARTS = {
    "prior": PRIORS,
    "likelihood": LIKELIHOODS,
    "estimator": ESTIMATORS,
    "objective": OBJECTIVES,
}
TRAINING: dict[str, tuple[Any, str]] = {
    "epochs": (at_least_one, "(1000; for classes 100)"),
    "batch_size": (at_least_one, "(32)"),
    "samples": (at_least_one, "weight samples per step (1; for classes 4)"),
    "learning_rate": (above_zero, "(0.01)"),
}
SAMPLING: dict[str, tuple[Any, str]] = {  # a reader of text, or what can be chosen
    "chains": (at_least_one, "side by side (4)"),
    "draws": (at_least_one, "to keep of each chain (500)"),
    "warm_up": (at_least_zero, "draws before those (4000 for hmc and chees, else 500)"),
    "thin": (at_least_one, "steps per kept draw (1)"),
    "metric": (METRICS, "(diagonal)"),
    "target_accept": (above_zero, "< 1 (0.8)"),
    "start": (STARTS, "of the chains (prior)"),
    "cores": (at_least_one, "with the same draws (all)"),
    "checkpoint": (str, "folder from which to go on"),
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
    kind: Any = BayesianMLPRegressor
    weights: dict[str, Any] = {}
    if task == "classification":
        kind, weights = BayesianMLPClassifier, {"class_weight": args.class_weight}
    elif args.class_weight:
        raise ValueError(f"--class-weight is for classification, not for {task}; leave it out")
    inference = _inference(args)
    optimizer = None
    if not isinstance(inference, Sampling):
        rate = 1e-2 if args.learning_rate is None else args.learning_rate
        optimizer = Adam(rate, schedule=Cosine())
    return kind(
        None if args.hidden is None else tuple(args.hidden),
        activation=args.activation,
        prior=args.prior if args.prior_scale is None else GaussianPrior(args.prior_scale),
        likelihood=likelihood,
        inference=inference,
        gradient_estimator=args.estimator,
        objective=args.objective,
        optimizer=optimizer,
        epochs=args.epochs,
        samples=args.samples,
        batch_size=32 if args.batch_size is None else args.batch_size,
        random_state=args.seed,
        **weights,
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
    trained = (*TRAINING, "estimator", "objective")
    unused = [name for name in trained if getattr(args, name) is not None]
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
    for name, (kind, text) in TRAINING.items():
        group.add_argument(_options([name]), type=kind, help=text)
    group.add_argument(
        "--class-weight", choices=["balanced"], help="as if all classes had as many rows"
    )
    group.add_argument(
        "--inference",
        choices=list(INFERENCES),
        default="mean-field",
        help="trained, or sampled: hmc, nuts, mams, mclmc (mclmc is biased a little)",
    )
    for name, (kind, text) in SAMPLING.items():
        if name != "checkpoint" or checkpoint:
            how = {"type": kind} if callable(kind) else {"choices": kind}
            group.add_argument(_options([name]), help=f"of hmc and nuts, {text}", **how)
    group.add_argument(
        "--prior-scale", type=above_zero, help="of a Gaussian prior (0.5; for classes 1.5)"
    )
    for name, table in PARTS.items():
        group.add_argument(f"--{name}", choices=list(table), help="(that of the Python class)")
    group.add_argument("--seed", type=at_least_zero, default=0)
