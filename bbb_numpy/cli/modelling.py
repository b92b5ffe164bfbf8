"""The learner that the options of a command describe."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from ..learners.inference import STARTS, Sampling, inferences, sampled
from ..parts.priors import GaussianPrior
from ..registry import FAMILIES, OPTIMIZERS
from ..sampling.run import METRICS
from ..training.optimizers import Cosine
from .options import above_zero, at_least_one, at_least_zero, option
from .problem import LIKELIHOODS_OF

__all__ = ["add_model_options", "learner"]

# a reader of text, or what can be chosen; and the default
TRAINING: dict[str, tuple[Any, str]] = {
    "epochs": (
        at_least_one,
        "(1000; for classes 100; fewer where there are many rows)",
    ),
    "batch_size": (at_least_one, "(32; up to 256 where there are many rows)"),
    "samples": (at_least_one, "weight samples per step (1; for classes 4)"),
    "learning_rate": (above_zero, "(0.01; where there are many rows 0.02)"),
}
SAMPLING: dict[str, tuple[Any, str]] = {
    "chains": (at_least_one, "side by side (4)"),
    "draws": (at_least_one, "to keep of each chain (250)"),
    "warm_up": (at_least_zero, "draws before those (400)"),
    "thin": (at_least_one, "steps per kept draw (1)"),
    "metric": (METRICS, "(diagonal)"),
    "target_accept": (above_zero, "< 1 (0.8)"),
    "start": (STARTS, "of the chains (ensemble)"),
    "cores": (at_least_one, "with the same draws (all)"),
    "checkpoint": (str, "folder from which to go on"),
}
PARTS = ("prior", "likelihood", "estimator", "objective", "optimizer")


def learner(args: argparse.Namespace, task: str) -> Any:
    """Return the learner of a task, not yet fitted; ValueError for options that do not agree."""
    from ..learners.classifier import BayesianMLPClassifier
    from ..learners.regressor import BayesianMLPRegressor

    likelihood = args.likelihood or ("poisson" if task == "counts" else None)
    if likelihood and likelihood not in LIKELIHOODS_OF[task]:
        accepted = ", ".join(LIKELIHOODS_OF[task])
        raise ValueError(
            f"--likelihood {likelihood} is not for {task}; accepted are {accepted}"
        )
    classes = task == "classification"
    if args.class_weight and not classes:
        raise ValueError(
            f"--class-weight is for classification, not for {task}; leave it out"
        )
    inference = _inference(args)
    kind: Any = BayesianMLPClassifier if classes else BayesianMLPRegressor
    return kind(
        None if args.hidden is None else tuple(args.hidden),
        activation=args.activation,
        prior=args.prior
        if args.prior_scale is None
        else GaussianPrior(args.prior_scale),
        likelihood=likelihood,
        inference=inference,
        gradient_estimator=args.estimator,
        objective=args.objective,
        optimizer=_optimizer(args),
        epochs=args.epochs,
        samples=args.samples,
        batch_size=args.batch_size,
        random_state=args.seed,
        **({"class_weight": args.class_weight} if classes else {}),
    )


def _optimizer(args: argparse.Namespace) -> Any:
    """Return the learner's `optimizer`, its rate falling to 0; None for the learner's own."""
    if args.optimizer is None and args.learning_rate is None:
        return None
    rate = {} if args.learning_rate is None else {"learning_rate": args.learning_rate}
    return replace(OPTIMIZERS[args.optimizer or "adam"], schedule=Cosine(), **rate)


def _inference(args: argparse.Namespace) -> str | Sampling:
    """Return the learner's `inference`, with the settings of a sampler."""

    def typed(*names: str) -> dict[str, Any]:
        given = {name: getattr(args, name, None) for name in names}
        return {name: value for name, value in given.items() if value is not None}

    samples, settings = args.inference in sampled(), typed(*SAMPLING)
    unused = (
        typed(*TRAINING, "estimator", "objective", "optimizer") if samples else settings
    )
    if unused:
        listed = ", ".join(map(option, unused))
        other = "leave them out" if samples else "name a sampler, as --inference nuts"
        raise ValueError(f"--inference {args.inference} has no {listed}; {other}")
    return Sampling(args.inference, **settings) if samples else str(args.inference)


def add_model_options(parser: argparse.ArgumentParser, checkpoint: bool = True) -> None:
    """Add the options of network, training, sampling and parts."""
    group = parser.add_argument_group("the model")

    def add(name: str, kind: Any, text: str, to: Any = group, **more: Any) -> None:
        how = {"type": kind} if callable(kind) else {"choices": kind}
        to.add_argument(option(name), help=text, **how, **more)

    add("hidden", at_least_one, "hidden widths (20; for classes 50)", nargs="*")
    group.add_argument(
        "--activation", choices=FAMILIES["activation"].named, default="relu"
    )
    for name, (kind, text) in TRAINING.items():
        add(name, kind, text)
    add("class_weight", ["balanced"], "as if all classes had as many rows")
    text = "trained, or sampled: hmc, nuts, mams, mclmc (biased a little), sghmc"
    add("inference", list(inferences()), text, default="mean-field")
    for name, (kind, text) in SAMPLING.items():
        if name != "checkpoint" or checkpoint:
            add(name, kind, f"of hmc and nuts, {text}")
    one = group.add_mutually_exclusive_group()
    add("prior_scale", above_zero, "of a Gaussian prior (0.5; for classes 1.5)", one)
    for name in PARTS:
        add(
            name,
            list(FAMILIES[name].named),
            "(that of the Python class)",
            one if name == "prior" else group,
        )
    group.add_argument("--seed", type=at_least_zero, default=0)
