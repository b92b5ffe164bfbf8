"""Who notices a mutant: the exact proof of some gradients, and tests; each asked in a fork."""

from __future__ import annotations

import ast
import importlib
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.mutants import Mutant

__all__ = ["PROOF", "PYTEST", "STOPPED", "SURVIVED", "TESTS", "Combinations", "chosen_for",
           "in_a_fork", "lines_run", "proved", "run_tests", "tree_of"]  # fmt: skip

ROOT = Path(__file__).resolve().parents[1]
N_PROOFS_PER_MUTANT = 4  # combinations for one mutant
SURVIVED, PROOF, TESTS, STOPPED = 0, 10, 11, 12  # what becomes of a mutant; exit status of its fork
PYTEST = (
    *("-x", "-q", "-m", "not slow", "-o", "addopts=", "--import-mode=importlib"),
    *("-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider"),
    "--assert=plain",  # pytest's own import of what it rewrites would pass by the mutant
)

Combinations = Sequence[tuple[int, Sequence[str]]]  # each with its number among all valid ones


def tree_of(module: str) -> tuple[Path, ast.Module]:
    """Return the file and the syntax tree of parts/priors, or exactgrad/proofs."""
    path = ROOT / f"{module}.py"
    if not path.is_file():
        path = ROOT / "bbb_numpy" / f"{module}.py"
    return path, ast.parse(path.read_text(encoding="utf-8"))


def in_a_fork(work: Callable[[], Any], seconds: int, quiet: bool = True) -> tuple[int | None, Any]:
    """Run `work` in a fork; return its exit status, None if it was stopped, and what it wrote."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setpgid(0, 0)
            os.close(reads)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
            signal.alarm(5 * seconds)
            if quiet:
                devnull = os.open(os.devnull, os.O_WRONLY)
                os.dup2(devnull, 1)
                os.dup2(devnull, 2)
            status, answer = work()
            with os.fdopen(writes, "w") as pipe:
                json.dump(answer, pipe)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        answer = pipe.read()
    _, wait_status = os.waitpid(pid, 0)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what its tests started and left behind
    return (
        os.WEXITSTATUS(wait_status) if os.WIFEXITED(wait_status) else None
    ), answer and json.loads(answer)


def run_tests(files: Sequence[str]) -> bool:
    """Run test files until one fails; return whether all passed."""
    import pytest

    return pytest.main([*PYTEST, *files]) == 0


def proved(combinations: Combinations) -> bool:
    """Return whether all gradients are proved, and then all values."""
    cases = importlib.import_module("exact_cases")
    combination = importlib.import_module("bbb_numpy.combinations").Combination
    return all(
        cases.prove_gradient(number, combination(*parts)).proved for number, parts in combinations
    ) and all(cases.proved_value(number, combination(*parts)) for number, parts in combinations)


def lines_run() -> dict[str, list[Any]]:
    """Prove combinations in which all pairs of parts meet, and note the lines that each runs."""
    problems = importlib.import_module("problems")
    executed: set[tuple[str, int]] = set()
    home = str(ROOT / "bbb_numpy")

    def trace(frame: Any, event: str, _: Any) -> Any:
        path = frame.f_code.co_filename
        if not path.startswith(home):
            return None
        executed.add((path, frame.f_lineno))
        return trace

    traced = []
    for parts in problems.PAIRS:
        number = problems.VALID.index(parts)
        executed.clear()
        sys.settrace(trace)
        right = proved([(number, parts)])
        sys.settrace(None)
        assert right, parts
        lines: dict[str, list[int]] = {}
        for path, line in sorted(executed):
            lines.setdefault(str(Path(path).relative_to(ROOT)), []).append(line)
        traced.append((number, parts, lines))
    return {"combinations": traced}


def chosen_for(mutant: Mutant, path: Path, traced: Sequence[Any]) -> Combinations:
    """Choose combinations that run the mutated line: evenly, in their order."""
    file = str(path.relative_to(ROOT))
    in_file = [record for record in traced if file in record[2]]
    candidates = [record for record in in_file if mutant.line in record[2][file]]
    if not candidates and not mutant.function:
        candidates = in_file  # a constant of the module
    step = max(1, len(candidates) // N_PROOFS_PER_MUTANT)
    return [(number, parts) for number, parts, _ in candidates[::step][:N_PROOFS_PER_MUTANT]]
