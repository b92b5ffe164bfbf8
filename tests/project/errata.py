r"""What derivations/errata.md accuses a source of, the source prints: words and formulas.

Of every row the words in quotation marks, and of every formula the piece below, must occur in the
text of the source (white space, case and mark-up aside), and so must the words that the boxes "As
printed" of the book put into quotation marks. The texts are not part of this repository: they are
looked for in the folder that BBB_NUMPY_SOURCES names, else in ../shared/seeds beside it.
"""

import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOOK = [ROOT / "derivations.md", *sorted((ROOT / "derivations").glob("*.md"))]
SEEDS = Path(os.environ.get("BBB_NUMPY_SOURCES") or ROOT.parent / "shared/seeds")
SECTIONS = {"report": "K", "post": "R", "slides": "W", "2018": "M", "2020": "G"}
FILES = {"K": "003", "R": "001", "W": "004", "M": "002", "G": "000"}
ELLIPSIS = "[...]"
GREEK = {"α": "alpha", "β": "beta", "ϵ": "epsilon", "θ": "theta", "μ": "mu", "π": "pi"}
GREEK |= {"ρ": "rho", "σ": "sigma", "Σ": "Sigma", "∑": "sum"}

# Of rows that accuse a formula: where the row says it is, and the formula as the text of the
# source has it. Several rows of one place need a piece each.
FORMULAS = {
    "K": [
        ("Section 2", r"$\epsilon \sim N(0, 0.02)$", r"$\epsilon \sim N(0, 9)$"),
        ("K5", r"\sum_{i=1}^n \log q(\mathbf{w}^{(i)}|\theta) - \log P(\mathbf{w}^{(i)})"),
        ("K6-K13", r"\log \left(\frac{1}{\sigma^{(i)}\sqrt{2\pi}} e^{-\frac{(\mathbf{w}^{(i)}"),
        ("K8", r"\log 1 - \log \sigma^{(i)} - \frac{1}{2} \log 2\pi - \frac{(\mathbf{w}^{(i)} - "),
        ("K14-K16", r"-\frac{1}{2}(y-\hat{y})^2 \quad (16)"),
        ("K17", r"F(D, \theta) = \sum_{i=1}^n -\log \sigma^{(i)} - \frac{1}{2}\epsilon^2"),
        ("K17, K18", r"+ \frac{1}{2}(\mathbf{w}^{(i)})^2 + \frac{1}{2}(y-\hat{y})^2 \quad (17)"),
        ("K17", r"\frac{1}{2}(\mathbf{w}^{(i)})^2"),
        ("K18", r"[-\log \sigma^{(i)} - \log \sigma_{data} - \frac{1}{2}\epsilon^2"),
        ("K18", r"F(D^{(i)}, \theta^{(i)}) = \frac{1}{n}"),
        (
            "K18-K30",
            r"\frac{\partial F(D^{(i)}, \theta^{(i)})}{\partial \mu^{(i)}}",
            r"\sigma^{(i)}",
        ),
        ("K5, K17; K18; K35-K42", r"\sum_{i=1}^n", r"\frac{1}{n}", r"ReLU(z_{n-1}) = a_{n-1}"),
        (
            "K19, K21, K27, K29, K30",
            r"\frac{1}{n} \frac{\mathbf{w}^{(i)}}{\sigma_{data}^2} + \frac{\partial P(D^{(i)} |",
            r"\frac{\partial P(D^{(i)}|\mathbf{w}^{(i)})}{\partial \rho^{(i)}} =",
        ),
        ("K3, K25", r"\sigma = \log(1 + e^\rho) \quad (3)", r"\frac{1}{1 + e^{(-\rho^{(i)})}}"),
        ("K31, K33, K36", r"x_{train} * \mathbf{w}_0 + b_0", r"a_0 * \mathbf{w}_1", r"a_{n-1} *"),
        ("K37-K42", r"\frac{\partial P(D^{(i)}|\mathbf{b}_n^{(i)})}{\partial \mathbf{b}_n^{(i)}}"),
        ("K37, K39, K41", r"= -(y - \hat{y}) \quad (37)"),
        ("K38, K40, K42", r"= -(y - \hat{y}) a_{n-1} \quad (38)"),
        ("K39-K42", r"-(y - \hat{y}) \mathbf{w}_n^{(i)} [z_{n-1} > 0] \quad (39)"),
    ],
    "R": [
        ("`log_mixture_prior_prob`", "return K.log(comp_1_weight * comp_1_dist.prob(w) + (1 -"),
        ("`mixture_prior_params`", "params = K.variable([sigma_1, sigma_2, pi]"),
        ("`build`", "initializers.normal(stddev=prior_sigma)", "initializers.constant(0.0)"),
        ("`num_batches = train_size / batch_size`", "num_batches = train_size / batch_size"),
        ("Prediction", "y_pred = model.predict(X_test)", "set to $\\mathbf{0}$"),
        (
            "Appendix, line 1",
            r"p(\mathcal{D} \lvert \mathbf{w}) p(\mathbf{w})} p(\mathcal{D}) \\\\ &=",
        ),
        (
            "Appendix, last KL",
            r"\mathrm{KL}(q(\mathbf{w} \lvert \boldsymbol{\theta}) \mid\mid q(\mathbf{w}))",
        ),
    ],
    "W": [
        ("Probabilistic model", r"a training dataset  $D = (\mathbf{x}^{(i)}, y^{(i)})$"),
        (
            "Network training; step 1",
            r"$w \sim N(u, \sigma)$",
            r"1. Sample  $\epsilon \in N(0, I)$",
        ),
        (
            "Variational inference, second line",
            r"\frac{q(\mathbf{w}|\theta)}{P(\mathbf{w})P(\mathcal{D}|\mathbf{w})} d\mathbf{w}",
        ),
        ("Step 4", r"$f(w, \theta) = \log q(w|\theta) - \log P(w)P(D|w)$"),
        ("Path Loss model", r"y_i^{[\ell]} = P_T - P_0 - 10\lambda \log_{10}"),
    ],
    "M": [
        ("No-U-Turn Sampler", r"\left(\frac{d\theta'}{dt}\right)^T (\theta - \theta')"),
        (
            "first Figure 5",
            r"-\underbrace{(\mathbb{E}_q[\log p(\theta, x)])}_{\text{exp. log joint}} - "
            r"\underbrace{(\mathbb{E}_q[\log q])}",
        ),
        ("first Figure 5", r"\underbrace{(\mathbb{E}_q[\log q])}_{\text{entropy}}"),
        ("after the first Figure 6", r"$q(z) = \prod z_i$"),
        (r"$`\nabla_L \mathcal L`$", r"\right) \eta^{\top} \right] + (L^{-1})^{\top}"),
    ],
    "G": [
        ("Equation 2", r"&= \ln \int q_\phi(\mathbf{z}|\mathbf{x}) \frac{p_\theta(\mathbf{x}"),
        ("Equation 3", r"\phi_{t+1} = \phi_t + \gamma \sum_{i=1}^{\eta} \nabla_\phi \mathcal{L}"),
        (
            "Equation 5",
            r"\right) + 1 \right) \nabla_\lambda \log p \left( \mathcal{D}, g_\lambda \left( "
            r"\epsilon^{(i)} \right) \right) - \nabla_\lambda \log q \left( g_\lambda",
        ),
        ("Equation 6", r"\hat{S}^* = \sum_{i=1}^M \hat{w}^{(i)} \left[ \sum_{n=1}^N \log p"),
        ("Algorithm 1", r"$w^{(i)} = \exp(\log w^{(i)} + \min\{\log w^{(i)}\})$"),
        ("Algorithm 1", r"$\log w^{(i)} = \frac{N}{S} \sum_{n=1}^S \log p(x_n   \theta^{(i)})"),
        ("Algorithm 1", r"-\sum \hat{w}^{(i)} \nabla_\lambda \log q(g_\lambda(\epsilon^{(i)}))"),
        ("Algorithm 1", r"g_\lambda(\epsilon^{(i)}) = \mu + \sigma\epsilon^{(i)}"),
        ("Section 1", r"Energy	$0.74 \pm 0.08$	$0.95 \pm 0.15$	$0.51 \pm 0.01$"),
    ],
}


