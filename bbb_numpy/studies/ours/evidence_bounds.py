"""The bounds around the evidence, on linear regression where all of them are known (D25, D28, G6).

For four q, from the prior to the posterior: ELBO, importance-weighted and Renyi bounds, and the
self-normalised estimate of the evidence upper bound, all against the number of samples.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.catalogue import Estimator
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.objectives import EUBO, LogDensities, free_energy, log_weights
from bbb_numpy.numeric.elementary import logsumexp
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.posteriors import MeanField

from .. import linear_gaussian as exact
from ..linear_gaussian import Exact, Gaussian, Regression
from . import plots as exact_pictures

__all__ = [
    "COUNTS",
    "KINDS",
    "Case",
    "Estimate",
    "bound",
    "draw",
    "measure",
    "problem",
    "reproduce",
]

Array = NDArray[Any]
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # samples k; all divide the last
KINDS = ("IWAE", "Renyi 1/2", "EUBO")
REPEATS = 1000  # independent sets of as many samples as the last of COUNTS
AT_ONCE = 10  # of these sets in one pass through the model


class Estimate(NamedTuple):
    """A mean over `REPEATS` sets of samples and its standard error, in nats."""

    mean: float
    error: float


class Case(NamedTuple):
    """One q and what was measured with it; bounds less the log evidence, in nats."""

    name: str
    q: Gaussian
    elbo: float  # exact
    renyi: float  # exact, alpha = 1/2, of infinitely many samples
    eubo: float  # exact
    finite: bool  # whether the importance weights have a finite variance
    bounds: dict[str, tuple[Estimate, ...]]  # of each kind, at each of the counts
    steps: dict[str, tuple[Estimate, ...]]  # from one count to the next, same samples
    sampled_elbo: Estimate
    sampled_eubo: Estimate  # from samples of the posterior


def problem(seed: int = 0) -> Regression:
    """Draw 20 rows with two correlated inputs, small enough for the prior to be a q."""
    return exact.draw(np.random.default_rng(seed), rows=20, noise=0.5, prior=1.0)


def choices(truth: Exact, prior_scale: float) -> dict[str, Gaussian]:
    """Return the four q, from the prior to the posterior."""
    size = len(truth.precision)
    return {
        "the prior": Gaussian(np.zeros(size), prior_scale**2 * np.eye(size)),
        "reverse-KL mean field": exact.reverse_optimum(truth),
        "inclusive-KL mean field": exact.inclusive_optimum(truth),
        "full rank": truth.posterior,
    }


def place(data: Regression, q: Gaussian) -> tuple[Estimator, Array]:
    """Return an estimator whose family has `q`, and the theta that is `q`."""
    if np.array_equal(q.covariance, np.diag(np.diag(q.covariance))):
        family = MeanField()
        return Reparameterised(data.model, family), family.pack(q.mean, q.deviation)
    full = FullRank()
    return Reparameterised(data.model, full), full.pack(q.mean, q.covariance)


def draw(
    data: Regression,
    q: Gaussian,
    rng: np.random.Generator,
    repeats: int = REPEATS,
    most: int = COUNTS[-1],
) -> Array:
    """Return log weights (repeats, most) of samples from `q`, by the library's own pass."""
    estimator, theta = place(data, q)
    rows = []
    for start in range(0, repeats, AT_ONCE):
        sets = min(AT_ONCE, repeats - start)
        terms = exact.log_densities(estimator, theta, estimator.draw(rng, sets * most), data)
        rows.append(log_weights(terms, 1.0).reshape(sets, most))
    return np.concatenate(rows)


def draw_posterior(
    data: Regression, q: Gaussian, truth: Exact, rng: np.random.Generator, samples: int
) -> Array:
    """Return log P(w, D) - log q(w) (S,) of weights drawn from the posterior.

    Noise is an argument: eps = (w - mu) / sigma, or L^-1 (w - mu), makes any w we like.
    """
    estimator, theta = place(data, q)
    factor = np.linalg.cholesky(truth.posterior.covariance)
    w = truth.posterior.mean + rng.standard_normal((samples, len(q.mean))) @ factor.T
    noise = np.linalg.solve(np.linalg.cholesky(q.covariance), (w - q.mean).T).T
    return log_weights(exact.log_densities(estimator, theta, noise, data), 1.0)


