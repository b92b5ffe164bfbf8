"""Sphinx's configuration of the book: its chapters as plain pages, which make.py puts together."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import formulas

project = "bbb_numpy"
extensions = ["myst_parser"]
html_theme = "basic"
html_copy_source = False
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "amsmath", "html_image"]
myst_heading_anchors = 6
myst_url_schemes = {
    "http": None,
    "https": None,
    "mailto": None,
    "src": {"url": "{{path}}.html#{{fragment}}"},  # a line of a file, of which the book has none
}
suppress_warnings = ["myst.header", "myst.xref_missing"]  # the book has not all pages of the site


def write_font(app, failed) -> None:
    """Write the font of formulas beside the pages."""
    if not failed:
        formulas.write_font(Path(app.outdir) / "_static")


def setup(app) -> None:
    """Write formulas as the site does."""
    app.add_html_math_renderer("mathml", (formulas.show, None), (formulas.show, None))
    app.connect("build-finished", write_font)
