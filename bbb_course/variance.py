"""Your own estimator: unbiased, and with less variance than the report's, for the same price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

from .exercise import Exercise, Finding, Unusable, Verdict, ask

__all__ = ["Estimator"]

Array = NDArray[Any]
SAMPLES, REPEATS = 4, 3000
ENOUGH = 0.5  # of the report's variance
STANDARD_ERRORS = 5.0
PRECISION = np.array([[3.0, 1.0], [1.0, 2.0]])
# near the optimum, where training spends its time
MU, RHO = np.array([0.05, -0.05]), np.array([-0.25, 0.0])


def slope(w: Array) -> Array:
    """Return d(-log P(w, D))/dw (S, P) of a posterior that is nearly Gaussian."""
    return w @ PRECISION + 0.1 * w**3


def right_mean(mu: Array, rho: Array) -> Array:
    """Return the gradient of the free energy for mu and rho, by quadrature."""
    nodes, weights = hermegauss(12)
    share = np.outer(weights, weights).ravel() / weights.sum() ** 2
    eps = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    sigma, derivative = np.logaddexp(0, rho), 1 / (1 + np.exp(-rho))
    d_w = slope(mu + sigma * eps)
    return np.append(share @ d_w, (share @ (d_w * eps) - 1 / sigma) * derivative)


def of_the_report(mu: Array, rho: Array, eps: Array) -> Array:
    """Return the report's estimate (K21, K30)."""
    sigma, derivative = np.logaddexp(0, rho), 1 / (1 + np.exp(-rho))
    d_w = slope(mu + sigma * eps)
    return np.append(d_w.mean(axis=0), ((d_w * eps).mean(axis=0) - 1 / sigma) * derivative)


@dataclass(frozen=True, kw_only=True)
class Estimator(Exercise):
    """An exercise whose answer estimates the gradient: bias and variance are measured."""

    patience: ClassVar[float] = 2.0

    def judge(self, answer: Any) -> Verdict:
        """Draw noise many times, and compare mean and variance."""
        rng = np.random.default_rng(0)
        found, plain, used = [], [], 0

        def counted(w: Array) -> Array:
            nonlocal used
            used += len(w)
            return slope(w)

        for _ in range(REPEATS):
            eps = rng.standard_normal((SAMPLES, MU.size))
            plain.append(of_the_report(MU, RHO, eps))
            used = 0
            slopes = ask(answer, MU.copy(), RHO.copy(), eps.copy(), counted, blocks=2)
            if any(one.shape != MU.shape for one in slopes):
                raise Unusable(f"d_mu and d_rho must have {MU.size} numbers each")
            if used > SAMPLES:
                said = (
                    f"it asks for {used} slopes where the report's needs {SAMPLES}: an estimator "
                    "that pays more is compared with one that draws more samples"
                )
                return Verdict(self.name, False, "wrong", said)
            found.append(np.concatenate(slopes))
        ours, theirs = np.array(found), np.array(plain)
        off = ours.mean(axis=0) - right_mean(MU, RHO)
        error = ours.std(axis=0, ddof=1) / np.sqrt(REPEATS) + 1e-9
        bias = float(np.max(np.abs(off) / error))
        ratio = float(np.sum(ours.var(axis=0)) / np.sum(theirs.var(axis=0)))
        score = {"bias in standard errors": bias, "variance against the report's": ratio}
        findings = []
        if not bias <= STANDARD_ERRORS:
            worst = int(np.argmax(np.abs(off) / error))
            name = f"{('d_mu', 'd_rho')[worst // MU.size]}[{worst % MU.size}]"
            says = f"its mean is off by {off[worst]:.3g}, {bias:.1f} standard errors: it is biased"
            findings.append(Finding(name, says))
        if not ratio <= ENOUGH:
            says = f"it is {ratio:.2f} of the report's; {ENOUGH} is enough"
            findings.append(Finding("variance", says))
        head = f"bias of {bias:.1f} standard errors, {ratio:.2g} of the report's variance"
        return Verdict(self.name, not findings, "scored", head, tuple(findings), score=score)
