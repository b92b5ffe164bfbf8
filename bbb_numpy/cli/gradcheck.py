"""``bbb-numpy gradcheck``: one architecture term by term, every combination, or plain.py."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from .. import plain
from ..exact import prove
from ..gradcheck import BARS, Report, check, format_table
from ..gradients import matrix
from ..gradients.catalogue import ACTIVATIONS
from ..gradients.reparameterised import Reparameterised
from ..model.joint import Model
from ..model.objectives import TERMS, FreeEnergy
from ..numeric.elementary import softplus
from ..parts.likelihoods import GaussianLikelihood
from ..parts.network import MLP
from ..parts.posteriors import MeanField
from ..parts.priors import GaussianPrior
from .options import Commands, above_zero, add_command, at_least_one, at_least_zero

__all__ = ["add_parsers", "gradcheck"]

Array = NDArray[Any]
# options of a single architecture, with their defaults
ONE: dict[str, Any] = {
    "layers": [3, 7, 5, 2],
    "samples": 4,
    "batch": 6,
    "prior_scale": 1.0,
    "noise_scale": 0.5,
    "fixed_noise": False,
    "rho": -1.0,
    "kl_weight": 0.25,
}
SKIPPED = 0.02  # share of coordinates at kinks beyond which a check by differences sees too little
MOST = 100


@dataclass(frozen=True)
class Formula:
    """A value with its gradient, at one point."""

    title: str
    value_and_grad: Callable[..., tuple[Any, ...]]  # of theta and what is given
    theta: Array
    given: tuple[Any, ...]
    blocks: Mapping[str, slice]
    coordinate: Callable[[int], str]
    gates: Callable[[Array], Array]

    def __call__(self, theta: Array) -> tuple[Any, ...]:
        """Return value and gradient as functions of theta alone."""
        return self.value_and_grad(theta, *self.given)


def gradcheck(args: argparse.Namespace) -> int:
    """Check every gradient of one architecture, or (--all) of every combination of parts.

    With --exact they are proved.
    """
    if args.exact and (args.method or args.most != MOST):
        raise ValueError(
            "--exact proves all coordinates, by one method; leave out --method, --most"
        )
    if args.plain and (args.all or args.activation != "relu"):
        raise ValueError("--plain checks plain.py, one ReLU network; leave out --all, --activation")
    if args.all:
        given = [f"--{name.replace('_', '-')}" for name in ONE if getattr(args, name) != ONE[name]]
        if given:
            raise ValueError(f"--all checks networks of its own; leave out {', '.join(given)}")
        return _prove_combinations(args) if args.exact else _check_combinations(args)
    name, weights, formulas = _of_plain(args) if args.plain else _of_terms(args)
    print(
        f"layers {'-'.join(map(str, args.layers))}, {args.activation}, "
        f"{weights} weights, {args.samples} samples, {args.batch} rows, "
        f"KL weight {args.kl_weight:g}\n"
    )
    passed = _prove(formulas) if args.exact else _check(args, formulas)
    if passed:
        print(f"every gradient of {name} {'is proved' if args.exact else 'passes'}")
    print(
        "not looked at: other posteriors, priors, likelihoods, estimators, objectives and "
        f"activations; bbb-numpy gradcheck{' --exact' * args.exact} --all does, for one activation"
    )
    return 0 if passed else 1


# --- every combination


def _valid(args: argparse.Namespace) -> tuple[list[tuple[Any, Any]], Counter[str]]:
    """Return the valid combinations, each with its estimator, and why the others are refused."""
    valid, refused = [], Counter[str]()
    for which in matrix.combinations():
        try:
            valid.append((which, matrix.estimator(which, activation=args.activation)))
        except ValueError as error:
            refused[str(error)] += 1
    return valid, refused


def _shown(valid: list[tuple[Any, Any]]) -> tqdm:
    """Return the same with a bar, which in the log of a machine moves twice a minute."""
    pause = 0.1 if sys.stderr.isatty() else 30.0
    return tqdm(valid, unit="combination", leave=False, mininterval=pause)


def _print_refused(refused: Counter[str]) -> None:
    print(f"\n{refused.total()} combinations are refused when they are built:")
    for reason, count in refused.most_common():
        print(f"{count:>6}  {reason}")


def _check_combinations(args: argparse.Namespace) -> int:
    """Check all valid combinations and count the reasons for refusing the others."""
    methods = sorted(BARS, reverse=True) if args.method == "both" else [args.method or "complex"]
    valid, refused = _valid(args)
    failed = []
    for method in methods:
        errors, skipped = {}, []
        for which, built in _shown(valid):
            case = matrix.problem(built, np.random.default_rng(args.seed))
            report = matrix.check_case(case, method, args.most if method == "central" else None)
            errors[which] = report.error
            skipped.append(report.skipped)
            if not report.passed:
                failed.append((which, method, report))
        oracle = {"complex": "the complex step", "central": "central differences"}[method]
        print(f"largest relative error of each gradient against {oracle}\n")
        print(matrix.format_matrix(errors))
        worst = max(errors, key=lambda which: errors[which])
        print(
            f"\n{len(errors)} valid combinations, largest {method} error {errors[worst]:.1e} "
            f"(bar {BARS[method]:g}) in {worst}; {np.mean(skipped):.1%} of the coordinates skipped "
            "at kinks"
        )
    _print_refused(refused)
    for which, _, report in failed[:10]:
        print(f"\nFAILED: {which}\n{report}")
    print(
        f"\nFAILED: {len(failed)} checks"
        if failed
        else f"\nevery gradient passes, of networks with {args.activation}; not looked at: other "
        "activations (--activation)"
    )
    return 1 if failed else 0


def _prove_combinations(args: argparse.Namespace) -> int:
    """Prove valid combinations, up to the first that fails; count why the others are refused."""
    valid, refused = _valid(args)
    proofs = {}
    for which, built in _shown(valid):
        case = matrix.problem(built, np.random.default_rng(args.seed), samples=2)
        proofs[which] = proof = matrix.prove_case(case, args.seed)
        if not proof.proved:
            print(f"{which}\n{proof}\nthe first that is not proved ends this run\n")
            break
    print(
        "proofs in finite fields and with sixty digits, each on one path of comparisons; one line "
        "for all priors and likelihoods\n\n"
        f"{'posterior':<11}{'estimator':<26}{'objective':<14}{'proved':>7}{'of':>5}\n" + "-" * 63
    )
    lines = Counter((w.posterior, w.estimator, w.objective) for w in proofs)
    proved = Counter((w.posterior, w.estimator, w.objective) for w in proofs if proofs[w].proved)
    for line, count in lines.items():
        posterior, name, objective = line
        print(f"{posterior:<11}{name:<26}{objective:<14}{proved[line]:>7}{count:>5}")
    _print_refused(refused)
    done = proved.total()
    print(
        f"\n{done} of {len(valid)} proved, of networks with {args.activation}; not looked at: "
        "other activations (--activation)"
    )
    return 0 if done == len(valid) else 1


# --- one architecture


def _of_terms(args: argparse.Namespace) -> tuple[str, int, list[Formula]]:
    """Return the report's model, its name, number of weights, and formulas term by term."""
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
    given = noise, x, y, args.kl_weight

    def gates(point: Any) -> Any:
        return estimator.gates(point, noise, x)

    names = estimator.layout.slices, estimator.coordinate, gates
    terms = {title: replace(estimator, objective=one) for title, one in TERMS.items()}
    formulas = [
        Formula(title, term.value_and_grad, theta, given, *names) for title, term in terms.items()
    ]
    parts = estimator.posterior, model.prior, model.likelihood, estimator, FreeEnergy()
    name = " / ".join([*(type(part).__name__ for part in parts), args.activation])
    return name, model.layout.size, formulas


