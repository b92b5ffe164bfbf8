"""Write the gallery's pages from runs.

::

    python tests/gallery/page.py              # docs/{exact,jax,torch}-gallery.md
    python tests/gallery/page.py jax          # one of numpy, jax and torch
"""

import re
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# without the directory of this script, in which gallery.py would hide the package
sys.path = [
    str(ROOT),
    str(ROOT / "tests"),
    *(p for p in sys.path if p != str(Path(__file__).parent)),
]

from gallery.frameworks import proof_of  # noqa: E402
from gallery.gallery import GALLERY  # noqa: E402
from gallery.hunt import HUNT  # noqa: E402

from exactgrad import prove  # noqa: E402

MODULES = {"JAX": "jax", "PyTorch": "torch"}
DOCS = ROOT / "docs"
PAGE = DOCS / "exact-gallery.md"
PAGE_TEMPLATE = """# Gradients of others, proved

For whoever asks what `bbb_numpy.prove`
([D44](../derivations/numbers-and-proofs.md#d44-a-gradient-proved-in-a-finite-field)) can read: its
verdicts on gradients that others wrote by hand, with the processor time of each proof. (The page
is generated from runs by [tests/gallery/page.py](../tests/gallery/page.py).) Backward passes of
[JAX](jax-gallery.md) and [PyTorch](torch-gallery.md) have pages of their own.

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

FRAMEWORK_TEMPLATE = """# Backward passes of {framework}, proved

For whoever asks what `exactgrad.{module}` can read: its verdicts on backward passes that public
{framework} code writes by hand. Each is written once more, as a small program of the same formulas
([tests/gallery/{module}_programs.py](../tests/gallery/{module}_programs.py)); the formulas were
found in the file that is named. (The page is generated from runs by
[tests/gallery/page.py](../tests/gallery/page.py). Seconds are processor time: of the proof; of the
refutation; and of what a refutation prints, which are the wrong derivatives and the line.)

## Right, and with a mistake

Of {n_right} passes {n_proved} are proved, and with the mistake that is planted {n_refuted} are
refuted. The line that the verdict names first is the changed line in {n_lines} of them; where
it is another, it is shown.

| backward pass | of | formula | verdict | s | mistake | refuted, s | printed, s | line named |
|---|---|---|---|---:|---|---:|---:|---|
{right}

## Not the gradient

These {n_wrong} are refuted as they are in public code: some are not meant to be the gradient, such
as straight-through estimators, and some are bugs, of which the issue is named. Each was repaired
too: {n_repaired} are then proved.

| backward pass | of | formula | verdict | s | why | repaired | s | line named |
|---|---|---|---|---:|---|---|---:|---|
{wrong}
"""


class Result(NamedTuple):
    """What the page shows of one proof."""

    verdict: str
    seconds: float  # of the proof
    printing_seconds: float
    line: str  # that is named first, if the gradient is refuted


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
    text = re.sub(r"\d[\d.e+]* ms", "ms", text)
    return re.sub(r"\| \d+\.\d+ (?=\|)", "| s ", text)


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


# --- pages of frameworks


def result_of(backward_pass, prover, wrong):
    """Return the `Result` of the proof of a backward pass, of the wrong one if `wrong`."""
    start_time = time.process_time()
    proof = proof_of(backward_pass, prover, wrong)
    proof_time = time.process_time()
    text = str(proof)
    printing_seconds = time.process_time() - proof_time
    line = re.search(r"look at line \d+ of [^`]*`(.*?)`(?:$|[:;,])", text, re.MULTILINE)
    named = line[1] if line else ""
    return Result(str(proof.verdict), proof_time - start_time, printing_seconds, named)


def code(text):
    return f"`{text}`" if text else "none"


def source(item):
    """Return the source of a pass, with the path as code."""
    repository, _, rest = item.source.partition(": ")
    path, *version = re.split(r"(?= (?:at|of) |, )", rest, maxsplit=1)
    return "".join([repository, " ", code(path) if "." in path else path, *version])


def names_changed_line(item, results):
    return results[item.title, True].line == item.wrong_line


def line_cell(item, results):
    if names_changed_line(item, results):
        return "the changed line"
    return code(results[item.title, True].line)


def right_row(item, results):
    """Return the cells of a pass that is right, and refuted with the planted mistake."""
    right, wrong = results[item.title, False], results[item.title, True]
    seconds = [f"{s:.2f}" for s in (right.seconds, wrong.seconds, wrong.printing_seconds)]
    named = line_cell(item, results)
    description = [item.title, source(item), code(item.formula)]
    return [*description, right.verdict, seconds[0], item.mistake, *seconds[1:], named]


def wrong_row(item, results):
    """Return the cells of a pass that is not the gradient, and proved when it is repaired."""
    right, wrong = results[item.title, False], results[item.title, True]
    named = line_cell(item, results)
    description = [item.title, source(item), code(item.formula)]
    verdicts = [wrong.verdict, f"{wrong.seconds:.2f}", item.mistake, right.verdict]
    return [*description, *verdicts, f"{right.seconds:.2f}", named]


def framework_page(framework, passes, results):
    """Return the page of a framework.

    Parameters
    ----------
    framework : str
        "JAX" or "PyTorch".
    passes : list of BackwardPass
    results : dict
        `Result` by the title of a pass and whether it is of the wrong one.
    """
    right = [item for item in passes if item.verdict != "refuted"]
    wrong = [item for item in passes if item.verdict == "refuted"]

    def n_proved(items):
        return sum(results[item.title, False].verdict.startswith("proved") for item in items)

    return FRAMEWORK_TEMPLATE.format(
        framework=framework,
        module=MODULES[framework],
        n_right=len(right),
        n_proved=n_proved(right),
        n_refuted=sum(results[item.title, True].verdict == "refuted" for item in right),
        n_lines=sum(names_changed_line(item, results) for item in right),
        n_wrong=len(wrong),
        n_repaired=n_proved(wrong),
        right=table(right, lambda item: right_row(item, results)),
        wrong=table(wrong, lambda item: wrong_row(item, results)),
    )


def write_framework_page(framework):
    """Prove the passes of a framework, and write its page."""
    module = MODULES[framework]
    prover = import_module(f"exactgrad.{module}")
    passes = getattr(import_module(f"gallery.{module}_programs"), module.upper())
    for item in passes[:3]:  # the first of a process are slower
        proof_of(item, prover)
    results = {
        (item.title, wrong): result_of(item, prover, wrong)
        for item in passes
        for wrong in (False, True)
    }
    text = framework_page(framework, passes, results)
    (DOCS / f"{module}-gallery.md").write_text(text, "utf-8")


if __name__ == "__main__":
    names = sys.argv[1:] or ["numpy", *MODULES.values()]
    if "numpy" in names:
        PAGE.write_text(page(measured()), "utf-8")
    for framework, module in MODULES.items():
        if module in names:
            write_framework_page(framework)
