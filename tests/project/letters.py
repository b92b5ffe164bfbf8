"""Read the letters of the book's formulas, and what docs/notation.md says that they mean."""

import re
from collections.abc import Iterator

from project.book import outside_fences, slug, without_foot

GREEK = {
    *("alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "kappa"),
    *("lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "varphi", "chi", "psi"),
    *("omega", "ell", "iota", "upsilon", "vartheta", "varrho", "varsigma", "varpi", "Upsilon"),
    *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega"),
}
FORMULA = re.compile(r"^```math\n(.*?)^```|\$`(.+?)`\$", re.DOTALL | re.MULTILINE)
PRINTED = re.compile(
    r"<details><summary>As printed.*?</details>", re.DOTALL
)  # in the letters of the source
WORD = re.compile(r"\\(?:begin|end|text|mathrm|texttt)\s*\{[^{}]*\}|\\quad|\\qquad")
INDEX = re.compile(r"_\s*(?:\{(?:[^{}]|\{[^{}]*\})*\}|\\[A-Za-z]+(?:\{[^{}]*\})?|.)")
COUNTED = re.compile(r"\[[a-z](?:,\s*[a-z])*\]|\^\{?\\top\}?|\^\{?\([^()]*\)\}?")  # z[b, h], x^(i)
ALPHABET = re.compile(r"\\(mathcal|mathsf|mathbf|mathbb)\s*\{?\s*([A-Za-z])\}?")
TOKEN = re.compile(r"\\[A-Za-z]+|[A-Za-z]+")


def letters(formula: str) -> Iterator[str]:
    """Yield the letters of a formula as LaTeX has them, without subscripts and words."""
    plain = COUNTED.sub(" ", INDEX.sub(" ", WORD.sub(" ", formula)))
    for alphabet, letter in ALPHABET.findall(plain):
        yield rf"\{alphabet} {letter}"
    for token in TOKEN.findall(ALPHABET.sub(" ", plain)):
        if token[0] == "\\":
            if token[1:] in GREEK:
                yield token
        elif len(token) < 3:  # dw is two letters, epochs a word
            yield from token


def letters_by_section(markdown: str) -> dict[str, set[str]]:
    """Return the letters of the formulas below each heading, by the heading's anchor, in order.

    What stands below the last rule of a chapter, its summary, is in no section.
    """
    without = PRINTED.sub("", without_foot(markdown))
    free = outside_fences(without)
    name = ""
    text_by_section = {name: ""}
    for line, outside in zip(without.splitlines(), free, strict=True):
        heading = re.match(r"#{2,4} (.*)", outside)
        if heading:
            name = slug(heading[1])
            text_by_section[name] = ""
        text_by_section[name] += line + "\n"
    return {
        name: {each for pair in FORMULA.findall(text) for each in letters(pair[0] or pair[1])}
        for name, text in text_by_section.items()
    }