def bound(kind: str, logs: Array, count: int) -> Array:
    """Return the bound of `count` samples, averaged over the sets that each row holds.

    Rows keep their samples at every `count`, so differences between counts have the Monte
    Carlo error of the difference alone.

    Parameters
    ----------
    kind : {'IWAE', 'Renyi 1/2', 'EUBO'}
    logs : ndarray (R, k_max)
        Log weights.
    count : int
        k; divides k_max.

    Returns
    -------
    ndarray (R,)
    """
    sets = logs.reshape(len(logs), -1, count)
    if kind == "EUBO":
        shares = np.exp(sets - logsumexp(sets, keepdims=True))
        return np.sum(shares * sets, axis=-1).mean(axis=1)
    order = {"IWAE": 1.0, "Renyi 1/2": 0.5}[kind]  # 1 - alpha
    return ((logsumexp(order * sets) - np.log(count)) / order).mean(axis=1)


def estimate(values: Array) -> Estimate:
    """Return the mean of independent values and its standard error."""
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def measure(
    data: Regression, name: str, q: Gaussian, truth: Exact, rng: np.random.Generator
) -> Case:
    """Estimate every bound for one q."""
    logs = draw(data, q, rng) - truth.log_evidence
    bounds, steps = {}, {}
    for kind in KINDS:
        values = [bound(kind, logs, count) for count in COUNTS]
        bounds[kind] = tuple(map(estimate, values))
        steps[kind] = tuple(estimate(after - before) for before, after in pairwise(values))
    above = draw_posterior(data, q, truth, rng, 100 * REPEATS) - truth.log_evidence
    spread = 2.0 * truth.precision - np.linalg.inv(q.covariance)
    return Case(
        name,
        q,
        exact.elbo(truth, q) - truth.log_evidence,
        exact.renyi(truth, q, 0.5) - truth.log_evidence,
        exact.eubo(truth, q) - truth.log_evidence,
        bool(np.linalg.eigvalsh(spread).min() > 0.0),
        bounds,
        steps,
        estimate(logs.mean(axis=1)),
        estimate(above),
    )


def one_sample_gap(data: Regression, q: Gaussian, rng: np.random.Generator) -> float:
    """Return the largest difference of the EUBO of one sample and its ELBO (G6)."""
    estimator, theta = place(data, q)
    terms = exact.log_densities(estimator, theta, estimator.draw(rng, 1000), data)
    singles = [LogDensities(*(term[s : s + 1] for term in terms)) for s in range(1000)]
    return max(abs(EUBO()(one, 1.0)[0] + free_energy(one, 1.0)[0]) for one in singles)


