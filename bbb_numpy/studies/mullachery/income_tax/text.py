"""What the income tax study says in words; every verdict follows from numbers beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np

from bbb_numpy.studies.comparing import table

__all__ = ["summarise"]

NUTS_NAME, VI_NAME = "network, noise by cell, NUTS", "network, noise by cell, VI"


def summarise(facts: Mapping[str, Any], numbers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text: a table, and what follows from it."""
    dropped = "; ".join(f"{count} {reason}" for reason, count in facts["dropped"].items())
    head = (
        f"Income tax per return, Vermont 2016: {facts['cells']} cells (ZIP code x class of income) "
        f"of {facts['places']} ZIP codes, {facts['lowest tax']:.2f} to {facts['highest tax']:.0f} "
        f"thousand USD, {facts['inputs']} inputs. Rows left out: {dropped}. Target: the logarithm. "
        "Five folds, every ZIP code whole."
    )
    lines = [
        [
            name,
            f"{n['rmse']:.4f}",
            f"{n['median relative error']:.1%}",
            f"{n['nll'][0]:.3f} +- {n['nll'][1]:.3f}",
            f"{1e3 * n['crps'][0]:.1f} +- {1e3 * n['crps'][1]:.1f}",
            *(f"{n['coverage'][level]:.1%}" for level in ("50", "90", "99")),
            f"{n['coverage 90, small cells']:.0%}, {n['coverage 90, large cells']:.0%}",
            f"{n['kolmogorov']:.1f}",
        ]
        for name, n in numbers.items()
    ]
    columns = (
        "",
        "RMSE",
        "median",
        "NLL",
        "CRPS 1e-3",
        "50 %",
        "90 %",
        "99 %",
        "small, large",
        "KS",
    )
    notes = (
        "RMSE, CRPS: of the logarithm, about relative errors; median: of the absolute relative "
        "error. NLL: nats per cell, of the logarithm of the tax. +- is a standard error, clustered "
        f"by ZIP code. 50, 90, 99 %: coverage; small, large: 90 % coverage in the "
        f"{facts['small cells']} cells of 50 returns or less and in the {facts['large cells']} of "
        "more than 200. KS: Kolmogorov's distance of the PIT from uniform times sqrt(cells), 1.36 "
        "at 5 % if cells were independent."
    )
    parts = [fill(head, 98), table(columns, lines), fill(notes, 98)]
    return "\n\n".join(parts + [fill(part, 98) for part in _statements(numbers)])


def _statements(numbers: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    best, vi, linear = (numbers[name] for name in (NUTS_NAME, VI_NAME, "linear regression"))
    middle = numbers["linear, noise by cell, NUTS"]
    gained = best["nll gained"]
    noise = (
        f"Against linear regression the network with noise by cell gains {gained[0]:.3f} +- "
        f"{gained[1]:.3f} nats per cell ({_verdict(gained)}). Of this "
        f"{middle['nll gained'][0]:.3f} come from the noise alone, with a "
        "linear mean. In squared error it gains "
        f"{_pair(best['squared error gained'], 1e3, 2)} (1e-3; "
        f"{_verdict(best['squared error gained'])})."
    )
    size = (
        "Why the noise matters: RMSE is "
        f"{best['error, small cells']:.3f} in small cells and {best['error, large cells']:.3f} in "
        f"large ones, the learned noise (median) {best['noise, small cells']:.3f} and "
        f"{best['noise, large cells']:.3f}. With a linear mean and one noise for all, 90 % "
        f"intervals hold {linear['coverage 90, small cells']:.0%} "
        f"({_width(linear['coverage 90, small cells'])}) and "
        f"{linear['coverage 90, large cells']:.0%} ({_width(linear['coverage 90, large cells'])})."
    )
    compared = (
        f"VI against NUTS: median epistemic deviation {vi['epistemic']:.4f} and "
        f"{best['epistemic']:.4f}; NLL {vi['nll'][0]:.3f} and {best['nll'][0]:.3f}. "
        f"NUTS: {sum(note['divergences'] for note in best['notes']):.0f} divergences. "
        f"{_agreement(best['notes'])}"
    )
    known = (
        "What the posterior knows: the tax of an average return of a cell of this state and year, "
        "given what such returns state, and how far cells of this size and kind scatter."
    )
    ignorance = (
        "What it does not know: anything about single returns, since all is averaged over cells. "
        "The number of returns is an input of the noise, not a sampling variance in the "
        "likelihood, so that small cells are trusted only as far as the network has learned to "
        "distrust them. The cells that the IRS suppresses are the smallest; nothing is known of "
        "errors there. Some cells hold returns merged from another class, unmarked: "
        "incomes outside of their own class are their trace and the heavy tails their effect. "
        "Rows of one ZIP code are taken as independent. Other states and years: nothing. 'Last "
        "value' has no meaning for one year; climatology is the class mean."
    )
    return noise, size, compared, known, ignorance


def _agreement(notes: Sequence[Mapping[str, Any]]) -> str:
    """Say how far the chains agree on the functions, or why that is not known."""
    reasons = [note["why no r-hat"] for note in notes if "why no r-hat" in note]
    if reasons:
        return f"Whether its chains agree in function space is not judged: {reasons[0]}."
    largest, median = (
        np.array([note[f"r-hat, {which}"] for note in notes], float)
        for which in ("largest", "median")
    )
    largest, median = (np.where(np.isnan(one), np.inf, one) for one in (largest, median))
    mixed = (
        ""
        if largest.max() <= 1.05
        else (
            " Above 1.05 chains have not mixed: each still tells of its own mode, and the mixture "
            "of all is between a posterior and an ensemble."
        )
    )
    return (
        "R-hat of its chains in function space (rank-normalised, of halved chains), over the cells "
        f"of a fold: largest {largest.max():.2f} in the worst fold, {largest.min():.2f} in the "
        f"best; median {median.max():.2f} and {median.min():.2f}.{mixed}"
    )


def _width(share: float) -> str:
    return "too narrow" if share < 0.9 else "too wide"


def _verdict(pair: Sequence[float]) -> str:
    return "beyond 2 standard errors" if abs(pair[0]) > 2 * pair[1] else "within 2 standard errors"


def _pair(pair: Sequence[float], factor: float, digits: int) -> str:
    return f"{factor * pair[0]:.{digits}f} +- {factor * pair[1]:.{digits}f}"
