"""Every notebook runs, says what its committed outputs say, and is what its script makes."""

import importlib.util
import re
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from matplotlib.animation import FuncAnimation

from bbb_numpy.plots.moving import slider

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


def pictures(cell):
    return sum("image/png" in output.get("data", {}) for output in cell.outputs)


def films(cell):
    """Return how many frames each film of a cell has; a film is a page with a slider."""
    pages = (output.get("data", {}).get("text/html", "") for output in cell.outputs)
    return [len(FRAME.findall(page)) for page in pages if 'type="range"' in page]


def exercises(notebook):
    """Return the numbers of a notebook's exercises, and those of the hints in the fold."""
    text = re.split(r"## \d+\. Exercises\n", "\n".join(c.source for c in notebook.cells))[-1]
    fold = re.search(r"<details><summary>Hints</summary>\n(.*?)\n</details>", text, re.DOTALL)
    hints = fold[1] if fold else ""
    numbers = re.compile(r"^(\d+)\. ", re.MULTILINE)
    return numbers.findall(text.replace(hints, "")), numbers.findall(hints)


def undescribed(notebook):
    """Count the pictures without alternative text."""
    return sum(
        "image/png" in output.get("data", {})
        and not output.metadata.get("image/png", {}).get("alt")
        for cell in code_cells(notebook)
        for output in cell.outputs
    )


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
        if cell.execution_count != number:
            found.append(f"cell {number} was executed out of order")
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                found.append(f"cell {number} shows an error or a warning")
            if MACHINE.search(str({k: v for k, v in output.items() if k != "data"})) or any(
                MACHINE.search(FRAME.sub("", str(value)))
                for kind, value in output.get("data", {}).items()
                if not kind.startswith("image/")
            ):
                found.append(f"cell {number} shows a path of a machine")
        if cell.source.count("plt.show()") != pictures(cell):
            found.append(f"cell {number} draws, but its picture is not stored")
        made = cell.source.count(".to_jshtml(") + cell.source.count("slider(")
        if made != sum(frames > 1 for frames in films(cell)):
            found.append(f"cell {number} makes a film, but its frames are not stored")
        if any(
            FETCHED.search(output.get("data", {}).get("text/html", "")) for output in cell.outputs
        ):
            found.append(f"cell {number} shows a page that needs a network")
    return found


@each_notebook
def test_the_committed_notebook_is_what_its_script_makes(script):
    stored, source = committed(script), execute.read_source(script)
    assert stored.metadata == source.metadata
    assert [(c.id, c.cell_type, c.source, c.metadata) for c in stored.cells] == [
        (c.id, c.cell_type, c.source, c.metadata) for c in source.cells
    ], "edit the .py, then run `make notebooks`"


@each_notebook
def test_the_committed_outputs_are_complete_and_clean(script):
    assert problems(committed(script)) == []


@each_notebook
def test_no_notebook_is_too_large_to_be_shown(script):
    assert script.with_suffix(".ipynb").stat().st_size < LARGEST


@each_notebook
def test_every_picture_says_what_it_shows(script):
    assert undescribed(committed(script)) == 0


@each_notebook
def test_every_exercise_has_a_hint(script):
    asked, hinted = exercises(committed(script))
    assert len(asked) >= 4
    assert hinted == asked


@each_notebook
def test_the_kernel_named_in_a_notebook_is_any_python(script):
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert committed(script).metadata.kernelspec == kernel


@pytest.mark.long  # .ci/run has them
@each_notebook
def test_the_notebook_runs_and_prints_what_is_committed(script, tmp_path):
    before = sorted(path.name for path in NOTEBOOKS.iterdir())
    fresh = execute.execute(execute.read_source(script), tmp_path)
    assert problems(fresh) == []
    for old, new in zip(code_cells(committed(script)), code_cells(fresh), strict=True):
        assert pictures(old) == pictures(new)
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
        ("mean 1.0124", "mean 1.0424", False),
        ("mean 1.0124", "mean -1.0124", False),
        ("mean 1.0124", "", False),
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
    assert undescribed(notebook) == 1
    plain.source = "*A line of slope $r$\nrises.*\n\nMore."
    execute.describe(notebook)
    assert undescribed(notebook) == 0
    assert drawing.outputs[0].metadata["image/png"]["alt"] == "A line of slope r rises."
    drawing.source = "# alt: a line\n# that rises\nplt.show()"
    execute.describe(notebook)
    assert drawing.outputs[0].metadata["image/png"]["alt"] == "a line that rises"


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
