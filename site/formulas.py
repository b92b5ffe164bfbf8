"""Formulas as MathML, made when the site is built: a page has them without a script.

The font is STIX Two Math, as the package ziamath carries it, cut to what formulas use.
"""

import logging as std_logging
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from math_core import LatexError, LatexToMathML
from sphinx.util import logging

FONT = "fonts/STIXTwoMath-Regular.ttf"
# What formulas may show, and what MathML makes of it: an x alone is an italic letter
CODE_POINTS = (
    *((0x20, 0x7F), (0xA0, 0x100), (0x2C6, 0x2DD), (0x300, 0x340), (0x391, 0x3D7), (0x3F0, 0x3F6)),
    *((0x2010, 0x2070), (0x20D0, 0x20F0), (0x2100, 0x2150), (0x2190, 0x21D6), (0x2200, 0x2400)),
    *((0x23B0, 0x23E2), (0x27E6, 0x27F0), (0x27F5, 0x27FF), (0x2A00, 0x2AFF)),
    *((0x1D400, 0x1D504), (0x1D538, 0x1D56C), (0x1D5A0, 0x1D5D4), (0x1D6A4, 0x1D734)),
)
BOX = re.compile(r'<menclose notation="box">(.*?)</menclose>')
CONVERTER = LatexToMathML(fancy_error=False)
LOG = logging.getLogger(__name__)


def mathml(latex: str, display: bool) -> str:
    """Return a formula as MathML; a box is drawn by the style sheet."""
    bare = re.sub(r"\\\\\s*\[[\d.]+(pt|em|ex)\]", r"\\\\", latex)  # the space below a line
    if r"\\" in bare and r"\begin" not in bare:  # as Sphinx reads a docstring's formula
        bare = rf"\begin{{aligned}}{bare}\end{{aligned}}"
    markup = CONVERTER.convert_with_local_state(bare, displaystyle=display)
    return re.sub(
        r'<menclose notation="box">(.*?)</menclose>', r'<mrow class="boxed">\1</mrow>', markup
    )


def show(translator: Any, node: nodes.Element) -> None:
    """Write a formula; one that cannot be read is a warning."""
    display = isinstance(node, nodes.math_block)
    try:
        markup = mathml(node.astext(), display)
    except LatexError as error:
        LOG.warning("%s in %s", error, node.astext(), location=node)
        markup = ""
    element = "div" if display else "span"
    translator.body.append(f'<{element} class="math">{markup}</{element}>')
    raise nodes.SkipNode


def write_font(folder: Path) -> None:
    """Write the font into a folder."""
    package = find_spec("ziamath")
    assert package is not None, "pip install ziamath, or .[site]"
    assert package.origin is not None
    full_font = TTFont(Path(package.origin).parent / FONT)
    std_logging.getLogger("fontTools").setLevel("WARNING")
    subsetter = Subsetter(Options(layout_features=["ssty", "dtls", "kern", "mark", "mkmk"]))
    subsetter.populate(
        unicodes=[code for first, stop in CODE_POINTS for code in range(first, stop)]
    )
    subsetter.subset(full_font)
    full_font.flavor = "woff"
    full_font.save(folder / "formulas.woff")
