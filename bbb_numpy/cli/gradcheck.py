"""``bbb-numpy gradcheck`` and ``prove``: check or prove gradients.

The gradients are those of one network term by term, of every combination of parts, of plain.py, or
of a function in the user's own file.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from exactgrad import command, prove
from exactgrad.gradcheck import TOLERANCES, check_gradient, format_table

from .. import combinations, plain
from ..gradients.reparameterised import Reparameterised
from ..model.joint import Model
from ..model.objectives import TERMS, FreeEnergy
from ..numeric.elementary import softplus
from ..parts.activations import ACTIVATIONS
from ..parts.likelihoods import GaussianLikelihood
from ..parts.network import MLP
from ..parts.posteriors import MeanField
from ..parts.priors import GaussianPrior
from .options import (
    Commands,
    Options,
    above_zero,
    add_command,
    add_options,
    at_least_one,
    at_least_zero,
    option_flag,
)

__all__ = ["add_parsers", "gradcheck"]

Array = NDArray[Any]
# default number of coordinates that are checked in each block of theta
MAX_COORDINATES = 100
SUBJECT_OPTIONS: Options = {
    "all": {
        "action": "store_true",
        "help": "Check every combination of prior, likelihood, posterior, estimator and objective, "
        "on small networks of their own. By default one network is checked, term by term.",
    },
    "plain": {
        "action": "store_true",
        "help": "Check bbb_numpy/plain.py (ReLU and fixed noise).",
    },
}
RANDOM_NETWORK_OPTIONS: Options = {
    "activation": {
        "choices": ACTIVATIONS,
        "default": "relu",
        "help": "Activation function of the hidden layers.",
    },
    "seed": {
        "type": at_least_zero,
        "default": 0,
        "metavar": "N",
        "help": "Seed of the random weights, noise and data.",
    },
}
METHOD_OPTIONS: Options = {
    "exact": {
        "action": "store_true",
        "help": "Prove in place of checking: in exact arithmetic, all coordinates, without "
        "rounding or a step.",
    },
    "method": {
        "choices": ["both", *sorted(TOLERANCES)],
        "help": "What a gradient is compared with: central differences, which skip coordinates at "
        "kinks, or the complex step, which is exact up to rounding. By default both, and complex "
        "with --all.",
    },
    "max_coordinates": {
        "type": at_least_one,
        "default": MAX_COORDINATES,
        "metavar": "N",
        "help": "Largest number of coordinates of each block of theta that are checked, drawn at "
        "random. With --all it limits central differences alone.",
    },
    # former name of --max-coordinates
    "most": {"type": at_least_one, "help": argparse.SUPPRESS},
}
ARCHITECTURE_OPTIONS: Options = {
    "layers": {
        "type": at_least_one,
        "nargs": "+",
        "default": [3, 7, 5, 2],
        "metavar": "UNITS",
        "help": "Widths of the layers: inputs, hidden layers, outputs.",
    },
    "samples": {
        "type": at_least_one,
        "default": 4,
        "metavar": "S",
        "help": "Weight samples.",
    },
    "batch": {
        "type": at_least_one,
        "default": 6,
        "metavar": "B",
        "help": "Rows of the minibatch.",
    },
    "prior_scale": {
        "type": above_zero,
        "default": 1.0,
        "metavar": "SD",
        "help": "Standard deviation of the Gaussian prior.",
    },
    "noise_scale": {
        "type": above_zero,
        "default": 0.5,
        "metavar": "SD",
        "help": "Standard deviation of the targets around the network's output.",
    },
    "fixed_noise": {
        "action": "store_true",
        "help": "Do not learn the standard deviation of the noise, and check no gradient of it.",
    },
    "rho": {
        "type": float,
        "default": -1.0,
        "metavar": "RHO",
        "help": "Centre of rho, of which softplus(rho) is the standard deviation of a weight; the "
        "rho of every weight is drawn within 1 of it.",
    },
    "kl_weight": {
        "type": above_zero,
        "default": 0.25,
        "metavar": "PI",
        "help": "Weight of the KL term in this minibatch, pi_i in the equations.",
    },
}
# Share of coordinates skipped at kinks above which a check by central differences fails
MAX_SKIPPED_SHARE = 0.02
MAX_FAILURES_PRINTED = 10
REFERENCES = {"complex": "the complex step", "central": "central differences"}


class GradientProblem(NamedTuple):
    """Functions that return a value and its gradient, and the arguments at which to check them."""

    name: str
    n_weights: int
    # functions of theta and `arguments` that return (value, gradient), by title
    functions: Mapping[str, Callable[..., tuple[Any, ...]]]
    theta: Array
    arguments: tuple[Any, ...]  # arguments of the functions that follow theta
    blocks: Mapping[str, slice]  # slices of theta by name of the block
    coordinate: Callable[[int], str]  # name of a coordinate of theta, by index
    # returns for theta which units are active; a change means that a kink was crossed
    gates: Callable[[Array], Array]


def gradcheck(args: argparse.Namespace) -> int:
    """Check every gradient of one architecture, or (--all) of every combination of parts.

    With --exact they are proved.
    """
    if args.most is not None:
        print("bbb-numpy: warning: --most is now --max-coordinates", file=sys.stderr)
        args.max_coordinates = args.most
    if args.exact and (args.method or args.max_coordinates != MAX_COORDINATES):
        raise ValueError(
            "--exact proves all coordinates, by one method; leave out --method and "
            "--max-coordinates"
        )
    if args.plain and args.activation != "relu":
        raise ValueError(
            "--plain checks plain.py, one ReLU network; leave out --activation"
        )
    if args.all:
        changed = [
            option_flag(name)
            for name, settings in ARCHITECTURE_OPTIONS.items()
            if getattr(args, name) != settings.get("default", False)
        ]
        if changed:
            raise ValueError(
                f"--all checks networks of its own; leave out {', '.join(changed)}"
            )
        return _check_combinations(args)
    problem = _plain_problem(args) if args.plain else _network_problem(args)
    print(
        f"layers {'-'.join(map(str, args.layers))}, {args.activation}, "
        f"{problem.n_weights} weights, {args.samples} samples, {args.batch} rows, "
        f"KL weight {args.kl_weight:g}\n"
    )
    passed = _prove(problem) if args.exact else _check(args, problem)
    if passed:
        verdict = "is proved" if args.exact else "passes"
        print(f"every gradient of {problem.name} {verdict}")
    flag = " --exact" if args.exact else ""
    print(
        "not looked at: other posteriors, priors, likelihoods, estimators, objectives and "
        f"activations; bbb-numpy gradcheck{flag} --all does, for one activation"
    )
    return 0 if passed else 1


def prove_file(args: argparse.Namespace) -> int:
    """Prove or refute a gradient that you wrote, of a function in a file: as `exactgrad` does."""
    return command.run(args)


# --- every combination of parts


def _check_combinations(args: argparse.Namespace) -> int:
    """Check or prove all valid combinations of parts, print the result; return the exit status."""
    estimators: dict[Any, Any] = {}
    refusals = Counter[str]()
    for combination in combinations.combinations():
        try:
            estimators[combination] = combinations.build_estimator(
                combination, activation=args.activation
            )
        except ValueError as error:
            refusals[str(error)] += 1
    run = _prove_estimators if args.exact else _check_estimators
    verdict, passed = run(args, estimators)
    print(f"\n{refusals.total()} combinations are refused when they are built:")
    for reason, count in refusals.most_common():
        print(f"{count:>6}  {reason}")
    if passed:
        verdict += (
            f", of networks with {args.activation}; not looked at: other activations "
            "(--activation)"
        )
    print(verdict)
    return 0 if passed else 1


def _with_progress(estimators: Mapping[Any, Any]) -> Any:
    """Return an iterator of (combination, estimator) pairs that shows a progress bar."""
    interval_s = 0.1 if sys.stderr.isatty() else 30.0
    items = estimators.items()
    return tqdm(items, unit="combination", leave=False, mininterval=interval_s)


def _check_estimators(
    args: argparse.Namespace, estimators: Mapping[Any, Any]
) -> tuple[str, bool]:
    """Check gradients numerically; return the verdict as text, and whether all pass."""
    methods = list(TOLERANCES) if args.method == "both" else [args.method or "complex"]
    failures = []
    for method in methods:
        errors: dict[Any, float] = {}
        skipped = []
        max_coordinates = args.max_coordinates if method == "central" else None
        for combination, estimator in _with_progress(estimators):
            case = combinations.draw_case(estimator, np.random.default_rng(args.seed))
            report = combinations.check_case(case, method, max_coordinates)
            errors[combination] = report.error
            skipped.append(report.skipped)
            if not report.passed:
                failures.append(f"\nFAILED: {combination}\n{report}")
        print(f"largest relative error of each gradient against {REFERENCES[method]}\n")
        print(combinations.format_matrix(errors))
        worst = max(errors, key=lambda combination: errors[combination])
        print(
            f"\n{len(errors)} valid combinations, largest {method} error {errors[worst]:.1e} "
            f"(tolerance {TOLERANCES[method]:g}) in {worst}; {np.mean(skipped):.1%} of the "
            "coordinates skipped at kinks"
        )
    if failures:
        count = f"\nFAILED: {len(failures)} checks"
        return "\n".join([*failures[:MAX_FAILURES_PRINTED], count]), False
    return "\nevery gradient passes", True


def _prove_estimators(
    args: argparse.Namespace, estimators: Mapping[Any, Any]
) -> tuple[str, bool]:
    """Prove gradients up to the first that fails; return the verdict and whether all are proved."""
    n_tried = Counter[Any]()
    n_proved = Counter[Any]()
    for combination, estimator in _with_progress(estimators):
        rng = np.random.default_rng(args.seed)
        case = combinations.draw_case(estimator, rng, samples=2)
        proof = combinations.prove_case(case, args.seed)
        row = (combination.posterior, combination.estimator, combination.objective)
        n_tried[row] += 1
        n_proved[row] += proof.proved
        if not proof.proved:
            print(
                f"{combination}\n{proof}\nthe first that is not proved ends this run\n"
            )
            break
    print(
        "proofs in finite fields and with sixty digits, each on one path of comparisons; one line "
        "for all priors and likelihoods\n\n"
        f"{'posterior':<11}{'estimator':<26}{'objective':<14}{'proved':>7}{'of':>5}"
    )
    print("-" * 63)
    for row, count in n_tried.items():
        posterior, estimator, objective = row
        print(
            f"{posterior:<11}{estimator:<26}{objective:<14}{n_proved[row]:>7}{count:>5}"
        )
    total = n_proved.total()
    return f"\n{total} of {len(estimators)} proved", total == len(estimators)


# --- one architecture


def _network_problem(args: argparse.Namespace) -> GradientProblem:
    """Return the problem of checking each objective term's gradient, for the network of `args`."""
    model = Model(
        MLP(tuple(args.layers), args.activation),
        GaussianPrior(args.prior_scale),
        GaussianLikelihood(args.noise_scale, learn=not args.fixed_noise),
    )
    estimator = Reparameterised(model, MeanField(0.7, args.rho, 1.0))
    rng = np.random.default_rng(args.seed)
    theta = estimator.init(rng)
    noise = estimator.draw(rng, args.samples)
    x = rng.standard_normal((args.batch, args.layers[0]))
    y = rng.standard_normal((args.batch, args.layers[-1]))
    parts = estimator.posterior, model.prior, model.likelihood, estimator, FreeEnergy()
    part_names = [type(part).__name__ for part in parts]
    return GradientProblem(
        name=" / ".join([*part_names, args.activation]),
        n_weights=model.layout.size,
        functions={
            title: replace(estimator, objective=objective).value_and_grad
            for title, objective in TERMS.items()
        },
        theta=theta,
        arguments=(noise, x, y, args.kl_weight),
        blocks=estimator.layout.slices,
        coordinate=estimator.coordinate,
        gates=lambda theta: estimator.gates(theta, noise, x),
    )


