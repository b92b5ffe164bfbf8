"""Options of the model on the command line, and the learner that they describe."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from ..learners.defaults import strategy_for
from ..learners.inference import STARTS, Sampling, inferences, sampler_names
from ..learners.target_scale import TARGET_SCALES
from ..parts.priors import GaussianPrior
from ..registry import FAMILIES, OPTIMIZERS, POSTERIORS
from ..sampling.run import METRICS
from ..training.optimizers import Cosine
from .options import (
    Options,
    above_zero,
    add_options,
    at_least_one,
    at_least_zero,
    fraction,
    option_flag,
)
from .problem import LIKELIHOODS_OF

__all__ = ["add_model_options", "build_learner", "describe_method", "method_name"]

# Options without `type` get the names of the registry as their choices; see `_with_names`
NETWORK_OPTIONS: Options = {
    "hidden": {
        "type": at_least_one,
        "nargs": "*",
        "metavar": "UNITS",
        "help": "Units of each hidden layer, such as 50 50; without a number the model is linear. "
        "By default one layer of 20, and of 50 for classes.",
    },
    "activation": {
        "help": "Activation function of the hidden layers. By default what suits the method. A "
        "smooth one, such as tanh, predicts functions without kinks.",
    },
}
PRIOR_OPTIONS: Options = {
    "prior": {
        "help": "Prior distribution of the weights. By default a Gaussian, see --prior-scale. "
        "Those that end in -learned learn their scale from the rows.",
    },
    "prior_scale": {
        "type": above_zero,
        "metavar": "SD",
        "help": "Standard deviation of a Gaussian prior. By default 0.5, and 1.5 for classes. "
        "Widen it when the function is steep, narrow it when rows are few.",
    },
}
MODEL_OPTIONS: Options = {
    "likelihood": {
        "help": "Distribution of the target around the network's output. By default "
        "gaussian-learned for numbers, poisson for counts, bernoulli for two classes and "
        "categorical for more. Take negative-binomial when counts vary more than their mean, "
        "zero-inflated when many are 0, heteroscedastic when the noise depends on the inputs, "
        "student-t-learned when there are outliers.",
    },
    "target_scale": {
        "choices": list(TARGET_SCALES),
        "help": "Scale on which a number is modelled: log for positive ones that vary by factors, "
        "such as prices; all that is printed stays in units of the target. auto takes log where "
        "the rows speak for it. By default identity.",
    },
    "class_weight": {
        "choices": ["balanced"],
        "help": "Weight the rows as if all classes had as many of them, where one is rare. By "
        "default every row has weight 1.",
    },
    "inference": {
        "help": "How the posterior of the weights is found. By default chains where rows and "
        "weights are few, else an ensemble, and mean-field with any option of training; fit prints "
        "it. mean-field, ivon, low-rank and "
        "full-rank train a distribution, map and mle a single vector of weights, and laplace puts "
        "a Gaussian around that of map. chees, hmc, mams, mclmc and nuts draw samples, for up to a "
        "few thousand rows; sghmc and sgld do so by minibatches, for more.",
    },
    "seed": {
        "type": at_least_zero,
        "default": 0,
        "metavar": "N",
        "help": "Seed of the random numbers: the same command gives the same result on the same "
        "machine.",
    },
}
TRAINING_OPTIONS: Options = {
    "epochs": {
        "type": at_least_one,
        "metavar": "N",
        "help": "Passes over the training rows. By default 1000, and 100 for classes; with ivon "
        "200 and 50. On more than 512 rows, numbers and counts take 200 to 1000. Take "
        "more when the loss still fell at the end.",
    },
    "batch_size": {
        "type": at_least_one,
        "metavar": "ROWS",
        "help": "Rows of a training step. By default 32, and 32 to 256 on more than 512 rows. "
        "Larger steps are less noisy, and there are fewer in an epoch.",
    },
    "samples": {
        "type": at_least_one,
        "metavar": "N",
        "help": "Weight samples that a training step averages. By default 1, and 4 for classes; "
        "on more than 512 rows 1 to 4. More make the gradient less noisy, and cost time in "
        "proportion.",
    },
    "learning_rate": {
        "type": above_zero,
        "metavar": "RATE",
        "help": "Learning rate of the first step, which falls to 0 along a half cosine. By default "
        "0.01 with adam, and 0.02 where more than 512 rows make steps larger. Lower it when the "
        "loss jumps or overflows.",
    },
    "estimator": {
        "help": "Estimator of the gradient. By default reparameterised; self-normalised with "
        "--objective eubo, local-reparameterisation with --inference ivon and a Gaussian prior.",
    },
    "objective": {
        "help": "What training minimises. By default the negative evidence lower bound (elbo); "
        "map with --inference map or laplace, mle with --inference mle.",
    },
    "optimizer": {
        "help": "Rule that updates the parameters. By default adam, and ivon with --inference "
        "ivon.",
    },
}
SAMPLING_OPTIONS: Options = {
    "chains": {
        "type": at_least_one,
        "metavar": "N",
        "help": "Chains that run side by side. By default 4. More find more of the posterior's "
        "modes; of one alone R-hat cannot say whether it has converged.",
    },
    "draws": {
        "type": at_least_one,
        "metavar": "N",
        "help": "Draws that are kept of each chain. By default 250. More make predictions less "
        "noisy, and cost time in proportion.",
    },
    "warm_up": {
        "type": at_least_zero,
        "metavar": "N",
        "help": "Draws of each chain before these, which adapt step size and metric and are not "
        "kept. By default 400.",
    },
    "thin": {
        "type": at_least_one,
        "metavar": "STEPS",
        "help": "Steps of a chain for each draw that is kept. By default 1. More make draws less "
        "correlated, and cost time in proportion.",
    },
    "metric": {
        "choices": METRICS,
        "help": "What the warm-up learns of the posterior: the variance of each weight (diagonal, "
        "the default), or all covariances (dense, for networks of few weights).",
    },
    "target_accept": {
        "type": fraction,
        "metavar": "RATE",
        "help": "Mean acceptance rate for which the warm-up chooses the step size. By default 0.8 "
        "for hmc and nuts, 0.9 for mams and 0.651 for chees; the other samplers have none. Raise "
        "it when draws diverge.",
    },
    "start": {
        "choices": STARTS,
        "help": "Where the chains begin: at the members of a deep ensemble, which is trained first "
        "(ensemble, the default), or at draws from the prior.",
    },
    "cores": {
        "type": at_least_one,
        "metavar": "N",
        "help": "Processor cores that the chains may use, by default all; the draws are the same.",
    },
    "checkpoint": {
        "metavar": "FOLDER",
        "help": "Folder to which the run is written every minute; the same command goes on from "
        "there. By default nothing is written before the end.",
    },
}


def build_learner(args: argparse.Namespace, task: str) -> Any:
    """Return the learner that the options describe, not yet fitted.

    Parameters
    ----------
    args : argparse.Namespace
        The parsed options of `add_model_options`.
    task : {'regression', 'classification', 'counts'}
        Task, which determines the class of the learner.

    Raises
    ------
    ValueError
        If options do not fit together or do not suit the task.
    """
    from ..learners.classifier import BayesianMLPClassifier
    from ..learners.regressor import BayesianMLPRegressor

    likelihood = args.likelihood
    if likelihood is None and task == "counts":
        likelihood = "poisson"
    if likelihood and likelihood not in LIKELIHOODS_OF[task]:
        accepted = ", ".join(LIKELIHOODS_OF[task])
        raise ValueError(
            f"--likelihood {likelihood} is not for {task}; accepted are {accepted}"
        )
    learner_type: Any = BayesianMLPRegressor
    settings: dict[str, Any] = {}
    if task == "classification":
        learner_type = BayesianMLPClassifier
        settings["class_weight"] = args.class_weight
    elif args.class_weight:
        raise ValueError(
            f"--class-weight is for classification, not for {task}; leave it out"
        )
    if args.target_scale is not None:
        if task != "regression":
            raise ValueError(
                f"--target-scale is for numbers, not for {task}; leave it out"
            )
        settings["target"] = args.target_scale
    prior = args.prior
    if args.prior_scale is not None:
        prior = GaussianPrior(args.prior_scale)
    inference = _inference(args)
    if inference is not None:
        settings["inference"] = inference
    if args.activation is not None:
        settings["activation"] = args.activation
    return learner_type(
        None if args.hidden is None else tuple(args.hidden),
        prior=prior,
        likelihood=likelihood,
        gradient_estimator=args.estimator,
        objective=args.objective,
        optimizer=_optimizer(args),
        epochs=args.epochs,
        samples=args.samples,
        batch_size=args.batch_size,
        random_state=args.seed,
        **settings,
    )


def _optimizer(args: argparse.Namespace) -> Any:
    """Return an optimizer whose learning rate falls to 0; None means the learner's default."""
    if args.optimizer is None and args.learning_rate is None:
        return None
    if args.inference == "ivon" and args.optimizer is None:
        raise ValueError(
            "--inference ivon is trained by the optimizer ivon, whose learning rate is 0.2 by "
            "default; to set --learning-rate, add --optimizer ivon"
        )
    optimizer = replace(OPTIMIZERS[args.optimizer or "adam"], schedule=Cosine())
    if args.learning_rate is None:
        return optimizer
    return replace(optimizer, learning_rate=args.learning_rate)


