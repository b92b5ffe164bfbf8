"""``bbb-numpy gradcheck``: one architecture term by term, every combination, or plain.py."""

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
    above_zero,
    add_command,
    at_least_one,
    at_least_zero,
    option,
)

__all__ = ["add_parsers", "gradcheck"]

Array = NDArray[Any]
ONE: dict[str, dict[str, Any]] = {  # options of a single architecture
    "layers": {"type": at_least_one, "nargs": "+", "default": [3, 7, 5, 2],
               "help": "d_in, hidden widths, K"},
    "samples": {"type": at_least_one, "default": 4, "help": "weight samples S"},
    "batch": {"type": at_least_one, "default": 6, "help": "rows B"},
    "prior_scale": {"type": above_zero, "default": 1.0},
    "noise_scale": {"type": above_zero, "default": 0.5},
    "fixed_noise": {"action": "store_true", "help": "do not learn the noise"},
    "rho": {"type": float, "default": -1.0, "help": "centre of rho; it spreads by 1"},
    "kl_weight": {"type": above_zero, "default": 0.25, "help": "pi_i of the minibatch"},
}  # fmt: skip
SKIPPED = 0.02  # share of coordinates at kinks beyond which a check by differences sees too little
MOST = 100
ORACLES = {"complex": "the complex step", "central": "central differences"}


class Subject(NamedTuple):
    """Gradients at one point: formulas by title, and what their coordinates are called."""

    name: str
    weights: int
    formulas: Mapping[str, Callable[..., tuple[Any, ...]]]  # of theta and what is given
    theta: Array
    given: tuple[Any, ...]
    blocks: Mapping[str, slice]
    coordinate: Callable[[int], str]
    gates: Callable[[Array], Array]


def gradcheck(args: argparse.Namespace) -> int:
    """Check every gradient of one architecture, or (--all) of every combination of parts.

    With --exact they are proved.
    """
    if args.exact and (args.method or args.most != MOST):
        raise ValueError(
            "--exact proves all coordinates, by one method; leave out --method, --most"
        )
    if args.plain and args.activation != "relu":
        raise ValueError(
            "--plain checks plain.py, one ReLU network; leave out --activation"
        )
    if args.all:
        given = [
            name
            for name, how in ONE.items()
            if getattr(args, name) != how.get("default", 0)
        ]
        if given:
            listed = ", ".join(map(option, given))
            raise ValueError(f"--all checks networks of its own; leave out {listed}")
        return _all(args)
    subject = _plain(args) if args.plain else _terms(args)
    print(
        f"layers {'-'.join(map(str, args.layers))}, {args.activation}, "
        f"{subject.weights} weights, {args.samples} samples, {args.batch} rows, "
        f"KL weight {args.kl_weight:g}\n"
    )
    passed = _prove(subject) if args.exact else _check(args, subject)
    if passed:
        print(
            f"every gradient of {subject.name} {'is proved' if args.exact else 'passes'}"
        )
    print(
        "not looked at: other posteriors, priors, likelihoods, estimators, objectives and "
        f"activations; bbb-numpy gradcheck{' --exact' * args.exact} --all does, for one activation"
    )
    return 0 if passed else 1


def prove_file(args: argparse.Namespace) -> int:
    """Prove or refute a gradient that you wrote, of a function in a file: as `exactgrad` does."""
    return command.run(args)


# --- every combination


def _all(args: argparse.Namespace) -> int:
    """Check or prove all valid combinations, and count why the others are refused."""
    valid, refused = {}, Counter[str]()
    for which in combinations.combinations():
        try:
            valid[which] = combinations.build_estimator(
                which, activation=args.activation
            )
        except ValueError as error:
            refused[str(error)] += 1
    said, passed = (_prove_all if args.exact else _check_all)(args, valid)
    print(f"\n{refused.total()} combinations are refused when they are built:")
    for reason, count in refused.most_common():
        print(f"{count:>6}  {reason}")
    other = f", of networks with {args.activation}; not looked at: other activations (--activation)"
    print(f"{said}{other * passed}")
    return 0 if passed else 1


def _shown(valid: Mapping[Any, Any]) -> Any:
    """Return the combinations with a bar, which in the log of a machine moves twice a minute."""
    pause = 0.1 if sys.stderr.isatty() else 30.0
    return tqdm(valid.items(), unit="combination", leave=False, mininterval=pause)


def _check_all(args: argparse.Namespace, valid: Mapping[Any, Any]) -> tuple[str, bool]:
    methods = list(TOLERANCES) if args.method == "both" else [args.method or "complex"]
    failed = []
    for method in methods:
        errors, skipped = {}, []
        for which, built in _shown(valid):
            case = combinations.draw_case(built, np.random.default_rng(args.seed))
            most = args.most if method == "central" else None
            report = combinations.check_case(case, method, most)
            errors[which] = report.error
            skipped.append(report.skipped)
            if not report.passed:
                failed.append(f"\nFAILED: {which}\n{report}")
        print(f"largest relative error of each gradient against {ORACLES[method]}\n")
        print(combinations.format_matrix(errors))
        worst = max(errors, key=lambda which: errors[which])
        print(
            f"\n{len(errors)} valid combinations, largest {method} error {errors[worst]:.1e} "
            f"(bar {TOLERANCES[method]:g}) in {worst}; {np.mean(skipped):.1%} of the coordinates "
            "skipped at kinks"
        )
    if failed:
        return "\n".join([*failed[:10], f"\nFAILED: {len(failed)} checks"]), False
    return "\nevery gradient passes", True