def _of_plain(args: argparse.Namespace) -> tuple[str, int, list[Formula]]:
    """Return the same of `bbb_numpy.plain`, the report on one screen."""
    network, rng = MLP(tuple(args.layers)), np.random.default_rng(args.seed)
    net, size = network.sizes, network.layout.size
    theta = np.append(0.7 * rng.standard_normal(size), args.rho + rng.uniform(-1, 1, size))
    eps = rng.standard_normal((args.samples, size))
    x = rng.standard_normal((args.batch, net[0]))
    y = rng.standard_normal((args.batch, net[-1]))
    given = eps, x, y, args.prior_scale, args.noise_scale, args.kl_weight

    def value_and_grad(theta: Any, *given: Any) -> tuple[Any, Any]:
        return plain.value_and_grad(net, theta, *given)

    def coordinate(index: int) -> str:
        return f"{('mu', 'rho')[index // size]} {network.layout.coordinate(index % size)}"

    def gates(theta: Any) -> Any:
        mu, rho = np.split(theta, 2)
        _, tape = plain.forward(net, mu + softplus(rho) * eps, x)
        return np.concatenate([gate.ravel() for _, gate, _ in tape])

    blocks = {"mu": slice(size), "rho": slice(size, None)}
    formula = Formula("plain", value_and_grad, theta, given, blocks, coordinate, gates)
    return "plain.py", size, [formula]


