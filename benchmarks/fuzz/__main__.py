"""Try what nobody should type, and count what becomes of it.

    python -m benchmarks.fuzz                            # all of it, about 20 minutes of two cores
    python -m benchmarks.fuzz --kinds calls --calls 500  # some of it
    python -m benchmarks.fuzz --kinds calls --only 123   # one trial again, in this process

A trial is repeated by its seed and number. A defect is: an exception that is of no documented kind
or does not name the argument, a hang, a crash, memory beyond a bound, a changed learner after a
failed call, nan without a warning, a warning of NumPy's; of a file, that it is read as what it is
not; of a killed process, that anything finished is lost. Any defect makes the exit status 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from typing import Any

from . import children, files, processes, verdicts

TRIALS: dict[str, Any] = {
    "calls": (verdicts.call, 50_000),
    "models": (files.model, 2_500),
    "tables": (files.table, 500),
    "kills": (processes.kill, 60),
    "interrupts": (processes.ctrl_c, 24),
}


def main() -> int:
    """Run the trials and print the table."""
    if sys.argv[1:2] == ["--worker"]:
        children.work(TRIALS[sys.argv[2]][0], sys.argv[3:])
        return 0
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--kinds", nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (2)")
    parser.add_argument("--only", type=int, help="the number of one trial, to be made again")
    for kind, (_, count) in TRIALS.items():
        parser.add_argument(f"--{kind}", type=int, default=count, help=f"how many ({count})")
    args = parser.parse_args()
    if args.only is not None:
        [kind] = args.kinds
        children.limited()
        found = TRIALS[kind][0](args.seed, args.only, loud=True)
        return int("defect" in found)
    went_well = [clean(kind, args) for kind in args.kinds]  # all of them run
    return int(not all(went_well))


def clean(kind: str, args: argparse.Namespace) -> bool:
    """Make the trials of one kind and print what became of them; return whether all went well."""
    began, count = time.monotonic(), getattr(args, kind)
    results: Counter[str] = Counter()
    defects = defaultdict(list)
    for one in children.run_all(kind, args.seed, count, args.jobs):
        if "defect" in one:
            defects[one["what"], one["defect"]].append(one)
        else:
            results[one["what"]] += 1
    total = sum(map(len, defects.values()))
    seconds = time.monotonic() - began
    print(f"{kind}: {count} trials in {seconds:.0f} s, {total} defects of {len(defects)} kinds")
    print(f"  {', '.join(f'{number} {what}' for what, number in results.most_common())}")
    for (_, defect), those in sorted(defects.items(), key=lambda pair: -len(pair[1])):
        shortest = min(those, key=lambda one: len(one["text"]))
        print(f"- {len(those)} x {defect}: --seed {args.seed} --only {shortest['trial']}")
        print("  " + "\n  ".join(shortest["text"].splitlines()), flush=True)
    return not defects


if __name__ == "__main__":
    sys.exit(main())
