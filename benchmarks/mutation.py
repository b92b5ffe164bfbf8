"""Grade the tests by mutants: change one thing in the code and see who notices.

    python benchmarks/mutation.py                             # everything, hours
    python benchmarks/mutation.py --only parts/priors         # one module, or one folder
    python benchmarks/mutation.py --only sampling --share 0.1 # every tenth mutant
    python benchmarks/mutation.py --survivors                 # the survivors of earlier runs again
    python benchmarks/mutation.py --report                    # only write mutation.md

Everything below ``learners/`` is mutated, one node of its syntax tree at a time. Each mutant gets a
fork of one process that has imported NumPy, SciPy, pytest and hypothesis but nothing of ours, so
that no module has seen the original. First speaks the exact proof (D44), on combinations of parts
that run the mutated line; then the tests of the module, until one fails. mutmut and cosmic-ray
start an interpreter and pytest anew for each mutant: 1.5 s of processor time before the first test
of one file, where a fork has proved a gradient after 0.12 s and is at the first test after 0.7 s.

Counts and survivors are kept in results/mutation.json. Why a survivor is equivalent is written by
hand, in mutation_reasons.json, and holds for that change in that function wherever it moves to.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.machinery
import importlib.util
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # to run as a plain script

from benchmarks.mutants import Mutant, keyed  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "mutation.json"
REASONS = ROOT / "benchmarks" / "mutation_reasons.json"
PAGE = ROOT / "benchmarks" / "mutation.md"
FOLDERS = ("exact", "numeric", "parts", "model", "gradients", "training", "sampling", "evaluation")
SINGLE = ("plain",)
SLOW_TO_IMPORT = ("numpy", "scipy.special", "scipy.stats", "scipy.optimize", "autograd.scipy",
                  "hypothesis.extra.numpy", "sklearn.model_selection", "matplotlib.pyplot",
                  "pandas", "pytest")  # fmt: skip
PROOFS = 8  # combinations for one mutant
SURVIVED, PROOF, TESTS, STOPPED = 0, 10, 11, 12  # what becomes of a mutant; exit status of its fork

# Tests of a module, where its mirrored file is not all or has another name
MORE = {
    "exact": "gradients/test_exact",
    "plain": "test_plain",
    "numeric/files": "sampling/test_resuming learners/test_checkpoint data/test_locate",
    "numeric/standardisation": "training/test_advi learners/test_regressor",
    "numeric": "",
    "parts/full_rank": "parts/test_posteriors",
    "parts/mixture": "parts/test_priors",
    "parts/priors": "parts/test_layerwise_prior",
    "parts/products": "model/test_joint sampling/mcmc/test_metrics parts/test_network",
    "parts/student_t": "parts/test_likelihoods parts/test_priors",
    "parts": "parts/test_purity model/test_log_joint gradients/test_purity test_plain",
    "model": "gradients/test_family",
    "gradients/replicated": "training/test_replicates gradients/test_purity",
    "gradients/catalogue": "gradients/test_checklist gradients/test_matrix",
    "gradients": "gradients/test_family gradients/test_purity gradients/test_closed_form "
    "gradients/test_matrix",
    "training/recipe": "training/test_loop training/test_replicates",
    "training/state": "training/test_loop training/test_replicates",
    "training/stopping": "training/test_loop model/test_kl_weights",
    "training": "",
    "sampling/mcmc": "sampling/mcmc/test_exact_invariance sampling/test_invariance",
    "sampling/draws": "sampling/test_drawn_weights",
    "sampling": "sampling/test_run sampling/test_resuming",
    "evaluation/convergence": "evaluation/test_arviz_export",
    "evaluation": "",
}


HEAD = """# Mutants

`make mutation` writes this page. A mutant changes one thing in the code. *Run* counts those that
were tried, evenly spread over the module as it was then; *by proof* those that the exact proof of a
few combinations (D44) did not accept; *by tests* those that passed it, or that no combination runs,
and failed a test of the module; *stopped* those that did not end. A survivor is one that none of
these noticed; beside it stands why it changes no result. Modules without a line were not tried.

"""


# --- the fate of one


class Mutated(importlib.machinery.SourceFileLoader):
    """Imports one module from its changed tree."""

    tree: ast.Module

    def get_code(self, fullname: str) -> Any:
        """Compile the tree in place of the file."""
        return compile(ast.fix_missing_locations(self.tree), self.path, "exec", dont_inherit=True)


class Finder:
    """Finds one module, from its changed tree."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.loader = name, Mutated(name, str(path))
        self.loader.tree = tree

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """Answer for that module only."""
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self.loader.path, loader=self.loader
        )


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
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 1)
                os.dup2(nowhere, 2)
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
    _, how = os.waitpid(pid, 0)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what its tests started and left behind
    return (os.WEXITSTATUS(how) if os.WIFEXITED(how) else None), answer and json.loads(answer)