def _plain_problem(args: argparse.Namespace) -> GradientProblem:
    """Return the problem of checking the gradient in `bbb_numpy.plain` on random data."""
    network = MLP(tuple(args.layers))
    sizes = network.sizes
    n_weights = network.layout.size
    rng = np.random.default_rng(args.seed)
    mu = 0.7 * rng.standard_normal(n_weights)
    rho = args.rho + rng.uniform(-1, 1, n_weights)
    eps = rng.standard_normal((args.samples, n_weights))
    x = rng.standard_normal((args.batch, sizes[0]))
    y = rng.standard_normal((args.batch, sizes[-1]))

    def gates(theta: Any) -> Any:
        """Return the derivatives of all activations, which change at a kink."""
        mu, rho = np.split(theta, 2)
        _, tape = plain.forward(sizes, mu + softplus(rho) * eps, x)
        return np.concatenate([gate.ravel() for _, gate, _ in tape])

    def coordinate(index: int) -> str:
        """Return the name of a coordinate of theta, such as "mu W0[0, 1]"."""
        block = ("mu", "rho")[index // n_weights]
        return f"{block} {network.layout.coordinate(index % n_weights)}"

    return GradientProblem(
        name="plain.py",
        n_weights=n_weights,
        functions={
            "plain": lambda theta, *arguments: plain.value_and_grad(
                sizes, theta, *arguments
            )
        },
        theta=np.append(mu, rho),
        arguments=(eps, x, y, args.prior_scale, args.noise_scale, args.kl_weight),
        blocks={"mu": slice(n_weights), "rho": slice(n_weights, None)},
        coordinate=coordinate,
        gates=gates,
    )


def _prove(problem: GradientProblem) -> bool:
    """Prove all gradients in exact arithmetic, print the proofs; return whether all are proved."""
    all_proved = True
    for title, function in problem.functions.items():
        proof = prove(
            function, problem.theta, *problem.arguments, coordinate=problem.coordinate
        )
        print(f"{title:<12} {proof}")
        all_proved &= proof.proved
    print("" if all_proved else "\nNOT PROVED")
    return all_proved


def _check(args: argparse.Namespace, problem: GradientProblem) -> bool:
    """Check all gradients by the methods of --method, and print the errors; return if all pass."""
    methods = [args.method] if args.method in TOLERANCES else list(TOLERANCES)
    rng = np.random.default_rng(args.seed)  # draws the coordinates of all checks
    reports = {
        method: {
            title: check_gradient(
                function,
                problem.theta,
                *problem.arguments,
                method=method,
                blocks=problem.blocks,
                coordinate=problem.coordinate,
                gates=problem.gates,
                max_coordinates=args.max_coordinates,
                rng=rng,
            )
            for title, function in problem.functions.items()
        }
        for method in methods
    }
    rows = [row for by_title in reports.values() for row in by_title.items()]
    print(format_table(rows) + "\n")
    failures = []
    for method, by_title in reports.items():
        failures += [
            f"{title} ({method})" for title, report in by_title.items() if not report
        ]
        error = max(report.error for report in by_title.values())
        skipped = np.mean([report.skipped for report in by_title.values()])
        print(
            f"largest {method} error {error:.1e} (tolerance {TOLERANCES[method]:g}), "
            f"{skipped:.1%} of the coordinates skipped at kinks"
        )
        if skipped > MAX_SKIPPED_SHARE:
            failures.append(f"too few coordinates ({method})")
            print(
                f"more than {MAX_SKIPPED_SHARE:.0%} skipped: the {method} check sees too little; "
                "use --method complex, which skips none, or fewer rows"
            )
    if failures:
        print(f"FAILED: {', '.join(failures)}")
    return not failures


def add_parsers(commands: Commands) -> None:
    """Add the parsers of ``bbb-numpy gradcheck`` and ``prove`` to the subcommands."""
    usage = "[--all | --plain] [--exact] [options]"
    parser = add_command(commands, "gradcheck", gradcheck, usage)
    group = parser.add_argument_group("what is checked")
    add_options(group.add_mutually_exclusive_group(), SUBJECT_OPTIONS)
    add_options(group, RANDOM_NETWORK_OPTIONS)
    add_options(parser.add_argument_group("how it is checked"), METHOD_OPTIONS)
    network = parser.add_argument_group(
        "the network", "Not with --all, which checks networks of its own."
    )
    add_options(network, ARCHITECTURE_OPTIONS)
    command.add_arguments(add_command(commands, "prove", prove_file))
