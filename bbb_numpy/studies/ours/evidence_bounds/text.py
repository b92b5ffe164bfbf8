"""What the study of bounds prints; every number comes from the run."""

from __future__ import annotations

from bbb_numpy.studies.linear_gaussian import Exact, Regression

from ..estimates import Estimate, concise
from .scores import COUNTS, KINDS, REPEATS, Case

__all__ = ["summarise"]


def summarise(cases: list[Case], truth: Exact, data: Regression, gap: float) -> str:
    """Return a table of bounds for every q, then what they show; at most 100 columns."""
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