def tests_of(module: str) -> list[str]:
    """Return the test files of a module: its mirror, then those that `MORE` names."""
    folder, _, name = module.rpartition("/")
    mirror = f"{folder}/test_{name}"
    named = f"{mirror} {MORE.get(module, '')} {MORE.get(folder, '')}".split()
    files = [ROOT / "tests" / f"{one}.py" for one in dict.fromkeys(named)]
    return [str(file.relative_to(ROOT)) for file in files if file.exists()]


def run_tests(files: Sequence[str]) -> bool:
    """Run test files until one fails; return whether all passed."""
    import pytest
    from hypothesis import Phase, settings

    # the first failing example will do
    settings.register_profile("first", phases=(Phase.explicit, Phase.generate))
    settings.load_profile("first")
    options = "-x -q -p no:randomly -p no:xdist -p no:cacheprovider -o addopts= "
    options += "-W ignore::pytest.PytestAssertRewriteWarning --import-mode=importlib"
    return pytest.main([*options.split(" "), "-m", "not long", *files]) == 0


Combinations = Sequence[tuple[int, Sequence[str]]]  # each with its number among all valid ones


def proved(chosen: Combinations) -> bool:
    """Whether all gradients are proved, and then all values."""
    cases = importlib.import_module("exact_cases")
    combination = importlib.import_module("bbb_numpy.gradients.matrix").Combination
    return all(
        cases.prove_gradient(number, combination(*which)).proved for number, which in chosen
    ) and all(cases.proved_value(number, combination(*which)) for number, which in chosen)


def lines_run() -> dict[str, list[Any]]:
    """Prove combinations in which all pairs of parts meet, and note the lines that each runs."""
    problems = importlib.import_module("problems")
    seen: set[tuple[str, int]] = set()
    home = str(ROOT / "bbb_numpy")

    def trace(frame: Any, event: str, _: Any) -> Any:
        path = frame.f_code.co_filename
        if not path.startswith(home) or "/exact/" in path:
            return None
        seen.add((path, frame.f_lineno))
        return trace

    found = []
    for which in problems.PAIRS:
        number = problems.VALID.index(which)
        seen.clear()
        sys.settrace(trace)
        right = proved([(number, which)])
        sys.settrace(None)
        assert right, which
        lines: dict[str, list[int]] = {}
        for path, line in sorted(seen):
            lines.setdefault(str(Path(path).relative_to(ROOT)), []).append(line)
        found.append((number, which, lines))
    return {"combinations": found}


