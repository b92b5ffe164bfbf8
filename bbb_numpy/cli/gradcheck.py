"""``bbb-numpy gradcheck``: one architecture term by term, every combination, or plain.py."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from .. import plain
from ..gradcheck import BARS, Report, check, format_table
from ..gradients import matrix
from ..gradients.reparameterised import Reparameterised
from ..model.joint import Model
from ..model.objectives import TERMS
from ..numeric.elementary import softplus
from ..parts.likelihoods import GaussianLikelihood
from ..parts.network import ACTIVATIONS, MLP
from ..parts.posteriors import MeanField
from ..parts.priors import GaussianPrior
from .options import Commands, above_zero, add_command, at_least_one, at_least_zero

__all__ = ["add_parsers", "gradcheck"]

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
SKIPPED = 0.02  # share of coordinates at kinks beyond which a check by differences proves little


def gradcheck(args: argparse.Namespace) -> int:
    """Check every gradient of one architecture, or (--all) of every combination of parts."""
    if args.plain:
        return _plain(args)
    if args.all:
        given = [f"--{name.replace('_', '-')}" for name in ONE if getattr(args, name) != ONE[name]]
        if given:
            raise ValueError(f"--all checks networks of its own; leave out {', '.join(given)}")
    return _every_combination(args) if args.all else _every_term(args)


def _every_combination(args: argparse.Namespace) -> int:
    """Check all valid combinations and count the reasons for refusing the others."""
    methods = sorted(BARS, reverse=True) if args.method == "both" else [args.method or "complex"]
    refused: Counter[str] = Counter()
    valid = []
    for which in matrix.combinations():
        try:
            valid.append((which, matrix.estimator(which, activation=args.activation)))
        except ValueError as error:
            refused[str(error)] += 1
    failed = []
    for method in methods:
        errors, skipped = {}, []
        for which, built in tqdm(valid, unit="combination", leave=False, disable=None):
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
    print(f"\n{refused.total()} combinations are refused when they are built:")
    for reason, count in refused.most_common():
        print(f"{count:>6}  {reason}")
    for which, _, report in failed[:10]:
        print(f"\nFAILED: {which}\n{report}")
    print(f"\nFAILED: {len(failed)} checks" if failed else "\nevery gradient passes")
    return 1 if failed else 0


def _every_term(args: argparse.Namespace) -> int:
    """Check the report's model, term by term."""
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

    def gates(point: Any) -> Any:
        return estimator.gates(point, noise, x)

    reports: list[tuple[str, Report]] = []
    for method in [args.method] if args.method in BARS else sorted(BARS, reverse=True):
        for title, objective in TERMS.items():
            term = replace(estimator, objective=objective)
            report = check(
                partial(term.value_and_grad, noise=noise, x=x, y=y, kl_weight=args.kl_weight),
                theta,
                method=method,
                blocks=estimator.layout.slices,
                coordinate=estimator.coordinate,
                gates=gates,
                most=args.most,
                rng=rng,
            )
            reports.append((title, report))
    return _conclude(args, model.layout.size, reports)


def _plain(args: argparse.Namespace) -> int:
    """Check `bbb_numpy.plain`, the report on one screen."""
    if args.all or args.activation != "relu":
        raise ValueError("--plain checks plain.py, one ReLU network; leave out --all, --activation")
    network, rng = MLP(tuple(args.layers)), np.random.default_rng(args.seed)
    net, size = network.sizes, network.layout.size
    theta = np.append(0.7 * rng.standard_normal(size), args.rho + rng.uniform(-1, 1, size))
    eps = rng.standard_normal((args.samples, size))
    x = rng.standard_normal((args.batch, net[0]))
    y = rng.standard_normal((args.batch, net[-1]))

    def value_and_grad(theta: Any) -> tuple[Any, Any]:
        scales = args.prior_scale, args.noise_scale
        return plain.value_and_grad(net, theta, eps, x, y, *scales, args.kl_weight)

    def coordinate(index: int) -> str:
        return f"{('mu', 'rho')[index // size]} {network.layout.coordinate(index % size)}"

    def gates(theta: Any) -> Any:
        mu, rho = np.split(theta, 2)
        _, tape = plain.forward(net, mu + softplus(rho) * eps, x)
        return np.concatenate([gate.ravel() for _, gate, _ in tape])

    reports = [
        (
            "plain",
            check(
                value_and_grad,
                theta,
                method=method,
                blocks={"mu": slice(size), "rho": slice(size, None)},
                coordinate=coordinate,
                gates=gates,
                most=args.most,
                rng=rng,
            ),
        )
        for method in ([args.method] if args.method in BARS else sorted(BARS, reverse=True))
    ]
    return _conclude(args, size, reports)


