"""Sphinx's configuration of the slides: each Markdown file here is a lecture of the site.

They stand in the folder slides of the built site, whose pictures and font of formulas they share.
"""

import re
import sys
from pathlib import Path
from shutil import rmtree

HERE = Path(__file__).parent
LOADED = r"slides.css|reveal.css|reveal.js|white.css|source-sans-pro.*(css|woff)|/notes.js"
sys.path.insert(0, str(HERE.parent))

import formulas  # noqa: E402

project = "bbb_numpy"
extensions = ["myst_parser", "sphinx_revealjs"]
root_doc = "index"
myst_enable_extensions = ["dollarmath", "attrs_block"]
html_math_renderer = "mathml"
revealjs_static_path = [str(HERE / "slides.css")]
revealjs_style_theme = "white"
revealjs_css_files = ["slides.css"]
revealjs_script_plugins = [{"name": "RevealNotes", "src": "revealjs/plugin/notes/notes.js"}]
html_copy_source = False
revealjs_script_conf = {
    "hash": True,
    "slideNumber": True,
    "transition": "none",
    "width": 1280,
    "height": 720,
}


def share(app, failed) -> None:
    """Show the pictures of the site in place of copies, and leave out what no slide loads."""
    if failed or app.builder.name != "revealjs":
        return
    own = Path(app.outdir)
    rmtree(own / "_images", ignore_errors=True)
    for path in (own / "_static").rglob("*.*"):
        if path.is_file() and not re.search(rf"({LOADED})$", path.as_posix()):
            path.unlink()
    for page in own.glob("*.html"):
        page.write_text(page.read_text("utf-8").replace('"_images/', '"../_images/'), "utf-8")


def setup(app) -> None:
    """Write formulas as the pages do."""
    app.add_html_math_renderer("mathml", (formulas.show, None), (formulas.show, None))
    app.connect("build-finished", share)
