"""Grade the tests by mutants: change one thing in the code and see who notices.

    python benchmarks/mutation.py                             # everything, hours
    python benchmarks/mutation.py --only parts/priors         # one module, or one folder
    python benchmarks/mutation.py --only sampling --share 0.1 # every tenth mutant
    python benchmarks/mutation.py --survivors                 # the survivors of earlier runs again
    python benchmarks/mutation.py --report                    # only write mutation.md
    python benchmarks/mutation.py --killers --share 0.1       # which tests does no mutant need?

Everything below ``learners/`` is mutated, one node of its syntax tree at a time. First speaks the
exact proof (D44), on combinations of parts that run the mutated line; then the tests that call the
mutated function, until one fails. A mutant inside a function is judged in a fork of a process that
has collected all tests (`in_place`). Constants, defaults and the bodies of classes are computed at
import: their mutants get a fork of a process that has imported NumPy, SciPy, pytest and hypothesis
but nothing of ours, and the tests of the module. mutmut and cosmic-ray start an interpreter and
pytest anew for each mutant: 1.5 s of processor time before the first test of one file.

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
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # to run as a plain script

from project import signatures  # noqa: E402

from benchmarks.in_place import NOT_IN_PLACE, Answers  # noqa: E402
from benchmarks.mutants import Mutant, keyed  # noqa: E402
from benchmarks.oracles import (  # noqa: E402
    PROOF,
    STOPPED,
    SURVIVED,
    TESTS,
    chosen_for,
    in_a_fork,
    lines_run,
    proved,
    run_tests,
    tree_of,
)  # fmt: skip

RESULTS = ROOT / "benchmarks" / "results" / "mutation.json"
REASONS = ROOT / "benchmarks" / "mutation_reasons.json"
PAGE = ROOT / "benchmarks" / "mutation.md"
FOLDERS = ("numeric", "parts", "model", "gradients", "training", "sampling", "evaluation")
SINGLE_MODULES = ("plain", "combinations", "registry")
PROVER = "exactgrad"  # its modules have the name of the package in theirs
HOMES = (str(ROOT / "bbb_numpy"), str(ROOT / PROVER))
DEFAULTS = "tests/project/test_signatures.py::test_public_names_and_defaults_are_written_down"
SLOW_TO_IMPORT = ("numpy", "scipy.special", "scipy.stats", "scipy.optimize", "autograd.scipy",
                  "hypothesis.extra.numpy", "sklearn.model_selection", "matplotlib.pyplot",
                  "pandas", "pytest")  # fmt: skip

# Tests of a module, where its mirrored file is not all or has another name
EXTRA_TESTS = {
    "exactgrad": "exactgrad/test_as_numpy exactgrad/test_laws exactgrad/test_attacks "
    "exactgrad/test_proofs exactgrad/test_large",
    "combinations": "test_combinations",
    "plain": "test_plain",
    "numeric/files": "sampling/test_resuming learners/test_checkpoint",
    "numeric/standardisation": "learners/test_regressor",
    "numeric": "",
    "parts/full_rank": "parts/test_posteriors",
    "parts/mixture": "parts/test_priors",
    "parts/priors": "parts/test_layerwise_prior",
    "parts/products": "model/test_joint sampling/mcmc/test_metrics parts/test_network",
    "parts/student_t": "parts/test_likelihoods parts/test_priors",
    "parts": "parts/test_refusals parts/test_purity model/test_log_joint gradients/test_purity "
    "test_plain",
    "model": "gradients/test_estimator",
    "registry": "test_registry gradients/test_checklist test_combinations",
    "gradients": "gradients/test_estimator gradients/test_purity gradients/test_closed_form "
    "test_combinations",
    "training/minibatches": "training/test_loop",
    "training/recipe": "training/test_loop",
    "training/state": "training/test_loop",
    "training/stopping": "training/test_loop model/test_kl_weights",
    "training": "",
    "sampling/mcmc/microcanonical": "sampling/mcmc/test_adaptation",
    "sampling/mcmc": "sampling/mcmc/test_metrics sampling/mcmc/test_exact_invariance "
    "sampling/test_invariance",
    "sampling/draws": "sampling/test_drawn_weights",
    "sampling": "sampling/test_run sampling/test_resuming",
    "evaluation/convergence": "evaluation/test_arviz_export",
    "evaluation/predictive": "training/test_laplace",
    "evaluation": "",
}


PAGE_HEAD = """# Mutants