def _conclude(args: argparse.Namespace, weights: int, reports: list[tuple[str, Report]]) -> int:
    """Print what was found; return 0 if everything is proved."""
    print(
        f"layers {'-'.join(map(str, args.layers))}, {args.activation}, "
        f"{weights} weights, {args.samples} samples, {args.batch} rows, "
        f"KL weight {args.kl_weight:g}\n"
    )
    print(format_table(reports) + "\n")
    unproved = []
    for method in BARS:
        found = [report for _, report in reports if report.method == method]
        if found:
            error, skipped = max(r.error for r in found), np.mean([r.skipped for r in found])
            print(
                f"largest {method} error {error:.1e} (bar {BARS[method]:g}), "
                f"{skipped:.1%} of the coordinates skipped at kinks"
            )
            if skipped > SKIPPED:
                unproved.append(method)
                print(
                    f"more than {SKIPPED:.0%} skipped: the {method} check proves too little; use "
                    "--method complex, which skips none, or fewer rows"
                )
    failed = [f"{title} ({report.method})" for title, report in reports if not report.passed]
    if failed:
        print(f"FAILED: {', '.join(failed)}")
    elif unproved:
        print(f"NOT PROVED: {', '.join(unproved)}")
    else:
        print("every gradient passes")
    return 1 if failed or unproved else 0


def add_parsers(commands: Commands) -> None:
    """Add the subcommand gradcheck."""
    parser = add_command(commands, "gradcheck", gradcheck)
    parser.add_argument(
        "--all",
        action="store_true",
        help="check every combination of prior, likelihood, posterior, estimator and objective; "
        "of the other options only --activation, --method (complex), --most and --seed apply",
    )
    parser.add_argument("--plain", action="store_true", help="check plain.py (ReLU, fixed noise)")
    parser.add_argument(
        "--layers",
        type=at_least_one,
        nargs="+",
        default=ONE["layers"],
        help="d_in, hidden widths, K",
    )
    parser.add_argument(
        "--samples", type=at_least_one, default=ONE["samples"], help="weight samples S"
    )
    parser.add_argument("--batch", type=at_least_one, default=ONE["batch"], help="rows B")
    parser.add_argument("--activation", choices=ACTIVATIONS, default="relu")
    parser.add_argument("--prior-scale", type=above_zero, default=ONE["prior_scale"])
    parser.add_argument("--noise-scale", type=above_zero, default=ONE["noise_scale"])
    parser.add_argument("--fixed-noise", action="store_true", help="do not learn the noise")
    parser.add_argument(
        "--rho", type=float, default=ONE["rho"], help="centre of rho; it spreads by 1"
    )
    parser.add_argument(
        "--kl-weight",
        type=above_zero,
        default=ONE["kl_weight"],
        help="pi_i of the minibatch",
    )
    parser.add_argument("--method", choices=["both", *sorted(BARS)], help="(both)")
    parser.add_argument(
        "--most", type=at_least_one, default=100, help="coordinates per block at most"
    )
    parser.add_argument("--seed", type=at_least_zero, default=0)