def chosen_for(mutant: Mutant, file: str, traced: Sequence[Any]) -> Combinations:
    """Choose combinations that run the mutated line: evenly, in their order."""
    inside = [one for one in traced if file in one[2]]
    fit = [one for one in inside if mutant.line in one[2][file]]
    if not fit and not mutant.function:
        fit = inside  # a constant of the module
    step = max(1, len(fit) // PROOFS)
    return [(number, which) for number, which, _ in fit[::step][:PROOFS]]


def fate(
    mutant: Mutant | None,
    name: str,
    path: Path,
    tree: ast.Module,
    oracles: Sequence[tuple[int, Callable[[], bool]]],
    seconds: int,
) -> int:
    """Return which oracle notices a mutant of the module `name`, or SURVIVED.

    An oracle that raises has noticed. STOPPED is a mutant that took too long or crashed.
    """

    def work() -> tuple[int, None]:
        if mutant is not None:
            mutant.apply()
        sys.meta_path.insert(0, Finder(name, path, tree))
        for status, right in oracles:
            try:
                if not right():
                    return status, None
            except Exception:
                return status, None
        return SURVIVED, None

    status, _ = in_a_fork(work, seconds)
    return STOPPED if status is None or status == 1 else status


# --- all of them


def modules(only: Sequence[str]) -> list[str]:
    """Name the modules that are mutated, such as parts/priors."""
    package = ROOT / "bbb_numpy"
    files = [package / f"{name}.py" for name in SINGLE]
    files += [file for folder in FOLDERS for file in sorted((package / folder).rglob("*.py"))]
    names = [str(f.relative_to(package).with_suffix("")) for f in files if f.stem != "__init__"]
    return [name for name in names if not only or any(f"{name}/".startswith(f"{o}/") for o in only)]


def tree_of(module: str) -> tuple[Path, ast.Module]:
    """Return the file of a module and its syntax tree."""
    path = ROOT / "bbb_numpy" / f"{module}.py"
    return path, ast.parse(path.read_text(encoding="utf-8"))


def run_module(module: str, keys: Sequence[str], traced: Sequence[Any]) -> dict[str, Any]:
    """Run mutants of a module; return how many each oracle killed, and the survivors."""
    path, tree = tree_of(module)
    every, files = keyed(tree), tests_of(module)
    name = "bbb_numpy." + module.replace("/", ".")
    file = str(path.relative_to(ROOT))

    def ask(mutant: Mutant | None, tree: ast.Module, seconds: int) -> int:
        chosen = chosen_for(mutant, file, traced) if mutant else ()
        oracles = [(PROOF, lambda: proved(chosen))] if chosen else []
        return fate(
            mutant, name, path, tree, [*oracles, (TESTS, lambda: run_tests(files))], seconds
        )

    began = time.monotonic()
    if ask(None, tree, 600) != SURVIVED or ask(None, ast.parse("1 / 0"), 600) == SURVIVED:
        raise RuntimeError(f"{module}: the tests {files} fail already, or do not import it")
    seconds = 20 + 2 * round(time.monotonic() - began)
    fates: dict[str, int] = {}
    for done, key in enumerate(keys, 1):
        fates[key] = ask(every[key], tree, seconds)
        if fates[key] == SURVIVED:
            print(f"{file}:{every[key].line} {key}", flush=True)
        if done % 25 == 0:
            print(f"{module} {done}/{len(keys)}, {time.monotonic() - began:.0f} s", file=sys.stderr)
    count = list(fates.values()).count
    return {
        "run": len(keys),
        "proof": count(PROOF),
        "tests": count(TESTS),
        "stopped": count(STOPPED),
        "survivors": [key for key, how in fates.items() if how == SURVIVED],
    }


def again(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of a run, of which the survivors have been run again."""
    gone = len(before["survivors"]) - now["run"]  # from the code, or no mutants any more
    sums = {how: before[how] + now[how] for how in ("proof", "tests", "stopped")}
    return {"run": before["run"] - gone, **sums, "survivors": now["survivors"]}


def page(results: dict[str, Any], reasons: dict[str, dict[str, str]]) -> str:
    """Lay out mutation.md."""
    head = ["module", "mutants", "run", "by proof", "by tests", "stopped", "survivors"]
    rows, listed, totals = [], [], [0] * 6
    for module in [one for one in modules(()) if one in results]:
        path, tree = tree_of(module)
        every, found = keyed(tree), results[module]
        counts = [len(every), *(found[how] for how in ("run", "proof", "tests", "stopped"))]
        counts.append(len(found["survivors"]))
        rows.append([module, *counts])
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        for key in found["survivors"]:
            line = f":{every[key].line}" if key in every else ", line changed since"
            why = reasons.get(module, {}).get(key, "**not explained yet**")
            listed.append(f"- {path.relative_to(ROOT)}{line}, {key}. {why}")
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [head, *rows, ["all", *totals]]]
    lines.insert(1, "|---|" + "---:|" * 6)
    return HEAD + "\n".join(lines) + "\n\n## Survivors\n\n" + "\n".join(listed) + "\n"


def read(path: Path) -> Any:
    """Read a JSON file; {} if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=(), help="modules or folders: parts/priors")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants, evenly spread")
    parser.add_argument("--survivors", action="store_true", help="those of earlier runs again")
    parser.add_argument("--report", action="store_true", help="write mutation.md and run nothing")
    args = parser.parse_args(argv)
    os.chdir(ROOT)
    os.environ.update(HYPOTHESIS_PROFILE="check", CI="1", OPENBLAS_NUM_THREADS="1")
    results = read(RESULTS)
    chosen = [] if args.report else modules(args.only)
    if chosen:
        for name in SLOW_TO_IMPORT:
            importlib.import_module(name)
        _, traced = in_a_fork(lambda: (SURVIVED, lines_run()), 600, quiet=False)
    for module in chosen:
        keys = list(keyed(tree_of(module)[1]))
        if args.survivors:
            before = results.get(module, {"survivors": []})
            keys = [key for key in keys if key in before["survivors"]]
            if before["survivors"]:
                results[module] = again(before, run_module(module, keys, traced["combinations"]))
        else:
            step = 1 / args.share
            keys = [keys[int(step * (i + 0.5))] for i in range(int(len(keys) * args.share))]
            results[module] = run_module(module, keys, traced["combinations"])
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(results, read(REASONS)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
