"""Sphinx's configuration of the slides, which site/slides.py writes."""

from importlib.util import find_spec
from pathlib import Path

project = "bbb_numpy"
extensions = ["myst_parser", "sphinx.ext.mathjax", "sphinx_revealjs"]
root_doc = "index"
suppress_warnings = ["myst.header"]

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
