"""Write what follows from the code: ``make generated`` after adding a part or an equation.

signatures.txt, proofs.md, the names of parts in docs/using.md, and the activations that MLP names.
A test compares each.
"""

import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bbb_numpy.gradients import catalogue  # noqa: E402

TABLES = {
    "prior": catalogue.PRIORS,
    "likelihood": catalogue.LIKELIHOODS,
    "activation": catalogue.ACTIVATIONS,
}


def with_parts(text):
    """Return docs/using.md with every name of `TABLES` in its row."""
    for part, table in TABLES.items():
        (row,) = re.findall(rf"^\| {part} \|.*$", text, re.MULTILINE)
        missing = "".join(f", `{name}`" for name in table if f"`{name}`" not in row)
        text = text.replace(row, row.removesuffix(" |") + missing + " |")
    return text


def with_activations(text):
    """Return the source of MLP with every activation in its docstring."""
    names = ", ".join(f"'{name}'" for name in catalogue.ACTIVATIONS)
    return re.sub(r"activation : \{[^}]*\}", f"activation : {{{names}}}", text)


GENERATED = {
    "docs/using.md": with_parts,
    "bbb_numpy/parts/network.py": with_activations,
}


def write():
    """Write all of them."""
    for name, made in GENERATED.items():
        path = ROOT / name
        path.write_text(made(path.read_text("utf-8")), "utf-8")
    for script in ("signatures", "proofs"):
        runpy.run_path(str(Path(__file__).with_name(f"{script}.py")), run_name="__main__")


if __name__ == "__main__":
    write()
