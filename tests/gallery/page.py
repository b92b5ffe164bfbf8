"""Write docs/exact-gallery.md from runs: ``python tests/gallery/page.py``."""

import re
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from gallery.gallery import GALLERY  # noqa: E402
from gallery.hunt import HUNT  # noqa: E402

from exactgrad import prove  # noqa: E402

PAGE = ROOT / "docs" / "exact-gallery.md"
PAGE_TEMPLATE = """# Gradients of others, proved

This page shows the verdicts of `bbb_numpy.prove`
([D44](../derivations/numbers-and-proofs.md#d44-a-gradient-proved-in-a-finite-field)) on gradients
that others wrote by hand, with the processor time of each proof. (The page is generated from runs
by [tests/gallery/page.py](../tests/gallery/page.py).)

## Libraries and textbooks

The functions of SciPy and scikit-learn are called as they are; those of statsmodels are
reimplemented from its formulas. In each function that is proved, one error is planted, and refuted
([tests/gallery/gallery.py](../tests/gallery/gallery.py)). The first time is that of the proof; the
column "found in" is the time until the planted error is refuted.

| function | of | verdict | | planted | found in |
|---|---|---|---:|---|---:|
{gallery}

## Public teaching code

{total} gradients of public code were tried, each reduced to the smallest function that computes the
same ([tests/gallery/hunt.py](../tests/gallery/hunt.py)): {counts}. They were
selected by hand, some because they looked suspicious, so the proportions say nothing about such
code in general.

- **wrong**: the gradient is not that of the value.
- **factor**: the gradient is that of a multiple of the value, which is only printed.
- **epsilon**: a small number, or a rounded constant, occurs only in the value or only in the
  gradient.

For all but two of these, the corrected function is proved too, so that the mistake described is
the only one.

| function | where | found | what | |
|---|---|---|---|---:|
{hunt}

## What it cannot do

- **Compiled code.** Distances of `scipy.spatial`, kernels that store floats, and losses written in
  Cython are *not traceable*; the message names the line and what to write instead.
- **Rounded constants.** A float stands for the fraction nearest to it, but
  `t**2 / (2 * 0.7**2)` with the slope `t * (1 / 0.7**2)` rounds twice, and is *not proved*.
- **Identities that do not hold in the field**, such as $`\\psi(t + 1) = \\psi(t) + 1/t`$ or the
  double-angle formulas: a gradient that needs one is *not proved*, though right to 35 digits.
- **Data with a property.** If a gradient is right only because weights sum to 1, because a matrix
  is symmetric, or both (as for P in t-SNE), the verdict names the condition. If it depends on
  another property, it is *not proved*.
- **A restricted domain.** Theta is also tried with other signs. For probabilities use logits as
  parameters, or `n_points=0`.
- **What was meant.** A loss that averages over the wrong axis has a gradient, which is proved.
"""


def table(programs, row):
    rows = [[cell.replace("|", r"\|") for cell in row(program)] for program in programs]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def page(times):
    """Return the page, with the milliseconds of each program, as it is and changed, if known."""

    def ms(program, changed=False):
        milliseconds = times.get((id(program), changed), 0)
        return f"{milliseconds:.2g} ms" if 0 < milliseconds < 99.5 else f"{milliseconds:.0f} ms"

    def gallery_row(program):
        proved = program.verdict == "proved"
        planted = (program.note, ms(program, True)) if proved else (f"({program.note})", "")
        return (program.title, program.source, program.verdict, ms(program), *planted)

    def hunt_row(program):
        where, _, files = program.source.partition(": ")
        path, *version = re.split(" (?=at |of )", files, maxsplit=1)
        verdict = program.kind if program.verdict == "refuted" else program.verdict
        location = " ".join([where, f"`{path}`", *version])
        return program.title, location, verdict, program.note, ms(program)

    verdict_counts = Counter(hunt_row(program)[2] for program in HUNT)
    counts = ", ".join(f"{number} {verdict}" for verdict, number in verdict_counts.most_common())
    return PAGE_TEMPLATE.format(gallery=table(GALLERY, gallery_row), hunt=table(HUNT, hunt_row),
                       total=len(HUNT), counts=counts)  # fmt: skip


def without_times(text):
    return re.sub(r"\d[\d.e+]* ms", "ms", text)


def measured():
    times = {}
    for program in [*GALLERY[:3], *GALLERY, *HUNT]:  # the first of a process are slower
        for changed, function in [(False, program.function), (True, program.changed)]:
            start_time = time.process_time()
            proof = prove(function, *program.arguments)
            times[id(program), changed] = 1e3 * (time.process_time() - start_time)
            if not changed and not proof.verdict.startswith(program.verdict):
                raise SystemExit(f"{program.title}: {proof}")
    return times


if __name__ == "__main__":
    PAGE.write_text(page(measured()), "utf-8")
