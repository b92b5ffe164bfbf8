"""Sphinx's configuration of the slides: each Markdown file here is a lecture."""

from importlib.util import find_spec
from pathlib import Path

project = "bbb_numpy"
extensions = ["myst_parser", "sphinx.ext.mathjax", "sphinx_revealjs"]
root_doc = "index"
myst_enable_extensions = ["dollarmath", "attrs_block"]

_mathjax = find_spec("sphinx-mathjax-offline")
assert _mathjax is not None, "pip install sphinx-mathjax-offline, or .[site]"
assert _mathjax.origin is not None
revealjs_static_path = [
    str(Path(_mathjax.origin).parent / "static/mathjax/tex-svg.js"),
    str(Path(__file__).parent / "slides.css"),
]
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}
revealjs_style_theme = "white"
revealjs_css_files = ["slides.css"]
revealjs_script_conf = {
    "hash": True,
    "slideNumber": True,
    "transition": "none",
    "width": 1280,
    "height": 720,
}
