"""Run every detector on every bug and write what they saw: the key of the last exercise.

``python exercises/measure_cards.py`` takes half a minute, writes bbb_course/cards.json and
the exercise's table and solution; its statement stays as it is. Then run ``ruff format``.
"""

import json
import re
from collections.abc import Mapping

from bbb_course.cards import BUGS, DETECTORS, TABLE
from bbb_course.templates import BEGIN, END, SOLUTIONS

PAGE = SOLUTIONS / "which_detector_sees_it.md"
SOLUTION = SOLUTIONS / "12_what_can_go_wrong" / "4_which_detector_sees_it.py"


def page(table: Mapping[str, Mapping[str, tuple[bool, float]]]) -> str:
    """Return the table of what was measured, for teachers."""
    lines = [
        "# Which detector sees which mistake?\n\n",
        "Measured by [measure_cards.py](../../exercises/measure_cards.py); **bold** is seen. "
        "The numbers: the largest relative error\nof the gradient, the error of the value, "
        "standard errors, the "
        "largest difference between two ways to cut\nthe data, the distance from the exact "
        "posterior in its deviations, and the share of targets in 95 % bands.\n\n",
        f"| mistake | {' | '.join(DETECTORS)} |\n",
        f"|---|{'---|' * len(DETECTORS)}\n",
    ]
    for bug, row in table.items():
        cells = [f"**{n:.2g}**" if seen else f"{n:.2g}" for seen, n in row.values()]
        lines.append(f"| {bug}: {BUGS[bug].what} | {' | '.join(cells)} |\n")
    return "".join(lines)


def main() -> None:
    """Measure and write."""
    table = {bug: {name: detector(bug) for name, detector in DETECTORS.items()} for bug in BUGS}
    right = {name: detector("") for name, detector in DETECTORS.items()}
    blind = [one for one, (seen, _) in right.items() if seen]
    if blind:
        raise SystemExit(f"a detector sees something in the right program: {blind}")
    rounded = {
        bug: {one: (seen, float(f"{number:.3g}")) for one, (seen, number) in row.items()}
        for bug, row in table.items()
    }
    PAGE.write_text(page(rounded), encoding="utf-8")
    cells = re.sub(r"\[\s+(\w+),\s+(\S+)\s+\]", r"[\1, \2]", json.dumps(rounded, indent=1))
    TABLE.write_text(cells + "\n", encoding="utf-8")
    opening = "which_detector_sees_it = {\n"
    statement = SOLUTION.read_text(encoding="utf-8").partition(opening)[0]
    lines = [statement, opening]
    for name, bug in BUGS.items():
        lines += [f"    # {bug.what}\n    # ({bug.seen})\n", f'    "{name}": set(),\n']
    lines += [f"}}\n{BEGIN}\n{opening}"]
    for name, row in table.items():
        seen = ", ".join(f'"{one}"' for one in DETECTORS if row[one][0])
        lines.append(f'    "{name}": {{{seen}}},\n')
    lines.append(f"}}\n{END}\n")
    SOLUTION.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
