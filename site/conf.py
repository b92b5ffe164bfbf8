"""Sphinx's configuration of the site; its pages are written by generate.py."""

import re
import sys
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "site"), str(ROOT / "tests")]

import finding  # noqa: E402
import formulas  # noqa: E402
import numpy as np  # noqa: E402
import pages  # noqa: E402
import pictures  # noqa: E402
import sidebars  # noqa: E402
import slim  # noqa: E402

from bbb_numpy import __version__  # noqa: E402

project = "bbb_numpy"
author = "The bbb_numpy authors"
version = release = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "numpydoc",
]
root_doc = "index"
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
html_theme = "furo"
html_title = "bbb_numpy"
html_copy_source = False
html_show_sphinx = False
html_domain_indices = html_use_index = False  # the reference lists the modules
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
_short = ["sidebar/brand.html", "sidebar/search.html"]  # contents are on the pages of the book
_part = [*_short, "sidebar/scroll-start.html", "sidebar/part.html", "sidebar/scroll-end.html"]
html_sidebars = {"tags/*": _short, "api/*.*": _part, "exercises/*/*": _part}
html_theme_options = {"navigation_with_keys": True}

html_math_renderer = "mathml"
templates_path = ["templates"]
html_additional_pages = {"search": "find.html"}
exclude_patterns = ["extra"]

myst_enable_extensions = ["dollarmath", "amsmath", "html_image"]
myst_heading_anchors = 6
myst_url_schemes = {
    "http": None,
    "https": None,
    "mailto": None,
    "src": {"url": "{{path}}.html#{{fragment}}"},  # a line of a file on the site
}
suppress_warnings = ["myst.header"]  # an entry may stand below a section without a subsection
nb_execution_mode = "off"
nb_merge_streams = True

autodoc_typehints = "none"
autosummary_generate = False
default_role = "code"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False


LIST = re.compile(r"(\*|-|\d+\.) ")


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return where the site shows the source of an object; all reference pages are in api/."""
    path = pages.module_file(info["module"])
    lines = pages.lines_of(path, info["fullname"])
    if not lines:
        return None
    return f"../source/{path}.html#L-{lines[0]}"


def as_written(app, what, name, obj, options, lines) -> None:
    """Show the docstrings' plain text as it is: no |w| is a substitution, no x_ a reference."""
    if what == "module":
        lines[:] = with_blocks(lines)
    directive = None  # the indentation of a directive, whose lines are not prose
    n_backquotes = 0  # how many backquotes there were: a formula may go on in the next line
    in_example = False  # an example goes on to the next empty line, with what it prints
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line.strip() and directive is not None and indent <= directive:
            directive = None
        if line.lstrip().startswith(".. ") and directive is None:
            directive = indent
        in_example = bool(line.strip()) and (in_example or line.lstrip().startswith(">>>"))
        if directive is not None or in_example:
            continue
        if not line.strip():
            n_backquotes = 0
        inside = "`" * (n_backquotes % 2)
        n_backquotes += line.count("`")
        emphasis = r"\*\*\w[^*]*\*\*|(?<![^\s(])\*\w+\*(?![^\s.,:;)])"
        pattern = rf"(``.*?``|`[^`]*(?:`|$)|{emphasis}|^\* )"
        parts = re.split(pattern, inside + line)
        parts[::2] = [re.sub(r"([|*\\]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]]
        lines[number] = "".join(parts).removeprefix(inside)


def with_blocks(lines: list[str]) -> list[str]:
    """Return a module's docstring with its indented lines, but those of lists, as blocks."""
    blocks: list[str] = []
    listed = False
    for previous, line in pairwise(["", *lines]):
        listed = bool(LIST.match(line)) or (listed and line.startswith(" "))
        if line.startswith(" ") and not listed and not previous.startswith(" "):
            if not (blocks and blocks[-1].endswith("::")):
                blocks += ["", "::", ""]
        elif line.strip() and not line.startswith(" ") and previous.startswith(" "):
            blocks.append("")
        blocks.append(line)
    return blocks


def skip(app, what, name, obj, skipped, options) -> bool | None:
    """Leave out what scikit-learn adds to estimators, fields without a word, and NumPy's own."""
    alias = (getattr(obj, "__doc__", None) or "").startswith("Alias for field number")
    obj = getattr(obj, "__func__", obj)
    numpys = isinstance(obj, np.ufunc) or getattr(obj, "__module__", None) == "numpy"
    if alias or numpys or re.fullmatch(r"set_\w+_request", name):
        return True
    return None  # as autodoc decides


def begin(app, config) -> None:
    """Tell Sphinx to copy the pages of files, which generate.py wrote outside of the theme."""
    config.html_extra_path = [str(Path(app.srcdir) / "extra")]


def finish(app, failed) -> None:
    """Copy the playground and the font of formulas, and make pictures and pages smaller."""
    if not failed and app.builder.name == "html":
        pages.carry_playground(Path(app.outdir))
        formulas.write_font(Path(app.outdir) / "_static")
        pictures.lay_out(Path(app.outdir))
        pictures.shrink(Path(app.outdir))
        slim.slim_pages(Path(app.outdir))


def setup(app) -> None:
    """Connect the functions that change docstrings, before numpydoc reads them."""
    app.add_html_math_renderer("mathml", (formulas.show, None), (formulas.show, None))
    app.connect("config-inited", begin)
    app.connect("builder-inited", finding.disable_sphinx_search)
    app.connect("html-page-context", sidebars.add_sidebar)
    app.connect("build-finished", finding.write_index)
    app.connect("build-finished", finish)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", as_written, priority=400)