def reproduce(out: Path, seed: int = 0) -> str:
    """Measure, write ``evidence-bounds.png``, ``.json`` and ``.txt``, and return the text.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
        Of the data and of all samples.
    """
    data_rng_seed, *seeds = np.random.SeedSequence(seed).spawn(6)
    data = problem(int(data_rng_seed.generate_state(1)[0]))
    truth = exact.exact(data)
    rngs = [np.random.default_rng(s) for s in seeds]
    asked = choices(truth, 1.0)
    cases = [
        measure(data, name, q, truth, rng)
        for (name, q), rng in zip(asked.items(), rngs[:-1], strict=True)
    ]
    gap = max(one_sample_gap(data, case.q, rngs[-1]) for case in cases)
    text = _text(cases, truth, data, gap)
    out.mkdir(parents=True, exist_ok=True)
    exact_pictures.bounds(cases, COUNTS).savefig(out / "evidence-bounds.png", dpi=100)
    (out / "evidence-bounds.txt").write_text(text + "\n", encoding="utf-8")
    rows = [{**case._asdict(), "q": [part.tolist() for part in case.q]} for case in cases]
    found = {"log_evidence": truth.log_evidence, "counts": COUNTS, "cases": rows}
    (out / "evidence-bounds.json").write_text(
        json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    return text


def _text(cases: list[Case], truth: Exact, data: Regression, gap: float) -> str:
    rows, d_in = data.x.shape
    lines = [
        f"Linear regression, {rows} rows, {d_in} correlated inputs and a bias: log evidence "
        f"{truth.log_evidence:.4f} nats.",
        "Below: bounds less the log evidence, in nats; in brackets the standard error of the last "
        f"digits,\nfrom {REPEATS} sets of {COUNTS[-1]} samples. 'EUBO' is the self-normalised "
        "estimate from samples of q.",
    ]
    for case in cases:
        lines += ["", *_case_text(case)]
    lower = [abs(c.sampled_elbo.mean - c.elbo) / _floor(c.sampled_elbo) for c in cases]
    upper = [abs(c.sampled_eubo.mean - c.eubo) / _floor(c.sampled_eubo) for c in cases]
    inexact = [c for c in cases if c.eubo > 1e-9]  # where q is the posterior all bounds are equal
    rises = [s.mean / _floor(s) for c in inexact for kind in KINDS for s in c.steps[kind]]
    limits = [dict(zip(KINDS, (0.0, c.renyi, c.eubo), strict=True)) for c in inexact]
    past = [
        (b.mean - limit[kind]) / _floor(b)
        for c, limit in zip(inexact, limits, strict=True)
        for kind in KINDS
        for b in c.bounds[kind]
    ]
    narrow = cases[1]
    last = narrow.bounds["EUBO"][-1]
    lines += [
        "",
        "In standard errors:",
        f"  sampled against exact ELBO: at most {max(lower):.1f}; against exact EUBO, sampled from "
        f"the posterior: {max(upper):.1f};",
        f"  the smallest rise of a bound from one k to the next, on the same samples: "
        f"{min(rises):+.1f};",
        "  the furthest above its limit (log evidence, exact Renyi bound, EUBO): "
        f"{max(past):+.1f}.",
        f"With one sample the EUBO estimate is the ELBO's, sample by sample: largest difference "
        f"{gap:.0e} nats.",
        f"It is low for every number M of samples. For the {narrow.name} it is below the log "
        f"evidence\nup to M = {_passes(narrow)}, and at M = {COUNTS[-1]} still "
        f"{narrow.eubo - last.mean:.2f} nats below the EUBO.",
    ]
    return "\n".join(lines)


def _passes(case: Case) -> int:
    """Return the largest count at which the estimate of the upper bound is still below 0."""
    below = [k for k, b in zip(COUNTS, case.bounds["EUBO"], strict=True) if b.mean < 0.0]
    return max(below, default=0)


def _floor(found: Estimate) -> float:
    return max(found.error, 1e-12)


def _case_text(case: Case) -> list[str]:
    if case.eubo < 1e-9:
        every = [b.mean for kind in KINDS for b in case.bounds[kind]]
        far = max(map(abs, [case.elbo, case.eubo, *every]))
        return [f"q: {case.name}, the posterior itself: all bounds at all k within {far:.0e}."]
    columns = {"k": [str(k) for k in COUNTS]}
    for kind in KINDS:
        columns[kind] = [concise(*b) for b in case.bounds[kind]]
    short = [concise(case.eubo - b.mean, b.error) for b in case.bounds["EUBO"]]
    columns["below its limit"] = short
    widths = {name: max(map(len, [name, *cells])) for name, cells in columns.items()}
    head = "  ".join(name.rjust(width) for name, width in widths.items())
    spread = "finite" if case.finite else "infinite"
    return [
        f"q: {case.name}. Exact ELBO {case.elbo:+.4f}, Renyi 1/2 {case.renyi:+.4f}, EUBO "
        f"{case.eubo:+.4f};\nvariance of the importance weights {spread}.",
        head,
        *(
            "  ".join(cell.rjust(w) for cell, w in zip(row, widths.values(), strict=True))
            for row in zip(*columns.values(), strict=True)
        ),
    ]


def concise(value: float, error: float, most: int = 9) -> str:
    """Return ``value(error)``, the error in units of the last digit: 0.123(4) is 0.123 +- 0.004.

    With at most `most` decimals; an error below the last of them is left out.

    >>> concise(0.12345, 0.0042), concise(12.3, 1.4), concise(0.0, 0.0)
    ('0.123(4)', '12(1)', '0')
    """
    if error < 1e-12:  # rounding alone
        return "0" if abs(value) < 1e-9 else f"{value:.4g}"
    if error < 0.5 * 10.0**-most:
        return f"{value:.{most}f}"
    places = min(max(-int(np.floor(np.log10(error))), 0), most)
    if round(error * 10**places) == 10:  # 0.0096 rounds to one unit more
        places = max(places - 1, 0)
    return f"{value:.{places}f}({max(round(error * 10**places), 1)})"
