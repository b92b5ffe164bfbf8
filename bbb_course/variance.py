"""Your own estimator: unbiased, and with less variance than the report's, for the same price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

from .exercise import Exercise, Finding, Unusable, Verdict, ask

__all__ = ["Estimator"]

Array = NDArray[Any]
N_SAMPLES = 4
MAX_VARIANCE_RATIO = 0.5  # of the report's variance
N_STANDARD_ERRORS = 5.0
# of the exact gradient's largest number: a smaller standard error is not believed
MIN_RELATIVE_ERROR = 1e-4
PRECISION = np.array([[3.0, 1.0], [1.0, 2.0]])
# Near the optimum, where training spends its time and variance is measured
MU_NEAR_OPTIMUM = np.array([0.05, -0.05])
RHO_NEAR_OPTIMUM = np.array([-0.25, 0.0])
# There the gradient is almost 0, and so is a bias in proportion to it. So bias is measured at
# further thetas, by turns, which also exposes an answer that keeps state between calls. Each has
# mu, rho and the number of estimates
THETAS = (
    (MU_NEAR_OPTIMUM, RHO_NEAR_OPTIMUM, 3000),
    (np.array([4.0, 3.0]), np.array([-1.0, -1.5]), 600),
    (np.array([-1.0, 1.0]), np.array([1.5, 2.0]), 600),
)
OWN_SAMPLE_BIAS = (
    f"so does a baseline that sees its own sample, by 1/{N_SAMPLES} of what it is subtracted from: "
    "take the mean of the other samples"
)
NORMAL_MOMENTS = (1.0, 0.0, 1.0, 0.0, 3.0)  # E[eps^k]


def slope(w: Array) -> Array:
    """Return d(-log P(w, D))/dw (S, P) of a posterior that is nearly Gaussian."""
    return w @ PRECISION + 0.1 * w**3


def right_mean(mu: Array, rho: Array) -> Array:
    """Return the gradient (2 P,) of the free energy for mu and rho, by quadrature.

    Parameters
    ----------
    mu, rho : ndarray (P,)
        Means and raw standard deviations of the weights; P is 2.
    """
    nodes, weights = hermegauss(12)
    share = np.outer(weights, weights).ravel() / weights.sum() ** 2
    eps = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    sigma = np.logaddexp(0, rho)
    derivative = 1 / (1 + np.exp(-rho))
    d_w = slope(mu + sigma * eps)
    return np.append(share @ d_w, (share @ (d_w * eps) - 1 / sigma) * derivative)


def of_the_report(mu: Array, rho: Array, eps: Array) -> Array:
    """Return the report's estimate of the gradient (K21, K30).

    Parameters
    ----------
    mu, rho : ndarray (P,)
    eps : ndarray (S, P)
        Standard normal noise.

    Returns
    -------
    ndarray (2 P,)
        Derivatives for mu, then for rho.
    """
    sigma = np.logaddexp(0, rho)
    derivative = 1 / (1 + np.exp(-rho))
    d_w = slope(mu + sigma * eps)
    return np.append(
        d_w.mean(axis=0), ((d_w * eps).mean(axis=0) - 1 / sigma) * derivative
    )


def mean_and_error(estimates: Array, noise: Array) -> tuple[Array, Array]:
    """Return the mean of estimates, and its standard error, by regression on the noise.

    What is a polynomial of the noise of one sample, up to degree 4, has a known mean, and its
    scatter is taken out by regression: little else is left of a gradient whose slope is cubic.

    Parameters
    ----------
    estimates : ndarray (R, 2 P)
    noise : ndarray (R, S, P)
        What each estimate was computed from.

    Returns
    -------
    mean, standard_error : ndarray (2 P,)
    """
    first = noise[..., 0]
    second = noise[..., 1]
    columns = [np.ones((len(noise), 1))]
    for i in range(5):
        for j in range(5 - i):
            if i + j:
                mean = NORMAL_MOMENTS[i] * NORMAL_MOMENTS[j]
                columns.append(first**i * second**j - mean)
    x = np.concatenate(columns, axis=1)
    inverse = np.linalg.inv(x.T @ x)
    coefficients = inverse @ (x.T @ estimates)
    residuals = estimates - x @ coefficients
    variance = np.sum(residuals**2, axis=0) / (len(x) - x.shape[1])
    return coefficients[0], np.sqrt(variance * inverse[0, 0])


@dataclass(frozen=True, kw_only=True)
class Estimator(Exercise):
    """An exercise whose answer estimates the gradient: bias and variance are measured."""

    patience: ClassVar[float] = 2.0

    def judge(self, answer: Any) -> Verdict:
        """Draw noise many times, and compare mean and variance."""
        try:
            noise, estimates = _estimates(answer)
        except _TooDear as error:
            return Verdict(self.name, False, "wrong", str(error))
        estimates_of_report = np.array(
            [of_the_report(MU_NEAR_OPTIMUM, RHO_NEAR_OPTIMUM, eps) for eps in noise[0]]
        )
        ratio = float(
            np.sum(estimates[0].var(axis=0)) / np.sum(estimates_of_report.var(axis=0))
        )
        biases = [
            _bias(mu, rho, estimates_there, eps)
            for (mu, rho, _), estimates_there, eps in zip(
                THETAS, estimates, noise, strict=True
            )
        ]
        bias, block, message = max(biases)
        findings = []
        if bias > N_STANDARD_ERRORS:
            if _sees_its_own_sample(estimates, noise):
                message += f"; {OWN_SAMPLE_BIAS}"
            findings.append(Finding(block, message))
        if not ratio <= MAX_VARIANCE_RATIO:
            message = (
                f"it is {ratio:.2f} of the report's; {MAX_VARIANCE_RATIO} is enough"
            )
            findings.append(Finding("variance", message))
        score = {
            "bias in standard errors": bias,
            "variance against the report's": ratio,
        }
        head = (
            f"bias of {bias:.1f} standard errors, {ratio:.2g} of the report's variance"
        )
        return Verdict(
            self.name, not findings, "scored", head, tuple(findings), score=score
        )


class _TooDear(Exception):
    """The answer takes more slopes than the report's estimator."""


