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
TEXT = """# Gradients of others, proved

What `bbb_numpy.prove`
([D44](../derivations/numbers-and-proofs.md#d44-a-gradient-proved-in-a-finite-field)) says of
gradients written by hand elsewhere, with the processor time of one proof. (Generated from runs by
[tests/gallery/page.py](../tests/gallery/page.py).)

## Libraries and textbooks

SciPy and scikit-learn are called as they are; statsmodels is written once more by its formulas.
In each that is proved one error is planted, and refuted
([tests/gallery/gallery.py](../tests/gallery/gallery.py)).

| function | of | verdict | | planted | found in |
|---|---|---|---:|---|---:|
{gallery}

## Public teaching code

{total} gradients of public code, each as the smallest function that computes the same
([tests/gallery/hunt.py](../tests/gallery/hunt.py)): {counts}. They were picked by
hand, some because they looked suspicious: the shares say nothing of such code in general.

- **wrong**: value and gradient do not belong together.
- **factor**: the value is only printed, and the gradient is that of another multiple of it.
- **epsilon**: a small number, or a rounded constant, stands in one of the two only.

Of each, but for two, the repaired function is proved too: what is said to be wrong is all that is.

| function | where | found | what | |
|---|---|---|---|---:|
{hunt}

## What it cannot do

- **Compiled code.** Distances of `scipy.spatial`, kernels that keep floats and losses in Cython are
  *not traceable*; the line and what to write instead are named.
- **Rounded constants.** A float stands for the fraction nearest to it, but
  `t**2 / (2 * 0.7**2)` with the slope `t * (1 / 0.7**2)` rounds twice, and is *not proved*.
- **Identities of which the field knows nothing**, as $`\\psi(t + 1) = \\psi(t) + 1/t`$ or the
  double angle, are *not proved*, though right to 35 digits.
- **Data with a property.** That weights sum to 1, or a matrix is symmetric, or both as t-SNE's P,
  the verdict says; other properties are *not proved*.
- **A domain.** Theta is tried with other signs too. For probabilities take logits, or `n_points=0`.
- **What was meant.** A loss that averages over the wrong axis has a gradient, and that is proved.
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
        planted = (program.how, ms(program, True)) if proved else (f"({program.how})", "")
        return (program.title, program.source, program.verdict, ms(program), *planted)

    def hunt_row(program):
        where, _, files = program.source.partition(": ")
        path, *version = re.split(" (?=at |of )", files, maxsplit=1)
        verdict = program.kind if program.verdict == "refuted" else program.verdict
        location = " ".join([where, f"`{path}`", *version])
        return program.title, location, verdict, program.how, ms(program)

    verdict_counts = Counter(hunt_row(program)[2] for program in HUNT)
    counts = ", ".join(f"{number} {verdict}" for verdict, number in verdict_counts.most_common())
    return TEXT.format(gallery=table(GALLERY, gallery_row), hunt=table(HUNT, hunt_row),
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
