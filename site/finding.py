"""The search: what site/static/find.js looks through, and the page that shows what it finds.

The book comes first, then what stands beside it, then the reference; files are not searched. All is
in one script, so that pages opened from a folder have it too.
"""

import html
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from formulas import mathml
from sphinx import addnodes

BOOK, BESIDE, REFERENCE = range(3)
LEFT_OUT = re.compile(
    r"index|tags/|api/index|CHANGELOG|SECURITY|CONTRIBUTING|benchmarks/README|proofs"
)
MARK = re.compile(r" ?∎ [A-Z]\d+")
ANCHOR = re.compile(r'<a id="([a-z]\d+)">')
SILENT = (nodes.raw, nodes.comment, nodes.literal_block, addnodes.toctree, addnodes.desc)
# What the field calls an entry of the book
OTHER_NAMES = {
    "K4": "reparameterization, reparameterization trick, pathwise gradient",
    "K5": "ELBO, evidence lower bound, variational free energy, variational inference",
    "D21": "local reparameterization trick",
    "D18": "KL divergence of two Gaussians, analytic KL",
    "W3": "score function estimator, REINFORCE, log-derivative trick",
    "D25": "IWAE, importance-weighted autoencoder, alpha divergence",
    "D26": "DReG",
    "D24": "KL annealing, cold posterior, warm-up",
    "D4": "aleatoric and epistemic uncertainty, law of total variance",
    "D12": "heteroscedastic noise",
    "D35": "calibration, ECE, expected calibration error",
    "D54": "Laplace approximation, GGN, Gauss-Newton",
    "M7": "HMC, Hybrid Monte Carlo",
    "M10": "NUTS, No-U-Turn sampler",
    "M12": "mass matrix, preconditioning",
    "M20": "AIS, marginal likelihood",
    "D62": "IVON, natural gradient",
    "D63": "SVI, stochastic variational inference",
    "D64": "SGHMC, SGLD, stochastic gradient Langevin dynamics",
    "D9": "gradient checking, finite differences, complex step",
    "R4": "spike and slab, scale mixture prior",
}


def plain(node: nodes.Node) -> str:
    """Return the text of a part of a page, its formulas in short."""
    if isinstance(node, nodes.math | nodes.math_block):
        if re.search(r"[\^_&]|\\[a-z]*(?:frac|sqrt)", node.astext()):
            return "…"  # which says nothing without its shape
        return html.unescape(re.sub(r"<[^>]*>", "", mathml(node.astext(), display=False)))
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, SILENT):
        return ""
    between = "" if isinstance(node, nodes.TextElement) else " "
    return between.join(filter(None, map(plain, node.children)))


def group_of(page: str) -> int:
    """Return the group in which the search shows a page: book, beside it, or reference."""
    if page.startswith("api/"):
        return REFERENCE
    if re.match(r"derivations|docs/choosing", page):
        return BOOK
    return BESIDE


def sections_of(page: str, tree: nodes.document, titles: dict[str, str]) -> list[list[Any]]:
    """Return group, address, title, page, other names and text of each section or definition.

    An equation is a part of its own where it has an anchor; `titles` are those of its page.
    """
    sections: list[list[Any]] = []
    head = next((plain(title) for title in tree.findall(nodes.title)), page)
    for section in tree.findall(nodes.section):
        title = plain(section.next_node(nodes.title) or nodes.Text(""))
        tag = re.match(r"([A-Z]\d+): |", title)[1]  # type: ignore[index]
        names = OTHER_NAMES.get(tag, "") if group_of(page) == BOOK else ""
        current = [[group_of(page), f"{page}.html#{section['ids'][0]}", title, head, names, []]]
        sections += current
        for child in section:
            if isinstance(child, nodes.section | nodes.title):
                continue
            named = [a for raw in child.findall(nodes.raw) for a in ANCHOR.findall(raw.astext())]
            anchors = [a for a in named if a.upper() != tag]
            if anchors:
                where = f"{page}.html#"
                current = [
                    [BOOK, where + a, titles.get(a, a), head, OTHER_NAMES.get(a.upper(), ""), []]
                    for a in anchors
                ]
                sections += current
            for part in current:
                part[-1].append(plain(child))
    for described in tree.findall(addnodes.desc):
        signature = described.next_node(addnodes.desc_signature)
        paragraph = described.next_node(nodes.paragraph)
        if signature is not None and signature["ids"]:
            name = signature["ids"][0]
            summary = [plain(paragraph)] if paragraph else []
            short = name.removeprefix(f"{page.removeprefix('api/')}.")
            sections.append([REFERENCE, f"{page}.html#{name}", short, head, "", summary])
    return [[*part[:-1], MARK.sub("", " ".join(" ".join(part[-1]).split()))] for part in sections]


def write_index(app: Any, failed: Exception | None) -> None:
    """Write the texts that the search looks through."""
    if failed or app.builder.name != "html":
        return
    env = app.env
    titles = {page.removeprefix("tags/"): title.astext() for page, title in env.titles.items()}
    pages = sorted(page for page in env.found_docs if not LEFT_OUT.match(page))
    parts = [part for page in pages for part in sections_of(page, env.get_doctree(page), titles)]
    data = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    (Path(app.outdir) / "_static" / "searched.js").write_text(
        f"const SEARCHED = {data};\n", "utf-8"
    )


def disable_sphinx_search(app: Any) -> None:
    """Switch off the search of Sphinx, which needs a server and finds files first."""
    app.builder.search = False
