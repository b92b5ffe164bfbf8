"""The index of terms: where the chapters explain each one. generated.py writes docs/terms.md."""

import posixpath
import re
from functools import cache
from typing import NamedTuple

from project.book import ENTRIES, PAGES, outside_fences, slug, without_foot

PAGE = "docs/terms.md"
# A term, and the equation (or heading) that explains it; without one, the first section that
# emphasises the term.
TERMS = {
    "acceptance probability": "M6", "activation": "D51", "Adam": "D3", "aleatoric": "D4",
    "anchored": "", "annealed importance sampling": "", "antithetic noise": "D23", "aperiodic": "",
    "arc-cosine kernel": "D81", "automatic differentiation variational inference": "",
    "automatic relevance determination": "D67", "backpropagation": "K31", "baseline": "D20",
    "Bayes factor": "M20", "Bayes' rule": "", "black-box variational inference": "D20",
    "Brier score": "D35", "calibration error": "D35", "certificate": "", "ChEES-HMC": "",
    "Chernoff's bound": "", "Cholesky": "M1", "cold posteriors": "", "complex step": "D9",
    "complexity cost": "R1", "condition number": "", "conditioning": "D66", "conformal": "",
    "conjugate": "", "continuous ranked probability score": "", "control variate": "",
    "cotangent": "", "covariance": "", "coverage": "D35", "cross entropy": "W1",
    "decoherence length": "", "deep ensemble": "", "detailed balance": "M5", "dispersion": "D70",
    "divergence": "M10", "doubly reparameterised": "D26", "dual averaging": "", "dual numbers": "",
    "effective sample size": "", "energy": "M7", "entropy": "D29", "epistemic": "D4",
    "evidence": "", "evidence lower bound": "", "evidence upper bound": "", "excess kurtosis": "",
    "exchangeable": "", "expectation-maximisation": "R6", "exposure": "D72", "features": "",
    "finite field": "D44", "Fisher matrix": "", "Fisher's identity": "D27", "Flipout": "D22",
    "free energy": "", "full rank": "D19", "gate": "", "Gauss-Newton": "D54",
    "Gaussian process": "D81", "Hadamard's inequality": "", "half-Cauchy": "D32",
    "Hamiltonian Monte Carlo": "", "hyperprior": "", "importance weights": "",
    "importance-weighted bound": "D25", "inclusive": "", "interval score": "D35",
    "irreducible": "", "IVON": "D62", "Jensen's inequality": "", "Kalman gain": "D56",
    "kernel": "", "Kronecker": "", "Kullback-Leibler divergence": "", "Langevin's proposal": "M6",
    "Laplace distribution": "D16", "law of total variance": "", "leapfrog": "M8",
    "learned noise": "D1", "leverage": "D74", "likelihood": "", "likelihood cost": "",
    "linearised": "D54", "local reparameterisation": "D21", "log link": "",
    "log predictive density": "D5", "log-normal": "", "logit": "", "MAMS": "D49",
    "marginal density": "G1", "Markov's inequality": "D57", "maximum a posteriori": "",
    "maximum likelihood": "", "MC dropout": "", "MCLMC": "", "mean field": "", "metric": "",
    "microcanonical": "D48", "minibatch": "K18", "mixture": "R4", "momentum": "D2",
    "Monte Carlo standard error": "How well is the mean known? The Monte Carlo standard error",
    "mutual information": "D29", "nat": "", "natural gradient": "", "natural parameters": "D62",
    "negative binomial": "D70", "no-U-turn sampler": "M9", "normal distribution": "K1",
    "Occam's razor": "M21", "offset": "D72", "pairing": "", "Poisson": "D15", "posterior": "",
    "precision": "", "predictive check": "", "prior": "", "probability integral transform": "D35",
    "proposal": "", "pruning": "D36", "quantile": "D46", "R-hat": "Do the chains agree? R-hat",
    "region of highest density": "", "reliability": "D35", "Rényi bound": "",
    "reparameterised": "K4", "replicates": "D40", "responsibility": "", "score": "", "sigmoid": "",
    "signal-to-noise ratio": "", "slice": "D52", "softmax": "D25", "softplus": "",
    "stability": "D66", "stationary": "M5", "Stein's identity": "D20",
    "sticking the landing": "D20", "stochastic gradient Langevin dynamics": "",
    "stochastic variational inference": "D63", "Student's t": "D41", "surrogate": "D20",
    "SWAG": "D80", "temperature": "", "tempering": "", "test quantity": "",
    "Thompson sampling": "D56", "typical set": "", "U-turn": "M9", "variational online Newton": "",
    "warm-up": "", "weight decay": "", "Welford's algorithm": "M12", "Woodbury": "D69",
}  # fmt: skip


class Place(NamedTuple):
    """Where a term is explained."""

    page: str
    anchor: str
    label: str


class Section(NamedTuple):
    """The words of one section, without pictures, code and links."""

    place: Place
    text: str


@cache
def sections() -> list[Section]:
    """Return the sections of all chapters but the errata, in the order of the contents."""
    found = []
    for page, markdown in PAGES.items():
        if page == "derivations/errata.md":
            continue
        place = Place(page, "", markdown[2:].splitlines()[0])
        words: list[str] = []
        for line in [*outside_fences(without_foot(markdown)), "## "]:
            heading = re.match(r"## (.*)", line)
            if heading:
                text = re.sub(r"!?\[([^\[\]]*)\]\([^()]*\)", r"\1", " ".join(words))
                found.append(Section(place, " ".join(text.split())))
                title = heading[1]
                tag = re.match(r"([A-Z]\d+): ", title)
                label = tag[1] if tag else re.sub(r"^\d+\. ", "", title)
                place, words = Place(page, slug(title), label), [title]
            elif not line.startswith("!["):
                words.append(line)
    return found


def place_of(term: str, tag: str) -> Place:
    """Return where a term is explained: at its equation, or where it is first emphasised."""
    if tag.startswith("K"):
        (entry,) = [entry for entry in ENTRIES if entry.tag == tag]
        return Place(entry.page, tag.lower(), tag)
    for section in sections():
        emphasised = re.search(rf"\*{re.escape(term)}s?\*", section.text, re.IGNORECASE)
        if section.place.label == tag or (not tag and emphasised):
            return section.place
    raise ValueError(f"no section emphasises *{term}*: name the equation that explains it")


def index() -> str:
    """Return the index, a line for each initial."""
    by_initial: dict[str, list[str]] = {}
    for term in sorted(TERMS, key=lambda term: term.replace("é", "e").lower()):
        place = place_of(term, TERMS[term])
        target = posixpath.relpath(place.page, posixpath.dirname(PAGE))
        target += f"#{place.anchor}" if place.anchor else ""
        label = place.label if re.fullmatch(r"[A-Z]\d+", place.label) else f"({place.label})"
        by_initial.setdefault(term[0].upper(), []).append(f"[{term}]({target}) {label}")
    return "\n".join(f"- {' · '.join(entries)}" for entries in by_initial.values())


def with_terms(text: str) -> str:
    """Return docs/terms.md with the index between its two marks."""
    head, tail = text.split("<!-- terms -->\n")
    foot = tail.partition("<!-- end of terms -->")[2]
    return f"{head}<!-- terms -->\n{index()}\n<!-- end of terms -->{foot}"
