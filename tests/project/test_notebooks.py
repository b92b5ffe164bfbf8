"""Every notebook runs, says what its committed outputs say, and is what its script makes."""

import importlib.util
import re
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from matplotlib.animation import FuncAnimation

from bbb_course.moving import slider

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SCRIPTS = sorted(NOTEBOOKS.glob("[0-9]*.py"))
BELOW = 1e-8  # numbers this small are rounding errors: they differ between machines
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
LARGEST = 3_000_000  # bytes of a notebook that a code host still shows
FRAME = re.compile(r"data:image/[\w+.-]+;base64,[A-Za-z0-9+/=\\\s]*")  # holds any letters
FETCHED = re.compile(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""")
# A path from the root of a file system (not the bar of dF/dmu), or a file of the kernel's own.
MACHINE = re.compile(r"(?<![\w.)\]])/[A-Za-z][\w.-]*/|\b[A-Z]:\\|ipykernel_")

_spec = importlib.util.spec_from_file_location("execute_notebooks", NOTEBOOKS / "execute.py")
assert _spec is not None
assert _spec.loader is not None
execute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(execute)

each_notebook = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)


def committed(script):
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell):
    """Return everything that a cell shows as text."""
    return "".join(
        output.text if output.output_type == "stream" else output.data.get("text/plain", "")
        for output in cell.outputs
        if output.output_type in ("stream", "display_data", "execute_result")
    )


def pages(cell):
    return [output.get("data", {}).get("text/html", "") for output in cell.outputs]


def pictures(cell):
    """The alternative texts of a cell's pictures."""
    return [
        output.metadata.get("image/png", {}).get("alt", "")
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]


def films(cell):
    """How many frames each film of a cell has; a film is a page with a slider."""
    return [len(FRAME.findall(page)) for page in pages(cell) if 'type="range"' in page]


def agree(a, b):
    """Return whether two texts have the same words, and numbers equal up to rounding.

    To one per cent or one unit in the last printed place; or both are rounding errors.
    """
    if NUMBER.sub("#", a).split() != NUMBER.sub("#", b).split():
        return False
    for left, right in zip(NUMBER.findall(a), NUMBER.findall(b), strict=True):
        mantissa, _, exponent = left.partition("e")
        unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        close = abs(float(left) - float(right)) <= 1.001 * max(unit, 0.01 * abs(float(left)))
        if not (close or max(abs(float(left)), abs(float(right))) < BELOW):
            return False
    return True


def problems(notebook):
    """List what must not be committed."""
    found = []
    for number, cell in enumerate(code_cells(notebook), start=1):
        kinds = {output.output_type for output in cell.outputs}
        names = {output.get("name") for output in cell.outputs}
        shown = [{k: v for k, v in output.items() if k != "data"} for output in cell.outputs]
        shown += [
            FRAME.sub("", str(value))
            for output in cell.outputs
            for kind, value in output.get("data", {}).items()
            if not kind.startswith("image/")
        ]
        made = cell.source.count(".to_jshtml(") + cell.source.count("slider(")
        wrong = {
            "was executed out of order": cell.execution_count != number,
            "shows an error or a warning": "error" in kinds or "stderr" in names,
            "shows a path of a machine": any(MACHINE.search(str(each)) for each in shown),
            "draws what is not stored": cell.source.count("plt.show()") != len(pictures(cell)),
            "has a picture without words": not all(pictures(cell)),
            "makes a film that is not stored": made != sum(n > 1 for n in films(cell)),
            "needs a network": any(map(FETCHED.search, pages(cell))),
        }
        found += [f"cell {number} {what}" for what, is_so in wrong.items() if is_so]
    text = re.split(r"## \d+\. Exercises\n", "\n".join(c.source for c in notebook.cells))[-1]
    asked, hints = text.split("<details><summary>Hints</summary>")
    asked, hinted = (re.findall(r"^\d+(?=\. )", part, re.MULTILINE) for part in (asked, hints))
    return found + ([] if asked == hinted != [] else [f"exercises {asked}, hints {hinted}"])


@each_notebook
def test_the_committed_notebook_is_what_its_script_makes(script):
    stored, source = committed(script), execute.read_source(script)
    assert stored.metadata == source.metadata
    assert [(c.id, c.cell_type, c.source, c.metadata) for c in stored.cells] == [
        (c.id, c.cell_type, c.source, c.metadata) for c in source.cells
    ], "edit the .py, then run `make notebooks`"


@each_notebook
def test_a_notebook_says_how_long_it_takes(script):
    notebook = execute.read_source(script)
    minutes, seconds = execute.stated_times(notebook)
    assert abs(minutes - execute.reading_minutes(notebook)) <= 5
    assert 1 <= seconds <= 60


@each_notebook
def test_the_committed_outputs_are_complete_and_clean(script):
    assert problems(committed(script)) == []


@pytest.mark.slow  # .ci/run has them
@each_notebook
def test_the_notebook_runs_and_prints_what_is_committed(script, tmp_path):
    before = sorted(path.name for path in NOTEBOOKS.iterdir())
    fresh = execute.execute(execute.read_source(script), tmp_path)
    assert problems(fresh) == []
    for old, new in zip(code_cells(committed(script)), code_cells(fresh), strict=True):
        assert len(pictures(old)) == len(pictures(new))
        assert films(old) == films(new)
        if "rounding" not in new.metadata.get("tags", []):
            assert agree(printed(old), printed(new)), f"{printed(old)}\n--- now:\n{printed(new)}"
    assert sorted(path.name for path in NOTEBOOKS.iterdir()) == before


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("error 2e-16, ok", "error 9e-15, ok", True),
        ("error 2e-16, ok", "error 9e-05, ok", False),
        ("error 2e-16, ok", "error 2e-16, caught", False),
        ("mean 1.0124  (s.e. 0.0012)", "mean 1.0125 (s.e. 0.0012)", True),
        ("mean 1.0124", "mean -1.0124", False),
    ],
)
def test_outputs_agree_when_words_and_numbers_do(a, b, same):
    assert agree(a, b) is same
    assert agree(b, a) is same