def _inference(args: argparse.Namespace) -> str | Sampling | None:
    """Return the learner's `inference`: a name, a sampler with its settings, or None by default."""

    def options_set(options: Options) -> dict[str, Any]:
        """Return the values of the options that the user has set, by name."""
        values = {name: getattr(args, name, None) for name in options}
        return {name: value for name, value in values.items() if value is not None}

    settings = options_set(SAMPLING_OPTIONS)
    unused = settings
    remedy = "name a sampler, such as --inference nuts"
    is_sampled = args.inference in sampler_names()
    if is_sampled:
        unused = options_set(TRAINING_OPTIONS)
        remedy = "leave out what is for training"
    if unused:
        flags = ", ".join(map(option_flag, unused))
        method = "the default method"
        if args.inference:
            method = f"--inference {args.inference}"
        raise ValueError(f"{method} does not use {flags}; {remedy}")
    return Sampling(args.inference, **settings) if is_sampled else args.inference


def method_name(args: argparse.Namespace, model: Any) -> str:
    """Return the name of the method with which a learner was fitted."""
    if args.inference:
        return str(args.inference)
    # the method that the learner chose, if it did not have one by name
    method = getattr(model, "inference_", None) or model.inference
    method = getattr(method, "sampler", method)
    if isinstance(method, str):
        return method
    for name, posterior in POSTERIORS.items():
        if type(posterior) is type(method):
            return name
    return type(method).__name__.lower()


