"""Does the verdict on a wrong gradient name the line that is wrong? Mutants say it.

    python -m benchmarks.lines                         # 150 of parts and gradients, evenly spread
    python -m benchmarks.lines --only gradients --shown
    python -m benchmarks.lines --users                 # functions as one writes them: the gallery's

A mutant counts if the exact proof refutes it, on one of four combinations that run its line. It is
*named* if the line to look at first lies in the smallest statement that was changed, of a compound
statement in its head; *listed* if one of the lines to look at then does; *beside* if the first lies
in the statement before or after that one, in the same block; else anywhere in the same *function*,
or *elsewhere*; or there is *none*. A statement that was removed has no line any more: the best that
can be named is one beside it. And what changes the value too is a mutant of the forward pass: the
line that is wrong is then one of the backward pass, which belongs to what the value was. So both
have rows of their own.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # to run as a plain script

from benchmarks.in_place import functions_of, swap  # noqa: E402
from benchmarks.mutants import Mutant, keyed  # noqa: E402
from benchmarks.mutation import modules  # noqa: E402
from benchmarks.oracles import chosen_for, in_a_fork, lines_run, tree_of  # noqa: E402

CLASSES = ("named", "listed", "beside", "function", "elsewhere", "none")
LOOK_AT_LINE = re.compile(r"look at line (\d+) of ([\w.]+), `.*`((?:, then line \d+)*)")
GOLDEN_RATIO = (
    0.6180339887498949  # whose multiples modulo 1 are spread evenly, however many there are
)
GALLERY = ROOT / "tests" / "gallery" / "gallery.py"


class Subject(NamedTuple):
    """A gradient that runs a mutated line."""

    proof: Callable[[], Any]
    value: Callable[[], float]


def span(node: Any) -> range:
    """Return the lines of a statement; of a compound one those of its head."""
    inner = getattr(node, "body", None)
    return range(node.lineno, inner[0].lineno if inner else node.end_lineno + 1)


def classify(path: Path, line: int, verdict: str) -> str:
    """Return how near the line that a verdict names is to the mutated one, as of `CLASSES`."""
    match = LOOK_AT_LINE.search(verdict)
    if match is None:
        return "none"
    named = range(line, line + 1)
    neighbours = list[range]()
    function = range(0)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):  # from outside to inside
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            function = range(node.lineno, (node.end_lineno or 0) + 1)
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            spans = [span(statement) for statement in block] if isinstance(block, list) else []
            for k, lines in enumerate(spans):
                if line in lines:
                    named = lines
                    neighbours = spans[max(k - 1, 0) : k] + spans[k + 1 : k + 2]
    if match[2] != path.name:
        return "elsewhere"
    first_line, *next_lines = map(int, re.findall(r"\d+", match[1] + match[3]))
    if first_line not in named and any(line in named for line in next_lines):
        return "listed"
    lines_by_class = {
        "named": named,
        "beside": [number for lines in neighbours for number in lines],
        "function": function,
    }
    return next(
        (verdict_class for verdict_class, lines in lines_by_class.items() if first_line in lines),
        "elsewhere",
    )


def ask_proof(path: Path, key: str, subjects: Sequence[Subject], functions: Any) -> tuple[int, Any]:
    """Return the verdict on a mutant that is refuted, and whether the value changes."""
    values_before = [subject.value() for subject in subjects]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if swap(keyed(tree)[key], path, tree, functions) is not None:
        for subject, value_before in zip(subjects, values_before, strict=True):
            proof = subject.proof()
            if proof.verdict == "refuted":
                return 0, [
                    str(proof),
                    not abs(subject.value() - value_before) <= 1e-9 * abs(value_before),
                ]
    return 0, None


def of_library(only: Sequence[str]) -> Any:
    """Return the files that are mutated, and a function from a mutant to its subjects."""
    cases = importlib.import_module("exact_cases")
    combinations = importlib.import_module("bbb_numpy.combinations")
    _, traced_lines = in_a_fork(lambda: (0, lines_run()), 600, quiet=False)

    def subject(number: int, parts: Sequence[str]) -> Subject:
        case = cases.numbered_case(number, combinations.Combination(*parts), far_left=-4.0)
        return Subject(
            lambda: combinations.prove_case(case, number),
            lambda: float(combinations._value_and_grad(case, case.theta, case.theta, *case[2:])[0]),
        )

    def subjects(mutant: Mutant, path: Path) -> list[Subject]:
        return [
            subject(*combination)
            for combination in chosen_for(mutant, path, traced_lines["combinations"])
        ]

    return [tree_of(module)[0] for module in modules(only)], subjects


def of_users() -> Any:
    """Return the files of the gallery's programs, and how to get their subjects."""
    prove = importlib.import_module("exactgrad").prove
    programs = importlib.import_module("gallery.gallery").GALLERY

    def subjects(mutant: Mutant, path: Path) -> list[Subject]:
        codes = [
            (program, program.function.__code__)
            for program in programs
            if program.verdict == "proved"
        ]
        return [
            Subject(
                lambda program=program: prove(program.function, *program.arguments, n_points=0),  # type: ignore[misc]
                lambda program=program: float(program.function(*program.arguments)[0]),  # type: ignore[misc]
            )
            for program, code in codes
            if mutant.line in {line for *_, line in code.co_lines()}
        ]

    return [GALLERY], subjects


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=("parts", "gradients"))
    parser.add_argument("--users", action="store_true", help="the gallery's programs instead")
    parser.add_argument("--count", type=int, default=150, help="of mutants that are refuted")
    parser.add_argument("--shown", action="store_true", help="print every verdict")
    args = parser.parse_args(argv)
    paths, subjects = of_users() if args.users else of_library(args.only)
    functions = functions_of(str(ROOT))
    all_mutants = [
        (path, key, mutant)
        for path in paths
        for key, mutant in keyed(ast.parse(path.read_text(encoding="utf-8"))).items()
    ]
    counts = {row: Counter[str]() for row in ("changed", "removed", "forward pass")}
    for k in sorted(range(len(all_mutants)), key=lambda k: k * GOLDEN_RATIO % 1):
        path, key, mutant = all_mutants[k]
        _, answer = in_a_fork(lambda: ask_proof(path, key, subjects(mutant, path), functions), 120)  # noqa: B023
        if answer:
            verdict, value_changes = answer
            verdict_class = classify(path, mutant.line, verdict)
            row = "removed" if "removed `" in key else "changed"
            if value_changes:
                row = "forward pass"
            counts[row][verdict_class] += 1
            if args.shown:
                print(
                    json.dumps([str(path), mutant.line, key, row, verdict_class, verdict]),
                    flush=True,
                )
        if sum(map(Counter.total, counts.values())) == args.count:
            break
    for row, count in counts.items():
        shares = ", ".join(f"{verdict_class} {count[verdict_class]}" for verdict_class in CLASSES)
        print(f"{row}: {count.total()} mutants, {shares}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