def test_a_caption_becomes_the_alternative_text_and_a_missing_one_is_found():
    drawing = nbformat.v4.new_code_cell("plt.show()", execution_count=1)
    drawing.outputs = [nbformat.v4.new_output("display_data", {"image/png": "AAAA"})]
    plain = nbformat.v4.new_markdown_cell("A line rises.\n\n*Not a caption.*")
    notebook = nbformat.v4.new_notebook(cells=[drawing, plain])
    execute.describe(notebook)
    assert pictures(drawing) == [""]
    plain.source = "*A line of slope $r$\nrises.*\n\nMore."
    execute.describe(notebook)
    assert pictures(drawing) == ["A line of slope r rises."]
    drawing.source = "# alt: a line\n# that rises\nplt.show()"
    execute.describe(notebook)
    assert pictures(drawing) == ["a line that rises"]


def test_a_film_is_the_same_bytes_every_time_and_keeps_no_link_unlike_matplotlib_s():
    figure, ax = plt.subplots(figsize=(1, 1), dpi=20)
    (point,) = ax.plot([0], [0], "o")

    def update(k):
        point.set_data([k], [k])

    films = [FuncAnimation(figure, update, frames=2) for _ in "12"]
    pages = [film.to_jshtml() for film in films]
    plt.close(figure)
    assert pages[0] != pages[1]
    assert FETCHED.search(pages[0])
    alone = [slider(figure, update, 2, "a point that moves", dpi=20) for _ in "12"]
    assert alone[0] == alone[1]
    assert not FETCHED.search(alone[0])
    assert "fa-" not in alone[0].partition("<style>")[0]
