"""The tables of the study of bounds."""

from __future__ import annotations

from ...comparing import Claim, claims, listed, table
from ..estimates import Estimate, concise
from .scores import COUNTS, KINDS, REPEATS, Case, Study

__all__ = ["claims_of_the_derivations", "lay_out"]

EQUAL = 1e-9  # nats: where q is the posterior all bounds are the log evidence
SEEN = 4.0  # standard errors that a bound may be past its limit by chance


def lay_out(found: Study) -> str:
    """Return every number that is printed, and which results of the derivations are seen."""
    rows, d_in = found.data.x.shape
    exact = listed(
        f"Exact, less log evidence (nats); below, {REPEATS} sets of {COUNTS[-1]} samples.",
        f"{rows} rows, {d_in} inputs, a bias; log evidence {found.log_evidence:.4f}",
        ((f"q: {case.name}", case) for case in found.cases),
        {
            "ELBO": lambda case: f"{case.elbo + 0.0:+.4f}",
            "Renyi 1/2": lambda case: f"{case.renyi + 0.0:+.4f}",
            "EUBO": lambda case: f"{case.eubo + 0.0:+.4f}",
            "variance of weights": lambda case: "finite" if case.finite else "infinite",
        },
    )
    judged = "'EUBO' is the self-normalised estimate from samples of q."
    bounds = [_bounds(case) for case in found.cases if case.eubo > EQUAL]
    seen = claims(judged, "derivations.md", claims_of_the_derivations(found))
    return "\n\n".join([exact, *bounds, seen])


def _bounds(case: Case) -> str:
    rows = []
    for k, *bounds in zip(COUNTS, *(case.bounds[kind] for kind in KINDS), strict=True):
        short = concise(case.eubo - bounds[-1].mean, bounds[-1].error)
        rows.append([str(k), *(concise(*bound) for bound in bounds), short])
    caption = f"q: {case.name}. Bounds of k samples, less the log evidence (nats)."
    return f"{caption}\n\n{table(('k', *KINDS, 'EUBO below its limit'), rows)}"


def claims_of_the_derivations(found: Study) -> list[Claim]:
    """Compare with what D25, D28 and G6 say must come out."""
    inexact = [c for c in found.cases if c.eubo > EQUAL]
    lower = max(_errors(c.sampled_elbo, c.elbo) for c in found.cases)
    upper = max(_errors(c.sampled_eubo, c.eubo) for c in found.cases)
    rise = min(_errors(s, 0.0, True) for c in inexact for kind in KINDS for s in c.steps[kind])
    past = max(
        _errors(b, limit, True)
        for c in inexact
        for kind, limit in zip(KINDS, (0.0, c.renyi, c.eubo), strict=True)
        for b in c.bounds[kind]
    )
    equal = max(
        abs(value)
        for c in found.cases
        if c.eubo <= EQUAL
        for value in (c.elbo, c.eubo, *(b.mean for kind in KINDS for b in c.bounds[kind]))
    )
    narrow = found.cases[1]
    below = [k for k, b in zip(COUNTS, narrow.bounds["EUBO"], strict=True) if b.mean < 0.0]
    crossed, gap = max(below, default=0), found.gap
    above = f"the EUBO is above the evidence, {narrow.name}"
    return [
        Claim("sampled ELBO, every q", "the exact one", "", lower),
        Claim("sampled EUBO, from the posterior, every q", "the exact one", "", upper),
        Claim("a bound rises with k (least, s.e.)", "> 0", f"{rise:+.1f}", rise > 0),
        Claim("and stays below its limit (furthest, s.e.)", "<= 0", f"{past:+.1f}", past < SEEN),
        Claim("q the posterior: all bounds at all k (nats)", "0", f"{equal:.0e}", equal < EQUAL),
        Claim("the EUBO of one sample less its ELBO (nats)", "0", f"{gap:.0e}", gap == 0),
        Claim(above, "every k", f"below to k = {crossed}", crossed == 0),
    ]


def _errors(found: Estimate, value: float, signed: bool = False) -> float:
    """Return how many standard errors an estimate is away from a value."""
    away = (found.mean - value) / max(found.error, 1e-12)
    return away if signed else abs(away)
