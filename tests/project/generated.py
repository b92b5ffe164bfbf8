"""Write what follows from the code: ``make generated`` after a change of a part or an equation.

signatures.txt, proofs.md, the names in docs/parts.md and those that docstrings list, the table of
schedules in docs/speed.md, that of times in exercises/README.md, the index docs/terms.md, the hours
in docs/teaching.md. A test compares each, the hours within half an hour.
"""

import re
import runpy
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from project.terms import with_terms  # noqa: E402

from bbb_course.workload import effort_table  # noqa: E402
from bbb_numpy.learners.defaults import strategy_table  # noqa: E402
from bbb_numpy.learners.inference import inferences  # noqa: E402
from bbb_numpy.registry import FAMILIES  # noqa: E402
from bbb_numpy.training.schedules import schedule_table  # noqa: E402

WIDTH = 100
NOTE = r"(?: \((?:[^()]|\([^()]*\))*\))?"  # in parentheses, behind a name
NAMES = {family: tuple(entries.named) for family, entries in FAMILIES.items()}
PARTS_ROWS = {  # of the table of parts
    **{name: NAMES[name] for name in ("prior", "likelihood", "activation", "optimizer")},
    "inference": tuple(inferences()),
    "objective": tuple(name for name in NAMES["objective"] if name not in inferences()),
    "gradient_estimator": NAMES["estimator"],
    "kl_weights, kl_warm_up": (*NAMES["kl_weights"], *NAMES["kl_warm_up"]),
}
LISTS = {**NAMES, "inference": tuple(inferences()), "family": tuple(FAMILIES)}


def with_parts(text):
    """Return docs/parts.md with exactly the names that there are in each of its `PARTS_ROWS`."""
    for part, names in PARTS_ROWS.items():
        (row,) = re.findall(rf"^\| {part} \|.*$", text, re.MULTILINE)
        listed = re.findall(r"`([\w-]+)`", row)
        new = row
        for name in set(listed) - set(names):
            new, removed = re.subn(rf"`{name}`{NOTE}, ", "", new, count=1)
            new = new if removed else re.sub(rf"[,;]? `{name}`{NOTE}", "", new, count=1)
        head, last_cell = new.removesuffix("|").rsplit("|", 1)
        missing = [f"`{name}`" for name in names if name not in listed]
        cells = ", ".join([*filter(None, [last_cell.strip()]), *missing])
        text = text.replace(row, f"{head}| {cells} |")
    return text


def with_names(text):
    """Return a module whose docstrings list, in "One of ...", the names that there are."""
    for argument, names in LISTS.items():
        sentence = f"One of {', '.join(map(repr, names))}."

        def fill(block, sentence=sentence):
            indent = f"{block[1]}    "
            lines = textwrap.wrap(sentence, WIDTH - len(indent), break_on_hyphens=False)
            return (
                block[0].partition("\n")[0] + "".join(f"\n{indent}{line}" for line in lines) + "\n"
            )

        block = rf"^( +){argument} : [^\n]*\n +One of '[^.]*\.\n"
        text = re.sub(block, fill, text, flags=re.MULTILINE)
    return text


def with_schedules(text):
    """Return docs/speed.md with the table of schedules between its two marks."""
    head, tail = text.split("<!-- schedules -->\n")
    foot = tail.partition("<!-- end of schedules -->")[2]
    table = schedule_table(markdown=True)
    return f"{head}<!-- schedules -->\n{table}\n<!-- end of schedules -->{foot}"


def with_strategies(text):
    """Return docs/choosing.md with the table of defaults between its two marks."""
    head, tail = text.split("<!-- defaults -->\n")
    foot = tail.partition("<!-- end of defaults -->")[2]
    table = strategy_table(markdown=True)
    return f"{head}<!-- defaults -->\n{table}\n<!-- end of defaults -->{foot}"


def with_efforts(text):
    """Return exercises/README.md with the table of times and difficulties between its two marks."""
    head, tail = text.split("<!-- effort -->\n")
    foot = tail.partition("<!-- end of effort -->")[2]
    return f"{head}<!-- effort -->\n{effort_table()}\n<!-- end of effort -->{foot}"


GENERATED = {
    "exercises/README.md": with_efforts,
    "docs/choosing.md": with_strategies,
    "docs/parts.md": with_parts,
    "docs/speed.md": with_schedules,
    "docs/terms.md": with_terms,
    **{path.relative_to(ROOT).as_posix(): with_names for path in ROOT.glob("bbb_numpy/**/*.py")},
}


def write():
    """Write all of them."""
    for name, update in GENERATED.items():
        path = ROOT / name
        old_text = path.read_text("utf-8")
        if (text := update(old_text)) != old_text:
            path.write_text(text, "utf-8")
    for script in ("signatures", "proofs", "teaching"):
        runpy.run_path(str(Path(__file__).with_name(f"{script}.py")), run_name="__main__")


if __name__ == "__main__":
    write()
