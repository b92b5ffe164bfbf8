"""Write benchmarks/stability.md from runs: ``python tests/gallery/stability_page.py``."""

import re
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "tests")]  # in place of this folder

from gallery.stability_programs import CONDITIONED, EXAMPLES  # noqa: E402
from gallery.test_stability_programs import judged, named_lines  # noqa: E402

from exactgrad import stability  # noqa: E402

PAGE = ROOT / "benchmarks" / "stability.md"
BEGIN, END = "<!-- begin of what runs print -->\n", "<!-- end -->\n"
DTYPES = ("float64", "float32")


def example_row(example):
    """Return what is said of an example, as cells of a table."""
    cells = [example.title, example.source]
    for dtype in DTYPES:
        found = judged(example.title, "naive", dtype)
        careful = judged(example.title, "careful", dtype)
        if found.failures:
            worst = found.worst
            line = "" if set(named_lines(found)) & example.lines else ", another line"
            cells.append(f"{worst.digits_lost:.0f} at `{numbers(worst.theta)}`{line}")
        else:
            cells.append("not found")
        if not careful:
            cells[-1] += "; *careful form accused*"
    cures = [failure.cure for failure in judged(example.title, "naive", "float64").failures]
    cells.append(" ".join(f"`{cure}`" for cure in dict.fromkeys(cures) if cure))
    return cells


def numbers(theta):
    """Return theta as text that fits into a cell."""
    text = ", ".join(f"{x:.4g}" for x in theta)
    return text if len(text) < 50 else f"{text[:46]}..."


def counts(dtype):
    """Return the counts of one format, as cells of a table."""
    results = [(e, judged(e.title, "naive", dtype)) for e in EXAMPLES]
    careful = [judged(e.title, "careful", dtype) for e in EXAMPLES]
    conditioned = [
        stability(f, theta, *data, dtype=dtype, domain=domain, fixed=range(len(data)), floor=0.0)
        for _, f, theta, data, domain in CONDITIONED
    ]
    cures = [(e, found) for e, found in results if e.cure]
    cured = [any(e.cure in failure.cure for failure in found.failures) for e, found in cures]
    seconds = sorted(found.seconds for _, found in results)
    return [
        dtype,
        f"{sum(bool(found.failures) for _, found in results)} of {len(results)}",
        f"{sum(bool(set(named_lines(found)) & e.lines) for e, found in results)}",
        f"{sum(cured)} of {len(cured)}",
        f"{sum(not result for result in careful)} of {len(careful)}",
        f"{sum(not result for result in conditioned)} of {len(conditioned)}",
        f"{seconds[len(seconds) // 2]:.2f} s, at most {seconds[-1]:.1f} s",
    ]


def table(head, rows):
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(x.replace("|", r"\|") for x in line) + " |" for line in lines
    )


def page():
    """Return the page with the tables of new runs."""
    head = ["format", "naive forms found", "right line", "right cure of those that have one",
            "careful forms accused", "ill-conditioned accused", "time of a search"]  # fmt: skip
    tables = table(head, [counts(dtype) for dtype in DTYPES])
    rows = [example_row(example) for example in EXAMPLES]
    of_each = ["function", "source", *(f"digits lost in {dtype}, at" for dtype in DTYPES), "cure"]
    text = f"{tables}\n\n### Each example\n\n{table(of_each, rows)}\n"
    old = PAGE.read_text("utf-8")
    return re.sub(f"{BEGIN}.*{END}", lambda _: BEGIN + text + END, old, flags=re.DOTALL)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    start = time.process_time()
    PAGE.write_text(page(), "utf-8")
    print(f"{time.process_time() - start:.0f} s")