class Row(NamedTuple):
    """One accusation."""

    source: str
    where: str
    printed: str


def rows(errata: str) -> list[Row]:
    """Return the rows of the tables of errata.md, with the letter of their source."""
    found = []
    for heading, body in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", errata, re.M | re.S):
        letter = next((tag for name, tag in SECTIONS.items() if name in heading), None)
        table = [line for line in body.splitlines() if line.startswith("|")]
        if letter:
            cells = [re.split(r" ?(?<!\\)\| ?", line)[1:-1] for line in table[2:]]
            assert all(len(one) == 4 for one in cells), cells
            found += [Row(letter, one[0], one[1]) for one in cells]
    return found


def quotations(text: str) -> list[str]:
    """Return what stands in quotation marks, in pieces where something was left out."""
    quoted = re.findall(r'"([^"]+)"', text)
    return [piece for quote in quoted for piece in quote.split(ELLIPSIS) if piece.strip()]


def bare(text: str) -> str:
    """Return `text` without white space, case and mark-up, Greek letters by their names."""
    for letter in set(text) & set(GREEK):
        text = text.replace(letter, GREEK[letter])
    return re.sub(r"[\s$`\\{}'*]|\*\*", "", text).lower()


def missing(pieces: list[str], source: str) -> list[str]:
    """Return the pieces that do not occur in the text of a source."""
    within = bare(source)
    return [piece for piece in pieces if bare(piece).rstrip(".,") not in within]


def pieces_of_rows(errata: list[Row], letter: str) -> list[tuple[Row, list[str]]]:
    """Return the rows of one source, each with its quotations and the formulas named above."""
    formulas = list(FORMULAS[letter])  # those of one place in the order of its rows, each once
    found = []
    for row in errata:
        if row.source == letter:
            known = next((one for one in formulas if one[0] == row.where), ())
            if known:
                formulas.remove(known)
            found.append((row, [*quotations(row.printed), *known[1:]]))
    assert not formulas, f"formulas of rows that errata.md does not have: {formulas}"
    return found


def boxes(page: str) -> list[tuple[str, str]]:
    """Return the tag and the text of each box "As printed"."""
    tag, found = "", []
    marks = r"^#+ ([A-Z]\d+):|<summary>As printed</summary>(.*?)</details>"
    for heading in re.finditer(marks, page, re.M | re.S):
        if heading[1]:
            tag = heading[1]
        else:
            found.append((tag, re.sub(r"```.*?```", "", heading[2], flags=re.S)))
    return found


@cache
def source(letter: str) -> str:
    """Return the text of a source, or skip."""
    found = sorted(SEEDS.glob(f"{FILES[letter]}_*.txt"))
    if not found:
        pytest.skip(f"no text of the source {letter} in the folder that BBB_NUMPY_SOURCES names")
    return found[0].read_text()


ERRATA = (ROOT / "derivations/errata.md").read_text()
HALVES = [(path.name, tag, text) for path in BOOK for tag, text in boxes(path.read_text())]