def _prove_all(args: argparse.Namespace, valid: Mapping[Any, Any]) -> tuple[str, bool]:
    """Prove combinations, up to the first that fails."""
    tried, proved = Counter[Any](), Counter[Any]()
    for which, built in _shown(valid):
        case = combinations.draw_case(
            built, np.random.default_rng(args.seed), samples=2
        )
        proof = combinations.prove_case(case, args.seed)
        line = which.posterior, which.estimator, which.objective
        tried[line] += 1
        proved[line] += proof.proved
        if not proof.proved:
            print(f"{which}\n{proof}\nthe first that is not proved ends this run\n")
            break
    print(
        "proofs in finite fields and with sixty digits, each on one path of comparisons; one line "
        "for all priors and likelihoods\n\n"
        f"{'posterior':<11}{'estimator':<26}{'objective':<14}{'proved':>7}{'of':>5}\n"
        + "-"
        * 63
    )
    for (posterior, name, objective), count in tried.items():
        done = proved[posterior, name, objective]
        print(f"{posterior:<11}{name:<26}{objective:<14}{done:>7}{count:>5}")
    return f"\n{proved.total()} of {len(valid)} proved", proved.total() == len(valid)


# --- one architecture


def _terms(args: argparse.Namespace) -> Subject:
    """Return the report's model, term by term."""
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
    return Subject(
        " / ".join([*(type(part).__name__ for part in parts), args.activation]),
        model.layout.size,
        {
            title: replace(estimator, objective=one).value_and_grad
            for title, one in TERMS.items()
        },
        theta,
        (noise, x, y, args.kl_weight),
        estimator.layout.slices,
        estimator.coordinate,
        lambda point: estimator.gates(point, noise, x),
    )


def _plain(args: argparse.Namespace) -> Subject:
    """Return `bbb_numpy.plain`, the report on one screen."""
    network, rng = MLP(tuple(args.layers)), np.random.default_rng(args.seed)
    net, size = network.sizes, network.layout.size
    theta = np.append(
        0.7 * rng.standard_normal(size), args.rho + rng.uniform(-1, 1, size)
    )
    eps = rng.standard_normal((args.samples, size))
    x = rng.standard_normal((args.batch, net[0]))
    y = rng.standard_normal((args.batch, net[-1]))

    def gates(theta: Any) -> Any:
        mu, rho = np.split(theta, 2)
        _, tape = plain.forward(net, mu + softplus(rho) * eps, x)
        return np.concatenate([gate.ravel() for _, gate, _ in tape])

    return Subject(
        "plain.py",
        size,
        {"plain": lambda theta, *given: plain.value_and_grad(net, theta, *given)},
        theta,
        (eps, x, y, args.prior_scale, args.noise_scale, args.kl_weight),
        {"mu": slice(size), "rho": slice(size, None)},
        lambda at: (
            f"{('mu', 'rho')[at // size]} {network.layout.coordinate(at % size)}"
        ),
        gates,
    )


def _prove(subject: Subject) -> bool:
    """Prove all formulas in exact arithmetic; return whether they are proved."""
    proved = True
    for title, formula in subject.formulas.items():
        proof = prove(
            formula, subject.theta, *subject.given, coordinate=subject.coordinate
        )
        print(f"{title:<12} {proof}")
        proved &= proof.proved
    print("" if proved else "\nNOT PROVED")
    return proved


def _check(args: argparse.Namespace, subject: Subject) -> bool:
    """Check all formulas by the methods asked for; return whether they pass."""
    how = {name: getattr(subject, name) for name in ("blocks", "coordinate", "gates")}
    how |= {"max_coordinates": args.most, "rng": np.random.default_rng(args.seed)}
    found = {
        method: {
            title: check_gradient(
                formula, subject.theta, *subject.given, method=method, **how
            )
            for title, formula in subject.formulas.items()
        }
        for method in ([args.method] if args.method in TOLERANCES else TOLERANCES)
    }
    print(
        format_table([pair for reports in found.values() for pair in reports.items()])
        + "\n"
    )
    failed = []
    for method, reports in found.items():
        failed += [
            f"{title} ({method})" for title, report in reports.items() if not report
        ]
        error = max(report.error for report in reports.values())
        skipped = np.mean([report.skipped for report in reports.values()])
        print(
            f"largest {method} error {error:.1e} (bar {TOLERANCES[method]:g}), "
            f"{skipped:.1%} of the coordinates skipped at kinks"
        )
        if skipped > SKIPPED:
            failed.append(f"too few coordinates ({method})")
            print(
                f"more than {SKIPPED:.0%} skipped: the {method} check sees too little; use "
                "--method complex, which skips none, or fewer rows"
            )
    if failed:
        print(f"FAILED: {', '.join(failed)}")
    return not failed


def add_parsers(commands: Commands) -> None:
    """Add the subcommands gradcheck and prove."""
    parser = add_command(commands, "gradcheck", gradcheck)
    text = (
        "check every combination of prior, likelihood, posterior, estimator and objective; of the "
        "other options only --activation, --method (complex), --most and --seed apply"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true", help=text)
    what.add_argument(
        "--plain", action="store_true", help="check plain.py (ReLU, fixed noise)"
    )
    text = "prove instead of check: in exact arithmetic, without rounding or a step"
    parser.add_argument("--exact", action="store_true", help=text)
    for name, how in ONE.items():
        parser.add_argument(option(name), **how)
    parser.add_argument("--activation", choices=ACTIVATIONS, default="relu")
    parser.add_argument(
        "--method", choices=["both", *sorted(TOLERANCES)], help="(both)"
    )
    most = "coordinates per block at most"
    parser.add_argument("--most", type=at_least_one, default=MOST, help=most)
    parser.add_argument("--seed", type=at_least_zero, default=0)
    command.add_arguments(add_command(commands, "prove", prove_file))