def _prove(formulas: list[Formula]) -> bool:
    """Prove all of them in exact arithmetic; return whether they are proved."""
    proofs = []
    for formula in formulas:
        proof = prove(
            formula.value_and_grad, formula.theta, *formula.given, coordinate=formula.coordinate
        )
        print(f"{formula.title:<12} {proof}")
        proofs.append(proof.proved)
    print("" if all(proofs) else "\nNOT PROVED")
    return all(proofs)


def _check(args: argparse.Namespace, formulas: list[Formula]) -> bool:
    """Check all of them by the methods asked for; return whether they pass."""
    rng = np.random.default_rng(args.seed)
    reports: list[tuple[str, Report]] = []
    for method in [args.method] if args.method in BARS else sorted(BARS, reverse=True):
        for formula in formulas:
            report = check(
                formula,
                formula.theta,
                method=method,
                blocks=formula.blocks,
                coordinate=formula.coordinate,
                gates=formula.gates,
                most=args.most,
                rng=rng,
            )
            reports.append((formula.title, report))
    print(format_table(reports) + "\n")
    few = []
    for method in BARS:
        found = [report for _, report in reports if report.method == method]
        if found:
            error, skipped = max(r.error for r in found), np.mean([r.skipped for r in found])
            print(
                f"largest {method} error {error:.1e} (bar {BARS[method]:g}), "
                f"{skipped:.1%} of the coordinates skipped at kinks"
            )
            if skipped > SKIPPED:
                few.append(method)
                print(
                    f"more than {SKIPPED:.0%} skipped: the {method} check sees too little; use "
                    "--method complex, which skips none, or fewer rows"
                )
    failed = [f"{title} ({report.method})" for title, report in reports if not report.passed]
    if failed:
        print(f"FAILED: {', '.join(failed)}")
    elif few:
        print(f"TOO FEW COORDINATES: {', '.join(few)}")
    return not failed and not few


def add_parsers(commands: Commands) -> None:
    """Add the subcommand gradcheck."""
    parser = add_command(commands, "gradcheck", gradcheck)
    parser.add_argument(
        "--all",
        action="store_true",
        help="check every combination of prior, likelihood, posterior, estimator and objective; "
        "of the other options only --activation, --method (complex), --most and --seed apply",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="prove instead of check: in exact arithmetic, without rounding or a step",
    )
    parser.add_argument("--plain", action="store_true", help="check plain.py (ReLU, fixed noise)")
    parser.add_argument("--layers", type=at_least_one, nargs="+", help="d_in, hidden widths, K")
    parser.add_argument("--samples", type=at_least_one, help="weight samples S")
    parser.add_argument("--batch", type=at_least_one, help="rows B")
    parser.add_argument("--activation", choices=ACTIVATIONS, default="relu")
    parser.add_argument("--prior-scale", type=above_zero)
    parser.add_argument("--noise-scale", type=above_zero)
    parser.add_argument("--fixed-noise", action="store_true", help="do not learn the noise")
    parser.add_argument("--rho", type=float, help="centre of rho; it spreads by 1")
    parser.add_argument("--kl-weight", type=above_zero, help="pi_i of the minibatch")
    parser.set_defaults(**ONE)
    parser.add_argument("--method", choices=["both", *sorted(BARS)], help="(both)")
    parser.add_argument(
        "--most", type=at_least_one, default=MOST, help="coordinates per block at most"
    )
    parser.add_argument("--seed", type=at_least_zero, default=0)
