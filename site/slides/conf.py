"""Sphinx's configuration of the slides: each Markdown file here is a lecture of the site.

They stand in the folder slides of the built site, and share its font of formulas and its moving
picture. The others are those of figures/slides.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
LOADED = (
    r"slides.css|slides.js|reveal.css|reveal.js|white.css|source-sans-pro.*(css|woff)|/notes.js"
)
MOVING = "training.png"
sys.path.insert(0, str(HERE.parent))

import formulas  # noqa: E402
import pictures  # noqa: E402

project = "bbb_numpy"
extensions = ["myst_parser", "sphinx_revealjs"]
root_doc = "index"
myst_enable_extensions = ["dollarmath", "attrs_block"]
html_math_renderer = "mathml"
revealjs_static_path = [str(HERE / "slides.css"), str(HERE / "slides.js")]
revealjs_style_theme = "white"
revealjs_css_files = ["slides.css"]
revealjs_script_files = ["slides.js"]
revealjs_script_plugins = [{"name": "RevealNotes", "src": "revealjs/plugin/notes/notes.js"}]
html_copy_source = False
revealjs_script_conf = {
    "hash": True,
    "slideNumber": "c/t",
    "transition": "none",
    "width": 1280,
    "height": 720,
    "margin": 0,
    "pdfSeparateFragments": False,
    "pdfMaxPagesPerSlide": 1,
}


def share(app, failed) -> None:
    """Show the site's moving picture in place of a copy, and leave out what no slide loads."""
    if failed or app.builder.name != "revealjs":
        return
    own = Path(app.outdir)
    (own / "_images" / MOVING).unlink(missing_ok=True)
    for path in (own / "_static").rglob("*.*"):
        if path.is_file() and not re.search(rf"({LOADED})$", path.as_posix()):
            path.unlink()
    for page in own.glob("*.html"):
        shared = f'"../_images/{Path(MOVING).stem}.webp'  # as pictures.py stores it
        page.write_text(page.read_text("utf-8").replace(f'"_images/{MOVING}', shared), "utf-8")
    pictures.shrink(own)


def setup(app) -> None:
    """Write formulas as the pages do."""
    app.add_html_math_renderer("mathml", (formulas.show, None), (formulas.show, None))
    app.connect("build-finished", share)