def describe_method(args: argparse.Namespace, model: Any, n_rows: int) -> str:
    """Return the method with which a learner was fitted, and the reason for it.

    Parameters
    ----------
    args : argparse.Namespace
        Arguments of the command, of which `inference` counts.
    model : BayesianMLPRegressor or BayesianMLPClassifier
        The fitted learner.
    n_rows : int
        Number of training rows.
    """
    name = method_name(args, model)
    if args.inference:
        return f"{name}, as --inference says"
    shape = (n_rows, model.n_features_in_)
    task = "classification" if hasattr(model, "classes_") else "regression"
    strategy = strategy_for(task, model.get_params(deep=False), *shape)
    if strategy.name != "mean-field":
        name = f"{strategy.name} ({name})"
    return f"{name}, by default: {strategy.reason}"


def add_model_options(
    parser: argparse.ArgumentParser, *, has_checkpoint: bool = True
) -> None:
    """Add the options of the model, of training and of sampling, a group each.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of a subcommand that fits a model.
    has_checkpoint : bool
        Whether a run of a sampler can be stored: not where several models are fitted.
    """
    model = parser.add_argument_group("the model")
    add_options(model, _with_names(NETWORK_OPTIONS))
    add_options(model.add_mutually_exclusive_group(), _with_names(PRIOR_OPTIONS))
    add_options(model, _with_names(MODEL_OPTIONS))
    training = parser.add_argument_group(
        "training",
        "Not for samplers. What is said of more than 512 rows holds unless --epochs is given; "
        "docs/speed.md has the whole table.",
    )
    add_options(training, _with_names(TRAINING_OPTIONS))
    sampling = parser.add_argument_group(
        "sampling", f"For --inference {', '.join(sampler_names())} only."
    )
    sampling_options = dict(SAMPLING_OPTIONS)
    if not has_checkpoint:
        del sampling_options["checkpoint"]
    add_options(sampling, sampling_options)


def _with_names(options: Options) -> Options:
    """Return `options`, those of a family such as `prior` with its registered names as choices."""
    names: dict[str, Any] = {name: family.named for name, family in FAMILIES.items()}
    names["inference"] = inferences()
    return {
        name: {**settings, "choices": list(names[name])} if name in names else settings
        for name, settings in options.items()
    }