def _estimates(answer: Any) -> tuple[list[Array], list[Array]]:
    """Return the noise (R, S, P) at each theta, and the answer's estimates (R, 2 P)."""
    rng = np.random.default_rng(0)
    n_slopes = 0

    def counted_slope(w: Array) -> Array:
        nonlocal n_slopes
        n_slopes += len(w)
        return slope(w)

    noise: list[list[Array]] = [[] for _ in THETAS]
    estimates: list[list[Array]] = [[] for _ in THETAS]
    max_repeats = max(repeats for *_, repeats in THETAS)
    for i in range(max_repeats):
        for k, (mu, rho, repeats) in enumerate(THETAS):
            if i % (max_repeats // repeats):
                continue
            eps = rng.standard_normal((N_SAMPLES, mu.size))
            n_slopes = 0
            slopes = ask(
                answer, mu.copy(), rho.copy(), eps.copy(), counted_slope, blocks=2
            )
            if any(block.shape != mu.shape for block in slopes):
                raise Unusable(f"d_mu and d_rho must have {mu.size} numbers each")
            if n_slopes > N_SAMPLES:
                raise _TooDear(
                    f"it asks for {n_slopes} slopes where the report's needs {N_SAMPLES}: an "
                    "estimator that pays more is compared with one that draws more samples"
                )
            noise[k].append(eps)
            estimates[k].append(np.concatenate(slopes))
    return [*map(np.array, noise)], [*map(np.array, estimates)]


def _bias(
    mu: Array, rho: Array, estimates: Array, noise: Array
) -> tuple[float, str, str]:
    """Return the largest bias in standard errors, its block, and the sentence about it."""
    exact = right_mean(mu, rho)
    mean, bias = _mean_and_bias(exact, estimates, noise)
    worst = int(np.argmax(bias))
    block = f"{('d_mu', 'd_rho')[worst // mu.size]}[{worst % mu.size}]"
    message = (
        f"its mean is {mean[worst]:.4g}, and {exact[worst]:.4g} is right, at mu = {mu.tolist()} "
        f"and rho = {rho.tolist()}: it is biased, by {bias[worst]:.1f} standard errors"
    )
    return float(bias[worst]), block, message


def _mean_and_bias(
    expected: Array, estimates: Array, noise: Array
) -> tuple[Array, Array]:
    """Return the mean of estimates, and how far it is from the expected one in standard errors."""
    mean, error = mean_and_error(estimates, noise)
    error = np.maximum(error, MIN_RELATIVE_ERROR * np.max(np.abs(expected)))
    return mean, np.nan_to_num(np.abs(mean - expected) / error, nan=np.inf)


def _sees_its_own_sample(estimates: Sequence[Array], noise: Sequence[Array]) -> bool:
    """Return whether the means are those of a baseline over all samples, in the slope for rho.

    It is subtracted from the slope for w alone, or from that with log q's path in it.
    """
    for has_path in (False, True):
        biases = []
        for (mu, rho, _), estimates_there, eps in zip(
            THETAS, estimates, noise, strict=True
        ):
            expected = right_mean(mu, rho)
            entropy = 1 / np.logaddexp(0, rho) / (1 + np.exp(-rho))
            outside = entropy
            if has_path:
                outside = 0.0
            slope_for_rho = expected[mu.size :]
            expected[mu.size :] = (1 - 1 / N_SAMPLES) * (
                slope_for_rho + outside
            ) - outside
            biases.append(np.max(_mean_and_bias(expected, estimates_there, eps)[1]))
        if max(biases) <= N_STANDARD_ERRORS:
            return True
    return False
