"""Run every detector on every bug and write what they saw: the key of the last exercise.

``python exercises/measure_cards.py`` takes half a minute, writes bbb_course/cards.json and
the solution with its table. Then run make_templates.py.
"""

import json
import re
from collections.abc import Mapping

from make_templates import HERE

from bbb_course.cards import BUGS, DETECTORS, TABLE

PAGE = HERE / "solutions" / "which_detector_sees_it.md"
SOLUTION = HERE / "solutions" / "12_what_can_go_wrong" / "4_which_detector_sees_it.py"

STATEMENT = '''"""Which test sees which mistake?

There are many ways to look for a mistake in a program that trains a Bayesian model, and none of
them finds everything. Most of the mistakes below were printed or published; the test that would
have seen them was not run. Think about each: which of six detectors sees it?

The program is Bayesian linear regression by Bayes by Backprop, with four rows in two minibatches
and three weights, one of them a bias; the design is orthogonal, so that the mean field holds the
exact posterior. (Its source, `bbb_course.cards`, is short.) The detectors are:

    gradient check    the complex step against the gradient, at fixed noise
    value             an epoch's cost at fixed noise against log q - log P(w) - log P(D|w)
    mean over noise   means of cost and gradient over drawn noise against closed forms
    invariance        an epoch's cost and gradient when the data are cut into other minibatches
    convergence       where training ends, for 300 data sets, against the exact posterior
    coverage          the share of new targets inside the 95 % bands, over these data sets

For each bug write the set of the detectors that see it. The key was computed by running all of them
on each; nine of ten cells are asked for. You are told where you differ, with the measured number.

Hint: a detector can only see what it is shown: noise that is handed to the program by the test,
for instance, is not the noise that it would have drawn.

Read: K18 and K30 in derivations.md; D6 in derivations/training.md; D21 in
derivations/estimators.md.
"""

'''


def page(table: Mapping[str, Mapping[str, tuple[bool, float]]]) -> str:
    """Return the table of what was measured, for teachers."""
    lines = [
        "# Which detector sees which mistake?\n\n",
        "Measured by [measure_cards.py](../measure_cards.py); **bold** is seen. The numbers: the "
        "largest relative error\nof the gradient, the error of the value, standard errors, the "
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
    lines = [STATEMENT, "which_detector_sees_it = {\n"]
    for name, bug in BUGS.items():
        lines += [f"    # {bug.what}\n    # ({bug.seen})\n", f'    "{name}": set(),\n']
    lines += ["}\n### BEGIN SOLUTION\nwhich_detector_sees_it = {\n"]
    for name, row in table.items():
        seen = ", ".join(f'"{one}"' for one in DETECTORS if row[one][0])
        lines.append(f'    "{name}": {{{seen}}},\n')
    lines.append("}\n### END SOLUTION\n")
    SOLUTION.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
