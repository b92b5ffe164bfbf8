"""Run the notebooks and store their outputs.

Each notebook is a pair: NAME.py, a jupytext percent script, is the source that one edits and
reviews; NAME.ipynb is what this program makes of it, the same cells with their outputs, for
reading on a code host. In Jupyter with jupytext installed, saving either updates both.

What a picture shows is said in italics at the head of the text cell below it, or in a comment
``# alt: ...`` of its own cell, which may go on in further lines; either becomes its alternative
text. What moves is made by `bbb_course.moving.slider`, which needs no network.

Each notebook says at its start how long it takes to read, by the rate of `reading_minutes`, and how
much processor time its cells take. The latter is measured and printed beside what is said.

Usage: ``python notebooks/execute.py [--check] [NAME ...]``. Without names, all of them. With
``--check`` nothing is written, and the exit status is 1 when a cell raises.
"""

import argparse
import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path
from unittest import mock

import jupytext
import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

HERE = Path(__file__).parent
WORDS_PER_MINUTE = 100  # that one reads of text with formulas
LINES_PER_MINUTE = 12  # of code
TIMES = re.compile(
    r"\*\*It takes\*\* about (\d+) minutes to read and (\d+) seconds of processor time to run\."
)
ALT = re.compile(r"^# alt: (.*(?:\n# .*)*)", re.MULTILINE)
METADATA = {
    "jupytext": {"formats": "ipynb,py:percent"},
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def sources() -> list[Path]:
    """Return the scripts that are notebooks: those whose file name starts with a number."""
    return sorted(HERE.glob("[0-9]*.py"))


def read_source(script: Path) -> NotebookNode:
    """Return the notebook of a percent script, without outputs; the same bytes every time.

    Cell ids are taken from the text, so that an insertion does not rename the cells after it.
    """
    notebook = jupytext.read(script)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.id = hashlib.sha256(cell.source.encode()).hexdigest()[:8]
    nbformat.validate(notebook)
    return notebook


def stated_times(notebook: NotebookNode) -> tuple[int, int]:
    """Return the minutes of reading and the processor seconds that the first cell states."""
    stated = TIMES.search(notebook.cells[0].source)
    if stated is None:
        raise ValueError(f"the first cell must say how long it takes, as {TIMES.pattern!r} does")
    return int(stated[1]), int(stated[2])


def reading_minutes(notebook: NotebookNode) -> float:
    """Return the minutes that its text and code take to read."""
    words, lines = 0, 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            words += len(cell.source.split())
        else:
            lines += sum(bool(line.strip()) for line in cell.source.splitlines())
    return words / WORDS_PER_MINUTE + lines / LINES_PER_MINUTE


def processor_seconds_of_children() -> float:
    """Return the processor time of all ended children, in seconds; 0 on Windows."""
    times = os.times()
    return times.children_user + times.children_system


def execute(notebook: NotebookNode, scratch: Path) -> NotebookNode:
    """Run every cell in a kernel of this interpreter, with `scratch` as working directory.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        When a cell raises; the message holds the cell and the traceback.
    """
    # The reader's own kernels, IPython profile and plotting backend must not change outputs.
    environment = {
        "IPYTHONDIR": str(scratch / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(scratch / "runtime"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
    with mock.patch.dict(os.environ, environment):
        manager = AsyncKernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
        client = NotebookClient(
            notebook,
            km=manager,
            timeout=300,
            record_timing=False,
            coalesce_streams=True,
            extra_arguments=["--log-level=ERROR"],  # no advice about transports on stderr
            resources={"metadata": {"path": str(scratch)}},
        )
        client.execute(cleanup_kc=True)  # stop the kernel, also after an error
    notebook.metadata = nbformat.from_dict(METADATA)  # the kernel adds its version
    describe(notebook)
    return notebook


def caption(cell: NotebookNode) -> str:
    """Return the caption that a text cell opens with, a paragraph in italics; '' without one."""
    first = cell.source.split("\n\n")[0].strip() if cell.cell_type == "markdown" else ""
    if not (first.startswith("*") and first.endswith("*") and not first.startswith("**")):
        return ""
    return " ".join(first.strip("*").replace("$", "").split())


def describe(notebook: NotebookNode) -> None:
    """Give every picture the text of its comment, or else of the caption in the cell below."""
    for cell, below in zip(notebook.cells, [*notebook.cells[1:], None], strict=True):
        texts = iter([" ".join(text.split("\n# ")) for text in ALT.findall(cell.source)])
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                text = next(texts, "") or (caption(below) if below else "")
                output.metadata.setdefault("image/png", {})["alt"] = text


def main(arguments: list[str] | None = None) -> int:
    """Execute all notebooks, or those that are named; return the exit status."""
    scripts = {script.stem: script for script in sources()}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(scripts)} (all)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on an error")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in scripts]
    if unknown:
        parser.error(f"no notebook {', '.join(unknown)}; there are {', '.join(scripts)}")
    failed = False
    for name in options.names or scripts:
        script = scripts[name]
        _, stated = stated_times(read_source(script))
        before = processor_seconds_of_children()
        with tempfile.TemporaryDirectory() as scratch:
            try:
                notebook = execute(read_source(script), Path(scratch))
            except CellExecutionError as error:
                print(f"{script.stem}: {error}", file=sys.stderr)
                failed = True
                continue
        if not options.check:
            nbformat.write(notebook, script.with_suffix(".ipynb"))
        seconds = processor_seconds_of_children() - before
        result = "runs" if options.check else "outputs stored"
        print(f"{script.stem}: {result}; {seconds:.0f} processor seconds, {stated} are stated")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