For whoever asks what the tests notice. (`make mutation` writes this page.)

A mutant changes one thing in the code. *Run* counts those that
were tried, evenly spread over the module as it was then; *by proof* those that the exact proof of a
few combinations (D44) did not accept; *by tests* those that passed it, or that no combination runs,
and failed a test of the module; *stopped* those that did not end. A survivor is one that none of
these noticed; beside it stands why it changes no result. Modules without a line were not tried.

"""


# --- the fate of one


class Mutated(importlib.machinery.SourceFileLoader):
    """Finds and imports one module, from its changed tree."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        super().__init__(name, str(path))
        self.tree = tree

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """Answer for that module only."""
        return importlib.util.spec_from_loader(fullname, self) if fullname == self.name else None

    def get_code(self, fullname: str) -> Any:
        """Compile the tree in place of the file."""
        return compile(ast.fix_missing_locations(self.tree), self.path, "exec", dont_inherit=True)


def mirrored(module: str) -> str:
    """Return the place of a module's own tests, such as parts/test_priors.

    Those of the prover stand in one folder.
    """
    folder, _, name = module.rpartition("/")
    if folder.startswith(PROVER):
        folder = PROVER
    return f"{folder}/test_{name}".strip("/")


def tests_of(module: str) -> list[str]:
    """Return the tests of a module: its defaults, its mirror, and its row of `EXTRA_TESTS`."""
    folder = PROVER if module.startswith(PROVER) else module.rpartition("/")[0]
    names = (
        f"{mirrored(module)} {EXTRA_TESTS.get(module, '')} {EXTRA_TESTS.get(folder, '')}".split()
    )
    files = [ROOT / "tests" / f"{name}.py" for name in dict.fromkeys(names)]
    existing = [str(file.relative_to(ROOT)) for file in files if file.exists()]
    dotted = dotted_name(module)
    return [*([f"{DEFAULTS}[{dotted}]"] if dotted in signatures.modules() else []), *existing]


def dotted_name(module: str) -> str:
    """Return the name by which a module is imported."""
    name = module.replace("/", ".")
    return name if module.startswith(PROVER) else f"bbb_numpy.{name}"


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
        sys.meta_path.insert(0, Mutated(name, path, tree))  # type: ignore[arg-type]
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
    """Return the names of the modules that are mutated, such as parts/priors."""
    package = ROOT / "bbb_numpy"
    files = [package / f"{name}.py" for name in SINGLE_MODULES]
    files += [file for folder in FOLDERS for file in sorted((package / folder).rglob("*.py"))]
    names = [str(file.relative_to(package).with_suffix("")) for file in files]
    prover = sorted((ROOT / PROVER).rglob("*.py"))
    names += [str(file.relative_to(ROOT).with_suffix("")) for file in prover]
    names = [name for name in names if not name.endswith(("__init__", "__main__"))]
    return [name for name in names if not only or any(f"{name}/".startswith(f"{o}/") for o in only)]


def tests_for(module_names: Iterable[str]) -> list[str]:
    """Return the tests that are collected for modules: all of their folders, and those named.

    The proofs of all combinations take minutes, and tell what the oracle of a few has told before.
    """
    folders = {(ROOT / "tests" / mirrored(module)).parent for module in module_names} - {
        ROOT / "tests"
    }
    test_files = {file for folder in folders for file in folder.rglob("test_*.py")}
    files = {str(file.relative_to(ROOT)) for file in test_files if file.stem != "test_exact"}
    return sorted(files.union(*(tests_of(module) for module in module_names)))


