"""The search: what site/static/find.js looks through, and the page that shows what it finds.

The book comes first, then what stands beside it, then the reference; files are not searched. All is
in one script, so that pages opened from a folder have it too.
"""

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

BOOK, BESIDE, REFERENCE = range(3)
LEFT_OUT = re.compile(r"index|tags/|api/index|CHANGELOG|SECURITY|CONTRIBUTING|benchmarks/README|proofs")
# What the field calls an entry of the book
NAMES = {
    "K4": "reparameterization trick, pathwise gradient",
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
LETTERS = {
    name: chr(945 + place)
    for place, name in enumerate(
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho "
        "varsigma sigma tau upsilon phi chi psi omega".split()
    )
} | {"log": "log", "exp": "exp", "circ": "∘", "cdot": "·", "sim": "~", "mid": "|", "le": "≤"}


def plain(node: nodes.Node) -> str:
    """Return what a part of a page says, its formulas in short."""
    if isinstance(node, nodes.math | nodes.math_block):
        letters = re.sub(r"\\([a-z]+)", lambda m: LETTERS.get(m[1], ""), node.astext())
        bare = re.sub(r"[\\{}$&]", "", letters).strip()
        return bare if len(bare) < 20 else "…"  # the rest says nothing without its bars
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, nodes.raw | nodes.comment | nodes.literal_block | addnodes.toctree):
        return ""
    between = " " if isinstance(node, nodes.Element) and not isinstance(node, nodes.TextElement) else ""
    return between.join(filter(None, map(plain, node.children)))


def kind(page: str) -> int:
    """Tell how early the parts of a page are shown."""
    if page.startswith("api/"):
        return REFERENCE
    return BOOK if re.match(r"derivations|docs/choosing", page) else BESIDE


def parts(page: str, tree: nodes.document) -> list[list[Any]]:
    """Return kind, address, title, page, other names and text of each section or definition."""
    found: list[list[Any]] = []
    heads = tree.findall(nodes.title)
    head = next((plain(title) for title in heads), page)
    for section in tree.findall(nodes.section):
        said = [plain(each) for each in section if not isinstance(each, nodes.section | nodes.title)]
        if page.startswith("api/"):
            said = said[:0]
        title = plain(section.next_node(nodes.title) or nodes.Text(""))
        tag = re.match(r"([A-Z]\d+): ", title)
        names = NAMES.get(tag[1], "") if tag and kind(page) == BOOK else ""
        text = " ".join(" ".join(said).split())
        found.append([kind(page), f"{page}.html#{section['ids'][0]}", title, head, names, text])
    for described in tree.findall(addnodes.desc):
        signature = described.next_node(addnodes.desc_signature)
        paragraph = described.next_node(nodes.paragraph)
        if signature is not None and signature["ids"]:
            name, said = signature["ids"][0], plain(paragraph) if paragraph else ""
            found.append([REFERENCE, f"{page}.html#{name}", name, head, "", " ".join(said.split())])
    return found


def index(app: Any, failed: Exception | None) -> None:
    """Write what is searched."""
    if failed or app.builder.name != "html":
        return
    pages = sorted(page for page in app.env.found_docs if not LEFT_OUT.match(page))
    each = [part for page in pages for part in parts(page, app.env.get_doctree(page))]
    data = json.dumps(each, ensure_ascii=False, separators=(",", ":"))
    (Path(app.outdir) / "_static" / "searched.js").write_text(f"const SEARCHED = {data};\n", "utf-8")


def own(app: Any) -> None:
    """Leave out the search of Sphinx, which needs a server and finds files first."""
    app.builder.search = False