def slow_fates(module: str, keys: Sequence[str], traced: Sequence[Any]) -> dict[str, int]:
    """Return the fate of mutants that cannot be judged in place: each is imported anew."""
    path, tree = tree_of(module)
    mutants_by_key = keyed(tree)
    files = tests_of(module)
    name = dotted_name(module)

    def ask(mutant: Mutant | None, tree: ast.Module, seconds: int) -> int:
        chosen = chosen_for(mutant, path, traced) if mutant else ()
        oracles = [(PROOF, lambda: proved(chosen))] if chosen else []
        return fate(
            mutant, name, path, tree, [*oracles, (TESTS, lambda: run_tests(batch))], seconds
        )

    mirror = [test for test in files if test.startswith((DEFAULTS, f"tests/{mirrored(module)}."))]
    fates = dict.fromkeys(keys, SURVIVED)
    for batch in mirror, [test for test in files if test not in mirror]:  # most fall at the first
        remaining = [key for key in keys if fates[key] == SURVIVED] if batch else []
        start_time = time.monotonic()
        if remaining and (ask(None, tree, 600) or ask(None, ast.parse("1 / 0"), 600) == SURVIVED):
            raise RuntimeError(f"{module}: the tests {batch} fail already, or do not import it")
        seconds = 20 + 2 * round(time.monotonic() - start_time)
        fates |= {key: ask(mutants_by_key[key], tree, seconds) for key in remaining}
    return fates


def run_module(
    module: str, keys: Sequence[str], traced: Sequence[Any], answers: Answers, max_seconds: float
) -> dict[str, Any]:
    """Run mutants of a module; return how many each oracle killed, and the survivors."""
    path, tree = tree_of(module)
    mutants_by_key = keyed(tree)
    start_time = time.monotonic()
    fates = answers.ask(
        module, {key: chosen_for(mutants_by_key[key], path, traced) for key in keys}, max_seconds
    )
    elsewhere = [key for key, status in fates.items() if status == NOT_IN_PLACE]
    if elsewhere:
        fates |= slow_fates(module, elsewhere, traced)
    survivors = [key for key, status in fates.items() if status == SURVIVED]
    for key in survivors:
        print(f"{path.relative_to(ROOT)}:{mutants_by_key[key].line} {key}", flush=True)
    summary = f"{len(keys)} mutants, {len(elsewhere)} of them imported anew"
    print(f"{module}: {summary}, {time.monotonic() - start_time:.0f} s", file=sys.stderr)
    count_of = list(fates.values()).count
    return {
        "run": len(keys),
        "proof": count_of(PROOF),
        "tests": count_of(TESTS),
        "stopped": count_of(STOPPED),
        "survivors": survivors,
    }


def pruned(module: str, counts: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of a run without the survivors that the code has no longer."""
    mutants_by_key = keyed(tree_of(module)[1])
    present = [key for key in counts["survivors"] if key in mutants_by_key]
    n_gone = len(counts["survivors"]) - len(present)
    return {**counts, "run": counts["run"] - n_gone, "survivors": present}


def merge_reruns(
    earlier: dict[str, Any], rerun: dict[str, Any], rerun_keys: Sequence[str]
) -> dict[str, Any]:
    """Return the counts of a run of which some survivors have been run again."""
    sums = {oracle: earlier[oracle] + rerun[oracle] for oracle in ("proof", "tests", "stopped")}
    not_rerun = [key for key in earlier["survivors"] if key not in rerun_keys]
    return {"run": earlier["run"], **sums, "survivors": [*not_rerun, *rerun["survivors"]]}


def page(results: dict[str, Any], reasons: dict[str, dict[str, str]]) -> str:
    """Return the text of mutation.md."""
    columns = ["module", "mutants", "run", "by proof", "by tests", "stopped", "survivors"]
    rows = []
    listed = []
    totals = [0] * 6
    for module in [name for name in modules(()) if name in results]:
        path, tree = tree_of(module)
        mutants_by_key = keyed(tree)
        result = results[module]
        counts = [
            len(mutants_by_key),
            *(result[oracle] for oracle in ("run", "proof", "tests", "stopped")),
        ]
        counts.append(len(result["survivors"]))
        rows.append([module, *counts])
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        for key in result["survivors"]:
            line = (
                f":{mutants_by_key[key].line}" if key in mutants_by_key else ", line changed since"
            )
            reason = reasons.get(module, {}).get(key, "**not explained yet**")
            listed.append(f"- {path.relative_to(ROOT)}{line}, {key}. {reason}")
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [columns, *rows, ["all", *totals]]]
    lines.insert(1, "|---|" + "---:|" * 6)
    return PAGE_HEAD + "\n".join(lines) + "\n\n## Survivors\n\n" + "\n".join(listed) + "\n"


def never_alone(killers: Iterable[Sequence[str]]) -> list[str]:
    """Return the tests that notice mutants, but none that no other test notices, busiest first.

    Such a test may go, as far as mutants tell: each change that it sees is seen by another one. Of
    two that see the same alone only one may.
    """
    count = Counter(name for names in killers for name in names)
    needed = {names[0] for names in killers if len(names) == 1}
    return [name for name, _ in count.most_common() if name not in needed]


def print_killers(
    keys_by_module: dict[str, list[str]], answers: Answers, max_seconds: float
) -> None:
    """Find all tests that notice each mutant, and print those that are never alone."""
    killers: dict[str, list[str]] = {}
    for module, keys in keys_by_module.items():
        killers |= {
            f"{module} {key}": names
            for key, names in answers.killers(module, keys, max_seconds).items()
        }
        print(f"{module}: {len(keys)} mutants", file=sys.stderr)
    n_single = sum(len(names) == 1 for names in killers.values())
    print(f"{len(killers)} mutants noticed by tests, {n_single} of them by one test alone")
    print("tests of which each mutant that they notice is noticed by another one too:")
    print(*never_alone(list(killers.values())), sep="\n")


def read(path: Path) -> Any:
    """Read a JSON file; {} if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def keys_of(module: str, share: float) -> list[str]:
    """Choose mutants of a module, evenly spread."""
    keys = list(keyed(tree_of(module)[1]))
    step = 1 / share
    return [keys[int(step * (i + 0.5))] for i in range(int(len(keys) * share))]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=(), help="modules or folders: parts/priors")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants, evenly spread")
    parser.add_argument(
        "--survivors", action="store_true", help="those of earlier runs again that have no reason"
    )
    parser.add_argument("--report", action="store_true", help="write mutation.md and run nothing")
    parser.add_argument(
        "--killers", action="store_true", help="print the tests that no mutant needs; write nothing"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of tests for one mutant")
    args = parser.parse_args(argv)
    os.chdir(ROOT)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what runs behind a shell
    os.environ.update(HYPOTHESIS_PROFILE="first", CI="1", OPENBLAS_NUM_THREADS="1")
    reasons = read(REASONS)
    existing = modules(())  # what a module found that is gone goes with it
    results = {
        name: pruned(name, counts) for name, counts in read(RESULTS).items() if name in existing
    }
    selected = [] if args.report else modules(args.only)
    keys_by_module = {module: keys_of(module, args.share) for module in selected}
    if args.survivors:
        keys_by_module = {
            module: [key for key in counts["survivors"] if key not in reasons.get(module, {})]
            for module, counts in results.items()
            if module in selected
        }
    keys_by_module = {module: keys for module, keys in keys_by_module.items() if keys}
    if keys_by_module:
        for name in SLOW_TO_IMPORT:
            importlib.import_module(name)
        _, traced_lines = in_a_fork(lambda: (SURVIVED, lines_run()), 600, quiet=False)
        answers = Answers(tests_for(keys_by_module), HOMES)
        print(f"{answers.usable} of {answers.collected} tests can be run again", file=sys.stderr)
        try:
            if args.killers:
                print_killers(keys_by_module, answers, args.seconds)
                return 0
            for module, keys in keys_by_module.items():
                counts = run_module(
                    module, keys, traced_lines["combinations"], answers, args.seconds
                )
                results[module] = (
                    merge_reruns(results[module], counts, keys) if args.survivors else counts
                )
                RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        finally:  # it waits for questions, and this process for its end
            answers.close()
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(results, reasons), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
